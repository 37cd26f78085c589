"""Who is in which audience, before and after a plan.

The members of a smart group follow from its conditions on CHOICE and MULTI_SELECT fields; what a system condition means
is read off the live members. Any other smart group has its live members, and is not known once they can change.
Archived people are in no audience.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Final

from msgspec.structs import replace

from lmsconf.kinds.assignment.types import EVERYONE_KEY, TargetRow, assignment_address, unresolved_audience_label
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, EVERYONE, GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.model.address import Address, Ref, RemoteId, escape
from lmsconf.model.effects import Basis
from lmsconf.model.names import count_noun, grouped, normalize_email, normalize_name
from lmsconf.planner.audience.access_facts import AccessFacts, LiveSmartGroup, moved_audiences
from lmsconf.planner.audience.affected import (
    AccessScope,
    ChangedAssignment,
    ChangedGroup,
    Condition,
    live_terms,
)
from lmsconf.planner.audience.choice_holders import (
    FieldHolders,
    Holders,
    Meaning,
    Reading,
    Readings,
    answer_sets,
    use_of,
    uses_of,
)
from lmsconf.planner.audience.people_sets import (
    Audience,
    AudienceAssignment,
    AudienceKey,
    Bits,
    Terms,
    to_bits,
)

_NOBODY: Final = Audience(before=0, after=0)
_UNREADABLE: Final = Terms(None, None, None)


class Memberships:
    """All audiences of a plan. Positions: those of the live people, then those of new accounts.

    now: the time of the plan, in epoch seconds. fields: the names of those whose answers count beside those of
    conditions. ids, emails: by position, the id of a new account being None. by_email: normalized e-mail, before or
    after the plan → position. changed_people: position → the plan's change. answers_before, answers_after: who picked
    what, of the fields that conditions ask for, and `fields`. compared: whether the predicted members of each smart
    group that could be compared are the live ones. reasons: why something is not known or an estimate; more are added
    as questions are asked.
    """

    def __init__(
        self, facts: AccessFacts, scope: AccessScope, planning: PlanContext, now: int, fields: Iterable[str] = ()
    ) -> None:
        self.facts, self.scope, self.planning, self.now = facts, scope, planning, now
        self.readings, self._changed_fields = Readings(), scope.fields
        self._changed_assignments = grouped(scope.assignments, lambda change: change.content)
        self.reasons: list[str] = []
        self.compared: list[bool] = []
        self._known: dict[AudienceKey, Audience] = {}
        self._add_people()
        asked = chain((group.conditions for group in facts.conditions.values()), scope.smart_groups.values())
        wanted = {condition.field for conditions in asked for condition in conditions or ()}
        wanted |= {id for id in map(self.field_id, fields) if id is not None}
        self.answers_before, self.answers_after = answer_sets(facts, scope, wanted, self.changed_people)
        self._compare_readings()

    def _add_people(self) -> None:
        people, positions = self.facts.people.people, self.facts.people.positions
        created = [person for person in self.scope.people if person.id is None]
        self.ids: list[RemoteId | None] = [*(person.id for person in people), *(None for _ in created)]
        self.emails = [*(person.email for person in people), *(person.address.name for person in created)]
        # Of two accounts with one e-mail, manifests mean the active one.
        active_first = sorted(range(len(people)), key=lambda at: people[at].archived)
        self.by_email = {
            **{normalize_email(people[at].email): at for at in reversed(active_first)},
            **{person.address.name: len(people) + nth for nth, person in enumerate(created)},
            # An earlier e-mail stays known: manifests may rename an account.
            **{
                at.name: positions[id]
                for (kind, id), at in self.scope.addresses.items()
                if kind == USER and not isinstance(id, Ref) and id in positions
            },
        }
        places = (
            (self.by_email[person.address.name] if person.id is None else positions.get(person.id), person)
            for person in self.scope.people
        )
        self.changed_people = {position: person for position, person in places if position is not None}
        size = len(self.ids)
        self.active_before = to_bits((n for n, person in enumerate(people) if not person.archived), size)
        archived = to_bits((n for n, person in self.changed_people.items() if person.archived), size)
        new = to_bits(range(len(people), size), size)
        self.active_after = (self.active_before & ~archived) | new

    def _compare_readings(self) -> None:
        """Compare what system conditions may mean with the live members of all smart groups."""
        groups = [
            (uses, group.conditions, group.members)
            for group in self.facts.conditions.values()
            if group.members is not None and (uses := uses_of(group.conditions))
            if self._why_not_derived(group.conditions, self.answers_before, self.active_before) is None
        ]
        for uses, conditions, members in sorted(groups, key=lambda group: len(group[0])):
            self.readings.compare(
                uses,
                partial(self._matching, conditions, self.answers_before, self.active_before),
                self._active(members),
            )

    def field_id(self, name: str) -> RemoteId | Ref | None:
        """Return the id of a field by its name after the plan, or else by its live one."""
        if self.planning.registry.has(CUSTOM_FIELD, name):
            return self.planning.registry.id_or_ref(Ref(Address.of(CUSTOM_FIELD, name)))
        return next((id for id, row in self.facts.fields.items() if normalize_name(row.name) == name), None)

    def audience(self, key: AudienceKey) -> Audience:
        """Return an audience before and after the plan."""
        if key not in self._known:
            told = len(self.reasons)
            found = self._audience(*key)
            # Most groups stay as they are: one set of 200,000 people is 25 KB, and there may be 10,000 groups.
            self._known[key] = replace(
                found,
                reason="" if found.is_known else "; ".join(dict.fromkeys(self.reasons[told:])),
                after=found.before if found.after == found.before else found.after,
            )
        return self._known[key]

    def _audience(self, kind: str, id: RemoteId | Ref) -> Audience:
        if kind in self.facts.rows:
            return self._group(id) if kind == GROUP else self._smart_group(id)
        if kind != USER:
            return Audience(before=self.active_before, after=self.active_after)
        position = self.by_email.get(id.address.name) if isinstance(id, Ref) else self.facts.people.positions.get(id)
        bit = 0 if position is None else 1 << position
        return Audience(
            before=bit & self.active_before,
            after=bit & self.active_after,
            is_live=position is not None and position < len(self.facts.people.people),
        )

    def conditions(self, id: RemoteId | Ref) -> tuple[tuple[Condition, ...] | None, tuple[Condition, ...] | None]:
        """Return the conditions of a smart group before and after the plan; None where it does not exist."""
        before = self.facts.conditions[id].conditions if id in self.facts.conditions else None
        return before, self.scope.smart_groups.get(id, before)

    def group_audiences(self) -> Iterator[Audience]:
        """Return each group whose members were read, or may change."""
        moved = moved_audiences(self.scope, self.facts)
        read = (
            id for id, group in self.facts.conditions.items() if group.members is not None or (SMART_GROUP, id) in moved
        )
        keys = [
            *((GROUP, id) for id in (*sorted(self.facts.members), *self.scope.groups)),
            *((SMART_GROUP, id) for id in (*sorted(read), *self.scope.smart_groups)),
        ]
        return map(self.audience, dict.fromkeys(keys))

    def sizes(self) -> dict[Address, int]:
        """Return the sizes after the plan of the groups that `audience` returned, where they follow from what was read.

        And that of everyone.

        A new group is left out unless the plan adds its members, and a smart group whose conditions name what the plan
        creates: their members come later.
        """
        return {EVERYONE: self.active_after.bit_count()} | {
            audience.address: audience.after.bit_count()
            for key, audience in self._known.items()
            if audience.address is not None and audience.after is not None and audience.basis is Basis.EXACT
            if not self._is_filled_later(*key)
        }

    def _is_filled_later(self, kind: str, id: RemoteId | Ref) -> bool:
        if kind == GROUP:
            return isinstance(id, Ref) and not self.scope.groups[id].joins
        return any(
            isinstance(part, Ref) for one in self.scope.smart_groups.get(id) or () for part in (one.field, *one.choices)
        )

    def _members(self, ids: Collection[RemoteId], address: Address) -> tuple[Bits, Sequence[str]]:
        """Return the active live members of a group, and why they are an estimate: some are not listed as people."""
        unlisted = len(ids) - sum(id in self.facts.people.positions for id in ids)
        members = count_noun(unlisted, "member is", "members are")
        return self._active(ids), [f"{address}: {members} in no list of people, and not counted"] if unlisted else []

    def _active(self, ids: Iterable[RemoteId]) -> Bits:
        positions = self.facts.people.positions
        return to_bits((positions[id] for id in ids if id in positions), len(self.ids)) & self.active_before

    def _group_address(self, kind: str, id: RemoteId | Ref) -> Address:
        """Return the address of a group: that of its change, if the plan changes or renames it."""
        return self.scope.addresses.get((kind, id)) or Address.of(kind, normalize_name(self.facts.rows[kind][id].name))

    def audience_address(self, kind: str, id: RemoteId | Ref) -> Address:
        """Return the address of an audience, by its name after the plan or else its live one."""
        if (kind, id) == EVERYONE_KEY:
            return EVERYONE
        if isinstance(id, Ref):
            return id.address
        # Of an e-mail that is not declared, addresses have the form that was read.
        live = self.facts.target_audiences.names[kind].get(id, "")
        name = self.planning.registry.name(kind, id) or (live if kind == USER else normalize_name(live))
        return Address.of(kind, name) if name else Address(f"{kind} id {id}", "")

    def _group(self, id: RemoteId | Ref) -> Audience:
        change = self.scope.groups.get(id)
        if change is None and id not in self.facts.rows[GROUP]:
            return _NOBODY
        address = self._group_address(GROUP, id)
        live = frozenset[RemoteId]() if isinstance(id, Ref) else self.facts.members.get(id)
        before, reasons = (
            (None, [f"the members of {address} were not read"]) if live is None else self._members(live, address)
        )
        self.reasons.extend(reasons)
        return Audience(
            before=before,
            after=None if before is None else self._group_after(before, change or ChangedGroup()),
            causes=() if change is None else (address,),
            is_estimate=bool(reasons),
            address=address,
            is_live=not isinstance(id, Ref),
            stays=change is None or not change.deleted,
        )

    def _group_after(self, before: Bits, change: ChangedGroup) -> Bits:
        """Return the members of a manual group after the plan."""
        joins, leaves = (
            to_bits((self.by_email[person] for person in people if person in self.by_email), len(self.ids))
            for people in (change.joins, change.leaves)
        )
        return 0 if change.deleted else ((before & ~leaves) | joins) & self.active_after

    def _smart_group(self, id: RemoteId | Ref) -> Audience:
        old, new = self.conditions(id)
        if old is None and new is None:
            return _NOBODY
        is_changed, address = id in self.scope.smart_groups, self._group_address(SMART_GROUP, id)
        before, reasons = self._before(address, self.facts.conditions.get(id))
        after, more = self._after(address, new, before, is_changed=is_changed)
        self.reasons.extend([*reasons, *more])
        fields = {condition.field for condition in (*(old or ()), *(new or ()))}
        return Audience(
            before=before,
            after=after,
            causes=(
                *((address,) if is_changed else ()),
                *(loss.address for loss in self.scope.losses if loss.field.id in fields),
            ),
            is_estimate=bool(reasons or more),
            address=address,
            is_live=not isinstance(id, Ref),
            stays=new is not None,
        )

    def _before(self, address: Address, live: LiveSmartGroup | None) -> tuple[Bits | None, Sequence[str]]:
        """Return the members before the plan, and why they are an estimate or not known.

        The live ones where they were read, compared with the predicted ones.
        """
        if live is None:
            return 0, ()
        predicted, reasons = self._derived(address, live.conditions, self.answers_before, self.active_before)
        if live.members is None:
            return predicted, reasons
        fact, unlisted = self._members(live.members, address)
        if predicted is not None:
            self.compared.append(fact == predicted)
            if fact != predicted:
                reasons = [
                    f"{address}: its conditions give {predicted.bit_count()} members, "
                    f"and the service lists {fact.bit_count()}"
                ]
        return fact, [*unlisted, *reasons]

    def _after(
        self, address: Address, new: Sequence[Condition] | None, before: Bits | None, *, is_changed: bool
    ) -> tuple[Bits | None, Sequence[str]]:
        """Return the members after the plan, and why they are an estimate or not known.

        is_changed: whether it changes the conditions.
        """
        if new is None:
            return 0, ()
        fields = {condition.field for condition in new}
        if not is_changed and fields.isdisjoint(self._changed_fields) and not self._may_take_new_accounts(new):
            return (None if before is None else before & self.active_after), ()
        predicted, reasons = self._derived(address, new, self.answers_after, self.active_after)
        unknown = ", so its members after the plan are not known" if predicted is None else ""
        return predicted, [f"{reason}{unknown}" for reason in reasons]

    def _may_take_new_accounts(self, conditions: Sequence[Condition]) -> bool:
        """Whether an account that the plan creates meets each condition whose meaning is known."""
        known = [one for one in conditions if one.choices and one.system_condition is None]
        return (
            bool(conditions)
            and self._matching(known, self.answers_after, self.active_after & ~self.active_before, {}) != 0
        )

    def _derived(
        self, address: Address, conditions: Sequence[Condition], answers: Holders, among: Bits
    ) -> tuple[Bits | None, Sequence[str]]:
        """Return the members of a group that follow from conditions, and why they are an estimate or not known."""
        reason = self._why_not_derived(conditions, answers, among)
        if reason is not None:
            return None, (f"{address}: {reason}",)
        uses = uses_of(conditions)
        meanings = self.readings.possible(uses)
        found = {self._matching(conditions, answers, among, meaning) for meaning in meanings or ()}
        if meanings is None or len(found) != 1:
            return None, (f"{address}: {self.readings.why_unknown(uses, meanings)}",)
        return found.pop(), tuple(self.readings.doubts(uses, meanings))

    def _why_not_derived(self, conditions: Sequence[Condition], answers: Holders, among: Bits) -> str | None:
        """Return why members do not follow from conditions, whatever system conditions mean; None if they do.

        among: the people whose answers must be known.
        """
        if not conditions:
            return "its conditions were not read"
        for condition in conditions:
            row, held = self.facts.fields.get(condition.field), answers.get(condition.field)
            if not isinstance(condition.field, Ref) and (row is None or row.type not in ("CHOICE", "MULTI_SELECT")):
                return "a condition is on a field without choices"
            if not condition.choices and condition.system_condition is None:
                return "a condition names no choices"
            if held is not None and held.unreadable & among:
                return "answers of people have an unknown format"
        return None

    def _matching(self, conditions: Sequence[Condition], answers: Holders, among: Bits, meaning: Meaning) -> Bits:
        """Return who of these people meets every condition."""
        for condition in conditions:
            use = use_of(condition)
            held = answers.get(condition.field) or FieldHolders()
            among &= held.meeting(condition.choices, Reading.CHOICES if use is None else meaning[use])
        return among

    def assignments(self, content: RemoteId) -> Sequence[AudienceAssignment]:
        """Return the assignments of one content before and after the plan, by address."""
        changes = self._changed_assignments.get(content, ())
        by_row = {change.row.id: change for change in changes if change.row is not None}
        # By id: reasons come in the order of these questions, whatever order a service lists assignments in.
        live = sorted(self.facts.targets.get(content, ()), key=lambda row: row.id)
        placed = [self._live_assignment(row, by_row.get(row.id)) for row in live]
        new = (
            AudienceAssignment(
                address=change.address,
                to=self.audience_address(*change.audience),
                audience=self.audience(change.audience),
                key=change.audience,
                before=None,
                after=change.terms,
                causes=(*self.audience(change.audience).causes, change.address),
            )
            for change in changes
            if change.row is None and change.audience is not None
        )
        return sorted([*placed, *new], key=lambda one: one.address)

    def _live_assignment(self, row: TargetRow, change: ChangedAssignment | None) -> AudienceAssignment:
        """Return a live assignment; one whose audience or window is not known has an audience that is not."""
        key = self.facts.target_audiences.of(row)
        if key is None:
            label = unresolved_audience_label(row)
            to = Address(escape(label), "")
            lists = "several lists" if self.facts.target_audiences.candidates(row) else "no list"
            why = f"is for {label}, which is in {lists}" if row.target else "has no target id: its audience is unknown"
            audience = self._unknown(_NOBODY, f"an assignment {why}")
        else:
            to, audience = self.audience_address(*key), self.audience(key)
        try:
            terms = live_terms(row)
        except ValueError as error:
            terms = _UNREADABLE
            audience = self._unknown(audience, f"a window of an assignment cannot be read: {error}")
        return AudienceAssignment(
            address=change.address if change else assignment_address(self.facts.content_name(row.content), to),
            to=to,
            audience=audience,
            key=key,
            before=terms,
            after=change.terms if change else terms,
            causes=(*audience.causes, change.address) if change else audience.causes,
        )

    def _unknown(self, audience: Audience, reason: str) -> Audience:
        """Return an audience as one whose people are not known, and add the reason."""
        self.reasons.append(reason)
        return replace(audience, before=None, after=None, reason=reason)
