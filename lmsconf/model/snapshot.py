"""The live state read from a workspace: rows by kind, and whether each listing is complete."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lmsconf.model.address import RemoteId


class HasName(Protocol):
    """A live resource, or a choice of a field."""

    @property
    def id(self) -> RemoteId: ...
    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The rows of one kind, sorted by id. `incomplete`: why rows may be missing; None if none are."""

    rows: tuple[HasName, ...] = ()
    incomplete: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """How people were redacted from a snapshot.

    salt: the salt of the hashes that replace the e-mails of people named in the manifests. named: the hashes of all
    people named there, live or not; for any other person the snapshot cannot answer whether they are live.
    """

    salt: str
    named: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The live state of a workspace. A kind without a listing was not read.

    people: how many the workspace reports, None if it did not. redaction: None if e-mails are not hashed.
    """

    workspace: str
    url: str
    taken_at: str
    people: int | None
    listings: Mapping[str, Listing] = field(default_factory=dict)
    redaction: Redaction | None = None

    def of(self, kind: str) -> Listing:
        """Return the listing of a kind; an empty one marked incomplete if the kind was not read."""
        return self.listings.get(kind, _NOT_READ)


_NOT_READ = Listing(incomplete="it was not read")
