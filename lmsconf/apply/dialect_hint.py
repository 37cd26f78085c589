"""The hint to state values of the dialect in the project file, as lines to paste."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lmsconf.errors import LmsconfError, Problem, Severity, WrongAssumption
from lmsconf.manifest.edit.yaml_text import format_scalar


def dialect_hint(values: Mapping[str, str | int], purpose: str = ", and apply again") -> str:
    """Return the hint. purpose: what follows on `Set in the project file`."""
    return "\n".join([f"Set in the project file{purpose}:", "  dialect:", *dialect_lines(values)])


def dialect_lines(values: Mapping[str, str | int]) -> list[str]:
    """Return the values as lines below `dialect:`."""
    return [f"    {key}: {format_scalar(value, in_brackets=False)}" for key, value in sorted(values.items())]


def wrong_assumptions(errors: Iterable[LmsconfError]) -> Iterator[Problem]:
    """Yield the problem of a run that found values of the dialect: all of them, as one block to paste."""
    values: dict[str, str | int] = {}
    for error in errors:
        values |= dict(error.values) if isinstance(error, WrongAssumption) else {}
    if not values:
        return
    points = "1 point" if len(values) == 1 else f"{len(values)} points"
    message = f"the service differs in {points} from what was assumed; nothing else was sent that rests on them"
    probe = "`lmsconf doctor --probe --user EMAIL --content NAME` finds out the others before the next apply."
    yield Problem(
        code=WrongAssumption.code,
        message=message,
        severity=Severity.WARNING,
        hint=f"{dialect_hint(values)}\n{probe}",
    )
