"""Values of custom fields: live rows and declared specs, and the parsing of manifest entries.

An entry has its choices, and how answers migrate from another field.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast

from msgspec import Struct, field

from lmsconf.api.spec.value_encoding import Behaviour, PickedChoice, encode_answer
from lmsconf.errors import Problem, shorten
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD
from lmsconf.kinds.shared.manifest_entry import (
    ManifestEntry,
    parse_names,
    parse_pins,
)
from lmsconf.kinds.shared.responses import AnswerRow, object_list, optional_flag, require_text
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.declarations import DeleteEntry, DesiredResource, PlacesBelow, SourceMap
from lmsconf.model.forms import without_empty
from lmsconf.model.names import did_you_mean, list_names, normalize_name, quote_name
from lmsconf.model.snapshot import IdAndName

MOST_FIELDS: Final = 10
TYPES: Final = ("CHOICE", "MULTI_SELECT", "TEXT")
FLAGS: Final = {"hidden": "isHidden", "locked": "isLocked", "optional": "isOptional"}


class ChoiceRow(IdAndName, frozen=True):
    """A live choice."""


class FieldRow(IdAndName, frozen=True):
    """A live custom field. A flag is None where the response lacks it."""

    listing = CUSTOM_FIELD

    type: str
    choices: tuple[ChoiceRow, ...] = ()
    description: str | None = None
    hidden: bool | None = None
    locked: bool | None = None
    optional: bool | None = None


class DeclaredChoice(Struct, frozen=True):
    """A declared choice. pins: workspace, "" for any, → choice id. previously: old names. at: its path in the entry."""

    name: str
    pins: Mapping[str, str]
    previously: tuple[str, ...]
    at: tuple[str | int, ...]


class DeclaredChoices(Struct, frozen=True):
    """The declared choices of a field: the whole list, or, unless `whole`, those that must and must not exist."""

    include: tuple[DeclaredChoice, ...]
    exclude: tuple[str, ...] = ()
    whole: bool = True


class Migration(Struct, frozen=True, kw_only=True):
    """How answers move from the field `source` to the field `target`. Names are normalized.

    choices: old choice, or text → new choice, None: no answer; others keep their name.
    deletes_rest: whether answers that cannot be copied are deleted with the old field, instead of keeping it.
    all_groups: whether conditions that no manifest declares are replaced too. places: of the parts of the mapping.
    is_replayed: whether it is that of a plan, which deletes the old field.
    """

    source: str
    target: str
    choices: Mapping[str, str | None]
    deletes_rest: bool
    all_groups: bool
    places: SourceMap
    is_replayed: bool


class CustomFieldSpec(Struct, frozen=True):
    """A declared field; None for an undeclared key. `description` is "" where the manifest has null: clear it."""

    type: str | None
    choices: DeclaredChoices | None
    description: str | None
    hidden: bool | None
    locked: bool | None
    optional: bool | None
    migrate: Migration | None = None


class FieldOrChoiceDeletion(Struct, frozen=True):
    """A live field to be deleted, or, if `choices` is given, the ids of its choices to be deleted."""

    address: Address
    field: FieldRow
    choices: frozenset[str] | None = None


LEFT_OUT: Final = "the person is not in this plan"


class ActiveMigration(Struct):
    """A migration whose old field, `row`, is live, and what becomes of the answers to it.

    target, target_type: the new field. copies: the answers that are still to be copied, by person. settled: everybody
    whose old answer is, or will be, in the new field. uncopied: why answers cannot be copied → whose.
    """

    migration: Migration
    address: Address
    row: FieldRow
    target: Address
    target_type: str
    copies: dict[RemoteId, str | frozenset[str]] = field(default_factory=dict)
    settled: set[RemoteId] = field(default_factory=set)
    uncopied: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    @property
    def keeps_old(self) -> bool:
        """Whether the old field is to stay for now, because some answers cannot be copied."""
        return LEFT_OUT in self.uncopied or (bool(self.uncopied) and not self.migration.deletes_rest)

    @property
    def is_held(self) -> bool:
        """Whether the old field stays; the deletion of a plan made before is refused instead."""
        return self.keeps_old and not self.migration.is_replayed


class DeclaredCondition(NamedTuple):
    """A condition, by names. `system_condition` is None if undeclared."""

    field: str
    choices: frozenset[str]
    system_condition: str | None

    def to_json(self) -> Json:
        """The condition as written in a manifest."""
        beside: dict[str, Json] = {"choices": [*sorted(self.choices)], "system_condition": self.system_condition}
        return {"field": self.field, **without_empty(beside)}


def answer_value(field: FieldRow, answer: AnswerRow) -> str | list[PickedChoice]:
    """Return a live answer as it can be sent again: its text, or those of the field's choices that it picks."""
    if field.type == "TEXT":
        return answer.as_text
    return [
        PickedChoice(one.id, one.name)
        for one in field.choices
        if answer.picked & {one.id, one.name, normalize_name(one.name)}
    ]


def encode_live_answers(
    behaviour: Behaviour, fields: Iterable[FieldRow], answers: Iterable[AnswerRow]
) -> dict[str, object]:
    """Return a person's live answers in wire form, by field id, to send them again.

    Left out are those of which nothing can be sent: a choice may be there no more, and an empty answer may be refused.
    """
    by_name = {normalize_name(field.name): field for field in fields}
    values = ((by_name[one.field], answer_value(by_name[one.field], one)) for one in answers if one.field in by_name)
    return {str(field.id): encode_answer(behaviour, field.type, value) for field, value in values if value}


def parse_field_row(data: Mapping[str, Json]) -> FieldRow:
    """Parse a field of a response; `id` and `customFieldId` are the same (API specification, Custom field)."""
    return FieldRow(
        id=RemoteId(require_text(data, "customFieldId" if data.get("customFieldId") is not None else "id")),
        name=require_text(data, "name"),
        type=require_text(data, "type"),
        choices=tuple(
            ChoiceRow(RemoteId(require_text(choice, "choiceId")), require_text(choice, "name"))
            for choice in object_list(data, "choices")
        ),
        description=require_text(data, "description") if data.get("description") else None,
        **{key: optional_flag(data, wire_name) for key, wire_name in FLAGS.items()},
    )


def parts_of(row: object) -> tuple[ChoiceRow, ...]:
    """Return the parts of a live resource that have ids of their own: the choices of a field."""
    return row.choices if isinstance(row, FieldRow) else ()


MIGRATE: Final = "migrate"
Field: TypeAlias = "DesiredResource[CustomFieldSpec]"


def has_migration(declared: Sequence[Field], absent: Sequence[DeleteEntry[Any]]) -> bool:
    """Whether a declaration, or a deletion of a plan, has a migration."""
    return any(resource.spec.migrate is not None for resource in declared) or any(
        isinstance(entry.spec, Migration) for entry in absent
    )


def _migration(entry: ManifestEntry, source: str, target: str, *, is_replayed: bool) -> Migration:
    """Return the `migrate` of an entry. source, target: the fields, where it omits them."""
    body = members(entry.body[MIGRATE])
    choices = cast("Mapping[str, str | None]", members(body.get("choices")))
    return Migration(
        source=normalize_name(str(body.get("from", source))),
        target=normalize_name(str(body.get("to", target))),
        choices={
            normalize_name(old): None if new is None else normalize_name(new) for old, new in sorted(choices.items())
        },
        deletes_rest=body.get("not_copied") == "delete",
        all_groups=body.get("conditions") == "all",
        places=PlacesBelow(entry.places, (MIGRATE,)),
        is_replayed=is_replayed,
    )


def migration_to_json(migration: Migration) -> dict[str, Json]:
    """Return a migration as the deletion of its old field shows it: as in manifests, without `from` and defaults."""
    body: dict[str, Json] = {
        "to": migration.target,
        "choices": dict(migration.choices),
        "not_copied": "delete" if migration.deletes_rest else None,
        "conditions": "all" if migration.all_groups else None,
    }
    return without_empty(body)


def replayed_deletion(entry: ManifestEntry, deletion: DeleteEntry[Any]) -> DeleteEntry[Any]:
    """Return the deletion of a field; that of a plan may say to which field the answers move."""
    if not isinstance(entry.body.get(MIGRATE), dict):
        return deletion
    return deletion_of_source(_migration(entry, deletion.address.name, "", is_replayed=True), deletion)


def deletion_of_source(migration: Migration, of: DeleteEntry[Any] | DesiredResource[Any]) -> DeleteEntry[Migration]:
    """Return the entry that deletes the old field, in the workspaces of another entry."""
    return DeleteEntry(
        address=Address.of(CUSTOM_FIELD, migration.source),
        spec=migration,
        places=migration.places,
        pins=of.pins if isinstance(of, DeleteEntry) else {},
        only_in=of.only_in,
    )


def find_bad_migrations(declared: Sequence[Field]) -> Iterator[Problem]:
    """Yield the problems of migrations that need no workspace to be seen."""
    first: dict[str, Field] = {}
    for one, migration in [(one, one.spec.migrate) for one in declared if one.spec.migrate]:
        yield from _bad_names(one, migration, declared, first.setdefault(migration.source, one))
        yield from _bad_choices(one, migration)


def _bad_names(one: Field, migration: Migration, declared: Sequence[Field], first: Field) -> Iterator[Problem]:
    """Yield problems of `from` and `to`. first: the first field with the same `from`."""
    old, new = Address.of(CUSTOM_FIELD, migration.source), one.address
    if migration.target != new.name:
        yield _problem(
            one,
            "migrate/to",
            f"`to` is {quote_name(shorten(migration.target))}, and answers move to the field that has `migrate`",
            f"Remove `to`, or write `to: {quote_name(new.name)}`.",
            at="to",
        )
    if old == new:
        yield _problem(
            one,
            "migrate/same-field",
            "a field cannot be migrated to itself",
            "Give the new field another name: the old one stays until every answer is copied.",
        )
    elif migration.source in one.previously:
        yield _problem(
            one,
            "migrate/renamed",
            f"{old} is named by `previously` too, which renames it",
            "Keep `previously` to rename the field, or `migrate` to move its answers to a new one.",
        )
    if kept := next((other for other in declared if other.address == old != new and other.shares_workspace(one)), None):
        yield _problem(
            one,
            "migrate/declared",
            f"{old} is declared, and the migration deletes it",
            f"Remove the entry at {kept.source}.",
        )
    if first is not one and first.shares_workspace(one):
        yield _problem(
            one,
            "migrate/twice",
            f"{old} is migrated to two fields",
            f"See {first.places.at(MIGRATE, 'from')}. Keep one of the two.",
        )


def _problem(one: Field, code: str, message: str, hint: str, at: str = "from") -> Problem:
    """Return a problem of the migration of a field. at: the key of `migrate` that it is about."""
    return Problem(
        code=code,
        message=f"{one.address}: migrate: {message}",
        hint=hint,
        source=one.places.at(MIGRATE, at),
        address=str(one.address),
    )


def _bad_choices(one: Field, migration: Migration) -> Iterator[Problem]:
    """Yield a problem for each choice of the new field that its declared whole list lacks."""
    if one.spec.type != "TEXT" and one.spec.choices is not None and one.spec.choices.whole:
        yield from unknown_target_choices(one.address, migration, [choice.name for choice in one.spec.choices.include])


def unknown_target_choices(target: Address, migration: Migration, known: Sequence[str]) -> Iterator[Problem]:
    """Return a problem for each choice that the new field lacks and an old one becomes. known: those it has."""
    return (
        Problem(
            code="reference/unknown-choice",
            message=f'{target}: migrate: {quote_name(shorten(old))} becomes "{shorten(new)}", and the field has '
            "no such choice",
            hint=choices_hint(known, did_you_mean(new, known)),
            source=migration.places.at("choices", old),
            address=str(target),
        )
        for old, new in migration.choices.items()
        if new is not None and new not in known
    )


def choices_hint(known: Collection[str], near: str | None) -> str:
    """Return the hint for a choice that a field lacks: those that it has, and a close one."""
    has = f"It has {list_names(known)}." if known else "It has no choices."
    return f"{has} {near}" if near else has


def parse_field(entry: ManifestEntry, address: Address) -> CustomFieldSpec:
    """Parse what an entry declares of a field; bad choices are reported."""
    body = entry.body
    choices = _choices(body.get("choices"))
    if choices is not None:
        _check_choices(entry, choices)
    if body.get("type") == "TEXT" and choices is not None:
        entry.problem(
            "manifest/text-choices",
            f"{body['name']}: a TEXT field has no choices",
            "choices",
            hint="Remove `choices`, or change the type to CHOICE or MULTI_SELECT.",
        )
    return CustomFieldSpec(
        type=cast("str | None", body.get("type")),
        choices=choices,
        description=str(body["description"] or "") if "description" in body else None,
        **{key: cast("bool | None", body.get(key)) for key in FLAGS},
        # The deletion of a plan says it without `from`.
        migrate=_migration(entry, "", address.name, is_replayed=False)
        if "from" in members(body.get(MIGRATE))
        else None,
    )


def _choices(value: Json) -> DeclaredChoices | None:
    if value is None:
        return None
    whole = isinstance(value, list)
    parts = cast("Mapping[str, list[Json]]", {"include": value} if whole else value)
    at = ("choices",) if whole else ("choices", "include")
    bodies = (members(item) or {"name": item} for item in parts.get("include", []))
    return DeclaredChoices(
        include=tuple(
            DeclaredChoice(
                normalize_name(str(body["name"])),
                parse_pins(body.get("id")),
                parse_names(body.get("previously")),
                (*at, position),
            )
            for position, body in enumerate(bodies)
        ),
        exclude=parse_names(parts.get("exclude")),
        whole=whole,
    )


def _check_choices(entry: ManifestEntry, choices: DeclaredChoices) -> None:
    """Report choices that are listed twice, or both included and excluded."""
    by_name: dict[str, DeclaredChoice] = {}
    for choice in choices.include:
        if (other := by_name.setdefault(choice.name, choice)) is not choice:
            entry.problem(
                "manifest/choice-twice",
                f'{entry.body["name"]}: the choice "{choice.name}" is listed twice',
                *choice.at,
                hint=f"See {entry.places.at(*other.at)}. Delete one of the two.",
            )
    for name in filter(by_name.get, choices.exclude):
        entry.problem(
            "manifest/choice-both",
            f'{entry.body["name"]}: the choice "{shorten(name)}" is both included and excluded',
            hint="Keep it in one of the two lists.",
            source=entry.places.find(name, "choices", "exclude"),
        )


def find_too_many_fields(declared: Sequence[DesiredResource[CustomFieldSpec]]) -> Iterator[Problem]:
    """Yield a problem for each field beyond MOST_FIELDS of a workspace."""
    reported: set[Address] = set()
    # "" is a workspace that no `only_in` names.
    for workspace in ("", *sorted({name for resource in declared for name in resource.only_in or ()})):
        in_workspace = {resource.address: resource for resource in declared if resource.applies_in(workspace)}
        for extra in [one for one in list(in_workspace.values())[MOST_FIELDS:] if one.address not in reported]:
            reported.add(extra.address)
            yield Problem(
                code="custom-field/too-many",
                message=f"{extra.address}: too many custom fields: a workspace has at most {MOST_FIELDS}",
                hint=f"{len(in_workspace)} are declared{workspace and f' for {workspace}'}. "
                f"Remove {len(in_workspace) - MOST_FIELDS}.",
                source=extra.source,
                address=str(extra.address),
            )
