"""Redaction of snapshots: people not named by the manifests cannot be identified.

This holds even for a reader who has a list of all people and their groups. Of each undeclared person the snapshot has
a label and an id, both random and new in each snapshot, and whether the account is archived; lists of people,
administrator rights and assignments give only their number.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from secrets import token_hex
from typing import Final, cast

from lmsconf.kinds.content_target.catalog import ContentRow
from lmsconf.kinds.content_target.values import TargetRow, audience_of, candidates
from lmsconf.kinds.custom_field.values import FieldRow
from lmsconf.kinds.manual_group.values import GroupRow
from lmsconf.kinds.shared.names import (
    ADMIN,
    CONTENT,
    CONTENT_TARGET,
    CUSTOM_FIELD,
    GROUP,
    HOLDERS,
    SMART_GROUP,
    UNNAMED,
    USER,
)
from lmsconf.kinds.shared.pseudonyms import LABEL, named_people, pseudonym
from lmsconf.kinds.smart_group.values import SmartRow
from lmsconf.kinds.user.directory import Directory
from lmsconf.kinds.user.values import RIGHTS, AdminRow, Person, PersonRow, UnnamedRow
from lmsconf.model.address import RemoteId
from lmsconf.model.names import email, normal
from lmsconf.model.snapshot import HasName, Listing, Redaction, Snapshot
from lmsconf.planner.context import PlanContext
from lmsconf.planner.kind import AnyKind
from lmsconf.planner.plan import Manifests

_ADDRESS: Final = re.compile(r"[\w.!#$%&*+=?^`{}~'-]+@[\w.-]*\w")
_NOT_WHOLE: Final = "it was not read whole"
"""Replaces the reason of an incomplete listing, which may quote a response with people in it."""
_UNCLEAR: Final = "an assignment is for an id that is both a person's and a group's"
_LISTED: Final = frozenset({"first_name", "last_name", "language", "applications"})


def without_people(planning: PlanContext, manifests: Manifests, kinds: Mapping[str, AnyKind]) -> Snapshot:
    """Return the context's snapshot, redacted to the people named by the manifests."""
    return _Redacting(planning, manifests, kinds).run()


class _Redacting:
    def __init__(self, planning: PlanContext, manifests: Manifests, kinds: Mapping[str, AnyKind]) -> None:
        self._planning, self._snapshot = planning, planning.snapshot
        self._salt = token_hex(16)
        self._named = named_people(manifests, kinds)
        people = self._snapshot.rows(PersonRow)
        self._directory = Directory.of(people)
        self._specs = _Specs(manifests, self._snapshot)
        self._shown = frozenset(row.id for row in people if row.name in self._named or self._specs.of(row))
        said = frozenset(email(found) for text in _texts(manifests) for found in _ADDRESS.findall(text))
        self._hidden = frozenset(row.name for row in people) - self._named - said
        self._counts: Counter[tuple[str, str, str, str]] = Counter()
        self._unclear = False

    def run(self) -> Snapshot:
        steps: dict[str, Callable[[Iterable[HasName]], Iterable[HasName]]] = {
            USER: lambda rows: sorted(map(self._person, cast("Iterable[PersonRow]", rows)), key=lambda row: row.id),
            ADMIN: self._admins,
            HOLDERS: self._holders,
            CUSTOM_FIELD: lambda rows: map(self._field, cast("Iterable[FieldRow]", rows)),
            GROUP: lambda rows: map(self._group, cast("Iterable[GroupRow]", rows)),
            SMART_GROUP: lambda rows: map(self._smart_group, cast("Iterable[SmartRow]", rows)),
            CONTENT: lambda rows: (replace(row, name=self._text(row.name)) for row in _contents(rows)),
            CONTENT_TARGET: lambda rows: self._targets(cast("Iterable[TargetRow]", rows)),
        }
        held = self._snapshot.listings
        listings = {
            kind: Listing(rows=tuple(step(held[kind].rows)), incomplete=held[kind].incomplete and _NOT_WHOLE)
            for kind, step in steps.items()
            if kind in held
        }
        if self._unclear:
            listings[CONTENT_TARGET] = replace(listings[CONTENT_TARGET], incomplete=_UNCLEAR)
        listings[UNNAMED] = Listing(rows=tuple(self._counted()))
        named = frozenset(pseudonym(self._salt, one) for one in self._named)
        return replace(self._snapshot, listings=listings, redaction=Redaction(salt=self._salt, named=named))

    def _person(self, row: PersonRow) -> PersonRow:
        """Return the declared attributes of a person, with a pseudonym; of an undeclared one only whether archived."""
        label = pseudonym(self._salt, row.email) if row.name in self._named else LABEL + token_hex(8)
        if row.id not in self._shown:
            return PersonRow(RemoteId(token_hex(16)), label, row.archived)
        return replace(self._specs.kept(row), id=row.id, email=label, archived=row.archived)

    def _admins(self, rows: Iterable[HasName]) -> Iterator[AdminRow]:
        """Yield the admins whose rights are declared, and count the others."""
        for row in rows:
            if self._specs.rights(row.id):
                yield AdminRow(row.id, pseudonym(self._salt, row.name) if row.name in self._named else LABEL)
            else:
                self._count(ADMIN, "", "admins", row.id)

    def _holders(self, rows: Iterable[HasName]) -> Iterator[HasName]:
        """Keep only choices of fields: a service may show a text answer as a list of one, which looks like a choice."""
        choices = (choice for field in _fields(self._snapshot) for choice in field.choices)
        known = {text for choice in choices for text in (choice.id, choice.name)}
        return (row for row in rows if row.id in known)

    def _field(self, row: FieldRow) -> FieldRow:
        choices = tuple(replace(choice, name=self._text(choice.name)) for choice in row.choices)
        description = row.description and self._text(row.description)
        return replace(row, name=self._text(row.name), choices=choices, description=description)

    def _group(self, row: GroupRow) -> GroupRow:
        return GroupRow(
            row.id,
            self._text(row.name),
            self._list(GROUP, row.id, "members", row.members),
            self._list(GROUP, row.id, "managers", row.managers),
        )

    def _smart_group(self, row: SmartRow) -> SmartRow:
        conditions = row.conditions and tuple(
            one._replace(system_condition=one.system_condition and self._text(one.system_condition))
            for one in row.conditions
        )
        managers = self._list(SMART_GROUP, row.id, "managers", row.managers)
        return SmartRow(row.id, self._text(row.name), conditions, managers)

    def _list(self, kind: str, of: str, key: str, ids: frozenset[RemoteId] | None) -> frozenset[RemoteId] | None:
        """Return the ids of shown people in a list, and count the others."""
        for id in () if ids is None else ids - self._shown:
            self._count(kind, of, key, id)
        return None if ids is None else ids & self._shown

    def _targets(self, rows: Iterable[TargetRow]) -> Iterator[TargetRow]:
        """Yield assignments to groups and to named people, and count the others of each content."""
        names: dict[str, dict[str, str]] = {}
        for kind in (GROUP, SMART_GROUP, USER):
            names[kind] = {row.id: row.name for row in self._snapshot.of(kind).rows}
            for id, name in names[kind].items():
                self._planning.book.alias(kind, name, RemoteId(id))
        for row in rows:
            audience = audience_of(self._planning, row)
            kinds = {one.kind for one in candidates(self._planning, row)} if audience is None else {audience.kind}
            # The `name` of a target is that of its audience, which may be a person.
            groups = {names[kind].get(row.target) for kind in (GROUP, SMART_GROUP)}
            if kinds and USER not in kinds:
                yield replace(row, label=self._text(row.label) if row.label in groups else "")
            elif audience is not None and row.target in self._shown:
                yield replace(row, label="")
            else:
                self._unclear = self._unclear or bool(kinds and audience is None)
                self._count(CONTENT_TARGET, row.content, row.type, row.target)

    def _count(self, kind: str, of: str, list: str, id: str) -> None:
        """Count a person in a list. People who share an e-mail count as archived: neither is compared or removed."""
        name = self._directory.emails.get(id)
        known = "archived" if id in self._directory.ids else "unknown"
        self._counts[kind, of, list, known if name is None or name in self._directory.archived else "active"] += 1

    def _counted(self) -> Iterator[UnnamedRow]:
        for kind, of, list in sorted({(kind, of, list) for kind, of, list, _ in self._counts}):
            numbers = (self._counts[kind, of, list, how] for how in ("active", "archived", "unknown"))
            yield UnnamedRow(kind, RemoteId(of), list, *numbers)

    def _text(self, text: str) -> str:
        """Replace the e-mails of undeclared people in a text with random labels."""
        if "@" not in text:
            return text
        return _ADDRESS.sub(lambda at: LABEL + token_hex(8) if email(at[0]) in self._hidden else at[0], text)


class _Specs:
    """The declarations under `users:` that apply in one workspace, by e-mail and by pinned id."""

    def __init__(self, manifests: Manifests, snapshot: Snapshot) -> None:
        self._by_email: dict[str, Person] = {}
        self._by_id: dict[str, Person] = {}
        for one in manifests.declared:
            if one.address.kind == USER and one.applies_in(snapshot.workspace):
                for name in (one.address.name, *one.previously):
                    self._by_email.setdefault(name, cast(Person, one.spec))
                if (pin := one.pin(snapshot.workspace)) is not None:
                    self._by_id[pin] = cast(Person, one.spec)
        people = snapshot.rows(PersonRow)
        self._rights = frozenset(row.id for row in people if (spec := self.of(row)) and spec.needs_rights)
        self._called = _called(manifests, snapshot)

    def of(self, row: PersonRow) -> Person | None:
        """Return a person's declaration, or None for one named at most in a list."""
        return self._by_id.get(row.id) or self._by_email.get(row.name)

    def rights(self, id: str) -> bool:
        """Return whether the person's declaration depends on admin or manager rights."""
        return id in self._rights

    def kept(self, row: PersonRow) -> PersonRow:
        """Return the row with only the attributes that are declared."""
        spec = self.of(row)
        if spec is None:
            return PersonRow(row.id, row.email, row.archived)
        keys = (spec.said & _LISTED) | (frozenset(RIGHTS) if spec.needs_rights else frozenset())
        found: dict[str, object] = {key: getattr(row, key) for key in keys}
        if "metadata" in spec.said and row.metadata is not None:
            found["metadata"] = tuple(pair for pair in row.metadata if pair[0] in spec.metadata)
        if "answers" in spec.said and row.answers is not None:
            fields = {name for said in spec.answers for name in (said, *self._called.get(said, ()))}
            found["answers"] = tuple(answer for answer in row.answers if answer.field in fields)
        if "custom_archive_date" in spec.said:
            found["archive_date"] = row.archive_date
        return PersonRow(row.id, row.email, row.archived, **found)  # type: ignore[arg-type]  # keys are fields of it


def _called(manifests: Manifests, snapshot: Snapshot) -> Mapping[str, frozenset[str]]:
    """Return, by declared field name, the other names that the live field may have."""
    live = {row.id: normal(row.name) for row in snapshot.of(CUSTOM_FIELD).rows}
    return {
        one.address.name: frozenset([*one.previously, live.get(RemoteId(one.pin(snapshot.workspace) or ""), "")])
        for one in manifests.declared
        if one.address.kind == CUSTOM_FIELD
    }


def _fields(snapshot: Snapshot) -> tuple[FieldRow, ...]:
    return snapshot.rows(FieldRow)


def _contents(rows: Iterable[HasName]) -> Iterable[ContentRow]:
    return cast("Iterable[ContentRow]", rows)


def _texts(manifests: Manifests) -> Iterator[str]:
    """Yield every string in the manifests' entries."""
    for one in manifests.declared:
        yield from _strings((one.address.name, one.spec, one.previously, one.about))
    for gone in manifests.absent:
        yield from _strings((gone.address.name, gone.spec))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _strings((key, item))
    elif isinstance(value, tuple | list | frozenset):
        for item in value:
            yield from _strings(item)
    elif is_dataclass(value):
        for field in fields(value):
            yield from _strings(getattr(value, field.name))
