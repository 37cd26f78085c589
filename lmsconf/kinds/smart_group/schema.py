"""The JSON Schema of a smart group's manifest entry."""

from __future__ import annotations

from typing import Final

from lmsconf.kinds.shared.manifest_entries import NAME, NAMED, entry_schema
from lmsconf.kinds.shared.people_lists import people_list_schema
from lmsconf.model.canonical_json import Json

_CONDITION: dict[str, Json] = {
    **entry_schema(
        {
            "field": {**NAME, "description": "The custom field."},
            "choices": {
                "type": "array",
                "items": {"type": "string", "minLength": 1},
                "minItems": 1,
                "description": "One of these must have been chosen.",
            },
            "system_condition": {"type": "string", "minLength": 1, "description": "Passed through, e.g. IS_ANY."},
        },
        ["field"],
        "What a person must have answered.",
    ),
    "anyOf": [{"required": ["choices"]}, {"required": ["system_condition"]}],
}
SCHEMA: Final = entry_schema(
    {
        **NAMED,
        "conditions": {
            "type": "array",
            "items": _CONDITION,
            "minItems": 1,
            "description": "All of them must hold.",
            "x-conditions": True,
        },
        "managers": people_list_schema("Who manages the group."),
    },
    ["name"],
    "A smart group: everybody whose answers fit.",
)
