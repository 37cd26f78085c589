"""Find the values of dialect keys under which a call does what was planned, where those assumed do not.

The API specification is silent on these points. The resource of the call is planned again under other values, what
that plan sends is sent, and the resource is read back. Nothing but this resource is touched, and every call sent to it
is one that the plan announces, written in another way.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from functools import partial
from math import inf
from operator import not_
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.api.spec.dialect_candidates import (
    CLEAR_TIME,
    EVERYONE_ID,
    ON_EXISTING,
    TIME_FORMAT,
    WHO_CAN_MANAGE,
    Value,
    joint_values,
    likeliest,
    mentions,
)
from lmsconf.api.spec.operations import load_api_description
from lmsconf.api.spec.value_encoding import NEVER_CLEARED, OMITTED, answer_value_key, clear_answer_key
from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest, issued
from lmsconf.apply.explain_mismatch import deviates
from lmsconf.apply.replanning import own_changes
from lmsconf.errors import ApiError, InvalidResponse, ProblemsFound, Rejected, WriteOutcomeUnknown
from lmsconf.kinds.assignment.steps import TARGET_KEYS, body_of_live
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.model.calls import Call
from lmsconf.model.names import normalize_name
from lmsconf.model.plan import Action, Change, Plan
from lmsconf.model.snapshot import Listing
from lmsconf.planner.plan import plan_without_effects
from lmsconf.workspace.reader import WorkspaceReader

_NOT_TRIED: Final = frozenset((ON_EXISTING, "custom-fields.in-use", WHO_CAN_MANAGE, EVERYONE_ID))
"""Keys whose other values would delete something, foretell a refusal, or have no candidates."""
_CLEARING: Final = {clear_answer_key(type): answer_value_key(type) for type in ("CHOICE", "MULTI_SELECT", "TEXT")}
"""Key of what clears an answer → that of how such an answer is given."""
_MOST: Final = 300
"""How many values, or joint_values of them, are tried for one call."""
_WHOLE: Final = 1000
"""How many differences a resource counts that is still to be created."""
_PARTS: Final[Mapping[str, set[str]]] = {
    **{key: {part} for part, key in TARGET_KEYS.items()},
    TIME_FORMAT: {"visible_from", "visible_until"},
}
"""Key → the parts of an assignment that show whether it is right."""


class Attempt(Struct, frozen=True):
    """How far a call gets under some values: the text of its refusal, or None, and how many differences are left.

    left: inf where there is no plan under them.
    """

    values: Mapping[str, Value]
    refusal: str | None = None
    left: float = inf

    @property
    def is_done(self) -> bool:
        """Whether the call has done what was planned."""
        return self.refusal is None and not self.left

    def without(self, value: Value) -> tuple[str | None, float]:
        """Return refusal and differences, without the value that the refusal repeats, to compare two values."""
        if self.refusal is None:
            return None, self.left
        # The path of the request, which the refusal names too, may have the same word.
        return re.sub(rf"(?<![\w/]){re.escape(str(value))}(?!\w)", "", self.refusal), self.left


class ValueSearch:
    """The search for one call. rewrite: changes a body before it is sent."""

    def __init__(
        self,
        workspace: WorkspaceReader,
        plan: Plan,
        resolver: AmbiguousWriteResolver,
        fields: Mapping[str, FieldRow],
        sent: IssuedRequest,
        rewrite: Callable[[object], object] | None = None,
    ) -> None:
        self._now, self._fields = workspace.now, fields
        self._own = own_changes(workspace, plan, sent.call.address)
        self._read = partial(workspace.read, self._own)
        self.client, self._sent, self.call = sent.client, sent, sent.call
        self._resolver, self._rewrite = resolver, rewrite or (lambda body: body)
        self._left_of = partial(differences_left, plan, sent.call)
        # So it may be deleted and created again.
        self._creates = creates(plan, sent.call)
        self._at_first: Mapping[str, Listing[Any]] = {}
        self._base: Mapping[str, Value] = {ON_EXISTING: "recreate"} if self._creates else {}

    def _replan(self, values: Mapping[str, Value]) -> Plan | None:
        """Plan the plan's own changes of the resource again under these values; None if there is no such plan."""
        with suppress(ProblemsFound):
            spec, own = self.client.spec.with_values(values), self._own
            return plan_without_effects(own.manifests, self._snapshot, own.policy, spec, created_at=self._now()).plan
        return None

    def explain(self, keys: frozenset[str], refusal: str | None) -> Attempt:
        """Return the values of some of the keys under which nothing of the call is left, or less than before.

        refusal: the text with which the call was refused; None if it was accepted.
        """
        found = self._find(keys, refusal)
        names = {normalize_name(path.removeprefix("answers.")) for path in self._paths_left({})}
        left = {clear_answer_key(one.type) for one in self._fields.values() if normalize_name(one.name) in names}
        self._answered = keys & left
        # An object that clears an answer has the form of one that gives it.
        unknown = frozenset(_CLEARING[key] for key in self._answered if not self.client.spec.is_known(_CLEARING[key]))
        if not unknown or self._is_enough:
            return found
        again = self._find(self._answered | unknown, refusal)
        return again if again.is_done else found

    def _find(self, keys: frozenset[str], refusal: str | None) -> Attempt:
        """Return the values, as `explain` does, without a second search for forms of answers."""
        self._snapshot = self._read()
        self._sends = 0
        self._idle: dict[str, str | None] = {}
        self._at_first = self._at_first or self._snapshot.listings
        self._accepted: list[Mapping[str, Value]] = []
        self._is_refused = refusal is not None
        reached = Attempt({}, refusal, self._left({}))
        while reached.left < inf:
            tried = keys - _NOT_TRIED if reached.refusal is not None else self._unshown(keys, reached.values)
            step = self._step(tried, reached) or self._smaller_step(tried, reached) or self._joint_step(tried, reached)
            if step is None:
                break
            if step.is_done:
                return step
            reached = step
        if self._is_late and len(self._accepted) == 1:
            return Attempt(self._accepted[0], left=0)
        if not self._creates:
            self._put_back(keys)
            if reached.refusal is None and inf > self._left(reached.values) > reached.left:
                self._tried(reached.values)  # The last values that were tried have lost what these keep.
        return Attempt({} if self._is_late else reached.values)

    def _unshown(self, keys: frozenset[str], values: Mapping[str, Value]) -> frozenset[str]:
        """Return keys to try without those of parts of an assignment that show; all where everything shows."""
        paths, tried = self._paths_left(values), keys - _NOT_TRIED
        return frozenset(key for key in tried if not _PARTS.get(key, paths).isdisjoint(paths)) if paths else tried

    def _paths_left(self, values: Mapping[str, Value]) -> set[str]:
        """Return the keys of the resource that a plan under these values still changes."""
        return {field.path for one in self._changes(values) for field in one.fields}

    def _changes(self, values: Mapping[str, Value]) -> list[Change]:
        """Return the changes of the resource in a plan under these values; none if there is no plan."""
        plan = self._replan(values)
        return [] if plan is None else [one for one in plan.changes if one.address == self.call.address]

    def _put_back(self, keys: frozenset[str]) -> None:
        """Create again what was deleted to be created in another form: as assumed, or without the assumed names."""
        names = map(self.client.spec.behaviour, load_api_description().names.keys() & keys)
        for left_out in (frozenset[str](), frozenset(names)):
            if self._left({}) != _WHOLE:
                return
            self._rewrite = partial(_without, left_out)
            self._tried({})

    def _step(self, keys: frozenset[str], reached: Attempt) -> Attempt | None:
        """Return the next values that are nearer to what was planned, and how far they get; None if there are none.

        Nearer is what leaves less, and the one value of a key to which the service says something else than to all
        others: it refuses another name then, or, where it passes over names that it does not know, a value.
        """
        found, text = reached.values, reached.refusal or ""
        current = self.client.spec.with_values(found).behaviour
        for key in sorted(keys, key=lambda key: (key in found, not mentions(text, current(key)), key)):
            seen: dict[object, list[Attempt | None]] = {reached.without(current(key)): [None]}
            for value in likeliest(key, current(key), text):
                now = self._once({**found, key: value})
                if now.left < reached.left:
                    return now
                if now.left < inf:
                    seen.setdefault(now.without(value), []).append(now)
            alike, *others = sorted(seen.values(), key=len, reverse=True)
            odd = others[0][0] if len(others) == 1 and len(alike) > 1 and len(others[0]) == 1 else None
            # Once for each key: only what leaves less may replace what was found. A time that is refused in one form
            # alone is in the wrong form, and not nearer.
            if odd is not None and key not in found and key != TIME_FORMAT:
                # What a refused call has not changed is no step back.
                return replace(odd, left=reached.left)
        return None

    def _smaller_step(self, keys: frozenset[str], reached: Attempt) -> Attempt | None:
        """Return the values under which a creation is accepted that leaves optional parts out, which are set later.

        Where errors have no text, only the right names together are accepted: of five names, more than can be tried.
        """
        # Other calls can set the optional parts of a person later, who harms nobody without them.
        if reached.values or reached.refusal is None or self.call.operation != "users.create":
            return None
        spoken, rewrite = self.client.spec.behaviour, self._rewrite
        body = self._sent.body if isinstance(self._sent.body, dict) else {}
        required = self.client.spec.operations[self.call.operation].required_body_names
        # A flag that says no is sent in any case: without it, the service might do what nobody planned.
        demanded = frozenset(key for key in keys if spoken(key) in required or body.get(spoken(key)) is False)
        optional, nothing = keys - demanded, frozenset[str]()
        for kept in [nothing] if demanded else [*({one} for one in sorted(optional)), nothing]:
            self._rewrite, self._sends = partial(_without, frozenset(map(spoken, optional - kept))), 0
            now, tried = self._once({}), demanded | kept
            step = now if now.left < reached.left else self._step(tried, reached) or self._joint_step(tried, reached)
            if step is not None:
                return step
        self._rewrite = rewrite
        return None

    def _joint_step(self, keys: frozenset[str], reached: Attempt) -> Attempt | None:
        """Return the next values of several keys at once that are nearer to what was planned."""
        names, spec = load_api_description().names.keys(), self.client.spec.with_values(reached.values)
        joint = joint_values(sorted(keys), spec.behaviour, reached.refusal or "")
        # Where names are passed over, each shows by itself, but for a time whose form is wrong too.
        likely = (more for more in joint if reached.refusal is not None or not names >= more.keys())
        attempts = (self._once({**reached.values, **more}) for more in likely)
        return next((now for now in attempts if now.left < reached.left), None)

    @property
    def _is_enough(self) -> bool:
        """Whether no other value is tried: the run was interrupted, or there are too many."""
        return self._sends >= _MOST or self._resolver.stop_waiting.is_set()

    def _once(self, values: Mapping[str, Value]) -> Attempt:
        """Try values, but only so many; return how far they get."""
        return Attempt(values) if self._is_enough else self._tried(values)

    @property
    def has_changed(self) -> bool:
        """Whether what is read of the resource differs from what it was before the search."""
        return self._snapshot.listings != self._at_first

    def what_remains(
        self, keys: frozenset[str], found: Attempt, values: Mapping[str, Value]
    ) -> tuple[Mapping[str, Value], frozenset[str]]:
        """Return the values that explain a call that no attempt has done, and the keys to find out besides.

        values: those of what was found that are certain, and of what it has changed along.
        """
        left = self._unshown(keys - values.keys(), {}) if found.values else frozenset[str]()
        if values or self._is_enough:
            return values, left
        body, spoken = self._sent.body if isinstance(self._sent.body, dict) else {}, self.client.spec.behaviour
        names = {key for key in load_api_description().names if body.get(spoken(key)) not in (None, "")}
        if keys & {ON_EXISTING, CLEAR_TIME} and not self._creates and not keys & names:
            # The parts have the right names, and every way to write them was tried. What clears a time is not
            # needed where an assignment is created again; any other value would be refused again.
            if CLEAR_TIME in keys or self._refuses_what_is_live():
                return {ON_EXISTING: "recreate"}, frozenset()
        elif keys <= _CLEARING.keys() | {OMITTED}:
            # The call is right in all else, and every form that may clear an answer was tried.
            return dict.fromkeys(sorted(self._answered), NEVER_CLEARED), frozenset()
        return {}, left

    def delete_created(self) -> None:
        """Delete what a call has created that nothing explains; what was there before stays."""
        plan = self._replan(self._base)
        if self._creates and plan is not None:
            with suppress(ApiError), self.client.speaking(self._base):
                self._refusal([call for call in self._sendable(plan) if call.method == "DELETE"])

    def _refuses_what_is_live(self) -> bool:
        """Return whether the assignment is refused as it is live, too: not for what the call says."""
        if not self._is_refused:
            return True
        live = next((one.before for one in self._changes({})), None)
        with suppress(Rejected):
            self._sent.send_again(body_of_live(self.client.spec, self._sent.body, live))
            return False
        return True

    def as_spoken(self, values: Mapping[str, Value]) -> IssuedRequest | None:
        """Return the call under these values; None if no plan has it."""
        self._snapshot = self._read()
        plan = self._replan(values)
        alike = [call for call in plan.calls if call.operation == self.call.operation] if plan else []
        with suppress(KeyError):
            return replace(issued(self.client, alike[0], self._sent.ids), call=self.call) if alike else None
        return None

    def _tried(self, values: Mapping[str, Value]) -> Attempt:
        """Send what a plan under these values sends; return how far that gets."""
        under = {**self._base, **values}
        plan = self._replan(under)
        if plan is None:
            return Attempt(values)
        calls = self._sendable(plan)
        if values and not calls and self._is_late:
            return Attempt(values)
        # The same text for calls that are sent alike.
        before, sent = self._snapshot.listings, repr([id(self._rewrite), *((one.path, one.body) for one in calls)])
        lag = self._resolver.usual_lag(self.call.address.kind, self._sends)
        if values and sent in self._idle:
            return Attempt(values, self._idle[sent], self._left(under))
        was = self._left(under) if lag else inf
        with self.client.speaking(under):
            refusal = self._refusal(calls)
        self._sends += 1
        if calls:
            self._snapshot = self._read()
            if self._snapshot.listings == before:
                # Values of other keys may give the same calls: they would change nothing, either.
                self._idle[sent] = refusal
        if calls and refusal is None and lag:
            # What shows late would be taken for the effect of the values that are tried next.
            self._resolver.poll(partial(self._left_now, under), lambda left: left < was, lag)
        if calls and refusal is None and self._is_refused:
            self._accepted.append(values)
            # A search that was refused first waits for two accepted calls.
            if len(self._accepted) <= 2:
                self._resolver.poll(partial(self._left_now, under), not_)
        return Attempt(values, refusal, self._left(under))

    @property
    def _is_late(self) -> bool:
        """Whether nothing is left with the assumed values: an earlier call shows only now."""
        return not self._left(self._base)

    def _left_now(self, values: Mapping[str, Value]) -> float:
        """Return how many planned differences a fresh reading leaves."""
        self._snapshot = self._read()
        return self._left(values)

    def _sendable(self, plan: Plan) -> list[Call]:
        """Return the calls of a plan that do the same as the call, and those that they need for the same resource."""
        # Others that the first plan did not have may follow from a wrong value, and show what is left.
        own = [one for one in plan.calls if one.address == self.call.address]
        needed = {id for one in own if one.operation == self.call.operation for id in one.needs}
        return [one for one in own if one.operation == self.call.operation or one.id in needed]

    def _refusal(self, calls: list[Call]) -> str | None:
        """Send calls; return the text of the first refusal, but for what is deleted already."""
        try:
            for call in calls:
                self._resolver.before_retry(self.call)
                now = issued(self.client, call, self._sent.ids)
                with suppress(Rejected) if call.method == "DELETE" else nullcontext():
                    now.send_again(self._rewrite(now.body))
        except Rejected as refused:
            return refused.message
        except (WriteOutcomeUnknown, InvalidResponse):
            return None  # Reading back shows what became of it.
        except KeyError:
            return ""  # It needs a resource that this run has not created.
        return None

    def _left(self, values: Mapping[str, Value]) -> float:
        """Return how many planned differences are left under these values; inf if there is no plan."""
        plan = self._replan(values)
        return inf if plan is None else self._left_of(plan)


def _without(names: frozenset[str], body: object) -> object:
    """Return a body without the parts of these names."""
    return {name: value for name, value in body.items() if name not in names} if isinstance(body, dict) else body


def creates(plan: Plan, call: Call) -> bool:
    """Whether a plan creates the resource of a call."""
    return any(one.action is Action.CREATE for one in plan.changes if one.address == call.address)


def differences_left(plan: Plan, call: Call, fresh: Plan, *, is_gone: bool = False, is_new: bool = False) -> float:
    """Return how many differences of a plan a fresh plan still has, for the resource of a call.

    is_gone: the call itself is not left: of several calls of its operation, the others do the rest. is_new: it
    creates the resource, of which a service may set parts by itself. No value explains those, or a time that is
    kept otherwise.
    """
    planned = [one.operation for one in plan.calls if one.address == call.address]
    own = [one.operation for one in fresh.calls if one.address == call.address]
    is_done = is_gone and planned.count(call.operation) > 1
    # Calls that were not planned may follow from a wrong value.
    if all(one in planned and (is_done or one != call.operation) for one in own):
        return 0
    changes = [one for one in fresh.changes if one.address == call.address]
    if any(one.action is Action.CREATE for one in changes):
        return _WHOLE
    fields = [field for one in changes for field in one.fields]
    wanted = [field for one in plan.changes if one.address == call.address for field in one.fields]
    is_set = is_new and all(one.before and one.after is None for one in fields)
    if fields and (is_set or deviates(fields, wanted)):
        return 0
    # A value that is there, and differs, is nearer than none.
    return 1 + sum(1 if field.before else 2 for field in fields)
