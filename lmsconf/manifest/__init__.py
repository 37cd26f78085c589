"""YAML and CSV text → desired resources and delete entries, each with its source locations.

file_set     the files below the manifest folder, their size limits and their digest
yaml         YAML and CSV text → nodes with positions, scalar resolution, hints for syntax errors
expand       variables, `for_each`, sets, windows, `use` and `except`, and tables → plain entries
workbook     `.xlsx` and `.ods` → tables, within limits
validation   entries against JSON Schemas, cross-resource checks, messages and suggestions
load         a folder → Manifests: DesiredResource and DeleteEntry, with the problems of every file
sections     the sections of a manifest, their compiled schemas and their entries; load_problems, those of a load
schemas      the JSON Schema of a whole manifest, for checking and for editors
explain      documentation of a manifest key, from its schema
edit         edits of manifests in place
"""
