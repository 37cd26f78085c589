"""Suggestions of what to write instead: text that can be pasted, and that has no more effect than was meant.

Where two meanings are likely, both are suggested.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from lmsconf.errors import shorten
from lmsconf.manifest.validation.key_suggestions import (
    CLOSE_MATCH,
    closest_word,
    key_words,
    suggest_known_key,
    suggest_space_after_colon,
)
from lmsconf.manifest.validation.schema_query import (
    Schema,
    accepts_text,
    all_property_names,
    branches_of,
    identifying_keys,
    is_free_text,
    item_schemas,
    properties,
    property_schema,
    required_keys,
    types_of_branches,
    types_of_schema,
)
from lmsconf.manifest.validation.schema_samples import first_item_sample, join_with_or, mapping_sample, quote_if_needed
from lmsconf.model.canonical_json import Json
from lmsconf.model.time_formats import date_in_other_order

_DATE: Final = "Write a date such as 2027-03-31."
_DATE_PATTERN: Final = r"^\d{4}-\d{2}-\d{2}"
_LABELS: Final = frozenset(
    ["name", "title", "label", "text", "value", "id", "email", "mail", "user", "person", "member", "group", "set"]
)
"""Keys under which people write what is a plain text here."""
_OTHER_FILES: Final = frozenset(["file", "set"])
"""Keys of a file or set that holds people; only the name of a file suggests one."""
_E_MAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_ADDRESS: Final = re.compile(r"([A-Za-z][\w -]*?)\s*[/:=]\s*(\S.*)", re.DOTALL)


def suggest_replacement(value: Json, branches: list[Schema], spelling: str = "") -> str | None:
    """Return what to write in place of a value of the wrong type; None if that is unclear.

    spelling: a number or boolean as the file spells it.
    """
    wanted = types_of_branches(branches)
    if isinstance(value, dict):
        return _of_mapping(value, branches, wanted) or _described(branches)
    if isinstance(value, list):
        return _of_list(value, branches, wanted) or _described(branches)
    text = value if isinstance(value, str) else spelling
    if not text:
        return None
    if isinstance(value, str) and (hint := suggest_space_after_colon(value, all_property_names(branches))):
        return hint
    hint = _of_sections(branches) or _of_text(text, branches, wanted)
    if hint is None and wanted == {"boolean"} and isinstance(value, str):
        return "Write true or false."
    return hint


def _described(branches: list[Schema]) -> str | None:
    """Return the description of the accepted text, where it has a pattern."""
    descriptions = [str(branch["description"]) for branch in branches if {"pattern", "description"} <= branch.keys()]
    return descriptions[0] if descriptions else None


def _of_text(text: str, branches: list[Schema], wanted: frozenset[str]) -> str | None:
    """Return the suggestion for a text, or for a number that was meant as text."""
    if text.endswith(".csv"):
        for branch in branches:
            if "file" in required_keys(branch):
                return f"Write {mapping_sample(branch, quote_if_needed(text))}, with the column of the e-mails."
    if "array" in wanted:
        return _in_a_list(text, next(branch for branch in branches if "array" in types_of_schema(branch)))
    forms = accepted_spellings(text, branches)
    return f"Write {join_with_or(forms)}." if forms else None


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
        return f"Write a list: {join_with_or([f'[{one}]' for one in forms[0]])}."
    written = [one[0] if one else quote_if_needed(part) for one, part in zip(forms, parts, strict=True)]
    return f"Write a list: [{', '.join(written)}]."


def accepted_spellings(text: str, branches: list[Schema]) -> list[str]:
    """Return the forms in which one of the branches accepts a text, with no other meaning than the text has."""
    if any(accepts_text(branch, text) for branch in branches if "object" not in types_of_schema(branch)):
        return [quote_if_needed(text)]
    mappings = {identifying_keys(branch)[0]: branch for branch in branches if required_keys(branch)}
    texts = {
        key: branch for key, branch in mappings.items() if not {"const", "enum"} & property_schema(branch, key).keys()
    }
    labelled = _ADDRESS.fullmatch(text)
    if labelled:
        key = closest_word(re.sub(r"\W", "_", labelled[1].strip()), texts, cutoff=CLOSE_MATCH)
        if key is not None:
            return [mapping_sample(texts[key], quote_if_needed(labelled[2]))]
        if labelled[0].count("=") == 1 and any(branches_of(branch) for branch in texts.values()):
            return []  # probably a whole condition written as one text
    fitting = [key for key in texts if key not in _OTHER_FILES and accepts_text(property_schema(texts[key], key), text)]
    of_people = {key for key in fitting if property_schema(texts[key], key).get("x-person")}
    if len(fitting) > 1 and of_people:
        fitting = [key for key in fitting if (key in of_people) == bool(_E_MAIL.fullmatch(text))]
    return [mapping_sample(texts[key], quote_if_needed(text)) for key in fitting]


def _of_mapping(value: dict[str, Json], branches: list[Schema], wanted: frozenset[str]) -> str | None:
    if len(value) == 1 and (hint := suggest_text_for_mapping(next(iter(value)), value, branches)):
        return hint
    if "array" not in wanted or not value:
        return None
    items = item_schemas(next(branch for branch in branches if "array" in types_of_schema(branch)))
    mappings = [item for item in items if properties(item)]
    if value.keys() & set(all_property_names(mappings)):
        return "Put [ ] around the mapping, or a dash before its first key: it is one item of a list."
    first, inner = next(iter(value.items()))
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
    item = value[0] if len(value) == 1 else None
    if isinstance(item, str) and any(is_free_text(branch) and accepts_text(branch, item) for branch in branches):
        return f"Write {quote_if_needed(item)} alone, not as a list."
    keys = all_property_names(branches)
    if isinstance(item, dict) and "object" in wanted and (item.keys() & set(keys) or not keys):
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
    if key_words(key)[-1] in _LABELS:
        return (
            f"Write {quote_if_needed(inner)} alone." if any(accepts_text(branch, inner) for branch in texts) else None
        )
    whole = f"{key}: {inner}"
    if any(accepts_text(branch, whole) for branch in texts):
        return f"If it is one text, put it in quotes: {json.dumps(shorten(whole), ensure_ascii=False)}."
    return f"Write {quote_if_needed(inner)} alone." if any(accepts_text(branch, inner) for branch in texts) else None


def suggest_date(schema: Schema, text: str) -> str | None:
    """Return the hint how to write a date, if the schema requires one."""
    if not str(schema.get("pattern", "")).startswith(_DATE_PATTERN):
        return None
    day = date_in_other_order(text)
    return f"Write {day}." if day else _DATE


def suggest_time(schema: Schema) -> str | None:
    """Return the hint how to write a time, if the schema requires one, which it marks with `x-time`."""
    return _DATE if schema.get("x-time") else None
