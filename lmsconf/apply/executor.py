"""Send a plan's calls: replace references with ids, and collect the ids that responses return."""

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
from lmsconf.planner.kind import AnyKind

if TYPE_CHECKING:
    from lmsconf.api.client import Client

_FORBIDDEN = 403
ON_EXISTING = (
    "Look at the dialect key content-targets.on-existing: with `recreate`, an assignment that changes is deleted and "
    "made anew."
)
"""The hint for an assignment that the service does not update when it is assigned again."""
_REFUSED_IN_USE = ("custom-fields.replace", "custom-fields.delete")
_GONE = (404, 410)


class ResourceInUse(Rejected):
    """A 403 about the resource of this one call, not about the credential (API specification, Errors)."""

    code = "refusal/in-use"


class CallExecutor:
    """Send calls through a WorkerPool. `settling` resolves those whose response was lost.

    grants: ids of the calls whose effect must be verified, because revocations depend on them. changing: ids of the
    calls that update an existing assignment.
    """

    def __init__(
        self,
        crew: WorkerPool,
        kinds: Mapping[str, AnyKind],
        settling: AmbiguousWriteResolver,
        *,
        grants: frozenset[str] = frozenset(),
        changing: frozenset[str] = frozenset(),
    ) -> None:
        self._crew, self._kinds, self._settling = crew, kinds, settling
        self._grants, self._changing = grants, changing

    def submit(self, call: Call, ids: Learnt) -> Future[Learnt]:
        """Return a future of the ids that the response returns. It fails with LmsconfError."""
        try:
            sent = IssuedRequest(call=call, path=filled(call.path, ids), body=filled_body(call.body, ids))
        except KeyError as missing:
            future: Future[Learnt] = Future()
            future.set_exception(LmsconfError(f"the id of {missing.args[0]} never came"))
            return future
        return self._crew.submit(lambda client: self._send(client, sent, ids))

    def hurry(self) -> None:
        """End all waiting; unresolved writes stay unresolved."""
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
            # The call was accepted; only its result could not be read.
            raise AnswerLost(error.message, hint=error.hint, operation=sent.call.operation) from error

    def _found_out(self, client: Client, sent: IssuedRequest, answer: Json) -> Learnt:
        """Return the ids that an accepted call created, looked up if the response lacks them; verify a grant."""
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
        """Decide with one read whether a 403 on a custom field is about its use or the credential.

        On any other operation, a 403 is about the credential.
        """
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
        """Find the ids of a creation with an unreadable response by its name. Raises DuplicateResource."""
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
    """The identifying name of a listing's row, normalised for comparison."""
    return email(str(row.get("email"))) if kind == USER else normal(str(row.get("name")))


def _awaited(call: Call) -> set[Ref]:
    """References whose ids only the response can give: of the created resource, and of new choices."""
    if call.address.kind not in LISTINGS:
        return set()
    body = call.body if isinstance(call.body, Mapping) else {}
    choices = cast("list[Mapping[str, str]]", body.get("choices") or [])
    new = {Ref(call.address, choice["name"]) for choice in choices if "choiceId" not in choice}
    return new | {Ref(call.address)} if call.creates else new


def _restated(refused: Rejected, as_: type[ApiError], hint: str) -> ApiError:
    """Return the same response as another error class, with a hint."""
    return as_(refused.message, hint=hint, operation=refused.operation, status=refused.status, body=refused.body)


def _live(client: Client, kind: str) -> list[dict[str, Json]]:
    """Return all live rows of a kind. Raises ApiError where the listing may be incomplete."""
    operation = LISTINGS[kind]

    def page(query: Mapping[str, Json]) -> Future[Json]:
        # Sequential: all threads of the pool may be here, and would deadlock waiting for each other.
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
    """Execute the plan through the CallExecutor."""
    return run(plan, sender.submit, width=width, tell=tell, begin=begin, hurry=sender.hurry)
