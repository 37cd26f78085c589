"""What a kind redacts its rows with, and restores them with when a redacted snapshot is read."""

from __future__ import annotations

import hmac
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from itertools import count
from secrets import token_hex
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.kinds.user.types import PersonRow
from lmsconf.model.address import RemoteId
from lmsconf.model.names import normalize_email
from lmsconf.model.snapshot import Snapshot, SnapshotRow

EMAIL: Final = re.compile(r"[\w.!#$%&*+=?^`{}~'-]+@[\w.-]*\w")
_LABEL: Final = "person-"
"""Prefix of pseudonyms and random labels. Without an @, none can equal an e-mail."""
_LENGTH: Final = 16


def pseudonym(salt: str, address: str) -> str:
    """Return the pseudonym of an e-mail in a snapshot with that salt: a truncated HMAC-SHA256."""
    digest = hmac.new(salt.encode(), normalize_email(address).encode("utf-8", "surrogatepass"), sha256).hexdigest()
    return _LABEL + digest[:_LENGTH]


class UnnamedRow(SnapshotRow, frozen=True):
    """The number of undeclared people in one list of a redacted snapshot.

    kind: the listing of the list's owner. of: the owner's id, empty for a list of the workspace itself. list: the
    name of the list. unknown: number of ids that are not in the listing of people.
    """

    listing = "unnamed_people"

    kind: str
    of: RemoteId
    list: str
    active: int
    archived: int
    unknown: int

    @property
    def id(self) -> RemoteId:
        """`kind/of/list`, unique per list."""
        return RemoteId(f"{self.kind}/{self.of}/{self.list}")


class RedactionContext:
    """The state of one redaction: the whole snapshot, the people who are shown, and the counts of all others.

    planning  its snapshot is the one to redact
    active    id of a live person → whether lists with the person are compared: the account is not archived, and no
              other active one has its e-mail
    shown     ids of all people that the manifests name or declare
    named     the e-mails of all people that the manifests name
    hidden    the e-mails of live people that are nowhere in the manifests
    """

    def __init__(
        self,
        planning: PlanContext,
        active: Mapping[RemoteId, bool],
        shown: frozenset[RemoteId],
        *,
        named: frozenset[str],
        hidden: frozenset[str],
    ) -> None:
        self.planning, self.shown, self.named = planning, shown, named
        self.salt = token_hex(16)
        self.incomplete: dict[str, str] = {}
        self._active, self._hidden = active, hidden
        self._counts: Counter[tuple[str, str, str, str]] = Counter()

    def replacement_label(self, address: str) -> str:
        """Return what replaces an e-mail: a pseudonym for one that the manifests name, otherwise a random label."""
        return pseudonym(self.salt, address) if normalize_email(address) in self.named else _LABEL + token_hex(8)

    def redact_text(self, text: str) -> str:
        """Return a text with random labels instead of the e-mails of undeclared people."""
        if "@" not in text:
            return text
        return EMAIL.sub(lambda at: _LABEL + token_hex(8) if normalize_email(at[0]) in self._hidden else at[0], text)

    def redacted(self, value: Any) -> Any:
        """Return a row, or a value in one, with the e-mails of undeclared people replaced in all texts but ids."""
        if isinstance(value, str):
            return self.redact_text(value)
        if isinstance(value, Struct):
            names = (name for name in value.__struct_fields__ if name != "id")
            return replace(value, **{name: self.redacted(getattr(value, name)) for name in names})
        if isinstance(value, tuple | frozenset):
            return type(value)(map(self.redacted, value))
        if value is None or isinstance(value, bool | int | float):
            return value
        raise TypeError(f"a row holds {type(value).__name__}, which cannot be redacted")

    def redact_people(
        self, listing: str, of: RemoteId, list: str, ids: frozenset[RemoteId] | None
    ) -> frozenset[RemoteId] | None:
        """Return the ids of shown people in a list, and count the others; None for a list that was not read."""
        if ids is None:
            return None
        for id in ids - self.shown:
            self.count_person(listing, of, list, id)
        return ids & self.shown

    def count_person(self, listing: str, of: str, list: str, id: RemoteId) -> None:
        """Count a person in a list. People who share an e-mail count as archived: neither is compared or removed."""
        status = {None: "unknown", True: "active", False: "archived"}[self._active.get(id)]
        self._counts[listing, of, list, status] += 1

    def counted_rows(self) -> Iterator[UnnamedRow]:
        """Yield the numbers of all lists."""
        for listing, of, list in sorted({(listing, of, list) for listing, of, list, _ in self._counts}):
            numbers = (self._counts[listing, of, list, status] for status in ("active", "archived", "unknown"))
            yield UnnamedRow(listing, RemoteId(of), list, *numbers)


class RestoreContext:
    """The state while a redacted snapshot is read: e-mails by pseudonym, and a placeholder per counted person.

    snapshot   the redacted snapshot
    stand_ins  placeholders so far; the id of each is also its label. Lists share none, since a redacted snapshot does
               not show who is in several
    """

    def __init__(self, snapshot: Snapshot, emails: Mapping[str, str]) -> None:
        self.snapshot, self._emails = snapshot, emails
        self.stand_ins: list[PersonRow] = []
        self._rows: defaultdict[tuple[str, str, str], list[UnnamedRow]] = defaultdict(list)
        for row in snapshot.rows(UnnamedRow):
            self._rows[row.kind, row.of, row.list].append(row)
        self._numbers = count(1)

    def restore_email(self, label: str) -> str:
        """Return the e-mail behind a pseudonym; any other label unchanged."""
        return self._emails.get(label, label)

    def placeholder_ids(self, listing: str, of: str, list: str) -> Iterator[RemoteId]:
        """Yield an id for each person who is only counted in a list; it is in `stand_ins` unless unknown."""
        for row in self._rows.get((listing, of, list), ()):
            for archived, number in ((False, row.active), (True, row.archived)):
                for _ in range(number):
                    id = RemoteId(f"unnamed person {next(self._numbers)}")
                    self.stand_ins.append(PersonRow(id, id, archived, stand_in=True))
                    yield id
            for _ in range(row.unknown):
                yield RemoteId(f"unnamed {next(self._numbers)}")

    def restore_people(
        self, listing: str, of: str, list: str, ids: frozenset[RemoteId] | None
    ) -> frozenset[RemoteId] | None:
        """Return a list with the people who are only counted in it; None for a list that was not read."""
        return None if ids is None else ids.union(self.placeholder_ids(listing, of, list))

    def counted_lists(self, listing: str) -> Collection[tuple[str, str]]:
        """Return owner id and name of each list of a listing in which people are only counted."""
        return [(of, list) for owner, of, list in self._rows if owner == listing]
