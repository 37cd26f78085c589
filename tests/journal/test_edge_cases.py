"""What journals look like from outside, and places where nothing can be written or locked."""

from __future__ import annotations

import json
import os
import stat
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from journal.journal_project import KEEP_ALL, JournalProject
from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import LmsconfError
from lmsconf.journal.journal_folder import decode_line, encode_line, ensure_folder, runs_folder
from lmsconf.journal.journal_reader import parse_journal
from lmsconf.journal.journal_writer import Journal
from lmsconf.journal.local_lock import hold_lock
from lmsconf.model.canonical_json import Json


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://acme.example/api", "https-acme.example-api"),
        ("https://acme.example/" + "a" * 60, "https-acme.example-" + "a" * 41),
        ("sandbox:.", "sandbox"),
        ("sandbox:\ud800.db", "sandbox-.db"),
    ],
)
def test_the_runs_of_a_workspace_have_a_folder_of_that_name(url: str, name: str) -> None:
    """The readable part of the URL, up to 60 characters, and 12 digits of its sha256, in all versions of lmsconf."""
    assert runs_folder(url) == f"{name}-{sha256(url.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def test_the_folder_is_private_and_ignored_by_git(tmp_path: Path) -> None:
    """Also where a full disk has left an empty `.gitignore`; one that somebody has edited stays."""
    ignored = ensure_folder(tmp_path, "runs", "box").parents[1] / ".gitignore"
    for folder in (ignored.parent, ignored.parent / "runs", ignored.parent / "runs" / "box"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert ignored.read_text() == "*\n"
    for left, expected in (("", "*\n"), ("runs\n", "runs\n")):
        ignored.write_text(left)
        ensure_folder(tmp_path)
        assert ignored.read_text() == expected


def test_a_line_can_be_checked_by_anybody() -> None:
    """Canonical JSON with the first eight digits of its own sha256, so that older and newer journals can be read."""
    entry: dict[str, Json] = {"event": "end", "exit": 0, "verified": "all", "at": "2026-06-01T08:00:00Z"}
    text = json.dumps(entry, sort_keys=True, separators=(",", ":"))
    line = json.loads(encode_line(entry))
    assert line == {**entry, "sum": sha256(text.encode()).hexdigest()[:8]}
    assert decode_line(encode_line(entry)) == entry


def test_a_journal_is_called_by_its_time_and_its_plan(scene: JournalProject) -> None:
    """The first of a second has no number, the others are counted from 2 on."""
    plan = scene.plan()
    name = f"20260601T080001Z-{plan_digest(plan)[:12]}"
    with scene.begin(plan) as one, scene.begin(plan) as two, scene.begin(plan) as three:
        found = [journal.path.name for journal in (one, two, three)]
    assert found == [f"{name}.jsonl", f"{name}-2.jsonl", f"{name}-3.jsonl"]


def test_a_journal_of_another_format_tells_nothing_of_its_run(scene: JournalProject) -> None:
    """Even where it has all the keys that this one has: what they mean there is not known."""
    _, _, path = scene.applied()
    opening, *_ = path.read_bytes().splitlines()
    entry = decode_line(opening)
    assert entry is not None
    assert parse_journal("run", encode_line(entry)).opening is not None
    other = parse_journal("run", encode_line({**entry, "format": "lmsconf.journal/2"}))
    assert (other.opening, other.damaged) == (None, 1)


def test_a_call_without_an_address_is_a_damaged_line(scene: JournalProject) -> None:
    """A journal that somebody has edited may hold any text there."""
    _, _, path = scene.applied()
    opening, intent, *_ = path.read_bytes().splitlines()
    entry = decode_line(intent)
    assert entry is not None
    run = parse_journal("run", b"\n".join([opening, encode_line({**entry, "address": ""})]))
    assert (run.calls, run.damaged) == ((), 1)


def test_a_journal_that_cannot_begin_leaves_nothing_open(scene: JournalProject) -> None:
    """Neither a file nor a descriptor: a service that plans again and again would run out of them."""

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    plan = scene.plan()
    before = os.dup(0)
    os.close(before)
    with pytest.raises(LmsconfError, match="No space left"):
        Journal.begin(scene.root, plan, meta={}, retention=KEEP_ALL, sync=full)
    after = os.dup(0)
    os.close(after)
    assert after == before, "the lowest number that is free is another one now"
    assert not list((scene.root / ".lmsconf" / "runs").glob("*/*"))


def test_where_there_are_no_file_locks_there_is_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No run is safe without one, so that is an error that names systems that have them."""
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with pytest.raises(LmsconfError, match="no file locks") as found, hold_lock(tmp_path, "production"):
        pass
    assert "Linux" in (found.value.hint or "")
