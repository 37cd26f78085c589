"""Kinds, resources, values and changes in an administrator's terms, for all formats. Results are not escaped.

count_kind, count_kinds  numbers of things
format_value             values, list items and conditions
RISKS, group_by_risk     changes: deleted, replaced, items removed, changed, created
KeyChange, key_changes   one key of a change in words: values added and removed
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple, TypeVar

from msgspec import Struct

from lmsconf.errors import Problem, Severity
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import title_keys
from lmsconf.model.calls import RunProgress
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import count_noun, first_lines, grouped, quote_if_ambiguous
from lmsconf.model.plan import Action, Change, FieldChange, Plan, UnmanagedResources
from lmsconf.model.problem_codes import allowances
from lmsconf.model.snapshot import Listing

Value = TypeVar("Value")
_NOUNS: Final = {
    **{listing: nouns for kind in KINDS.values() for listing, nouns in kind.listing_nouns.items()},
    **{kind.name: (kind.noun, kind.plural) for kind in KINDS.values()},
}
"""Kind or listing → its display names, singular and plural."""
NO_VALUE = "(none)"
MAX_SHOWN_ITEMS = 20
"""The number of list items shown at first. HTML folds the others; a comment or message of limited size counts them.
The text format lists all."""
MOST_ROWS: Final = 2_000
"""How many rows a page shows."""


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


def kind_nouns(kind: str) -> tuple[str, str]:
    """Return the display names of a kind or listing, singular and plural. A file may name a kind of a later version."""
    words = kind.replace("_", " ")
    return _NOUNS.get(kind, (words, f"{words}s"))


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
    if not isinstance(value, dict) or _is_condition(value):
        return format_value(value)
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
    one, many = kind_nouns(group.kind)
    parts = [f"{count_noun(number, f'{one} is', f'{many} are')} not managed by any manifest."] if number else []
    if alone:
        nouns = ("more is", "more are") if number else (f"{one} is", f"{many} are")
        parts.append(f"{count_noun(alone, *nouns)} left alone.")
    return " ".join(parts)


def count_listed_rows(kind: str, listing: Listing[Any]) -> str:
    """`25 groups`, or `24 groups, not all of them: …`."""
    rest = f", not all of them: {listing.incomplete}" if listing.incomplete is not None else ""
    return f"{count_kind(len(listing.rows), kind)}{rest}"


RISKS: Final[Mapping[Action | str, str]] = {
    Action.DELETE: "Deleted",
    Action.REPLACE: "Replaced",
    "taken": "Taken away",
    Action.UPDATE: "Changed",
    Action.CREATE: "Created",
}
"""The risk of a change, the highest first → the heading of a section of such changes. `taken`: items of lists are."""
SAFE: Final = (Action.UPDATE, Action.CREATE)
"""The risks of changes that delete and remove nothing."""


def count_removed_items(change: Change) -> int:
    """Return the number of items removed from lists of an updated resource; 0 for other actions."""
    return sum(len(field.removed) for field in change.fields) if change.action is Action.UPDATE else 0


def group_by_risk(changes: Iterable[Change]) -> Mapping[Action | str, Sequence[Change]]:
    """Group changes by risk, riskiest first, each group in the plan's order; empty groups are left out."""
    groups = grouped(changes, lambda change: "taken" if count_removed_items(change) else change.action)
    return {risk: groups[risk] for risk in RISKS if risk in groups}


class KeyChange(Struct, frozen=True):
    """One key of a change in words.

    removed, added: values before and after, or items of a list; a scalar has at most one each. note: the counts of
    items, or a remark, shown beside the key. is_list: whether they are items of a list.
    """

    path: str
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    note: str = ""
    is_list: bool = False


def key_changes(change: Change) -> Iterator[KeyChange]:
    """Yield the changed keys of an update; else all that the title lacks, of a deletion only those not empty."""
    is_kept = change.action is not Action.DELETE
    return (key for key in every_key_change(change) if is_kept or key.removed != (NO_VALUE,))


def every_key_change(change: Change) -> Iterator[KeyChange]:
    """Yield the same, with the empty values of a deleted resource."""
    match change.action:
        case Action.CREATE:
            yield from (KeyChange(key, added=words, is_list=many) for key, words, many in _whole(change, change.after))
            yield from (KeyChange(key, note="(service default)") for key in change.defaults)
        case Action.DELETE:
            yield from (KeyChange(key, words, is_list=many) for key, words, many in _whole(change, change.before))
        case _:
            yield from (key_change(one, (one.added, "added"), (one.removed, "removed")) for one in change.fields)


def _whole(change: Change, form: Json) -> Iterator[tuple[str, tuple[str, ...], bool]]:
    """Yield path, words, and whether these are the items of a list, of each key that the title does not contain."""
    titled = title_keys(change.address)
    for path, value in flatten_keys(form):
        if value is not None and path.partition(".")[0] not in titled:
            items = tuple(map(format_item, value)) if isinstance(value, list) else ()
            yield path, items or (format_value(value),), bool(items)


def key_change(one: FieldChange, *counted: tuple[Sequence[object], str]) -> KeyChange:
    """Return a key with its two values, or of a list with the items of either side. counted: items, and their words."""
    if not (one.removed or one.added):
        return KeyChange(one.path, (format_value(one.before),), (format_value(one.after),))
    removed, added = (tuple(map(format_item, items)) for items in (one.removed, one.added))
    return KeyChange(one.path, removed, added, counted_items(*counted), is_list=True)


def counted_items(*parts: tuple[Sequence[object], str]) -> str:
    """`2 added, 1 removed`: counts of all items, however many a view lists."""
    return ", ".join(f"{len(items):,} {what}" for items, what in parts if items)


def changed_keys(change: Change) -> Iterator[KeyChange]:
    """Yield the keys that an update or a replacement changes; none for a creation or deletion."""
    return key_changes(change) if change.action in (Action.UPDATE, Action.REPLACE) else iter(())


def diff_lines(keys: Iterable[KeyChange], most: int | None) -> Iterator[str]:
    """Yield the lines of a diff, key by key. most: how many items of a list are shown; None: all."""
    for key in keys:
        sides = (("-", key.removed), ("+", key.added))
        if not key.note and len(key.removed) <= 1 and len(key.added) <= 1:
            lines = [f"{sign} {key.path}: {item}" for sign, items in sides for item in items]
        else:
            signs = " " if key.removed and key.added else "-" if key.removed else "+"
            lines = [f"{signs} {key.path}:{f' {key.note}' if key.note else ''}"]
            for sign, items in sides:
                shown = items if most is None else first_lines(items, most)
                lines += [f"{sign}   {item}" for item in shown]
        # A line break in a name would end the line.
        yield from (line.replace("\n", "\\n") for line in lines)


def count_items(keys: Iterable[KeyChange]) -> tuple[int, int]:
    """Return how many items keys add to lists, and how many they remove from them."""
    lists = [key for key in keys if key.note]
    return sum(len(key.added) for key in lists), sum(len(key.removed) for key in lists)


class RowGroup(NamedTuple):
    """Rows under a heading, each a value with its number. about: what they have in common."""

    about: Any
    heading: str
    rows: Sequence[tuple[int, Any]]


def numbered_groups(
    values: Sequence[Value], state: str, titles: Mapping[Any, str], counted: Callable[[Sequence[Value]], str]
) -> Iterator[RowGroup]:
    """Group values by a state, which the group is about, in the order of its titles.

    state: the attribute that is the state. counted: a group in words. Empty groups are left out.
    """
    by_state = grouped(enumerate(values, 1), lambda row: getattr(row[1], state))
    return (
        RowGroup(one, f"{title.capitalize()}: {counted([value for _, value in by_state[one]])}", by_state[one])
        for one, title in titles.items()
        if one in by_state
    )


def first_rows(groups: Sequence[RowGroup]) -> Sequence[RowGroup]:
    """Return groups with the first of all their rows, as many as a page shows."""
    above = accumulate((len(group.rows) for group in groups), initial=0)
    return [
        group._replace(rows=group.rows[: MOST_ROWS - number])
        for group, number in zip(groups, above, strict=False)
        if number < MOST_ROWS
    ]


def risk_heading(risk: Action | str, changes: Sequence[Change]) -> str:
    """`Taken away: 2 items from 1 group`."""
    items = f"{count_noun(sum(map(count_removed_items, changes)), 'item')} from " if risk == "taken" else ""
    return f"{RISKS[risk]}: {items}{count_kinds(change.address.kind for change in changes)}"


def count_kinds(kinds: Iterable[str]) -> str:
    """`3 assignments, 1 group`: resources by the kind of each, in the order of first appearance."""
    return ", ".join(count_kind(number, kind) for kind, number in Counter(kinds).items())


def count_actions(changes: Iterable[Change]) -> tuple[Counter[str], Mapping[str, Counter[str]]]:
    """Return in which way how many resources are changed, and kind → the same; `taken` are removed items of lists."""
    by_kind = {
        kind: Counter(change.action.value for change in alike) + Counter(taken=sum(map(count_removed_items, alike)))
        for kind, alike in grouped(changes, lambda change: change.address.kind).items()
    }
    return sum(by_kind.values(), Counter[str]()), by_kind


def sort_by_severity(problems: Sequence[Problem]) -> Sequence[Problem]:
    """Sort problems: errors, warnings, notes."""
    return [problem for severity in Severity for problem in problems if problem.severity is severity]


def apply_command(plan: Plan, digest: str) -> str | None:
    """Return the command that applies exactly this plan.

    None for a plan that is empty, offline, or has errors, and for one that needs its file: partial, or additive with
    changes left out.
    """
    refused = any(problem.is_error for problem in plan.all_problems)
    if not plan.changes or plan.offline or plan.partial or plan.left_out or refused:
        return None
    return " ".join([plan.command, f"--expect-digest {digest}", *allowances(plan.guards)])
