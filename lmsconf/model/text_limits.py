"""What text a manifest can hold: characters that are forbidden or need an escape, and the longest text."""

from __future__ import annotations

import re
from typing import Final

from lmsconf.model.canonical_json import Json

FORBIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
)
"""Control characters but tab, LF and CR; bidirectional controls; line separators, byte order marks, noncharacters."""
CONTROLS: Final = re.compile(rf"[\t\r\n{FORBIDDEN.pattern[1:]}")
"""What a text can hold only as an escape in double quotes; a block has line breaks and tabs as they are."""
LONGEST: Final = 100_000
"""Maximum length of one text, in characters."""
_LONGEST_KEY: Final = 500
"""YAML does not recognize much longer keys."""


def is_representable(value: Json) -> bool:
    """Whether a manifest can contain the value: no overlong text, and no half of a surrogate pair."""
    if isinstance(value, dict):
        return all(
            len(key) <= _LONGEST_KEY and is_representable(key) and is_representable(item) for key, item in value.items()
        )
    if isinstance(value, list):
        return all(map(is_representable, value))
    if not isinstance(value, str):
        return True
    return len(value) <= LONGEST // 2 and not any("\ud800" <= char <= "\udfff" for char in value)


def is_valid_name(text: str) -> bool:
    """Whether the text can be a name in a manifest: not empty, and not too long."""
    return bool(text) and is_representable(text)
