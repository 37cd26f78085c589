"""Parsing of a person's manifest entry."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from lmsconf.kinds.shared.entry_keys import (
    delete_entry,
    parse_about,
    parse_list,
    parse_names,
    parse_only_in,
    parse_pins,
    parse_time,
)
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.kinds.shared.manifest_entry import ManifestEntry
from lmsconf.kinds.user.types import ARCHIVE_DATE, KEYS, RIGHTS, TEXTS, Answer, PersonSpec
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.names import normalize_email, normalize_name


def parse_person(entry: ManifestEntry) -> DesiredResource[PersonSpec]:
    """Return the person of one manifest entry, and report contradictions in it."""
    address = Address.of(USER, normalize_email(str(entry.body["email"])))
    spec = _spec(entry)
    _report_contradictions(entry, address, spec)
    return DesiredResource(
        address=address,
        spec=spec,
        places=entry.places,
        pins=parse_pins(entry.body.get("id")),
        previously=tuple(map(normalize_email, parse_names(entry.body.get("previously")))),
        only_in=parse_only_in(entry.body),
        about=parse_about(entry.body),
    )


def parse_absent_person(entry: ManifestEntry) -> DeleteEntry[Any]:
    """Report an error: deleting an account would destroy certificates and results, so manifests cannot do it."""
    address = Address.of(USER, normalize_email(str(entry.body["email"])))
    hint = "Declare the person under `users:` with `archived: true`."
    entry.problem("user/never-deleted", f"{address}: people are never deleted", hint=hint, address=address)
    return delete_entry(entry, address, None)


def _spec(entry: ManifestEntry) -> PersonSpec:
    """Parse what an entry declares; an invalid date is reported and becomes None."""
    body = entry.body
    return PersonSpec(
        declared_keys=frozenset(body.keys() & set(KEYS)),
        texts={key: normalize_name(str(body[key])) for key in TEXTS if key in body},
        flags={key: bool(body[key]) for key in (*RIGHTS, "archived") if key in body},
        applications=parse_list(body.get("applications"), str),
        metadata=dict(cast("Mapping[str, str | None]", body.get("metadata", {}))),
        answers={
            normalize_name(field): _answer(value)
            for field, value in cast("Mapping[str, Json]", body.get("answers", {})).items()
        },
        archive_date=_moment(entry),
    )


def _answer(value: Json) -> Answer:
    if isinstance(value, list):
        return frozenset(parse_names(value))
    return None if value is None else normalize_name(str(value))


def _moment(entry: ManifestEntry) -> datetime | None:
    value = entry.body.get(ARCHIVE_DATE)
    return None if value is None else parse_time(entry, value, (ARCHIVE_DATE,), end_of_day=False)


def _report_contradictions(entry: ManifestEntry, address: Address, spec: PersonSpec) -> None:
    """Report contradictions within the entry, and metadata keys that are not allowed."""
    both = spec.applications.include & spec.applications.exclude if spec.applications else frozenset()
    for application in sorted(both):
        entry.problem(
            "user/both",
            f"{address}: {application} is both included and excluded",
            hint="Keep it in one of the two lists.",
            source=entry.places.find(application, "applications", "exclude"),
            address=address,
        )
    if spec.flag("archived") and spec.flag("admin"):
        entry.problem(
            "user/archived-admin",
            f"{address}: an admin cannot be archived",
            "archived",
            hint="Set `admin: false` or `archived: false`.",
            address=address,
        )
    for right in RIGHTS:
        if spec.archive_date is not None and spec.flag(right):
            who = "an admin" if right == "admin" else "a manager"
            entry.problem(
                "user/archive-date",
                f"{address}: {who} cannot have a custom archive date",
                ARCHIVE_DATE,
                hint=f"Set `{right}: false`, or remove the date.",
                address=address,
            )
    if "$ref" in spec.metadata:
        entry.problem(
            "user/metadata-key",
            f'{address}: metadata cannot have the key "$ref", which stands for an id in plans',
            "metadata",
            hint="Choose another key.",
            address=address,
        )
