"""Doctor: check a workspace and its service, and probe the dialect, before a plan relies on them.

checks      checks that only read
report      the values of a run, and the report as text and as JSON
probe_run   all lessons in order, on scratch objects and on one person and one content that the user names
experiments what is sent and read to learn each key
trials      calls with candidate names and values, and the scratch objects of a probe
field_and_group_lessons, assignment_lessons, person_lessons
            the lessons, one for each key: try, read back, record
person_backup
            the state of the named person before the probe, and its restoration
project_file_edit
            writes keys that differ into the project file, and keeps its comments
"""
