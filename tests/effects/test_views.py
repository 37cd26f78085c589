"""What a plan does to people stands first in every view of it; names stand only in the file of `--people`."""

import csv
import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from flow.altered_service import plan_against
from flow.project import Project, guard
from flow.shell import Ran, lmsconf
from texts import text_of

from effects.crowd import QUIET, applied, day, document
from lmsconf.errors import ExitCode
from lmsconf.model.effects import AccessCounts

CROWD = [f"p{n:02}@acme.example" for n in range(30)]
SEED = (
    "people: ["
    + ", ".join(f"{{email: {one}, answers: {{Country: {'SE' if one < CROWD[12] else 'NO'}}}}}" for one in CROWD)
    + """]
custom_fields: [{name: Country, type: CHOICE, choices: [SE, NO]}]
smart_groups: [{name: Nordics, conditions: [{field: Country, choices: [SE, NO]}]}]
content: [{name: GDPR basics}, {name: Fire safety}]
content_targets: [{content: GDPR basics, assign_to: [{smart_group: Nordics}]}]
participations:
"""
    + "".join(f"  - {{user: {one}, content: GDPR basics, state: IN_PROGRESS}}\n" for one in CROWD[12:17])
)
NARROWED = "smart_groups:\n  - name: Nordics\n    conditions: [{field: Country, choices: [SE]}]\n"
RENAMED = "smart_groups: [{name: The North, previously: [Nordics]}]\n"
UNCHANGED = "groups: []\n"
FORMATS = ("text", "markdown", "html")
SENTENCE = "18 people in Nordics lose GDPR basics: 5 of them are in progress, 13 have not started."
CAUSE = "Cause: smart_group/Nordics, manifests/all.yaml:2."
NOT_COUNTED = "Access through programs or purchases is not counted."


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A workspace in which thirty people have a content; the manifest takes it away from eighteen of them."""
    it = Project(tmp_path, SEED, "timezone: UTC\n")
    it.write(NARROWED)
    return it


def plain(text: str) -> str:
    """What a reader reads: without markup and escapes."""
    text = re.sub(r"<[^>]*>", "", text.partition("<body>")[2] or text)
    return re.sub(r'[\\"*`]', "", text).replace("&#39;", "'")


def shown(project: Project, format: str, *options: str) -> str:
    return plain(lmsconf(project.root, "plan", "--format", format, *options, code=ExitCode.OK).out)


@pytest.mark.parametrize("format", FORMATS)
def test_who_loses_what_and_why_stands_first(project: Project, format: str) -> None:
    """How many, of which content, how far they are, and the line of the change; the guard has the line to paste."""
    text = shown(project, format)
    assert "Effects on people: 18 people lose content." in text
    assert CAUSE in text
    assert text.index(SENTENCE) < text.index("Plan: ")
    assert text.count(NOT_COUNTED) == 1
    assert "18 of the 30 people who have content GDPR basics lose it, and the limit is 10%" in text
    assert "lmsconf apply --allow people=18" in text.replace(f" -C {project.root}", "")


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("manifests", [NARROWED, RENAMED, UNCHANGED], ids=["loss", "nobody", "no change"])
def test_every_view_says_when_effects_are_not_computed(project: Project, manifests: str, format: str) -> None:
    """With --no-effects; and no view has a number of people that it does not know."""
    project.write(manifests)
    text = shown(project, format, "--no-effects")
    assert "Effects on people: not computed (--no-effects)." in text
    assert not re.search(r"\d (people|person) (lose|gain)", text)
    if manifests == NARROWED:
        assert "the number of people who lose content is not known" in text
        assert "--allow people=unknown" in text


@pytest.mark.parametrize("format", FORMATS)
def test_a_plan_that_affects_nobody_says_so_in_one_line(project: Project, format: str) -> None:
    """A rename moves nobody; a plan without changes says nothing about people."""
    project.write(RENAMED)
    text = shown(project, format)
    assert text.count("Effects on people") == 1
    assert "Effects on people: nobody's access to content changes." in text
    assert NOT_COUNTED not in text
    project.write(UNCHANGED)
    assert "Effects on people" not in shown(project, format)


def test_the_report_repeats_what_was_predicted(project: Project) -> None:
    """In one line, in every format, and when the report is shown again."""
    ran = applied(project, "people=18", more=("--format", "json"))
    assert (ran.code, ran.document["predicted"]["people"]["lose"]) == (ExitCode.OK, 18)
    (project.root / "report.json").write_text(ran.out, encoding="utf-8")
    for format in FORMATS:
        text = plain(lmsconf(project.root, "show", "report.json", "--format", format).out)
        assert text.count("Predicted effects on people: 18 people lose content.") == 1


def test_a_saved_plan_that_is_stopped_says_who_loses_what(project: Project) -> None:
    """It is not shown again, so the error names the contents, or why nothing is known, and the line to paste."""
    for options, why, allow in (
        ([], "18 of 30 lose GDPR basics", "--allow people=18"),
        (["--no-effects"], "--no-effects was given", "--allow people=unknown"),
    ):
        assert lmsconf(project.root, "plan", "--out", "plan.json", *options).code == ExitCode.OK
        ran = lmsconf(project.root, "apply", "plan.json", code=ExitCode.BLOCKED)
        assert f"\n  {why}\n" in ran.err
        assert allow in ran.err


def dated(days: int, number: int = 1) -> str:
    """Manifests by which so many people are archived in so many days."""
    people = (f"{{email: {one}, custom_archive_date: '{day(days=days)}'}}" for one in CROWD[:number])
    return f"users: [{', '.join(people)}]"


@pytest.mark.parametrize(
    ("manifests", "live", "least", "told"),
    [
        (dated(10), None, None, "1 person who has content is archived within 30 days"),
        (dated(10, 2), None, None, "2 people who have content are archived within 30 days"),
        (dated(10), None, 1, "1 person who has content is archived within 30 days"),
        (dated(10), None, 999, "1 person who has content is archived within 30 days"),
        (dated(5), dated(10), None, "1 person who has content is archived within 30 days"),
        (dated(15), dated(10), None, None),
    ],
    ids=["one", "two", "beside a test that passes", "beside a test that fails", "sooner", "later"],
)
def test_who_is_archived_soon_is_told(
    project: Project, manifests: str, live: str | None, least: int | None, told: str | None
) -> None:
    """At a date of the plan within 30 days: until then nothing changes, and the guard by people counts them.

    Tests hide nobody. Of a person who would be archived in ten days, an earlier date is told and a later one is not.
    """
    if live:
        project.settled(live, "people=1")
    if least:
        project.write(f"tests: [{{audience: everyone, size: {{min: {least}}}}}]", "tests.yaml")
    problems = project.plan(manifests).all_problems
    said = [one.message.partition(" (")[0] for one in problems if one.code == "people/archived-soon"]
    assert len(said) == (told is not None)
    assert all(one.startswith(str(told)) for one in said)
    assert [one.code for one in problems].count("test/failed") == (least == 999)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("", "nobody's access to content changes, but for accounts that the plan unarchives."),
        (f"groups: [{{name: New, members: [{CROWD[1]}]}}]", "accounts that the plan unarchives; members change in 1"),
        (f"users: [{{email: {CROWD[1]}, archived: true}}]", "1 person loses content"),
    ],
    ids=["alone", "members", "access"],
)
def test_who_is_unarchived_is_told(project: Project, other: str, told: str) -> None:
    """Archived people count in no number, so that a plan does not say that nobody's access changes."""
    project.settled(f"users: [{{email: {CROWD[0]}, archived: true}}]", "people=1")
    project.write(other, "other.yaml")
    plan = project.plan(f"users: [{{email: {CROWD[0]}, archived: false}}]")
    (problem,) = (one for one in plan.all_problems if one.code == "people/unarchived")
    assert problem.message == "this plan unarchives 1 person; archived now, they are not in its numbers of people"
    assert told in lmsconf(project.root, "plan").out
    project.write("", "other.yaml")
    renamed = project.plan(f"users: [{{email: {CROWD[0]}, first_name: A}}]")
    assert "people/unarchived" not in [one.code for one in renamed.all_problems]


@pytest.mark.parametrize(
    ("manifests", "total"),
    [(f"users: [{{email: {CROWD[0]}, first_name: Ann}}]", 0), (dated(100), None)],
    ids=["name", "date"],
)
def test_a_plan_that_sets_an_archive_date_takes_content_away(
    project: Project, manifests: str, total: int | None
) -> None:
    """However late the date is, without effects the number of people is not known; a new name takes nothing."""
    found = guard(project.plan(manifests, effects=False), "people")
    assert (found.total, found.tripped) == (total, total is None)


@pytest.mark.parametrize(
    ("members", "known", "total"),
    [(CROWD[:2], AccessCounts(lose=0, shortened=0), 0), (CROWD[1:2], AccessCounts(), None)],
    ids=["one more", "an exchange"],
)
def test_an_assignment_to_an_unlisted_audience_is_a_reason(
    tmp_path: Path, members: list[str], known: AccessCounts, total: int | None
) -> None:
    """Nothing is known of who has its content; but a plan that only adds takes it from nobody."""
    seed = SEED.replace("[{smart_group: Nordics}]", "[{group: Team}, {smart_group: Nordics}]")
    it = Project(tmp_path, f"{seed}groups: [{{name: Team, members: [{CROWD[0]}]}}]\n", "")

    def edit(snapshot: dict[str, Any]) -> None:
        for target in snapshot["content_target"]:
            if target["type"] != "GROUP":
                target.update(target="t-9", type="TEAM", label="")

    plan = plan_against(it, f"groups: [{{name: Team, members: [{', '.join(members)}]}}]", edit)
    assert plan.effects.reasons == ("an assignment is for TEAM id t-9, which is in no list",)
    assert [(one.content, one.counts) for one in plan.effects.contents] == [("GDPR basics", known)]
    assert (plan.effects.people, guard(plan, "people").total) == (known, total)


@pytest.mark.parametrize(
    ("type", "moves", "reasons"),
    [
        ("USER", [], ()),
        ("GROUP", [(1, 1)], ()),
        ("TEAM", [(None, None)], ("an assignment is for TEAM id SHARED, which is in several lists",)),
    ],
)
def test_an_id_that_a_group_and_a_person_have_is_told_apart_by_the_type(
    tmp_path: Path, type: str, moves: list[tuple[int | None, int | None]], reasons: tuple[str, ...]
) -> None:
    """Members of the group change: one for the person counts nobody; with one that may be either it is not known."""
    people = SEED.replace(f"{{email: {CROWD[0]},", f"{{email: {CROWD[0]}, id: SHARED,")
    it = Project(tmp_path, f"{people}groups: [{{name: Crew, members: [{CROWD[1]}]}}]\n", "")

    def edit(snapshot: dict[str, Any]) -> None:
        snapshot["group"][0]["id"] = "SHARED"
        snapshot["content_target"][0].update(target="SHARED", type=type, label="")

    effects = plan_against(it, f"groups: [{{name: Crew, members: [{CROWD[0]}]}}]", edit).effects
    assert [(one.counts.gain, one.counts.lose) for one in effects.contents] == moves
    assert effects.reasons == reasons


@pytest.mark.parametrize(
    ("manifests", "groups"),
    [
        (NARROWED.replace("SE]", "SE], system_condition: IS_ODD"), [("smart_group/Nordics", 30, None, None, None)]),
        (
            f"users: [{{email: {CROWD[0]}, archived: true}}]",
            [("group/Team", 2, 1, 0, 1), ("smart_group/Nordics", 30, 29, 0, 1)],
        ),
    ],
    ids=["an unknown condition", "an archived person"],
)
def test_groups_whose_members_change_are_told(tmp_path: Path, manifests: str, groups: list[tuple[object, ...]]) -> None:
    """A condition that lmsconf does not know leaves open who is in afterwards, but not who is in now.

    Of an archived person also those that no content is assigned to; the groups of others are not.
    """
    seed = f"groups: [{{name: Team, members: [{CROWD[0]}, {CROWD[1]}]}}, {{name: Crew, members: [{CROWD[1]}]}}]\n"
    found = Project(tmp_path, SEED + seed, "").plan(manifests).effects.groups
    assert [(str(one.address), one.before, one.after, one.join, one.leave) for one in found] == groups


def test_people_are_listed_once_for_the_plan_and_its_effects(project: Project) -> None:
    """What the plan itself has read of people is what its effects rest on."""
    assert project.plan(f"groups: [{{name: New, members: [{CROWD[0]}]}}]\n{NARROWED}").effects.people.lose == 18
    # The second dialect has ten pages of three people, and an empty one; read twice, there are two or 22 requests.
    assert [call.operation for call in project.calls].count("users.list") in (1, 11)


# Counts, no names: who gains and who loses stands in the file of `--people` and nowhere else.


VIEWS = ("text", "json", "markdown", "html")
DECLARED = ("told1", "told2", "told3")
"""People that the manifests name."""
QUIETLY = [f"canary{number}" for number in range(30)]
"""People who gain or lose access, and that no manifest names."""
EVERYBODY = (*DECLARED, *QUIETLY)
OPEN_TO_ALL = text_of(__file__, "open_to_all_seed.yaml").replace("TEAM", "@acme.example, ".join([*EVERYBODY, ""]))
OPEN_TO_ALL += "".join(
    f"  - {{email: {one}@acme.example, id: u-{n}, first_name: First{one}, last_name: Last{one}, "
    f"metadata: {{badge: badge{one}}}, answers: {{Dept: {'AB'[n % 2]}, Nick: nick{one}}}}}\n"
    for n, one in enumerate(EVERYBODY)
)
SALES_OF_B = """
smart_groups: [{name: Sales, conditions: [{field: Dept, choices: [B]}]}]
content_targets:
  - {content: Safety, assign_to: [{group: Team, visible_until: '2020-01-01T00:00:00Z'}]}
  - {content: Law, assign_to: [{user: told3@acme.example}, {smart_group: Sales}]}
users: [{email: told1@acme.example, archived: true}]
"""
EXCLUDED = "groups: [{name: Team, members: {exclude: [told2@acme.example]}}]\n"
TESTED = """tests:
  - {all: {group: Team}, has: GDPR}
  - {none: {group: Team}, has: Law}
  - {disjoint: [{group: Team}, {smart_group: Sales}]}
"""
NOT_NAMED = re.compile("canary", re.IGNORECASE)
NOBODY = re.compile(r"canary|told\d|firsttold|root\d@", re.IGNORECASE)


@pytest.fixture
def open_to_all(tmp_path: Path) -> Project:
    it = Project(tmp_path, OPEN_TO_ALL, QUIET)
    it.write(SALES_OF_B)
    return it


def _everything(ran: Ran) -> str:
    return ran.out + ran.err


ASKED = [
    *(("plan", "--format", format) for format in (*VIEWS, "github", "sarif", "codequality")),
    *(("--mask-people", "plan", "--format", format) for format in VIEWS),
    ("--verbose", "plan"),
    ("plan", "--events", "-"),
    ("plan", "--no-effects", "--format", "json"),
    *(("test", "--format", format) for format in ("text", "json", "junit")),
    *(("audience", "group/Team", "--by", by, "--format", "json") for by in ("Dept", "Nick")),
    *(("audience", "smart_group/Sales", "--format", format) for format in ("text", "csv")),
    ("access", "told2@acme.example"),
    ("drift",),
]


@pytest.mark.sampled(day=8)
@pytest.mark.parametrize("arguments", ASKED, ids=" ".join)
@pytest.mark.parametrize("more", ["", EXCLUDED], ids=["narrowed", "and excluded"])
def test_no_command_names_people_who_were_not_asked_for(
    open_to_all: Project, arguments: tuple[str, ...], more: str
) -> None:
    """Changes, failing tests, sizes, lints, events and logged requests of a plan through which thirty people lose.

    People that the changes name are left out of a masked plan, too. An assignment to a person that is live beside a
    declared one is listed as unmanaged, with the person; there is none.
    """
    open_to_all.write(SALES_OF_B + more)
    open_to_all.write(TESTED, "tests.yaml")
    ran = lmsconf(open_to_all.root, *arguments)
    assert ran.code in (0, 1, 2), ran
    assert ran.out
    assert not (NOBODY if "--mask-people" in arguments else NOT_NAMED).search(_everything(ran))
    if arguments[:2] == ("plan", "--format") and arguments[2] in VIEWS:
        assert "told1" in ran.out


def test_effects_name_nobody_but_in_addresses_of_changes(open_to_all: Project) -> None:
    """Causes are addresses of changes; beside them there are counts, contents and groups."""
    plan = document(open_to_all)
    assert plan["effects"]["people"]["lose"] >= 15
    effects = json.dumps(plan["effects"])
    assert not NOT_NAMED.search(effects)
    for change in plan["changes"]:
        effects = effects.replace(json.dumps(change["address"]), "")
    assert not NOBODY.search(effects)


@pytest.mark.parametrize("format", VIEWS)
def test_naming_people_in_a_file_names_them_nowhere_else(open_to_all: Project, format: str) -> None:
    """`--people` writes names to its file, for its owner alone, and into a page, which has a search for them.

    The page has those whose access changes, and no other; with `--mask-people` it is refused.
    """
    root = open_to_all.root
    ran = lmsconf(root, "plan", "--people", "rows.csv", "--format", format, "--out", "plan.json")
    rows = root / "rows.csv"
    named = set(re.findall(r"canary\d+@", rows.read_text()))
    assert named == {f"{one}@" for one in QUIETLY}
    assert set(re.findall(r"canary\d+@", _everything(ran))) == (named if format == "html" else set())
    assert bool(NOT_NAMED.search(_everything(ran))) is (format == "html")
    assert not NOT_NAMED.search((root / "plan.json").read_text())
    assert stat.S_IMODE(rows.stat().st_mode) == 0o600
    assert not NOT_NAMED.search(_everything(lmsconf(root, "show", "plan.json", "--format", format)))
    refused = lmsconf(root, "--mask-people", "plan", "--people", "rows.csv", "--format", format)
    assert (refused.code, NOT_NAMED.search(_everything(refused))) == (ExitCode.USAGE, None)


def test_an_apply_that_stops_or_passes_names_nobody_else(open_to_all: Project) -> None:
    """Neither the guard's sentence nor the report."""
    stopped = applied(open_to_all)
    assert (stopped.code, NOT_NAMED.search(_everything(stopped))) == (4, None)
    ran = applied(open_to_all, *(one["allow"] for one in document(open_to_all)["guards"] if one["tripped"]))
    assert (ran.code, NOT_NAMED.search(_everything(ran))) == (0, None)
    files = "".join(one.read_bytes().decode("utf-8", "replace") for one in open_to_all.root.rglob("*.jsonl"))
    assert not NOT_NAMED.search(files)


COLUMNS = [
    *("email", "content", "content_id", "change", "before", "after", "from_before", "until_before"),
    *("from_after", "until_after", "shortened", "causes"),
]


def test_csv_and_json_hold_the_same_rows(tmp_path: Path) -> None:
    """Column by column; causes are joined by `; `, and null is an empty cell.

    E-mails and contents that a spreadsheet would compute begin with an apostrophe; JSON has them as they are.
    """
    it = Project(tmp_path, text_of(__file__, "formulas_seed.yaml"), QUIET + "timezone: UTC\n")
    it.write("""content_targets:
  - {content: "=HYPERLINK(1)", assign_to: [{group: "@Team"}]}
  - {content: Law, visible_until: 2020-01-01, assign_to: [{user: +p@acme.example}]}
users: [{email: +p@acme.example, archived: true}]
""")
    for name in ("rows.csv", "rows.json"):
        assert lmsconf(it.root, "plan", "--people", name).code == 0
    written = json.loads((it.root / "rows.json").read_text())
    assert written["format"] == "lmsconf.people/1"
    assert {(one["email"], one["content"]) for one in written["rows"]} == {
        ("=cmd|x@acme.example", "=HYPERLINK(1)"),
        ("+p@acme.example", "Law"),
    }
    assert max(len(one["causes"]) for one in written["rows"]) == 2
    with (it.root / "rows.csv").open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == COLUMNS
    assert lines == [{key: _cell(value) for key, value in one.items()} for one in written["rows"]]


def _cell(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(str, value))
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return f"'{text}" if text.startswith(("=", "+", "@")) else text
