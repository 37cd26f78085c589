"""Suggestions of what to write instead: text that can be pasted, and that has no more effect than was meant.

Where two meanings are likely, both are suggested. A destructive key is suggested only for a near match.

"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from lmsconf.errors import SHOWN, shorten
from lmsconf.manifest.edit.text_edits import format_inline
from lmsconf.manifest.nodes import EMAIL
from lmsconf.manifest.schema_check import (
    TYPE_NAMES,
    Schema,
    accepts_text,
    alternative_schemas,
    branches_of,
    identifying_keys,
    item_schemas,
    properties,
    property_schema,
    required_keys,
    types_of_branches,
    types_of_schema,
)
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import casefold_name, join_words, nearest_names
from lmsconf.model.time_formats import date_in_other_order

_WEIGHTY: Final = frozenset(["absent", "archived", "everyone"])
"""Keys that delete, archive, or reach the whole company."""
_FEW: Final = 0.65
_CLOSE: Final = 0.85
_ENOUGH: Final = 0.75
_AGAINST: Final = frozenset(
    [
        *("not", "no", "non", "un", "unset", "without", "except", "exclude", "excluded", "minus", "absent"),
        *("remove", "removed", "delete", "deleted", "drop", "dropped"),
    ]
)
_MORE: Final = frozenset(["add", "added", "new", "extra", "more", "plus", "include", "included", "also"])
_NOT: Final = re.compile(r"(?:un|non|not)_?(\w+)")
_SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("visible_to", "hidden_from", "hidden_after"), ("visible_until",)),
    **dict.fromkeys(("hidden_until", "hidden_before"), ("visible_from",)),
    **dict.fromkeys(("options", "values"), ("choices",)),
    "except": ("exclude",),
    "exclude": ("except",),
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
"""Keys that other systems use, or that are spelled like one of opposite meaning → the keys that are meant.

Of these, the first one that fits is suggested.
"""
_DUE: Final = frozenset(["due", "due_at", "due_by", "due_date", "due_on", "deadline", "complete_by"])
DATE: Final = "Write a date such as 2027-03-31."
_LABELS: Final = frozenset(
    ["name", "title", "label", "text", "value", "id", "email", "mail", "user", "person", "member", "group", "set"]
)
"""Keys under which people write what is a plain text here."""
_OTHER_FILES: Final = frozenset(["file", "set"])
"""Keys of a file or set that holds people; only the name of a file suggests one."""


def all_property_names(branches: Iterable[Schema]) -> list[str]:
    """Return the keys that a mapping of any of the branches may have."""
    return list(dict.fromkeys(key for branch in branches for key in properties(branch)))


def is_free_text(schema: Schema) -> bool:
    """Whether a schema accepts texts other than those it lists."""
    return "string" in types_of_schema(schema) and "enum" not in schema


def quote_if_needed(text: str) -> str:
    """Format a text for use within brackets, quoted where needed, and where a colon looks like the end of a key."""
    if len(text) > SHOWN:
        return "…"
    inline = format_inline(text)
    return json.dumps(text, ensure_ascii=False) if inline == text and ":" in text else inline


def suggest_from_schema(schema: Schema) -> str:
    """Return the suggestion that follows from the schema alone."""
    samples = dict.fromkeys(sample for branch in _harmless(alternative_schemas(schema)) for sample in _samples(branch))
    return f"Write {join_words([*samples])}."


def _harmless(branches: list[Schema]) -> list[Schema]:
    """Drop branches whose key or value is a constant such as `everyone`, so that none is suggested by mistake."""
    words = {
        key for branch in branches for key in identifying_keys(branch)[:1] if "const" in property_schema(branch, key)
    }
    return [
        branch
        for branch in branches
        if not words.intersection(identifying_keys(branch)[:1])
        and not words.intersection(cast("list[str]", branch.get("enum", [])))
    ] or branches


def _samples(schema: Schema) -> list[str]:
    """Return samples of what a schema accepts, in the form in which people write them."""
    if "enum" in schema or "const" in schema:
        values = cast("list[Json]", schema.get("enum", [schema.get("const")]))
        return [value if isinstance(value, str) else json.dumps(value) for value in values]
    types = types_of_schema(schema)
    low, high = schema.get("minimum"), schema.get("maximum")
    limits = "" if low is None else f" from {low} {'on' if high is None else f'to {high}'}"
    number = "number" if "number" in types else "integer"
    samples = {
        "object": mapping_sample(schema),
        "array": f"a list: [{first_item_sample(item_schemas(schema))}]",
        "string": TYPE_NAMES["string"],
        "boolean": TYPE_NAMES["boolean"],
        number: f"{TYPE_NAMES[number]}{limits}",
    }
    return [sample for name, sample in samples.items() if name in types]


def first_item_sample(items: list[Schema]) -> str:
    mappings = [item for item in items if "object" in types_of_schema(item)]
    return mapping_sample(mappings[0]) if items and len(mappings) == len(items) else "…"


def mapping_sample(schema: Schema, first_value: str | None = None) -> str:
    """Return a sample mapping with its required keys, the first of them with the value `first_value`."""
    below = schema.get("additionalProperties")
    if isinstance(below, dict) and types_of_schema(below) == {"array"}:
        return "{name: […]}"
    keys = required_keys(schema) or identifying_keys(schema)[:1] or ["key"]
    more = next((required_keys(branch) for branch in branches_of(schema)), []) if required_keys(schema) else []
    parts = [
        f"{key}: {'[…]' if types_of_schema(property_schema(schema, key)) == {'array'} else '…'}" for key in keys + more
    ]
    if first_value is not None:
        parts[0] = f"{keys[0]}: {first_value}"
    return f"{{{', '.join(parts)}}}"


def _space_after_colon(text: str, known_keys: Iterable[str]) -> str | None:
    """Return the suggestion for `name:A`, which lacks the space after the colon."""
    glued = re.match(r"([A-Za-z_]+):(?!//)(\S.*)", text, re.DOTALL)
    key = _closest_word(glued[1], known_keys, cutoff=_ENOUGH) if glued else None
    if glued is None or key is None or len(text) > SHOWN:
        return None
    value = glued[2] if all(glued[2].count(a) == glued[2].count(b) for a, b in ("[]", "{}")) else "…"
    return f"Write {key}: {value}, with a space after the colon."


def suggest_known_key(key: str, known_keys: Mapping[str, Json], value: Json = None) -> str | None:
    """Return the suggestion for an unknown key; None if no known key is close enough."""
    if (value is None or ":[" in key or ":{" in key) and (hint := _space_after_colon(key, known_keys)):
        return hint
    key = key.removeprefix("is_")
    if "visible_until" in known_keys and "_".join(_key_words(key)) in _DUE:
        return "The service has no due date; `visible_until` hides the content."
    turned = _turned(key, known_keys, value)
    if turned is not None:
        return turned or None
    if meant := next((name for name in _SYNONYMS.get(key.casefold(), ()) if name in known_keys), None):
        return f'Did you mean "{meant}"?'
    near = [] if _is_contrary(key, known_keys) else _near(key, known_keys, _FEW)
    return f"Did you mean {join_words([json.dumps(name, ensure_ascii=False) for name in near])}?" if near else None


def _is_contrary(key: str, known: Iterable[str]) -> bool:
    """Whether a key expresses a negation or removal that no similar known key expresses."""
    prefixed = _NOT.fullmatch(key.casefold())
    against = set(_key_words(key)) & _AGAINST or (
        prefixed and _closest_word(prefixed[1], known, cutoff=_FEW) is not None
    )
    return bool(against) and not any(set(_key_words(name)) & _AGAINST for name in _near(key, known, _FEW))


def _key_words(key: str) -> list[str]:
    return re.split(r"[\W_]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key).casefold())


def _turned(key: str, known: Mapping[str, Json], value: Json) -> str | None:
    """Return the suggestion for a known key with a word that negates or extends it, such as `remove_members`.

    None for other keys; empty if there is nothing to suggest.
    """
    words = _key_words(key)
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
    schema, side = cast(Schema, known[held]), "exclude" if against else "include"
    rules = (
        (
            "include" in all_property_names(branches_of(schema)),
            f"Write {held}: {{{side}: […]}}. A plain list is the complete list of {held} there are.",
        ),
        (not against, None),
        (types_of_schema(schema) == {"boolean"} and value is True, f"Write {held}: false."),
        ("except" in known, "Write except: […]."),
        ("absent" in known, f"Write absent: {{{held}: […]}}, which deletes what it lists."),
        (True, ""),
    )
    return next(hint for holds, hint in rules if holds)


def suggest_choice(text: str, words: Sequence[str]) -> str | None:
    """Return the hint which of a few words was meant; None if that is uncertain."""
    near = _near(text, words, _ENOUGH) or [word for word in words if len(text) > 3 and word.startswith(text)]
    return f'Did you mean "{near[0]}"?' if near else None


def _closest_word(word: str, known_words: Iterable[str], *, cutoff: float) -> str | None:
    """Return the closest known word, if any reaches the cutoff."""
    return next(iter(_near(word, known_words, cutoff)), None)


def _near(word: str, known: Iterable[str], cutoff: float) -> list[str]:
    """Return the closest known words, several if they are about equally close."""
    import difflib  # only a mistyped key needs it

    look = casefold_name(word)
    ratios = {
        other: difflib.SequenceMatcher(None, casefold_name(other), look).ratio()
        for other in nearest_names(word, known, 2, cutoff)
    }
    best = max(ratios.values(), default=0)
    return [
        other
        for other, ratio in ratios.items()
        if best - ratio < 0.05
        and (other not in _WEIGHTY or (ratio >= _CLOSE and not look.startswith(f"{casefold_name(other)} ")))
    ]


def suggest_replacement(value: Json, branches: list[Schema], spelling: str = "") -> str | None:
    """Return what to write in place of a value of the wrong type; None if that is unclear.

    spelling: a number or boolean as the file spells it.
    """
    wanted = types_of_branches(branches)
    if isinstance(value, dict | list):
        hint = _of_mapping(value, branches) if isinstance(value, dict) else _of_list(value, branches, wanted)
        described = (str(branch["description"]) for branch in branches if {"pattern", "description"} <= branch.keys())
        return hint or next(described, None)
    is_text, text = isinstance(value, str), value if isinstance(value, str) else spelling
    if not text:
        return None
    spaced = _space_after_colon(text, all_property_names(branches)) if is_text else None
    switch = "Write true or false." if is_text and wanted == {"boolean"} else None
    return spaced or _of_sections(branches) or _of_text(text, branches, wanted) or switch


def _of_text(text: str, branches: list[Schema], wanted: frozenset[str]) -> str | None:
    """Return the suggestion for a text, or for a number that was meant as text."""
    files = [branch for branch in branches if "file" in required_keys(branch)]
    if files and text.endswith(".csv"):
        return f"Write {mapping_sample(files[0], quote_if_needed(text))}, with the column of the e-mails."
    if "array" in wanted:
        return _in_a_list(text, next(branch for branch in branches if "array" in types_of_schema(branch)))
    forms = accepted_spellings(text, branches)
    return f"Write {join_words(forms)}." if forms else None


def _in_a_list(text: str, schema: Schema) -> str:
    """Suggest a list in place of a text: with the text as its only item, or split at its commas."""
    items = item_schemas(schema)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    forms = [accepted_spellings(part, items) for part in parts]
    if items and not all(forms):
        about = str(items[0].get("description", "")) if len(items) <= 2 else ""
        each = f" Each item: {about[0].lower()}{about[1:]}" if about else ""
        return f"Write a list: [{first_item_sample(items)}].{each}"
    if len(forms) == 1 and forms[0]:
        return f"Write a list: {join_words([f'[{one}]' for one in forms[0]])}."
    written = [one[0] if one else quote_if_needed(part) for one, part in zip(forms, parts, strict=True)]
    return f"Write a list: [{', '.join(written)}]."


def accepted_spellings(text: str, branches: list[Schema]) -> list[str]:
    """Return the forms in which one of the branches accepts a text, with no other meaning than the text has."""
    if any(accepts_text(branch, text) for branch in branches if "object" not in types_of_schema(branch)):
        return [quote_if_needed(text)]
    keyed = {required_keys(branch)[0]: branch for branch in branches if required_keys(branch)}
    texts = {key: one for key, one in keyed.items() if not {"const", "enum"} & property_schema(one, key).keys()}
    labelled = re.fullmatch(r"([A-Za-z][\w -]*?)\s*[/:=]\s*(\S.*)", text, re.DOTALL)
    if labelled:
        key = _closest_word(re.sub(r"\W", "_", labelled[1].strip()), texts, cutoff=_CLOSE)
        if key is not None:
            return [mapping_sample(texts[key], quote_if_needed(labelled[2]))]
        if labelled[0].count("=") == 1 and any(branches_of(branch) for branch in texts.values()):
            return []  # probably a whole condition written as one text
    fitting = [key for key in texts if key not in _OTHER_FILES and accepts_text(property_schema(texts[key], key), text)]
    of_people = {key for key in fitting if property_schema(texts[key], key).get("x-person")}
    if len(fitting) > 1 and of_people:
        fitting = [key for key in fitting if (key in of_people) == bool(EMAIL.fullmatch(text))]
    return [mapping_sample(texts[key], quote_if_needed(text)) for key in fitting]


def _of_mapping(value: dict[str, Json], branches: list[Schema]) -> str | None:
    if len(value) == 1 and (hint := suggest_text_for_mapping(next(iter(value)), value, branches)):
        return hint
    lists = [branch for branch in branches if "array" in types_of_schema(branch)]
    mappings = [item for branch in lists for item in item_schemas(branch) if properties(item)]
    if value.keys() & set(all_property_names(mappings)):
        return "Put [ ] around the mapping, or a dash before its first key: it is one item of a list."
    first, inner = next(iter(value.items()), ("", None))
    keyed = [
        item
        for item in mappings
        if identifying_keys(item)[0] not in _OTHER_FILES
        and accepts_text(property_schema(item, identifying_keys(item)[0]), first)
    ]
    if len(keyed) != 1 or not isinstance(inner, dict | list | str | None):
        return None
    rest = ", …" if inner and len(required_keys(keyed[0])) == 1 and not branches_of(keyed[0]) else ""
    item = mapping_sample(keyed[0], quote_if_needed(first))[:-1]
    return f"Write a list: [{item}{rest}}}{', …' if len(value) > 1 else ''}]."


def _of_list(value: list[Json], branches: list[Schema], wanted: frozenset[str]) -> str | None:
    keys = all_property_names(branches)
    match value:
        case [str(item)] if any(is_free_text(branch) and accepts_text(branch, item) for branch in branches):
            return f"Write {quote_if_needed(item)} alone, not as a list."
        case [dict(item)] if "object" in wanted and (item.keys() & set(keys) or not keys):
            return "Remove the brackets or the dash around the mapping."
    return _of_sections(branches)


def _of_sections(branches: list[Schema]) -> str | None:
    """Return the suggestion for content outside all sections: the sections, as which one is meant is unclear."""
    keys = all_property_names(branches)
    if not any("x-items" in property_schema(branch, key) for branch in branches for key in keys):
        return None
    return f"Write one of these keys before it: {', '.join(keys)}."


def suggest_text_for_mapping(key: str, value: Mapping[str, Json], branches: list[Schema]) -> str | None:
    """Return what to write where a mapping was meant as a text.

    That is either a text that contains a colon, or the value of the mapping's only key.
    """
    inner = value[key]
    texts = [branch for branch in branches if is_free_text(branch)]
    if len(value) > 1 or not isinstance(inner, str | None) or not texts:
        return None
    if hint := suggest_known_key(key, {name: {} for name in all_property_names(branches)}):
        return hint
    if inner is None:
        fits = any(accepts_text(branch, key) for branch in texts)
        return f"Write {quote_if_needed(key)} alone, without the colon." if fits else None
    alone = f"Write {quote_if_needed(inner)} alone." if any(accepts_text(one, inner) for one in texts) else None
    whole = f"{key}: {inner}"
    if _key_words(key)[-1] in _LABELS or not any(accepts_text(branch, whole) for branch in texts):
        return alone
    return f"If it is one text, put it in quotes: {json.dumps(shorten(whole), ensure_ascii=False)}."


def suggest_date(schema: Schema, text: str) -> str | None:
    """Return the hint how to write a date, if the schema requires one."""
    if not str(schema.get("pattern", "")).startswith(r"^\d{4}-\d{2}-\d{2}"):
        return None
    day = date_in_other_order(text)
    return f"Write {day}." if day else DATE
