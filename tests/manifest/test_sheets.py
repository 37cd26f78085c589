"""Assignments from a sheet: one for each row of a CSV file."""

from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from flow.shell import lmsconf
from manifest.cases import Case, cases, shown
from texts import listed_cases, text_of

from lmsconf.errors import ExitCode, SourceLocation
from lmsconf.kinds.assignment.parse import audience_forms, audience_from_text
from lmsconf.kinds.assignment.types import AssignmentSpec
from lmsconf.manifest import entries_from_tables
from lmsconf.manifest.load import load_folder
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests

SHEET = text_of(__file__, "sheets_sheet.txt")
EXPECTED = {
    "Fire safety -> group/Sales": (True, "2026-01-05T00:00:00", "2026-03-31T23:59:59"),
    "Fire safety -> smart_group/Sales Nordics": (False, "-", "2026-02-01T12:00:00"),
    "GDPR basics -> user/bo.ek@acme.example": (False, "-", "-"),
    "GDPR basics -> everyone": (False, "-", "-"),
}
ZONE = ZoneInfo("Europe/Stockholm")


def loaded(root: Path, sheet: str | bytes = SHEET, manifest: str = "{file: hr/s.csv}", more: str = "") -> Manifests:
    """One entry of content_targets that names the sheet hr/s.csv, and other entries and sections."""
    (root / "hr").mkdir(exist_ok=True)
    (root / "hr" / "s.csv").write_bytes(sheet.encode() if isinstance(sheet, str) else sheet)
    (root / "a.yaml").write_text(f"content_targets:\n  - {manifest}\n{more}")
    return load_folder(root, root, timezone=ZONE)


def assignments(found: Manifests) -> dict[str, tuple[bool, str, str]]:
    """Assignment → mandatory, and when it can be seen; `-` for an open end."""
    told = {}
    for one in found.declared:
        assert isinstance(one.spec, AssignmentSpec)
        ends = (one.spec.visible_from, one.spec.visible_until)
        start, finish = (end.astimezone(ZONE).strftime("%Y-%m-%dT%H:%M:%S") if end else "-" for end in ends)
        told[one.address.text] = (one.spec.mandatory, start, finish)
    return told


@pytest.mark.parametrize(
    "sheet",
    [
        SHEET,
        SHEET.replace(";", "\t"),
        SHEET.replace(";", ","),
        "\ufeff" + SHEET,
        SHEET.replace("\n", "\r\n"),
        SHEET.replace("content;audience;mandatory", "Content;AUDIENCE; Mandatory "),
        SHEET.replace("visible_from;visible_until", "Visible from;Visible-Until;"),
        SHEET.replace(";true;", ";TRUE;").replace(";false;", ";No;"),
        SHEET.replace("group: Sales;", "group/Sales;").replace("smart_group: ", "Smart group:").replace(" Bo", "bo"),
        SHEET.replace("everyone", "Everyone"),
    ],
    ids=["semicolons", "tabs", "commas", "BOM", "CRLF", "case", "blanks", "booleans", "addresses", "capitals"],
)
def test_a_row_is_an_assignment(tmp_path: Path, sheet: str) -> None:
    """Separator, byte order mark, line ends, case and the form of an audience make no difference."""
    found = loaded(tmp_path, sheet)
    assert [problem for problem in found.problems if problem.is_error] == []
    assert assignments(found) == EXPECTED


def test_what_stands_beside_the_file_holds_for_all_rows(tmp_path: Path) -> None:
    """A cell that is filled says otherwise; an empty one takes the value of the entry."""
    found = loaded(
        tmp_path,
        "content,audience,mandatory,visible_until\nA,everyone,,\nB,everyone,no,2026-05-01\n",
        "{file: hr/s.csv, mandatory: true, visible_from: 2026-01-05, only_in: [production], about: {owner: hr}}",
    )
    assert assignments(found) == {
        "A -> everyone": (True, "2026-01-05T00:00:00", "-"),
        "B -> everyone": (False, "2026-01-05T00:00:00", "2026-05-01T23:59:59"),
    }
    assert {one.only_in for one in found.declared} == {frozenset({"production"})}
    assert [one.about for one in found.declared] == [{"owner": "hr"}] * 2


def test_rows_of_several_parts(tmp_path: Path) -> None:
    """`where` takes some rows, `for_each` the files of a list, and entries of YAML stand beside them."""
    (tmp_path / "t.csv").write_text("content,audience\nB,everyone\n")
    found = loaded(
        tmp_path,
        "content,audience,Contents\nA,everyone,Lund\nA,group: G,Oslo\n",
        "{file: $(file).csv, for_each: {file: [hr/s]}, where: {Contents: Lund}}",
        "  - {file: t.csv}\n  - {content: C, assign_to: [everyone]}\n",
    )
    assert set(assignments(found)) == {"A -> everyone", "B -> everyone", "C -> everyone"}
    assert found.problems == ()


def test_a_window_in_a_column(tmp_path: Path) -> None:
    """A row may name a window, and one row may say its times itself."""
    found = loaded(
        tmp_path,
        "content,audience,window,visible_until\nA,everyone,Q1,\nB,everyone,,2026-06-30\n",
        more="windows: {Q1: {visible_from: 2026-01-05, visible_until: 2026-03-31}}\n",
    )
    assert assignments(found) == {
        "A -> everyone": (False, "2026-01-05T00:00:00", "2026-03-31T23:59:59"),
        "B -> everyone": (False, "-", "2026-06-30T23:59:59"),
    }


def test_places(tmp_path: Path) -> None:
    """Each value stands at its cell, the assignment at that of its audience, and a default in the manifest."""
    found = loaded(tmp_path, manifest="{file: hr/s.csv, about: {owner: hr}, mandatory: true}")
    first, _, person, *_ = found.declared
    assert first.source == SourceLocation("hr/s.csv", 2, 13)
    assert first.places.at("content") == SourceLocation("hr/s.csv", 2, 1)
    assert first.places.at("visible_until") == SourceLocation("hr/s.csv", 2, 42)
    assert person.source == SourceLocation("hr/s.csv", 5, 13)
    assert person.places.at("mandatory") == SourceLocation("a.yaml", 2, 53)
    assert found.files == ("a.yaml", "hr/s.csv")


def test_an_assignment_of_a_sheet_and_of_a_manifest(tmp_path: Path) -> None:
    """Both places are told."""
    found = loaded(
        tmp_path, "content,audience\nA,everyone\n", more="  - {content: A, assign_to: [{group: G}, everyone]}\n"
    )
    assert shown(found.problems) == (
        "a.yaml:3:42: content_target/A -> everyone: declared twice [manifest/declared-twice]\n"
        "  See hr/s.csv:2:3. Keep one of the two, or limit each to other workspaces with `only_in`.\n"
    )


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("sheets.txt")), ids=lambda case: case.title)
def test_what_is_wrong(case: Case, tmp_path: Path) -> None:
    """What cannot be read is told at file, line and column, with the way out, and the good rows hide nothing."""
    found = loaded(tmp_path, case.text, more="windows: {Q1: {visible_from: 2026-01-05, visible_until: 2026-03-31}}\n")
    told = [problem for problem in found.problems if problem.code != "window/unused"]
    assert shown(told) == case.told
    assert told


MANIFESTS = {
    "{file: none.csv}": (
        "a.yaml:2:12: there is no file none.csv [sheet/no-file]\n  The path is relative to this manifest.\n"
    ),
    "{file: ../s.csv}": (
        "a.yaml:2:12: ../s.csv is outside the project [sheet/outside]\n"
        "  Name a file inside the project, relative to this manifest.\n"
    ),
    "{file: hr/s.csv, content: A}": (
        'a.yaml:2:22: content_targets: unknown key "content" [manifest/unknown-key]\n'
        "  Known here: file, sheet, where, allow_empty, mandatory, visible_from, visible_until, window, replaces, "
        "keep, only_in, about, for_each.\n"
    ),
    "{file: hr/s.csv, where: {Site: Lund}}": (
        'hr/s.csv:1:1: there is no column "Site" [sheet/column]\n'
        "  It has content, audience, mandatory, visible_from, visible_until. a.yaml:2:30 uses it.\n"
    ),
    "{file: hr/s.csv, where: {content: Other}}": (
        "hr/s.csv:1:1: there is no row with content = Other, so a.yaml:2:12 would declare nothing [sheet/nothing]\n"
        "  Set `allow_empty: true` to allow this.\n"
    ),
    "{file: hr/s.csv, where: {content: Other}, allow_empty: true}": "",
    "{file: hr/s.csv, visible_from: 2026-01-05, window: Q1}": (
        "a.yaml:2:22: window and visible_from exclude each other [manifest/together]\n  Keep one of them.\n"
    ),
    "{file: hr/s.csv, mandatory: maybe}": (
        'a.yaml:2:33: content_targets: mandatory must be true or false, and "maybe" is text [manifest/type]\n'
        "  Write true or false.\n"
    ),
    "{file: a.yaml}": ('a.yaml:1:1: unknown column "content_targets:" [sheet/column]\n  Did you mean "content"?\n'),
}


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_what_is_wrong_with_the_reference(tmp_path: Path, manifest: str) -> None:
    """A file that is not there, that lies elsewhere, or keys that cannot stand beside it."""
    (tmp_path / "project").mkdir()
    (tmp_path / "s.csv").write_text(SHEET)
    assert shown(loaded(tmp_path / "project", manifest=manifest).problems) == MANIFESTS[manifest]


def test_too_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sheet may not stand for more assignments than the limit."""
    monkeypatch.setattr(entries_from_tables, "MOST_ROWS", 3)
    assert shown(loaded(tmp_path).problems) == (
        "a.yaml:2:12: the sheet comes to 4 rows, and at most 3 are read as entries [sheet/too-many]\n"
        "  Assign to groups instead of to single people, or split the project into several.\n"
    )


def test_explain_shows_both_forms(tmp_path: Path) -> None:
    """An entry needs content and audiences, or a file in place of both."""
    told = " ".join(lmsconf(tmp_path, "explain", "content_target", code=ExitCode.OK).out.split())
    assert "assign_to list of everyone or mapping, needed" in told
    assert "file text A CSV, .xlsx or .ods file, relative to this manifest. In place of content and assign_to." in told


def test_from_sheet_to_workspace(tmp_path: Path) -> None:
    """Plan names the row of each assignment, apply makes them, and then nothing is left to do."""
    (tmp_path / "lmsconf.yaml").write_text(
        'workspaces: {here: {url: "sandbox:w.db", seed: seed.yaml}}\ntimezone: Europe/Stockholm\nmanifests: m\n'
    )
    (tmp_path / "seed.yaml").write_text(
        "people: [{email: bo@x.se}]\ngroups: [{name: Sales, members: [bo@x.se]}]\ncontent: [{name: A}, {name: B}]\n"
    )
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "a.yaml").write_text("content_targets: [{file: s.csv}]\n")
    (tmp_path / "m" / "s.csv").write_text("content,audience,mandatory\nA,group: Sales,yes\nB,user: bo@x.se,\n")
    planned = lmsconf(tmp_path, "plan", code=ExitCode.OK).out
    assert "+ assignment of A to group/Sales will be created\n      m/s.csv:2:3\n" in planned
    lmsconf(tmp_path, "apply", "--auto-approve", code=ExitCode.OK)
    assert "No changes." in lmsconf(tmp_path, "plan", "--detailed-exitcode", code=ExitCode.OK).out


# What a cell of a sheet says of an audience.


@listed_cases("text", "item")
def test_a_cell_names_an_audience(text: str, item: dict[str, Any] | None) -> None:
    """By its kind and name with a colon or a slash; only after a slash is a backslash part of no name."""
    assert audience_from_text(text) == item


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("Sales", ["group: Sales", "smart_group: Sales"]),
        ("ann@acme.example", ["user: ann@acme.example"]),
        ("team: Sales", ["group: NAME", "smart_group: NAME", "user: EMAIL", "everyone"]),
        ("team/Sales", ["group: NAME", "smart_group: NAME", "user: EMAIL", "everyone"]),
    ],
)
def test_a_cell_that_names_no_audience_gets_the_ways_to_write_one(text: str, forms: list[str]) -> None:
    """A name alone may be that of a group or a smart group, one with an at sign that of a person."""
    assert audience_forms(text) == forms


# Windows: times with a name, defined once and named by assignments.


WINDOWS = """\
windows:
  Q1: {visible_from: 2026-01-05, visible_until: 2026-03-31}
  Later:
    visible_from: 2026-04-01T08:00
"""


def windows_loaded(
    root: Path, manifest: str, windows: str = WINDOWS, variables: dict[str, Json] | None = None
) -> Manifests:
    """Manifests whose windows stand in a file of their own."""
    (root / "a.yaml").write_text(manifest)
    (root / "windows.yaml").write_text(windows)
    return load_folder(root, root, timezone=ZONE, variables=variables)


def times(found: Manifests) -> dict[str, tuple[str, ...]]:
    """Assignment → when it can be seen, `-` for an open end."""
    return {
        one.address.text: tuple(
            time.astimezone(ZONE).strftime("%m-%dT%H:%M:%S") if time else "-"
            for time in (one.spec.visible_from, one.spec.visible_until)
        )
        for one in found.declared
        if isinstance(one.spec, AssignmentSpec)
    }


def test_a_window_means_its_times(tmp_path: Path) -> None:
    """A date is its first second in visible_from and its last in visible_until, as beside the content itself."""
    found = windows_loaded(tmp_path, "content_targets: [{content: A, window: Q1, assign_to: [everyone, {group: G}]}]\n")
    window = ("01-05T00:00:00", "03-31T23:59:59")
    assert times(found) == {"A -> everyone": window, "A -> group/G": window}


def test_an_alias_repeats_a_window(tmp_path: Path) -> None:
    """An audience with a window that aliases repeat has its times in each place."""
    found = windows_loaded(
        tmp_path,
        "content_targets:\n"
        "  - {content: A, assign_to: [&team {group: G, window: Later}]}\n"
        "  - {content: B, window: Q1, assign_to: [*team, {group: H}]}\n"
        "  - {content: C, assign_to: [*team, *team]}\n",
    )
    later = ("04-01T08:00:00", "-")
    assert [problem.code for problem in found.problems] == ["manifest/declared-twice"]
    assert times(found) == {
        "A -> group/G": later,
        "B -> group/G": later,
        "B -> group/H": ("01-05T00:00:00", "03-31T23:59:59"),
        "C -> group/G": later,
    }


def test_an_audience_has_a_window_of_its_own(tmp_path: Path) -> None:
    """The window of an audience replaces both times of its entry: an end that it leaves out is open. A time of an
    audience replaces that end alone."""
    found = windows_loaded(
        tmp_path,
        "content_targets:\n"
        "  - content: A\n"
        "    window: Q1\n"
        "    assign_to: [{group: G, window: Later}, {group: H, visible_until: 2026-02-28}, {group: I}]\n"
        "  - content: B\n"
        "    visible_until: 2027-12-31\n"
        "    assign_to: [{group: G, window: Later}, {group: H}]\n",
    )
    assert times(found) == {
        "A -> group/G": ("04-01T08:00:00", "-"),
        "A -> group/H": ("01-05T00:00:00", "02-28T23:59:59"),
        "A -> group/I": ("01-05T00:00:00", "03-31T23:59:59"),
        "B -> group/G": ("04-01T08:00:00", "-"),
        "B -> group/H": ("-", "12-31T23:59:59"),
    }


def test_variables_and_for_each(tmp_path: Path) -> None:
    """A window may be made of variables, and its name may be one, also in a list that several entries share."""
    found = windows_loaded(
        tmp_path,
        "content_targets:\n"
        "  - for_each: {part: [Q1, Later]}\n"
        "    content: Course $(part)\n"
        "    assign_to: [{everyone: true, window: $(part)}]\n"
        "  - {content: C, assign_to: &all [{everyone: true, window: Q1}]}\n"
        "  - {content: D, assign_to: *all}\n",
        WINDOWS.replace("2026-01-05", "$(year)-02-01"),
        {"year": "2026"},
    )
    first = ("02-01T00:00:00", "03-31T23:59:59")
    assert found.problems == ()
    assert times(found) == {
        "Course Q1 -> everyone": first,
        "Course Later -> everyone": ("04-01T08:00:00", "-"),
        "C -> everyone": first,
        "D -> everyone": first,
    }


def test_both_places_of_a_name_declared_twice(tmp_path: Path) -> None:
    """Two files may not define one window, be it written alike or not."""
    found = windows_loaded(
        tmp_path,
        "windows: {Later: {visible_from: 2026-05-01}}\n"
        "content_targets: [{content: A, window: Later, assign_to: [everyone]}, "
        "{content: B, window: Q1, assign_to: [everyone]}]\n",
    )
    assert shown(found.problems) == (
        'windows.yaml:3:3: window "Later": declared twice [window/twice]\n'
        "  See a.yaml:1:11. Keep one of the two, or give one another name.\n"
    )


PROJECT = """\
workspaces:
  one: {url: "sandbox:", vars: {part: Q1}}
  two: {url: "sandbox:", vars: {part: Q2}}
default_workspace: one
timezone: Europe/Stockholm
"""


def _project(root: Path) -> Path:
    (root / "lmsconf.yaml").write_text(PROJECT)
    (root / "manifests").mkdir()
    entries = (
        "content_targets:\n"
        "  - {content: A, window: $(part), assign_to: [{group: G, window: Later}]}\n"
        "  - {content: B, window: Later, assign_to: [everyone]}\n"
    )
    (root / "manifests" / "a.yaml").write_text(WINDOWS + entries)
    return root


def test_each_workspace_is_validated(tmp_path: Path) -> None:
    """A window that a variable of one workspace names is looked for in that workspace."""
    root = _project(tmp_path)
    lmsconf(root, "--workspace", "one", "validate", code=ExitCode.OK)
    ran = lmsconf(root, "--workspace", "two", "validate", code=ExitCode.ERROR)
    assert 'a.yaml:6:26: error: there is no window "Q2"' in ran.err


def test_expanded(tmp_path: Path) -> None:
    """`validate --expanded` shows the times in place of the window."""
    assert lmsconf(_project(tmp_path), "validate", "--expanded", code=ExitCode.OK).out == (
        "content_targets:\n"
        "  - content: A\n"
        "    visible_from: 2026-01-05\n"
        "    visible_until: 2026-03-31\n"
        "    assign_to:\n"
        "      - {group: G, visible_from: 2026-04-01T08:00, visible_until: null}\n"
        "  - content: B\n"
        "    visible_from: 2026-04-01T08:00\n"
        "    assign_to: [everyone]\n"
    )


def test_the_times_of_a_window_have_one_order(tmp_path: Path) -> None:
    """`validate --expanded` shows the times that a window has, the first one first, and then what it leaves open."""
    manifest = _project(tmp_path) / "manifests" / "a.yaml"
    manifest.write_text(
        "windows:\n"
        "  Q1: {visible_until: 2026-03-31, visible_from: 2026-01-05}\n"
        "  Later: {visible_until: 2026-12-31}\n"
        "content_targets: [{content: A, window: Q1, assign_to: [{group: G, window: Later, mandatory: true}]}]\n"
    )
    assert lmsconf(tmp_path, "validate", "--expanded", code=ExitCode.OK).out == (
        "content_targets:\n"
        "  - content: A\n"
        "    visible_from: 2026-01-05\n"
        "    visible_until: 2026-03-31\n"
        "    assign_to:\n"
        "      - {group: G, visible_until: 2026-12-31, visible_from: null, mandatory: true}\n"
    )
