"""The record of runs for auditors: evidence of what was done, and the history of a resource or a person.

run_entry        what evidence.json states of a run, its page, and the findings of a chain of runs
bundle           writes a folder of evidence, with copies that name no people
signing          its in-toto statement, the DSSE envelope, and Ed25519 signatures
verify_evidence  finds what was changed in a folder of evidence
history          which runs changed a resource or a person, as text and JSON

It reads `.lmsconf/runs` and folders of evidence, and never the workspace.
"""
