"""Desired resources and a snapshot → a plan, for any kind.

kind, context                what there is to say about a kind, and PlanContext, the state of one planning run
manifest_entries             entries as kinds parse and describe them; names of live resources as manifests use them
selection, address_patterns  which resources are planned: `--only`, `--except`, `--additive`, and the patterns they take
claim_matching, matching     which live resource each declaration refers to, and which are deleted
missing_references           references to what will not exist
plan, planned_resources, diff
                             declared and live state → changes
call_order                   changes → calls in dependency order
rename_detection             creations that may be live resources under a new name
audience                     who has which content, before and after a plan; reports and tests of that
lints                        what is valid and probably not meant: the lints of all kinds, at their levels
guard_counts, guards         what a plan deletes and revokes, and which limits that exceeds
drift                        a plan of all manifests → drift
plan_as_manifests            a plan's changes → declarations again
reading                      which listings a plan needs, and what the jobs that read them share
redaction, snapshot_redaction
                             snapshots without the people that no manifest names
dependency_graph             declarations → the graph of what they depend on
undo                         a recorded run → the plan that undoes it
"""
