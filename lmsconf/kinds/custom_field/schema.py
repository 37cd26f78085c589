"""The JSON Schema of the manifest entry of a custom field."""

from __future__ import annotations

from typing import Final

from lmsconf.kinds.custom_field.types import TYPES
from lmsconf.kinds.shared.entry_keys import NAME, NAMED, PIN, PREVIOUSLY, entry_schema
from lmsconf.model.canonical_json import Json

_CHOICE: dict[str, Json] = {
    "oneOf": [NAME, entry_schema({"name": NAME, "id": PIN, "previously": PREVIOUSLY}, ["name"], "One choice.")]
}


FIELD_SCHEMA: Final = entry_schema(
    {
        **NAMED,
        "type": {
            "enum": list(TYPES),
            "description": "CHOICE, MULTI_SELECT or TEXT. It cannot change later: see `migrate`.",
        },
        "choices": {
            "description": "The choices: the whole list, or include and exclude.",
            "x-choices": True,
            "oneOf": [
                {"type": "array", "items": _CHOICE, "minItems": 1},
                {
                    "type": "object",
                    "properties": {
                        "include": {"type": "array", "items": _CHOICE},
                        "exclude": {"type": "array", "items": NAME},
                    },
                    "minProperties": 1,
                    "additionalProperties": False,
                },
            ],
        },
        "description": {"type": ["string", "null"], "description": "A description shown to people; null clears it."},
        "hidden": {"type": "boolean", "description": "Whether the field is hidden from people."},
        "locked": {"type": "boolean", "description": "Whether people cannot change their own answer."},
        "optional": {"type": "boolean", "description": "Whether people may leave it unanswered."},
        "migrate": entry_schema(
            {
                "from": {**NAME, "description": "The old field. It is deleted once every answer to it is copied."},
                "to": {**NAME, "description": "The name of this entry; it may be left out."},
                "choices": {
                    "type": "object",
                    "description": "Old choice → choice of this field, or null for no answer. Others keep "
                    "their name. "
                    "From a TEXT field: text → choice.",
                    "additionalProperties": {"type": ["string", "null"], "minLength": 1},
                },
                "not_copied": {
                    "enum": ["keep", "delete"],
                    "description": "Answers that cannot be copied, such as those of people with another "
                    "answer to this field: "
                    "keep the old field (default), or delete them with it, which the guard `answers` counts.",
                },
                "conditions": {
                    "enum": ["declared", "all"],
                    "description": "Which conditions on the old field are replaced: those that manifests "
                    "declare, by what they "
                    "say (default), or also those of all other smart groups.",
                },
            },
            ["from"],
            "Moves the answers of another field to this one, and deletes that field.",
        ),
    },
    ["name"],
    "A custom field: a question about each person.",
)
