"""README, guide and the examples' pages: every command on them does what they say, and prints what they show.

`page.py` says what comments in a page mean to these tests.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
import yaml

from lmsconf.cli import app, run_command_line
from lmsconf.errors import ExitCode
from lmsconf.project.settings import load_settings
from lmsconf.sandbox.service import Sandbox

from .clone import (
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


# The way from a clone to the first reviewed change takes minutes, and nothing on it hangs.


README = REPOSITORY / "README.md"
FIRST_HOUR_PAGES = (README, GUIDE / "getting-started.md")
WORDS_A_MINUTE = 200
LETTERS_A_MINUTE = 200
MINUTES = 8


class Typed(NamedTuple):
    """Command lines that were typed at once, the seconds until the prompt was back, and whether a reader sees them."""

    lines: list[str]
    seconds: float
    is_shown: bool


def follow_on_terminal(page: Path, columns: int, folder: Path) -> Iterator[Typed]:
    """Types the commands of a page that reach a served workspace, in order; raises Hung where one waits."""
    for number, part in enumerate(parts_of(page)):
        if part.serves is None:
            continue
        with cloned(part, folder / str(number)) as clone, Terminal(clone, columns) as terminal:
            for code, steps in pastes(part):
                lines = [clone.really(step.line) for step in steps]
                began = time.perf_counter()
                found = terminal.paste(lines)
                assert found == (code, len(lines)), (lines, found)
                yield Typed([step.line for step in steps], time.perf_counter() - began, steps[0].block is not None)


def reading_seconds(page: Path) -> float:
    """The time to read a whole page, shown outputs and tables among it."""
    return 60 * len(page.read_text(encoding="utf-8").split()) / WORDS_A_MINUTE


def typing_seconds(typed: list[Typed]) -> float:
    """The time to type what the page shows, without pasting."""
    return 60 * sum(len(line) for one in typed if one.is_shown for line in one.lines) / LETTERS_A_MINUTE


INSTALLING = 60
"""Seconds that are left for installing, which takes a network."""


@pytest.mark.slow
@pytest.mark.sampled(gate=2)
@pytest.mark.parametrize("columns", [80, 120])
def test_the_first_reviewed_change_takes_eight_minutes(columns: int, tmp_path: Path) -> None:
    """Reading the README, typing what it shows, and waiting for it: from an import to a change that is applied."""
    typed = list(follow_on_terminal(README, columns, tmp_path))
    lines = [line for one in typed for line in one.lines]
    assert any(line.startswith("lmsconf export") for line in lines)
    assert any(line.startswith("lmsconf apply plan.json") for line in lines)
    ran = sum(one.seconds for one in typed)
    assert ran < 60
    assert INSTALLING + reading_seconds(README) + typing_seconds(typed) + ran <= 60 * MINUTES


def test_reading_takes_five_minutes() -> None:
    """The README takes at most five minutes at 200 words a minute, and getting started at most six."""
    readme, started = map(reading_seconds, FIRST_HOUR_PAGES)
    assert readme <= 300
    assert started <= 360


# The examples plan what their pages show, apply whole, and then plan empty.


Copy = Callable[[str], Path]
CONSENTS = {
    "acme": ("--allow", "people=396", "--allow", "mandatory=396"),
    "countries": ("--allow", "mandatory=32"),
}
"""Example → what its page allows: the first plan concerns everybody."""
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/lmsconf.yaml"))


@pytest.fixture
def lmsconf(
    copy: Copy, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Runs lmsconf on a copy of an example, and gives exit code and output."""
    for name in ("LMSCONF_URL", "LMSCONF_TOKEN", "LMSCONF_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    folders: dict[str, Path] = {}

    def ran(example: str, *arguments: str) -> tuple[int, str]:
        folder = folders.get(example) or folders.setdefault(example, copy(example))
        code = run_command_line(app, ["-C", str(folder), *arguments])
        # The folder of the copy is no part of what somebody reads who is in it.
        return code, capfd.readouterr().out.replace(f" -C {folder}", "")

    return ran


@pytest.mark.sampled(day=8)
@pytest.mark.parametrize("name", NAMES)
def test_the_plan_is_the_one_beside_it(name: str, lmsconf: Callable[..., tuple[int, str]], updating: bool) -> None:
    """`plan.txt` in the example's folder is what `lmsconf plan` prints there, digest aside."""
    golden = EXAMPLES / name / "plan.txt"
    code, text = lmsconf(name, "plan")
    if updating:
        golden.write_text(masked(text), encoding="utf-8")
    assert code == ExitCode.OK
    assert masked(text) == golden.read_text(encoding="utf-8")


@pytest.mark.sampled(day=8)
@pytest.mark.parametrize("name", NAMES)
def test_it_applies_whole_and_then_plans_empty(name: str, lmsconf: Callable[..., tuple[int, str]]) -> None:
    """Plan has changes, apply does all of them with the consents of the page, and the next plan has none."""
    assert lmsconf(name, "validate")[0] == ExitCode.OK
    assert lmsconf(name, "plan", "--detailed-exitcode")[0] == ExitCode.CHANGES
    code, text = lmsconf(name, "apply", "--auto-approve", "--format", "json", *CONSENTS.get(name, ()))
    report = json.loads(text)
    assert code == ExitCode.OK
    assert {outcome["status"] for outcome in report["outcomes"]} == {"done"}
    assert report["converged"] is True
    code, text = lmsconf(name, "plan", "--detailed-exitcode")
    assert code == ExitCode.OK
    assert "No changes. The workspace matches the manifests." in text


@pytest.mark.sampled(day=4)
def test_acme_shows_every_action_on_every_kind(lmsconf: Callable[..., tuple[int, str]]) -> None:
    """The first plan of acme creates, changes and deletes some of each kind, and renames."""
    plan = json.loads(lmsconf("acme", "plan", "--format", "json")[1])
    kinds = ("custom_field", "group", "smart_group", "content_target")
    seen = {(change["kind"], change["action"]) for change in plan["changes"]}
    assert seen == {(kind, action) for kind in kinds for action in ("create", "update", "delete")}
    renamed = [field["before"] for change in plan["changes"] for field in change["fields"] if field["path"] == "name"]
    assert sorted(renamed) == ["Coaches", "Cost center", "GDPR champions", "People managers"]


@pytest.mark.sampled(day=4)
def test_acme_is_as_large_as_its_page_says() -> None:
    """It declares 9 fields, 25 groups, 25 smart groups, 120 assignments and 5 tests for 400 people and 40 contents."""
    declared: Counter[str] = Counter()
    for path in (EXAMPLES / "acme" / "manifests").rglob("*.yaml"):
        for section, entries in yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader).items():
            if section == "content_targets":
                declared[section] += sum(_assignments(entry, path.parent) for entry in entries)
            elif section != "absent" and not section.startswith("x-"):
                declared[section] += len(entries)
    assert declared == {"custom_fields": 9, "groups": 25, "smart_groups": 25, "content_targets": 120, "tests": 5}
    seed = yaml.load((EXAMPLES / "acme" / "workspace.yaml").read_text(encoding="utf-8"), yaml.CSafeLoader)
    assert (len(seed["people"]), len(seed["content"])) == (400, 40)


@pytest.mark.sampled(day=4)
def test_every_smart_group_of_acme_that_can_have_members_has_some(copy: Copy) -> None:
    """People's answers put members into each smart group, apart from the one on a field that nobody answered yet."""
    folder = copy("acme")
    assert run_command_line(app, ["-C", str(folder), "apply", "--auto-approve", *CONSENTS["acme"]]) == ExitCode.OK
    sandbox = Sandbox(folder / "workspace.db")
    with httpx.Client(transport=sandbox, base_url="http://sandbox", headers={"Authorization": "Bearer sandbox"}) as api:
        groups = [
            api.get(f"/smart-groups/{row['smartGroupId']}?includeMembers=true").json()
            for row in api.get("/smart-groups").json()["smartGroups"]
        ]
    sandbox.close_workspace()
    assert len(groups) > 25
    assert [group["name"] for group in groups if not group["members"]] == ["Remote workers"]


def test_quickstart_is_one_screen() -> None:
    """The manifest that newcomers read first has at most forty lines."""
    assert len((EXAMPLES / "quickstart/manifests/onboarding.yaml").read_text(encoding="utf-8").splitlines()) <= 40


def _assignments(entry: dict[str, object], folder: Path) -> int:
    """The number of assignments of an entry, or of the rows of its sheet."""
    if "file" in entry:
        return len((folder / str(entry["file"])).read_text(encoding="utf-8").splitlines()) - 1
    return (len(entry["content"]) if isinstance(entry["content"], list) else 1) * len(entry["assign_to"])
