"""A page in Markdown as its readers use it: fenced blocks, the commands in them, and what the commands print.

Comments, which no reader sees, say what a page needs to be followed:

    <!-- start: examples/acme -->   from here on in that folder of a fresh clone, in a new shell
    <!-- serve: examples/acme -->   https://lms.example/api answers with the workspace of that example
    <!-- setup: COMMAND -->         a command that the reader has behind them
    <!-- not run: REASON -->        the next block is not run
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

SHELL = ("sh", "console")
_PIECE = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$|^<!-- (?P<mark>[^\n]*?) -->$", re.MULTILINE | re.DOTALL)
_MARK = re.compile(r"(start|serve|setup|not run): (.+)")
_DIGEST = re.compile(r"[0-9a-f]{64}|\d{8}T\d{6}Z-[0-9a-f]{12}(?:-\d+)?")
_FILE = re.compile(r"# (\S+\.yaml)\n")
_COMMAND = re.compile(r"\$ ((?:.*\\\n)*.*)\n?")
_SETS_UP = "python3 -m venv .venv && .venv/bin/pip install -q -e . && "
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
        return self.before + (before if fits(before, printed) else shortened(masked(printed), before))


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
        yield from (Step(_set_up(line), block=block) for line in lines if line.strip() and not line.startswith("#"))
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
        yield Step(_set_up(command[1]), code, text[command.end() :], f"$ {command[1]}\n", block)


def _set_up(line: str) -> str:
    """The line without what makes a virtual environment: there is one already, and .ci/run runs the whole line."""
    return line.removeprefix(_SETS_UP)


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


def shortened(printed: str, before: str) -> str:
    """What was printed, without the lines that the page left out before: those like none that it had."""
    had = [line for line in before.splitlines() if line.strip() != _LEFT_OUT]
    if len(had) == len(before.splitlines()):
        return printed
    kept: list[str] = []
    lines = printed.splitlines()
    for number, line in enumerate(lines):
        if had and (line == had[0] or (had[0] not in lines[number:] and get_close_matches(line, had[:1], 1, 0.7))):
            had.pop(0)
            kept.append(line)
        elif not kept or kept[-1] != _LEFT_OUT:
            kept.append(_LEFT_OUT)
    return printed if had else "".join(f"{line}\n" for line in kept)


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
