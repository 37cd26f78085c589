"""Settling on its own: how often it looks, how long it waits, and what it makes of what it sees."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

import pytest
from msgspec.structs import replace
from views.document_samples import EMPTY

from lmsconf.api.client import Client
from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest
from lmsconf.errors import (
    ApiError,
    DuplicateResource,
    InvalidResponse,
    LmsconfError,
    Problem,
    ProblemsFound,
    Rejected,
    WriteOutcomeUnknown,
)
from lmsconf.model.address import Address, Ref
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Action, Change, Plan
from lmsconf.workspace.reader import WaitClock

A = Address.of("group", "A")
CREATE = Call(
    id="c1", address=A, operation="manual-groups.create", method="POST", path="/groups", query={}, body={"name": "A"}
)
ADD = replace(
    CREATE,
    id="c2",
    operation="manual-groups.add-members",
    path="/groups/g-1/members",
    body={"userIds": ["1", "2", "3"]},
)
LOST = WriteOutcomeUnknown("cut", hint="?", operation="manual-groups.create")
Seen = Plan | LmsconfError
NOWHERE = Client("http://127.0.0.1", "t")


def wanting(*calls: Call) -> Plan:
    return replace(EMPTY, calls=calls)


def twice(address: Address = A, code: str = "identity/live-twice") -> ProblemsFound:
    return ProblemsFound([Problem(code=code, message="two of them", address=str(address))])


@dataclass
class LookupScript:
    """What each look sees, the last one again and again; what each repeat comes to; and time that is made up."""

    seen: list[Seen]
    repeats: list[Json | ApiError] = field(default_factory=list)
    time: float = 0.0
    looks: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    told: list[str] = field(default_factory=list)
    on_sleep: Callable[[], None] = lambda: None
    seconds: float = 30.0
    left: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.resolver = AmbiguousWriteResolver(
            look=self._look,
            settle_after_loss=self.seconds,
            settle_after_response=1.0,
            timing=WaitClock(now=lambda: self.time, sleep=self._sleep, tell=self.left.append),
            before_retry=lambda call: self.told.append(call.id),
        )

    def _sleep(self, seconds: float, stop_waiting: Event) -> None:
        assert 0 < seconds <= 5
        self.time += seconds
        self.on_sleep()

    def _look(self, address: Address) -> Plan:
        assert address == A
        self.looks.append(self.time)
        found = self.seen.pop(0) if len(self.seen) > 1 else self.seen[0]
        if isinstance(found, LmsconfError):
            raise found
        return found

    def _send(self) -> Json:
        self.sent.append(self.time)
        found = self.repeats.pop(0)
        if isinstance(found, ApiError):
            raise found
        return found

    def settle(self, call: Call = CREATE, ids: dict[Ref, str] | None = None) -> Json:
        sent = IssuedRequest(client=NOWHERE, call=call, path=call.path, body=call.body, ids=ids or {})
        lost = iter([LOST])

        def send() -> Json:
            for error in lost:
                raise error
            return self._send()

        return self.resolver.resolve(sent, send)


TIMES = [0, 0.25, 0.75, 1.75, 3.75, 7.75, 12.75, 17.75, 22.75, 27.75, 30]
"""At once, then after a quarter of a second, twice as long each time, five at most, and one as the time ends."""
NO_NETWORK, REFUSED, HALF = LmsconfError("no network"), Rejected("there is one", status=409), InvalidResponse("half")
MISSING, MADE = wanting(ADD), {"groupId": "g"}


@pytest.mark.parametrize(
    ("call", "seen", "repeats", "result", "looks", "sent"),
    [
        pytest.param(CREATE, [wanting()], [], None, [0], [], id="a creation is there"),
        pytest.param(ADD, [wanting()], [], None, [0], [], id="a change is there"),
        pytest.param(CREATE, [wanting(CREATE)], [MADE], MADE, TIMES, [30], id="a creation never shows"),
        pytest.param(ADD, [MISSING], [{}], {}, [0], [0], id="a change is missing"),
        pytest.param(ADD, [MISSING, MISSING, wanting()], [LOST, HALF], None, [0] * 3, [0] * 2, id="two more losses"),
        pytest.param(
            CREATE, [NO_NETWORK, wanting(CREATE), wanting()], [], None, TIMES[:3], [], id="a look that failed"
        ),
        pytest.param(ADD, [MISSING, wanting()], [REFUSED], None, [0] * 2, [0], id="a refused repeat that was done"),
        pytest.param(ADD, [*[MISSING] * 3, wanting()], [REFUSED], None, [0, *TIMES[:3]], [0], id="it shows late"),
    ],
)
def test_a_lost_answer_is_settled(
    call: Call, seen: list[Seen], repeats: list[Json | ApiError], result: Json, looks: list[float], sent: list[float]
) -> None:
    """With no more looks than that takes; a change that is missing is sent again at once, a creation in the end.

    Doing a change twice comes to the same; who keeps the journal hears of each repeat before.
    """
    scene = LookupScript([*seen], [*repeats])
    assert scene.settle(call) == result
    assert (scene.looks, scene.sent, scene.told) == (looks, sent, [call.id] * len(sent))


TWINS = "two of them; the call that creates it may have been carried out twice"


@pytest.mark.parametrize(
    ("call", "seen", "repeats", "error", "looks"),
    [
        pytest.param(CREATE, NO_NETWORK, [], LOST, 11, id="no look"),
        pytest.param(CREATE, twice(code="read/incomplete"), [], LOST, 11, id="an incomplete listing"),
        pytest.param(CREATE, twice(Address.of("group", "B")), [], LOST, 11, id="other twins"),
        pytest.param(ADD, twice(), [], LOST, 11, id="twins of what is changed"),
        pytest.param(CREATE, twice(), [], DuplicateResource(TWINS), 1, id="twins of what is made"),
        pytest.param(ADD, MISSING, [REFUSED], REFUSED, 12, id="a refused repeat"),
        pytest.param(
            ADD, MISSING, [LOST, HALF], WriteOutcomeUnknown("half", hint="", operation=""), 3, id="a third loss"
        ),
    ],
)
def test_what_cannot_be_told_is_not_sent_again(
    call: Call, seen: Seen, repeats: list[Json | ApiError], error: LmsconfError, looks: int
) -> None:
    """It is looked for until the time is over, or twins are seen; a change is sent three times at most.

    The first time was before; the error is of the last loss, and says what to do.
    """
    scene, number = LookupScript([seen], [*repeats]), len(repeats)
    with pytest.raises(type(error), match=error.message) as found:
        scene.settle(call)
    assert (len(scene.looks), len(scene.sent)) == (looks, number)
    if HALF in repeats:
        assert isinstance(found.value, WriteOutcomeUnknown)
        assert (found.value.__cause__, found.value.operation) == (HALF, ADD.operation)
        assert "Apply again" in (found.value.hint or "")


def test_a_short_wait_is_used_to_its_end() -> None:
    """Before each pause it is told how long the wait may still take; so too for what the service has acknowledged."""
    scene = LookupScript([wanting(CREATE)], [{"groupId": "g"}], seconds=1.0)
    assert scene.settle() == {"groupId": "g"}
    assert (scene.looks, scene.left) == ([0, 0.25, 0.75, 1], [1, 0.75, 0.25])
    scene = LookupScript([EMPTY])
    assert [scene.time for _ in scene.resolver.poll_times(scene.resolver.settle_after_response)] == [0, 0.25, 0.75, 1]


def test_what_is_still_to_be_made_was_not_whatever_its_calls_look_like_now() -> None:
    """The fresh plan words the creation otherwise, as where a service writes times in a form of its own."""
    other = wanting(replace(CREATE, body={"otherwise": True}))
    made = Change(
        address=A, action=Action.CREATE, id=None, about=None, source=None, before=None, after={"name": "A"}, fields=()
    )
    scene = LookupScript([replace(other, changes=(made,))], [{"groupId": "g"}])
    assert scene.settle() == {"groupId": "g"}
    assert scene.sent == [30.0]
    elsewhere = replace(made, address=Address.of("group", "B"))
    assert LookupScript([replace(other, changes=(elsewhere,))]).settle() is None


def test_who_is_in_a_hurry_does_not_wait() -> None:
    """Set at once, there is one look and no repeat; set on the way, the waiting ends."""
    scene = LookupScript([wanting(CREATE)])
    scene.resolver.stop_waiting.set()
    with pytest.raises(WriteOutcomeUnknown):
        scene.settle()
    assert (scene.looks, scene.sent) == ([0.0], [])
    scene = LookupScript([wanting(CREATE)])
    scene.on_sleep = scene.resolver.stop_waiting.set
    with pytest.raises(WriteOutcomeUnknown):
        scene.settle()
    assert (scene.looks, scene.sent) == ([0.0, 0.25], [])


NEW = Ref(Address.of("user", "bo@acme.example"))


@pytest.mark.parametrize(
    ("wanted", "is_missing"),
    [
        (ADD, True),
        (replace(ADD, body={"userIds": ["2"]}), True),
        (replace(ADD, body={"userIds": ["3", "1", "2"]}), True),
        (replace(ADD, body={"userIds": ["1", "2", "3", "4"]}), False),
        (replace(ADD, body={"userIds": []}), False),
        (replace(ADD, body={"userIds": [1]}), False),
        (replace(ADD, body={"userIds": "1"}), False),
        (replace(ADD, body={"ids": ["1"]}), False),
        (replace(ADD, body=None), False),
        (replace(ADD, path="/groups/g-2/members"), False),
        (replace(ADD, operation="manual-groups.add-managers"), False),
        (replace(ADD, address=Address.of("group", "B")), False),
        (replace(ADD, body={"userIds": [NEW]}), True),
        (replace(ADD, body={"userIds": [Ref(Address.of("user", "unknown"))]}), False),
    ],
)
def test_a_part_of_what_was_sent_is_missing_still(wanted: Call, is_missing: bool) -> None:
    """Of many people some may be in: whatever a fresh plan still wants of the call means that it was not all done."""
    scene = LookupScript([wanting(replace(CREATE, operation="other"), wanted), wanting()], [{}])
    scene.settle(ADD, {NEW: "2"})
    assert len(scene.sent) == is_missing


def test_ids_are_waited_for_until_the_time_is_over() -> None:
    """What is found is given at once; what never comes is nothing, after the whole time."""
    scene = LookupScript([EMPTY])
    found: list[dict[Ref, str]] = [{}, {}, {NEW: "7"}]
    assert scene.resolver.poll(lambda: found.pop(0), bool, scene.resolver.settle_after_loss) == {NEW: "7"}
    assert scene.time == 0.75
    scene = LookupScript([EMPTY])
    assert scene.resolver.poll(dict, bool, scene.resolver.settle_after_loss) == {}
    assert scene.time == 30.0
