"""What is reported about assignments that declared ones replace."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from lmsconf.errors import Severity, SourceLocation
from lmsconf.kinds.content_target.types import AssignmentSpec, InProgressRow, Replacement, TargetRow
from lmsconf.kinds.shared.times import format_time
from lmsconf.model.address import Address
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.planner.context import PlanContext

_Declared: TypeAlias = DesiredResource[AssignmentSpec]
_SHOWN: Final = 5


def is_over(planning: PlanContext, until: datetime) -> bool:
    """Return whether the day of a moment is over, in the time zone of the project."""
    return planning.policy.today > until.astimezone(planning.policy.timezone or UTC).date()


class ReplacementProblems:
    """Records the problems of replaced assignments in one plan."""

    def __init__(self, planning: PlanContext) -> None:
        self._planning = planning

    def unknown(self, old: _Declared, missing: str, near: str | None, *, is_live: bool) -> None:
        """A replaced content that the catalog lacks: an error until the new assignment exists, then harmless.

        missing: what the catalog lacks, in words. near: a hint at what may be meant.
        """
        message = f"{old.address}: {missing}, so nothing is replaced"
        hint = near or "Correct the name. If there never was one in this workspace, limit `replaces` by `only_in`."
        severity = Severity.NOTE if is_live else Severity.ERROR
        self._report("content-target/replaces-unknown", message, hint, old.source, old.address, severity)

    def same(self, entry: _Declared, one: Replacement) -> None:
        message = f"{entry.address}: {one.content} is the same content under another name, and cannot replace itself"
        self._report(
            "content-target/replaces",
            message,
            "Name the earlier content, or remove `replaces`.",
            entry.places.at(*one.path),
            entry.address,
        )

    def declared(self, old: _Declared, other: DesiredResource[Any] | DeleteEntry[Any]) -> None:
        where = "declared" if isinstance(other, DesiredResource) else "listed under `absent`"
        self._report(
            "content-target/replaced-and-declared",
            f"{old.address}: it is {where}, and replaced",
            f"See {other.source}. Remove it there, or the content from `replaces`.",
            old.source,
            old.address,
        )

    def differs(self, entry: _Declared, one: Replacement, other: _Declared) -> None:
        self._report(
            "content-target/replaces",
            f"{entry.address}: {one.content} is replaced by {other.address}, too, with another `then` or `keep`",
            f"See {other.source}. Write the same in both entries.",
            entry.places.at(*one.path),
            entry.address,
        )

    def twice(self, old: _Declared, rows: Sequence[TargetRow]) -> None:
        ids = ", ".join(sorted(row.id for row in rows))
        hint = "Delete the duplicate in the product, or check the dialect key content-targets.on-existing."
        message = f"{old.address}: it is live {len(rows)} times, as {ids}"
        self._report("identity/live-twice", message, hint, old.source, old.address)

    def begins_later(self, old: _Declared, begins: datetime) -> None:
        self._report(
            "content-target/window",
            f"{old.address}: it is visible only from {self._time(begins)}, which is not before its new end",
            "Write `then: remove`, or a later `visible_until`.",
            old.source,
            old.address,
        )

    def left_alone(self, old: _Declared) -> None:
        self._report(
            "identity/left-alone",
            f"{old.address}: it is replaced, but `leave_alone` of the project file matches it",
            "Remove the content from `replaces`, or narrow the pattern under `leave_alone`.",
            old.source,
            old.address,
        )

    def gap(self, old: _Declared, new: _Declared, *, removes: bool) -> None:
        spec = new.spec
        window = [f"from {self._time(spec.visible_from)}"] if spec.visible_from else []
        window += [f"until {self._time(spec.visible_until)}"] if spec.visible_until else []
        hint = "Write `then: {visible_until: DATE}`, a date on which the new one is visible." if removes else None
        self._report(
            "content-target/replacement-gap",
            f"{old.address}: it would be taken away while {new.address} is not visible: that is visible only "
            f"{' '.join(window)}",
            hint or "Write a `visible_until` under `then` at which the new one is visible.",
            old.source,
            old.address,
        )

    def waits(self, old: _Declared, new: _Declared) -> None:
        self._report(
            "content-target/replacement-waits",
            f"{old.address}: it stays, because {new.address}, which replaces it, is neither live nor in this plan",
            "Plan both to replace it.",
            old.source,
            None,
            Severity.NOTE,
        )

    def not_there(self, entry: _Declared | DeleteEntry[Any], new: Address) -> None:
        """Of a plan made before: what replaces the assignment is no longer live."""
        message = f"{entry.address}: {new}, which replaces it, does not exist"
        hint = "Plan again: the assignment that replaces it is created first."
        self._report("content-target/not-replaced", message, hint, entry.source, entry.address)

    def number_in_progress(
        self, old: _Declared, found: InProgressRow | None, until: datetime | None, people: Sequence[str]
    ) -> None:
        """Report how many are in progress on a content that is taken from its audience, and what becomes of them."""
        if found is None:
            # Not looked at: for a drift report, or with a snapshot file.
            return
        if found.unknown is not None:
            message = f"{old.address}: how many are in progress is not known: {found.unknown}"
            self._report("content-target/in-progress", message, None, old.source, None, Severity.WARNING)
            return
        if not people:
            return
        count = f"{len(people):,} {'person is' if len(people) == 1 else 'people are'} in progress"
        if until is None:
            hint = "To let them finish, write `keep: {in_progress: true, until: DATE}` beside `replaces`."
            message, severity = f"{count} and not kept", Severity.WARNING
        elif is_over(self._planning, until):
            message, severity = f"{count} and not kept: `keep` was until {self._time(until)}", Severity.WARNING
            hint = "To let them finish, write a later date under `keep`."
        else:
            message, severity, hint = f"{count} and kept until {self._time(until)}", Severity.NOTE, None
        self._report("content-target/in-progress", f"{old.address}: {message}", hint, old.source, None, severity)

    def cannot_keep(self, old: _Declared, why: str | None) -> None:
        reason = "a snapshot file and a drift report do not hold it" if why is None else why
        self._report(
            "refusal/progress-unknown",
            f"{old.address}: who is in progress is not known, so nobody can be kept: {reason}",
            "Give the token the right to read results, or remove `keep`.",
            old.source,
            old.address,
        )

    def others(self, entry: _Declared, one: Replacement, audiences: Sequence[Address]) -> None:
        shown = ", ".join(map(str, audiences[:_SHOWN]))
        more = len(audiences) - _SHOWN
        self._report(
            "content-target/replaces-others",
            f"{one.content} stays assigned to {shown}{f' and {more} more' if more > 0 else ''}: "
            f"this entry does not assign {entry.spec.content} to them",
            None,
            entry.places.at(*one.path),
            None,
            Severity.NOTE,
        )

    def _time(self, moment: datetime) -> str:
        return format_time(moment, self._planning.policy.timezone)

    def _report(
        self,
        code: str,
        message: str,
        hint: str | None,
        at: SourceLocation,
        address: Address | None,
        severity: Severity = Severity.ERROR,
    ) -> None:
        self._planning.problem(code, message, hint=hint, at=at, address=address, severity=severity)
