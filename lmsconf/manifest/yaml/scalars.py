"""Resolution of plain scalars (YAML 1.2 core schema)."""

from __future__ import annotations

import math
import re

from lmsconf.model.canonical_json import Json

_WORDS: dict[str, Json] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_NUMERIC = frozenset("+-.0123456789")
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}\Z")
_RADIX = re.compile(r"0o[0-7]{1,300}\Z|0x[0-9a-fA-F]{1,300}\Z")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?\Z")
_ENDLESS = re.compile(r"[-+]?\.(inf|Inf|INF)\Z|\.(nan|NaN|NAN)\Z")

VARIABLE_START = "$("
"""The start of a variable."""


def resolve_scalar(word: str) -> Json:
    """Return the value of a plain scalar. Dates, `yes`, `no`, `on` and `off` are text."""
    if word in _WORDS:
        return _WORDS[word]
    if word[0] not in _NUMERIC:
        return word
    if _INTEGER.match(word):
        return int(word)
    if _RADIX.match(word):
        return int(word, 0)
    if _ENDLESS.match(word):
        return float(word.replace(".", ""))
    return float(word) if _FLOAT.match(word) else word


def is_infinite_or_nan(value: Json) -> bool:
    """Whether a number is infinite or NaN, which JSON cannot represent."""
    return isinstance(value, float) and not math.isfinite(value)
