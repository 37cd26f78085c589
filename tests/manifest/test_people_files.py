"""Lists of people from CSV files."""

import os
from pathlib import Path

import pytest
from manifest.cases import Case, cases, shown

from lmsconf.errors import Severity, SourceLocation
from lmsconf.kinds.group import ManualGroupSpec
from lmsconf.manifest.csv_tables import CsvPositions
from lmsconf.manifest.load import Manifests, load_folder
from lmsconf.model.declarations import DesiredResource

LEADERS = "name;email ;Group\nAnna; anna@acme.example ;SE\nBo;bo@acme.example;NO\n\nCy;Cy@acme.example;SE\n"


def loaded(root: Path, members: str, people: str | bytes = LEADERS) -> Manifests:
    """A group whose members are as told, beside the CSV file hr/leaders.csv."""
    (root / "manifests" / "hr").mkdir(parents=True)
    content = people.encode() if isinstance(people, str) else people
    (root / "manifests" / "hr" / "leaders.csv").write_bytes(content)
    (root / "manifests" / "a.yaml").write_text(f"groups: [{{name: Leaders, members: {members}}}]\n")
    return load_folder(root / "manifests", root)


def members(declared: DesiredResource) -> frozenset[str]:
    assert isinstance(declared.spec, ManualGroupSpec)
    assert declared.spec.members is not None
    return declared.spec.members.include


ALL = frozenset({"anna@acme.example", "bo@acme.example", "cy@acme.example"})


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
def test_reading(tmp_path: Path, people: str) -> None:
    """Separator, byte order mark, line ends, quotes and blanks around cells make no difference; nobody occurs twice."""
    found = loaded(tmp_path, "{file: hr/leaders.csv, column: email}", people)
    assert found.problems == ()
    assert members(found.declared[0]) == ALL


def test_where(tmp_path: Path) -> None:
    """Only rows whose cells read exactly so count, and each person is placed at the line of the CSV file."""
    found = loaded(tmp_path, "{file: hr/leaders.csv, column: email, where: {Group: SE}}")
    assert members(found.declared[0]) == ALL - {"bo@acme.example"}
    places = found.declared[0].places
    assert places.find("cy@acme.example", "members") == SourceLocation("manifests/hr/leaders.csv", 5, 4)
    assert places.find("Anna@acme.example", "members") == SourceLocation("manifests/hr/leaders.csv", 2, 7)
    assert places.at("members") == SourceLocation("manifests/a.yaml", 1, 35)


def test_where_asks_for_all_of_it(tmp_path: Path) -> None:
    """A row counts where every column that `where` names reads so, and no other does."""
    people = "email,Group,Site\nanna@acme.example,SE,Lund\nbo@acme.example,SE,Oslo\ncy@acme.example,NO,Lund\n"
    found = loaded(tmp_path, "{file: hr/leaders.csv, column: email, where: {Group: SE, Site: Lund}}", people)
    assert members(found.declared[0]) == {"anna@acme.example"}


def test_include_from_a_file(tmp_path: Path) -> None:
    """A file may stand wherever a list of people may."""
    found = loaded(tmp_path, "{include: {file: hr/leaders.csv, column: email}, exclude: [dee@acme.example]}")
    assert members(found.declared[0]) == ALL
    assert found.declared[0].places.find("bo@acme.example", "members") == SourceLocation(
        "manifests/hr/leaders.csv", 3, 4
    )


def test_allow_empty(tmp_path: Path) -> None:
    """A file with nobody in it means nobody only where that was said."""
    found = loaded(tmp_path, "{file: hr/leaders.csv, column: email, where: {Group: DK}, allow_empty: true}")
    assert members(found.declared[0]) == frozenset()


def test_row_without_an_address(tmp_path: Path) -> None:
    """A chosen row with an empty cell is a warning at its place, and adds nobody."""
    found = loaded(tmp_path, "{file: hr/leaders.csv, column: email}", LEADERS + "Dee;;SE\n")
    (problem,) = found.problems
    assert (problem.severity, problem.source) == (Severity.WARNING, SourceLocation("manifests/hr/leaders.csv", 6, 5))
    assert members(found.declared[0]) == ALL


@pytest.mark.parametrize("case", cases(Path(__file__).parent / "people_files.txt"), ids=lambda case: case.title)
def test_what_is_wrong(tmp_path: Path, case: Case) -> None:
    """A list that cannot be read is told about where the mistake is: in the manifest, or at a line of the CSV file."""
    asked, _, people = case.text.partition("\n")
    assert shown(loaded(tmp_path, asked, people).problems) == case.told


@pytest.mark.parametrize(
    ("people", "told"),
    [
        (b"email\nanna@acme.example\nbj\xf6rn@acme.example\n", "3:3: this is not UTF-8 text [manifest/encoding]"),
        ("email\nanna@acme.example\u202e\n".encode(), "2:18: the character U+202E is not allowed here [people/csv]"),
    ],
)
def test_what_no_text_may_hold(tmp_path: Path, people: bytes, told: str) -> None:
    """Another encoding than UTF-8, and marks that turn the direction of reading."""
    (problem,) = loaded(tmp_path, "{file: hr/leaders.csv, column: email}", people).problems
    assert shown([problem]).splitlines()[0] == f"manifests/hr/leaders.csv:{told}"
    assert problem.hint


def test_places_of_cells(tmp_path: Path) -> None:
    """A cell is found behind quotes that hold separators, quotes and line breaks, however the lines end."""
    people = 'name,email,x\r\n"Berg, ""Bo""\r\nof Sales",  nobody ,x\r\n\r\nA,"also nobody",\r\nB\r\n'
    found = loaded(tmp_path, "{file: hr/leaders.csv, column: email, allow_empty: true}", people)
    assert [str(problem.source).rpartition("/")[2] for problem in found.problems] == [
        "leaders.csv:3:13",
        "leaders.csv:5:3",
        "leaders.csv:6:2",
    ]
    wide = "x" * 200_000
    (tmp_path / "manifests" / "hr" / "leaders.csv").write_text(f'email,"{wide}"\n')
    (problem,) = load_folder(tmp_path / "manifests", tmp_path).problems
    assert (problem.code, str(problem.source)) == ("people/csv", "manifests/hr/leaders.csv:1")


def test_link_out_of_the_project(tmp_path: Path) -> None:
    """A link inside the project that leads out of it is outside."""
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "secret.csv").write_text("email\nanna@acme.example\n")
    (project / "people.csv").symlink_to(tmp_path / "secret.csv")
    (project / "a.yaml").write_text("groups: [{name: A, members: {file: people.csv, column: email}}]\n")
    found = load_folder(project, project)
    assert [problem.code for problem in found.problems] == ["people/outside"]
    assert found.declared == ()


def test_one_broken_file_for_many_groups(tmp_path: Path) -> None:
    """What is wrong inside a CSV file is told once, however many lists ask for it."""
    (tmp_path / "people.csv").write_text("email\nnobody\n")
    entries = "".join(
        f"  - {{name: G{n}, managers: {{file: people.csv, column: email, allow_empty: true}}}}\n" for n in range(3)
    )
    (tmp_path / "z.yaml").write_text(f"groups:\n{entries}")
    found = load_folder(tmp_path, tmp_path)
    assert [problem.code for problem in found.problems] == ["people/address"]
    assert found.files == ("people.csv", "z.yaml")


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    """What is there, but is no file, is named as such; nobody waits for what it might hold."""
    os.mkfifo(tmp_path / "people.csv")
    (tmp_path / "a.yaml").write_text("groups: [{name: A, members: {file: people.csv, column: email}}]\n")
    (problem,) = load_folder(tmp_path, tmp_path).problems
    assert (problem.code, problem.message) == ("people/no-file", "people.csv is a pipe or a device, not a file")


def test_rows_below_a_line_that_names_the_separator_keep_their_lines(tmp_path: Path) -> None:
    """Excel does not show the first line; the place of a row counts it."""
    found = loaded(tmp_path, "{file: hr/leaders.csv, column: email}", "sep=;\n" + LEADERS)
    place = found.declared[0].places.find("anna@acme.example", "members")
    assert (place.file, place.line) == ("manifests/hr/leaders.csv", 3)


def test_the_place_of_a_missing_cell() -> None:
    """It is the end of its row, in a blink, also behind many quoted cells that hold separators."""
    for cells in (1, 60):
        row = ",".join(['"a,b"', *['"c"'] * cells])
        assert CsvPositions("p.csv", f"{row}\n", ",", 0).where(1, cells + 1).column == len(row) + 1
