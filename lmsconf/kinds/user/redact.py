"""People in redacted snapshots: who is shown, with which attributes, and who is only counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.shared.kind_names import ADMIN, CUSTOM_FIELD, USER
from lmsconf.kinds.user.people_directory import PeopleDirectory
from lmsconf.kinds.user.types import RIGHTS, AdminRow, HolderRow, PersonRow, PersonSpec
from lmsconf.model.address import RemoteId
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.names import normalize_name
from lmsconf.model.snapshot import HasId, ListedRow, Snapshot
from lmsconf.planner.redaction import (
    Entry,
    LivePerson,
    RedactionContext,
    Report,
    RestoreContext,
    not_compared_warning,
    random_id,
)

_LISTED: Final = frozenset({"first_name", "last_name", "language", "applications"})
_ADMINS: Final = "admins"


def live_people(snapshot: Snapshot, declared: Sequence[DesiredResource[PersonSpec]]) -> Iterator[LivePerson]:
    """Yield the people of a snapshot. Of people who share an e-mail, none is active."""
    rows = snapshot.rows(PersonRow)
    directory, declarations = PeopleDirectory.of(rows), _Declarations.of(snapshot, declared)
    for row in rows:
        is_active = row.id in directory.emails and row.name not in directory.archived
        yield LivePerson(row.id, row.name, is_active, declarations.of_row(row) is not None)


def redact_rows(redaction: RedactionContext, row_type: type[ListedRow]) -> Iterable[HasId]:
    """Return people, admins or numbers of holders, without what is not declared."""
    if row_type is AdminRow:
        return _admins(redaction)
    return _holders(redaction.planning.snapshot) if row_type is HolderRow else _people(redaction)


def restore_rows(restoring: RestoreContext, row_type: type[ListedRow]) -> Iterable[HasId]:
    """Return people and admins with the e-mails of named people, and a placeholder per counted person."""
    rows = restoring.snapshot.rows
    if row_type is AdminRow:
        named = (AdminRow(row.id, restoring.restore_email(row.name)) for row in rows(AdminRow))
        return [*named, *(AdminRow(id, id) for id in restoring.placeholder_ids(ADMIN, "", _ADMINS))]
    if row_type is PersonRow:
        stand_ins = (PersonRow(one.id, one.id, one.archived, stand_in=True) for one in restoring.stand_ins)
        return [*(replace(row, email=restoring.restore_email(row.email)) for row in rows(PersonRow)), *stand_ins]
    return rows(row_type)


class _Declarations(Struct, frozen=True):
    """The declarations of people that apply in one workspace, by e-mail and by pinned id."""

    by_email: Mapping[str, PersonSpec]
    by_id: Mapping[str, PersonSpec]

    @staticmethod
    def of(snapshot: Snapshot, declared: Iterable[DesiredResource[PersonSpec]]) -> _Declarations:
        """Index declarations; for an e-mail, the first one counts."""
        by_email: dict[str, PersonSpec] = {}
        by_id: dict[str, PersonSpec] = {}
        for entry in declared:
            if entry.applies_in(snapshot.workspace):
                for name in (entry.address.name, *entry.previously):
                    by_email.setdefault(name, entry.spec)
                if (pin := entry.pin(snapshot.workspace)) is not None:
                    by_id[pin] = entry.spec
        return _Declarations(by_email, by_id)

    def of_row(self, row: PersonRow) -> PersonSpec | None:
        """Return a person's declaration, or None for one named at most in a list."""
        return self.by_id.get(row.id) or self.by_email.get(row.name)


def _people(redaction: RedactionContext) -> list[PersonRow]:
    """Return people with their declared attributes and a pseudonym; of undeclared ones only whether archived."""
    snapshot = redaction.planning.snapshot
    declarations = _Declarations.of(snapshot, redaction.declared[USER])
    names = _field_names(redaction.declared[CUSTOM_FIELD], snapshot)
    rows = []
    for row in snapshot.rows(PersonRow):
        label = redaction.replacement_label(row.email)
        if redaction.is_shown(row.id):
            rows.append(replace(_declared_part(row, declarations.of_row(row), names), email=label))
        else:
            rows.append(PersonRow(random_id(), label, row.archived))
    return sorted(rows, key=lambda row: row.id)


def _declared_part(row: PersonRow, spec: PersonSpec | None, names: Mapping[str, frozenset[str]]) -> PersonRow:
    """Return the row with only the attributes that are declared. names: of each field, by its declared name."""
    bare = PersonRow(row.id, row.email, row.archived)
    if spec is None:
        return bare
    keys = (spec.declared_keys & _LISTED) | (frozenset(RIGHTS) if spec.needs_live_rights else frozenset())
    kept: dict[str, Any] = {key: getattr(row, key) for key in keys}
    if "metadata" in spec.declared_keys and row.metadata is not None:
        kept["metadata"] = tuple(pair for pair in row.metadata if pair[0] in spec.metadata)
    if "answers" in spec.declared_keys and row.answers is not None:
        fields = {name for declared in spec.answers for name in (declared, *names.get(declared, ()))}
        kept["answers"] = tuple(answer for answer in row.answers if answer.field in fields)
    if "custom_archive_date" in spec.declared_keys:
        kept["archive_date"] = row.archive_date
    return replace(bare, **kept, manages=row.manages)


def _field_names(declared: Iterable[DesiredResource[Any]], snapshot: Snapshot) -> Mapping[str, frozenset[str]]:
    """Return, by declared field name, the other names that the live field may have."""
    live = {row.id: normalize_name(row.name) for row in snapshot.rows(FieldRow)}
    return {
        one.address.name: frozenset([*one.previously, live.get(RemoteId(one.pin(snapshot.workspace) or ""), "")])
        for one in declared
    }


def _admins(redaction: RedactionContext) -> Iterator[AdminRow]:
    """Yield the admins whose rights are declared, and count the others."""
    snapshot = redaction.planning.snapshot
    declarations = _Declarations.of(snapshot, redaction.declared[USER])
    specs = ((row.id, declarations.of_row(row)) for row in snapshot.rows(PersonRow))
    with_rights = {id for id, spec in specs if spec is not None and spec.needs_live_rights}
    for row in snapshot.rows(AdminRow):
        if row.id in with_rights:
            yield AdminRow(row.id, redaction.replacement_label(row.name))
        else:
            redaction.count_person(ADMIN, "", _ADMINS, row.id)


def _holders(snapshot: Snapshot) -> Iterator[HolderRow]:
    """Keep only choices of fields: a service may show a text answer as a list of one, which looks like a choice."""
    choices = (choice for field in snapshot.rows(FieldRow) for choice in field.choices)
    known = {text for choice in choices for text in (choice.id, choice.name)}
    return (row for row in snapshot.rows(HolderRow) if row.id in known)


def drop_unknown_people(entry: Entry, new: frozenset[str], report: Report) -> Entry | None:
    """Return the entry; None, reported, if a redacted snapshot does not know one of the person's e-mails."""
    # Matching by an earlier e-mail requires knowing that the present one is not live.
    previously: tuple[str, ...] = entry.previously if isinstance(entry, DesiredResource) else ()
    if unknown := min(new & {entry.address.name, *previously}, default=""):
        report(not_compared_warning(entry.address, unknown, entry.source))
        return None
    return entry
