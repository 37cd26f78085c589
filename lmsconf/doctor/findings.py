"""The values that a doctor's visit leaves: what was found, what is assumed, what was learnt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from lmsconf.errors import ExitCode, SourceLocation

Value: TypeAlias = "str | int"
"""What a dialect key can be."""


class Health(StrEnum):
    """How a check ended. UNKNOWN: it could not be told, and the message says why."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found."""

    check: str
    health: Health
    message: str
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """One dialect key that the manifests rely on. source: where the project file says its value, if it does."""

    key: str
    value: str
    default: str
    operations: tuple[str, ...]
    source: SourceLocation | None = None

    @property
    def overridden(self) -> bool:
        return self.source is not None


class Verdict(StrEnum):
    """What became of one key: as the project has it, otherwise, or not known, and the reason says why."""

    CONFIRMED = "confirmed"
    FOUND = "found"
    UNKNOWN = "not learnt"


@dataclass(frozen=True, slots=True)
class Lesson:
    """What a probe learnt of one key."""

    key: str
    verdict: Verdict
    value: Value | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Probed:
    """A probe from its first to its last call.

    leftovers   what an earlier run had left, and this one deleted
    remaining   what could not be deleted, each with its reason; empty is how it should be
    undone      what was changed of the person by the way, and put back
    written     what was written into the project file
    """

    lessons: tuple[Lesson, ...]
    leftovers: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    written: Mapping[str, Value] = field(default_factory=dict)

    @property
    def found(self) -> dict[str, Value]:
        """The keys that are otherwise than the project has them."""
        return {
            lesson.key: lesson.value
            for lesson in self.lessons
            if lesson.verdict is Verdict.FOUND and lesson.value is not None
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One visit. exit: the error that ended it early, as an exit code."""

    workspace: str
    url: str
    people: int | None
    findings: tuple[Finding, ...]
    assumptions: tuple[Assumption, ...] = ()
    probe: Probed | None = None
    failure: ExitCode | None = None

    @property
    def exit(self) -> ExitCode:
        """What the visit comes to for a script. After a probe its own end counts: it may have found the remedy."""
        if self.probe is None:
            sick = any(one.health is Health.ERROR for one in self.findings)
        else:
            sick = bool(self.probe.remaining)
        return self.failure or (ExitCode.ERROR if sick else ExitCode.OK)
