"""Looking at one workspace: connect, read, plan, compare with a base, look for drift. Nothing here can change it.

connection                   settings → a connection to the service, or to the embedded sandbox
reader                       reads, plans, and looks for drift
git_base, base_comparison    the manifests before a change, and which changes come from it
settings_comparison          its settings beside those of the base
snapshot_notices             what a plan from a snapshot file cannot know
"""
