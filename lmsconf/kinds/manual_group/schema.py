"""The JSON Schema of the manifest entry of a manual group."""

from __future__ import annotations

from typing import Final

from lmsconf.kinds.shared.entry_keys import NAMED, entry_schema, people_list_schema

GROUP_SCHEMA: Final = entry_schema(
    {
        **NAMED,
        "members": people_list_schema("The members of the group."),
        "managers": people_list_schema("The managers of the group."),
    },
    ["name"],
    "A manual group: people added by hand.",
)
