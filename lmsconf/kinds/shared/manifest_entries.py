"""Keys that manifest entries of every kind share, and the parsing of entries into DesiredResource and DeleteEntry."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any, cast

from lmsconf.errors import Problem, SourceLocation, shorten
from lmsconf.kinds.shared.times import BadTime, parse_manifest_time
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.names import normalize_name
from lmsconf.model.plan import Undo, UndoLevel
from lmsconf.planner.context import PlanContext
from lmsconf.planner.manifest_entries import ManifestEntry

NAME: dict[str, Json] = {"type": "string", "minLength": 1, "description": "The name in the workspace."}
PIN: dict[str, Json] = {
    "description": "Pins the entry to an id of the service: one text, or a map from workspace name to id.",
    "oneOf": [
        {"type": "string", "minLength": 1},
        {"type": "object", "additionalProperties": {"type": "string", "minLength": 1}, "minProperties": 1},
    ],
}
PREVIOUSLY: dict[str, Json] = {
    "type": "array",
    "items": {"type": "string", "minLength": 1},
    "description": "Earlier names: a live resource with such a name is renamed, not created again.",
}
ONLY_IN: dict[str, Json] = {
    "type": "array",
    "items": {"type": "string", "minLength": 1},
    "minItems": 1,
    "description": "Workspace names; in other workspaces the entry is ignored.",
}
ABOUT: dict[str, Json] = {
    "type": "object",
    "description": "The reason, for readers of the plan; never sent to the service.",
}
UNTIL: dict[str, Json] = {
    "type": "string",
    "pattern": "^\\d{4}-\\d{2}-\\d{2}$",
    "description": "A date after which the entry is an error.",
}

NAMED: dict[str, Json] = {"name": NAME, "id": PIN, "previously": PREVIOUSLY, "only_in": ONLY_IN, "about": ABOUT}
"""The shared keys of kinds whose resources are identified by `name`."""


def entry_schema(properties: Mapping[str, Json], required: list[str], description: str) -> dict[str, Json]:
    """Return the JSON Schema of one entry; unknown keys are rejected."""
    return {
        "type": "object",
        "description": description,
        "properties": dict(properties),
        "required": [*required],
        "additionalProperties": False,
    }


ABSENT_NAMED: dict[str, Json] = entry_schema(
    {"name": NAME, "id": PIN, "until": UNTIL, "only_in": ONLY_IN}, ["name"], "A resource to delete if it exists."
)


def parse_pins(value: Json) -> dict[str, str]:
    """Return the pins of an entry: workspace name → id; the key "" applies to every workspace."""
    if value is None:
        return {}
    if isinstance(value, str):
        return {"": value}
    return cast("dict[str, str]", dict(cast("Mapping[str, str]", value)))


def parse_names(value: Json) -> tuple[str, ...]:
    """Return a list of names, each normalized for comparison; empty for a value that is not a list."""
    return tuple(normalize_name(str(item)) for item in value) if isinstance(value, list) else ()


def parse_only_in(body: Mapping[str, Json]) -> frozenset[str] | None:
    """Return the workspaces in which an entry applies; None: in all."""
    only_in = body.get("only_in")
    return None if only_in is None else frozenset(parse_names(only_in))


def parse_about(body: Mapping[str, Json]) -> Mapping[str, Json] | None:
    """Return what an entry tells the readers of a plan; None: nothing."""
    return cast("Mapping[str, Json] | None", body.get("about"))


def parse_time(entry: ManifestEntry, value: Json, at: tuple[str | int, ...], *, end_of_day: bool) -> datetime | None:
    """Return a time in an entry; None, after reporting a problem, if it cannot be parsed. at: its path.

    end_of_day: whether a bare date is its last second.
    """
    try:
        return parse_manifest_time(str(value), entry.timezone, end_of_day=end_of_day)
    except BadTime as wrong:
        source = entry.places.at(*at)
        entry.report(Problem(code="manifest/time", message=f"{at[-1]}: {wrong}", hint=wrong.hint, source=source))
        return None


def desired_resource_by_name(kind: str, entry: ManifestEntry, spec: object) -> DesiredResource[Any]:
    """Return the declaration of a resource identified by `name`."""
    body = entry.body
    return DesiredResource(
        address=Address.of(kind, normalize_name(str(body["name"]))),
        spec=spec,
        places=entry.places,
        pins=parse_pins(body.get("id")),
        previously=parse_names(body.get("previously")),
        only_in=parse_only_in(body),
        about=parse_about(body),
    )


def delete_entry_by_name(kind: str, entry: ManifestEntry) -> DeleteEntry[Any]:
    """Return the deletion entry of a resource identified by `name`."""
    return delete_entry(entry, Address.of(kind, normalize_name(str(entry.body["name"]))), None)


def delete_entry(entry: ManifestEntry, address: Address, spec: object) -> DeleteEntry[Any]:
    """Return a deletion entry; an `until` that is not a calendar date is reported and dropped."""
    return DeleteEntry(
        address=address,
        spec=spec,
        places=entry.places,
        pins=parse_pins(entry.body.get("id")),
        until=_date(entry),
        only_in=parse_only_in(entry.body),
    )


def _date(entry: ManifestEntry) -> date | None:
    text = entry.body.get("until")
    if text is None:
        return None
    try:
        return date.fromisoformat(str(text))
    except ValueError:
        entry.report(
            Problem(
                code="manifest/date",
                message=f"until: {shorten(str(text))} is not a calendar date",
                hint="Write a date such as 2027-03-31.",
                source=entry.places.at("until"),
            )
        )
        return None


def refuse_missing_key(planning: PlanContext, declared: DesiredResource[Any], key: str) -> None:
    """Report that a resource to be created lacks a key that the service requires."""
    planning.problem(
        f"{declared.address.kind.replace('_', '-')}/{key}-needed",
        f"{declared.address}: it is not live, and without `{key}` it cannot be created",
        hint=f"Set its `{key}`, or correct the name.",
        at=declared.source,
        address=declared.address,
    )


def refuse_unread_list(planning: PlanContext, address: Address, key: str, at: SourceLocation | None) -> None:
    """Report a list that the snapshot lacks: read as empty, it would hide removals or plan needless additions."""
    planning.problem(
        "read/missing",
        f"{address}: the snapshot does not contain its {key}",
        hint="Save a complete snapshot with `lmsconf snapshot FILE`.",
        at=at,
        address=address,
    )


def partial_undo(reason: str) -> Undo:
    """Return the Undo of a change that can be reverted only in part."""
    return Undo(level=UndoLevel.PARTIAL, reason=reason)
