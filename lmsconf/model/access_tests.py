"""The `tests:` of manifests: statements about who has what, and what became of each when it was judged."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from lmsconf.errors import SourceLocation
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json


class AccessClaim(StrEnum):
    """What a test says: its first key in a manifest, or `has` and `has_not` of one person."""

    ALL = "all"
    NONE = "none"
    SIZE = "size"
    DISJOINT = "disjoint"
    HAS = "has"
    HAS_NOT = "has_not"


class AccessTest(Struct, frozen=True, kw_only=True):
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
    only_in: frozenset[str] | None = None

    def applies_in(self, workspace: str) -> bool:
        """Whether the test applies in a workspace."""
        return self.only_in is None or workspace in self.only_in

    @property
    def title(self) -> str:
        """Its name, or what it says."""
        return self.name or self.statement

    @property
    def statement(self) -> str:
        """What it says: `all of group/Sales have GDPR basics, mandatory`."""
        first, content = self.audiences[0], self.content
        match self.claim:
            case AccessClaim.ALL:
                return f"all of {first} have {content}{', mandatory' if self.mandatory else ''}"
            case AccessClaim.NONE:
                return f"none of {first} has {content}"
            case AccessClaim.SIZE:
                return f"the size of {first} is {self.size}"
            case AccessClaim.DISJOINT:
                return f"nobody is in both {first} and {self.audiences[1]}"
            case AccessClaim.HAS:
                return f"{first} has {content}"
            case AccessClaim.HAS_NOT:
                return f"{first} does not have {content}"

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


class AccessTestReport(Struct, frozen=True, kw_only=True):
    """The results of all tests of a workspace. live: judged on the live state, not on the planned one."""

    workspace: str
    url: str
    people: int | None
    created_at: str
    live: bool
    results: tuple[AccessTestResult, ...]

    @property
    def failed(self) -> tuple[AccessTestResult, ...]:
        return tuple(result for result in self.results if not result.passed)
