"""The main job as a shell sees it: documents, exit codes and their order, what a reviewed plan is bound to, signals."""

import hashlib
import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from json_schemas import schema_validator
from msgspec.structs import replace
from texts import listed_cases, text_of
from waiting import HANGS, HeldResponse, nobody_waits

from lmsconf.api.spec import ApiSpec
from lmsconf.documents.plan_file import dumps, loads
from lmsconf.sandbox.serve import Server, serve
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import fill_if_empty

from . import project as projects
from .project import Project
from .shell import Ran, lmsconf

SEED = text_of(__file__, "commands_seed.yaml")
TOKEN = "of-the-" + "server"
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


def test_a_plan_file_is_consent(project: Project) -> None:
    """It is applied without asking, and does exactly what was reviewed; applied twice it is stale."""
    saved = lmsconf(project.root, "plan", "--out", "plan.json", code=0)
    assert (project.root / "plan.json").stat().st_mode & 0o777 == 0o600
    assert lmsconf(project.root, "show", "plan.json").out == saved.out
    (project.root / "manifests" / "all.yaml").unlink()
    applied = lmsconf(project.root, "apply", "plan.json", "--format", "json", code=0)
    planned = json.loads((project.root / "plan.json").read_text())
    assert applied.document["digest"] == planned["digest"]
    outcomes = applied.document["outcomes"]
    assert isinstance(outcomes, list)
    assert [one["call"] for one in outcomes] == [call["id"] for call in planned["calls"]]
    assert lmsconf(project.root, "apply", "plan.json").code == 3


def test_a_digest_binds_an_apply(project: Project) -> None:
    """Only the plan that was reviewed is applied: another digest is exit 3, the right one is done."""
    digest = str(lmsconf(project.root, "plan", "--format", "json").document["digest"])
    assert lmsconf(project.root, "apply", "--auto-approve", "--expect-digest", "0" * 64).code == 3
    assert lmsconf(project.root, "apply", "--auto-approve", "--expect-digest", digest).code == 0


@pytest.mark.parametrize(
    ("allowed", "hint"),
    [
        ("removal=1", 'Did you mean "removals"?'),
        ("losses=1", "Guards are deletes, removals, recreates, refusals, answers, updates, people, mandatory."),
    ],
)
def test_a_guard_that_does_not_exist_is_answered_with_those_that_do(project: Project, allowed: str, hint: str) -> None:
    """The nearest name, or all of them where none is near."""
    assert hint in lmsconf(project.root, "apply", "--allow", allowed, code=64).err


def test_a_refused_token_is_7(project: Project) -> None:
    """A wrong token is told as such, and shows nowhere."""
    sandbox = fill_if_empty(Sandbox(token=TOKEN, spec=ApiSpec(projects.SPOKEN)), project.root / "workspace.yaml")
    with serve(sandbox) as server:
        ran = lmsconf(project.root, "plan", env={"LMSCONF_URL": server.url, "LMSCONF_TOKEN": "wr0ng-token"}, code=7)
    assert "wr0ng-token" not in ran.out + ran.err


def test_nobody_there_is_8(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port where nobody listens is exit 8, soon."""
    nobody_waits(monkeypatch)
    lmsconf(project.root, "plan", env={"LMSCONF_URL": "http://127.0.0.1:9", "LMSCONF_TOKEN": "x"}, code=8)


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
    schema_validator("snapshot").validate(json.loads((project.root / "now.json").read_text()))
    assert "2 groups" in lmsconf(project.root, "show", "now.json").out


def test_a_name_that_is_left_out_cannot_be_built_on(project: Project) -> None:
    """--additive renames nothing, so what names a resource by its new name is an error that says what to do first."""
    assignment = "content_targets: [{content: GDPR basics, assign_to: [{group: Mentors}]}]"
    project.write("groups: [{name: Mentors, previously: [Coaches]}]\n" + assignment)
    ran = lmsconf(project.root, "plan", "--additive", code=1)
    assert "First run: lmsconf apply --only group/Mentors" in ran.err


def test_a_choice_that_keeps_its_name_cannot_be_built_on(project: Project) -> None:
    """--additive renames no choice, so a creation that names one by its new name is an error; what is there may."""
    project.write("custom_fields: [{name: Region, type: CHOICE, choices: [North, South]}]")
    lmsconf(project.root, "apply", "--auto-approve")
    renamed = "custom_fields: [{name: Region, choices: [{name: Up North, previously: [North]}, South]}]\n"
    project.write(renamed + "smart_groups: [{name: Northerners, conditions: [{field: Region, choices: [Up North]}]}]")
    ran = lmsconf(project.root, "plan", "--additive", code=1)
    assert 'choice "Up North" of custom_field/Region' in ran.err
    assert "First run: lmsconf apply --only custom_field/Region" in ran.err
    assert lmsconf(project.root, "apply", "--auto-approve").code == 0
    assert lmsconf(project.root, "plan", "--additive", "--detailed-exitcode").code == 0


# What the commands promise, word for word: one document, digest and seal, exit codes and their order, signals.


CROWD = ", ".join(f"p{number}@acme.example" for number in range(40))
CROWDED_SEED = f"""
people:
{"".join(f"  - {{email: p{number}@acme.example}}{chr(10)}" for number in range(40))}
custom_fields: [{{name: Dept, type: CHOICE, choices: [Sales, HR]}}]
groups:
  - {{name: Big, id: g-1, members: [{CROWD}]}}
  - {{name: Coaches, id: g-2}}
smart_groups: [{{name: S, conditions: [{{field: Dept, choices: [Sales]}}]}}]
content: [{{name: GDPR basics}}]
"""
CROWDED_MANIFEST = """
groups:
  - {name: Mentors, previously: [Coaches], about: {owner: hr}}
  - {name: Big}
content_targets: [{content: GDPR basics, assign_to: [{group: Mentors}]}]
"""


def checked(ran: Ran) -> dict[str, Any]:
    """The one document on stdout, which its schema describes."""
    found = ran.document
    schema_validator(str(found["format"]).removeprefix("lmsconf.").removesuffix("/1")).validate(found)
    return found


IN_USE = "dialect: {custom-fields.in-use: condition}\n"
"""A service that may refuse a change of the field, so that there is a warning."""
Command = Callable[..., Ran]


@pytest.fixture
def it(tmp_path: Path) -> Project:
    """A project whose manifests want a rename and an assignment."""
    made = Project(tmp_path, CROWDED_SEED)
    made.write(CROWDED_MANIFEST)
    return made


@pytest.fixture
def command(it: Project, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command of that project, with no terminal, from another folder."""
    elsewhere = it.root / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    return partial(lmsconf, elsewhere, "-C", "..")


def canonical_sum(value: object) -> str:
    """SHA-256 of canonical JSON, as somebody without lmsconf would take it."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    "manifest",
    [
        CROWDED_MANIFEST,
        "custom_fields: [{name: Dept, type: CHOICE, choices: [Sales, HR, New], about: {why: x}}]",
        "absent: {groups: [Coaches]}\ngroups: [{name: Big, previously: [Old], members: {exclude: [p1@acme.example]}}]",
    ],
    ids=["plain", "with a warning on a change", "with a note on a change"],
)
def test_digest_and_seal_can_be_checked_by_anybody(it: Project, command: Command, manifest: str) -> None:
    """Both are what the plan's own JSON gives, without lmsconf; the seal also from the bytes with an empty seal."""
    it.write(manifest)
    assert command("plan", "--out", "plan.json").code == 0
    raw = Path("plan.json").read_bytes()
    plan = json.loads(raw)
    changes = [{key: change[key] for key in change.keys() - {"source", "about", "undo"}} for change in plan["changes"]]
    parts = {key: plan[key] for key in ("format", "workspace", "policy", "calls", "fingerprints")}
    assert plan["digest"] == canonical_sum({**parts, "changes": changes})
    assert plan["seal"] == canonical_sum({**plan, "seal": ""})
    emptied = raw.replace(f'"seal":"{plan["seal"]}"'.encode(), b'"seal":""')
    assert plan["seal"] == hashlib.sha256(emptied).hexdigest()


def test_a_saved_plan_keeps_the_places_of_its_problems(it: Project, command: Command) -> None:
    """Shown again, a plan with a warning on a change reads as it did when it was made."""
    it.write_options(IN_USE)
    it.write("custom_fields: [{name: Dept, type: CHOICE, choices: [Sales, HR, New]}]")
    made = command("plan", "--out", "plan.json").out
    assert "manifests/all.yaml:1:17: warning: may be refused" in made
    shown = command("show", "plan.json").out
    again, first = ([one for one in text.splitlines() if "--allow" not in one] for text in (shown, made))
    assert again == first
    assert "apply plan.json --allow refusals=1" in shown


def test_paths_are_of_the_project(it: Project, command: Command) -> None:
    """Wherever a command runs, documents name manifests from the project's folder, and files go where one is."""
    plan = checked(command("plan", "--out", "plan.json", "--format", "json"))
    assert plan["manifests"]["files"] == ["manifests/all.yaml"]
    assert Path("plan.json").is_file()
    assert not (it.root / "plan.json").exists()


@pytest.mark.sampled
@listed_cases("arguments", "code")
def test_every_error_is_one_document(command: Command, arguments: str, code: int) -> None:
    """With --format json stdout holds exactly one document, whatever is wrong, and a person reads it on stderr."""
    said = command(*arguments.split(), "--format", "json", code=code)
    assert checked(said)["format"] == ("lmsconf.apply/1" if "--expect-digest" in arguments else "lmsconf.problems/1")
    assert "error: " in said.err


def test_a_run_that_is_stopped_is_reported(command: Command) -> None:
    """A guard, a stale plan or another digest: no call is attempted, and the report says so with the exit code."""
    report = checked(command("apply", "--auto-approve", "--expect-digest", "0", "--format", "json", code=3))
    assert {one["status"] for one in report["outcomes"]} == {"not_attempted"}
    assert report["exit"] == 3


def test_output_to_a_file(command: Command) -> None:
    """--output takes the document off stdout, errors too, for its owner only."""
    assert command("plan", "--format", "json", "--output", "out.json").out == ""
    assert Path("out.json").stat().st_mode & 0o777 == 0o600
    failed = command("plan", "--format", "json", "--only", "group/Nope", "--output", "out.json")
    assert (failed.code, failed.out) == (1, "")
    assert json.loads(Path("out.json").read_text())["format"] == "lmsconf.problems/1"


def test_stale_comes_before_guards(it: Project, command: Command) -> None:
    """A plan file that is stale and trips a guard is exit 3, and 4 while it is fresh."""
    it.write("groups: [{name: Big, members: []}]")
    command("plan", "--out", "plan.json")
    assert command("apply", "plan.json").code == 4
    it.send("manual-groups.remove-member", {"groupId": "g-1", "userId": "u-1"})
    assert command("apply", "plan.json").code == 3


def test_a_plan_that_is_judged_again_keeps_its_digest(it: Project, command: Command) -> None:
    """A plan file that harms what is protected has the digest that it names, and is exit 4, not another plan's 3."""
    it.write_options('guards: {protect: ["group/Coaches"]}\n')
    plan = command("plan", "--out", "plan.json", "--format", "json").document
    assert command("apply", "plan.json", "--expect-digest", str(plan["digest"])).code == 4
    assert command("apply", "plan.json", "--expect-digest", "0").code == 3


def test_a_plan_is_for_its_workspace(it: Project, command: Command) -> None:
    """A plan file that was made for another workspace is exit 3, also when it is empty."""
    it.write("groups: [{name: Big}]")
    command("plan", "--out", "plan.json")
    said = command("apply", "plan.json", env={"LMSCONF_URL": "sandbox:", "LMSCONF_TOKEN": "x"}, code=3)
    assert "made for workspace sandbox" in said.err


def test_an_expired_plan_is_not_applied_and_still_shown(it: Project, command: Command) -> None:
    """From its `expires_at` on, apply exits 3 and sends nothing; show reads it as before."""
    it.write("groups: [{name: New}]")
    command("plan", "--out", "plan.json")
    file = Path("plan.json")
    plan = loads(file.read_text(encoding="utf-8"))
    file.write_text(dumps(replace(plan, expires_at="2026-03-01T08:00:00Z")), encoding="utf-8")
    assert "the plan expired at 2026-03-01T08:00:00Z" in command("apply", "plan.json", code=3).err
    assert command("show", "plan.json").code == 0
    file.write_text(dumps(replace(plan, expires_at="2999-01-01T00:00:00Z")), encoding="utf-8")
    assert "1 call done" in command("apply", "plan.json", code=0).out


def test_a_saved_plan_without_changes_may_leave_nothing_to_read_back(it: Project, command: Command) -> None:
    """With `--verify touched`, apply exits 0 and says that the workspace was not read back."""
    it.write("groups: [{name: Big}]")
    command("plan", "--out", "plan.json")
    ran = command("apply", "plan.json", "--verify", "touched", code=0)
    assert "Nothing was sent, and the workspace was not read back." in ran.out
    assert "match" not in ran.out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["SIGINT", "SIGTERM"])
def test_a_run_that_is_cut_short_says_what_it_did(tmp_path: Path, number: int, code: int) -> None:
    """The report lists every call, done or not attempted, and the progress counts no call that was not made."""
    it = Project(tmp_path, CROWDED_SEED)
    it.write("groups:\n" + "".join(f"  - {{name: G{one}}}\n" for one in range(60)))
    held = HeldResponse(lambda call: call.writes)
    sandbox = fill_if_empty(Sandbox(token=TOKEN, on_log=held), tmp_path / "workspace.yaml")
    with serve(sandbox) as server:
        said = _cut(it, server, held, number)
        log = [call for call in sandbox.log if call.writes]
    assert said.code == code
    report = checked(said)
    summary = report["summary"]
    assert summary["done"] == len(log)
    assert summary["done"] + summary["not_attempted"] == 60
    assert 0 < summary["done"] < 60
    counted = [int(number) for number in re.findall(r"Applying: (\d+) of 60", said.err)]
    assert counted == sorted(counted)
    assert max(counted, default=0) <= len(log)
    assert report["exit"] == code


def _cut(it: Project, server: Server, held: HeldResponse, number: int) -> Ran:
    """Starts an apply and ends it with a signal before the first thing that it wrote is answered."""
    running = subprocess.Popen(
        [sys.executable, "-m", "lmsconf", "apply", "--auto-approve", "--format", "json", "--parallelism", "1"],
        cwd=it.root,
        env={"LMSCONF_URL": server.url, "LMSCONF_TOKEN": TOKEN},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with held:
        running.send_signal(number)
    out, err = running.communicate(timeout=HANGS)
    return Ran(running.returncode, out, err)
