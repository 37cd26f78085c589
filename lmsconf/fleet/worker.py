"""A process that runs tasks: a JSON line for each task on stdin, and a JSON line for each result on stdout.

`python -m lmsconf.fleet.worker FOLDER` works in the project in FOLDER until stdin ends. LMSCONF_PLAN_KEY signs plans.
With `--bound`, it also ends in the middle of a task, at once: then another machine is given that task. Its result files
are temporary then, and are not synced.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Final, NoReturn

from lmsconf.documents.fleet_file import entry_json
from lmsconf.errors import Terminated
from lmsconf.fleet.tasks import TaskRunner, task_from_json
from lmsconf.support.interrupts import Interrupts

BOUND: Final = "--bound"
_COLLECT_EVERY = 100_000


def main(arguments: list[str]) -> int:
    """Run tasks until stdin ends; return the exit code of the process."""
    # What a task prints, such as a token's command, must not stand among the results.
    results = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    signal.signal(signal.SIGTERM, _terminate)
    gc.set_threshold(_COLLECT_EVERY)
    try:
        serve(Path(arguments[0]), sys.stdin, results, bound=BOUND in arguments)
    except KeyboardInterrupt:
        return 130
    return 0


def serve(root: Path, tasks: Iterable[str], results: IO[str], *, bound: bool) -> None:
    """Run each task that is read, and write its result."""
    key = os.environ.get("LMSCONF_PLAN_KEY")
    runner = TaskRunner(root, os.environ, None if key is None else os.fsencode(key), durable=not bound)
    for line in _bound(tasks) if bound else tasks:
        interrupts = Interrupts()
        with interrupts.installed():
            entry = runner.run(task_from_json(line), interrupts)
            results.write(json.dumps(entry_json(entry)) + "\n")
            results.flush()


def _bound(tasks: Iterable[str]) -> Iterator[str]:
    """Yield the lines of stdin; kill this process group where stdin ends before the work on a line does."""
    lines: SimpleQueue[str | None] = SimpleQueue()
    begun = ended = 0  # counted: the next line may be read before the work on this one is noted as ended

    def read() -> None:
        nonlocal begun
        for line in tasks:
            begun += 1
            lines.put(line)
        if begun > ended:
            os.killpg(0, signal.SIGKILL)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    while (line := lines.get()) is not None:
        yield line
        ended += 1


def _terminate(number: int, frame: object) -> NoReturn:
    raise Terminated


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
