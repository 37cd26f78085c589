"""The `.lmsconf` folder of a project: a journal of each run, and the lock that allows one run at a time.

    journal_folder  the folder itself: private, never committed; the lines of a journal; one run at a time
    journal_writer  Journal: an intent before each call, an outcome after it
    journal_reader  journals → recorded runs; their kept plans and reports; what may still take effect

It is not state: no plan depends on it, and everything works without it.
"""
