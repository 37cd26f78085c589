"""No way round the guard by people within one plan: whatever takes content away, stops until that number is allowed."""

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from flow.project import Project
from flow.shell import lmsconf

from effects.crowd import CROWD, FIELDS, QUIET, ROOTS, SEED, applied, day, document, guard, people, project, seen, some
from effects.evaluator import evaluate, seconds
from lmsconf.errors import ExitCode

pytestmark = pytest.mark.sampled  # some seconds in all

NEVER_IN_USE = "dialect: {custom-fields.in-use: never}\n"


@dataclass(frozen=True)
class Way:
    """Manifests that take content away from so many people. files: names that end in .yaml are manifests."""

    people: int
    files: Mapping[str, str]
    options: str = ""
    more: tuple[str, ...] = ()
    seed: str = field(default=SEED, repr=False)


def _way(people: int, text: str, options: str = "", *more: str, **files: str) -> Way:
    return Way(
        people, {"all.yaml": text, **{name.replace("_", "."): said for name, said in files.items()}}, options, more
    )


def _archived(start: int, end: int) -> str:
    return "users:\n" + "".join(f"  - {{email: {one}, archived: true}}\n" for one in CROWD[start:end])


def _archived_at(start: int, end: int, date: str) -> str:
    return "users:\n" + "".join(f"  - {{email: {one}, custom_archive_date: '{date}'}}\n" for one in CROWD[start:end])


def _answered(number: int, choice: str) -> str:
    return "users:\n" + "".join(
        f"  - {{email: p{n:02}@acme.example, answers: {{Dept: {choice}}}}}\n" for n in range(number)
    )


ALL = len(CROWD) + len(ROOTS)
WAYS: dict[str, Callable[[], Way]] = {
    "a condition is narrowed": lambda: _way(
        30, "smart_groups: [{name: Sales, conditions: [{field: Dept, choices: [B]}]}]"
    ),
    "a condition is added": lambda: _way(
        54,
        "smart_groups: [{name: Sales, conditions: [{field: Dept, choices: [A, B]}, {field: Skills, choices: [y]}]}]",
    ),
    "a window ended yesterday": lambda: _way(
        ALL, f"content_targets: [{{content: Intro, assign_to: [everyone], visible_until: '{day(days=-1)}'}}]"
    ),
    "a window ends in a minute": lambda: _way(
        ALL, f"content_targets: [{{content: Intro, assign_to: [everyone], visible_until: '{day(minutes=1)}'}}]"
    ),
    "a window ends within 30 days": lambda: _way(
        ALL, f"content_targets: [{{content: Intro, assign_to: [everyone], visible_until: '{day(days=29)}'}}]"
    ),
    "a window begins in 2099": lambda: _way(
        ALL, "content_targets: [{content: Intro, assign_to: [everyone], visible_from: '2099-01-01T00:00:00Z'}]"
    ),
    "two windows in the place of one": lambda: _way(
        30,
        f"""content_targets:
  - {{content: Safety, assign_to: [{{group: Team, visible_until: '{day(days=2)}'}},
     {{smart_group: Sales, visible_from: '{day(days=3)}'}}]}}""",
    ),
    "answers change": lambda: Way(
        240,
        {"all.yaml": _answered(240, "C")},
        seed=f"{people(300)}{FIELDS}"
        "smart_groups: [{name: Sales, conditions: [{field: Dept, choices: [A, B]}]}]\n"
        "content: [{name: GDPR}]\ncontent_targets: [{content: GDPR, assign_to: [{smart_group: Sales}]}]\n",
    ),
    "a choice is removed": lambda: _way(30, "custom_fields: [{name: Dept, choices: [A, C]}]", NEVER_IN_USE),
    "a field is deleted that no condition names any more": lambda: _way(
        54,
        """absent: {custom_fields: [Dept]}
smart_groups:
  - {name: Sales, conditions: [{field: Skills, choices: [y]}]}
  - {name: Dept A, conditions: [{field: Skills, choices: [x, y]}]}""",
    ),
    "a group is deleted": lambda: _way(30, "absent: {groups: [Team]}"),
    "a smart group is deleted": lambda: _way(60, "absent: {smart_groups: [Sales]}"),
    "members are removed": lambda: _way(25, f"groups: [{{name: Team, members: {some(0, 5)}}}]"),
    "members are excluded": lambda: _way(25, f"groups: [{{name: Team, members: {{exclude: {some(5, 60)}}}}}]"),
    "people are archived": lambda: _way(25, _archived(0, 25)),
    "people are archived yesterday": lambda: _way(25, _archived_at(0, 25, day(days=-1))),
    "people are archived in a minute": lambda: _way(25, _archived_at(0, 25, day(minutes=1))),
    "people are archived in 29 days": lambda: _way(25, _archived_at(0, 25, day(days=29))),
    "answers are cleared": lambda: _way(30, _answered(30, "null")),
    "an assignment is deleted": lambda: _way(
        30, "absent: {content_targets: [{content: Safety, assign_to: [{group: Team}]}]}"
    ),
    "an assignment is owned and not declared": lambda: _way(
        30,
        "content_targets: [{content: Safety, assign_to: [{user: root1@acme.example}]}]",
        "ownership: {content_targets: declared_content}\n",
    ),
    "an empty CSV": lambda: _way(
        30,
        "groups: [{name: Team, members: {file: hr.csv, column: email, allow_empty: true}}]",
        hr_csv="email\n",
    ),
    "a CSV filtered to nobody": lambda: _way(
        30,
        "groups: [{name: Team, members: {file: hr.csv, column: email, where: {Team: z}, allow_empty: true}}]",
        hr_csv=f"email,Team\n{CROWD[0]},y\n",
    ),
    "a rename with other members": lambda: _way(
        30, f"groups: [{{name: Crew, previously: [Team], members: {some(30, 60)}}}]"
    ),
    "a rename with other conditions": lambda: _way(
        30, "smart_groups: [{name: Sales 2, previously: [Sales], conditions: [{field: Dept, choices: [B]}]}]"
    ),
    "groups swap their names": lambda: _way(
        30,
        "groups: [{name: Team, id: g-2}, {name: Other, id: g-1}]\n"
        "content_targets: [{content: Safety, assign_to: [{group: Team}]}]",
        "ownership: {content_targets: declared_content}\n",
    ),
    "choices swap their names": lambda: _way(
        30,
        "custom_fields: [{name: Dept, choices: [{name: A, id: ch-2}, {name: B, id: ch-1}, C]}]\n"
        "smart_groups: [{name: Dept A, conditions: [{field: Dept, choices: [A]}]}]",
        NEVER_IN_USE,
    ),
    "a group is renamed, and an empty one takes its name": lambda: _way(
        30,
        "groups: [{name: Old team, previously: [Team]}, {name: Team, members: []}]\n"
        "content_targets: [{content: Safety, assign_to: [{group: Team}]}]",
        "ownership: {content_targets: declared_content}\n",
    ),
    "a swap of members": lambda: _way(
        30, f"groups: [{{name: Team, members: {some(30, 60)}}}, {{name: Other, members: {some(0, 30)}}}]"
    ),
    "a group made anew with other members": lambda: _way(
        30, f"groups: [{{name: Crew, members: {some(30, 60)}}}]\nabsent: {{groups: [Team]}}"
    ),
    "for_each over an empty list": lambda: _way(
        30,
        "groups: [{for_each: {one: $(teams)}, name: $(one)}, {name: Other}]",
        "ownership: {groups: all}\nvars: {teams: []}\n",
    ),
    "a group applies to another workspace only": lambda: _way(
        30, "groups: [{name: Team, only_in: [elsewhere]}, {name: Other}]", "ownership: {groups: all}\n"
    ),
    "an assignment is left alone, and its group is deleted": lambda: _way(
        30, "absent: {groups: [Team]}", "leave_alone: ['content_target/Safety -> *']\n"
    ),
    "differences of groups are ignored by drift": lambda: _way(
        25,
        f"groups: [{{name: Team, members: {some(0, 5)}}}]",
        "ignore: [{address: 'group/*', reason: Edited by hand, until: 2999-01-01}]\n",
    ),
    "a mandatory assignment in its place begins in two days": lambda: _way(
        60,
        f"""content_targets:
  - {{content: GDPR, mandatory: true, visible_from: '{day(days=2)}',
     assign_to: [{{group: Team}}, {{group: Other}}]}}""",
        "ownership: {content_targets: declared_content}\n",
    ),
    "split over kinds and files": lambda: Way(
        30,
        {
            # 10 leave the group, 10 are archived (5 of them leave the group too), 15 answer otherwise.
            "a.yaml": f"groups: [{{name: Team, members: {some(10, 30)}}}]",
            "b/people.yaml": _archived(5, 15),
            "c.yaml": "".join(_answered(30, "C").splitlines(keepends=True)[:1])
            + "".join(f"  - {{email: {one}, answers: {{Dept: C}}}}\n" for one in CROWD[40:55]),
        },
    ),
    "split over contents": lambda: _way(
        30,
        """absent:
  content_targets: [{content: Law, assign_to: [{smart_group: Dept A}]}]
smart_groups: [{name: Dept A, conditions: [{field: Dept, choices: [A, B]}]}]""",
    ),
    "a share of a content": lambda: _way(4, f"groups: [{{name: Team, members: {some(4, 30)}}}]"),
    "only a part of the manifests": lambda: _way(
        25, f"groups: [{{name: Team, members: {some(0, 5)}}}, {{name: Other, members: []}}]", "", "--only", "group/Team"
    ),
}


@pytest.mark.parametrize("name", WAYS)
def test_taking_content_away_stops_until_that_number_is_allowed(tmp_path: Path, name: str) -> None:
    """Apply exits 4, sends nothing and prints the line; another number stops too; the exact one applies.

    Each way tries one of three other numbers.
    """
    way = WAYS[name]()
    other = (way.people - 1, way.people + 1, "unknown")[[*WAYS].index(name) % 3]
    it = project(tmp_path, way.files, options=way.options, seed=way.seed)
    before, rows = seen(it), it.rows()
    stopped = applied(it, more=way.more)
    assert (stopped.code, f"--allow people={way.people}\n" in f"{stopped.err}\n") == (4, True), stopped
    assert applied(it, f"people={other}", more=way.more).code == ExitCode.BLOCKED
    assert it.rows() == rows
    plan = document(it, *way.more)
    assert (guard(plan)["total"], guard(plan)["tripped"]) == (way.people, True)
    others = [one["allow"] for one in plan["guards"] if one["tripped"]]
    ran = applied(it, *others, more=way.more)
    assert ran.code == 0, ran
    assert evaluate(before, seen(it), seconds(plan["created_at"]) or 0).losing == way.people


@pytest.mark.parametrize("name", ["a condition is narrowed", "a window ends in a minute", "people are archived"])
def test_a_saved_plan_stops_too(tmp_path: Path, name: str) -> None:
    """The file is the consent to its calls, and not to the number of people who lose."""
    way = WAYS[name]()
    it = project(tmp_path, way.files)
    before = it.rows()
    assert lmsconf(tmp_path, "plan", "--out", "plan.json").code == 0
    assert lmsconf(tmp_path, "apply", "plan.json").code == ExitCode.BLOCKED
    assert lmsconf(tmp_path, "apply", "plan.json", "--allow", f"people={way.people + 1}").code == ExitCode.BLOCKED
    assert it.rows() == before
    assert lmsconf(tmp_path, "apply", "plan.json", "--allow", f"people={way.people}").code == 0


@pytest.mark.parametrize("name", WAYS)
def test_without_effects_only_the_consent_to_an_unknown_number_passes(tmp_path: Path, name: str) -> None:
    """`--no-effects` is no way round: whatever can take access away stops until `people=unknown`."""
    way = WAYS[name]()
    it = project(tmp_path, way.files, options=way.options, seed=way.seed)
    before = it.rows()
    more = (*way.more, "--no-effects")
    stopped = applied(it, more=more)
    assert (stopped.code, "--allow people=unknown" in stopped.err) == (4, True), stopped
    assert applied(it, f"people={way.people}", more=more).code == ExitCode.BLOCKED
    plan = document(it, *more)
    assert (plan["effects"]["basis"], guard(plan)["total"]) == ("off", None)
    assert it.rows() == before
    assert applied(it, "people=unknown", more=more).code == 0


def test_what_becomes_optional_is_told_and_stops_nothing(tmp_path: Path) -> None:
    """Everybody still has it, so it is no loss."""
    it = project(tmp_path, {"all.yaml": "content_targets: [{content: Intro, mandatory: false, assign_to: [everyone]}]"})
    plan = document(it)
    assert plan["effects"]["people"] == {
        **dict.fromkeys(("gain", "lose", "to_mandatory", "window", "shortened"), 0)
    } | {"to_optional": ALL}
    assert (guard(plan)["total"], applied(it).code) == (0, 0)


@pytest.mark.parametrize(("audience", "number", "stops"), [("everyone", ALL, True), ("{group: Team}", 30, False)])
def test_what_becomes_mandatory_for_most_people_stops(tmp_path: Path, audience: str, number: int, stops: bool) -> None:
    """Half of all people is the limit; those who gain it count as those who had it as optional do."""
    it = project(
        tmp_path, {"all.yaml": f"content_targets: [{{content: Safety, mandatory: true, assign_to: [{audience}]}}]"}
    )
    assert guard(document(it), "mandatory")["total"] == number
    assert applied(it, f"mandatory={number + 1}").code == (ExitCode.BLOCKED if stops else ExitCode.OK)
    assert applied(it, f"mandatory={number}").code == ExitCode.OK


BINDING: dict[str, tuple[int, str]] = {
    "a condition is widened": (30, "smart_groups: [{name: Dept A, conditions: [{field: Dept, choices: [A, B]}]}]"),
    "answers change": (30, _answered(60, "A")),
    "members are added": (30, f"groups: [{{name: Team, members: {some(0, 60)}}}]"),
    "a window opens again": (ALL, "content_targets: [{content: Ended, mandatory: true, assign_to: [everyone]}]"),
    "optional becomes mandatory": (
        30,
        "content_targets: [{content: Other, mandatory: true, assign_to: [{group: Team}]}]",
    ),
    "a new group": (
        32,
        f"groups: [{{name: New, members: {some(10, 42)}}}]\n"
        "content_targets: [{content: Other, mandatory: true, assign_to: [{group: New}]}]",
    ),
    "split over kinds": (
        35,
        "smart_groups: [{name: Dept A, conditions: [{field: Dept, choices: [B]}]}]\n"
        f"groups: [{{name: Team, members: {some(10, 40)}}}]",
    ),
}
BOUND = f"""
{FIELDS}
{people()}
groups: [{{name: Team, members: {some(0, 30)}}}]
smart_groups: [{{name: Dept A, conditions: [{{field: Dept, choices: [A]}}]}}]
content: [{{name: Law}}, {{name: Safety}}, {{name: Ended}}, {{name: Other}}]
content_targets:
  - {{content: Law, mandatory: true, assign_to: [{{smart_group: Dept A}}]}}
  - {{content: Safety, mandatory: true, assign_to: [{{group: Team}}]}}
  - {{content: Ended, mandatory: true, assign_to: [everyone], visible_until: '2020-01-01T00:00:00Z'}}
  - {{content: Other, assign_to: [{{group: Team}}]}}
"""


@pytest.mark.parametrize("name", BINDING)
def test_what_makes_content_mandatory_stops_until_that_number_is_allowed(tmp_path: Path, name: str) -> None:
    """Directly or not: a guard that allows nobody counts each person once."""
    number, text = BINDING[name]
    it = project(tmp_path, {"all.yaml": text}, seed=BOUND)
    it.write_options(QUIET.replace("{deletes", "{people: off, mandatory: {count: 0}, deletes"))
    before, rows = seen(it), it.rows()
    stopped = applied(it)
    assert (stopped.code, f"--allow mandatory={number}\n" in f"{stopped.err}\n") == (4, True), stopped
    assert applied(it, f"mandatory={number - 1}").code == ExitCode.BLOCKED
    assert it.rows() == rows
    now = seconds(document(it)["created_at"]) or 0
    assert applied(it, f"mandatory={number}").code == ExitCode.OK
    assert evaluate(before, seen(it), now).mandatory == number


def test_new_accounts_do_not_lower_the_share_of_all_people(tmp_path: Path) -> None:
    """It is that of the people who are active when the plan is made: 32 of 62, though there are ten more afterwards."""
    new = "users:\n" + "".join(
        f"  - {{email: new{n}@acme.example, first_name: N, last_name: Ew, language: en}}\n" for n in range(10)
    )
    files = {"all.yaml": BINDING["a new group"][1], "new.yaml": new}
    it = project(tmp_path, files, options="people: {create: true}\n", seed=BOUND)
    assert (guard(document(it), "mandatory")["total"], applied(it).code) == (32, ExitCode.BLOCKED)


@pytest.mark.parametrize("limit", ["{count: off, share: 10%}", "{share: 90%}", "{count: 1000, share: off}"])
def test_a_number_that_is_not_known_stops_at_any_limit(tmp_path: Path, limit: str) -> None:
    """Of the two limits of a guard, one may be off: the other one is not kept either."""
    it = project(tmp_path, {"all.yaml": f"groups: [{{name: Team, members: {some(1, 30)}}}]"})
    it.write_options(QUIET.replace("{deletes", f"{{people: {limit}, deletes"))
    stopped = applied(it, more=("--no-effects",))
    assert (stopped.code, "--allow people=unknown" in stopped.err) == (ExitCode.BLOCKED, True), stopped
    assert applied(it, "people=unknown", more=("--no-effects",)).code == ExitCode.OK


HARMLESS = {
    "people are archived in 31 days": (_archived_at(0, 25, day(days=31)), ""),
    "another assignment holds them": (
        "content_targets: [{content: GDPR, mandatory: true, assign_to: [everyone]}]\n"
        "smart_groups: [{name: Sales, conditions: [{field: Dept, choices: [B]}]}]",
        "",
    ),
    "a window is cut after 30 days": (
        "content_targets: [{content: Intro, assign_to: [everyone], mandatory: true, "
        "visible_until: '2099-01-01T00:00:00Z'}]",
        "",
    ),
    "a window grows": (
        "content_targets: [{content: Ended, assign_to: [everyone]}]",
        "content: [{name: Ended}]\ncontent_targets: [{content: Ended, assign_to: [everyone], "
        "visible_until: '2020-01-01T00:00:00Z'}]\n",
    ),
    "what is over is deleted": (
        "absent: {content_targets: [{content: Ended, assign_to: [everyone]}]}",
        "content: [{name: Ended}]\ncontent_targets: [{content: Ended, assign_to: [everyone], "
        "visible_until: '2020-01-01T00:00:00Z'}]\n",
    ),
    "few lose": (f"groups: [{{name: Team, members: {some(2, 30)}}}]", ""),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_takes_nothing_away_passes(tmp_path: Path, name: str) -> None:
    """Nobody loses, or too few for the guard: no consent is asked for."""
    text, more = HARMLESS[name]
    it = project(tmp_path, {"all.yaml": text}, seed=FIELDS + people() + more if more else SEED)
    others = [one["allow"] for one in document(it)["guards"] if one["tripped"] and one["name"] != "people"]
    ran = applied(it, *others)
    assert ran.code == 0, ran


@pytest.mark.parametrize("hr", [None, "email\n", "name\nanna\n"])
def test_a_csv_that_is_missing_or_empty_is_no_list(tmp_path: Path, hr: str | None) -> None:
    """Nothing is planned, so nobody loses."""
    files = {"all.yaml": "groups: [{name: Team, members: {file: hr.csv, column: email}}]"}
    it = project(tmp_path, files | ({} if hr is None else {"hr.csv": hr}))
    before = it.rows()
    assert applied(it, "people=30").code == ExitCode.ERROR
    assert it.rows() == before


def test_an_e_mail_is_that_of_the_active_account(tmp_path: Path) -> None:
    """Of two accounts with one e-mail, the active one gains what a list gives."""
    people = "people: [{email: a@x.example}, {email: old@x.example, id: u-0, archived: true}, {email: b@x.example}]\n"
    seed = "groups: [{name: G}]\ncontent: [{name: C}]\ncontent_targets: [{content: C, assign_to: [{group: G}]}]\n"
    it = Project(tmp_path, people + seed)
    it.plan("groups: [{name: G, members: []}]\n")
    with closing(sqlite3.connect(tmp_path / "workspace.db")) as service, service:
        service.create_function("casefold", 1, str.casefold, deterministic=True)
        service.execute("UPDATE people SET email = 'a@x.example' WHERE id = 'u-0'")
    assert it.plan("groups: [{name: G, members: [a@x.example]}]\n").effects.people.gain == 1
