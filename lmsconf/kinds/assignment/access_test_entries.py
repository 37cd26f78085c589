"""The parsing of entries under `tests:`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from lmsconf.kinds.assignment.parse import audience_from
from lmsconf.kinds.assignment.types import AUDIENCES, contents_of
from lmsconf.kinds.shared.entry_keys import parse_about, parse_only_in
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.kinds.shared.manifest_entry import ManifestEntry
from lmsconf.model.access import AccessClaim, AccessTest
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_email

_HINT: Final = "Correct it, or write two tests."
_USER: Final = next(key for key, kind in AUDIENCES.items() if kind == USER)


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
