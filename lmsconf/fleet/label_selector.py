"""`--select 'ring=canary,region!=us'`: workspaces by their labels, as kubectl's equality-based selectors."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from lmsconf.errors import UsageError, shorten

WORKSPACE: Final = "workspace"
"""A label that every workspace has: its name."""
EVERY: Final = "*"
_KEY: Final = r"[A-Za-z][A-Za-z0-9_.-]*"
_EQUAL: Final = re.compile(rf"({_KEY})\s*(==|=|!=)\s*([A-Za-z0-9][A-Za-z0-9_.-]*)")
_PRESENT: Final = re.compile(rf"(!?)\s*({_KEY})")


class Requirement(NamedTuple):
    """One part of a selector. value: that the label has, or has not; None: that there is such a label, or none."""

    key: str
    value: str | None
    negated: bool

    def fits(self, labels: Mapping[str, str]) -> bool:
        """Whether labels meet it. As with kubectl, a label that is missing meets `!=`."""
        holds = self.key in labels if self.value is None else labels.get(self.key) == self.value
        return holds is not self.negated


class LabelSelector(NamedTuple):
    """What workspaces must meet to be selected: all of its requirements."""

    text: str
    requirements: tuple[Requirement, ...]

    def fits(self, workspace: str, labels: Mapping[str, str]) -> bool:
        """Whether a workspace with these labels is selected."""
        known = {WORKSPACE: workspace, **labels}
        return all(requirement.fits(known) for requirement in self.requirements)


def parse_selector(text: str, option: str) -> LabelSelector:
    """Parse a selector; `*` and an empty text select every workspace. Raises UsageError."""
    if text.strip() in ("", EVERY):
        return LabelSelector(EVERY, ())
    return LabelSelector(text, tuple(_requirement(part.strip(), option) for part in text.split(",")))


def _requirement(part: str, option: str) -> Requirement:
    if equal := _EQUAL.fullmatch(part):
        key, sign, value = equal.groups()
        return Requirement(key, value, sign == "!=")
    if present := _PRESENT.fullmatch(part):
        return Requirement(present[2], None, bool(present[1]))
    hint = "Write ring=canary, region!=us, ring or !ring, with commas between them."
    if "(" in part:
        hint += " Sets, as in `ring in (a, b)`, are not supported."
    raise UsageError(f"{option}: {shorten(part)!r} is not a selector", hint=hint)
