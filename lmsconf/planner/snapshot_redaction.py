"""Redaction of snapshots, and plans with redacted ones: people not named by the manifests cannot be identified.

This holds even for a reader who has a list of all people and their groups. Of each undeclared person the snapshot has
a label and an id, both random and new in each snapshot, and whether the account is archived; lists of people, rights
and assignments give only their number. Such a snapshot does not show whether a person not named by the manifests when
it was taken is in the workspace, so declarations about that person are not compared.
"""

from __future__ import annotations

import hmac
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from itertools import chain, count, repeat
from secrets import token_hex
from typing import Any, Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import Problem
from lmsconf.kinds.assignment.target_ids import audience_candidates, resolve_audience
from lmsconf.kinds.assignment.types import TargetRow
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.kind_table import KINDS, named_emails
from lmsconf.kinds.shared.kind_names import (
    ADMIN,
    CONTENT_TARGET,
    CUSTOM_FIELD,
    GROUP,
    SMART_GROUP,
    USER,
    in_snapshot_order,
)
from lmsconf.kinds.shared.manifest_entry import (
    LISTS,
    Entry,
    Report,
    declared_lists,
    drop_unknown_from_list,
    not_compared_warning,
)
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.kinds.user.types import RIGHTS, AdminRow, HolderRow, PersonRow, PersonSpec
from lmsconf.model.address import RemoteId
from lmsconf.model.declarations import DesiredResource, Manifests
from lmsconf.model.forms import texts_in
from lmsconf.model.names import grouped, normalize_email, normalize_name
from lmsconf.model.snapshot import HasId, Listing, Snapshot, SnapshotRedaction, SnapshotRow
from lmsconf.planner.read.needed_listings import emails_of

EMAIL: Final = re.compile(r"[\w.!#$%&*+=?^`{}~'-]+@[\w.-]*\w")
_LABEL: Final = "person-"
"""Prefix of pseudonyms and random labels. Without an @, none can equal an e-mail."""


def pseudonym(salt: str, address: str) -> str:
    """Return the pseudonym of an e-mail in a snapshot with that salt: a truncated HMAC-SHA256."""
    digest = hmac.new(salt.encode(), normalize_email(address).encode("utf-8", "surrogatepass"), sha256).hexdigest()
    return _LABEL + digest[:16]


ListOfPeople: TypeAlias = tuple[str, str, str]
"""The listing of its owner, the owner's id, empty for a list of the workspace itself, and the list's name."""


class UnnamedRow(SnapshotRow, frozen=True):
    """The number of undeclared people in one list of a redacted snapshot.

    kind: the listing of the list's owner. of: the owner's id, empty for a list of the workspace itself. list: the
    name of the list. unknown: number of ids that are not in the listing of people.
    """

    listing = "unnamed_people"

    kind: str
    of: RemoteId
    list: str
    active: int
    archived: int
    unknown: int

    @property
    def id(self) -> RemoteId:
        """`kind/of/list`, unique per list."""
        return RemoteId(f"{self.kind}/{self.of}/{self.list}")


class RedactionContext:
    """The state of one redaction: the whole snapshot, the people who are shown, and the counts of all others.

    planning  its snapshot is the one to redact
    active    id of a live person → whether lists with the person are compared: the account is not archived, and no
              other active one has its e-mail
    shown     ids of all people that the manifests name or declare
    named     the e-mails of all people that the manifests name
    hidden    the e-mails of live people that are nowhere in the manifests
    """

    def __init__(
        self,
        planning: PlanContext,
        active: Mapping[RemoteId, bool],
        shown: frozenset[RemoteId],
        *,
        named: frozenset[str],
        hidden: frozenset[str],
    ) -> None:
        self.planning, self.shown, self.named = planning, shown, named
        self.salt = token_hex(16)
        self.incomplete: dict[str, str] = {}
        self._active, self._hidden = active, hidden
        self._counts: defaultdict[ListOfPeople, Counter[str]] = defaultdict(Counter)

    def replacement_label(self, address: str) -> str:
        """Return what replaces an e-mail: a pseudonym for one that the manifests name, otherwise a random label."""
        return pseudonym(self.salt, address) if normalize_email(address) in self.named else _LABEL + token_hex(8)

    def redacted(self, value: Any) -> Any:
        """Return a row, or a value in one, with labels for the e-mails of undeclared people in all but ids."""
        match value:
            case str():
                return EMAIL.sub(self._label_if_hidden, value) if "@" in value else value
            case Struct():
                names = (name for name in value.__struct_fields__ if name != "id")
                return replace(value, **{name: self.redacted(getattr(value, name)) for name in names})
            case tuple() | frozenset():
                return type(value)(map(self.redacted, value))
            case bool() | int() | float() | None:
                return value
        raise TypeError(f"a row holds {type(value).__name__}, which cannot be redacted")

    def _label_if_hidden(self, email: re.Match[str]) -> str:
        return _LABEL + token_hex(8) if normalize_email(email[0]) in self._hidden else email[0]

    def redact_people(self, place: ListOfPeople, ids: frozenset[RemoteId]) -> frozenset[RemoteId]:
        """Return the ids of shown people in a list, and count the others."""
        for id in ids - self.shown:
            self.count_person(place, id)
        return ids & self.shown

    def count_person(self, place: ListOfPeople, id: RemoteId) -> None:
        """Count a person in a list. People who share an e-mail count as archived: neither is compared or removed."""
        status = {None: "unknown", True: "active", False: "archived"}[self._active.get(id)]
        self._counts[place][status] += 1

    def counted_rows(self) -> Iterator[UnnamedRow]:
        """Return the numbers of all lists."""
        return (
            UnnamedRow(kind, RemoteId(of), list, number["active"], number["archived"], number["unknown"])
            for (kind, of, list), number in sorted(self._counts.items())
        )


class UnnamedPeople:
    """The people who are only counted in a redacted snapshot.

    counted: in which numbers, by list. stand_ins: placeholders so far; the id of each is also its label. Lists share
    none, since a redacted snapshot does not show who is in several.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self.counted: Mapping[ListOfPeople, list[UnnamedRow]] = grouped(
            snapshot.rows(UnnamedRow), lambda row: (row.kind, row.of, row.list)
        )
        self.stand_ins: list[PersonRow] = []
        self._numbers = count(1)

    def ids(self, place: ListOfPeople) -> Iterator[RemoteId]:
        """Yield an id for each person who is only counted in a list; it is in `stand_ins` unless unknown."""
        for row in self.counted.get(place, ()):
            for archived in chain(repeat(False, row.active), repeat(True, row.archived)):
                id = RemoteId(f"unnamed person {next(self._numbers)}")
                self.stand_ins.append(PersonRow(id, id, archived, stand_in=True))
                yield id
            yield from (RemoteId(f"unnamed {next(self._numbers)}") for _ in range(row.unknown))


def redact_snapshot(planning: PlanContext, manifests: Manifests) -> Snapshot:
    """Return the context's snapshot, redacted to the people named by the manifests."""
    snapshot, people = planning.snapshot, planning.snapshot.rows(PersonRow)
    specs = _declared_people(snapshot, manifests.declared)
    quoted = frozenset(normalize_email(address) for text in _texts(manifests) for address in EMAIL.findall(text))
    named = named_people(manifests)
    redaction = RedactionContext(
        planning,
        # Of people who share an e-mail, none is active.
        {row.id: row.id in planning.people.emails and row.name not in planning.people.archived for row in people},
        frozenset(row.id for row in people if row.id in specs or row.name in named),
        named=named,
        hidden=frozenset(row.name for row in people) - named - quoted,
    )
    own: Mapping[type, Callable[[], Iterable[HasId]]] = {
        PersonRow: partial(_people, redaction, specs, manifests.declared),
        AdminRow: partial(_admins, redaction, specs),
        HolderRow: partial(_holders, snapshot),
        TargetRow: partial(_assignments, redaction),
    }
    listings: dict[str, Listing[HasId]] = {}
    row_types = [row_type for kind in in_snapshot_order(KINDS.values()) for row_type in kind.row_types]
    for row_type in (one for one in row_types if one.listing in snapshot.listings):
        # Undeclared people are left out, and counted for each list of a row.
        shown: Iterable[HasId] = (
            replace(redaction.redacted(row), **_changed_lists(row, redaction.redact_people))
            for row in snapshot.rows(row_type)
        )
        rows = tuple(own[row_type]() if row_type in own else shown)
        # Not with the reason of an incomplete listing, which may quote a response with people in it.
        why = snapshot.of(row_type.listing).incomplete and "it was not read completely"
        listings[row_type.listing] = Listing(rows=rows, incomplete=redaction.incomplete.get(row_type.listing, why))
    listings[UnnamedRow.listing] = Listing(rows=tuple(redaction.counted_rows()))
    return replace(
        snapshot,
        listings=listings,
        redaction=SnapshotRedaction(
            salt=redaction.salt, named=frozenset(pseudonym(redaction.salt, address) for address in named)
        ),
    )


def restore_snapshot(snapshot: Snapshot, manifests: Manifests) -> Snapshot:
    """Return a redacted snapshot with the e-mails of named people restored, and a placeholder per counted person.

    A snapshot that is not redacted is returned unchanged.
    """
    if snapshot.redaction is None:
        return snapshot
    emails = {pseudonym(snapshot.redaction.salt, email): email for email in named_people(manifests)}
    unnamed = UnnamedPeople(snapshot)
    listings = {name: listing for name, listing in snapshot.listings.items() if name != UnnamedRow.listing}
    # People are last, because restoring the other listings makes placeholders of them, numbered in this order.
    for name in sorted(listings, key=lambda name: (name == PersonRow.listing, name)):
        listings[name] = replace(listings[name], rows=tuple(_restored_rows(name, listings[name].rows, emails, unnamed)))
    return replace(snapshot, listings=listings)


def _restored_rows(
    listing: str, rows: Iterable[Any], emails: Mapping[str, str], unnamed: UnnamedPeople
) -> Iterator[HasId]:
    """Yield rows with the e-mails of those who are named, then a placeholder for each person who is only counted.

    emails: pseudonym → e-mail; any other label stays as it is. An assignment only counted has no settings and times.
    """
    key = {PersonRow.listing: "email", AdminRow.listing: "name"}.get(listing)
    for row in rows:
        label = {} if key is None else {key: emails.get(getattr(row, key), getattr(row, key))}
        yield replace(row, **label, **_changed_lists(row, lambda place, ids: ids.union(unnamed.ids(place))))
    if listing == PersonRow.listing:
        yield from unnamed.stand_ins
    if listing == AdminRow.listing:
        yield from (AdminRow(id, id) for id in unnamed.ids((ADMIN, "", "admins")))
    if listing == TargetRow.listing:
        yield from (
            TargetRow(RemoteId(content), id, type)
            for kind, content, type in unnamed.counted
            if kind == CONTENT_TARGET
            for id in unnamed.ids((kind, content, type))
        )


def drop_unknown_people(snapshot: Snapshot, manifests: Manifests) -> Manifests:
    """Return the manifests without people not named when a redacted snapshot was taken; each gives a warning.

    For a snapshot that is not redacted the manifests are returned unchanged.
    """
    if snapshot.redaction is None:
        return manifests
    salt, before = snapshot.redaction.salt, snapshot.redaction.named
    new = frozenset(email for email in named_people(manifests) if pseudonym(salt, email) not in before)
    problems: list[Problem] = []
    declared = (without_unknown_people(entry, new, problems.append) for entry in manifests.declared)
    absent = (without_unknown_people(entry, new, problems.append) for entry in manifests.absent)
    return replace(
        manifests,
        declared=tuple(filter(None, declared)),
        absent=tuple(filter(None, absent)),
        problems=(*manifests.problems, *problems),
    )


def named_people(manifests: Manifests) -> frozenset[str]:
    """Return the normalized e-mails of all people named by the manifests, earlier e-mails included."""
    return emails_of((*manifests.declared, *manifests.absent))


def _texts(manifests: Manifests) -> Iterator[str]:
    """Return every string in the manifests' entries."""
    declared = [(entry.address.name, entry.spec, entry.previously, entry.about) for entry in manifests.declared]
    return texts_in([declared, [(entry.address.name, entry.spec) for entry in manifests.absent]])


def without_unknown_people(entry: Entry, new: frozenset[str], report: Report) -> Entry | None:
    """Return an entry without people that a redacted snapshot does not know, each reported; None if it is of one.

    new: their e-mails.
    """
    lists = {key: drop_unknown_from_list(entry, key, people, new, report) for key, people in declared_lists(entry.spec)}
    if lists:
        return replace(entry, spec=replace(entry.spec, **lists))
    if unknown := min(new.intersection(named_emails(entry)), default=""):
        report(not_compared_warning(entry.address, unknown, entry.source))
        return None
    return entry


def _changed_lists(
    row: Any, change: Callable[[ListOfPeople, frozenset[RemoteId]], frozenset[RemoteId]]
) -> dict[str, frozenset[RemoteId]]:
    """Return the lists of people of a row that were read, changed."""
    lists = {key: getattr(row, key, None) for key in LISTS}
    return {key: change((row.listing, row.id, key), ids) for key, ids in lists.items() if ids is not None}


def _declared_people(snapshot: Snapshot, declared: Iterable[DesiredResource[Any]]) -> dict[RemoteId, PersonSpec]:
    """Return the declaration of each live person who has one: by a pinned id, or else the first one of the e-mail."""
    here = [one for one in declared if one.address.kind == USER and one.applies_in(snapshot.workspace)]
    by_email = {name: one.spec for one in reversed(here) for name in (one.address.name, *one.previously)}
    by_id: dict[str, PersonSpec] = {one.pin(snapshot.workspace) or "": one.spec for one in here}
    found = {row.id: by_id.get(row.id) or by_email.get(row.name) for row in snapshot.rows(PersonRow)}
    return {id: spec for id, spec in found.items() if spec is not None}


def _people(
    redaction: RedactionContext, specs: Mapping[RemoteId, PersonSpec], declared: Iterable[DesiredResource[Any]]
) -> list[PersonRow]:
    """Return people with their declared attributes and a pseudonym; of undeclared ones only whether archived."""
    snapshot = redaction.planning.snapshot
    names = _field_names(declared, snapshot)
    rows = (
        _declared_part(row, specs.get(row.id), names)
        if row.id in redaction.shown
        else PersonRow(RemoteId(token_hex(16)), row.email, row.archived)
        for row in snapshot.rows(PersonRow)
    )
    return sorted((replace(row, email=redaction.replacement_label(row.email)) for row in rows), key=lambda row: row.id)


def _declared_part(row: PersonRow, spec: PersonSpec | None, names: Mapping[str, frozenset[str]]) -> PersonRow:
    """Return the row with only the attributes that are declared. names: of each field, by its declared name."""
    bare = PersonRow(row.id, row.email, row.archived)
    if spec is None:
        return bare
    declared = spec.declared_keys
    whole = {"first_name", "last_name", "language", "applications"}
    fields = {name for one in spec.answers for name in (one, *names.get(one, ()))}
    metadata = tuple(pair for pair in row.metadata or () if pair[0] in spec.metadata)
    answers = tuple(answer for answer in row.answers or () if answer.field in fields)
    return replace(
        bare,
        **{key: getattr(row, key) for key in (*(declared & whole), *(RIGHTS if spec.needs_live_rights else ()))},
        metadata=metadata if "metadata" in declared and row.metadata is not None else None,
        answers=answers if "answers" in declared and row.answers is not None else None,
        archive_date=row.archive_date if "custom_archive_date" in declared else None,
        manages=row.manages,
    )


def _field_names(declared: Iterable[DesiredResource[Any]], snapshot: Snapshot) -> Mapping[str, frozenset[str]]:
    """Return, by declared field name, the other names that the live field may have."""
    live = {row.id: normalize_name(row.name) for row in snapshot.rows(FieldRow)}
    return {
        one.address.name: frozenset([*one.previously, live.get(RemoteId(one.pin(snapshot.workspace) or ""), "")])
        for one in declared
        if one.address.kind == CUSTOM_FIELD
    }


def _admins(redaction: RedactionContext, specs: Mapping[RemoteId, PersonSpec]) -> Iterator[AdminRow]:
    """Yield the admins whose rights are declared, and count the others."""
    for row in redaction.planning.snapshot.rows(AdminRow):
        if row.id in specs and specs[row.id].needs_live_rights:
            yield AdminRow(row.id, redaction.replacement_label(row.name))
        else:
            redaction.count_person((ADMIN, "", "admins"), row.id)


def _holders(snapshot: Snapshot) -> Iterator[HolderRow]:
    """Keep only choices of fields: a service may show a text answer as a list of one, which looks like a choice."""
    known = {text for field in snapshot.rows(FieldRow) for one in field.choices for text in (one.id, one.name)}
    return (row for row in snapshot.rows(HolderRow) if row.id in known)


def _assignments(redaction: RedactionContext) -> Iterator[TargetRow]:
    """Yield assignments to groups and to people who are shown, and count the others of each content."""
    planning, registry = redaction.planning, redaction.planning.registry
    for kind in (GROUP, SMART_GROUP, USER):
        for named in planning.snapshot.of(kind).rows:
            registry.set_display_name(kind, named.name, named.id)
    for row in planning.snapshot.rows(TargetRow):
        audience = resolve_audience(planning, row)
        kinds = {one.kind for one in audience_candidates(planning, row)} if audience is None else {audience.kind}
        if kinds and USER not in kinds:
            # The `name` of a target is that of its audience, which may be a person.
            is_group = row.label in (registry.name(GROUP, row.target), registry.name(SMART_GROUP, row.target))
            yield replace(row, label=redaction.redacted(row.label) if is_group else "")
        elif audience is not None and row.target in redaction.shown:
            yield replace(row, label="")
        else:
            if kinds and audience is None:
                redaction.incomplete[CONTENT_TARGET] = (
                    "an assignment is for an id that is both a person's and a group's"
                )
            redaction.count_person((CONTENT_TARGET, row.content, row.type), row.target)
