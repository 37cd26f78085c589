"""Map an HTTP response or a transport failure to a JSON value or an ApiError."""

from __future__ import annotations

import unicodedata
from urllib.parse import urlsplit

from lmsconf.api.limits import OversizedResponse, refuse_oversized_body
from lmsconf.api.request import PreparedRequest
from lmsconf.api.retry import NOT_NOW, TOO_MANY, UNAVAILABLE, seconds_of
from lmsconf.api.strict_json import decode
from lmsconf.api.transport import HttpResponse, HttpTransport, RequestNotSent, ResponseLost
from lmsconf.errors import ApiError, InvalidResponse, Rejected, Unauthorized, Unreachable, WriteOutcomeUnknown
from lmsconf.model.canonical_json import Json
from lmsconf.model.time_formats import duration_in_words

_SHOWN = 300
_LOOKED_AT = 64 * 1024
_BETWEEN_WORDS = " \t\r\n\"'<>"
_MISUNDERSTOOD = (400, 409, 422)
"""The statuses that a body with wrong names, or a wrongly assumed behaviour of the dialect, would get."""
_PAGES = "paging.limit"
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
    if status < 400:
        return Rejected, _moved_hint(answer, transport)
    if status == 401 or (status == 403 and not request.writes):
        return Unauthorized, _ACCESS_HINT if status == 401 else _PERMISSION_HINT
    if status == TOO_MANY or (status == UNAVAILABLE and answer.retry_after is not None):
        return Unreachable, LATER_HINT
    if status == 404 and _is_at_the_root(request):
        return (
            Rejected,
            f"Check {transport.url_name}: {transport.url} may lack a part of the path, such as /api, "
            "or have one too many.",
        )
    if status < 500:
        return Rejected, _dialect_hint(request, status)
    return (WriteOutcomeUnknown, _LOST_HINT) if request.writes else (Unreachable, LATER_HINT)


def _is_at_the_root(request: PreparedRequest) -> bool:
    """Whether the request is a read that names no resource, so that a 404 means a wrong base URL."""
    operation = request.operation
    return operation is not None and not (request.writes or operation.path_parameter_names or operation.required_query)


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
        return f"If the service returns smaller pages only, set this under `dialect:` ({_PAGES})." if pages else None
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
