"""Compare the first call that adds people to a list: does it keep those who are in the list?

The API specification does not say whether adding people keeps those who are in a list or replaces them (Manual Groups,
Smart Groups). So the first call names everybody who is in the list, too, which is right in both cases. Where that is
refused, because a service may refuse people who are in the list, it names the new people alone; people who are
missing then are put back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from lmsconf.api.spec.assumed_keys import ADD_MODE, BATCH
from lmsconf.errors import ApiError, Rejected, WriteOutcomeUnknown, WrongAssumption
from lmsconf.kinds.shared.response_json import id_set, require_object
from lmsconf.planner.grant_verification import SentCall

if TYPE_CHECKING:
    from lmsconf.api.client import Client
    from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest

LISTS: Final = {
    "manual-groups.add-members": "manual-groups.members",
    "manual-groups.add-managers": "manual-groups.managers",
    "smart-groups.add-managers": "smart-groups.managers",
}
"""Operation that adds people to a list → the operation that reads the list."""


class ComparedList:
    """The list of one call, as it was before the call."""

    def __init__(self, client: Client, sent: IssuedRequest, resolver: AmbiguousWriteResolver) -> None:
        self._client, self._sent, self._resolver = client, sent, resolver
        self._before = self._listed()
        self._added = SentCall({}, sent.body).listed_ids()

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
        return replace(self._sent, body=self.with_others(self._sent.body))

    def with_others(self, body: object) -> object:
        """Return a body of a call, whatever the name of its list, with the people who are in the list before it."""
        parts = body if isinstance(body, dict) else {}
        return {
            name: sorted(self._before | frozenset(map(str, value))) if isinstance(value, list) else value
            for name, value in parts.items()
        }

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
            body = self._client.spec.body_to_wire(self._sent.call.operation, userIds=sorted(self.everybody))
            self._client.send(self._sent.call.method, self._sent.path, body=body, operation=self._sent.call.operation)
            left = self._before - self._polled(self._before)
        except ApiError as error:
            why = f"the call was accepted, but the list could not be read after it: {error.message}"
            raise WriteOutcomeUnknown(why, hint=error.hint, operation=self._sent.call.operation) from error
        people = "1 person who was" if len(missing) == 1 else f"{len(missing)} people who were"
        back = f"{len(missing - left)} of them put back" if left else "put back again"
        raise WrongAssumption(
            f"{self._sent.call.operation} took {people} in the list before out of it, {back}: "
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
        route = self._client.spec.match_route(self._sent.call.method, self._sent.path)
        response = self._client.call(LISTS[self._sent.call.operation], path=route[1] if route else {})
        return frozenset(map(str, id_set(require_object(response, "a list of people"), "userIds")))
