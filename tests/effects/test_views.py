"""What a plan does to people stands first in every view of it; names stand only in the file of `--people`."""

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from flow.altered_service import plan_against
from flow.project import Project
from flow.shell import Ran, lmsconf

from effects.crowd import QUIET, day, document
from lmsconf.errors import ExitCode
from lmsconf.model.effects import AccessCounts
from lmsconf.model.plan import GuardResult, Plan

CROWD = [f"p{n:02}@acme.example" for n in range(30)]
COUNTRIES = ["SE"] * 12 + ["NO"] * 18
SEED = (
    "people: ["
    + ", ".join(
        f"{{email: {one}, answers: {{Country: {country}}}}}" for one, country in zip(CROWD, COUNTRIES, strict=True)
    )
    + "]\ncustom_fields: [{name: Country, type: CHOICE, choices: [SE, NO]}]\n"
    "smart_groups: [{name: Nordics, conditions: [{field: Country, choices: [SE, NO]}]}]\n"
    "content: [{name: GDPR basics}, {name: Fire safety}]\n"
    "content_targets: [{content: GDPR basics, assign_to: [{smart_group: Nordics}]}]\n"
    "participations:\n"
    + "".join(f"  - {{user: {one}, content: GDPR basics, state: IN_PROGRESS}}\n" for one in CROWD[12:17])
)
NARROWED = "smart_groups:\n  - name: Nordics\n    conditions: [{field: Country, choices: [SE]}]\n"
RENAMED = "smart_groups: [{name: The North, previously: [Nordics]}]\n"
UNCHANGED = "groups: []\n"
FORMATS = ("text", "markdown", "html")
SENTENCE = "18 people in Nordics lose GDPR basics: 5 of them are in progress, 13 have not started. "
CAUSE = "Cause: smart_group/Nordics, manifests/all.yaml:2."
NOT_COUNTED = "Access through programs or purchases is not counted."


def plain(text: str) -> str:
    """What a reader reads: without markup and escapes."""
    text = re.sub(r"<[^>]*>", "", text.partition("<body>")[2] or text)
    return re.sub(r'[\\"*`]', "", text).replace("&#39;", "'")


def shown(folder: Path, format: str, *options: str) -> str:
    ran = lmsconf(folder, "plan", "--format", format, *options, code=ExitCode.OK)
    return plain(ran.out)


def guard(plan: Plan) -> GuardResult:
    """The guard that counts people who lose content."""
    (found,) = (one for one in plan.guards if one.name == "people")
    return found


@pytest.mark.parametrize("format", FORMATS)
def test_who_loses_what_and_why_stands_first(tmp_path: Path, format: str) -> None:
    """How many, of which content, how far they are, and the line of the change; the guard has the line to paste."""
    Project(tmp_path, SEED, "").write(NARROWED)
    text = shown(tmp_path, format)
    assert "Effects on people: 18 people lose content." in text
    assert SENTENCE.strip() in text
    assert CAUSE in text
    assert text.index(SENTENCE.strip()) < text.index("Plan: ")
    assert text.count(NOT_COUNTED) == 1
    assert "18 of the 30 people who have content GDPR basics lose it, and the limit is 10%" in text
    assert "lmsconf apply --allow people=18" in text.replace(f" -C {tmp_path}", "")


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("manifests", [NARROWED, RENAMED, UNCHANGED], ids=["loss", "nobody", "no change"])
def test_every_view_says_when_effects_are_not_computed(tmp_path: Path, manifests: str, format: str) -> None:
    """With --no-effects; and no view has a number of people that it does not know."""
    Project(tmp_path, SEED, "").write(manifests)
    text = shown(tmp_path, format, "--no-effects")
    assert "Effects on people: not computed (--no-effects)." in text
    assert not re.search(r"\d (people|person) (lose|gain)", text)
    if manifests == NARROWED:
        assert "the number of people who lose content is not known" in text
        assert "--allow people=unknown" in text


def test_a_group_whose_later_members_are_not_known_has_its_live_ones(tmp_path: Path) -> None:
    """A condition that lmsconf does not know leaves open who is in afterwards, but not who is in now."""
    plan = Project(tmp_path, SEED, "").plan(NARROWED.replace("SE]", "SE], system_condition: IS_FULL_MOON"))
    [group] = plan.effects.groups
    assert (str(group.address), group.basis.value) == ("smart_group/Nordics", "unknown")
    assert (group.before, group.after, group.join, group.leave) == (30, None, None, None)
    assert "30  not known  not known  not known  smart_group/Nordics" in lmsconf(tmp_path, "plan").out


@pytest.mark.parametrize("format", FORMATS)
def test_a_plan_that_affects_nobody_says_so_in_one_line(tmp_path: Path, format: str) -> None:
    """A rename moves nobody; a plan without changes says nothing about people."""
    Project(tmp_path, SEED, "").write(RENAMED)
    text = shown(tmp_path, format)
    assert text.count("Effects on people") == 1
    assert "Effects on people: nobody's access to content changes." in text
    assert NOT_COUNTED not in text
    Project(tmp_path, SEED, "").write(UNCHANGED)
    assert "Effects on people" not in shown(tmp_path, format)


def test_only_the_page_of_somebody_who_asks_names_people(tmp_path: Path) -> None:
    """With --people the page has the 18 who lose, and no other; text, comment and saved plan still have nobody."""
    Project(tmp_path, SEED, "").write(NARROWED)
    file, saved = str(tmp_path / "people.csv"), str(tmp_path / "plan.json")
    page = lmsconf(tmp_path, "plan", "--people", file, "--out", saved, "--format", "html").out
    assert sorted(set(re.findall(r"p\d\d@acme\.example", page))) == CROWD[12:]
    for format in ("text", "markdown", "json"):
        assert "@acme.example" not in lmsconf(tmp_path, "plan", "--people", file, "--format", format).out
    assert "@acme.example" not in lmsconf(tmp_path, "show", saved, "--format", "html").out
    refused = lmsconf(tmp_path, "--mask-people", "plan", "--people", file, "--format", "html")
    assert refused.code == ExitCode.USAGE
    assert "@acme.example" not in refused.out


def test_the_report_repeats_what_was_predicted(tmp_path: Path) -> None:
    """In one line, in every format, and when the report is shown again."""
    Project(tmp_path, SEED, "").write(NARROWED)
    ran = lmsconf(tmp_path, "apply", "--auto-approve", "--allow", "people=18", "--format", "json")
    assert ran.code == ExitCode.OK
    assert ran.document["predicted"]["people"]["lose"] == 18
    file = tmp_path / "report.json"
    file.write_text(ran.out, encoding="utf-8")
    for format in FORMATS:
        text = plain(lmsconf(tmp_path, "show", str(file), "--format", format).out)
        assert text.count("Predicted effects on people: 18 people lose content.") == 1


def test_a_saved_plan_that_is_stopped_says_who_loses_what(tmp_path: Path) -> None:
    """It is not shown again, so the error names the contents, or why nothing is known, and the line to paste."""
    Project(tmp_path, SEED, "").write(NARROWED)
    for options, why, allow in (
        ([], "18 of 30 lose GDPR basics", "--allow people=18"),
        (["--no-effects"], "--no-effects was given", "--allow people=unknown"),
    ):
        file = str(tmp_path / "plan.json")
        assert lmsconf(tmp_path, "plan", "--out", file, *options).code == ExitCode.OK
        ran = lmsconf(tmp_path, "apply", file, code=ExitCode.BLOCKED)
        assert f"\n  {why}\n" in ran.err
        assert allow in ran.err


@pytest.mark.parametrize(("number", "said"), [(1, "1 person who has content is"), (2, "2 people who have content are")])
def test_who_is_archived_soon_is_told(tmp_path: Path, number: int, said: str) -> None:
    """At a date of the plan within 30 days: until then nothing changes, and the guard by people counts them."""
    dated = [f"{{email: {one}, custom_archive_date: '{day(days=10)}'}}" for one in CROWD[:number]]
    plan = Project(tmp_path, SEED, "timezone: UTC\n").plan(f"users: [{', '.join(dated)}]")
    (problem,) = (one for one in plan.all_problems if one.code == "people/archived-soon")
    assert problem.message.startswith(f"{said} archived within 30 days")


@pytest.mark.parametrize(
    ("other", "told"),
    [
        ("", "nobody's access to content changes, but for accounts that the plan unarchives."),
        (f"groups: [{{name: New, members: [{CROWD[1]}]}}]", "accounts that the plan unarchives; members change in 1"),
        (f"users: [{{email: {CROWD[1]}, archived: true}}]", "1 person loses content"),
    ],
    ids=["alone", "members", "access"],
)
def test_who_is_unarchived_is_told(tmp_path: Path, other: str, told: str) -> None:
    """Archived people count in no number, so that a plan does not say that nobody's access changes."""
    it = Project(tmp_path, SEED, "")
    it.settled(f"users: [{{email: {CROWD[0]}, archived: true}}]", "people=1")
    it.write(other, "other.yaml")
    plan = it.plan(f"users: [{{email: {CROWD[0]}, archived: false}}]")
    (problem,) = (one for one in plan.all_problems if one.code == "people/unarchived")
    assert problem.message == "this plan unarchives 1 person; archived now, they are not in its numbers of people"
    assert told in lmsconf(tmp_path, "plan").out
    it.write("", "other.yaml")
    renamed = it.plan(f"users: [{{email: {CROWD[0]}, first_name: A}}]")
    assert "people/unarchived" not in [one.code for one in renamed.all_problems]


@pytest.mark.parametrize("least", [1, 999], ids=["passing", "failing"])
def test_a_test_hides_nobody_who_is_archived_soon(tmp_path: Path, least: int) -> None:
    """Beside `tests:`, whether they pass or fail, such people are told as without them."""
    it = Project(tmp_path, SEED, "timezone: UTC\n")
    it.write(f"tests: [{{audience: everyone, size: {{min: {least}}}}}]", "tests.yaml")
    plan = it.plan(f"users: [{{email: {CROWD[0]}, custom_archive_date: '{day(days=10)}'}}]")
    codes = [one.code for one in plan.all_problems]
    assert codes.count("people/archived-soon") == 1
    assert codes.count("test/failed") == (least > 1)


@pytest.mark.parametrize(("days", "soon"), [(5, 1), (15, 0)], ids=["sooner", "later"])
def test_an_archive_date_that_is_put_off_archives_nobody_sooner(tmp_path: Path, days: int, soon: int) -> None:
    """Of a person who would be archived in ten days, an earlier date is told and a later one is not."""
    it = Project(tmp_path, SEED, "timezone: UTC\n")
    it.settled(f"users: [{{email: {CROWD[0]}, custom_archive_date: '{day(days=10)}'}}]", "people=1")
    plan = it.plan(f"users: [{{email: {CROWD[0]}, custom_archive_date: '{day(days=days)}'}}]")
    assert [one.code for one in plan.all_problems].count("people/archived-soon") == soon


@pytest.mark.parametrize(
    ("key", "total"), [("first_name: Ann", 0), (f"custom_archive_date: '{day(days=100)}'", None)], ids=["name", "date"]
)
def test_a_plan_that_sets_an_archive_date_takes_content_away(tmp_path: Path, key: str, total: int | None) -> None:
    """However late the date is, without effects the number of people is not known; a new name takes nothing."""
    it = Project(tmp_path, SEED, "timezone: UTC\n")
    plan = it.plan(f"users: [{{email: {CROWD[0]}, {key}}}]", effects=False)
    assert (guard(plan).total, guard(plan).tripped) == (total, total is None)


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
    assert (plan.effects.people, guard(plan).total) == (known, total)


@pytest.mark.parametrize(
    ("type", "moves"),
    [("USER", []), ("GROUP", [(1, 1)]), ("TEAM", [(None, None)])],
)
def test_an_id_that_a_group_and_a_person_have_is_told_apart_by_the_type(
    tmp_path: Path, type: str, moves: list[tuple[int | None, int | None]]
) -> None:
    """Members of the group change: one for the person counts nobody; with one that may be either it is not known."""
    it = Project(tmp_path, f"{SEED}groups: [{{name: Crew, members: [{CROWD[1]}]}}]\n", "")

    def edit(snapshot: dict[str, Any]) -> None:
        [crew] = snapshot["group"]
        crew["id"] = next(row["id"] for row in snapshot["user"] if row["email"] == CROWD[0])
        snapshot["content_target"][0].update(target=crew["id"], type=type, label="")
        shared.append(crew["id"])

    shared: list[str] = []
    plan = plan_against(it, f"groups: [{{name: Crew, members: [{CROWD[0]}]}}]", edit)
    assert [(one.counts.gain, one.counts.lose) for one in plan.effects.contents] == moves
    unclear = f"an assignment is for TEAM id {shared[0]}, which is in several lists"
    assert plan.effects.reasons == ((unclear,) if type == "TEAM" else ())


def test_the_groups_that_an_archived_person_leaves_are_told(tmp_path: Path) -> None:
    """Also those that no content is assigned to; the groups of others are not."""
    groups = f"groups: [{{name: Team, members: [{CROWD[0]}, {CROWD[1]}]}}, {{name: Crew, members: [{CROWD[1]}]}}]\n"
    Project(tmp_path, SEED + groups, "").write(f"users: [{{email: {CROWD[0]}, archived: true}}]")
    text = shown(tmp_path, "text")
    assert re.search(r" 2 +1 +0 +1  group/Team\n", text)
    assert "group/Crew" not in text


def test_people_are_listed_once_for_the_plan_and_its_effects(tmp_path: Path) -> None:
    """What the plan itself has read of people is what its effects rest on."""
    it = Project(tmp_path, SEED, "")
    assert it.plan(f"groups: [{{name: New, members: [{CROWD[0]}]}}]\n{NARROWED}").effects.people.lose == 18
    # The second dialect has ten pages of three people, and an empty one; read twice, there are two or 22 requests.
    assert [call.operation for call in it.calls].count("users.list") in (1, 11)


# Counts, no names: who gains and who loses stands in the file of `--people` and nowhere else.


VIEWS = ("text", "json", "markdown", "html")
DECLARED = ("told1", "told2", "told3")
"""People that the manifests name."""
QUIETLY = [f"canary{number}" for number in range(30)]
"""People who gain or lose access, and that no manifest names."""
_PEOPLE = "".join(
    f"  - {{email: {one}@acme.example, id: u-{n}, first_name: First{one}, last_name: Last{one}, "
    f"metadata: {{badge: badge{one}}}, answers: {{Dept: {'AB'[n % 2]}, Nick: nick{one}}}}}\n"
    for n, one in enumerate((*DECLARED, *QUIETLY))
)
OPEN_TO_ALL = f"""
people:
  - {{email: root1@acme.example, admin: true}}
  - {{email: root2@acme.example, admin: true}}
{_PEOPLE}
custom_fields: [{{name: Dept, type: CHOICE, choices: [A, B]}}, {{name: Nick, type: TEXT}}]
groups: [{{name: Team, members: [{", ".join(f"{one}@acme.example" for one in (*DECLARED, *QUIETLY))}]}}]
smart_groups:
  - {{name: Sales, conditions: [{{field: Dept, choices: [A, B]}}]}}
  - {{name: Odd, conditions: [{{field: Nick, system_condition: IS_ANY}}]}}
content: [{{name: GDPR}}, {{name: Safety}}, {{name: Law}}, {{name: Extra}}]
content_targets:
  - {{content: GDPR, mandatory: true, assign_to: [{{smart_group: Sales}}]}}
  - {{content: Safety, assign_to: [{{group: Team}}]}}
  - {{content: Law, assign_to: [{{smart_group: Odd}}]}}
  - {{content: Extra, assign_to: [{{smart_group: Sales}}, {{user: canary3@acme.example}}]}}
"""
SALES_OF_B = """
smart_groups: [{name: Sales, conditions: [{field: Dept, choices: [B]}]}]
content_targets:
  - {content: Safety, assign_to: [{group: Team, visible_until: '2020-01-01T00:00:00Z'}]}
  - {content: Law, assign_to: [{user: told3@acme.example}, {smart_group: Sales}]}
users: [{email: told1@acme.example, archived: true}]
"""
UNKNOWN = f"""{SALES_OF_B}groups: [{{name: Team, members: {{exclude: [told2@acme.example]}}}}]
"""
COLUMNS = [
    *("email", "content", "content_id", "change", "before", "after", "from_before", "until_before"),
    *("from_after", "until_after", "shortened", "causes"),
]
NOT_NAMED = re.compile("canary", re.IGNORECASE)
NOBODY = re.compile(r"canary|told\d|firsttold|root\d@", re.IGNORECASE)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    it = Project(tmp_path, OPEN_TO_ALL, QUIET)
    it.write(SALES_OF_B)
    return it


def _everything(ran: Ran) -> str:
    return ran.out + ran.err


@pytest.mark.sampled
@pytest.mark.parametrize("format", VIEWS)
@pytest.mark.parametrize("manifests", [SALES_OF_B, UNKNOWN], ids=["narrowed", "and excluded"])
def test_a_plan_names_only_whom_its_changes_name(project: Project, format: str, manifests: str) -> None:
    """Thirty people lose and gain; none of them is named, on stdout or stderr.

    An assignment to a person that is live beside a declared one is listed as unmanaged, with the person; there is none.
    """
    project.write(manifests)
    assert document(project)["effects"]["people"]["lose"] >= 15
    ran = lmsconf(project.root, "plan", "--format", format)
    assert "told" in ran.out
    assert not NOT_NAMED.search(_everything(ran))


@pytest.mark.sampled(day=2)
@pytest.mark.parametrize("format", VIEWS)
def test_a_masked_plan_names_nobody(project: Project, format: str) -> None:
    """People that the changes name are left out too."""
    ran = lmsconf(project.root, "--mask-people", "plan", "--format", format, code=0)
    assert not NOBODY.search(_everything(ran))


def test_effects_name_nobody_but_in_addresses_of_changes(project: Project) -> None:
    """Causes are addresses of changes; beside them there are counts, contents and groups."""
    plan = document(project)
    effects = json.dumps(plan["effects"])
    assert not NOT_NAMED.search(effects)
    for change in plan["changes"]:
        effects = effects.replace(json.dumps(change["address"]), "")
    assert not NOBODY.search(effects)


@pytest.mark.sampled(day=2)
@pytest.mark.parametrize("format", VIEWS)
def test_naming_people_in_a_file_names_them_nowhere_else(project: Project, format: str) -> None:
    """`--people` writes names to its file, for its owner alone, and into a page, which has a search for them."""
    ran = lmsconf(project.root, "plan", "--people", "rows.csv", "--format", format, "--out", "plan.json")
    assert bool(NOT_NAMED.search(_everything(ran))) is (format == "html")
    assert not NOT_NAMED.search((project.root / "plan.json").read_text())
    rows = project.root / "rows.csv"
    assert len(NOT_NAMED.findall(rows.read_text())) >= 30
    assert stat.S_IMODE(rows.stat().st_mode) == 0o600
    ran = lmsconf(project.root, "show", "plan.json", "--format", format)
    assert not NOT_NAMED.search(_everything(ran))


def test_an_apply_that_stops_or_passes_names_nobody_else(project: Project) -> None:
    """Neither the guard's sentence nor the report."""
    stopped = lmsconf(project.root, "apply", "--auto-approve")
    assert (stopped.code, NOT_NAMED.search(_everything(stopped))) == (4, None)
    allowed = [word for one in document(project)["guards"] if one["tripped"] for word in ("--allow", one["allow"])]
    ran = lmsconf(project.root, "apply", "--auto-approve", *allowed)
    assert (ran.code, NOT_NAMED.search(_everything(ran))) == (0, None)
    files = "".join(one.read_bytes().decode("utf-8", "replace") for one in project.root.rglob("*.jsonl"))
    assert not NOT_NAMED.search(files)


TESTED = """tests:
  - {all: {group: Team}, has: GDPR}
  - {none: {group: Team}, has: Law}
  - {disjoint: [{group: Team}, {smart_group: Sales}]}
"""
ASKED = [
    *(("plan", "--format", format) for format in ("github", "sarif", "codequality")),
    ("--verbose", "plan"),
    ("plan", "--events", "-"),
    ("plan", "--no-effects", "--format", "json"),
    *(("test", "--format", format) for format in ("text", "json", "junit")),
    *(("audience", "group/Team", "--by", by, "--format", "json") for by in ("Dept", "Nick")),
    *(("audience", "smart_group/Sales", "--format", format) for format in ("text", "csv")),
    ("access", "told2@acme.example"),
    ("drift",),
]


@pytest.mark.sampled
@pytest.mark.parametrize("arguments", ASKED, ids=" ".join)
def test_no_other_command_names_people_who_were_not_asked_for(project: Project, arguments: tuple[str, ...]) -> None:
    """Failing tests, sizes, lints, events and logged requests of a plan through which thirty people lose."""
    project.write(TESTED, "tests.yaml")
    ran = lmsconf(project.root, *arguments)
    assert ran.code in (0, 1, 2), ran
    assert ran.out
    assert not NOT_NAMED.search(_everything(ran))


def test_csv_and_json_hold_the_same_rows(project: Project) -> None:
    """Column by column; causes are joined by `; `, and null is an empty cell."""
    import csv

    for name in ("rows.csv", "rows.json"):
        assert lmsconf(project.root, "plan", "--people", name).code == 0
    written = json.loads((project.root / "rows.json").read_text())
    assert written["format"] == "lmsconf.people/1"
    with (project.root / "rows.csv").open(encoding="utf-8-sig", newline="") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == COLUMNS
    assert lines == [{key: _cell(value) for key, value in one.items()} for one in written["rows"]]


def test_no_cell_of_the_csv_is_a_formula(tmp_path: Path) -> None:
    """E-mails and contents that a spreadsheet would compute begin with an apostrophe; JSON has them as they are."""
    import csv

    content, email = "=HYPERLINK(1)", "=cmd|x@acme.example"
    seed = f"""
people: [{{email: "{email}"}}, {{email: "+p@acme.example"}}]
groups: [{{name: "@Team", members: ["{email}", "+p@acme.example"]}}]
content: [{{name: "{content}"}}]
"""
    it = Project(tmp_path, seed, QUIET)
    it.write(f'content_targets: [{{content: "{content}", assign_to: [{{group: "@Team"}}]}}]')
    for name in ("rows.csv", "rows.json"):
        assert lmsconf(it.root, "plan", "--people", name).code == 0
    rows = json.loads((it.root / "rows.json").read_text())["rows"]
    assert {(one["email"], one["content"]) for one in rows} == {(email, content), ("+p@acme.example", content)}
    with (it.root / "rows.csv").open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    assert {(one["email"], one["content"]) for one in lines} == {
        (f"'{email}", f"'{content}"),
        ("'+p@acme.example", f"'{content}"),
    }


def _cell(value: object) -> str:
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
