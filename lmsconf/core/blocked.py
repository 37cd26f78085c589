"""Why an apply of a plan would stop before its first call: refusals that are certain, failing tests, and guards."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from lmsconf.core.values import Guard, Plan
from lmsconf.errors import Problem

LOCK_OUT: Final = "refusal/lock-out"


class BlockerType(StrEnum):
    """What kind of thing stops an apply."""

    GUARD = "guard"
    REFUSAL = "refusal"
    TEST = "test"
    LOCKOUT = "lockout"


_BY_AREA: Final = {"refusal": BlockerType.REFUSAL, "test": BlockerType.TEST}
"""The first part of a problem's code → what it is where a plan with it is made and shown, and not applied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocker:
    """One reason to stop. allow: the consent that lifts it, None where nothing does. hint: what to do instead."""

    type: BlockerType
    name: str
    message: str
    allow: str | None = None
    hint: str | None = None


def is_blocking(problem: Problem) -> bool:
    """Whether a plan with this problem is made and shown, and not applied."""
    return problem.is_error and problem.code.partition("/")[0] in _BY_AREA


def blockers(plan: Plan) -> tuple[Blocker, ...]:
    """All that would stop an apply: first what nothing lifts, then guards."""
    refused = (_refusal(problem) for problem in plan.all_problems if is_blocking(problem))
    return (*refused, *(_guard(plan, guard) for guard in plan.guards if guard.tripped))


def _refusal(problem: Problem) -> Blocker:
    kind = BlockerType.LOCKOUT if problem.code == LOCK_OUT else _BY_AREA[problem.code.partition("/")[0]]
    return Blocker(type=kind, name=problem.code, message=problem.message, hint=problem.hint)


_EXPLAINED_BY: Final = {
    "recreates": ("guard/possible-rename",),
    "refusals": ("refusal/in-use",),
    "answers": ("custom-field/answers-lost", "custom-field/answers-unknown"),
}
"""Guard → the codes of the problems that say what exactly it counted."""
_TOLD: Final = 5
"""As many of those are told where apply would stop; all of them stand with their changes."""


def _guard(plan: Plan, guard: Guard) -> Blocker:
    codes = _EXPLAINED_BY.get(guard.name, ())
    told = [f"{one.message}. {one.hint or ''}".rstrip() for one in plan.all_problems if one.code in codes]
    more = [f"… and {len(told) - _TOLD:,} more"] if len(told) > _TOLD else []
    return Blocker(
        type=BlockerType.GUARD,
        name=guard.name,
        message=guard.reason or "",
        allow=guard.allow,
        hint="\n".join([*told[:_TOLD], *more]) or None,
    )
