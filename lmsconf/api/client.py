"""Client: validate a call against the API description, send it, retry where safe, and decode the response.

Raises ValueError for misuse and ApiError for all that the service or the network can cause, never httpx's errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, TypeAlias

from msgspec import Struct

from lmsconf.api.request_encoding import (
    LATER_HINT,
    PreparedRequest,
    failure_to_api_error,
    parse_response,
    prepare_request,
    prepare_unchecked_request,
)
from lmsconf.api.response_limits import ANSWER
from lmsconf.api.retry_and_rate_limit import NOT_NOW, TRANSIENT, Outage, RateLimiter, RetryPolicy, is_not_carried_out
from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.value_encoding import with_offsets
from lmsconf.api.transport import REQUEST_TIMEOUT, URL_NAME, HttpResponse, HttpTransport, NoResponse
from lmsconf.model.canonical_json import Json

if TYPE_CHECKING:
    import httpx


Outcome: TypeAlias = HttpResponse | NoResponse


class Exchange(Struct, frozen=True, kw_only=True):
    """One attempt of one call, without secrets: no headers but Date, no bodies.

    attempt: from 1. seconds: duration. status: None without a response. failure: why there is none.
    date: the Date header, the service's clock. retry_in: the seconds after which it is sent again; None: it is not.
    label: what the caller calls the request, such as the id of a plan's call.
    """

    operation: str | None
    method: str
    path: str
    query: str
    attempt: int
    seconds: float
    status: int | None
    failure: str | None = None
    date: str | None = None
    retry_in: float | None = None
    label: str | None = None


class Client(AbstractContextManager["Client"]):
    """Sends requests to one service. Not thread-safe: `WorkerPool` gives each job a copy over the same connections.

    The token is redacted from errors and from what `on_call` gets. Raises LmsconfError for an unsafe URL or token.

    spec             the API under the project's dialect; default: no overrides
    transport        replaces the network; the client does not close it
    rate_limiter     rate limiter shared by the clients of a run; default: one per client
    outage           what is known of an outage, shared likewise; default: one per call
    on_call          called after each attempt
    only_reads       raise ValueError for a call that writes, before anything is sent
    seconds          time limit of one attempt
    max_bytes        size limit of one response body
    url_name         what the hints of errors call the URL
    """

    def __init__(
        self,
        base_url: str,
        token: str,
        *,
        spec: ApiSpec | None = None,
        transport: httpx.BaseTransport | None = None,
        retry: RetryPolicy | None = None,
        rate_limiter: RateLimiter | None = None,
        outage: Outage | None = None,
        on_call: Callable[[Exchange], None] | None = None,
        only_reads: bool = False,
        seconds: float = REQUEST_TIMEOUT,
        max_bytes: int = ANSWER,
        url_name: str = URL_NAME,
    ) -> None:
        self._only_reads = only_reads
        self._transport = HttpTransport(
            base_url, token, transport=transport, seconds=seconds, max_bytes=max_bytes, url_name=url_name
        )
        self.spec = spec or ApiSpec.default()
        self._retry = retry or RetryPolicy()
        self._rate_limiter = rate_limiter or RateLimiter(
            clock=self._retry.clock, sleep=self._retry.sleep, wall_clock=self._retry.wall_clock
        )
        self._outage = outage
        self._on_call = on_call

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._transport.close()

    @contextmanager
    def speaking(self, values: Mapping[str, str | int]) -> Iterator[None]:
        """Speak with other values of some dialect keys inside. Raises ProblemsFound for an invalid dialect."""
        own = self.spec
        self.spec = own.with_values(values)
        try:
            yield
        finally:
            self.spec = own

    def call(
        self,
        operation: str,
        *,
        path: Mapping[str, str] | None = None,
        query: Mapping[str, Json] | None = None,
        body: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Json:
        """Return the response of one operation, None if it has no body. Raises ValueError for wrong arguments."""
        known = self.spec[operation]
        return self._perform(prepare_request(known, known.fill_path(path or {}), query or {}, body, headers))

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Json] | None = None,
        body: object = None,
        operation: str | None = None,
        on_resume: Callable[[], None] | None = None,
        label: str | None = None,
    ) -> Json:
        """Return the response to a request whose path is already filled in.

        With `operation`, method and path must be that operation's; without, any path below the service's URL is
        allowed, and any method but GET and HEAD counts as a write. Raises ValueError otherwise.

        on_resume: called before the request is sent after waits of more than a minute, such as the service may ask for;
        stops it by raising LmsconfError. label: passed on to `on_call`.
        """
        if operation is None:
            return self._perform(prepare_unchecked_request(method, path, query or {}, body), label=label)
        route = self.spec.match_route(method, path)
        if route is None or route[0].id != operation:
            raise ValueError(f"{method} {path} is not {operation}")
        return self._perform(prepare_request(route[0], path, query or {}, body), on_resume, label)

    def _perform(
        self, request: PreparedRequest, on_resume: Callable[[], None] | None = None, label: str | None = None
    ) -> Json:
        """Send the request, and retry it while that is safe and the retry policy and the outage allow it."""
        if request.writes and self._only_reads:
            raise ValueError(f"{request.method} {request.path} is a write, and this client is read-only")
        policy, outage = self._retry, self._outage or Outage(self._retry)
        tried, waited, responses = 0, 0.0, None
        outcome: Outcome | None = None
        checked = policy.clock()
        while self._rate_limiter.wait_turn(outage.seconds_left):
            if on_resume is not None and policy.is_long(policy.clock() - checked):
                on_resume()
                checked = policy.clock()
            tried += 1
            start = policy.clock()
            outcome = self._attempt(request, outage)
            seconds, pause = policy.clock() - start, None
            limited = self._record(outcome, start, outage)
            if self._may_repeat(request, outcome):
                responses = outage.responses if responses is None else responses
                pause = policy.wait_before_retry(
                    tried, waited, outcome.headers.get("retry-after"), rate_limited=limited, status=outcome.status
                )
                if pause is None or pause > outage.seconds_left():
                    outage.record_give_up(responses)
                    pause = None
            if self._on_call and not outage.is_stopped:
                self._on_call(_exchange(request, outcome, tried, seconds, pause, label))
            if pause is None:
                break
            self._rate_limiter.pause(pause, outage.seconds_left)
            waited += 0.0 if policy.is_long(pause) else pause
        if isinstance(outcome, HttpResponse):
            return with_offsets(self.spec.behaviour, parse_response(request, outcome, self._transport, tried))
        failure = outcome or _not_sent(outage)
        raise failure_to_api_error(request, failure, self._transport, tried) from failure.__cause__

    def _attempt(self, request: PreparedRequest, outage: Outage) -> Outcome:
        """Send the request once and return the outcome."""
        try:
            return self._transport.send(
                request.method,
                f"{request.path}?{request.query}" if request.query else request.path,
                request.body,
                request.headers,
                max_seconds=outage.seconds_left(),
            )
        except NoResponse as failure:
            return failure

    def _record(self, outcome: Outcome, sent: float, outage: Outage) -> bool:
        """Report an outcome to the rate limiter and the outage; return whether it was refused as too many."""
        status, retry_after = outcome.status, outcome.headers.get("retry-after")
        if status is not None and status not in TRANSIENT:
            self._rate_limiter.record_response(sent)
            outage.record_response()
            return False
        is_limited = self._retry.is_rate_limited(
            status, has_ever_responded=outage.responses > 0, retry_after=retry_after
        )
        later = self._retry.parse_retry_after(retry_after) if status in NOT_NOW else None
        outage.record_failure(sent, rate_limited=is_limited, retry_after=later)
        if status in NOT_NOW:
            self._rate_limiter.record_rate_limited(sent, later)
        return is_limited

    def _may_repeat(self, request: PreparedRequest, outcome: Outcome) -> bool:
        """Whether a retry may succeed and cannot repeat a write, as where the response says it was not carried out."""
        if isinstance(outcome, NoResponse):
            return not (request.writes if outcome.is_sent else outcome.final)
        if request.writes:
            return is_not_carried_out(outcome.status, outcome.headers.get("retry-after"))
        return outcome.status in TRANSIENT


def _not_sent(outage: Outage) -> NoResponse:
    did = "rejected earlier requests as too many" if outage.is_rate_limited else "did not answer earlier requests"
    return NoResponse(
        f"not sent: the service {did}", is_sent=False, hint=LATER_HINT if outage.is_rate_limited else None
    )


def _exchange(
    request: PreparedRequest,
    outcome: Outcome,
    tried: int,
    seconds: float,
    pause: float | None,
    label: str | None,
) -> Exchange:
    return Exchange(
        operation=request.operation.id if request.operation else None,
        method=request.method,
        path=request.path,
        query=request.query,
        attempt=tried,
        seconds=seconds,
        status=outcome.status,
        failure=str(outcome) if isinstance(outcome, NoResponse) else None,
        date=outcome.headers.get("date"),
        retry_in=pause,
        label=label,
    )
