"""Journals → recorded runs. A truncated or damaged line is counted, and the other lines are still read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from msgspec.structs import replace

from lmsconf.documents.document import JsonObjectReader
from lmsconf.errors import LmsconfError
from lmsconf.journal.journal_folder import FOLDER, RUNS, journals, open_journal
from lmsconf.journal.line_codec import FORMAT, decode_line, decode_lines
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.recorded_run import (
    CallState,
    ChainLink,
    JournalHeader,
    ManifestsCommit,
    RecordedCall,
    RecordedRun,
    RunEnding,
    SnapshotDigest,
)
from lmsconf.model.scope import VerifyMode
from lmsconf.support.atomic_files import os_error_message


def read_runs(root: Path, url: str | None = None) -> Iterator[RecordedRun]:
    """Return the runs of a project, newest first, each read lazily. Raises LmsconfError.

    url: only runs in the workspace with this URL.
    """
    return (_read(path) for path in _journals(root, url))


def seen_values(root: Path, url: str) -> dict[str, str]:
    """Return the dialect keys that runs on a workspace have seen to be right → the value; the newest run counts."""
    return {key: value for run in reversed([*read_runs(root, url)]) for key, value in run.seen.items()}


def run_names(root: Path) -> list[str]:
    """Return the names of the runs of a project, newest first. Raises LmsconfError."""
    return [path.stem for path in _journals(root)]


def read_headers(root: Path, url: str | None = None) -> Iterator[tuple[Path, JournalHeader]]:
    """Yield each journal of a project whose first line can be read, newest first, with that line only.

    url: only those of runs in the workspace with this URL. Raises LmsconfError.
    """
    for path in _journals(root, url):
        entry = _first_line(path)
        header = None if entry is None else _header(entry)
        if header is not None:
            yield path, header


def find_run(root: Path, name: str) -> RecordedRun:
    """Return a run by `latest`, by its name or a prefix of it, or by a prefix of the plan's digest.

    Raises LmsconfError if none or more than one matches, or a journal cannot be read.
    """
    every = _journals(root)
    exact = [path for path in every if path.stem == name]
    fitting = every[:1] if name == "latest" else exact or [path for path in every if _fits(path.stem, name)]
    match fitting:
        case [path]:
            return _read(path)
        case []:
            raise LmsconfError(f"no run matches {name!r}", hint=f"List them with: lmsconf runs{_pruned(every, name)}")
    hint = f"Name one: {', '.join(path.stem for path in fitting)}"
    raise LmsconfError(f"{len(fitting)} runs match {name!r}", hint=hint)


def parse_journal(name: str, content: bytes) -> RecordedRun:
    """Return the run in a journal of that name and content, as far as its lines can be read."""
    fold = _Fold()
    for entry in decode_lines(content):
        fold.take(entry)
    return RecordedRun(
        name=name,
        opening=fold.opening,
        calls=tuple(fold.calls.values()),
        ending=fold.ending,
        damaged=fold.damaged,
        seen=fold.seen,
    )


class _Fold:
    """Folds the entries of a journal, in order, into the parts of a RecordedRun."""

    def __init__(self) -> None:
        self.opening: JournalHeader | None = None
        self.calls: dict[str, RecordedCall] = {}
        self.ending: RunEnding | None = None
        self.damaged = 0
        self.seen: dict[str, str] = {}

    def take(self, entry: dict[str, Json] | None) -> None:
        try:
            self._take(JsonObjectReader(entry))
        except (ValueError, OverflowError):
            # The line is damaged, or a newer lmsconf wrote an event or value that this one does not support.
            self.damaged += 1

    def _take(self, entry: JsonObjectReader) -> None:
        event, at = entry.text("event"), _time(entry.text("at"))
        if event == "run":
            self.opening = _opening(entry, at)
        elif event == "end":
            self.ending = RunEnding(
                at=at,
                exit=entry.number("exit"),
                verified=VerifyMode(entry.text("verified")),
                converged=entry.maybe("converged", entry.flag),
                seen=entry.flag("seen"),
                report_sha256=entry.maybe("report_sha256", entry.text) if entry.has("report_sha256") else None,
                after=_digest(entry, "after"),
            )
        elif event == "seen":
            self.seen[entry.text("key")] = entry.text("value")
        elif event in ("intent", "outcome"):
            before = self.calls.get(entry.text("call"))
            made = _begun(entry, at) if event == "intent" else _ended(entry, at)
            self.calls[made.call] = replace(made, begun=made.begun or (before.begun if before else None))
        else:
            raise ValueError(f"there is no event {event!r}")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def _header(entry: dict[str, Json]) -> JournalHeader | None:
    """Return the header in the first line of a journal; None if it is not one that this version supports."""
    try:
        at = JsonObjectReader(entry)
        return _opening(at, _time(at.text("at"))) if at.text("event") == "run" else None
    except (ValueError, OverflowError):
        return None


def _opening(entry: JsonObjectReader, at: datetime) -> JournalHeader:
    if entry.text("format") != FORMAT:
        raise ValueError("it has another format")
    return JournalHeader(
        digest=entry.text("digest"),
        workspace=entry.text("workspace"),
        url=entry.text("url"),
        started=at,
        tool=entry.text("tool"),
        calls=entry.number("calls"),
        meta=entry.text_map("meta"),
        chain=_link(entry.reader("chain")) if entry.has("chain") else None,
        plan_sha256=entry.text("plan_sha256") if entry.has("plan_sha256") else None,
        pre_image_sha256=entry.text("pre_image_sha256") if entry.has("pre_image_sha256") else None,
        before=_digest(entry, "before"),
        commit=_commit(entry.reader("commit")) if entry.has("commit") else None,
    )


def _digest(entry: JsonObjectReader, key: str) -> SnapshotDigest | None:
    if not entry.has(key):
        return None
    return entry.maybe(key, lambda key: entry.value(key, SnapshotDigest))


def _commit(entry: JsonObjectReader) -> ManifestsCommit:
    return ManifestsCommit(
        commit=entry.maybe("commit", entry.text),
        clean=entry.flag("clean"),
        reason=entry.maybe("reason", entry.text),
    )


def _link(entry: JsonObjectReader) -> ChainLink:
    return ChainLink(
        number=entry.number("number"),
        previous=entry.maybe("previous", entry.text),
        previous_sha256=entry.maybe("previous_sha256", entry.text),
        oldest=entry.maybe("oldest", entry.text),
    )


def _begun(entry: JsonObjectReader, at: datetime) -> RecordedCall:
    return RecordedCall(
        call=entry.text("call"),
        address=_address(entry),
        operation=entry.text("operation"),
        people=entry.texts("people"),
        state=CallState.IN_FLIGHT,
        begun=at,
    )


def _ended(entry: JsonObjectReader, at: datetime) -> RecordedCall:
    return RecordedCall(
        call=entry.text("call"),
        address=_address(entry),
        operation=entry.text("operation"),
        people=entry.texts("people"),
        state=CallState(entry.text("status")),
        ended=at,
        reason=entry.maybe("reason", entry.text),
        id=entry.maybe("id", entry.text),
    )


def _address(entry: JsonObjectReader) -> str:
    """Return the address of a call. Raises ValueError for a text that is none."""
    text = entry.text("address")
    Address.parse(text)
    return text


def _journals(root: Path, url: str | None = None) -> list[Path]:
    """Return the journals of a project, newest first."""
    try:
        return _sorted(list(journals(root, url)))
    except OSError as error:
        raise _unreadable(Path(error.filename or root / FOLDER / RUNS), error) from error


def _sorted(paths: Sequence[Path]) -> list[Path]:
    """Return journals, newest first."""
    seconds = Counter(map(_second, paths))

    def order(path: Path) -> tuple[str, str, int, str]:
        # Runs of one second are in the order of their first lines; runs of one plan have a number, and 10 is after 9.
        return _second(path), _began_at(path) if seconds[_second(path)] > 1 else "", len(path.stem), path.stem

    return sorted(paths, key=order, reverse=True)


def _second(path: Path) -> str:
    return path.stem.partition("-")[0]


def _began_at(path: Path) -> str:
    """Return when a run began, to the millisecond; for a journal that does not say it, the end of the second."""
    entry = _first_line(path)
    at = None if entry is None else entry.get("at")
    return at if isinstance(at, str) else "~"


def _first_line(path: Path) -> dict[str, Json] | None:
    """Return the first entry of a journal; None if it cannot be read. Raises LmsconfError."""
    try:
        with open_journal(path) as file:
            return decode_line(file.readline())
    except OSError as error:
        raise _unreadable(path, error) from error


def _read(path: Path) -> RecordedRun:
    try:
        with open_journal(path) as file:
            return replace(parse_journal(path.stem, file.read()), journal=path)
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> LmsconfError:
    return LmsconfError(
        f"{path} cannot be read: {os_error_message(error)}", hint="Check its permissions, or delete it."
    )


def _pruned(journals: list[Path], name: str) -> str:
    """Say that runs before the oldest journal are not kept, if the name is that of an older run."""
    match journals:
        case [*_, oldest] if name[:8].isdigit() and name < oldest.stem:
            return (
                f". Runs before {oldest.stem} are not kept here; `runs: {{keep: N}}` in lmsconf.yaml sets how many are."
            )
    return ""


def _fits(stem: str, name: str) -> bool:
    return bool(name) and (stem.startswith(name) or stem.partition("-")[2].startswith(name))
