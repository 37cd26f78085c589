"""What is reported about assignments that declared ones replace."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from lmsconf.errors import Severity, SourceLocation
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.model.declarations import DeleteEntry, DesiredResource

_MESSAGES: Final[Mapping[str, tuple[str, str, str | None]]] = {
    "unknown": (
        "content-target/replaces-unknown",
        "{missing}, so nothing is replaced",
        "Correct the name. If there never was one in this workspace, limit `replaces` by `only_in`.",
    ),
    "same": (
        "content-target/replaces",
        "{content} is the same content under another name, and cannot replace itself",
        "Name the earlier content, or remove `replaces`.",
    ),
    "declared": (
        "content-target/replaced-and-declared",
        "it is {where}, and replaced",
        "See {see}. Remove it there, or the content from `replaces`.",
    ),
    "differs": (
        "content-target/replaces",
        "{content} is replaced by {other}, too, with another `then` or `keep`",
        "See {see}. Write the same in both entries.",
    ),
    "begins later": (
        "content-target/window",
        "it is visible only from {begins}, which is not before its new end",
        "Write `then: remove`, or a later `visible_until`.",
    ),
    "left alone": (
        "identity/left-alone",
        "it is replaced, but `leave_alone` of the project file matches it",
        "Remove the content from `replaces`, or narrow the pattern under `leave_alone`.",
    ),
    "removed in a gap": (
        "content-target/replacement-gap",
        "it would be taken away while {new} is not visible: that is visible only {window}",
        "Write `then: {{visible_until: DATE}}`, a date on which the new one is visible.",
    ),
    "hidden in a gap": (
        "content-target/replacement-gap",
        "it would be taken away while {new} is not visible: that is visible only {window}",
        "Write a `visible_until` under `then` at which the new one is visible.",
    ),
    "waits": (
        "content-target/replacement-waits",
        "it stays, because {new}, which replaces it, is neither live nor in this plan",
        "Plan both to replace it.",
    ),
    # Of a plan made before: what replaces the assignment is no longer live.
    "not there": (
        "content-target/not-replaced",
        "{new}, which replaces it, does not exist",
        "Plan again: the assignment that replaces it is created first.",
    ),
    "cannot keep": (
        "refusal/progress-unknown",
        "who is in progress is not known, so nobody can be kept: {why}",
        "Give the token the right to read results, or remove `keep`.",
    ),
    "progress unknown": ("content-target/in-progress", "how many are in progress is not known: {why}", None),
    "not kept": (
        "content-target/in-progress",
        "{count} in progress and not kept",
        "To let them finish, write `keep: {{in_progress: true, until: DATE}}` beside `replaces`.",
    ),
    "not kept any more": (
        "content-target/in-progress",
        "{count} in progress and not kept: `keep` was until {until}",
        "To let them finish, write a later date under `keep`.",
    ),
    "kept": ("content-target/in-progress", "{count} in progress and kept until {until}", None),
}
"""What is reported → its code, its message after the address, and its hint."""


def report_replacement(
    planning: PlanContext,
    what: str,
    about: DesiredResource[Any] | DeleteEntry[Any],
    *,
    at: SourceLocation | None = None,
    hint: str | None = None,
    severity: Severity = Severity.ERROR,
    of_plan: bool = False,
    **words: object,
) -> None:
    """Report something about an assignment, one of `_MESSAGES`. of_plan: as a problem of the plan as a whole.

    at: where, unless at its source. hint: in place of the usual one. words: for the places in message and hint.
    """
    code, message, usual = _MESSAGES[what]
    planning.problem(
        code,
        f"{about.address}: {message.format(**words)}",
        hint=hint or (usual and usual.format(**words)),
        at=at or about.source,
        address=None if of_plan else about.address,
        severity=severity,
    )


def is_over(planning: PlanContext, until: datetime) -> bool:
    """Return whether the day of a moment is over, in the time zone of the project."""
    return planning.policy.today > until.astimezone(planning.policy.timezone or UTC).date()
