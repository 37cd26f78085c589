"""When two names are the same, when they only look it, and which one a typing error meant."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from fnmatch import fnmatchcase


def normal(name: str) -> str:
    """The form in which names are compared: NFC, otherwise exactly."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def look(name: str) -> str:
    """What a person sees at a glance: two names with the same look are probably meant to be one."""
    return normal(name).strip().casefold()


def email(text: str) -> str:
    """An e-mail in the form in which people are compared: without case."""
    return normal(text.strip()).casefold()


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was probably meant to be."""
    by_look = {look(other): other for other in known}
    found = difflib.get_close_matches(look(name), by_look, n=1, cutoff=0.6)
    return by_look[found[0]] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """`Did you mean "Nordic"?`, or None when nothing is near."""
    found = nearest(name, known)
    return None if found is None else f'Did you mean "{found}"?'


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether shell patterns take the name in: the last one that fits decides, and a leading `!` takes it out.

    `all` is short for `*`. Case counts.
    """
    taken = False
    for pattern in patterns:
        if pattern.startswith("!"):
            taken = taken and not fnmatchcase(name, pattern[1:])
        else:
            taken = taken or fnmatchcase(name, "*" if pattern == "all" else pattern)
    return taken
