"""Learn the dialect by trying it: on scratch objects, and on one person and one content that the user names.

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
projectfile writes keys that differ into the project file, and keeps its comments
"""
