"""What the service does not tell is not known: null in JSON, `not known` in text, and a guard that stops."""

import csv
import json
from collections.abc import Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from flow.altered_service import Altered, Edit
from flow.shell import lmsconf
from json_schemas import schema_validator
from laws.sandbox_project import document_of
from texts import text_of
from waiting import nobody_waits

from effects.crowd import CROWD, SEED, document, filled, guard, only, plan_of_people, project, seen
from lmsconf.documents.reports import people_json
from lmsconf.errors import ExitCode
from lmsconf.render.people_reports import people_csv
from lmsconf.render.text import plan_text
from lmsconf.sandbox.serve import serve

pytestmark = pytest.mark.sampled(daily=False)  # some seconds in all

NARROWED = "smart_groups: [{name: Sales, conditions: [{field: Dept, choices: [B]}]}]\n"
FEWER = "groups: [{name: Team, members: <people 5-30>}]\n"
COUNTS = ("before", "after", "gain", "lose", "keep", "to_mandatory", "to_optional", "window", "shortened")


def content(effects: Mapping[str, Any], name: str) -> dict[str, Any]:
    return only(effects["contents"], content=name)


def group(effects: Mapping[str, Any], address: str) -> dict[str, Any]:
    return only(effects["groups"], address=address)


def assert_not_known(plan: Mapping[str, Any], name: str) -> None:
    """No number of the content is told, nor one of all people, nor one of the guard."""
    effects = plan["effects"]
    one = content(effects, name)
    assert ({key: one[key] for key in COUNTS}, one["basis"]) == (dict.fromkeys(COUNTS), "unknown")
    assert (one["progress"], one["certificates_expiring"]) == (None, None)
    assert all(cause["gain"] is None and cause["lose"] is None for cause in one["causes"])
    assert effects["people"] == dict.fromkeys(effects["people"])
    assert effects["basis"] == "unknown"
    assert effects["reasons"]
    found = guard(plan)
    assert (found["total"], found["tripped"], found["allow"]) == (None, True, "people=unknown")


def of_one(answer: object) -> Edit:
    """An answer of one person to the field Dept in another shape."""
    return lambda said: [
        person["customFields"].update(Dept=answer) for person in said["users"] if person["email"] == CROWD[0]
    ]


SHAPES: Final[Mapping[str, Edit]] = {
    "a number": of_one(7),
    "another key": of_one({"wonder": ["A"]}),
    "an unknown choice": of_one({"choices": [{"choiceId": "ch-999", "name": "Elsewhere"}]}),
    "choices without ids": of_one({"choices": [{"label": "A"}]}),
    "a list of lists": of_one([["A"]]),
    "no answers at all": lambda said: [person.pop("customFields") for person in said["users"]],
    "answers in one text": lambda said: [person.update(customFields="Dept=A") for person in said["users"]],
    "an empty text": lambda said: said["users"][0].update(customFields=""),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_of_an_unknown_shape_makes_what_rests_on_it_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shape: str
) -> None:
    """The smart group and its content are not known; what rests on a manual group is, to the number.

    The file of `--people` has the rows of every content that is known, and names each audience that is not, beside a
    warning. Apply stops with the line to paste, at a number as without one, and passes with that line.
    """
    nobody_waits(monkeypatch)
    it = project(tmp_path, NARROWED + FEWER)
    service = Altered(str(it.settings.workspace.database), spec=it.spec)
    service.edits = {"/users": SHAPES[shape]}
    with ExitStack() as opened:
        opened.callback(service.close_workspace)
        server = opened.enter_context(serve(service))
        run = partial(lmsconf, tmp_path, env={"LMSCONF_URL": server.url, "LMSCONF_TOKEN": "sandbox"})
        plan = run("plan", "--format", "json", "--people", "rows.json", code=0).document
        assert_not_known(plan, "GDPR")
        told = group(plan["effects"], "smart_group/Sales")
        assert (told["after"], told["join"], told["leave"], told["basis"]) == (None, None, None, "unknown")
        sure = content(plan["effects"], "Safety")
        assert (sure["before"], sure["after"], sure["lose"], sure["basis"]) == (30, 25, 5, "exact")
        assert group(plan["effects"], "group/Team")["leave"] == 5
        found = json.loads((tmp_path / "rows.json").read_text(encoding="utf-8"))
        schema_validator("people").validate(found)
        assert [(row["content"], row["change"]) for row in found["rows"]] == [("Safety", "lose")] * 5
        (unknown,) = found["unknown"]
        assert (unknown["audience"], unknown["contents"]) == ("smart_group/Sales", ["GDPR"])
        assert "answers of people have an unknown format" in unknown["reason"]
        ran = run("plan", "--people", "rows.csv", code=0)
        assert ("not known" in ran.out, "[people/not-known]" in ran.err) == (True, True)
        *known, last = csv.DictReader((tmp_path / "rows.csv").read_text(encoding="utf-8").splitlines())
        assert [(row["content"], row["change"]) for row in known] == [("Safety", "lose")] * 5
        said = {"content": "GDPR", "content_id": "c-1", "change": "unknown", "causes": "smart_group/Sales"}
        assert last == dict.fromkeys(last, "") | said
        before, rows = seen(it), it.rows()
        for allow in ((), ("--allow", "people=30")):
            ran = run("apply", "--auto-approve", *allow)
            assert (ran.code, "--allow people=unknown" in ran.err) == (ExitCode.BLOCKED, True), ran
        assert it.rows() == rows
        allow = ("--allow", "people=unknown", "--allow", "mandatory=unknown")
        assert run("apply", "--auto-approve", *allow).code in (ExitCode.OK, ExitCode.NOT_CONVERGED)
        assert seen(it) != before


ODD = filled(text_of(__file__, "not_known_seed.yaml"))
MOVED = f"users: [{{email: {CROWD[0]}, answers: {{Dept: B}}}}]\n"


@pytest.mark.parametrize(
    "manifests",
    [
        "smart_groups: [{name: Odd, conditions: [{field: Dept, choices: [B], system_condition: IS_FULL_MOON}]}]",
        "smart_groups: [{name: Odd, conditions: [{field: Dept, system_condition: IS_FULL_MOON}]}]",
        MOVED,
        f"{MOVED}groups: [{{name: Team, members: <people 0-30>}}]",
    ],
    ids=["conditions", "no choices", "answers", "answers beside a group"],
)
def test_a_system_condition_that_no_reading_explains_makes_a_change_unknown(tmp_path: Path, manifests: str) -> None:
    """Who meets it afterwards only the service knows."""
    it = project(tmp_path, manifests, seed=ODD)
    plan = document_of(plan_of_people(it, {"/smart-groups/sg-1": lambda said: said.get("members", [0]).pop(0)}))
    assert_not_known(plan, "GDPR")
    assert group(plan["effects"], "smart_group/Odd")["after"] is None


ALONE = """
absent: {content_targets: [{content: Safety, assign_to: [{smart_group: Sales}]}]}
smart_groups: [{name: Odd, conditions: [{field: Dept, system_condition: IS_FULL_MOON}]}]
"""


def test_what_a_word_means_beside_choices_says_nothing_of_it_alone(tmp_path: Path) -> None:
    """Only the group whose condition changes to one without choices is not known."""
    effects = document(project(tmp_path, ALONE, seed=ODD))["effects"]
    assert group(effects, "smart_group/Odd")["after"] is None
    assert (content(effects, "GDPR")["after"], content(effects, "Safety")["after"]) == (None, 0)
    may = "IS_FULL_MOON may mean: has any answer, always true or the choices only; no smart group that was read shows"
    assert any(may in reason for reason in effects["reasons"])


ANY = """smart_groups:
  - {name: Any Dept, conditions: [{field: Dept, system_condition: IS_ANY}]}
  - {name: Any Skills, conditions: [{field: Skills, system_condition: IS_ANY}]}
"""
SWAPPED = f"""
users: [{{email: root1@acme.example, answers: {{Dept: A}}}}, {{email: {CROWD[0]}, answers: {{Dept: null}}}}]
"""


@pytest.mark.parametrize(
    ("alone", "reading", "told"),
    [
        ("any-answer", "has any answer", {"before": 60, "after": 60, "join": 1, "leave": 1, "basis": "estimate"}),
        ("always", "always true", None),
        ("choices", "the choices only", None),
    ],
)
def test_a_system_condition_is_read_as_what_explains_every_smart_group(
    tmp_path: Path, alone: str, reading: str, told: Mapping[str, object] | None
) -> None:
    """Its members after the plan are an estimate that says how; nothing of this makes anything unknown."""
    options = f"dialect: {{smart-groups.system-condition.alone: {alone}}}\n"
    seed = SEED.replace("smart_groups:\n", ANY)
    effects = document(project(tmp_path, SWAPPED, options=options, seed=seed))["effects"]
    assert effects["reasons"] == [f"IS_ANY read as: {reading}; explains 2 of 2 smart groups"]
    found = {one.pop("address"): one for one in effects["groups"]}
    assert found.get("smart_group/Any Dept") == told
    assert found["smart_group/Sales"] == {"before": 60, "after": 60, "join": 1, "leave": 1, "basis": "exact"}


def test_what_exact_numbers_rest_on_is_a_note(tmp_path: Path) -> None:
    """A smart group on a TEXT field of which nothing changes: nothing is said to be unknown."""
    odd = "  - {name: Odd, conditions: [{field: Room, system_condition: IS_ANY}]}\n"
    seed = SEED.replace("smart_groups:\n", f"smart_groups:\n{odd}")
    seed = seed.replace("custom_fields:\n", "custom_fields:\n  - {name: Room, type: TEXT}\n")
    seed += "  - {content: GDPR, assign_to: [{smart_group: Odd}]}\n"
    again = "content_targets: [{content: GDPR, mandatory: true, assign_to: [{smart_group: Dept A}]}]\n"
    text = lmsconf(project(tmp_path, again, seed=seed).root, "plan").out
    assert "  Note: smart_group/Odd: a condition is on a field without choices.\n" in text
    assert "ot known" not in text


def test_people_without_an_account_yet_are_members_of_what_is_always_true(tmp_path: Path) -> None:
    """Nobody reads their answers from the service, and a condition that is always true needs none."""
    options = "people: {create: true}\ndialect: {smart-groups.system-condition.alone: always}\n"
    made = "users: [{email: new@acme.example, first_name: N, last_name: W, language: en}]"
    it = project(tmp_path, made, options=options, seed=SEED.replace("smart_groups:\n", ANY))
    told = {"before": 62, "after": 63, "join": 1, "leave": 0, "basis": "estimate"}
    assert group(document(it)["effects"], "smart_group/Any Dept") == {"address": "smart_group/Any Dept", **told}


def one_more(said: dict[str, Any]) -> None:
    said["matchCount"] += 1


def last_missing(said: dict[str, Any]) -> None:
    said["users"] = [person for person in said["users"] if person["email"] != CROWD[-1]]


@pytest.mark.sampled(day=6)
@pytest.mark.parametrize("edit", [one_more, last_missing], ids=lambda edit: edit.__name__)
@pytest.mark.parametrize("manifests", [NARROWED, FEWER, NARROWED + FEWER], ids=["smart group", "group", "both"])
def test_an_incomplete_listing_of_people_makes_everything_unknown(tmp_path: Path, edit: Edit, manifests: str) -> None:
    """Somebody is missing, and nobody knows what they have: the file of `--people` has one entry, about nobody."""
    plan = plan_of_people(project(tmp_path, manifests), {"/users": edit})
    told = document_of(plan)
    effects = told["effects"]
    assert effects["basis"] == "unknown"
    assert effects["people"] == dict.fromkeys(effects["people"])
    assert all(one[key] is None for one in effects["contents"] for key in COUNTS)
    assert any("not complete" in reason for reason in effects["reasons"])
    assert (guard(told)["total"], guard(told)["tripped"], guard(told)["allow"]) == (None, True, "people=unknown")
    assert "not known" in plan_text(plan)
    found = json.loads(people_json(plan.effects))
    schema_validator("people").validate(found)
    [entry] = found["unknown"]
    assert (found["rows"], entry["audience"], entry["contents"]) == ([], None, [])
    assert "not complete" in entry["reason"]
    (row,) = csv.DictReader(people_csv(plan.effects).splitlines())
    assert row == dict.fromkeys(row, "") | {"change": "unknown"}
