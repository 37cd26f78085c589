"""Who has what and who is in which audience, before and after a plan, as one value to ask questions of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgspec import Struct

from lmsconf.model.access import ConditionResult
from lmsconf.model.address import Address, RemoteId
from lmsconf.planner.audiences import Audience, AudienceAssignment, Bits, Terms


class AccessQuery(Struct, frozen=True, kw_only=True):
    """What is asked beyond the effects of a plan, so that it is read.

    contents: names; None: all. audiences: by the names after the plan, or else by the live ones. fields: whose answers
    are counted.
    """

    contents: frozenset[str] | None = frozenset()
    audiences: frozenset[Address] = frozenset()
    fields: frozenset[str] = frozenset()


class PlacedSide(NamedTuple):
    """Whether an assignment is there on one side of a plan, what it says, and its people; None if not known."""

    exists: bool
    terms: Terms | None
    people: Bits | None


class PlacedAssignment(Struct, frozen=True, kw_only=True):
    """An assignment with the addresses of itself and of its audience. is_live, stays: whether it is there before the
    plan, and after.
    """

    address: Address
    audience: Address
    assignment: AudienceAssignment
    is_live: bool
    stays: bool

    @property
    def before(self) -> PlacedSide:
        return PlacedSide(self.is_live, self.assignment.before, self.assignment.audience.before)

    @property
    def after(self) -> PlacedSide:
        return PlacedSide(self.stays, self.assignment.after, self.assignment.audience.after)


class FieldAnswers(Struct, frozen=True, kw_only=True):
    """Who picked which choice of a field on one side of a plan. unreadable: people whose answer is not known."""

    choices: Mapping[str, Bits]
    unreadable: Bits


class NamedField(Struct, frozen=True, kw_only=True):
    """A field and its answers before and after a plan. has_choices: False for a text."""

    name: str
    has_choices: bool
    before: FieldAnswers
    after: FieldAnswers


class AccessState(ABC):
    """Everything that was read to answer an AccessQuery, before and after a plan.

    now: the time of the plan, in epoch seconds. emails: by position. active: people who are not archived, before and
    after; live: people who are there before the plan. incomplete: why something that all answers rest on may be
    missing. reasons: why answers are not known or estimates; they are added as questions are asked.
    audience_kinds: the kinds that can be an audience; person_kind: that of people.
    """

    now: int
    emails: Sequence[str]
    active_before: Bits
    active_after: Bits
    live: Bits
    incomplete: tuple[str, ...]
    reasons: list[str]
    audience_kinds: frozenset[str]
    person_kind: str

    @abstractmethod
    def format_time(self, seconds: int) -> str:
        """Return epoch seconds as ISO 8601, in the project's time zone."""

    @abstractmethod
    def person(self, email: str) -> int | None:
        """Return the position of a person, also under an e-mail that the plan changes; None for an unknown one."""

    @abstractmethod
    def audience(self, address: Address) -> Audience | None:
        """Return an audience; None if it is neither live nor planned. Raises LmsconfError for a name that is twice."""

    @abstractmethod
    def audience_names(self, kind: str) -> Sequence[str]:
        """Return the names of all audiences of a kind, for suggestions."""

    @abstractmethod
    def exists(self, address: Address) -> tuple[bool, bool]:
        """Return whether an audience that `audience` returns exists before and after the plan."""

    @abstractmethod
    def contents(self) -> Mapping[RemoteId, str]:
        """Return the names of all contents by id."""

    @abstractmethod
    def assignments(self, content: RemoteId) -> Sequence[PlacedAssignment]:
        """Return the assignments of a content that was asked for."""

    @abstractmethod
    def conditions(self, audience: Address, person: int) -> tuple[Sequence[ConditionResult], Sequence[ConditionResult]]:
        """Return the conditions of a smart group of `assignments` before and after the plan, and a person's answers."""

    @abstractmethod
    def field(self, name: str) -> NamedField | None:
        """Return a field that was asked for; None if it is neither live nor planned."""

    @abstractmethod
    def field_names(self) -> Sequence[str]:
        """Return the names of all fields, for suggestions."""
