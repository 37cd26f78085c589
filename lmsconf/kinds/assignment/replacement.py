"""What becomes of the assignments that declared ones replace, and who keeps the old content for a while.

A declared assignment with `replaces` changes the live assignment of the old content to the same audience, once, after
the new one is seen to exist. Nothing about it is stored: an assignment of the old content to a person whose window ends
exactly when `keep` says counts as made for it, is left alone until that day, and is deleted after it.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, time
from typing import Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import Severity
from lmsconf.kinds.assignment.steps import parse_live_window
from lmsconf.kinds.assignment.target_ids import AssignmentEntry, Identity, LiveAssignments, report_live_twice
from lmsconf.kinds.assignment.types import (
    AssignmentSpec,
    InProgressRow,
    Replacement,
    TargetRow,
    assignment_address,
    readable_time,
)
from lmsconf.kinds.shared.kind_names import CONTENT, USER
from lmsconf.kinds.shared.manifest_entry import format_time
from lmsconf.kinds.shared.plan_context import Deletion, Match, MatchResult, PlanContext
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.declarations import DeleteEntry, DesiredResource, FixedSource
from lmsconf.model.names import count_noun, matches_patterns

_SHOWN: Final = 5
_IN_PROGRESS: Final = {
    "unknown": ("how many are in progress is not known: {why}", None),
    "kept": ("{count} in progress and kept until {until}", None),
    "not kept": (
        "{count} in progress and not kept",
        "To let them finish, write `keep: {in_progress: true, until: DATE}` beside `replaces`.",
    ),
    "over": (
        "{count} in progress and not kept: `keep` was until {until}",
        "To let them finish, write a later date under `keep`.",
    ),
}
"""What becomes of the people in progress on a content that is taken away → the message, and a hint."""
_Declared: TypeAlias = DesiredResource[AssignmentSpec]


class _Replaced(Struct, kw_only=True):
    """A live assignment that declared ones replace.

    old: the declaration that it is given. how: what the first entry in `by` says.
    """

    old: _Declared
    row: TargetRow
    how: Replacement
    by: list[_Declared] = field(default_factory=list)


def report_without_replacement(
    planning: PlanContext,
    entries: Iterable[AssignmentEntry],
    live: Iterable[Identity],
    ready: Iterable[_Declared],
) -> None:
    """Report an assignment of a plan made before whose replacement is neither live nor in that plan.

    ready: the assignments in it.
    """
    replaced = [(entry, new) for entry in entries for new in entry.spec.replaced_by]
    names = ((planning.registry.name(CONTENT, id or ""), to) for id, to in (live if replaced else ()))
    there = {*(assignment_address(name, to) for name, to in names if name), *(entry.address for entry in ready)}
    for entry, new in replaced:
        if new not in there:
            planning.report(
                entry,
                "content-target/not-replaced",
                f"{new}, which replaces it, does not exist",
                "Plan again: the assignment that replaces it is created first.",
            )


def _finish(row: TargetRow) -> datetime | None:
    """Return when the window of a live target ends; None if it does not, or if that cannot be read."""
    finish = readable_time(row.finish)
    return finish if isinstance(finish, datetime) else None


def plan_replacements(
    planning: PlanContext,
    known: LiveAssignments,
    declared: Iterable[_Declared],
    out: MatchResult[AssignmentSpec, TargetRow],
) -> AbstractSet[Identity]:
    """Plan what the declared assignments replace, and who keeps it.

    Return the identities of entries, and of all that is replaced or kept.
    """
    planner = _ReplacementPlanner(planning, known, out, set(known.entry_of))
    for entry in declared:
        for one in entry.spec.replaces:
            planner.find(entry, one)
    for replaced in planner.found.values():
        planner.plan(replaced)
    planner.note_other_audiences()
    planner.leave_kept()
    return planner.settled


class _ReplacementPlanner(Struct):
    """Decides what becomes of the live assignments that declared ones replace, and adds it to `out`.

    kept: the assignments by which people keep a content. kept_until: content and the moment at which the windows end of
    those who keep it → what says so.
    """

    planning: PlanContext
    known: LiveAssignments
    out: MatchResult[AssignmentSpec, TargetRow]
    settled: set[Identity]
    found: dict[Identity, _Replaced] = field(default_factory=dict)
    kept: dict[Identity, Match[AssignmentSpec, TargetRow]] = field(default_factory=dict)
    kept_until: dict[tuple[RemoteId | None, datetime | None], tuple[_Declared, Replacement]] = field(
        default_factory=dict
    )

    def find(self, entry: _Declared, one: Replacement) -> None:
        """Find the live assignment that an entry replaces, if there is one; report what rules that out."""
        planning, known, old = self.planning, self.known, _old(entry, one)
        new = known.identity(entry)
        if missing := known.missing(old.spec):
            planning.report(
                old,
                "content-target/replaces-unknown",
                f"{missing[0]}, so nothing is replaced",
                missing[1]
                or "Correct the name. If there never was one in this workspace, limit `replaces` by `only_in`.",
                # Harmless once the new assignment exists.
                Severity.NOTE if known.live.get(new) else Severity.ERROR,
            )
            return
        content = known.find_id(old)
        if content is None:
            return
        if one.keep_until is not None:
            self.kept_until.setdefault((content, one.keep_until), (entry, one))
        key = content, entry.spec.audience
        other, rows = known.entry_of.get(key), known.live.get(key, ())
        if content == new[0]:
            planning.report(
                entry,
                "content-target/replaces",
                f"{one.content} is the same content under another name, and cannot replace itself",
                "Name the earlier content, or remove `replaces`.",
                at=entry.places.at(*one.path),
            )
        elif other is not None:
            where = "declared" if isinstance(other, DesiredResource) else "listed under `absent`"
            planning.report(
                old,
                "content-target/replaced-and-declared",
                f"it is {where}, and replaced",
                f"See {other.source}. Remove it there, or the content from `replaces`.",
            )
        elif len(rows) > 1:
            report_live_twice(planning, old, rows)
        elif rows:
            self._replace(key, rows[0], old, entry, one)

    def _replace(self, key: Identity, row: TargetRow, old: _Declared, entry: _Declared, one: Replacement) -> None:
        """Record that an entry replaces a live assignment, unless somebody keeps the content until the date by it."""
        self.settled.add(key)
        until = one.keep_until if key[1].kind == USER else None
        if until is not None and _finish(row) == until and not _is_over(self.planning, until):
            return
        replaced = self.found.setdefault(key, _Replaced(old=old, row=row, how=one))
        if _terms(replaced.how) != _terms(one):
            other = replaced.by[0]
            self.planning.report(
                entry,
                "content-target/replaces",
                f"{one.content} is replaced by {other.address}, too, with another `then` or `keep`",
                f"See {other.source}. Write the same in both entries.",
                at=entry.places.at(*one.path),
            )
        replaced.by.append(entry)

    def plan(self, replaced: _Replaced) -> None:
        """Plan what becomes of one live assignment."""
        how = replaced.how
        change = self._change(replaced, how)
        if change is None or not self._is_covered(replaced) or self._is_refused(replaced):
            return
        if not how.becomes_optional and not self.planning.policy.additive:
            self.planning.closing.append(replaced.row)
            people = self._who_keep(replaced)
            if people and replaced.old.spec.audience.kind == USER:
                # Their own assignment is the one that is replaced: it stays until the date.
                change = self._change(replaced, replace(how, closes=how.keep_until))
            elif how.keep_until is not None:
                kept = (self._keep(replaced, person, how.keep_until) for person in people)
                change = self._change(replaced, how, frozenset(filter(None, kept)))
        if isinstance(change, Match):
            self.out.matches.append(change)
        elif change is not None:
            self.out.deletions.append(change)

    def _change(
        self, replaced: _Replaced, how: Replacement, kept: frozenset[Address] = frozenset()
    ) -> Match[AssignmentSpec, TargetRow] | Deletion[TargetRow] | None:
        """Return the change of an assignment; None if it is as it is to become.

        kept: the assignments by which people keep the content, which it follows.
        """
        old, row, by = replaced.old, replaced.row, tuple(sorted(new.address for new in replaced.by))
        reason = f"it is replaced by {', '.join(map(str, by))}"
        spec = replace(old.spec, replaced_by=by, after=kept.union(by))
        if not how.becomes_optional and how.closes is None:
            return Deletion(
                address=old.address,
                row=row,
                absent=DeleteEntry(address=old.address, spec=spec, places=old.places),
                reason=reason,
                replaced_by=by,
            )
        is_optional = how.becomes_optional and not row.mandatory
        window = None if is_optional else parse_live_window(self.planning, row, old)
        if window is None:
            return None
        start, finish = window
        if how.closes is not None and finish is not None and finish <= how.closes:
            return None
        if how.closes is not None and start is not None and start >= how.closes:
            begins = format_time(start, self.planning.policy.timezone)
            self.planning.report(
                old,
                "content-target/window",
                f"it is visible only from {begins}, which is not before its new end",
                "Write `then: remove`, or a later `visible_until`.",
            )
            return None
        spec = replace(
            spec,
            mandatory=row.mandatory and not how.becomes_optional,
            visible_from=start,
            visible_until=how.closes or finish,
        )
        return Match(declared=replace(old, spec=spec, reason=reason), row=row, replaced_by=by)

    def _is_covered(self, replaced: _Replaced) -> bool:
        """Whether the plan covers a replaced assignment, and all that replaces it is live or in the plan."""
        chosen, identity = self.planning.chosen, self.known.identity
        if not chosen(replaced.old.address):
            return False
        missing = [new for new in replaced.by if not chosen(new.address) and not self.known.live.get(identity(new))]
        for new in missing[:1]:
            self.planning.problem(
                "content-target/replacement-waits",
                f"{replaced.old.address}: it stays, because {new.address}, which replaces it, is neither live "
                "nor in this plan",
                hint="Plan both to replace it.",
                at=replaced.old.source,
                severity=Severity.NOTE,
            )
        return not missing

    def _is_refused(self, replaced: _Replaced) -> bool:
        """Whether the project leaves a replaced assignment alone, or somebody would be without either content."""
        policy, old, closes = self.planning.policy, replaced.old, replaced.how.closes
        if matches_patterns(str(old.address), policy.leave_alone):
            self.planning.report(
                old,
                "identity/left-alone",
                "it is replaced, but `leave_alone` of the project file matches it",
                "Remove the content from `replaces`, or narrow the pattern under `leave_alone`.",
            )
            return True
        today = datetime.combine(policy.today, time(), policy.timezone or UTC)
        without = [] if replaced.how.becomes_optional else replaced.by
        gaps = [new for new in without if not _has_by(new.spec, max(today, closes or today))]
        for new in gaps:
            sides = {"from": new.spec.visible_from, "until": new.spec.visible_until}
            window = " ".join(f"{word} {format_time(side, policy.timezone)}" for word, side in sides.items() if side)
            self.planning.report(
                old,
                "content-target/replacement-gap",
                f"it would be taken away while {new.address} is not visible: that is visible only {window}",
                "Write `then: {visible_until: DATE}`, a date on which the new one is visible."
                if closes is None
                else "Write a `visible_until` under `then` at which the new one is visible.",
            )
        return bool(gaps)

    def _who_keep(self, replaced: _Replaced) -> list[str]:
        """Return who is in progress and keeps the content; report how many are, or that it is not known."""
        old, until = replaced.old, replaced.how.keep_until
        found = next((one for one in self.planning.snapshot.rows(InProgressRow) if one.id == replaced.row.id), None)
        keeps = until is not None and not _is_over(self.planning, until)
        unknown = "a snapshot file and a drift report do not hold it" if found is None else found.unknown
        if keeps and unknown is not None:
            self.planning.report(
                old,
                "refusal/progress-unknown",
                f"who is in progress is not known, so nobody can be kept: {unknown}",
                "Give the token the right to read results, or remove `keep`.",
            )
        if found is None or (keeps and unknown is not None):
            return []
        people = self.planning.people
        active = sorted({people.emails[id] for id in found.people if id in people.emails} - people.archived)
        what = "kept" if keeps else "not kept" if until is None else "over"
        message, hint = _IN_PROGRESS[what if unknown is None else "unknown"]
        if active or unknown is not None:
            told = message.format(
                why=unknown,
                count=count_noun(len(active), "person is", "people are"),
                until=until and format_time(until, self.planning.policy.timezone),
            )
            self.planning.problem(
                "content-target/in-progress",
                f"{old.address}: {told}",
                hint=hint,
                at=old.source,
                severity=Severity.NOTE if keeps else Severity.WARNING,
            )
        return active if keeps else []

    def _keep(self, replaced: _Replaced, person: str, until: datetime) -> Address | None:
        """Plan the assignment by which somebody keeps the content; None if they have it as long already."""
        old, to = replaced.old, Address.of(USER, person)
        key = self.known.find_id(old), to
        if key in self.known.entry_of:
            return None
        row = next(iter(self.known.live.get(key, ())), None)
        self.settled.add(key)
        if row is not None and (_finish(row) or until) >= until:
            return None
        if key not in self.kept:
            start = None if row is None else (parse_live_window(self.planning, row, old) or (None, None))[0]
            declared = DesiredResource(
                address=assignment_address(old.spec.content, to),
                spec=AssignmentSpec(
                    old.spec.content, to, (row or replaced.row).mandatory, start, until, old.spec.content_pins
                ),
                places=FixedSource(replaced.by[0].places.at("keep")),
                about=replaced.by[0].about,
                reason=f"in progress on {old.spec.content}, which is replaced",
            )
            self.kept[key] = Match(declared=declared, row=row, along=old.address)
            self.out.matches.append(self.kept[key])
        return self.kept[key].address

    def note_other_audiences(self) -> None:
        """Note the other live assignments of a content that this plan takes from an audience."""
        closing = {one.row.content: one for one in self.found.values() if one.row in self.planning.closing}
        for content, replaced in closing.items():
            entry, one = replaced.by[0], replaced.how
            others = sorted(
                key[1]
                for key, rows in self.known.live.items()
                if key[0] == content and key not in self.settled
                if not any(self._kept_by(key, row) for row in rows)
            )
            more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
            if others:
                self.planning.problem(
                    "content-target/replaces-others",
                    f"{one.content} stays assigned to {', '.join(others[:_SHOWN])}{more}: this entry does not assign "
                    f"{entry.spec.content} to them",
                    at=entry.places.at(*one.path),
                    severity=Severity.NOTE,
                )

    def _kept_by(self, key: Identity, row: TargetRow) -> tuple[_Declared, Replacement] | None:
        """Return the entry that says until when somebody keeps a replaced content through a live assignment."""
        return self.kept_until.get((key[0], _finish(row))) if key[1].kind == USER else None

    def leave_kept(self) -> None:
        """Leave alone the assignments by which people keep a content; delete them once the day is over."""
        contents = {content for content, _ in self.kept_until}
        for key, rows in self.known.live.items():
            for row in rows if key[0] in contents and key not in self.settled else ():
                kept = self._kept_by(key, row)
                address = assignment_address(self.planning.registry.name(CONTENT, row.content) or "", key[1])
                if kept is None or matches_patterns(str(address), self.planning.policy.leave_alone):
                    continue
                self.settled.add(key)
                entry, one = kept
                if one.keep_until is not None and _is_over(self.planning, one.keep_until):
                    until = format_time(one.keep_until, self.planning.policy.timezone)
                    self.out.deletions.append(
                        Deletion(
                            address=address,
                            row=row,
                            absent=DeleteEntry(
                                address=address,
                                spec=AssignmentSpec(one.content, key[1], False, None, None, one.content_pins),
                                places=FixedSource(entry.places.at("keep")),
                            ),
                            reason=f"it was kept until {until} for somebody in progress",
                        )
                    )


def _old(entry: _Declared, one: Replacement) -> _Declared:
    """Return the replaced assignment as a declaration, located where the entry names its content."""
    return DesiredResource(
        address=assignment_address(one.content, entry.spec.audience),
        spec=AssignmentSpec(one.content, entry.spec.audience, False, None, None, one.content_pins),
        places=FixedSource(entry.places.at(*one.path)),
        only_in=entry.only_in,
        about=entry.about,
    )


def _is_over(planning: PlanContext, until: datetime) -> bool:
    """Return whether the day of a moment is over, in the time zone of the project."""
    return planning.policy.today > until.astimezone(planning.policy.timezone or UTC).date()


def _terms(one: Replacement) -> tuple[object, ...]:
    return one.becomes_optional, one.closes, one.keep_until


def _has_by(spec: AssignmentSpec, moment: datetime) -> bool:
    """Return whether an assignment is visible at a moment, or from the next second on."""
    begins, ends = spec.visible_from, spec.visible_until
    return (begins is None or (begins - moment).total_seconds() <= 1) and (ends is None or ends > moment)
