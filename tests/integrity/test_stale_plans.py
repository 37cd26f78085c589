"""A plan is refused when anything that it touches was changed by hand after it was reviewed, and nothing is sent."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import cast

import pytest
from texts import text_of
from wire.second_dialect import known_dialect

from lmsconf.cli import app, run_command_line
from lmsconf.model.canonical_json import Json

from .served_project import Screen, ServedProject, staged

pytestmark = pytest.mark.sampled(day=8)

SEED = text_of(__file__, "stale_plans_seed.yaml")
MANIFESTS = text_of(__file__, "stale_plans_manifests.yaml")
DIALECT: Mapping[str, str | int] = {"custom-fields.in-use": "never"}
OPTIONS = f"guards: off\ndialect: {json.dumps({**known_dialect(), **DIALECT})}\n"
Hand = Callable[[ServedProject], object]


def fields(stage: ServedProject) -> dict[str, dict[str, Json]]:
    """The live fields by name."""
    answer = cast("dict[str, list[dict[str, Json]]]", stage.hand("custom-fields.list"))
    return {str(one["name"]): one for one in answer["customFields"]}


def choice(stage: ServedProject, field: str, name: str) -> str:
    choices = cast("list[dict[str, str]]", fields(stage)[field]["choices"])
    return next(one["choiceId"] for one in choices if one["name"] == name)


def field(name: str, /, **edits: Json) -> Hand:
    """Somebody edits a field: keys as they are on the wire."""

    def edit(stage: ServedProject) -> object:
        live = fields(stage)[name]
        body = {key: live[key] for key in ("name", "type", "choices", "description") if key in live} | edits
        return stage.hand("custom-fields.replace", {"customFieldId": str(live["customFieldId"])}, body)

    return edit


def choices(name: str, edit: Callable[[list[Json]], list[Json]]) -> Hand:
    """Somebody edits the choices of a field."""
    return lambda stage: field(name, choices=edit(cast("list[Json]", fields(stage)[name]["choices"])))(stage)


def field_gone(name: str) -> Hand:
    return lambda stage: stage.hand(
        "custom-fields.delete", {"customFieldId": str(fields(stage)[name]["customFieldId"])}
    )


def conditions(group: str, name: str, *named: str, system: str | None = None) -> Hand:
    """Somebody replaces the conditions of a smart group by one."""

    def edit(stage: ServedProject) -> object:
        one: dict[str, Json] = {
            "customFieldId": fields(stage)[name]["customFieldId"],
            "choiceIds": [choice(stage, name, each) for each in named],
        }
        body: Json = {"conditions": [one if system is None else {**one, "systemCondition": system}]}
        return stage.hand("smart-groups.replace-conditions", {"smartGroupId": group}, body)

    return edit


def call(operation: str, /, body: Json = None, **path: str) -> Hand:
    return lambda stage: stage.hand(operation, path, body)


def assign(content: str = "c-1", target: str = "g-team", **value: Json) -> Hand:
    return call("content-targets.create", {"contentId": content, "targetId": target, **value})


def both(*hands: Hand) -> Hand:
    return lambda stage: [one(stage) for one in hands]


def smart(name: str, field_name: str, choice_name: str) -> Hand:
    def make(stage: ServedProject) -> object:
        one = {
            "customFieldId": fields(stage)[field_name]["customFieldId"],
            "choiceIds": [choice(stage, field_name, choice_name)],
        }
        return stage.hand("smart-groups.create", body={"name": name, "conditions": [cast(Json, one)]})

    return make


AS_IT_WAS: Mapping[str, Json] = {"mandatory": False, "startTime": "2026-01-01T00:00:00Z"}
ENDS: Json = {"userIds": ["u-di"]}
ACCESS: Json = {"applicationId": "analyse"}

BY_HAND: Mapping[str, tuple[str, Hand]] = {
    # a field that changes
    "field, deleted": (
        "custom_field/Dept",
        both(call("smart-groups.delete", smartGroupId="sg-sellers"), field_gone("Dept")),
    ),
    "field, name": ("custom_field/Dept", field("Dept", name="Department")),
    "field, description": ("custom_field/Dept", field("Dept", description="By hand")),
    "field, description as planned": ("custom_field/Dept", field("Dept", description="New")),
    "field, hidden": ("custom_field/Dept", field("Dept", isHidden=True)),
    "field, locked": ("custom_field/Dept", field("Dept", isLocked=True)),
    "field, optional": ("custom_field/Dept", field("Dept", isOptional=True)),
    "field, choice added": ("custom_field/Dept", choices("Dept", lambda live: [*live, {"name": "By hand"}])),
    "field, choice removed": ("custom_field/Dept", choices("Dept", lambda live: live[:2])),
    "field, choice renamed": (
        "custom_field/Dept",
        choices("Dept", lambda live: [*live[:2], {**cast("dict[str, Json]", live[2]), "name": "Operations"}]),
    ),
    "field, choice made anew": ("custom_field/Dept", choices("Dept", lambda live: [*live[:2], {"name": "Ops"}])),
    "field to rename, deleted": ("custom_field/Is", field_gone("Was")),
    "field, made": ("custom_field/Fresh", call("custom-fields.create", {"name": "Fresh", "type": "TEXT"})),
    "field, look-alike made": ("custom_field/Fresh", call("custom-fields.create", {"name": "fresh", "type": "TEXT"})),
    "field to rename, renamed": ("custom_field/Is", field("Was", name="Else")),
    "field to rename, as planned": ("custom_field/Is", field("Was", name="Is")),
    "field to rename, its name taken": (
        "custom_field/Is",
        call("custom-fields.create", {"name": "Is", "type": "TEXT"}),
    ),
    "field to delete, description": ("custom_field/Gone", field("Gone", description="Needed")),
    "field to delete, choice": ("custom_field/Gone", choices("Gone", lambda live: [*live, {"name": "B"}])),
    "field to delete, renamed": ("custom_field/Gone", field("Gone", name="Kept")),
    "field to delete, deleted": ("custom_field/Gone", field_gone("Gone")),
    # a group that changes
    "group, name": ("group/Team", call("manual-groups.rename", {"name": "Crew"}, groupId="g-team")),
    "group, member added": ("group/Team", call("manual-groups.add-members", ENDS, groupId="g-team")),
    "group, member as planned": (
        "group/Team",
        call("manual-groups.add-members", {"userIds": ["u-cy"]}, groupId="g-team"),
    ),
    "group, member removed": ("group/Team", call("manual-groups.remove-member", groupId="g-team", userId="u-bo")),
    "group, manager added": ("group/Team", call("manual-groups.add-managers", ENDS, groupId="g-team")),
    "group, manager removed": ("group/Team", call("manual-groups.remove-manager", groupId="g-team", userId="u-vera")),
    "group, deleted": ("group/Team", call("manual-groups.delete", groupId="g-team")),
    "group, made": ("group/Made", call("manual-groups.create", {"name": "Made"})),
    "group, look-alike made": ("group/Made", call("manual-groups.create", {"name": "made "})),
    "group to rename, renamed": ("group/New name", call("manual-groups.rename", {"name": "Else"}, groupId="g-old")),
    "group to rename, as planned": (
        "group/New name",
        call("manual-groups.rename", {"name": "New name"}, groupId="g-old"),
    ),
    "group to rename, its name taken": ("group/New name", call("manual-groups.create", {"name": "New name"})),
    "group to rename, deleted": ("group/New name", call("manual-groups.delete", groupId="g-old")),
    "group to delete, member": ("group/Going", call("manual-groups.add-members", ENDS, groupId="g-going")),
    "group to delete, manager": ("group/Going", call("manual-groups.add-managers", ENDS, groupId="g-going")),
    "group to delete, renamed": ("group/Going", call("manual-groups.rename", {"name": "Kept"}, groupId="g-going")),
    "group to delete, assigned": ("content_target/Other -> group/Going", assign("c-3", "g-going")),
    "group to delete, deleted": ("group/Going", call("manual-groups.delete", groupId="g-going")),
    "group to delete, made anew": (
        "group/Going",
        both(call("manual-groups.delete", groupId="g-going"), call("manual-groups.create", {"name": "Going"})),
    ),
    # a smart group that changes
    "smart group, name": ("smart_group/Sellers", call("smart-groups.rename", {"name": "S"}, smartGroupId="sg-sellers")),
    "smart group, choice": ("smart_group/Sellers", conditions("sg-sellers", "Dept", "Sales", "Ops")),
    "smart group, field": ("smart_group/Sellers", conditions("sg-sellers", "Site", "Rome")),
    "smart group, system condition": (
        "smart_group/Sellers",
        conditions("sg-sellers", "Dept", "Sales", system="IS_NONE"),
    ),
    "smart group, as planned": ("smart_group/Sellers", conditions("sg-sellers", "Dept", "Sales", "HR")),
    "smart group, manager added": (
        "smart_group/Sellers",
        call("smart-groups.add-managers", ENDS, smartGroupId="sg-sellers"),
    ),
    "smart group, manager removed": (
        "smart_group/Sellers",
        call("smart-groups.remove-manager", smartGroupId="sg-sellers", userId="u-vera"),
    ),
    "smart group, deleted": ("smart_group/Sellers", call("smart-groups.delete", smartGroupId="sg-sellers")),
    "smart group, made": ("smart_group/Made smart", smart("Made smart", "Site", "Rome")),
    "smart group, look-alike made": ("smart_group/Made smart", smart("made smart", "Site", "Rome")),
    "smart group to rename, renamed": (
        "smart_group/New smart",
        call("smart-groups.rename", {"name": "Else"}, smartGroupId="sg-old"),
    ),
    "smart group to rename, its name taken": ("smart_group/New smart", smart("New smart", "Site", "Rome")),
    "smart group to delete, conditions": ("smart_group/Going smart", conditions("sg-going", "Site", "Oslo")),
    "smart group to delete, manager": (
        "smart_group/Going smart",
        call("smart-groups.add-managers", ENDS, smartGroupId="sg-going"),
    ),
    "smart group to delete, renamed": (
        "smart_group/Going smart",
        call("smart-groups.rename", {"name": "Kept"}, smartGroupId="sg-going"),
    ),
    "smart group to delete, assigned": ("content_target/Other -> smart_group/Going smart", assign("c-3", "sg-going")),
    "smart group to delete, deleted": ("smart_group/Going smart", call("smart-groups.delete", smartGroupId="sg-going")),
    # an assignment that changes
    "assignment, mandatory": (
        "content_target/Intro -> group/Team",
        assign(mandatory=True, startTime="2026-01-01T00:00:00Z"),
    ),
    "assignment, visible from": ("content_target/Intro -> group/Team", assign(startTime="2026-02-01T00:00:00Z")),
    "assignment, visible until": (
        "content_target/Intro -> group/Team",
        assign(**AS_IT_WAS, finishTime="2026-12-01T00:00:00Z"),
    ),
    "assignment, deleted": (
        "content_target/Intro -> group/Team",
        call("content-targets.delete", {"contentId": "c-1", "targetId": "g-team", "targetType": "GROUP"}),
    ),
    "assignment, made": ("content_target/Intro -> group/Audience", assign(target="g-aud")),
    "assignment to delete, mandatory": ("content_target/Basics -> group/Team", assign("c-2", mandatory=True)),
    "assignment to delete, deleted": (
        "content_target/Basics -> group/Team",
        call("content-targets.delete", {"contentId": "c-2", "targetId": "g-team", "targetType": "GROUP"}),
    ),
    # a person who changes
    "person, e-mail": (
        "user/anna@acme.example",
        call("users.update-email", {"email": "ann@acme.example"}, userId="u-anna"),
    ),
    "person, first name": (
        "user/anna@acme.example",
        call("users.update-fullname", {"firstName": "A"}, userId="u-anna"),
    ),
    "person, last name": ("user/anna@acme.example", call("users.update-fullname", {"lastName": "B"}, userId="u-anna")),
    "person, language": ("user/anna@acme.example", call("users.update-language", {"language": "de"}, userId="u-anna")),
    "person, metadata": (
        "user/anna@acme.example",
        call("users.update-metadata", {"metadata": {"cost": "300"}}, userId="u-anna"),
    ),
    "person, admin": ("user/anna@acme.example", call("user-access.make-admin", userId="u-anna", endow="true")),
    "person, manager": ("user/anna@acme.example", call("user-access.make-manager", userId="u-anna", endow="true")),
    "person, applications": ("user/anna@acme.example", call("user-access.set", ACCESS, userId="u-anna", action="ADD")),
    "person, archived": ("user/anna@acme.example", call("users.archive", userId="u-anna")),
    "person, deleted": ("user/anna@acme.example", call("users.delete", userId="u-anna")),
    "person, archive date": (
        "user/di@acme.example",
        call("users.set-custom-archived-date", {"date": 1}, userId="u-di"),
    ),
    # what a change leans on
    "member to come, deleted": ("group/Team", call("users.delete", userId="u-cy")),
    "member to come, another e-mail": (
        "group/Team",
        call("users.update-email", {"email": "x@acme.example"}, userId="u-cy"),
    ),
    "member to come, another person": (
        "group/Team",
        both(
            call("users.update-email", {"email": "x@acme.example"}, userId="u-cy"),
            call("users.create", {"email": "cy@acme.example", "firstName": "C", "lastName": "Y", "language": "en"}),
        ),
    ),
    "audience to come, deleted": (
        "content_target/Intro -> group/Audience",
        call("manual-groups.delete", groupId="g-aud"),
    ),
    "audience to come, renamed": (
        "content_target/Intro -> group/Audience",
        call("manual-groups.rename", {"name": "Crowd"}, groupId="g-aud"),
    ),
    "audience to come, made anew": (
        "content_target/Intro -> group/Audience",
        both(call("manual-groups.delete", groupId="g-aud"), call("manual-groups.create", {"name": "Audience"})),
    ),
    "audience to come, a twin": (
        "content_target/Intro -> group/Audience",
        call("manual-groups.create", {"name": "Audience"}),
    ),
}
"""What somebody does by hand → whom the refusal must name, and how it is done."""


def answered(field_name: str) -> Hand:
    def answer(stage: ServedProject) -> object:
        value: Json = choice(stage, "Dept", "Ops") if field_name == "Dept" else "9"
        body = {str(fields(stage)[field_name]["customFieldId"]): value}
        return stage.hand("users.update-custom-field-choice", {"userId": "u-anna"}, cast(Json, body))

    return answer


ALL = {
    **BY_HAND,
    "person, choice": ("user/anna@acme.example", answered("Dept")),
    "person, text": ("user/anna@acme.example", answered("Badge")),
}


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    with staged(tmp_path, SEED, monkeypatch, OPTIONS, DIALECT) as stage:
        stage.write(MANIFESTS)
        assert stage("plan", "--out", str(tmp_path / "plan.json")).code == 0
        yield stage


@pytest.mark.sampled
@pytest.mark.parametrize("what", ALL)
def test_what_was_changed_by_hand_is_refused(stage: ServedProject, what: str) -> None:
    """Every attribute of everything that the plan touches: exit 3, the resource is named, nothing is sent."""
    address, hand = ALL[what]
    hand(stage)
    ran = stage("apply", str(stage.root / "plan.json"))
    assert (ran.code, ran.writes) == (3, []), ran.err
    assert address in ran.err.replace("assignment of Intro to ", "content_target/Intro -> ")


def test_the_plan_is_applied_where_nothing_was_changed(stage: ServedProject) -> None:
    """The same plan goes through on the workspace that it was made for."""
    assert len(stage("apply", str(stage.root / "plan.json"), code=0).writes) > 20


@pytest.mark.sampled
@pytest.mark.parametrize(
    "hand",
    [
        call("manual-groups.delete", groupId="g-else"),
        call("manual-groups.add-members", ENDS, groupId="g-else"),
        call("manual-groups.add-members", ENDS, groupId="g-aud"),
        call("manual-groups.create", {"name": "Unheard of"}),
        field("Site", description="By hand"),
        smart("Another", "Site", "Rome"),
        assign("c-3", "g-else"),
        call("users.update-fullname", {"firstName": "Bosse"}, userId="u-bo"),
    ],
    ids=range(8),
)
def test_unrelated_drift_does_not_block(stage: ServedProject, hand: Hand) -> None:
    """What the plan neither changes nor leans on is nobody's business."""
    hand(stage)
    stage("apply", str(stage.root / "plan.json"), code=0)


def test_a_refusal_shows_reviewed_then_and_now(stage: ServedProject) -> None:
    """Key by key in the words of the manifest: what the plan wants, what was live then, what is live now."""
    call("manual-groups.add-members", ENDS, groupId="g-team")(stage)
    field("Dept", description="By hand")(stage)
    ran = stage("apply", str(stage.root / "plan.json"))
    first, _, rest = ran.err.partition("  description:")
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


def test_a_refusal_stands_in_the_document(stage: ServedProject) -> None:
    """Scripts find one problem a resource, with its address, and no call attempted."""
    call("manual-groups.add-members", ENDS, groupId="g-team")(stage)
    call("manual-groups.delete", groupId="g-old")(stage)
    document = stage("apply", str(stage.root / "plan.json"), "--format", "json").document
    problems = cast("list[dict[str, Json]]", document["problems"])
    assert [(one["code"], one["address"]) for one in problems] == [
        ("plan/stale", "group/New name"),
        ("plan/stale", "group/Team"),
    ]
    assert {cast("dict[str, Json]", one)["status"] for one in cast("list[Json]", document["outcomes"])} == {
        "not_attempted"
    }
    assert json.dumps(problems)


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
        plan = str(tmp_path / "plan.json")
        assert stage("plan", "--out", plan).code == 0
        call("manual-groups.add-managers", {"userIds": ["u-b"]}, groupId=twin)(stage)
        call("manual-groups.remove-manager", groupId=twin, userId="u-a")(stage)
        assert stage("apply", plan, code=3).writes == []
        call("manual-groups.add-managers", {"userIds": ["u-a"]}, groupId=twin)(stage)
        call("manual-groups.remove-manager", groupId=twin, userId="u-b")(stage)
        assert stage("apply", plan).code == 0


def test_an_eleventh_field_is_foretold_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that was made by hand meanwhile takes the last place: the plan is refused before the service does it."""
    seed = "custom_fields:\n" + "".join(f"  - {{name: F{n}, type: TEXT}}\n" for n in range(9))
    with staged(tmp_path, seed, monkeypatch) as stage:
        stage.write("custom_fields: [{name: New, type: TEXT}]")
        plan = str(tmp_path / "plan.json")
        assert stage("plan", "--out", plan).code == 0
        call("custom-fields.create", {"name": "By hand", "type": "TEXT"})(stage)
        assert stage("apply", plan, code=3).writes == []


def test_a_form_of_times_that_only_other_assignments_show_is_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan writes times as all assignments that it reads show them; its comparison reads those that it changes."""
    seed = (
        "content: [{name: Intro}, {name: Basics}]\n"
        "content_targets: [{content: Intro, assign_to: [everyone], visible_from: 2026-01-01T00:00:00Z}]\n"
    )
    with staged(tmp_path, seed, monkeypatch, dialect={"content-targets.time-format": "epoch-ms"}) as stage:
        stage.write(
            "content_targets:\n"
            "  - {content: Intro, assign_to: [everyone], visible_from: 2026-01-01T00:00:00Z}\n"
            "  - {content: Basics, assign_to: [everyone], visible_from: 2026-02-01T00:00:00Z}\n"
        )
        assert [call.path for call in stage("apply", "--auto-approve", code=0).writes] == ["/content/targets"]


@pytest.mark.parametrize("words", ["--auto-approve", "--expect-digest {}", "--auto-approve --expect-digest {}"])
def test_nobody_slips_in_between_plan_and_first_call(stage: ServedProject, words: str) -> None:
    """What is changed by hand while a plan is made and shown is found before the first call, though nobody is asked."""
    digest = str(stage("plan", "--format", "json").document["digest"])

    def by_hand() -> None:
        call("manual-groups.add-members", ENDS, groupId="g-team")(stage)
        stage.sandbox.log.clear()

    screen = Screen(by_hand)
    with redirect_stderr(screen), redirect_stdout(io.StringIO()):
        code = run_command_line(app, ["-C", str(stage.root), "apply", *words.format(digest).split()])
    assert screen.then is None
    assert code == 3, screen.getvalue()
    assert "group/Team has changed since the plan was made" in screen.getvalue()
    assert [one for one in stage.sandbox.log if one.writes] == []


def test_what_cannot_be_planned_again_is_shown_as_it_was_reviewed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audience was deleted by hand: the whole reviewed assignment is shown, in its own letters."""
    with staged(tmp_path, "groups: [{name: Größe, id: g-1}]\ncontent: [{name: Intro}]\n", monkeypatch) as stage:
        stage.write("content_targets: [{content: Intro, assign_to: [{group: Größe}]}]")
        plan = str(tmp_path / "plan.json")
        assert stage("plan", "--out", plan).code == 0
        call("manual-groups.delete", groupId="g-1")(stage)
        ran = stage("apply", plan, code=3)
        assert '\n  reviewed:  {"assign_to": [{"group": "Größe"}], "content": "Intro", ' in ran.err
        assert "\n  live then: not there\n" in ran.err
