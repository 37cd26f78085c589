"""Decide whether a write without a response was carried out, and retry it only if it was not.

The evidence is a fresh plan of the resource: a call was carried out when the plan no longer contains it. A creation may
still take effect late, so it is not retried before the settling time is over. Any other call is idempotent and is
retried as soon as it is found missing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Set
from enum import Enum
from functools import partial
from threading import Event
from typing import Final, TypeVar

from msgspec import Struct, field

from lmsconf.api.client import Client
from lmsconf.api.spec.dialect_candidates import ON_EXISTING
from lmsconf.apply.scheduler import BeforeCall, Learnt
from lmsconf.errors import (
    DuplicateResource,
    InvalidResponse,
    LmsconfError,
    Problem,
    Rejected,
    WriteOutcomeUnknown,
    WrongAssumption,
)
from lmsconf.kinds.grant_verification import SentCall
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET
from lmsconf.kinds.shared.rename_and_list_steps import fill_refs_in_body, fill_refs_in_path
from lmsconf.model.address import Address
from lmsconf.model.calls import Call, is_creation
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Action, Plan
from lmsconf.workspace.reader import WaitClock

Seen = TypeVar("Seen")
_LAG: Final = 1.0
"""Seconds to wait for a call to show while none of its kind has."""


class WriteStatus(Enum):
    """What is known about a call whose response was lost."""

    DONE = "done"
    MISSING = "missing"
    UNKNOWN = "unknown"


class IssuedRequest(Struct, frozen=True, kw_only=True):
    """A call as `client` sends it, with ids in place of references. ids: those that are known, also later."""

    client: Client
    call: Call
    path: str
    body: object
    ids: Learnt = {}

    @property
    def values(self) -> SentCall:
        """The values of the path's parameters, and the body."""
        route = self.client.spec.match_route(self.call.method, self.path)
        return SentCall(route[1] if route else {}, self.body)

    def send_again(self, body: object) -> None:
        """Send the call once more, with another body. Raises ApiError."""
        self.client.send(self.call.method, self.path, query=self.call.query, body=body, operation=self.call.operation)


def issued(client: Client, call: Call, ids: Learnt) -> IssuedRequest:
    """Return a call with the ids that it needs. Raises KeyError if one is not known."""
    path, body = fill_refs_in_path(call.path, ids), fill_refs_in_body(call.body, ids)
    return IssuedRequest(client=client, call=call, path=path, body=body, ids=ids)


class AmbiguousWriteResolver(Struct, frozen=True, kw_only=True):
    """Resolve writes whose response was lost.

    look: re-plans one resource towards the state that the run wants; raises LmsconfError where it cannot be planned.
    settle_after_loss: seconds that a write may take to become visible after its response was lost.
    settle_after_response: seconds that it may take after a response was received.
    before_retry: called before a call is retried; raises LmsconfError when it must not be.
    stop_waiting: once set, all waiting ends and unresolved calls stay unresolved.
    lags: kind → seconds after which calls for its resources have shown.
    """

    look: Callable[[Address], Plan]
    settle_after_loss: float
    settle_after_response: float
    timing: WaitClock
    before_retry: BeforeCall
    stop_waiting: Event = field(default_factory=Event)
    lags: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def resolve(self, sent: IssuedRequest, send: Callable[[], Json]) -> Json:
        """Return the response of a call that `send` sends; None if it was lost, and the call is carried out.

        Sends it again where it is not. Raises DuplicateResource if it was carried out twice,
        WriteOutcomeUnknown if that cannot be determined, and the error of the call if it fails.
        """
        conclusive = {WriteStatus.DONE, *(() if is_creation(sent.call.operation) else (WriteStatus.MISSING,))}
        for attempts_left in (2, 1, 0):
            try:
                return send()
            except (WriteOutcomeUnknown, InvalidResponse) as failure:
                lost = failure
            except Rejected:
                # It may have been done before the retry, which is then rejected, and be readable only later.
                if (
                    attempts_left < 2
                    and self._poll_status(sent, {WriteStatus.DONE}, self.settle_after_loss) is WriteStatus.DONE
                ):
                    return None
                raise
            status = self._poll_status(sent, conclusive, self.settle_after_loss)
            if status is WriteStatus.DONE:
                return None
            if status is WriteStatus.UNKNOWN or not attempts_left or self.stop_waiting.is_set():
                break
            self.before_retry(sent.call)
        raise WriteOutcomeUnknown(
            lost.message,
            hint="It is not known whether it was done. Apply again: what was done is detected, and only the rest is "
            "done.",
            operation=sent.call.operation,
        ) from lost

    def is_done(self, sent: IssuedRequest) -> bool:
        """Return whether a fresh plan of the resource shows that a call that was refused has nothing left to do."""
        # A plan cannot be made while this run deletes what it reads.
        return (
            self._poll_status(sent, {WriteStatus.DONE, WriteStatus.MISSING}, self.settle_after_response)
            is WriteStatus.DONE
        )

    def shown(self, sent: IssuedRequest) -> Plan | None:
        """Return a fresh plan of the resource, the first without the call, or the last; None if there is none.

        Raises WrongAssumption if the call has made a second one beside it.
        """
        fresh, begun = None, self.timing.now()
        for _ in self.poll_times(self.settle_after_response):
            try:
                fresh = self.look(sent.call.address)
            except LmsconfError as error:
                twice = _live_twice(error, sent.call.address)
                if twice and sent.call.address.kind == CONTENT_TARGET:
                    raise WrongAssumption(
                        f"the service made another one: {twice.message}", values={ON_EXISTING: "recreate"}
                    ) from error
                continue
            if not is_left(fresh, sent):
                self.lags[sent.call.address.kind].append(self.timing.now() - begun)
                break
        return fresh

    def usual_lag(self, kind: str, tried: int) -> float:
        """Return twice the longest lag of a kind's calls, in seconds: 1 if unknown, 0 after 30 tries."""
        unknown = min(_LAG, self.settle_after_response) if tried < 30 else 0.0
        return 2 * max(self.lags[kind], default=unknown / 2)

    def poll(
        self,
        read: Callable[[], Seen],
        is_enough: Callable[[Seen], bool],
        seconds: float | None = None,
    ) -> Seen:
        """Read until what is read is enough, or the time is over; return what was read last.

        seconds: the time; default: that in which a write with a response may not be visible yet.
        """
        for _ in self.poll_times(self.settle_after_response if seconds is None else seconds):
            seen = read()
            if is_enough(seen):
                break
        return seen

    def _poll_status(self, sent: IssuedRequest, conclusive: Set[WriteStatus], seconds: float) -> WriteStatus:
        """Poll the status of a call until it can be acted upon, or until the time is over."""
        return self.poll(partial(self._status_now, sent), conclusive.__contains__, seconds)

    def poll_times(self, seconds: float) -> Iterator[None]:
        """Yield at once, then after 0.25 to 5 seconds, each time longer, until the time is over."""
        until, pause = self.timing.now() + seconds, 0.25
        yield
        while (left := until - self.timing.now()) > 0 and not self.stop_waiting.is_set():
            self.timing.tell(left)
            self.timing.sleep(min(pause, left), self.stop_waiting)
            pause = min(2 * pause, 5.0)
            yield

    def _status_now(self, sent: IssuedRequest) -> WriteStatus:
        """Return the status of the call according to a fresh plan. Raises DuplicateResource."""
        address = sent.call.address
        try:
            return WriteStatus.MISSING if is_left(self.look(address), sent) else WriteStatus.DONE
        except LmsconfError as error:
            if is_creation(sent.call.operation) and (twice := _live_twice(error, address)):
                raise DuplicateResource(
                    f"{twice.message}; the call that creates it may have been carried out twice",
                    hint="Find out which of them is in use, delete the other one in the product, and plan again.",
                    operation=sent.call.operation,
                ) from error
            return WriteStatus.UNKNOWN


def _live_twice(error: LmsconfError, address: Address) -> Problem | None:
    """Return the problem that a resource is live twice, if a plan failed of it."""
    twice = (one for one in error.problems if one.code == "identity/live-twice")
    return next((one for one in twice if one.address == str(address)), None)


def is_left(fresh: Plan, sent: IssuedRequest) -> bool:
    """Whether a fresh plan of the resource still contains a call."""
    address = sent.call.address
    if any(call.address == address and _is_part_of(call, sent) for call in fresh.calls):
        return True
    # However the service represents its other values: a resource that is still to be created was not created.
    return is_creation(sent.call.operation) and any(
        change.address == address and change.action is Action.CREATE for change in fresh.changes
    )


def _is_part_of(wanted: Call, sent: IssuedRequest) -> bool:
    """Whether a fresh plan contains this call, or a part of it: of many members to add, some may have been added."""
    if wanted.operation != sent.call.operation:
        return False
    try:
        now = issued(sent.client, wanted, sent.ids)
    except KeyError:
        # It references a resource that this run has not created yet, so it cannot be the call that was sent.
        return False
    return now.path == sent.path and (now.body == sent.body or _is_subset(now.body, sent.body))


def _is_subset(body: object, of: object) -> bool:
    """Whether a body equals another except for shorter lists of strings, such as the user ids to add to a group."""
    if not isinstance(body, dict) or not isinstance(of, dict) or body.keys() != of.keys():
        return False
    return all(
        value == of[key] or (_is_string_list(value) and _is_string_list(of[key]) and set(value) <= set(of[key]))
        for key, value in body.items()
    )


def _is_string_list(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) for item in value)
