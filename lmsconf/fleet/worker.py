"""A process that runs tasks: a JSON line for each task on stdin, and a JSON line for each result on stdout.

`python -m lmsconf.fleet.worker FOLDER` works in the project in FOLDER until stdin ends. LMSCONF_PLAN_KEY signs plans.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
from pathlib import Path
from typing import IO, NoReturn

from lmsconf.documents.document import JsonObjectReader
from lmsconf.documents.fleet_file import entry_json
from lmsconf.errors import Terminated
from lmsconf.fleet.tasks import TaskRunner, task_from_json

_COLLECT_EVERY = 100_000


def main(arguments: list[str]) -> int:
    """Run tasks until stdin ends; return the exit code of the process."""
    # What a task prints, such as a token's command, must not stand among the results.
    results = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    signal.signal(signal.SIGTERM, _terminate)
    gc.set_threshold(_COLLECT_EVERY)
    try:
        serve(Path(arguments[0]), sys.stdin, results)
    except KeyboardInterrupt:
        return 130
    return 0


def serve(root: Path, tasks: IO[str], results: IO[str]) -> None:
    """Run each task that is read, and write its result."""
    key = os.environ.get("LMSCONF_PLAN_KEY")
    runner = TaskRunner(root, os.environ, None if key is None else os.fsencode(key))
    for line in tasks:
        entry = runner.run(task_from_json(JsonObjectReader(json.loads(line))))
        results.write(json.dumps(entry_json(entry)) + "\n")
        results.flush()


def _terminate(number: int, frame: object) -> NoReturn:
    raise Terminated


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
