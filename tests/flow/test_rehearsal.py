"""`plan --rehearse`, its receipt, `apply --require-rehearsal`, and a snapshot file as the seed of a sandbox."""

import json
import shutil
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
import yaml
from flow.altered_service import put_at
from flow.project import Project
from flow.shell import Ran, lmsconf
from texts import listed_cases

from lmsconf.apply import rehearse
from lmsconf.documents.json_documents import add_seal, render_canonical_json
from lmsconf.sandbox.service import LoggedRequest, Sandbox

pytestmark = pytest.mark.sampled(day=8, daily=False)

PEOPLE = [f"p{n}@x.example" for n in range(1, 8)]
SEED: Mapping[str, Any] = {
    "people": [{"email": email, "answers": {"Department": "Sales"}} for email in PEOPLE[:4]]
    + [{"email": email, "admin": email == PEOPLE[6]} for email in PEOPLE[4:]],
    "custom_fields": [{"name": "Department", "type": "CHOICE", "choices": ["Sales", "HR"]}],
    "groups": [{"name": "Coaches", "members": PEOPLE[:2]}, {"name": "Old", "members": PEOPLE[2:3]}],
    "smart_groups": [{"name": "Sellers", "conditions": [{"field": "Department", "choices": ["Sales"]}]}],
    "content": [{"name": "GDPR"}, {"name": "Intro"}],
    "content_targets": [
        {"content": "GDPR", "assign_to": [{"group": "Coaches"}], "visible_until": "2030-01-01T00:00:00Z"}
    ],
}
MANIFESTS = f"""
custom_fields: [{{name: Site, type: CHOICE, choices: [Oslo, Lund]}}]
groups:
  - {{name: Mentors, previously: [Coaches], members: [{", ".join(PEOPLE[1:4])}]}}
smart_groups:
  - {{name: All departments, conditions: [{{field: Department, choices: [Sales, HR]}}]}}
content_targets:
  - {{content: GDPR, mandatory: true, assign_to: [{{group: Mentors}}, {{smart_group: All departments}}]}}
"""
IN_USE = "custom_fields: [{name: Department, choices: [Sales, HR], description: Where}]\n"


@pytest.fixture
def it(tmp_path: Path) -> Project:
    """A project with something to create, rename, change and assign."""
    made = Project(tmp_path, yaml.safe_dump(dict(SEED)), "guards: {people: {count: 100, share: 100%}}\n")
    made.write(MANIFESTS)
    return made


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[LoggedRequest]:
    """The requests to the embedded workspace of the project; a twin, which has ids of its own, is not logged."""
    seen: list[LoggedRequest] = []
    assert rehearse  # imported before, so that it keeps the class itself

    def open(*arguments: Any, **options: Any) -> Sandbox:
        return Sandbox(*arguments, **({"on_log": seen.append} | options))

    monkeypatch.setattr("lmsconf.sandbox.service.Sandbox", open)
    return seen


def rehearsed(it: Project, *options: str) -> tuple[Ran, dict[str, Any]]:
    """A rehearsed plan as JSON, and its key `rehearsal`."""
    ran = lmsconf(it.root, "plan", "--rehearse", "--format", "json", *options, code=0)
    rehearsal: Any = ran.document["rehearsal"]
    return ran, rehearsal


def test_a_rehearsal_shows_that_all_calls_work(it: Project) -> None:
    """Every call is done on the twin, nothing in the workspace changes, and the digest is that of the plan."""
    plain = lmsconf(it.root, "plan", "--format", "json").document
    ran, rehearsal = rehearsed(it)
    assert rehearsal["receipt"]["outcome"] == "success"
    assert rehearsal["calls"] == {"total": len(ran.document["calls"]), "done": len(ran.document["calls"])}  # type: ignore[arg-type]  # a list, as the schema of plans says
    assert (rehearsal["failed"], rehearsal["remaining"], rehearsal["problems"]) == ([], [], [])
    assert ran.document["digest"] == plain["digest"] == rehearsal["receipt"]["plan_digest"]
    assert lmsconf(it.root, "plan", "--format", "json").document["digest"] == plain["digest"]


def test_people_are_rehearsed(it: Project) -> None:
    """A reading of everything has more of each person than the plan compares; the digest is the same."""
    it.write(
        f"users: [{{email: {PEOPLE[0]}, first_name: Anna, language: sv}}, {{email: {PEOPLE[1]}, manager: true}}]\n"
    )
    ran, rehearsal = rehearsed(it, "--out", "plan.json")
    assert (rehearsal["receipt"]["outcome"], rehearsal["calls"]["done"]) == ("success", 3)
    assert ran.document["digest"] == lmsconf(it.root, "plan", "--format", "json").document["digest"]
    assert lmsconf(it.root, "apply", "plan.json", "--require-rehearsal").code == 0


def test_memberships_are_predicted_and_reached(it: Project) -> None:
    """Of each group whose members change, the predicted number and that on the twin are shown, of active people."""
    _, rehearsal = rehearsed(it, "--out", "plan.json")
    groups = {one["address"]: (one["before"], one["predicted"], one["reached"]) for one in rehearsal["memberships"]}
    assert groups == {"group/Mentors": (2, 3, 3), "smart_group/All departments": (0, 4, 4)}
    assert "group/Mentors: 2 → 3, as predicted" in lmsconf(it.root, "show", "plan.json").out


def test_groups_that_come_and_go_have_the_members_of_the_twin(it: Project) -> None:
    """A deleted group has none, and a new one those who are active."""
    new = f"{{name: New, members: [{PEOPLE[2]}, {PEOPLE[4]}]}}"
    it.write(f"groups: [{new}]\nusers: [{{email: {PEOPLE[4]}, archived: true}}]\nabsent: {{groups: [Old]}}\n")
    _, rehearsal = rehearsed(it)
    groups = {one["address"]: (one["before"], one["predicted"], one["reached"]) for one in rehearsal["memberships"]}
    assert groups == {"group/New": (0, 1, 1), "group/Old": (1, 0, 0)}


def test_a_rehearsal_requests_what_a_snapshot_requests(it: Project, log: list[LoggedRequest]) -> None:
    """It costs exactly the requests of `lmsconf snapshot`. Without --max-rate and a refusal, no rate is known."""
    assert lmsconf(it.root, "snapshot", "saved.json").code == 0
    saved = sorted((one.method, one.path, one.status) for one in log)
    log.clear()
    _, rehearsal = rehearsed(it)
    assert sorted((one.method, one.path, one.status) for one in log) == saved
    pace = rehearsal["pace"]
    assert (pace["rate"], pace["is_limit"], pace["seconds"]) == (None, False, None)


def test_the_time_follows_from_the_rate(it: Project) -> None:
    """With --max-rate, an apply has a time; without, it is said that none is known."""
    _, rehearsal = rehearsed(it, "--max-rate", "500")
    pace = rehearsal["pace"]
    assert (pace["rate"], pace["is_limit"], pace["seconds"]) == (500, True, pace["requests"] / 500)
    assert "how long that takes is not known" in lmsconf(it.root, "plan", "--rehearse").out


@pytest.mark.sampled(daily=False)
def test_refusals_are_shown_with_the_fix(it: Project) -> None:
    """A field in use cannot be changed: the twin says it as the service does, with the way out, in every format."""
    it.write(IN_USE)
    it.write_options("dialect: {custom-fields.in-use: condition}\n")
    _, rehearsal = rehearsed(it)
    assert rehearsal["receipt"]["outcome"] == "refused"
    [failed] = rehearsal["failed"]
    assert (failed["address"], failed["status"]) == ("custom_field/Department", "failed")
    assert "403" in failed["reason"]
    assert failed["hint"]
    assert [change["address"] for change in rehearsal["remaining"]] == ["custom_field/Department"]
    for format in ("text", "markdown", "html"):
        out = lmsconf(it.root, "plan", "--rehearse", "--format", format).out.replace("\\", "")
        assert "0 of 1 API call were done on the twin, and 1 failed" in out
        assert failed["reason"].split("\n")[0][:30] in out
        assert "sent as if nothing stopped an apply" in out


def test_a_receipt_is_required(it: Project) -> None:
    """A plan file without a receipt is not applied; one with a success is; a plan made afresh has none."""
    for name, options in (("plain", ()), ("rehearsed", ("--rehearse",))):
        assert lmsconf(it.root, "plan", "--out", f"{name}.json", *options).code == 0
    refused = lmsconf(it.root, "apply", "plain.json", "--require-rehearsal")
    assert (refused.code, "the plan was not rehearsed" in refused.err) == (3, True)
    afresh = lmsconf(it.root, "apply", "--auto-approve", "--require-rehearsal")
    assert (afresh.code, "--require-rehearsal needs a plan file" in afresh.err) == (64, True)
    lmsconf(it.root, "apply", "rehearsed.json", "--require-rehearsal", code=0)


@pytest.mark.sampled(daily=False)
def test_a_rehearsal_that_did_not_succeed_is_no_receipt(it: Project) -> None:
    """What was refused on the twin is not applied where a rehearsal is required."""
    it.write(IN_USE)
    it.write_options("dialect: {custom-fields.in-use: condition}\n")
    assert lmsconf(it.root, "plan", "--rehearse", "--out", "refused.json").code == 0
    ran = lmsconf(it.root, "apply", "refused.json", "--require-rehearsal", "--allow", "refusals=1")
    assert (ran.code, "the rehearsal of the plan did not succeed" in ran.err) == (3, True)


@pytest.mark.sampled(daily=False)
def test_a_receipt_cannot_be_moved(it: Project) -> None:
    """A receipt in another plan's file breaks its seal; with the seal made anew, its digest is another plan's."""
    assert lmsconf(it.root, "plan", "--rehearse", "--only", "custom_field/Site", "--out", "part.json").code == 0
    assert lmsconf(it.root, "plan", "--out", "whole.json").code == 0
    part, whole = (json.loads((it.root / f"{name}.json").read_text(encoding="utf-8")) for name in ("part", "whole"))
    whole["rehearsal"] = part["rehearsal"]
    (it.root / "moved.json").write_text(render_canonical_json(whole), encoding="utf-8")
    ran = lmsconf(it.root, "apply", "moved.json", "--require-rehearsal")
    assert (ran.code, "seal" in ran.err or "changed" in ran.err) == (3, True)
    (it.root / "sealed.json").write_text(render_canonical_json(add_seal(whole)), encoding="utf-8")
    ran = lmsconf(it.root, "apply", "sealed.json", "--require-rehearsal")
    assert (ran.code, "the rehearsal in the file is of a plan with the digest" in ran.err) == (3, True)


def test_a_receipt_is_signed_with_the_plan(it: Project) -> None:
    """With a key, a receipt that was changed and sealed again is refused."""
    key = {"LMSCONF_PLAN_KEY": "k" * 40}
    assert lmsconf(it.root, "plan", "--rehearse", "--out", "plan.json", env=key).code == 0
    document = json.loads((it.root / "plan.json").read_text(encoding="utf-8"))
    document["rehearsal"]["receipt"]["at"] = "2026-01-01T00:00:00Z"
    (it.root / "plan.json").write_text(render_canonical_json(add_seal(document)), encoding="utf-8")
    ran = lmsconf(it.root, "apply", "plan.json", "--require-rehearsal", env=key)
    assert (ran.code, "signed with another key, or changed" in ran.err) == (3, True)


@pytest.mark.sampled(daily=False)
def test_a_redacted_snapshot_is_not_rehearsed(it: Project) -> None:
    """It names too few people; the plan on it is still made without --rehearse."""
    assert lmsconf(it.root, "snapshot", "redacted.json", "--redact").code == 0
    ran = lmsconf(it.root, "plan", "--snapshot", "redacted.json", "--rehearse")
    assert (ran.code, ran.out) == (1, "")
    assert "cannot be rehearsed: a redacted snapshot names too few people to make a workspace of" in ran.err
    assert "Save one without --redact" in ran.err


@pytest.mark.sampled(daily=False)
def test_a_saved_snapshot_is_rehearsed(it: Project, log: list[LoggedRequest]) -> None:
    """No request is sent, the receipt has the digest of the file, and the pace is not known."""
    assert lmsconf(it.root, "snapshot", "saved.json").code == 0
    log.clear()
    ran, rehearsal = rehearsed(it, "--snapshot", "saved.json")
    assert (rehearsal["receipt"]["outcome"], rehearsal["pace"]["rate"]) == ("success", None)
    assert rehearsal["receipt"]["snapshot_digest"] == sha256((it.root / "saved.json").read_bytes()).hexdigest()
    assert log == []
    assert ran.document["offline"] is True


def not_rehearsed(it: Project, edit: Callable[[dict[str, Any]], object]) -> str:
    """What is said where a plan on an edited snapshot is not rehearsed; nothing is foretold."""
    assert lmsconf(it.root, "snapshot", "saved.json").code == 0
    document = json.loads((it.root / "saved.json").read_text(encoding="utf-8"))
    edit(document)
    (it.root / "saved.json").write_text(json.dumps(document), encoding="utf-8")
    ran = lmsconf(it.root, "plan", "--snapshot", "saved.json", "--rehearse", code=1)
    assert ran.out == ""
    return ran.err


def test_a_snapshot_that_refers_to_what_it_lacks_is_not_rehearsed(it: Project) -> None:
    """The reasons are named."""
    err = not_rehearsed(it, lambda said: said["content_target"][0].update(content="nothing"))
    assert "the plan cannot be rehearsed on this snapshot" in err
    assert "content_target[0]: there is no content with the id 'nothing'" in err


@pytest.mark.parametrize(("number", "more"), [(5, ""), (6, ", and 1 more")])
def test_a_plan_that_the_sandbox_makes_otherwise_is_not_rehearsed(it: Project, number: int, more: str) -> None:
    """Where it cannot hold what is live, here an unknown application, five of the changes that differ are named."""
    users = ", ".join(f"{{email: {email}, applications: [learn]}}" for email in PEOPLE[:number])
    it.write(f"users: [{users}]\n")

    def edit(document: dict[str, Any]) -> None:
        for person in document["user"][:number]:
            person["applications"] = ["learn", "unheard-of"]

    named = ", ".join(f"user/{email}" for email in PEOPLE[:5])
    assert f"the plan cannot be rehearsed: the twin gives another plan for {named}{more} [" in not_rehearsed(it, edit)


@pytest.mark.sampled(daily=False)
def test_people_are_masked_in_a_rehearsal(it: Project) -> None:
    """With --mask-people no e-mail is in the rehearsal, whatever was refused."""
    it.write(f"users: [{{email: {PEOPLE[6]}, archived: true}}]\ngroups: [{{name: Coaches, members: [{PEOPLE[5]}]}}]\n")
    for format in ("text", "json", "markdown", "html"):
        ran = lmsconf(it.root, "--mask-people", "plan", "--rehearse", "--format", format)
        assert (ran.code, "@x.example" in ran.out + ran.err) == (0, False)
        assert "ehearsal" in ran.out


# A snapshot file as the seed of a sandbox: the same workspace again, or a sentence why not.


EXAMPLES = Path(__file__).parent.parent.parent / "examples"
Document = dict[str, Any]


def copy_of(example: str, folder: Path) -> Path:
    left_behind = shutil.ignore_patterns("*.db*", ".lmsconf", "*.json")
    return Path(shutil.copytree(EXAMPLES / example, folder / example, ignore=left_behind))


@pytest.fixture
def quickstart(tmp_path: Path) -> Path:
    """The example with twelve people."""
    return copy_of("quickstart", tmp_path)


def saved(project: Path, *options: str) -> Document:
    """What `lmsconf snapshot` saves to saved.json, without its time."""
    assert lmsconf(project, "snapshot", "saved.json", *options).code == 0
    document: Document = json.loads((project / "saved.json").read_text(encoding="utf-8"))
    return document | {"taken_at": ""}


@pytest.mark.sampled(daily=False)
def test_a_workspace_is_reset_from_a_snapshot(tmp_path: Path) -> None:
    """The workspace reads as it did when the snapshot was taken, whatever has changed since; its ids are the same."""
    acme = copy_of("acme", tmp_path)  # 400 people, who have answers, rights and archived accounts
    before = saved(acme)
    assert lmsconf(acme, "api", "POST", "/groups", "--body", '{"name": "New"}').code == 0
    (acme / "saved.json").rename(acme / "before.json")
    assert saved(acme) != before
    ran = lmsconf(acme, "sandbox", "reset", "--from", "before.json", "--yes")
    assert (ran.code, ran.err) == (0, "workspace.db was reset from before.json.\n")
    assert saved(acme) == before


@pytest.mark.sampled(daily=False)
def test_a_redacted_snapshot_is_no_seed(quickstart: Path) -> None:
    """It names too few people, and the workspace stays as it is."""
    before = saved(quickstart)
    assert lmsconf(quickstart, "snapshot", "redacted.json", "--redact").code == 0
    ran = lmsconf(quickstart, "sandbox", "reset", "--from", "redacted.json", "--yes", code=1)
    assert "redacted.json: error: a redacted snapshot names too few people to make a workspace of" in ran.err
    assert saved(quickstart) == before


@pytest.mark.sampled(daily=False)
@listed_cases("place", "value", "message")
def test_what_cannot_be_loaded_is_named(quickstart: Path, place: str, value: object, message: str) -> None:
    """An edited or incomplete snapshot is refused whole, with the place of each problem. Null: the key is not there."""
    document = saved(quickstart)
    put_at(document, place, value)
    (quickstart / "edited.json").write_text(json.dumps(document), encoding="utf-8")
    ran = lmsconf(quickstart, "sandbox", "reset", "--from", "edited.json", "--yes", code=1)
    assert f"edited.json: error: {message}" in ran.err


@pytest.mark.sampled(daily=False)
def test_a_type_of_a_target_stays_as_the_service_spelt_it(quickstart: Path) -> None:
    """Whatever the service calls an audience, the twin calls it the same, deletes by it, and uses it for a new one."""
    document = saved(quickstart)
    kinds = {one["type"] for one in document["content_target"]}
    for target in document["content_target"]:
        target["type"] = f"SOME_{target['type']}"
    (quickstart / "edited.json").write_text(json.dumps(document), encoding="utf-8")
    assert lmsconf(quickstart, "sandbox", "reset", "--from", "edited.json", "--yes").code == 0
    assert saved(quickstart)["content_target"] == document["content_target"]
    assert lmsconf(quickstart, "apply", "--auto-approve").code == 0
    types = {one["type"] for one in saved(quickstart)["content_target"]}
    assert {f"SOME_{kind}" for kind in kinds} <= types
    old = document["content_target"][0]
    query = [f"--query={key}={old[name]}" for key, name in (("contentId", "content"),)]
    body = json.dumps({"contentId": old["content"], "targetId": old["target"], "targetType": old["type"]})
    assert lmsconf(quickstart, "api", "DELETE", "/content/targets", "--body", body).code == 0
    assert lmsconf(quickstart, "api", "GET", "/content/targets", *query).document["targets"] == []
