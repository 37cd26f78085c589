"""Export of a live workspace to manifests with an empty plan, and edits of manifests that accept drift.

live_names                   names of live resources and people, and which of them a manifest can use
rows                         live row → manifest entry
verify_empty_plan            plan the exported entries at once; entries that would change something are left out
file_layout                  entries → files
export                       snapshot → files, and what was left out
expanded, absent             `validate --expanded`; entries under `absent`
accept_drift, accept_groups  findings of a drift report → edits of manifests; what must be accepted together
edit_assignments, edit_references
                             edits of content targets, and of every reference to a renamed resource
"""
