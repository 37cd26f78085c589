"""Doctor: what can be known of a workspace and its service before a plan relies on it.

findings    the values: Finding, Assumption, Lesson, Report
checks      looks, and changes nothing: connection, token, clock, pages, fields, names that are live twice
token       when the credential ends, read from it without showing it
pages       the largest page that each listing gives
relies      which assumptions the manifests lean on
lab         one call after the other, in words that are being tried
scratch     what a probe makes, and takes away again
candidates  the names and values that are tried for each key
groups, targets, fields, accounts, people
            the lessons, one for each key: try, read back, learn
keepsake    what the person who was named was before, and putting it back
probe       all lessons in order, and the cleaning up after them
projectfile what was learnt, put into the project file between its comments
report      the report as text and as JSON
"""
