"""Resolution of plain scalars (YAML 1.2 core schema), and characters that manifests may not contain."""

from __future__ import annotations

import math
import re

from lmsconf.model.values import Json

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

OPENS = "$("
"""The start of a variable."""
FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
)
"""Control characters but tab, LF and CR; bidirectional controls; line separators, byte order marks, noncharacters."""


def meaning(word: str) -> Json:
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


def is_endless(value: Json) -> bool:
    """Whether a number is infinite or NaN, which JSON cannot represent."""
    return isinstance(value, float) and not math.isfinite(value)
