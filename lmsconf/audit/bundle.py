"""Write a folder of evidence: `evidence.json`, its page, the copies of each run, and the statement about all of them.

The folder is written beside its place and renamed: there is the whole folder or none.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Protocol, cast

from msgspec.structs import replace

from lmsconf.audit.statement import (
    ENVELOPE,
    FILES,
    STATEMENT,
    PublicKey,
    SigningKey,
    copy_path,
    entry_order,
    evidence_html,
    run_entry,
    signed_envelope,
    statement_text,
)
from lmsconf.documents import plan_file, reports
from lmsconf.documents.journal.journal_folder import decode_lines, encode_line, read_journal
from lmsconf.documents.journal.journal_reader import kept_plan_text, kept_report_text
from lmsconf.documents.json_documents import TOOL, Value, render_json
from lmsconf.errors import LmsconfError, Problem, refuse_if
from lmsconf.kinds.assignment.types import is_about_people
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json, sha256_of_bytes
from lmsconf.model.forms import texts_in
from lmsconf.model.outcomes import ApplyReport, RecordedRun
from lmsconf.model.plan import Change, Plan
from lmsconf.model.time_formats import format_utc
from lmsconf.support.files import fsync_folder, os_errors_as
from lmsconf.support.strict_json import map_texts

FORMAT: Final = "lmsconf.evidence/1"
EVIDENCE, PAGE = "evidence.json", "index.html"


def write_evidence(
    runs: Sequence[RecordedRun],
    folder: Path,
    made_at: datetime,
    *,
    mask: Mask | None,
    since: str | None,
    key: SigningKey | None,
) -> dict[str, Json]:
    """Write the evidence of these runs; return the document `evidence.json`.

    mask: hides people; None: the copies are whole. since: what the runs were chosen by, if not by name.
    Raises LmsconfError.
    """
    with _replaced(folder) as place:
        digests: dict[str, str] = {}
        entries: list[dict[str, Json]] = []
        for run in runs:
            copies, entry = _copies(run, mask)
            entries.append(entry)
            digests |= {path: _write(place, path, content) for path, content in copies.items()}
        evidence: dict[str, Json] = {
            "format": FORMAT,
            "tool": TOOL,
            "created_at": format_utc(made_at),
            "since": since,
            "people": "whole" if mask is None else "masked",
            "runs": cast("list[Json]", sorted(entries, key=entry_order)),
            "files": dict(sorted(digests.items())),
        }
        texts = {EVIDENCE: render_json(evidence), PAGE: evidence_html(evidence)}
        digests |= {path: _write(place, path, text.encode("utf-8")) for path, text in texts.items()}
        statement = statement_text(evidence, digests, None if key is None else PublicKey.of(key.public_key())).encode(
            "utf-8"
        )
        _write(place, STATEMENT, statement)
        if key is not None:
            _write(place, ENVELOPE, signed_envelope(statement, key).encode("utf-8"))
    return evidence


def _copies(run: RecordedRun, mask: Mask | None) -> tuple[dict[str, bytes], dict[str, Json]]:
    """Return the copies of a run's files by their paths in the folder, and its entry.

    The entry has the digests of the originals, or why one is missing.
    """
    copies = {"journal": read_journal(cast("Path", run.journal), hint="Check its permissions.")}
    why: dict[str, str] = {}
    for name, read in (("plan", kept_plan_text), ("report", kept_report_text)):
        try:
            copies[name] = read(run).encode("utf-8")
        except LmsconfError as error:
            why[name] = f"{error.message}. {error.hint}"
    originals: dict[str, Json] = {
        **{name: sha256_of_bytes(copies[name]) if name in copies else None for name in FILES},
        "without_plan": why.get("plan"),
        "without_report": why.get("report"),
    }
    try:
        if mask is not None:
            _mask(copies, mask)
        entry = {**run_entry(run.name, copies), "originals": originals}
    except (ValueError, RecursionError) as error:
        raise LmsconfError(
            f"the run {run.name} cannot be read: {error}",
            hint="Its file in .lmsconf/runs is damaged: leave the run out, or restore it from a backup.",
        ) from error
    return {copy_path(run.name, name): content for name, content in copies.items()}, entry


def _mask(copies: dict[str, bytes], mask: Mask) -> None:
    """Hide people in the copies of a run's files."""
    plan = plan_file.loads(copies["plan"].decode("utf-8")) if "plan" in copies else None
    masked = CopyMask(mask, plan)
    # The same order in each run, so that the same people have the same labels whenever it is written.
    if plan is not None:
        copies["plan"] = masked.plan(plan).encode("utf-8")
    if "report" in copies:
        copies["report"] = masked.report(reports.load_apply_report(copies["report"].decode("utf-8"))).encode("utf-8")
    copies["journal"] = masked.journal(copies["journal"])


@contextlib.contextmanager
def _replaced(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that takes the place of `folder` at the end. Raises LmsconfError if that fails."""
    above, begin = folder.absolute().parent, f".{folder.name[:100]}."
    hint = "Name a folder that does not exist yet, or an empty one."
    with os_errors_as(
        f"{folder} cannot be written",
        "Check that the folder above it exists and is writable, and that there is free space.",
    ):
        refuse_if(
            (folder.is_symlink() or (folder.exists() and not folder.is_dir()), f"{folder} is not a folder", hint),
            (folder.is_dir() and any(folder.iterdir()), f"{folder} is not empty", hint),
            error=LmsconfError,
        )
        with TemporaryDirectory(dir=above, prefix=begin, suffix=".tmp", ignore_cleanup_errors=True) as place:
            yield Path(place)
            Path(place).replace(folder)
            fsync_folder(above)


def _write(place: Path, path: str, content: bytes) -> str:
    """Write a file below the folder, readable by its owner only; return its SHA-256. Raises OSError."""
    target = place / path
    target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with open(target, "xb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return sha256_of_bytes(content)


HIDDEN: Final = "(masked)"
_NOTHING: Final = "(?!)"
"""The pattern that matches nowhere."""


class Mask(Protocol):
    """Replaces people by labels, the same one for a person wherever they are named."""

    def mask_value(self, value: Value) -> Value: ...
    def mask_text(self, text: str) -> str: ...


class CopyMask:
    """Masks the documents of one run."""

    def __init__(self, mask: Mask, plan: Plan | None) -> None:
        self._mask = mask
        known = sorted(set() if plan is None else _personal_texts(plan), key=len, reverse=True)
        pattern = "|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in known) or _NOTHING
        self._scrub = partial(re.compile(pattern).sub, HIDDEN)

    def plan(self, plan: Plan) -> str:
        """Return the text of a plan file, which has the original's digest, and cannot be applied."""
        hidden = replace(
            plan,
            # Before anything is hidden: problems and reasons are part of it.
            masked_digest=plan_file.plan_digest(plan),
            manifests_files=tuple(f"file {number}" for number, _ in enumerate(plan.manifests_files, 1)),
            changes=tuple(map(self._change, plan.changes)),
            problems=tuple(map(self._problem, plan.problems)),
            base=None if plan.base is None else HIDDEN,
        )
        return plan_file.dumps(self._mask.mask_value(hidden))

    def report(self, report: ApplyReport) -> str:
        """Return the text of a report."""
        hidden = replace(
            report,
            outcomes=tuple(
                replace(
                    one,
                    reason=one.reason and self._scrub(one.reason),
                    hint=one.hint and self._scrub(one.hint),
                )
                for one in report.outcomes
            ),
            residue=tuple(map(self._change, report.residue)),
            problems=tuple(map(self._problem, report.problems)),
        )
        return reports.apply_json(self._mask.mask_value(hidden))

    def journal(self, content: bytes) -> bytes:
        """Return the lines of a journal, each with the checksum of what is left of it.

        A line that cannot be read cannot be masked either: another one stands for it.
        """
        return b"".join(
            encode_line({"event": "damaged"} if one is None else self._entry(one)) for one in decode_lines(content)
        )

    def _entry(self, entry: Mapping[str, Json]) -> dict[str, Json]:
        masked = {key: self._masked(value) for key, value in entry.items()}
        if isinstance(text := entry.get("address"), str):
            masked["address"] = str(self._mask.mask_value(Address.parse(text)))
            # The id of an assignment to a person is the person's.
            masked |= {"id": None} if "id" in entry and is_about_people(Address.parse(text)) else {}
        return masked

    def _masked(self, value: Json) -> Json:
        return cast("Json", map_texts(map_texts(value, self._scrub), self._mask.mask_text, keys=True))

    def _change(self, change: Change) -> Change:
        return replace(
            change,
            about=None if change.about is None else self._masked(dict(change.about)),
            source=None,
            reason=change.reason and self._scrub(change.reason),
            problems=tuple(map(self._problem, change.problems)),
        )

    def _problem(self, problem: Problem) -> Problem:
        return replace(
            problem, message=self._scrub(problem.message), hint=problem.hint and self._scrub(problem.hint), source=None
        )


def _personal_texts(plan: Plan) -> Iterator[str]:
    """Yield the texts that the plan has of people: names and answers, but no e-mails, which are masked anyway."""
    for change in plan.changes:
        if change.address.kind == USER:
            fields = ((one.before, one.after, *one.added, *one.removed) for one in change.fields)
            values = (change.before, change.after, *chain.from_iterable(fields))
            yield from (text for text in texts_in(values, keys=False) if len(text) > 1)
