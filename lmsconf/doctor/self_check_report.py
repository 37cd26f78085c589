"""A self-check as text and as the document `lmsconf.self-check/1`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from textwrap import wrap
from typing import Final

from lmsconf.doctor.findings import CheckResult
from lmsconf.doctor.self_check import SelfCheck
from lmsconf.documents.document import TOOL, render_json
from lmsconf.model.canonical_json import Json
from lmsconf.render.escape import escape_terminal

FORMAT: Final = "lmsconf.self-check/1"
_WIDTH: Final = 12
_COLUMNS: Final = 80


def self_check_text(check: SelfCheck) -> str:
    """One line for each subject, then one for each thing that is probably wrong."""
    rows = (f"{name:<{_WIDTH}}{_words(section) or 'none'}" for name, section in check.sections.items())
    columns = min(_COLUMNS, max(int(str(check.sections["terminal"].get("columns", _COLUMNS))), 2 * _WIDTH))
    lines = [line for row in rows for line in wrap(row, columns, subsequent_indent=" " * _WIDTH)]
    lines += ["", *_checks(check.checks), "Attach this to a support request. It has no token and nobody's name."]
    return "".join(f"{escape_terminal(line)}\n" for line in lines)


def self_check_json(check: SelfCheck) -> str:
    """The whole check as a versioned document."""
    checks: list[Json] = [
        {"check": one.check, "health": one.health.value, "message": one.message, "hint": one.hint}
        for one in check.checks
    ]
    sections: dict[str, Json] = {name: dict(section) for name, section in check.sections.items()}
    return render_json({"format": FORMAT, "tool": TOOL, **sections, "checks": checks, "exit": int(check.exit_code)})


SELF_CHECK_VIEWS: Final[Mapping[str, Callable[[SelfCheck], str]]] = {"text": self_check_text, "json": self_check_json}


def _words(value: Json) -> str:
    """Return a value in one line: `version 3.11.2, implementation CPython`."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_inner(item)}" for key, item in value.items())
    return _inner(value)


def _inner(value: Json) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None or value in ("", [], {}):
        return "none"
    if isinstance(value, list):
        return " ".join(map(str, value))
    return f"({_words(value)})" if isinstance(value, dict) else str(value)


def _checks(checks: tuple[CheckResult, ...]) -> Iterator[str]:
    if not checks:
        yield "No problems were found."
    for check in checks:
        yield f"{check.health.value:<{_WIDTH}}{check.check}: {check.message}"
        if check.hint:
            yield f"{'':<{_WIDTH}}{check.hint}"
    yield ""
