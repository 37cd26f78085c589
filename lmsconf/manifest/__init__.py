"""YAML and CSV text → desired resources and delete entries, each with its source locations.

file_set             the files below the manifest folder, their size limits and their digest
yaml_reader          YAML text → nodes with positions; nodes; syntax_hints, for what is no YAML
variables            variables and `for_each` → one entry for each value
named_sets           sets, windows, `use` and `except` → plain entries
csv_tables           CSV text → a table; workbook, `.xlsx` and `.ods` → tables, within limits
entries_from_tables  the tables that manifests refer to → people and entries
schema_check         entries against the JSON Schema of a manifest, and of its sections; schema_messages and
                     suggestions word what is wrong
schema_code          those schemas as code that passes valid entries, written by fastjsonschema
load                 folders → Manifests: DesiredResource and DeleteEntry, with the problems of every file;
                     a later folder changes the entries of earlier ones
problems             the problems of a load as a whole
explain              documentation of a manifest key, from its schema
edit                 edits of manifests in place
"""
