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
                "description": "Choices of the field; one of them must be the person's answer.",
            },
            "system_condition": {"type": "string", "minLength": 1, "description": "Sent as it is, e.g. IS_ANY."},
        },
        ["field"],
        "A condition on people's answers.",
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
            "description": "Conditions; people must meet all of them.",
            "x-conditions": True,
        },
        "managers": people_list_schema("The managers of the group."),
    },
    ["name"],
    "A smart group: everyone whose answers meet its conditions.",
)
