"""Frozen value types shared by all packages: addresses, desired resources, snapshots, changes, calls, plans, drift.

    address, names, forms        addresses, name comparison, and the comparable manifest form of a resource
    declarations, calls, plan    desired resources; steps and calls; changes, possible renames, guard results and plans
    effects, access, access_tests
                                 what a plan does to people; answers about a person or an audience; tests in manifests
    outcomes                     the result of each call, and of a run
    progress                     how far a run is, and what limits its rate
    policy, scope                settings of the project file and the command line that decide a plan
    snapshot, rows, api          live state as a value and as JSON; the protocol of the reads that a plan needs
    drift, recorded_run          a drift report; a run as recorded in its journal
    lints                        codes, levels and explanations of lints
    blockers                     reasons why an apply would stop
    dependency_graph, explanation, settings_changes
                                 the values shown by graphs, `explain` and `--base`
    canonical_json, time_formats, text_limits
                                 canonical JSON, times, text that manifests can hold

Nothing here depends on a kind, YAML or HTTP.
"""
