"""Read one workspace: connect, read, plan, compare with a base, drift, export. Nothing here can change it.

connection          settings → a connection to the service, or to the embedded sandbox
fill_sandbox        fill an embedded workspace that is empty from a seed or a snapshot
project_manifests   load and validate the project's manifests, and those of a base
reader              reads, plans, detects drift, answers questions about people; limits of a snapshot file
manifests_commit    the git commit of the manifests that a plan was made from
plan_with_base      where each change comes from, and settings compared with those of the base
plan_undo           a plan that takes back what a run did
export              snapshot → files whose plan is empty, and what was left out
export_files        entries → files, by section or by team; `validate --expanded`
drift_selection     which findings of a drift report are accepted together, and what would still differ
accept_drift        the edits of manifests that `drift --accept` writes for each finding
"""
