"""What is edited by hand, of every kind, is found as it is; and each line that is printed to keep it does so."""

import json
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from flow.project import Project
from flow.shell import Ran, lmsconf
from integrity.served_project import ServedProject
from texts import listed_cases

from lmsconf.errors import ExitCode

from .conftest import MANIFESTS, OWNED, drift, only, states
from .conftest import drift as drift_of

pytestmark = pytest.mark.sampled(day=8)

TARGET: Final = {"contentId": "c-1", "targetId": "g-1"}
WHOLE: Final = {"groupId": "g-1"}
SMART: Final = {"smartGroupId": "s-1"}
TEAM: Final = "content_target/Basics -> group/Team"


def field(path: str, **said: Any) -> dict[str, Any]:
    return {"path": path, "declared": None, "live": None, "missing": [], "extra": [], **said}


CHANGED: Final[Mapping[str, tuple[tuple[str, dict[str, str], Any], str, dict[str, Any], tuple[int, int]]]] = {
    "a member leaves": (
        ("manual-groups.remove-member", {**WHOLE, "userId": "u-bo"}, None),
        "group/Team",
        field("members", missing=["bo@acme.example"]),
        (4, 5),
    ),
    "a member comes": (
        ("manual-groups.add-members", WHOLE, {"userIds": ["u-cy"]}),
        "group/Team",
        field("members", extra=["cy@acme.example"]),
        (4, 5),
    ),
    "a manager comes": (
        ("manual-groups.add-managers", WHOLE, {"userIds": ["u-bo"]}),
        "group/Team",
        field("managers", extra=["bo@acme.example"]),
        (4, 5),
    ),
    "a condition is another": (
        ("smart-groups.replace-conditions", SMART, None),
        "smart_group/All A",
        field(
            "conditions",
            missing=[{"field": "Dept", "choices": ["A"]}],
            extra=[{"field": "Dept", "choices": ["B"], "system_condition": "IS_ANY"}],
        ),
        (9, 5),
    ),
    "an assignment is made optional": (
        ("content-targets.create", {}, {**TARGET, "mandatory": False}),
        TEAM,
        field("mandatory", declared=True, live=False),
        (14, 9),
    ),
    "an assignment gets an end": (
        ("content-targets.create", {}, {**TARGET, "mandatory": True, "finishTime": "2030-01-01T00:00:00Z"}),
        TEAM,
        field("visible_until", live="2030-01-01T00:00:00+00:00"),
        (14, 9),
    ),
    "a person speaks another language": (
        ("users.update-language", {"userId": "u-anna"}, {"language": "en"}),
        "user/anna@acme.example",
        field("language", declared="sv", live="en"),
        (17, 5),
    ),
}


@pytest.mark.parametrize("name", CHANGED)
def test_an_edit_by_hand_is_found(stage: ServedProject, name: str) -> None:
    """The one resource that was edited is changed, at its line, with the one key that differs from both sides."""
    (operation, path, body), address, wanted, (line, column) = CHANGED[name]
    if operation == "smart-groups.replace-conditions":
        body = {"conditions": [_is_b(stage)]}
    stage.hand(operation, path, body)
    found = only(drift(stage, code=2))
    assert (found["address"], found["state"], found["fields"]) == (address, "changed", [wanted])
    assert found["source"] == {"file": "manifests/all.yaml", "line": line, "column": column}
    assert found["hint"]["restore"].startswith(f"lmsconf -C {stage.root} apply --only ")
    assert found["hint"]["accept"].startswith(f"lmsconf -C {stage.root} drift --accept ")


def _is_b(stage: ServedProject) -> dict[str, Any]:
    """The condition that Dept is B, in ids that only the workspace knows."""
    field = _field(stage, "Dept")
    ids = {one["name"]: one["choiceId"] for one in field["choices"]}
    return {"customFieldId": field["customFieldId"], "choiceIds": [ids["B"]], "systemCondition": "IS_ANY"}


def _field(stage: ServedProject, name: str) -> dict[str, Any]:
    answer: Any = stage.hand("custom-fields.list")
    found: dict[str, Any] = next(one for one in answer["customFields"] if one["name"] == name)
    return found


@listed_cases("operation", "path", "body", "missing")
def test_what_was_deleted_or_renamed_is_missing(
    stage: ServedProject, operation: str, path: dict[str, str], body: Any, missing: list[str]
) -> None:
    """Declared and not live, at the line that declares it; its new name is nobody's business."""
    stage.hand(operation, path, body)
    report = drift(stage, code=2)
    assert states(report) == dict.fromkeys(missing, "missing")
    assert only(report)["live"] is None
    assert only(report)["source"]["file"] == "manifests/all.yaml"


def test_a_field_that_was_changed_or_deleted(stage: ServedProject) -> None:
    """A choice that nobody declared is extra, and a description that was cleared is told from both sides."""
    stage.options()
    stage.write("custom_fields: [{name: Extra, type: CHOICE, choices: [X], description: On trial}]")
    it = _field(stage, "Extra")
    path = {"customFieldId": it["customFieldId"]}
    choices = [*it["choices"], {"name": "Y"}]
    stage.hand("custom-fields.replace", path, {"name": "Extra", "type": "CHOICE", "choices": choices})
    found = only(drift(stage, code=2))
    assert found["fields"] == [field("choices", extra=["Y"]), field("description", declared="On trial")]
    stage.hand("custom-fields.replace", path, {"name": "Extra", "type": "CHOICE", "choices": choices[1:]})
    assert [one["code"] for one in drift(stage, code=2)["problems"]] == ["guard/possible-rename"]
    stage.hand("custom-fields.delete", path)
    assert states(drift(stage, code=2)) == {"custom_field/Extra": "missing"}


def test_what_is_owned_and_not_declared_is_undeclared(stage: ServedProject) -> None:
    """A group of an owned name and an assignment of declared content; neither is in a manifest, and both say why."""
    stage.hand("manual-groups.create", None, {"name": "LMS new"})
    stage.hand("content-targets.create", None, {"contentId": "c-1", "userId": "u-bo"})
    report = drift(stage, code=2)
    assert states(report) == {
        "group/LMS new": "undeclared",
        "content_target/Basics -> user/bo@acme.example": "undeclared",
    }
    for found in report["findings"]:
        assert (found["source"], found["reason"]) == (None, "it is owned, and no manifest declares it")
        assert found["hint"] == {
            "restore": f"lmsconf -C {stage.root} apply",
            "accept": f"lmsconf -C {stage.root} export --into",
        }


def test_what_stands_under_absent_is_undeclared(stage: ServedProject) -> None:
    """It points at the line under `absent`, and what goes with it has no way out of its own but to apply."""
    stage.hand("content-targets.create", None, {"contentId": "c-2", "targetId": "g-3"})
    stage.write(f"{MANIFESTS}absent: {{groups: [Book club]}}\n")
    report = drift(stage, code=2)
    assert states(report) == {"group/Book club": "undeclared", "content_target/Intro -> group/Book club": "undeclared"}
    along, group = report["findings"]
    assert group["source"]["line"] == 18
    assert group["hint"]["accept"] == f"lmsconf -C {stage.root} drift --accept 'group/Book club'"
    assert (along["reason"], along["hint"]["accept"]) == ("it goes with group/Book club", None)


def test_who_and_when_as_far_as_the_service_says(stage: ServedProject) -> None:
    """An assignment says who changed it last and when, in the project's zone; a group does not."""
    stage.options(f"{OWNED}timezone: Europe/Stockholm\n")
    stage.hand("content-targets.create", None, {**TARGET, "mandatory": False})
    stage.hand("manual-groups.add-members", WHOLE, {"userIds": ["u-cy"]})
    target, group = drift(stage)["findings"]
    assert target["changed_by"] == "api"
    assert target["changed_at"].endswith(("+01:00", "+02:00"))
    assert (group["changed_by"], group["changed_at"]) == (None, None)


@pytest.mark.parametrize("only_in", ["[here]", "[elsewhere]"])
def test_what_is_for_another_workspace_is_not_missing(stage: ServedProject, only_in: str) -> None:
    """`only_in` decides what is compared."""
    stage.options()
    stage.write(f"groups: [{{name: Nowhere, only_in: {only_in}}}]")
    project = stage.root / "lmsconf.yaml"
    elsewhere = "default_workspace: here\nworkspaces: {elsewhere: {url: 'sandbox:'}, "
    project.write_text(project.read_text(encoding="utf-8").replace("workspaces: {", elsewhere), encoding="utf-8")
    assert bool(drift(stage)["findings"]) is (only_in == "[here]")


# Every line that `lmsconf drift` prints to keep something does so when it is pasted into a shell.


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


def pasted(folder: Path, line: str) -> Ran:
    """Runs a line in a folder, as a shell does."""
    name, *words = shlex.split(line)
    assert name == "lmsconf"
    return lmsconf(folder, *words)


def differences(folder: Path, options: str = "") -> list[dict[str, Any]]:
    """What differs. Nothing may be without comparison."""
    ran = pasted(folder, f"lmsconf drift --format json {options}")
    assert ran.code in (0, 2), ran.err
    findings: list[dict[str, Any]] = json.loads(ran.out)["findings"]
    return findings


def assert_kept(folder: Path, finding: Mapping[str, Any], options: str = "") -> None:
    """Pastes the line to keep what was found, in a copy of the project."""
    copy = folder.parent / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    ran = pasted(copy, finding["hint"]["accept"])
    assert ran.code == 0, (finding["hint"]["accept"], ran.err)
    left = [one["address"] for one in differences(copy, options)]
    assert finding["address"] not in left


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The quickstart, applied, with a person declared."""
    seed = (EXAMPLES / "quickstart/workspace.yaml").read_text(encoding="utf-8")
    project = Project(tmp_path / "project", seed, "timezone: Europe/Stockholm\nguards: off\n")
    project.apply(QUICKSTART + PEOPLE)
    return project


@pytest.mark.sampled
@pytest.mark.parametrize("name", BY_HAND)
def test_what_was_changed_by_hand_can_be_kept(project: Project, name: str) -> None:
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
    keep_each(project, differs)


@pytest.mark.sampled
@pytest.mark.parametrize("name", DELETED)
def test_what_was_deleted_by_hand_can_stay_away(project: Project, name: str) -> None:
    """The entry goes, and with it the entries that name it."""
    absent, differs = DELETED[name]
    applied(project, f"absent:\n  {absent}\n")
    project.write(QUICKSTART + PEOPLE)
    keep_each(project, differs)


def applied(project: Project, manifests: str) -> None:
    """Makes the workspace as other manifests say."""
    assert project.apply(manifests).exit == ExitCode.OK


def keep_each(project: Project, differs: set[str]) -> None:
    findings = differences(project.root)
    assert {one["address"] for one in findings} == differs
    for finding in findings:
        assert_kept(project.root, finding)


def test_what_goes_along_is_told(project: Project) -> None:
    """Nobody asked for it by its address, so it is named beside the lines that changed."""
    applied(project, "absent: {groups: [Onboarding coaches]}")
    project.write(QUICKSTART)
    ran = pasted(project.root, f"lmsconf drift --accept '{COACHES}'")
    assert ran.code == 0
    assert f"Also accepted (dependency): {HOME}{COACHES}\n" in ran.err
    assert "-      - {group: Onboarding coaches, mandatory: false}" in ran.out
    again = pasted(project.root, f"lmsconf drift --accept '{COACHES}'")
    assert "Accepted along" not in again.err


@pytest.mark.slow
@pytest.mark.sampled(gate=3)
def test_every_sort_of_difference_of_a_company_can_be_kept(tmp_path: Path) -> None:
    """Of each sort that the example of 400 people has, the last by its address; with `--unmanaged`, of that, too."""
    root = tmp_path / "acme"
    shutil.copytree(EXAMPLES / "acme", root, ignore=shutil.ignore_patterns("*.db"))
    for options in ("", "--unmanaged"):
        found = [one for one in differences(root, options) if (one["state"] == "unmanaged") == bool(options)]
        sorts = {sort_of(one): one for one in found if one["hint"]["accept"] is not None}
        assert len(sorts) > (2 if options else 10)
        for finding in sorts.values():
            assert_kept(root, finding, options)


def sort_of(finding: Mapping[str, Any]) -> tuple[object, ...]:
    return finding["kind"], finding["state"], tuple(one["path"] for one in finding["fields"])


@pytest.mark.sampled
def test_what_cannot_be_edited_has_no_line(tmp_path: Path) -> None:
    """People of a CSV file, and one of the assignments that a line makes: the way back is all there is."""
    root = tmp_path / "acme"
    shutil.copytree(EXAMPLES / "acme", root, ignore=shutil.ignore_patterns("*.db"))
    found = {one["address"]: one["hint"] for one in differences(root)}
    for address in ("group/Leadership SE", "content_target/Code of conduct -> everyone"):
        assert found[address]["accept"] is None
        assert found[address]["restore"] is not None
        assert pasted(root, f"lmsconf drift --accept '{address}'").code == 1


OWNED_GROUPS: Final = (
    ("absent: {groups: [LMS b]}\n", "group/LMS b", False),
    ("absent: {groups: [Book club]}\n", "group/Book club", True),
    ("", "group/LMS b", True),
)


@pytest.mark.parametrize(("said", "address", "has_line"), OWNED_GROUPS)
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


def test_a_line_is_pasted_as_it_stands(tmp_path: Path, project: Project) -> None:
    """With quotes around it for the shell, and with the folder that lmsconf was told."""
    applied(project, "absent: {groups: [Onboarding coaches]}")
    project.write(QUICKSTART)
    text = pasted(tmp_path, "lmsconf -C project drift").out
    first, *_ = lines_of(text)
    assert first == f"lmsconf -C project drift --accept '{HOME}{COACHES}'"
    assert pasted(tmp_path, first).code == 0
    (other,) = lines_of(pasted(tmp_path, "lmsconf -C project drift").out)
    assert pasted(tmp_path, other).code == 0
    assert pasted(tmp_path, "lmsconf -C project drift").code == 0
