"""Export of a live workspace to manifests with an empty plan, and edits of manifests that accept drift.

declared_rows                the live rows that existing manifests declare already
verify_empty_plan            plan the exported entries at once; entries that would change something are left out
file_layout                  entries → files
export                       snapshot → files, and what was left out; each kind turns its rows into entries
expanded                     `validate --expanded`
accept_drift, accept_groups  findings of a drift report → edits of manifests; what must be accepted together
edit_items, edit_references  edits of one of several resources of an entry, and of every reference to a renamed one
"""
