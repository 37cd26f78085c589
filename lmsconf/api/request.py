"""Build requests, checked against the API description before they are sent. Misuse raises ValueError."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, urlencode

from msgspec import Struct, field

from lmsconf.api.spec import Operation
from lmsconf.api.strict_json import encode
from lmsconf.model.canonical_json import Json

_HEADER_VALUE = re.compile(r"[\x21-\x7e]+")
_METHOD = re.compile("[A-Z]+")
_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|\Z))[!\"$-.0->@-\[\]-~]+)+")
"""Printable ASCII but / ? # and the backslash, between slashes."""


class PreparedRequest(Struct, frozen=True):
    """One request, ready to send. operation: None for one that was not checked against the API description."""

    operation: Operation | None
    method: str
    path: str
    query: str
    body: bytes | None
    writes: bool
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def target(self) -> str:
        """Path and query, relative to the service's URL."""
        return f"{self.path}?{self.query}" if self.query else self.path


def prepare_request(
    operation: Operation,
    path: str,
    query: Mapping[str, Json],
    body: object,
    headers: Mapping[str, str] | None = None,
) -> PreparedRequest:
    """Build a request of an operation. path: filled in. Raises ValueError for unknown and for missing parameters."""
    _check_path(path)
    if unknown := query.keys() - operation.query.keys():
        raise ValueError(f"{operation.id} has no query parameter {sorted(unknown)}")
    if missing := {name for name in operation.required_query if query.get(name) is None}:
        raise ValueError(f"{operation.id} needs the query parameter {sorted(missing)}")
    _check_headers(operation, headers or {})
    content = _body_of(operation, body)
    return PreparedRequest(
        operation, operation.method, path, _query_text(query), content, operation.writes, headers or {}
    )


def prepare_unchecked_request(method: str, path: str, query: Mapping[str, Json], body: object) -> PreparedRequest:
    """Build an unchecked request below the service's URL. Any method but GET and HEAD counts as a write."""
    if not _METHOD.fullmatch(method):
        raise ValueError(f"{method!r} is not an HTTP method")
    _check_path(path)
    content = None if body is None else encode(body)
    return PreparedRequest(None, method, path, _query_text(query), content, method not in ("GET", "HEAD"))


def _check_path(path: str) -> None:
    """Reject a path that could reach elsewhere: with a host, a query or dot segments."""
    if not _PATH.fullmatch(path):
        raise ValueError(f"{path!r} is not a path below the service's URL")


def _check_headers(operation: Operation, headers: Mapping[str, str]) -> None:
    """Reject headers that the operation does not have, and values that could inject another header."""
    if unknown := headers.keys() - set(operation.headers.values()):
        raise ValueError(f"{operation.id} has no header {sorted(unknown)}")
    for name, value in headers.items():
        if not _HEADER_VALUE.fullmatch(value):
            raise ValueError(f"{value!r} cannot be the header {name}")


def _body_of(operation: Operation, body: object) -> bytes | None:
    """Encode the body as JSON. Its property names are checked; their values are left to the service."""
    if operation.body is None:
        if body is not None:
            raise ValueError(f"{operation.id} takes no body")
        return None
    if not isinstance(body, dict):
        raise ValueError(f"{operation.id} takes a JSON object")
    unknown = body.keys() - set(operation.names.values())
    if unknown and not operation.allows_additional_properties:
        raise ValueError(f"{operation.id} has no body property {sorted(unknown)}")
    if missing := operation.required_body_names - body.keys():
        raise ValueError(f"{operation.id} needs the body property {sorted(missing)}")
    return encode(body)


def _query_text(query: Mapping[str, Json]) -> str:
    """Encode the query: None is omitted, a list gives one pair per item."""
    pairs = [
        (name, _text(name, item))
        for name, value in query.items()
        for item in (value if isinstance(value, list) else [value])
        if item is not None
    ]
    return urlencode(pairs, quote_via=quote, safe="") if pairs else ""


def _text(name: str, value: object) -> str:
    """Return a query value as text. Raises ValueError for an object or a nested list."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"{value!r} cannot be the query parameter {name}")
