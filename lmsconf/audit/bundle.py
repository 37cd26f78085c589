"""Write a folder of evidence: `evidence.json`, its page, the copies of each run, and the statement about all of them.

The folder is written beside its place and renamed: there is the whole folder or none.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, cast

from msgspec import Struct

from lmsconf.audit.evidence_page import evidence_html
from lmsconf.audit.masked_copies import CopyMask, Mask
from lmsconf.audit.run_entry import RunCopies, entry_order, run_entry
from lmsconf.audit.signing import SigningKey
from lmsconf.audit.statement import ENVELOPE, STATEMENT, envelope_text, statement_text
from lmsconf.documents import plan_file, report_file
from lmsconf.documents.document import TOOL, render_json
from lmsconf.errors import LmsconfError
from lmsconf.journal.journal_folder import open_journal
from lmsconf.journal.kept_runs import kept_plan_text, kept_report_text
from lmsconf.model.canonical_json import Json, sha256_of_bytes
from lmsconf.model.recorded_run import RecordedRun
from lmsconf.model.time_formats import format_utc
from lmsconf.support.atomic_files import fsync_folder, os_error_message

FORMAT: Final = "lmsconf.evidence/1"
EVIDENCE, PAGE = "evidence.json", "index.html"


class EvidenceOptions(Struct, frozen=True, kw_only=True):
    """mask: hides people; None: the copies are whole. since: what the runs were chosen by, if not by name."""

    mask: Mask | None
    since: str | None
    key: SigningKey | None
    made_at: datetime


def write_evidence(runs: Sequence[RecordedRun], folder: Path, options: EvidenceOptions) -> dict[str, Json]:
    """Write the evidence of these runs; return the document `evidence.json`.

    Raises LmsconfError if the folder is not empty, or cannot be written, or a run cannot be read.
    """
    _refuse_filled(folder)
    with _replaced(folder) as place:
        digests: dict[str, str] = {}
        entries: list[dict[str, Json]] = []
        for run in runs:
            copies, originals = _copies(run, options.mask)
            entries.append({**_entry(copies), "originals": originals})
            digests |= {path: _write(place, path, content) for path, content in copies.files().items()}
        evidence: dict[str, Json] = {
            "format": FORMAT,
            "tool": TOOL,
            "created_at": format_utc(options.made_at),
            "since": options.since,
            "people": "whole" if options.mask is None else "masked",
            "runs": cast("list[Json]", sorted(entries, key=entry_order)),
            "files": dict(sorted(digests.items())),
        }
        texts = {EVIDENCE: render_json(evidence), PAGE: evidence_html(evidence)}
        digests |= {path: _write(place, path, text.encode("utf-8")) for path, text in texts.items()}
        _write_statement(place, evidence, digests, options.key)
    return evidence


def _write_statement(
    place: Path, evidence: Mapping[str, Json], digests: Mapping[str, str], key: SigningKey | None
) -> None:
    statement = statement_text(evidence, digests, None if key is None else key.public).encode("utf-8")
    _write(place, STATEMENT, statement)
    if key is not None:
        _write(place, ENVELOPE, envelope_text(statement, key).encode("utf-8"))


def _entry(copies: RunCopies) -> dict[str, Json]:
    try:
        return run_entry(copies)
    except ValueError as error:
        hint = "Its file in .lmsconf/runs is damaged: leave the run out, or restore it from a backup."
        raise LmsconfError(f"the run {copies.run} cannot be read: {error}", hint=hint) from error


def _copies(run: RecordedRun, mask: Mask | None) -> tuple[RunCopies, dict[str, Json]]:
    """Return the copies of a run's files, and the digests of the originals, or why one is missing."""
    path = run.journal
    if path is None:
        raise ValueError(f"the run {run.name} was not read from a file")
    try:
        with open_journal(path) as file:
            journal = file.read()
    except OSError as error:
        raise LmsconfError(
            f"{path} cannot be read: {os_error_message(error)}", hint="Check its permissions."
        ) from error
    plan, why_no_plan = _kept(kept_plan_text, run)
    report, why_no_report = _kept(kept_report_text, run)
    originals: dict[str, Json] = {
        "journal": sha256_of_bytes(journal),
        "plan": _digest(plan),
        "report": _digest(report),
        "without_plan": why_no_plan,
        "without_report": why_no_report,
    }
    if mask is None:
        return RunCopies(run=run.name, journal=journal, plan=plan, report=report), originals
    read = None if plan is None else plan_file.loads(plan)
    masked = CopyMask(mask, read)
    # The same order in each run, so that the same people have the same labels whenever it is written.
    copies = RunCopies(
        run=run.name,
        plan=None if read is None else masked.plan(read),
        report=None if report is None else masked.report(report_file.loads(report)),
        journal=masked.journal(journal),
    )
    return copies, originals


def _kept(read: Callable[[RecordedRun], str], run: RecordedRun) -> tuple[str | None, str | None]:
    """Return the text of a kept file, or why there is none."""
    try:
        return read(run), None
    except LmsconfError as error:
        return None, f"{error.message}. {error.hint}"


def _digest(text: str | None) -> str | None:
    return None if text is None else sha256_of_bytes(text.encode("utf-8"))


def _refuse_filled(folder: Path) -> None:
    hint = "Name a folder that does not exist yet, or an empty one."
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise LmsconfError(f"{folder} is not a folder", hint=hint)
    if folder.is_dir() and any(folder.iterdir()):
        raise LmsconfError(f"{folder} is not empty", hint=hint)


@contextlib.contextmanager
def _replaced(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that takes the place of `folder` at the end. Raises LmsconfError if that fails."""
    place: Path | None = None
    try:
        place = Path(tempfile.mkdtemp(dir=folder.absolute().parent, prefix=f".{folder.name[:100]}.", suffix=".tmp"))
        yield place
        place.replace(folder)
        fsync_folder(folder.absolute().parent)
    except OSError as error:
        hint = "Check that the folder above it exists and is writable, and that there is free space."
        raise LmsconfError(f"{folder} cannot be written: {os_error_message(error)}", hint=hint) from error
    finally:
        if place is not None:
            shutil.rmtree(place, ignore_errors=True)


def _write(place: Path, path: str, content: bytes) -> str:
    """Write a file below the folder, readable by its owner only; return its SHA-256. Raises OSError."""
    target = place / path
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(target, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return sha256_of_bytes(content)
