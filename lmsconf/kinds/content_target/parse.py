"""Parsing of entries that assign content: one assignment for each content and audience."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, cast

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import Problem, SourceLocation
from lmsconf.kinds.content_target.replacement_parse import (
    parse_replacements,
    report_gap,
    report_self_replacement,
    with_replay,
)
from lmsconf.kinds.content_target.types import AUDIENCES, AssignmentSpec, assignment_address, contents_of
from lmsconf.kinds.shared.kind_names import EVERYONE, USER
from lmsconf.kinds.shared.manifest_entries import delete_entry, parse_about, parse_only_in, parse_time
from lmsconf.model.address import EVERYBODY, Address, unescape
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource, SourceMap
from lmsconf.model.names import normalize_email, normalize_name
from lmsconf.planner.manifest_entries import ManifestEntry

_WRITTEN: Final = re.compile(r"([A-Za-z_ ]+?)\s*([:/])\s*(.+)", re.DOTALL)


class AudienceSourceMap(Struct, frozen=True):
    """The SourceMap of one audience of an entry; `content` is located in the entry itself."""

    places: SourceMap
    path: tuple[str | int, ...]

    def at(self, *path: str | int) -> SourceLocation:
        if path[:1] == ("content",):
            return self.places.at(*path)
        own = self.places.at(*self.path, *path)
        if not path or own != self.places.at(*self.path):
            return own
        # What the audience does not say, its entry may say for all of them.
        default = self.places.at(*path)
        return own if default == self.places.at() else default

    def find(self, text: str, *path: str | int) -> SourceLocation:
        return self.places.find(text, *self.path, *path)


def parse_assignments(entry: ManifestEntry) -> Iterator[DesiredResource[AssignmentSpec]]:
    """Yield one assignment for each content and audience of the entry; report bad times."""
    replaces, only_in, about = parse_replacements(entry), parse_only_in(entry.body), parse_about(entry.body)
    for content, content_pins in contents_of(entry.body["content"]):
        report_self_replacement(entry, content, content_pins, replaces)
        for position, item in enumerate(cast("list[Json]", entry.body["assign_to"])):
            spec = _assignment(entry, content, content_pins, position, item)
            if spec is None:
                continue
            report_gap(entry, spec, replaces)
            spec = replace(spec, replaces=replaces) if replaces else spec
            yield DesiredResource(
                address=assignment_address(content, spec.audience),
                spec=spec,
                places=AudienceSourceMap(entry.places, ("assign_to", position)),
                only_in=only_in,
                about=about,
            )


def _assignment(
    entry: ManifestEntry, content: str, content_pins: Mapping[str, str], position: int, item: Json
) -> AssignmentSpec | None:
    audience: Mapping[str, Json] = item if isinstance(item, dict) else {}
    at = ("assign_to", position)
    start = _moment(entry, audience, at, "visible_from", end_of_day=False)
    finish = _moment(entry, audience, at, "visible_until", end_of_day=True)
    if start is not None and finish is not None and finish <= start:
        key = "visible_until"
        entry.report(
            Problem(
                code="content-target/window",
                message=f"{content}: the window ends before it begins",
                hint="`visible_until` must be later than `visible_from`.",
                source=entry.places.at(*at, key) if key in audience else entry.places.at(key),
            )
        )
        return None
    mandatory = audience.get("mandatory", entry.body.get("mandatory", False))
    spec = AssignmentSpec(content, audience_from(item), bool(mandatory), start, finish, content_pins)
    return with_replay(spec, entry.body)


def parse_absent_assignments(entry: ManifestEntry) -> Iterator[DeleteEntry[Any]]:
    """Yield the assignments that an `absent` entry deletes."""
    for content, content_pins in contents_of(entry.body["content"]):
        for item in cast("list[Json]", entry.body["assign_to"]):
            to = audience_from(item)
            spec = with_replay(AssignmentSpec(content, to, False, None, None, content_pins), entry.body)
            yield delete_entry(entry, assignment_address(content, to), spec)


def audience_from(item: Json) -> Address:
    """Return the audience that an item of `assign_to` names."""
    if isinstance(item, dict):
        for key, kind in AUDIENCES.items():
            if key in item:
                name = str(item[key])
                return Address.of(kind, normalize_email(name) if kind == USER else normalize_name(name))
    return EVERYONE


def audience_from_text(text: str) -> dict[str, Json] | None:
    """Return the item of `assign_to` for `group: Sales`, `group/Sales` or `everyone`; None for another text.

    A spreadsheet capitalizes the first word of a cell, so case does not matter before the name.
    """
    if text.casefold() == EVERYBODY:
        return {EVERYBODY: True}
    parts = _WRITTEN.fullmatch(text)
    key = parts[1].casefold().replace(" ", "_") if parts else ""
    if parts is None or key not in AUDIENCES:
        return None
    return {key: unescape(parts[3]) if parts[2] == "/" else parts[3]}


def audience_forms(text: str) -> list[str]:
    """Return how a cell names an audience; with the name in `text`, if that is a name alone."""
    if ":" in text or "/" in text:
        return [f"{key}: {'EMAIL' if kind == USER else 'NAME'}" for key, kind in AUDIENCES.items()] + [EVERYBODY]
    return [f"{key}: {text}" for key, kind in AUDIENCES.items() if (kind == USER) == ("@" in text)]


def _moment(
    entry: ManifestEntry, audience: Mapping[str, Json], at: tuple[str | int, ...], key: str, *, end_of_day: bool
) -> datetime | None:
    """The time under `key`: the value of the audience, even null, overrides that of the entry."""
    body, place = (audience, (*at, key)) if key in audience else (entry.body, (key,))
    value = body.get(key)
    return None if value is None else parse_time(entry, value, place, end_of_day=end_of_day)


def item_addresses(entry: Mapping[str, Json], audience: Json) -> list[Address]:
    """Return the assignments of the contents of an entry to one of its audiences."""
    return [assignment_address(name, audience_from(audience)) for name, _ in contents_of(entry["content"])]
