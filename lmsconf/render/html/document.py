"""A self-contained HTML page: element builder and document frame.

Markup, tag   HTML text, and its constructor, which escapes every other string
page          the document, with inline style and script; its Content-Security-Policy allows these two by hash only
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from lmsconf.render.escape import escape_html


class Markup(str):
    """A string that is HTML already and is not escaped again."""

    __slots__ = ()


Child: TypeAlias = "str | Iterable[Child] | None"
NOTHING = Markup("")
_EMPTY = frozenset({"meta", "input"})


def tag(element: str, /, *children: Child, **attributes: str | int | bool | None) -> Markup:
    """Return one element. Strings that are not Markup are escaped; attributes that are None or False are omitted."""
    opening = f"<{element}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    return Markup(opening if element in _EMPTY else f"{opening}{join_markup(*children)}</{element}>")


def join_markup(*children: Child) -> Markup:
    """Concatenate children, escaping strings that are not Markup."""
    return Markup("".join(_child(child) for child in children))


def _child(child: Child) -> str:
    if child is None or isinstance(child, Markup):
        return child or ""
    return escape_html(child) if isinstance(child, str) else join_markup(*child)


def _attribute(key: str, value: str | int | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape_html(str(value))}"'


def render_document(title: str, *, header: Child, main: Child, footer: Child) -> str:
    """Return the whole document."""
    style, script = _asset("page.css"), join_markup(*map(_asset, ("theme.js", "people.js", "page.js")))
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(style, script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("style", style),
    )
    body = tag(
        "body",
        tag("a", "Skip to the changes", class_="skip", href="#main"),
        tag("header", header),
        tag("main", main, id="main"),
        tag("footer", footer),
        tag("script", script),
    )
    return f"<!doctype html>\n{tag('html', head, body, lang='en')}\n"


def _policy(*inline: str) -> str:
    style, script = (f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in inline)
    return f"default-src 'none'; style-src {style}; script-src {script}; base-uri 'none'; form-action 'none'"


@cache
def _asset(name: str) -> Markup:
    return Markup((Path(__file__).parent / name).read_text(encoding="utf-8"))
