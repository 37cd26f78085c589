"""Redaction of snapshots, and plans with redacted ones: people not named by the manifests cannot be identified.

This holds even for a reader who has a list of all people and their groups. Of each undeclared person the snapshot has
a label and an id, both random and new in each snapshot, and whether the account is archived; lists of people, rights
and assignments give only their number. Such a snapshot does not show whether a person not named by the manifests when
it was taken is in the workspace, so declarations about that person are not compared.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import Problem
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.model.declarations import Manifests
from lmsconf.model.names import normalize_email
from lmsconf.model.snapshot import HasId, Listing, Snapshot, SnapshotRedaction
from lmsconf.planner.context import PlanContext
from lmsconf.planner.kind import AnyKind, in_snapshot_order
from lmsconf.planner.reading import emails_of
from lmsconf.planner.redaction import EMAIL, RedactionContext, RestoreContext, UnnamedRow, pseudonym

_NOT_WHOLE: Final = "it was not read completely"
"""Replaces the reason of an incomplete listing, which may quote a response with people in it."""


def redact_snapshot(planning: PlanContext, manifests: Manifests, kinds: Mapping[str, AnyKind]) -> Snapshot:
    """Return the context's snapshot, redacted to the people named by the manifests."""
    from lmsconf.kinds.user.redact import live_people

    declared = {name: [entry for entry in manifests.declared if entry.address.kind == name] for name in kinds}
    people = [*live_people(planning.snapshot, declared[USER])]
    quoted = frozenset(normalize_email(address) for text in _texts(manifests) for address in EMAIL.findall(text))
    named = named_people(manifests, kinds)
    redaction = RedactionContext(planning, declared, people, named=named, quoted=quoted)
    listings: dict[str, Listing[HasId]] = {}
    for kind in in_snapshot_order(kinds.values()):
        for row_type in kind.row_types:
            name = row_type.listing
            if (whole := planning.snapshot.listings.get(name)) is not None:
                rows = tuple(kind.redact_rows(redaction, row_type))
                incomplete = redaction.incomplete.get(name, whole.incomplete and _NOT_WHOLE)
                listings[name] = Listing(rows=rows, incomplete=incomplete)
    listings[UnnamedRow.listing] = Listing(rows=tuple(redaction.counted_rows()))
    pseudonyms = frozenset(pseudonym(redaction.salt, address) for address in named)
    return replace(
        planning.snapshot, listings=listings, redaction=SnapshotRedaction(salt=redaction.salt, named=pseudonyms)
    )


def restore_snapshot(snapshot: Snapshot, manifests: Manifests, kinds: Mapping[str, AnyKind]) -> Snapshot:
    """Return a redacted snapshot with the e-mails of named people restored, and a placeholder per counted person.

    A snapshot that is not redacted is returned unchanged.
    """
    if snapshot.redaction is None:
        return snapshot
    salt = snapshot.redaction.salt
    restoring = RestoreContext(snapshot, {pseudonym(salt, email): email for email in named_people(manifests, kinds)})
    listings = {name: listing for name, listing in snapshot.listings.items() if name != UnnamedRow.listing}
    owners = {row_type: kind for kind in kinds.values() for row_type in kind.row_types}
    people = {kind.row_type for kind in kinds.values() if kind.is_person}
    # People are last, because restoring the other listings makes placeholders of them, numbered in this order.
    for row_type in sorted(owners, key=lambda row_type: (row_type in people, row_type.listing)):
        if (listing := listings.get(row_type.listing)) is not None:
            rows = tuple(owners[row_type].restore_rows(restoring, row_type))
            listings[row_type.listing] = replace(listing, rows=rows)
    return replace(snapshot, listings=listings)


def drop_unknown_people(snapshot: Snapshot, manifests: Manifests, kinds: Mapping[str, AnyKind]) -> Manifests:
    """Return the manifests without people not named when a redacted snapshot was taken; each gives a warning.

    For a snapshot that is not redacted the manifests are returned unchanged.
    """
    if snapshot.redaction is None:
        return manifests
    salt, before = snapshot.redaction.salt, snapshot.redaction.named
    new = frozenset(email for email in named_people(manifests, kinds) if pseudonym(salt, email) not in before)
    if not new:
        return manifests
    problems: list[Problem] = []
    declared = (kinds[entry.address.kind].without_people(entry, new, problems.append) for entry in manifests.declared)
    absent = (kinds[entry.address.kind].without_people(entry, new, problems.append) for entry in manifests.absent)
    return replace(
        manifests,
        declared=tuple(entry for entry in declared if entry is not None),
        absent=tuple(entry for entry in absent if entry is not None),
        problems=(*manifests.problems, *problems),
    )


def named_people(manifests: Manifests, kinds: Mapping[str, AnyKind]) -> frozenset[str]:
    """Return the normalized e-mails of all people named by the manifests, earlier e-mails included."""
    return emails_of((*manifests.declared, *manifests.absent), kinds)


def _texts(manifests: Manifests) -> Iterator[str]:
    """Yield every string in the manifests' entries."""
    for entry in manifests.declared:
        yield from _strings((entry.address.name, entry.spec, entry.previously, entry.about))
    for absent in manifests.absent:
        yield from _strings((absent.address.name, absent.spec))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _strings((key, item))
    elif isinstance(value, tuple | list | frozenset):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, Struct):
        for name in value.__struct_fields__:
            yield from _strings(getattr(value, name))
