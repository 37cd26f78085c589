"""A table: its columns, its rows with their positions, and what is wrong with them; and CSV text → a table."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Final, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import Problem, ProblemsFound, SourceLocation, problem_found, raise_found, shorten
from lmsconf.manifest.nodes import Map, Mark, Source, pack_mark, unpack_mark
from lmsconf.manifest.yaml_reader import ENOUGH
from lmsconf.model.canonical_json import Json
from lmsconf.model.control_characters import FORBIDDEN
from lmsconf.model.names import did_you_mean, normalize_name

WORKBOOK_STARTS: Final = (b"PK\x03\x04", b"\xd0\xcf\x11\xe0")
"""First bytes of a zip file, and of a compound file, which older and encrypted workbooks are."""
WORKBOOK_ENDINGS: Final = (".xlsx", ".xlsm", ".ods")
TableRow: TypeAlias = "tuple[int, tuple[str, ...]]"


TableFault: TypeAlias = "tuple[int, range, Problem]"
"""Cells that are not what they seem, such as merged ones: their first line, their columns from 0, the problem."""


class Table(Struct, frozen=True):
    """A table: the line of its header, its columns, and its rows, each with the line on which it begins.

    Cells are trimmed and in Unicode NFC.
    """

    source: CellSource
    header: int
    columns: tuple[str, ...]
    rows: tuple[TableRow, ...]
    faults: tuple[TableFault, ...] = ()


class CellSource(Source, kw_only=True, eq=False):
    """The file of a table. A mark is a line, or a row of a worksheet, and a column from 1.

    sheet: the name of the worksheet.
    """

    sheet: str = ""

    def where(self, at: Mark) -> SourceLocation:
        """Return the location of a cell of the worksheet."""
        return SourceLocation(self.path, *unpack_mark(at), sheet=self.sheet)

    def cell(self, line: int, column: int) -> SourceLocation:
        """Return the location of a cell; lines, or rows, count from 1, columns from 0."""
        return self.where(pack_mark(line, column + 1))

    def mapping(self, body: Mapping[str, Json], marks: Mapping[str, Mark]) -> Map:
        """Return a mapping whose keys and values have the marks of their cells."""
        return Map(self, body, [at for key in body for at in (marks[key], marks[key])])


def table_of(source: CellSource, noun: str, rows: list[TableRow]) -> Table:
    """Build a table from its rows that are not empty; the first is the header. Raises ProblemsFound.

    noun: what the file is called.
    """
    if not rows:
        raise problem_found(
            "people/csv", f"this {noun} is empty", "Its first line must name the columns.", source.cell(1, 0)
        )
    columns = _named(rows[0][1])
    return Table(
        source,
        rows[0][0],
        columns,
        tuple((line, cells + ("",) * (len(columns) - len(cells))) for line, cells in rows[1:]),
    )


def _named(header: tuple[str, ...]) -> tuple[str, ...]:
    """Drop trailing columns without a name."""
    return header[: max(number for number, name in enumerate(header, start=1) if name)]


def named_cells(row: TableRow, columns: Mapping[str, int]) -> tuple[dict[str, str], dict[str, Mark]]:
    """Return the cells of a row by the names of their columns, and their marks."""
    line, cells = row
    marks = {name: pack_mark(line, number + 1) for name, number in columns.items()}
    return {name: cells[number] for name, number in columns.items()}, marks


def shifted_row_problems(table: Table) -> Iterator[Problem]:
    """Report rows with a cell beyond the last column: an unquoted separator may have shifted their cells."""
    for line, cells in table.rows:
        beyond = next((number for number, cell in enumerate(cells) if cell and number >= len(table.columns)), None)
        if beyond is not None:
            yield Problem(
                code="people/csv",
                message=f"this row has {len(_named(cells))} cells, and the header names {len(table.columns)} columns",
                hint="Put a cell that contains the separator in quotes, or give the last columns a name.",
                source=table.source.cell(line, beyond),
            )


def column_index(table: Table, name: str, where: SourceLocation) -> int:
    """Return the index of the column with that name. Raises ProblemsFound if none or several have it."""
    name = normalize_name(name)
    same = [number for number, title in enumerate(table.columns) if title == name]
    if len(same) == 1:
        return same[0]
    titles = ", ".join(filter(None, table.columns))
    hints = (
        (bool(same), "Give each column its own name."),
        ("@" in titles, f"The first line must name the columns, and is {titles}."),
        (
            len(table.columns) == 1 and "|" in titles,
            "Separate the cells with commas, semicolons or tabs, and not with |.",
        ),
        (True, did_you_mean(name, table.columns) or f"It has {titles}."),
    )
    hint = next(hint for holds, hint in hints if holds)
    raise problem_found(
        "people/column",
        f'{"there are several columns" if same else "there is no column"} "{shorten(name)}"',
        f"{hint} {where} uses it.",
        table.source.cell(table.header, same[1] if same else 0),
    )


def column_name(title: str) -> str:
    """Return the name of a column by its title: case does not matter, and a space or a hyphen is an underscore."""
    return "_".join(title.casefold().replace("-", " ").split())


def known_columns(
    table: Table,
    known: Sequence[str],
    required: Sequence[str],
    missing_hint: str,
    others: Sequence[str] = (),
) -> dict[str, int]:
    """Map known columns to their index. Raises ProblemsFound for one mistyped, twice or missing.

    missing_hint: what to do about a missing one. others: columns that are not known, and no mistyped ones.
    """
    names = [column_name(title) for title in table.columns]
    missing = [name for name in known if name not in names]
    meant = [None if name in known or name in others else did_you_mean(name, missing) for name in names]
    mistyped = [
        (f'unknown column "{shorten(table.columns[number])}"', hint, number)
        for number, hint in enumerate(meant)
        if hint
    ]
    twice = [
        (f'there are several columns "{name}"', "Give each column its own name.", number)
        for number, name in enumerate(names)
        if name in known and name in names[:number]
    ]
    absent = [(f'there is no column "{name}"', missing_hint, 0) for name in required if name in missing]
    if faults := [*mistyped, *twice, *absent]:
        message, hint, number = faults[0]
        raise problem_found("people/column", message, hint, table.source.cell(table.header, number))
    return {name: names.index(name) for name in known if name in names}


SEPARATORS: Final = (",", ";", "\t")
_DECLARED: Final = re.compile(r'"?sep=([,;\t])"?[ \t]*(?:\r\n|\r|\n|\Z)', re.IGNORECASE)
"""A first line that names the separator, which Excel reads and does not show."""
_IN_QUOTES: Final = re.compile(r'(?<![^,;\t])"(?:[^"]|"")*+"?')
"""A quoted cell of the header; its text may go on in the next line."""


class CsvSource(CellSource, kw_only=True, eq=False):
    """The text of one CSV file, and its path in the project.

    separator: the one that the first line names, else the one that gives the header most cells. first: the offset of
    the first line of the table, which follows one that names the separator.
    """

    content: str
    separator: str
    first: int

    def where(self, at: Mark) -> SourceLocation:
        """Return the location of a cell of the row that begins on a line; of a missing cell, the end of its row."""
        line, column = unpack_mark(at)
        # A quote that is not closed goes on to the end of the text.
        cell = rf'(?:"(?:[^"]|"")*+(?:"|\Z))?+[^{self.separator}\r\n]*+'
        cells = rf"(?:{cell}{self.separator})"
        row = re.compile(f"{cells}{{{column - 1}}} *|{cells}*+{cell}")
        return self.offset_location(cast("re.Match[str]", row.match(self.content, self._starts[line - 1])).end())

    def offset_location(self, offset: int) -> SourceLocation:
        """Convert a character offset to a location."""
        line = bisect_right(self._starts, offset)
        return SourceLocation(self.path, line, offset - self._starts[line - 1] + 1)

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(end.end() for end in re.finditer(r"\r\n|\r|\n", self.content))]


def parse_csv_table(path: str, text: str) -> Table:
    """Parse CSV text. Raises ProblemsFound with the line that cannot be parsed."""
    declared = _DECLARED.match(text)
    header = next((line for line in text.splitlines() if line.strip()), "")
    separator = declared[1] if declared else max(SEPARATORS, key=_IN_QUOTES.sub("", header).count)
    source = CsvSource(path, content=text, separator=separator, first=declared.end() if declared else 0)
    if forbidden := FORBIDDEN.search(text):
        raise forbidden_character_found(forbidden[0], source.offset_location(forbidden.start()))
    rows = list(_rows(source))
    _refuse_preamble(source, rows)
    table = replace(table_of(source, "CSV file", rows), faults=tuple(_formulas(source, rows)))
    # Cells of a workbook cannot be shifted by a separator.
    raise_found(list(islice(shifted_row_problems(table), ENOUGH)))
    return table


def forbidden_character_found(char: str, where: SourceLocation) -> ProblemsFound:
    """Return the error for a character that a table must not have."""
    return problem_found("people/csv", f"the character U+{ord(char):04X} is not allowed here", "Remove it.", where)


def _refuse_preamble(source: CsvSource, rows: list[TableRow]) -> None:
    """Raise ProblemsFound if the first line is one text without columns, and the second one names the columns."""
    if len(rows) < 2 or any(rows[0][1][1:]):
        return
    line, cells = rows[1]
    separated = any(cells[1:]) or any(separator in cells[0] for separator in SEPARATORS)
    if separated and not any("@" in cell for cell in cells):
        raise problem_found(
            "people/csv",
            f'the first line, "{shorten(rows[0][1][0])}", does not name the columns; line {line} seems to',
            f"Delete line {rows[0][0]}: the first line of a CSV file must name the columns.",
            source.cell(rows[0][0], 0),
        )


def _formulas(source: CsvSource, rows: list[TableRow]) -> Iterator[TableFault]:
    """Yield each cell that holds a formula, such as `=HYPERLINK(…)`, in place of its result."""
    for line, cells in rows:
        for column, cell in enumerate(cells):
            if cell.startswith("=") and "(" in cell:
                yield (
                    line,
                    range(column, column + 1),
                    Problem(
                        code="people/csv",
                        message=f'this cell holds a formula, "{shorten(cell)}"',
                        hint="Export the values of the cells, not their formulas.",
                        source=source.cell(line, column),
                    ),
                )


def _rows(source: CsvSource) -> Iterator[TableRow]:
    """Yield the rows that are not empty, each with the line on which it begins. Raises ProblemsFound."""
    import csv  # many projects have no table
    import io

    above = line = 2 if source.first else 1
    try:
        text = io.StringIO(source.content[source.first :], newline="")
        reader = csv.reader(text, delimiter=source.separator, strict=True)
        for cells in reader:
            trimmed = tuple(normalize_name(cell.strip()) for cell in cells)
            if any(trimmed):
                yield line, trimmed
            line = reader.line_num + above
    except csv.Error as error:
        raise problem_found(
            "people/csv",
            f"this row cannot be read: {error}",
            'Close each quote that opens a cell, and write a quote inside one twice: "".',
            SourceLocation(source.path, line),
        ) from error
