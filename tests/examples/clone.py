"""A fresh clone in which the commands of a page run: the examples, a home folder, and a workspace that is served."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox

from .page import Part, Step

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
_LEFT_BEHIND = shutil.ignore_patterns("*.db*", "*.json", "*.bak", ".lmsconf")
URL = "https://lms.example/api"
TOKEN = "YOUR-TOKEN"
PORT = "8765"
_GIT = "[user]\n  name = Anna Berg\n  email = anna.berg@acme.example\n[init]\n  defaultBranch = main\n"


@dataclass(frozen=True, slots=True)
class Clone:
    """The folder of a clone, with what stands in for names in the pages: a workspace that is served, a free port."""

    root: Path
    here: Path
    stand_ins: dict[str, str]

    def really(self, line: str) -> str:
        """The line with what stands in for the page's names."""
        for name, real in self.stand_ins.items():
            line = line.replace(name, real)
        return line

    def as_on_the_page(self, printed: str) -> str:
        """What was printed, with the page's names."""
        for name, real in reversed(self.stand_ins.items()):
            printed = printed.replace(real, name)
        return printed.replace(str(self.root), "…")

    def environment(self, **variables: str) -> dict[str, str]:
        """Variables of a person at work here: lmsconf is on the path, nothing of it is set, and git knows them."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("LMSCONF_", "GIT_", "XDG_"))}
        home = {"HOME": str(self.root / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
        return kept | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "NO_COLOR": "1",
            **home,
            **variables,
        }


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did: its exit code, what it printed, and what it printed to stderr."""

    code: int
    output: str
    problems: str


@contextmanager
def cloned(part: Part, folder: Path) -> Iterator[Clone]:
    """A fresh clone below that folder, and while it is used the workspace that the part wants served."""
    root = folder / "lmsconf"
    shutil.copytree(EXAMPLES, root / "examples", ignore=_LEFT_BEHIND)
    (root / "home").mkdir()
    (root / "home" / ".gitconfig").write_text(_GIT, encoding="utf-8")
    stand_ins = {PORT: _free_port()}
    if part.serves is None:
        yield Clone(root, root / part.start, stand_ins)
        return
    sandbox = Sandbox(":memory:", seed=root / part.serves / "workspace.yaml", token=TOKEN)
    with serve(sandbox) as server:
        yield Clone(root, root / part.start, {**stand_ins, URL: server.url})
    sandbox.close_workspace()


def follow(part: Part, clone: Clone) -> list[tuple[Step, str]]:
    """Runs the commands of a part in one shell, and gives what each printed.

    Fails on a command that ends with another exit code than the page says.
    """
    ran = _run([clone.really(step.line) for step in part.steps], clone)
    for step, done in zip(part.steps, ran, strict=True):
        assert step.code in (None, done.code), f"{step.line} exits {done.code}\n{done.output}\n{done.problems}"
    return [(step, clone.as_on_the_page(done.output)) for step, done in zip(part.steps, ran, strict=True)]


def _run(lines: Sequence[str], clone: Clone) -> list[Ran]:
    script = "".join(
        f"{line}\n__code=$?; printf '\\0%s\\0' $__code | tee /dev/stderr; (exit $__code)\n" for line in lines
    )
    # What is still running in the background ends with the shell.
    ended = subprocess.run(
        ["/bin/bash", "-c", f"trap 'kill $(jobs -p) 2>/dev/null' EXIT\n{script}"],
        cwd=clone.here,
        env=clone.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    printed, complained = (stream.split("\0") for stream in (ended.stdout, ended.stderr))
    ran = zip(printed[0:-1:2], printed[1::2], complained[0:-1:2], strict=True)
    return [Ran(int(code), output, problems) for output, code, problems in ran]


def _free_port() -> str:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return str(door.getsockname()[1])
