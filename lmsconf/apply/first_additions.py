"""Compare the first call that adds people to a list: does it keep those who are in the list?

The API specification does not say whether adding people keeps those who are in a list or replaces them (Manual Groups,
Smart Groups). So the first call names everybody who is in the list, too, which is right in both cases. Where that is
refused, because a service may refuse people who are in the list, it names the new people alone; people who are
missing then are put back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from lmsconf.api.spec.assumed_keys import ADD_MODE, BATCH
from lmsconf.errors import ApiError, InvalidResponse, Rejected, WriteOutcomeUnknown, WrongAssumption
from lmsconf.kinds.grant_verification import SentCall
from lmsconf.kinds.shared.response_json import id_set, require_object

if TYPE_CHECKING:
    from lmsconf.api.client import Client
    from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest

LISTS: Final = {
    "manual-groups.add-members": "manual-groups.members",
    "manual-groups.add-managers": "manual-groups.managers",
    "smart-groups.add-managers": "smart-groups.managers",
}
"""Operation that adds people to a list → the operation that reads the list."""


def named_people(body: object) -> int:
    """Return how many people the lists of a body name."""
    return len(SentCall({}, body).listed_ids())


class ComparedList:
    """The list of one call, as it was before the call."""

    def __init__(self, client: Client, sent: IssuedRequest, resolver: AmbiguousWriteResolver) -> None:
        self._client, self._resolver, self.sent = client, resolver, sent
        self._before = self._listed()
        self._added = SentCall({}, sent.body).listed_ids()

    @property
    def is_new(self) -> bool:
        """Whether the list is empty and the call names several people.

        Two calls then show what adding does to those who are in a list, and nobody is in it but by this run.
        """
        return not self._before and len(self._added) > 1

    def begun(self) -> ComparedList | None:
        """Add one person to a new list, and return the list for the call with the others; None if nobody was added."""
        if not self.is_new:
            return None
        first = frozenset((min(self._added),))
        one, others = (replace(self.sent, body=self._naming(people)) for people in (first, self._added - first))
        try:
            self._client.send(one.call.method, one.path, body=one.body, operation=one.call.operation)
        except (WriteOutcomeUnknown, InvalidResponse):
            # It may still arrive, and a service may refuse people who are in the list.
            next((True for _ in self._resolver.poll_lost() if first <= self._listed()), False)
        except ApiError:
            return None  # The call itself meets the same, and tells what it is.
        rest = ComparedList(self._client, others, self._resolver)
        return rest if rest.others else None

    def without_last(self, body: object) -> object:
        """Return a body of a call without the person that `add_last` adds."""
        return _with_lists(body, lambda named: named - {max(self._added)})

    def add_last(self) -> bool:
        """Add the last person of a new list; return whether the others are still in it.

        Raises WrongAssumption if they are not, after putting them back.
        """
        last = max(self._added)
        body = self._client.spec.body_to_wire(self.sent.call.operation, userIds=[last])
        rest = ComparedList(self._client, replace(self.sent, body=body), self._resolver)
        if not rest.others or last in rest._before:
            return False
        try:
            self._client.send(self.sent.call.method, self.sent.path, body=body, operation=self.sent.call.operation)
        except Rejected:
            return False
        return rest.compare()

    @property
    def others(self) -> frozenset[str]:
        """The people in the list that the call does not name."""
        return self._before - self._added

    @property
    def everybody(self) -> frozenset[str]:
        """The people who are in the list before the call or after it."""
        return self._before | self._added

    @property
    def is_small(self) -> bool:
        """Whether one call can name everybody."""
        return len(self.everybody) <= self._client.spec.integer_behaviour(BATCH)

    @property
    def has_archived(self) -> bool:
        """Whether some of the others are archived, or cannot be read: a service may refuse to put them back."""
        try:
            people = [
                require_object(self._client.call("users.get", path={"userId": id}), "a user") for id in self.others
            ]
        except Rejected:
            return True
        return any(one.get("archivedAt") for one in people)

    def whole(self) -> IssuedRequest:
        """Return the call with everybody in its list."""
        return replace(self.sent, body=self.with_others(self.sent.body))

    def with_others(self, body: object) -> object:
        """Return a body of a call, whatever the name of its list, with the people who are in the list before it."""
        return _with_lists(body, lambda named: self._before | named)

    def _naming(self, people: frozenset[str]) -> object:
        """Return the body of the call with these people alone."""
        return _with_lists(self.sent.body, lambda _: people)

    def compare(self) -> bool:
        """Return whether the list shows the call, with everybody who was in it before.

        Raises WrongAssumption if somebody is missing, after putting them back; WriteOutcomeUnknown if the list cannot
        be read.
        """
        try:
            after = self._polled(self._added)
            missing = self._before - after
            if not missing:
                return self._added <= after
            body = self._client.spec.body_to_wire(self.sent.call.operation, userIds=sorted(self.everybody))
            self._client.send(self.sent.call.method, self.sent.path, body=body, operation=self.sent.call.operation)
            left = self._before - self._polled(self._before)
        except ApiError as error:
            why = f"the call was accepted, but the list could not be read after it: {error.message}"
            raise WriteOutcomeUnknown(why, hint=error.hint, operation=self.sent.call.operation) from error
        people = "1 person who was" if len(missing) == 1 else f"{len(missing)} people who were"
        back = f"{len(missing - left)} of them put back" if left else "put back again"
        raise WrongAssumption(
            f"{self.sent.call.operation} took {people} in the list before out of it, {back}: "
            "the service replaces the list",
            values={ADD_MODE: "replace"},
        )

    def _polled(self, wanted: frozenset[str]) -> frozenset[str]:
        """Return the list as soon as it has the wanted people, or as it is when the time for that is over."""
        after: frozenset[str] = frozenset()
        for _ in self._resolver.poll_visibility():
            after = self._listed()
            if wanted <= after:
                break
        return after

    def _listed(self) -> frozenset[str]:
        """Return the user ids in the list."""
        route = self._client.spec.match_route(self.sent.call.method, self.sent.path)
        response = self._client.call(LISTS[self.sent.call.operation], path=route[1] if route else {})
        return frozenset(map(str, id_set(require_object(response, "a list of people"), "userIds")))


def _with_lists(body: object, change: Callable[[frozenset[str]], frozenset[str]]) -> object:
    """Return a body with its lists of people changed, whatever their names."""
    parts = body if isinstance(body, dict) else {}
    return {
        name: sorted(change(frozenset(map(str, value)))) if isinstance(value, list) else value
        for name, value in parts.items()
    }
