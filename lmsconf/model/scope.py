"""Which part of the manifests a plan covers, and which part of it was verified after a run."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from lmsconf.errors import Problem


class PlanScope(Struct, frozen=True, kw_only=True, rename={"excluded": "except"}):
    """The part of the manifests that a plan covers: patterns of `--only` and `--except`, and `--additive`."""

    only: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    additive: bool = False

    @property
    def partial(self) -> bool:
        """Whether patterns leave resources out."""
        return bool(self.only or self.excluded)


EVERYTHING = PlanScope()


class VerifyMode(StrEnum):
    """What a run verifies at its end: everything its plan covers, the resources it changed, or nothing."""

    ALL = "all"
    TOUCHED = "touched"
    NONE = "none"


class VerifiedScope(Struct, frozen=True, kw_only=True):
    """What was verified after a run, so that no report claims more.

    resources: how many resources the plan changes. partial: whether the plan covers a selection of resources only.
    skipped: how many references to people who are not live were skipped, as the project allows.
    left_out: how many resources have further changes that `--additive` leaves out.
    reason: why not everything was verified, as a sentence.
    """

    scope: VerifyMode = VerifyMode.NONE
    resources: int = 0
    partial: bool = False
    skipped: int = 0
    left_out: int = 0
    reason: str | None = None


def count_skipped_people(problems: Iterable[Problem]) -> int:
    """Count the references to people who are not live and were skipped."""
    return sum(problem.code == "person/unknown" and not problem.is_error for problem in problems)
