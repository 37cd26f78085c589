"""The record of runs for auditors: evidence of what was done, and the history of a resource or a person.

masked_copies  plan, report and journal of a run without people
run_entry      what evidence.json states of a run, derived from the copies beside it
run_chain      the findings of a chain of runs: one is missing, changed, or out of order
bundle         writes a folder of evidence
evidence_page  its index page
statement      its in-toto statement, and the DSSE envelope
signing        Ed25519 signatures
verification   finds what was changed in a folder of evidence
history        which runs changed a resource or a person
history_views  a history as text and JSON

It reads `.lmsconf/runs` and folders of evidence, and never the workspace.
"""
