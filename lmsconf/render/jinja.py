"""Pages, comments and texts from the files in `templates/`; jinja2 is imported only where one of them is printed.

Each value that a template puts in is escaped once, by `escape_html` or `escape_markdown`: what a template writes itself
is not. A filter that returns Markup has escaped its value already. Wording modules are known in templates by name.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable
from functools import cache, partial
from hashlib import sha256
from pathlib import Path
from textwrap import wrap
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template, UndefinedError
from jinja2.ext import Extension
from markupsafe import Markup

from lmsconf.documents.plan_file import request_body_json
from lmsconf.kinds.shared import kind_names
from lmsconf.model import names, problem_codes
from lmsconf.model.control_characters import escape_invisible
from lmsconf.model.fleet import group_blocked, group_failures
from lmsconf.model.outcomes import undo_command
from lmsconf.model.plan import total_taken
from lmsconf.model.time_formats import format_utc
from lmsconf.render import (
    drift_report,
    effects_tables,
    effects_wording,
    outcome_wording,
    plan_wording,
    resource_wording,
    text,
)
from lmsconf.render.escape import (
    NAME_SIZE,
    escape_html,
    escape_markdown,
    escape_terminal,
    markdown_code,
    markdown_fence,
    truncate,
)

_FOLDER: Final = Path(__file__).parent / "templates"


class UnknownName(UndefinedError, ValueError):
    """A template names what it was not given."""


def html_page(template: str, /, **values: object) -> str:
    """Return the page of a template, without any file beside it; its policy allows its style and script by their hash.

    values: what the template names. Raises UnknownName for a name that is not among them.
    """
    style, script = _asset("page.css"), Markup("").join(map(_asset, ("theme.js", "people.js", "page.js")))
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    try:
        page = _template(template).render(style=style, script=script, policy=policy, **values)
    except UndefinedError as missing:
        raise UnknownName(missing.message) from missing
    return f"<!doctype html>\n{page}"


def template_view(template: str, /, **values: object) -> str:
    """Return the page, the document or the text for a terminal of a template, as its name says."""
    return {"html": html_page, "txt": terminal_text}.get(template.split(".")[1], template_text)(template, **values)


def markdown_macro(name: str, *values: object) -> Markup:
    """Return what a macro of a Markdown template makes of values, without more than one blank line in a row.

    name: those of the template and of the macro, `plan.head`.
    """
    template, _, macro = name.partition(".")
    return _escaped(_BLANK_LINES.sub("\n\n", getattr(_template(f"{template}.md.j2").module, macro)(*values)))


def template_text(template: str, /, **values: object) -> str:
    """Return the text of a template, each of whose values is in one line."""
    return _template(template).render(**values)


def terminal_text(template: str, /, **values: object) -> str:
    """Return the text of a template for a terminal, with each line escaped, and at most one blank line in a row."""
    lines = _BLANK_LINES.sub("\n\n", template_text(template, **values).strip("\n")).split("\n")
    return "".join(f"{escape_terminal(line)}\n" for line in lines)


_BLANK_LINES: Final = re.compile(r"\n{3,}")  # in blocks of code there are none: each of their lines has a sign


@cache
def _template(name: str) -> Template:
    return environment(name.split(".")[1]).get_template(name)


@cache
def environment(kind: str) -> Environment:
    """Return the environment of the templates NAME.KIND.j2.

    In HTML, XML and Markdown (`md`) each value is escaped for it, by an escape of ours in the place of
    markupsafe's, which leaves what is invisible. Elsewhere a value is in one line; a whole line is escaped once it
    is put together.
    """
    escape = {"md": escape_markdown, "html": escape_html, "xml": escape_html}.get(kind, escape_invisible)

    def finalize(value: object) -> Markup:
        return value if isinstance(value, Markup) else _escaped("" if value is None else escape(str(value)))

    made = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        keep_trailing_newline=True,
        trim_blocks=kind != "html",
        lstrip_blocks=kind != "html",
        extensions=(_JoinedLines,) if kind == "html" else (),
    )
    made.globals |= {
        "drift_report": drift_report,
        "effects_tables": effects_tables,
        "effects_wording": effects_wording,
        "kind_names": kind_names,
        "names": names,
        "outcome_wording": outcome_wording,
        "plan_wording": plan_wording,
        "problem_codes": problem_codes,
        "resource_wording": resource_wording,
        "text": text,
        "request_body_json": request_body_json,
        "group_blocked": group_blocked,
        "total_taken": total_taken,
        "group_failures": group_failures,
        "utc": format_utc,
        "undo_command": undo_command,
    }
    made.filters |= {
        "n": lambda number: f"{number:,}",
        "json": lambda value: _escaped(json.dumps(value)),
        "indented": partial(json.dumps, ensure_ascii=False, indent=2),
        "lines": _html_lines,
        "words": _words,
        "wrapped": _wrapped,
        "fence": lambda text, language="": _escaped(markdown_fence(text, language)),
        "cut": partial(_shortened, escape_markdown),
        "code": partial(_shortened, markdown_code),
        # In Mermaid quotes, and what acts in HTML and Markdown, become numeric entities.
        "mermaid": lambda text: re.sub(r'[#"`*_~\[\]<>&;\\]', lambda act: f"#{ord(act[0])};", escape_invisible(text)),
        "dot": lambda text: '"' + escape_invisible(text).replace("\\", "\\\\").replace('"', '\\"') + '"',
        "html": partial(_shortened, escape_html),
        "headline": drift_report.finding_headline,
        "ignored_sentence": drift_report.ignored_sentence,
        "group_line": plan_wording.group_line,
        "remaining_line": plan_wording.remaining_line,
        "count_removed_items": resource_wording.count_removed_items,
    }
    made.tests |= {
        "content_name": lambda part: isinstance(part, effects_wording.ContentName),
        "code_text": lambda part: isinstance(part, effects_wording.CodeText),
    }
    return made


class _JoinedLines(Extension):
    """Drops line breaks and indentation between tags, which are for the template's reader; line numbers stay."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        return re.sub(r"(?<=[>}])\s*\n\s*(?=[<{])", lambda found: f"{{#{chr(10) * found[0].count(chr(10))}#}}", source)


def _html_lines(text: str | None) -> Markup:
    """Return a text with its line breaks, without blank lines. Any other line break, inside a name, is escaped."""
    return _escaped("".join(f"{escape_html(line)}\n" for line in (text or "").split("\n") if line.strip()))


def _wrapped(text: str, indent: int, columns: int) -> Markup:
    """Return a text in lines: the first one stands behind an indent, and the others get it."""
    return _escaped(f"\n{' ' * indent}".join(map(escape_invisible, wrap(text, max(columns - indent, 20)))))


def _shortened(escape: Callable[[str], str], value: object, most: int | None = NAME_SIZE) -> Markup:
    """Escape a value, shortened to so many bytes; None: in full."""
    return _escaped(escape(str(value)) if most is None else truncate(str(value), escape, most))


def _words(text: str, is_first: bool) -> Markup:
    """Escape a part of a sentence: spaces at its edges are those of the sentence, and only the first begins a line."""
    inner = text.strip(" ")
    escaped = escape_markdown(inner) if is_first else escape_markdown(f",{inner}")[1:]
    return _escaped(text.replace(inner, escaped, 1) if inner else text)


def _escaped(text: str) -> Markup:
    return Markup(text)  # noqa: S704  # an escape made it, or it is our own file


@cache
def _asset(name: str) -> Markup:
    return _escaped((_FOLDER / name).read_text(encoding="utf-8"))


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
