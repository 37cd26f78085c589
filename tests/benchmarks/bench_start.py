"""`plan` and `validate` of the quickstart, beside `python -c pass`.

    python tests/benchmarks/bench_start.py [--repeat 15]

What is compared is computing, user and system: it is what a start costs, and other work on the machine changes it less
than the time on the clock. Modules are compiled before, as in an installed package, also where the environment says
PYTHONDONTWRITEBYTECODE.
"""

import os
import shutil
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

from measuring import LMSCONF, in_turn, middle, options, process, tell, verdict

QUICKSTART = Path(__file__).parent.parent.parent / "examples" / "quickstart"
GOALS = {"plan": 20, "validate": 14}


def main() -> None:
    repeat = options(__doc__, 15).parse_args().repeat
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as temporary:
        project = Path(temporary) / "quickstart"
        shutil.copytree(QUICKSTART, project, ignore=shutil.ignore_patterns("*.db*", ".lmsconf"))
        bare, *ours = in_turn(
            repeat,
            lambda: process([sys.executable, "-c", "pass"]),
            *(partial(process, [LMSCONF, "-C", str(project), command]) for command in GOALS),
        )
    tell(f"the quickstart, medians of {repeat} runs in turn")
    tell(f"  python -c pass       {middle(bare).cpu * 1000:5.0f} ms of computing")
    for (command, goal), runs in zip(GOALS.items(), ours, strict=True):
        found = statistics.median(a.cpu / b.cpu for a, b in zip(runs, bare, strict=True))
        tell(f"  lmsconf {command:12} {middle(runs).cpu * 1000:5.0f} ms of computing")
        tell(f"  {command} : python -c pass  {found:.1f}  {verdict(found, goal)}")


if __name__ == "__main__":
    main()
