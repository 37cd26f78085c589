"""Parsing of entries that assign content, with what they replace, and of entries under `tests:`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, cast

from msgspec.structs import replace

from lmsconf.errors import Problem
from lmsconf.kinds.assignment.types import AUDIENCES, AssignmentSpec, Replacement, assignment_address, contents_of
from lmsconf.kinds.shared.kind_names import EVERYONE, USER, split_address
from lmsconf.kinds.shared.manifest_entry import (
    ManifestEntry,
    delete_entry,
    format_time,
    parse_about,
    parse_only_in,
    parse_time,
)
from lmsconf.model.access import AccessClaim, AccessTest
from lmsconf.model.address import EVERYBODY, Address, unescape
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.declarations import DeleteEntry, DesiredResource, PlacesBelow
from lmsconf.model.names import grouped, normalize_email, normalize_name

_REPLACES: Final = "content-target/replaces"
"""The code of what is wrong with `replaces` and `keep`."""


def parse_replacements(entry: ManifestEntry) -> tuple[Replacement, ...]:
    """Return what an entry replaces; report a `keep` without effect, and a content that is named twice."""
    value = entry.body.get("replaces", [])
    items = (
        [(item, ("replaces", at)) for at, item in enumerate(value)]
        if isinstance(value, list)
        else [(value, ("replaces",))]
    )
    parsed = [_replacement(entry, item, path) for item, path in items]
    if "keep" in entry.body and "replaces" not in entry.body:
        entry.problem(
            _REPLACES,
            "`keep` needs `replaces`",
            "keep",
            hint="Name the old content under `replaces`, or remove it.",
        )
    for at, one in enumerate(parsed):
        if any((one.content, one.content_pins) == (other.content, other.content_pins) for other in parsed[:at]):
            entry.problem(
                _REPLACES,
                f"{one.content} is named twice under `replaces`",
                *one.path,
                hint="Remove one of the two.",
            )
    until = members(entry.body.get("keep")).get("until")
    keep = parse_time(entry, until, ("keep", "until"), end_of_day=True) if parsed and until is not None else None
    if keep is not None:
        parsed = [replace(one, keep_until=keep) for one in parsed]
        _check_keep(entry, parsed, keep)
    return tuple(parsed)


def _replacement(entry: ManifestEntry, item: Json, path: tuple[str | int, ...]) -> Replacement:
    body = members(item)
    [(content, pins)] = contents_of(body["content"])
    end = members(body["then"]).get("visible_until")
    return Replacement(
        content=content,
        content_pins=pins,
        becomes_optional=body["then"] == "optional",
        closes=None if end is None else parse_time(entry, end, (*path, "then", "visible_until"), end_of_day=True),
        path=path,
    )


def _check_keep(entry: ManifestEntry, replaced: Sequence[Replacement], keep: datetime) -> None:
    """Report a `keep` that ends before the content is taken from anybody."""
    if all(old.becomes_optional for old in replaced):
        entry.problem(
            _REPLACES,
            "`keep` has no effect: with `then: optional` nobody loses the content",
            "keep",
            hint="Remove `keep`, or replace the content by `remove` or `visible_until`.",
        )
    for old in replaced:
        if old.closes is not None and keep <= old.closes:
            entry.problem(
                _REPLACES,
                f"`keep` has no effect: {old.content} is visible until {format_time(old.closes, entry.timezone)}",
                *("keep", "until"),
                hint="Write a later date, or remove `keep`.",
            )


def report_self_replacement(
    entry: ManifestEntry, content: str, pins: Mapping[str, str], replaced: Sequence[Replacement]
) -> None:
    """Report a content that replaces itself; two contents may share a name if their ids differ."""
    for old in replaced:
        if old.content == content and (old.content_pins == pins or not (old.content_pins and pins)):
            entry.problem(
                _REPLACES,
                f"{content}: it cannot replace itself",
                *(*old.path, "content"),
                hint="Name the earlier content, or remove `replaces`.",
            )


def report_gap(entry: ManifestEntry, spec: AssignmentSpec) -> None:
    """Report an assignment that begins after the content that it replaces is hidden."""
    for old in spec.replaces:
        if old.closes and spec.visible_from and spec.visible_from > old.closes + timedelta(seconds=1):
            ends, begins = (format_time(moment, entry.timezone) for moment in (old.closes, spec.visible_from))
            entry.problem(
                "content-target/replacement-gap",
                f"{spec.content} to {spec.audience}: {old.content} is hidden after {ends}, and this one is "
                f"visible from {begins}: nobody has either in between",
                *(*old.path, "then"),
                hint="Write a later `visible_until` under `then`, or an earlier `visible_from`.",
            )


def named_contents(spec: AssignmentSpec) -> frozenset[str]:
    """Return the names of the other contents whose assignments decide what becomes of this one."""
    return frozenset(replaced.content for replaced in spec.replaces).union(
        parts[0] for address in spec.replaced_by if (parts := split_address(address))
    )


_WRITTEN: Final = re.compile(r"([A-Za-z_ ]+?)\s*([:/])\s*(.+)", re.DOTALL)


def parse_assignments(entry: ManifestEntry) -> Iterator[DesiredResource[AssignmentSpec]]:
    """Yield one assignment for each content and audience of the entry; report bad times."""
    replaces, only_in, about = parse_replacements(entry), parse_only_in(entry.body), parse_about(entry.body)
    for content, content_pins in contents_of(entry.body["content"]):
        report_self_replacement(entry, content, content_pins, replaces)
        for position, item in enumerate(cast("list[Json]", entry.body["assign_to"])):
            spec = _assignment(entry, content, content_pins, position, item, replaces)
            if spec is not None:
                yield DesiredResource(
                    address=assignment_address(content, spec.audience),
                    spec=spec,
                    places=PlacesBelow(entry.places, ("assign_to", position)),
                    only_in=only_in,
                    about=about,
                )


def _assignment(
    entry: ManifestEntry,
    content: str,
    content_pins: Mapping[str, str],
    position: int,
    item: Json,
    replaces: tuple[Replacement, ...],
) -> AssignmentSpec | None:
    audience, at = members(item), ("assign_to", position)
    start = _moment(entry, audience, at, "visible_from", end_of_day=False)
    finish = _moment(entry, audience, at, "visible_until", end_of_day=True)
    if start is not None and finish is not None and finish <= start:
        entry.problem(
            "content-target/window",
            f"{content}: the window ends before it begins",
            *(at if "visible_until" in audience else ()),
            "visible_until",
            hint="`visible_until` must be later than `visible_from`.",
        )
        return None
    spec = AssignmentSpec(
        content,
        audience_from(item),
        mandatory=bool(audience.get("mandatory", entry.body.get("mandatory"))),
        visible_from=start,
        visible_until=finish,
        content_pins=content_pins,
        replaces=replaces,
    )
    report_gap(entry, spec)
    return spec


def parse_absent_assignments(entry: ManifestEntry) -> Iterator[DeleteEntry[Any]]:
    """Yield the assignments that an `absent` entry deletes."""
    for content, content_pins in contents_of(entry.body["content"]):
        for to in map(audience_from, cast("list[Json]", entry.body["assign_to"])):
            yield delete_entry(
                entry, assignment_address(content, to), AssignmentSpec(content, to, False, None, None, content_pins)
            )


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


def check_replacements(declared: Sequence[DesiredResource[AssignmentSpec]]) -> Iterator[Problem]:
    """Yield a problem for each assignment that one entry declares and another one replaces in the same workspace."""
    replacing = [entry for entry in declared if entry.spec.replaces]
    by_address = grouped(declared if replacing else (), lambda entry: entry.address)
    for entry in replacing:
        for replaced in entry.spec.replaces:
            old = assignment_address(replaced.content, entry.spec.audience)
            for other in by_address.get(old, ()):
                if entry is not other and entry.shares_workspace(other):
                    yield Problem(
                        code="content-target/replaced-and-declared",
                        message=f"{old}: it is declared, and {entry.address} replaces it",
                        hint=_hint(entry, other),
                        source=entry.places.at(*replaced.path),
                        address=str(old),
                    )


def _hint(entry: DesiredResource[AssignmentSpec], other: DesiredResource[AssignmentSpec]) -> str:
    remove = f"See {other.source}. Remove that audience there, or this content from `replaces`."
    known = {replaced.content for replaced in entry.spec.replaces}
    more = ", ".join(replaced.content for replaced in other.spec.replaces if replaced.content not in known)
    # Without it, what the removed entry replaces would stay assigned.
    return f"{remove} That entry replaces {more}: list it under `replaces` here, too." if more else remove


def parse_test(entry: ManifestEntry) -> AccessTest | None:
    """Return the test of an entry; None after reporting a problem that its schema cannot tell."""
    body = entry.body
    size = cast("Mapping[str, int]", body.get("size", {}))
    least, most = size.get("min"), size.get("max")
    hint = "Correct it, or write two tests."
    if least is not None and most is not None and least > most:
        entry.problem("manifest/test", f"tests: size: min is {least:,}, and max is {most:,}", "size", "min", hint=hint)
        return None
    if "has" in body and "has_not" in body:
        entry.problem("manifest/test", "tests: has and has_not exclude each other", "has_not", hint=hint)
        return None
    claim, audiences = _claim(body)
    content, pins = next(contents_of(body.get("has", body.get("has_not", []))), (None, {}))
    return AccessTest(
        claim=claim,
        audiences=audiences,
        source=entry.places.at(),
        content=content,
        content_pins=pins,
        mandatory=bool(body.get("mandatory")),
        least=least,
        most=most,
        name=None if body.get("name") is None else str(body["name"]),
        about=parse_about(body),
        only_in=parse_only_in(body),
    )


_CLAIMS: Final = {
    "all": AccessClaim.ALL,
    "none": AccessClaim.NONE,
    "audience": AccessClaim.SIZE,
    "disjoint": AccessClaim.DISJOINT,
}
"""Key of a test that names audiences → what the test claims of them."""


def _claim(body: Mapping[str, Json]) -> tuple[AccessClaim, tuple[Address, ...]]:
    """Return what a test claims, and of which audiences."""
    if "user" in body:
        return AccessClaim.HAS if "has" in body else AccessClaim.HAS_NOT, (audience_from({"user": body["user"]}),)
    key = next(key for key in _CLAIMS if key in body)
    audiences = cast("list[Json]", body[key]) if key == "disjoint" else [body[key]]
    return _CLAIMS[key], tuple(map(audience_from, audiences))
