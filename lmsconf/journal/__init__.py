"""What runs leave in a project's `.lmsconf` folder: a journal each, and the lock that lets one run at a time.

    folder    the folder itself, which is private and never committed
    lines     one line of a journal ⇄ a mapping, with a sum that tells a damaged one
    writing   Journal: an intent before each call and an outcome after it
    reading   the runs that journals tell of
    arrivals  what a run that was cut short had sent and may still arrive
    lock      one run at a time

It is no state: without it everything works, and nothing is planned by what stands in it.
"""
