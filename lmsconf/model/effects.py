"""What a plan does to people: who gains, loses or must take which content, and who joins or leaves which group.

A number that is not known is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct

from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import sha256
from lmsconf.model.names import count_noun


def count_people(number: int) -> str:
    """`1 person`, `1,200 people`."""
    return count_noun(number, "person", "people")


class Basis(StrEnum):
    """How far numbers of effects can be trusted.

    EXACT: they follow from what was read. ESTIMATE: they rest on a smart group whose members could not be derived, or
    differ from what its conditions say. UNKNOWN: something that they rest on is not known. OFF: not computed.
    """

    EXACT = "exact"
    ESTIMATE = "estimate"
    UNKNOWN = "unknown"
    OFF = "off"


class AccessCounts(Struct, frozen=True, kw_only=True):
    """Numbers of people by what changes for them.

    shortened: those who keep access, but not during some part of the next 30 days.
    """

    gain: int | None = None
    lose: int | None = None
    to_mandatory: int | None = None
    to_optional: int | None = None
    window: int | None = None
    shortened: int | None = None

    @property
    def any(self) -> bool:
        """Whether a number is not zero, or not known."""
        return any(getattr(self, name) != 0 for name in self.__struct_fields__)


class CauseCount(Struct, frozen=True, kw_only=True):
    """A changed resource, and how many people gain or lose a content through it."""

    address: Address
    gain: int | None
    lose: int | None


class ContentEffects(Struct, frozen=True, kw_only=True):
    """What a plan changes for the people of one content.

    before, after: how many have it. keep: how many have it after, unchanged. progress: state → how many of those who
    lose it. certificates_expiring: days → how many of those who lose it hold a certificate that expires by then.
    """

    content: str
    id: RemoteId
    before: int | None
    after: int | None
    keep: int | None
    counts: AccessCounts
    basis: Basis
    progress: Mapping[str, int] | None = None
    certificates_expiring: Mapping[int, int] | None = None
    causes: tuple[CauseCount, ...] = ()


class GroupEffects(Struct, frozen=True, kw_only=True):
    """How the membership of one group changes.

    members: the digest of who is in it after (`members_digest`); None if that is not known, or one has no id yet.
    """

    address: Address
    before: int | None
    after: int | None
    join: int | None
    leave: int | None
    basis: Basis
    members: str | None = None


def members_digest(ids: Iterable[RemoteId]) -> str:
    """Return the SHA-256 of the sorted ids of people: equal for the same people, and a plan file lists none of them."""
    return sha256(sorted(ids))


class Calibration(Struct, frozen=True, kw_only=True):
    """For how many smart groups the predicted members were compared with the live ones, and how many were equal."""

    groups: int = 0
    exact: int = 0


class PredictedTotals(Struct, frozen=True, kw_only=True):
    """How many people a plan affects, over all contents, as an apply report repeats it."""

    basis: Basis
    people: AccessCounts


class PersonEffect(Struct, frozen=True, kw_only=True):
    """A person and content whose access changes; a row of the file of `--people`.

    change: gain, lose, to_mandatory, to_optional or window. before, after: none, optional or mandatory.
    Times are ISO 8601; None: open, or no access.
    """

    email: str
    content: str
    content_id: RemoteId
    change: str
    before: str
    after: str
    from_before: str | None
    until_before: str | None
    from_after: str | None
    until_after: str | None
    shortened: bool
    causes: tuple[str, ...]


class UnknownPeople(Struct, frozen=True, kw_only=True):
    """An audience whose people are not known, and the contents that thus have no rows in the file of `--people`.

    audience: None if it has no address, or if nothing is known of anybody; there are no contents then.
    """

    audience: Address | None
    contents: tuple[tuple[str, RemoteId], ...]
    reason: str


class Effects(Struct, frozen=True, kw_only=True):
    """The effects of a plan on people. requests: how many were sent for them beyond those of the plan.

    people: distinct people over all contents. rows: whose access changes, as far as it is known; unknown: where it is
    not. Neither is part of a plan file.
    """

    basis: Basis
    reasons: tuple[str, ...] = ()
    requests: int = 0
    people: AccessCounts = AccessCounts(gain=0, lose=0, to_mandatory=0, to_optional=0, window=0, shortened=0)
    contents: tuple[ContentEffects, ...] = ()
    groups: tuple[GroupEffects, ...] = ()
    calibration: Calibration = Calibration()
    rows: tuple[PersonEffect, ...] | None = None
    unknown: tuple[UnknownPeople, ...] = ()

    @property
    def totals(self) -> PredictedTotals:
        """The distinct people over all contents."""
        return PredictedTotals(basis=self.basis, people=self.people)


NO_EFFECTS = Effects(basis=Basis.EXACT)
"""The effects of a plan that changes nobody's access."""
EFFECTS_OFF = Effects(basis=Basis.OFF, reasons=("--no-effects was given",), people=AccessCounts())
