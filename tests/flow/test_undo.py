"""`plan --undo RUN` from the command line: what comes back, what is left alone, and what is refused."""

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest
from flow.project import runs_of
from json_schemas import schema_validator
from msgspec.structs import replace
from sampling import PARTS
from texts import text_of

from lmsconf.api.spec.value_encoding import PickedChoice, build_answers_body, encode_answer
from lmsconf.documents.journal.journal_folder import decode_line, encode_line
from lmsconf.documents.snapshot_file import dumps, loads
from lmsconf.planner.undo.three_way_merge import restores, with_names

from .project import Project
from .shell import lmsconf

pytestmark = pytest.mark.sampled(day=8, daily=False)

SEED = text_of(__file__, "undo_seed.yaml")
OPTIONS = "guards: off\ntimezone: Europe/Stockholm\npeople: {create: true}\n"


def started(tmp_path: Path, manifests: str, seed: str = SEED) -> Project:
    """A project in which these manifests have been applied, and what the workspace held before in `before.json`."""
    project = Project(tmp_path, seed, OPTIONS)
    project.write(manifests)
    assert lmsconf(project.root, "snapshot", "before.json").code == 0
    lmsconf(project.root, "apply", "--auto-approve", code=0)
    return project


def undo_plan(project: Project, run: str = "latest") -> str:
    return lmsconf(project.root, "plan", "--undo", run, code=0).out


def undone(project: Project) -> str:
    """Plans the way back from the latest run and applies it; returns the plan as text."""
    planned = lmsconf(project.root, "plan", "--undo", "latest", "--out", "undo.json", code=0)
    assert "so only what it touched was checked." in lmsconf(project.root, "apply", "undo.json", code=0).out
    return planned.out


def held(project: Project, file: str | None = None) -> dict[str, Any]:
    """What a snapshot holds, with names in the place of ids."""
    if file is None:
        file = "after.json"
        assert lmsconf(project.root, "snapshot", file).code == 0
    snapshot = json.loads((project.root / file).read_text())
    for key in ("format", "tool", "taken_at", "seal", "choice_holders", "holders", "admin", "people"):
        snapshot.pop(key, None)
    names: dict[str, str] = {}
    for field in snapshot["custom_field"]:
        names |= {one["id"]: one["name"] for one in (field, *field.get("choices", []))}
    for kind in ("group", "smart_group"):
        names |= {one["id"]: one["name"] for one in snapshot[kind]}
    named: dict[str, Any] = json.loads(json.dumps(_named(snapshot, names)))
    return named


def _named(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _named(item, names) for key, item in value.items() if item not in ("", False)}
    if isinstance(value, list):
        return sorted((_named(item, names) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    return names.get(value, value) if isinstance(value, str) else value


def assert_as_before(project: Project) -> None:
    before, after = held(project, "before.json"), held(project)
    # An account is archived, and not deleted.
    after["user"] = [one for one in after["user"] if one["email"] != "new@acme.example" or not one["archived"]]
    differing = [key for key in after if after[key] != before.get(key)]
    assert differing == [], "\n".join(f"{before.get(key)}\n{after[key]}" for key in differing)


CHANGES = {
    "deleted": "absent: {groups: [Coaches], smart_groups: [Coders]}",
    "answers": "custom_fields: [{name: Dept, choices: [Sales, IT]}, {name: Skills, choices: {exclude: [Go]}}]\n"
    "absent: {custom_fields: [Badge]}",
    "field": "absent: {smart_groups: [Coders], custom_fields: [Grade, Dept]}",
    "renamed": "custom_fields: [{name: Unit, previously: [Dept],"
    " choices: [Sales, {name: People, previously: [HR]}, IT], hidden: false,"
    " description: null}]\ngroups: [{name: Mentors, previously: [Coaches],"
    " members: [root@acme.example], managers: []}]\n"
    "content_targets: [{content: GDPR basics, assign_to: [{group: Mentors}]},"
    " {content: First aid, assign_to: [everyone]}]",
    "conditions": "custom_fields: [{name: Level, type: CHOICE, choices: [A, B]}]\nsmart_groups:"
    " [{name: Coders, conditions: [{field: Level, choices: [A]}], managers: []}]",
    "answers to a new field": "custom_fields: [{name: Floor, type: TEXT},"
    " {name: Level, type: CHOICE, choices: [A, B]}]\n"
    "users: [{email: anna@acme.example, answers: {Floor: '4', Level: B}}]",
    "a person who loses an answer": "absent: {custom_fields: [Badge]}\nusers: [{email: anna@acme.example,"
    " first_name: Anne, metadata: {cost: X}, answers: {Skills: [C]}}]",
    "people": "users: [{email: anna@acme.example, first_name: Anne, language: en, admin: true, applications: [create],"
    " metadata: {cost: X, unit: B}, answers: {Dept: HR, Skills: [C, Go], Badge: null}},"
    " {email: mo.new@acme.example, previously: [mo@acme.example], manager: false, archived: true}]",
}


@pytest.mark.parametrize(
    "change", [pytest.param(one, marks=pytest.mark.sampled(day=1 if one == "deleted" else PARTS)) for one in CHANGES]
)
def test_an_undo_restores_what_a_run_changed(tmp_path: Path, change: str) -> None:
    """Members, managers, assignments, flags, windows, conditions, rights, metadata and answers are as before."""
    project = started(tmp_path, CHANGES[change])
    saved = json.loads(lmsconf(project.root, "plan", "--undo", "latest", "--format", "json").out)
    assert [problem["message"] for problem in saved["problems"] if problem["code"] == "undo/conflict"] == []
    undone(project)
    assert_as_before(project)
    again = lmsconf(project.root, "plan", "--undo", json.loads((tmp_path / "undo.json").read_text())["undo_of"]["run"])
    assert "No changes. Nothing is left to undo of the run " in again.out


@pytest.mark.sampled(daily=False)
def test_an_undo_is_a_plan_like_any_other(tmp_path: Path) -> None:
    """It names the run, fits the schema, selects with --only, and its own run can be undone."""
    project = started(tmp_path, CHANGES["deleted"])
    text = undone(project)
    run = json.loads((tmp_path / "undo.json").read_text())["undo_of"]
    assert f"This plan undoes the run {run['run']}.\n" in text
    assert f"      run {run['run']}\n" in text
    schema_validator("plan").validate(json.loads((tmp_path / "undo.json").read_text()))
    part = lmsconf(project.root, "plan", "--undo", "latest", "--only", "smart_group/Coders")
    assert "Plan: 0 to create, 0 to change, 1 to delete" in part.out
    assert "group/Coaches" not in part.out
    undone(project)
    assert [group["name"] for group in held(project)["group"]] == ["Others"]


def test_the_plan_says_what_the_undo_restores(tmp_path: Path) -> None:
    """Answers that are read come back, and so do conditions; an account is archived; no name is made empty again."""
    project = Project(tmp_path, SEED + "  - {content: First aid, assign_to: [{group: Others}]}\n", OPTIONS)
    project.write(
        CHANGES["answers"] + "\nsmart_groups: [{name: Coders, conditions: [{field: Grade, choices: [G2]}]}]\nusers:\n"
        "  - {email: new@acme.example, first_name: A, last_name: B, language: en}\n"
        "  - {email: anna@acme.example, first_name: Anne}\n"
        "  - {email: mo@acme.example, first_name: Mo}\n"
    )
    planned = json.loads(lmsconf(project.root, "plan", "--format", "json").out)
    levels = {change["address"]: change["undo"] for change in planned["changes"]}
    assert levels["custom_field/Badge"] == {
        "level": "partial",
        "reason": "the field comes back with another id, and with people's answers",
    }
    assert (
        levels["custom_field/Dept"]["reason"] == "deleted choices come back with other ids, and with people's answers"
    )
    assert levels["user/new@acme.example"]["reason"] == "the account can be archived, and not deleted"
    assert levels["user/anna@acme.example"] == levels["smart_group/Coders"] == {"level": "full", "reason": None}
    assert levels["user/mo@acme.example"] == {
        "level": "partial",
        "reason": "first_name cannot be made empty again",
    }
    assert lmsconf(project.root, "apply", "--auto-approve").code == 0
    assert "the account can be archived, and not deleted [undo/limited]" in undone(project)
    people = {person["email"]: person for person in held(project)["user"]}
    assert people["new@acme.example"]["archived"] is True


@pytest.mark.sampled(daily=False)
def test_what_others_have_changed_since_is_shown_and_left_alone(tmp_path: Path) -> None:
    """A conflict names what was there, what the run made and what is live; nothing of it is planned."""
    project = started(
        tmp_path,
        CHANGES["renamed"] + "\nsmart_groups: [{name: Coders, conditions: [{field: Skills, choices: [C]}]},"
        " {name: New ones, conditions: [{field: Skills, choices: [Go]}]}]\n",
    )
    project.send("manual-groups.rename", {"groupId": "g-1"}, {"name": "By hand"})
    project.send(
        "smart-groups.replace-conditions",
        {"smartGroupId": "s-1"},
        {"conditions": [{"customFieldId": "f-2", "choiceIds": [], "systemCondition": "IS_ANY"}]},
    )
    text = undone(project)
    message = "smart_group/Coders: conditions has changed since the run, and is left alone [undo/conflict]"
    assert message in text.replace("warning: conditions", "warning: smart_group/Coders: conditions")
    assert 'Before the run: [{"field": "Grade", "choices": ["G1"]}]. The run made: [{' in text
    assert "The run made: Mentors. Live now: By hand." in text
    after = held(project)
    assert {group["name"] for group in after["group"]} == {"By hand", "Others"}
    [coders] = after["smart_group"]
    assert coders["conditions"] == [{"field": "Skills", "choices": [], "system_condition": "IS_ANY"}]
    # The rest of the group is as it was.
    assert next(group for group in after["group"] if group["name"] == "By hand")["members"] == ["u-anna", "u-mo"]


def test_a_resource_that_others_have_filled_is_not_deleted(tmp_path: Path) -> None:
    """A group with a new member or assignment, and a field that somebody has answered, stay; each is reported."""
    project = started(
        tmp_path,
        "custom_fields: [{name: Level, type: CHOICE, choices: [A, B]}, {name: Floor, type: TEXT}]\n"
        "groups: [{name: One, members: [mo@acme.example]}, {name: Two},"
        " {name: Three, members: {include: [mo@acme.example]}, managers: {exclude: [mo@acme.example]}}]\n",
    )
    rows = held_ids(project)
    project.send("manual-groups.add-members", {"groupId": rows["One"]}, {"userIds": ["u-anna"]})
    project.send("content-targets.create", None, {"contentId": "c-2", "targetId": rows["Two"]})
    for id in ("u-anna", "u-mo"):
        answers = answers_body(project, {rows["Floor"]: ("TEXT", "4")})
        project.send("users.update-custom-field-choice", {"userId": id}, answers)
    text = undone(project)
    assert "Plan: 0 to create, 0 to change, 2 to delete" in text
    assert text.count("[undo/conflict]") == 3
    assert "custom_field/Floor: it is not deleted: 2 people have answered it since the run" in text
    assert {"One", "Two", "Floor"} <= held_ids(project).keys()
    assert not {"Three", "Level"} & held_ids(project).keys()


def test_a_choice_that_others_have_picked_since_is_not_taken_back(tmp_path: Path) -> None:
    """The run added two choices; one of them was picked since, so that the field stays as the run left it."""
    project = started(tmp_path, "custom_fields: [{name: Skills, choices: {include: [Rust, Zig]}}]")
    field: Any = project.fields()["Skills"]
    [picked] = [choice["choiceId"] for choice in field["choices"] if choice["name"] == "Zig"]
    body = answers_body(project, {field["customFieldId"]: ("MULTI_SELECT", [picked])})
    project.send("users.update-custom-field-choice", {"userId": "u-mo"}, body)
    ran = lmsconf(project.root, "plan", "--undo", "latest", code=0)
    assert (
        "custom_field/Skills: it is left alone, because people have chosen since the run what it added"
        in ran.out + ran.err
    )


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(("by_hand", "kept"), [("4", False), ("5", True)])
def test_an_answer_that_others_have_changed_keeps_a_new_field(tmp_path: Path, by_hand: str, kept: bool) -> None:
    """The run gave an answer to the field that it created; deleting the field would delete what is there now."""
    project = started(
        tmp_path,
        "custom_fields: [{name: Floor, type: TEXT}]\nusers: [{email: anna@acme.example, answers: {Floor: '4'}}]",
    )
    body = answers_body(project, {held_ids(project)["Floor"]: ("TEXT", by_hand)})
    project.send("users.update-custom-field-choice", {"userId": "u-anna"}, body)
    text = undo_plan(project) if kept else undone(project)
    assert ("custom_field/Floor: it is not deleted: 1 person has answered it since the run" in text) is kept
    assert ("[undo/conflict]" in text) is kept
    assert ("custom_field/Floor will be deleted" in text) is not kept


def _as_encoded(answer: str | list[str]) -> str | list[PickedChoice]:
    return answer if isinstance(answer, str) else [PickedChoice(id, "") for id in answer]


def answers_body(project: Project, answers: Mapping[str, tuple[str, str | list[str]]]) -> dict[str, object]:
    """The body that gives a person these answers, in the dialect of the project. answers: field id → type, answer."""
    behaviour = project.spec.behaviour
    body = build_answers_body(
        behaviour,
        {field: encode_answer(behaviour, type, _as_encoded(answer)) for field, (type, answer) in answers.items()},
    )
    made: dict[str, object] = json.loads(json.dumps(body))
    return made


def held_ids(project: Project) -> dict[str, str]:
    """Name → id of groups and fields."""
    assert lmsconf(project.root, "snapshot", "now.json").code == 0
    snapshot = json.loads((project.root / "now.json").read_text())
    return {row["name"]: row["id"] for kind in ("group", "custom_field") for row in snapshot[kind]}


def test_a_choice_that_others_have_renamed_since_keeps_its_name(tmp_path: Path) -> None:
    """The other choices get back the names that they had before the run."""
    choices = "{name: Sold, previously: [Sales]}, {name: People, previously: [HR]}, IT"
    project = started(tmp_path, f"custom_fields: [{{name: Dept, choices: [{choices}]}}]")
    project.write_options(OPTIONS + "dialect: {custom-fields.in-use: never}\n")
    dept = project.fields()["Dept"]
    live = cast("list[dict[str, str]]", dept["choices"])
    by_hand = [{**one, "name": one["name"].replace("People", "Staff")} for one in live]
    body = {"name": "Dept", "type": dept["type"], "choices": by_hand}
    project.send("custom-fields.replace", {"customFieldId": str(dept["customFieldId"])}, body)
    assert "Before the run: HR. The run made: People. Live now: Staff." in undone(project)
    now = cast("list[dict[str, str]]", project.fields()["Dept"]["choices"])
    assert [one["name"] for one in now] == ["Sales", "Staff", "IT"]


@pytest.mark.sampled(day=2)
def test_of_what_was_created_again_twice_the_newest_counts(tmp_path: Path) -> None:
    """Somebody deleted the first one: the next undo completes the second, and sees that it is there."""
    project = started(tmp_path, "absent: {groups: [Others]}")
    [journal] = runs_of(tmp_path).glob("*.jsonl")
    lmsconf(project.root, "plan", "--undo", "latest", "--out", "undo.json", code=0)
    lmsconf(project.root, "apply", "undo.json", code=0)
    project.send("manual-groups.delete", {"groupId": held_ids(project)["Others"]})
    lmsconf(project.root, "apply", "undo.json", code=0)
    project.send("manual-groups.remove-member", {"groupId": held_ids(project)["Others"], "userId": "u-mo"})
    assert "Plan: 0 to create, 1 to change, 0 to delete" in undo_plan(project, journal.stem)


def test_an_assignment_that_others_have_made_again_is_left_alone(tmp_path: Path) -> None:
    """A deleted one that is live again with other terms keeps those, and the undo shows both."""
    project = started(tmp_path, "absent: {content_targets: [{content: GDPR basics, assign_to: [{group: Coaches}]}]}")
    project.send("content-targets.create", None, {"contentId": "c-1", "targetId": "g-1"})
    planned = undo_plan(project)
    assert "GDPR basics -> group/Coaches: it has changed since the run, and is left alone [undo/conflict]" in planned
    assert "comes back" not in planned
    assert "No changes." in planned


def test_an_assignment_that_others_have_made_again_as_it_was_is_not_told(tmp_path: Path) -> None:
    """Nothing of it is undone, so the undo says nothing of it."""
    project = started(tmp_path, "absent: {content_targets: [{content: GDPR basics, assign_to: [{group: Coaches}]}]}")
    assert "comes back with another id" in undo_plan(project)
    [journal] = runs_of(tmp_path, "sandbox:workspace.db").glob("*.jsonl")
    project.write(
        "content_targets: [{content: GDPR basics, mandatory: true, visible_until: '2030-06-30T12:00:00Z',"
        " assign_to: [{group: Coaches}]}]"
    )
    assert lmsconf(project.root, "apply", "--auto-approve").code == 0
    planned = undo_plan(project, journal.stem)
    assert "Nothing is left to undo of the run" in planned
    assert "comes back" not in planned


def test_a_field_with_choices_of_its_old_and_its_new_name_gets_its_name_back(tmp_path: Path) -> None:
    """The undo of its rename takes no choice for the field: an answer that the run changed too comes back as well."""
    project = started(
        tmp_path,
        "custom_fields: [{name: Unit, previously: [Dept], choices: [Unit, Dept]}]\n"
        "users: [{email: anna@acme.example, answers: {Unit: Unit}}]\n",
        "custom_fields: [{name: Dept, type: CHOICE, choices: [Unit, Dept]}]\n"
        "people: [{email: anna@acme.example, id: u-anna, answers: {Dept: Dept}}]\n",
    )
    undone(project)
    assert_as_before(project)


def test_a_twin_of_a_deleted_group_is_left_alone(tmp_path: Path) -> None:
    """Somebody has made a group of that name since: no second one is created, and its members are not touched."""
    project = started(tmp_path, CHANGES["deleted"])
    project.send("manual-groups.create", None, {"name": "Coaches"})
    text = undone(project)
    assert 'it is not created again: another live resource has the name "Coaches" [undo/conflict]' in text
    assert "group/Coaches is not there" in text
    [coaches] = [group for group in held(project)["group"] if group["name"] == "Coaches"]
    assert "members" not in coaches or coaches["members"] == []


def test_what_has_the_name_of_what_a_run_made_is_not_taken_for_it(tmp_path: Path) -> None:
    """Somebody has renamed the field of the run, and given its name to another: conditions on that one stay."""
    project = started(tmp_path, CHANGES["conditions"])
    project.write_options(OPTIONS + "dialect: {custom-fields.in-use: never}\n")
    project.settled("custom_fields: [{name: Old level, previously: [Level]}]")
    project.settled(
        "custom_fields: [{name: Level, type: CHOICE, choices: [A]}]\n"
        "smart_groups: [{name: Coders, conditions: [{field: Level, choices: [A]}]}]"
    )
    planned = undo_plan(project)
    assert "conditions has changed since the run, and is left alone" in planned
    assert 'The run made: [{"choices": ["A"], "field": "Old level"}]. Live now: [{"field": "Level"' in planned
    assert "The run made: Level. Live now: Old level." in planned
    assert "0 to delete" in planned


def test_values_follow_what_others_have_renamed_since(tmp_path: Path) -> None:
    """A condition on a field, and on a choice, that go by other names since comes back with those names."""
    project = started(tmp_path, CHANGES["conditions"])
    project.settled("custom_fields: [{name: Mark, previously: [Grade], choices: [{name: Best, previously: [G1]}, G2]}]")
    planned = undo_plan(project)
    assert "[undo/conflict]" not in planned
    assert "+ Mark is Best\n" in planned


def test_an_answer_that_others_have_given_in_the_place_of_a_deleted_one_stays(tmp_path: Path) -> None:
    """The choice that the run deleted comes back, and nobody gets it back who has picked another since."""
    project = started(tmp_path, "custom_fields: [{name: Dept, choices: [Sales, IT]}]")
    project.settled("users: [{email: mo@acme.example, answers: {Dept: IT}}]")
    planned = undo_plan(project)
    assert "answers has changed since the run, and is left alone [undo/conflict]" in planned
    assert "Before the run: HR. The run made: nothing. Live now: IT." in planned


@pytest.mark.parametrize("option", [("--base", "x"), ("--snapshot", "x"), ("--additive",), ("--rehearse",)])
def test_options_that_do_not_go_with_undo(tmp_path: Path, option: tuple[str, ...]) -> None:
    """They exit 64."""
    ran = lmsconf(Project(tmp_path, SEED, OPTIONS).root, "plan", "--undo", "latest", *option)
    assert (ran.code, "exclude each other" in ran.err) == (64, True)


def test_a_run_that_cannot_be_undone_here(tmp_path: Path) -> None:
    """Without its files, or from another workspace, it exits 1 with the reason; apply and `runs` print the command."""
    project = Project(tmp_path, SEED, OPTIONS)
    project.write(CHANGES["deleted"])
    assert "no run matches 'latest'" in lmsconf(project.root, "plan", "--undo", "latest", code=1).err
    applied = lmsconf(project.root, "apply", "--auto-approve")
    [journal] = (tmp_path / ".lmsconf" / "runs").glob("*/*.jsonl")
    line = f"Undo: lmsconf plan --undo {journal.stem} --out undo.json\n"
    assert line in applied.out
    assert line in lmsconf(project.root, "runs", "latest").out
    kept = journal.with_suffix(".before.json")
    assert kept.stat().st_mode & 0o777 == 0o600
    elsewhere = lmsconf(project.root, "plan", "--undo", "latest", env={"LMSCONF_URL": "sandbox:other.db"})
    assert (elsewhere.code, "was on the workspace sandbox" in elsewhere.err) == (1, True)
    kept.write_text(kept.read_text().replace("anna@", "anne@"))
    assert "is not the earlier state" in lmsconf(project.root, "plan", "--undo", "latest", code=1).err
    kept.unlink()
    assert "is not kept" in lmsconf(project.root, "plan", "--undo", "latest", code=1).err


def test_an_empty_name_of_a_person_does_not_come_back(tmp_path: Path) -> None:
    """The service takes no empty text, so the name of the run stays; the undo says why, and restores the rest."""
    project = started(tmp_path, "users: [{email: mo@acme.example, first_name: Mo, manager: false}]")
    text = undone(project)
    assert "first_name is left as it is: the service takes no empty text [undo/conflict]" in text
    assert text.count("[undo/conflict]") == 1
    [mo] = [one for one in held(project)["user"] if one["email"] == "mo@acme.example"]
    assert (mo["first_name"], mo["manager"]) == ("Mo", True)


TO_MO = "content_targets: [{content: GDPR basics, assign_to: [{user: mo@acme.example}]}]"
ASSIGNED = SEED.partition("content_targets:")[0] + TO_MO.replace("assign_to", "mandatory: true, assign_to")


@pytest.mark.parametrize("manifests", [f"absent: {{{TO_MO}}}", TO_MO], ids=["deleted", "changed"])
def test_an_assignment_to_a_person_comes_back_whatever_its_type_is_called(tmp_path: Path, manifests: str) -> None:
    """All groups are kept, so an id that none of them has is that of the person."""
    project = Project(tmp_path, ASSIGNED, OPTIONS)
    assert lmsconf(project.root, "snapshot", "seeded.json").code == 0
    with closing(sqlite3.connect(tmp_path / "workspace.db")) as store, store:
        store.execute("UPDATE people SET first_name = 'Somebody'")  # The assignment has it for a label.
        store.execute("UPDATE targets SET type = 'PERSON'")
    assert lmsconf(project.root, "snapshot", "before.json").code == 0
    project.write(manifests)
    assert lmsconf(project.root, "apply", "--auto-approve").code == 0
    undone(project)
    before, after = (held(project, file)["content_target"] for file in ("before.json", None))
    assert [one | {"type": "PERSON"} for one in after] == before


@pytest.mark.parametrize(
    ("manifests", "left"),
    [(f"absent: {{{TO_MO}}}", "created again"), (TO_MO, "changed back")],
    ids=["deleted", "changed"],
)
def test_an_assignment_to_an_unknown_audience_does_not_come_back(tmp_path: Path, manifests: str, left: str) -> None:
    """Where the kept state does not name its audience, it is left alone, and nobody else gets the content."""
    project = started(tmp_path, manifests, ASSIGNED)
    [journal] = (tmp_path / ".lmsconf" / "runs").glob("*/*.jsonl")
    kept = journal.with_suffix(".before.json")
    snapshot = loads(kept.read_text())
    people = replace(snapshot.listings["user"], rows=())
    kept.write_text(dumps(replace(snapshot, listings={**snapshot.listings, "user": people})))
    opening, rest = journal.read_bytes().split(b"\n", 1)
    entry = {**(decode_line(opening) or {}), "pre_image_sha256": sha256(kept.read_bytes()).hexdigest()}
    journal.write_bytes(encode_line(entry) + rest)
    planned = lmsconf(project.root, "plan", "--undo", "latest")
    assert f"it is not {left}: what it was for is not recorded [undo/conflict]" in planned.out
    assert "No changes." in planned.out


@pytest.mark.parametrize(
    ("manifests", "left"),
    [
        ("absent: {content_targets: [{content: GDPR basics, assign_to: [everyone]}]}", "created again"),
        ("content_targets: [{content: GDPR basics, mandatory: true, assign_to: [everyone]}]", "left as it is"),
    ],
    ids=["deleted", "changed"],
)
def test_a_window_that_no_manifest_can_declare_does_not_come_back(tmp_path: Path, manifests: str, left: str) -> None:
    """The plan says that it cannot be undone, and the undo says why it leaves the assignment alone."""
    window = "visible_from: '2030-06-30T12:00:00Z', visible_until: '2030-06-30T12:00:00Z'"
    assigned = f"content_targets: [{{content: GDPR basics, {window}, assign_to: [everyone]}}]"
    Project(tmp_path, SEED.partition("content_targets:")[0] + assigned, OPTIONS).write(manifests)
    assert "Cannot be undone: no manifest can declare its window." in lmsconf(tmp_path, "plan").out
    assert lmsconf(tmp_path, "apply", "--auto-approve").code == 0
    planned = lmsconf(tmp_path, "plan", "--undo", "latest", code=0)
    told = "no manifest can declare it: GDPR basics: the window ends before it begins [undo/conflict]"
    assert (left in planned.out, told in planned.out, "Nothing more can be undone" in planned.out) == (True, True, True)


def test_what_has_more_than_before_is_not_as_it_was() -> None:
    """Others have made it again with a window of its own: that is their change, and told."""
    before, after = {"mandatory": True}, {"mandatory": False}
    assert restores(before, after, {"mandatory": True}) is False
    assert restores(before, after, {"mandatory": True, "visible_until": "2027-01-01T00:00:00Z"}) is None


def test_a_form_that_is_none_of_a_manifest_keeps_its_names() -> None:
    form: dict[str, Any] = {"conditions": [{"choices": ["A"]}], "assign_to": [{"strange": "Team"}, "an-id"]}
    assert with_names(form, {("custom_field", "A"): "B"}) == form
