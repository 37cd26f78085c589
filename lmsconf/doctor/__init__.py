"""Doctor: check a workspace and its service, and probe the dialect, before a plan relies on them.

findings    the values: Finding, Assumption, Lesson, Report
diagnose    checks that only read
probe       lessons on scratch objects, one for each dialect key
report      the report as text and as JSON
"""
