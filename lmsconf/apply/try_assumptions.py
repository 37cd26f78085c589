"""Try each assumption about the service with one call, before other calls rest on it.

The API specification leaves points open that calls rest on: names of body fields, how an answer is written, whether
adding people to a list keeps those who are in it. The first call that rests on such a point is sent alone, and its
resource is read before and after it. If anything but the planned change shows, what was lost is put back, the value
that explains it is searched for, and no other call that rests on the point is sent.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import Final, TypeAlias

from msgspec.structs import replace

from lmsconf.api.spec.dialect_candidates import (
    ADD_MODE,
    BATCH,
    CLEAR_TIME,
    MANAGED_GROUPS,
    TIME_FORMAT,
    WHO_CAN_MANAGE,
    WINDOW_KEYS,
    Value,
)
from lmsconf.api.spec.value_encoding import ANSWERS, OMITTED
from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest, is_left
from lmsconf.apply.check_first_changes import (
    LISTS,
    ComparedAnswers,
    ComparedList,
    answer_keys,
    empty_parts,
    named_people,
    without_second,
)
from lmsconf.apply.explain_mismatch import look_at
from lmsconf.apply.scheduler import LAST
from lmsconf.apply.search_dialect import ValueSearch, creates, differences_left
from lmsconf.apply.side_effects_on_people import ManagerRightMissing, SideEffectCheck, side_effect_category
from lmsconf.documents.journal.journal_reader import seen_values
from lmsconf.documents.journal.journal_writer import Journal
from lmsconf.errors import ApiError, LmsconfError, Problem, Rejected, WriteOutcomeUnknown, WrongAssumption
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD
from lmsconf.manifest.edit.text_edits import format_keys
from lmsconf.model.address import EVERYBODY, Address
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.names import normalize_name
from lmsconf.model.plan import Plan
from lmsconf.planner.plan import calls_by_assumption
from lmsconf.workspace.reader import WorkspaceReader

_BY_THEMSELVES: Final = frozenset((BATCH, WHO_CAN_MANAGE, MANAGED_GROUPS))
"""Keys that not every call that works shows to be right."""
Send: TypeAlias = Callable[[IssuedRequest], Json]
"""Sends a call, and returns the response; None where it was lost, and the call is found to be carried out."""


class FirstCalls:
    """The first calls of one run. One of those for which `is_serial` holds is sent at a time.

    A call rests on the keys that neither the project file states nor an earlier run has seen. What this run sees is
    noted in its journal as `seen_values` reads it: a key alone, with the operation that has shown it, or with `empty`
    where only false or nothing was sent. The first call of each sort is compared with what it does along, reported in
    `side_effects`.
    """

    def __init__(
        self, workspace: WorkspaceReader, plan: Plan, resolver: AmbiguousWriteResolver, journal: Journal | None
    ) -> None:
        self._plan, self._resolver, self._journal, self._spec = plan, resolver, journal, workspace.connection.spec
        self.side_effects: list[Problem] = []
        self._keys = {call.id: frozenset[str]() for call in plan.calls}
        self._seen: Mapping[str, str] = {}
        self._watched = set[str | None]()
        if not workspace.settings.workspace.embedded and not workspace.connection.is_given:
            self._seen = seen_values(workspace.settings.root, workspace.connection.url)
            for key, calls in calls_by_assumption(plan, self._spec).items():
                for call in calls:
                    if not self._is_seen(f"{key} {call.operation}" if key == ADD_MODE else key):
                        self._keys[call.id] |= {key}
            sorts = {*map(side_effect_category, plan.calls)} - {None}
            self._watched = {sort for sort in sorts if not self._is_seen(f"{MANAGED_GROUPS} {sort}")}
        self._untried = set[str]().union(*self._keys.values())
        self._empty = {
            one.id: self._keys[one.id] & empty_parts(self._spec, one.body) for one in plan.calls if self._keys[one.id]
        }
        self._shown_empty = {key for key in self._untried if self._is_seen(f"{key} empty")}
        self._to_others = {
            one.address
            for one in plan.changes
            for field in one.fields
            if field.added and members(one.before).get(field.path)
        }
        deletes = {call.id: call.address for call in plan.calls if call.method == "DELETE"}
        self._removed = frozenset(call.path for call in plan.calls if call.id in deletes)
        self.replacing = {
            call.id: need for call in plan.calls for need in call.needs if deletes.get(need) == call.address
        }
        self._followed = {need: id for id, need in self.replacing.items() if self._keys[id]}
        # A service may add to one list, and replace another.
        self._lists = {one.operation for one in plan.calls if one.operation in LISTS and ADD_MODE in self._keys[one.id]}
        self._most_added = 1
        self._able: set[str] = set()
        self._found: dict[str, Value] = {}
        self._wrong: dict[str, str] = {}
        self._fields: dict[str, FieldRow] = {}
        self._search = partial(ValueSearch, workspace, plan, resolver, self._fields)

    def _is_seen(self, name: str) -> bool:
        """Whether the project states a key, or an earlier run has seen its assumed value. name: that in a journal."""
        key = name.split()[0]
        return self._spec.is_known(key) or self._seen.get(name) == self._spec.behaviour(key)

    def _note(self, name: str) -> None:
        """Note that a call has shown the assumed value of a key to be right. name: that in a journal."""
        self._untried.discard(name)
        # Another run has to try again what depends on what is live.
        if self._journal is not None and name != TIME_FORMAT:
            self._journal.record_seen(name, self._spec.behaviour(name.split()[0]))

    def priority(self, call: Call) -> int:
        """Return how many untried keys a call rests on: the fewer, the more its outcome says about each.

        Of calls with as many, those come first whose values show whether the names are right.
        """
        # These wait for other calls: what is deleted to be created again, an addition to people in a list
        # for one to an empty list, which shows what adding does, and what concerns everyone.
        waits = (
            call.id in self._followed
            or (call.operation in self._lists and call.address in self._to_others)
            or (self._keys[call.id] & self._untried and call.address.name.endswith(f" -> {EVERYBODY}"))
        )
        return 2 * len(self._keys[call.id]) + bool(self._empty.get(call.id)) + LAST * bool(waits)

    def is_serial(self, call: Call) -> bool:
        """Whether a call is one of the first to rest on an assumption: of these, one is sent at a time."""
        followed = self._followed.get(call.id, "")
        return any(
            some & self._wrong.keys() or some & self._untried - (self._shown_empty & self._empty.get(id, frozenset()))
            for id, some in ((call.id, self._resting(call)), (followed, self._keys.get(followed, frozenset())))
        )

    def _resting(self, call: Call) -> frozenset[str]:
        """Return the keys that a call rests on, as far as it can be known before it is sent."""
        keys = self._keys[call.id]
        if call.operation in LISTS:
            # An empty list can show it, too.
            keys = keys | ({ADD_MODE} & self._untried) if call.operation in self._lists else keys - {ADD_MODE}
            if named_people(call.body) <= self._most_added:
                keys -= {BATCH}
        return keys

    def send(self, sent: IssuedRequest, send: Send) -> Json:
        """Send a call; compare what it changes if it is the first to rest on an assumption, or of its sort.

        Raises WrongAssumption if the call did something else than planned, or if it rests on a key for which an earlier
        one did; Rejected if it is refused, and no other value of a key helps.
        """
        keys = self._resting(sent.call)
        followed = self._keys.get(self._followed.get(sent.call.id, ""), frozenset())
        if wrong := sorted((keys | followed) & self._wrong.keys()):
            if sent.call.id not in self.replacing:
                raise WrongAssumption(f"it rests on {wrong[0]}, too: {self._wrong[wrong[0]]}", sent=False)
            # What it takes the place of is deleted already.
            with sent.client.speaking(self._found):
                return send(self._search(sent).as_spoken(self._found) or sent)
        keys = keys & self._untried if self.is_serial(sent.call) else frozenset()
        if keys and sent.call.operation == ANSWERS:
            # A body does not show the types of the fields.
            keys = answer_keys(sent, self._fields) & self._untried
        return self._tried_along(sent, keys, send)

    def _tried_along(self, sent: IssuedRequest, keys: frozenset[str], send: Send) -> Json:
        """Send a call that rests on these keys; compare what the service may change of a person along."""
        sort = side_effect_category(sent.call)
        changes = self._plan.changes if sort in self._watched else ()
        person = SideEffectCheck(sent, self._resolver, keys, self._able, self._removed, changes)
        alone = keys - {MANAGED_GROUPS} if person.key else keys - {MANAGED_GROUPS, WHO_CAN_MANAGE}
        try:
            response = self._tried_alone(sent, alone, send)
        except WrongAssumption as failed:
            if person.key is not None:
                self._compare_along(person, sent, failed)
            raise
        along = self._compare_along(person, sent)
        if person.key is not None:
            self._note(person.key)
        if along is not None and sort in self._watched:
            self._watched.discard(sort)
            self.side_effects.extend(along)
            self._note(f"{MANAGED_GROUPS} {sort}")
        return response

    def _compare_along(
        self, person: SideEffectCheck, sent: IssuedRequest, failed: WrongAssumption | None = None
    ) -> list[Problem] | None:
        """Return the warnings of what a call has changed along; None if that cannot be read, and need not be.

        Raises WrongAssumption, with that of the call if it failed, too.
        """
        try:
            return person.compare()
        except ApiError as error:
            if person.key is None:
                return None
            raise WriteOutcomeUnknown(
                f"the call was accepted, but people could not be read after it: {error.message}",
                hint=error.hint,
                operation=sent.call.operation,
            ) from error
        except WrongAssumption as wrong:
            message, values = (f"{failed.message}; ", failed.values) if failed else ("", {})
            values = {**values, **wrong.values}
            raise self._told((), f"{message}{wrong.message}", values, refused=False, is_done=False) from wrong

    def _tried_alone(self, sent: IssuedRequest, keys: frozenset[str], send: Send) -> Json:
        """Send a call that rests on these keys, and compare what it is for."""
        if not keys:
            return send(sent)
        if sent.call.operation in LISTS and ADD_MODE in keys:
            return self._first_addition(sent, keys, send)
        compared = (
            ComparedAnswers(sent, self._resolver, self._fields, self._answers_changed(sent.call.address))
            if sent.call.operation == ANSWERS
            else None
        )
        try:
            response = send(sent)
            if compared is None:
                self._refuse_unshown(sent)
            right = keys if compared is None else compared.right(keys)
        except (Rejected, WrongAssumption) as failed:
            # An earlier call shows nothing of a value that depends on what is live.
            keys |= {TIME_FORMAT} & self._keys[sent.call.id]
            raise self._explained(keys, failed, self._search(sent), compared) or failed from failed
        self._note_right(right, sent.call)
        self._note_added(sent)
        return response

    def _first_addition(self, sent: IssuedRequest, keys: frozenset[str], send: Send) -> Json:
        """Add people to a list, naming all who are in it, too, or, in a new list, one before the others; compare it."""
        compared = ComparedList(sent, self._resolver)
        begun = compared.begun()
        is_small = len(compared.everybody) <= self._spec.integer_behaviour(BATCH)
        compared, is_whole = begun or compared, begun is None and bool(compared.others) and is_small
        for whole in (True, False) if is_whole else (False,):
            added = replace(sent, body=compared.rewritten(sent.body)) if whole else compared.sent
            try:
                response = send(added)
                # A list that was begun shows first whether who was in it stays.
                shows = begun is not None and compared.compare()
                if not shows:
                    self._refuse_unshown(sent)
                    shows = compared.compare()
                break
            except (Rejected, WrongAssumption) as failed:
                search = self._search(sent, compared.rewritten if whole else None)
                error = self._explained(keys, failed, search, compared) or failed
                if not whole or not isinstance(error, Rejected) or error.is_forbidden or compared.has_archived:
                    raise error from failed
                # A service may refuse people who are in the list already: the new ones are named alone.
                self._wrong = {key: why for key, why in self._wrong.items() if key not in keys}
                self._untried |= keys
                self._resolver.before_retry(sent.call)
        self._note_added(added)
        # A call that names everybody in the list shows nothing about the others.
        self._note_right(keys - {ADD_MODE}, sent.call)
        if shows and compared.others and not whole:
            self._note(f"{ADD_MODE} {sent.call.operation}")
            self._lists.discard(sent.call.operation)
        return response

    def _answers_changed(self, address: Address) -> set[str]:
        """Return the normalized names, old and new, of the fields whose answers the plan changes for a person."""
        own = [field.path for one in self._plan.changes if one.address == address for field in one.fields]
        changed = {normalize_name(path.removeprefix("answers.")) for path in own if path.startswith("answers.")}
        fields = [one for one in self._plan.changes if one.address.kind == CUSTOM_FIELD]
        names = [(str(name.before), str(name.after)) for one in fields for name in one.fields if name.path == "name"]
        return changed | {normalize_name(old) for old, new in names if normalize_name(new) in changed}

    def _refuse_unshown(self, sent: IssuedRequest) -> None:
        """Raise WrongAssumption if a fresh plan of the resource has something of the call left, or more calls."""
        try:
            fresh = self._resolver.shown(sent)
        except WrongAssumption as second:
            raise without_second(sent, self._resolver, second) from second
        is_new = sent.call.id in self.replacing or creates(self._plan, sent.call)
        if fresh is not None and differences_left(
            self._plan, sent.call, fresh, is_gone=not is_left(fresh, sent), is_new=is_new
        ):
            raise WrongAssumption(f"{sent.call.operation} was accepted, and does not show as planned")

    def _explained(
        self,
        keys: frozenset[str],
        failed: Rejected | WrongAssumption,
        search: ValueSearch,
        compared: ComparedAnswers | ComparedList | None,
    ) -> LmsconfError | None:
        """Return the error of a call that did not do what was planned, and hold back what rests on the same keys.

        compared: what the calls of the search may have changed besides. None if the call works as it was assumed, when
        it is sent once more.
        """
        if isinstance(failed, WrongAssumption) and failed.values:
            return self._told(keys, failed.message, failed.values, refused=False, is_done=failed.is_done)
        if isinstance(failed, Rejected) and failed.is_forbidden:
            return failed
        refused, message = isinstance(failed, Rejected), failed.message
        found = search.explain(keys, message if refused else None)
        values, is_whole = dict(found.values), True
        if not found.is_done:
            # Whose managers lack the right is known; a name that is only refused in another way is not. A call that
            # leaves a time or an answer as it is, is accepted and does not clear it.
            is_told = isinstance(failed, ManagerRightMissing)
            values = {k: v for k, v in values.items() if k != CLEAR_TIME and v != "omit" and not is_told}
        try:
            with search.client.speaking(values):
                is_whole = compared is None or compared.compare()
        except WrongAssumption as other:
            message = other.message if found.is_done and not values else f"{message}; {other.message}"
            values |= other.values
        if found.is_done:
            # A call that works says nothing about what it does not name.
            self._note_right(keys - values.keys() - {ADD_MODE, OMITTED}, search.call)
            return self._told(keys, message, values, refused=refused, is_done=is_whole) if values else None
        explained, left = search.what_remains(keys, found, values)
        if not explained:
            search.delete_created()
        if not explained and not search.has_changed and isinstance(failed, Rejected):
            self._hold_back(keys, message)
            hint = look_at(sorted(keys))
            return failed.restated(Rejected, f"{failed.hint}\n{hint}" if failed.hint else hint)
        return self._told(keys, message, explained, left, refused=refused, is_done=False)

    def _told(
        self,
        keys: Collection[str],
        message: str,
        values: Mapping[str, Value],
        left: Collection[str] = (),
        *,
        refused: bool,
        is_done: bool,
    ) -> WrongAssumption:
        """Return the error with the values that explain it, and hold back what rests on their keys.

        left: keys that have to be found out besides.
        """
        self._found |= values
        self._hold_back({*values, *left} or keys, message)
        if is_done:
            message = f"{message}; sent once more with other values, it did what was planned"
        lines = ["Right for this service:", *format_keys(dict(sorted(values.items())), "    ")] if values else []
        if left or not values:
            lines.append(look_at(sorted(left or keys)))
        return WrongAssumption(message, hint="\n".join(lines), values=values, refused=refused, is_done=is_done)

    def _hold_back(self, keys: Iterable[str], message: str) -> None:
        self._untried -= set(keys)
        self._wrong |= dict.fromkeys(keys, message)

    def _note_right(self, keys: frozenset[str], call: Call) -> None:
        """Note keys that a call has shown to be right; of names, whether an empty value alone has shown."""
        empty = self._empty.get(call.id, frozenset())
        if not empty & WINDOW_KEYS & self._untried:
            empty -= {CLEAR_TIME}
        for key in sorted(keys & self._untried - (self._shown_empty & empty) - _BY_THEMSELVES):
            self._note(f"{key} empty" if key in empty else key)
        self._shown_empty |= keys & empty

    def _note_added(self, sent: IssuedRequest) -> None:
        """Note how many people a call has added: a call with more of them is tried, too."""
        if sent.call.operation in LISTS:
            self._most_added = max(self._most_added, named_people(sent.body))
        if BATCH in self._untried and self._most_added >= self._spec.integer_behaviour(BATCH):
            self._note(BATCH)
