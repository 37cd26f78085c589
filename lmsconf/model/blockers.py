"""Reasons why an apply would stop before its first call: certain refusals, failing tests and tripped guards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from shlex import quote
from typing import Final

from msgspec import Struct

from lmsconf.errors import ExitCode, Problem, ProblemsFound
from lmsconf.model.names import escape_invisible
from lmsconf.model.plan import GuardResult, Plan

LOCK_OUT: Final = "refusal/lock-out"
CONSENT_LEAD: Final = "Correct the manifests, or allow exactly this:"
"""What stands before the command that consents."""
_PEOPLE: Final = "people"
"""The guard that counts who loses content."""


class BlockerType(StrEnum):
    """The type of a blocker."""

    GUARD = "guard"
    REFUSAL = "refusal"
    TEST = "test"
    LOCKOUT = "lockout"


_BY_AREA: Final = {"refusal": BlockerType.REFUSAL, "test": BlockerType.TEST, "lint": BlockerType.TEST}
"""First part of a problem code → blocker type. A plan with such an error can be made and shown, but not applied.

A lint at the level `error` is a test that the manifests fail.
"""


class Blocker(Struct, frozen=True, kw_only=True):
    """One reason to stop. allow: the consent that lifts it, None if nothing does. hint: what to do instead."""

    type: BlockerType
    name: str
    message: str
    allow: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        """Return the reason as one sentence: `Guard deletes: 2 deletions, and the limit is 1`."""
        return f"Guard {self.name}: {self.message}" if self.type is BlockerType.GUARD else self.message


def is_blocking(problem: Problem) -> bool:
    """Whether a plan with this problem can be made and shown, but not applied."""
    return problem.is_error and problem.code.partition("/")[0] in _BY_AREA


def blockers(plan: Plan) -> tuple[Blocker, ...]:
    """Return everything that would stop an apply: first what no consent lifts, then tripped guards."""
    refused = (_refusal(problem) for problem in plan.all_problems if is_blocking(problem))
    return (*refused, *(_guard(plan, guard) for guard in plan.guards if guard.tripped))


def refuse_blocked(plan: Plan) -> None:
    """Raises ProblemsFound with exit 4 if the plan has certain refusals, failing tests or tripped guards."""
    certain = [problem for problem in plan.all_problems if is_blocking(problem)]
    guards = [_as_problem(plan, blocker) for blocker in blockers(plan) if blocker.allow is not None]
    if certain or guards:
        raise ProblemsFound([*certain, *guards], exit=ExitCode.BLOCKED)


def _as_problem(plan: Plan, guard: Blocker) -> Problem:
    consent = f"{CONSENT_LEAD} {consent_command(plan)}"
    hint = "\n".join(filter(None, [guard.hint, *(_losses(plan) if guard.name == _PEOPLE else ()), consent]))
    return Problem(code=f"guard/{guard.name}", message=f"{guard}. Apply stops here.", hint=hint)


def _losses(plan: Plan) -> Iterator[str]:
    """Yield which contents most people lose, or why that is not known: a plan from a file is not shown again."""
    losses = sorted((one for one in plan.effects.contents if one.counts.lose), key=lambda one: -(one.counts.lose or 0))
    for loss in losses[:_LISTED]:
        verb = "loses" if loss.counts.lose == 1 else "lose"
        yield f"{loss.counts.lose:,} of {loss.before or 0:,} {verb} {escape_invisible(loss.content)}"
    if len(losses) > _LISTED:
        yield f"… and {len(losses) - _LISTED:,} more contents"
    if plan.effects.people.lose is None:
        yield from map(escape_invisible, plan.effects.reasons[:_LISTED])


def consent_command(plan: Plan) -> str | None:
    """Return the command that allows exactly what the guards counted; None if no guard tripped."""
    tripped = any(guard.tripped for guard in plan.guards)
    return " ".join([plan.command, *allowances(plan.guards)]) if tripped else None


def reviewed_consent(plan: Plan) -> str | None:
    """Return the line of the project file that allows the same, so that it is reviewed; None if no guard tripped.

    Its date is left to write: a consent without a date is an error.
    """
    given = [(guard.allow or "").partition("=") for guard in plan.guards if guard.tripped]
    entries = [f"{{{name}: {number}, reason: …, until: YYYY-MM-DD}}" for name, _, number in given]
    return f"allow: [{', '.join(entries)}]" if entries else None


def allowances(guards: Iterable[GuardResult]) -> Iterator[str]:
    """Yield `--allow removals=45` for each guard that is tripped or was allowed by `--allow`.

    Consents of the project file apply to every command and are left out.
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
"""Guard → codes of the problems that list what it counted."""
_LISTED: Final = 5
"""How many of those a blocker's hint lists; each change lists all of its own."""


def _guard(plan: Plan, guard: GuardResult) -> Blocker:
    codes = _EXPLAINED_BY.get(guard.name, ())
    told = [one for one in plan.all_problems if one.code in codes]
    listed = [f"{escape_invisible(one.message)}. {one.hint or ''}".rstrip() for one in told]
    more = [f"… and {len(listed) - _LISTED:,} more"] if len(listed) > _LISTED else []
    return Blocker(
        type=BlockerType.GUARD,
        name=guard.name,
        message=guard.reason or "",
        allow=guard.allow,
        hint="\n".join([*listed[:_LISTED], *more]) or None,
    )
