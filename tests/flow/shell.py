"""lmsconf as a shell runs it: in a process of its own, with the environment that it is given and no other."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple


class Ran(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, object]:
        """The one JSON document on stdout."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


def lmsconf(
    folder: Path, *arguments: str, env: Mapping[str, str] | None = None, answer: str | None = None
) -> Ran:
    """Runs one command in a folder. There is no terminal; `answer` is what stdin holds."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith("LMSCONF_")}
    done = subprocess.run(
        [sys.executable, "-m", "lmsconf", *arguments],
        cwd=folder,
        env={**clean, **(env or {})},
        input=answer or "",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
