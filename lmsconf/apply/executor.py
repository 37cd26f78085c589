"""Sends a plan's calls: puts ids where names stood, and learns the ids that answers bring."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, cast

from lmsconf.api import pagination
from lmsconf.api.pagination import PageSchema
from lmsconf.api.worker_pool import WorkerPool
from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest
from lmsconf.apply.grant_check import verify_grant
from lmsconf.apply.scheduler import Begin, Learnt, Run, Tell, run
from lmsconf.errors import AnswerLost, ApiError, BadAnswer, DuplicateResource, LmsconfError, Rejected, Unauthorized
from lmsconf.kinds.shared.listings import LISTINGS
from lmsconf.kinds.shared.names import USER
from lmsconf.kinds.shared.terms import filled, filled_body
from lmsconf.model.address import Ref
from lmsconf.model.names import email, normal
from lmsconf.model.values import Call, Json, Plan
from lmsconf.planner.kind import Kind

if TYPE_CHECKING:
    from lmsconf.api.client import Client

_FORBIDDEN = 403
ON_EXISTING = (
    "Look at the dialect key content-targets.on-existing: with `recreate`, an assignment that changes is deleted and "
    "made anew."
)
"""The way out for an assignment that the service does not change by assigning it again."""
_REFUSED_IN_USE = ("custom-fields.replace", "custom-fields.delete")
_GONE = (404, 410)


class ResourceInUse(Rejected):
    """A 403 that is about this one call, not about the credential."""

    code = "refusal/in-use"


class CallExecutor:
    """Sends calls through a crew. `settling` tells what became of those whose answer was lost.

    grants: the ids of those calls that must be seen to have had effect, because others take somebody out after them.
    changing: the ids of those that change an assignment which is there.
    """

    def __init__(
        self,
        crew: WorkerPool,
        kinds: Mapping[str, Kind],
        settling: AmbiguousWriteResolver,
        *,
        grants: frozenset[str] = frozenset(),
        changing: frozenset[str] = frozenset(),
    ) -> None:
        self._crew, self._kinds, self._settling = crew, kinds, settling
        self._grants, self._changing = grants, changing

    def submit(self, call: Call, ids: Learnt) -> Future[Learnt]:
        """The future of the ids that the call teaches. It fails with LmsconfError."""
        try:
            sent = IssuedRequest(call=call, path=filled(call.path, ids), body=filled_body(call.body, ids))
        except KeyError as missing:
            future: Future[Learnt] = Future()
            future.set_exception(LmsconfError(f"the id of {missing.args[0]} never came"))
            return future
        return self._crew.submit(lambda client: self._send(client, sent, ids))

    def hurry(self) -> None:
        """Somebody wants to go: what is doubtful stays so."""
        self._settling.hurry.set()

    def _send(self, client: Client, sent: IssuedRequest, ids: Learnt) -> Learnt:
        try:
            answer = self._answered(client, sent)
        except (AnswerLost, BadAnswer) as lost:
            answer = self._settling.settle(sent, ids, lost, lambda: self._answered(client, sent))
        try:
            return self._found_out(client, sent, answer)
        except DuplicateResource:
            raise
        except ApiError as error:
            # The call was accepted; only what came of it could not be read.
            raise AnswerLost(error.message, hint=error.hint, operation=sent.call.operation) from error

    def _found_out(self, client: Client, sent: IssuedRequest, answer: Json) -> Learnt:
        """What an accepted call teaches, read where the answer does not say it, and seen where others wait for it."""
        call = sent.call
        if call.id in self._grants:
            verify_grant(client, sent, self._settling)
        learnt = self._kinds[call.address.kind].ids_from_response(call.address, call.operation, answer)
        if _awaited(call) <= learnt.keys():
            return learnt
        return {**learnt, **self._settling.awaited(lambda: self._looked_up(client, call))}

    def _answered(self, client: Client, sent: IssuedRequest) -> Json:
        call = sent.call
        try:
            return client.send(call.method, sent.path, query=call.query, body=sent.body, operation=call.operation)
        except Rejected as refused:
            if refused.status in _GONE and call.method == "DELETE":
                return None
            raise self._explained(client, call, refused) from refused

    def _explained(self, client: Client, call: Call, refused: Rejected) -> ApiError:
        """A 403 on a field can be about its use or about the credential, which one cheap read tells; others are not."""
        if refused.status != _FORBIDDEN:
            return _restated(refused, Rejected, ON_EXISTING) if call.id in self._changing else refused
        if call.operation in _REFUSED_IN_USE:
            try:
                client.call("custom-fields.list")
            except Unauthorized as unauthorized:
                return unauthorized
            hint = "It may be in use: take it out of the conditions that name it, apply, and apply once more."
            return _restated(refused, ResourceInUse, hint)
        hint = "The credential can read, and lacks the right to do this. Use one that may."
        return _restated(refused, Unauthorized, hint)

    def _looked_up(self, client: Client, call: Call) -> Learnt:
        """The ids of a creation with an unreadable answer, found by its name. Raises DuplicateResource."""
        kind = call.address.kind
        id = LISTINGS[kind].id
        found = [row for row in _live(client, kind) if _goes_by(kind, row) == call.address.name]
        if len(found) > 1:
            raise DuplicateResource(
                f"{call.address} is live more than once, with the ids {', '.join(str(row[id]) for row in found)}",
                hint="Delete the one that is not in use, and plan again.",
                operation=call.operation,
            )
        return self._kinds[kind].ids_from_response(call.address, call.operation, found[0]) if found else {}


def _goes_by(kind: str, row: Mapping[str, Json]) -> str:
    """What something of a listing is called, in the form that is compared."""
    return email(str(row.get("email"))) if kind == USER else normal(str(row.get("name")))


def _awaited(call: Call) -> set[Ref]:
    """The ids that only the answer to a call can tell: of what it creates, and of choices that are new."""
    if call.address.kind not in LISTINGS:
        return set()
    body = call.body if isinstance(call.body, Mapping) else {}
    choices = cast("list[Mapping[str, str]]", body.get("choices") or [])
    new = {Ref(call.address, choice["name"]) for choice in choices if "choiceId" not in choice}
    return new | {Ref(call.address)} if call.creates else new


def _restated(refused: Rejected, as_: type[ApiError], hint: str) -> ApiError:
    """The same answer, understood better."""
    return as_(refused.message, hint=hint, operation=refused.operation, status=refused.status, body=refused.body)


def _live(client: Client, kind: str) -> list[dict[str, Json]]:
    """Everything of a kind that the service lists now. Raises ApiError where that may not be all of it."""
    operation = LISTINGS[kind]

    def page(query: Mapping[str, Json]) -> Future[Json]:
        # One after the other: the threads of the crew may all be here, and would wait for each other.
        asked: Future[Json] = Future()
        asked.set_result(client.call(operation.name, query=query))
        return asked

    rows = pagination.read(page, PageSchema.of(client.wire, operation), {})
    if rows.incomplete:
        raise BadAnswer(rows.incomplete, operation=operation.name)
    return list(rows.rows)


def send_all(
    plan: Plan, sender: CallExecutor, *, width: int, tell: Tell | None = None, begin: Begin | None = None
) -> Run:
    """Carries the plan out through the sender."""
    return run(plan, sender.submit, width=width, tell=tell, begin=begin, hurry=sender.hurry)
