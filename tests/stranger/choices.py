"""What the API's specification leaves to each service, and how such choices look in answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone

Row = dict[str, object]
"""Anything that is kept, sent or answered: plain dictionaries throughout."""

OUR_TYPES: Mapping[str, str] = {"group": "GROUP", "smart": "SMART_GROUP", "user": "USER", "everyone": "GROUP"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """One service's choices.

    ids             `text`, `number` (in JSON a number), `uuid`, `odd`, `shared` (each kind counts from 1, smart
                    groups from 501), `clashing` (smart groups as well)
    page_cap        the largest page it gives; page_most: a larger limit is refused; totals: `all`, `absent`, `null`,
                    `text`
    no_rows         a page behind the last row is `empty` or `null`
    shuffle         seed of the order in which it lists things; None: as they were made; -1: another one every time
    users           whom /users lists: `all` or `active`; extended: `all`, `active` or `lacking` one person
    names           the wire names of what the specification does not show
    time            how targets show times: `z`, `ms+0000`, `msz`, `+02:00`, `+0000`, `local`, `epoch`, `number` (which
                    is no text); takes: `any`, `epoch` or `iso`
    existing        POST on a target that is there: `update`, `merge`, `conflict`, `double`, `ignore`
    clears          what opens an end of a window: `null`, `absent`, `blank`
    empty           an optional value that is not set is `null`, `absent` or `blank`; false_: `false` or `absent`
    field_ids       a field carries `both` its ids, `id` or `customFieldId`
    made, done      status of an answer with a new thing, and of one without content; done_body what it says anyway
    wrap            `extra` keys beside what POST and PUT answer, all of it `inside` another object, `mute`: another
                    object without it, or `nothing`
    in_use          a field is in use when a condition names it, or `answered`: always
    gone, again     status for deleting what is not there, and for adding who is there already
    errors          `json`, `text`, `html`, `empty` or `problem`
    system          the systemCondition of a condition that says none; backwards: conditions in the other order
    throttle        every so many requests one is refused with 429; stutter: a DELETE that was done says 503 at first
    keep_alive      whether a connection serves more than one request; packed: answers are compressed; chunked: and
                    come in pieces
    busy_first      so many requests are refused at the start, with a Retry-After of a second
    answers         what a person answers to custom fields: `choices`, `choice-ids`, `values`, `unlike` anything known,
                    `lists`, `null`, or `missing`
    group_lists     the groups of a person who has none: `empty`, `null` or `missing`
    editors         who changed an assignment: `text`, `object` with an epoch time, or `absent`
    trailing        live names of undeclared things end with a blank
    unique          a second thing of one name is refused with 409
    removed         a DELETE answers 200 and says what is gone
    """

    ids: str = "text"
    page_cap: int = 100
    page_most: int = 1000
    totals: str = "all"
    no_rows: str = "empty"
    shuffle: int | None = None
    users: str = "all"
    extended: str = "all"
    names: Mapping[str, str] = field(default_factory=dict)
    time: str = "z"
    takes: str = "any"
    existing: str = "update"
    clears: str = "null"
    everyone: str = "EVERYONE"
    types: Mapping[str, str] = field(default_factory=lambda: OUR_TYPES)
    named_targets: bool = True
    empty: str = "null"
    false_: str = "false"
    field_ids: str = "both"
    in_use: str = "named"
    made: int = 201
    done: int = 204
    done_body: bytes = b""
    wrap: str = ""
    gone: int = 404
    again: int = 200
    errors: str = "json"
    system: str | None = None
    backwards: bool = False
    extra: bool = False
    throttle: int | None = None
    stutter: bool = False
    keep_alive: bool = True
    packed: bool = False
    chunked: bool = False
    busy_first: int = 0
    answers: str = "choices"
    group_lists: str = "empty"
    editors: str = "absent"
    trailing: bool = False
    unique: bool = False
    removed: bool = False

    def name(self, key: str) -> str:
        """The wire name of a part of a body that the specification does not show."""
        return self.names.get(key, key.rpartition(".")[2])

    def shown_time(self, moment: datetime | None) -> str | int | None:
        """A moment as a target shows it."""
        if moment is None:
            return None
        match self.time:
            case "epoch":
                return str(int(moment.timestamp() * 1000))
            case "number":
                return int(moment.timestamp() * 1000)
            case "local":
                return moment.strftime("%Y-%m-%dT%H:%M:%S")
            case "+0000":
                return moment.isoformat()
            case "msz":
                return moment.strftime("%Y-%m-%dT%H:%M:%S.000Z")
            case "ms+0000":
                return moment.strftime("%Y-%m-%dT%H:%M:%S.000+0000")
            case "+02:00":
                return moment.astimezone(timezone(timedelta(hours=2))).isoformat()
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def read_time(self, text: object) -> datetime:
        """The moment of a text in a body. Raises ValueError for a form that this service does not take."""
        said = str(text)
        if said.isdigit() and self.takes != "iso":
            return datetime.fromtimestamp(int(said) / 1000, UTC)
        if self.takes == "epoch":
            raise ValueError(f"unparseable date {said}")
        return datetime.fromisoformat(said).astimezone(UTC)

    def optional(self, **values: object) -> Row:
        """The values that are set, and what the others look like here."""
        out: Row = {}
        for key, value in values.items():
            if value is False and self.false_ == "absent":
                continue
            if value is not None:
                out[key] = value
            elif self.empty != "absent":
                out[key] = "" if self.empty == "blank" else None
        return out

    def dressed(self, row: Row) -> Row:
        """A row with whatever else this service tells of it."""
        return {**row, "_links": {"self": "/x"}, "tenant": 7, "tags": [], "etag": None} if self.extra else row

    def refusal(self, status: int, reason: str) -> tuple[str, bytes]:
        """The content type and the body of an error."""
        match self.errors:
            case "text":
                return "text/plain", reason.encode()
            case "html":
                return "text/html", f"<html><body><h1>{status}</h1><p>{reason}</p></body></html>".encode()
            case "empty":
                return "text/plain", b""
            case "problem":
                problem = {"type": "about:blank", "status": status, "detail": reason, "errors": [{"code": status}]}
                return "application/problem+json", json.dumps(problem).encode()
        return "application/json", json.dumps({"error": reason}).encode()
