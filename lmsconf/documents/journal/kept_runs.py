"""The plan and the report of a run, kept beside its journal under the same name, in a folder for each workspace.

NAME.jsonl        the journal
NAME.plan.json    the plan, with what was before each change; written before the first call
NAME.before.json  a part of a snapshot: what the run changes and destroys, as it was; written before the first call
NAME.report.json  the report; missing if the run was cut short

A chain of runs, each with the digest of the journal before it, belongs to the name and URL of a workspace in one
project folder. The local lock, which is held under that name, puts its runs in one order: the journal of the previous
run is complete when its digest is taken.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from lmsconf.documents import plan_file, snapshot_file
from lmsconf.documents.journal.journal_folder import read_journal
from lmsconf.documents.journal.journal_reader import read_headers
from lmsconf.errors import LmsconfError
from lmsconf.model.canonical_json import sha256_of_bytes
from lmsconf.model.outcomes import ChainLink, JournalHeader, RecordedRun
from lmsconf.model.plan import Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.support.files import read_text

PLAN: Final = "plan"
BEFORE: Final = "before"
REPORT: Final = "report"


def kept_path(journal: Path, part: str) -> Path:
    """Return the path of what is kept beside a journal: PLAN, REPORT, or BEFORE, the part of a snapshot."""
    return journal.with_name(f"{journal.stem}.{part}.json")


def kept_plan(run: RecordedRun) -> Plan:
    """Return the plan that a run applied. Raises LmsconfError if it is not kept, or not the one the run began with."""
    return plan_file.loads(kept_plan_text(run))


def kept_before(run: RecordedRun) -> Snapshot:
    """Return what a run changed, as it was before. Raises LmsconfError like `kept_plan`."""
    recorded = None if run.opening is None else run.opening.pre_image_sha256
    why = "Only runs of lmsconf from this version on keep what was before." if recorded is None else _why_no_plan(run)
    return snapshot_file.loads(_verified(run, BEFORE, "earlier state", recorded, why))


def kept_plan_text(run: RecordedRun) -> str:
    """Return the text of the plan file of a run; raises like `kept_plan`."""
    recorded = None if run.opening is None else run.opening.plan_sha256
    return _verified(run, PLAN, "plan", recorded, _why_no_plan(run))


def kept_report_text(run: RecordedRun) -> str:
    """Return the text of the report of a run. Raises LmsconfError if it is not kept, or not the one it ended with."""
    recorded = None if run.ending is None else run.ending.report_sha256
    return _verified(run, REPORT, "report", recorded, _why_no_report(run))


def _verified(run: RecordedRun, part: str, noun: str, recorded: str | None, why_missing: str) -> str:
    """Return the text of a kept file if its SHA-256 is the recorded one."""
    path = None if run.journal is None else kept_path(run.journal, part)
    if path is None or not path.exists():
        raise LmsconfError(f"the {noun} of the run {run.name} is not kept", hint=why_missing)
    text = read_text(path, regular=True)
    if recorded is None:
        raise LmsconfError(f"the journal of the run {run.name} does not record which {noun} it had", hint=why_missing)
    if sha256_of_bytes(text.encode()) != recorded:
        raise LmsconfError(
            f"{path} is not the {noun} that the journal of the run records",
            hint="It was changed or replaced since. Restore both from a backup.",
        )
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


class Retention(Struct, frozen=True, kw_only=True):
    """How many runs of a workspace are kept, the one that begins included.

    settle: seconds for which an older run is kept in any case, as its calls may still take effect.
    """

    keep: int
    settle: float


def plan_retention(root: Path, workspace: str, url: str, retention: Retention) -> tuple[ChainLink, list[Path]]:
    """Return the link of a run that begins now, and the journals of the runs that are not kept beside it.

    The lock of the workspace must be held. Raises LmsconfError if a journal cannot be read.
    """
    own = [(path, header) for path, header in _in_order(root, url) if header.workspace == workspace]
    earlier = [path for path, _ in own]
    surplus = earlier[: max(0, len(earlier) + 1 - retention.keep)]
    pruned = [path for path in surplus if _quiet(path, retention.settle)]
    kept = [path for path in earlier if path not in pruned]
    return _link(own, kept), pruned


class ChainHead(Struct, frozen=True, kw_only=True):
    """The last run of a workspace that is kept here, and the digest of its journal, which the next run names."""

    workspace: str
    run: str
    sha256: str


def chain_heads(root: Path) -> list[ChainHead]:
    """Return the head of each workspace's chain, by workspace. Raises LmsconfError if a journal cannot be read."""
    last = {(header.workspace, header.url): path for path, header in _in_order(root)}
    return [
        ChainHead(workspace=workspace, run=path.stem, sha256=_file_digest(path))
        for (workspace, _), path in sorted(last.items())
    ]


def _in_order(root: Path, url: str | None = None) -> list[tuple[Path, JournalHeader]]:
    """Return journals, oldest first: the number comes before the name, as the clock in it may have been set back."""
    return sorted(read_headers(root, url), key=lambda one: _number(one[1]), reverse=True)[::-1]


def delete_run(journal: Path) -> None:
    """Delete all files of a run, the journal last, so that an interrupted deletion is repeated. Raises OSError."""
    # By name, not with a pattern of names: another run's name may begin like this one's.
    others = (path for path in journal.parent.iterdir() if path.name.startswith(f"{journal.stem}."))
    for path in sorted(others, key=lambda path: path == journal):
        path.unlink()


def _number(header: JournalHeader) -> int:
    return 0 if header.chain is None else header.chain.number


def _link(own: Sequence[tuple[Path, JournalHeader]], kept: Sequence[Path]) -> ChainLink:
    """Return the link to the last of the earlier runs; a chain begins after journals that have no link."""
    oldest = kept[0].stem if kept else None
    if not own or own[-1][1].chain is None:
        return ChainLink(number=1, previous=None, previous_sha256=None, oldest=oldest)
    path, header = own[-1]
    return ChainLink(number=_number(header) + 1, previous=path.stem, previous_sha256=_file_digest(path), oldest=oldest)


def _file_digest(path: Path) -> str:
    return sha256_of_bytes(read_journal(path, hint="Check its permissions: the next run names it in its own journal."))


def _quiet(path: Path, settle: float) -> bool:
    """Whether no call of the run can still take effect: each is written to the journal before it is sent."""
    try:
        return time.time() - path.stat().st_mtime >= settle
    except FileNotFoundError:
        return False
