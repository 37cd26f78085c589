"""The frozen values that flow: addresses, declarations, snapshots, changes, calls, plans, outcomes, drift.

    address, names, forms        who a resource is; how it looks in a manifest, in shapes that compare
    values                       declarations, changes, steps, calls, plans and outcomes
    policy, scope                what the project file and the command line decide
    snapshot, rows, api          what was read, as a value and as JSON; the reads that a plan needs, as a protocol
    drift, recorded_run          what differs by hand; what a journal says of a run
    blockers, candidates         why an apply would stop; which live resources a new one may be
    dependency_graph, explanation, settings_changes
                                 what pictures, `explain` and `--base` show
    canonical, moments, unseen   canonical JSON, times, invisible characters

Nothing here knows a kind, YAML or HTTP.
"""
