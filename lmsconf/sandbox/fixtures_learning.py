"""Load learning history from a seed: participations with their events, and certificates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from lmsconf.sandbox.fixtures import Planting
from lmsconf.sandbox.handlers.enrollment import APPROVED, STATES
from lmsconf.sandbox.request_context import Json
from lmsconf.sandbox.store import Repository, Value
from lmsconf.sandbox.validation import Entry, Wrong, flag, instant, mappings, text_of, whole

_EVENT_KEYS: Final = frozenset(("status", "at", "revision", "mandatory", "manually"))
_ATTACHMENT_KEYS: Final = frozenset(("url", "name", "created"))
_Rows = list[Sequence[Value]]


def participations(planting: Planting, ledger: Repository, entries: Sequence[Entry]) -> None:
    """Store participations. Each has its declared events, or one event for its state."""
    rows: _Rows = []
    events: _Rows = []
    taken: set[tuple[str, str]] = set()
    for place, (id, entry) in enumerate(planting.with_ids("participations", entries)):
        with planting.noting("participations", place):
            pair = _pair(planting, entry, taken)
            updated = _or_now(ledger, entry, "updated")
            enrolled = updated if "enrolled" not in entry else _or_now(ledger, entry, "enrolled")
            state = _state(entry, "state")
            percentage = whole(entry, "percentage") if "percentage" in entry else 100 * (state == APPROVED)
            rows.append((id, *pair, state, percentage, whole(entry, "revision") or 1, enrolled, updated))
            events.extend(_events(id, entry, state, updated))
    ledger.add(
        "INSERT INTO participations (id, person, content, state, percentage, revision, enrolled_at, updated_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    ids = ledger.new_ids("e", len(events))
    ledger.add(
        "INSERT INTO events (id, participation, status, revision, at, mandatory, manually) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(id, *event) for id, event in zip(ids, events, strict=True)],
    )


def certificates(planting: Planting, ledger: Repository, entries: Sequence[Entry]) -> None:
    """Store certificates."""
    rows: _Rows = []
    taken: set[tuple[str, str]] = set()
    for place, (id, entry) in enumerate(planting.with_ids("certificates", entries)):
        with planting.noting("certificates", place):
            pair = _pair(planting, entry, taken)
            issued, expires = _or_now(ledger, entry, "issued"), instant(entry, "expires")
            if expires is not None and expires <= issued:
                raise Wrong("expires is not after issued")
            following = planting.content_id(text_of(entry, "recertification")) if "recertification" in entry else None
            attachments = [_attachment(one, issued) for one in mappings(entry, "attachments")]
            rows.append((id, *pair, issued, expires, following, flag(entry, "notify"), json.dumps(attachments)))
    ledger.add(
        "INSERT INTO certificates (id, person, content, issued, expires_at, recertification, notify, attachments) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )


def _pair(planting: Planting, entry: Entry, taken: set[tuple[str, str]]) -> tuple[str, str]:
    """The ids of person and content, a pair that may be declared only once."""
    pair = planting.person_id(text_of(entry, "user")), planting.content_id(text_of(entry, "content"))
    if pair in taken:
        raise Wrong(f"{entry['user']} with {entry['content']} stands twice")
    taken.add(pair)
    return pair


def _events(participation: str, entry: Entry, state: str, updated: int) -> Iterator[Sequence[Value]]:
    """One row for each event of a participation."""
    events: list[Entry] = mappings(entry, "events") if "events" in entry else [{"status": state}]
    for event in events:
        if unknown := sorted(event.keys() - _EVENT_KEYS):
            raise Wrong(f"events: unknown key {unknown[0]!r}; there are {', '.join(sorted(_EVENT_KEYS))}")
        at = instant(event, "at")
        yield (
            *(participation, _state(event, "status"), whole(event, "revision") or 1, updated if at is None else at),
            *(flag(event, "mandatory"), flag(event, "manually")),
        )


def _attachment(entry: Entry, issued: int) -> Mapping[str, Json]:
    if unknown := sorted(entry.keys() - _ATTACHMENT_KEYS):
        raise Wrong(f"attachments: unknown key {unknown[0]!r}; there are {', '.join(sorted(_ATTACHMENT_KEYS))}")
    created = instant(entry, "created")
    return {
        "url": text_of(entry, "url"),
        "name": text_of(entry, "name", ""),
        "createdAt": issued if created is None else created,
    }


def _state(entry: Entry, key: str) -> str:
    state = text_of(entry, key)
    if state not in STATES:
        raise Wrong(f"{key} {state!r} is none of {', '.join(STATES)}")
    return state


def _or_now(ledger: Repository, entry: Entry, key: str) -> int:
    time = instant(entry, key)
    return ledger.now() if time is None else time
