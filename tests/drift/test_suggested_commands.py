"""Every line that `lmsconf drift` prints to keep something does so when it is pasted into a shell."""

from __future__ import annotations

import io
import json
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from flow.project import Project
from integrity.served_project import ServedProject

from lmsconf.cli import app
from lmsconf.cli.run_command import run_command_line
from lmsconf.errors import ExitCode

from .drifted_project import MANIFESTS, only, states
from .drifted_project import drift as drift_of

EXAMPLES: Final = Path(__file__).parent.parent.parent / "examples"
QUICKSTART: Final = (EXAMPLES / "quickstart/manifests/onboarding.yaml").read_text(encoding="utf-8")
PEOPLE: Final = "\nusers:\n  - {email: bo.ek@acme.example, first_name: Bo, language: sv}\n"
COACHES: Final = "group/Onboarding coaches"
HOME: Final = "content_target/Working from home -> "
BY_HAND: Final[Mapping[str, tuple[dict[str, str], set[str]]]] = {
    "a group is renamed": (
        {"name: Onboarding coaches": "name: Friends", "[Coaches]": "[Onboarding coaches]",
         "{group: Onboarding coaches": "{group: Friends"},
        {COACHES, f"{HOME}{COACHES}"},
    ),
    "a group is called again as it was": (
        {"name: Onboarding coaches": "name: Coaches", "[Coaches]": "[Onboarding coaches]",
         "{group: Onboarding coaches": "{group: Coaches"},
        {COACHES},
    ),
    "a group has other people": ({"[anna.berg@acme.example]\n    members": "[]\n    members", "[bo.ek": "[jon.lund",
                                  "[cy.dahl": "[bo.ek"}, {COACHES}),
    "a field has a choice more": ({"[Office, Remote": "[Office, Hybrid, Remote"}, {"custom_field/Onboarding track"}),
    "a choice is called otherwise": (
        {"[Office, Remote": "[Office, {name: Home, previously: [Remote]}", "choices: [Remote]": "choices: [Home]"},
        {"custom_field/Onboarding track", "smart_group/Remote starters Nordics"},
    ),
    "a choice is another, and asked for": (
        {"[Office, Remote": "[Office, Home", "choices: [Remote]": "choices: [Home]"},
        {"custom_field/Onboarding track", "smart_group/Remote starters Nordics"},
    ),
    "a field describes itself otherwise": (
        {"Where the first weeks are spent": "Wo?"}, {"custom_field/Onboarding track"},
    ),
    "a smart group asks for less": (
        {"      - {field: Onboarding track, choices: [Remote]}\n": ""}, {"smart_group/Remote starters Nordics"},
    ),
    "assignments are others": (
        {"mandatory: true\n    assign_to: [everyone]": "mandatory: false\n    assign_to: [everyone]",
         "2026-01-05": "2026-01-06", ", mandatory: false}": "}"},
        {"content_target/Welcome to Acme -> everyone", f"{HOME}{COACHES}",
         f"{HOME}smart_group/Remote starters Nordics"},
    ),
    "a person is called otherwise": ({"first_name: Bo, language: sv": "first_name: Bosse, language: fi"},
                                     {"user/bo.ek@acme.example"}),
}  # fmt: skip
"""What somebody did, as other manifests that were applied: text → what stands instead. And what differs then."""
DELETED: Final[Mapping[str, tuple[str, set[str]]]] = {
    "a group": ("groups: [Onboarding coaches]", {COACHES, f"{HOME}{COACHES}"}),
    "a smart group": (
        "smart_groups: [Remote starters Nordics]",
        {"smart_group/Remote starters Nordics", f"{HOME}smart_group/Remote starters Nordics"},
    ),
    "a field and what leans on it": (
        "custom_fields: [Onboarding track]\n  smart_groups: [Remote starters Nordics]",
        {
            "custom_field/Onboarding track",
            "smart_group/Remote starters Nordics",
            f"{HOME}smart_group/Remote starters Nordics",
        },
    ),
    "an assignment": (
        "content_targets: [{content: Welcome to Acme, assign_to: [everyone]}]",
        {"content_target/Welcome to Acme -> everyone"},
    ),
}


class Ran(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


class Shell:
    """A shell in some folder."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._patch = patch

    def __call__(self, folder: Path, line: str) -> Ran:
        """Runs one line of it."""
        name, *words = shlex.split(line)
        assert name == "lmsconf"
        self._patch.chdir(folder)
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = run_command_line(app, words)
        return Ran(code, out.getvalue(), err.getvalue())

    def drift(self, folder: Path, options: str = "") -> list[dict[str, Any]]:
        """What differs. Nothing may be without comparison."""
        ran = self(folder, f"lmsconf drift --format json {options}")
        assert ran.code in (0, 2), ran.err
        findings: list[dict[str, Any]] = json.loads(ran.out)["findings"]
        return findings

    def keeps(self, folder: Path, finding: Mapping[str, Any], options: str = "") -> None:
        """Pastes the line to keep what was found, in a copy of the project."""
        copy = folder.parent / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        ran = self(copy, finding["hint"]["accept"])
        assert ran.code == 0, (finding["hint"]["accept"], ran.err)
        left = [one["address"] for one in self.drift(copy, options)]
        assert finding["address"] not in left


@pytest.fixture
def shell(monkeypatch: pytest.MonkeyPatch) -> Shell:
    for name in ("LMSCONF_URL", "LMSCONF_WORKSPACE", "LMSCONF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return Shell(monkeypatch)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The quickstart, applied, with a person declared."""
    seed = (EXAMPLES / "quickstart/workspace.yaml").read_text(encoding="utf-8")
    project = Project(tmp_path / "project", seed, "timezone: Europe/Stockholm\nguards: off\n")
    project.apply(QUICKSTART + PEOPLE)
    return project


@pytest.mark.sampled
@pytest.mark.parametrize("name", BY_HAND)
def test_what_was_changed_by_hand_can_be_kept(project: Project, shell: Shell, name: str) -> None:
    """Each line by itself does its work, also where the others have to go along."""
    others, differs = BY_HAND[name]
    text = QUICKSTART + PEOPLE
    for old, new in others.items():
        assert old in text, old
        text = text.replace(old, new)
    if "custom_field/Onboarding track" in differs:
        # The service changes no field that a smart group names.
        applied(project, "absent: {smart_groups: [Remote starters Nordics]}")
    applied(project, text)
    project.write(QUICKSTART + PEOPLE)
    keep_each(project, shell, differs)


@pytest.mark.parametrize("name", DELETED)
def test_what_was_deleted_by_hand_can_stay_away(project: Project, shell: Shell, name: str) -> None:
    """The entry goes, and with it the entries that name it."""
    absent, differs = DELETED[name]
    applied(project, f"absent:\n  {absent}\n")
    project.write(QUICKSTART + PEOPLE)
    keep_each(project, shell, differs)


def applied(project: Project, manifests: str) -> None:
    """Makes the workspace as other manifests say."""
    assert project.apply(manifests).exit == ExitCode.OK


def keep_each(project: Project, shell: Shell, differs: set[str]) -> None:
    findings = shell.drift(project.root)
    assert {one["address"] for one in findings} == differs
    for finding in findings:
        shell.keeps(project.root, finding)


def test_what_goes_along_is_told(project: Project, shell: Shell) -> None:
    """Nobody asked for it by its address, so it is named beside the lines that changed."""
    applied(project, "absent: {groups: [Onboarding coaches]}")
    project.write(QUICKSTART)
    ran = shell(project.root, f"lmsconf drift --accept '{COACHES}'")
    assert ran.code == 0
    assert f"Also accepted (dependency): {HOME}{COACHES}\n" in ran.err
    assert "-      - {group: Onboarding coaches, mandatory: false}" in ran.out
    again = shell(project.root, f"lmsconf drift --accept '{COACHES}'")
    assert "Accepted along" not in again.err


@pytest.mark.slow
def test_every_sort_of_difference_of_a_company_can_be_kept(tmp_path: Path, shell: Shell) -> None:
    """Of each sort that the example of 400 people has, the last by its address; with `--unmanaged`, of that, too."""
    root = tmp_path / "acme"
    shutil.copytree(EXAMPLES / "acme", root, ignore=shutil.ignore_patterns("*.db"))
    for options in ("", "--unmanaged"):
        found = [one for one in shell.drift(root, options) if (one["state"] == "unmanaged") == bool(options)]
        sorts = {sort_of(one): one for one in found if one["hint"]["accept"] is not None}
        assert len(sorts) > (2 if options else 10)
        for finding in sorts.values():
            shell.keeps(root, finding, options)


def sort_of(finding: Mapping[str, Any]) -> tuple[object, ...]:
    return finding["kind"], finding["state"], tuple(one["path"] for one in finding["fields"])


def test_what_cannot_be_edited_has_no_line(tmp_path: Path, shell: Shell) -> None:
    """People of a CSV file, and one of the assignments that a line makes: the way back is all there is."""
    root = tmp_path / "acme"
    shutil.copytree(EXAMPLES / "acme", root, ignore=shutil.ignore_patterns("*.db"))
    found = {one["address"]: one["hint"] for one in shell.drift(root)}
    for address in ("group/Leadership SE", "content_target/Code of conduct -> everyone"):
        assert found[address]["accept"] is None
        assert found[address]["restore"] is not None
        assert shell(root, f"lmsconf drift --accept '{address}'").code == 1


OWNED: Final = (
    ("absent: {groups: [LMS b]}\n", "group/LMS b", False),
    ("absent: {groups: [Book club]}\n", "group/Book club", True),
    ("", "group/LMS b", True),
)


@pytest.mark.parametrize(("said", "address", "has_line"), OWNED)
def test_what_is_owned_is_kept_by_a_manifest(stage: ServedProject, said: str, address: str, has_line: bool) -> None:
    """Out of `absent` it would still go where it is owned; and where nothing names it, an export declares it."""
    stage.write(MANIFESTS + said)
    if "LMS" in address:
        stage.hand("manual-groups.create", body={"name": "LMS b", "memberIds": ["u-bo"], "managerIds": []})
    finding = only(drift_of(stage, code=2))
    assert finding["address"] == address
    assert (finding["hint"]["accept"] is not None) == has_line
    if has_line:
        assert stage(*shlex.split(finding["hint"]["accept"])[3:]).code == 0
        assert states(drift_of(stage)) == {}


def lines_of(text: str) -> Iterator[str]:
    """The lines of a text report that keep something."""
    yield from (line.partition("to keep: ")[2] for line in text.splitlines() if "to keep: " in line)


def test_a_line_is_pasted_as_it_stands(tmp_path: Path, project: Project, shell: Shell) -> None:
    """With quotes around it for the shell, and with the folder that lmsconf was told."""
    applied(project, "absent: {groups: [Onboarding coaches]}")
    project.write(QUICKSTART)
    text = shell(tmp_path, "lmsconf -C project drift").out
    first, *_ = lines_of(text)
    assert first == f"lmsconf -C project drift --accept '{HOME}{COACHES}'"
    assert shell(tmp_path, first).code == 0
    (other,) = lines_of(shell(tmp_path, "lmsconf -C project drift").out)
    assert shell(tmp_path, other).code == 0
    assert shell(tmp_path, "lmsconf -C project drift").code == 0
