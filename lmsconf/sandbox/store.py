"""Access to sqlite3: the workspace of `schema.sql`, and one transaction at a time.

Ids are the service's own texts; `seq` preserves creation order. An answer to a TEXT field is in `text`, with an empty
`choice`; every other answer names a choice. Both kinds of groups share one table, because people, managers and targets
reference them in the same way. Members of a smart group are computed on request, and so are not stored. Values that are
never queried by their parts are JSON: metadata, applications, attachments, order details, and the details of a content
that only the catalog shows. The `type` of a target is the `targetType` that a snapshot has for it; without one it is
the kind.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias, TypeVar, cast
from unicodedata import normalize
from urllib.parse import quote_plus
from zoneinfo import ZoneInfo

from msgspec.json import decode

from lmsconf.errors import LmsconfError

VERSION: Final = 5

Value: TypeAlias = "str | int | None"
Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
T = TypeVar("T")
IN_MEMORY: Final = ":memory:"
_MODE: Final = 0o600
_OWNERS: Final = {
    "u": "people",
    "f": "fields",
    "ch": "choices",
    "g": "groups",
    "sg": "groups",
    "c": "contents",
    "link": "links",
    "cert": "certificates",
    "job": "generations",
    "p": "participations",
    "e": "events",
}
"""Prefix of a generated id → its table."""


class Repository:
    """One open transaction: queries, new ids, and the time."""

    def __init__(
        self, connection: sqlite3.Connection, clock: Callable[[], float], ids: Callable[[str], str] | None
    ) -> None:
        self.connection = connection
        self._clock = clock
        self._ids = ids
        self._cache: dict[object, tuple[tuple[int, int], object]] = {}
        self._named: Mapping[str, Value] = {}

    def with_named_values(self, named: Mapping[str, Value]) -> Repository:
        """The same transaction, where a statement without values of its own has these, by the names in it."""
        made = copy(self)
        made._named = named
        return made

    def _run(self, sql: str, values: tuple[Value, ...]) -> sqlite3.Cursor:
        return self.connection.execute(sql, values or self._named)

    def cache_until_write(self, compute: Callable[[Repository], T], *key: object) -> T:
        """Return `compute` of this workspace, cached under a key until something is written by any connection."""
        stamp = (self.connection.total_changes, self.number("PRAGMA data_version"))
        if (compute, *key) not in self._cache or self._cache[compute, *key][0] != stamp:
            self._cache[compute, *key] = (stamp, compute(self))
        return cast(T, self._cache[compute, *key][1])

    def clear_cache(self) -> None:
        """Clear the cache after a restore or a rollback, which no counter reveals."""
        self._cache.clear()

    def rows(self, sql: str, *values: Value) -> list[tuple[Value, ...]]:
        """All rows of a query."""
        return self._run(sql, values).fetchall()

    def json(self, sql: str, *values: Value) -> Json:
        """The JSON that a query makes."""
        return cast(Json, decode(self.column(sql, *values)[0]))

    def column(self, sql: str, *values: Value) -> list[str]:
        """The first column, as text."""
        return [str(row[0]) for row in self._run(sql, values)]

    def number(self, sql: str, *values: Value) -> int:
        """The one number of a query; 0 without a row."""
        row: tuple[int | None] | None = self._run(sql, values).fetchone()
        return (row[0] or 0) if row else 0

    def execute(self, sql: str, *values: Value) -> int:
        """Execute a statement; return the number of changed rows."""
        return self._run(sql, values).rowcount

    def execute_many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        """Execute a statement for many rows."""
        self.connection.executemany(sql, rows)

    def now(self) -> int:
        """The current time in epoch milliseconds."""
        return int(self._clock() * 1000)

    def new_id(self, prefix: str) -> str:
        """An unused id: `g-17`."""
        return self.new_ids(prefix, 1)[0]

    def new_ids(self, prefix: str, count: int, taken: frozenset[str] = frozenset()) -> list[str]:
        """`count` unused ids, none of them in the workspace or in `taken`."""
        made: list[str] = []
        last = self.number("SELECT last FROM counters WHERE prefix = ?", prefix)
        known = f"SELECT id FROM {_OWNERS[prefix]} WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608  ours
        while len(made) < count:
            numbers = range(last + 1, last + 1 + count - len(made))
            candidates = [self._ids(prefix) if self._ids else f"{prefix}-{number}" for number in numbers]
            used = taken.union(self.column(known, encode_ids(candidates)))
            made += [candidate for candidate in candidates if candidate not in used]
            last = numbers[-1]
        self.execute("INSERT OR REPLACE INTO counters VALUES (?, ?)", prefix, last)
        return made

    def existing_ids(self, prefix: str) -> frozenset[str]:
        """All ids of the table for that prefix."""
        return frozenset(self.column(f"SELECT id FROM {_OWNERS[prefix]}"))  # noqa: S608  the names are ours

    def is_empty(self) -> bool:
        """Whether no table has a row."""
        return not any(
            self.number(f"SELECT EXISTS (SELECT 1 FROM {table})")  # noqa: S608  the names are ours
            for table in set(_OWNERS.values())
        )


class Store:
    """One workspace, in memory or in a file that any number of stores may have open at once.

    A transaction that ends in an exception is rolled back. The workspace is closed when the store is garbage-collected,
    or by `close`. Checkpoints are copies in memory, also for a file.
    """

    def __init__(
        self,
        path: str | Path = IN_MEMORY,
        *,
        clock: Callable[[], float] = time.time,
        ids: Callable[[str], str] | None = None,
    ) -> None:
        self.path = str(path)
        self._lock = threading.RLock()
        self._connection = _open(self.path)
        self._repository = Repository(self._connection, clock, ids)
        self._clock = clock
        self._kept: dict[str, Repository] = {}
        self._closer = weakref.finalize(self, self._connection.close)
        try:
            self._prepare()
        except sqlite3.DatabaseError as error:
            self.close()
            raise _unusable(self.path, str(error)) from error

    def _prepare(self) -> None:
        with self.write_transaction() as repository:
            # A query of a foreign view need never end, and one of a computed column need not fit into memory.
            if repository.number(
                "SELECT (SELECT count(*) FROM sqlite_master WHERE type NOT IN ('table', 'index') OR rootpage = 0)"
                " + (SELECT count(*) FROM sqlite_master AS made, pragma_table_xinfo(made.name) AS has"
                " WHERE made.type = 'table' AND has.hidden)"
            ):
                raise sqlite3.DatabaseError("it has views, triggers or computed columns, and lmsconf makes none")
            version = repository.number("PRAGMA user_version")
            if version not in (0, VERSION):
                raise sqlite3.DatabaseError(f"it is of version {version}, and this program reads version {VERSION}")
            if not version:
                schema = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
                for statement in schema.split(";\n"):
                    repository.execute(statement)
                repository.execute(f"PRAGMA user_version = {VERSION}")

    @contextmanager
    def write_transaction(self) -> Iterator[Repository]:
        """A write transaction, which excludes all other writers."""
        with self._lock:
            try:
                with _transaction(self._connection, "BEGIN IMMEDIATE"):
                    yield self._repository
            except BaseException:
                self._repository.clear_cache()
                raise

    @contextmanager
    def read_transaction(self, checkpoint: str = "") -> Iterator[Repository]:
        """A read transaction on a checkpoint; on the current workspace if there is none with that name."""
        with self._lock:
            repository = self._kept.get(checkpoint, self._repository)
            with _transaction(repository.connection, "BEGIN"):
                yield repository

    def checkpoint(self, name: str) -> None:
        """Save a copy of the workspace under a name; replaces an earlier one with that name."""
        with self._lock:
            if name not in self._kept:
                self._kept[name] = Repository(_open(IN_MEMORY), self._clock, None)
            self._connection.backup(self._kept[name].connection)
            self._kept[name].clear_cache()

    def restore(self, name: str) -> None:
        """Reset the workspace to a checkpoint, which is kept. Raises KeyError for an unknown name."""
        with self._lock:
            self._kept[name].connection.backup(self._connection)
            self._repository.clear_cache()

    def close(self) -> None:
        """Close the file. A workspace in memory is lost, and so are the checkpoints."""
        with self._lock:
            for kept in self._kept.values():
                kept.connection.close()
            self._closer()


def json_flag(column: str) -> str:
    """SQL for a column as true or false in a JSON object; NULL stays NULL."""
    return f"json(CASE {column} WHEN 0 THEN 'false' WHEN 1 THEN 'true' END)"


def json_known(members: str) -> str:
    """SQL for a JSON object of these members, without those that are NULL."""
    return f"json_patch('{{}}', json_object({members}))"


def json_value(query: str) -> str:
    """SQL for the JSON that a query finds: not every SQLite knows that the result of a subquery is JSON."""
    return f"json(({query}))"


def json_list(rows: str, item: str = "json(item)") -> str:
    """SQL for a JSON list of what a query finds, in its order: by default of its column `item`, which is JSON."""
    return json_value(f"SELECT json_group_array({item}) FROM ({rows})")  # noqa: S608  names of ours


def json_time(column: str, format: str = "'iso'", zone: str = "'UTC'") -> str:
    """SQL for an instant in milliseconds as a text: ISO 8601 in UTC, or what a value of the dialect says.

    zone: SQL for the IANA name of the zone of times without an offset.
    """
    seconds = f"strftime('%Y-%m-%dT%H:%M:%S', {column} / 1000, 'unixepoch')"
    return f"""CASE WHEN {format} IN ('epoch-ms', 'epoch-ms-number') THEN CAST({column} AS TEXT)
        WHEN {format} = 'iso-ms' THEN strftime('%Y-%m-%dT%H:%M:%fZ', {column} / 1000.0, 'unixepoch')
        WHEN {format} = 'iso-local' THEN local_time({column} / 1000, {zone}) ELSE {seconds} || 'Z' END"""


def encode_ids(ids: Iterable[str]) -> str:
    """Many ids as one value, for `IN (SELECT value FROM json_each(?))`."""
    return json.dumps(list(ids))


@contextmanager
def _transaction(connection: sqlite3.Connection, begin: str) -> Iterator[None]:
    connection.execute(begin)
    with connection:
        yield


def _open(path: str) -> sqlite3.Connection:
    if path != IN_MEMORY:
        _refuse_super_journal(path)
        # Before SQLite would create it for everyone. If that fails, or the file exists, SQLite reports any error.
        with suppress(OSError):
            Path(path).touch(_MODE, exist_ok=False)
    # Autocommit, because transactions are explicit; any thread, because the store's lock serialises access.
    try:
        # More statements than the handlers have: SQLite compiles each once.
        connection = sqlite3.connect(
            path, timeout=30, isolation_level=None, check_same_thread=False, cached_statements=512
        )
        for name, (number, function) in _FUNCTIONS.items():
            connection.create_function(name, number, function, deterministic=True)
        # With a write-ahead log, a commit needs no flush to the disk.
        connection.executescript("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")
    except sqlite3.DatabaseError as error:
        raise _unusable(path, str(error)) from error
    if path != IN_MEMORY:
        _make_private(path)
    return connection


def _matches(text: str, pattern: str) -> bool:
    return re.fullmatch(pattern, text) is not None


def _local_time(seconds: int | None, zone: str) -> str | None:
    """Return an instant as ISO 8601 without an offset."""
    return None if seconds is None else datetime.fromtimestamp(seconds, ZoneInfo(zone)).isoformat()[:19]


_FUNCTIONS: Final[Mapping[str, tuple[int, Callable[..., str | bool | None]]]] = {
    "casefold": (1, str.casefold),
    "local_time": (2, _local_time),
    "nfc": (1, partial(normalize, "NFC")),
    "repr": (1, repr),
    "encode_query": (1, quote_plus),
    "matches": (2, _matches),
}
"""Functions that SQL may call: the name of each → how many arguments it takes, and the function."""


def _refuse_super_journal(path: str) -> None:
    """Raise LmsconfError if a rollback journal beside the file names a super-journal, since SQLite deletes that file.

    Only a transaction over several databases has one, and lmsconf makes none. A branch can add one for any file.
    """
    journal = Path(path + "-journal")
    try:
        content = b"" if journal.is_symlink() else journal.read_bytes()  # SQLite follows no link either
    except OSError:
        return
    # The last bytes of a journal that names another one, which SQLite deletes after the journal is used.
    if content.endswith(bytes.fromhex("d9d505f920a163d7")):
        raise _unusable(path, f"{journal.name} names a file that SQLite would delete")


def _make_private(path: str) -> None:
    """Remove all access of others to an existing workspace and the files that SQLite keeps beside it."""
    for suffix in ("", "-wal", "-shm"):
        file = Path(path + suffix)
        if file.is_file() and (about := file.stat()).st_mode & 0o077 and about.st_uid == os.geteuid():
            file.chmod(_MODE)


def _unusable(path: str, reason: str) -> LmsconfError:
    file = Path(path)
    is_writable = os.access(file.parent, os.W_OK) and (not file.exists() or os.access(file, os.W_OK))
    return LmsconfError(
        f"{path} cannot be used as a sandbox workspace: {reason}",
        hint="Name another file in `url:` of the workspace, or reset it with: lmsconf sandbox reset"
        if is_writable
        else "The embedded workspace writes to this file and beside it, even to be read. Make the folder writable, or "
        "name a file elsewhere in `url:` of the workspace.",
    )
