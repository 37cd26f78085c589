"""The simulation: whole applies on the sandbox, in virtual time, with something going wrong at every place in turn.

    references       six applies, from creating everything to deleting everything; one of them with its sandbox, its
                     plan, and how it ends when nothing goes wrong
    request_faults   everything that can happen to a request, as values, on the way to the sandbox; and a journal whose
                     process dies
    workspace_state  what the workspace holds, in names, how two states differ, and words nobody may give away
    run_schedule     runs a schedule, runs again, judges how it ended, and counts

`PYTHONPATH=tests python -m tests.simulation REFERENCE KIND CALL` plays one schedule and prints its requests.
"""
