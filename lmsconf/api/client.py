"""Client: validate a call against the API description, send it, retry where safe, and decode the response.

Raises ValueError for misuse and ApiError for all that the service or the network can cause, never httpx's errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec import Struct

from lmsconf.api.circuit_breaker import CircuitBreaker
from lmsconf.api.error_mapping import LATER_HINT, failure_to_api_error, parse_response
from lmsconf.api.limits import ANSWER
from lmsconf.api.rate_limiter import RateLimiter
from lmsconf.api.request import PreparedRequest, prepare_request, prepare_unchecked_request
from lmsconf.api.retry import NOT_NOW, RetryPolicy
from lmsconf.api.spec import ApiSpec
from lmsconf.api.transport.http import URL_NAME, HttpResponse, HttpTransport, RequestNotSent, ResponseLost
from lmsconf.model.canonical_json import Json

if TYPE_CHECKING:
    import httpx

    from lmsconf.api.transport.in_process_wire import InProcessService


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


_GIVEN_UP = "not sent: the service did not answer earlier requests"
_TOO_MUCH = "not sent: the service rejected earlier requests as too many"


class Client:
    """One connection to the service. Not thread-safe: `WorkerPool` gives each thread its own client.

    The token is redacted from errors and from what `on_call` gets. Raises LmsconfError for an unsafe URL or token.

    spec             the API under the project's dialect; default: no overrides
    transport        replaces the network: one of httpx, or a service in this process; the client does not close it
    rate_limiter     rate limiter shared by the clients of a run; default: one per client
    circuit_breaker  circuit breaker shared likewise; default: one per call
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
        transport: httpx.BaseTransport | InProcessService | None = None,
        retry: RetryPolicy | None = None,
        rate_limiter: RateLimiter | None = None,
        circuit_breaker: CircuitBreaker | None = None,
        on_call: Callable[[Exchange], None] | None = None,
        only_reads: bool = False,
        seconds: float = 60.0,
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
        self._circuit_breaker = circuit_breaker
        self._on_call = on_call

    def __repr__(self) -> str:
        return f"Client({self._transport.host})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
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
        """Send the request, and retry it while that is safe and the retry policy and the circuit breaker allow it."""
        if request.writes and self._only_reads:
            raise ValueError(f"{request.method} {request.path} is a write, and this client is read-only")
        breaker = self._circuit_breaker or CircuitBreaker(self._retry)
        tried, waited, trouble = 0, 0.0, None
        outcome: HttpResponse | RequestNotSent | ResponseLost | None = None
        checked = self._retry.clock()
        while self._may_send(breaker):
            if on_resume is not None and self._retry.is_long(self._retry.clock() - checked):
                on_resume()
                checked = self._retry.clock()
            tried += 1
            start = self._retry.clock()
            outcome = self._attempt(request, start, breaker)
            seconds, pause = self._retry.clock() - start, None
            if self._may_repeat(request, outcome):
                trouble = breaker.outage_number if trouble is None else trouble
                pause = self._pause(outcome, tried, waited, breaker)
                if pause is None or pause > breaker.seconds_until_open():
                    breaker.record_give_up(trouble)
                    pause = None
            if self._on_call:
                self._on_call(_exchange(request, outcome, tried, seconds, pause, label))
            if pause is None:
                break
            self._rate_limiter.pause(pause)
            waited += 0.0 if self._retry.is_long(pause) else pause
        if outcome is None:
            outcome = (
                RequestNotSent(_TOO_MUCH, hint=LATER_HINT) if breaker.is_rate_limited else RequestNotSent(_GIVEN_UP)
            )
        if isinstance(outcome, HttpResponse):
            return parse_response(request, outcome, self._transport, tried)
        raise failure_to_api_error(request, outcome, self._transport, tried) from outcome.__cause__

    def _pause(
        self, outcome: HttpResponse | RequestNotSent | ResponseLost, tried: int, waited: float, breaker: CircuitBreaker
    ) -> float | None:
        """Return the seconds until the next attempt; None: give up."""
        if not isinstance(outcome, HttpResponse):
            return self._retry.wait_before_retry(tried, waited)
        return self._retry.wait_before_retry(
            tried,
            waited,
            outcome.retry_after,
            rate_limited=self._is_too_much(outcome, breaker),
            not_now=outcome.status in NOT_NOW,
        )

    def _is_too_much(self, answer: HttpResponse, breaker: CircuitBreaker) -> bool:
        return self._retry.is_rate_limited(
            answer.status, has_ever_responded=breaker.has_ever_responded, retry_after=answer.retry_after
        )

    def _may_send(self, breaker: CircuitBreaker) -> bool:
        """Wait for the rate limiter; return False if the circuit breaker is open or would open before then."""
        return self._rate_limiter.wait_turn(breaker.seconds_until_open) and breaker.seconds_until_open() > 0

    def _attempt(
        self, request: PreparedRequest, start: float, breaker: CircuitBreaker
    ) -> HttpResponse | RequestNotSent | ResponseLost:
        """Send the request once and return the outcome. start: now, on the retry policy's clock."""
        outcome: HttpResponse | RequestNotSent | ResponseLost
        try:
            outcome = self._transport.send(
                request.method,
                request.target,
                request.body,
                request.headers,
                writes=request.writes,
                max_seconds=breaker.seconds_until_open(),
            )
        except (RequestNotSent, ResponseLost) as failure:
            outcome = failure
        self._heed(outcome, start, breaker)
        return outcome

    def _heed(
        self, outcome: HttpResponse | RequestNotSent | ResponseLost, sent: float, breaker: CircuitBreaker
    ) -> None:
        """Report an outcome to the rate limiter and the circuit breaker."""
        if isinstance(outcome, HttpResponse) and self._retry.is_not_transient(outcome.status):
            self._rate_limiter.record_response()
            breaker.record_response()
            return
        if not isinstance(outcome, HttpResponse):
            breaker.record_failure(sent)
            return
        later = self._retry.parse_retry_after(outcome.retry_after) if outcome.status in NOT_NOW else None
        breaker.record_failure(sent, rate_limited=self._is_too_much(outcome, breaker), retry_after=later)
        if outcome.status in NOT_NOW:
            self._rate_limiter.record_rate_limited(sent, later)

    def _may_repeat(self, request: PreparedRequest, outcome: HttpResponse | RequestNotSent | ResponseLost) -> bool:
        """Whether a retry cannot repeat a write and may succeed."""
        if isinstance(outcome, HttpResponse):
            return self._retry.is_retry_safe(outcome.status, writes=request.writes, retry_after=outcome.retry_after)
        if isinstance(outcome, RequestNotSent):
            return not outcome.final
        return not request.writes


def _exchange(
    request: PreparedRequest,
    outcome: HttpResponse | RequestNotSent | ResponseLost,
    tried: int,
    seconds: float,
    pause: float | None,
    label: str | None,
) -> Exchange:
    answered = outcome if isinstance(outcome, HttpResponse) else None
    return Exchange(
        operation=request.operation.id if request.operation else None,
        method=request.method,
        path=request.path,
        query=request.query,
        attempt=tried,
        seconds=seconds,
        status=answered.status if answered else None,
        failure=None if answered else str(outcome),
        date=answered.date if answered else None,
        retry_in=pause,
        label=label,
    )
