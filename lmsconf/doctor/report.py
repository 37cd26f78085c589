"""The values of a doctor run, and its report as text and as the document `lmsconf.doctor/1`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

from msgspec import Struct, field, to_builtins

from lmsconf.api.spec.dialect_candidates import Value
from lmsconf.documents.json_documents import TOOL, render_json
from lmsconf.errors import ExitCode, SourceLocation
from lmsconf.model.forms import OfWorkspace

Health: TypeAlias = Literal["ok", "warning", "error", "unknown"]
"""The result of a check. unknown: undetermined, and the message says why."""


class CheckResult(Struct, frozen=True):
    """The result of one check."""

    check: str
    health: Health
    message: str
    hint: str | None = None


class DialectAssumption(Struct, frozen=True, kw_only=True):
    """One dialect key that the manifests depend on.

    known: the project file states its value; any other value is assumed. overridden: it states another value than the
    default. source: where it does.
    """

    key: str
    value: str
    default: str
    known: bool
    overridden: bool
    operations: tuple[str, ...]
    source: SourceLocation | None = None


class DialectLesson(Struct, frozen=True):
    """The probe's result for one key: as in the project, different, or undetermined, with the reason."""

    key: str
    verdict: Literal["confirmed", "found", "unknown"]
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


class DoctorReport(OfWorkspace, frozen=True, kw_only=True):
    """One doctor run. failure: exit code of the error that ended it early."""

    findings: tuple[CheckResult, ...]
    assumptions: tuple[DialectAssumption, ...] = ()
    probe: ProbeResult | None = None
    failure: ExitCode | None = None

    @property
    def exit_code(self) -> ExitCode:
        """The exit code. After a probe, its own result counts instead of the checks': it may have found the fix."""
        failed = self.probe.remaining if self.probe else any(one.health == "error" for one in self.findings)
        return self.failure or (ExitCode.ERROR if failed else ExitCode.OK)


def doctor_text(report: DoctorReport) -> str:
    """One line for each finding and assumption."""
    from lmsconf.render.jinja import terminal_text  # slow to import, and JSON needs none of it

    return terminal_text("doctor.txt.j2", report=report)


def doctor_json(report: DoctorReport) -> str:
    """The whole report as a versioned document."""
    return render_json(
        {
            "format": "lmsconf.doctor/1",
            "tool": TOOL,
            "workspace": {"name": report.workspace, "url": report.url, "people": report.people},
            "checks": to_builtins(report.findings),
            "assumptions": to_builtins(report.assumptions),
            "probe": to_builtins(report.probe),
            "exit": int(report.exit_code),
        }
    )


DOCTOR_VIEWS: Final[Mapping[str, Callable[[DoctorReport], str]]] = {"text": doctor_text, "json": doctor_json}
