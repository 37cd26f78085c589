"""Control, invisible and look-alike characters: escape them for output; which a text of a manifest can hold."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from lmsconf.model.canonical_json import Json

# Controls (C0, C1, soft hyphen), marks that reorder or hide text, invisible letters and blanks, Unicode line ends, lone
# surrogates, tags, and noncharacters.
UNPRINTABLE: Final = (
    "\x00-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""The content of a character class, `[…]`, of a regular expression."""
# Zero-width joiners are kept between two non-Latin characters: Persian, Indic scripts and family emoji need them.
_BEYOND_LATIN = "[^\x00-\u036f\u2000-\u206f]"
_ACTIVE = re.compile(f"[{UNPRINTABLE}]|(?<!{_BEYOND_LATIN})[\u200c\u200d]|[\u200c\u200d](?!{_BEYOND_LATIN})")
LOOKALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаесорхуіјѕһԁԛԝ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορυχ",  # noqa: RUF001  look-alikes are the purpose
    "ABESIJKMHOPCTYXaecopxyijshdqw" + "ABEZHIKMNOPTYXaikvopux",
)
"""Cyrillic and Greek letters → the Latin letters that they look like in most typefaces."""
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {chr(code) for code in range(0xFE00, 0xFE10)}
"""Invisible characters that are not in Unicode's category Cf."""
FORBIDDEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ufffe\uffff]"
)
"""Control characters but tab, LF and CR; bidirectional controls; line separators, byte order marks, noncharacters."""
CONTROLS: Final = re.compile(rf"[\t\r\n{FORBIDDEN.pattern[1:]}")
"""What a text can hold only as an escape in double quotes; a block has line breaks and tabs as they are."""
LONGEST: Final = 100_000
"""Maximum length of one text, in characters."""


def escape_invisible(text: str) -> str:
    r"""Return the text on one line with invisible characters as escapes: an ESC reads `\x1b`."""
    if text.isascii() and text.isprintable():  # nearly every text, and much faster
        return text
    return _ACTIVE.sub(lambda match: match[0].encode("unicode_escape").decode("ascii"), text)


def is_unseen(char: str) -> bool:
    """Whether a character is invisible, and no blank."""
    return char in _UNSEEN or unicodedata.category(char) == "Cf"


def differing_characters(name: str, other: str) -> str:
    """Return the first three characters that are in only one of two names: `U+0430 CYRILLIC SMALL LETTER A`."""
    chars = dict.fromkeys(char for char in other + name if (char in other) != (char in name))
    return ", ".join(map(code_point, list(chars)[:3]))


def code_point(char: str) -> str:
    """Return `U+0430 CYRILLIC SMALL LETTER A`."""
    return f"U+{ord(char):04X} {unicodedata.name(char, '')}".strip()


def is_representable(value: Json) -> bool:
    """Whether a manifest can contain the value: no overlong text, and no half of a surrogate pair."""
    match value:
        case dict():  # YAML does not recognize keys that are much longer than 500 characters
            return all(len(key) <= 500 and is_representable([key, item]) for key, item in value.items())
        case list():
            return all(map(is_representable, value))
        case str():
            return len(value) <= LONGEST // 2 and not any("\ud800" <= char <= "\udfff" for char in value)
    return True


def is_valid_name(text: str) -> bool:
    """Whether the text can be a name in a manifest: not empty, and not too long."""
    return bool(text) and is_representable(text)
