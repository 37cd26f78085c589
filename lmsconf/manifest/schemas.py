"""The JSON Schema of a whole manifest, put together from the kinds: for checking, and written out for editors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final, cast

from lmsconf.core.kind import Kind
from lmsconf.core.values import Json

ABSENT: Final = "absent"
_DRAFT: Final = "https://json-schema.org/draft/2020-12/schema"
_HOME: Final = {"^x-": {"description": "Ignored, so that anchors have a home."}}


def manifest_schema(kinds: Mapping[str, Kind]) -> dict[str, Json]:
    """The schema of one manifest document, whole."""
    sections = {kind.section: _list(kind.schema) for kind in kinds.values()}
    gone = {kind.section: _list(absent_entry_schema(kind)) for kind in kinds.values()}
    return {"$schema": _DRAFT, "title": "A manifest of lmsconf", **_document(sections, gone)}


def manifest_schema_text(kinds: Mapping[str, Kind]) -> str:
    """What belongs into `schemas/manifest.schema.json`."""
    return json.dumps(manifest_schema(kinds), indent=2, ensure_ascii=False) + "\n"


def outline_schema(kinds: Mapping[str, Kind]) -> dict[str, Json]:
    """The sections alone: each a list, whatever is in it."""
    sections: dict[str, Json] = {kind.section: {"type": "array"} for kind in kinds.values()}
    return _document(sections, sections)


def absent_entry_schema(kind: Kind) -> dict[str, Json]:
    """One entry under `absent`: where one text says it all, the text alone will do."""
    schema = dict(kind.absent_schema)
    key = short_key(kind)
    if key is None:
        return schema
    return {"oneOf": [{"type": "string", "minLength": 1, "description": f"Its {key}."}, schema]}


def short_key(kind: Kind) -> str | None:
    """The key that says it all of an entry under `absent`: its name, or an e-mail."""
    return next((key for key in ("name", "email") if kind.absent_schema.get("required") == [key]), None)


def _document(sections: Mapping[str, Json], gone: Mapping[str, Json]) -> dict[str, Json]:
    absent: Json = {
        "type": "object",
        "description": "What is deleted if it is there.",
        "properties": dict(gone),
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {**sections, ABSENT: absent},
        "patternProperties": cast(Json, _HOME),
        "additionalProperties": False,
    }


def _list(entry: Mapping[str, Json]) -> dict[str, Json]:
    return {"type": "array", "items": dict(entry)}
