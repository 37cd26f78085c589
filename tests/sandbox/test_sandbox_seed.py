"""Seed files: read as they look, planted whole or not at all; and workspaces that are made up."""

import os
import re
import sqlite3
import struct
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import yaml
from manifest.cases import cases
from texts import listed_cases

from lmsconf.errors import LmsconfError, ProblemsFound
from lmsconf.sandbox.seed import dump_seed
from lmsconf.sandbox.service import Sandbox
from lmsconf.sandbox.store import Store
from lmsconf.sandbox.synthetic_seed import generate_seed
from lmsconf.workspace.fill_sandbox import fill_workspace, load_seed

from .conftest import Caller


def problems(values: object) -> list[str]:
    """What is wrong with a seed, once it is seen that nothing of it was planted."""
    store = Store()
    with pytest.raises(ProblemsFound) as found, store.write_transaction() as repository:
        fill_workspace(repository, values, source="seed.yaml")
    with store.read_transaction() as repository:
        assert repository.is_empty()
    assert {str(problem.source) for problem in found.value.problems} == {"seed.yaml"}
    return [problem.message for problem in found.value.problems]


PERSON = {"email": "anna@acme.example"}


@pytest.mark.parametrize("case", cases(Path(__file__).parent / "wrong_seeds.txt"), ids=lambda case: case.title)
def test_a_wrong_seed_is_refused_whole(case):
    """What is wrong is said with the file and the entry, and nothing is planted."""
    assert problems(yaml.safe_load(case.text)) == case.told.splitlines()


@listed_cases("section", "key", "type", "written", "read")
def test_a_text_is_read_as_what_it_looks_like(section, key, type, written, read):
    """A boolean is true or false, or 1 or 0, and a number whole and not negative, as texts too; all else is refused."""
    values = {section: [{**PERSON, key: written}] if section == "people" else [{"name": "x", key: written}]}
    if read is None:
        (message,) = problems(values)
        assert re.fullmatch(rf"{section}\[0\]: Expected `{type}`.* - at `\$\.{key}`", message)
    else:
        with Store().write_transaction() as repository:
            fill_workspace(repository, values)
            column, table = ("archived_at IS NOT NULL", "people") if key == "archived" else ("price", "contents")
            assert repository.number(f"SELECT {column} FROM {table}") == read  # noqa: S608  # as above


def test_a_seed_that_is_nested_too_deep_is_refused():
    """Conditions within conditions are a problem of their entry, however deep."""
    entry: dict[str, object] = {"name": "x"}
    for _ in range(600):
        entry = {"field": "x", "conditions": [entry]}
    (message,) = problems({"smart_groups": [{"name": "x", "conditions": [entry]}]})
    assert message.startswith("smart_groups[0]: Object contains unknown field `conditions`")


@pytest.mark.parametrize(
    "seed",
    [
        "people: [$]",
        "people: [{email: anna@acme.example, first_name: $}]",
        "people: [{email: anna@acme.example, answers: {x: $}}]",
        "content_targets: [{content: x, assign_to: $}]",
        "content_targets: [{content: x, assign_to: [{group: $}]}]",
    ],
)
def test_aliases_of_aliases_are_refused_unread(seed):
    """In the place of any value, lists that would be 10^100 texts are refused at once."""
    lists = ["&l0 [x]", *(f"&l{n} [{', '.join([f'*l{n - 1}'] * 10)}]" for n in range(1, 100))]
    values = yaml.safe_load(f"lists: [{', '.join(lists)}]\n{seed.replace('$', '*l99')}")
    del values["lists"]
    (message,) = problems(values)
    assert message.startswith(f"{next(iter(values))}[0]: Expected `")


@listed_cases("text", "message")
def test_a_file_that_is_no_seed(tmp_path, monkeypatch, text, message):
    """A file that is not YAML in UTF-8, or holds something else, is an error with its place."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "seed.yaml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ProblemsFound) as found:
        load_seed(path.relative_to(tmp_path))
    (problem,) = found.value.problems
    assert f"{problem.source}: {problem.message}".startswith(message)


def test_a_made_up_workspace_has_the_size_asked_for():
    """A made-up workspace has as many of everything as was asked for, no two with the same name, and can be planted."""
    values = generate_seed(
        users=60, groups=14, smart_groups=30, fields=10, contents=20, assignments=90, participations=70
    )
    counts = {"people": 60, "groups": 14, "smart_groups": 30, "custom_fields": 10, "content": 20, "content_targets": 90}
    counts["participations"] = 70
    assert {section: len(entries) for section, entries in values.items() if section != "certificates"} == counts
    assert 0 < len(values["certificates"]) < 70
    for section in ("custom_fields", "groups", "smart_groups", "content"):
        assert len({entry["name"] for entry in values[section]}) == counts[section]
    with Store().write_transaction() as repository:
        fill_workspace(repository, values)
        assert repository.number("SELECT count(*) FROM targets") == 90


def test_a_seed_file_reads_as_it_was_written(tmp_path):
    """What is written as YAML reads back the same, for any reader, also where text looks like something else."""
    odd = ["NO", "true", "null", "12", "1e3", "#c", "é\u2028\x85\ufeff😀", '"', "~", "Y", "[x]"]
    values = {"groups": [{"name": name, "members": []} for name in [*odd, "", " x ", "a: b", "- x", "a, b"]]}
    path = tmp_path / "seed.yaml"
    path.write_text(dump_seed(values), encoding="utf-8", newline="")
    assert load_seed(path) == values
    assert yaml.safe_load(dump_seed(values)) == values


# The workspace as a file: it stays, it is shared, and what is no workspace is not touched.


def groups(caller: Caller) -> list[str]:
    return [one["name"] for one in caller.ok("GET", "/groups")["groups"]]


@contextmanager
def opened(path: Path | str) -> Iterator[Caller]:
    """A caller of the workspace in that file."""
    sandbox = Sandbox(path)
    yield Caller(sandbox)
    sandbox.close_workspace()


def test_a_workspace_is_for_its_owner_alone(tmp_path):
    """The file, and those that SQLite keeps beside it, whatever the umask is; one that others could read is closed."""
    before = os.umask(0)
    try:
        with opened(tmp_path / "w.db") as caller:
            caller.ok("POST", "/groups", {"name": "One"})
            modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
            assert modes == dict.fromkeys(("w.db", "w.db-wal", "w.db-shm"), 0o600)
        (tmp_path / "w.db").chmod(0o644)
        with opened(tmp_path / "w.db"):
            assert (tmp_path / "w.db").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("sandboxes", [1, 4])
def test_many_threads_write_at_once(tmp_path, sandboxes):
    """Requests from several threads, through one sandbox or several on one file, are each whole."""

    def make(prefix: str, sandbox: Sandbox) -> None:
        caller = Caller(sandbox)
        for number in range(25):
            caller.call("POST", "/groups", {"name": f"{prefix}{number}"})

    with ExitStack() as stack:
        callers = [stack.enter_context(opened(tmp_path / "w.db")) for _ in range(sandboxes)]
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(make, "abcd", [callers[n % sandboxes].sandbox for n in range(4)]))
        found = callers[0].ok("GET", "/groups")["groups"]
    assert len({one["groupId"] for one in found}) == 100
    assert {one["name"] for one in found} == {f"{prefix}{number}" for prefix in "abcd" for number in range(25)}


@pytest.mark.parametrize("kept", [":memory:", "w.db"])
def test_a_checkpoint_brings_the_workspace_back(tmp_path, kept):
    """restore makes the workspace what it was at the checkpoint, any number of times, in memory and in a file."""
    with opened(kept if kept == ":memory:" else tmp_path / kept) as caller:
        store = caller.sandbox.store
        for name in ("One", "Two"):
            caller.ok("POST", "/groups", {"name": name})
            store.checkpoint(name)
        for name, expected in (("One", ["One"]), ("Two", ["One", "Two"]), ("One", ["One"])):
            store.restore(name)
            assert groups(caller) == expected
            caller.ok("DELETE", "/groups/g-1")
        store.checkpoint("One")
        caller.ok("POST", "/groups", {"name": "Three"})
        store.restore("One")
        assert groups(caller) == []
        assert len(caller.sandbox.log) == 10
        with pytest.raises(KeyError, match="Three"):
            store.restore("Three")


def test_a_restored_file_is_seen_by_others(tmp_path):
    """Another sandbox on the same file sees what is restored."""
    with opened(tmp_path / "w.db") as one, opened(tmp_path / "w.db") as two:
        one.sandbox.store.checkpoint("empty")
        two.ok("POST", "/groups", {"name": "One"})
        one.sandbox.store.restore("empty")
        assert groups(two) == []


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
