"""The service's words, for the kinds: bodies in the names of the dialect, paths in which an id may be to come."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.operations import segment
from lmsconf.model.address import Address, Ref

_PLACE: Final = re.compile(r"\{(\w+)\}")
_TO_COME: Final = re.compile(r"\{([^{}]*)\}")


class ServiceTerms:
    """What `lmsconf.planner.context.Terms` asks for, over the API description."""

    def __init__(self, wire: ApiSpec) -> None:
        self.wire = wire

    def body(self, operation: str, **values: object) -> dict[str, object]:
        """A request body, canonical names replaced by those on the wire."""
        return self.wire.body(operation, **values)

    def behaviour(self, key: str) -> str:
        """How the service behaves where its specification is silent."""
        return self.wire.behaviour(key)

    def request(self, operation: str, path: Mapping[str, str | Ref]) -> tuple[str, str]:
        """Method and path; an id to come stands as `{group/New name}`, with braces and percent signs encoded."""
        described = self.wire[operation]
        return described.method, _PLACE.sub(lambda place: _segment(path[place[1]]), described.path)


def _segment(value: str | Ref) -> str:
    if isinstance(value, Ref):
        return "{" + quote(str(value), safe="/ \\#:@!$&'()*+,;=[]|^`\"<>?~") + "}"
    return segment(value)


def filled(path: str, ids: Mapping[Ref, str]) -> str:
    """The path with every id to come put in its place. Raises KeyError for one that did not come."""
    return _TO_COME.sub(lambda place: segment(ids[Ref(Address.parse(unquote(place[1])))]), path)


def filled_body(body: object, ids: Mapping[Ref, str]) -> object:
    """The body with every id to come put in its place. Raises KeyError for one that did not come."""
    if isinstance(body, Ref):
        return ids[body]
    if isinstance(body, Mapping):
        return {filled_body(key, ids): filled_body(value, ids) for key, value in body.items()}
    if isinstance(body, list | tuple):
        return [filled_body(item, ids) for item in body]
    return body
