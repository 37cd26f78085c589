"""A plan is refused when anything that it touches was changed by hand after it was reviewed, and nothing is sent."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from texts import text_of
from wire.second_dialect import known_dialect

import lmsconf
from lmsconf.errors import ExitCode, StalePlan
from lmsconf.model.plan import Plan
from lmsconf.sandbox.service import LoggedRequest

from .served_project import ServedProject, staged

pytestmark = pytest.mark.sampled(day=8, daily=False)

SEED = text_of(__file__, "stale_plans_seed.yaml")
MANIFESTS = text_of(__file__, "stale_plans_manifests.yaml")
DIALECT: Mapping[str, str | int] = {"custom-fields.in-use": "never"}
OPTIONS = f"guards: off\ndialect: {json.dumps({**known_dialect(), **DIALECT})}\n"
EDITS: Mapping[str, Mapping[str, list[Any]]] = yaml.safe_load(text_of(__file__, "edits_by_hand.yaml"))
MEMBER = [["manual-groups.add-members", {"groupId": "g-team"}, {"userIds": ["u-di"]}]]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    with staged(tmp_path, SEED, monkeypatch, OPTIONS, DIALECT) as stage:
        stage.write(MANIFESTS)
        yield stage


@pytest.mark.sampled
@pytest.mark.parametrize("is_saved", [True, False], ids=["saved", "shown"])
@pytest.mark.parametrize("what", EDITS["planned"])
def test_what_was_changed_by_hand_is_refused(stage: ServedProject, what: str, *, is_saved: bool) -> None:
    """Every attribute of everything that a plan touches which was saved, or is just shown.

    Exit 3, the resource is named, and nothing is sent.
    """
    address, *calls = EDITS["planned"][what]
    if is_saved:
        plan = stage.saved()
        stage.edited(calls)
        ran = stage("apply", plan)
    else:
        ran = stage("apply", "--auto-approve", meanwhile=lambda: stage.edited(calls))
    assert (ran.code, ran.writes) == (ExitCode.STALE, []), ran.err
    assert address in ran.err.replace("assignment of Intro to ", "content_target/Intro -> ")


@pytest.mark.parametrize("words", ["--expect-digest", "--auto-approve --expect-digest"])
def test_a_digest_lets_nobody_slip_in_between_plan_and_first_call(stage: ServedProject, words: str) -> None:
    """What is changed by hand while a plan is made and shown is found before the first call, though nobody is asked."""
    digest = str(stage("plan", "--format", "json").document["digest"])
    ran = stage("apply", *words.split(), digest, code=ExitCode.STALE, meanwhile=lambda: stage.edited(MEMBER))
    assert "group/Team has changed since the plan was made" in ran.err
    assert ran.writes == []


def test_the_workspace_is_compared_after_the_approval(stage: ServedProject) -> None:
    """While a plan waits for approval an audience gets another name: that makes the plan stale."""
    project = lmsconf.open(stage.root)

    def slowly(_: Plan) -> bool:
        stage.edited(EDITS["planned"]["audience to come, renamed"][1:])
        return True

    with pytest.raises(StalePlan):
        project.apply(project.plan(), approve=slowly)
    assert [one.operation for one in stage.sandbox.log if one.writes] == ["manual-groups.rename"]


def test_a_saved_plan_is_compared_again_once_it_has_the_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another machine changes while a run waits for its lock makes a saved plan stale: only the lock is sent."""
    edits = [EDITS["planned"]["audience to come, renamed"][1:]]

    def change_meanwhile(seen: LoggedRequest) -> None:
        if seen.operation == "manual-groups.create" and edits:
            stage.edited(edits.pop())

    options = f"{OPTIONS}lock: {{lease: 10m}}\n"
    with staged(tmp_path, SEED, monkeypatch, options, DIALECT, on_log=change_meanwhile) as stage:
        stage.write(MANIFESTS)
        sent = [one.operation for one in stage("apply", stage.saved(), code=ExitCode.STALE).writes]
        assert sorted(sent) == ["manual-groups.create", "manual-groups.delete", "manual-groups.rename"]


def test_the_plan_is_applied_where_nothing_was_changed(stage: ServedProject) -> None:
    """The same plan goes through on the workspace that it was made for."""
    assert len(stage("apply", stage.saved(), code=0).writes) > 20


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("what", EDITS["unrelated"])
def test_unrelated_drift_does_not_block(stage: ServedProject, what: str) -> None:
    """What the plan neither changes nor leans on is nobody's business."""
    plan = stage.saved()
    stage.edited(EDITS["unrelated"][what])
    stage("apply", plan, code=0)


def test_a_refusal_shows_reviewed_then_and_now(stage: ServedProject) -> None:
    """Key by key in the words of the manifest: what the plan wants, what was live then, what is live now.

    Scripts find one problem a resource, with its address, and no call attempted.
    """
    plan = stage.saved()
    stage.edited([*MEMBER, ["custom-fields.replace", {"customFieldId": "f-1"}, {"description": "By hand"}]])
    first, _, rest = stage("apply", plan).err.partition("  description:")
    assert first.endswith(
        "manifests/all.yaml:3:5: error: custom_field/Dept has changed since the plan was made: "
        "description changed [plan/stale]\n"
    )
    assert rest == (
        """
    reviewed:  "New"
    live then: "Old"
    live now:  "By hand"
  Plan again and review it.
manifests/all.yaml:7:5: error: group/Team has changed since the plan was made: members changed [plan/stale]
  members (1 unchanged):
    reviewed:  "cy@acme.example"
    live then: only the unchanged
    live now:  "di@acme.example"
  Plan again and review it.

2 errors.
"""
    )
    document: Any = stage("apply", plan, "--format", "json").document
    told = [(one["code"], one["address"]) for one in document["problems"]]
    assert told == [("plan/stale", "custom_field/Dept"), ("plan/stale", "group/Team")]
    assert {one["status"] for one in document["outcomes"]} == {"not_attempted"}


@pytest.mark.parametrize("twin", ["g-1", "g-2"])
def test_twins_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, twin: str) -> None:
    """Of two groups of one name, one changes and one goes: whichever was changed by hand, the plan is refused."""
    seed = (
        "people: [{email: a@acme.example, id: u-a}, {email: b@acme.example, id: u-b}]\n"
        "groups:\n  - {name: A, id: g-1, managers: [a@acme.example]}\n"
        "  - {name: A, id: g-2, members: [a@acme.example], managers: [a@acme.example]}\n"
    )
    with staged(tmp_path, seed, monkeypatch, "ownership: {groups: all}\nguards: off\n") as stage:
        stage.write("groups: [{name: A, id: g-1, members: [a@acme.example]}]")
        plan = stage.saved()
        for come, go, code in (("u-b", "u-a", ExitCode.STALE), ("u-a", "u-b", ExitCode.OK)):
            stage.hand("manual-groups.add-managers", {"groupId": twin}, {"userIds": [come]})
            stage.hand("manual-groups.remove-manager", {"groupId": twin, "userId": go})
            assert bool(stage("apply", plan, code=code).writes) is (code == ExitCode.OK)


def test_an_eleventh_field_is_foretold_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that was made by hand meanwhile takes the last place: the plan is refused before the service does it."""
    seed = "custom_fields:\n" + "".join(f"  - {{name: F{n}, type: TEXT}}\n" for n in range(9))
    with staged(tmp_path, seed, monkeypatch) as stage:
        stage.write("custom_fields: [{name: New, type: TEXT}]")
        plan = stage.saved()
        stage.hand("custom-fields.create", body={"name": "By hand", "type": "TEXT"})
        assert stage("apply", plan, code=ExitCode.STALE).writes == []


def test_a_form_of_times_that_only_other_assignments_show_is_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan writes times as all assignments that it reads show them; its comparison reads those that it changes."""
    line = "{{content: {}, assign_to: [everyone], visible_from: 2026-0{}-01T00:00:00Z}}"
    first, second = line.format("Intro", 1), line.format("Basics", 2)
    seed = f"content: [{{name: Intro}}, {{name: Basics}}]\ncontent_targets: [{first}]\n"
    with staged(tmp_path, seed, monkeypatch, dialect={"content-targets.time-format": "epoch-ms"}) as stage:
        stage.write(f"content_targets: [{first}, {second}]\n")
        assert [call.path for call in stage("apply", "--auto-approve", code=0).writes] == ["/content/targets"]


def test_what_cannot_be_planned_again_is_shown_as_it_was_reviewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audience was deleted by hand: the whole reviewed assignment is shown, in its own letters."""
    with staged(tmp_path, "groups: [{name: Größe, id: g-1}]\ncontent: [{name: Intro}]\n", monkeypatch) as stage:
        stage.write("content_targets: [{content: Intro, assign_to: [{group: Größe}]}]")
        plan = stage.saved()
        stage.hand("manual-groups.delete", {"groupId": "g-1"})
        ran = stage("apply", plan, code=ExitCode.STALE)
        assert '\n  reviewed:  {"assign_to": [{"group": "Größe"}], "content": "Intro", ' in ran.err
        assert "\n  live then: not there\n" in ran.err
