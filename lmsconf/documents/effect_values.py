"""Effects on people ⇄ JSON, within a plan file; and the rows of `--people` → JSON and CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, cast

from msgspec.structs import replace

from lmsconf.documents.document import (
    JsonObjectReader,
    from_json,
    object_json,
    render_canonical_json,
    string_list,
    to_json,
    without_keys,
)
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import ContentEffects, Effects

PEOPLE_FORMAT: Final = "lmsconf.people/1"


def effects_json(effects: Effects) -> Json:
    """Return effects as in a plan file, without the people."""
    values = object_json(replace(effects, rows=None, unknown=()))
    return {
        **without_keys(values, "rows", "unknown"),
        "contents": [_content_json(content) for content in effects.contents],
        "groups": [without_keys(object_json(group), "members") for group in effects.groups],
    }


def _content_json(content: ContentEffects) -> Json:
    return {**without_keys(object_json(content), "counts"), **object_json(content.counts)}


def predicted_members_json(effects: Effects) -> list[Json]:
    """Return the digest of the members after the plan of each of the groups, null where it is not known."""
    return [group.members for group in effects.groups]


def effects_from_json(value: dict[str, Json], members: Sequence[str | None] | None) -> Effects:
    """Parse what `effects_json` and `predicted_members_json` returned. Raises ValueError for anything else."""
    at = JsonObjectReader(value)
    groups = at.value("groups", list[dict[str, Json]])
    if members is not None:
        groups = [{**group, "members": one} for group, one in zip(groups, members, strict=True)]
    contents = [{**content, "counts": content} for content in at.value("contents", list[dict[str, Json]])]
    return from_json(cast("Json", {**value, "contents": contents, "groups": groups}), Effects, "effects")


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
    rows = to_json(effects.rows or ())
    return render_canonical_json({"format": PEOPLE_FORMAT, "rows": rows, "unknown": unknown})
