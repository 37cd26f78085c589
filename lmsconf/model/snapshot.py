"""The live state read from a workspace: rows by kind, and whether each listing is complete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct, field

from lmsconf.model.address import RemoteId


class HasId(Protocol):
    """Anything that a snapshot lists."""

    @property
    def id(self) -> RemoteId: ...


class HasName(HasId, Protocol):
    """A live resource, or a choice of a field."""

    @property
    def name(self) -> str: ...


class ListedRow(HasId, Protocol):
    """A row type of a snapshot. listing: the name of its listing: that of a kind, or of a part of one."""

    listing: str


class NamedRow(ListedRow, HasName, Protocol):
    """A row type of a kind's own listing: live resources."""


Listed = TypeVar("Listed", bound=ListedRow)
Row = TypeVar("Row", bound=NamedRow)
Row_co = TypeVar("Row_co", covariant=True, bound=HasId)


class Listing(Struct, Generic[Row_co], frozen=True, kw_only=True):
    """The rows of one kind, sorted by id. `incomplete`: why rows may be missing; None if none are."""

    rows: tuple[Row_co, ...] = ()
    incomplete: str | None = None


class SnapshotRedaction(Struct, frozen=True, kw_only=True):
    """How people were redacted from a snapshot.

    salt: the salt of the hashes that replace the e-mails of people named in the manifests. named: the hashes of all
    people named there, live or not; for any other person the snapshot cannot answer whether they are live.
    """

    salt: str
    named: frozenset[str] = frozenset()


class Snapshot(Struct, frozen=True, kw_only=True):
    """The live state of a workspace. A kind without a listing was not read.

    people: how many the workspace reports, None if it did not. redaction: None if e-mails are not hashed.
    """

    workspace: str
    url: str
    taken_at: str
    people: int | None
    listings: Mapping[str, Listing[Any]] = field(default_factory=dict)
    redaction: SnapshotRedaction | None = None

    def of(self, kind: str) -> Listing[Any]:
        """Return the listing of a kind; an empty one marked incomplete if the kind was not read."""
        return self.listings.get(kind, _NOT_READ)

    def rows(self, row_type: type[Listed]) -> tuple[Listed, ...]:
        """Return the rows of a type; empty if they were not read."""
        # Each listing holds the rows of one type only: that of the kind that read it, or that a file is parsed with.
        listing: Listing[Listed] = self.of(row_type.listing)
        return listing.rows


_NOT_READ: Listing[Any] = Listing(incomplete="it was not read")
