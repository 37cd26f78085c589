"""Plants the faults, one at a time: python -m tests.planted [NAME…]. Exit 1 where more than one goes unnoticed."""

import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from .source_copy import Fault, Outcome, RunResult, faults, grounds

_WIDTH: Final = 2
_SECONDS: Final = 240.0
_MISSED_AT_MOST: Final = 1


def main(names: Sequence[str]) -> int:
    """Prints which were caught. 64 where a name is none of the list's."""
    # A test that takes turns finds its fault on each day that it plays.
    os.environ.setdefault("TESTS", "all")
    known = faults()
    if unknown := set(names) - known.keys():
        print(f"no fault is called {', '.join(sorted(unknown))}; there are {', '.join(known)}")
        return 64
    chosen = [known[name] for name in names] if names else list(known.values())
    with grounds(_WIDTH) as tried, ThreadPoolExecutor(_WIDTH) as pool:
        healthy = tried({}, sorted({test for fault in chosen for test in fault.tests}), 4 * _SECONDS)
        if healthy.fate is not Outcome.MISSED:
            print(f"the tests fail with nothing planted: {healthy.by or healthy.fate}")
            return 1

        def planted(fault: Fault) -> RunResult:
            found = tried(fault.planted(), fault.tests, _SECONDS)
            print(f"{found.fate:7} {found.seconds:5.1f} s  {fault.name:40} {found.by}", flush=True)
            return found

        caught = sum(found.fate is Outcome.CAUGHT for found in pool.map(planted, chosen))
    print(f"{caught} of {len(chosen)} planted faults are caught.")
    return int(len(chosen) - caught > _MISSED_AT_MOST)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
