"""A fresh clone in which the commands of a page run: the examples, a home folder, and a workspace that is served."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import socket
import struct
import subprocess
import sys
import termios
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import fill_if_empty

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
LEFT_BEHIND = shutil.ignore_patterns("*.db*", "*.json", "*.bak", ".lmsconf")
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
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        home = {"PATH": path, "NO_COLOR": "1", "HOME": str(self.root / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
        return kept | home | variables


@contextmanager
def cloned(part: Part, folder: Path) -> Iterator[Clone]:
    """A fresh clone below that folder, and while it is used the workspace that the part wants served."""
    root = folder / "lmsconf"
    shutil.copytree(EXAMPLES, root / "examples", ignore=LEFT_BEHIND)
    (root / "home").mkdir()
    (root / "home" / ".gitconfig").write_text(_GIT, encoding="utf-8")
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        stand_ins = {PORT: str(door.getsockname()[1])}
    if part.serves is None:
        yield Clone(root, root / part.start, stand_ins)
        return
    sandbox = fill_if_empty(Sandbox(token=TOKEN), root / part.serves / "workspace.yaml")
    with serve(sandbox) as server:
        yield Clone(root, root / part.start, {**stand_ins, URL: server.url})
    sandbox.close_workspace()


def follow(part: Part, clone: Clone) -> list[tuple[Step, str]]:
    """Runs the commands of a part in one shell, and gives what each printed.

    Fails on a command that ends with another exit code than the page says.
    """
    script = "".join(
        f"{clone.really(step.line)}\n__code=$?; printf '\\0%s\\0' $__code | tee /dev/stderr; (exit $__code)\n"
        for step in part.steps
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
    ran = zip(part.steps, printed[0:-1:2], printed[1::2], complained[0:-1:2], strict=True)
    followed = []
    for step, output, code, problems in ran:
        assert step.code in (None, int(code)), f"{step.line} exits {code}\n{output}\n{problems}"
        followed.append((step, clone.as_on_the_page(output)))
    return followed


# A page in Markdown as its readers use it: fenced blocks, the commands in them, and what the commands print.


SHELL = ("sh", "console")
_PIECE = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$|^<!-- (?P<mark>[^\n]*?) -->$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"(start|serve|setup|not run): (.+)")
_DIGEST = re.compile(r"[0-9a-f]{64}|\d{8}T\d{6}Z-[0-9a-f]{12}(?:-\d+)?")
_FILE = re.compile(r"# (\S+\.yaml)\n")
_COMMAND = re.compile(r"\$ ((?:.*\\\n)*.*)\n?")
_SETS_UP = "python3 -m venv .venv && .venv/bin/pip install -q -e . && "
"""Is left out: there is a virtual environment already, and .ci/run runs the whole line."""
_LEFT_OUT = "…"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, where the text begins and ends in the page, and why it is not run."""

    language: str
    text: str
    start: int
    end: int
    not_run: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """A command line, the exit code that the page promises, and what the page says it prints, after which words.

    code: None where the next command shows it. output: None where the page says nothing. block: where it stands, or
    where its output is shown; None for what readers do not see.
    """

    line: str
    code: int | None = 0
    output: str | None = None
    before: str = ""
    block: Block | None = None

    def shown(self, printed: str) -> str:
        """The step as the page has it, with the output that it has when that is what was printed."""
        before = self.output or ""
        return self.before + (before if fits(before, printed) else masked(printed))


@dataclass(slots=True)
class Part:
    """What is done in one fresh clone: the folder to begin in, the example that is served, and the steps."""

    start: str
    serves: str | None = None
    steps: list[Step] = field(default_factory=list)


def blocks(page: str, *languages: str) -> list[Block]:
    """The fenced blocks in these languages, in order."""
    return [piece for piece in _pieces(page) if isinstance(piece, Block) and piece.language in languages]


def parts(page: str, start: str) -> list[Part]:
    """What somebody does who follows a page from the folder `start` of a clone. Raises ValueError for a wrong mark."""
    made = [Part(start)]
    before: Block | None = None
    for piece in _pieces(page):
        if isinstance(piece, Block):
            made[-1].steps += _steps(piece, before)
            before = piece
            continue
        verb, rest = piece
        if verb == "start":
            made.append(Part(rest))
        elif verb == "serve":
            made[-1].serves = rest
        else:
            made[-1].steps.append(Step(rest))
    return [part for part in made if any(step.block for step in part.steps)]


def _pieces(page: str) -> Iterator[Block | tuple[str, str]]:
    """Blocks and marks, in order; a mark that says why a block is not run comes with the block."""
    reason: str | None = None
    since = 0
    for match in _PIECE.finditer(page):
        if reason and page[since : match.start()].strip():
            raise ValueError(f"no block right below: not run: {reason}")
        since = match.end()
        if match["mark"] is None:
            yield Block(match["language"], match["text"], match.start("text"), match.end("text"), reason)
            reason = None
            continue
        mark = _MARK.fullmatch(match["mark"])
        if mark is None:
            raise ValueError(f"unknown mark: {match['mark']}")
        if mark[1] == "not run":
            reason = mark[2]
        else:
            yield mark[1], mark[2]
    if reason:
        raise ValueError(f"no block below: not run: {reason}")


def _steps(block: Block, before: Block | None) -> Iterator[Step]:
    """The commands of a block.

    A `yaml` block that opens with the name of a manifest means: write this file. A `text` block below
    a `python` block is what that script prints.
    """
    if block.not_run:
        return
    if block.language == "console":
        yield from _console(block)
    elif block.language == "sh":
        lines = re.sub(r"\\\n *", "", block.text).splitlines()
        yield from (
            Step(line.removeprefix(_SETS_UP), block=block)
            for line in lines
            if line.strip() and not line.startswith("#")
        )
    elif block.language == "yaml" and (file := named_file(block) or "").startswith("manifests/"):
        yield Step(f"cat > {file} <<'END'\n{block.text}END", block=block)
    elif block.language == "text" and before and before.language == "python" and not before.not_run:
        yield Step(f"python3 - <<'END'\n{before.text}END", 0, block.text, block=block)


def _console(block: Block) -> Iterator[Step]:
    commands = re.split(r"^(?=\$ )", block.text, flags=re.MULTILINE)
    if commands[0]:
        raise ValueError(f"a console block begins with output: {commands[0]}")
    for text, after in zip(commands[1:], [*commands[2:], ""], strict=True):
        command = _COMMAND.match(text)
        assert command
        code = None if after.startswith("$ echo $?") else 0
        yield Step(command[1].removeprefix(_SETS_UP), code, text[command.end() :], f"$ {command[1]}\n", block)


def named_file(block: Block) -> str | None:
    """The file that a block says it shows."""
    named = _FILE.match(block.text)
    return named[1] if named else None


def masked(text: str) -> str:
    """The text without digests and names of runs: they change with every detail and run, and nobody reads them."""
    return _DIGEST.sub(_LEFT_OUT, text)


def fits(shown: str, printed: str) -> bool:
    """Whether that was printed: `…` stands for anything in a line, and alone in a line for any lines."""
    lines = (
        "(?:.*\n)*" if line.strip() == _LEFT_OUT else ".*".join(map(re.escape, line.split(_LEFT_OUT))) + "\n"
        for line in shown.splitlines()
    )
    return re.fullmatch("".join(lines), printed) is not None


def shown(steps: Iterable[tuple[Step, str]]) -> dict[Block, str]:
    """The texts of the blocks that show output, where these steps printed that."""
    texts: dict[Block, str] = {}
    for step, printed in steps:
        if step.block and step.output is not None:
            texts[step.block] = texts.get(step.block, "") + step.shown(printed)
    return texts


def rewritten(page: str, outputs: Mapping[Block, str]) -> str:
    """The page with other texts in these blocks."""
    for block in sorted(outputs, key=lambda one: -one.start):
        page = page[: block.start] + outputs[block] + page[block.end :]
    return page


# A shell on a pseudo-terminal into which blocks are pasted: nothing on it waits for an answer that nobody gives.


_PROMPT = re.compile(rb"<<(\d+) (\d+)>> ")
_PAGER = re.compile(rb"(?:\(END\)|:)(?:\x1b\[[0-9;]*[mK])*\Z")


class Hung(AssertionError):
    """A block waits for something: what the terminal shows."""


class Terminal:
    """An interactive bash on a pseudo-terminal of 24 lines and that many columns."""

    def __init__(self, clone: Clone, columns: int) -> None:
        self._end, self._theirs = pty.openpty()
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        tty = os.ttyname(self._theirs)
        self._shell = subprocess.Popen(
            # A process without a terminal that opens one gets it as its own.
            ["/bin/bash", "-c", f"exec <{tty} >{tty} 2>&1 /bin/bash --noprofile --norc -i"],
            cwd=clone.here,
            env=clone.environment(TERM="xterm-256color", PROMPT_COMMAND="ran=$((ran + 1))"),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._ran = 0
        self.paste(["PS1='<<$? $ran>> '"])

    def paste(self, lines: Sequence[str], *, whole: bool = False) -> tuple[int, int]:
        """Pastes command lines at once, and gives the exit code of the last and how many the shell read.

        A pager after the last line is left with q, unless these are the `whole` of a block, which opens none.
        Raises Hung when nothing comes for a minute.
        """
        before, text = self._ran, "\n".join(lines)
        typed = f"{text}\n".encode()
        assert len(typed) < 4096, "more than a terminal's queue has room for"
        os.write(self._end, typed)
        shown = b""
        while True:
            prompts = [(int(found[1]), int(found[2])) for found in _PROMPT.finditer(shown)]
            if prompts and prompts[-1][1] >= before + len(lines):
                code, self._ran = prompts[-1]
                return code, self._ran - before
            paged = not whole and bool(_PAGER.search(shown))
            ready, _, _ = select.select([self._end], [], [], 1 if paged else 60)
            if ready:
                shown += os.read(self._end, 65536)
            elif paged:
                os.write(self._end, b"q")
                shown += b" left\n"
            else:
                raise Hung(f"waits for something nobody sees:\n{text}\n{shown[-2000:].decode(errors='replace')}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._end)  # the shell hangs up, and what it started in the background with it
        os.close(self._theirs)
        try:
            self._shell.wait(30)
        except subprocess.TimeoutExpired:
            self._shell.kill()
            self._shell.wait()
