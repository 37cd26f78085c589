"""Components of the text format: a page of blocks, and the block of one resource."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from lmsconf.errors import Problem
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Action, Change, FieldChange
from lmsconf.render import phrases
from lmsconf.render.color import paint
from lmsconf.render.escape import safe

SHOWN_ADDRESSES = 10
"""Maximum number of listed resources that the plan does not change; changed resources are all listed."""


def page(blocks: Iterable[Iterable[str]], color: bool) -> str:
    """Join blocks of lines with empty lines between; empty blocks are dropped."""
    text = "\n\n".join(filter(None, ("\n".join(block) for block in blocks))) + "\n"
    return paint(text) if color else text


def listed(addresses: Sequence[Address]) -> Iterator[str]:
    """Yield the first SHOWN_ADDRESSES unchanged resources, and the count of the rest."""
    yield from (f"    {safe(phrases.title(address))}" for address in addresses[:SHOWN_ADDRESSES])
    hidden = len(addresses) - SHOWN_ADDRESSES
    if hidden > 0:
        yield f"    … and {hidden:,} more"


def change_lines(change: Change) -> Iterator[str]:
    """Yield the block of one change."""
    sign = phrases.SIGNS[change.action]
    yield safe(f"  {sign} {phrases.title(change.address)} {phrases.WILL_BE[change.action]}")
    if change.source is not None:
        yield safe(f"      {change.source}")
    if change.reason is not None:
        yield safe(f"      {change.reason}")
    if change.origin is not None:
        yield f"      {change.origin.value}"
    yield from (safe(f"      about {line}") for line in phrases.about(change))
    if (undo := phrases.undo(change)) is not None:
        yield safe(f"      {undo}")
    yield from _details(change)
    for problem in change.problems:
        yield from problem_lines(problem, indent="      ", inside=change.address)


def problem_lines(problem: Problem, *, indent: str = "", inside: Address | None = None) -> Iterator[str]:
    """Yield a problem and, on lines of its own, its hint."""
    yield indent + safe(phrases.problem(problem, inside=inside))
    yield from paragraph(problem.hint, indent=f"{indent}  ")


def paragraph(text: str | None, *, indent: str = "  ") -> Iterator[str]:
    """Yield the lines of a text that may have several, such as a hint with a corrected manifest line."""
    # Split at \n only: other line separators can only come from names.
    yield from (indent + safe(line) for line in (text or "").split("\n") if line.strip())


def _details(change: Change) -> Iterator[str]:
    if change.action is Action.CREATE:
        yield from _whole(change.address, change.after, "+")
        yield from (safe(f"      + {key}: {phrases.SERVICE_DEFAULT}") for key in change.defaults)
    elif change.action is Action.DELETE:
        yield from _whole(change.address, change.before, "-")
    else:
        for field in change.fields:
            yield from _field(field)


def _whole(address: Address, form: Json, sign: str) -> Iterator[str]:
    """Yield the set keys of a created or deleted resource that its title does not contain."""
    titled = phrases.title_keys(address)
    for path, value in phrases.leaves(form):
        if value is None or path.partition(".")[0] in titled:
            continue
        if isinstance(value, list) and value:
            yield safe(f"      {sign} {path}:")
            yield from item_lines(value, sign)
        else:
            yield safe(f"      {sign} {path}: {phrases.quoted(value)}")


def _field(field: FieldChange) -> Iterator[str]:
    if field.added or field.removed:
        yield safe(f"      ~ {field.path}: {phrases.set_counts(field)}")
        yield from item_lines(field.added, "+")
        yield from item_lines(field.removed, "-")
    else:
        yield safe(f"      ~ {field.path}: {phrases.quoted(field.before)} → {phrases.quoted(field.after)}")


def item_lines(items: Sequence[Json], sign: str) -> Iterator[str]:
    """Yield all items of a list, untruncated: who approves a plan must have seen every person it removes."""
    return (f"          {sign} {safe(phrases.words(item))}" for item in items)
