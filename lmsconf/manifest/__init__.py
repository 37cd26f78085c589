"""Between text and declarations: manifests are found, read with positions, checked and parsed.

folder   which files belong to the manifests, and their digest
files    YAML text → documents of plain values that know where they stand; the door to yaml
nodes    those values: a Map, a Seq, and where each of their parts stands
scalars  what a plain word means, characters that have no place in a manifest
advice   a YAML syntax error in words that say what to do
check    values against a schema; the door to jsonschema
faults   one finding of the schema in the manifest's words
variables   what `$(name)` stands for, put into values
each     `for_each`: one entry for each value of a list
people   lists of people from CSV files
sets     people and conditions that are written once and used by name
conditions  `use` and `except`: conditions that are written shorter
expand   entries as a plain manifest would say them
load     a folder → Declared and Absent, with every problem of every file
cross    what only all declarations together can show
schemas  the JSON Schema of a whole manifest, for editors
"""
