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

from lmsconf.api.response_limits import refuse_oversized_body
from lmsconf.api.retry_and_rate_limit import NOT_NOW, is_not_carried_out, seconds_of
from lmsconf.api.spec import Operation
from lmsconf.api.spec.dialect_candidates import PAGE_SIZE
from lmsconf.api.transport import HttpResponse, HttpTransport, NoResponse
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


_NOT_JSON: Final = "a part of the body, such as a tuple or a key that is not text, is not a JSON value"
"""Without the body, which may hold personal data."""


def encode(value: object) -> bytes:
    """Encode a request body. Raises ValueError for what is not JSON, including tuples."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    except TypeError as error:
        raise ValueError(_NOT_JSON) from error
    if json.loads(text) != value:
        # It was converted silently: a reference not yet replaced by its id is a tuple, not a list.
        raise ValueError(_NOT_JSON)
    return text.encode()


class PreparedRequest(Struct, frozen=True):
    """One request, ready to send. operation: None for one that was not checked against the API description."""

    operation: Operation | None
    method: str
    path: str
    query: str
    body: bytes | None
    writes: bool
    headers: Mapping[str, str] = field(default_factory=dict)


def prepare_request(
    operation: Operation,
    path: str,
    query: Mapping[str, Json],
    body: object,
    headers: Mapping[str, str] | None = None,
) -> PreparedRequest:
    """Build a request of an operation. path: filled in. Raises ValueError for unknown and for missing parameters."""
    _check_path(path)
    given = headers or {}
    missing = {name for name in operation.required_query if query.get(name) is None}
    operation.refuse("has no query parameter", query.keys() - operation.query.keys())
    operation.refuse("needs the query parameter", missing)
    operation.refuse("has no header", given.keys() - set(operation.headers.values()))
    for name, value in given.items():
        if not re.fullmatch(r"[\x21-\x7e]+", value):  # it could inject another header
            raise ValueError(f"{value!r} cannot be the header {name}")
    return PreparedRequest(
        operation, operation.method, path, _query_text(query), _body_of(operation, body), operation.writes, given
    )


def prepare_unchecked_request(method: str, path: str, query: Mapping[str, Json], body: object) -> PreparedRequest:
    """Build an unchecked request below the service's URL. Any method but GET and HEAD counts as a write."""
    if not re.fullmatch("[A-Z]+", method):
        raise ValueError(f"{method!r} is not an HTTP method")
    _check_path(path)
    return PreparedRequest(
        None,
        method,
        path,
        _query_text(query),
        None if body is None else encode(body),
        writes=method not in ("GET", "HEAD"),
    )


def _check_path(path: str) -> None:
    """Reject a path that could reach elsewhere: with a host, a query or dot segments."""
    # Printable ASCII but / ? # and the backslash, between slashes.
    if not re.fullmatch(r"(?:/(?!\.{1,2}(?:/|\Z))[!\"$-.0->@-\[\]-~]+)+", path):
        raise ValueError(f"{path!r} is not a path below the service's URL")


def _body_of(operation: Operation, body: object) -> bytes | None:
    """Encode the body as JSON. Its property names are checked; their values are left to the service."""
    if operation.body is None:
        if body is not None:
            raise ValueError(f"{operation.id} takes no body")
        return None
    if not isinstance(body, dict):
        raise ValueError(f"{operation.id} takes a JSON object")
    operation.refuse_unknown_names(body)
    operation.refuse("needs the body property", operation.required_body_names - body.keys())
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


LATER_HINT = "Try again later; a lower --max-rate or --parallelism asks less at a time."
_LOST_HINT = "Run again: lmsconf reads the workspace before it repeats a call."


def parse_response(request: PreparedRequest, response: HttpResponse, transport: HttpTransport, attempts: int) -> Json:
    """Return the value of a 2xx response, None if it has no body. Raises the ApiError of any other status."""
    if 200 <= response.status < 300:
        try:
            return _value(request, response)
        except ValueError as error:
            excerpt = _excerpt(response, transport)
            outcome = (
                f" answered {response.status} with a body that cannot be used: {_safe(transport.redact(str(error)))}"
            )
            raise _error(
                InvalidResponse,
                request,
                transport,
                outcome,
                f"It begins: {excerpt}" if excerpt else "Check that the workspace's url is that of the API.",
                status=response.status,
                excerpt=excerpt,
            ) from error
    excerpt = _excerpt(response, transport)
    kind, way_out = _meaning(request, response, transport)
    outcome = f" answered {response.status}{_times(attempts)}{_asked(response)}{f': {excerpt}' if excerpt else ''}"
    raise _error(kind, request, transport, outcome, way_out, status=response.status, excerpt=excerpt)


def failure_to_api_error(
    request: PreparedRequest, failure: NoResponse, transport: HttpTransport, attempts: int
) -> ApiError:
    """Return the error for a request without a response: WriteOutcomeUnknown for a write that may have run."""
    outcome = f": {_safe(str(failure))}{_times(attempts)}"
    if failure.is_sent and request.writes:
        return _error(WriteOutcomeUnknown, request, transport, outcome, _LOST_HINT)
    return _error(
        Unreachable, request, transport, outcome, failure.hint or f"Check {transport.url_name} and the network."
    )


def _error(
    kind: type[ApiError],
    request: PreparedRequest,
    transport: HttpTransport,
    ending: str,
    hint: str | None,
    *,
    status: int | None = None,
    excerpt: str | None = None,
) -> ApiError:
    """Return an error. ending: of its message, which begins with the request. excerpt: of the response body."""
    return kind(
        f"{request.method} {transport.redact(request.path)} at {transport.host}{ending}",
        hint=hint,
        operation=request.operation.id if request.operation else None,
        status=status,
        body=excerpt,
    )


def _value(request: PreparedRequest, answer: HttpResponse) -> Json:
    """Return the decoded body of a 2xx response; None if it has none. Raises ValueError if it cannot be used."""
    operation = request.operation
    if operation is not None and operation.success is None:
        if answer.body.lstrip()[:1] == b"<":
            # An HTML page: a proxy may have sent it without passing the request on to the service.
            raise ValueError("it is a page, and the service answers this with nothing")
        return None
    if answer.unreadable is not None:
        raise ValueError(answer.unreadable)
    if operation is None and not answer.body.strip():
        return None
    refuse_oversized_body(answer.body, paged=operation is not None and "limit" in operation.query)
    try:
        value = decode(answer.body)
    except ValueError as error:
        raise ValueError(f"it is not JSON: {error}") from error
    expected = operation.success.get("type") if operation and operation.success else None
    if not isinstance(value, {"object": dict, "array": list}.get(str(expected), object)):
        raise ValueError(f"it is not a JSON {expected}")
    return value


def _meaning(
    request: PreparedRequest, answer: HttpResponse, transport: HttpTransport
) -> tuple[type[ApiError], str | None]:
    """Return the error class and the hint for a status that is not 2xx."""
    status, operation = answer.status, request.operation
    # A read that names no resource is not found only below a wrong URL.
    names_nothing = operation and not (request.writes or operation.path_schemas or operation.required_query)
    meanings: tuple[tuple[object, type[ApiError], str | None], ...] = (
        (status < 400, Rejected, _moved_hint(answer, transport)),
        (
            status == 401,
            Unauthorized,
            "Check the token (LMSCONF_TOKEN, or `token:` of the workspace): API keys are created in the workspace.",
        ),
        (
            status == 403 and not request.writes,
            Unauthorized,
            "Check that the token may do this, and that the External API is enabled for the workspace.",
        ),
        (is_not_carried_out(status, answer.headers.get("retry-after")), Unreachable, LATER_HINT),
        (
            status == 404 and names_nothing,
            Rejected,
            f"Check {transport.url_name}: {transport.url} may lack a part of the path, such as /api, or have one too "
            "many.",
        ),
        (status < 500, Rejected, _dialect_hint(request, status)),
        (request.writes, WriteOutcomeUnknown, _LOST_HINT),
        (True, Unreachable, LATER_HINT),
    )
    return next((kind, hint) for holds, kind, hint in meanings if holds)


def _moved_hint(answer: HttpResponse, transport: HttpTransport) -> str:
    """Name the host that a redirect points to. Redirects are not followed: the token is for one host only."""
    try:
        parts = urlsplit(answer.headers.get("location", ""))
        # A slash in a password ends the host too early: what is before it would be printed.
        other = "" if "@" in "".join(parts[2:]) else parts.netloc.rpartition("@")[2]
    except ValueError:
        other = ""
    to = f" to {_safe(transport.redact(other))}" if other else ""
    return f"It redirects{to}, and redirects are not followed. Set the workspace's url to the API's own address."


def _dialect_hint(request: PreparedRequest, status: int) -> str | None:
    """Return the dialect keys to check if the service may use other names or smaller pages than assumed."""
    # These are the statuses that wrong names, or a wrongly assumed behaviour, would get.
    if request.operation is None or status not in (400, 409, 422):
        return None
    if not request.writes:
        if "limit" not in request.operation.query:
            return None
        return f"If the service returns smaller pages only, set this under `dialect:` ({PAGE_SIZE})."
    keys = ", ".join(request.operation.dialect_keys)
    return f"If the service uses other names, set them under `dialect:` ({keys})." if keys else None


def _times(tried: int) -> str:
    return "" if tried <= 1 else f" (tried {tried} times)"


def _asked(answer: HttpResponse) -> str:
    """Return the wait that a Retry-After in seconds asks for, if it takes minutes: the run has waited longer."""
    seconds = seconds_of(answer.headers.get("retry-after"))
    if answer.status not in NOT_NOW or seconds is None or seconds <= 60:
        return ""
    return f" and asks to wait {duration_in_words(seconds)}"


def _excerpt(answer: HttpResponse, transport: HttpTransport) -> str:
    """Return the start of a body, redacted and safe to print on a terminal."""
    most = 64 * 1024
    text = answer.body[:most].decode("utf-8", "replace")
    if len(answer.body) > most:
        # Cut at a word boundary: redaction does not recognise half a secret.
        text = text[: max(text.rfind(mark) for mark in " \t\r\n\"'<>") + 1]
    return _safe(transport.redact(text).strip()[:300])


def _safe(text: str) -> str:
    """Return the text on one line, with control characters and unusual spaces escaped."""
    return "".join(
        char if char == " " or unicodedata.category(char)[0] not in "CZ" else f"\\u{ord(char):04x}" for char in text
    )
