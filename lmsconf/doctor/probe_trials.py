"""Calls of a probe, one after another, with values of the dialect that are tried, and the lessons recorded.

Scratch objects are created under reserved names, and deleted again, including those of earlier runs.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import product
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar, cast

from msgspec import Struct

from lmsconf.api.concurrent_requests import ConcurrentReader, WorkerPool
from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.dialect_candidates import Value, candidate_values
from lmsconf.api.spec.operations import CATALOG, CUSTOM_FIELDS, MANUAL_GROUPS, SMART_GROUPS, USERS
from lmsconf.api.spec.value_encoding import with_offsets
from lmsconf.doctor.report import DialectLesson
from lmsconf.errors import InvalidResponse, LmsconfError, ProblemsFound, Rejected, WriteOutcomeUnknown
from lmsconf.kinds.assignment.types import TargetRow, parse_target_row
from lmsconf.kinds.custom_field.types import MOST_FIELDS, FieldRow, parse_field_row
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.model.address import RemoteId
from lmsconf.model.calls import ListOperation
from lmsconf.model.canonical_json import Json, members
from lmsconf.render.resource_wording import name_list

if TYPE_CHECKING:
    from lmsconf.api.client import Client


Found = TypeVar("Found")
Trying: TypeAlias = "Mapping[str, Value]"
"""Dialect keys with the values that a call tries."""
Row = dict[str, Json]
"""A row of a listing, or a person."""
SEEN: Final = "confirmed by reading back"


class Undetermined(LmsconfError, code="probe/not-made"):
    """Why a lesson has no result: the service did not create a scratch object, or something else that it needs."""


def required(value: Found | None, reason: str) -> Found:
    """Return what a lesson needs. Raises Undetermined with the reason if that is missing, false or empty."""
    if not value:
        raise Undetermined(reason)
    return value


class WriteResult(Struct, frozen=True):
    """The result of one write. Only reading back shows whether it had an effect.

    refused: whether it was certainly not carried out. is_forbidden: with a 403. reason: why not accepted.
    """

    accepted: bool
    refused: bool = False
    is_forbidden: bool = False
    reason: str = ""
    answer: Json = None


class TrialClient:
    """Call through a pool of one worker, so that calls are carried out in the order sent.

    spec: the API under the dialect as far as it is confirmed. project_spec: under the project's own. along: values that
    were accepted and are not confirmed yet. last: the reason of the last refusal. lag: seconds until a write shows.
    """

    def __init__(self, pool: WorkerPool, dialect: Mapping[str, Value]) -> None:
        self._pool, self.last = pool, ""
        self.spec = self.project_spec = ApiSpec(dialect)
        self.lessons: dict[str, DialectLesson] = {}
        self.along: dict[str, Value] = {}
        self.lag = self._written = 0.0

    def likely_value(self, key: str) -> str:
        """The value of a key as far as it is known."""
        return str(self.along.get(key, self.spec.behaviour(key)))

    @property
    def reader(self) -> ConcurrentReader:
        """Read with the confirmed dialect, once the last write shows."""
        time.sleep(max(0.0, self._written + self.lag - time.monotonic()))
        return ConcurrentReader(self._pool, self.spec)

    def read_person(self, id: str) -> Row:
        """Read one person. Raises Rejected if the service does not show single people."""
        return cast("Row", self.reader.get("users.get", path={"userId": id}))

    def send(
        self,
        operation: str,
        *,
        path: Mapping[str, str] | None = None,
        fields: Mapping[str, object] | None = None,
        trying: Trying | None = None,
    ) -> WriteResult:
        """Send one write with the values being tried. Raises ApiError only for failures that affect every call."""

        def call(client: Client) -> Json:
            client.spec = spec = self.spec.with_values(trying or {})
            body = None if spec[operation].body is None else spec.body_to_wire(operation, **(fields or {}))
            return client.call(operation, path=path, body=body)

        try:
            answer = self._pool.submit(call).result()
            self._written = time.monotonic()
        except InvalidResponse:
            # It was carried out; only the response is unusable, and the result is read back anyway.
            return WriteResult(True)
        # ProblemsFound: two names of the body are the same.
        except (ProblemsFound, Rejected, WriteOutcomeUnknown) as error:
            self.last = error.problems[0].message
            return WriteResult(
                False,
                refused=not isinstance(error, WriteOutcomeUnknown),
                is_forbidden=isinstance(error, Rejected) and error.is_forbidden,
                reason=self.last,
            )
        return WriteResult(True, answer=answer)

    def learn(self, keys: Iterable[str], lesson: Callable[[], None]) -> None:
        """Run the lesson on these keys. If it ends with an error, those without a result get the reason."""
        try:
            lesson()
        except (Undetermined, Rejected) as refused:
            self.record_undetermined(keys, refused.message)

    def try_candidates(self, key: str, works: Callable[[Value], bool], reason: str = SEEN) -> bool:
        """Try values until one works, and record the result. Returns whether one was found."""
        return self.conclude_value(key, self.first_working_value(key, works), reason)

    def first_working_value(self, key: str, works: Callable[[Value], bool]) -> Value | None:
        """The first value that works."""
        self.last = ""
        return next(filter(works, candidate_values(key, self.project_spec.behaviour(key))), None)

    def conclude_value(self, key: str, value: Value | None, reason: str = SEEN) -> bool:
        """Record the value that worked, if any did. Returns whether there was one."""
        return self.conclude(key, (value is None, None, self.failure_reason(key)), (True, value, reason))

    def failure_reason(self, key: str) -> str:
        """The message that no value worked, with the last rejection."""
        tried = map(str, candidate_values(key, self.project_spec.behaviour(key)))
        last = f"; the last refusal was: {self.last}" if self.last else ""
        return f"none of {name_list(list(tried), 4)} had an effect{last}"

    def conclude(self, key: str, *cases: tuple[object, Value | None, str]) -> bool:
        """Record the first case that holds: its value, which is used from now on, and the reason.

        Without a value, the key is undetermined. Returns whether there is one.
        """
        value, reason = next((value, reason) for holds, value, reason in cases if holds)
        if value is None:
            self.record_undetermined((key,), reason)
        else:
            is_known = self.project_spec.behaviour(key) == str(value)
            self.lessons[key] = DialectLesson(key, "confirmed" if is_known else "found", value, reason)
            self.spec = self.spec.with_values({key: value})
            self.along.pop(key, None)
        return value is not None

    def record_undetermined(self, keys: Iterable[str], reason: str) -> None:
        """Record why keys were not determined, those that have no result yet."""
        for key in keys:
            self.lessons.setdefault(key, DialectLesson(key, "unknown", None, reason))

    def is_determined(self, key: str) -> bool:
        """Whether a key was determined in this run."""
        return key in self.lessons and self.lessons[key].value is not None


PREFIX: Final = "lmsconf-probe-"
_DOMAIN: Final = "@lmsconf.invalid"
"""No mail can ever be delivered to an address below `.invalid` (RFC 2606)."""
# In deletion order: a field is free when no answer and no smart group references it.
_KINDS: Final[Mapping[ListOperation, str]] = {
    USERS: USER,
    SMART_GROUPS: SMART_GROUP,
    MANUAL_GROUPS: GROUP,
    CUSTOM_FIELDS: CUSTOM_FIELD,
}


def reason_of_leftover(listing: ListOperation) -> str:
    """Return why something is not learnt where an object of that listing stays."""
    return f"a scratch {_noun(listing)} could not be deleted, so no other is created"


def _noun(listing: ListOperation) -> str:
    return _KINDS[listing].replace("_", " ")


class ScratchObjects:
    """The objects of one run, with names that begin with PREFIX and a random mark. settle: seconds to become visible.

    accounts: whether accounts may be created, and those of earlier runs deleted.
    """

    def __init__(self, client: TrialClient, mark: str, settle: float, *, accounts: bool = False) -> None:
        self._client, self._mark, self._settle = client, mark, settle
        self._listings = [listing for listing in _KINDS if accounts or listing != USERS]
        self._made: defaultdict[ListOperation, set[str]] = defaultdict(set)
        self.left: set[ListOperation] = set()
        """The listings with objects that could not be deleted."""

    def unique_name(self, suffix: str) -> str:
        """A name unique to this run."""
        return f"{PREFIX}{self._mark}-{suffix}"

    def create(self, listing: ListOperation, fields: Mapping[str, object], suffix: str | None = None) -> Row:
        """Create an object; return its row in the listing. Raises Undetermined. suffix: part of its name."""
        required(listing not in self.left, reason_of_leftover(listing))
        name = self.unique_name(suffix or _KINDS[listing].replace("_", "-"))
        sent = self._client.send(listing.name.replace(".list", ".create"), fields={"name": name, **fields})
        rows = self.wait_for(lambda: [row for row in self.list_rows(listing) if row.get("name") == name], sent)
        row, *_ = required(
            rows, f"no scratch {_noun(listing)} could be made: {sent.reason or 'it is not in the listing'}"
        )
        self._made[listing].add(str(row[listing.id]))
        return row

    def create_field(self, type: str, suffix: str | None = None, description: str | None = None) -> FieldRow:
        """Create a hidden custom field, with two choices if it takes choices. Raises Undetermined."""
        definition = {
            "type": type,
            **({} if type == "TEXT" else {"choices": [{"name": "A"}, {"name": "B"}]}),
            **({} if description is None else {"description": description}),
            "isHidden": True,
            "isOptional": True,
        }
        return parse_field_row(self.create(CUSTOM_FIELDS, definition, suffix))

    def create_account(self, suffix: str, fields: Mapping[str, Json], trying: Trying) -> Row | None:
        """Create an account; return its row, or None if none has its e-mail. Remembers what to delete."""
        email = f"{self.unique_name(suffix)}{_DOMAIN}"
        sent = self._client.send("users.create", fields={"email": email, **fields}, trying=trying)
        if sent.refused:
            return None
        answer = members(sent.answer)
        is_new = answer.get("newUser") is True and answer.get("userId") is not None
        ids = {str(answer["userId"])} if is_new else set()
        self._made[USERS] |= ids

        def find() -> Row | None:
            rows = self.list_rows(USERS)
            return next((row for row in rows if row.get("email") == email or str(row["userId"]) in ids), None)

        # An account that was created may not be listed at once.
        row = self.wait_for(find, sent) if ids else find()
        return row if row is not None and row.get("email") == email else None

    def wait_for(self, find: Callable[[], Found], sent: WriteResult) -> Found:
        """Return what is found of a write's effect once there is any, or what was found last."""
        sent_at = time.monotonic()
        # Unless the request was certainly rejected, the effect may still become visible.
        while not (found := find()) and not sent.refused and time.monotonic() <= sent_at + self._settle:
            time.sleep(1.0)
            # What was just seen to take so long may take a little longer the next time.
            self._client.lag = max(self._client.lag, 1.5 * (time.monotonic() - sent_at))
        return found

    def list_rows(self, listing: ListOperation) -> tuple[Row, ...]:
        """The rows of a listing; of people, who may be many, only the accounts of probes."""
        if listing != USERS:
            return self._client.reader.rows(listing).rows
        # The filter's matching is not documented: if it misses one, all people are read.
        for query in ({"filter": PREFIX}, {}):
            rows = self._client.reader.rows(USERS, query=query).rows
            accounts = tuple(row for row in rows if self._is_of_probe(USERS, row))
            if accounts and self._made[USERS] <= {str(row[USERS.id]) for row in accounts}:
                break
        return accounts

    def read_row(self, listing: ListOperation, id: str) -> Row:
        """One live row. Raises Undetermined if it does not exist."""
        return required(
            next((row for row in self.list_rows(listing) if str(row[listing.id]) == id), None),
            f"the scratch {_noun(listing)} {id} no longer exists",
        )

    def refuse_leftovers(self, listing: ListOperation) -> None:
        """Raise Undetermined if an object of this run or of an earlier one is in a listing."""
        required(not self.list_leftovers(listing), reason_of_leftover(listing))

    def count_free_fields(self) -> int:
        """How many more custom fields can be made. Raises Undetermined if none, or if a scratch field stays."""
        rows = self.list_rows(CUSTOM_FIELDS)
        required(not any(self._is_of_probe(CUSTOM_FIELDS, row) for row in rows), reason_of_leftover(CUSTOM_FIELDS))
        return required(max(0, MOST_FIELDS - len(rows)), f"no field is free: {len(rows)} of {MOST_FIELDS} are used")

    def list_assignments(self, content: str, group: str) -> list[TargetRow]:
        """The assignments of a content to a scratch group."""
        read = self._client.reader.get("content-targets.list", query={"contentId": content})
        rows = members(with_offsets(self._client.spec.behaviour, read)).get("targets") or []
        targets = (parse_target_row(RemoteId(content), row) for row in cast("list[Row]", rows))
        return [row for row in targets if row.target == group]

    def delete_assignments(self, content: str, group: str) -> None:
        """Delete every assignment of the content to the group; a service may have created duplicates."""
        for _ in range(3):
            rows = self.list_assignments(content, group)
            if not rows:
                return
            for row in rows:
                self._client.send(
                    "content-targets.delete",
                    fields={"contentId": content, "targetId": group, "targetType": row.type},
                )

    def list_leftovers(self, *listings: ListOperation) -> dict[tuple[ListOperation, str], str]:
        """The live objects of this and earlier runs in some listings, or in all, in deletion order.

        Returns listing and id of each → what it is called in a report.
        """
        return {
            (listing, str(row[listing.id])): f"{_KINDS[listing]}/{_name(listing, row)} ({row[listing.id]})"
            for listing in listings or self._listings
            for row in self.list_rows(listing)
            if self._is_of_probe(listing, row)
        }

    def delete_created(self, *listings: ListOperation) -> None:
        """Delete what this run created in some listings, to free places. Failures are reported by the sweep."""
        for listing, id in self.list_leftovers(*listings):
            if id in self._made[listing]:
                self._delete(listing, id)

    def delete_leftovers(self, contents: Iterable[str] | None) -> tuple[list[str], list[str]]:
        """Delete all of them; return what existed, and what could not be deleted, with the reason.

        contents: whose assignments to delete; None: those of the whole catalog.
        """
        things = self.list_leftovers()
        groups = {id for listing, id in things if listing == MANUAL_GROUPS}
        if groups and contents is None:
            contents = [str(row["courseId"]) for row in self._client.reader.rows(CATALOG).rows]
        for content, group in product(contents or (), groups):
            self.delete_assignments(content, group)
        reasons = {thing: self._delete(*thing).reason for thing in things}
        left = self.list_leftovers() if things else {}
        self.left = {listing for listing, _ in left}
        return list(things.values()), [
            f"{words}: {reasons.get(thing) or 'it is still there'}" for thing, words in left.items()
        ]

    def _is_of_probe(self, listing: ListOperation, row: Row) -> bool:
        """Whether a probe created it, according to its id or name; for accounts, also to its e-mail domain."""
        name = _name(listing, row)
        is_named = name.startswith(PREFIX) and (listing != USERS or name.endswith(_DOMAIN))
        return is_named or str(row[listing.id]) in self._made[listing]

    def _delete(self, listing: ListOperation, id: str) -> WriteResult:
        return self._client.send(listing.name.replace(".list", ".delete"), path={listing.id: id})


def _name(listing: ListOperation, row: Row) -> str:
    """What shows whether a probe created a row: its name, or an account's e-mail."""
    return str(row.get("email" if listing == USERS else "name") or "")
