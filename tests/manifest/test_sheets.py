"""CSV files: lists of people, and assignments from a sheet, one for each row."""

import os
from pathlib import Path

import pytest
from flow.project import Project
from flow.shell import lmsconf
from manifest.cases import declared, loaded, said, shown
from texts import listed_cases, text_of

from lmsconf.errors import ExitCode, SourceLocation
from lmsconf.kinds.assignment.parse import audience_forms, audience_from_text
from lmsconf.manifest import entries_from_tables
from lmsconf.model.canonical_json import Json

SHEET = text_of(__file__, "sheets_sheet.txt")
NAMED = "content_targets: [{file: hr/s.csv}]\n"
EXPECTED = {
    "Fire safety -> group/Sales": "mandatory, 2026-01-05T00:00:00 to 2026-03-31T23:59:59",
    "Fire safety -> smart_group/Sales Nordics": "- to 2026-02-01T12:00:00",
    "GDPR basics -> user/bo.ek@acme.example": "- to -",
    "GDPR basics -> everyone": "- to -",
}


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
    found = loaded(tmp_path, f"{NAMED}@ hr/s.csv\n{sheet}")
    assert [problem for problem in found.problems if problem.is_error] == []
    assert {one.address.text: said(one) for one in found.declared} == EXPECTED


def test_places(tmp_path: Path) -> None:
    """Each value stands at its cell, the assignment at that of its audience, and a default in the manifest."""
    manifest = "content_targets:\n  - {file: hr/s.csv, about: {owner: hr}, mandatory: true}\n"
    found = loaded(tmp_path, f"{manifest}@ hr/s.csv\n{SHEET}")
    first, _, person, *_ = found.declared
    assert first.source == SourceLocation("hr/s.csv", 2, 13)
    assert first.places.at("content") == SourceLocation("hr/s.csv", 2, 1)
    assert first.places.at("visible_until") == SourceLocation("hr/s.csv", 2, 42)
    assert person.source == SourceLocation("hr/s.csv", 5, 13)
    assert person.places.at("mandatory") == SourceLocation("a.yaml", 2, 53)
    assert found.files == ("a.yaml", "hr/s.csv")


def test_too_many_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sheet may not stand for more assignments than the limit."""
    monkeypatch.setattr(entries_from_tables, "MOST_ROWS", 3)
    assert shown(loaded(tmp_path, f"{NAMED}@ hr/s.csv\n{SHEET}").problems) == (
        "a.yaml:1:26: the sheet comes to 4 rows, and at most 3 are read as entries [sheet/too-many]\n"
        "  Assign to groups instead of to single people, or split the project into several.\n"
    )


def test_explain_shows_both_forms(tmp_path: Path) -> None:
    """An entry needs content and audiences, or a file in place of both."""
    told = " ".join(lmsconf(tmp_path, "explain", "content_target", code=ExitCode.OK).out.split())
    assert "assign_to list of everyone or mapping, needed" in told
    assert "file text A CSV, .xlsx or .ods file, relative to this manifest. In place of content and assign_to." in told


def test_from_sheet_to_workspace(tmp_path: Path) -> None:
    """Plan names the row of each assignment, apply makes them, and then nothing is left to do."""
    seed = "people: [{email: bo@x.se}]\ngroups: [{name: Sales, members: [bo@x.se]}]\ncontent: [{name: A}, {name: B}]\n"
    it = Project(tmp_path, seed)
    it.write("content_targets: [{file: s.csv}]\n")
    it.write("content,audience,mandatory\nA,group: Sales,yes\nB,user: bo@x.se,\n", "s.csv")
    planned = lmsconf(tmp_path, "plan", code=ExitCode.OK).out
    assert "+ assignment of A to group/Sales will be created\n      manifests/s.csv:2:3\n" in planned
    lmsconf(tmp_path, "apply", "--auto-approve", code=ExitCode.OK)
    assert "No changes." in lmsconf(tmp_path, "plan", "--detailed-exitcode", code=ExitCode.OK).out


# What a cell of a sheet says of an audience.


@listed_cases("text", "item")
def test_a_cell_names_an_audience(text: str, item: dict[str, Json] | None) -> None:
    """By its kind and name with a colon or a slash; only after a slash is a backslash part of no name."""
    assert audience_from_text(text) == item


@listed_cases("text", "forms")
def test_a_cell_that_names_no_audience_gets_the_ways_to_write_one(text: str, forms: list[str]) -> None:
    """A name alone may be that of a group or a smart group, one with an at sign that of a person."""
    assert audience_forms(text) == forms


# Windows: times with a name, defined once and named by assignments.


def test_each_workspace_is_validated(tmp_path: Path) -> None:
    """A window that a variable of one workspace names is looked for in that workspace."""
    it = Project(tmp_path)
    workspaces = ", ".join(f'{name}: {{url: "sandbox:", vars: {{part: {name}}}}}' for name in ("Q1", "Q2"))
    (tmp_path / "lmsconf.yaml").write_text(f"workspaces: {{{workspaces}}}\n")
    it.write(
        "windows: {Q1: {visible_from: 2026-01-05T08:00Z}}\n"
        "content_targets: [{content: A, window: $(part), assign_to: [everyone]}]\n"
    )
    lmsconf(tmp_path, "--workspace", "Q1", "validate", code=ExitCode.OK)
    ran = lmsconf(tmp_path, "--workspace", "Q2", "validate", code=ExitCode.ERROR)
    assert 'manifests/all.yaml:2:40: error: there is no window "Q2"' in ran.err


# Lists of people.


LEADERS = "name;email ;Group\nAnna; anna@acme.example ;SE\nBo;bo@acme.example;NO\n\nCy;Cy@acme.example;SE\n"
MEMBERS = "groups: [{name: Leaders, members: {file: people.csv, column: email}}]\n"


@pytest.mark.parametrize(
    "people",
    [
        LEADERS,
        LEADERS.replace(";", ","),
        LEADERS.replace(";", "\t"),
        "\ufeff" + LEADERS,
        LEADERS.replace("\n", "\r\n"),
        LEADERS.replace("Anna;", '"Anna; the first";'),
        LEADERS + "Anna;ANNA@acme.example;NO\n",
    ],
    ids=["semicolon", "comma", "tab", "byte order mark", "Windows", "quoted", "twice"],
)
def test_a_list_of_people(tmp_path: Path, people: str) -> None:
    """Separator, byte order mark, line ends, quotes and blanks around cells make no difference; nobody occurs twice."""
    found = loaded(tmp_path, f"{MEMBERS}@ people.csv\n{people}")
    assert found.problems == ()
    assert [word.split()[0] for word in said(found.declared[0]).split(", ")] == [
        *("anna@acme.example", "bo@acme.example", "cy@acme.example")
    ]


def test_another_encoding(tmp_path: Path) -> None:
    """What is not UTF-8 is refused at its place."""
    (tmp_path / "people.csv").write_bytes(b"email\nanna@acme.example\nbj\xf6rn@acme.example\n")
    told = declared(loaded(tmp_path, MEMBERS))
    assert told.startswith("people.csv:3:3: error: this is not UTF-8 text [manifest/encoding]\n  ")


@pytest.mark.parametrize(
    ("people", "places"),
    [
        (
            'name,email,x\r\n"Berg, ""Bo""\r\nof Sales",  nobody ,x\r\n\r\nA,"also nobody",\r\nB\r\n',
            ["3:13 people/address", "5:3 people/address", "6:2 people/no-address"],
        ),
        (f'email,"{"x" * 200_000}"\n', ["1 people/csv"]),
        ("x," * 61 + 'email\n"a,b"' + ',"c"' * 60 + "\n", ["2:246 people/no-address"]),
    ],
    ids=["quotes", "a cell that is too long", "a missing cell"],
)
def test_places_of_cells(tmp_path: Path, people: str, places: list[str]) -> None:
    """A cell is found behind quotes that hold separators, quotes and line breaks, however the lines end."""
    manifest = MEMBERS.replace("email}", "email, allow_empty: true}")
    found = loaded(tmp_path, f"{manifest}@ people.csv\n{people}")
    told = [f"{problem.source} {problem.code}" for problem in found.problems]
    assert told == [f"people.csv:{place}" for place in places]


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """What is there, but is no file, is named as such; nobody waits for what it might hold."""
    os.mkfifo(tmp_path / "people.csv")
    (problem,) = loaded(tmp_path, MEMBERS).problems
    assert (problem.code, problem.message) == ("people/no-file", "people.csv is a pipe or a device, not a file")
