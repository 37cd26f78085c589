"""Values ⇄ versioned JSON documents: plan files, apply reports, snapshots, problems. Each has a JSON Schema.

journal   the `.lmsconf` folder of a project: run log, kept plans and reports, local lock
"""
