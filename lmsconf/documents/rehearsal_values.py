"""The rehearsal of a plan ⇄ JSON: the key `rehearsal` of a plan file, with its receipt."""

from __future__ import annotations

from lmsconf.documents.change_values import change_json
from lmsconf.documents.document import JsonObjectReader, from_json, object_json, without_keys
from lmsconf.model.canonical_json import Json
from lmsconf.model.rehearsal import Rehearsal


def rehearsal_json(rehearsal: Rehearsal) -> dict[str, Json]:
    return {
        **without_keys(object_json(rehearsal), "done"),
        "calls": {"total": rehearsal.calls, "done": rehearsal.done},
        "remaining": [change_json(change) for change in rehearsal.remaining],
        "pace": {**object_json(rehearsal.pace), "seconds": rehearsal.pace.seconds},
    }


def rehearsal_from_json(value: dict[str, Json]) -> Rehearsal:
    calls = JsonObjectReader(value).reader("calls")
    return from_json({**value, "calls": calls.json("total"), "done": calls.json("done")}, Rehearsal, "rehearsal")
