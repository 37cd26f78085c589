"""Match declared assignments with live targets by identity: the content and the audience."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from typing import Any, Final, TypeAlias

from lmsconf.errors import Severity, SourceLocation
from lmsconf.kinds.content_target.catalog import ContentRow
from lmsconf.kinds.content_target.types import (
    Assignment,
    TargetRow,
    TargetState,
    audience_of,
    candidates,
    nameless,
    target_address,
)
from lmsconf.kinds.shared.names import CONTENT, CONTENT_TARGET, EVERYONE, GROUP, SMART_GROUP, UNNAMED_TARGETS, USER
from lmsconf.kinds.user.directory import WHICH_PERSON, directory, several
from lmsconf.model.address import Address, RemoteId, escape
from lmsconf.model.names import did_you_mean, matches_patterns, normalize_name, quote_name
from lmsconf.model.values import DeleteEntry, DesiredResource, pin_in
from lmsconf.planner.context import Deletion, Match, MatchResult, PlanContext, UndeclaredResource
from lmsconf.planner.matching import (
    hint_on_missing,
    refuse_ambiguous_reference,
    report_absent_not_live,
    similar_live_name,
    why_name_is_missing,
)

_CATALOG: Final = "Write the name as the catalog has it; content is made in the product."
Identity: TypeAlias = tuple[RemoteId | None, Address]
"""Content id, None if unresolved, and audience: the identity of an assignment."""

Target: TypeAlias = tuple[TargetRow, Address | None]
"""A live target and its audience, None if unresolved."""


def identify_targets(
    planning: PlanContext, declared: Sequence[DesiredResource[Assignment]], absent: Sequence[DeleteEntry[Any]]
) -> MatchResult[Assignment, TargetRow]:
    """Match assignments, and find those to delete: under `absent`, owned, or with their deleted group.

    An incomplete listing gives a problem for each creation and deletion instead.
    """
    _know_people(planning)
    contents = _Contents(planning)
    # A problem with content is reported once, so chosen resources, whose problems are kept, look it up first.
    declared = sorted(declared, key=lambda entry: not planning.chosen(entry.address))
    ready = [entry for entry in declared if _is_ready(planning, contents, entry)]
    for absent_entry in absent:
        contents.find(absent_entry, must=False)
    targets = [(row, audience_of(planning, row)) for row in _live(planning)]
    live = _by_identity(targets)
    listing = planning.snapshot.of(CONTENT_TARGET)
    out: MatchResult[Assignment, TargetRow] = MatchResult(
        live=len(listing.rows) + len(planning.snapshot.of(UNNAMED_TARGETS).rows)
    )
    doubts = _doubts(planning, targets)
    spoken: dict[Identity, DesiredResource[Any] | DeleteEntry[Any]] = {}
    for entry in ready:
        key = contents.identity(entry)
        rows = live.get(key, [])
        if (other := spoken.setdefault(key, entry)) is not entry:
            _same(planning, entry, other)
        elif len(rows) > 1:
            _twice(planning, entry, rows)
        elif not rows and (row := doubts.get(key)):
            _unclear(planning, entry, row)
        elif not rows and listing.incomplete:
            _incomplete(planning, entry.address, entry, listing.incomplete)
        else:
            out.matches.append(Match(declared=entry, row=rows[0] if rows else None))
    for entry in declared:
        if (key := contents.identity(entry))[0] is not None:
            spoken.setdefault(key, entry)
    for absent_entry in absent:
        key = contents.identity(absent_entry)
        if (other := spoken.setdefault(key, absent_entry)) is not absent_entry and isinstance(other, DesiredResource):
            _same(planning, absent_entry, other)
            continue
        rows = live.get(key, []) if other is absent_entry else []
        out.deletions.extend(Deletion(address=absent_entry.address, row=row, absent=absent_entry) for row in rows)
        if not rows:
            report_absent_not_live(planning, absent_entry, contents.alike(absent_entry))
    _settle(planning, contents, live, spoken, frozenset(map(contents.find, declared)), out)
    if listing.incomplete:
        for deletion in out.deletions:
            _incomplete(planning, deletion.address, deletion.absent, listing.incomplete)
        for group in sorted(planning.deleted):
            if group.kind in (GROUP, SMART_GROUP):
                _incomplete(planning, group, None, listing.incomplete)
        out.deletions.clear()
    return out


class _Contents:
    """The catalog by name and id, and the ids of the content that manifests name."""

    def __init__(self, planning: PlanContext) -> None:
        self._planning = planning
        self._rows = planning.snapshot.rows(ContentRow)
        self._by_name: defaultdict[str, list[ContentRow]] = defaultdict(list)
        self._by_id = {row.id: row for row in self._rows}
        for row in self._rows:
            self._by_name[normalize_name(row.name)].append(row)
            planning.book.alias(CONTENT, normalize_name(row.name), row.id)
        self.named: dict[tuple[str, str], RemoteId | None] = {}
        shared = (row.id for rows in self._by_name.values() if len(rows) > 1 for row in rows)
        planning.state(TargetState).shared_content = frozenset(shared)

    def find(self, entry: DesiredResource[Assignment] | DeleteEntry[Any], *, must: bool = True) -> RemoteId | None:
        """The id of the content that an assignment names, None if unresolved; problems are reported once per content.

        must: whether a name that the catalog lacks is a problem.
        """
        spec = entry.spec
        workspace = self._planning.policy.workspace
        pin = pin_in(spec.content_pins, workspace)
        key = (spec.content, pin or "")
        if key not in self.named:
            self.named[key] = self._look(entry.places.at("content"), entry.address, spec, pin, must)
            if (id := self.named[key]) is not None:
                self._planning.book.register(CONTENT, spec.content, id)
        return self.named[key]

    def identity(self, entry: DesiredResource[Assignment] | DeleteEntry[Any]) -> Identity:
        """The identity of an assignment that was passed to `find`."""
        return self.find(entry), entry.spec.audience

    def _look(
        self, at: SourceLocation, address: Address, spec: Assignment, pin: str | None, must: bool
    ) -> RemoteId | None:
        if pin is not None:
            if (row := self._by_id.get(RemoteId(pin))) is not None:
                if self._is_called(row, spec.content):
                    return row.id
                self._misnamed(at, address, row, spec.content)
                return None
            text = f'no content with the id "{pin}" is in the catalog'
            live = self._by_name.get(spec.content, [])
            ids = ", ".join(sorted(row.id for row in live))
            hint = f'"{spec.content}" has the id {ids}.' if live else "Correct the id, or leave it out."
            self._problem(at, address, "content/pin-not-live", text, hint)
            return None
        rows = self._by_name.get(spec.content, [])
        if len(rows) == 1:
            return rows[0].id
        if rows:
            ids = ", ".join(sorted(row.id for row in rows))
            hint = f"Say which one: `content: {{name: {spec.content}, id: ...}}`."
            self._problem(at, address, "content/twice", f'"{spec.content}" is in the catalog with the ids {ids}', hint)
        elif must:
            near = hint_on_missing(self._planning, CONTENT, did_you_mean(spec.content, self._by_name), _CATALOG)
            self._problem(at, address, "content/unknown", f'the catalog has no content "{spec.content}"', near)
        return None

    def alike(self, entry: DeleteEntry[Any]) -> str | None:
        """The content or audience name that an `absent` entry without a match may have meant."""
        spec = entry.spec
        if self.find(entry, must=False) is None:
            return similar_live_name(spec.content, self._by_name)
        to = spec.audience
        known = self._planning.book.names(to.kind)
        return None if to == EVERYONE or to.name in known else similar_live_name(to.name, known)

    def _is_called(self, row: ContentRow, name: str) -> bool:
        """Whether pinned content has the declared name: lmsconf cannot rename content, so another name is an error.

        An export writes `content ID` where a manifest cannot hold the name.
        """
        return normalize_name(row.name) == name or (name == f"content {row.id}" and name not in self._by_name)

    def _misnamed(self, at: SourceLocation, address: Address, row: ContentRow, name: str) -> None:
        others = ", ".join(sorted(other.id for other in self._by_name.get(name, ())))
        live = f', and "{name}" has the id {others}' if others else ""
        self._problem(
            at,
            address,
            "content/other-name",
            f'the content with the id "{row.id}" is called "{row.name}" in the catalog{live}',
            f"If that one is meant, write its name: {quote_name(normalize_name(row.name))}. "
            "Else correct the id, or leave it out.",
        )

    def _problem(self, at: SourceLocation, address: Address, code: str, text: str, hint: str | None) -> None:
        self._planning.problem(code, f"{address}: {text}", hint=hint, at=at, address=address)


def _know_people(planning: PlanContext) -> None:
    for id, person_email in directory(planning).emails.items():
        planning.book.register(USER, person_email, RemoteId(id))


def _is_ready(planning: PlanContext, contents: _Contents, entry: DesiredResource[Assignment]) -> bool:
    """Whether the content and the audience of a declared assignment exist or will exist; report problems."""
    spec = entry.spec
    has_content = contents.find(entry) is not None
    to = spec.audience
    if refuse_ambiguous_reference(planning, to, entry.address, entry.source):
        return False
    if to == EVERYONE or planning.book.has(to.kind, to.name):
        if to.kind == USER and to.name in directory(planning).archived:
            planning.problem(
                "person/archived",
                f"{entry.address}: {to.name} is archived",
                hint="Archived people cannot learn; take the assignment out, or unarchive the person.",
                at=entry.source,
                address=entry.address,
                severity=Severity.WARNING,
            )
        return has_content
    if to.kind == USER and (ids := directory(planning).twice.get(to.name)):
        planning.problem(
            "person/twice",
            f"{entry.address}: {to.name} {several(ids)}",
            hint=WHICH_PERSON,
            at=entry.source,
            address=entry.address,
        )
        return False
    message, hint = why_name_is_missing(
        planning, to, _meant(planning, to) or did_you_mean(to.name, planning.book.names(to.kind))
    )
    planning.problem(
        "person/unknown" if to.kind == USER else "reference/unknown-audience",
        f"{entry.address}: {message}",
        hint=hint,
        at=entry.source,
        address=entry.address,
    )
    return False


def _meant(planning: PlanContext, to: Address) -> str | None:
    """A hint for an unknown audience that exists under another kind."""
    if to.name == str(EVERYONE):
        return f"For everybody, write {EVERYONE} alone."
    for kind in (GROUP, SMART_GROUP):
        if kind != to.kind and planning.book.has(kind, to.name):
            return f"There is {Address.of(kind, to.name)}: write {{{kind}: {quote_name(to.name)}}}."
    return None


def _live(planning: PlanContext) -> tuple[TargetRow, ...]:
    return planning.snapshot.rows(TargetRow)


def _by_identity(targets: Sequence[Target]) -> dict[Identity, list[TargetRow]]:
    """Live targets by identity; an unresolved audience gets an address with its id."""
    out: defaultdict[Identity, list[TargetRow]] = defaultdict(list)
    for row, audience in targets:
        out[row.content, audience or Address(escape(nameless(row)), "")].append(row)
    return out


def _settle(
    planning: PlanContext,
    contents: _Contents,
    live: Mapping[Identity, list[TargetRow]],
    spoken: Container[Identity],
    declared: Container[RemoteId | None],
    out: MatchResult[Assignment, TargetRow],
) -> None:
    """Sort targets without an entry: deleted with their group, under `leave_alone`, owned, or unmanaged.

    spoken: the identities that entries name. declared: the contents that entries under `content_targets` name; an
    `absent` entry does not make the other assignments of its content owned.
    """
    policy = planning.policy
    owned = policy.ownership.get(CONTENT_TARGET, ())
    for key, rows in live.items():
        if key in spoken:
            continue
        address = target_address(planning.book.name(CONTENT, rows[0].content) or f"content id {key[0]}", key[1])
        for row in rows:
            audience = audience_of(planning, row)
            if audience in planning.deleted:
                out.deletions.append(Deletion(address=address, row=row, absent=None, with_=audience))
            elif matches_patterns(str(address), policy.leave_alone):
                out.ignored += 1
            elif audience is not None and not policy.only and ("all" in owned or (owned and row.content in declared)):
                out.deletions.append(Deletion(address=address, row=row, absent=None))
            else:
                out.unmanaged.append(UndeclaredResource(address, row))


def _same(
    planning: PlanContext,
    entry: DesiredResource[Assignment] | DeleteEntry[Any],
    other: DesiredResource[Assignment] | DeleteEntry[Any],
) -> None:
    """Report two entries for one assignment: pinned content can have two names, and so two addresses."""
    planning.problem(
        "content-target/same",
        f"{entry.address}: it is the same assignment as {other.address}, with the content under another name",
        hint=f"See {other.source}. Keep one of the two.",
        at=entry.source,
        address=entry.address,
    )


def _twice(planning: PlanContext, entry: DesiredResource[Assignment], rows: Sequence[TargetRow]) -> None:
    planning.problem(
        "identity/live-twice",
        f"{entry.address}: it is live {len(rows)} times, as " + ", ".join(sorted(row.id for row in rows)),
        hint="Delete the double in the product, or look at the dialect key content-targets.on-existing.",
        at=entry.source,
        address=entry.address,
    )


def _doubts(planning: PlanContext, targets: Sequence[Target]) -> dict[Identity, TargetRow]:
    """Each possible identity of a live target with several candidate audiences → that target."""
    return {
        (row.content, candidate): row
        for row, audience in targets
        if audience is None
        for candidate in candidates(planning, row)
    }


def _unclear(planning: PlanContext, entry: DesiredResource[Assignment], row: TargetRow) -> None:
    names = " and ".join(str(audience) for audience in candidates(planning, row))
    planning.problem(
        "content-target/audience",
        f'{entry.address}: a live assignment is for the id "{row.target}", which is that of {names}, and its '
        f'targetType "{row.type}" does not tell which',
        hint="Take the assignment out of the manifests: lmsconf sends nothing that could change the other one.",
        at=entry.source,
        address=entry.address,
    )


def _incomplete(
    planning: PlanContext, address: Address, entry: DesiredResource[Assignment] | DeleteEntry[Any] | None, why: str
) -> None:
    planning.problem(
        "read/incomplete",
        f"{address}: the assignments were not read whole: {why}",
        hint="Nothing is created or deleted on the word of an incomplete listing. Try again.",
        at=entry.source if entry else None,
        address=address,
    )
