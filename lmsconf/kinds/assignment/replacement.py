"""What becomes of the assignments that declared ones replace, and who keeps the old content for a while.

A declared assignment with `replaces` changes the live assignment of the old content to the same audience, once, after
the new one is seen to exist. Nothing about it is stored: an assignment of the old content to a person whose window ends
exactly when `keep` says counts as made for it, is left alone until that day, and is deleted after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, time
from functools import partial
from typing import Any, Final, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.errors import Severity
from lmsconf.kinds.assignment.replacement_problems import is_over, report_number_in_progress, report_replacement
from lmsconf.kinds.assignment.steps import parse_live_window
from lmsconf.kinds.assignment.target_ids import ContentResolver, Identity, report_live_twice
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
from lmsconf.kinds.user.people_directory import people_directory
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.declarations import DeleteEntry, DesiredResource, FixedSource
from lmsconf.model.names import matches_patterns

_SHOWN: Final = 5
_Declared: TypeAlias = DesiredResource[AssignmentSpec]


class _Replaced(Struct, kw_only=True):
    """A live assignment that declared ones replace.

    old: the declaration that it is given. by: the declared assignments, each with what it says.
    """

    old: _Declared
    row: TargetRow
    by: list[tuple[_Declared, Replacement]] = field(default_factory=list)

    @property
    def how(self) -> Replacement:
        return self.by[0][1]

    @property
    def addresses(self) -> tuple[Address, ...]:
        return tuple(sorted(new.address for new, _ in self.by))


def _kept_by(planning: PlanContext, key: Identity, row: TargetRow) -> tuple[_Declared, Replacement] | None:
    """Return the entry that says until when somebody keeps a replaced content through a live assignment."""
    moments = planning.kept_until.get(key[0] or RemoteId(""), {}) if key[1].kind == USER else {}
    finish = _finish(row)
    return None if finish is None else moments.get(finish)


def report_without_replacement(
    planning: PlanContext,
    entries: Iterable[_Declared | DeleteEntry[Any]],
    live: Iterable[Identity],
    ready: Iterable[_Declared],
) -> None:
    """Report an assignment of a plan made before whose replacement is neither live nor in that plan.

    ready: the assignments in it.
    """
    replaced = [one for one in entries if one.spec.replaced_by]
    names = ((planning.registry.name(CONTENT, id or ""), to) for id, to in (live if replaced else ()))
    there = {*(assignment_address(name, to) for name, to in names if name), *(entry.address for entry in ready)}
    missing = [(entry, new) for entry in replaced for new in entry.spec.replaced_by if new not in there]
    for entry, new in missing:
        report_replacement(planning, "not there", entry, new=new)


def _finish(row: TargetRow) -> datetime | None:
    """Return when the window of a live target ends; None if it does not, or if that cannot be read."""
    finish = readable_time(row.finish)
    return finish if isinstance(finish, datetime) else None


class ReplacementPlanner:
    """Decides what becomes of the live assignments that declared ones replace, and adds it to `out`.

    settled: the identities of entries, and of all that is replaced or kept.
    """

    def __init__(
        self,
        planning: PlanContext,
        contents: ContentResolver,
        live: Mapping[Identity, Sequence[TargetRow]],
        entry_of: Mapping[Identity, DesiredResource[Any] | DeleteEntry[Any]],
        out: MatchResult[AssignmentSpec, TargetRow],
    ) -> None:
        self._planning, self._contents, self._live, self._out = planning, contents, live, out
        self._entry_of = entry_of
        self._report = partial(report_replacement, planning)
        self.settled = set(entry_of)
        self._found: dict[Identity, _Replaced] = {}
        self._kept: dict[Identity, Match[AssignmentSpec, TargetRow]] = {}

    def plan_all(self, declared: Iterable[_Declared]) -> None:
        """Plan what the declared assignments replace, and who keeps it."""
        for entry in declared:
            for one in entry.spec.replaces:
                self._find(entry, one)
        for replaced in self._found.values():
            self._plan(replaced)
        self._note_other_audiences()
        self._leave_kept()

    def _find(self, entry: _Declared, one: Replacement) -> None:
        """Find the live assignment that an entry replaces, if there is one; report what rules that out."""
        old = _old(entry, one)
        new = self._contents.identity(entry)
        if missing := self._contents.missing(old.spec):
            # Harmless once the new assignment exists.
            self._report(
                "unknown",
                old,
                missing=missing[0],
                hint=missing[1],
                severity=Severity.NOTE if self._live.get(new) else Severity.ERROR,
            )
            return
        content = self._contents.find_id(old)
        if content is None:
            return
        key = content, entry.spec.audience
        if one.keep_until is not None:
            self._planning.kept_until[content].setdefault(one.keep_until, (entry, one))
        if content == new[0]:
            self._report("same", entry, at=entry.places.at(*one.path), content=one.content)
        elif (other := self._entry_of.get(key)) is not None:
            self._report(
                "declared",
                old,
                where="declared" if isinstance(other, DesiredResource) else "listed under `absent`",
                see=other.source,
            )
        elif len(rows := self._live.get(key, ())) > 1:
            report_live_twice(self._planning, old, rows)
        else:
            for row in rows:
                self._replace(key, row, old, entry, one)

    def _replace(self, key: Identity, row: TargetRow, old: _Declared, entry: _Declared, one: Replacement) -> None:
        """Record that an entry replaces a live assignment, unless somebody keeps the content until the date by it."""
        self.settled.add(key)
        until = one.keep_until if key[1].kind == USER else None
        if until is not None and _finish(row) == until and not is_over(self._planning, until):
            return
        replaced = self._found.setdefault(key, _Replaced(old=old, row=row))
        if replaced.by and _terms(replaced.how) != _terms(one):
            first, at = replaced.by[0][0], entry.places.at(*one.path)
            self._report("differs", entry, at=at, content=one.content, other=first.address, see=first.source)
        replaced.by.append((entry, one))

    def _plan(self, replaced: _Replaced) -> None:
        """Plan what becomes of one live assignment."""
        change = self._change(replaced, replaced.how)
        if change is None or not self._is_covered(replaced) or self._is_refused(replaced):
            return
        if not replaced.how.becomes_optional and not self._planning.policy.additive:
            self._planning.closing.append(replaced.row)
            people = self._who_keep(replaced)
            until = replaced.how.keep_until
            if people and replaced.old.spec.audience.kind == USER:
                # Their own assignment is the one that is replaced: it stays until the date.
                change = self._change(replaced, replace(replaced.how, closes=until))
            else:
                kept = [self._keep(replaced, person, until) for person in people if until]
                change = self._change(replaced, replaced.how, frozenset(filter(None, kept)))
        if isinstance(change, Match):
            self._out.matches.append(change)
        elif change is not None:
            self._out.deletions.append(change)

    def _change(
        self, replaced: _Replaced, how: Replacement, kept: frozenset[Address] = frozenset()
    ) -> Match[AssignmentSpec, TargetRow] | Deletion[TargetRow] | None:
        """Return the change of an assignment; None if it is as it is to become.

        kept: the assignments by which people keep the content, which it follows.
        """
        old, row, by = replaced.old, replaced.row, replaced.addresses
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
        terms = parse_live_window(self._planning, row, old) if row.mandatory or not how.becomes_optional else None
        if terms is None:
            return None
        start, finish = terms
        if how.closes is not None and finish is not None and finish <= how.closes:
            return None
        if how.closes is not None and start is not None and start >= how.closes:
            self._report("begins later", old, begins=format_time(start, self._planning.policy.timezone))
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
        if not self._planning.chosen(replaced.old.address):
            return False
        news = [new for new, _ in replaced.by if not self._planning.chosen(new.address)]
        missing = [new.address for new in news if not self._live.get(self._contents.identity(new))]
        if missing:
            self._report("waits", replaced.old, new=missing[0], severity=Severity.NOTE, of_plan=True)
        return not missing

    def _is_refused(self, replaced: _Replaced) -> bool:
        """Whether the project leaves a replaced assignment alone, or somebody would be without either content."""
        policy, old = self._planning.policy, replaced.old
        if matches_patterns(str(old.address), policy.leave_alone):
            self._report("left alone", old)
            return True
        if replaced.how.becomes_optional:
            return False
        today = datetime.combine(policy.today, time(), policy.timezone or UTC)
        hidden = max(today, replaced.how.closes or today)
        gaps = [new for new, _ in replaced.by if not _has_by(new.spec, hidden)]
        for new in gaps:
            what = "removed in a gap" if replaced.how.closes is None else "hidden in a gap"
            sides = {"from": new.spec.visible_from, "until": new.spec.visible_until}
            window = [f"{word} {format_time(side, policy.timezone)}" for word, side in sides.items() if side]
            self._report(what, old, new=new.address, window=" ".join(window))
        return bool(gaps)

    def _who_keep(self, replaced: _Replaced) -> list[str]:
        """Return who is in progress and keeps the content; report how many are, or that it is not known."""
        old, row, until = replaced.old, replaced.row, replaced.how.keep_until
        in_progress = next((one for one in self._planning.snapshot.rows(InProgressRow) if one.id == row.id), None)
        keeps = until is not None and not is_over(self._planning, until)
        if keeps and (in_progress is None or in_progress.unknown is not None):
            why = "a snapshot file and a drift report do not hold it" if in_progress is None else in_progress.unknown
            self._report("cannot keep", old, why=why)
            return []
        directory = people_directory(self._planning)
        emails = {directory.emails.get(id) for id in (() if in_progress is None else in_progress.people)}
        active = sorted(email for email in emails - directory.archived if email is not None)
        report_number_in_progress(self._planning, old, in_progress, until, active)
        return active if keeps else []

    def _keep(self, replaced: _Replaced, person: str, until: datetime) -> Address | None:
        """Plan the assignment by which somebody keeps the content; None if they have it as long already."""
        old, entry = replaced.old, replaced.by[0][0]
        to = Address.of(USER, person)
        key = self._contents.find_id(old), to
        if key in self._entry_of:
            return None
        row = next(iter(self._live.get(key, ())), None)
        self.settled.add(key)
        if row is not None and (_finish(row) or until) >= until:
            return None
        if key in self._kept:
            return self._kept[key].address
        address = assignment_address(old.spec.content, to)
        mandatory = (row or replaced.row).mandatory
        start = None if row is None else (parse_live_window(self._planning, row, old) or (None, None))[0]
        self._kept[key] = Match(
            declared=DesiredResource(
                address=address,
                spec=AssignmentSpec(old.spec.content, to, mandatory, start, until, old.spec.content_pins),
                places=FixedSource(entry.places.at("keep")),
                about=entry.about,
                reason=f"in progress on {old.spec.content}, which is replaced",
            ),
            row=row,
            along=old.address,
        )
        self._out.matches.append(self._kept[key])
        return address

    def _note_other_audiences(self) -> None:
        """Note the other live assignments of a content that this plan takes from an audience."""
        closing = {
            row.content: one for one in self._found.values() for row in self._planning.closing if one.row.id == row.id
        }
        for content, replaced in closing.items():
            entry, one = replaced.by[0]
            keys = [key for key in self._live if key[0] == content and key not in self.settled]
            others = sorted(
                key[1] for key in keys if not any(_kept_by(self._planning, key, row) for row in self._live[key])
            )
            more = f" and {len(others) - _SHOWN} more" if len(others) > _SHOWN else ""
            if others:
                self._planning.problem(
                    "content-target/replaces-others",
                    f"{one.content} stays assigned to {', '.join(others[:_SHOWN])}{more}: this entry does not assign "
                    f"{entry.spec.content} to them",
                    at=entry.places.at(*one.path),
                    severity=Severity.NOTE,
                )

    def _leave_kept(self) -> None:
        """Leave alone the assignments by which people keep a content; delete them once the day is over."""
        for key, rows in self._live.items():
            for row in rows if key not in self.settled and key[0] in self._planning.kept_until else ():
                kept = _kept_by(self._planning, key, row)
                address = assignment_address(self._planning.registry.name(CONTENT, row.content) or "", key[1])
                if kept is None or matches_patterns(str(address), self._planning.policy.leave_alone):
                    continue
                self.settled.add(key)
                entry, one = kept
                if one.keep_until is not None and is_over(self._planning, one.keep_until):
                    spec = AssignmentSpec(one.content, Address.of(USER, ""), False, None, None, one.content_pins)
                    until = format_time(one.keep_until, self._planning.policy.timezone)
                    self._out.deletions.append(
                        Deletion(
                            address=address,
                            row=row,
                            absent=DeleteEntry(address=address, spec=spec, places=FixedSource(entry.places.at("keep"))),
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
