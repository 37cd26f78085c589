"""The sandbox as a server in another process, and the log of what it was asked."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from measuring import LMSCONF

TOKEN = "sandbox"


class RunningServer(NamedTuple):
    """A server that listens, and where it writes what it was asked, if it does."""

    url: str
    log: Path | None

    def operations(self) -> Counter[str]:
        """How often each operation was asked for since the last time somebody looked."""
        return Counter(self.sequence())

    def sequence(self) -> list[str]:
        """The operations that were asked for since the last time somebody looked, in their order."""
        if self.log is None:
            raise ValueError("this server writes no log")
        lines = self.log.read_text(encoding="utf-8").splitlines()
        self.log.write_text("", encoding="utf-8")
        return [json.loads(line)["operation"] for line in lines]


@contextmanager
def served(database: Path, log: Path | None, *, latency: float = 0.0) -> Iterator[RunningServer]:
    """A workspace behind a free port, each answer late by so many seconds. log: None where the time is measured."""
    command = [LMSCONF, "sandbox", "serve", "--port", "0", "--db", str(database), "--token", TOKEN]
    logging = [] if log is None else ["--log", str(log)]
    with subprocess.Popen(
        [*command, *logging, "--latency", str(latency)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            said = process.stdout.readline() if process.stdout else ""
            yield RunningServer(said.split()[-1], log)
        finally:
            process.terminate()
