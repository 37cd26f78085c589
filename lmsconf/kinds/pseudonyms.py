"""Snapshots without people: e-mails become salted hashes, and names, metadata and answers are left out.

Such a snapshot is pseudonymous, not anonymous: who has it can test whether a known e-mail is in it, and that is how
plans are made with it. An e-mail that the manifests name is recognised by its hash; everybody else stays a hash.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Final, cast

from lmsconf.core.address import Address
from lmsconf.core.identity import HasName
from lmsconf.core.kind import Kind
from lmsconf.core.names import email
from lmsconf.core.plan import Manifests
from lmsconf.core.snapshot import Listing, Snapshot
from lmsconf.core.values import Absent, Declared
from lmsconf.kinds.names import ADMIN, CONTENT_TARGET, GROUP, SMART_GROUP, USER
from lmsconf.kinds.target_values import Assignment, TargetRow
from lmsconf.kinds.user_values import AdminRow, PersonRow

_HIDDEN: Final = "person-"
"""How a hashed e-mail begins. There is no @ in it, so it can be nobody's e-mail."""


def pseudonym(salt: str, address: str) -> str:
    """What stands for an e-mail in a snapshot with that salt."""
    return _HIDDEN + hmac.new(salt.encode(), email(address).encode("utf-8", "surrogatepass"), sha256).hexdigest()[:16]


def without_people(snapshot: Snapshot, salt: str) -> Snapshot:
    """The snapshot with nobody's name, e-mail, metadata or answers in it.

    Ids, rights and archive dates stay, and so does how many people hold each choice: plans count with them.
    """
    listings = {**snapshot.listings}
    people = {row.id for row in snapshot.of(USER).rows}
    groups = {row.id: row.name for kind in (GROUP, SMART_GROUP) for row in snapshot.of(kind).rows}
    rows: dict[str, Iterable[HasName]] = {
        USER: (_person(row, salt) for row in cast("tuple[PersonRow, ...]", snapshot.of(USER).rows)),
        ADMIN: (AdminRow(row.id, pseudonym(salt, row.name)) for row in snapshot.of(ADMIN).rows),
        CONTENT_TARGET: (
            # The service labels an assignment with its audience, which may be a person.
            row if row.label == groups.get(row.target) or row.target not in people | {""} else replace(row, label="")
            for row in cast("tuple[TargetRow, ...]", snapshot.of(CONTENT_TARGET).rows)
        ),
    }
    for kind, found in rows.items():
        if kind in listings:
            listings[kind] = replace(listings[kind], rows=tuple(found))
    return replace(snapshot, listings=listings, salt=salt)


def _person(row: PersonRow, salt: str) -> PersonRow:
    return PersonRow(
        row.id,
        pseudonym(salt, row.email),
        row.archived,
        admin=row.admin,
        manager=row.manager,
        applications=row.applications,
        archive_date=row.archive_date,
    )


def recognised(snapshot: Snapshot, manifests: Manifests, kinds: Mapping[str, Kind]) -> Snapshot:
    """The snapshot with the e-mails of those whom the manifests name; the same snapshot where nobody is hidden."""
    if snapshot.salt is None:
        return snapshot
    salt = snapshot.salt
    known = {pseudonym(salt, one): one for one in frozenset(_named(manifests, kinds))}
    people = cast("tuple[PersonRow, ...]", snapshot.of(USER).rows)
    shown: dict[str, tuple[HasName, ...]] = {
        USER: tuple(replace(row, email=known.get(row.email, row.email)) for row in people),
        ADMIN: tuple(AdminRow(row.id, known.get(row.name, row.name)) for row in snapshot.of(ADMIN).rows),
    }
    listings = {kind: _with(listing, shown.get(kind)) for kind, listing in snapshot.listings.items()}
    return replace(snapshot, listings=listings)


def _with(listing: Listing, rows: tuple[HasName, ...] | None) -> Listing:
    return listing if rows is None else replace(listing, rows=rows)


def _named(manifests: Manifests, kinds: Mapping[str, Kind]) -> Iterator[str]:
    """Everybody whom the manifests speak of, by compared e-mail."""
    for one in manifests.declared:
        addresses = [one.address, *kinds[one.address.kind].leans_on(one), *_audience(one)]
        yield from (address.name for address in addresses if address.kind == USER)
        if one.address.kind == USER:
            yield from one.previously
    for gone in manifests.absent:
        yield from (address.name for address in _audience(gone) if address.kind == USER)


def _audience(one: Declared | Absent) -> Iterator[Address]:
    if isinstance(one.spec, Assignment):
        yield one.spec.audience
