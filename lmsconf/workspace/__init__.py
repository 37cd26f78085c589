"""Read one workspace: connect, read, plan, compare with a base, detect drift. Nothing here can change it.

connection          settings → a connection to the service, or to the embedded sandbox
project_manifests   load and validate the project's manifests; their git commit
reader              reads, plans, detects drift, answers questions about people; limits of a snapshot file
base_loader         the manifests before a change
plan_with_base      which changes come from it, and its settings compared with those of the base
undo_plan           a plan that takes back what a run did
export              the live workspace, or accepted drift → manifests
"""
