"""README, guide and the examples' pages: every command on them does what they say, and prints what they show.

`page.py` says what comments in a page mean to these tests.
"""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path

import pytest

from lmsconf.project.settings import load_settings

from .clone import SHELL, Block, Part, Step, Terminal, blocks, cloned, follow, named_file, parts, rewritten, shown
from .conftest import EXAMPLES, REPOSITORY

GUIDE = REPOSITORY / "lmsconf" / "guide"
START = {REPOSITORY / "README.md": ".", REPOSITORY / "CONTRIBUTING.md": "."} | {
    path: f"examples/{path.parent.name}" for path in sorted(EXAMPLES.glob("*/README.md"))
}
"""Page → the folder of a clone in which its reader begins; the guide's pages begin in the quickstart."""
PAGES = [*START, *sorted(GUIDE.glob("*.md"))]


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def parts_of(page: Path) -> list[Part]:
    return parts(read(page), START.get(page, "examples/quickstart"))


def check(page: Path, real: dict[Block, str], *, updating: bool) -> None:
    """Compares blocks of a page with what is real, or rewrites the page."""
    if updating:
        page.write_text(rewritten(read(page), real), encoding="utf-8")
        return
    for block, text in real.items():
        assert block.text == text


every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(REPOSITORY)))
FOLLOWED = [page for page in PAGES if parts_of(page)]
followed_pages = pytest.mark.parametrize("page", FOLLOWED, ids=lambda page: str(page.relative_to(REPOSITORY)))


@pytest.mark.slow
@followed_pages
def test_pages_print_what_they_show(page: Path, tmp_path: Path, updating: bool) -> None:
    """Each command of a page, run from top to bottom, prints what the page shows and exits as it says."""
    real: dict[Block, str] = {}
    for number, part in enumerate(parts_of(page)):
        with cloned(part, tmp_path / str(number)) as clone:
            real |= shown(follow(part, clone))
    check(page, real, updating=updating)


@pytest.mark.slow
@pytest.mark.sampled(gate=3)
@followed_pages
def test_pages_can_be_pasted_into_a_terminal(page: Path, tmp_path: Path) -> None:
    """Blocks that are pasted into a terminal run to their end: no question takes the next line for its answer.

    An `sh` block is pasted whole, and nothing in it opens a pager. Of a `console` block, one command is pasted after
    the other. Every second page meets a wide terminal.
    """
    columns = (80, 120)[FOLLOWED.index(page) % 2]
    for number, part in enumerate(parts_of(page)):
        with cloned(part, tmp_path / str(number)) as clone, Terminal(clone, columns) as terminal:
            for code, pasted in pastes(part):
                lines = [clone.really(step.line) for step in pasted]
                whole = pasted[0].block is not None and pasted[0].block.language == "sh"
                assert terminal.paste(lines, whole=whole) == (code, len(lines)), lines


def pastes(part: Part) -> list[tuple[int, list[Step]]]:
    """What is pasted at once, with the exit code of its last command."""
    together = groupby(part.steps, key=lambda step: step.block if step.output is None else step)
    grouped = [list(steps) for _, steps in together]
    codes = [
        _code(after[0] if after else None, steps[-1])
        for steps, after in zip(grouped, [*grouped[1:], None], strict=True)
    ]
    return list(zip(codes, grouped, strict=True))


def _code(following: Step | None, step: Step) -> int:
    """The code of a step, or the one that the next command shows."""
    if step.code is not None:
        return step.code
    assert following
    assert following.output
    return int(following.output)


@every_page
def test_every_block_is_run_or_says_why_not(page: Path) -> None:
    """Each block of commands is followed by the tests above, unless a reason stands above it; each mark is known."""
    text = read(page)
    followed = {step.block for part in parts_of(page) for step in part.steps}
    for block in blocks(text, *SHELL):
        assert (block in followed) != bool(block.not_run), block.text
        assert block.not_run is None or len(block.not_run.split()) >= 4
        typed = block.text if block.language == "sh" else "\n".join(re.findall(r"^\$ .*", block.text, re.MULTILINE))
        assert not re.search(r"(^|\s)#", typed, re.MULTILINE), "zsh knows no comments at its prompt"
    assert not re.search(r"^[ >]+```", text, re.MULTILINE), "a block that is indented is not followed"
    assert text.count("<!--") == len(re.findall(r"^<!-- .* -->$", text, re.MULTILINE)), (
        "a mark stands alone in its line"
    )


@every_page
def test_pages_quote_the_examples(page: Path) -> None:
    """A block that names a manifest of an example holds that manifest, or lines of it."""
    start = START.get(page, "examples/quickstart")
    for block in blocks(read(page), "yaml"):
        name = named_file(block) or ""
        file = REPOSITORY / name if name.startswith("examples/") else REPOSITORY / start / name
        if name and file.is_file() and name != "lmsconf.yaml":
            assert set(block.text.splitlines()[1:]) <= set(file.read_text(encoding="utf-8").splitlines())


@every_page
def test_pages_show_sound_project_files(page: Path, tmp_path: Path) -> None:
    """A project file on a page is one that lmsconf takes for each of its workspaces, without a warning."""
    for block in blocks(read(page), "yaml"):
        if named_file(block) == "lmsconf.yaml":
            (tmp_path / "lmsconf.yaml").write_text(block.text, encoding="utf-8")
            for workspace in re.findall(r"^  ([\w-]+): *{url:", block.text, re.MULTILINE):
                settings = load_settings(tmp_path, workspace, {"LMSCONF_TOKEN": "secret"})
                assert settings.workspace.name == workspace
                assert not settings.problems
