"""The simulation: whole applies on the sandbox, in virtual time, with something going wrong at every place in turn.

    clock        seconds that pass only when somebody waits
    mishaps      everything that can happen to a request, as values
    schedules    which request meets which mishap: one, two, or by chance
    network      the way to the sandbox, on which a schedule strikes
    references   six applies, from creating everything to deleting everything
    portrait     what the workspace holds, in names, and how two portraits differ
    scene        one reference with its sandbox, its plan, and how it ends when nothing goes wrong
    mortal       a journal whose process dies
    twins        what is there twice, and the person who chooses
    play         runs a schedule, runs again, and judges how it ended
    tally        many schedules, counted

`python -m tests.simulation REFERENCE KIND CALL` plays one schedule and prints its requests.
"""
