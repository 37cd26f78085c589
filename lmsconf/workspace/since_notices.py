"""Notes for reviewers of a plan made with `--since`: what was read, what is from the snapshot, what was not read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from lmsconf.errors import Problem, Severity
from lmsconf.model.address import Address
from lmsconf.model.scope import SINCE_CODE
from lmsconf.workspace.snapshot_notices import format_age

_SHOWN: Final = 10
"""How many resources that are no longer declared are named."""


def scope_notice(selected: int, others: int, age: timedelta, taken_at: str, *, is_used: bool) -> Problem:
    """Return the note on the scope of a plan.

    selected, others: how many resources of the manifests it looks at, and how many not. is_used: whether anything is
    from the snapshot.
    """
    taken = f"the snapshot taken {format_age(age)}, {taken_at}"
    source = (
        "the people, contents and audiences that they only name, and all else that they are compared with, "
        f"are those of {taken}"
        if is_used
        else f"{taken}, is not needed for this plan, and nothing is taken from it"
    )
    return Problem(
        code=SINCE_CODE,
        message=f"{_resources(selected)} of the manifests that this change touches or needs, read now; {source}; "
        f"{_resources(others)} that it does not touch, not read and not planned; nothing is deleted by ownership",
        hint="To plan everything, remove --since.",
        severity=Severity.NOTE,
    )


def _resources(number: int) -> str:
    return f"{number:,} resource{'' if number == 1 else 's'}"


def dropped_notices(dropped: Sequence[Address]) -> Iterator[Problem]:
    """Yield a note on resources that only the base declares: whether they are live was not read."""
    if not dropped:
        return
    more = f" and {len(dropped) - _SHOWN:,} more" if len(dropped) > _SHOWN else ""
    names = ", ".join(map(str, dropped[:_SHOWN]))
    yield Problem(
        code="since/no-longer-declared",
        message=f"no longer declared, and not deleted by this plan: {names}{more}; whether they are live was not read",
        hint="To delete them, list them under `absent`.",
        severity=Severity.NOTE,
    )
