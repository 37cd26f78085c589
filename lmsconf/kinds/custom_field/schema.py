"""The JSON Schema of a custom field's manifest entry."""

from __future__ import annotations

from typing import Final

from lmsconf.kinds.custom_field.types import TYPES
from lmsconf.kinds.shared.manifest_entries import NAME, NAMED, PIN, PREVIOUSLY, entry_schema
from lmsconf.model.canonical_json import Json

_CHOICE: dict[str, Json] = {
    "oneOf": [NAME, entry_schema({"name": NAME, "id": PIN, "previously": PREVIOUSLY}, ["name"], "One choice.")]
}
_CHOICES: dict[str, Json] = {"type": "array", "items": _CHOICE, "minItems": 1}
_CHOICE_NAMES: dict[str, Json] = {"type": "array", "items": NAME}

SCHEMA: Final = entry_schema(
    {
        **NAMED,
        "type": {"enum": list(TYPES), "description": "CHOICE, MULTI_SELECT or TEXT. It cannot change later."},
        "choices": {
            "description": "The choices: the whole list, or include and exclude.",
            "x-choices": True,
            "oneOf": [
                _CHOICES,
                {
                    "type": "object",
                    "properties": {"include": {"type": "array", "items": _CHOICE}, "exclude": _CHOICE_NAMES},
                    "minProperties": 1,
                    "additionalProperties": False,
                },
            ],
        },
        "description": {"type": ["string", "null"], "description": "A description shown to people; null clears it."},
        "hidden": {"type": "boolean", "description": "Whether the field is hidden from people."},
        "locked": {"type": "boolean", "description": "Whether people cannot change their own answer."},
        "optional": {"type": "boolean", "description": "Whether people may leave it unanswered."},
    },
    ["name"],
    "A custom field: a question about each person.",
)
