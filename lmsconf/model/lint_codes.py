"""Lints: their codes, default levels and explanations, and how the project file changes their levels.

A lint reports manifests that are valid but probably not intended. It sends no request, and says nothing about
what the command does not know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from enum import StrEnum
from typing import Final

from msgspec import Struct
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
    rule.code: rule
    for rule in (
        LintRule(
            code="lint/impossible-conditions",
            level=LintLevel.WARNING,
            title="No answer meets all conditions of a smart group.",
            why="A person gives one answer to a field of type CHOICE, and all conditions must hold. Conditions on the "
            "same field that have no choice in common leave the smart group without members.",
            remedy="To combine choices with OR, write them in one condition: choices: [SE, NO].",
            known_from="The conditions, and the type of the field: declared, or live in a plan. Conditions with a "
            "system condition other than IS_ANY are not checked.",
        ),
        LintRule(
            code="lint/matches-nobody",
            level=LintLevel.WARNING,
            title="A smart group has no members.",
            why="No active person has the answers that its conditions require, so its assignments reach "
            "nobody. Often a choice is misspelt, or a condition too many is written.",
            remedy="Correct the conditions, or delete the smart group.",
            known_from="The members after the plan, where its effects on people are computed from them and exact. "
            "A smart group whose field or choice the plan creates is not reported: nobody can have answered yet.",
            in_validate=False,
        ),
        LintRule(
            code="lint/matches-everybody",
            level=LintLevel.NOTE,
            title="A smart group has all active people as members.",
            why="It is the same audience as `everyone`, until somebody gives another answer. Often a condition is "
            "missing.",
            remedy="Add the condition that is missing, or assign to `everyone`.",
            known_from="The members after the plan, where its effects on people are computed from them and exact, in "
            "a workspace with at least two active people.",
            in_validate=False,
        ),
        LintRule(
            code="lint/no-active-manager",
            level=LintLevel.NOTE,
            title="A group or smart group has no manager, or only archived ones.",
            why="Archived people cannot manage, so nobody follows up on its members.",
            remedy="Name a manager. To manage managers in the product, remove the key `managers`.",
            known_from="`managers` where it is declared, and who is archived: by the manifests, or live in a plan.",
        ),
        LintRule(
            code="lint/empty-mandatory",
            level=LintLevel.WARNING,
            title="A mandatory assignment has an audience without active people.",
            why="It requires the content of nobody.",
            remedy="Correct the audience, or remove the assignment.",
            known_from="The declared whole list of members; in a plan also who is archived, and the members after "
            "the plan where its effects on people are computed from them and exact.",
        ),
        LintRule(
            code="lint/closed-window",
            level=LintLevel.WARNING,
            title="The window of an assignment is over.",
            why="After `visible_until` nobody has the content through this assignment.",
            remedy="Remove the assignment, or give it a later `visible_until`.",
            known_from="`visible_until`, and today's date in `validate` or the time of the plan. A window that closes "
            "before it opens is the error content-target/window, which has no level.",
        ),
        LintRule(
            code="lint/contradicting-assignments",
            level=LintLevel.WARNING,
            title="An assignment is overruled by another one of the same content to an audience that contains it.",
            why="People have a content through all assignments that reach them. If the larger audience must take it, "
            "`mandatory: false` for a part of it changes nothing while both windows are open. If the larger audience "
            "has a longer window, a shorter one for a part of it hides nothing.",
            remedy="Remove one of the two, or make the larger audience smaller.",
            known_from="Assignments in the manifests. `everyone` contains every audience; a group contains the people "
            "that it declares as members; a smart group contains those that have at least its conditions.",
        ),
        LintRule(
            code="lint/duplicate-audience",
            level=LintLevel.NOTE,
            title="Two smart groups have equal conditions, or two groups the same members.",
            why="Both are one audience under two names, and a change to one of them is easily forgotten in the other.",
            remedy="Keep one of the two, and assign to it.",
            known_from="Declared conditions, and declared whole lists of at least two members.",
        ),
        LintRule(
            code="lint/unused-field",
            level=LintLevel.NOTE,
            title="No condition uses a custom field, and all custom fields of the workspace are taken.",
            why="A workspace has at most ten custom fields. Deleting one that no smart group uses makes room for "
            "another.",
            remedy="If nothing else needs its answers, list it under `absent: custom_fields:`.",
            known_from="All fields after the plan, and the conditions of all smart groups. It reports nothing "
            "unless the "
            "plan has read the conditions of every smart group.",
            in_validate=False,
        ),
        LintRule(
            code="lint/archived-assignee",
            level=LintLevel.WARNING,
            title="Content is assigned to a person who is archived.",
            why="Archived people cannot learn.",
            remedy="Remove the assignment, or unarchive the person.",
            known_from="Who is archived: by the manifests, or live in a plan.",
        ),
        LintRule(
            code="lint/suspicious-name",
            level=LintLevel.WARNING,
            title="A name has quotation marks, invisible characters or look-alike letters in it.",
            why="Text from a word processor or a chat brings curly quotation marks, which YAML takes for a part of "
            "the name, no-break spaces, and characters that cannot be seen. Such a name looks like another one, "
            "and typing it does not find it.",
            remedy="Write the name again by hand. To rename what is live, keep the old name under `previously`.",
            known_from="The names that manifests give to groups, smart groups, custom fields and choices.",
        ),
    )
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
