"""The main job as a shell sees it: exit codes, what is on stdout, what a reviewed plan is bound to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from json_schemas import schema_validator
from on_terminal import at_terminal
from waiting import nobody_waits

from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox.serve import Server, serve
from lmsconf.sandbox.service import Sandbox

from . import project as projects
from .project import Project
from .shell import lmsconf

SEED = """
people:
  - {email: anna@acme.example}
  - {email: bo@acme.example}
groups:
  - {name: Coaches, id: g-1, members: [anna@acme.example]}
  - {name: Unmanaged}
content: [{name: GDPR basics}]
"""
TOKEN = "s3cret-" + "token"
MANIFEST = """
groups:
  - {name: Mentors, previously: [Coaches], members: [anna@acme.example, bo@acme.example]}
content_targets:
  - {content: GDPR basics, mandatory: true, assign_to: [{group: Mentors}, everyone]}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project whose manifests want three changes."""
    made = Project(tmp_path, SEED)
    made.write(MANIFEST)
    return made


def test_plan_apply_plan(project: Project) -> None:
    """Plan exits 0, or 2 with --detailed-exitcode; after an apply there are no changes, and 0 either way."""
    assert lmsconf(project.root, "plan").code == 0
    assert lmsconf(project.root, "plan", "--detailed-exitcode").code == 2
    applied = lmsconf(project.root, "apply", "--auto-approve")
    assert applied.code == 0, applied.err
    assert "Apply complete!" in applied.out
    after = lmsconf(project.root, "plan", "--detailed-exitcode")
    assert after.code == 0
    assert "No changes. The workspace matches the manifests." in after.out


def test_documents_fit_their_schemas(project: Project) -> None:
    """With --format json stdout holds exactly one document, which its schema describes."""
    cases = [
        (["plan", "--format", "json"], "plan"),
        (["apply", "--auto-approve", "--format", "json"], "apply"),
        (["validate", "--format", "json"], "problems"),
    ]
    for arguments, name in cases:
        document = lmsconf(project.root, *arguments).document
        schema_validator(name).validate(document)
        assert document["format"] == f"lmsconf.{name}/1"


def test_a_plan_file_is_consent(project: Project) -> None:
    """It is applied without asking, and does exactly what was reviewed; applied twice it is stale."""
    saved = lmsconf(project.root, "plan", "--out", "plan.json")
    assert saved.code == 0
    assert (project.root / "plan.json").stat().st_mode & 0o777 == 0o600
    shown = lmsconf(project.root, "show", "plan.json")
    assert shown.out == saved.out
    (project.root / "manifests" / "all.yaml").unlink()
    applied = lmsconf(project.root, "apply", "plan.json", "--format", "json")
    assert applied.code == 0, applied.err
    planned = json.loads((project.root / "plan.json").read_text())
    assert applied.document["digest"] == planned["digest"]
    outcomes = applied.document["outcomes"]
    assert isinstance(outcomes, list)
    assert [one["call"] for one in outcomes] == [call["id"] for call in planned["calls"]]
    assert lmsconf(project.root, "apply", "plan.json").code == 3


def test_an_edited_plan_file_is_refused(project: Project) -> None:
    """A plan that was changed after it was reviewed is exit 3, and nothing is sent."""
    lmsconf(project.root, "plan", "--out", "plan.json")
    file = project.root / "plan.json"
    file.write_text(file.read_text().replace("Mentors", "Menturs"))
    assert lmsconf(project.root, "apply", "plan.json").code == 3
    assert "Coaches" in json.dumps(project.ask("manual-groups.list"))


def test_a_changed_workspace_makes_a_plan_stale(project: Project) -> None:
    """What was changed by hand after the plan was made is not overwritten: exit 3 names it."""
    lmsconf(project.root, "plan", "--out", "plan.json")
    project.send("manual-groups.add-managers", {"groupId": "g-1"}, {"userIds": ["u-1"]})
    ran = lmsconf(project.root, "apply", "plan.json")
    assert ran.code == 3
    assert "group/Mentors has changed since" in ran.err


def test_a_digest_binds_an_apply(project: Project) -> None:
    """Only the plan that was reviewed is applied: another digest is exit 3, the right one is done."""
    digest = str(lmsconf(project.root, "plan", "--format", "json").document["digest"])
    assert lmsconf(project.root, "apply", "--auto-approve", "--expect-digest", "0" * 64).code == 3
    assert lmsconf(project.root, "apply", "--auto-approve", "--expect-digest", digest).code == 0


def test_without_a_terminal_nothing_is_asked(project: Project) -> None:
    """No terminal and no --auto-approve: exit 64, and not one call."""
    assert lmsconf(project.root, "apply", answer="yes\n").code == 64
    assert not (project.root / "workspace.db").exists()


@pytest.mark.parametrize(("answer", "code"), [("yes\n", 0), ("y\n", 1), ("\n", 1)])
def test_on_a_terminal_only_yes_is_yes(project: Project, answer: str, code: int) -> None:
    """The plan is shown and the question asked; anything but `yes` exits 1 and changes nothing."""
    ran, shown = at_terminal(project.root, "apply", typed=answer)
    assert ran.code == code, shown
    assert "Apply this plan?" in shown
    assert ("Mentors" in json.dumps(project.ask("manual-groups.list"))) is (code == 0)


@pytest.mark.parametrize(
    ("allowed", "hint"),
    [
        ("removal=1", 'Did you mean "removals"?'),
        (
            "losses=1",
            "Guards are deletes, removals, recreates, refusals, answers, updates, people, mandatory.",
        ),
    ],
)
def test_a_guard_that_does_not_exist_is_answered_with_those_that_do(project: Project, allowed: str, hint: str) -> None:
    """The nearest name, or all of them where none is near."""
    ran = lmsconf(project.root, "apply", "--allow", allowed)
    assert (ran.code, hint in ran.err) == (64, True), ran.err


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """The same workspace behind a port, with its own token."""
    seed = tmp_path / "seed.yaml"
    seed.write_text(SEED, encoding="utf-8")
    sandbox = Sandbox(seed=seed, token=TOKEN, spec=ApiSpec(projects.SPOKEN))
    with serve(sandbox) as running:
        running.sandbox = sandbox
        yield running


def test_a_refused_token_is_7(project: Project, server: Server) -> None:
    """A wrong token is told as such, and shows nowhere."""
    ran = lmsconf(project.root, "plan", env={"LMSCONF_URL": server.url, "LMSCONF_TOKEN": "wr0ng-token"})
    assert ran.code == 7
    assert "wr0ng-token" not in ran.out + ran.err


def test_nobody_there_is_8(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port where nobody listens is exit 8, soon."""
    nobody_waits(monkeypatch)
    ran = lmsconf(project.root, "plan", env={"LMSCONF_URL": "http://127.0.0.1:9", "LMSCONF_TOKEN": "x"})
    assert ran.code == 8


def test_only_a_part(project: Project) -> None:
    """--only plans what is named and what it needs, and says that the plan is partial."""
    ran = lmsconf(project.root, "plan", "--only", "content_target/* -> everyone", "--format", "json")
    assert [change["address"] for change in ran.document["changes"]] == ["content_target/GDPR basics -> everyone"]
    assert ran.document["partial"] is True
    part = "This plan is partial: it covers only the resources named on the command line and what they need"
    named = ("plan", "--only", "content_target/* -> everyone")
    assert f"{part}." in lmsconf(project.root, *named).out
    assert f"{part}, except those excluded." in lmsconf(project.root, *named, "--except", "group/*").out
    needs = lmsconf(project.root, "plan", "--only", "content_target/* -> group/*", "--format", "json").document
    assert [change["kind"] for change in needs["changes"]] == ["group", "content_target"]
    assert lmsconf(project.root, "plan", "--only", "group/Nobody").code == 1


def test_all_but_a_part(project: Project) -> None:
    """--except leaves a resource out; what stands on it and cannot be without it is an error."""
    ran = lmsconf(project.root, "plan", "--except", "content_target/*", "--format", "json")
    assert {change["kind"] for change in ran.document["changes"]} == {"group"}
    covers = "This plan is partial: it covers everything except the resources excluded on the command line."
    assert covers in lmsconf(project.root, "plan", "--except", "content_target/*").out
    assert lmsconf(project.root, "plan", "--except", "group/Mentors").code == 1
    project.write("groups: [{name: New}]\ncontent_targets: [{content: GDPR basics, assign_to: [{group: New}]}]")
    assert lmsconf(project.root, "plan", "--except", "group/New").code == 1


def test_a_snapshot_plans_offline(project: Project) -> None:
    """A plan against a saved snapshot is the same plan, can be shown, and cannot be applied."""
    live = lmsconf(project.root, "plan", "--format", "json").document
    assert lmsconf(project.root, "snapshot", "now.json").code == 0
    (project.root / "workspace.db").unlink()
    offline = lmsconf(project.root, "plan", "--snapshot", "now.json", "--out", "plan.json", "--format", "json").document
    assert offline["digest"] == live["digest"]
    assert not (project.root / "workspace.db").exists()
    assert lmsconf(project.root, "apply", "plan.json").code == 3
    document = json.loads((project.root / "now.json").read_text())
    schema_validator("snapshot").validate(document)
    assert "2 groups" in lmsconf(project.root, "show", "now.json").out


def test_a_name_that_is_left_out_cannot_be_built_on(project: Project) -> None:
    """--additive renames nothing, so what names a resource by its new name is an error that says what to do first."""
    project.write(
        """
groups: [{name: Mentors, previously: [Coaches]}]
content_targets: [{content: GDPR basics, assign_to: [{group: Mentors}]}]
"""
    )
    ran = lmsconf(project.root, "plan", "--additive")
    assert ran.code == 1
    assert "First run: lmsconf apply --only group/Mentors" in ran.err


def test_a_choice_that_keeps_its_name_cannot_be_built_on(project: Project) -> None:
    """--additive renames no choice, so a creation that names one by its new name is an error; what is there may."""
    project.write("custom_fields: [{name: Region, type: CHOICE, choices: [North, South]}]")
    lmsconf(project.root, "apply", "--auto-approve")
    renamed = "custom_fields: [{name: Region, choices: [{name: Up North, previously: [North]}, South]}]\n"
    project.write(renamed + "smart_groups: [{name: Northerners, conditions: [{field: Region, choices: [Up North]}]}]")
    ran = lmsconf(project.root, "plan", "--additive")
    assert ran.code == 1
    assert 'choice "Up North" of custom_field/Region' in ran.err
    assert "First run: lmsconf apply --only custom_field/Region" in ran.err
    assert lmsconf(project.root, "apply", "--auto-approve").code == 0
    assert lmsconf(project.root, "plan", "--additive", "--detailed-exitcode").code == 0
