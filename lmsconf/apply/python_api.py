"""lmsconf from Python: `lmsconf.open(path)` returns a Project with the same safety checks as the command line.

    project = lmsconf.open("examples/acme")
    plan = project.plan()
    report = project.apply(plan, approve=lambda plan: not plan.left_out)

Every method opens its own connection and closes it. Errors are `lmsconf.errors.LmsconfError`; its `exit` is the exit
code that the command line would end with.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.apply.apply import ApplyOptions, apply_safely, saved_plan_source
from lmsconf.apply.scheduler import ApplyEvents
from lmsconf.documents.plan_file import dumps, loads
from lmsconf.errors import Problem, UsageError
from lmsconf.model.calls import Report
from lmsconf.model.declarations import Manifests
from lmsconf.model.drift import DriftReport
from lmsconf.model.guards import parse_consents
from lmsconf.model.outcomes import ApplyReport, VerifyMode
from lmsconf.model.plan import Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.project.settings import Settings, load_settings
from lmsconf.support.files import read_text, write_atomically
from lmsconf.workspace.connection import Connection, RateLimiters
from lmsconf.workspace.export import ExportResult, export_snapshot
from lmsconf.workspace.plan_with_base import plan_with_base
from lmsconf.workspace.project_manifests import error_free, load_base, load_manifests, validate_offline
from lmsconf.workspace.reader import WorkspaceReader


def open_project(
    path: str | os.PathLike[str], *, workspace: str | None = None, environ: Mapping[str, str] | None = None
) -> Project:
    """Open the project in the folder `path`.

    workspace: one of the project file's, if it has several. environ: used instead of the environment variables of this
    process. Raises ProblemsFound for a project file with errors, UsageError for a folder or a workspace that does not
    exist.
    """
    known = dict(os.environ) if environ is None else environ
    return Project(load_settings(Path(path), workspace, known), known)


class Project(Struct, frozen=True):
    """A project folder and the workspace that it configures. Create it with `lmsconf.open`.

    parallelism: concurrent requests. max_rate: requests a second; None, as many as the service accepts. rate_limiters:
    shared with other projects of this process, so that together they keep the limit.
    """

    settings: Settings
    environ: Mapping[str, str]
    parallelism: int = 8
    max_rate: float | None = None
    rate_limiters: RateLimiters | None = None

    def validate(self) -> Sequence[Problem]:
        """Return every problem of the manifests, errors and warnings. Sends no request."""
        return validate_offline(self.settings).problems

    def plan(
        self,
        *,
        only: Sequence[str] = (),
        excluded: Sequence[str] = (),
        additive: bool = False,
        allow: Sequence[str] = (),
        base: str | None = None,
        trust_project: Collection[str] = (),
        effects: bool = True,
        people: bool = False,
        rehearse: bool = False,
        progress: Report | None = None,
    ) -> Plan:
        """Return what `apply` would change. Changes nothing.

        only, excluded: patterns of addresses, such as `group/*`. allow: consents to guards, such as `removals=214`.
        base: a folder or a git ref with the manifests that these replace; trust_project: the parts of the project file
        that may differ from the base's (`url`, `token`, `command`, `dialect`). effects: compute what the plan does to
        people; people: list them in `plan.effects.rows`, which is not saved. rehearse: read the whole workspace, and
        try the plan's calls on a twin of it in memory: `plan.rehearsal`. progress: called with each
        request that is done, and at least once a minute while requests wait for a rate limit. Raises ProblemsFound
        where no plan can be made, CannotRehearse where no twin can.
        """
        policy = replace(
            self.settings.policy,
            only=tuple(only),
            excluded=tuple(excluded),
            additive=additive,
            consents=(*parse_consents(allow), *self.settings.policy.consents),
            effects=effects,
            people=people,
        )
        manifests = self._manifests()
        with self._reader() as reader:
            before = (
                None if base is None else load_base(base, self.settings, policy, self.environ, trusted=trust_project)
            )
            if rehearse:
                from lmsconf.apply.rehearse import rehearsed_plan

                return rehearsed_plan(
                    reader,
                    manifests,
                    policy,
                    reader.snapshot(progress, manifests),
                    base=before,
                    max_rate=self.max_rate,
                )
            if before is None:
                return reader.plan(manifests, policy, progress)
            return plan_with_base(reader, manifests, policy, before, progress=progress)

    def apply(
        self,
        plan: Plan,
        *,
        approve: Callable[[Plan], bool],
        expect_digest: str | None = None,
        allow: Sequence[str] = (),
        require_rehearsal: bool = False,
        verify: VerifyMode = VerifyMode.ALL,
        meta: Mapping[str, str] | None = None,
        progress: ApplyEvents | None = None,
    ) -> ApplyReport:
        """Apply a plan as `lmsconf apply PLANFILE` does: locked, not stale, journalled, verified.

        approve: called with the plan after all checks have passed; returns the decision. require_rehearsal: refuse a
        plan that was not rehearsed with success. The report's `exit` is the exit code. Raises, with nothing sent:
        StalePlan, ProblemsFound with exit 4 for a tripped guard or a certain refusal, WorkspaceLocked or
        LockHeldElsewhere while another run has the workspace, LmsconfError where the plan is not approved or
        the journal cannot be written.
        """
        if not callable(approve):
            raise UsageError("approve is not callable", hint="Pass a function that takes the plan and returns a bool.")
        options = ApplyOptions(
            approve=approve,
            digest=expect_digest,
            needs_rehearsal=require_rehearsal,
            verify=verify,
            meta=meta or {},
            parallelism=self.parallelism,
            max_rate=self.max_rate,
            rate_limiters=self.rate_limiters,
            environ=self.environ,
        )
        source = saved_plan_source(plan, parse_consents(allow))
        return apply_safely(self.settings, source, options, progress or ApplyEvents())[0]

    def drift(
        self,
        *,
        base: str | None = None,
        trust_project: Collection[str] = (),
        count_unmanaged: bool = False,
        coverage: bool = False,
        progress: Report | None = None,
    ) -> DriftReport:
        """Return where the workspace differs from the manifests. With `base`, only manual changes count.

        count_unmanaged, coverage: read the whole workspace, not only what the manifests are compared with. progress: as
        for `plan`.
        """
        manifests, policy = self._manifests(), self.settings.policy
        before = (
            None
            if base is None
            else load_base(base, self.settings, policy, self.environ, trusted=trust_project, with_older=False)
        )
        with self._reader() as reader:
            return reader.drift(
                manifests, base=before, count_unmanaged=count_unmanaged, reads_all=coverage, progress=progress
            )

    def export(self, kinds: Iterable[str] | None = None, *, progress: Report | None = None) -> ExportResult:
        """Return the live resources as manifests: `files` maps sections to YAML. Writes nothing.

        kinds: such as `group` or `content_target`. Resources that the project's manifests declare already are left out.
        progress: as for `plan`.
        """
        manifests = self._manifests()
        with self._reader() as reader:
            return export_snapshot(
                reader.snapshot(progress, manifests),
                self.settings.policy,
                reader.connection.spec,
                only_kinds=None if kinds is None else tuple(kinds),
                existing_manifests=manifests,
            )

    def snapshot(self, *, progress: Report | None = None) -> Snapshot:
        """Return all that manifests can declare, people's e-mails and answers included. progress: as for `plan`."""
        with self._reader() as reader:
            return reader.snapshot(progress, self._manifests())

    def save_plan(self, plan: Plan, path: str | os.PathLike[str], *, key: bytes | None = None) -> None:
        """Write a plan file for `load_plan` and `lmsconf apply PLANFILE`. key: signs it; 32 bytes or more."""
        write_atomically(Path(path), dumps(plan, key))

    def load_plan(self, path: str | os.PathLike[str], *, key: bytes | None = None) -> Plan:
        """Load a plan file. Raises StalePlan if it was altered or signed with another key."""
        return loads(read_text(Path(path)), key)

    def _manifests(self) -> Manifests:
        return error_free(load_manifests(self.settings))

    @contextmanager
    def _reader(self) -> Iterator[WorkspaceReader]:
        with Connection(
            self.settings, max_rate=self.max_rate, rate_limiters=self.rate_limiters, only_reads=True
        ) as connection:
            yield WorkspaceReader(settings=self.settings, connection=connection, parallelism=self.parallelism)
