"""lmsconf as a shell runs it: in a folder, with the environment that it is given and no other, and no terminal."""

import io
import json
import os
import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, chdir, contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

from lmsconf.cli import app, run_command_line


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
    folder: Path,
    *arguments: str,
    env: Mapping[str, str] | None = None,
    answer: str | None = None,
    streams: Collection[str] = ("stdin", "stdout", "stderr"),
    code: int | None = None,
) -> Ran:
    """Runs one command in a folder, within this process. There is no terminal; `answer` is what stdin holds.

    streams: those that are replaced; the others stay as they are, such as a terminal. code: what it has to exit with.
    """
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2))
    with ExitStack() as replaced:
        replaced.enter_context(chdir(folder))
        replaced.enter_context(_environment(env or {}))
        replacements: dict[str, AbstractContextManager[object]] = {
            "stdin": _stdin(answer or ""),
            "stdout": redirect_stdout(out),
            "stderr": redirect_stderr(err),
        }
        for name in streams:
            replaced.enter_context(replacements[name])
        ended = run_command_line(app, arguments)
    ran = Ran(int(ended), _text(out), _text(err))
    assert code in (None, ran.code), ran
    return ran


def run(*arguments: str, env: Mapping[str, str] | None = None, code: int | None = None) -> Ran:
    """Runs one command in the folder at hand: where `-C` says which project is meant, or none is."""
    return lmsconf(Path.cwd(), *arguments, env=env, code=code)


@contextmanager
def _environment(env: Mapping[str, str]) -> Iterator[None]:
    """The environment of this process without what is lmsconf's or of a terminal, and with that."""
    before = dict(os.environ)
    for name in before:
        if name.startswith("LMSCONF_") or name in ("COLUMNS", "LINES", "PAGER", "LESS"):
            del os.environ[name]
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _stdin(text: str) -> Iterator[None]:
    before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(text.encode()), encoding="utf-8")
    try:
        yield
    finally:
        sys.stdin = before


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
