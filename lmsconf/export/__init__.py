"""A live workspace as manifests that plan empty, and manifests edited to accept drift.

live_names                   what a snapshot names, and what cannot be named
rows                         a live row → its manifest entry
verify_empty_plan            plans what is exported at once; entries that would change something are left out
file_layout                  entries → files, in the order in which people write them
export                       snapshot → files, and what was left out
expanded, absent             `validate --expanded`; entries under `absent`
accept_drift, accept_groups  findings of a drift report → edits of manifests; what must be accepted together
edit_assignments, edit_references
                             edits of content targets, and of every reference to a renamed resource
"""
