"""What is edited by hand, of every kind, is found as it is; and each line that is printed to keep it does so."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any, Final

import pytest
from flow.project import Project
from flow.shell import Ran, lmsconf
from integrity.served_project import ServedProject
from texts import listed_cases

from lmsconf.errors import ExitCode

from .conftest import MANIFESTS, OWNED, drift, only, states

pytestmark = pytest.mark.sampled(day=8, daily=False)


def field(path: str, **said: Any) -> dict[str, Any]:
    return {"path": path, "declared": None, "live": None, "missing": [], "extra": [], **said}


@listed_cases("operation", "path", "body", "address", "differs", "place")
def test_an_edit_by_hand_is_found(
    stage: ServedProject,
    operation: str,
    path: dict[str, str],
    body: Any,
    address: str,
    differs: dict[str, Any],
    place: list[int],
) -> None:
    """The one resource that was edited is changed, at its line, with the one key that differs from both sides."""
    stage.hand(operation, path, body)
    found = only(drift(stage, code=2))
    assert (found["address"], found["state"], found["fields"]) == (address, "changed", [field(**differs)])
    assert found["source"] == {"file": "manifests/all.yaml", "line": place[0], "column": place[1]}
    assert found["hint"]["restore"].startswith(f"lmsconf -C {stage.root} apply --only ")
    assert found["hint"]["accept"].startswith(f"lmsconf -C {stage.root} drift --accept ")


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
    listed: Any = stage.hand("custom-fields.list")
    [it] = [one for one in listed["customFields"] if one["name"] == "Extra"]
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
    stage.hand("content-targets.create", None, {"contentId": "c-1", "targetId": "g-1", "mandatory": False})
    stage.hand("manual-groups.add-members", {"groupId": "g-1"}, {"userIds": ["u-cy"]})
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


def pasted(folder: Path, line: str) -> Ran:
    """Runs a line in a folder, as a shell does."""
    name, *words = shlex.split(line)
    assert name == "lmsconf"
    return lmsconf(folder, *words)


def differences(folder: Path) -> list[dict[str, Any]]:
    """What differs. Nothing may be without comparison."""
    ran = pasted(folder, "lmsconf drift --format json")
    assert ran.code in (0, 2), ran.err
    findings: list[dict[str, Any]] = json.loads(ran.out)["findings"]
    return findings


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """The quickstart, applied, with a person declared."""
    seed = (EXAMPLES / "quickstart/workspace.yaml").read_text(encoding="utf-8")
    project = Project(tmp_path / "project", seed, "timezone: Europe/Stockholm\nguards: off\n")
    project.apply(QUICKSTART + PEOPLE)
    return project


@pytest.mark.sampled(daily=False)
@listed_cases("edits", "differs")
def test_what_was_changed_by_hand_can_be_kept(project: Project, edits: dict[str, str], differs: list[str]) -> None:
    """Each line by itself does its work, also where the others have to go along."""
    text = QUICKSTART + PEOPLE
    for old, new in edits.items():
        assert old in text, old
        text = text.replace(old, new)
    if "custom_field/Onboarding track" in differs:
        # The service changes no field that a smart group names.
        applied(project, "absent: {smart_groups: [Remote starters Nordics]}")
    applied(project, text)
    keep_each(project, differs)


@pytest.mark.sampled(daily=False)
@listed_cases("absent", "differs")
def test_what_was_deleted_by_hand_can_stay_away(project: Project, absent: str, differs: list[str]) -> None:
    """The entry goes, and with it the entries that name it."""
    applied(project, f"absent:\n  {absent}\n")
    keep_each(project, differs)


def applied(project: Project, manifests: str) -> None:
    """Makes the workspace as other manifests say; those of the project stay."""
    assert project.apply(manifests).exit == ExitCode.OK
    project.write(QUICKSTART + PEOPLE)


def keep_each(project: Project, differs: list[str]) -> None:
    """Pastes each line to keep what was found, in a copy of the project."""
    findings, copy = differences(project.root), project.root.parent / "copy"
    assert {one["address"] for one in findings} == {*differs}
    for finding in findings:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(project.root, copy)
        ran = pasted(copy, finding["hint"]["accept"])
        assert ran.code == 0, (finding["hint"]["accept"], ran.err)
        assert finding["address"] not in {one["address"] for one in differences(copy)}


def test_what_goes_along_is_told(project: Project) -> None:
    """Nobody asked for it by its address, so it is named beside the lines that changed."""
    applied(project, "absent: {groups: [Onboarding coaches]}")
    ran = pasted(project.root, f"lmsconf drift --accept '{COACHES}'")
    assert ran.code == 0
    assert f"Also accepted (dependency): {HOME}{COACHES}\n" in ran.err
    assert "-      - {group: Onboarding coaches, mandatory: false}" in ran.out
    assert "Also accepted" not in pasted(project.root, f"lmsconf drift --accept '{COACHES}'").err


@pytest.mark.sampled(daily=False)
def test_what_cannot_be_edited_has_no_line(tmp_path: Path) -> None:
    """People of a CSV file, and one of the assignments that a line makes: the way back is all there is."""
    acme = shutil.copytree(EXAMPLES / "acme", tmp_path / "acme", ignore=shutil.ignore_patterns("*.db"))
    found = {one["address"]: one["hint"] for one in differences(acme)}
    for address in ("group/Leadership SE", "content_target/Code of conduct -> everyone"):
        assert found[address]["accept"] is None
        assert found[address]["restore"] is not None
        assert pasted(acme, f"lmsconf drift --accept '{address}'").code == 1


@pytest.mark.parametrize(
    ("said", "address", "has_line"),
    [
        ("absent: {groups: [LMS b]}\n", "group/LMS b", False),
        ("absent: {groups: [Book club]}\n", "group/Book club", True),
        ("", "group/LMS b", True),
    ],
)
def test_what_is_owned_is_kept_by_a_manifest(stage: ServedProject, said: str, address: str, has_line: bool) -> None:
    """Out of `absent` it would still go where it is owned; and where nothing names it, an export declares it."""
    stage.write(MANIFESTS + said)
    if "LMS" in address:
        stage.hand("manual-groups.create", body={"name": "LMS b", "memberIds": ["u-bo"], "managerIds": []})
    finding = only(drift(stage, code=2))
    assert finding["address"] == address
    assert (finding["hint"]["accept"] is not None) == has_line
    if has_line:
        assert stage(*shlex.split(finding["hint"]["accept"])[3:]).code == 0
        assert states(drift(stage)) == {}


def test_a_line_is_pasted_as_it_stands(tmp_path: Path, project: Project) -> None:
    """With quotes around it for the shell, and with the folder that lmsconf was told."""
    applied(project, "absent: {groups: [Onboarding coaches]}")
    for expected in (f"lmsconf -C project drift --accept '{HOME}{COACHES}'", None):
        text = pasted(tmp_path, "lmsconf -C project drift").out
        line = next(line.partition("to keep: ")[2] for line in text.splitlines() if "to keep: " in line)
        assert expected in (None, line)
        assert pasted(tmp_path, line).code == 0
    assert pasted(tmp_path, "lmsconf -C project drift").code == 0
