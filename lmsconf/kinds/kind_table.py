"""The five kinds of resources, in the order in which they are planned, and how manifest entries of each are parsed.

A kind depends only on those before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from lmsconf.api.spec.operations import CUSTOM_FIELDS, MANUAL_GROUPS, SMART_GROUPS, USERS
from lmsconf.errors import Problem
from lmsconf.kinds.assignment.parse import check_replacements, parse_absent_assignments, parse_assignments
from lmsconf.kinds.assignment.types import AUDIENCES, ContentRow, TargetRow
from lmsconf.kinds.custom_field.types import (
    FLAGS,
    FieldRow,
    find_bad_migrations,
    find_too_many_fields,
    parse_field,
    replayed_deletion,
)
from lmsconf.kinds.group import GroupRow, parse_group
from lmsconf.kinds.shared.kind_names import (
    ADMIN,
    CONTENT,
    CONTENT_TARGET,
    CUSTOM_FIELD,
    EDITS,
    GROUP,
    HOLDERS,
    SMART_GROUP,
    USER,
    Kind,
)
from lmsconf.kinds.shared.manifest_entry import (
    ANY,
    KEYS,
    LISTS,
    EntryItems,
    ManifestEntry,
    PartReferences,
    Trail,
    declared_lists,
    delete_entry,
    parse_about,
    parse_names,
    parse_only_in,
    parse_pins,
)
from lmsconf.kinds.smart_group import SmartGroupRow, find_unknown_choices, parse_smart_group
from lmsconf.kinds.user.types import RIGHTS, AdminRow, HolderRow, PersonRow, parse_person, report_deleted_person
from lmsconf.model.address import Address
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.names import normalize_email


def _people_in(*lists: Trail) -> tuple[Trail, ...]:
    """Return the paths of the people in lists, each written whole or as `include` and `exclude`."""
    return tuple((*trail, *part, ANY) for trail in lists for part in ((), ("include",), ("exclude",)))


_CONDITIONS: Final[tuple[Trail, ...]] = (("smart_groups", ANY, "conditions", ANY), ("condition_sets", ANY, ANY))
_AUDIENCES: Final[tuple[Trail, ...]] = (
    ("content_targets", ANY, "assign_to", ANY),
    ("absent", "content_targets", ANY, "assign_to", ANY),
    *(("tests", ANY, key) for key in ("all", "none", "audience")),
    ("tests", ANY, "disjoint", ANY),
)


KINDS: Final[Mapping[str, Kind]] = {
    kind.name: kind
    for kind in (
        Kind(
            name=CUSTOM_FIELD,
            section="custom_fields",
            noun="custom field",
            plural="custom fields",
            row_types=(FieldRow,),
            list_operation=CUSTOM_FIELDS,
            parts_key="choices",
            default_keys=("description", *FLAGS),
            operations=(
                "custom-fields.list",
                "custom-fields.create",
                "custom-fields.replace",
                "custom-fields.delete",
                "smart-groups.list",
                "smart-groups.get",
            ),
        ),
        Kind(
            name=USER,
            section="users",
            noun="person",
            plural="people",
            row_types=(PersonRow, AdminRow, HolderRow),
            list_operation=USERS,
            is_person=True,
            listing_nouns={
                ADMIN: ("person with administrator rights", "people with administrator rights"),
                HOLDERS: ("choice that somebody holds", "choices that somebody holds"),
            },
            name_key="email",
            default_keys=(*RIGHTS, "applications"),
            normalize_name=normalize_email,
            time_keys={"custom_archive_date": False},
            references={CUSTOM_FIELD: (("users", ANY, "answers", KEYS),), USER: (("people_sets", ANY, ANY),)},
            part_references={CUSTOM_FIELD: (PartReferences(("users", ANY, "answers"), None, ((), (ANY,))),)},
            operations=(
                "users.list",
                "users.extended-info",
                "users.get",
                "users.create",
                "users.archive",
                "users.unarchive",
                "custom-fields.list",
                "users.set-custom-archived-date",
                "users.update-custom-field-choice",
                "users.update-email",
                "users.update-fullname",
                "users.update-language",
                "users.update-metadata",
                "user-access.set",
                "user-access.make-admin",
                "user-access.make-manager",
            ),
        ),
        Kind(
            name=GROUP,
            section="groups",
            noun="group",
            plural="groups",
            row_types=(GroupRow,),
            list_operation=MANUAL_GROUPS,
            example="group/Sales",
            default_keys=LISTS,
            references={USER: _people_in(("groups", ANY, "members"), ("groups", ANY, "managers"))},
            operations=(
                "users.list",
                "users.extended-info",
                "manual-groups.list",
                "manual-groups.create",
                "manual-groups.delete",
                "manual-groups.rename",
                "manual-groups.members",
                "manual-groups.add-members",
                "manual-groups.remove-member",
                "manual-groups.managers",
                "manual-groups.add-managers",
                "manual-groups.remove-manager",
                "content.list",
                "content-targets.list",
                "content-targets.delete",
            ),
        ),
        Kind(
            name=SMART_GROUP,
            section="smart_groups",
            noun="smart group",
            plural="smart groups",
            row_types=(SmartGroupRow,),
            default_keys=("managers",),
            list_operation=SMART_GROUPS,
            references={
                CUSTOM_FIELD: tuple((*trail, "field") for trail in _CONDITIONS),
                USER: _people_in(("smart_groups", ANY, "managers")),
            },
            part_references={
                CUSTOM_FIELD: tuple(
                    PartReferences(at, "field", (("choices", ANY), ("except", ANY))) for at in _CONDITIONS
                )
            },
            operations=(
                "users.list",
                "users.extended-info",
                "custom-fields.list",
                "smart-groups.list",
                "smart-groups.get",
                "smart-groups.create",
                "smart-groups.delete",
                "smart-groups.rename",
                "smart-groups.replace-conditions",
                "smart-groups.managers",
                "smart-groups.add-managers",
                "smart-groups.remove-manager",
                "content.list",
                "content-targets.list",
                "content-targets.delete",
            ),
        ),
        Kind(
            name=CONTENT_TARGET,
            section="content_targets",
            noun="assignment",
            plural="assignments",
            is_relation=True,
            row_types=(ContentRow, TargetRow),
            listing_nouns={
                CONTENT: ("content", "contents"),
                EDITS: ("assignment with its last edit", "assignments with their last edits"),
            },
            example="content_target/GDPR basics -> everyone",
            entry_items=EntryItems("assign_to", "audience", "content"),
            time_keys={"visible_from": False, "visible_until": True},
            references={
                kind: (*((*trail, key) for trail in _AUDIENCES), ("tests", ANY, key)) for key, kind in AUDIENCES.items()
            },
            operations=(
                "users.list",
                "users.extended-info",
                "manual-groups.list",
                "smart-groups.list",
                "content.list",
                "content-targets.list",
                "content-targets.create",
                "content-targets.delete",
            ),
        ),
    )
}
"""Name → kind."""


_PARSE_SPEC: Final[Mapping[str, Callable[[ManifestEntry, Address], object]]] = {
    CUSTOM_FIELD: parse_field,
    USER: parse_person,
    GROUP: parse_group,
    SMART_GROUP: parse_smart_group,
}
"""Kind whose entries declare one resource each → how what they declare of it is parsed."""


def parse(kind: str, entry: ManifestEntry) -> Iterable[DesiredResource[Any]]:
    """Return the resources that one manifest entry of a kind declares."""
    if kind == CONTENT_TARGET:
        return parse_assignments(entry)
    address = _address(kind, entry)
    return [
        DesiredResource(
            address=address,
            spec=_PARSE_SPEC[kind](entry, address),
            places=entry.places,
            pins=parse_pins(entry.body.get("id")),
            previously=tuple(map(KINDS[kind].normalize_name, parse_names(entry.body.get("previously")))),
            only_in=parse_only_in(entry.body),
            about=parse_about(entry.body),
        )
    ]


def parse_absent(kind: str, entry: ManifestEntry) -> Iterable[DeleteEntry[Any]]:
    """Return the resources that one entry under `absent` declares to be deleted."""
    if kind == CONTENT_TARGET:
        return parse_absent_assignments(entry)
    address = _address(kind, entry)
    if kind == USER:
        report_deleted_person(entry, address)
    deletion = delete_entry(entry, address, None)
    return [replayed_deletion(entry, deletion) if kind == CUSTOM_FIELD else deletion]


def _address(kind: str, entry: ManifestEntry) -> Address:
    """Return the address of the resource that an entry identifies by its name, or its e-mail."""
    return Address.of(kind, KINDS[kind].normalize_name(str(entry.body[KINDS[kind].name_key])))


def check_declarations(declared: Mapping[str, Sequence[DesiredResource[Any]]]) -> Iterator[Problem]:
    """Yield problems between declarations, found without a snapshot. declared: kind → its declarations."""
    fields = declared.get(CUSTOM_FIELD, ())
    yield from find_bad_migrations(fields)
    yield from find_too_many_fields(fields)
    yield from find_unknown_choices(declared.get(SMART_GROUP, ()), fields)
    yield from check_replacements(declared.get(CONTENT_TARGET, ()))


def dependencies(declared: DesiredResource[Any]) -> list[Address]:
    """Return the resources that a declaration depends on: the plan may create them."""
    kind, spec = declared.address.kind, declared.spec
    if kind == USER:
        return [Address.of(CUSTOM_FIELD, field) for field in spec.answers]
    if kind == CONTENT_TARGET:
        return [spec.audience]
    return [
        *(Address.of(CUSTOM_FIELD, one.field) for one in getattr(spec, "conditions", None) or ()),
        *(Address.of(USER, person) for _, listed in declared_lists(spec) for person in sorted(listed.named_emails)),
    ]


def named_emails(entry: DesiredResource[Any] | DeleteEntry[Any]) -> Iterable[str]:
    """Return the e-mails that an entry names, in no order, earlier ones of its person included."""
    kind, spec = entry.address.kind, entry.spec
    if kind == CONTENT_TARGET:
        return [spec.audience.name] if spec.audience.kind == USER else []
    if kind == USER:
        return [entry.address.name, *(entry.previously if isinstance(entry, DesiredResource) else ())]
    return frozenset[str]().union(*(people.named_emails for _, people in declared_lists(spec)))
