"""Tables in workbooks, `.xlsx` and `.ods`, wherever a CSV file may stand."""

import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Final

import pytest
from flow.shell import lmsconf
from manifest import test_sheets
from manifest.cases import ods, ods_row, ods_table, row, shown, text_cell, xlsx, xlsx_parts, zipped

from lmsconf.errors import ExitCode, SourceLocation
from lmsconf.kinds.group import ManualGroupSpec
from lmsconf.manifest import workbook
from lmsconf.manifest.load import load_folder
from lmsconf.model.declarations import Manifests

pytest.importorskip("python_calamine", reason="the extra `spreadsheets` is not installed")
FILES: Final = sorted((Path(__file__).parent / "workbooks").iterdir())
"""Workbooks as spreadsheet programs and libraries write them, each with the sheets Assignments and People."""
MEMBERS: Final = "{file: people.xlsx, column: email}"


def loaded(root: Path, data: bytes, name: str = "people.xlsx", members: str = MEMBERS) -> Manifests:
    """A group whose members stand in a workbook."""
    (root / name).write_bytes(data)
    (root / "a.yaml").write_text(f"groups: [{{name: Leaders, members: {members}}}]\n")
    return load_folder(root, root)


def members(found: Manifests) -> set[str]:
    assert [problem for problem in found.problems if problem.is_error] == []
    (group,) = found.declared
    assert isinstance(group.spec, ManualGroupSpec)
    assert group.spec.members is not None
    return set(group.spec.members.include)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_people_and_assignments(tmp_path: Path, file: Path) -> None:
    """A workbook means what a CSV file with the same cells means: dates, times and booleans have their types there."""
    (tmp_path / file.name).write_bytes(file.read_bytes())
    where = f"{{file: {file.name}, sheet: People, column: email, where: {{Group: SE}}}}"
    (tmp_path / "a.yaml").write_text(f"groups: [{{name: Leaders, members: {where}}}]\n")
    found = load_folder(tmp_path, tmp_path)
    assert members(found) == {"anna@acme.example", "cy@acme.example"}
    assert found.files == ("a.yaml", file.name)
    place = found.declared[0].places.find("Cy@acme.example", "members")
    assert place == SourceLocation(file.name, 5, 2, sheet="People")
    assert str(place) == f"{file.name}, sheet People, cell B5"
    # Its first sheet that is not hidden has the assignments.
    (tmp_path / "a.yaml").write_text(f"content_targets: [{{file: {file.name}}}]\n")
    sheet = load_folder(tmp_path, tmp_path, timezone=test_sheets.ZONE)
    assert sheet.problems == ()
    assert test_sheets.assignments(sheet) == test_sheets.EXPECTED
    assert str(sheet.declared[2].source) == f"{file.name}, sheet Assignments, cell B5"


def test_shared_texts_and_cells_without_a_name(tmp_path: Path) -> None:
    """A cell may name a text of the workbook, and one without a name follows the cell before it."""
    data = xlsx(
        '<row r="2"><c t="s"><v>1</v></c><c t="s"><v>0</v></c></row><row><c/><c t="s"><v>2</v></c></row>',
        strings="<si><t>email</t></si><si><r><t>na</t></r><r><t>me</t></r></si><si><t>bo@x.se</t></si>",
    )
    found = loaded(tmp_path, data)
    assert members(found) == {"bo@x.se"}
    assert str(found.declared[0].places.find("bo@x.se", "members")) == "people.xlsx, sheet Staff, cell B3"


def test_the_sheet(tmp_path: Path) -> None:
    """Without `sheet` it is the first that is not hidden, and no chart; a hidden one can be named."""
    more = "".join(
        f'<sheet name="{name}" sheetId="{number}" state="{state}" r:id="{part}"/>'
        for number, (name, state, part) in enumerate(
            [("Chart", "visible", "c"), ("Old", "hidden", "s2"), ("Older", "veryHidden", "s2")], start=2
        )
    )
    parts = xlsx_parts(row(1, "email") + row(2, "bo@x.se"), sheets=more)
    relations = parts["xl/_rels/workbook.xml.rels"]
    kinds = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    parts["xl/_rels/workbook.xml.rels"] = relations.replace(
        "</Relationships>",
        f'<Relationship Id="c" Type="{kinds}/chartsheet" Target="chartsheets/sheet1.xml"/>'
        f'<Relationship Id="s2" Type="{kinds}/worksheet" Target="/xl/worksheets/sheet2.xml"/></Relationships>',
    )
    parts["xl/worksheets/sheet2.xml"] = parts["xl/worksheets/sheet1.xml"].replace("bo@", "old@")
    data = zipped(parts)
    assert members(loaded(tmp_path, data)) == {"bo@x.se"}
    assert members(loaded(tmp_path, data, members="{file: people.xlsx, sheet: Older, column: email}")) == {"old@x.se"}
    wrong = loaded(tmp_path, data, members="{file: people.xlsx, sheet: Staf, column: email}")
    assert shown(wrong.problems) == (
        'a.yaml:1:62: people.xlsx has no sheet "Staf" [table/sheet]\n  Did you mean "Staff"?\n'
    )


def test_merged_cells_of_any_width_are_not_gone_through(tmp_path: Path) -> None:
    """A workbook of one kilobyte that merges eight billion columns is read at once."""
    merged = '<mergeCells><mergeCell ref="C2:ZZZZZZZ4"/></mergeCells>'
    (tmp_path / "p.xlsx").write_bytes(xlsx(HEADER + row(2, "bo@x.se"), merged))
    (tmp_path / "a.yaml").write_text("groups: [{name: G, members: {file: p.xlsx, column: email}}]\n")
    assert not load_folder(tmp_path, tmp_path).problems


def test_two_sheets_of_one_workbook(tmp_path: Path) -> None:
    """Each is a table of its own, with places of its own, and the file is read once."""
    data = ods(
        ods_table(ods_row("email"), ods_row("bo@x.se"), name="A") + ods_table(ods_row("email"), ods_row("x"), name="B")
    )
    (tmp_path / "p.ods").write_bytes(data)
    (tmp_path / "a.yaml").write_text(
        "groups:\n"
        "  - {name: G, members: {file: p.ods, column: email}}\n"
        "  - {name: H, members: {file: p.ods, sheet: A, column: email}}\n"
        "  - {name: I, members: {file: p.ods, sheet: B, column: email}}\n"
    )
    found = load_folder(tmp_path, tmp_path)
    assert [str(problem.source) for problem in found.problems] == ["p.ods, sheet B, cell A2"]


HEADER: Final = row(1, "email", "Group")
ODS_HEADER: Final = ods_row("email", "Group")
_SAVE: Final = "  Save it again, or save the sheet as CSV.\n"
PROBLEMS: Final = {
    "merged cells": (
        xlsx(HEADER + row(2, "bo@x.se") + row(3, "", "SE"), '<mergeCells><mergeCell ref="A2:A3"/></mergeCells>'),
        "people.xlsx, sheet Staff, cell A2: the cells A2:A3 are merged, and only the first has a value [table/cell]\n"
        "  Unmerge them, and fill in each cell.\n",
    ),
    "a title over the table": (
        xlsx(row(1, "Staff 2026") + row(2, "email"), '<mergeCells><mergeCell ref="A1:D1"/></mergeCells>'),
        'people.xlsx, sheet Staff, cell A1: there is no column "email" [people/column]\n'
        "  It has Staff 2026. a.yaml:1:63 uses it.\n",
    ),
    "a column that is not there": (
        xlsx(row(1, "E-mail", "Group") + row(2, "bo@x.se")),
        'people.xlsx, sheet Staff, cell A1: there is no column "email" [people/column]\n'
        '  Did you mean "E-mail"? a.yaml:1:63 uses it.\n',
    ),
    "a column twice": (
        xlsx(row(1, "email", "x", "email") + row(2, "bo@x.se")),
        'people.xlsx, sheet Staff, cell C1: there are several columns "email" [people/column]\n'
        "  Give each column its own name. a.yaml:1:63 uses it.\n",
    ),
    "no address in the column AB": (
        xlsx(row(1, text_cell("AB1", "email")) + row(2, text_cell("AB2", "bo"))),
        'people.xlsx, sheet Staff, cell AB2: "bo" is not an e-mail address [people/address]\n'
        "  Write one address in the cell, such as anna.berg@acme.example, or skip the row with `where`.\n",
    ),
    "an invisible character": (
        xlsx(HEADER + row(2, "bo@x.se", "a\u202eb")),
        "people.xlsx, sheet Staff, cell B2: the character U+202E is not allowed here [people/csv]\n  Remove it.\n",
    ),
    "an empty sheet": (
        xlsx(""),
        "people.xlsx, sheet Staff, cell A1: this sheet is empty [people/csv]\n"
        "  Its first line must name the columns.\n",
    ),
    "nobody below the header": (
        xlsx(HEADER),
        "people.xlsx, sheet Staff, row 1: there is no e-mail, so a.yaml:1:35 would mean nobody [people/nobody]\n"
        "  Set `allow_empty: true` to allow this.\n",
    ),
    "only hidden sheets": (
        zipped(
            xlsx_parts(HEADER)
            | {"xl/workbook.xml": xlsx_parts("")["xl/workbook.xml"].replace("sheetId=", 'state="hidden" sheetId=')}
        ),
        "people.xlsx: this workbook has no sheet that is shown [table/workbook]\n"
        "  Name the sheet with `sheet: NAME`.\n",
    ),
    "a password, of OpenDocument": (
        ods(ods_table(ODS_HEADER), "<manifest:encryption-data/>"),
        "people.xlsx: this workbook is encrypted [table/workbook]\n  Save it without a password.\n",
    ),
    "a zip file of other things": (
        zipped({"a.txt": "a"}),
        "people.xlsx: this is a zip archive, and not a workbook [table/workbook]\n"
        "  Save the table as .xlsx or as CSV.\n",
    ),
    "a workbook that was cut short": (
        xlsx(HEADER)[:300],
        f"people.xlsx: this workbook cannot be read: File is not a zip file [table/workbook]\n{_SAVE}",
    ),
    "XML that is cut short": (
        zipped(xlsx_parts("<row>") | {"xl/worksheets/sheet1.xml": "<worksheet><sheetData>"}),
        "people.xlsx: this workbook cannot be read: XmlError: sheetData [table/workbook]\n" + _SAVE,
    ),
    "a sheet that is not there": (
        zipped({name: part for name, part in xlsx_parts("").items() if "sheet1" not in name}),
        f"people.xlsx: this workbook cannot be read: WorksheetNotFound: Staff [table/workbook]\n{_SAVE}",
    ),
    "a cell of no name": (
        xlsx('<row r="1"><c r="1A"><v>1</v></c></row>'),
        "people.xlsx: this workbook cannot be read: CalamineError: Expecting alphanumeric character, got 41 "
        f"[table/workbook]\n{_SAVE}",
    ),
    "a text that is not there": (
        xlsx('<row r="1"><c r="A1" t="s"><v>3</v></c></row>'),
        "people.xlsx: this workbook cannot be read: CalamineError: Cell string index not found in shared strings table "
        f"[table/workbook]\n{_SAVE}",
    ),
}


@pytest.mark.parametrize("case", PROBLEMS)
def test_what_is_wrong(tmp_path: Path, case: str) -> None:
    """Each problem names file, sheet and cell, the reason and the way out."""
    data, told = PROBLEMS[case]
    assert shown(loaded(tmp_path, data).problems) == told


def test_cells_that_calamine_reads_as_empty(tmp_path: Path) -> None:
    """An error and a formula without a result are empty cells, and a row without an e-mail is told."""
    cells = ('<c r="A3" t="e"><f>NA()</f><v>#N/A</v></c>', '<c r="A4"><f>B2&amp;"@x.se"</f><v/></c>')
    data = xlsx(HEADER + row(2, "bo@x.se") + row(3, cells[0], "SE") + row(4, cells[1], "SE"))
    found = loaded(tmp_path, data)
    assert members(found) == {"bo@x.se"}
    assert [f"{problem.source} {problem.code}" for problem in found.problems] == [
        "people.xlsx, sheet Staff, cell A3 people/no-address",
        "people.xlsx, sheet Staff, cell A4 people/no-address",
    ]


_OLD: Final = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600)
NAMES: Final = {
    "an Excel workbook as CSV": (
        "people.csv",
        xlsx(HEADER),
        "people.csv: this is an Excel workbook, not a CSV file [table/workbook]\n"
        "  Save it as CSV, or name it people.xlsx.\n",
    ),
    "an OpenDocument spreadsheet as CSV": (
        "people.csv",
        ods(ods_table(ODS_HEADER)),
        "people.csv: this is an OpenDocument spreadsheet, not a CSV file [table/workbook]\n"
        "  Save it as CSV, or name it people.ods.\n",
    ),
    "CSV as a workbook": (
        "people.xlsx",
        b"email\nbo@x.se\n",
        "people.xlsx: this is not a workbook, in spite of its name [table/workbook]\n"
        "  Save it as .xlsx, or give it a name that ends in .csv if it is text.\n",
    ),
    "the old format": (
        "people.xls",
        _OLD,
        "people.xls: this is a workbook with a password, or in the format of Excel before 2007 [table/workbook]\n"
        "  Save it as .xlsx without a password, or as CSV.\n",
    ),
    "a workbook with a password": (
        "people.xlsx",
        _OLD,
        "people.xlsx: this is a workbook with a password, or in the format of Excel before 2007 [table/workbook]\n"
        "  Save it as .xlsx without a password, or as CSV.\n",
    ),
    "a sheet of a CSV file": (
        "people.csv, sheet: Staff",
        b"email\nbo@x.se\n",
        "a.yaml:1:61: people.csv is not a workbook, so it has no sheets [table/sheet]\n"
        "  Leave `sheet` out, or name an .xlsx or .ods file.\n",
    ),
}


@pytest.mark.parametrize("case", NAMES)
def test_the_name_and_the_content_of_a_file(tmp_path: Path, case: str) -> None:
    """What a file holds decides how it is read, and a name that says otherwise is told."""
    name, data, told = NAMES[case]
    found = loaded(tmp_path, data, name.partition(",")[0], f"{{file: {name}, column: email}}")
    assert shown(found.problems) == told


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("people.xlsx", xlsx(HEADER), "an Excel workbook"),
        ("people.csv", xlsx(HEADER), "an Excel workbook"),
        ("people.ods", ods(ods_table(ODS_HEADER)), "an OpenDocument spreadsheet"),
    ],
)
def test_without_the_extra(tmp_path: Path, name: str, data: bytes, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A workbook is told as what it is, with both ways out; nothing of it is unpacked."""
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    assert shown(loaded(tmp_path, data, name, f"{{file: {name}, column: email}}").problems) == (
        f"{name}: this is {kind}: save it as CSV, or install lmsconf[spreadsheets] [table/workbook]\n"
        "  Install it with `pip install 'lmsconf[spreadsheets]'`, in the environment of lmsconf.\n"
    )


def _lying_sizes() -> bytes:
    """A part of 2 MiB that the directory of the zip file gives as empty."""
    large = zipped(xlsx_parts("") | {"xl/worksheets/sheet1.xml": b"<a>" + bytes(2 << 20)})
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
        lambda: zipped(xlsx_parts("") | {"xl/worksheets/sheet1.xml": bytes(2 << 20)}),
        "people.xlsx: this workbook is larger than 1 MiB when it is unpacked",
    ),
    "parts that are larger together": (
        lambda: zipped(
            xlsx_parts("")
            | {"xl/sharedStrings.xml": "<a>" + " " * (700_000) + "</a>"}
            | {"xl/worksheets/sheet1.xml": "<a>" + " " * (700_000) + "</a>"}
        ),
        "people.xlsx: this workbook is larger than 1 MiB when it is unpacked",
    ),
    "a part whose size is not told": (_lying_sizes, "people.xlsx: this workbook cannot be read: "),
    "an entity of an entity": (
        lambda: zipped(
            xlsx_parts("")
            | {
                "xl/worksheets/sheet1.xml": '<!DOCTYPE a [<!ENTITY b "bbbbbbbb"><!ENTITY c "&b;&b;&b;&b;">]>'
                "<worksheet><sheetData><row><c><v>&c;</v></c></row></sheetData></worksheet>"
            }
        ),
        "people.xlsx, sheet Staff, cell A1: this sheet is empty",
    ),
    "a file from outside": (
        lambda: zipped(
            xlsx_parts("")
            | {"xl/worksheets/sheet1.xml": '<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'}
        ),
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
        (problem,) = loaded(tmp_path, data).problems
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
        found = loaded(tmp_path, bytes(data), members="{file: people.xlsx, sheet: People, column: email}")
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
        found = loaded(tmp_path, zipped(parts | {name: b'"'.join(words)}))
        assert all(problem.hint for problem in found.problems)


def test_places_in_documents(tmp_path: Path) -> None:
    """JSON has the sheet beside line and column; annotations say the cell, which no line of a text file is."""
    (tmp_path / "lmsconf.yaml").write_text('workspaces: {here: {url: "sandbox:"}}\nmanifests: m\n')
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "p.xlsx").write_bytes(xlsx(HEADER + row(2, "bo")))
    (tmp_path / "m" / "a.yaml").write_text("groups: [{name: G, members: {file: p.xlsx, column: email}}]\n")
    problems = lmsconf(tmp_path, "validate", "--format", "json", code=ExitCode.ERROR).document["problems"]
    (problem,) = [one for one in problems if one["code"] == "people/address"]
    assert problem["source"] == {"file": "m/p.xlsx", "line": 2, "column": 1, "sheet": "Staff"}
    told = lmsconf(tmp_path, "validate", "--format", "github", code=ExitCode.ERROR).out
    assert '::sheet Staff, cell A2: "bo" is not an e-mail address' in told
