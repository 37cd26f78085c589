"""Export of a live workspace to manifests with an empty plan, and edits of manifests that accept drift.

manifest_files     entries → files, by section or by team; `validate --expanded`
export             snapshot → files whose plan is empty, and what was left out
accept_drift       findings of a drift report → edits of manifests; which can be accepted, and with which others
manifest_editor    the edits of one entry, or of one of the several resources that it declares
"""
