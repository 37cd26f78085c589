"""What one person has and why, who is in one audience, and the `tests:` of manifests: now, and after a plan.

A value that is not known is None. Times are ISO 8601.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct, field

from lmsconf.errors import Problem, SourceLocation
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import Basis
from lmsconf.model.forms import InWorkspaces, OfWorkspace


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


class ReportHeader(OfWorkspace, frozen=True, kw_only=True):
    """What a report on people was made from.

    planned: whether there is a plan, so that `after` is known at all. reasons: why something is not known or an
    estimate. problems: those that kept the plan from being made.
    """

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


class AccessClaim(StrEnum):
    """What a test says: its first key in a manifest, or `has` and `has_not` of one person."""

    ALL = "all"
    NONE = "none"
    SIZE = "size"
    DISJOINT = "disjoint"
    HAS = "has"
    HAS_NOT = "has_not"


_STATEMENTS: Final = {
    AccessClaim.ALL: "all of {0} have {test.content}{mandatory}",
    AccessClaim.NONE: "none of {0} has {test.content}",
    AccessClaim.SIZE: "the size of {0} is {test.size}",
    AccessClaim.DISJOINT: "nobody is in both {0} and {1}",
    AccessClaim.HAS: "{0} has {test.content}",
    AccessClaim.HAS_NOT: "{0} does not have {test.content}",
}


class AccessTest(InWorkspaces, frozen=True, kw_only=True):
    """One entry under `tests:`.

    audiences: one, or two that are disjoint. content: its name, and content_pins: workspace, "" for any, → its id.
    least, most: the bounds of a size.
    """

    claim: AccessClaim
    audiences: tuple[Address, ...]
    source: SourceLocation
    content: str | None = None
    content_pins: Mapping[str, str] = field(default_factory=dict)
    mandatory: bool
    least: int | None = None
    most: int | None = None
    name: str | None = None
    about: Mapping[str, Json] | None = None

    @property
    def title(self) -> str:
        """Its name, or what it says."""
        return self.name or self.statement

    @property
    def statement(self) -> str:
        """What it says: `all of group/Sales have GDPR basics, mandatory`."""
        mandatory = ", mandatory" if self.mandatory else ""
        return _STATEMENTS[self.claim].format(*self.audiences, test=self, mandatory=mandatory)

    @property
    def size(self) -> str:
        """The bounds of a size in words."""
        if self.least is None or self.most is None:
            return f"at most {self.most:,}" if self.least is None else f"at least {self.least:,}"
        return f"{self.least:,} to {self.most:,}" if self.least != self.most else f"{self.least:,}"


class AccessTestResult(Struct, frozen=True, kw_only=True):
    """What became of a test. reason: why it failed; None if it passed."""

    test: AccessTest
    reason: str | None = None

    @property
    def passed(self) -> bool:
        return self.reason is None


class AccessTestReport(OfWorkspace, frozen=True, kw_only=True):
    """The results of all tests of a workspace. live: judged on the live state, not on the planned one."""

    created_at: str
    live: bool
    results: tuple[AccessTestResult, ...]

    @property
    def failed(self) -> tuple[AccessTestResult, ...]:
        return tuple(result for result in self.results if not result.passed)
