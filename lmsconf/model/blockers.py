"""Why an apply of a plan would stop before its first call: refusals that are certain, failing tests, and guards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from shlex import quote
from typing import Final

from lmsconf.errors import ExitCode, Problem, ProblemsFound
from lmsconf.model.values import Guard, Plan

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

    def __str__(self) -> str:
        """The reason as a sentence: `Guard deletes: 2 deletions, and the limit is 1`."""
        return f"Guard {self.name}: {self.message}" if self.type is BlockerType.GUARD else self.message


def is_blocking(problem: Problem) -> bool:
    """Whether a plan with this problem is made and shown, and not applied."""
    return problem.is_error and problem.code.partition("/")[0] in _BY_AREA


def blockers(plan: Plan) -> tuple[Blocker, ...]:
    """All that would stop an apply: first what nothing lifts, then guards."""
    refused = (_refusal(problem) for problem in plan.all_problems if is_blocking(problem))
    return (*refused, *(_guard(plan, guard) for guard in plan.guards if guard.tripped))


def refuse_blocked(plan: Plan) -> None:
    """Raises ProblemsFound with exit 4 for a plan with certain refusals, failing tests or tripped guards."""
    certain = [problem for problem in plan.all_problems if is_blocking(problem)]
    guards = [_as_problem(plan, one) for one in blockers(plan) if one.allow is not None]
    if certain or guards:
        raise ProblemsFound([*certain, *guards], exit=ExitCode.BLOCKED)


def _as_problem(plan: Plan, guard: Blocker) -> Problem:
    consent = f"To allow exactly this: {consent_command(plan)}"
    hint = "\n".join(filter(None, [guard.hint, consent]))
    return Problem(code=f"guard/{guard.name}", message=f"{guard}. Apply stops here.", hint=hint)


def consent_command(plan: Plan) -> str | None:
    """The command that allows exactly what the guards counted; None where no guard tripped."""
    tripped = any(guard.tripped for guard in plan.guards)
    return " ".join([plan.command, *allowances(plan.guards)]) if tripped else None


def allowances(guards: Iterable[Guard]) -> Iterator[str]:
    """`--allow removals=45` for every guard that the command line has to allow, those already allowed there included.

    Consents of the project file hold for every command and are left out.
    """
    given = (guard.allow or "" for guard in guards if guard.tripped or guard.allowed_by == "--allow")
    return (f"--allow {quote(allow)}" for allow in given)


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
