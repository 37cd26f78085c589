"""`lmsconf access` and `audience`: what a person has and why, who is in an audience, now and after the plan."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from json_schemas import schema_validator
from manifest.cases import Case, cases
from texts import listed_cases, text_of

from lmsconf.errors import ExitCode, ProblemsFound
from lmsconf.model.address import Address
from lmsconf.model.effects import Basis
from lmsconf.planner.audience.access_facts import AccessQuery
from lmsconf.planner.audience.access_reports import audience_report, person_access
from lmsconf.planner.audience.people_questions import judge_tests
from lmsconf.render import ACCESS_VIEWS
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader, read_people_view

from .altered_service import connected
from .project import Project
from .shell import Ran, lmsconf

SEED = text_of(__file__, "people_commands_seed.yaml")
NARROWED = """
smart_groups:
  - {name: Nordics, conditions: [{field: Country, choices: [SE]}]}
"""


def project(
    root: Path, manifests: str = NARROWED, seed: str = SEED, options: str = "timezone: Europe/Stockholm\n"
) -> Path:
    Project(root, seed, options).write(manifests)
    return root


def document(ran: Ran, schema: str) -> dict[str, Any]:
    """The JSON document of a command, which fits its schema."""
    assert ran.out, ran.err
    found: dict[str, Any] = json.loads(ran.out)
    assert [error.message for error in schema_validator(schema).iter_errors(found)] == []
    return found


def access(root: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    ran = lmsconf(root, "access", *arguments, "--format", "json", code=code)
    return document(ran, "access")


def audience(root: Path, *arguments: str, code: int = 0) -> dict[str, Any]:
    ran = lmsconf(root, "audience", *arguments, "--format", "json", code=code)
    return document(ran, "audience")


def contents(found: dict[str, Any]) -> dict[str, tuple[str | None, ...]]:
    """Content → change, what is had before and after; None: not known."""
    sides = ("before", "after")
    return {
        one["content"]: (one["change"], *(one[side] and one[side]["has"] for side in sides))
        for one in found["contents"]
    }


@pytest.mark.sampled
def test_what_a_person_has_and_loses(tmp_path: Path) -> None:
    """Each content now and after the plan; one whose window is over is not had, nor one of another audience."""
    found = access(project(tmp_path), "bo@ACME.example")
    assert contents(found) == {"GDPR": ("lose", "mandatory", "none")}
    assert (found["email"], found["is_live"], found["stays"], found["planned"]) == ("Bo@acme.example", True, True, True)


@pytest.mark.sampled
def test_each_condition_says_whether_it_is_met_and_by_which_answer(tmp_path: Path) -> None:
    """Before and after the plan, with the choices of that side."""
    (content,) = access(project(tmp_path), "bo@acme.example", "GDPR")["contents"]
    (route,) = content["assignments"]
    assert (route["address"], route["audience"]) == (
        "content_target/GDPR -> smart_group/Nordics",
        "smart_group/Nordics",
    )
    before, after = route["before"], route["after"]
    assert (before["member"], after["member"]) == (True, False)
    assert (before["mandatory"], before["visible_from"]) == (True, "2026-01-05T00:00:00+01:00")
    assert before["conditions"] == [
        {"field": "Country", "choices": ["FI", "SE"], "system_condition": None, "answer": ["FI"], "met": True}
    ]
    assert after["conditions"][0] | {"choices": ["SE"], "met": False} == after["conditions"][0]


@pytest.mark.sampled
def test_what_a_system_condition_means_is_read_off_the_members(tmp_path: Path) -> None:
    """Membership is what the service lists; the report is an estimate that says how the condition was read."""
    found = access(project(tmp_path), "ann@acme.example", "Odd one")
    assert found["basis"] == "estimate"
    assert "IS_NONE_OF with choices read as: the choices only; explains 1 of 1 smart group" in found["reasons"]
    (condition,) = found["contents"][0]["assignments"][0]["before"]["conditions"]
    assert (condition["met"], condition["system_condition"]) == (True, "IS_NONE_OF")


@pytest.mark.sampled
def test_what_rests_on_a_changed_group_that_cannot_be_predicted_is_not_known(tmp_path: Path) -> None:
    """Not known after the plan, never nothing."""
    changed = "smart_groups: [{name: Odd, conditions: [{field: Country, choices: [FI], system_condition: IS_NOT_ALL}]}]"
    found = access(project(tmp_path, changed), "ann@acme.example")
    assert contents(found)["Odd one"][2] is None
    (odd,) = (one for one in found["contents"] if one["content"] == "Odd one")
    (assignment,) = odd["assignments"]
    assert [one["met"] for one in assignment["after"]["conditions"]] == [None]
    assert found["basis"] == "unknown"
    assert "not known" in lmsconf(tmp_path, "access", "ann@acme.example").out
    counted = audience(tmp_path, "smart_group/Odd", "--by", "Country")
    assert (counted["after"], counted["join"], counted["leave"], counted["basis"]) == (None, None, None, "unknown")
    assert {one["after"] for one in counted["answers"]} == {None}


@pytest.mark.sampled
def test_a_window_that_is_over_needs_no_audience(tmp_path: Path) -> None:
    """Nobody has anything through it, so it does not matter that its audience is not known after the plan."""
    changed = "smart_groups: [{name: Odd, conditions: [{field: Country, choices: [FI], system_condition: IS_NOT_ALL}]}]"
    over = """  - {content: Odd one, visible_until: "2020-01-01T00:00:00Z", assign_to: [{smart_group: Odd}]}"""
    seed = SEED.replace("  - {content: Odd one, assign_to: [{smart_group: Odd}]}", over)
    found = access(project(tmp_path, changed, seed=seed), "ann@acme.example", "Odd one")
    assert contents(found) == {"Odd one": ("none", "none", "none")}


@pytest.mark.sampled
def test_each_change_of_what_a_person_has_is_a_word(tmp_path: Path) -> None:
    """Another window, mandatory or not, the same as before; nothing before and after only where it was asked for."""
    manifests = """
content_targets:
  - {content: GDPR, visible_from: "2026-01-05T00:00:00+01:00", assign_to: [{smart_group: Nordics}]}
  - {content: Coaching, visible_from: "2026-01-05T00:00:00+01:00", assign_to: [{group: Coaches}]}
  - {content: Odd one, mandatory: true, assign_to: [{smart_group: Odd}]}
"""
    seed = (
        SEED.replace("- {name: Old}", "- {name: Old}\n  - {name: Kept}") + "  - {content: Kept, assign_to: [everyone]}"
    )
    project(tmp_path, manifests, seed=seed)
    assert contents(access(tmp_path, "ann@acme.example")) == {
        "Coaching": ("window", "optional", "optional"),
        "GDPR": ("to_optional", "mandatory", "optional"),
        "Kept": ("keep", "optional", "optional"),
        "Odd one": ("to_mandatory", "optional", "mandatory"),
    }
    assert contents(access(tmp_path, "ann@acme.example", "Old")) == {"Old": ("none", "none", "none")}


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("email", "said", "near"),
    [
        ("bp@acme.example", "is not a person of this workspace", "Bo@acme.example"),
        ("dee@acme.example", "is archived", "To unarchive the account"),
    ],
)
def test_unknown_and_archived_people_are_errors(tmp_path: Path, email: str, said: str, near: str) -> None:
    """With the nearest e-mail of somebody who is active, or the way to unarchive; also as an audience."""
    project(tmp_path)
    for ran in (lmsconf(tmp_path, "access", email), lmsconf(tmp_path, "audience", f"user/{email}")):
        assert ran.code == ExitCode.ERROR
        assert said in ran.err
        assert near in ran.err
        assert ("Did you mean" in ran.err) is ("archived" not in said)


@pytest.mark.sampled
def test_an_unknown_content_or_audience_or_field_has_a_suggestion(tmp_path: Path) -> None:
    """And nothing on stdout."""
    project(tmp_path)
    for arguments, near in (
        (("access", "ann@acme.example", "GDPS"), '"GDPR"'),
        (("audience", "smart_group/Nordic"), "smart_group/Nordics"),
        (("audience", "group/Nordics"), "smart_group/Nordics"),
        (("audience", "group/Coache"), "group/Coaches"),
        (("audience", "Coache"), "group/Coaches"),
        (("audience", "everyone", "--by", "Countri"), '"Country"'),
    ):
        ran = lmsconf(tmp_path, *arguments)
        assert (ran.code, ran.out) == (ExitCode.ERROR, "")
        assert f"Did you mean {near}?" in ran.err


@pytest.mark.sampled
def test_the_address_of_an_assignment_means_its_audience(tmp_path: Path) -> None:
    """So that every address that a plan prints of who has what can be pasted."""
    project(tmp_path)
    for address, size in (
        ("content_target/GDPR -> smart_group/Nordics", 2),
        ("content_targets/Coaching -> group/Coaches", 1),
        ("content_target/Old -> everyone", 3),
        ("content_target/Old -> user/ann@acme.example", 1),
    ):
        found = audience(tmp_path, address)
        assert (found["address"], found["before"]) == (address.partition(" -> ")[2], size)


@pytest.mark.sampled
def test_an_address_of_another_kind_is_no_audience(tmp_path: Path) -> None:
    """Nor is a text that is no address."""
    project(tmp_path)
    for address in ("custom_field/Country", "grup/Nordics", "content_target/GDPR", "group/", ""):
        assert "audience/address" in lmsconf(tmp_path, "audience", address, code=ExitCode.ERROR).err


@pytest.mark.sampled
def test_an_audience_is_counted_by_answers(tmp_path: Path) -> None:
    """By each choice, several for a person who picked several; archived people count nowhere."""
    found = audience(project(tmp_path), "everyone", "--by", "Skills")
    assert (found["before"], found["after"]) == (3, 3)
    assert [(one["state"], one["choice"], one["before"]) for one in found["answers"]] == [
        ("answered", "SQL", 2),
        ("answered", "Go", 2),
    ]
    country = audience(tmp_path, "everyone", "--by", "Country")
    assert [(one["choice"], one["before"]) for one in country["answers"]] == [
        ("SE", 1),
        ("FI", 1),
        ("DE", 0),
        (None, 1),
    ]
    assert country["answers"][-1]["state"] == "no_answer"


TWINS = SEED.replace("groups:\n", "groups:\n  - {name: Twin, id: g-8}\n  - {name: Twin, id: g-9}\n", 1).replace(
    "smart_groups:\n",
    "smart_groups:\n"
    "  - {name: Pair, id: sg-8, conditions: [{field: Country, choices: [SE]}]}\n"
    "  - {name: Pair, id: sg-9, conditions: [{field: Country, choices: [FI]}]}\n"
    "  - {name: Gophers, conditions: [{field: Skills, choices: [Go]}]}\n",
    1,
)


@pytest.mark.sampled
@pytest.mark.parametrize("manifests", ["custom_fields: [{name: Badge}]", "groups: [{name: Coaches}]"])
@pytest.mark.parametrize(("address", "ids"), [("group/Twin", "g-8, g-9"), ("smart_group/Pair", "sg-8, sg-9")])
def test_a_name_that_two_audiences_have_is_none(tmp_path: Path, manifests: str, address: str, ids: str) -> None:
    """Whether or not the plan reads their kind itself."""
    ran = lmsconf(project(tmp_path, manifests, seed=TWINS), "audience", address)
    assert (ran.code, f"{address} is live more than once, with the ids {ids}" in ran.err) == (ExitCode.ERROR, True)
    assert "Declare the right one, with its `id:`." in ran.err


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("change", "field", "after"),
    [
        (
            "custom_fields: [{name: Country, choices: [SE, DE]}]\n" + NARROWED.strip(),
            "Country",
            {"SE": (1, 1), "FI": (1, 0), "DE": (0, 0), None: (1, 2)},
        ),
        ("absent: {custom_fields: [Skills]}", "Skills", {"SQL": (2, 0), "Go": (2, 0), None: (0, 3)}),
    ],
)
def test_nobody_has_a_choice_that_the_plan_deletes(
    tmp_path: Path, change: str, field: str, after: dict[str | None, tuple[int, int]]
) -> None:
    """Alone or with its field; those who had it have no answer."""
    rows = audience(project(tmp_path, change), "everyone", "--by", field)["answers"]
    assert {row["choice"]: (row["before"], row["after"]) for row in rows} == after


@pytest.mark.sampled
def test_a_text_has_no_choices_to_count(tmp_path: Path) -> None:
    """An error, since a text may be anything about a person."""
    ran = lmsconf(project(tmp_path), "audience", "everyone", "--by", "Badge")
    assert (ran.code, "field/text" in ran.err) == (ExitCode.ERROR, True)


@pytest.mark.sampled
def test_an_audience_before_and_after_the_plan(tmp_path: Path) -> None:
    """Who joins, who leaves; under the names of sections, too. Names only where they were asked for."""
    found = audience(project(tmp_path), "smart_groups/Nordics")
    assert (found["address"], found["members"]) == ("smart_group/Nordics", None)
    assert [found[key] for key in ("before", "after", "join", "leave")] == [2, 1, 0, 1]
    assert "acme" not in lmsconf(tmp_path, "audience", "smart_group/Nordics").out
    named = audience(tmp_path, "smart_group/Nordics", "--members")
    assert named["members"] == [
        {"email": "ann@acme.example", "before": True, "after": True},
        {"email": "Bo@acme.example", "before": True, "after": False},
    ]


@pytest.mark.sampled
@pytest.mark.parametrize("manifests", ["groups: [{nam: X}]", "groups: [{name: X, members: [who@acme.example]}]"])
def test_without_a_plan_the_live_state_is_shown(tmp_path: Path, manifests: str) -> None:
    """For errors in the manifests and for those that only the workspace shows. It says so, and exits with 1."""
    project(tmp_path, manifests)
    found = access(tmp_path, "bo@acme.example", code=ExitCode.ERROR)
    assert (found["planned"], contents(found)["GDPR"]) == (False, (None, "mandatory", None))
    assert found["problems"]
    counted = audience(tmp_path, "smart_group/Nordics", code=ExitCode.ERROR)
    assert [counted[key] for key in ("before", "after", "join", "stays")] == [2, None, None, None]
    ran = lmsconf(tmp_path, "audience", "smart_group/Nordics")
    assert "The plan cannot be made" in ran.out
    assert found["problems"][0]["message"] in ran.err


@pytest.mark.sampled
def test_csv_has_a_row_for_each_assignment_choice_or_member(tmp_path: Path) -> None:
    """The same numbers as JSON; two tables do not fit one file."""
    project(tmp_path)

    def rows(*arguments: str) -> list[dict[str, str]]:
        ran = lmsconf(tmp_path, *arguments, "--format", "csv", code=0)
        return list(csv.DictReader(io.StringIO(ran.out)))

    (row,) = rows("access", "bo@acme.example")
    assert (row["content"], row["change"], row["before"], row["after"]) == ("GDPR", "lose", "mandatory", "none")
    assert (row["member_before"], row["member_after"]) == ("true", "false")
    assert [one["choice"] for one in rows("audience", "everyone", "--by", "Country")] == ["SE", "FI", "DE", ""]
    assert [one["after"] for one in rows("audience", "smart_group/Nordics", "--members")] == ["true", "false"]
    assert rows("audience", "smart_group/Nordics")[0]["leave"] == "1"
    both = lmsconf(tmp_path, "audience", "everyone", "--members", "--by", "Country", "--format", "csv")
    assert both.code == ExitCode.USAGE


@pytest.mark.sampled
def test_masked_people_are_nowhere(tmp_path: Path) -> None:
    """No e-mail and no answer in any format, nor in the error for somebody unknown."""
    project(tmp_path)
    for arguments in (
        *(("access", "bo@acme.example", "--format", format) for format in ("text", "json", "csv")),
        *(("audience", "everyone", "--members", "--format", format) for format in ("text", "json", "csv")),
        ("access", "bq@acme.example"),
    ):
        ran = lmsconf(tmp_path, "--mask-people", *arguments)
        assert "acme" not in (ran.out + ran.err).casefold()
        assert re.search(r"person \d", ran.out + ran.err)
    masked = lmsconf(tmp_path, "--mask-people", "access", "bo@acme.example", "GDPR")
    assert "answer: FI" not in masked.out
    assert "answer: FI" in lmsconf(tmp_path, "access", "bo@acme.example", "GDPR").out


@pytest.mark.sampled
def test_only_what_is_asked_is_read_and_nothing_is_written(tmp_path: Path) -> None:
    """One content costs its own assignments, not those of all; one audience no assignments at all."""
    project(tmp_path, "groups: [{name: Coaches, members: []}]")
    whole, one, group = (
        document(lmsconf(tmp_path, *arguments, "--format", "json"), arguments[0])["requests"]
        for arguments in (
            ("access", "ann@acme.example"),
            ("access", "ann@acme.example", "Coaching"),
            ("audience", "group/Coaches"),
        )
    )
    assert group < one < whole
    assert audience(tmp_path, "group/Coaches")["before"] == 1


@pytest.mark.sampled
def test_of_people_who_were_not_all_listed_nothing_is_known(tmp_path: Path) -> None:
    """A page that fails makes every answer not known, and every test fail; never a smaller number."""
    it = Project(tmp_path, SEED, "dialect: {paging.limit: 2}\n")
    it.write(NARROWED + "tests: [{user: ann@acme.example, has: GDPR}]\n")
    settings = it.settings
    manifests = load_manifests(settings)
    address = Address("smart_group", "Nordics")
    query = AccessQuery(audiences=frozenset({address}), contents=frozenset({"GDPR"}), fields=frozenset({"Country"}))
    with Connection(settings) as connection, connection.worker_pool(1):
        sandbox = connection._sandbox  # only a test makes things go wrong
        assert sandbox is not None
        sandbox._faults = FaultScript(Fault(operation="users.list", status=404, after=1, times=99))
        reader = WorkspaceReader(settings=settings, connection=connection)
        state, header = read_people_view(reader, manifests, query)
    report = audience_report(state, header, address, "Country", members=False)
    assert (report.header.basis, report.before, report.after) == (Basis.UNKNOWN, None, None)
    assert {one.before for one in report.answers} == {None}
    assert any("listing of people is not complete" in reason for reason in report.header.reasons)
    with pytest.raises(ProblemsFound, match="listing of people is not complete"):
        person_access(state, header, "zoe@acme.example", "GDPR")
    (result,) = judge_tests(state, manifests.tests)
    assert "listing of people is not complete" in str(result.reason)


@pytest.mark.sampled
@listed_cases("typed", "meant")
def test_an_audience_in_other_words(tmp_path: Path, typed: str, meant: str) -> None:
    """A name alone, the words of a view, a section's name; `access` takes the address of a person too."""
    assert audience(project(tmp_path), typed)["address"] == meant
    assert (
        lmsconf(tmp_path, "access", "user/ann@acme.example").out == lmsconf(tmp_path, "access", "ann@acme.example").out
    )


# What `audience` says of an audience itself, and `access` of an assignment to it that the plan changes.


MANIFESTS = """
groups: [{name: Trainers, previously: [Coaches], members: [cy@acme.example]}, {name: Club, members: [ann@acme.example]}]
users: [{email: eve@acme.example, first_name: Eve, last_name: Ek, language: en}]
absent: {smart_groups: [Odd]}
"""

CASES = cases(Path(__file__).with_name("access.txt"))
EVERYTHING = text_of(__file__, "people_commands_everything.yaml")


@pytest.mark.sampled
@listed_cases("address", "is_live", "stays", "before", "after")
def test_an_audience_that_the_plan_makes_renames_or_deletes(
    tmp_path: Path, address: str, is_live: bool, stays: bool, before: int, after: int
) -> None:
    """A new one has no one yet; a renamed one is found by both names; a deleted one by its own."""
    found = audience(project(tmp_path, MANIFESTS, options="people: {create: true}\n"), address)
    assert [found[key] for key in ("is_live", "stays", "before", "after")] == [is_live, stays, before, after]


ODD = text_of(__file__, "people_commands_odd.yaml")
NOT_KNOWN = Path(__file__).with_name("access_not_known.txt").read_text(encoding="utf-8")


def _odd_people(said: dict[str, Any]) -> None:
    for person in said["users"][1:]:
        person["customFields"] = {"Country": 7}


def _odd_group(said: dict[str, Any]) -> None:
    said["conditions"].append({"customFieldId": "cf-9", "choiceIds": ["ch-9"]})


def _odd_targets(said: dict[str, Any]) -> None:
    targets = said["targets"]
    targets[1]["startTime"] = "soon"
    targets.append({**targets[1], "targetId": "t-9", "targetType": "TEAM"})
    for kind in ("USER", "GROUP", "SMART_GROUP"):
        targets.append({**targets[0], "targetId": "x-9", "targetType": kind})


def test_what_is_not_known_of_an_assignment(tmp_path: Path) -> None:
    """An answer, a field, a choice, an audience or a time that no listing explains is shown as far as it is known."""
    it = Project(tmp_path, ODD)
    it.write("groups: []")
    edits = {"/users": _odd_people, "/smart-groups/sg-1": _odd_group, "/content/targets": _odd_targets}
    with connected(it, edits) as connection:
        query = AccessQuery(audiences=frozenset(), contents=frozenset({"GDPR"}), fields=frozenset())
        reader = WorkspaceReader(settings=it.settings, connection=connection)
        state, header = read_people_view(reader, load_manifests(it.settings), query)
    people = ("ann@acme.example", "bo@acme.example")
    shown = "".join(ACCESS_VIEWS["text"](person_access(state, header, email, "GDPR")) for email in people)
    assert shown == NOT_KNOWN


def test_an_assignment_that_the_plan_changes_is_shown_once(tmp_path: Path) -> None:
    """It is one assignment with a state before and after the plan, and not a live and a new one."""
    manifests = "content_targets: [{content: Coaching, mandatory: true, assign_to: [{group: Coaches}]}]"
    (content,) = access(project(tmp_path, manifests), "ann@acme.example", "Coaching")["contents"]
    (assignment,) = content["assignments"]
    assert (assignment["before"]["mandatory"], assignment["after"]["mandatory"]) == (False, True)


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_what_people_have_and_who_is_in_an_audience(tmp_path: Path, case: Case) -> None:
    """With a plan that makes, renames and deletes, and without one: where `live` stands before the command."""
    words = case.title.split()
    more = "content_targets:\n  - {content: GDPR, assign_to: [everyone, {user: cy@acme.example}, {group: Coaches}]}"
    seed = SEED.replace("content_targets:", more).replace(
        "groups:", "groups:\n  - {name: Guests}\n  - {name: Guild}", 1
    )
    options = "people: {create: true}\ntimezone: Europe/Stockholm\n"
    project(tmp_path, "groups: []" if words[0] == "live" else EVERYTHING, seed, options)
    ran = lmsconf(tmp_path, *(word for word in words if word != "live"))
    assert ran.out.partition(" people.\n\n")[2] + ran.err == case.told
