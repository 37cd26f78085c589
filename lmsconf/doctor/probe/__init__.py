"""Learn the dialect by trying it: on scratch objects, and on one person and one content that the user names.

trial_client
            makes sequential calls with candidate names and values
scratch_objects
            creates objects for a probe, and deletes them
experiments the table of experiments: what is sent and read to learn each key
group_lessons, assignment_lessons, field_lessons, account_lessons, person_lessons
            the lessons, one for each key: try, read back, record
person_backup
            the state of the named person before the probe, and its restoration
probe_run   all lessons in order, and the cleanup after them
project_file_edit
            writes keys that differ into the project file, and keeps its comments
"""
