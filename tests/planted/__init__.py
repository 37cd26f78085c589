"""Planted faults: what would hurt somebody is put into a copy of lmsconf, and the suite has to find it.

    faults.toml   the faults: what each would do to somebody, the text that it changes, and the tests that find it
    faults        the list as values, and what a file reads with a fault in it
    source_copy   copies to plant in, and tests that are run there
    line_coverage which tests reach which line of lmsconf
    mutants       small changes of every sort, made by rule instead of by hand
    survivors.md  mutants that no test found, each with its reason

`python -m tests.planted [NAME…]` plants each fault, or those named, and prints which were caught.
`python -m tests.planted.line_coverage`, and then `python -m tests.planted.mutants [MODULE…]`, does the same with a
sample of mutants.
"""
