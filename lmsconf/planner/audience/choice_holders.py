"""Which people hold which choices, before and after a plan, as sets of bits, and what system conditions mean.

The specification has IS_ANY as an example and gives no meaning. A word may mean one thing alone and another beside
choices; of the readings of each, those stay possible that give exactly the live members of every smart group read.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property, reduce
from itertools import product
from math import prod
from operator import or_
from typing import Final, TypeAlias

from msgspec import Struct, field

from lmsconf.kinds.shared.responses import comparable
from lmsconf.model.address import Ref, RemoteId
from lmsconf.model.names import count_noun, join_words, normalize_name
from lmsconf.planner.audience.access_facts import AccessFacts
from lmsconf.planner.audience.affected import AccessScope, ChangedPerson, Condition
from lmsconf.planner.audience.people_sets import Bits, to_bits


class Reading(StrEnum):
    """Who meets a condition."""

    ANY_ANSWER = "has any answer"
    ALWAYS = "always true"
    CHOICES = "the choices only"


class Use(Struct, frozen=True, order=True):
    """A system condition, alone or beside choices."""

    word: str
    with_choices: bool

    def __str__(self) -> str:
        return f"{self.word[:40]}{' with choices' if self.with_choices else ''}"


Meaning: TypeAlias = "Mapping[Use, Reading]"
IS_ANY_OF: Final = Use("IS_ANY", with_choices=True)


def use_of(condition: Condition) -> Use | None:
    """Return the use of a condition; None if it has no system condition."""
    return None if condition.system_condition is None else Use(condition.system_condition, bool(condition.choices))


def uses_of(conditions: Iterable[Condition]) -> frozenset[Use]:
    """Return the uses of system conditions in a smart group."""
    return frozenset(use for condition in conditions if (use := use_of(condition)) is not None)


class Readings(Struct):
    """The meanings that explain the members of every smart group that was compared. groups: how many have each use."""

    groups: Counter[Use] = field(default_factory=Counter)
    _possible: dict[frozenset[Use], list[Meaning]] = field(default_factory=dict)

    def compare(self, uses: frozenset[Use], predict: Callable[[Meaning], Bits], members: Bits) -> None:
        """Drop the meanings that do not give the members of a smart group.

        Of a use that nothing explains, nothing follows for another one. Smart groups with fewer uses come first.
        """
        self.groups.update(uses)
        if meanings := self.possible(uses):
            left = [meaning for meaning in meanings if predict(meaning) == members]
            linked = [known for known in self._possible if known & uses]
            self._possible = {known: kept for known, kept in self._possible.items() if known not in linked}
            self._possible[uses.union(*linked)] = left

    def possible(self, uses: frozenset[Use]) -> Sequence[Meaning] | None:
        """Return the meanings that stay possible; None if there are too many to try.

        IS_ANY beside choices means these, unless a smart group that was compared has it.
        """
        known = {linked: meanings for linked, meanings in self._possible.items() if linked & uses}
        new = (
            [{use: one} for one in Reading if one is Reading.CHOICES or use != IS_ANY_OF or self.groups[use]]
            for use in sorted(uses.difference(*known))
        )
        parts: list[Sequence[Meaning]] = [*known.values(), *new]
        # All combinations are tried, of six words at once.
        if prod(map(len, parts)) > len(Reading) ** 6:
            return None
        return [{use: one for part in parts for use, one in part.items()} for parts in product(*parts)]

    def doubts(self, uses: Collection[Use], meanings: Collection[Meaning]) -> Iterator[str]:
        """Yield how each use was read; nothing where members follow from choices alone."""
        if set(uses) == {IS_ANY_OF} and Reading.CHOICES in _readings(IS_ANY_OF, meanings):
            return
        for use in sorted(uses):
            number = self.groups[use]
            why = (
                f"explains {number:,} of {count_noun(number, 'smart group')}"
                if number
                else "no smart group shows which"
            )
            yield f"{use} read as: {join_words(_readings(use, meanings))}; {why}"

    def why_unknown(self, uses: Iterable[Use], meanings: Collection[Meaning] | None) -> str:
        """Return why members are not known: no meaning is left, or several that differ."""
        if meanings is None:
            return "it has too many system conditions"
        if not meanings:
            return f"no reading of {' and '.join(map(str, sorted(uses)))} explains the live members of its smart groups"
        read = {use: _readings(use, meanings) for use in sorted(uses)}
        several = [f"{use} may mean: {join_words(one)}" for use, one in read.items() if len(one) > 1]
        return "; ".join([*several, "no smart group that was read shows which"])


def _readings(use: Use, meanings: Collection[Meaning]) -> list[Reading]:
    return [reading for reading in Reading if any(meaning[use] is reading for meaning in meanings)]


class FieldHolders(Struct, dict=True):
    """The holders of each choice of one field, on one side of a plan. unreadable: people whose answer is not known."""

    choices: dict[RemoteId | Ref, Bits] = field(default_factory=dict)
    unreadable: Bits = 0

    @cached_property
    def answered(self) -> Bits:
        """Who picked any choice. Asked only once all answers are in."""
        return reduce(or_, self.choices.values(), 0)

    def meeting(self, choices: Iterable[RemoteId | Ref], reading: Reading) -> Bits:
        """Return who meets a condition. Called only once all answers are in."""
        match reading:
            case Reading.ALWAYS:
                return -1
            case Reading.CHOICES:
                return reduce(or_, (self.choices.get(choice, 0) for choice in choices), 0)
            case Reading.ANY_ANSWER:
                return self.answered

    def replace_answer(self, bit: Bits, picked: Collection[RemoteId | Ref]) -> None:
        """Replace the answer of one person."""
        self.unreadable &= ~bit
        for choice in dict.fromkeys((*self.choices, *sorted(picked, key=str))):
            others = self.choices.get(choice, 0) & ~bit
            self.choices[choice] = others | bit if choice in picked else others


Holders: TypeAlias = "Mapping[RemoteId | Ref, FieldHolders]"
"""Field → who holds which of its choices."""


def answer_sets(
    facts: AccessFacts, scope: AccessScope, wanted: Collection[RemoteId | Ref], positions: Mapping[int, ChangedPerson]
) -> tuple[Holders, Holders]:
    """Return the holders of the choices of the wanted fields, before and after the plan.

    positions: of people whose answers the plan changes.
    """
    live = _live(facts, wanted, len(facts.people.people) + len(positions))
    before = {id: FieldHolders() for id in wanted} | live
    after = {id: FieldHolders(dict(held.choices), held.unreadable) for id, held in before.items()}
    for loss in scope.losses:
        lost = {choice.id for choice in loss.field.choices if loss.choices is None or choice.id in loss.choices}
        if (held := after.get(loss.field.id)) is not None:
            held.choices = {id: people for id, people in held.choices.items() if id not in lost}
    for position, person in positions.items():
        for id, picked in person.answers.items():
            if id in after and picked is not None:
                after[id].replace_answer(1 << position, picked)
    return before, after


def _live(facts: AccessFacts, wanted: Collection[RemoteId | Ref], size: int) -> dict[RemoteId | Ref, FieldHolders]:
    """Return the holders of each wanted field's choices. A choice may be answered by its id or its name."""
    by_name = {normalize_name(row.name): row for id, row in facts.fields.items() if id in wanted}
    known = {
        name: {
            **{comparable(choice.name): choice.id for choice in row.choices},
            **{comparable(choice.id): choice.id for choice in row.choices},
        }
        for name, row in by_name.items()
    }
    holders: defaultdict[tuple[str, RemoteId | None], list[int]] = defaultdict(list)
    for position, person in enumerate(facts.people.people):
        for name, answer in [(name, None) for name in known] if person.answers is None else person.answers:
            if name in known:
                picked = [None] if answer is None else [known[name].get(comparable(one)) for one in answer.picked]
                # None: the answer, or a choice of it, is not known.
                for choice_id in [None] if None in picked else picked:
                    holders[name, choice_id].append(position)
    everybody = (1 << len(facts.people.people)) - 1
    return {
        row.id: FieldHolders(
            choices={one.id: to_bits(holders[name, one.id], size) for one in row.choices},
            unreadable=to_bits(holders[name, None], size) if facts.people.has_answers else everybody,
        )
        for name, row in by_name.items()
    }
