"""Components of the text format: a page of blocks, and the block of one resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lmsconf.errors import Problem
from lmsconf.kinds.shared.kind_names import resource_title, title_keys
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Action, Change, FieldChange
from lmsconf.render.color import colorize
from lmsconf.render.escape import escape_terminal
from lmsconf.render.plan_wording import (
    ACTION_SIGNS,
    ACTION_WORDS,
    annotation_lines,
    count_list_changes,
    describe_undo_limit,
    format_problem,
)
from lmsconf.render.resource_wording import SERVICE_DEFAULT, flatten_keys, format_item, format_value

SHOWN_ADDRESSES = 10
"""Maximum number of listed resources that the plan does not change; changed resources are all listed."""


def join_blocks(blocks: Iterable[Iterable[str]], color: bool) -> str:
    """Join blocks of lines with empty lines between; empty blocks are dropped."""
    text = "\n\n".join(filter(None, ("\n".join(block) for block in blocks))) + "\n"
    return colorize(text) if color else text


def unchanged_lines(addresses: Sequence[Address]) -> Iterator[str]:
    """Yield the first SHOWN_ADDRESSES unchanged resources, and the count of the rest."""
    yield from (f"    {escape_terminal(resource_title(address))}" for address in addresses[:SHOWN_ADDRESSES])
    hidden = len(addresses) - SHOWN_ADDRESSES
    if hidden > 0:
        yield f"    … and {hidden:,} more"


def change_lines(change: Change) -> Iterator[str]:
    """Yield the block of one change."""
    sign = ACTION_SIGNS[change.action]
    yield escape_terminal(f"  {sign} {resource_title(change.address)} {ACTION_WORDS[change.action]}")
    if change.source is not None:
        yield escape_terminal(f"      {change.source}")
    if change.reason is not None:
        yield escape_terminal(f"      {change.reason}")
    if change.origin is not None:
        yield f"      {change.origin.value}"
    yield from (escape_terminal(f"      about {line}") for line in annotation_lines(change))
    if (undo := describe_undo_limit(change)) is not None:
        yield escape_terminal(f"      {undo}")
    yield from _details(change)
    for problem in change.problems:
        yield from problem_lines(problem, indent="      ", block_address=change.address)


def problem_lines(problem: Problem, *, indent: str = "", block_address: Address | None = None) -> Iterator[str]:
    """Yield a problem and, on lines of its own, its hint."""
    yield indent + escape_terminal(format_problem(problem, block_address=block_address))
    yield from indent_lines(problem.hint, indent=f"{indent}  ")


def indent_lines(text: str | None, *, indent: str = "  ") -> Iterator[str]:
    """Yield the lines of a text that may have several, such as a hint with a corrected manifest line."""
    # Split at \n only: other line separators can only come from names.
    yield from (indent + escape_terminal(line) for line in (text or "").split("\n") if line.strip())


def _details(change: Change) -> Iterator[str]:
    if change.action is Action.CREATE:
        yield from _whole(change.address, change.after, "+")
        yield from (escape_terminal(f"      + {key}: {SERVICE_DEFAULT}") for key in change.defaults)
    elif change.action is Action.DELETE:
        yield from _whole(change.address, change.before, "-")
    else:
        for field in change.fields:
            yield from _field(field)


def _whole(address: Address, form: Json, sign: str) -> Iterator[str]:
    """Yield the set keys of a created or deleted resource that its title does not contain."""
    titled = title_keys(address)
    for path, value in flatten_keys(form):
        if value is None or path.partition(".")[0] in titled:
            continue
        if isinstance(value, list) and value:
            yield escape_terminal(f"      {sign} {path}:")
            yield from item_lines(value, sign)
        else:
            yield escape_terminal(f"      {sign} {path}: {format_value(value)}")


def _field(field: FieldChange) -> Iterator[str]:
    if field.added or field.removed:
        yield escape_terminal(f"      ~ {field.path}: {count_list_changes(field)}")
        yield from item_lines(field.added, "+")
        yield from item_lines(field.removed, "-")
    else:
        yield escape_terminal(f"      ~ {field.path}: {format_value(field.before)} → {format_value(field.after)}")


def item_lines(items: Sequence[Json], sign: str) -> Iterator[str]:
    """Yield all items of a list, untruncated: who approves a plan must have seen every person it removes."""
    return (f"          {sign} {escape_terminal(format_item(item))}" for item in items)
