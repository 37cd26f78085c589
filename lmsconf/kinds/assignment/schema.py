"""The JSON Schema of the manifest entry of assignments of contents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.kinds.assignment.types import AUDIENCES
from lmsconf.kinds.shared.entry_keys import ABOUT, NAME, ONLY_IN, PIN, UNTIL, entry_schema
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.model.canonical_json import Json

_VALUE: dict[str, Json] = {
    "mandatory": {"type": "boolean", "description": "Whether people must take it. Default: false."},
    "visible_from": {
        "type": ["string", "null"],
        "x-time": True,
        "description": "When the content becomes visible; a date is 00:00 of that day. Default, or null: "
        "always visible.",
    },
    "visible_until": {
        "type": ["string", "null"],
        "x-time": True,
        "description": "When the content is hidden; a date is the last second of that day. This is not a "
        "due date. "
        "Default, or null: never.",
    },
    "window": {
        "type": "string",
        "minLength": 1,
        "x-window": True,
        "description": "The name of a window under `windows`, in place of visible_from and visible_until.",
    },
}


def _audience(key: str, value: Json, more: Mapping[str, Json]) -> dict[str, Json]:
    return entry_schema({key: value, **more}, [key], f"The audience: {key}.")


def _named(kind: str) -> dict[str, Json]:
    return {**NAME, "x-person": True} if kind == USER else NAME


def _assign_to(more: Mapping[str, Json]) -> dict[str, Json]:
    return {
        "type": "array",
        "minItems": 1,
        "description": "Who gets the content.",
        "items": {
            "oneOf": [
                {"type": "string", "enum": ["everyone"], "description": "Short for {everyone: true}."},
                *(_audience(key, _named(kind), more) for key, kind in AUDIENCES.items()),
                _audience("everyone", {"const": True}, more),
            ]
        },
    }


_SINGLE_CONTENT: Json = {
    "oneOf": [NAME, entry_schema({"name": NAME, "id": PIN}, ["name"], "A content pinned to an id.")]
}
_CONTENT: dict[str, Json] = {
    "description": "The content by its name, or a list of contents with the same assignments.",
    "oneOf": [
        NAME,
        entry_schema({"name": NAME, "id": PIN}, ["name"], "A content pinned to an id."),
        {"type": "array", "items": _SINGLE_CONTENT, "minItems": 1},
    ],
}
_REPLACED: Json = entry_schema(
    {
        "content": _SINGLE_CONTENT,
        "then": {
            "description": "What becomes of the old assignment: it is deleted, made optional, or hidden "
            "from a date on.",
            "oneOf": [
                {
                    "type": "string",
                    "enum": ["remove", "optional"],
                    "description": "remove deletes it; optional keeps it.",
                },
                entry_schema(
                    {
                        "visible_until": {
                            "type": "string",
                            "x-time": True,
                            "description": "When the old content is hidden; a date is the last second of "
                            "that day. An earlier end stays.",
                        }
                    },
                    ["visible_until"],
                    "Its window ends then.",
                ),
            ],
        },
    },
    ["content", "then"],
    "An earlier content, whose assignments to the same audiences are replaced by those of this entry.",
)

ASSIGNMENT_SCHEMA: Final = entry_schema(
    {
        "content": _CONTENT,
        **_VALUE,
        "assign_to": _assign_to(_VALUE),
        "replaces": {
            "description": "The earlier content, or a list of them, whose assignments to the same audiences "
            "this entry "
            "replaces. They are changed once the new assignment is seen to exist.",
            "oneOf": [_REPLACED, {"type": "array", "items": _REPLACED, "minItems": 1}],
        },
        "keep": entry_schema(
            {
                "in_progress": {
                    "const": True,
                    "description": "Those who have begun the old content and not finished it.",
                },
                "until": {
                    "type": "string",
                    "x-time": True,
                    "description": "Until when they keep it; a date is the last second of that day.",
                },
            },
            ["in_progress", "until"],
            "Who keeps the content that `replaces` names, each by an assignment of their own, chosen when "
            "it is replaced.",
        ),
        "only_in": ONLY_IN,
        "about": ABOUT,
    },
    ["content", "assign_to"],
    "Assignments: content and who gets it.",
)
ABSENT_ASSIGNMENT_SCHEMA: Final = entry_schema(
    {"content": _CONTENT, "assign_to": _assign_to({}), "until": UNTIL, "only_in": ONLY_IN},
    ["content", "assign_to"],
    "Assignments to delete if they exist.",
)
