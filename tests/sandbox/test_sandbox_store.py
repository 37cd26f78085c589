"""The workspace as a file: it stays, it is shared, and what is no workspace is not touched."""

from __future__ import annotations

import os
import sqlite3
import struct
import threading

import pytest

from lmsconf.errors import LmsconfError
from lmsconf.sandbox.service import Sandbox
from lmsconf.sandbox.store import Store

from .conftest import Caller


def groups(caller: Caller) -> list[str]:
    return [one["name"] for one in caller.ok("GET", "/groups")["groups"]]


def test_a_workspace_stays_in_its_file(tmp_path):
    """What one sandbox wrote the next one reads, and ids go on where they were."""
    first = Sandbox(tmp_path / "w.db")
    assert Caller(first).ok("POST", "/groups", {"name": "One"}) == {"groupId": "g-1"}
    first.close_workspace()
    second = Sandbox(tmp_path / "w.db")
    assert Caller(second).ok("POST", "/groups", {"name": "Two"}) == {"groupId": "g-2"}
    assert groups(Caller(second)) == ["One", "Two"]
    second.close_workspace()
    assert [path.name for path in tmp_path.iterdir()] == ["w.db"]


def test_a_workspace_is_for_its_owner_alone(tmp_path):
    """The file, and those that SQLite keeps beside it, whatever the umask is; one that others could read is closed."""
    before = os.umask(0)
    try:
        sandbox = Sandbox(tmp_path / "w.db")
        Caller(sandbox).ok("POST", "/groups", {"name": "One"})
        assert {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {
            "w.db": 0o600,
            "w.db-wal": 0o600,
            "w.db-shm": 0o600,
        }
        sandbox.close_workspace()
        (tmp_path / "w.db").chmod(0o644)
        Sandbox(tmp_path / "w.db").close_workspace()
        assert (tmp_path / "w.db").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("sandboxes", [1, 4])
def test_many_threads_write_at_once(tmp_path, sandboxes):
    """Requests from several threads, through one sandbox or several on one file, are each whole."""
    opened = [Sandbox(tmp_path / "w.db") for _ in range(sandboxes)]

    def make(prefix: str, sandbox: Sandbox) -> None:
        caller = Caller(sandbox)
        for number in range(25):
            caller.call("POST", "/groups", {"name": f"{prefix}{number}"})

    threads = [threading.Thread(target=make, args=("abcd"[n], opened[n % sandboxes])) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = Caller(opened[0]).ok("GET", "/groups")["groups"]
    assert len({one["groupId"] for one in found}) == 100
    assert {one["name"] for one in found} == {f"{prefix}{number}" for prefix in "abcd" for number in range(25)}
    for sandbox in opened:
        sandbox.close_workspace()


@pytest.mark.parametrize("kept", [":memory:", "w.db"])
def test_a_checkpoint_brings_the_workspace_back(tmp_path, kept):
    """restore makes the workspace what it was at the checkpoint, any number of times, in memory and in a file."""
    sandbox = Sandbox(kept if kept == ":memory:" else tmp_path / kept)
    caller = Caller(sandbox)
    caller.ok("POST", "/groups", {"name": "One"})
    sandbox.store.checkpoint("one")
    caller.ok("POST", "/groups", {"name": "Two"})
    sandbox.store.checkpoint("two")
    for name, expected in (("one", ["One"]), ("two", ["One", "Two"]), ("one", ["One"])):
        sandbox.store.restore(name)
        assert groups(caller) == expected
        caller.ok("DELETE", "/groups/g-1")
    sandbox.store.checkpoint("one")
    caller.ok("POST", "/groups", {"name": "Three"})
    sandbox.store.restore("one")
    assert groups(caller) == []
    assert len(sandbox.log) == 10
    with pytest.raises(LmsconfError, match="there is no checkpoint 'three'") as error:
        sandbox.store.restore("three")
    assert error.value.hint == "There are: one, two."
    sandbox.close_workspace()


def test_a_restored_file_is_seen_by_others(tmp_path):
    """Another sandbox on the same file sees what is restored."""
    one, two = Sandbox(tmp_path / "w.db"), Sandbox(tmp_path / "w.db")
    one.store.checkpoint("empty")
    Caller(two).ok("POST", "/groups", {"name": "One"})
    one.store.restore("empty")
    assert groups(Caller(two)) == []
    one.close_workspace()
    two.close_workspace()


def test_what_was_derived_follows_every_change(tmp_path):
    """What is made of the workspace is made anew after a write, also by another, after what was undone and restored."""
    store, other = Store(tmp_path / "w.db"), Store(tmp_path / "w.db")
    made = []

    def names(repository):
        made.append(repository.column("SELECT name FROM groups ORDER BY name"))
        return made[-1]

    def derived():
        with store.read_transaction() as repository:
            return repository.cache_until_write(names)

    def add(where, name):
        with where.write_transaction() as repository:
            repository.execute("INSERT INTO groups (id, kind, name) VALUES (?, 'GROUP', ?)", name, name)
            repository.cache_until_write(names)
            if name == "undone":
                raise ValueError(name)

    store.checkpoint("empty")
    assert derived() == derived() == []
    assert len(made) == 1
    add(store, "A")
    assert derived() == ["A"]
    add(other, "B")
    assert derived() == ["A", "B"]
    with pytest.raises(ValueError, match="undone"):
        add(store, "undone")
    assert derived() == ["A", "B"]
    store.restore("empty")
    assert derived() == []
    store.close()
    other.close()


def test_ids_and_clock_are_injected():
    """Ids come from the function that is given, again if one is taken, and times from the clock."""
    words = iter(["one", "one", "two"])
    sandbox = Sandbox(ids=lambda prefix: f"{prefix}:{next(words)}", clock=lambda: 0.5)
    caller = Caller(sandbox)
    assert caller.ok("POST", "/groups", {"name": "a"}) == {"groupId": "g:one"}
    assert caller.ok("POST", "/groups", {"name": "b"}) == {"groupId": "g:two"}
    with sandbox.store.read_transaction() as repository:
        assert repository.now() == 500


def test_a_file_of_version_2_is_made_one_of_version_5(tmp_path):
    """It keeps its content: targets without a type of their own show their kind."""
    file = tmp_path / "w.db"
    with Store(file).write_transaction() as repository:
        repository.execute("INSERT INTO groups (id, kind, name) VALUES ('g-1', 'GROUP', 'Old')")
    older = sqlite3.connect(file)
    older.execute("DROP INDEX targets_by_type")
    older.execute("ALTER TABLE targets DROP COLUMN type")
    older.execute("ALTER TABLE conditions ADD COLUMN any_answer INTEGER")
    older.execute("PRAGMA user_version = 2")
    older.close()
    with Store(file).read_transaction() as repository:
        assert repository.column("SELECT name FROM groups") == ["Old"]
        assert repository.rows("SELECT type FROM targets INDEXED BY targets_by_type WHERE type IS NOT NULL") == []
        assert repository.number("PRAGMA user_version") == 5


def test_a_file_that_is_no_workspace(tmp_path):
    """Another file, another version and a missing folder are errors that name the file, which stays as it was."""
    other = tmp_path / "notes.txt"
    other.write_text("milk, bread, and everything else that belongs on a list" * 20)
    with pytest.raises(LmsconfError, match=r"notes\.txt cannot be used as a sandbox workspace: file is not a database"):
        Store(other)
    assert other.read_text().startswith("milk")
    newer = sqlite3.connect(tmp_path / "newer.db")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    with pytest.raises(LmsconfError, match=r"it is of version 99, and this program reads version 5"):
        Store(tmp_path / "newer.db")
    with pytest.raises(LmsconfError, match="unable to open database file"):
        Store(tmp_path / "missing" / "w.db")


def test_a_seed_is_planted_once(tmp_path):
    """A seed fills an empty workspace; one that holds something is left as it is."""
    seed = tmp_path / "seed.yaml"
    seed.write_text("groups:\n  - name: Coaches\n", encoding="utf-8")
    first = Sandbox(tmp_path / "w.db", seed=seed)
    Caller(first).ok("POST", "/groups/g-1/rename", {"name": "Mentors"})
    first.close_workspace()
    second = Sandbox(tmp_path / "w.db", seed=seed)
    assert groups(Caller(second)) == ["Mentors"]
    second.close_workspace()


@pytest.mark.parametrize(
    "statements",
    [
        "ALTER TABLE people RENAME TO others; CREATE VIEW people AS SELECT * FROM others",
        "CREATE VIRTUAL TABLE others USING fts5(name)",
        "ALTER TABLE people ADD COLUMN long AS (zeroblob(1000000000))",
    ],
    ids=["view", "virtual table", "computed column"],
)
def test_a_file_with_computed_rows_is_no_workspace(tmp_path, statements):
    """A branch can add such a file: a view need never end, and a column need not fit into memory."""
    Store(tmp_path / "w.db").close()
    other = sqlite3.connect(tmp_path / "w.db")
    other.executescript(statements)
    other.close()
    with pytest.raises(LmsconfError, match=r"w\.db cannot be used as a sandbox workspace: it has views, triggers or"):
        Store(tmp_path / "w.db")


def test_a_journal_that_names_another_file_deletes_nothing(tmp_path):
    """A branch can add a rollback journal with a super-journal, which SQLite deletes: the workspace is not opened."""
    Store(tmp_path / "w.db").close()
    other = tmp_path / "other"
    other.write_text("kept")
    name, magic = str(other).encode(), bytes.fromhex("d9d505f920a163d7")
    header = (magic + struct.pack(">5I", 0, 1, (tmp_path / "w.db").stat().st_size // 4096, 4096, 4096)).ljust(
        4096, b"\0"
    )
    record = struct.pack(">I", 0x40000000 // 4096 + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    (tmp_path / "w.db-journal").write_bytes(header + record)
    with pytest.raises(LmsconfError, match=r"w\.db-journal names a file that SQLite would delete"):
        Store(tmp_path / "w.db")
    assert other.read_text() == "kept"
