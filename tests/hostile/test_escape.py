# ruff: noqa: RUF001  # letters of other scripts are what this is about
"""One escape for each format: 300 hostile names, and nothing of them acts."""

from __future__ import annotations

import sys

import pytest

from lmsconf.render.escape import (
    csv_cell,
    escape_html,
    escape_markdown,
    escape_terminal,
    markdown_code,
    markdown_fence,
)

from . import active_content
from .active_content import HALF, NAMES, WANTED

ALL = [*NAMES, *HALF]


def test_there_are_enough_of_them() -> None:
    """At least three hundred names, no two alike, and the judges see most of them act where nothing is escaped."""
    assert len(NAMES) >= WANTED
    assert len({*NAMES}) == len(NAMES)
    assert sum(bool(active_content.text(name)) for name in NAMES) > 100
    assert sum(bool(active_content.markdown(name)) for name in NAMES) > 150
    assert sum(bool(active_content.html(f"<p>{name}</p>")[2:]) for name in NAMES) > 40


@pytest.mark.parametrize("around", ["{}", "  + group/{} will be created", "{}: done", "      {}"])
def test_text(around: str) -> None:
    """A name in a line leaves it one line without controls, wherever it stands."""
    assert [
        (name, active_content.text(line))
        for name in ALL
        if active_content.text(line := around.format(escape_terminal(name)))
    ] == []
    assert all("\n" not in escape_terminal(name) for name in ALL)


def test_text_shows_what_it_hides() -> None:
    """Every control, bidi mark and half character in Unicode has a visible form, and letters stay as they are."""
    for number in (*range(sys.maxunicode + 1),)[:0x3200]:
        char = chr(number)
        if active_content.RAW.match(char) or char == "\n":
            assert escape_terminal(char).isprintable(), hex(number)
            assert escape_terminal(f"a{char}b") != f"a{char}b", hex(number)
    for kept in ("Åsa Öberg", "日本語", "می\u200cخواهم", "\U0001f468\u200d\U0001f469", "a: b", "a::b", "# [a]", "a\\b"):
        assert escape_terminal(kept) == kept


@pytest.mark.parametrize(
    ("around", "frame"),
    [
        ("{}", []),
        ("A {} b", []),
        ("Changes: {}, {}.", []),
        ("- {}\n", ["bullet_list_open", "list_item_open", "list_item_close", "bullet_list_close"]),
        ("### {}\n", ["heading_open", "heading_close"]),
    ],
    ids=["alone", "between", "twice", "item", "heading"],
)
def test_markdown_in_a_line(around: str, frame: list[str]) -> None:
    """A name among words, in an item or a heading makes no node, no link and no mention."""
    for name in ALL:
        assert active_content.markdown(around.replace("{}", escape_markdown(name))) == frame, name


@pytest.mark.parametrize(
    "sentence",
    [
        "No changes. The workspace matches the manifests, but for 2 mentions of people who are not live.",
        "Apply ended (3 API calls): 48.5 % of the people, from 2026-03-01 at 17:05:00; pass --allow deletes=2!",
        "Predicted effects on people: 38 people lose content, 4 gain content (estimate).",
    ],
)
def test_markdown_leaves_sentences_as_they_are(sentence: str) -> None:
    """Marks that do nothing where they stand are not escaped: mails and chats show comments as they are written."""
    assert escape_markdown(sentence) == sentence


def test_markdown_in_a_cell() -> None:
    """A name in a table's cell ends neither the cell nor the row, as text and as code."""
    for escape, extra in ((escape_markdown, []), (markdown_code, ["code_inline"])):
        for name in ALL:
            page = f"| a | b |\n|---|---|\n| {escape(name)} | c |\n"
            tokens = active_content.READS.parse(page)
            nodes = [one for one in active_content.markdown(page) if one not in _TABLE]
            assert nodes == extra, (name, nodes)
            assert [token.type for token in tokens].count("td_open") == 2, name


_TABLE = {f"{tag}_{end}" for tag in ("table", "thead", "tbody", "tr", "th", "td") for end in ("open", "close")}


def test_markdown_reads_as_the_text_does() -> None:
    """Whoever looks at the page reads what the text format shows; only blanks are others, and one that is not seen."""
    for name in ALL:
        rendered = active_content.html_words(active_content.READS.render(escape_markdown(name)))
        plain = rendered.replace("\u200b", "").replace("\xa0", " ").strip("\n")
        assert plain == escape_terminal(name).replace("\\x3a:", "::").replace("#\\x23", "##").replace("\xa0", " "), name


def test_markdown_code_can_be_copied() -> None:
    """A span of code gives back what the text format shows, but for pipes."""
    for name in ALL:
        (paragraph, inline, _) = active_content.READS.parse(markdown_code(name))
        assert paragraph.type == "paragraph_open"
        assert inline.children
        assert [child.type for child in inline.children] == ["code_inline"], name
        assert inline.children[0].content == (escape_terminal(name).replace("|", "\xa6") or " "), name


def test_markdown_fence() -> None:
    """No line of a block of code ends it: all names in one block are one block."""
    page = markdown_fence("\n".join(ALL), "diff") + "\n\nafter\n"
    block, *rest = active_content.READS.parse(page)
    assert (block.type, block.info) == ("fence", "diff")
    assert [token.type for token in rest] == ["paragraph_open", "inline", "paragraph_close"]
    assert active_content.text(page) == []
    for name in ALL:
        assert [token.type for token in active_content.READS.parse(markdown_fence(name))] == ["fence"], name


def test_html() -> None:
    """A name makes no tag, attribute or comment, in an element and in both kinds of attribute."""
    for name in ALL:
        page = f"<p title=\"{escape_html(name)}\" lang='{escape_html(name)}'>{escape_html(name)}</p>"
        assert active_content.html(page) == ["p", "p.title", "p.lang", "/p"], name
        said = escape_terminal(name).replace("\\x3a:", "::").replace("#\\x23", "##")
        assert active_content.html_words(page) == said, name


def test_xml() -> None:
    """A name with whatever characters stands in an XML document, which an XML reader takes."""
    for name in ALL:
        assert active_content.xml_words(escape_html(name)) == escape_terminal(name).replace("\\x3a:", "::").replace(
            "#\\x23", "##"
        ), name


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv(delimiter: str) -> None:
    """A name is one cell for readers with any separator, and no cell begins a formula."""
    for name in ALL:
        (cell,) = active_content.csv_cells(csv_cell(name), delimiter)
        assert cell.removeprefix("'") == escape_terminal(name).removeprefix("'"), name
        assert cell.lstrip()[:1] not in {*"=+-@|%", "\uff0b", "\uff0d", "\uff1d", "\uff20"}, name
        assert active_content.text(csv_cell(name)) == []
