"""Parsing of `replaces` and `keep` beside an assignment, and of what a plan file keeps of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from lmsconf.errors import Problem
from lmsconf.kinds.content_target.types import AssignmentSpec, Replacement, contents_of
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, split_address
from lmsconf.kinds.shared.manifest_entries import parse_time
from lmsconf.kinds.shared.times import format_time
from lmsconf.model.address import Address
from lmsconf.model.calls import CallIndex
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Change
from lmsconf.planner.manifest_entries import ManifestEntry

_REPLACED_BY: Final = "(replaced by)"
_AFTER: Final = "(after)"
"""Keys of entries that are made from a plan's changes; no schema of a manifest has them."""
_OPTIONAL: Final = "optional"


def parse_replacements(entry: ManifestEntry) -> tuple[Replacement, ...]:
    """Return what an entry replaces; report a `keep` without effect, and a content that is named twice."""
    value = entry.body.get("replaces")
    if value is None:
        if "keep" in entry.body:
            _report(entry, ("keep",), "`keep` needs `replaces`", "Name the old content under `replaces`, or remove it.")
        return ()
    if isinstance(value, list):
        parsed = [_replacement(entry, item, ("replaces", at)) for at, item in enumerate(value)]
    else:
        parsed = [_replacement(entry, value, ("replaces",))]
    for at, one in enumerate(parsed):
        if any((one.content, one.content_pins) == (other.content, other.content_pins) for other in parsed[:at]):
            _report(entry, one.path, f"{one.content} is named twice under `replaces`", "Remove one of the two.")
    if (keep := _keep_until(entry)) is not None:
        parsed = [replace(one, keep_until=keep) for one in parsed]
        _check_keep(entry, parsed, keep)
    return tuple(parsed)


def _replacement(entry: ManifestEntry, item: Json, path: tuple[str | int, ...]) -> Replacement:
    body: Mapping[str, Json] = item if isinstance(item, dict) else {}
    [(content, pins)] = contents_of(body["content"])
    then = body["then"]
    closes = None
    if isinstance(then, dict):
        closes = parse_time(entry, then["visible_until"], (*path, "then", "visible_until"), end_of_day=True)
    return Replacement(content=content, content_pins=pins, becomes_optional=then == _OPTIONAL, closes=closes, path=path)


def _keep_until(entry: ManifestEntry) -> datetime | None:
    keep = entry.body.get("keep")
    return parse_time(entry, keep["until"], ("keep", "until"), end_of_day=True) if isinstance(keep, dict) else None


def _check_keep(entry: ManifestEntry, replaced: Sequence[Replacement], keep: datetime) -> None:
    """Report a `keep` that ends before the content is taken from anybody."""
    if all(old.becomes_optional for old in replaced):
        message = "`keep` has no effect: with `then: optional` nobody loses the content"
        _report(entry, ("keep",), message, "Remove `keep`, or replace the content by `remove` or `visible_until`.")
    for old in replaced:
        if old.closes is not None and keep <= old.closes:
            message = f"`keep` has no effect: {old.content} is visible until {format_time(old.closes, entry.timezone)}"
            _report(entry, ("keep", "until"), message, "Write a later date, or remove `keep`.")


def report_self_replacement(
    entry: ManifestEntry, content: str, pins: Mapping[str, str], replaced: Sequence[Replacement]
) -> None:
    """Report a content that replaces itself; two contents may share a name if their ids differ."""
    for old in replaced:
        if old.content == content and (old.content_pins == pins or not (old.content_pins and pins)):
            message = f"{content}: it cannot replace itself"
            _report(entry, (*old.path, "content"), message, "Name the earlier content, or remove `replaces`.")


def report_gap(entry: ManifestEntry, spec: AssignmentSpec, replaced: Sequence[Replacement]) -> None:
    """Report an assignment that begins after the content that it replaces is hidden."""
    for old in replaced:
        if old.closes is None or spec.visible_from is None or spec.visible_from <= old.closes + timedelta(seconds=1):
            continue
        ends, begins = (format_time(moment, entry.timezone) for moment in (old.closes, spec.visible_from))
        entry.report(
            Problem(
                code="content-target/replacement-gap",
                message=f"{spec.content} to {spec.audience}: {old.content} is hidden after {ends}, and this one is "
                f"visible from {begins}: nobody has either in between",
                hint="Write a later `visible_until` under `then`, or an earlier `visible_from`.",
                source=entry.places.at(*old.path, "then"),
            )
        )


def _report(entry: ManifestEntry, at: tuple[str | int, ...], message: str, hint: str) -> None:
    source = entry.places.at(*at)
    entry.report(Problem(code="content-target/replaces", message=message, hint=hint, source=source))


def replay_keys(change: Change, calls: CallIndex) -> dict[str, Json]:
    """Return what an entry made from a change needs to have its calls in the same order again."""
    if not change.replaced_by:
        return {}
    before = [one for one in calls.needed_by(change.address) if one.creates and one.address.kind == CONTENT_TARGET]
    return {
        _REPLACED_BY: [str(address) for address in change.replaced_by],
        _AFTER: [str(one.address) for one in before if one.address != change.address],
    }


def with_replay(spec: AssignmentSpec, body: Mapping[str, Json]) -> AssignmentSpec:
    """Return an assignment with what `replay_keys` put into its entry."""
    if _REPLACED_BY not in body:
        return spec
    replaced_by, after = (_addresses(body.get(key)) for key in (_REPLACED_BY, _AFTER))
    return replace(spec, replaced_by=replaced_by, after=frozenset(after))


def _addresses(value: Json) -> tuple[Address, ...]:
    return tuple(Address.parse(str(one)) for one in value) if isinstance(value, list) else ()


def named_contents(spec: AssignmentSpec) -> frozenset[str]:
    """Return the names of the other contents whose assignments decide what becomes of this one."""
    new = (split_address(address) for address in spec.replaced_by)
    return frozenset([*(replaced.content for replaced in spec.replaces), *(parts[0] for parts in new if parts)])
