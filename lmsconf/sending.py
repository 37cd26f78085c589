"""Sends a plan's calls: puts ids where names stood, and learns the ids that answers bring."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, cast

from lmsconf.client.crew import Crew
from lmsconf.core.address import Ref
from lmsconf.core.apply import Learnt, Run, Tell, run
from lmsconf.core.kind import Api, Kind
from lmsconf.core.names import email, normal
from lmsconf.core.values import Call, Json, Plan
from lmsconf.errors import ApiError, BadAnswer, LmsconfError, Rejected, Unauthorized
from lmsconf.kinds.names import CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.kinds.terms import filled

if TYPE_CHECKING:
    from lmsconf.client.client import Client

_LISTINGS: Mapping[str, tuple[str, str, str]] = {
    CUSTOM_FIELD: ("custom-fields.list", "customFields", "customFieldId"),
    GROUP: ("manual-groups.list", "groups", "groupId"),
    SMART_GROUP: ("smart-groups.list", "smartGroups", "smartGroupId"),
    USER: ("users.list", "users", "userId"),
}
_FORBIDDEN = 403
_REFUSED_IN_USE = ("custom-fields.replace", "custom-fields.delete")
_GONE = (404, 410)


class RefusedInUse(Rejected):
    """A 403 that is about this one call, not about the credential."""

    code = "refusal/in-use"


class Sender:
    """Sends calls through a crew. `reader` is for looking up what an answer left out."""

    def __init__(self, crew: Crew, reader: Api, kinds: Mapping[str, Kind]) -> None:
        self._crew, self._reader, self._kinds = crew, reader, kinds

    def submit(self, call: Call, ids: Learnt) -> Future[Learnt]:
        """The future of the ids that the call teaches. It fails with LmsconfError."""
        try:
            path, body = filled(call.path, ids), _filled(call.body, ids)
        except KeyError as missing:
            future: Future[Learnt] = Future()
            future.set_exception(LmsconfError(f"the id of {missing.args[0]} never came"))
            return future
        return self._crew.submit(lambda client: self._send(client, call, path, body))

    def _send(self, client: Client, call: Call, path: str, body: object) -> Learnt:
        try:
            answer = client.send(call.method, path, query=call.query, body=body, operation=call.operation)
        except BadAnswer:
            # It was done; only what it said cannot be used.
            answer = None
        except Rejected as refused:
            if refused.status in _GONE and call.method == "DELETE":
                return {}
            raise self._explained(client, call, refused) from refused
        learnt = self._kinds[call.address.kind].learn(call.address, call.operation, answer)
        return learnt if _awaited(call) <= learnt.keys() else {**learnt, **self._looked_up(client, call)}

    def _explained(self, client: Client, call: Call, refused: Rejected) -> ApiError:
        """A 403 on a field can be about its use or about the credential, which one cheap read tells; others are not."""
        if refused.status != _FORBIDDEN:
            return refused
        if call.operation in _REFUSED_IN_USE:
            try:
                client.call("custom-fields.list")
            except Unauthorized as unauthorized:
                return unauthorized
            hint = "It may be in use: take it out of the conditions that name it, apply, and apply once more."
            return _restated(refused, RefusedInUse, hint)
        hint = "The credential can read, and lacks the right to do this. Use one that may."
        return _restated(refused, Unauthorized, hint)

    def _looked_up(self, client: Client, call: Call) -> Learnt:
        """The id of something new whose creation was not answered as described: found by its name, if it is alone."""
        kind = call.address.kind
        if kind not in _LISTINGS:
            return {}
        operation, listing, id = _LISTINGS[kind]
        rows = _all_rows(client, operation, listing)
        found = [row for row in rows if _goes_by(kind, row) == call.address.name]
        if len(found) != 1:
            raise BadAnswer(
                f"{call.address}: the service did not say its id, and {len(found)} are live under that name",
                operation=call.operation,
            )
        named = {**found[0], id: found[0].get(id) or found[0].get("id")}
        return self._kinds[kind].learn(call.address, call.operation, named)


def _goes_by(kind: str, row: Mapping[str, Json]) -> str:
    """What something of a listing is called, in the form that is compared."""
    return email(str(row.get("email"))) if kind == USER else normal(str(row.get("name")))


def _awaited(call: Call) -> set[Ref]:
    """The ids that only the answer to a call can tell: of what it creates, and of choices that are new."""
    if call.address.kind not in _LISTINGS:
        return set()
    body = call.body if isinstance(call.body, Mapping) else {}
    choices = cast("list[Mapping[str, str]]", body.get("choices") or [])
    new = {Ref(call.address, choice["name"]) for choice in choices if "choiceId" not in choice}
    return new | {Ref(call.address)} if call.operation.endswith(".create") else new


def _restated(refused: Rejected, as_: type[ApiError], hint: str) -> ApiError:
    """The same answer, understood better."""
    return as_(refused.message, hint=hint, operation=refused.operation, status=refused.status, body=refused.body)


def _all_rows(client: Client, operation: str, listing: str) -> list[dict[str, Json]]:
    rows: list[dict[str, Json]] = []
    paged = "skip" in client.wire[operation].query
    while True:
        answer = client.call(operation, query={"skip": len(rows)} if paged else {})
        page = cast("list[dict[str, Json]]", cast("dict[str, Json]", answer)[listing])
        rows.extend(page)
        if not page or not paged:
            return rows


def send_all(plan: Plan, sender: Sender, *, width: int, tell: Tell | None) -> Run:
    """Carries the plan out through the sender."""
    return run(plan, sender.submit, width=width, tell=tell)


def _filled(body: object, ids: Learnt) -> object:
    """The body with every id to come put in its place. Raises KeyError for one that did not come."""
    if isinstance(body, Ref):
        return ids[body]
    if isinstance(body, Mapping):
        return {_filled(key, ids): _filled(value, ids) for key, value in body.items()}
    if isinstance(body, list | tuple):
        return [_filled(item, ids) for item in body]
    return body


