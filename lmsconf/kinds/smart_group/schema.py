"""The JSON Schema of the manifest entry of a smart group."""

from __future__ import annotations

from typing import Final

from lmsconf.kinds.shared.entry_keys import NAME, NAMED, entry_schema, people_list_schema

SMART_GROUP_SCHEMA: Final = entry_schema(
    {
        **NAMED,
        "conditions": {
            "type": "array",
            "items": {
                **entry_schema(
                    {
                        "field": {**NAME, "description": "The custom field."},
                        "choices": {
                            "type": "array",
                            "items": {"type": "string", "minLength": 1},
                            "minItems": 1,
                            "description": "Choices of the field; one of them must be the person's answer.",
                        },
                        "system_condition": {
                            "type": "string",
                            "minLength": 1,
                            "description": "Sent as it is, e.g. IS_ANY.",
                        },
                    },
                    ["field"],
                    "A condition on people's answers.",
                ),
                "anyOf": [{"required": ["choices"]}, {"required": ["system_condition"]}],
            },
            "minItems": 1,
            "description": "Conditions; people must meet all of them.",
            "x-conditions": True,
        },
        "managers": people_list_schema("The managers of the group."),
    },
    ["name"],
    "A smart group: everyone whose answers meet its conditions.",
)
