"""The values of a doctor run: findings, assumptions, lessons, report."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from lmsconf.api.spec.assumed_keys import Value
from lmsconf.errors import ExitCode, SourceLocation


class Health(StrEnum):
    """The result of a check. UNKNOWN: undetermined, and the message says why."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    UNKNOWN = "unknown"


class CheckResult(Struct, frozen=True):
    """The result of one check."""

    check: str
    health: Health
    message: str
    hint: str | None = None


class DialectAssumption(Struct, frozen=True, kw_only=True):
    """One dialect key that the manifests depend on.

    known: the project file states its value; any other value is assumed. source: where it does.
    """

    key: str
    value: str
    default: str
    known: bool
    operations: tuple[str, ...]
    source: SourceLocation | None = None

    @property
    def overridden(self) -> bool:
        """Whether the project file states another value than the default."""
        return self.value != self.default


class LessonVerdict(StrEnum):
    """The result for one key: as in the project, different, or undetermined, with the reason."""

    CONFIRMED = "confirmed"
    FOUND = "found"
    UNKNOWN = "not learnt"


class DialectLesson(Struct, frozen=True):
    """The probe's result for one key."""

    key: str
    verdict: LessonVerdict
    value: Value | None
    reason: str


class ProbeResult(Struct, frozen=True, kw_only=True):
    """The result of a probe.

    leftovers   objects that an earlier run left, deleted by this one
    remaining   what could not be deleted, each with its reason; should be empty
    undone      side effects on the person that were reverted
    written     the keys written into the project file
    """

    lessons: tuple[DialectLesson, ...]
    leftovers: tuple[str, ...] = ()
    remaining: tuple[str, ...] = ()
    undone: tuple[str, ...] = ()
    written: Mapping[str, Value] = field(default_factory=dict)

    @property
    def values(self) -> dict[str, Value]:
        """The keys that were determined, each with its value."""
        return {lesson.key: lesson.value for lesson in self.lessons if lesson.value is not None}

    @property
    def different(self) -> list[str]:
        """The keys whose value differs from the one that the project used."""
        return [lesson.key for lesson in self.lessons if lesson.verdict is LessonVerdict.FOUND]


class DoctorReport(Struct, frozen=True, kw_only=True):
    """One doctor run. failure: exit code of the error that ended it early."""

    workspace: str
    url: str
    people: int | None
    findings: tuple[CheckResult, ...]
    assumptions: tuple[DialectAssumption, ...] = ()
    probe: ProbeResult | None = None
    failure: ExitCode | None = None

    @property
    def exit_code(self) -> ExitCode:
        """The exit code. After a probe, its own result counts instead of the checks': it may have found the fix."""
        if self.probe is None:
            failed = any(finding.health is Health.ERROR for finding in self.findings)
        else:
            failed = bool(self.probe.remaining)
        return self.failure or (ExitCode.ERROR if failed else ExitCode.OK)
