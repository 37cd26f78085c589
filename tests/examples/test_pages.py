"""README, guide and the examples' pages: every command on them does what they say, and prints what they show.

`clone.py` says what comments in a page mean to these tests.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import yaml
from flow.shell import lmsconf

from lmsconf.errors import ExitCode
from lmsconf.project.settings import load_settings
from lmsconf.workspace.project_manifests import load_manifests

from .clone import (
    EXAMPLES,
    SHELL,
    Block,
    Part,
    Step,
    Terminal,
    blocks,
    cloned,
    follow,
    masked,
    named_file,
    parts,
    rewritten,
    shown,
)
from .conftest import REPOSITORY

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
@pytest.mark.sampled(gate=2)
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
    """Blocks that are pasted into a terminal run to their end: no question takes the next line for its answer."""
    columns = (80, 120)[FOLLOWED.index(page) % 2]
    for number, part in enumerate(parts_of(page)):
        with cloned(part, tmp_path / str(number)) as clone, Terminal(clone, columns) as terminal:
            for code, pasted in pastes(part):
                lines = [clone.really(step.line) for step in pasted]
                whole = pasted[0].block is not None and pasted[0].block.language == "sh"
                assert terminal.paste(lines, whole=whole) == (code, len(lines)), lines


def pastes(part: Part) -> list[tuple[int, list[Step]]]:
    """What is pasted at once, with the exit code of its last command: its own, or the one that the next shows."""
    grouped = [
        list(steps) for _, steps in groupby(part.steps, lambda step: step.block if step.output is None else step)
    ]
    following = [steps[0].output for steps in grouped[1:]]
    codes = [steps[-1].code for steps in grouped]
    return [
        (int(after or "") if code is None else code, steps)
        for code, after, steps in zip(codes, [*following, None], grouped, strict=True)
    ]


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


# The way from a clone to the first reviewed change takes minutes.


INSTALLING, WAITING = 60, 30
"""Seconds that are left for what takes a network, and for commands."""


def reading_seconds(page: Path) -> float:
    """The time to read a whole page, shown outputs and tables among it: 200 words a minute."""
    return 60 * len(read(page).split()) / 200


def test_the_first_reviewed_change_takes_eight_minutes() -> None:
    """Reading the README, and typing what it shows from an import to a change that is applied, 200 letters a minute.

    The README takes at most five minutes to read, and getting started at most six.
    """
    readme = REPOSITORY / "README.md"
    lines = [step.line for part in parts_of(readme) if part.serves for step in part.steps if step.block]
    assert any(line.startswith("lmsconf export") for line in lines)
    assert any(line.startswith("lmsconf apply plan.json") for line in lines)
    typing = 60 * sum(map(len, lines)) / 200
    assert INSTALLING + WAITING + reading_seconds(readme) + typing <= 60 * 8
    assert reading_seconds(readme) <= 300
    assert reading_seconds(GUIDE / "getting-started.md") <= 360


# The examples plan what their pages show, apply whole, and then plan empty.


Copy = Callable[[str], Path]
CONSENTS = {
    "acme": ("--allow", "people=396", "--allow", "mandatory=396"),
    "countries": ("--allow", "mandatory=32"),
}
"""Example → what its page allows: the first plan concerns everybody."""
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/lmsconf.yaml"))


@pytest.mark.sampled(day=8, daily=False)
@pytest.mark.parametrize("name", NAMES)
def test_it_plans_what_is_shown_and_applies_whole(name: str, copy: Copy, updating: bool) -> None:
    """`plan.txt` in the folder is what `lmsconf plan` prints there, digest aside.

    Apply does all of it with the consents of the page, and the next plan has no changes.
    """
    folder, golden = copy(name), EXAMPLES / name / "plan.txt"
    lmsconf(folder, "validate", code=ExitCode.OK)
    plan = masked(lmsconf(folder, "plan", "--detailed-exitcode", code=ExitCode.CHANGES).out)
    if updating:
        golden.write_text(plan, encoding="utf-8")
    assert plan == golden.read_text(encoding="utf-8")
    words = ("apply", "--auto-approve", "--format", "json", *CONSENTS.get(name, ()))
    report = json.loads(lmsconf(folder, *words, code=ExitCode.OK).out)
    assert {outcome["status"] for outcome in report["outcomes"]} == {"done"}
    assert report["converged"] is True
    text = lmsconf(folder, "plan", "--detailed-exitcode", code=ExitCode.OK).out
    assert "No changes. The workspace matches the manifests." in text


@pytest.mark.sampled(day=4, daily=False)
def test_acme_is_as_large_as_its_page_says() -> None:
    """It declares 9 fields, 25 groups, 25 smart groups, 120 assignments and 5 tests for 400 people and 40 contents."""
    manifests = load_manifests(load_settings(EXAMPLES / "acme", None, {}))
    declared = Counter(resource.address.kind for resource in manifests.declared)
    assert declared == {"custom_field": 9, "group": 25, "smart_group": 25, "content_target": 120}
    assert len(manifests.tests) == 5
    seed = yaml.load(read(EXAMPLES / "acme" / "workspace.yaml"), yaml.CSafeLoader)
    assert (len(seed["people"]), len(seed["content"])) == (400, 40)


@pytest.mark.sampled(day=4, daily=False)
def test_every_smart_group_of_acme_that_can_have_members_has_some(copy: Copy) -> None:
    """People's answers put members into each smart group, apart from the one on a field that nobody answered yet.

    The plan before creates, changes and deletes some of each kind.
    """
    folder = copy("acme")
    changes: Any = lmsconf(folder, "plan", "--format", "json", code=ExitCode.OK).document["changes"]
    kinds = ("custom_field", "group", "smart_group", "content_target")
    seen = {(change["kind"], change["action"]) for change in changes}
    assert seen == {(kind, action) for kind in kinds for action in ("create", "update", "delete")}
    lmsconf(folder, "apply", "--auto-approve", *CONSENTS["acme"], code=ExitCode.OK)

    def get(path: str, *query: str) -> Any:
        return lmsconf(folder, "api", "GET", path, *query, code=ExitCode.OK).document

    rows = get("/smart-groups")["smartGroups"]
    groups = [get(f"/smart-groups/{row['smartGroupId']}", "--query", "includeMembers=true") for row in rows]
    assert len(groups) > 25
    assert [group["name"] for group in groups if not group["members"]] == ["Remote workers"]


def test_quickstart_is_one_screen() -> None:
    """The manifest that newcomers read first has at most forty lines."""
    assert len(read(EXAMPLES / "quickstart/manifests/onboarding.yaml").splitlines()) <= 40
