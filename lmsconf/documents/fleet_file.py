"""The index of a fleet: `lmsconf.fleet/1`, the result of one command in each workspace."""

from __future__ import annotations

from typing import Final

from lmsconf.documents.document import (
    TOOL,
    object_json,
    parse_document,
    refuse_missing,
    render_json,
    signature,
    to_json,
    value_at,
    verify_format,
    verify_signature,
    without_keys,
)
from lmsconf.documents.plan_file import blocker_json
from lmsconf.errors import LmsconfError, shorten
from lmsconf.model.canonical_json import Json
from lmsconf.model.fleet import MOST_SHARDS, FleetAction, FleetEntry, FleetIndex, FleetShard

FORMAT: Final = "lmsconf.fleet/1"


def dumps(index: FleetIndex, signing_key: bytes | None = None) -> str:
    """Return the text of an index, one workspace per line, signed if there is a key."""
    document = index_json(index)
    return render_json(document if signing_key is None else {**document, "hmac": signature(document, signing_key)})


def index_json(index: FleetIndex) -> dict[str, Json]:
    """Return an index as JSON."""
    return {
        "format": FORMAT,
        "tool": TOOL,
        "action": index.action.value,
        "created_at": index.created_at,
        "exit": index.exit.value,
        **({} if index.shard is None else {"shard": to_json(index.shard)}),
        "summary": {
            "workspaces": len(index.entries),
            "failed": len(index.failed),
            "changed": sum(bool(entry.changes) for entry in index.entries),
        },
        "workspaces": [entry_json(entry) for entry in index.entries],
    }


def entry_json(entry: FleetEntry) -> dict[str, Json]:
    """Return the result in one workspace as JSON, without the keys about what it has nothing of."""
    left_out = [key for key in ("basis", "relaxed", "assumed_keys") if not getattr(entry, key)]
    if not entry.assumed_keys:
        left_out.append("assumed_calls")
    return {**without_keys(object_json(entry), *left_out), "blocked": [*map(blocker_json, entry.blocked)]}


def loads(text: str, signing_key: bytes | None = None) -> FleetIndex:
    """Return the index that `dumps` wrote.

    Raises LmsconfError for a document of another kind or a damaged one; StalePlan, given a key, for one that was not
    signed with it.
    """
    document = parse_document(text)
    verify_format(document, FORMAT)
    if signing_key is not None:
        verify_signature(
            document,
            signing_key,
            "index of the fleet",
            "Create it again with lmsconf fleet, and with the same key in the environment (LMSCONF_PLAN_KEY).",
        )
    try:
        entries = value_at(document, tuple[FleetEntry, ...], "workspaces")
        refuse_missing(document["workspaces"], [entry_json(entry) for entry in entries], "workspaces")
        return FleetIndex(
            action=value_at(document, FleetAction, "action"),
            created_at=value_at(document, str, "created_at"),
            entries=entries,
            shard=_valid(value_at(document, FleetShard, "shard")) if "shard" in document else None,
        )
    except ValueError as error:
        raise LmsconfError(
            f"the file is not an index of a fleet: {error}", hint="Create it again with lmsconf fleet."
        ) from error


def _valid(shard: FleetShard) -> FleetShard:
    if not 1 <= shard.number <= shard.of <= MOST_SHARDS:
        raise ValueError(f"there is no shard {shorten(str(shard))}")
    return shard
