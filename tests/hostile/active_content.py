"""Is anything in a text active? One judge for each format, each with a reader that is not ours."""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
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
    return [*names, *text("\n".join(one[3] for one in commands if one)), *RAW.findall(found)]


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

    def _other(self, data: str) -> None:
        self.active.append("declaration")

    handle_comment = handle_decl = handle_pi = unknown_decl = _other

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def _page(found: str) -> _Page:
    page = _Page()
    page.feed(found)
    page.close()
    return page


def html(found: str) -> list[str]:
    """The tags and attributes of a page, and what is raw in it."""
    return [*_page(found).active, *text(found)]


def html_words(found: str) -> str:
    """What a page says."""
    return "".join(_page(found).words)


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


# Three hundred names that act on something: a terminal, a log, a page, a spreadsheet, or a reader's eye.


# ruff: noqa: E501  # one line a family of names reads best


ESC, BEL, ST = "\x1b", "\x07", "\x1b\\"

TERMINAL = [
    *(f"{ESC}[{end}" for end in ("31m", "2J", "H", "1A", "2K", "?1049h", "6n", "0c", "8m", "5i", "38;2;1;2;3m")),
    *(f"{ESC}]{number};text{end}" for number in (0, 2, 4, 7, 8, 9, 52, 777, 1337) for end in (BEL, ST, "\x9c")),
    *(f"\x9b{end}" for end in ("31m", "2J", "6n")),
    *(f"{intro}text{ST}" for intro in (f"{ESC}P", f"{ESC}X", f"{ESC}^", f"{ESC}_", "\x90", "\x98", "\x9e", "\x9f")),
    *(f"{ESC}{end}" for end in ("c", "7", "8", "D", "M", "#8", "(0", "=", ">", "%G", "[!p")),
    "\x9d0;title\x9c", f"{ESC}]8;;https://evil.example{ST}click{ESC}]8;;{ST}",
    "a\rb", "a\nb", "a\r\nb", "a\bb", "a\vb", "a\fb", "a\tb", "a\0b", "a\x7fb", "a\x0eb\x0f", "a\x05b",
]  # fmt: skip
UNSEEN = [
    *(f"a{chr(code)}b" for code in (*range(0x80, 0xA0), 0xAD, 0x61C, 0x180E, *range(0x200B, 0x2010))),
    *(f"a{chr(code)}b" for code in (*range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF, 0xFFF9, 0xFFFB, 0x3164)),
    "abc\u202egnp.exe", "\u2067right\u2069 left", "a\U000e0041\U000e007fb", "a\ufffeb", "a\U000e0100b",
]  # fmt: skip
COMMANDS = [
    "::set-output name=a::b", "::error::x", "::warning file=a,line=1::x", "::add-mask::x", "::stop-commands::x",
    "::group::x", "::endgroup::", "  ::debug::x", "\t::notice::x", "a\n::error::x", "a\r::error::x",
    "##[error]x", "##[group]x", "##[set-output name=a]b", "a ##[section]b", "##vso[task.setvariable variable=a]b",
    "a ##vso[task.complete result=Failed;]b", "##teamcity[buildStatus status='FAILURE']", "a\u2028::error::x",
    "a\x85::error::x", "section_start:1:a\r\x1b[0Kb", "[error] x", "###[error]x", "#\x00#[error]x",
]  # fmt: skip
MARKDOWN = [
    "[a](https://evil.example)", "![a](https://evil.example/a.png)", "[a](javascript:alert(1))", "[a][b]", "[a]: /b",
    "<https://evil.example>", "https://evil.example", "http://evil.example/a_b_c", "www.evil.example", "evil.example",
    "//1.2.3.4/a", "//1.1", "//a1.1", "//+.+com", "www.1", "1) a", ":-- a",
    "ftp://evil.example", "mailto:a@evil.example", "a@evil.example", "xmpp:a@evil.example", "//evil.example/a",
    "*a*", "**a**", "_a_", "__a__", "***a***", "~~a~~", "~a~", "`a`", "``a``", "`` ` ``", "```\na\n```", "~~~\na\n~~~",
    "# a", "###### a", "#a", "- a", "+ a", "* a", "1. a", "1) a", "999999999. a", "> a", "---", "***", "___", "===",
    "    a", "\ta", "a  ", "a\\", "a\\\nb", "| a | b |", "|---|", "a | b", "a \\| b", "\\", "\\\\", "\\`", "\\|",
    "- [ ] a", "- [x] a", "[^1]", "[^1]: a", ":smile:", "$a$", "$$a$$", "^a^", "==a==", "{{a}}", "{% a %}",
    "@user", "@org/team", "a @user b", "(@user)", "#123", "GH-123", "org/repo#123", "!123", "%1", "&1", "~label", "$1",
    "&lt;b&gt;", "&#60;b&#62;", "&amp;", "&copy;", "&#x1b;[31m", "a``````````b", "`" * 40, "`a", "a`", " ` ", "~" * 40,
    "![", "](", "[[a]]", "[a](<b>)", '[a](b "c")', "<!-- a -->", "<?a?>", "<![CDATA[a]]>", "<!DOCTYPE a>", "</td></table>",
]  # fmt: skip
HTML = [
    "<b>a</b>", "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg onload=alert(1)>", "</pre><h1>a",
    "</title><script>a</script>", "</style><script>a</script>", "</textarea><b>", '" onclick="a', "' onclick='a",
    "` onclick=`a", "a=b", "<a href='javascript:a'>b</a>", "<iframe srcdoc='a'>", "<style>*{}</style>", "<base href=//a>",
    "<meta http-equiv=refresh content=0>", "<details open ontoggle=a>", "&quot;><b>", "<<b>a", "<\x00b>a", "<b\n>a",
    "<!--", "-->", "]]>", "<math><mi xlink:href='a'>", "&lt;script&gt;", "{{constructor}}", "<%= a %>", "${a}",
]  # fmt: skip
FORMULAS = [
    "=1+1", "+1", "-1", "@SUM(1)", "=cmd|' /C calc'!A0", "\t=1", "\r=1", "\n=1", " =1", "\0=1", "|calc", "%0A=1",
    '=HYPERLINK("https://evil.example")', "\uff1d1", "\uff0b1", "\uff0d1", "\uff20a", '"=1', "a,b", 'a"b', "a;b", "'=1",
]  # fmt: skip
ODD = [
    "", " ", "  ", "a" * 20_000, "a\u0301" * 500, "a" + "\u0301" * 500, "\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", "../../etc/passwd", "/", "a/b", "a -> b", "\\ -> ", "a//b", "%00",
    "%2e%2e%2f", "{0}", "%s%n", "$(id)", "`id`", "'; DROP TABLE groups; --", "null", "NaN", "true", "__proto__",
]  # fmt: skip


def _all() -> Iterator[str]:
    """Each by itself, and then those that act in pairs, so that what ends one cannot begin the next."""
    yield from [*TERMINAL, *UNSEEN, *COMMANDS, *MARKDOWN, *HTML, *FORMULAS, *ODD]
    yield from (f"{one}{other}" for one, other in zip(MARKDOWN, reversed(HTML), strict=False))


NAMES: list[str] = list(dict.fromkeys(_all()))
HALF = ["\ud800", "a\udc00b", "\udfff\ud800"]
"""Half characters: no UTF-8 holds them, but an escape in JSON does."""
