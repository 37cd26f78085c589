"""The hash chain of the runs of a workspace, and which of them are kept.

A chain belongs to the name and URL of a workspace in one project folder. The local lock, which is held under that name,
puts its runs in one order: the journal of the previous run is complete when its digest is taken.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from lmsconf.errors import LmsconfError
from lmsconf.journal.journal_folder import open_journal
from lmsconf.journal.journal_reader import read_headers
from lmsconf.model.canonical_json import sha256_of_bytes
from lmsconf.model.recorded_run import ChainLink, JournalHeader
from lmsconf.support.atomic_files import os_error_message


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
    own = [(path, header) for path, header in read_headers(root, url) if header.workspace == workspace]
    # Oldest first. The number comes before the name: the clock, which is in the names, may have been set back.
    own.reverse()
    own.sort(key=lambda one: _number(one[1]))
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
    last: dict[tuple[str, str], tuple[Path, JournalHeader]] = {}
    for path, header in reversed(list(read_headers(root))):
        key = (header.workspace, header.url)
        if key not in last or _number(header) >= _number(last[key][1]):
            last[key] = (path, header)
    return [
        ChainHead(workspace=workspace, run=path.stem, sha256=_file_digest(path))
        for (workspace, _), (path, _) in sorted(last.items())
    ]


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
    try:
        with open_journal(path) as file:
            return sha256_of_bytes(file.read())
    except OSError as error:
        hint = "Check its permissions: the next run names it in its own journal."
        raise LmsconfError(f"{path} cannot be read: {os_error_message(error)}", hint=hint) from error


def _quiet(path: Path, settle: float) -> bool:
    """Whether no call of the run can still take effect: each is written to the journal before it is sent."""
    try:
        return time.time() - path.stat().st_mtime >= settle
    except FileNotFoundError:
        return False
