"""Reads tables of malformed files: `=== title`, the text, `>>>`, and the exact problems, each over its hint."""

import io
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from lmsconf.errors import Problem


class Case(NamedTuple):
    """One malformed file and what is to be said of it."""

    title: str
    text: str
    told: str


def cases(path: Path) -> list[Case]:
    """All cases of a table."""
    found = []
    for part in path.read_text(encoding="utf-8").split("=== ")[1:]:
        title, rest = part.split("\n", 1)
        text, told = rest.split(">>>\n", 1)
        found.append(Case(title, text, told))
    return found


def shown(problems: Iterable[Problem]) -> str:
    """Problems in the form of the table."""
    return "".join(
        f"{problem.source}: {problem.message} [{problem.code}]\n" + (f"  {problem.hint}\n" if problem.hint else "")
        for problem in problems
    )


# Workbooks as small as they can be, for cells that no spreadsheet program would write.


_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_SHEET_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"
_ODS = "application/vnd.oasis.opendocument.spreadsheet"


def zipped(parts: Mapping[str, str | bytes]) -> bytes:
    """A zip file with these parts."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            # The mimetype is not compressed, so that the first bytes of a file show it.
            archive.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else None)
    return held.getvalue()


def row(number: int, *cells: str) -> str:
    """A row of an Excel sheet: each cell its XML, or a text."""
    named = [(f"{chr(65 + at)}{number}", cell) for at, cell in enumerate(cells)]
    written = (cell if cell.startswith("<") else text_cell(name, cell) for name, cell in named)
    return f'<row r="{number}">{"".join(written)}</row>'


def text_cell(name: str, text: str) -> str:
    return f'<c r="{name}" t="inlineStr"><is><t>{text}</t></is></c>' if text else ""


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
