"""Plans for any kind, naming none, and knowing no HTTP.

    values, scope, address, forms, names
                                      what flows: declarations, changes, steps, calls, plans, outcomes
    kind, planning, policy            what kinds, a plan in the making, and the project decide
    identity, identify, select        which declaration speaks of which live resource, and which of them are planned
    plan, diff, additive              declarations + snapshot → changes
    calls, graph                      changes → calls in an order that works
    renames, candidates               creations that may be live resources under a new name
    measure, guard                    what a plan takes away, and where it is stopped
    snapshot, rows                    what was read, as a value and as JSON
    planfile, reportfile, problemsfile, document, canonical, moments   documents
    freshness                         whether a plan still fits
    apply, interrupts, recorded       plan → outcomes; Ctrl-C; what a journal tells
    drift, drifting, explanation, network   for reports, explanations and pictures
"""
