"""Journals → recorded runs, and the plan and the report of a run, kept beside its journal.

NAME.jsonl        the journal
NAME.plan.json    the plan, with what was before each change; written before the first call
NAME.before.json  a part of a snapshot: what the run changes and destroys, as it was; written before the first call
NAME.report.json  the report; missing if the run was cut short

A truncated or damaged line of a journal is counted, and the other lines are still read. Before a run looks at
the workspace it waits for the writes of an earlier one: calls in flight may still take effect, new resources may
not be listed yet, and a plan that is made earlier would repeat them.

A chain of runs, each with the digest of the journal before it, belongs to the name and URL of a workspace in one
project folder. The local lock, which is held under that name, puts its runs in one order: the journal of the previous
run is complete when its digest is taken.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.documents import plan_file, snapshot_file
from lmsconf.documents.journal.journal_folder import (
    FORMAT,
    decode_line,
    decode_lines,
    journals,
    read_journal,
)
from lmsconf.documents.json_documents import from_json
from lmsconf.errors import LmsconfError, refuse_if
from lmsconf.model.canonical_json import sha256_of_bytes
from lmsconf.model.names import count_noun
from lmsconf.model.outcomes import (
    CallState,
    ChainLink,
    JournalHeader,
    RecordedCall,
    RecordedRun,
    RunEnding,
)
from lmsconf.model.plan import Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.support.files import read_text


def read_runs(root: Path, url: str | None = None) -> Iterator[RecordedRun]:
    """Return the runs of a project, newest first, each read lazily. Raises LmsconfError.

    url: only runs in the workspace with this URL.
    """
    return (_read(path) for path in _journals(root, url))


def seen_values(root: Path, url: str) -> dict[str, str]:
    """Return the dialect keys that runs on a workspace have seen to be right → the value; the newest run counts.

    A key may be followed by a space and the one operation that has shown it, or `empty`: false or nothing was sent.
    """
    return {key: value for run in reversed([*read_runs(root, url)]) for key, value in run.seen.items()}


def run_names(root: Path) -> list[str]:
    """Return the names of the runs of a project, newest first. Raises LmsconfError."""
    return [path.stem for path in _journals(root)]


def read_headers(root: Path, url: str | None = None) -> Iterator[tuple[Path, JournalHeader]]:
    """Return each readable journal, newest first, with its first line. url: of one workspace.

    Raises LmsconfError.
    """
    headers = (
        (path, parse_journal(path.stem, read_journal(path, first_line=True)).opening) for path in _journals(root, url)
    )
    return ((path, header) for path, header in headers if header is not None)


def find_run(root: Path, name: str) -> RecordedRun:
    """Return a run by `latest`, by its name or a prefix of it, or by a prefix of the plan's digest.

    Raises LmsconfError if none or more than one matches, or a journal cannot be read.
    """
    every = _journals(root)
    begun = [path for path in every if name and re.match(rf"(?:[^-]*-)?{re.escape(name)}", path.stem)]
    fitting = every[:1] if name == "latest" else [path for path in every if path.stem == name] or begun
    match fitting:
        case [path]:
            return _read(path)
        case []:
            hint = "List them with: lmsconf runs"
            if every and name[:8].isdigit() and name < every[-1].stem:
                kept = f"Runs before {every[-1].stem} are not kept here"
                hint += f". {kept}; `runs: {{keep: N}}` in lmsconf.yaml sets how many are."
            raise LmsconfError(f"no run matches {name!r}", hint=hint)
    raise LmsconfError(
        f"{len(fitting)} runs match {name!r}", hint=f"Name one: {', '.join(path.stem for path in fitting)}"
    )


def parse_journal(name: str, content: bytes) -> RecordedRun:
    """Return the run in a journal of that name and content, as far as its lines can be read."""
    run, calls, seen, damaged = RecordedRun(name=name), dict[str, RecordedCall](), dict[str, str](), 0
    for entry in (line or {} for line in decode_lines(content)):
        try:
            at = from_json(entry.get("at"), datetime).astimezone(UTC)
            match entry:
                case {"event": "run", "format": str(format)} if format == FORMAT:
                    run = replace(run, opening=replace(from_json(entry, JournalHeader), started=at))
                case {"event": "end"}:
                    run = replace(run, ending=replace(from_json(entry, RunEnding), at=at))
                case {"event": "seen", "key": str(key), "value": str(value)}:
                    seen[key] = value
                case {"event": "intent"}:
                    sent = from_json({**entry, "status": CallState.IN_FLIGHT.value}, RecordedCall)
                    calls[sent.call] = replace(sent, begun=at)
                case {"event": "outcome"}:
                    ended = from_json(entry, RecordedCall)
                    before = calls.get(ended.call)
                    calls[ended.call] = replace(ended, begun=before.begun if before else None, ended=at)
                case _:
                    raise ValueError("there is no such event, or it has another format")
        except (ValueError, OverflowError):
            # The line is damaged, or a newer lmsconf wrote an event or value that this one does not support.
            damaged += 1
    return replace(run, calls=tuple(calls.values()), seen=seen, damaged=damaged)


def _journals(root: Path, url: str | None = None) -> list[Path]:
    """Return the journals of a project, newest first."""
    paths = list(journals(root, url))
    seconds = Counter(map(_second, paths))
    # Runs of one second are in the order of their first lines; runs of one plan have a number, 10 after 9.
    began = {path: _began_at(path) for path in paths if seconds[_second(path)] > 1}
    return sorted(paths, key=lambda path: (_second(path), began.get(path, ""), len(path.stem), path.stem), reverse=True)


def _second(path: Path) -> str:
    return path.stem.partition("-")[0]


def _began_at(path: Path) -> str:
    """Return when a run began, to the millisecond; for a journal that does not say it, the end of the second."""
    return str((decode_line(read_journal(path, first_line=True)) or {}).get("at", "~"))


def _read(path: Path) -> RecordedRun:
    return replace(parse_journal(path.stem, read_journal(path)), journal=path)


class PendingWrites(Struct, frozen=True, kw_only=True):
    """The calls in flight and unverified creations of a run, and the seconds until all of them are visible."""

    run: str
    calls: int
    made: int
    seconds: float

    def __str__(self) -> str:
        wait = f"Waiting {ceil(self.seconds)} s before looking at the workspace, because what was"
        if self.calls:
            calls = count_noun(self.calls, "call")
            return f"The run {self.run} ended with {calls} in flight. {wait} sent may still arrive."
        return (
            f"The run {self.run} made {count_noun(self.made, 'thing')} that it could not read back "
            f"afterwards. {wait} created may not be readable yet."
        )


def find_pending_writes(root: Path, url: str, *, now: datetime, settle_seconds: float) -> PendingWrites | None:
    """Return the pending writes to the workspace with that url; None if there is nothing to wait for.

    settle_seconds: how long after sending a call may take effect, and how long after its creation a resource may be
    missing from listings. Raises LmsconfError if a journal cannot be read.
    """
    for run in read_runs(root, url):
        writes = _pending(run, now, settle_seconds)
        # Each run waits for earlier ones, so runs older than a readable one have nothing pending.
        if writes is not None or run.opening is not None:
            return writes
    return None


def wait_for_pending_writes(
    root: Path,
    url: str,
    settle_seconds: float,
    *,
    notify: Callable[[PendingWrites], None],
    clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Sleep until no write of an earlier run can be pending any more.

    notify: called before that with how long and why.
    """
    writes = find_pending_writes(root, url, now=clock(), settle_seconds=settle_seconds)
    if writes is not None:
        notify(writes)
        sleep(writes.seconds)


def _pending(run: RecordedRun, now: datetime, settle: float) -> PendingWrites | None:
    sent = [call.begun for call in run.in_flight if call.begun is not None]
    made = [call.ended for call in run.unconfirmed_creations if call.ended is not None]
    # If the clock was set back, a call seems to lie in the future: never wait longer than `settle`.
    last = max([*sent, *made], default=None)
    seconds = min(settle, settle - (now - last).total_seconds()) if last is not None else 0.0
    return PendingWrites(run=run.name, calls=len(sent), made=len(made), seconds=seconds) if seconds > 0 else None


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
    return snapshot_file.loads(
        _verified(
            run,
            BEFORE,
            "earlier state",
            None if run.opening is None else run.opening.pre_image_sha256,
            _why_not_begun_with(run),
        )
    )


def kept_plan_text(run: RecordedRun) -> str:
    """Return the text of the plan file of a run; raises like `kept_plan`."""
    return _verified(
        run, PLAN, "plan", None if run.opening is None else run.opening.plan_sha256, _why_not_begun_with(run)
    )


def kept_report_text(run: RecordedRun) -> str:
    """Return the text of the report of a run. Raises LmsconfError if it is not kept, or not the one it ended with."""
    why, recorded = (
        ("Its journal has no readable end, as that of a run that was cut short.", None)
        if run.ending is None
        else ("It was not written when the run ended.", run.ending.report_sha256)
    )
    return _verified(run, REPORT, "report", recorded, f"{why} Its journal lists every call: lmsconf runs RUN")


def _why_not_begun_with(run: RecordedRun) -> str:
    """Say why the first line of a journal may not record a file that is kept from the beginning of a run."""
    return (
        "The first line of its journal cannot be read."
        if run.opening is None
        else f"lmsconf {run.opening.tool}, which made this run, kept less than later versions."
    )


def _verified(run: RecordedRun, part: str, noun: str, recorded: str | None, why_not_recorded: str) -> str:
    """Return the text of a kept file with the recorded SHA-256. why_not_recorded: the hint without one."""
    path = None if run.journal is None else kept_path(run.journal, part)
    if path is None or not path.exists():
        raise LmsconfError(
            f"the {noun} of the run {run.name} is not kept",
            hint="It was deleted from .lmsconf/runs. Restore it from a backup." if recorded else why_not_recorded,
        )
    text = read_text(path, regular=True)
    refuse_if(
        (
            recorded is None,
            f"the journal of the run {run.name} does not record which {noun} it had",
            why_not_recorded,
        ),
        (
            sha256_of_bytes(text.encode()) != recorded,
            f"{path} is not the {noun} that the journal of the run records",
            "It was changed or replaced since. Restore both from a backup.",
        ),
        error=LmsconfError,
    )
    return text


def plan_retention(
    root: Path, workspace: str, url: str, *, keep: int, keep_seconds: float
) -> tuple[ChainLink, list[Path]]:
    """Return the link of a run that begins now, and the journals of the runs that are not kept beside it.

    keep, keep_seconds: as for `Journal.begin`. The lock of the workspace must be held. Raises LmsconfError
    if a journal cannot be read.
    """
    own = [(path, header) for path, header in _in_order(root, url) if header.workspace == workspace]
    earlier = [path for path, _ in own]
    surplus = earlier[: max(0, len(earlier) + 1 - keep)]
    # Each call is written to the journal before it is sent: those of the others may still take effect.
    pruned = [path for path in surplus if time.time() - path.stat().st_mtime >= keep_seconds]
    oldest = next((path.stem for path in earlier if path not in pruned), None)
    if not own or own[-1][1].chain is None:  # a chain begins after journals that have no link
        return ChainLink(number=1, previous=None, previous_sha256=None, oldest=oldest), pruned
    link = ChainLink(
        number=_number(own[-1][1]) + 1,
        previous=earlier[-1].stem,
        previous_sha256=_file_digest(earlier[-1]),
        oldest=oldest,
    )
    return link, pruned


def chain_heads(root: Path) -> list[tuple[str, str, str]]:
    """Return each workspace, its last run here, and the digest of its journal, which the next run names.

    Raises LmsconfError if a journal cannot be read.
    """
    last = {(header.workspace, header.url): path for path, header in _in_order(root)}
    return [(workspace, path.stem, _file_digest(path)) for (workspace, _), path in sorted(last.items())]


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


def _file_digest(path: Path) -> str:
    return sha256_of_bytes(read_journal(path, hint="Check its permissions: the next run names it in its own journal."))
