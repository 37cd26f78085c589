"""The JSON Schema and the parsing of entries under `tests:`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from lmsconf.kinds.assignment.parse import audience_from
from lmsconf.kinds.assignment.types import AUDIENCES, contents_of
from lmsconf.kinds.shared.entry_keys import ABOUT, NAME, ONLY_IN, PIN, entry_schema, parse_about, parse_only_in
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.kinds.shared.manifest_entry import ManifestEntry
from lmsconf.model.access import AccessClaim, AccessTest
from lmsconf.model.address import EVERYBODY, Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_email

_HINT: Final = "Correct it, or write two tests."
_USER: Final = next(key for key, kind in AUDIENCES.items() if kind == USER)
_SHARED: Final[dict[str, Json]] = {
    "name": {"type": "string", "minLength": 1, "description": "The name of the test in reports."},
    "only_in": ONLY_IN,
    "about": ABOUT,
}
_AUDIENCE: Final[dict[str, Json]] = {
    "description": "An audience: a group, a smart group, or everyone.",
    "oneOf": [
        {"type": "string", "enum": [EVERYBODY], "description": "All people."},
        *(entry_schema({key: NAME}, [key], f"A {key}.") for key, kind in AUDIENCES.items() if kind != USER),
    ],
}
_CONTENT: Final[dict[str, Json]] = {
    "description": "The content by its name, or {name: …, id: …}.",
    "oneOf": [NAME, entry_schema({"name": NAME, "id": PIN}, ["name"], "A content pinned to an id.")],
}


def _form(properties: Mapping[str, Json], description: str) -> dict[str, Json]:
    required = [key for key in properties if key != "mandatory"]
    return entry_schema({**properties, **_SHARED}, required, description)


TEST_SCHEMA: Final[dict[str, Json]] = {
    "description": "An assertion about who has what, checked on the planned state.",
    "oneOf": [
        _form(
            {
                "all": _AUDIENCE,
                "has": _CONTENT,
                "mandatory": {
                    "const": True,
                    "description": "true: it must be mandatory for everyone in the audience.",
                },
            },
            "Everyone in an audience has a content.",
        ),
        _form({"none": _AUDIENCE, "has": _CONTENT}, "Nobody of an audience has a content."),
        _form(
            {
                "audience": _AUDIENCE,
                "size": {
                    "type": "object",
                    "description": "The number of people: {min: N, max: N}, or one of the two.",
                    "properties": {
                        "min": {"type": "integer", "minimum": 0, "description": "Minimum number of people."},
                        "max": {"type": "integer", "minimum": 0, "description": "Maximum number of people."},
                    },
                    "anyOf": [{"required": ["min"]}, {"required": ["max"]}],
                    "additionalProperties": False,
                },
            },
            "The size of an audience is within limits.",
        ),
        _form(
            {
                "disjoint": {
                    "type": "array",
                    "items": _AUDIENCE,
                    "minItems": 2,
                    "maxItems": 2,
                    "description": "Two audiences without common members.",
                }
            },
            "Two audiences have no common members.",
        ),
        {
            **entry_schema(
                {
                    _USER: {**NAME, "x-person": True, "description": "The e-mail of a person."},
                    "has": _CONTENT,
                    "has_not": _CONTENT,
                    **_SHARED,
                },
                [_USER],
                "A person has, or does not have, a content.",
            ),
            "anyOf": [{"required": ["has"]}, {"required": ["has_not"]}],
        },
    ],
}


def parse_test(entry: ManifestEntry) -> AccessTest | None:
    """Return the test of an entry; None after reporting a problem that its schema cannot tell."""
    body = entry.body
    size = cast("Mapping[str, int]", body.get("size", {}))
    least, most = size.get("min"), size.get("max")
    if least is not None and most is not None and least > most:
        message = f"tests: size: min is {least:,}, and max is {most:,}"
        entry.problem("manifest/test", message, "size", "min", hint=_HINT)
        return None
    if "has" in body and "has_not" in body:
        entry.problem("manifest/test", "tests: has and has_not exclude each other", "has_not", hint=_HINT)
        return None
    claim, audiences = _claim(body)
    contents = contents_of(body.get("has", body.get("has_not"))) if {"has", "has_not"} & body.keys() else iter(())
    content, pins = next(contents, (None, {}))
    name = body.get("name")
    return AccessTest(
        claim=claim,
        audiences=audiences,
        source=entry.places.at(),
        content=content,
        content_pins=pins,
        mandatory=bool(body.get("mandatory")),
        least=least,
        most=most,
        name=None if name is None else str(name),
        about=parse_about(body),
        only_in=parse_only_in(body),
    )


def _claim(body: Mapping[str, Json]) -> tuple[AccessClaim, tuple[Address, ...]]:
    if _USER in body:
        person = Address.of(USER, normalize_email(str(body[_USER])))
        return AccessClaim.HAS if "has" in body else AccessClaim.HAS_NOT, (person,)
    if "disjoint" in body:
        pair = body["disjoint"]
        return AccessClaim.DISJOINT, tuple(map(audience_from, pair if isinstance(pair, list) else ()))
    if "audience" in body:
        return AccessClaim.SIZE, (audience_from(body["audience"]),)
    claim = AccessClaim.ALL if "all" in body else AccessClaim.NONE
    return claim, (audience_from(body[claim.value]),)
