"""Check requests against the API description and encode them; decode responses; map failures to ApiError.

Misuse raises ValueError before anything is sent. JSON is read strictly: what the standard does not allow, and what
parsers interpret differently, is refused.
"""

from __future__ import annotations

import json
import re
import threading
import unicodedata
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import quote, urlencode, urlsplit

from msgspec import Struct, field

from lmsconf.api.response_limits import OversizedResponse, refuse_oversized_body
from lmsconf.api.retry import NOT_NOW, is_not_carried_out, seconds_of
from lmsconf.api.spec import Operation
from lmsconf.api.spec.dialect_candidates import PAGE_SIZE
from lmsconf.api.transport import HttpResponse, HttpTransport, RequestNotSent, ResponseLost
from lmsconf.errors import ApiError, InvalidResponse, Rejected, Unauthorized, Unreachable, WriteOutcomeUnknown
from lmsconf.model.canonical_json import Json
from lmsconf.model.time_formats import duration_in_words
from lmsconf.support.strict_json import parse_json

_ONE_AT_A_TIME: Final = threading.Lock()


def decode(body: bytes) -> Json:
    """Decode JSON in UTF-8, as strictly as `parse_json`. Raises ValueError for anything else."""
    # One at a time: decoding gains nothing from threads, and each takes many times the memory of the text.
    with _ONE_AT_A_TIME:
        return cast("Json", parse_json(body.decode("utf-8-sig")))


def encode(value: object) -> bytes:
    """Encode a request body. Raises ValueError for what is not JSON, including tuples."""
    _check(value)
    return _ENCODER.encode(value).encode()


def _check(value: object) -> None:
    """Reject what json.dumps converts silently: a reference not yet replaced by its id is a tuple, not a list."""
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"{key!r} is not a JSON key")
            _check(item)
    elif isinstance(value, list):
        for item in value:
            _check(item)
    elif value is not None and not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is not a JSON value")


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))

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
    if not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} cannot be the query parameter {name}")
    return str(value).lower() if isinstance(value, bool) else str(value)


_SHOWN = 300
_LOOKED_AT = 64 * 1024
_BETWEEN_WORDS = " \t\r\n\"'<>"
_MISUNDERSTOOD = (400, 409, 422)
"""The statuses that a body with wrong names, or a wrongly assumed behaviour of the dialect, would get."""
_ACCESS_HINT = "Check the token (LMSCONF_TOKEN, or `token:` of the workspace): API keys are created in the workspace."
_PERMISSION_HINT = "Check that the token may do this, and that the External API is enabled for the workspace."
LATER_HINT = "Try again later; a lower --max-rate or --parallelism asks less at a time."
_SOON = 60
"""A wait in seconds that an error does not tell: the run has waited longer."""
_LOST_HINT = "Run again: lmsconf reads the workspace before it repeats a call."
_JSON_TYPES = {"object": dict, "array": list}


def parse_response(request: PreparedRequest, response: HttpResponse, transport: HttpTransport, attempts: int) -> Json:
    """Return the value of a 2xx response, None if it has no body. Raises the ApiError of any other status."""
    if 200 <= response.status < 300:
        return _value(request, response, transport)
    raise _refusal(request, response, transport, attempts)


def failure_to_api_error(
    request: PreparedRequest, failure: RequestNotSent | ResponseLost, transport: HttpTransport, attempts: int
) -> ApiError:
    """Return the error for a request without a response: WriteOutcomeUnknown for a write that may have run."""
    message = f"{_place(request, transport)}: {_safe(str(failure))}{_times(attempts)}"
    if isinstance(failure, ResponseLost) and request.writes:
        return WriteOutcomeUnknown(message, hint=_LOST_HINT, operation=_id(request))
    hint = failure.hint if isinstance(failure, RequestNotSent) else None
    hint = hint or f"Check {transport.url_name} and the network."
    return Unreachable(message, hint=hint, operation=_id(request))


def _value(request: PreparedRequest, answer: HttpResponse, transport: HttpTransport) -> Json:
    """Return the decoded body of a 2xx response; None if the operation has none. Raises InvalidResponse."""
    if request.operation is None:
        empty = answer.unreadable is None and not answer.body.strip()
        return None if empty else _decoded(request, answer, transport)
    expected = request.operation.success
    if expected is None:
        if answer.body.lstrip()[:1] == b"<":
            # An HTML page: a proxy may have sent it without passing the request on to the service.
            raise _bad(request, answer, transport, "it is a page, and the service answers this with nothing")
        return None
    value = _decoded(request, answer, transport)
    if not isinstance(value, _JSON_TYPES.get(str(expected.get("type")), object)):
        raise _bad(request, answer, transport, f"it is not a JSON {expected.get('type')}")
    return value


def _decoded(request: PreparedRequest, answer: HttpResponse, transport: HttpTransport) -> Json:
    """Decode the body. Raises InvalidResponse if it is unreadable, too large or not JSON."""
    if answer.unreadable is not None:
        raise _bad(request, answer, transport, answer.unreadable)
    try:
        refuse_oversized_body(answer.body, paged=request.operation is not None and "limit" in request.operation.query)
        return decode(answer.body)
    except OversizedResponse as error:
        raise _bad(request, answer, transport, str(error)) from error
    except ValueError as error:
        raise _bad(request, answer, transport, f"it is not JSON: {error}") from error


def _bad(request: PreparedRequest, answer: HttpResponse, transport: HttpTransport, reason: str) -> InvalidResponse:
    excerpt = _excerpt(answer, transport)
    return InvalidResponse(
        f"{_place(request, transport)} answered {answer.status} with a body that cannot be used: "
        f"{_safe(transport.redact(reason))}",
        hint=f"It begins: {excerpt}" if excerpt else "Check that the workspace's url is that of the API.",
        operation=_id(request),
        status=answer.status,
        body=excerpt,
    )


def _refusal(request: PreparedRequest, answer: HttpResponse, transport: HttpTransport, tried: int) -> ApiError:
    """Return the error for a response that is not 2xx."""
    excerpt = _excerpt(answer, transport)
    kind, hint = _meaning(request, answer, transport)
    body_part = f": {excerpt}" if excerpt else ""
    return kind(
        f"{_place(request, transport)} answered {answer.status}{_times(tried)}{_asked(answer)}{body_part}",
        hint=hint,
        operation=_id(request),
        status=answer.status,
        body=excerpt,
    )


def _meaning(
    request: PreparedRequest, answer: HttpResponse, transport: HttpTransport
) -> tuple[type[ApiError], str | None]:
    """Return the error class and the hint for a status that is not 2xx."""
    status = answer.status
    wrong_base = (
        f"Check {transport.url_name}: {transport.url} may lack a part of the path, such as /api, or have one too many."
    )
    meanings: tuple[tuple[bool, type[ApiError], str | None], ...] = (
        (status < 400, Rejected, _moved_hint(answer, transport)),
        (status == 401, Unauthorized, _ACCESS_HINT),
        (status == 403 and not request.writes, Unauthorized, _PERMISSION_HINT),
        (is_not_carried_out(status, answer.retry_after), Unreachable, LATER_HINT),
        (status == 404 and _is_at_the_root(request), Rejected, wrong_base),
        (status < 500, Rejected, _dialect_hint(request, status)),
        (request.writes, WriteOutcomeUnknown, _LOST_HINT),
        (True, Unreachable, LATER_HINT),
    )
    return next((kind, hint) for holds, kind, hint in meanings if holds)


def _is_at_the_root(request: PreparedRequest) -> bool:
    """Whether the request is a read that names no resource, so that a 404 means a wrong base URL."""
    operation = request.operation
    return operation is not None and not (request.writes or operation.path_schemas or operation.required_query)


def _moved_hint(answer: HttpResponse, transport: HttpTransport) -> str:
    """Name the host that a redirect points to. Redirects are not followed: the token is for one host only."""
    try:
        other = urlsplit(answer.location or "").netloc.rpartition("@")[2]
    except ValueError:
        other = ""
    to = f" to {_safe(transport.redact(other))}" if other else ""
    return f"It redirects{to}, and redirects are not followed. Set the workspace's url to the API's own address."


def _dialect_hint(request: PreparedRequest, status: int) -> str | None:
    """Return the dialect keys to check if the service may use other names or smaller pages than assumed."""
    if request.operation is None or status not in _MISUNDERSTOOD:
        return None
    if not request.writes:
        pages = "limit" in request.operation.query
        return f"If the service returns smaller pages only, set this under `dialect:` ({PAGE_SIZE})." if pages else None
    keys = ", ".join(request.operation.dialect_keys)
    return f"If the service uses other names, set them under `dialect:` ({keys})." if keys else None


def _place(request: PreparedRequest, transport: HttpTransport) -> str:
    return f"{request.method} {transport.redact(request.path)} at {transport.host}"


def _times(tried: int) -> str:
    return "" if tried <= 1 else f" (tried {tried} times)"


def _asked(answer: HttpResponse) -> str:
    """Return the wait that a Retry-After in seconds asks for, if it takes minutes."""
    seconds = seconds_of(answer.retry_after)
    if answer.status not in NOT_NOW or seconds is None or seconds <= _SOON:
        return ""
    return f" and asks to wait {duration_in_words(seconds)}"


def _id(request: PreparedRequest) -> str | None:
    return request.operation.id if request.operation else None


def _excerpt(answer: HttpResponse, transport: HttpTransport) -> str:
    """Return the start of a body, redacted and safe to print on a terminal."""
    text = answer.body[:_LOOKED_AT].decode("utf-8", "replace")
    if len(answer.body) > _LOOKED_AT:
        # Cut at a word boundary: redaction does not recognise half a secret.
        text = text[: max(text.rfind(mark) for mark in _BETWEEN_WORDS) + 1]
    return _safe(transport.redact(text).strip()[:_SHOWN])


def _safe(text: str) -> str:
    """Return the text on one line, with control characters and unusual spaces escaped."""
    return "".join(
        char if char == " " or unicodedata.category(char)[0] not in "CZ" else f"\\u{ord(char):04x}" for char in text
    )
