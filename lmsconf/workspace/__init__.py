"""Read one workspace: connect, read, plan, compare with a base, detect drift. Nothing here can change it.

connection                   settings → a connection to the service, or to the embedded sandbox
project_manifests            load and validate the project's manifests
reader                       reads, plans, and detects drift
base_loader, base_comparison the manifests before a change, and which changes come from it
manifests_commit             the commit of the manifests, and whether they are as in it
settings_comparison          its settings compared with those of the base
snapshot_notices             limits of a plan made from a snapshot file
"""
