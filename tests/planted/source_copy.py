"""Copies of lmsconf in which something is planted, and tests that are run there."""

import ast
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parent.parent.parent
_LIST: Final = Path(__file__).parent / "faults.toml"


@dataclass(frozen=True, slots=True)
class Edit:
    """A text that stands in a file exactly once, and what is put in its place."""

    file: str
    find: str
    put: str


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault. harm: what it would do to somebody. tests: those that have to fail."""

    name: str
    harm: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]

    def planted(self, root: Path = ROOT) -> Mapping[str, str]:
        """What each file reads with the fault in it. Raises ValueError where the fault does not fit any more."""
        texts: dict[str, str] = {}
        for edit in self.edits:
            text = texts.get(edit.file) or (root / edit.file).read_text(encoding="utf-8")
            if (times := text.count(edit.find)) != 1:
                raise ValueError(f"{self.name}: its text stands {times} times in {edit.file}")
            texts[edit.file] = text.replace(edit.find, edit.put)
        for file, text in texts.items():
            if _meaning(text) == _meaning((root / file).read_text(encoding="utf-8")):
                raise ValueError(f"{self.name}: it changes nothing in {file}")
        return texts


@cache
def _meaning(text: str) -> str:
    """The syntax tree of a module."""
    return ast.dump(ast.parse(text))


def faults() -> dict[str, Fault]:
    """Every fault by its name, in the order of the list."""
    listed = tomllib.loads(_LIST.read_text(encoding="utf-8"))["fault"]
    return {
        one["name"]: Fault(one["name"], one["harm"], tuple(Edit(**edit) for edit in one["edit"]), tuple(one["tests"]))
        for one in listed
    }


_COPIED: Final = ("lmsconf", "schemas", "tests", "examples", "README.md", "CONTRIBUTING.md", "pyproject.toml")
_SHOWN: Final = 200


class Outcome(StrEnum):
    """What became of something planted. BROKEN: the tests did not even run, so that they say nothing."""

    CAUGHT = "caught"
    MISSED = "missed"
    HUNG = "hung"
    BROKEN = "broken"


class RunResult(NamedTuple):
    """What tests said of a copy, in how many seconds, and the first of them that failed."""

    fate: Outcome
    seconds: float
    by: str


Try = Callable[[Mapping[str, str], Sequence[str], float], RunResult]
"""What tests say, within so many seconds, of a copy in which some files read otherwise."""


class SourceCopy:
    """One copy of the checkout."""

    def __init__(self, root: Path, source: Path = ROOT) -> None:
        self.root = root
        for name in _COPIED:
            if (source / name).is_dir():
                shutil.copytree(source / name, root / name)
            else:
                shutil.copy(source / name, root / name)

    @contextmanager
    def planted(self, texts: Mapping[str, str]) -> Iterator[None]:
        """These files read so while it lasts."""
        before = {file: (self.root / file).read_text(encoding="utf-8") for file in texts}
        try:
            self._write(texts)
            yield
        finally:
            self._write(before)

    def _write(self, texts: Mapping[str, str]) -> None:
        for file, text in texts.items():
            path = self.root / file
            path.write_text(text, encoding="utf-8")
            # Code that was compiled from another text of the same second and length would be taken for this one's.
            for old in path.parent.glob(f"__pycache__/{path.stem}.*"):
                old.unlink()

    def judged(self, tests: Sequence[str], seconds: float) -> RunResult:
        """What the tests say of the copy as it stands; at the first failure they are over."""
        began = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--tb=no", *tests]
        name = "PYTEST_DEBUG_TEMPROOT"  # where the temporary files are of one run, which may be killed
        with tempfile.TemporaryDirectory(dir=os.environ.get(name), ignore_cleanup_errors=True) as folder:
            environment = {**os.environ, name: folder, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": ""}
            try:
                ran = subprocess.run(
                    command,
                    cwd=self.root,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=seconds,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return RunResult(Outcome.HUNG, time.monotonic() - began, "")
        fate = {0: Outcome.MISSED, 1: Outcome.CAUGHT}.get(ran.returncode, Outcome.BROKEN)
        failed = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        last = failed or ran.stdout.splitlines()[-1:] or ran.stderr.splitlines()[-1:]
        return RunResult(
            fate, time.monotonic() - began, last[0][:_SHOWN] if last and fate is not Outcome.MISSED else ""
        )


@contextmanager
def grounds(width: int) -> Iterator[Try]:
    """So many copies, for as many threads at a time."""
    # A shell that starts this in the background has it ignore Ctrl-C, which the tests of interruptions would inherit.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with ExitStack() as stack:
        free: SimpleQueue[SourceCopy] = SimpleQueue()
        for _ in range(width):
            free.put(SourceCopy(Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="planted-")))))

        def tried(texts: Mapping[str, str], tests: Sequence[str], seconds: float) -> RunResult:
            ground = free.get()
            try:
                with ground.planted(texts):
                    return ground.judged(tests, seconds)
            finally:
                free.put(ground)

        yield tried
