"""The values of a doctor run, and its report as text and as the document `lmsconf.doctor/1`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct, field, to_builtins

from lmsconf.api.spec.assumed_keys import Value
from lmsconf.documents.document import TOOL, render_json
from lmsconf.errors import ExitCode, SourceLocation
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import count_people
from lmsconf.render.escape import escape_terminal
from lmsconf.render.resource_wording import count_noun


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


FORMAT: Final = "lmsconf.doctor/1"
_WIDTH: Final = 10


def doctor_text(report: DoctorReport) -> str:
    """One line for each finding and assumption."""
    people = "" if report.people is None else f", {count_people(report.people)}"
    assumptions = [_assumed(report.assumptions), _known(report.assumptions), _how_to_try(report.assumptions)]
    blocks = [
        [f"Workspace {report.workspace} ({report.url}{people})"],
        _findings(report.findings),
        *(assumptions if report.probe is None else _probe(report.probe)),
    ]
    return "\n\n".join(filter(None, ("\n".join(map(escape_terminal, block)) for block in blocks))) + "\n"


def doctor_json(report: DoctorReport) -> str:
    """The whole report as a versioned document."""
    return render_json(
        {
            "format": FORMAT,
            "tool": TOOL,
            "workspace": {"name": report.workspace, "url": report.url, "people": report.people},
            "checks": to_builtins(report.findings),
            "assumptions": [_assumption_json(assumption) for assumption in report.assumptions],
            "probe": None if report.probe is None else _probe_json(report.probe),
            "exit": int(report.exit_code),
        }
    )


DOCTOR_VIEWS: Final[Mapping[str, Callable[[DoctorReport], str]]] = {"text": doctor_text, "json": doctor_json}


def _findings(findings: Iterable[CheckResult]) -> Iterator[str]:
    for finding in findings:
        yield f"{finding.health.value:<{_WIDTH}}{finding.check}: {finding.message}"
        if finding.hint:
            yield f"{'':<{_WIDTH}}{finding.hint}"


def _assumed(assumptions: Iterable[DialectAssumption]) -> Iterator[str]:
    assumed = [one for one in assumptions if not one.known]
    if assumed:
        yield f"Assumed, because the service does not document it, and relied on by the manifests: {len(assumed)}"
        yield from (f"  {one.key}: {one.value} (default)" for one in assumed)


def _known(assumptions: Iterable[DialectAssumption]) -> Iterator[str]:
    known = [one for one in assumptions if one.known]
    if known:
        yield f"Known, because the project file states it, and relied on by the manifests: {len(known)}"
    for one in known:
        otherwise = f", instead of {one.default}" if one.overridden else ""
        yield f"  {one.key}: {one.value} ({one.source}{otherwise})"


def _how_to_try(assumptions: Iterable[DialectAssumption]) -> Iterator[str]:
    if not all(one.known for one in assumptions):
        yield "Before the first apply, try what is assumed: lmsconf doctor --probe --user EMAIL --content NAME"


def _probe(probe: ProbeResult) -> Iterator[Iterable[str]]:
    """What was learnt, what was not and why, what was cleaned up, and what to do next."""
    yield _lessons("Differs from what was used before", probe, LessonVerdict.FOUND)
    yield _lessons("Confirmed", probe, LessonVerdict.CONFIRMED)
    yield _not_learnt(probe)
    yield (
        *(f"An earlier probe had left {leftover}; it is deleted." for leftover in probe.leftovers),
        *(f"On the way, {one}." for one in probe.undone),
        *(f"LEFT BEHIND: {one}" for one in probe.remaining),
    )
    yield _next(probe)


def _lessons(title: str, probe: ProbeResult, verdict: LessonVerdict) -> Iterator[str]:
    lessons = [lesson for lesson in probe.lessons if lesson.verdict is verdict]
    if lessons:
        yield f"{title}: {len(lessons)}"
    for lesson in lessons:
        value = "" if lesson.value is None else f": {lesson.value}"
        yield f"  {lesson.key}{value} ({lesson.reason})"


def _not_learnt(probe: ProbeResult) -> Iterator[str]:
    """The keys of each reason."""
    reasons: dict[str, list[str]] = {}
    for lesson in probe.lessons:
        if lesson.verdict is LessonVerdict.UNKNOWN:
            reasons.setdefault(lesson.reason, []).append(lesson.key)
    if reasons:
        yield f"Not learnt: {sum(map(len, reasons.values()))}. Whatever rests on one of these, apply tries alone first."
    for reason, keys in reasons.items():
        yield f"  {reason}:"
        yield from (f"    {key}" for key in keys)


def _next(probe: ProbeResult) -> Iterator[str]:
    if probe.remaining:
        yield "Run the probe again: it deletes what is left first. If it stays, delete it by hand."
    else:
        yield "Nothing is left behind: what the probe created is deleted, and what it changed is as before."
    if probe.written:
        changed = sum(key in probe.written for key in probe.different)
        verb = "differs" if changed == 1 else "differ"
        differs = f"{changed} of them {verb} from what was used before." if changed else "None changes what was used."
        yield f"Written under `dialect:` in the project file: {count_noun(len(probe.written), 'value')}. {differs}"
        yield "Review and commit the project file, then run lmsconf plan."
    elif not probe.different:
        yield "The project file states all that was learnt already."


def _assumption_json(assumption: DialectAssumption) -> Json:
    where = assumption.source
    return {
        "key": assumption.key,
        "value": assumption.value,
        "default": assumption.default,
        "known": assumption.known,
        "overridden": assumption.overridden,
        "operations": to_builtins(assumption.operations),
        "source": None if where is None else {"file": where.file, "line": where.line, "column": where.column},
    }


def _probe_json(probe: ProbeResult) -> Json:
    """Return a probe as JSON, in which what is not learnt has the verdict `unknown`."""
    names = {LessonVerdict.UNKNOWN: "unknown"}
    lessons: list[Json] = [
        {**to_builtins(one), "verdict": names.get(one.verdict, one.verdict.value)} for one in probe.lessons
    ]
    return {**to_builtins(probe), "lessons": lessons}
