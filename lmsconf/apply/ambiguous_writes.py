"""What became of a call whose answer never came. It is looked up, and repeated only once it is known not to be done.

One engine tells: a call is done when a fresh plan of its resource does not want it any more. What makes something new
may still arrive, so it is not sent again before the settling time is over. Anything else is sent again as soon as it
is seen to be missing, because doing it twice comes to the same.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from threading import Event
from typing import Final

from lmsconf.apply.scheduler import Begin, Learnt
from lmsconf.errors import (
    AnswerLost,
    ApiError,
    BadAnswer,
    DuplicateResource,
    LmsconfError,
    Problem,
    ProblemsFound,
    Rejected,
)
from lmsconf.kinds.shared.terms import filled, filled_body
from lmsconf.model.address import Address
from lmsconf.model.values import Action, Call, Json, Plan

Look = Callable[[Address], Plan]
"""Plans one resource afresh, towards what the run wants of it. Raises LmsconfError where that cannot be told."""
LIVE_TWICE: Final = "identity/live-twice"
_FIRST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 5.0
_SENT_AT_MOST: Final = 3


class WriteStatus(Enum):
    """What is known of a call whose answer was lost."""

    DONE = "done"
    MISSING = "missing"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedRequest:
    """A call as it went out, with ids in the place of names."""

    call: Call
    path: str
    body: object

    @property
    def makes(self) -> bool:
        """Whether doing it twice would make two of something."""
        return self.call.creates


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Seconds as they pass, how to wait for them, and who hears how many more it may be before each wait.

    sleep: waits that many seconds, or until the event is set.
    """

    now: Callable[[], float] = time.monotonic
    sleep: Callable[[float, Event], object] = lambda seconds, hurry: hurry.wait(seconds)
    tell: Callable[[float], None] = lambda left: None


@dataclass(frozen=True, slots=True, kw_only=True)
class AmbiguousWriteResolver:
    """How lost answers are settled.

    look     plans one resource afresh
    seconds  how long something may take to show after its answer was lost
    patience how long it may take after it was answered
    again    hears of a call before it is sent once more. Raises LmsconfError when it must not be
    hurry    once it is set nobody waits any more, and what is doubtful stays so
    """

    look: Look
    seconds: float
    patience: float
    timing: Clock
    again: Begin
    hurry: Event = field(default_factory=Event)

    def settle(self, sent: IssuedRequest, ids: Learnt, lost: ApiError, send: Callable[[], Json]) -> Json:
        """What the call answered in the end; None where it is found done. `send` sends it once more.

        Raises DuplicateResource when it was done twice, AnswerLost when that cannot be told, and the error of the call
        when it is sent again.
        """
        for tried in range(1, _SENT_AT_MOST + 1):
            fate = self._awaited(sent, ids)
            if fate is WriteStatus.DONE:
                return None
            if fate is WriteStatus.UNKNOWN or tried == _SENT_AT_MOST or self.hurry.is_set():
                break
            self.again(sent.call)
            try:
                return send()
            except (AnswerLost, BadAnswer) as failure:
                lost = failure
            except Rejected:
                # It may have been done between the look and the repeat, which is refused then.
                if self._fate(sent, ids) is WriteStatus.DONE:
                    return None
                raise
        raise AnswerLost(lost.message, hint=_UNSETTLED, operation=sent.call.operation) from lost

    def shows(self) -> Iterator[None]:
        """Looks at what was answered as done, until the time is over in which it may not show yet."""
        return self._looks(self.patience)

    def awaited(self, find: Callable[[], Learnt]) -> Learnt:
        """What `find` finds, as soon as there is anything; nothing when the time is over."""
        for _ in self._looks(self.seconds):
            if found := find():
                return found
        return {}

    def _awaited(self, sent: IssuedRequest, ids: Learnt) -> WriteStatus:
        """What is known of a call once it can be acted upon, or when the time is over."""
        fate = WriteStatus.UNKNOWN
        for _ in self._looks(self.seconds):
            fate = self._fate(sent, ids)
            if fate is WriteStatus.DONE or (fate is WriteStatus.MISSING and not sent.makes):
                break
        return fate

    def _looks(self, seconds: float) -> Iterator[None]:
        """One at once, and then others at longer and longer intervals until the time is over."""
        until, pause = self.timing.now() + seconds, _FIRST_PAUSE
        yield
        while (left := until - self.timing.now()) > 0 and not self.hurry.is_set():
            self.timing.tell(left)
            self.timing.sleep(min(pause, left), self.hurry)
            pause = min(2 * pause, _LONGEST_PAUSE)
            yield

    def _fate(self, sent: IssuedRequest, ids: Learnt) -> WriteStatus:
        """What a fresh plan says of the call. Raises DuplicateResource."""
        address = sent.call.address
        try:
            fresh = self.look(address)
        except ProblemsFound as found:
            twice = [one for one in found.problems if one.code == LIVE_TWICE and one.address == str(address)]
            if twice and sent.makes:
                raise _twins(sent, twice[0]) from found
            return WriteStatus.UNKNOWN
        except LmsconfError:
            return WriteStatus.UNKNOWN
        still = any(one.address == address and _is_part_of(one, sent, ids) for one in fresh.calls)
        if sent.makes:
            # Whatever words the service has for the rest of it: what is still to be made was not.
            still = still or any(one.address == address and one.action is Action.CREATE for one in fresh.changes)
        return WriteStatus.MISSING if still else WriteStatus.DONE


_UNSETTLED: Final = (
    "Nobody can tell whether it was done. Apply once more: what was done is found, and the rest is done then."
)


def _is_part_of(wanted: Call, sent: IssuedRequest, ids: Learnt) -> bool:
    """Whether a fresh plan wants this call, or a part of it: of many people to add, some may have been added."""
    if wanted.operation != sent.call.operation:
        return False
    try:
        path, body = filled(wanted.path, ids), filled_body(wanted.body, ids)
    except KeyError:
        # It waits for what this run has not made yet, so it cannot be what was sent.
        return False
    return path == sent.path and (body == sent.body or _is_subset(body, sent.body))


def _is_subset(body: object, of: object) -> bool:
    """Whether one body says a part of what the other does: texts in a list, like the people to add to a group."""
    if not isinstance(body, dict) or not isinstance(of, dict) or body.keys() != of.keys():
        return False
    return all(
        part == of[key] or (_are_texts(part) and _are_texts(of[key]) and set(part) <= set(of[key]))
        for key, part in body.items()
    )


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, str) for one in value)


def _twins(sent: IssuedRequest, problem: Problem) -> DuplicateResource:
    return DuplicateResource(
        f"{problem.message}; the call that should have made it may have been carried out twice",
        hint="Look which of them is in use, delete the other in the product, and plan again.",
        operation=sent.call.operation,
    )
