"""Suggestions for unknown keys and misspelled words. A destructive key is suggested only for a near match."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Final, cast

from lmsconf.errors import SHOWN
from lmsconf.manifest.validation.schema_query import (
    Schema,
    branches_of,
    properties,
    types_of_schema,
)
from lmsconf.manifest.validation.schema_samples import join_with_or
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import casefold_name

_WEIGHTY: Final = frozenset(["absent", "archived", "everyone"])
"""Keys that delete, archive, or reach the whole company."""
_FEW: Final = 0.65
CLOSE_MATCH: Final = 0.85
_ENOUGH: Final = 0.75
_LONG: Final = 200
_GONE: Final = ["remove", "removed", "delete", "deleted", "drop", "dropped"]
_AGAINST: Final = frozenset(
    ["not", "no", "non", "un", "unset", "without", "except", "exclude", "excluded", "minus", "absent", *_GONE]
)
_MORE: Final = frozenset(["add", "added", "new", "extra", "more", "plus", "include", "included", "also"])
_NOT: Final = re.compile(r"(?:un|non|not)_?(\w+)")
_OTHERWISE: Final = {
    "visible_to": "visible_until",
    "hidden_from": "visible_until",
    "hidden_after": "visible_until",
    "hidden_until": "visible_from",
    "hidden_before": "visible_from",
    "except": "exclude",
    "exclude": "except",
    "options": "choices",
    "values": "choices",
}
"""Keys spelled most like one of opposite meaning, or like none, → the key that is meant."""
_SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("required", "compulsory", "obligatory", "needed"), ("mandatory",)),
    **dict.fromkeys(("audience", "audiences", "assignees", "assigned_to", "to", "for", "targets"), ("assign_to",)),
    **dict.fromkeys(("course", "module"), ("content",)),
    **dict.fromkeys(("courses", "assignments", "enrolments", "enrollments"), ("content_targets",)),
    **dict.fromkeys(("people", "persons"), ("members", "users")),
    **dict.fromkeys(("owners", "owner", "leaders", "admins", "responsible"), ("managers",)),
    **dict.fromkeys(("rules", "criteria", "filter", "filters", "query", "where"), ("conditions",)),
    **dict.fromkeys(("from", "start", "starts", "start_date", "opens"), ("visible_from",)),
    **dict.fromkeys(("until", "end", "ends", "end_date", "expires", "closes"), ("visible_until",)),
    **dict.fromkeys(("attributes", "properties", "profile_fields"), ("custom_fields",)),
    **dict.fromkeys(("dynamic_groups", "automatic_groups"), ("smart_groups",)),
    **dict.fromkeys(("manual_groups", "static_groups", "teams"), ("groups",)),
    **dict.fromkeys(("old_name", "old_names", "formerly", "renamed_from", "was"), ("previously",)),
}
"""Keys that other systems use → the keys that are meant, of which the first one that fits is suggested."""
_DUE: Final = frozenset(["due", "due_at", "due_by", "due_date", "due_on", "deadline", "complete_by"])
_HIDES: Final = "visible_until"
_GLUED: Final = re.compile(r"([A-Za-z_]+):(?!//)(\S.*)", re.DOTALL)
_OPENED: Final = re.compile(r":[\[{]")


def suggest_space_after_colon(text: str, known_keys: Iterable[str]) -> str | None:
    """Return the suggestion for `name:A`, which lacks the space after the colon."""
    glued = _GLUED.match(text)
    key = closest_word(glued[1], known_keys, cutoff=_ENOUGH) if glued else None
    if glued is None or key is None or len(text) > SHOWN:
        return None
    value = glued[2] if all(glued[2].count(a) == glued[2].count(b) for a, b in ("[]", "{}")) else "…"
    return f"Write {key}: {value}, with a space after the colon."


def suggest_known_key(key: str, known_keys: Mapping[str, Json], value: Json = None) -> str | None:
    """Return the suggestion for an unknown key; None if no known key is close enough."""
    if (value is None or _OPENED.search(key)) and (hint := suggest_space_after_colon(key, known_keys)):
        return hint
    key = key.removeprefix("is_")
    if _HIDES in known_keys and "_".join(key_words(key)) in _DUE:
        return f"The service has no due date; `{_HIDES}` hides the content."
    turned = _turned(key, known_keys, value)
    if turned is not None:
        return turned or None
    if _OTHERWISE.get(key) in known_keys:
        return f'Did you mean "{_OTHERWISE[key]}"?'
    if meant := next((name for name in _SYNONYMS.get(key.casefold(), ()) if name in known_keys), None):
        return f'Did you mean "{meant}"?'
    near = [] if _is_contrary(key, known_keys) else _near(key, known_keys, _FEW)
    return f"Did you mean {join_with_or([json.dumps(name, ensure_ascii=False) for name in near])}?" if near else None


def _is_contrary(key: str, known: Iterable[str]) -> bool:
    """Whether a key expresses a negation or removal that no similar known key expresses."""
    prefixed = _NOT.fullmatch(key.casefold())
    against = set(key_words(key)) & _AGAINST or (prefixed and closest_word(prefixed[1], known, cutoff=_FEW) is not None)
    return bool(against) and not any(set(key_words(name)) & _AGAINST for name in _near(key, known, _FEW))


def key_words(key: str) -> list[str]:
    return re.split(r"[\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).casefold())


def _turned(key: str, known: Mapping[str, Json], value: Json) -> str | None:
    """Return the suggestion for a known key with a word that negates or extends it, such as `remove_members`.

    None for other keys; empty if there is nothing to suggest.
    """
    words = key_words(key)
    prefixed = _NOT.fullmatch(key.casefold())
    if prefixed and prefixed[1] in known:
        words = ["un", *prefixed[1].split("_")]
    held = max((name for name in known if set(name.split("_")) < set(words)), key=len, default=None)
    if held is None:
        return None
    more = set(words) - set(held.split("_"))
    against = bool(more & _AGAINST)
    if not against and not more & _MORE:
        return None
    schema = cast(Schema, known[held])
    parts = [part for branch in branches_of(schema) for part in properties(branch)]
    if "include" in parts:
        side = "exclude" if against else "include"
        return f"Write {held}: {{{side}: […]}}. A plain list is the complete list of {held} there are."
    if not against:
        return None
    if types_of_schema(schema) == {"boolean"} and value is True:
        return f"Write {held}: false."
    for word, form in (("except", "except: […]"), ("absent", f"absent: {{{held}: […]}}, which deletes what it lists")):
        if word in known:
            return f"Write {form}."
    return ""


def suggest_choice(text: str, choices: Iterable[str]) -> str | None:
    """Return the hint which of a few words was meant; None if that is uncertain."""
    words = list(choices)
    near = _near(text, words, _ENOUGH) or [word for word in words if len(text) > 3 and word.startswith(text)]
    return f'Did you mean "{near[0]}"?' if near else None


def closest_word(word: str, known_words: Iterable[str], *, cutoff: float) -> str | None:
    """Return the closest known word, if any reaches the cutoff."""
    return next(iter(_near(word, known_words, cutoff)), None)


def _near(word: str, known: Iterable[str], cutoff: float) -> list[str]:
    """Return the closest known words, several if they are about equally close."""
    import difflib  # only a mistyped key needs it

    if len(word) > _LONG:
        return []
    word_look = casefold_name(word)
    by_look = {casefold_name(other): other for other in known}
    closest = difflib.get_close_matches(word_look, by_look, n=2, cutoff=cutoff)
    ratios = {other: difflib.SequenceMatcher(None, other, word_look).ratio() for other in closest}
    best = max(ratios.values(), default=0)
    return [
        by_look[other]
        for other, ratio in ratios.items()
        if best - ratio < 0.05
        and (by_look[other] not in _WEIGHTY or (ratio >= CLOSE_MATCH and not word_look.startswith(f"{other} ")))
    ]
