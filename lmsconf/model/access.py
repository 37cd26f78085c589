"""What one person has and why, and who is in one audience: now, and after a plan.

A value that is not known is None. Times are ISO 8601.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from lmsconf.errors import Problem
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.effects import Basis


class ConditionResult(Struct, frozen=True, kw_only=True):
    """A condition of a smart group, and how one person's answer meets it.

    answer: the choices that the person picked; empty: no answer. met, answer: None if not known.
    """

    field: str
    choices: tuple[str, ...]
    system_condition: str | None
    answer: tuple[str, ...] | None
    met: bool | None


class RouteSide(Struct, frozen=True, kw_only=True):
    """An assignment on one side of a plan, as it concerns one person.

    is_over: whether its window is over. member: whether the person is in its audience. conditions: those of a smart
    group. mandatory and is_over are None where the window cannot be read.
    """

    mandatory: bool | None
    visible_from: str | None
    visible_until: str | None
    is_over: bool | None
    member: bool | None
    conditions: tuple[ConditionResult, ...] = ()


class AccessRoute(Struct, frozen=True, kw_only=True):
    """An assignment that may give one person a content. None: there is none on that side."""

    address: Address
    audience: Address
    before: RouteSide | None
    after: RouteSide | None


class HeldContent(Struct, frozen=True, kw_only=True, rename={"word": "has", "start": "from", "finish": "until"}):
    """What a person has of a content on one side of a plan: none, optional or mandatory, and from when until when."""

    word: str
    start: str | None = None
    finish: str | None = None


class PersonContent(Struct, frozen=True, kw_only=True, rename={"routes": "assignments"}):
    """One content of a person. before, after: None if not known. change: as in effects, or `keep` or `none`."""

    content: str
    id: RemoteId
    change: str | None
    before: HeldContent | None
    after: HeldContent | None
    routes: tuple[AccessRoute, ...]


class ReportHeader(Struct, frozen=True, kw_only=True):
    """What a report on people was made from.

    planned: whether there is a plan, so that `after` is known at all. reasons: why something is not known or an
    estimate. problems: those that kept the plan from being made.
    """

    workspace: str
    url: str
    people: int | None
    created_at: str
    planned: bool
    basis: Basis
    reasons: tuple[str, ...]
    requests: int
    problems: tuple[Problem, ...] = ()


class PersonAccess(Struct, frozen=True, kw_only=True):
    """What a person has, and why.

    is_live: False for an account that the plan creates. stays: whether the account is active after the
    plan; None if there is no plan.
    content: the one that was asked for; None: all that the person has on either side.
    """

    header: ReportHeader
    email: str
    is_live: bool
    stays: bool | None
    content: str | None
    contents: tuple[PersonContent, ...]


class AnswerState(StrEnum):
    """What an answer to a field is: choices, nothing, or of a shape that is not known."""

    ANSWERED = "answered"
    NONE = "no_answer"
    UNKNOWN = "not_known"


class AnswerCount(Struct, frozen=True, kw_only=True):
    """How many people of an audience gave an answer. choice: None unless they picked one."""

    state: AnswerState
    choice: str | None
    before: int | None
    after: int | None


class AudienceMember(Struct, frozen=True, kw_only=True):
    """A person in an audience before or after a plan; None where that side is not known."""

    email: str
    before: bool | None
    after: bool | None


class AudienceReport(Struct, frozen=True, kw_only=True):
    """Who is in an audience, before and after a plan. members: None if they were not asked for.

    by: the field that people are counted by. is_live, stays: whether the audience exists before and after.
    None: not known.
    """

    header: ReportHeader
    address: Address
    is_live: bool
    stays: bool | None
    before: int | None
    after: int | None
    join: int | None
    leave: int | None
    by: str | None = None
    answers: tuple[AnswerCount, ...] = ()
    members: tuple[AudienceMember, ...] | None = None
