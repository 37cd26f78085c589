"""Escapes, letter by letter, where their judges would accept more than one way."""

from __future__ import annotations

import pytest

from lmsconf.model.names import escape_invisible
from lmsconf.render.escape import csv_cell


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("plain", "plain"),
        ("=1+1", "'=1+1"),
        ("  =1+1", "'  =1+1"),
        ("a=1", "a=1"),
        ("\tx", "'\\tx"),
        ("\rx", "'\\rx"),
        ("\nx", "'\\nx"),
        ("\0x", "'\\x00x"),
        ("a\tx", "a\\tx"),
        ("", ""),
        (" x", '" x"'),
        ('say "x"', '"say ""x"""'),
        ("a;b", '"a;b"'),
    ],
)
def test_a_cell(text: str, cell: str) -> None:
    """What a spreadsheet would compute, or begins with a control, stands behind an apostrophe; quotes where needed."""
    assert csv_cell(text) == cell


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("\x1b", "\\x1b"),
        ("\x9f", "\\x9f"),
        ("\xff", "\xff"),
        ("\u200b", "\\u200b"),
        ("\U000e0001", "\\U000e0001"),
        ("\r\n\t", "\\r\\n\\t"),
    ],
)
def test_what_cannot_be_seen_is_a_number(text: str, seen: str) -> None:
    """Two, four or eight digits, as in Python; letters stay."""
    assert escape_invisible(text) == seen
