"""Parsing of a custom field's manifest entry and its choices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from lmsconf.errors import Problem, shorten
from lmsconf.kinds.custom_field.migration import parse_migration
from lmsconf.kinds.custom_field.types import FLAGS, MOST_FIELDS, CustomFieldSpec, DeclaredChoice, DeclaredChoices
from lmsconf.kinds.shared.manifest_entries import parse_names, parse_pins
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.names import normalize_name
from lmsconf.planner.manifest_entries import ManifestEntry


def parse_field(entry: ManifestEntry) -> CustomFieldSpec:
    """Parse the entry; bad choices are reported."""
    body = entry.body
    choices = _choices(body.get("choices"))
    for problem in _bad_choices(entry, choices):
        entry.report(problem)
    if body.get("type") == "TEXT" and choices is not None:
        entry.report(
            Problem(
                code="manifest/text-choices",
                message=f"{body['name']}: a TEXT field has no choices",
                hint="Remove `choices`, or change the type to CHOICE or MULTI_SELECT.",
                source=entry.places.at("choices"),
            )
        )
    return CustomFieldSpec(
        type=cast("str | None", body.get("type")),
        choices=choices,
        description=("" if body["description"] is None else str(body["description"]))
        if "description" in body
        else None,
        **{key: cast("bool | None", body.get(key)) for key in FLAGS},
        migrate=parse_migration(entry, normalize_name(str(body["name"]))),
    )


def _choices(value: Json) -> DeclaredChoices | None:
    if value is None:
        return None
    if isinstance(value, list):
        return DeclaredChoices(tuple(_choice(item, ("choices", i)) for i, item in enumerate(value)))
    parts = cast("Mapping[str, list[Json]]", value)
    return DeclaredChoices(
        tuple(_choice(item, ("choices", "include", i)) for i, item in enumerate(parts.get("include", []))),
        parse_names(parts.get("exclude", [])),
        whole=False,
    )


def _choice(item: Json, at: tuple[str | int, ...]) -> DeclaredChoice:
    body: Mapping[str, Json] = item if isinstance(item, dict) else {"name": item}
    return DeclaredChoice(
        normalize_name(str(body["name"])), parse_pins(body.get("id")), parse_names(body.get("previously")), at
    )


def _bad_choices(entry: ManifestEntry, choices: DeclaredChoices | None) -> Iterator[Problem]:
    if choices is None:
        return
    by_name: dict[str, DeclaredChoice] = {}
    for choice in choices.include:
        if choice.name in by_name:
            yield Problem(
                code="manifest/choice-twice",
                message=f'{entry.body["name"]}: the choice "{choice.name}" is listed twice',
                hint=f"See {entry.places.at(*by_name[choice.name].at)}. Delete one of the two.",
                source=entry.places.at(*choice.at),
            )
        by_name.setdefault(choice.name, choice)
    for name in choices.exclude:
        if name in by_name:
            yield Problem(
                code="manifest/choice-both",
                message=f'{entry.body["name"]}: the choice "{shorten(name)}" is both included and excluded',
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
            where = f" for {workspace}" if workspace else ""
            yield Problem(
                code="custom-field/too-many",
                message=f"{extra.address}: too many custom fields: a workspace has at most {MOST_FIELDS}",
                hint=f"{len(in_workspace)} are declared{where}. Remove {len(in_workspace) - MOST_FIELDS}.",
                source=extra.source,
                address=str(extra.address),
            )
