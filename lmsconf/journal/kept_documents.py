"""The plan and the report of a run, kept beside its journal under the same name, in a folder for each workspace.

NAME.jsonl        the journal
NAME.plan.json    the plan, with what was before each change; written before the first call
NAME.before.json  a part of a snapshot: what the run changes and destroys, as it was; written before the first call
NAME.report.json  the report; missing if the run was cut short
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from lmsconf.documents import plan_file, snapshot_file
from lmsconf.errors import LmsconfError
from lmsconf.model.canonical_json import sha256_of_bytes
from lmsconf.model.plan import Plan
from lmsconf.model.recorded_run import RecordedRun
from lmsconf.model.snapshot import Snapshot
from lmsconf.support.atomic_files import read_text

PLAN_SUFFIX: Final = ".plan.json"
BEFORE_SUFFIX: Final = ".before.json"
REPORT_SUFFIX: Final = ".report.json"


def plan_path(journal: Path) -> Path:
    """Return the path of the plan that is kept beside a journal."""
    return journal.with_name(f"{journal.stem}{PLAN_SUFFIX}")


def report_path(journal: Path) -> Path:
    """Return the path of the report that is kept beside a journal."""
    return journal.with_name(f"{journal.stem}{REPORT_SUFFIX}")


def before_path(journal: Path) -> Path:
    """Return the path of the part of a snapshot that is kept beside a journal."""
    return journal.with_name(f"{journal.stem}{BEFORE_SUFFIX}")


def kept_plan(run: RecordedRun) -> Plan:
    """Return the plan that a run applied. Raises LmsconfError if it is not kept, or not the one the run began with."""
    return plan_file.loads(kept_plan_text(run))


def kept_before(run: RecordedRun) -> Snapshot:
    """Return what a run changed, as it was before. Raises LmsconfError like `kept_plan`."""
    recorded = None if run.opening is None else run.opening.pre_image_sha256
    why = "Only runs of lmsconf from this version on keep what was before." if recorded is None else _why_no_plan(run)
    return snapshot_file.loads(_verified(run, before_path, "earlier state", recorded, why))


def kept_plan_text(run: RecordedRun) -> str:
    """Return the text of the plan file of a run; raises like `kept_plan`."""
    recorded = None if run.opening is None else run.opening.plan_sha256
    return _verified(run, plan_path, "plan", recorded, _why_no_plan(run))


def kept_report_text(run: RecordedRun) -> str:
    """Return the text of the report of a run. Raises LmsconfError if it is not kept, or not the one it ended with."""
    recorded = None if run.ending is None else run.ending.report_sha256
    return _verified(run, report_path, "report", recorded, _why_no_report(run))


def _verified(
    run: RecordedRun, beside: Callable[[Path], Path], noun: str, recorded: str | None, why_missing: str
) -> str:
    """Return the text of a kept file if its SHA-256 is the recorded one."""
    path = None if run.journal is None else beside(run.journal)
    if path is None or not path.exists():
        raise LmsconfError(f"the {noun} of the run {run.name} is not kept", hint=why_missing)
    text = read_text(path, regular=True)
    if recorded is None:
        raise LmsconfError(f"the journal of the run {run.name} does not record which {noun} it had", hint=why_missing)
    if sha256_of_bytes(text.encode()) != recorded:
        hint = "It was changed or replaced since. Restore both from a backup."
        raise LmsconfError(f"{path} is not the {noun} that the journal of the run records", hint=hint)
    return text


def _why_no_plan(run: RecordedRun) -> str:
    if run.opening is None:
        return "The first line of its journal cannot be read."
    if run.opening.plan_sha256 is None:
        return f"lmsconf {run.opening.tool} made this run, and did not keep plans. Runs from now on have theirs."
    return "It was deleted from .lmsconf/runs. Restore it from a backup."


def _why_no_report(run: RecordedRun) -> str:
    if run.ending is None:
        return "The run was cut short before its end. Its journal lists every call: lmsconf runs RUN"
    if run.ending.report_sha256 is None:
        return "It was not written when the run ended. Its journal lists every call: lmsconf runs RUN"
    return "It was deleted from .lmsconf/runs. Restore it from a backup."
