"""The simulation can fail: a sender that settles lost answers carelessly is found out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lmsconf.api.transport import HttpResponse, HttpTransport
from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest, WriteStatus
from lmsconf.apply.scheduler import Learnt
from lmsconf.errors import ApiError
from lmsconf.model.canonical_json import Json

from .reference_apply import scene
from .run_schedule import Schedule, ScheduleCounts

pytestmark = pytest.mark.slow


def _broken(reference: str, kind: str, calls: list[int]) -> str:
    """How the schedules break the law, once the scene has been set by a sender that is careful."""
    return "\n".join(ScheduleCounts().play(Schedule(reference, kind, call) for call in calls).broken)


def _creations(reference: str) -> list[int]:
    """The numbers of a few calls that create a group."""
    calls = enumerate(scene(reference).plan.calls, 1)
    return [number for number, call in calls if call.operation == "manual-groups.create"][:3]


def test_a_blind_retry_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is sent again because its answer was lost makes twins."""

    def blindly(
        self: AmbiguousWriteResolver, sent: IssuedRequest, ids: Learnt, lost: ApiError, send: Callable[[], Json]
    ) -> Json:
        return send()

    calls = _creations("create")
    monkeypatch.setattr(AmbiguousWriteResolver, "resolve", blindly)
    assert _broken("create", "lost-after", calls).count("something was made twice") == len(calls)


def test_impatience_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is sent again after one look makes twins with one that only was late."""

    def once(self: AmbiguousWriteResolver, seconds: float) -> Iterator[None]:
        yield

    calls = _creations("create")
    monkeypatch.setattr(AmbiguousWriteResolver, "_poll_times", once)
    assert "something was made twice" in _broken("create", "late-20", calls)


def test_optimism_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that is taken for done because its answer was lost is one that never was."""

    def surely(self: AmbiguousWriteResolver, sent: IssuedRequest, ids: Learnt) -> WriteStatus:
        return WriteStatus.DONE

    calls = list(range(1, scene("delete").calls, 7))
    monkeypatch.setattr(AmbiguousWriteResolver, "_status_now", surely)
    assert "a call was reported done that never was" in _broken("delete", "lost-before", calls)


def test_a_service_that_is_quoted_as_it_is_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error that repeats what the service says gives token and link away in the report."""
    calls = _creations("create")
    monkeypatch.setattr(HttpTransport, "redact", lambda self, text: text)
    assert _broken("create", "403", calls).count("it gave away ('token+0815', 'canary-link-4711')") == len(calls)


def test_a_careless_log_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line at debug level with the headers of a request gives the token away."""
    ask, calls = HttpTransport.send, _creations("create")

    def chatty(self: HttpTransport, *args: Any, **more: Any) -> HttpResponse:
        logging.getLogger("chatty").debug("%s", dict(self._headers))
        return ask(self, *args, **more)

    monkeypatch.setattr(HttpTransport, "send", chatty)
    assert _broken("create", "slow", calls).count("it gave away ('token+0815',)") == len(calls)
