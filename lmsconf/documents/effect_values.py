"""Effects on people ⇄ JSON, within a plan file; and the rows of `--people` → JSON and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from lmsconf.documents.document import JsonObjectReader, render_canonical_json, string_list
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import (
    PEOPLE_COLUMNS,
    AccessCounts,
    Basis,
    Calibration,
    CauseCount,
    ContentEffects,
    Effects,
    GroupEffects,
    PersonEffect,
    PredictedTotals,
)

PEOPLE_FORMAT: Final = "lmsconf.people/1"
_COUNTS: Final = ("gain", "lose", "to_mandatory", "to_optional", "window", "shortened")


def effects_json(effects: Effects) -> Json:
    """Return effects as in a plan file, without the people."""
    return {
        "basis": effects.basis.value,
        "reasons": string_list(effects.reasons),
        "requests": effects.requests,
        "people": counts_json(effects.people),
        "contents": [_content_json(content) for content in effects.contents],
        "groups": [_group_json(group) for group in effects.groups],
        "calibration": {"groups": effects.calibration.groups, "exact": effects.calibration.exact},
    }


def counts_json(counts: AccessCounts) -> dict[str, Json]:
    return {name: getattr(counts, name) for name in _COUNTS}


def _content_json(content: ContentEffects) -> Json:
    counts = counts_json(content.counts)
    return {
        "content": content.content,
        "id": content.id,
        "before": content.before,
        "after": content.after,
        "gain": counts["gain"],
        "lose": counts["lose"],
        "keep": content.keep,
        **{name: counts[name] for name in _COUNTS[2:]},
        "basis": content.basis.value,
        "progress": None if content.progress is None else dict(content.progress),
        "certificates_expiring": None
        if content.certificates_expiring is None
        else {str(days): number for days, number in content.certificates_expiring.items()},
        "causes": [{"address": str(cause.address), "gain": cause.gain, "lose": cause.lose} for cause in content.causes],
    }


def _group_json(group: GroupEffects) -> Json:
    return {
        "address": str(group.address),
        "before": group.before,
        "after": group.after,
        "join": group.join,
        "leave": group.leave,
        "basis": group.basis.value,
    }


def predicted_members_json(effects: Effects) -> list[Json]:
    """Return the digest of the members after the plan of each of the groups, null where it is not known."""
    return [group.members for group in effects.groups]


def effects_from_json(at: JsonObjectReader, members: Sequence[str | None] | None) -> Effects:
    """Parse what `effects_json` and `predicted_members_json` returned. Raises ValueError for anything else."""
    calibration = at.reader("calibration")
    groups = at.each("groups", _group)
    return Effects(
        basis=Basis(at.text("basis")),
        reasons=at.texts("reasons"),
        requests=at.number("requests"),
        people=_counts(at.reader("people")),
        contents=at.each("contents", _content),
        groups=groups
        if members is None
        else tuple(replace(group, members=one) for group, one in zip(groups, members, strict=True)),
        calibration=Calibration(groups=calibration.number("groups"), exact=calibration.number("exact")),
    )


def _number(at: JsonObjectReader, key: str) -> int | None:
    return at.maybe(key, at.number)


def _counts(at: JsonObjectReader) -> AccessCounts:
    return AccessCounts(**{name: _number(at, name) for name in _COUNTS})


def _numbers(at: JsonObjectReader, key: str) -> dict[str, int] | None:
    if at.json(key) is None:
        return None
    inner = at.reader(key)
    return {name: inner.number(name) for name in at.object(key)}


def _content(at: JsonObjectReader) -> ContentEffects:
    expiring = _numbers(at, "certificates_expiring")
    return ContentEffects(
        content=at.text("content"),
        id=RemoteId(at.text("id")),
        before=_number(at, "before"),
        after=_number(at, "after"),
        keep=_number(at, "keep"),
        counts=_counts(at),
        basis=Basis(at.text("basis")),
        progress=_numbers(at, "progress"),
        certificates_expiring=None if expiring is None else {int(days): number for days, number in expiring.items()},
        causes=at.each("causes", _cause),
    )


def _cause(at: JsonObjectReader) -> CauseCount:
    return CauseCount(address=Address.parse(at.text("address")), gain=_number(at, "gain"), lose=_number(at, "lose"))


def _group(at: JsonObjectReader) -> GroupEffects:
    return GroupEffects(
        address=Address.parse(at.text("address")),
        before=_number(at, "before"),
        after=_number(at, "after"),
        join=_number(at, "join"),
        leave=_number(at, "leave"),
        basis=Basis(at.text("basis")),
    )


def predicted_json(predicted: PredictedTotals) -> Json:
    """Return the totals of effects as in an apply report."""
    return {"basis": predicted.basis.value, "people": counts_json(predicted.people)}


def predicted_from_json(at: JsonObjectReader) -> PredictedTotals:
    """Parse what `predicted_json` returned. Raises ValueError for anything else."""
    return PredictedTotals(basis=Basis(at.text("basis")), people=_counts(at.reader("people")))


def people_json(effects: Effects) -> str:
    """Return whose access changes, and where that is not known, as a document `lmsconf.people/1`."""
    unknown: list[Json] = [
        {
            "audience": None if one.audience is None else str(one.audience),
            "contents": string_list(name for name, _ in one.contents),
            "reason": one.reason,
        }
        for one in effects.unknown
    ]
    rows = [_row(row) for row in effects.rows or ()]
    return render_canonical_json({"format": PEOPLE_FORMAT, "rows": rows, "unknown": unknown})


def _row(row: PersonEffect) -> Json:
    return {
        **{name: getattr(row, name) for name in PEOPLE_COLUMNS if name != "causes"},
        "change": row.change.value,
        "causes": string_list(row.causes),
    }
