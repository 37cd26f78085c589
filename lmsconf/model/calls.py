"""API calls as data: Step, before its place in a plan is known, and Call."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from operator import itemgetter

from msgspec import Struct, field

from lmsconf.model.address import Address, Ref
from lmsconf.model.canonical_json import Json


class Step(Struct, frozen=True, kw_only=True):
    """One API call as data. Values of `path` and leaves of `body` may be Refs, where the id is not known yet.

    makes     what exists, or which name is free, after this call  → ordered before all that uses it
    uses      what must exist, or which name must be free, before this call
    releases  what no longer is a dependency after this call       → ordered before all that ends, avoids or follows it
    ends      what no longer exists after this call
    avoids    what should be released before this call. If only that makes a dependency cycle, the call is sent anyway
              and may be refused
    follows   what should be released before this call, so that nobody loses access for a moment; ignored in a cycle
    may_be_refused
              the service may refuse the call: it is ordered first if it needs no other call
    revokes   the call takes access or rights away; such calls are ordered last where dependencies allow
    people    the e-mails of the people that the call adds to or removes from a list
    """

    operation: str
    path: Mapping[str, str | Ref] = field(default_factory=dict)
    query: Mapping[str, Json] = field(default_factory=dict)
    body: object = None
    makes: frozenset[Ref] = frozenset()
    uses: frozenset[Ref] = frozenset()
    releases: frozenset[Ref] = frozenset()
    ends: frozenset[Ref] = frozenset()
    avoids: frozenset[Ref] = frozenset()
    follows: frozenset[Ref] = frozenset()
    may_be_refused: bool = False
    revokes: bool = False
    people: tuple[str, ...] = ()


class CallStatus(StrEnum):
    """The result of a call. `blocked`: a call that it needs failed. `not_attempted`: the run stopped before it."""

    DONE = "done"
    FAILED = "failed"
    BLOCKED = "blocked"
    NOT_ATTEMPTED = "not_attempted"


class CallResult(Struct, frozen=True, kw_only=True):
    """What became of one call. reason: why it was not done; hint: the fix."""

    call: str
    address: Address
    operation: str
    status: CallStatus
    reason: str | None = None
    hint: str | None = None


class Call(Struct, frozen=True, kw_only=True):
    """A Step with its position. `path` is filled in; `{group/New name}` in it, or a Ref in the body, is an unknown id.

    The calls of a plan are in an order in which they can be sent. needs: ids of the calls that must be done before.
    people: the e-mails of the people that it adds to or removes from a list.
    """

    id: str
    address: Address
    operation: str
    method: str
    path: str
    query: Mapping[str, Json]
    body: object
    needs: tuple[str, ...] = ()
    may_be_refused: bool = False
    people: tuple[str, ...] = ()


class CallIndex:
    """The calls of a plan by the address that each is for."""

    def __init__(self, calls: Iterable[Call] = ()) -> None:
        self._of: defaultdict[Address, list[Call]] = defaultdict(list)
        self._at: dict[str, tuple[int, Call]] = {}
        for position, call in enumerate(calls):
            self._of[call.address].append(call)
            self._at[call.id] = position, call

    def of(self, address: Address) -> Sequence[Call]:
        """Return the calls for an address, in their order."""
        return self._of.get(address, ())

    def needed_by(self, address: Address) -> list[Call]:
        """Return the calls that must be done before one for an address, in their order."""
        needed = {need for call in self.of(address) for need in call.needs}
        return [call for _, call in sorted((self._at[id] for id in needed if id in self._at), key=itemgetter(0))]


def is_creation(operation: str) -> bool:
    """Whether an operation such as `manual-groups.create` makes a resource: sent twice, it makes a duplicate."""
    return operation.endswith(".create")
