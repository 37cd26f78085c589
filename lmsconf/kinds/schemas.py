"""The JSON Schemas of manifest entries of the five kinds."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.kinds.assignment.types import AUDIENCES
from lmsconf.kinds.custom_field.types import TYPES
from lmsconf.kinds.shared.entry_keys import (
    ABOUT,
    NAME,
    NAMED,
    ONLY_IN,
    PIN,
    PREVIOUSLY,
    UNTIL,
    entry_schema,
    people_list_schema,
)
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.kinds.user.types import APPLICATIONS
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


_DATE: Final = "custom_archive_date"
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
    _DATE: {
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


GROUP_SCHEMA: Final = entry_schema(
    {
        **NAMED,
        "members": people_list_schema("The members of the group."),
        "managers": people_list_schema("The managers of the group."),
    },
    ["name"],
    "A manual group: people added by hand.",
)
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
