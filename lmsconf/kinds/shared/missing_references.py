"""References to resources that are ambiguous, renamed, deleted or not live."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from lmsconf.errors import SourceLocation
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.model.address import Address, shell_quoted
from lmsconf.model.names import did_you_mean, quote_name

MOST_COMPARED: Final = 50
"""Names are suggested for this many unknown ones only: to compare many with many takes long."""


def report_ambiguous_reference(
    planning: PlanContext, named: Address, by: Address, find_source: Callable[[], SourceLocation]
) -> bool:
    """Whether a referenced resource is ambiguous or has an error of its own.

    Records a problem, unless the resource's own error is reported anyway. find_source: only called for a problem.
    """
    doubtful = named in planning.doubtful
    if (ids := planning.registry.duplicate_ids(named.kind, named.name)) and not doubtful:
        planning.problem(
            "identity/live-twice",
            f'{by}: "{named.name}" is live more than once, with the ids {", ".join(sorted(ids))}',
            hint="Declare the right one, with its `id:`.",
            at=find_source(),
            address=by,
        )
        return True
    if not doubtful:
        return False
    if not planning.chosen(named):
        planning.problem(
            "reference/in-doubt",
            f"{by}: it names {named}, and it is not yet known what of it is live",
            hint=f"Plan {shell_quoted(named)} too to see its error.",
            at=find_source(),
            address=by,
        )
    return True


def why_name_is_missing(planning: PlanContext, named: Address, near: str | None) -> tuple[str, str | None]:
    """Return why a referenced name will not exist (renamed, deleted, not live), and a hint. near: names a close one."""
    new = planning.renamed.get(named)
    if new is not None:
        return f"{named} is being renamed to {new}", f"Write the new name: {quote_name(new.name)}."
    if named in planning.deleted:
        return (
            f"{named} will be deleted by this plan",
            "Remove the references to it. To keep it, declare it, and remove it from `absent`.",
        )
    otherwise = "Correct the name, or declare it."
    return f"{named} is neither declared nor live", hint_on_missing(planning, named.kind, near, otherwise)


def suggest_name(
    planning: PlanContext,
    name: str,
    known: Iterable[str],
    compare: Callable[[str, Iterable[str]], str | None] = did_you_mean,
) -> str | None:
    """Return the hint of `compare` for one of the first unknown names of a plan; None for the others.

    Comparing thousands of unknown names with thousands of known ones takes minutes.
    """
    planning.unknown_names += 1
    return compare(name, known) if planning.unknown_names <= MOST_COMPARED else None


def hint_on_missing(planning: PlanContext, kind: str, near: str | None, otherwise: str) -> str:
    """Return the hint for a name that is not live: that the listing is incomplete, or `near`, or else `otherwise`."""
    why = planning.snapshot.of(kind).incomplete
    if why is None:
        return near or otherwise
    return f"It may exist, because the list was not read completely: {why}"
