"""Try an assumption about the service with one call, before other calls rest on it.

The API specification does not say whether adding people to a list keeps those who are in it (Manual Groups, Smart
Groups). Until the project file says so (`manual-groups.add.mode`), the first call of each operation that could take
somebody out is sent alone: the list is read before and after it. If people are missing, they are put back and the run
ends, so that a wrong guess concerns one list and costs nobody a membership.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Final

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.assumed_keys import ADD_MODE
from lmsconf.api.spec.value_encoding import ANSWERS
from lmsconf.apply.first_answers import FirstAnswers
from lmsconf.errors import ApiError, WriteOutcomeUnknown, WrongAssumption
from lmsconf.kinds.shared.response_json import id_set, require_object
from lmsconf.planner.grant_verification import SentCall

if TYPE_CHECKING:
    from lmsconf.api.client import Client
    from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest

_LISTS: Final = {
    "manual-groups.add-members": "manual-groups.members",
    "manual-groups.add-managers": "manual-groups.managers",
    "smart-groups.add-managers": "smart-groups.managers",
}
"""Operation that adds people to a list → the operation that reads the list."""


class FirstCalls:
    """The first calls of one run. known: the dialect that the project file states; None: nothing is assumed."""

    def __init__(self, known: Mapping[str, object] | None) -> None:
        self._untried = set() if known is None or ADD_MODE in known else set(_LISTS)
        self._answers = FirstAnswers(known or {}, () if known is None else ApiSpec.default().dialect_keys(ANSWERS))
        self._lock = Lock()
        self._wrong: WrongAssumption | None = None

    @contextmanager
    def comparing(self, client: Client, sent: IssuedRequest, resolver: AmbiguousWriteResolver) -> Iterator[None]:
        """Send a call inside: alone and with its list compared, if it is the first that rests on the assumption.

        Raises WrongAssumption if the call took people out of the list, and for every later call.
        """
        operation = sent.call.operation
        if operation == ANSWERS and self._answers.untried:
            with self._alone():
                if self._answers.untried_keys(client, sent):
                    with self._answers.comparing(client, sent, resolver):
                        yield
                    return
            yield
            return
        if operation not in self._untried:
            yield
            return
        with self._alone():
            if operation not in self._untried:
                yield
                return
            before = _listed(client, sent)
            yield
            # A call that names everybody in the list shows nothing.
            if others := before - _named(sent):
                try:
                    self._compare(client, sent, resolver, before, others)
                except ApiError as error:
                    why = f"the call was accepted, but the list could not be read after it: {error.message}"
                    raise WriteOutcomeUnknown(why, hint=error.hint, operation=operation) from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Compare one call at a time. Raises WrongAssumption once an assumption has turned out to be wrong."""
        with self._lock:
            if self._wrong is not None:
                raise WrongAssumption(self._wrong.message, hint=None, sent=False)
            try:
                yield
            except WrongAssumption as wrong:
                self._wrong = wrong
                raise

    def _compare(
        self,
        client: Client,
        sent: IssuedRequest,
        resolver: AmbiguousWriteResolver,
        before: frozenset[str],
        others: frozenset[str],
    ) -> None:
        after: frozenset[str] = frozenset()
        for _ in resolver.poll_visibility():
            after = _listed(client, sent)
            if _named(sent) <= after:
                break
        else:
            return  # The list does not show the call yet, so it shows nothing about the others.
        missing = others - after
        if not missing:
            self._untried.discard(sent.call.operation)
            return
        everybody = before | _named(sent)
        client.send(sent.call.method, sent.path, body=_naming(sent, everybody), operation=sent.call.operation)
        left = missing
        for _ in resolver.poll_visibility():
            left = others - _listed(client, sent)
            if not left:
                break
        raise _wrong(sent, len(missing), len(left))


def _wrong(sent: IssuedRequest, missing: int, left: int) -> WrongAssumption:
    """Return the error that says what was sent, what was seen, and what would explain it."""
    people = "1 person who was" if missing == 1 else f"{missing} people who were"
    back = f"{missing - left} of them put back" if left else "put back again"
    return WrongAssumption(
        f"{sent.call.operation} took {people} in the list before out of it, {back}: the service replaces the list",
        hint=f"Set under `dialect:` in the project file: {ADD_MODE}: replace",
    )


def _listed(client: Client, sent: IssuedRequest) -> frozenset[str]:
    """Return the user ids in the list of a call."""
    route = client.spec.match_route(sent.call.method, sent.path)
    response = client.call(_LISTS[sent.call.operation], path=route[1] if route else {})
    return frozenset(map(str, id_set(require_object(response, "a list of people"), "userIds")))


def _named(sent: IssuedRequest) -> frozenset[str]:
    return SentCall({}, sent.body).listed_ids()


def _naming(sent: IssuedRequest, people: frozenset[str]) -> dict[str, object]:
    """Return the body of the call with these people in its list, whatever the field's name in the dialect."""
    body = sent.body if isinstance(sent.body, dict) else {}
    return {name: sorted(people) if isinstance(value, list) else value for name, value in body.items()}
