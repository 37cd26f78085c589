"""Whatever is left of a journal can be read, and tells nothing that was not so; what it looks like from outside."""

import json
import os
from hashlib import sha256
from pathlib import Path

import pytest
from flow.project import runs_of
from journal.conftest import CALLS, JournalProject
from sampling import of_today

from lmsconf.documents.journal.journal_folder import decode_line, encode_line, runs_folder
from lmsconf.documents.journal.journal_reader import (
    find_run,
    parse_journal,
    read_headers,
    read_runs,
    run_names,
    seen_values,
)
from lmsconf.errors import LmsconfError
from lmsconf.model.canonical_json import Json
from lmsconf.model.outcomes import CallState, RecordedCall, RecordedRun


@pytest.fixture
def journal(scene: JournalProject) -> bytes:
    """The journal of a run that did everything."""
    return scene.applied(scene.plan())[1].read_bytes()


def test_torn_at_every_byte(journal: bytes) -> None:
    """Cut anywhere, the whole lines before the cut hold, and what is left of a line is counted as one damaged."""
    whole = parse_journal("run", journal)
    for length in range(len(journal)):
        left = journal[:length]
        run = parse_journal("run", left)
        # A line that lacks only its line feed says all that it has to say.
        lines = journal[: length + 1].count(b"\n") if left[-1:] != b"\n" else left.count(b"\n")
        torn = not (journal[: length + 1].endswith(b"\n") or left.endswith(b"\n") or not left)
        assert run.damaged == torn, length
        assert (run.opening is not None) == (lines > 0)
        assert run.ending is None or lines == journal.count(b"\n")
        assert _weaker(run, whole)
        if run.opening is not None:
            assert sum(run.summary.values()) == CALLS


def test_flipped_bits(journal: bytes) -> None:
    """Whichever bit is flipped: no call is said to be done that was not, and what is lost is counted."""
    whole = parse_journal("run", journal)
    for place, bit in of_today(((place, place % 8) for place in range(len(journal))), 4):
        changed = bytearray(journal)
        changed[place] ^= 1 << bit
        run = parse_journal("run", bytes(changed))
        assert _weaker(run, whole), (place, bit)
        assert run.damaged or run == whole, (place, bit)


def _weaker(run: RecordedRun, whole: RecordedRun) -> bool:
    """Whether one tells nothing but what the other does, or less."""
    said = {call.call: call for call in whole.calls}
    opened = run.opening in (None, whole.opening)
    return opened and run.ending in (None, whole.ending) and all(_told(call, said[call.call]) for call in run.calls)


def _told(call: RecordedCall, truth: RecordedCall) -> bool:
    if call.status is CallState.IN_FLIGHT:
        return (call.begun, call.ended, call.id) == (truth.begun, None, None)
    return (call.status, call.ended, call.id) == (truth.status, truth.ended, truth.id)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n",
        b"\x00" * 64,
        b"null\n[]\n1\n",
        b"[" * 100_000,
        encode_line({"event": "run", "at": "2026-06-01T08:00:00Z", "format": "lmsconf.journal/9"}),
        encode_line({"event": "rest", "at": "2026-06-01T08:00:00Z"}),
        encode_line({"event": "end", "at": "0001-01-01T00:00:00+23:00", "exit": 0,
                "verified": "none", "converged": None}),
        encode_line({"event": "end", "at": "soon", "exit": 0, "verified": "none", "converged": None}),
        encode_line({"event": "outcome", "at": "2026-06-01T08:00:00Z", "call": "c1", "address": "group/A",
                "operation": "x", "people": [], "status": "perhaps", "reason": None, "id": None}),
    ],
)  # fmt: skip
def test_what_is_no_journal_tells_nothing(content: bytes) -> None:
    """A file that holds something else, or what a later version wrote, is a run of which nothing is known."""
    run = parse_journal("run", content)
    assert (run.opening, run.calls, run.ending) == (None, (), None)
    assert run.damaged == sum(bool(line) for line in content.split(b"\n"))


def test_a_call_that_is_sent_again_was_begun_again() -> None:
    """A second intent of a call is the one that counts for how long it has been in flight."""
    intent = {"event": "intent", "call": "c1", "address": "group/A", "operation": "manual-groups.create", "people": []}
    lines = [encode_line({**intent, "at": f"2026-06-01T08:00:{second:02}Z"}) for second in (1, 31)]
    (call,) = parse_journal("run", b"".join(lines)).in_flight
    assert call.begun is not None
    assert call.begun.second == 31


NAMES = ["20260601T080000Z-aaaaaaaaaaaa", "20260601T080000Z-aaaaaaaaaaaa-2", "20260601T080000Z-aaaaaaaaaaaa-10",
         "20260602T080000Z-abbbbbbbbbbb"]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    places = [runs_of(tmp_path, f"https://{name}.example/api") for name in ("acme", "other")]
    for place, name in zip([*places, *places, places[0]], (*NAMES, "other.txt"), strict=True):
        place.mkdir(parents=True, exist_ok=True)
        path = place / name
        (path if path.suffix else path.with_suffix(".jsonl")).write_bytes(b"")
    return tmp_path


def test_the_newest_comes_first(folder: Path) -> None:
    """Runs of all workspaces are listed from the newest on, those of one second by number; other files are none."""
    assert [run.name for run in read_runs(folder)] == NAMES[::-1]


@pytest.mark.parametrize(
    ("said", "meant"), [("latest", NAMES[3]), (NAMES[0], NAMES[0]), ("20260602", NAMES[3]), ("abb", NAMES[3])]
)
def test_a_run_is_named_by_what_is_unique(folder: Path, said: str, meant: str) -> None:
    """Its name, how that begins, how the digest begins, or `latest`."""
    assert find_run(folder, said).name == meant


LIST = "List them with: lmsconf runs"
DELETED = f"{LIST}. Runs before {NAMES[0]} are not kept here; `runs: {{keep: N}}` in lmsconf.yaml sets how many are."


@pytest.mark.parametrize(
    ("said", "why", "hint"),
    [
        ("aaa", "3 runs", f"Name one: {NAMES[2]}, {NAMES[1]}, {NAMES[0]}"),
        (f"{NAMES[0]}-", "2 runs", f"Name one: {NAMES[2]}, {NAMES[1]}"),
        *((said, "no run", LIST) for said in ("x", "", "../x", "20260603", "2026053x", f"{NAMES[0]}-1x")),
        *((said, "no run", DELETED) for said in ("20260531T080000Z-x", "20260531")),
    ],
)
def test_a_name_that_is_not_unique_is_an_error(folder: Path, said: str, why: str, hint: str) -> None:
    """What fits none, or several, is an error that says so.

    The hint names the oldest run that is kept where the wanted one would be older, and only the list otherwise.
    """
    with pytest.raises(LmsconfError, match=why) as error:
        find_run(folder, said)
    assert error.value.hint == hint


def test_a_journal_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """A folder where a journal should be is an error with its path, for one run and in the list of all."""
    path = runs_of(tmp_path) / "20260301T080000Z-abc.jsonl"
    path.mkdir(parents=True)
    for read in (lambda: find_run(tmp_path, "latest"), lambda: list(read_runs(tmp_path))):
        with pytest.raises(LmsconfError, match=r"20260301T080000Z-abc\.jsonl cannot be read") as caught:
            read()
        assert caught.value.hint == "Check its permissions, or delete it."
    assert run_names(tmp_path) == [path.stem]


def test_a_journal_of_a_branch_leads_nowhere(tmp_path: Path) -> None:
    """A symbolic link is no journal: to a device it would never end, to another project it would tell of its runs."""
    others = runs_of(tmp_path / "other")
    others.mkdir(parents=True)
    (others / "20260302T080000Z-abc.jsonl").write_bytes(b"")
    runs = runs_of(tmp_path)
    linked = {
        runs / "20260301T080000Z-abc.jsonl": Path("/dev/zero"),
        runs: others,
        runs.parent: others.parent,
        runs.parent.parent: others.parent.parent,
    }
    for link, target in linked.items():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
        for read in (find_run, lambda root, _: list(read_runs(root)), lambda root, _: list(read_headers(root))):
            with pytest.raises(LmsconfError, match=rf"{link.name} cannot be read: it is a symbolic link"):
                read(tmp_path, "latest")
        link.unlink()
        if link.parent.name != tmp_path.name:
            link.parent.rmdir()


def test_a_pipe_is_no_journal(tmp_path: Path) -> None:
    """Nobody waits for a writer, and it is not kept open."""
    runs_of(tmp_path).mkdir(parents=True)
    os.mkfifo(runs_of(tmp_path) / "20260301T080000Z-abc.jsonl")
    before = {one.name for one in Path("/dev/fd").iterdir()}
    with pytest.raises(LmsconfError, match="it is not a file"):
        find_run(tmp_path, "latest")
    assert {one.name for one in Path("/dev/fd").iterdir()} <= before


# What journals look like from outside, and places where nothing can be written or locked.


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


def test_a_line_can_be_checked_by_anybody() -> None:
    """Canonical JSON with the first eight digits of its own sha256, so that older and newer journals can be read."""
    entry: dict[str, Json] = {"event": "end", "exit": 0, "verified": "all", "at": "2026-06-01T08:00:00Z"}
    text = json.dumps(entry, sort_keys=True, separators=(",", ":"))
    assert json.loads(encode_line(entry)) == {**entry, "sum": sha256(text.encode()).hexdigest()[:8]}
    assert decode_line(encode_line(entry)) == entry


def test_a_line_that_says_otherwise_is_damaged(journal: bytes) -> None:
    """Of another format, even with all the keys that this one has; a call without an address, as somebody edited it."""
    first, second, *_ = journal.splitlines()
    opening, intent = decode_line(first) or {}, decode_line(second) or {}
    whole = parse_journal("run", b"\n".join([encode_line(opening), encode_line(intent)]))
    assert (whole.opening is not None, len(whole.calls), whole.damaged) == (True, 1, 0)
    other = parse_journal("run", encode_line({**opening, "format": "lmsconf.journal/2"}))
    assert (other.opening, other.damaged) == (None, 1)
    run = parse_journal("run", encode_line({**intent, "address": ""}))
    assert (run.calls, run.damaged) == ((), 1)


def test_the_newest_run_tells_what_was_seen(tmp_path: Path) -> None:
    """Of two runs that saw other values of one key of the dialect, the later one counts."""
    runs_of(tmp_path).mkdir(parents=True)
    for day, value in ((1, "add"), (2, "replace")):
        line = encode_line({"event": "seen", "at": f"2026-06-0{day}T08:00:00Z", "key": "k", "value": value})
        (runs_of(tmp_path) / f"2026060{day}T080000Z-abc.jsonl").write_bytes(line)
    assert seen_values(tmp_path, "sandbox:workspace.db") == {"k": "replace"}
