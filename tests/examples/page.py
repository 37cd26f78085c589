"""A page in Markdown as its readers use it: fenced blocks, the commands in them, and what the commands print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_DIGEST = re.compile(r"[0-9a-f]{64}")
_EXITS = re.compile(r"# exits (\d+)")
_FILE = re.compile(r"# (\S+\.yaml)\n")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, its text, and where the text begins and ends in the page."""

    language: str
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Command:
    """A command line, the exit code that the page promises, and what the page says it prints; None: nothing said."""

    line: str
    code: int
    output: str | None


@dataclass(frozen=True, slots=True)
class Ran:
    """What a command did."""

    code: int
    output: str


def blocks(page: str, *languages: str) -> list[Block]:
    """The fenced blocks in these languages, in order."""
    found = (Block(m[1], m[2], m.start(2), m.end(2)) for m in _FENCE.finditer(page))
    return [block for block in found if block.language in languages]


def commands(block: Block) -> list[Command]:
    """The commands of an `sh` block, one a line, or of a `console` block, with what each of them prints.

    A `yaml` block that opens with the name of a manifest that is not there means: write this file.
    """
    if block.language == "yaml":
        file = named_file(block) or ""
        writes = Command(f"[ -e {file} ] || cat > {file} <<'END'\n{block.text}END", 0, None)
        return [writes] if file.startswith("manifests/") else []
    if block.language == "console":
        parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
        return [_command(line, output) for line, _, output in (part.partition("\n") for part in parts)]
    lines = block.text.replace("\\\n", " ").splitlines()
    return [_command(line, None) for line in lines if line.strip() and not line.startswith("#")]


def named_file(block: Block) -> str | None:
    """The file that a block says it shows."""
    named = _FILE.match(block.text)
    return named[1] if named else None


def _command(line: str, output: str | None) -> Command:
    promised = _EXITS.search(line)
    return Command(line, int(promised[1]) if promised else 0, output)


def run(lines: Sequence[str], folder: Path, **variables: str) -> list[Ran]:
    """Runs command lines one after the other in one shell, as somebody who follows the page does."""
    script = "".join(f"{line}\nprintf '\\0%s\\0' $?\n" for line in lines)
    # What is still running in the background ends with the shell.
    ended = subprocess.run(
        ["/bin/bash", "-c", f"trap 'kill $(jobs -p) 2>/dev/null' EXIT\n{script}"],
        cwd=folder,
        env=environment(variables),
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
    )
    parts = ended.stdout.split("\0")
    return [Ran(int(code), output) for output, code in zip(parts[0:-1:2], parts[1::2], strict=True)]


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process with `lmsconf` on the path and none of its variables set."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LMSCONF_")}
    return kept | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "NO_COLOR": "1", **variables}


def masked(text: str) -> str:
    """The text without digests: they change with every detail of a plan, and nobody reads them."""
    return _DIGEST.sub("…", text)


def rewritten(page: str, outputs: Mapping[Block, str]) -> str:
    """The page with other texts in these blocks."""
    for block in sorted(outputs, key=lambda one: -one.start):
        page = page[: block.start] + outputs[block] + page[block.end :]
    return page
