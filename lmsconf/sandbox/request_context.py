"""What a handler works with: a validated request, the context, error responses, API keys, applications and times.

Requests are validated against the API description; anything unknown is rejected with 400, by name. Instants are epoch
milliseconds internally; the dialect's format or ISO 8601 in requests and responses. API keys are the credentials that
the workspace accepts, three at most (API specification, Authentication).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Final, Literal, TypeAlias, cast, get_args
from urllib.parse import parse_qs
from zoneinfo import ZoneInfo

from msgspec import Struct
from msgspec.json import encode

from lmsconf.api.spec import Operation, Schema
from lmsconf.api.spec.operations import compile_schema, with_names
from lmsconf.errors import LmsconfError
from lmsconf.sandbox.store import Json, Repository, Value
from lmsconf.support.strict_json import map_texts, parse_json


class Refusal(Exception):
    """End a request with an error response and roll back its changes.

    headers: additional response headers.
    """

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status, self.code, self.headers = status, code, headers or {}


bad_request: Final = partial(Refusal, 400, "bad_request")
"""400: the request cannot be carried out as written."""
not_found: Final = partial(Refusal, 404, "not_found")
"""404: the path or the body names something that does not exist."""
forbidden: Final = partial(Refusal, 403, "forbidden")
"""403: understood, but not allowed in the current state."""
conflict: Final = partial(Refusal, 409, "conflict")
"""409: it exists already."""


Entry: TypeAlias = "dict[str, Json]"
GROUP: Final = "GROUP"
SMART_GROUP: Final = "SMART_GROUP"
"""The two kinds of groups, as responses name them."""


PAGE_SIZE: Final = "min(coalesce(:limit, 100), CAST($dialect(paging.limit) AS INTEGER))"
"""SQL for the largest number of rows of the page that a request asks for."""
PAGE: Final = f"LIMIT {PAGE_SIZE} OFFSET coalesce(:skip, 0)"
_RESOURCES: Final = {
    "userId": ("user", "SELECT id FROM people WHERE id = ?"),
    "groupId": ("group", "SELECT id FROM groups WHERE id = ? AND kind = 'GROUP'"),
    "smartGroupId": ("smart group", "SELECT id FROM groups WHERE id = ? AND kind = 'SMART_GROUP'"),
    "customFieldId": ("custom field", "SELECT id FROM fields WHERE id = ?"),
    "contentId": ("content", "SELECT id FROM contents WHERE id = ?"),
    "progressId": ("progress record", "SELECT id FROM generations WHERE id = ?"),
}
"""Name of an id in a path or a query → what has it, and the query that finds it."""
Refusals: TypeAlias = "Mapping[str, Callable[[str], Refusal]]"
"""A query of the message → the refusal of a request for which it finds one."""


class NamedValues(dict[str, Value]):
    """The values of a request by name, as SQL takes them: a list or an object is JSON.

    What the request leaves out is NULL, `now` the time, and `dialect(KEY)` the value of that key: `$dialect(KEY)` is a
    parameter too.
    """

    def __init__(self, behaviour: Callable[[str], str], now: Callable[[], int], values: Mapping[str, Json]) -> None:
        super().__init__({name.removesuffix("[]"): _as_sql_value(value) for name, value in values.items()})
        self._behaviour, self._now = behaviour, now

    def __missing__(self, name: str) -> Value:
        if name == "now":
            return self.setdefault(name, self._now())
        return self._behaviour(name[8:-1]) if name.startswith("dialect(") else None


STORED_NUL: Final = "\ufdd0"
"""What stands for a NUL in the database: SQLite's JSON functions take a NUL for the end of a text."""


def without_nul(value: Json) -> Json:
    """A value as the database holds it, with STORED_NUL for each NUL."""
    return cast(Json, map_texts(value, lambda text: text.replace("\0", STORED_NUL), keys=True))


def _as_sql_value(value: Json) -> Value:
    if isinstance(value, Mapping | Sequence) and not isinstance(value, str):
        return encode(value).decode()
    return int(value) if isinstance(value, float) else value


class RequestContext:
    """A request that matches the API description, in an open transaction.

    The body has the description's own names, whatever the dialect names them in JSON. behaviour: of the workspace where
    the specification leaves it open. values: those of path, query and body by name, and the time; a statement of
    `repository` without values of its own has these.
    """

    def __init__(
        self,
        repository: Repository,
        behaviour: Callable[[str], str],
        path: Mapping[str, str] = MappingProxyType({}),
        query: Mapping[str, Json] = MappingProxyType({}),
        body: Mapping[str, Json] = MappingProxyType({}),
    ) -> None:
        self.behaviour, self.path = behaviour, path
        self.query, self.body = (cast("dict[str, Json]", without_nul(part)) for part in (query, body))
        self.values = NamedValues(behaviour, repository.now, {**path, **self.query, **self.body})
        self.repository = repository.with_named_values(self.values)

    def with_body(self, body: Mapping[str, Json]) -> RequestContext:
        """The same transaction with another request."""
        return RequestContext(self.repository, self.behaviour, body=body)

    def require_resources(self) -> None:
        """Raise Refusal (404) if an id in path or query is unknown."""
        for name, id in {**self.path, **self.query}.items():
            resource, query = _RESOURCES.get(name, ("", ""))
            if query and not self.repository.rows(query, cast(str, id)):
                raise not_found(f"there is no {resource} {id!r}")

    def refuse(self, refusals: Refusals) -> None:
        """Raise the first refusal whose query finds a message."""
        for query, refusal in refusals.items():
            for (message,) in self.repository.rows(query):
                if message is not None:
                    raise refusal(str(message))


Handler: TypeAlias = "Callable[[RequestContext], Json]"
"""Carries out one operation. None: done, without a response body."""


class Sql(Struct, frozen=True, kw_only=True):
    """A handler that is SQL alone, of the values of the request by name.

    new_ids: name → prefix of a new id, which is a value too. refusals: what ends the request before the changes.
    answer: the query of the response as JSON; empty: a response without a body.
    """

    new_ids: Mapping[str, str] = {}
    refusals: Refusals = {}
    changes: Sequence[str] = ()
    answer: str = ""

    def __call__(self, context: RequestContext) -> Json:
        for name, prefix in self.new_ids.items():
            context.values[name] = context.repository.new_id(prefix)
        context.refuse(self.refusals)
        for statement in self.changes:
            context.repository.execute(statement)
        return context.repository.json(self.answer) if self.answer else None


class ApiKeys(list[str]):
    """The active keys."""

    def create(self) -> str:
        """Create a key. Raises LmsconfError if three are active."""
        if len(self) >= 3:
            raise LmsconfError("at most 3 API keys can be active", hint="Revoke one of them first.")
        self.append(secrets.token_urlsafe(24))
        return self[-1]

    def revoke(self, key: str) -> None:
        """Revoke a key. Raises LmsconfError if it is not active."""
        if key not in self:
            raise LmsconfError("this API key is not active", hint="Only a key that is active can be revoked.")
        self.remove(key)


Application: TypeAlias = Literal["achievements", "analyse", "create", "learn", "follow-up"]
APPLICATIONS: Final[tuple[Application, ...]] = get_args(Application)


def default_applications(*, admin: bool, manager: bool) -> tuple[str, ...]:
    """The default applications of a new account: everyone learns, managers also follow up."""
    return APPLICATIONS if admin else ("learn", "follow-up") if manager else ("learn",)


def encode_applications(applications: Collection[str]) -> str:
    """The applications as stored, in the specification's order."""
    return encode([application for application in APPLICATIONS if application in applications]).decode()


_ISO: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)", re.ASCII)
_FORMS: Final = {
    "iso-ms": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII),
    "iso-local": re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", re.ASCII),
    "epoch-ms": re.compile("-?[0-9]{1,15}"),
    "epoch-ms-number": re.compile("-?[0-9]{1,15}"),
}
"""The forms of times but for ISO 8601."""


def parse_time(value: Json, format: str, zone: str = "UTC") -> int:
    """Parse a time; one without an offset is in `zone`. Raises ValueError if it is not in that format."""
    has_type = isinstance(value, int if format == "epoch-ms-number" else str)
    if not has_type or not _FORMS.get(format, _ISO).fullmatch(str(value)):
        raise ValueError(f"{value!r} is not a time in the form {format}")
    if format.startswith("epoch-ms"):
        return int(str(value))
    moment = datetime.fromisoformat(str(value))
    instant = moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(zone))
    return round(instant.timestamp() * 1000)


def validate_request(
    operation: Operation, path: Mapping[str, str], query: str, content_type: str, body: bytes
) -> tuple[dict[str, Json], dict[str, Json]]:
    """Return query and body, with the description's own names. Raises Refusal if they do not match the description."""
    given = {
        "path": {name: _typed(text, schema=operation.path_schemas[name]) for name, text in path.items()},
        "query": _parse_query(operation, query),
        "body": _parse_body(operation, content_type, body),
    }
    schemas = {
        "path": {"properties": dict(operation.path_schemas)},
        "query": {
            "properties": dict(operation.query),
            "required": sorted(operation.required_query),
            "additionalProperties": False,
        },
        "body": operation.body or {},
    }
    try:
        # As JSON, because many workspaces share the same few schemas, and compiling takes milliseconds.
        compile_schema(encode({"properties": schemas}), formats=True)(given)
    except ValueError as error:
        raise bad_request(str(error)) from error
    return given["query"], cast("dict[str, Json]", with_names(given["body"], operation.from_request))


def _parse_query(operation: Operation, text: str) -> dict[str, Json]:
    """The query's values by name: a list for an array, and for what is given several times."""
    try:
        given = parse_qs(text, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError as error:
        raise bad_request(f"the query is not UTF-8: {text}") from error
    return {name: _typed(*values, schema=operation.query.get(name, {})) for name, values in given.items()}


def _typed(text: str, *more: str, schema: Schema) -> Json:
    """A value of a path or a query with the type that it is to have; texts as they are if they are none."""
    if more or schema.get("type") == "array":
        return [text, *more]
    if schema.get("type") == "boolean" and text in ("true", "false"):
        return text == "true"
    if schema.get("type") == "integer" and re.fullmatch("-?[0-9]{1,18}", text):
        return int(text)
    return text


def _parse_body(operation: Operation, content_type: str, body: bytes) -> dict[str, Json]:
    """The JSON of the body; an empty object for an operation without one."""
    if operation.body is None:
        if body:
            raise bad_request(f"{operation.method} {operation.path} takes no body")
        return {}
    if content_type.partition(";")[0].strip().lower() != "application/json":
        raise bad_request(f"the content type must be application/json, not {content_type or 'left out'!r}")
    try:
        return cast("dict[str, Json]", parse_json(body.decode()))
    except ValueError as error:
        raise bad_request(f"the body is not JSON: {error}") from error
