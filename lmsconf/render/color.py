"""Terminal colours, added to rendered text according to what a line starts with."""

from __future__ import annotations

import re

_RED, _GREEN, _YELLOW, _BOLD, _OFF = "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[1m", "\x1b[0m"

_LINE = re.compile(
    r"^(?P<indent>[ ]+)(?P<sign>-/\+|[+~-])(?= )"
    r"|^(?P<bold>(?:Plan:|No changes\.|Drift:|No drift\.|Apply |Workspace |Effects on people:).*)$"
    r"|^(?P<place>.*?)(?P<severity>error|warning)(?=: .*\[[\w/-]+\]$)",
    re.MULTILINE,
)
_SIGNS = {"+": _GREEN, "-": _RED, "~": _YELLOW, "-/+": _RED}
_SEVERITIES = {"error": _RED, "warning": _YELLOW}


def colorize(text: str) -> str:
    """Colour signs, severities and summary lines. Text from `escape_terminal` has no escape sequences of its own."""
    return _LINE.sub(_painted, text)


def _painted(match: re.Match[str]) -> str:
    if match["bold"] is not None:
        return f"{_BOLD}{match['bold']}{_OFF}"
    if match["sign"] is not None:
        return f"{match['indent']}{_SIGNS[match['sign']]}{match['sign']}{_OFF}"
    return f"{match['place']}{_SEVERITIES[match['severity']]}{match['severity']}{_OFF}"
