"""The JSON Schema of the manifest entry of a person."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.kinds.shared.entry_keys import ABOUT, ONLY_IN, PIN, entry_schema
from lmsconf.kinds.user.types import APPLICATIONS, ARCHIVE_DATE
from lmsconf.model.canonical_json import Json

_EMAIL: dict[str, Json] = {"type": "string", "pattern": "^[^@\\s]+@[^@\\s]+$", "description": "The person's e-mail."}
_APPLICATION_LIST: dict[str, Json] = {"type": "array", "items": {"enum": list(APPLICATIONS)}}
_TEXT: dict[str, Json] = {"type": "string", "minLength": 1}

PROPERTIES: Final[Mapping[str, Json]] = {
    "first_name": {**_TEXT, "description": "The first name. Required for a new account."},
    "last_name": {**_TEXT, "description": "The last name. Required for a new account."},
    "language": {
        "type": "string",
        "pattern": "^[a-z-]+$",
        "description": "A lowercase language code such as en or sv. Required for a new account.",
    },
    "admin": {"type": "boolean", "description": "Whether the person has administrator rights."},
    "manager": {"type": "boolean", "description": "Whether the person has manager rights."},
    "applications": {
        "description": "The applications of the person: the whole list, or include and exclude.",
        "oneOf": [
            _APPLICATION_LIST,
            {
                "type": "object",
                "properties": {"include": _APPLICATION_LIST, "exclude": _APPLICATION_LIST},
                "minProperties": 1,
                "additionalProperties": False,
            },
        ],
    },
    "metadata": {
        "type": "object",
        "description": "Texts by key. Omitted keys are not changed; null removes a key.",
        "additionalProperties": {"type": ["string", "null"]},
    },
    "answers": {
        "type": "object",
        "description": "Answers to custom fields: a choice, a list of choices, or a text; null clears the answer.",
        "additionalProperties": {"oneOf": [_TEXT, {"type": "array", "items": _TEXT}, {"type": "null"}]},
    },
    "archived": {"type": "boolean", "description": "Whether the account is archived: no access, but it is kept."},
    ARCHIVE_DATE: {
        "type": ["string", "null"],
        "x-time": True,
        "description": "When the account will be archived; a date is 00:00 of that day. null: never.",
    },
}
"""Keys without those common to all kinds."""

PERSON_SCHEMA: Final = entry_schema(
    {
        "email": _EMAIL,
        "id": PIN,
        "previously": {
            "type": "array",
            "items": _EMAIL,
            "description": "Earlier e-mails: a live account under one of them gets the new e-mail.",
        },
        **PROPERTIES,
        "only_in": ONLY_IN,
        "about": ABOUT,
    },
    ["email"],
    "A person of the workspace.",
)
ABSENT_PERSON_SCHEMA: Final = entry_schema(
    {"email": _EMAIL}, ["email"], "An error: people are archived, never deleted."
)
