"""The `.lmsconf` folder of a project: a journal of each run, and the lock that allows one run at a time.

    journal_folder  the folder itself: private, never committed
    line_codec      one line of a journal ⇄ a mapping, with a checksum
    journal_writer  Journal: an intent before each call, an outcome after it
    journal_reader  journals → recorded runs
    kept_documents  the plan and the report of a run, beside its journal
    run_chain       each run names the one before it with its digest; which runs are kept
    pending_writes  calls of an interrupted run that may still take effect
    workspace_lock  one run at a time

It is not state: no plan depends on it, and everything works without it.
"""
