"""Lints: what `lint_codes.json` says of each code, and how the project file changes their levels.

A lint reports manifests that are valid but probably not intended. It sends no request, and says nothing about
what the command does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from enum import StrEnum
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.json import decode
from msgspec.structs import replace

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.model.address import Address

PREFIX: Final = "lint/"


class LintLevel(StrEnum):
    """How a lint is reported, from the weakest to the strictest. OFF: not at all; ERROR: `apply` stops."""

    OFF = "off"
    NOTE = "note"
    WARNING = "warning"
    ERROR = "error"

    def is_weaker_than(self, other: LintLevel) -> bool:
        """Whether less is reported than at another level."""
        return [*LintLevel].index(self) < [*LintLevel].index(other)


class LintRule(Struct, frozen=True, kw_only=True):
    """One lint. title: what it reports. why: what is wrong with that. remedy: what to do.

    known_from: what it looks at, and when it says nothing. in_validate: whether manifests alone can show it.
    """

    code: str
    level: LintLevel
    title: str
    why: str
    remedy: str
    known_from: str
    in_validate: bool = True


class LintSetting(Struct, frozen=True, kw_only=True):
    """The level of one lint in the project file, before the day `until`; None: always."""

    level: LintLevel
    until: date | None
    source: SourceLocation


RULES: Final[Mapping[str, LintRule]] = {
    rule.code: rule for rule in decode(Path(__file__).with_suffix(".json").read_bytes(), type=list[LintRule])
}
"""Code → lint, in the order in which they are listed."""


def is_lint(problem: Problem) -> bool:
    """Whether a problem is the finding of a lint."""
    return problem.code.startswith(PREFIX)


def lint_problem(
    code: str, message: str, *, source: SourceLocation, address: Address, remedy: str | None = None
) -> Problem:
    """Return the finding of a lint at its default level. remedy: None for that of the lint."""
    rule = RULES[code]
    return Problem(
        code=code,
        message=f"{address}: {message}",
        severity=Severity(rule.level),
        hint=f"{remedy or rule.remedy} More: lmsconf explain {code}",
        source=source,
        address=str(address),
    )


def apply_levels(findings: Iterable[Problem], levels: Mapping[str, LintLevel]) -> Iterator[Problem]:
    """Return the findings of lints with the severities of these levels, without those that are off."""
    levelled = ((finding, levels.get(finding.code, RULES[finding.code].level)) for finding in findings)
    return (replace(finding, severity=Severity(level)) for finding, level in levelled if level is not LintLevel.OFF)


def raise_to_errors(levels: Mapping[str, LintLevel], base: Mapping[str, LintLevel]) -> dict[str, LintLevel]:
    """Return levels with those that stop an apply in a base, too: a change cannot lift what stops it."""
    return {**levels, **{code: level for code, level in base.items() if level is LintLevel.ERROR}}
