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
from lmsconf.kinds.assignment.replacement_problems import is_over, report_replacement
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
            report_replacement(planning, "not there", entry, new=new)


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
            # Harmless once the new assignment exists.
            report_replacement(
                planning,
                "unknown",
                old,
                missing=missing[0],
                hint=missing[1],
                severity=Severity.NOTE if known.live.get(new) else Severity.ERROR,
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
            report_replacement(planning, "same", entry, at=entry.places.at(*one.path), content=one.content)
        elif other is not None:
            where = "declared" if isinstance(other, DesiredResource) else "listed under `absent`"
            report_replacement(planning, "declared", old, where=where, see=other.source)
        elif len(rows) > 1:
            report_live_twice(planning, old, rows)
        elif rows:
            self._replace(key, rows[0], old, entry, one)

    def _replace(self, key: Identity, row: TargetRow, old: _Declared, entry: _Declared, one: Replacement) -> None:
        """Record that an entry replaces a live assignment, unless somebody keeps the content until the date by it."""
        self.settled.add(key)
        until = one.keep_until if key[1].kind == USER else None
        if until is not None and _finish(row) == until and not is_over(self.planning, until):
            return
        replaced = self.found.setdefault(key, _Replaced(old=old, row=row, how=one))
        if _terms(replaced.how) != _terms(one):
            report_replacement(
                self.planning,
                "differs",
                entry,
                at=entry.places.at(*one.path),
                content=one.content,
                other=replaced.by[0].address,
                see=replaced.by[0].source,
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
            report_replacement(
                self.planning, "begins later", old, begins=format_time(start, self.planning.policy.timezone)
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
            report_replacement(
                self.planning, "waits", replaced.old, new=new.address, severity=Severity.NOTE, of_plan=True
            )
        return not missing

    def _is_refused(self, replaced: _Replaced) -> bool:
        """Whether the project leaves a replaced assignment alone, or somebody would be without either content."""
        policy, old, closes = self.planning.policy, replaced.old, replaced.how.closes
        if matches_patterns(str(old.address), policy.leave_alone):
            report_replacement(self.planning, "left alone", old)
            return True
        today = datetime.combine(policy.today, time(), policy.timezone or UTC)
        without = [] if replaced.how.becomes_optional else replaced.by
        gaps = [new for new in without if not _has_by(new.spec, max(today, closes or today))]
        for new in gaps:
            sides = {"from": new.spec.visible_from, "until": new.spec.visible_until}
            window = " ".join(f"{word} {format_time(side, policy.timezone)}" for word, side in sides.items() if side)
            report_replacement(
                self.planning,
                "removed in a gap" if closes is None else "hidden in a gap",
                old,
                new=new.address,
                window=window,
            )
        return bool(gaps)

    def _who_keep(self, replaced: _Replaced) -> list[str]:
        """Return who is in progress and keeps the content; report how many are, or that it is not known."""
        old, row, until = replaced.old, replaced.row, replaced.how.keep_until
        found = next((one for one in self.planning.snapshot.rows(InProgressRow) if one.id == row.id), None)
        keeps = until is not None and not is_over(self.planning, until)
        unknown = "a snapshot file and a drift report do not hold it" if found is None else found.unknown
        if keeps and unknown is not None:
            report_replacement(self.planning, "cannot keep", old, why=unknown)
        if found is None or (keeps and unknown is not None):
            return []
        emails = {self.planning.people.emails.get(id) for id in found.people}
        active = sorted(email for email in emails - self.planning.people.archived if email is not None)
        what = "kept" if keeps else "not kept" if until is None else "not kept any more"
        if active or unknown is not None:
            report_replacement(
                self.planning,
                what if unknown is None else "progress unknown",
                old,
                severity=Severity.NOTE if keeps else Severity.WARNING,
                of_plan=True,
                why=unknown,
                count=count_noun(len(active), "person is", "people are"),
                until=until and format_time(until, self.planning.policy.timezone),
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
                if one.keep_until is not None and is_over(self.planning, one.keep_until):
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


def _terms(one: Replacement) -> tuple[object, ...]:
    return one.becomes_optional, one.closes, one.keep_until


def _has_by(spec: AssignmentSpec, moment: datetime) -> bool:
    """Return whether an assignment is visible at a moment, or from the next second on."""
    begins = spec.visible_from is None or (spec.visible_from - moment).total_seconds() <= 1
    return begins and (spec.visible_until is None or spec.visible_until > moment)
