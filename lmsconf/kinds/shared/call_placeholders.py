"""Calls whose ids may not be known yet: paths and bodies with a Ref in place of each, filled in while applying."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.operations import encode_path_segment
from lmsconf.model.address import Address, Ref

_PLACE: Final = re.compile(r"\{(\w+)\}")
_TO_COME: Final = re.compile(r"\{([^{}]*)\}")


def request_target(spec: ApiSpec, operation: str, path: Mapping[str, str | Ref]) -> tuple[str, str]:
    """Return method and path of a call; a Ref is written `{group/New name}`, with braces and percent signs encoded."""
    described = spec[operation]
    return described.method, _PLACE.sub(lambda place: _segment(path[place[1]]), described.path)


def _segment(value: str | Ref) -> str:
    if isinstance(value, Ref):
        return "{" + quote(str(value), safe="/ \\#:@!$&'()*+,;=[]|^`\"<>?~") + "}"
    return encode_path_segment(value)


def fill_refs_in_path(path: str, ids: Mapping[Ref, str]) -> str:
    """Return the path with each Ref replaced by its id. Raises KeyError for a Ref without an id."""
    return _TO_COME.sub(lambda place: encode_path_segment(ids[Ref(Address.parse(unquote(place[1])))]), path)


def fill_refs_in_body(body: object, ids: Mapping[Ref, str]) -> object:
    """Return the body with each Ref, key or value, replaced by its id. Raises KeyError for a Ref without an id."""
    if isinstance(body, Ref):
        return ids[body]
    if isinstance(body, Mapping):
        return {fill_refs_in_body(key, ids): fill_refs_in_body(value, ids) for key, value in body.items()}
    if isinstance(body, list | tuple):
        return [fill_refs_in_body(item, ids) for item in body]
    return body
