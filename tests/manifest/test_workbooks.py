"""Tables in workbooks, `.xlsx` and `.ods`, wherever a CSV file may stand."""

import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import pytest
from flow.project import Project
from flow.shell import lmsconf
from manifest.cases import Case, cases, loaded, said, shown, zipped
from manifest.test_sheets import EXPECTED

from lmsconf.errors import ExitCode
from lmsconf.manifest import workbook
from lmsconf.model.declarations import Manifests

pytest.importorskip("python_calamine", reason="the extra `spreadsheets` is not installed")
FILES: Final = sorted((Path(__file__).parent / "workbooks").iterdir())
"""Workbooks as spreadsheet programs and libraries write them, each with the sheets Assignments and People."""


# Workbooks as small as they can be, for cells that no spreadsheet program would write.


_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_SHEET_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
_ODS = "application/vnd.oasis.opendocument.spreadsheet"


def row(number: int, *cells: str) -> str:
    """A row of an Excel sheet: each cell its XML, or a text."""
    written = [
        cell if cell.startswith("<") else f'<c r="{chr(65 + at)}{number}" t="inlineStr"><is><t>{cell}</t></is></c>'
        for at, cell in enumerate(cells)
        if cell
    ]
    return f'<row r="{number}">{"".join(written)}</row>'


def xlsx_parts(data: str, after: str = "", strings: str = "", sheets: str = "") -> dict[str, str]:
    """An Excel workbook with the sheet Staff.

    after: XML behind its data. strings: shared texts. sheets: other sheets, before it.
    """
    return {
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">'
        f'<Default Extension="xml" ContentType="{_SHEET_TYPE}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="a" Type="{_RELATIONS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{_MAIN}" xmlns:r="{_RELATIONS}"><sheets>{sheets}'
        '<sheet name="Staff" sheetId="1" r:id="s1"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">'
        f'<Relationship Id="s1" Type="{_RELATIONS}/worksheet" Target="worksheets/sheet1.xml"/>'
        f'<Relationship Id="t" Type="{_RELATIONS}/sharedStrings" Target="sharedStrings.xml"/></Relationships>',
        "xl/sharedStrings.xml": f'<sst xmlns="{_MAIN}">{strings}</sst>',
        "xl/worksheets/sheet1.xml": f'<worksheet xmlns="{_MAIN}"><sheetData>{data}</sheetData>{after}</worksheet>',
    }


def xlsx(data: str, after: str = "", strings: str = "", sheets: str = "") -> bytes:
    return zipped(xlsx_parts(data, after, strings, sheets))


def ods(tables: str, manifest: str = "") -> bytes:
    """An OpenDocument spreadsheet with the XML of its tables."""
    names = ("office", "table", "text", "style")
    spaces = " ".join(f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in names)
    calc = 'xmlns:calcext="urn:org:documentfoundation:names:experimental:calc:xmlns:calcext:1.0"'
    listed = f'<manifest:file-entry manifest:full-path="content.xml">{manifest}</manifest:file-entry>'
    return zipped(
        {
            "mimetype": _ODS,
            "META-INF/manifest.xml": f'<manifest:manifest xmlns:manifest="urn:m">{listed}</manifest:manifest>',
            "content.xml": f"<office:document-content {spaces} {calc}><office:body><office:spreadsheet>{tables}"
            "</office:spreadsheet></office:body></office:document-content>",
        }
    )


def ods_row(*cells: str, repeated: int = 1) -> str:
    written = (
        cell
        if cell.startswith("<")
        else f'<table:table-cell office:value-type="string"><text:p>{cell}</text:p></table:table-cell>'
        for cell in cells
    )
    return f'<table:table-row table:number-rows-repeated="{repeated}">{"".join(written)}</table:table-row>'


def ods_table(*rows: str, name: str = "Staff") -> str:
    return f'<table:table table:name="{name}">{"".join(rows)}</table:table>'


def read(root: Path, data: bytes, name: str = "people.xlsx", more: str = "") -> Manifests:
    """A group whose members stand in a workbook. more: keys beside its name."""
    (root / name).write_bytes(data)
    return loaded(root, f"groups: [{{name: Leaders, members: {{file: {name}{more}, column: email}}}}]\n")


def members(found: Manifests) -> str:
    """The members of the only group, each at its place, where nothing is wrong."""
    assert [problem for problem in found.problems if problem.is_error] == []
    (group,) = found.declared
    return said(group)


def grid(text: str) -> bytes:
    """A workbook of rows whose cells are divided by bars; a row, a cell and what follows the data may be XML."""
    lines = text.splitlines()
    rows = [line if line.startswith("<row") else row(number, *map(str.strip, line.split("|")))
            for number, line in enumerate(lines, start=1) if not line.startswith("<merge")]  # fmt: skip
    return xlsx("".join(rows), "".join(line for line in lines if line.startswith("<merge")))


def with_sheet(content: str | bytes) -> bytes:
    """A workbook whose sheet is that XML."""
    return zipped(xlsx_parts("") | {"xl/worksheets/sheet1.xml": content})


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_people_and_assignments(tmp_path: Path, file: Path) -> None:
    """A workbook means what a CSV file with the same cells means: dates, times and booleans have their types there."""
    found = read(tmp_path, file.read_bytes(), file.name, ", sheet: People, where: {Group: SE}")
    assert members(found) == ", ".join(
        f"{name}@acme.example {file.name}, sheet People, cell {cell}" for name, cell in (("anna", "B2"), ("cy", "B5"))
    )
    assert found.files == ("a.yaml", file.name)
    # Its first sheet that is not hidden has the assignments.
    sheet = loaded(tmp_path, f"content_targets: [{{file: {file.name}}}]\n")
    assert sheet.problems == ()
    assert {one.address.text: said(one) for one in sheet.declared} == EXPECTED
    assert str(sheet.declared[2].source) == f"{file.name}, sheet Assignments, cell B5"


def test_shared_texts_and_cells_without_a_name(tmp_path: Path) -> None:
    """A cell may name a text of the workbook, and one without a name follows the cell before it."""
    data = xlsx(
        '<row r="2"><c t="s"><v>1</v></c><c t="s"><v>0</v></c></row><row><c/><c t="s"><v>2</v></c></row>',
        strings="<si><t>email</t></si><si><r><t>na</t></r><r><t>me</t></r></si><si><t>bo@x.se</t></si>",
    )
    assert members(read(tmp_path, data)) == "bo@x.se people.xlsx, sheet Staff, cell B3"


def test_the_sheet(tmp_path: Path) -> None:
    """Without `sheet` it is the first that is not hidden, and no chart; a hidden one can be named."""
    more = "".join(
        f'<sheet name="{name}" sheetId="{number}" state="{state}" r:id="{part}"/>'
        for number, (name, state, part) in enumerate(
            [("Chart", "visible", "c"), ("Old", "hidden", "s2"), ("Older", "veryHidden", "s2")], start=2
        )
    )
    parts = xlsx_parts(row(1, "email") + row(2, "bo@x.se"), sheets=more)
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    parts["xl/_rels/workbook.xml.rels"] = parts["xl/_rels/workbook.xml.rels"].replace(
        "</Relationships>",
        f'<Relationship Id="c" Type="{kinds}/chartsheet" Target="chartsheets/sheet1.xml"/>'
        f'<Relationship Id="s2" Type="{kinds}/worksheet" Target="/xl/worksheets/sheet2.xml"/></Relationships>',
    )
    parts["xl/worksheets/sheet2.xml"] = parts["xl/worksheets/sheet1.xml"].replace("bo@", "old@")
    data = zipped(parts)
    assert members(read(tmp_path, data)) == "bo@x.se people.xlsx, sheet Staff, cell A2"
    assert members(read(tmp_path, data, more=", sheet: Older")) == "old@x.se people.xlsx, sheet Older, cell A2"
    assert shown(read(tmp_path, data, more=", sheet: Staf").problems) == (
        'a.yaml:1:62: people.xlsx has no sheet "Staf" [table/sheet]\n  Did you mean "Staff"?\n'
    )


def test_merged_cells_of_any_width_are_not_gone_through(tmp_path: Path) -> None:
    """A workbook of one kilobyte that merges eight billion columns is read at once."""
    data = grid('email\nbo@x.se\n<mergeCells><mergeCell ref="C2:ZZZZZZZ4"/></mergeCells>')
    assert not read(tmp_path, data).problems


def test_two_sheets_of_one_workbook(tmp_path: Path) -> None:
    """Each is a table of its own, with places of its own, and the file is read once."""
    tables = [ods_table(ods_row("email"), ods_row(email), name=name) for name, email in (("A", "bo@x.se"), ("B", "x"))]
    (tmp_path / "p.ods").write_bytes(ods("".join(tables)))
    groups = [
        f"{{name: G{number}, members: {{file: p.ods{more}, column: email}}}}"
        for number, more in enumerate(("", ", sheet: A", ", sheet: B"))
    ]
    found = loaded(tmp_path, f"groups: [{', '.join(groups)}]\n")
    assert [str(problem.source) for problem in found.problems] == ["p.ods, sheet B, cell A2"]


HEADER: Final = row(1, "email", "Group")
SPREADSHEET: Final = ods(ods_table(ods_row("email", "Group")))
OLD: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
HIDDEN: Final = xlsx_parts("")["xl/workbook.xml"].replace("sheetId=", 'state="hidden" sheetId=')
DATA: Final[dict[str, tuple[str, bytes]]] = {
    "only hidden sheets": ("people.xlsx", zipped(xlsx_parts(HEADER) | {"xl/workbook.xml": HIDDEN})),
    "a password, of OpenDocument": ("people.xlsx", ods("", "<manifest:encryption-data/>")),
    "a zip file of other things": ("people.xlsx", zipped({"a.txt": "a"})),
    "a workbook that was cut short": ("people.xlsx", xlsx(HEADER)[:300]),
    "XML that is cut short": ("people.xlsx", with_sheet("<worksheet><sheetData>")),
    "a sheet that is not there": (
        "people.xlsx",
        zipped({name: part for name, part in xlsx_parts("").items() if "sheet1" not in name}),
    ),
    "an Excel workbook as CSV": ("people.csv", xlsx(HEADER)),
    "an OpenDocument spreadsheet as CSV": ("people.csv", SPREADSHEET),
    "CSV as a workbook": ("people.xlsx", b"email\nbo@x.se\n"),
    "the old format": ("people.xls", OLD),
    "a workbook with a password": ("people.xlsx", OLD),
    "a sheet of a CSV file": ("people.csv", b"email\nbo@x.se\n"),
}
"""The files of the cases that are no grid of cells, and their names."""


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("workbooks.txt")), ids=lambda case: case.title)
def test_what_is_wrong(tmp_path: Path, case: Case) -> None:
    """Each problem names file, sheet and cell, the reason and the way out; a name that says otherwise is told too."""
    name, data = DATA.get(case.title) or ("people.xlsx", grid(case.text))
    more = ", sheet: Staff" if case.title == "a sheet of a CSV file" else ""
    assert shown(read(tmp_path, data, name, more).problems) == case.told


def test_cells_that_calamine_reads_as_empty(tmp_path: Path) -> None:
    """An error and a formula without a result are empty cells, and a row without an e-mail is told."""
    cells = ('<c r="A3" t="e"><f>NA()</f><v>#N/A</v></c>', '<c r="A4"><f>B2&amp;"@x.se"</f><v/></c>')
    found = read(tmp_path, grid(f"email | Group\nbo@x.se\n{cells[0]} | SE\n{cells[1]} | SE"))
    assert members(found) == "bo@x.se people.xlsx, sheet Staff, cell A2"
    assert [f"{problem.source} {problem.code}" for problem in found.problems] == [
        "people.xlsx, sheet Staff, cell A3 people/no-address",
        "people.xlsx, sheet Staff, cell A4 people/no-address",
    ]


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("people.xlsx", xlsx(HEADER), "an Excel workbook"),
        ("people.csv", xlsx(HEADER), "an Excel workbook"),
        ("people.ods", SPREADSHEET, "an OpenDocument spreadsheet"),
    ],
)
def test_without_the_extra(tmp_path: Path, name: str, data: bytes, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workbook is told as what it is, with both ways out; nothing of it is unpacked."""
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    assert shown(read(tmp_path, data, name).problems) == (
        f"{name}: this is {kind}: save it as CSV, or install lmsconf[spreadsheets] [table/workbook]\n"
        "  Install it with `pip install 'lmsconf[spreadsheets]'`, in the environment of lmsconf.\n"
    )


def _lying_sizes() -> bytes:
    """A part of 2 MiB that the directory of the zip file gives as empty."""
    large = with_sheet(b"<a>" + bytes(2 << 20))
    size = (2 << 20) + 3
    assert large.count(size.to_bytes(4, "little")) >= 2
    return large.replace(size.to_bytes(4, "little"), bytes(4))


HOSTILE: Final[dict[str, tuple[Callable[[], bytes], str]]] = {
    "two cells far apart": (
        lambda: xlsx(row(1, "email") + '<row r="1000"><c r="ALM1000"><v>1</v></c></row>'),
        "people.xlsx, sheet Staff: this sheet has values down to row 1,000 and in 1,001 columns, and at most ",
    ),
    "the last cell that there is": (
        lambda: xlsx(row(1, "email") + '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'),
        "people.xlsx: this workbook has a sheet of 17,179,869,184 cells, with the empty ones before its last, and at ",
    ),
    "two cells far apart, of OpenDocument": (
        lambda: ods(
            ods_table(
                ods_row("email"),
                ods_row(repeated=998),
                ods_row('<table:table-cell table:number-columns-repeated="1000"/>', "x"),
            )
        ),
        "people.xlsx, sheet Staff: this sheet has values down to row 1,000 and in 1,001 columns, and at most ",
    ),
    "a part of 2 MiB": (
        lambda: with_sheet(bytes(2 << 20)),
        "people.xlsx: this workbook is larger than 1 MiB when it is unpacked",
    ),
    "parts that are larger together": (
        lambda: zipped(
            xlsx_parts("")
            | dict.fromkeys(("xl/sharedStrings.xml", "xl/worksheets/sheet1.xml"), f"<a>{' ' * 700_000}</a>")
        ),
        "people.xlsx: this workbook is larger than 1 MiB when it is unpacked",
    ),
    "a part whose size is not told": (_lying_sizes, "people.xlsx: this workbook cannot be read: "),
    "an entity of an entity": (
        lambda: with_sheet(
            '<!DOCTYPE a [<!ENTITY b "bbbbbbbb"><!ENTITY c "&b;&b;&b;&b;">]>'
            "<worksheet><sheetData><row><c><v>&c;</v></c></row></sheetData></worksheet>"
        ),
        "people.xlsx, sheet Staff, cell A1: this sheet is empty",
    ),
    "a file from outside": (
        lambda: with_sheet('<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'),
        "people.xlsx, sheet Staff, cell A1: this sheet is empty",
    ),
    "thousands of parts": (
        lambda: zipped({f"{number}": "" for number in range(5001)}),
        "people.xlsx: this workbook has more than 5,000 parts",
    ),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_workbooks(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workbook that stands for more than it holds is refused within bounded memory."""
    make, told = HOSTILE[case]
    data = make()
    monkeypatch.setattr(workbook, "UNPACKED", 1 << 20)
    assert len(data) < 1 << 20
    tracemalloc.start()
    try:
        (problem,) = read(tmp_path, data).problems
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert f"{problem.source}: {problem.message}".startswith(told)
    assert peak < 40 << 20
    assert problem.hint


def test_damaged_workbooks(tmp_path: Path) -> None:
    """Whatever a damaged workbook holds, it is read, or it is a problem with a way out."""
    chance = Random(20)  # noqa: S311  # damage needs no secrecy
    outcomes = set()
    for number in range(50):
        data = bytearray(FILES[number % len(FILES)].read_bytes())
        for _ in range(chance.randint(1, 6)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        found = read(tmp_path, bytes(data), more=", sheet: People")
        assert all(problem.hint for problem in found.problems)
        outcomes.add(not found.problems)
    assert outcomes == {True, False}


XML_DAMAGE: Final = tuple(
    text.encode("latin-1")
    for text in ("999999999", "-1", "XFD1048576", "&#x41;", "", "e", "s", "nan", "9999-12-31T23:59:59.9", "\xff")
)


def test_damaged_parts(tmp_path: Path) -> None:
    """The same where the zip file is sound, and values in its XML are not."""
    chance = Random(21)  # noqa: S311  the same choices each time
    for number in range(50):
        with zipfile.ZipFile(FILES[number % len(FILES)]) as whole:
            parts = {name: whole.read(name) for name in whole.namelist()}
        name = chance.choice([name for name in parts if name.endswith((".xml", ".rels"))])
        words = parts[name].split(b'"')
        for _ in range(3):
            words[chance.randrange(len(words) // 2) * 2 + 1 if len(words) > 2 else 0] = chance.choice(XML_DAMAGE)
        assert all(problem.hint for problem in read(tmp_path, zipped(parts | {name: b'"'.join(words)})).problems)


def test_places_in_documents(tmp_path: Path) -> None:
    """JSON has the sheet beside line and column; annotations say the cell, which no line of a text file is."""
    Project(tmp_path).write("groups: [{name: G, members: {file: p.xlsx, column: email}}]\n")
    (tmp_path / "manifests" / "p.xlsx").write_bytes(grid("email\nbo"))
    problems = lmsconf(tmp_path, "validate", "--format", "json", code=ExitCode.ERROR).document["problems"]
    (problem,) = [one for one in problems if one["code"] == "people/address"]
    assert problem["source"] == {"file": "manifests/p.xlsx", "line": 2, "column": 1, "sheet": "Staff"}
    told = lmsconf(tmp_path, "validate", "--format", "github", code=ExitCode.ERROR).out
    assert '::sheet Staff, cell A2: "bo" is not an e-mail address' in told
