"""The codes of problems, and those for which an apply stops before its first call.

`problem_codes.json` says what each means, for `lmsconf explain CODE`; tests compare it with the code. Those of lints
are in `lint_codes.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from shlex import quote
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from lmsconf.errors import ExitCode, Problem, ProblemsFound
from lmsconf.model.control_characters import escape_invisible
from lmsconf.model.guards import GUARD_TABLE
from lmsconf.model.names import first_lines
from lmsconf.model.plan import GuardResult, Plan


@cache
def meanings() -> Mapping[str, str]:
    """Return code → what it means and what to do, as a sentence or two, in alphabetical order."""
    listed = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
    guards = {f"guard/{name}": f"{guard.meaning} `--allow {name}=N`." for name, guard in GUARD_TABLE.items()}
    return dict(sorted({**listed, **guards}.items()))


def meaning_of(code: str) -> str | None:
    """Return what a code means; None for an unknown one."""
    area, slash, word = code.partition("/")
    # Files of a project go through the checks of manifests as well, and sheets through those of people.
    other = {"project": "manifest", "sheet": "people"}.get(area, area)
    return meanings().get(code) or meanings().get(f"{other}{slash}{word}")


CONSENT_LEAD: Final = "Correct the manifests, or allow exactly this:"
"""What stands before the command that consents."""


BlockerType: TypeAlias = Literal["guard", "refusal", "test", "lockout"]

_BY_AREA: Final[Mapping[str, BlockerType]] = {"refusal": "refusal", "test": "test", "lint": "test"}
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
        return f"Guard {self.name}: {self.message}" if self.type == "guard" else self.message


def is_blocking(problem: Problem) -> bool:
    """Whether a plan with this problem can be made and shown, but not applied."""
    return problem.is_error and problem.code.partition("/")[0] in _BY_AREA


def blockers(plan: Plan) -> tuple[Blocker, ...]:
    """Return everything that would stop an apply: first what no consent lifts, then tripped guards."""
    return (
        *(_refusal(problem) for problem in plan.all_problems if is_blocking(problem)),
        *(_guard(plan, guard) for guard in plan.guards if guard.tripped),
    )


def refuse_blocked(plan: Plan) -> None:
    """Raises ProblemsFound with exit 4 if the plan has blocking problems, failing tests or tripped guards."""
    blocking = [problem for problem in plan.all_problems if is_blocking(problem)]
    guards = [_as_problem(plan, blocker) for blocker in blockers(plan) if blocker.allow is not None]
    if blocking or guards:
        raise ProblemsFound([*blocking, *guards], exit=ExitCode.BLOCKED)


def _as_problem(plan: Plan, guard: Blocker) -> Problem:
    losses = _losses(plan) if guard.name == "people" else ()
    hint = "\n".join(filter(None, [guard.hint, *losses, f"{CONSENT_LEAD} {consent_command(plan)}"]))
    return Problem(code=f"guard/{guard.name}", message=f"{guard}. Apply stops here.", hint=hint)


def _losses(plan: Plan) -> Iterator[str]:
    """Yield which contents most people lose, or why that is not known: a plan from a file is not shown again."""
    losses = sorted((one for one in plan.effects.contents if one.counts.lose), key=lambda one: -(one.counts.lose or 0))
    lines = [
        f"{loss.counts.lose:,} of {loss.before or 0:,} {'loses' if loss.counts.lose == 1 else 'lose'} "
        f"{escape_invisible(loss.content)}"
        for loss in losses
    ]
    yield from first_lines(lines, _LISTED, "more contents")
    if plan.effects.people.lose is None:
        yield from map(escape_invisible, plan.effects.reasons[:_LISTED])


def consent_command(plan: Plan) -> str | None:
    """Return the command that allows exactly what the guards counted; None if no guard tripped."""
    tripped = any(guard.tripped for guard in plan.guards)
    return " ".join([plan.command, *allowances(plan.guards)]) if tripped else None


def allowances(guards: Iterable[GuardResult]) -> Iterator[str]:
    """Yield `--allow removals=45` for each guard that is tripped or was allowed so, not by the project file."""
    given = (guard.allow or "" for guard in guards if guard.tripped or guard.allowed_by == "--allow")
    return (f"--allow {quote(allow)}" for allow in given)


def _refusal(problem: Problem) -> Blocker:
    kind = "lockout" if problem.code == "refusal/lock-out" else _BY_AREA[problem.code.partition("/")[0]]
    return Blocker(type=kind, name=problem.code, message=problem.message, hint=problem.hint)


_LISTED: Final = 5
"""How many of the problems that a guard counted a blocker's hint lists; each change lists all of its own."""


def _guard(plan: Plan, guard: GuardResult) -> Blocker:
    codes = GUARD_TABLE[guard.name].listed_by if guard.name in GUARD_TABLE else ()
    listed = [
        f"{escape_invisible(one.message)}. {one.hint or ''}".rstrip() for one in plan.all_problems if one.code in codes
    ]
    return Blocker(
        type="guard",
        name=guard.name,
        message=guard.reason or "",
        allow=guard.allow,
        hint="\n".join(first_lines(listed, _LISTED)) or None,
    )
