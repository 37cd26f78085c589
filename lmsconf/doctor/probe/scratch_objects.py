"""Scratch objects: created for a probe under reserved names, and deleted again, including those of earlier runs."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, cast

from lmsconf.api.spec.operations import CATALOG, CUSTOM_FIELDS, MANUAL_GROUPS, SMART_GROUPS, USERS
from lmsconf.doctor.probe.trial_client import TrialClient, Undetermined, WriteResult, required
from lmsconf.kinds.assignment.types import TargetRow, parse_target_row
from lmsconf.kinds.custom_field.types import MOST_FIELDS
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.model.address import RemoteId
from lmsconf.model.api_protocol import ListOperation
from lmsconf.model.canonical_json import Json

PREFIX: Final = "lmsconf-probe-"
_DOMAIN: Final = "@lmsconf.invalid"
"""No mail can ever be delivered to an address below `.invalid` (RFC 2606)."""
_TRIES: Final = 3
_PAUSE: Final = 1.0


class _RowOperations(NamedTuple):
    """The operations on what a listing contains, and the key that shows whether a probe created a row."""

    kind: str
    creation: str
    deletion: str
    label: str = "name"

    @property
    def noun(self) -> str:
        """What messages call it."""
        return self.kind.replace("_", " ")


# In deletion order: a field is free when no answer and no smart group references it.
_PLACES: Final[Mapping[ListOperation, _RowOperations]] = {
    USERS: _RowOperations(USER, "users.create", "users.delete", "email"),
    SMART_GROUPS: _RowOperations(SMART_GROUP, "smart-groups.create", "smart-groups.delete"),
    MANUAL_GROUPS: _RowOperations(GROUP, "manual-groups.create", "manual-groups.delete"),
    CUSTOM_FIELDS: _RowOperations(CUSTOM_FIELD, "custom-fields.create", "custom-fields.delete"),
}


def reason_of_leftover(listing: ListOperation) -> str:
    """Return why something is not learnt where an object of that listing stays."""
    return f"a scratch {_PLACES[listing].noun} could not be deleted, so no other is created"


class ScratchObject(NamedTuple):
    """One scratch object."""

    listing: ListOperation
    id: str
    name: str

    def __str__(self) -> str:
        return f"{_PLACES[self.listing].kind}/{self.name} ({self.id})"


class ScratchObjects:
    """The objects of one run, with names that begin with PREFIX and a random mark. settle: seconds to become visible.

    accounts: whether accounts may be created, and those of earlier runs deleted.
    """

    def __init__(self, client: TrialClient, mark: str, settle: float, *, accounts: bool = False) -> None:
        self._client = client
        self._listings = [listing for listing in _PLACES if accounts or listing != USERS]
        self._mark = mark
        self._settle = settle
        self._made: defaultdict[ListOperation, set[str]] = defaultdict(set)
        self.left: set[ListOperation] = set()
        """The listings with objects that could not be deleted."""

    def unique_name(self, suffix: str) -> str:
        """A name unique to this run."""
        return f"{PREFIX}{self._mark}-{suffix}"

    def unique_email(self, suffix: str) -> str:
        """An e-mail unique to this run."""
        return f"{self.unique_name(suffix)}{_DOMAIN}"

    def create(
        self, listing: ListOperation, fields: Mapping[str, object], suffix: str | None = None
    ) -> dict[str, Json]:
        """Create an object; return its row in the listing. Raises Undetermined. suffix: part of its name."""
        place = _PLACES[listing]
        name = self.unique_name(suffix or place.kind.replace("_", "-"))
        sent = self._client.send(place.creation, fields={"name": name, **fields})
        until = time.monotonic() + self._settle
        while True:
            for row in self.list_rows(listing):
                if row.get("name") == name:
                    self._made[listing].add(str(row[listing.id]))
                    return row
            # Unless the request was certainly rejected, the object may still become visible.
            if sent.refused or time.monotonic() > until:
                reason = sent.reason or "it is not in the listing"
                raise Undetermined(f"no scratch {place.noun} could be made: {reason}")
            time.sleep(_PAUSE)

    def list_rows(self, listing: ListOperation) -> tuple[dict[str, Json], ...]:
        """The rows of a listing; of people, who may be many, only those of probes."""
        return self._accounts() if listing == USERS else self._client.reader.rows(listing).rows

    def find_account(self, email: str, sent: WriteResult) -> dict[str, Json] | None:
        """The account that a call created for that e-mail; None if it created none. Remembers what to delete."""
        if sent.refused:
            return None
        answer = sent.answer if isinstance(sent.answer, dict) else {}
        if answer.get("newUser") is True and answer.get("userId") is not None:
            self._made[USERS].add(str(answer["userId"]))
        return next((row for row in self.list_rows(USERS) if row.get("email") == email), None)

    def delete_created(self, *listings: ListOperation) -> None:
        """Delete what this run created in some listings, to free places. Failures are reported by the sweep."""
        for thing in self.list_leftovers():
            if thing.listing in listings and thing.id in self._made[thing.listing]:
                self._delete(thing)

    def refuse_leftovers(self, listing: ListOperation) -> None:
        """Raise Undetermined if an object of this run or of an earlier one is in a listing."""
        required(not any(self._rows_of_probes(listing)), reason_of_leftover(listing))

    def count_free_fields(self) -> int:
        """How many more custom fields can be created. Raises Undetermined if none, or if a scratch field stays."""
        free = MOST_FIELDS - len(self.list_rows(CUSTOM_FIELDS))
        self.refuse_leftovers(CUSTOM_FIELDS)
        return required(max(0, free), f"no field is free: {MOST_FIELDS - free} of {MOST_FIELDS} are used")

    def read_row(self, listing: ListOperation, id: str) -> dict[str, Json]:
        """One live row. Raises Undetermined if it does not exist."""
        match = next((row for row in self.list_rows(listing) if str(row[listing.id]) == id), None)
        return required(match, f"the scratch {_PLACES[listing].noun} {id} no longer exists")

    def list_assignments(self, content: str, group: str) -> list[TargetRow]:
        """The assignments of a content to a scratch group."""
        answer = cast("dict[str, Json]", self._client.reader.get("content-targets.list", query={"contentId": content}))
        rows = cast("list[dict[str, Json]]", answer.get("targets") or [])
        targets = (parse_target_row(RemoteId(content), row) for row in rows)
        return [row for row in targets if row.target == group]

    def delete_assignments(self, content: str, group: str) -> None:
        """Delete every assignment of the content to the group; a service may have created duplicates."""
        for _ in range(_TRIES):
            rows = self.list_assignments(content, group)
            if not rows:
                return
            for row in rows:
                fields = {"contentId": content, "targetId": group, "targetType": row.type}
                self._client.send("content-targets.delete", fields=fields)

    def list_leftovers(self) -> list[ScratchObject]:
        """The live objects of this and earlier runs, in deletion order."""
        return [
            ScratchObject(listing, str(row[listing.id]), str(row.get(_PLACES[listing].label) or ""))
            for listing in self._listings
            for row in self._rows_of_probes(listing)
        ]

    def delete_leftovers(self, contents: Iterable[str] | None) -> tuple[list[ScratchObject], list[str]]:
        """Delete all of them; return what existed, and what could not be deleted, with the reason.

        contents: whose assignments to delete; None: those of the whole catalog.
        """
        things = self.list_leftovers()
        groups = {thing.id for thing in things if thing.listing == MANUAL_GROUPS}
        if groups:
            catalog = self._client.reader.rows(CATALOG).rows if contents is None else ()
            for content in (str(row["courseId"]) for row in catalog) if contents is None else contents:
                for group in groups:
                    self.delete_assignments(content, group)
        reasons = {thing[:2]: sent.reason for thing in things for sent in [self._delete(thing)]}
        left = self.list_leftovers() if things else []
        self.left = {thing.listing for thing in left}
        return things, [f"{thing}: {reasons.get(thing[:2]) or 'it is still there'}" for thing in left]

    def _accounts(self) -> tuple[dict[str, Json], ...]:
        """The accounts of probes. The filter's matching is not documented: if it misses one, read all people."""
        accounts = tuple[dict[str, Json], ...]()
        for query in ({"filter": PREFIX}, {}):
            rows = self._client.reader.rows(USERS, query=query).rows
            accounts = tuple(row for row in rows if self._is_of_probe(USERS, row))
            if accounts and self._made[USERS] <= {str(row[USERS.id]) for row in accounts}:
                break
        return accounts

    def _rows_of_probes(self, listing: ListOperation) -> Iterator[dict[str, Json]]:
        return (row for row in self.list_rows(listing) if self._is_of_probe(listing, row))

    def _is_of_probe(self, listing: ListOperation, row: Mapping[str, Json]) -> bool:
        """Whether a probe created it, according to its id or its name; for accounts, also to its e-mail domain."""
        name = str(row.get(_PLACES[listing].label) or "")
        is_named = name.startswith(PREFIX) and (listing != USERS or name.endswith(_DOMAIN))
        return is_named or str(row[listing.id]) in self._made[listing]

    def _delete(self, thing: ScratchObject) -> WriteResult:
        return self._client.send(_PLACES[thing.listing].deletion, path={thing.listing.id: thing.id})
