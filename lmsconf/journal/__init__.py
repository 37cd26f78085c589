"""The `.lmsconf` folder of a project: a journal of each run, and the lock that allows one run at a time.

    folder    the folder itself: private, never committed
    lines     one line of a journal ⇄ a mapping, with a checksum
    writing   Journal: an intent before each call, an outcome after it
    reading   journals → recorded runs
    arrivals  calls of an interrupted run that may still take effect
    lock      one run at a time

It is not state: no plan depends on it, and everything works without it.
"""
