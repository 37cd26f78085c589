"""Desired resources and a snapshot → a plan, with the functions of the kinds.

read                         what is read of a workspace for a plan, concurrently, into a snapshot
selection                    which resources are planned: `--only`, `--except`, `--additive`, and the patterns they take
plan, planned_resources      declared and live state → changes, and a plan's changes → declarations again
diff                         two forms of a resource → field changes
call_order                   changes → calls in dependency order; the graph of what declarations depend on
rename_detection             creations that may be live resources under a new name
audience                     who has which content, before and after a plan; reports and tests of that
lint_rules                   what is valid and probably not meant, at the levels of the project file
check_guards                 what a plan deletes and revokes, and which limits that exceeds
drift                        a plan of all manifests → drift
snapshot_redaction           snapshots without the people that no manifest names
undo                         a recorded run → the plan that undoes it
"""
