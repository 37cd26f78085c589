"""Lists of people from CSV files."""

from __future__ import annotations

from pathlib import Path

import pytest
from flow.shell import lmsconf

from lmsconf.errors import Severity, SourceLocation
from lmsconf.kinds.manual_group.types import ManualGroupSpec
from lmsconf.manifest.load import Manifests, load_folder
from lmsconf.model.declarations import DesiredResource
from manifest.cases import shown

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


def test_accents_are_compared_in_one_form(tmp_path: Path) -> None:
    """Names of columns and cells are the same whether an accent is a character of its own or part of its letter."""
    apart, joined = "A\u030angstro\u0308m", "\u00c5ngstr\u00f6m"
    for number, (said, held) in enumerate(((apart, joined), (joined, apart))):
        people = f"email {held},{held}\nanna@acme.example,{held} SE\nbo@acme.example,NO\n"
        asked = f"{{file: hr/leaders.csv, column: 'email {said}', where: {{{said}: {said} SE}}}}"
        found = loaded(tmp_path / str(number), asked, people)
        assert found.problems == ()
        assert members(found.declared[0]) == {"anna@acme.example"}


def test_blank_cells_beyond_the_header(tmp_path: Path) -> None:
    """Separators at the end of rows, as spreadsheets write them, are no cells too many."""
    found = loaded(
        tmp_path, "{file: hr/leaders.csv, column: email}", "email,g,\nanna@acme.example,SE,,,\nbo@acme.example\n"
    )
    assert found.problems == ()
    assert members(found.declared[0]) == ALL - {"cy@acme.example"}


def test_column_with_a_line_break(tmp_path: Path) -> None:
    """A column may be called as the header of a spreadsheet has it, over several lines."""
    asked = '{file: hr/leaders.csv, column: "e-mail\\naddress", where: {"home\\ncountry": SE}}'
    people = '"e-mail\naddress","home\ncountry"\nanna@acme.example,SE\nbo@acme.example,NO\n'
    found = loaded(tmp_path, asked, people)
    assert found.problems == ()
    assert members(found.declared[0]) == {"anna@acme.example"}


@pytest.mark.parametrize("header", ['"email";"Name, first, last"', 'email;"Name, first, last\nas written"'])
def test_separator_inside_quotes(tmp_path: Path, header: str) -> None:
    """A separator inside quotes does not separate, so the header shows another one."""
    people = f"{header}\nanna@acme.example;Anna\n"
    found = loaded(tmp_path, "{file: hr/leaders.csv, column: email}", people)
    assert found.problems == ()
    assert members(found.declared[0]) == {"anna@acme.example"}


def test_include_from_a_file(tmp_path: Path) -> None:
    """A file may stand wherever a list of people may."""
    found = loaded(tmp_path, "{include: {file: hr/leaders.csv, column: email}, exclude: [dee@acme.example]}")
    assert members(found.declared[0]) == ALL
    assert found.declared[0].places.find("bo@acme.example", "members") == SourceLocation(
        "manifests/hr/leaders.csv", 3, 4
    )


def test_digest_covers_the_file(tmp_path: Path) -> None:
    """The CSV file is one of the manifests' files: a changed row is another digest."""
    before = loaded(tmp_path, "{file: hr/leaders.csv, column: email}")
    assert before.files == ("manifests/a.yaml", "manifests/hr/leaders.csv")
    with (tmp_path / "manifests" / "hr" / "leaders.csv").open("a") as file:
        file.write("Dee;dee@acme.example;NO\n")
    assert load_folder(tmp_path / "manifests", tmp_path).digest != before.digest


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


@pytest.mark.parametrize(
    ("asked", "people", "told"),
    [
        (
            "{file: hr/leader.csv, column: email}",
            LEADERS,
            "manifests/a.yaml:1:42: there is no file manifests/hr/leader.csv [people/no-file]\n"
            "  The path is relative to this manifest.\n",
        ),
        (
            "{file: hr/leaders.csv, column: e-mail}",
            LEADERS,
            'manifests/hr/leaders.csv:1:1: there is no column "e-mail" [people/column]\n'
            '  Did you mean "email"? manifests/a.yaml:1:66 uses it.\n',
        ),
        (
            "{file: hr/leaders.csv, column: email, where: {group: SE}}",
            LEADERS,
            'manifests/hr/leaders.csv:1:1: there is no column "group" [people/column]\n'
            '  Did you mean "Group"? manifests/a.yaml:1:81 uses it.\n',
        ),
        (
            "{file: hr/leaders.csv, column: email, where: {Group: DK}}",
            LEADERS,
            "manifests/hr/leaders.csv:1: there is no e-mail with Group = DK, "
            "so manifests/a.yaml:1:35 would mean nobody [people/nobody]\n"
            "  Set `allow_empty: true` to allow this.\n",
        ),
        (
            "{file: hr/leaders.csv, column: email, where: {Site: Malmo}}",
            "email,Site\nanna@acme.example,Malmö\nbo@acme.example,Oslo\n",
            "manifests/hr/leaders.csv:1: there is no e-mail with Site = Malmo, "
            "so manifests/a.yaml:1:35 would mean nobody [people/nobody]\n"
            '  Did you mean "Malmö"? To mean nobody, set `allow_empty: true`.\n',
        ),
        (
            "{file: hr/leaders.csv, column: email}",
            "email\nanna@acme.example\nbo at acme\n",
            'manifests/hr/leaders.csv:3:1: "bo at acme" is not an e-mail address [people/address]\n'
            "  Write one address in the cell, such as anna.berg@acme.example, or skip the row with `where`.\n",
        ),
        (
            "{file: hr/leaders.csv, column: email}",
            "email,email\na@b,c@d\n",
            'manifests/hr/leaders.csv:1:7: there are several columns "email" [people/column]\n'
            "  Give each column its own name. manifests/a.yaml:1:66 uses it.\n",
        ),
        (
            "{file: hr/leaders.csv, column: email, where: {g: L}}",
            "email,name,g\na@x.example,Ann,L\nb@x.example,Berg, Bo,L\nc@x.example,,Dahl, Cy\n",
            "manifests/hr/leaders.csv:3:22: this row has 4 cells, and the header names 3 columns [people/csv]\n"
            "  Put a cell that contains the separator in quotes, or give the last columns a name.\n"
            "manifests/hr/leaders.csv:4:20: this row has 4 cells, and the header names 3 columns [people/csv]\n"
            "  Put a cell that contains the separator in quotes, or give the last columns a name.\n",
        ),
        (
            "{file: hr/leaders.csv, column: email}",
            "version:v1.0\nemail;name\na@x.example;Ann\n",
            'manifests/hr/leaders.csv:1:1: the first line, "version:v1.0", does not name the columns; line 2 seems to '
            "[people/csv]\n  Delete line 1: the first line of a CSV file must name the columns.\n",
        ),
        (
            "{file: hr/leaders.csv, column: email}",
            "# exported by hr\n\nname,email\nAnn,a@x.example\n",
            'manifests/hr/leaders.csv:1:1: the first line, "# exported by hr", does not name the columns; line 3 seems '
            "to [people/csv]\n  Delete line 1: the first line of a CSV file must name the columns.\n",
        ),
        (
            "{file: hr/leaders.csv, column: email}",
            "email,name\n=HYPERLINK(mailto:a@x.example),Ann\nb@x.example,=LEFT(A1)\n",
            'manifests/hr/leaders.csv:2:1: this cell holds a formula, "=HYPERLINK(mailto:a@x.example)" [people/csv]\n'
            "  Export the values of the cells, not their formulas.\n",
        ),
        (
            "{file: hr/leaders.csv, column: email}",
            "email;g;;\na@x.example;L;;\nb@x.example;x;L;\n",
            "manifests/hr/leaders.csv:3:15: this row has 3 cells, and the header names 2 columns [people/csv]\n"
            "  Put a cell that contains the separator in quotes, or give the last columns a name.\n",
        ),
        (
            "{file: hr/leaders.csv, column: email}",
            "",
            "manifests/hr/leaders.csv:1:1: this CSV file is empty [people/csv]\n"
            "  Its first line must name the columns.\n",
        ),
        (
            "{file: hr/leaders.csv, column: email}",
            b"email\nanna@acme.example\nbj\xf6rn@acme.example\n",
            "manifests/hr/leaders.csv:3:3: this is not UTF-8 text [manifest/encoding]\n"
            "  Save the file as UTF-8; in Excel, as CSV UTF-8.\n",
        ),
        (
            "{file: hr/leaders.csv, column: email}",
            'name,email\n"Anna,anna@acme.example\n',
            "manifests/hr/leaders.csv:2:1: this row cannot be read: unexpected end of data [people/csv]\n"
            '  Close each quote that opens a cell, and write a quote inside one twice: "".\n',
        ),
        (
            "{file: hr/leaders.csv, column: email}",
            "email\nanna@acme.example\u202e\n",
            "manifests/hr/leaders.csv:2:18: the character U+202E is not allowed here [people/csv]\n  Remove it.\n",
        ),
        (
            "{file: ../../leaders.csv, column: email}",
            LEADERS,
            "manifests/a.yaml:1:42: ../../leaders.csv is outside the project [people/outside]\n"
            "  Name a file inside the project, relative to this manifest.\n",
        ),
        (
            "{file: /etc/passwd, column: email}",
            LEADERS,
            "manifests/a.yaml:1:42: /etc/passwd is outside the project [people/outside]\n"
            "  Name a file inside the project, relative to this manifest.\n",
        ),
        (
            "{file: 7, column: email}",
            LEADERS,
            "manifests/a.yaml:1:42: group/Leaders: members.file must be text, and 7 is a number [manifest/type]\n"
            '  Write "7" with the quotes.\n',
        ),
    ],
)
def test_what_is_wrong(tmp_path: Path, asked: str, people: str | bytes, told: str) -> None:
    """A list that cannot be read is told about where the mistake is: in the manifest, or at a line of the CSV file."""
    assert shown(loaded(tmp_path, asked, people).problems) == told


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


def test_header_below_blank_lines(tmp_path: Path) -> None:
    """What is wrong with the header is told at the line of the header."""
    found = loaded(tmp_path, "{file: hr/leaders.csv, column: email}", "\n,,\nname,mail\nA,a@acme.example\n")
    assert [str(problem.source) for problem in found.problems] == ["manifests/hr/leaders.csv:3:1"]


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


def test_absolute_path(tmp_path: Path) -> None:
    """An absolute path is refused even inside the project, which may lie elsewhere on the next machine."""
    found = loaded(tmp_path, f"{{file: {tmp_path}/manifests/hr/leaders.csv, column: email}}")
    assert [problem.code for problem in found.problems] == ["people/outside"]


# Where the e-mail of a person is required and something else is written, the hint says what was probably meant.


PROJECT = "workspaces: {sandbox: {url: 'sandbox:', seed: seed.yaml}}\n"
SEED = "people: [{email: sven.petersen0@acme.example}, {email: anna@acme.example}]\ncontent: [{name: GDPR}]\n"
SETS = """
people_sets:
  Leads: [anna.berg@acme.example]
  Sales coaches: [bo.ek@acme.example]
  Anna: [anna.berg@acme.example]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project without manifests."""
    (tmp_path / "lmsconf.yaml").write_text(PROJECT)
    (tmp_path / "seed.yaml").write_text(SEED)
    (tmp_path / "manifests").mkdir()
    return tmp_path


def errors(root: Path, command: str, manifest: str) -> str:
    """What a command writes about a manifest with one error."""
    (root / "manifests" / "a.yaml").write_text(manifest)
    ran = lmsconf(root, command)
    assert ran.code == 1
    return ran.err


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("Leads", "Did you mean {set: Leads}?"),
        ("leads", "Did you mean {set: Leads}?"),
        ("anna", "Did you mean {set: Anna}?"),
        ("Sales coach", "Did you mean {set: Sales coaches}?"),
        ("Bo Ek", 'Write the person\'s e-mail. Did you mean "bo.ek@acme.example"?'),
        ("anna.berk", 'Write the person\'s e-mail. Did you mean "anna.berg@acme.example"?'),
        ("Zed", "Write the person's e-mail.\n"),
    ],
)
@pytest.mark.parametrize("key", ["managers", "members"])
def test_a_set_or_a_name_in_place_of_an_email(root: Path, written: str, hint: str, key: str) -> None:
    """In a list of people: a set by its name, an e-mail of the manifests by a person's name or its first part."""
    told = errors(root, "validate", f"{SETS}groups: [{{name: A, {key}: [{{set: Leads}}, {written}]}}]\n")
    assert f"  {hint}" in told


@pytest.mark.parametrize("written", ["sen.petersen0", "Sven Petersen", "sven.petersen"])
def test_an_audience_that_is_no_email(root: Path, written: str) -> None:
    """Of an assignment to a person: an e-mail is required, and the nearest of the workspace is offered."""
    told = errors(root, "plan", f"content_targets: [{{content: GDPR, assign_to: [{{user: {written}}}]}}]\n")
    assert 'Write the person\'s e-mail. Did you mean "sven.petersen0@acme.example"?' in told


@pytest.mark.parametrize("key", ["due", "due_date", "dueDate", "deadline"])
def test_there_is_no_due_date(root: Path, key: str) -> None:
    """The key that comes nearest hides the content, and the hint says so."""
    for manifest in (
        f"content_targets: [{{content: GDPR, {key}: 2026-12-31, assign_to: [everyone]}}]\n",
        f"content_targets: [{{content: GDPR, assign_to: [{{everyone: true, {key}: 2026-12-31}}]}}]\n",
    ):
        told = errors(root, "validate", manifest)
        assert "The service has no due date; `visible_until` hides the content." in told


@pytest.mark.parametrize(
    ("command", "takes"),
    [
        ("apply", "apply takes a plan file"),
        ("show", "show takes a saved plan, snapshot or apply report"),
        ("plan --snapshot", "--snapshot takes a saved snapshot"),
        ("export out --snapshot", "--snapshot takes a saved snapshot"),
    ],
)
def test_a_manifest_in_place_of_a_saved_file(root: Path, command: str, takes: str) -> None:
    """It is a wrong command line, and no damaged file; with the command that creates one."""
    (root / "manifests" / "a.yaml").write_text("groups: [{name: A}]\n")
    ran = lmsconf(root, *command.split(), "manifests/a.yaml")
    assert ran.code == 64
    assert f"manifests/a.yaml is a manifest; {takes}" in ran.err


@pytest.mark.parametrize("command", ["apply", "show"])
def test_an_edited_plan_file_is_named(root: Path, command: str) -> None:
    """Also one that is cut short; exit 3 as before."""
    (root / "manifests" / "a.yaml").write_text("groups: [{name: A}]\n")
    assert lmsconf(root, "plan", "--out", "plan.json").code == 0
    text = (root / "plan.json").read_text()
    for edited in (text.replace('"A"', '"B"'), text[:-20]):
        (root / "plan.json").write_text(edited)
        ran = lmsconf(root, command, "plan.json")
        assert (ran.code, "error: plan.json: the file " in ran.err) == (3, True)
