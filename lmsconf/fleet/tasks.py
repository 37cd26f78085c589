"""One command in one workspace of a fleet: its settings and connection, its result, and the file with all of it.

Credentials are resolved here, where the work is done. `LMSCONF_TOKEN`, `LMSCONF_URL` and `LMSCONF_WORKSPACE` are about
one workspace, and are ignored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from lmsconf.apply.apply import ApplyOptions, PlanSource, PlanToApply, apply_safely, saved_plan_source
from lmsconf.apply.python_api import Project
from lmsconf.apply.remote_lock import CLOCKS_DIFFER, LockHeldElsewhere
from lmsconf.apply.replanning import plan_what_is_left, reevaluate_guards
from lmsconf.apply.scheduler import ApplyEvents
from lmsconf.documents import reports
from lmsconf.documents.journal.journal_folder import WorkspaceLocked
from lmsconf.documents.journal.journal_reader import read_headers
from lmsconf.documents.plan_file import dumps, loads, plan_digest
from lmsconf.documents.reports import drift_json, problems_json
from lmsconf.errors import ExitCode, LmsconfError, Problem, StalePlan
from lmsconf.model.calls import CallStatus
from lmsconf.model.fleet import LOST, FleetAction, FleetEntry
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Plan
from lmsconf.model.problem_codes import blockers, refuse_blocked
from lmsconf.planner.audience.people_questions import failed_problems
from lmsconf.project.config_reader import read_project_file
from lmsconf.project.settings import Settings, settings_of
from lmsconf.render.plan_wording import relaxed_settings
from lmsconf.support.files import read_text, write_atomically
from lmsconf.support.interrupts import Interrupts
from lmsconf.workspace.connection import Connection, RateLimiters
from lmsconf.workspace.project_manifests import error_free, load_manifests
from lmsconf.workspace.reader import WorkspaceReader, run_access_tests

Document = TypeVar("Document")
OF_ONE_WORKSPACE: Final = ("LMSCONF_TOKEN", "LMSCONF_URL", "LMSCONF_WORKSPACE")
"""Environment variables that are about one workspace."""


class FleetTask(Struct, frozen=True, kw_only=True):
    """One command in one workspace, with its url and labels.

    out: the folder for its result file, or with the plan file to apply; None: no file is written. digest: that the plan
    to apply must have. parallelism: concurrent requests. max_rate: requests a second to the workspace's host, of the
    process that works on the task. effects: whether a plan has its effects on people. meta: key and value pairs for the
    report of an apply. base, trusted: of a plan, what `--base` and `--trust-project` name. attempt: of an apply, from
    1; more than 1 where a machine has died that may have carried out a part of the plan. has_journals: whether the
    journals of all earlier attempts are in the project's folder.
    """

    workspace: str
    action: FleetAction
    url: str
    labels: Mapping[str, str] = field(default_factory=dict)
    out: str | None = None
    digest: str | None = None
    parallelism: int = 8
    max_rate: float | None = None
    effects: bool = True
    meta: Mapping[str, str] = field(default_factory=dict)
    base: str | None = None
    trusted: tuple[str, ...] = ()
    attempt: int = 1
    has_journals: bool = True

    def entry(self, code: ExitCode, *problems: Problem) -> FleetEntry:
        """Return a result that has an exit code and problems alone."""
        return FleetEntry(workspace=self.workspace, url=self.url, labels=self.labels, exit=code, problems=problems)

    def lost(self, code: ExitCode, problem: Problem) -> FleetEntry:
        """Return the result of a task that has none: of an apply, it may be done in part."""
        is_begun = self.action is FleetAction.APPLY and problem.code == LOST
        return self.entry(ExitCode.PARTIAL if is_begun else code, problem)


def with_part_of_rate(task: FleetTask, processes: int) -> FleetTask:
    """Return a task with the part of its rate that each of several processes may send at."""
    return task if task.max_rate is None else replace(task, max_rate=max(0.01, task.max_rate / processes))


class TaskRunner:
    """Run tasks in the workspaces of one project, whose project file is read once.

    Raises ProblemsFound for a project file with errors.
    """

    def __init__(
        self,
        root: Path,
        environ: Mapping[str, str],
        key: bytes | None = None,
        *,
        durable: bool = True,
    ) -> None:
        """key: the secret that signs plan files, and that they must be signed with. durable: whether result files are
        synced to disk.
        """
        self._root, self._key, self._durable = root, key, durable
        self._rate_limiters: RateLimiters = {}
        self._environ = {name: value for name, value in environ.items() if name not in OF_ONE_WORKSPACE}
        self._project = read_project_file(root)

    def run(self, task: FleetTask, interrupts: Interrupts | None = None) -> FleetEntry:
        """Run one task and return its result; an error of lmsconf is part of the result, not raised.

        interrupts: keeps Ctrl-C and SIGTERM once an apply has begun, also after it.
        """
        self._interrupts = interrupts or Interrupts()
        # Notes are about one workspace.
        project = replace(self._project, notes=[])
        try:
            opened = Project(
                settings=settings_of(project, self._root, task.workspace, self._environ),
                environ=self._environ,
                parallelism=task.parallelism,
                max_rate=task.max_rate,
                rate_limiters=self._rate_limiters,
            )
            return _ACTIONS[task.action](self, task, opened, task.entry(ExitCode.OK))
        except LmsconfError as error:
            problems, file = error.problems, None
            with suppress(LmsconfError):  # of what could not be done in the workspace, the result says more
                file = self._saved(task, "problems", lambda: problems_json(problems))
            return replace(task.entry(error.exit, *_errors(problems)), file=file)

    def validate(self, task: FleetTask, project: Project, entry: FleetEntry) -> FleetEntry:
        problems = project.validate()
        errors = _errors(problems)
        return replace(
            entry,
            exit=ExitCode.ERROR if errors else ExitCode.OK,
            summary={"problems": len(problems)},
            problems=errors,
            file=self._saved(task, "problems", lambda: problems_json(problems)) if problems else None,
        )

    def plan(self, task: FleetTask, project: Project, entry: FleetEntry) -> FleetEntry:
        plan = project.plan(base=task.base, trust_project=task.trusted, effects=task.effects)
        return replace(
            entry,
            exit=ExitCode.CHANGES if plan.changes else ExitCode.OK,
            digest=plan_digest(plan),
            summary=asdict(plan.summary),
            people=asdict(plan.effects.people),
            basis=plan.effects.basis,
            guards={guard.name: guard.total for guard in plan.guards},
            relaxed=tuple(relaxed_settings(plan)),
            assumed_keys=tuple(one.key for one in plan.assumptions if not one.known),
            assumed_calls=plan.assumed_calls,
            blocked=blockers(plan),
            file=self._saved(task, "plan", lambda: dumps(plan, self._key)),
        )

    def _saved(self, task: FleetTask, what: str, text: Callable[[], str]) -> str | None:
        """Write a result file into the folder of the fleet; return its name there, None if there is no folder."""
        if task.out is None:
            return None
        name = f"{task.workspace}.{what}.json"
        write_atomically(Path(task.out, name), text(), durable=self._durable)
        return name

    def drift(self, task: FleetTask, project: Project, entry: FleetEntry) -> FleetEntry:
        report = project.drift()
        return replace(
            entry,
            exit=report.exit,
            summary={"differences": len(report.findings), "ignored": len(report.ignored)},
            problems=_errors(report.problems),
            file=self._saved(task, "drift", lambda: drift_json(report)),
        )

    def test(self, task: FleetTask, project: Project, entry: FleetEntry) -> FleetEntry:
        settings = project.settings
        with Connection(
            settings, max_rate=task.max_rate, rate_limiters=self._rate_limiters, only_reads=True
        ) as connection:
            report = run_access_tests(
                WorkspaceReader(settings=settings, connection=connection, parallelism=task.parallelism),
                error_free(load_manifests(settings)),
            )
        return replace(
            entry,
            exit=ExitCode.ERROR if report.failed else ExitCode.OK,
            summary={"tests": len(report.results), "failed": len(report.failed)},
            problems=tuple(failed_problems(report.results)),
        )

    def apply(self, task: FleetTask, project: Project, entry: FleetEntry) -> FleetEntry:
        """Apply the plan file in `out`, as `lmsconf apply PLANFILE` does."""
        plan = load_file(plan_path(task.out or self._root, task.workspace), loads, self._key)
        options = ApplyOptions(
            digest=task.digest,
            meta=task.meta,
            parallelism=task.parallelism,
            max_rate=task.max_rate,
            interrupts=self._interrupts,
            rate_limiters=self._rate_limiters,
        )
        if task.attempt == 1:
            report, _ = apply_safely(project.settings, saved_plan_source(plan), options, ApplyEvents())
            done = report.summary[CallStatus.DONE]
        else:
            report, done = apply_again(project.settings, plan, options, has_journals=task.has_journals)
        return replace(
            entry,
            exit=ExitCode(report.exit),
            digest=report.plan_digest,
            summary={"calls": len(plan.calls), "done": done},
            problems=_errors(report.problems),
            file=self._saved(task, "report", lambda: reports.apply_json(report)),
        )


_ACTIONS: Final[Mapping[FleetAction, Callable[[TaskRunner, FleetTask, Project, FleetEntry], FleetEntry]]] = {
    FleetAction.VALIDATE: TaskRunner.validate,
    FleetAction.PLAN: TaskRunner.plan,
    FleetAction.DRIFT: TaskRunner.drift,
    FleetAction.TEST: TaskRunner.test,
    FleetAction.APPLY: TaskRunner.apply,
}


def plan_path(folder: Path | str, workspace: str) -> Path:
    """Return the path of the plan file of a workspace in the folder of a fleet."""
    return Path(folder, f"{workspace}.plan.json")


def load_file(path: Path, load: Callable[[str, bytes | None], Document], key: bytes | None) -> Document:
    """Load a file in the folder of a fleet. key: the secret that it must be signed with.

    Raises LmsconfError, which names the file.
    """
    text = read_text(path, regular=True)
    try:
        return load(text, key)
    except LmsconfError as error:
        error.message = f"{path}: {error.message}"
        raise


def result_files(workspace: str) -> list[str]:
    """Return the names that result files of a workspace may have."""
    return [f"{workspace}.{what}.json" for what in ("plan", "problems", "drift", "report")]


def _errors(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    return tuple(problem for problem in problems if problem.is_error)


_AGAIN_AFTER: Final = 2.0


def begun_plans(root: Path) -> frozenset[str]:
    """Return the digests of the plans of which a journal in the project's folder says that a run has begun.

    Raises LmsconfError.
    """
    return frozenset(header.digest for _, header in read_headers(root))


def apply_again(
    settings: Settings, plan: Plan, options: ApplyOptions, *, has_journals: bool
) -> tuple[ApplyReport, int]:
    """Apply what is left of a plan; return the report of that, and how many calls of the whole plan are carried out.

    has_journals: whether the journals of all earlier attempts are here; then only as long as they need is waited.
    """
    if not has_journals and not settings.workspace.embedded:
        time.sleep(settings.policy.settle)
    digest, left = plan_digest(plan), 0

    def prepare(workspace: WorkspaceReader, progress: ApplyEvents) -> PlanToApply:
        nonlocal left
        if options.digest not in (None, digest):
            raise StalePlan(
                f"expected the digest {options.digest}, but the plan's is {digest}",
                hint="Review the plan as it is now.",
            )
        guarded = reevaluate_guards(workspace, plan, ())
        rest = plan_what_is_left(workspace, guarded)
        refuse_blocked(guarded)  # what is left is planned without the lists of `guards.protect`
        left = len(rest.calls)
        return PlanToApply(plan=rest, is_saved=False)

    report = _once_unlocked(settings, prepare, replace(options, digest=None))
    return replace(report, plan_digest=digest), len(plan.calls) - left + report.summary[CallStatus.DONE]


def _once_unlocked(settings: Settings, source: PlanSource, options: ApplyOptions) -> ApplyReport:
    """Apply as soon as the locks of the dead attempt are free. Raises what `apply_safely` raises."""
    lease = 0.0 if settings.lock is None else settings.lock.lease + CLOCKS_DIFFER
    end = time.monotonic() + max(lease, settings.policy.settle) + _AGAIN_AFTER
    while True:
        try:
            return apply_safely(settings, source, options, ApplyEvents())[0]
        except (WorkspaceLocked, LockHeldElsewhere):
            if time.monotonic() >= end:
                raise
            time.sleep(_AGAIN_AFTER)
