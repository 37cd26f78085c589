"""Doctor: check a workspace and its service, and probe the dialect, before a plan relies on them.

findings    the values: Finding, Assumption, Lesson, Report
checks      read-only checks: connection, token, clock, pages, fields, names that are live twice
token       when the credential expires, decoded without showing it
pages       the largest page that each listing returns
assumptions which dialect keys the manifests depend on
trial_client
            makes sequential calls with candidate names and values
scratch_objects
            creates objects for a probe, and deletes them
candidates  the names and values that are tried for each key
groups, targets, fields, accounts, people
            the lessons, one for each key: try, read back, record
person_backup
            the state of the named person before the probe, and its restoration
probe       all lessons in order, and the cleanup after them
projectfile writes found keys into the project file, and keeps its comments
report      the report as text and as JSON
"""
