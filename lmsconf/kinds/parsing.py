"""Manifest entries of the five kinds: how they are parsed and checked, and what they name and depend on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from lmsconf.errors import Problem
from lmsconf.kinds.assignment.parse import check_replacements, parse_absent_assignments, parse_assignments
from lmsconf.kinds.assignment.types import people_named
from lmsconf.kinds.custom_field.parse import (
    find_bad_migrations,
    find_too_many_fields,
    parse_field,
    parse_replayed_deletion,
)
from lmsconf.kinds.manual_group.types import parse_group
from lmsconf.kinds.shared.entry_keys import declared_lists, delete_entry_by_name
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.manifest_entry import ManifestEntry
from lmsconf.kinds.smart_group.types import find_unknown_choices, parse_smart_group
from lmsconf.kinds.user.parse import parse_absent_person, parse_person
from lmsconf.model.address import Address
from lmsconf.model.declarations import DeleteEntry, DesiredResource

_PARSE: Final[Mapping[str, Callable[[ManifestEntry], DesiredResource[Any]]]] = {
    CUSTOM_FIELD: parse_field,
    USER: parse_person,
    GROUP: parse_group,
    SMART_GROUP: parse_smart_group,
}
"""Kind whose entries declare one resource each → how it is parsed."""


def parse(kind: str, entry: ManifestEntry) -> Iterable[DesiredResource[Any]]:
    """Return the resources that one manifest entry of a kind declares."""
    return parse_assignments(entry) if kind == CONTENT_TARGET else [_PARSE[kind](entry)]


def parse_absent(kind: str, entry: ManifestEntry) -> Iterable[DeleteEntry[Any]]:
    """Return the resources that one entry under `absent` declares to be deleted."""
    if kind == CONTENT_TARGET:
        return parse_absent_assignments(entry)
    if kind == USER:
        return [parse_absent_person(entry)]
    return [parse_replayed_deletion(entry) if kind == CUSTOM_FIELD else delete_entry_by_name(kind, entry)]


def check_declarations(declared: Mapping[str, Sequence[DesiredResource[Any]]]) -> Iterator[Problem]:
    """Yield problems between declarations, found without a snapshot. declared: kind → its declarations."""
    fields, assignments = declared.get(CUSTOM_FIELD, ()), declared.get(CONTENT_TARGET, ())
    yield from find_bad_migrations(fields)
    yield from find_too_many_fields(fields)
    yield from find_unknown_choices(declared.get(SMART_GROUP, ()), fields)
    yield from check_replacements(assignments)


def dependencies(declared: DesiredResource[Any]) -> list[Address]:
    """Return the resources that a declaration depends on: the plan may create them."""
    kind, spec = declared.address.kind, declared.spec
    if kind == USER:
        return [Address.of(CUSTOM_FIELD, field) for field in spec.answers]
    if kind == CONTENT_TARGET:
        return [spec.audience]
    conditions = spec.conditions or () if kind == SMART_GROUP else ()
    fields = [Address.of(CUSTOM_FIELD, condition.field) for condition in conditions]
    people = (person for _, listed in declared_lists(spec) for person in sorted(listed.named_emails))
    return [*fields, *(Address.of(USER, person) for person in people)]


def named_emails(entry: DesiredResource[Any] | DeleteEntry[Any]) -> Iterable[str]:
    """Return the e-mails that an entry names, in no order, beyond the name of a person that it declares."""
    kind, spec = entry.address.kind, entry.spec
    if kind == CONTENT_TARGET:
        return people_named(entry)
    if not isinstance(entry, DesiredResource):
        return ()
    if kind == USER:
        return entry.previously
    return frozenset[str]().union(*(people.named_emails for _, people in declared_lists(spec)))
