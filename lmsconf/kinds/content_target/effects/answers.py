"""Which people hold which choices, before and after a plan, as sets of bits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_

from msgspec import Struct, field

from lmsconf.kinds.content_target.effects.facts import AccessFacts
from lmsconf.kinds.content_target.effects.readings import Reading
from lmsconf.kinds.content_target.effects.scope import AccessScope, ChangedPerson
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.shared.responses import comparable
from lmsconf.model.address import Ref, RemoteId
from lmsconf.model.names import normalize_name
from lmsconf.planner.audiences import Bits, to_bits


class FieldHolders(Struct):
    """The holders of each choice of one field, on one side of a plan. unreadable: people whose answer is not known."""

    choices: dict[RemoteId | Ref, Bits] = field(default_factory=dict)
    unreadable: Bits = 0
    _answered: Bits | None = None

    def meeting(self, choices: Iterable[RemoteId | Ref], reading: Reading) -> Bits:
        """Return who meets a condition. Called only once all answers are in."""
        if reading is Reading.ALWAYS:
            return -1
        if reading is Reading.CHOICES:
            return reduce(or_, (self.choices.get(choice, 0) for choice in choices), 0)
        if self._answered is None:
            self._answered = reduce(or_, self.choices.values(), 0)
        return self._answered


class AnswerSets(Struct, frozen=True):
    """The holders of choices by field, before and after a plan."""

    before: Mapping[RemoteId | Ref, FieldHolders]
    after: Mapping[RemoteId | Ref, FieldHolders]


def answer_sets(
    facts: AccessFacts, scope: AccessScope, wanted: Iterable[RemoteId | Ref], positions: Mapping[int, ChangedPerson]
) -> AnswerSets:
    """Return the holders of the choices of the wanted fields. positions: of people whose answers the plan changes."""
    size = len(facts.people.people) + len(positions)
    ids = frozenset(wanted)
    rows = [row for row in facts.fields if row.id in ids]
    before: dict[RemoteId | Ref, FieldHolders] = dict(_live(facts, rows, size))
    after = {id: FieldHolders(dict(held.choices), held.unreadable) for id, held in before.items()}
    for id in ids - after.keys():
        after[id] = FieldHolders()
    for loss in scope.losses:
        if (held := after.get(loss.field.id)) is not None:
            for choice in loss.field.choices:
                if loss.choices is None or choice.id in loss.choices:
                    held.choices.pop(choice.id, None)
    for position, person in positions.items():
        for id, picked in person.answers.items():
            if id in after and picked is not None:
                _answer(after[id], 1 << position, picked)
    return AnswerSets(before, after)


def _answer(held: FieldHolders, bit: Bits, picked: Iterable[RemoteId | Ref]) -> None:
    """Replace one person's answer."""
    held.unreadable &= ~bit
    for choice in held.choices:
        held.choices[choice] &= ~bit
    for choice in picked:
        held.choices[choice] = held.choices.get(choice, 0) | bit


def _live(facts: AccessFacts, fields: Iterable[FieldRow], size: int) -> Iterable[tuple[RemoteId, FieldHolders]]:
    """Yield the holders of each field's choices. A choice may be answered by its id or its name."""
    by_name = {normalize_name(row.name): row for row in fields}
    known = {
        name: {
            **{comparable(choice.name): choice.id for choice in row.choices},
            **{comparable(choice.id): choice.id for choice in row.choices},
        }
        for name, row in by_name.items()
    }
    holders: defaultdict[tuple[str, RemoteId], list[int]] = defaultdict(list)
    unreadable: defaultdict[str, list[int]] = defaultdict(list)
    for position, person in enumerate(facts.people.people):
        if person.answers is None:
            for name in known:
                unreadable[name].append(position)
            continue
        for name, answer in person.answers:
            choices = known.get(name)
            if choices is None:
                continue
            picked = [] if answer is None else [comparable(one) for one in answer.picked]
            if answer is None or not all(one in choices for one in picked):
                unreadable[name].append(position)
                continue
            for one in picked:
                holders[name, choices[one]].append(position)
    everybody = (1 << len(facts.people.people)) - 1
    for name, row in by_name.items():
        held = FieldHolders(unreadable=to_bits(unreadable[name], size) if facts.people.has_answers else everybody)
        for choice in row.choices:
            held.choices[choice.id] = to_bits(holders[name, choice.id], size)
        yield row.id, held
