"""Prism, a validating proxy: it stands between a client and a sandbox and holds both against schemas/openapi.json.

Prism is a program for Node and no dependency of ours. Where it is not installed, what needs it is skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

import httpx
import pytest

from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox

DESCRIPTION = Path(__file__).parent.parent.parent / "schemas" / "openapi.json"
MISSING = "no Prism: `npm install -g @stoplight/prism-cli@5.14.2`, or name its program in LMSCONF_PRISM"
CREDENTIAL = {"authorization": "Bearer sandbox"}
PATIENCE = 60.0
"""Seconds for Prism to write a line: a machine with much to do is slow, not broken."""

_LISTENING = "Prism is listening on "
_LINE = re.compile(r"\[[^]]+\] \S +\[(?P<part>[A-Z ]+)\](?: [a-z]+ /\S*)? +\S +(?P<level>[a-z]+) +(?P<text>.*)")


class Findings(NamedTuple):
    """How many requests Prism saw, and in its words what it has against them and their answers.

    Prism does not say whose violation it is; before each stands the answer that came last, which tells where calls go
    one by one.
    """

    requests: int
    violations: list[str]


@dataclass(frozen=True, slots=True)
class Prism:
    """A proxy that listens at `url` and writes down what it sees."""

    url: str
    log: Path

    def findings(self) -> Findings:
        """Everything until now. Lines are written a moment late; one more request shows that all are there."""
        mark = f"filter=until-{token_hex(8)}"
        httpx.get(f"{self.url}/smart-groups?{mark}", headers=CREDENTIAL)
        return _read(_awaited(self.log, mark).splitlines())


@contextmanager
def judged(sandbox: Sandbox, log: Path, *options: str) -> Iterator[Prism]:
    """That sandbox behind a port, and Prism before it; skips the test where there is no Prism.

    With the option `--errors` Prism refuses what violates, and keeps the reason from its log. Without, it lets
    everything pass, so that one run shows every violation.
    """
    program = os.environ.get("LMSCONF_PRISM") or shutil.which("prism")
    if not program:
        pytest.skip(MISSING)
    with serve(sandbox) as server, log.open("wb") as out:
        command = [program, "proxy", str(DESCRIPTION), server.url, "--host", "127.0.0.1", "--port", "0", *options]
        with subprocess.Popen(command, stdout=out, stderr=out, env=os.environ | {"NO_COLOR": "1"}) as process:
            try:
                started = _awaited(log, _LISTENING, process)
                yield Prism(started.rpartition(_LISTENING)[2].strip(), log)
            finally:
                process.terminate()


def _awaited(log: Path, words: str, process: subprocess.Popen[bytes] | None = None) -> str:
    """The lines of the log down to the one with those words, once it is there."""
    until = time.monotonic() + PATIENCE
    while True:
        text = log.read_text(encoding="utf-8", errors="replace")
        before, found, after = text.partition(words)
        if found and "\n" in after:
            return before + found + after.partition("\n")[0]
        assert process is None or process.poll() is None, f"Prism has ended:\n{text}"
        assert time.monotonic() < until, f"Prism has not said {words!r}:\n{text[-2000:]}"
        time.sleep(0.02)


def _read(lines: list[str]) -> Findings:
    """What the lines of a log come to. A line that is not plain information speaks of a violation."""
    requests, violations, answered = 0, [], "before any answer"
    for line in lines:
        known = _LINE.fullmatch(line)
        if known is None or known["level"] not in ("awaiting", "start", "info"):
            violations.append(f"{answered}: {known['text'] if known else line}")
        elif known["part"] == "HTTP SERVER":
            requests += known["text"] == "Request received"
        elif known["text"].startswith("The upstream call"):
            answered = known["text"]
    return Findings(requests, violations)
