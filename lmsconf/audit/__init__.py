"""The record of runs for auditors: evidence of what was done, and the history of a resource or a person.

statement        what evidence.json states of a run, the in-toto statement of the folder, and its signature
bundle           writes a folder of evidence, with copies that name no people
verify_evidence  finds what was changed in a folder of evidence
history          which runs changed a resource or a person, as text and JSON

It reads `.lmsconf/runs` and folders of evidence, and never the workspace.
"""
