"""The README and the examples' pages: every command on them does what they say, and prints what they show."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from lmsconf.cli import COMMANDS
from lmsconf.errors import ExitCode
from lmsconf.project.settings import load_settings

from .conftest import EXAMPLES, REPOSITORY
from .page import Block, blocks, commands, masked, named_file, rewritten, run

README = REPOSITORY / "README.md"
SETS_UP = "python3 -m venv .venv && "
PORT = "8765"
Copy = Callable[[str], Path]


def followed(page: str, folder: Path, port: str = PORT) -> dict[Block, str]:
    """Follows a page from `folder` on, and gives the blocks that show output with what is really printed.

    Fails on a command that ends with another exit code than the page says. The lines that set up a virtual environment
    are run by CI.
    """
    steps = [
        (block, command)
        for block in blocks(page, "sh", "console", "yaml")
        for command in commands(block)
        if not command.line.startswith(SETS_UP)
    ]
    ended = run([command.line.replace(PORT, port) for _, command in steps], folder)
    printed: dict[Block, str] = {}
    for (block, command), ran in zip(steps, ended, strict=True):
        assert ran.code == command.code, f"{command.line} exits {ran.code}, {ran.output}"
        if command.output is not None:
            printed[block] = printed.get(block, "") + f"$ {command.line}\n{masked(ran.output)}"
    return printed


def check(path: Path, real: dict[Block, str], *, updating: bool) -> None:
    """Compares blocks of a page with what is real, or rewrites the page."""
    if updating:
        path.write_text(rewritten(path.read_text(encoding="utf-8"), real), encoding="utf-8")
        return
    assert real
    for block, text in real.items():
        assert block.text == text


def free_port() -> str:
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return str(door.getsockname()[1])


@pytest.mark.slow
def test_the_readme_prints_what_it_shows(copy: Copy, updating: bool) -> None:
    """Whoever follows the README from top to bottom sees what it shows, and what it says over HTTP."""
    copy("acme")  # the page serves it
    clone = copy("quickstart").parent.parent
    check(README, followed(README.read_text(encoding="utf-8"), clone, free_port()), updating=updating)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(path.parent.name for path in EXAMPLES.glob("*/README.md")))
def test_example_pages_print_what_they_show(name: str, copy: Copy, updating: bool) -> None:
    """Whoever follows the page of an example in its folder sees what it shows."""
    page = EXAMPLES / name / "README.md"
    check(page, followed(page.read_text(encoding="utf-8"), copy(name)), updating=updating)


def test_the_readme_shows_the_manifest_of_the_example(updating: bool) -> None:
    """What the README shows as the whole manifest of the quickstart is the whole manifest."""
    (shown,) = [block for block in _yaml() if named_file(block) == "manifests/onboarding.yaml"]
    manifest = (EXAMPLES / "quickstart" / "manifests" / "onboarding.yaml").read_text(encoding="utf-8")
    check(README, {shown: f"# manifests/onboarding.yaml\n{manifest}"}, updating=updating)


def test_the_readme_quotes_the_examples() -> None:
    """A block that names a file of the examples holds lines of that file."""
    quoted = [block for block in _yaml() if (named_file(block) or "").startswith("examples/")]
    assert quoted
    for block in quoted:
        text = (REPOSITORY / str(named_file(block))).read_text(encoding="utf-8")
        assert set(block.text.splitlines()[1:]) <= set(text.splitlines())


@pytest.mark.parametrize("workspace", ["sandbox", "production"])
def test_the_readme_shows_a_sound_project_file(workspace: str, tmp_path: Path) -> None:
    """The project file in the README is one that lmsconf takes, without a warning."""
    (shown,) = [block for block in _yaml() if named_file(block) == "lmsconf.yaml"]
    (tmp_path / "lmsconf.yaml").write_text(shown.text, encoding="utf-8")
    settings = load_settings(tmp_path, workspace, {"LMSCONF_TOKEN": "secret"})
    assert settings.workspace.name == workspace
    assert not settings.problems


def test_the_readme_knows_every_command() -> None:
    """The table of commands has those that there are, and no other."""
    rows = re.findall(r"^\| `lmsconf (\w+)", README.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == list(COMMANDS)


def test_the_readme_knows_every_exit_code() -> None:
    """The table of exit codes has those that there are, and no other."""
    section = README.read_text(encoding="utf-8").partition("| exit | means |")[2].partition("\n\n")[0]
    cells = [cell.strip() for cell in section.split("|")]
    codes = [int(code) for cell in cells for code in cell.split(", ") if code.isdigit()]
    assert sorted(codes) == sorted(ExitCode)


def test_the_first_line_runs_the_main_job() -> None:
    """The README's first command is one line that sets up, plans, applies and plans, in a subshell."""
    (first,) = commands(blocks(README.read_text(encoding="utf-8"), "sh")[0])
    assert first.line.startswith(SETS_UP)
    assert re.search(r" && \(cd [^()]+ lmsconf plan && lmsconf apply --auto-approve && lmsconf plan\)$", first.line)


def _yaml() -> list[Block]:
    return blocks(README.read_text(encoding="utf-8"), "yaml")
