"""The journal of one run: a write-ahead log with an intent before each call and an outcome after it.

It has no request body, response or token: a call is its id, address, operation, people (e-mails) and outcome. Beside
it are the plan, written before the first call, and the report, written after the last.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Final

from msgspec.structs import replace

from lmsconf import __version__
from lmsconf.documents import plan_file, reports, snapshot_file
from lmsconf.documents.journal.journal_folder import (
    FORMAT,
    RUNS,
    SUFFIX,
    encode_line,
    ensure_folder,
    open_private_file,
    runs_folder,
    writing,
)
from lmsconf.documents.journal.journal_reader import (
    BEFORE,
    PLAN,
    REPORT,
    delete_run,
    kept_path,
    plan_retention,
)
from lmsconf.documents.json_documents import object_json, without_keys
from lmsconf.documents.snapshot_file import snapshot_digest
from lmsconf.errors import LmsconfError, Problem, Severity
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json, sha256_of_bytes
from lmsconf.model.outcomes import (
    ApplyReport,
    CallOutcome,
    CallState,
    JournalHeader,
    ManifestsCommit,
    SnapshotDigest,
    VerifyMode,
)
from lmsconf.model.plan import Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.model.time_formats import format_utc
from lmsconf.support.files import descriptor_writer, os_error_message, write_atomically
from lmsconf.support.secrets import redact_registered_tokens, redact_secrets

SHORT: Final = 12
"""Characters of a digest that identify a plan in names and messages."""


class Journal(AbstractContextManager["Journal"]):
    """Records one run. A context manager; its methods are thread-safe."""

    def __init__(
        self, path: Path, plan_digest: str, descriptor: int, clock: Callable[[], datetime], sync: Callable[[int], None]
    ) -> None:
        self.path, self.plan_digest, self._descriptor = path, plan_digest, descriptor
        self._clock, self._sync, self._turn = clock, sync, Lock()
        self._failure: OSError | None = None
        self._warnings: list[Problem] = []
        self._after: SnapshotDigest | None = None

    @classmethod
    def begin(
        cls,
        root: Path,
        plan: Plan,
        *,
        meta: Mapping[str, str],
        keep: int,
        keep_seconds: float,
        compared: Snapshot | None = None,
        pre_image: Snapshot | None = None,
        commit: ManifestsCommit | None = None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        sync: Callable[[int], None] = os.fsync,
    ) -> Journal:
        """Create the journal of a run of the plan, in the project `root`, and keep the plan beside it.

        compared: the snapshot that the plan was compared with. pre_image: the part of it that is kept to undo
        the run. commit: of the manifests. keep: how many runs of the workspace are kept, this one included; others are
        deleted. keep_seconds: for which an older run is kept in any case, as its calls may still take effect. The
        caller holds the lock of the workspace. Raises LmsconfError if journal or plan cannot be written.
        """
        started, digest = clock(), plan_file.plan_digest(plan)
        # A name in the workspace that repeats the token: then the file shows that it was changed, as with --out.
        text = redact_registered_tokens(plan_file.dumps(plan))
        folder = ensure_folder(root, RUNS, runs_folder(plan.url))
        link, pruned = plan_retention(root, plan.workspace, plan.url, keep=keep, keep_seconds=keep_seconds)
        with writing(folder):
            path, descriptor = _opened(folder, started, digest)
        journal = cls(path, digest, descriptor, clock, sync)
        try:
            earlier = None if pre_image is None else redact_registered_tokens(snapshot_file.dumps(pre_image))
            header = JournalHeader(
                digest=digest,
                workspace=plan.workspace,
                url=plan.url,
                started=started,
                tool=__version__,
                calls=len(plan.calls),
                meta=_noted(meta),
                chain=link,
                plan_sha256=sha256_of_bytes(text.encode()),
                before=None if compared is None else snapshot_digest(compared),
                commit=commit,
                pre_image_sha256=None if earlier is None else sha256_of_bytes(earlier.encode()),
            )
            absent = [key for key in ("commit", "pre_image_sha256") if getattr(header, key) is None]
            opening = without_keys(object_json(header), *absent)
            with writing(path):
                journal._write({"event": "run", "format": FORMAT, **opening}, started, lasting=True)
            write_atomically(kept_path(path, PLAN), text)
            if earlier is not None:
                write_atomically(kept_path(path, BEFORE), earlier)
        except LmsconfError:
            os.close(descriptor)
            path.unlink()
            raise
        journal._prune(pruned)
        return journal

    def _prune(self, journals: Sequence[Path]) -> None:
        """Delete runs that are not kept any more; a failure is a warning of the report, as the run can go on."""
        for path in journals:
            try:
                delete_run(path)
            except OSError as error:
                self._warnings.append(
                    Problem(
                        code="journal/not-pruned",
                        message=f"the run {path.stem} is no longer kept, "
                        f"but cannot be deleted: {os_error_message(error)}",
                        hint=f"Check the permissions of {path.parent}; the next apply tries again.",
                        severity=Severity.WARNING,
                    )
                )

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def note_read(self, snapshot: Snapshot) -> None:
        """Note what was read of the workspace after the calls began; `record_end` records the last one."""
        self._after = snapshot_digest(snapshot)

    def record_intent(self, call: Call) -> None:
        """Record that a call is about to be sent, or sent again. It is synced to disk when this returns.

        Raises LmsconfError if this or an earlier entry could not be written: then the call must not be sent.
        """
        self._try({"event": "intent", **_named(call)}, lasting=True)
        if self._failure is not None:
            raise LmsconfError(
                f"the journal {self.path} cannot be written: {os_error_message(self._failure)}",
                hint="Free some space and apply again: what was done is detected, and only the rest is done.",
                code="journal/failed",
            ) from self._failure

    def record_outcome(self, outcome: CallOutcome) -> None:
        """Record the outcome of a call. Never raises an OSError: the next intent, or the end, reports the failure."""
        is_unknown = outcome.unsure and not outcome.carried_out
        self._try(
            {
                "event": "outcome",
                **_named(outcome),
                # A call with an unknown result may have been carried out: the next run treats it as in flight.
                "status": CallState.IN_FLIGHT.value if is_unknown else outcome.status.value,
                "reason": outcome.reason and redact_secrets(outcome.reason),
                "id": outcome.id,
                **({"carried_out": True} if outcome.carried_out else {}),
            }
        )

    def record_seen(self, key: str, value: str) -> None:
        """Record that a call has shown the assumed value of a dialect key to be right."""
        self._try({"event": "seen", "key": key, "value": value})

    def record_end(self, report: ApplyReport) -> tuple[Problem, ...]:
        """Keep the report, and record how the run ended; return a warning for all that could not be written."""
        kept = self._keep(report)
        # Without verification, the last reading was that of a single write whose response was lost.
        seen = None if report.verified.scope is VerifyMode.NONE else self._after
        self._try(
            {
                "event": "end",
                "exit": report.exit,
                "verified": report.verified.scope.value,
                "converged": report.converged,
                "seen": report.everything_seen,
                "report_sha256": kept,
                "after": None if seen is None else object_json(seen),
            },
            lasting=True,
        )
        if self._failure is not None:
            self._warnings.append(
                Problem(
                    code="journal/failed",
                    message=f"the journal {self.path} is not complete: {os_error_message(self._failure)}",
                    hint="This report is complete; keep it as the record of the run.",
                    severity=Severity.WARNING,
                )
            )
        return tuple(self._warnings)

    def _keep(self, report: ApplyReport) -> str | None:
        """Write the report beside the journal; return its SHA-256, or None, with a warning, if it cannot be written."""
        text = redact_registered_tokens(
            reports.apply_json(replace(report, meta=_noted(report.meta), problems=(*report.problems, *self._warnings)))
        )
        try:
            write_atomically(kept_path(self.path, REPORT), text)
        except LmsconfError as error:
            self._warnings.append(
                Problem(
                    code="journal/report-not-kept",
                    message=f"this report is not kept beside the journal: {error.message}",
                    hint="Save it yourself, as the record of the run.",
                    severity=Severity.WARNING,
                )
            )
            return None
        return sha256_of_bytes(text.encode())

    def _try(self, entry: Mapping[str, Json], *, lasting: bool = False) -> None:
        """Write an entry, unless an earlier one failed: a journal with a gap would be misleading."""
        with self._turn:
            try:
                if self._failure is None:
                    self._write(entry, self._clock(), lasting=lasting)
            except OSError as failure:
                self._failure = failure

    def _write(self, entry: Mapping[str, Json], at: datetime, *, lasting: bool) -> None:
        descriptor_writer(self._descriptor)(encode_line({**entry, "at": format_utc(at, "milliseconds")}))
        if lasting:
            self._sync(self._descriptor)


def _noted(meta: Mapping[str, str]) -> dict[str, str]:
    return {key: redact_secrets(value) for key, value in meta.items()}


def _named(value: Call | CallOutcome) -> dict[str, Json]:
    return {
        "call": value.id if isinstance(value, Call) else value.call,
        "address": str(value.address),
        "operation": value.operation,
        "people": [*value.people],
    }


def _opened(folder: Path, started: datetime, digest: str) -> tuple[Path, int]:
    """Create a new file; append a number to its name for runs of one plan in the same second."""
    number = 1
    while True:
        more = f"-{number}" if number > 1 else ""
        path = folder / f"{started.astimezone(UTC):%Y%m%dT%H%M%SZ}-{digest[:SHORT]}{more}{SUFFIX}"
        try:
            return path, open_private_file(path, os.O_WRONLY, os.O_APPEND, os.O_EXCL)
        except FileExistsError:
            number += 1
