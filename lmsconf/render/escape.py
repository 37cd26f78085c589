"""One escape for each format: what would act there, on a screen, in a log or on a page, becomes visible text.

    safe    terminals and logs: one line without controls, and no workflow command of a CI runner
    md      Markdown between other words or in a table's cell: no link, mention, emphasis or HTML
    code    the same as a span of code, from which a name can be copied
    fence   a Markdown block of code that nothing inside it can end
    html    the text of an element, or of an attribute in quotes
    xml     the same for XML, which lacks some characters altogether
    csv     a cell that no spreadsheet takes for a formula

In each of them controls, marks that reorder or hide text, and half characters read as `shown` says.
"""

from __future__ import annotations

import re

from lmsconf.model.unseen import UNSEEN

# The joiners stay where Persian, Indic scripts and family emoji need them: between two characters beyond Latin.
_BEYOND_LATIN = "[^\x00-\u036f\u2000-\u206f]"
_ACTIVE = re.compile(f"[{UNSEEN}]|(?<!{_BEYOND_LATIN})[\u200c\u200d]|[\u200c\u200d](?!{_BEYOND_LATIN})")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}

# Runners look for `::` where a line starts, and for `##[`, `##vso[` and their like anywhere in it.
_COMMAND = re.compile(r"^(?P<blank>\s*):(?=:)|(?<=#)#(?=\w*\[)")

_MARKDOWN = re.compile(r"[!-/:-@\[-`{-~]|^ | $|(?<= ) ")
_PLAIN_IN_MARKDOWN = frozenset(",;/?\"'%")
_REFERENCES = frozenset("|<>&@`")
# What services turn into a link once the page is made, whatever was escaped in its source: mentions and references.
_MENTION = re.compile(r"[@#](?=\w)|!(?=\d)|(?<!\w)[&~%$](?=[\w\"])")
_BACKTICKS = re.compile(r"`+")

_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "`": "&#96;"}
_ACTIVE_IN_HTML = re.compile(r"[&<>\"'`]")
_FORMULA = re.compile(r"\s*[-=+@|%\uff0b\uff0d\uff1d\uff20]")
_QUOTED_IN_CSV = re.compile(r'[",;]|^\s|\s$')


def shown(text: str) -> str:
    r"""The text on one line in which everything can be seen: an ESC reads `\x1b`."""
    return _ACTIVE.sub(_visible, text)


def safe(text: str) -> str:
    r"""One line that no terminal, log or reader's eye takes for anything else: an ESC reads `\x1b`.

    A `::` where the text starts, and `##[` anywhere, would be obeyed by a CI runner as a command; they are broken too.
    """
    return _COMMAND.sub(lambda found: _uncommanded(found, "\\x"), shown(text))


def md(text: str) -> str:
    """The text in Markdown as it reads, in a line or in a cell.

    An e-mail or a reference keeps an invisible blank after its mark, which is all that stops a service from making a
    link of it; for what may be copied take `code`.
    """
    return _MARKDOWN.sub(_harmless, shown(text))


def code(text: str) -> str:
    """The text as a span of code, in a line or in a cell. A pipe, which ends a cell even there, is a broken bar."""
    inside = safe(text).replace("|", "\u00a6") or " "
    marks = _longer_than_any(inside, 1)
    edge = " " if inside.strip(" ") and (inside[0] in "` " or inside[-1] in "` ") else ""
    return f"{marks}{edge}{inside}{edge}{marks}"


def fence(text: str, language: str = "") -> str:
    """A block of code that holds the lines of the text, each of them safe."""
    lines = [safe(line) for line in text.split("\n")]
    marks = _longer_than_any("\n".join(lines), 3)
    return "\n".join([f"{marks}{language}", *lines, marks])


def html(text: str) -> str:
    """The text as an element or an attribute in quotes holds it."""
    escaped = _ACTIVE_IN_HTML.sub(lambda found: _HTML[found[0]], shown(text))
    return _COMMAND.sub(_reference_instead, escaped)


def xml(text: str) -> str:
    """The text as an element or an attribute in quotes holds it; characters that XML lacks can be seen."""
    return html(text)


def csv(text: str) -> str:
    """One cell, quoted where it has to be. What a spreadsheet would compute stands behind an apostrophe."""
    cell = safe(text)
    if _FORMULA.match(text) or text[:1] in ("\t", "\r", "\n", "\0"):
        cell = f"'{cell}"
    return f'"{cell.replace(chr(34), chr(34) * 2)}"' if _QUOTED_IN_CSV.search(cell) else cell


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] in _SHORT:
        return _SHORT[found[0]]
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _uncommanded(found: re.Match[str], opens: str, closes: str = "") -> str:
    """The mark that makes a command of a line, as its number."""
    return f"{found['blank'] or ''}{opens}{ord(found[0][-1]):x}{closes}"


def _reference_instead(found: re.Match[str]) -> str:
    return _uncommanded(found, "&#x", ";")


def _harmless(found: re.Match[str]) -> str:
    """One character that Markdown might act upon, so that it does not."""
    char = found[0]
    if char == " ":
        return "&nbsp;"  # a plain one would vanish from the edge of a cell, or beside another
    hidden = "&#8203;" if _MENTION.match(found.string, found.start()) else ""
    if char in _PLAIN_IN_MARKDOWN:
        return char + hidden
    return (f"&#{ord(char)};" if char in _REFERENCES else f"\\{char}") + hidden


def _longer_than_any(text: str, least: int) -> str:
    """A run of backticks that does not stand in the text."""
    longest = max((len(run) for run in _BACKTICKS.findall(text)), default=0)
    return "`" * max(least, longest + 1)
