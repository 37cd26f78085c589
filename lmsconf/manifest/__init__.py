"""Between text and declarations: manifests are found, read with positions, checked and parsed.

folder   which files belong to the manifests, and their digest
files    YAML text → documents of plain values that know where they stand; the door to yaml
nodes    those values: a Map, a Seq, and where each of their parts stands
scalars  what a plain word means, variables, characters that have no place in a manifest
advice   a YAML syntax error in words that say what to do
check    values against a schema; the door to jsonschema
faults   one finding of the schema in the manifest's words
people   lists of people from CSV files
load     a folder → Declared and Absent, with every problem of every file
cross    what only all declarations together can show
schemas  the JSON Schema of a whole manifest, for editors
"""
