"""Is anything in a text active? One judge for each format, each with a reader that is not ours."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Mapping
from html.parser import HTMLParser
from xml.etree import ElementTree

from markdown_it import MarkdownIt
from markdown_it.token import Token

RAW = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\ufffe\uffff\U000e0000-\U000e0fff]"
)
"""What a terminal obeys or a reader cannot see. Joiners are judged by themselves: scripts beyond Latin need them."""
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
"""What a terminal obeys, or what reorders the text around it."""
JOINED = re.compile("[\x00-\u036f][\u200c\u200d]|[\u200c\u200d](?:[\x00-\u036f]|$)|^[\u200c\u200d]", re.MULTILINE)
COMMAND = re.compile(r"^\s*::|##\w*\[", re.MULTILINE)
READS = MarkdownIt("commonmark", {"linkify": True}).enable(["table", "strikethrough", "linkify"])
SERVICE_LINK = re.compile(r"[@#](?=\w)|(?<!\w)[&~%$](?=[\w\"])|!(?=\d)")
"""What GitHub or GitLab makes a link of in the text of a page that is made already."""


def text(found: str) -> list[str]:
    """What acts on a terminal or on the runner whose log this is."""
    return [*RAW.findall(found), *JOINED.findall(found), *COMMAND.findall(found)]


def annotations(found: str) -> list[str]:
    """What a runner of GitHub Actions does: each line has to be one command, whose properties are named."""
    commands = [_ANNOTATION.fullmatch(line) for line in found.splitlines()]
    names = [
        ",".join([one[1], *(pair.partition("=")[0] for pair in one[2].split(","))]) if one else "no command"
        for one in commands
    ]
    data = "\n".join(one[3] for one in commands if one)
    return [*names, *text(data), *RAW.findall(found)]


_ANNOTATION = re.compile(r"::(error|warning|notice) ((?:\w+=[^:,]*,)*\w+=[^:,]*)::(.*)")


def in_json(found: str) -> list[str]:
    """What acts on a terminal, in a document that is JSON. A line of it cannot begin with a name."""
    json.loads(found)
    return [*OBEYED.findall(found), *re.findall(r"^\s*(?:::|##)", found, re.MULTILINE)]


def markdown(found: str) -> list[str]:
    """What a page would make of it beyond paragraphs of text: the nodes by their names."""
    tokens = list(_flat(READS.parse(found)))
    texts = "\n".join(token.content for token in tokens if token.type in ("text", "text_special"))
    nodes = [token.type for token in tokens if token.type not in _INERT]
    return [*nodes, *SERVICE_LINK.findall(texts), *text(found.replace("&#8203;", ""))]


_INERT = {"paragraph_open", "paragraph_close", "inline", "text", "text_special", "softbreak"}


def _flat(tokens: list[Token]) -> list[Token]:
    return [one for token in tokens for one in (token, *_flat(token.children or []))]


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.active: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.active += [tag, *(f"{tag}.{name}" for name, _ in attrs)]

    def handle_endtag(self, tag: str) -> None:
        self.active.append(f"/{tag}")

    def handle_comment(self, data: str) -> None:
        self.active.append("comment")

    def handle_decl(self, decl: str) -> None:
        self.active.append("declaration")

    def handle_pi(self, data: str) -> None:
        self.active.append("instruction")

    def unknown_decl(self, data: str) -> None:
        self.active.append("declaration")

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def html(found: str) -> list[str]:
    """The tags and attributes of a page, and what is raw in it."""
    page = _Page()
    page.feed(found)
    page.close()
    return [*page.active, *text(found)]


def html_words(found: str) -> str:
    """What a page says."""
    page = _Page()
    page.feed(found)
    page.close()
    return "".join(page.words)


def xml_words(found: str) -> str:
    """What an element says that holds it. Raises where that is no XML."""
    return ElementTree.fromstring(f"<a b='{found}' c=\"{found}\">{found}</a>").text or ""


def csv_cells(found: str, delimiter: str = ",") -> list[str]:
    """The cells of the only line."""
    line = io.StringIO(f"a{delimiter}{found}{delimiter}b\r\n", newline="")
    (row,) = csv.reader(line, delimiter=delimiter, strict=True)
    return row[1:-1]


JUDGES: Mapping[str, Callable[[str], list[str]]] = {
    "text": text,
    "json": in_json,
    "markdown": markdown,
    "html": html,
    "junit": html,
    "sarif": in_json,
    "codequality": in_json,
    "github": annotations,
}
"""Format name → its judge. A format that has none here fails the tests."""
