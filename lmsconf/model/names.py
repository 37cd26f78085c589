"""Compare names: equal, visually confusable, or probably a typing error; and match them with shell patterns.

Also which characters of a name nobody meant to write, and what is of one name.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import groupby
from typing import Final, TypeVar

from lmsconf.model.control_characters import (
    LOOKALIKES,
    UNPRINTABLE,
    code_point,
    differing_characters,
    escape_invisible,
    is_unseen,
)

LOCK_PREFIX: Final = "lmsconf-lock "
"""Name prefix of the lock object, which is a manual group because the API has no lock."""
LONG: Final = 200
"""Longer names are checked for excessive combining marks before they are normalised, and get no suggestions."""
_CLOSED = re.compile(r"(?:[^\[]|\[!?+\]?+[^\]]*+\])*+")
"""The part of a shell pattern before its first bracket that is not closed, which is a plain character there."""
_PLAIN = re.compile(rf"[^\s\"({UNPRINTABLE}](?:[^{UNPRINTABLE}]*[^\s\"{UNPRINTABLE}])?")


def normalize_name(name: str) -> str:
    """Return the form in which names are compared: NFC, case and blanks unchanged."""
    if name.isascii() or (len(name) > LONG and _piles_up(name)):
        return name
    return unicodedata.normalize("NFC", name)


def _piles_up(name: str) -> bool:
    """Whether a name has more combining marks in a row than any language: normalising them takes quadratic time.

    Unicode's Stream-Safe Text Format allows 30.
    """
    runs = groupby(name, key=lambda char: unicodedata.combining(char) > 0)
    return any(is_marks and len(list(run)) > 30 for is_marks, run in runs)


def casefold_name(name: str) -> str:
    """Return the name without case and surrounding blanks: two names with one look probably mean the same."""
    return normalize_name(name).strip().casefold()


def confusable_skeleton(name: str) -> str:
    """Return a key that visually indistinguishable names share.

    It ignores case, Cyrillic and Greek look-alikes of Latin letters, wide and ligated forms, invisible characters and
    repeated blanks.
    """
    if not name.isascii() and not (len(name) > LONG and _piles_up(name)):
        visible = (char for char in unicodedata.normalize("NFKC", name) if not is_unseen(char))
        name = "".join(visible).translate(LOOKALIKES)
    return " ".join(name.split()).casefold()


@lru_cache(maxsize=8192)  # people are named in many lists
def normalize_email(text: str) -> str:
    """Return an e-mail address in the form in which people are compared: stripped, NFC, case-folded."""
    return normalize_name(text.strip()).casefold()


def quote_name(name: str) -> str:
    """Quote a name as JSON, which can be pasted into a manifest whatever it contains."""
    return json.dumps(name, ensure_ascii=False)


def quote_if_ambiguous(name: str) -> str:
    """Return a name for use in a line, quoted if its start, its end or a character of it would be ambiguous."""
    return name if _PLAIN.fullmatch(name) else quote_name(name)


def count_noun(number: int, noun: str, plural: str | None = None) -> str:
    """`1 group`, `1,200 groups`. plural: where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def nearest_name(name: str, known: Iterable[str]) -> str | None:
    """Return the known name most similar to `name`; None if none is similar, or the name is very long."""
    return next(iter(nearest_names(name, known, 1)), None)


def nearest_names(name: str, known: Iterable[str], most: int, cutoff: float = 0.6) -> list[str]:
    """Return the known names similar to `name`, the most similar first; none for a very long name.

    cutoff: how similar, from 0 to 1, which is equal but for case.
    """
    if len(name) > LONG:
        return []
    import difflib  # only a mistyped name needs it

    by_look = {casefold_name(other): other for other in known}
    return [by_look[look] for look in difflib.get_close_matches(casefold_name(name), by_look, n=most, cutoff=cutoff)]


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """Return `Did you mean "Nordic"?`, or None if no known name is similar.

    For a name that looks the same, it adds the characters that differ.
    """
    suggestion = nearest_name(name, known)
    if suggestion is None:
        return None
    hint = f"Did you mean {quote_name(suggestion)}?"
    if casefold_name(name) == casefold_name(suggestion) or confusable_skeleton(name) != confusable_skeleton(suggestion):
        return hint
    return f"{hint} They look the same, and differ by {differing_characters(name, suggestion) or 'blanks'}."


def did_you_mean_email(email: str, known: Iterable[str]) -> str | None:
    """Return `Did you mean "bo.ek@acme.example"?`, or None if nobody's name is similar: most share a domain."""
    person = email.rpartition("@")[0].casefold()
    near = nearest_names(email, known, 5)
    alike = [other for other in near if not person or _are_similar(person, other.rpartition("@")[0].casefold())]
    return did_you_mean(email, alike)


def _are_similar(name: str, other: str) -> bool:
    """Whether two names share most letters, or all but one."""
    import difflib  # only a mistyped name needs it

    ratio, longest = difflib.SequenceMatcher(None, name, other).ratio(), max(len(name), len(other))
    return ratio >= 0.6 or longest - ratio * (len(name) + len(other)) / 2 <= 1


def list_names(names: Iterable[str]) -> str:
    """Return names on one line, with commas between them."""
    return ", ".join(map(escape_invisible, names))


def first_lines(lines: Sequence[str], most: int, more: str = "more") -> list[str]:
    """Return the first lines, and one that counts the others: `… and 3 more`."""
    left = len(lines) - most
    return [*lines[:most], f"… and {left:,} {more}"] if left > 0 else [*lines]


def join_words(words: Sequence[str], last: str = "or") -> str:
    """Join words: `a`, `a or b`, `a, b or c`. last: the word before the last one."""
    return f" {last} ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def known_names(names: Collection[str]) -> str:
    """Return `There is production.`, `There are staging, production.`, or `There is none.`."""
    return f"There {'are' if len(names) > 1 else 'is'} {', '.join(names) or 'none'}."


def nearest_email(text: str, emails: Iterable[str]) -> str | None:
    """Return the e-mail that a text without a domain, or a person's name, probably means; None if none is similar."""
    # Of several for one person, the first.
    by_person = {_letters(email.rpartition("@")[0]): email for email in reversed([*emails])}
    near = nearest_name(_letters(text), by_person)
    return by_person[near] if near else None


def _letters(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())


def matches_patterns(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name matches shell patterns: at least one matches, and none that begins with `!` excludes it.

    `all` is short for `*`. Case-sensitive.
    """
    listed = list(patterns)
    if any(pattern.startswith("!") and matches_pattern(name, pattern[1:]) for pattern in listed):
        return False
    return any(
        matches_pattern(name, "*" if pattern == "all" else pattern) for pattern in listed if not pattern.startswith("!")
    )


def exact_pattern(name: str) -> str:
    """Return the shell pattern that matches only this name."""
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def matches_pattern(name: str, pattern: str) -> bool:
    """Whether a name matches one shell pattern. A name matches itself, also if it contains brackets."""
    pattern = normalize_name(pattern)
    if name == pattern:
        return True
    if "[" in pattern:
        # fnmatch looks for the end of every unclosed bracket, which takes quadratic time.
        closed = match[0] if (match := _CLOSED.match(pattern)) else ""
        pattern = closed + pattern[len(closed) :].replace("[", "[[]")
    return fnmatchcase(name, pattern)


_OPENING: Final = "\"'`\u201c\u201d\u201e\u201f\u2018\u2019\u201a\u201b"
_CLOSING: Final = "\"'`\u00b4\u201c\u201d\u2018\u2019"
_PASTED: Final = "\u201c\u201d\u201e\u201f"
_JOINERS: Final = "\u200c\u200d\ufe0e\ufe0f"
"""Invisible characters that emoji and the scripts of Persian and of India need."""
_WORD: Final = re.compile(r"[^\W\d_]+")


def suspicion(name: str) -> str | None:
    """Return what is probably wrong with a name, as the rest of a sentence that begins with it; None for nothing."""
    if name.isascii() and name[:1] not in ('"', "'", "`"):  # nearly every name
        return None
    if _is_quoted(name):
        return f"includes quotation marks: {quote_name(name)}"
    unseen = next(filter(_is_hidden, name), None)
    if unseen is not None:
        return f"includes {code_point(unseen)}, which cannot be seen"
    for word in _WORD.findall(name):
        found = next((char for char in word if ord(char) in LOOKALIKES), None)
        if found is not None and any(char.isascii() for char in word):
            return f"includes {code_point(found)}, which looks like {chr(LOOKALIKES[ord(found)])}, among Latin letters"
    return None


def _is_quoted(name: str) -> bool:
    """Whether the whole name is in quotation marks, or one that a text editor has put there is left over."""
    if len(name) > 1 and name[0] in _OPENING and name[-1] in _CLOSING:
        return not any(char in name[1:-1] for char in name[0] + name[-1])
    return [place for place, char in enumerate(name) if char in _PASTED] in ([0], [len(name) - 1])


def _is_hidden(char: str) -> bool:
    # The wide blank is an ordinary one between wide letters.
    is_blank = unicodedata.category(char) == "Zs" and char not in (" ", "\u3000")
    return is_blank or (is_unseen(char) and char not in _JOINERS)


Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)


def grouped(items: Iterable[Item], key: Callable[[Item], Key]) -> dict[Key, list[Item]]:
    """Return the items by their names, or by another key, in their order."""
    groups: defaultdict[Key, list[Item]] = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return dict(groups)
