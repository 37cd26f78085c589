"""`lmsconf access` and `audience`: what a person has and why, who is in an audience, now and after the plan."""

import csv
import io
import re
import shlex
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
from lmsconf.sandbox.faults import Fault
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import read_people_view

from .altered_service import connected
from .project import Project
from .shell import lmsconf

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


def document(root: Path, command: str, *arguments: str) -> dict[str, Any]:
    """The JSON document of a command, which fits its schema."""
    found = lmsconf(root, command, *arguments, "--format", "json", code=0).document
    assert [error.message for error in schema_validator(command).iter_errors(found)] == []
    return found


@pytest.mark.sampled(daily=False)
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
    changes = {}
    for contents in ((), ("Old",)):
        for one in document(tmp_path, "access", "ann@acme.example", *contents)["contents"]:
            changes[one["content"]] = (one["change"], one["before"]["has"], one["after"]["has"])
    assert changes == {
        "Coaching": ("window", "optional", "optional"),
        "GDPR": ("to_optional", "mandatory", "optional"),
        "Kept": ("keep", "optional", "optional"),
        "Odd one": ("to_mandatory", "optional", "mandatory"),
        "Old": ("none", "none", "none"),
    }


TWINS = SEED.replace("groups:\n", "groups:\n  - {name: Twin, id: g-8}\n  - {name: Twin, id: g-9}\n", 1).replace(
    "smart_groups:\n",
    "smart_groups:\n"
    "  - {name: Pair, id: sg-8, conditions: [{field: Country, choices: [SE]}]}\n"
    "  - {name: Pair, id: sg-9, conditions: [{field: Country, choices: [FI]}]}\n"
    "  - {name: Gophers, conditions: [{field: Skills, choices: [Go]}]}\n",
    1,
)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("manifests", ["custom_fields: [{name: Badge}]", "groups: [{name: Coaches}]"])
@pytest.mark.parametrize(("address", "ids"), [("group/Twin", "g-8, g-9"), ("smart_group/Pair", "sg-8, sg-9")])
def test_a_name_that_two_audiences_have_is_none(tmp_path: Path, manifests: str, address: str, ids: str) -> None:
    """Whether or not the plan reads their kind itself."""
    ran = lmsconf(project(tmp_path, manifests, seed=TWINS), "audience", address)
    assert (ran.code, f"{address} is live more than once, with the ids {ids}" in ran.err) == (ExitCode.ERROR, True)
    assert "Declare the right one, with its `id:`." in ran.err


@pytest.mark.sampled(daily=False)
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


@pytest.mark.sampled(daily=False)
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
    assert "answer: FI" not in lmsconf(tmp_path, "--mask-people", "access", "bo@acme.example", "GDPR").out
    assert "answer: FI" in lmsconf(tmp_path, "access", "bo@acme.example", "GDPR").out


@pytest.mark.sampled(daily=False)
def test_only_what_is_asked_is_read_and_nothing_is_written(tmp_path: Path) -> None:
    """One content costs its own assignments, not those of all; one audience no assignments at all."""
    project(tmp_path, "groups: [{name: Coaches, members: []}]")
    whole, one, group = (
        document(tmp_path, *arguments)["requests"]
        for arguments in (
            ("access", "ann@acme.example"),
            ("access", "ann@acme.example", "Coaching"),
            ("audience", "group/Coaches"),
        )
    )
    assert group < one < whole
    assert document(tmp_path, "audience", "group/Coaches")["before"] == 1


@pytest.mark.sampled
def test_of_people_who_were_not_all_listed_nothing_is_known(tmp_path: Path) -> None:
    """A page that fails makes every answer not known, and every test fail; never a smaller number."""
    it = Project(tmp_path, SEED, "dialect: {paging.limit: 2}\n")
    it.write(NARROWED + "tests: [{user: ann@acme.example, has: GDPR}]\n")
    manifests = load_manifests(it.settings)
    address = Address("smart_group", "Nordics")
    query = AccessQuery(audiences=frozenset({address}), contents=frozenset({"GDPR"}), fields=frozenset({"Country"}))
    with it.reader(Fault(operation="users.list", status=404, after=1, times=99)) as reader:
        state, header = read_people_view(reader, manifests, query)
    report = audience_report(state, header, address, "Country", members=False)
    assert (report.header.basis, report.before, report.after) == (Basis.UNKNOWN, None, None)
    assert {one.before for one in report.answers} == {None}
    assert any("listing of people is not complete" in reason for reason in report.header.reasons)
    with pytest.raises(ProblemsFound, match="listing of people is not complete"):
        person_access(state, header, "zoe@acme.example", "GDPR")
    (result,) = judge_tests(state, manifests.tests)
    assert "listing of people is not complete" in str(result.reason)


@pytest.mark.sampled(daily=False)
@listed_cases("typed", "meant")
def test_an_audience_in_other_words(tmp_path: Path, typed: str, meant: str) -> None:
    """A name alone, the words of a view, a section's name; `access` takes the address of a person too."""
    assert document(project(tmp_path), "audience", typed)["address"] == meant
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


@pytest.mark.sampled(daily=False)
@listed_cases("address", "is_live", "stays", "before", "after")
def test_an_audience_that_the_plan_makes_renames_or_deletes(
    tmp_path: Path, address: str, is_live: bool, stays: bool, before: int, after: int
) -> None:
    """A new one has no one yet; a renamed one is found by both names; a deleted one by its own."""
    found = document(project(tmp_path, MANIFESTS, options="people: {create: true}\n"), "audience", address)
    assert [found[key] for key in ("is_live", "stays", "before", "after")] == [is_live, stays, before, after]


ODD = text_of(__file__, "people_commands_odd.yaml")


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
    query = AccessQuery(audiences=frozenset(), contents=frozenset({"GDPR"}), fields=frozenset())
    with connected(it, edits) as connection, it.reader(connection=connection) as reader:
        state, header = read_people_view(reader, load_manifests(it.settings), query)
    people = ("ann@acme.example", "bo@acme.example")
    shown = "".join(ACCESS_VIEWS["text"](person_access(state, header, email, "GDPR")) for email in people)
    assert shown == Path(__file__).with_name("access_not_known.txt").read_text(encoding="utf-8")


def test_an_assignment_that_the_plan_changes_is_shown_once(tmp_path: Path) -> None:
    """It is one assignment with a state before and after the plan, and not a live and a new one."""
    manifests = "content_targets: [{content: Coaching, mandatory: true, assign_to: [{group: Coaches}]}]"
    (content,) = document(project(tmp_path, manifests), "access", "ann@acme.example", "Coaching")["contents"]
    (assignment,) = content["assignments"]
    assert (assignment["before"]["mandatory"], assignment["after"]["mandatory"]) == (False, True)


@pytest.mark.sampled
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_what_people_have_and_who_is_in_an_audience(tmp_path: Path, case: Case) -> None:
    """With a plan that makes, renames and deletes, and without one: where `live` stands before the command."""
    words = shlex.split(case.title)
    more = "content_targets:\n  - {content: GDPR, assign_to: [everyone, {user: cy@acme.example}, {group: Coaches}]}"
    seed = SEED.replace("content_targets:", more).replace(
        "groups:", "groups:\n  - {name: Guests}\n  - {name: Guild}", 1
    )
    options = "people: {create: true}\ntimezone: Europe/Stockholm\n"
    project(tmp_path, case.text or ("groups: []" if words[0] == "live" else EVERYTHING), seed, options)
    ran = lmsconf(tmp_path, *(word for word in words if word != "live"))
    shown = re.sub(r"^Workspace .* people\.\n\n?", "", ran.out) + ran.err
    assert shown + f"(exit {ran.code})\n" * bool(ran.code) == case.told
