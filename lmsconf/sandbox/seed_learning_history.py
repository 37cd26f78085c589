"""Load learning history from a seed: participations with their events, and certificates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lmsconf.sandbox.handlers.enrollment import APPROVED, STATES
from lmsconf.sandbox.request_context import Json
from lmsconf.sandbox.seed_entry import (
    Entry,
    InvalidSeedValue,
    read_flag,
    read_instant,
    read_mappings,
    read_text,
    read_whole_number,
)
from lmsconf.sandbox.seed_loader import SeedLoader
from lmsconf.sandbox.store import Repository, Value

_EVENT_KEYS: Final = frozenset(("status", "at", "revision", "mandatory", "manually"))
_ATTACHMENT_KEYS: Final = frozenset(("url", "name", "created"))
_Rows = list[Sequence[Value]]


def load_participations(loader: SeedLoader, repository: Repository, entries: Sequence[Entry]) -> None:
    """Store participations. Each has its declared events, or one event for its state."""
    rows: _Rows = []
    events: _Rows = []
    taken: set[tuple[str, str]] = set()
    for place, (id, entry) in enumerate(loader.pair_with_ids("participations", entries)):
        with loader.collect_problems("participations", place):
            pair = _pair(loader, entry, taken)
            updated = _or_now(repository, entry, "updated")
            enrolled = updated if "enrolled" not in entry else _or_now(repository, entry, "enrolled")
            state = _state(entry, "state")
            percentage = read_whole_number(entry, "percentage") if "percentage" in entry else 100 * (state == APPROVED)
            rows.append((id, *pair, state, percentage, read_whole_number(entry, "revision") or 1, enrolled, updated))
            events.extend(_events(id, entry, state, updated))
    repository.execute_many(
        "INSERT INTO participations (id, person, content, state, percentage, revision, enrolled_at, updated_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    ids = repository.new_ids("e", len(events))
    repository.execute_many(
        "INSERT INTO events (id, participation, status, revision, at, mandatory, manually) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(id, *event) for id, event in zip(ids, events, strict=True)],
    )


def load_certificates(loader: SeedLoader, repository: Repository, entries: Sequence[Entry]) -> None:
    """Store certificates."""
    rows: _Rows = []
    taken: set[tuple[str, str]] = set()
    for place, (id, entry) in enumerate(loader.pair_with_ids("certificates", entries)):
        with loader.collect_problems("certificates", place):
            pair = _pair(loader, entry, taken)
            issued, expires = _or_now(repository, entry, "issued"), read_instant(entry, "expires")
            if expires is not None and expires <= issued:
                raise InvalidSeedValue("expires is not after issued")
            following = (
                loader.find_content_id(read_text(entry, "recertification")) if "recertification" in entry else None
            )
            attachments = [_attachment(one, issued) for one in read_mappings(entry, "attachments")]
            rows.append((id, *pair, issued, expires, following, read_flag(entry, "notify"), json.dumps(attachments)))
    repository.execute_many(
        "INSERT INTO certificates (id, person, content, issued, expires_at, recertification, notify, attachments) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )


def _pair(loader: SeedLoader, entry: Entry, taken: set[tuple[str, str]]) -> tuple[str, str]:
    """The ids of person and content, a pair that may be declared only once."""
    pair = loader.find_person_id(read_text(entry, "user")), loader.find_content_id(read_text(entry, "content"))
    if pair in taken:
        raise InvalidSeedValue(f"{entry['user']} with {entry['content']} is a duplicate")
    taken.add(pair)
    return pair


def _events(participation: str, entry: Entry, state: str, updated: int) -> Iterator[Sequence[Value]]:
    """One row for each event of a participation."""
    events: list[Entry] = read_mappings(entry, "events") if "events" in entry else [{"status": state}]
    for event in events:
        if unknown := sorted(event.keys() - _EVENT_KEYS):
            raise InvalidSeedValue(f"events: unknown key {unknown[0]!r}; there are {', '.join(sorted(_EVENT_KEYS))}")
        at = read_instant(event, "at")
        yield (
            *(
                participation,
                _state(event, "status"),
                read_whole_number(event, "revision") or 1,
                updated if at is None else at,
            ),
            *(read_flag(event, "mandatory"), read_flag(event, "manually")),
        )


def _attachment(entry: Entry, issued: int) -> Mapping[str, Json]:
    if unknown := sorted(entry.keys() - _ATTACHMENT_KEYS):
        raise InvalidSeedValue(
            f"attachments: unknown key {unknown[0]!r}; there are {', '.join(sorted(_ATTACHMENT_KEYS))}"
        )
    created = read_instant(entry, "created")
    return {
        "url": read_text(entry, "url"),
        "name": read_text(entry, "name", ""),
        "createdAt": issued if created is None else created,
    }


def _state(entry: Entry, key: str) -> str:
    state = read_text(entry, key)
    if state not in STATES:
        raise InvalidSeedValue(f"{key} {state!r} is none of {', '.join(STATES)}")
    return state


def _or_now(repository: Repository, entry: Entry, key: str) -> int:
    time = read_instant(entry, key)
    return repository.now() if time is None else time
