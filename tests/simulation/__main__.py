"""Plays one schedule and prints its requests: PYTHONPATH=tests python -m tests.simulation REFERENCE KIND CALL."""

import sys

from .references import REFERENCES
from .request_faults import KILLED_UNRECORDED, KINDS, MISHAPS
from .run_schedule import PAIRS, STORMS, Schedule

_KINDS = {**KINDS, **MISHAPS, KILLED_UNRECORDED: (), PAIRS: (), STORMS: ()}


def main(words: list[str]) -> int:
    """1 where the schedule breaks the law, 64 where there is no such schedule."""
    if len(words) != 3 or words[0] not in REFERENCES or words[1] not in _KINDS or not words[2].isdigit():
        print(f"{__doc__}\nREFERENCE: {', '.join(REFERENCES)}\nKIND: {', '.join(_KINDS)}")
        return 64
    ending, may_stop = Schedule(words[0], words[1], int(words[2])).play()
    wrong = ending.breaks(may_stop=may_stop)
    stopped = " after a stop that named twins" if ending.stopped else ""
    print(*ending.scene.network.log, *ending.said, sep="\n")
    print(wrong or f"lawful: converged after {ending.reruns} more runs{stopped}")
    return bool(wrong)


sys.exit(main(sys.argv[1:]))
