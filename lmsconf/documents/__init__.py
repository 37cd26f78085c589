"""Values ⇄ versioned JSON documents. Each has a JSON Schema.

json_documents what all have: rendering, strict parsing, seals, structs ⇄ JSON
plan_file      plans
reports        applies, drift, fleets, recorded runs, people and tests, problems
snapshot_file  snapshots
journal        the `.lmsconf` folder of a project: run log, kept plans and reports, local lock
"""
