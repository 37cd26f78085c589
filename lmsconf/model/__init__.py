"""Frozen value types shared by all packages: addresses, desired resources, snapshots, changes, calls, plans, drift.

    address, names, forms        addresses; names; the comparable manifest form of a resource, and the explanation of
                                 a key
    control_characters           how invisible characters are escaped; what text manifests can hold
    declarations, calls, plan    desired resources and their graph; steps and calls; changes, possible renames, guard
                                 results and plans
    effects, access              what a plan does to people; answers about a person or an audience, and tests of them
    outcomes                     the result of each call, what was verified, the result of a run; a recorded run
    guards                       guards, and all settings that decide a plan, of the project file and the command
                                 line; how they differ
    snapshot, drift              live state as a value and as JSON; a drift report
    lint_codes, problem_codes    codes, levels and explanations of lints; codes and explanations of problems, and why an
                                 apply would stop
    fleet                        workspaces of a fleet, and what became of each
    canonical_json, time_formats canonical JSON, times

Nothing here depends on a kind, YAML or HTTP.
"""
