"""Doctor: check a workspace and its service, and probe the dialect, before a plan relies on them.

checks             checks that only read
report             the values of a run, and the report as text and as JSON
probe_run          the whole probe in order, on scratch objects and on a person and a content that the user names
probe_trials       calls with candidate names and values, and the scratch objects of a probe
probe_fields_and_groups, probe_assignments, probe_people
                   the lessons, one for each key: try, read back, record
person_backup      the state of the named person before the probe, and its restoration
"""
