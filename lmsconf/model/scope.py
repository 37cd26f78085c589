"""How much of manifests and workspace a plan is made of, and how much of it was looked at after a run."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from lmsconf.errors import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Selected:
    """Which part of the manifests a plan is made of: the patterns of `--only` and `--except`, and `--additive`."""

    only: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    additive: bool = False

    @property
    def partial(self) -> bool:
        """Whether some resources are left out of it."""
        return bool(self.only or self.excluded)


EVERYTHING = Selected()


class Verify(StrEnum):
    """What a run looks at when it has ended: all that its plan was made of, what it touched, or nothing."""

    ALL = "all"
    TOUCHED = "touched"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """What was looked at after a run, so that no report says more.

    resources: how many the plan changes. partial: of everything declared and owned, what the plan looks at only.
    skipped: how often the manifests name somebody who is not live, where the project skips such people.
    left_out: in how many resources there is more to change, which a plan that only adds leaves out.
    reason: why it was not everything, as a sentence.
    """

    scope: Verify = Verify.NONE
    resources: int = 0
    partial: bool = False
    skipped: int = 0
    left_out: int = 0
    reason: str | None = None


def skipped(problems: Iterable[Problem]) -> int:
    """How often manifests name somebody who is not live and is skipped."""
    return sum(problem.code == "person/unknown" and not problem.is_error for problem in problems)
