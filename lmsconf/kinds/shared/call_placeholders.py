"""The API description as kinds need it: bodies with the dialect's names, paths with ids that may not be known yet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final
from urllib.parse import quote, unquote

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.dialect_keys import assumed_keys_of_call
from lmsconf.api.spec.operations import encode_path_segment
from lmsconf.model.address import Address, Ref

_PLACE: Final = re.compile(r"\{(\w+)\}")
_TO_COME: Final = re.compile(r"\{([^{}]*)\}")


class SpecCallTemplates:
    """The API's field names, paths and behaviours that kinds need to build calls."""

    def __init__(self, spec: ApiSpec) -> None:
        self.spec = spec

    def body(self, operation: str, **values: object) -> dict[str, object]:
        """Return a request body, canonical names replaced by those on the wire."""
        return self.spec.body_to_wire(operation, **values)

    def behaviour(self, key: str) -> str:
        """Return the dialect's value for a behaviour that the API specification leaves open."""
        return self.spec.behaviour(key)

    def is_known(self, key: str) -> bool:
        """Return whether the project's dialect states the value of a key."""
        return self.spec.is_known(key)

    def assumed_keys(self, operation: str, path: str, body: object, *, finds_nothing: bool) -> Iterable[str]:
        """Return the dialect keys that a call relies on.

        finds_nothing: the list or the assignment that it is for does not exist before it.
        """
        return assumed_keys_of_call(self.spec, operation, path, body, finds_nothing=finds_nothing)

    def request(self, operation: str, path: Mapping[str, str | Ref]) -> tuple[str, str]:
        """Return method and path; a Ref is written `{group/New name}`, with braces and percent signs encoded."""
        described = self.spec[operation]
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
