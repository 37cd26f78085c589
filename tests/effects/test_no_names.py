"""Counts, no names: who gains and who loses stands in the file of `--people` and nowhere else."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path

import pytest
from flow.project import Project
from flow.shell import Ran, lmsconf

from effects.crowd import QUIET, document

FORMATS = ("text", "json", "markdown", "html")
DECLARED = ("told1", "told2", "told3")
"""People whom the manifests name."""
QUIETLY = [f"canary{number}" for number in range(30)]
"""People who gain or lose, and whom no manifest names."""
_PEOPLE = "".join(
    f"  - {{email: {one}@acme.example, id: u-{n}, first_name: First{one}, last_name: Last{one}, "
    f"metadata: {{badge: badge{one}}}, answers: {{Dept: {'AB'[n % 2]}, Nick: nick{one}}}}}\n"
    for n, one in enumerate((*DECLARED, *QUIETLY))
)
SEED = f"""
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
NARROWED = """
smart_groups: [{name: Sales, conditions: [{field: Dept, choices: [B]}]}]
content_targets:
  - {content: Safety, assign_to: [{group: Team, visible_until: '2020-01-01T00:00:00Z'}]}
  - {content: Law, assign_to: [{user: told3@acme.example}, {smart_group: Sales}]}
users: [{email: told1@acme.example, archived: true}]
"""
UNKNOWN = f"""{NARROWED}groups: [{{name: Team, members: {{exclude: [told2@acme.example]}}}}]
"""
COLUMNS = [
    *("email", "content", "content_id", "change", "before", "after", "from_before", "until_before"),
    *("from_after", "until_after", "shortened", "causes"),
]
NOT_NAMED = re.compile("canary", re.IGNORECASE)
NOBODY = re.compile(r"canary|told\d|firsttold|root\d@", re.IGNORECASE)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    it = Project(tmp_path, SEED, QUIET)
    it.write(NARROWED)
    return it


def _everything(ran: Ran) -> str:
    return ran.out + ran.err


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("manifests", [NARROWED, UNKNOWN], ids=["narrowed", "and excluded"])
def test_a_plan_names_only_whom_its_changes_name(project: Project, format: str, manifests: str) -> None:
    """Thirty people lose and gain; none of them is named, on stdout or stderr.

    An assignment to a person that is live beside a declared one is listed as unmanaged, with the person; there is none.
    """
    project.write(manifests)
    assert document(project)["effects"]["people"]["lose"] >= 15
    ran = lmsconf(project.root, "plan", "--format", format)
    assert "told" in ran.out
    assert not NOT_NAMED.search(_everything(ran))


@pytest.mark.parametrize("format", FORMATS)
def test_a_masked_plan_names_nobody(project: Project, format: str) -> None:
    """Not those either whom the changes name."""
    ran = lmsconf(project.root, "--mask-people", "plan", "--format", format)
    assert ran.code == 0, ran
    assert not NOBODY.search(_everything(ran))


def test_effects_name_nobody_but_in_addresses_of_changes(project: Project) -> None:
    """Causes are addresses of changes; beside them there are counts, contents and groups."""
    plan = document(project)
    effects = json.dumps(plan["effects"])
    assert not NOT_NAMED.search(effects)
    for change in plan["changes"]:
        effects = effects.replace(json.dumps(change["address"]), "")
    assert not NOBODY.search(effects)


@pytest.mark.parametrize("format", FORMATS)
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
