"""Send a plan's calls: replace references with ids, check what a call rests on, and collect the ids in responses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import not_

from lmsconf.api.client import Client
from lmsconf.api.concurrent_requests import ConcurrentReader, InlineExecutor, WorkerPool
from lmsconf.api.spec import path_segment_problem
from lmsconf.api.spec.operations import CUSTOM_FIELDS
from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest, issued
from lmsconf.apply.check_first_changes import LISTS, is_archived
from lmsconf.apply.scheduler import Learnt
from lmsconf.apply.side_effects_on_people import missing_manager_right
from lmsconf.apply.try_assumptions import FirstCalls
from lmsconf.errors import (
    ApiError,
    DuplicateResource,
    InvalidResponse,
    LmsconfError,
    NoEffect,
    Problem,
    ProblemsFound,
    Rejected,
    StalePlan,
    Unauthorized,
    WriteOutcomeUnknown,
    shorten,
)
from lmsconf.kinds.assignment.steps import HINT_ON_EXISTING, body_of_live
from lmsconf.kinds.custom_field.steps import REFUSED_IN_USE, choices_created_by, ids_of_field
from lmsconf.kinds.custom_field.types import MIGRATE
from lmsconf.kinds.grant_verification import (
    GrantVerification,
    grant_verification,
    revokes_access,
)
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, Kind, listed_name
from lmsconf.kinds.shared.responses import id_in_response
from lmsconf.model.address import Ref
from lmsconf.model.calls import Call, ListOperation, is_creation
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.plan import Action, Plan


def grants_to_verify(plan: Plan) -> dict[str, GrantVerification]:
    """Return how the granting calls that a revoking call depends on are verified, by call id.

    Each call that changes a replaced resource counts as revoking, also if it only narrows it.
    """
    replaced = {change.address for change in plan.changes if change.replaced_by}
    strictly = {need for call in plan.calls if call.address in replaced for need in call.needs}
    needed = strictly | {need for call in plan.calls if revokes_access(call) for need in call.needs}
    return {
        call.id: check
        for call in plan.calls
        if call.id in needed
        if (check := grant_verification(call, any_audience=call.id in strictly)) is not None
    }


def verify_grant(sent: IssuedRequest, check: GrantVerification, resolver: AmbiguousWriteResolver) -> None:
    """Poll until every id that the call grants is visible. Raises NoEffect when the time for that is over."""
    client, call = sent.client, sent.values
    granted = frozenset(check.granted(call))
    missing = resolver.poll(lambda: granted.difference(check.visible(client.call, call)), not_)
    if sent.call.operation in LISTS and len(granted) > len(sent.call.people):
        # A call that replaces a list also names archived people, and the list may not show them.
        missing = frozenset(id for id in missing if not is_archived(client, str(id)))
    if missing:
        keys = client.spec[sent.call.operation].dialect_keys
        raise NoEffect(
            f"the service accepted it, and {check.missing.format(missing=len(missing), granted=len(granted))}; "
            f"{check.spared}",
            hint=f"Check the dialect keys {', '.join(keys)}." if keys else "Plan again to see what remains.",
        )


def refuse_late_deletion(call: Call, replay: Callable[[], Plan], resolver: AmbiguousWriteResolver) -> None:
    """Raise StalePlan if people have invalidated a deletion since the plan was made.

    replay: plans the changes of the plan again, on the workspace as it is now.
    """
    # What this run has written may not be visible in listings yet.
    differences = resolver.poll(partial(_what_is_left, call, replay), not_)
    if differences:
        raise StalePlan(
            f"{call.address} is not deleted, because the workspace has changed during this run: "
            + "; ".join(dict.fromkeys(difference.message for difference in differences)),
            hint="Plan again and review it: what is done stays, and the rest is planned again.",
            problems=differences,
        )


def _what_is_left(call: Call, replay: Callable[[], Plan]) -> tuple[Problem, ...]:
    """Return why a deletion would not be sent now; nothing if it alone is left to do, or is done."""
    try:
        now = replay()
    except ProblemsFound as error:
        return error.problems
    same = [one for one in now.calls if (one.address, one.operation) == (call.address, call.operation)]
    left = dict.fromkeys(str(one.address) for one in now.calls if any(one.id in waiting.needs for waiting in same))
    return (
        *(problem for problem in now.all_problems if problem.is_error and problem.address == str(call.address)),
        *(Problem(code=StalePlan.code, message=f"{address} has changed", address=address) for address in left),
    )


class ResourceInUse(Rejected, code="refusal/in-use"):
    """A 403 about the resource of this one call, not about the credential (API specification, Errors)."""


class CallExecutor:
    """Send the calls of a plan. `resolver` resolves those whose response was lost.

    replay: plans the changes of the plan again. first_calls: what this run has tried.
    """

    def __init__(
        self,
        resolver: AmbiguousWriteResolver,
        plan: Plan,
        replay: Callable[[], Plan],
        first_calls: FirstCalls,
    ) -> None:
        self._resolver, self._first_calls = resolver, first_calls
        self._replay, self._grants = replay, grants_to_verify(plan)
        # A deletion that waits for the answers to be moved can be invalidated by people meanwhile.
        self._emptied = {
            one.address for one in plan.changes if one.action is Action.DELETE and MIGRATE in members(one.before)
        }
        self._replaced = {one.address: one.before for one in plan.changes if one.action is Action.REPLACE}
        self._updated = {
            one.address for one in plan.changes if one.action is Action.UPDATE and one.address.kind == CONTENT_TARGET
        }

    def send(self, call: Call, ids: Learnt, client: Client) -> Learnt:
        """Send a call with the ids known so far; return the ids in its response. Raises LmsconfError."""
        try:
            sent = issued(client, call, ids)
        except KeyError as missing:
            raise LmsconfError(f"the service returned no id for {missing.args[0]}") from missing
        if call.needs and call.address in self._emptied:
            refuse_late_deletion(call, self._replay, self._resolver)
        try:
            response = self._first_calls.send(
                sent, lambda one: self._resolver.resolve(one, partial(self._response, one))
            )
        except Rejected as refused:
            if call.id not in self._first_calls.replacing or call.address not in self._replaced:
                raise
            raise self._put_back(sent, refused) from refused
        try:
            learnt = self._created_ids(sent, response)
            for id in learnt.values():
                # No later path could name it.
                if why := path_segment_problem(id):
                    raise InvalidResponse(
                        f"the service returned an id for {call.address} that cannot be used: {shorten(why)}"
                    )
            return learnt
        except DuplicateResource:
            raise
        except ApiError as error:
            # The call was accepted; only its result could not be read.
            raise WriteOutcomeUnknown(error.message, hint=error.hint, operation=call.operation) from error

    def _put_back(self, sent: IssuedRequest, refused: Rejected) -> ApiError:
        """Create an assignment again that was deleted first, where the new one is refused; return the error."""
        client, call, check = sent.client, sent.values, grant_verification(sent.call, any_audience=True)
        try:
            if check is not None and {*check.granted(call)} <= {*check.visible(client.call, call)}:
                return refused  # Trying other values has put it back.
            self._resolver.before_retry(sent.call)
            sent.send_again(body_of_live(client.spec, sent.body, self._replaced[sent.call.address]))
            done = "it is created again as it was, without the progress of people"
        except ApiError as error:
            done = f"it was deleted, and creating it as it was failed, too: {error.message}"
        return refused.restated(Rejected, refused.hint, f"{refused.message}; {done}")

    def _created_ids(self, sent: IssuedRequest, response: Json) -> Learnt:
        """Return the ids that an accepted call created, looked up if the response lacks them; verify a grant."""
        call = sent.call
        if check := self._grants.get(call.id):
            verify_grant(sent, check, self._resolver)
        kind = KINDS[call.address.kind]
        learnt, listing = _ids_in(call, kind, response), kind.list_operation
        created = choices_created_by(call) if call.address.kind == CUSTOM_FIELD else frozenset[Ref]()
        if is_creation(call.operation):
            created |= {Ref(call.address)}
        if listing is None or created <= learnt.keys():
            return learnt
        # Later calls may need these ids.
        find = partial(_find_created_ids, sent.client, call, kind, listing)
        return {**learnt, **self._resolver.poll(find, bool, self._resolver.settle_after_loss)}

    def _response(self, sent: IssuedRequest) -> Json:
        """Return the response; None for a DELETE that is refused because what it deletes does not exist any more.

        The API specification does not show the status of that (Errors), so any that may mean it is looked into.
        """
        call = sent.call
        try:
            return sent.client.send(
                call.method,
                sent.path,
                query=call.query,
                body=sent.body,
                operation=call.operation,
                on_resume=lambda: self._resolver.before_retry(call),
                label=call.id,
            )
        except Rejected as refused:
            # A service may refuse to delete what does not exist with another status than 404 or 410.
            if call.method == "DELETE" and (
                refused.is_missing or (refused.status in (400, 409, 422) and self._resolver.is_done(sent))
            ):
                return None
            raise self._explain_refusal(sent, refused) from refused

    def _explain_refusal(self, sent: IssuedRequest, refused: Rejected) -> ApiError:
        """Decide with one read whether a 403 is about a resource in use or the credential, where it may be either.

        On any other operation, a 403 is about the credential.
        """
        if (missing := missing_manager_right(sent, refused)) is not None:
            return missing
        if not refused.is_forbidden:
            return refused.restated(Rejected, HINT_ON_EXISTING) if sent.call.address in self._updated else refused
        if sent.call.operation in REFUSED_IN_USE:
            try:
                sent.client.call(CUSTOM_FIELDS.name)
            except Unauthorized as unauthorized:
                return unauthorized
            return refused.restated(ResourceInUse, REFUSED_IN_USE[sent.call.operation])
        return refused.restated(
            Unauthorized, "This token can read but has no permission for this call. Use one that has."
        )


def _ids_in(call: Call, kind: Kind, answer: Json) -> Learnt:
    """Return the ids in the response to a call: that of a created resource, as its listing has it."""
    if kind.name == CUSTOM_FIELD:
        return ids_of_field(call.address, answer)
    if kind.list_operation is None or not is_creation(call.operation):
        return {}
    return id_in_response(call.address, answer, kind.list_operation.id)


def _find_created_ids(client: Client, call: Call, kind: Kind, listing: ListOperation) -> Learnt:
    """Find the ids of a creation with an unreadable response by its name.

    Raises DuplicateResource, and ApiError where the listing may be incomplete.
    """
    # Sequential: all threads of the pool may be here, and would deadlock waiting for each other.
    with WorkerPool(lambda: client, parallelism=1, executor=InlineExecutor()) as pool:
        live = ConcurrentReader(pool, client.spec).rows(listing)
    if live.incomplete:
        raise InvalidResponse(live.incomplete, operation=listing.name)
    matches = [row for row in live.rows if listed_name(kind, row) == call.address.name]
    if len(matches) > 1:
        raise DuplicateResource(
            f"{call.address} is live more than once, with the ids {', '.join(str(row[listing.id]) for row in matches)}",
            hint="Delete the one that is not in use, and plan again.",
            operation=call.operation,
        )
    return _ids_in(call, kind, matches[0]) if matches else {}
