"""Reading of redacted snapshots: people named by the manifests are identified by pseudonym, all others only counted.

Such a snapshot does not show whether a person not named by the manifests when it was taken is in the workspace, so
declarations about that person are not compared.
"""

from __future__ import annotations

import hmac
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from itertools import count
from typing import Any, Final, TypeVar

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.kinds.content_target.values import Assignment, TargetRow
from lmsconf.kinds.manual_group.values import GroupRow, ManualGroupSpec
from lmsconf.kinds.shared.names import ADMIN, CONTENT_TARGET, GROUP, SMART_GROUP, UNNAMED, USER
from lmsconf.kinds.shared.people import People
from lmsconf.kinds.smart_group.values import SmartGroupSpec, SmartRow
from lmsconf.kinds.user.values import AdminRow, PersonRow, UnnamedRow
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.names import email
from lmsconf.model.snapshot import HasName, Listing, Redaction, Snapshot
from lmsconf.model.values import DeleteEntry, DesiredResource
from lmsconf.planner.kind import AnyKind
from lmsconf.planner.plan import Manifests

LABEL: Final = "person-"
"""Prefix of pseudonyms and random labels. Without an @, none can equal an e-mail."""
_LENGTH: Final = 16
_Entry = TypeVar("_Entry", DesiredResource[Any], DeleteEntry[Any])


def pseudonym(salt: str, address: str) -> str:
    """Return the pseudonym of an e-mail in a snapshot with that salt: a truncated HMAC-SHA256."""
    digest = hmac.new(salt.encode(), email(address).encode("utf-8", "surrogatepass"), sha256).hexdigest()
    return LABEL + digest[:_LENGTH]


def named_people(manifests: Manifests, kinds: Mapping[str, AnyKind]) -> frozenset[str]:
    """Return the normalized e-mails of all people named by the manifests, earlier e-mails included."""
    return frozenset(_named(manifests, kinds))


def _named(manifests: Manifests, kinds: Mapping[str, AnyKind]) -> Iterator[str]:
    for one in manifests.declared:
        addresses = [one.address, *kinds[one.address.kind].dependencies(one), *_audience(one)]
        yield from (address.name for address in addresses if address.kind == USER)
        if one.address.kind == USER:
            yield from one.previously
    for gone in manifests.absent:
        yield from (address.name for address in _audience(gone) if address.kind == USER)


def _audience(one: DesiredResource[Any] | DeleteEntry[Any]) -> Iterator[Address]:
    if isinstance(one.spec, Assignment):
        yield one.spec.audience


def recognised(snapshot: Snapshot, manifests: Manifests, kinds: Mapping[str, AnyKind]) -> Snapshot:
    """Return a redacted snapshot with the e-mails of named people restored, and a placeholder per counted person.

    A snapshot that is not redacted is returned unchanged.
    """
    if snapshot.redaction is None:
        return snapshot
    salt = snapshot.redaction.salt
    known = {pseudonym(salt, one): one for one in named_people(manifests, kinds)}
    counted = _StandIns(snapshot.rows(UnnamedRow))
    listings = {kind: listing for kind, listing in snapshot.listings.items() if kind != UNNAMED}
    rows: dict[str, Iterable[HasName]] = {
        ADMIN: [
            *(AdminRow(row.id, known.get(row.name, row.name)) for row in snapshot.of(ADMIN).rows),
            *(AdminRow(RemoteId(id), id) for id in counted.of(ADMIN, "", "admins")),
        ],
        GROUP: (
            replace(
                row,
                members=_more(row.members, counted.of(GROUP, row.id, "members")),
                managers=_more(row.managers, counted.of(GROUP, row.id, "managers")),
            )
            for row in snapshot.rows(GroupRow)
        ),
        SMART_GROUP: (
            replace(row, managers=_more(row.managers, counted.of(SMART_GROUP, row.id, "managers")))
            for row in snapshot.rows(SmartRow)
        ),
        CONTENT_TARGET: [*snapshot.of(CONTENT_TARGET).rows, *counted.assignments()],
    }
    # Last, because `counted.people` is filled while the other lists are built.
    people = snapshot.rows(PersonRow)
    shown = (replace(row, email=known.get(row.email, row.email)) for row in people)
    found: dict[str, tuple[HasName, ...]] = {kind: tuple(some) for kind, some in rows.items()}
    found[USER] = (*shown, *counted.people)
    listings = {kind: _with(listing, found.get(kind)) for kind, listing in listings.items()}
    return replace(snapshot, listings=listings)


def _more(ids: frozenset[RemoteId] | None, others: Iterable[str]) -> frozenset[RemoteId] | None:
    return None if ids is None else ids | frozenset(map(RemoteId, others))


def _with(listing: Listing[Any], rows: tuple[HasName, ...] | None) -> Listing[Any]:
    return listing if rows is None else replace(listing, rows=rows)


class _StandIns:
    """A placeholder per counted person. Lists share none, since a redacted snapshot does not show who is in both."""

    def __init__(self, rows: Iterable[UnnamedRow]) -> None:
        self._rows: defaultdict[tuple[str, str, str], list[UnnamedRow]] = defaultdict(list)
        for row in rows:
            self._rows[row.kind, row.of, row.list].append(row)
        self._numbers = count(1)
        self.people: list[PersonRow] = []

    def of(self, kind: str, of: str, list: str) -> Iterator[str]:
        """Yield placeholder ids for one list, and add a row to `people` for each but the unknown ones."""
        for row in self._rows.get((kind, of, list), ()):
            for archived, number in ((False, row.active), (True, row.archived)):
                for _ in range(number):
                    label = f"unnamed person {next(self._numbers)}"
                    self.people.append(PersonRow(RemoteId(label), label, archived, stand_in=True))
                    yield label
            for _ in range(row.unknown):
                yield f"unnamed {next(self._numbers)}"

    def assignments(self) -> Iterator[TargetRow]:
        """Yield the counted assignments to single people; their settings and times are not in the snapshot."""
        for kind, of, type in self._rows:
            if kind == CONTENT_TARGET:
                for id in self.of(kind, of, type):
                    yield TargetRow(RemoteId(of), RemoteId(id), type)


def comparable(snapshot: Snapshot, manifests: Manifests, kinds: Mapping[str, AnyKind]) -> Manifests:
    """Return the manifests without people not named when a redacted snapshot was taken; each gives a warning.

    For a snapshot that is not redacted the manifests are returned unchanged.
    """
    if snapshot.redaction is None:
        return manifests
    new = _newcomers(snapshot.redaction, named_people(manifests, kinds))
    if not new:
        return manifests
    problems: list[Problem] = []
    declared = (_without(one, new, problems) for one in manifests.declared)
    absent = (_compared(one, new, problems) for one in manifests.absent)
    return replace(
        manifests,
        declared=tuple(one for one in declared if one is not None),
        absent=tuple(one for one in absent if one is not None),
        problems=(*manifests.problems, *problems),
    )


def _newcomers(redaction: Redaction, named: frozenset[str]) -> frozenset[str]:
    """Return the people named by the manifests now, and not when the snapshot was taken."""
    return frozenset(one for one in named if pseudonym(redaction.salt, one) not in redaction.named)


def _without(one: DesiredResource[Any], new: frozenset[str], problems: list[Problem]) -> DesiredResource[Any] | None:
    """Return the entry without newcomers, or None if it is about one of them."""
    spec = one.spec
    if isinstance(spec, ManualGroupSpec):
        members = _known(one, "members", spec.members, new, problems)
        managers = _known(one, "managers", spec.managers, new, problems)
        return replace(one, spec=ManualGroupSpec(members=members, managers=managers))
    if isinstance(spec, SmartGroupSpec):
        return replace(one, spec=replace(spec, managers=_known(one, "managers", spec.managers, new, problems)))
    if one.address.kind == USER:
        # Matching by an earlier e-mail requires knowing that the present one is not live.
        strangers = sorted(new & {one.address.name, *one.previously})
        if strangers:
            problems.append(_told(one.address, strangers[0], "", one.source))
            return None
    return _compared(one, new, problems)


def _compared(one: _Entry, new: frozenset[str], problems: list[Problem]) -> _Entry | None:
    """Return the entry, or None if it is an assignment to a newcomer."""
    for audience in _audience(one):
        if audience.kind == USER and audience.name in new:
            problems.append(_told(one.address, audience.name, "", one.source))
            return None
    return one


def _known(
    one: DesiredResource[Any], key: str, said: People | None, new: frozenset[str], problems: list[Problem]
) -> People | None:
    """Return a list without newcomers, reporting each."""
    if said is None:
        return None
    problems.extend(_told(one.address, who, f"{key}: ", one.places.find(who, key)) for who in sorted(said.named & new))
    return People(said.include - new, said.exclude - new, said.whole)


def _told(address: Address, who: str, key: str, at: SourceLocation) -> Problem:
    return Problem(
        code="snapshot/not-compared",
        message=f"{address}: {key}{who} is not compared: no manifest named this person when the redacted snapshot was "
        "taken",
        hint="A plan of the workspace itself compares everybody. One of the unnamed people may be this person.",
        severity=Severity.WARNING,
        source=at,
        address=str(address),
    )
