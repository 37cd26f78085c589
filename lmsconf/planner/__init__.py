"""Desired resources and a snapshot → a plan, for any kind.

kind, context                the base class Kind, and PlanContext, the state of one planning run
entries, live_names          entries as kinds describe them; names of live resources as manifests use them
selection                    which resources are planned: `--only`, `--except`, `--additive`
identity, matching           which live resource each declaration refers to
plan, diff                   declared and live state → changes
calls, ordering              changes → calls in dependency order
renames                      creations that may be live resources under a new name
measures, guards             what a plan deletes and revokes, and which limits that exceeds
drift                        a plan of all manifests → drift
plan_as_manifests            a plan's changes → declarations again
dependency_graph             declarations → the graph of what they depend on
"""
