"""A few manifest entries of every kind, and a workspace in which they can be created."""

from collections.abc import Mapping
from typing import Final

from lmsconf.model.canonical_json import Json

SEED: Final[Mapping[str, object]] = {
    "people": [{"email": "anna@x.example", "id": "p1"}, {"email": "bo@x.example", "id": "p2", "metadata": {"a": "b"}}],
    "custom_fields": [{"name": "Site", "type": "CHOICE", "choices": ["Oslo", "Malmö / Lund"]}],
    "groups": [{"name": "Old coaches", "id": "g1", "members": ["anna@x.example"]}],
    "smart_groups": [
        {"name": "Oslo", "id": "s1", "conditions": [{"field": "Site", "choices": ["Oslo"]}], "managers": []}
    ],
    "content": [{"name": "Fire", "id": "c1"}, {"name": "a -> b", "id": "c2"}],
    "content_targets": [{"content": "Fire", "assign_to": [{"user": "bo@x.example"}], "mandatory": True}],
}

NEW: Final[Mapping[str, list[dict[str, Json]]]] = {
    "custom_field": [
        {"name": "Badge", "type": "TEXT"},
        {
            "name": "Skills / all",
            "type": "MULTI_SELECT",
            "choices": ["SQL", "C -> D"],
            "description": "What one can do",
        },
        {"name": "Shift", "type": "CHOICE", "choices": ["Day"], "hidden": True, "locked": False, "optional": True},
    ],
    "group": [
        {"name": "Plain"},
        {"name": "Nobody", "members": [], "managers": []},
        {"name": "Both\\", "members": ["ANNA@x.example", "bo@x.example"], "managers": {"include": ["bo@x.example"]}},
    ],
    "user": [
        {"email": "cy@x.example", "first_name": "Cy", "last_name": "Dahl", "language": "sv"},
        {
            "email": "di@x.example",
            "first_name": "Di",
            "last_name": "Ek",
            "language": "nl",
            "admin": True,
            "manager": False,
            "applications": {"include": ["learn", "create"], "exclude": ["analyse"]},
            "metadata": {"cost centre": "100", "old": None},
            "answers": {"Site": "Malmö / Lund"},
        },
        {
            "email": "eve@x.example",
            "first_name": "Eve",
            "last_name": "Falk",
            "language": "en",
            "applications": ["learn"],
            "custom_archive_date": "2030-01-05",
        },
    ],
    "smart_group": [
        {"name": "Malmö", "conditions": [{"field": "Site", "choices": ["Malmö / Lund"]}]},
        {
            "name": "Any site",
            "conditions": [  # their order means nothing; this is the one in which plans show them
                {"field": "Site", "choices": ["Oslo"], "system_condition": "NEW_ONE"},
                {"field": "Site", "system_condition": "IS_ANY"},
            ],
            "managers": ["bo@x.example"],
        },
    ],
    "content_target": [
        {"content": "Fire", "assign_to": ["everyone"]},
        {
            "content": {"name": "a -> b", "id": "c2"},
            "mandatory": True,
            "visible_from": "2026-01-05",
            "visible_until": "2026-12-31T12:00:00Z",
            "assign_to": [{"group": "Old coaches"}, {"user": "anna@x.example", "mandatory": False}],
        },
        {"content": "a -> b", "assign_to": [{"smart_group": "Oslo", "visible_until": None}]},
    ],
}
"""Kind → entries of things that are not live yet."""

CHANGED: Final[Mapping[str, list[dict[str, Json]]]] = {
    "custom_field": [
        {
            "name": "Office",
            "previously": ["Site"],
            "choices": {"include": [{"name": "Kristiania", "previously": ["Oslo"]}, "Bergen"], "exclude": []},
            "description": "Where one sits",
        }
    ],
    "group": [{"name": "Coaches", "previously": ["Old coaches"], "members": ["bo@x.example"]}],
    "user": [
        {"email": "a@x.example", "previously": ["anna@x.example"], "manager": True, "answers": {"Site": "Oslo"}},
        {"email": "bo@x.example", "metadata": {"a": None, "c": "d"}, "archived": True},
    ],
    "smart_group": [
        {
            "name": "Not Oslo",
            "id": "s1",
            "conditions": [{"field": "Site", "choices": ["Malmö / Lund"]}],
            "managers": {"include": ["anna@x.example"], "exclude": ["bo@x.example"]},
        }
    ],
    "content_target": [{"content": "Fire", "visible_until": "2027-01-01", "assign_to": [{"user": "bo@x.example"}]}],
}
"""Kind → entries that change what is live."""

GONE: Final[Mapping[str, list[dict[str, Json]]]] = {
    "custom_field": [{"name": "Site", "id": "f-1"}],
    "group": [{"name": "Old coaches"}],
    "smart_group": [{"name": "Oslo"}],
    "content_target": [{"content": "Fire", "assign_to": [{"user": "bo@x.example"}]}],
}
"""Kind → entries that take away what is live. People are never deleted."""
