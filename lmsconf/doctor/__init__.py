"""Doctor: check a workspace and its service, and probe the dialect, before a plan relies on them.

checks      checks that only read
probe       lessons on scratch objects, one for each dialect key
report      the values of a run, and the report as text and as JSON
"""
