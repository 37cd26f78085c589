"""Names of kinds and resources, counts, rates and values in an administrator's terms. Results are not escaped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmsconf.kinds.kind_table import KINDS
from lmsconf.model.calls import RunProgress
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import quote_if_ambiguous
from lmsconf.model.plan import UnmanagedResources
from lmsconf.model.snapshot import Listing

SERVICE_DEFAULT = "(service default)"


NO_VALUE = "(none)"


MAX_SHOWN_ITEMS = 20
"""The number of list items shown at first. HTML folds the others; a comment or message of limited size counts them.
The text format lists all."""


def count_noun(number: int, noun: str, plural: str | None = None) -> str:
    """`1 group`, `1,200 groups`. plural: where it is not the noun with an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def name_list(names: Sequence[str], most: int) -> str:
    """Return the first names, separated by commas, and how many more there are: `Oslo, Bergen and 3 more`."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most:,} more"


def count_kind(number: int, kind: str) -> str:
    """`1 assignment`, `1,200 assignments`, of a kind or listing."""
    return count_noun(number, *kind_nouns(kind))


def count_text(progress: RunProgress) -> str:
    """Return such as `158 of at least 1,576`; without `at least` once the total is known."""
    return f"{progress.done:,} of {'' if progress.is_final else 'at least '}{progress.total:,}"


def rate_text(rate: float) -> str:
    """Return two significant digits, or a whole number."""
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def kind_noun(kind: str) -> str:
    """Return the display name of a kind: `smart group`, `assignment`."""
    return kind_nouns(kind)[0]


def kind_plural(kind: str) -> str:
    """Return the display name of several of a kind: `smart groups`, `people`."""
    return kind_nouns(kind)[1]


def kind_nouns(kind: str) -> tuple[str, str]:
    """Return the display names of a kind or listing, singular and plural. A file may name a kind of a later version."""
    if kind in KINDS:
        return KINDS[kind].noun, KINDS[kind].plural
    words = kind.replace("_", " ")
    read = (known.listing_nouns[kind] for known in KINDS.values() if kind in known.listing_nouns)
    return next(read, (words, f"{words}s"))


def format_value(value: Json) -> str:
    """Return a value as JSON, `"old"`; `(none)` for null and empty values; a condition in words."""
    if value is None or value == [] or value == {}:
        return NO_VALUE
    if isinstance(value, dict) and _is_condition(value):
        return format_condition(value)
    return json.dumps(value, ensure_ascii=False)


def format_item(value: Json) -> str:
    """Return a list item in words: a name, a condition, or its keys and values."""
    if isinstance(value, str):
        return quote_if_ambiguous(value)
    if not isinstance(value, dict):
        return format_value(value)
    if _is_condition(value):
        return format_condition(value)
    rest = ", ".join(f"{key}: {format_value(item)}" for key, item in value.items() if key != "name")
    return ", ".join(filter(None, (quote_if_ambiguous(str(value["name"])) if "name" in value else "", rest)))


def _is_condition(value: Mapping[str, Json]) -> bool:
    return "field" in value and ("choices" in value or "system_condition" in value)


def format_condition(value: Mapping[str, Json]) -> str:
    """`Department is Sales or Engineering`. A declared system condition is shown as spelled, the default one too.

    Otherwise both lines would read the same if it is all that changes.
    """
    choices = value.get("choices")
    named = " or ".join(_choice(str(item)) for item in choices) if isinstance(choices, list) else ""
    system = value.get("system_condition")
    verb = "is" if system is None and named else quote_if_ambiguous(str(system))
    return " ".join(filter(None, (quote_if_ambiguous(str(value["field"])), verb, named)))


def _choice(text: str) -> str:
    return format_value(text) if " or " in text else quote_if_ambiguous(text)


def flatten_keys(value: Json, path: str = "") -> Iterator[tuple[str, Json]]:
    """Yield the leaf keys of a resource with their values; a nested key as a path, `members.include`."""
    if isinstance(value, dict) and value and not _is_condition(value):
        for key, item in value.items():
            yield from flatten_keys(item, f"{path}.{key}" if path else key)
    elif path:
        yield path, value


def count_unmanaged(group: UnmanagedResources) -> str:
    """`12 groups are not managed by any manifest. 3 more are left alone.`"""
    number, alone = len(group.addresses), group.left_alone
    parts = [f"{count_kind(number, group.kind)} {is_or_are(number)} not managed by any manifest."] if number else []
    if alone:
        parts.append(f"{f'{alone:,} more' if number else count_kind(alone, group.kind)} {is_or_are(alone)} left alone.")
    return " ".join(parts)


def is_or_are(number: int) -> str:
    return "is" if number == 1 else "are"


def count_listed_rows(kind: str, listing: Listing[Any]) -> str:
    """`25 groups`, or `24 groups, not all of them: …`."""
    rest = f", not all of them: {listing.incomplete}" if listing.incomplete is not None else ""
    return f"{count_kind(len(listing.rows), kind)}{rest}"
