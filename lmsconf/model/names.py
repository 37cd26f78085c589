"""When two names are the same, when they only look it, and which one a typing error meant."""

from __future__ import annotations

import difflib
import json
import unicodedata
from collections.abc import Iterable
from fnmatch import fnmatchcase

_LONG = 200
"""Longer names are looked at before anything is done with them that takes more than a glance at each character."""
_HIGHEST = 30
"""How many marks Unicode's own format for streams lets stand on one letter."""
_TWINS = str.maketrans(
    "АВЕЅІЈКМНОРСТУХаесорхуіјѕһԁԛԝ" + "ΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορυχ",  # noqa: RUF001  that is what they are here for
    "ABESIJKMHOPCTYXaecopxyijshdqw" + "ABEZHIKMNOPTYXaikvopux",
)
"""Cyrillic and Greek letters that most typefaces draw as Latin ones."""
_UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0") | {chr(code) for code in range(0xFE00, 0xFE10)}
"""Characters that are drawn as nothing, besides Unicode's own category for that."""


def normal(name: str) -> str:
    """The form in which names are compared: NFC, otherwise exactly."""
    if name.isascii() or (len(name) > _LONG and _piles_up(name)):
        return name
    return unicodedata.normalize("NFC", name)


def _piles_up(name: str) -> bool:
    """Whether marks stand on marks as in no language. To put them in order would take the square of their number."""
    height = 0
    for char in name:
        height = height + 1 if unicodedata.combining(char) else 0
        if height > _HIGHEST:
            return True
    return False


def look(name: str) -> str:
    """What a person sees at a glance: two names with the same look are probably meant to be one."""
    return normal(name).strip().casefold()


def skeleton(name: str) -> str:
    """What is left to tell names apart by for somebody who looks closely, and still sees no more than is drawn.

    Letters of other scripts that are drawn as Latin ones, wide and ligated forms, invisible characters and more than
    one blank in a row make no difference.
    """
    if not name.isascii() and not (len(name) > _LONG and _piles_up(name)):
        seen = (char for char in unicodedata.normalize("NFKC", name) if not _is_unseen(char))
        name = "".join(seen).translate(_TWINS)
    return " ".join(name.split()).casefold()


def _is_unseen(char: str) -> bool:
    return char in _UNSEEN or unicodedata.category(char) == "Cf"


def strangers(name: str, other: str) -> str:
    """The first few characters that one of two names has and the other has not, by their Unicode names."""
    chars = dict.fromkeys(char for char in other + name if (char in other) != (char in name))
    return ", ".join(f"U+{ord(char):04X} {unicodedata.name(char, '')}".strip() for char in list(chars)[:3])


def email(text: str) -> str:
    """An e-mail in the form in which people are compared: without case."""
    return normal(text.strip()).casefold()


def quoted(name: str) -> str:
    """The name as it can be pasted into a manifest, whatever it holds."""
    return json.dumps(name, ensure_ascii=False)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be. A very long one is no typing error."""
    if len(name) > _LONG:
        return None
    by_look = {look(other): other for other in known}
    found = difflib.get_close_matches(look(name), by_look, n=1, cutoff=0.6)
    return by_look[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """`Did you mean "Nordic"?`, or None when nothing is near."""
    found = nearest(name, known)
    return None if found is None else f'Did you mean "{found}"?'


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether shell patterns take the name in: some fit it, and none that begins with `!` excludes it.

    `all` is short for `*`. Case counts.
    """
    said = list(patterns)
    if any(pattern.startswith("!") and fits(name, pattern[1:]) for pattern in said):
        return False
    return any(fits(name, "*" if pattern == "all" else pattern) for pattern in said if not pattern.startswith("!"))


def exactly(name: str) -> str:
    """The shell pattern that only this name fits."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def fits(name: str, pattern: str) -> bool:
    """Whether one shell pattern takes the name in. A name fits itself, also when it holds brackets."""
    pattern = normal(pattern)
    return name == pattern or fnmatchcase(name, pattern)
