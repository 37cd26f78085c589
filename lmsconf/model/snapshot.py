"""The live state read from a workspace: rows by kind, and whether each listing is complete; rows ⇄ JSON.

A row is a struct of strings, numbers, booleans, rows, and sets or lists of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Protocol, TypeVar

from msgspec import Struct, field

from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.forms import OfWorkspace


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


class SnapshotRow(Struct, frozen=True, forbid_unknown_fields=True):
    """A row of a listing, or a part of one. None: it was not read, or is not set; JSON leaves it out."""


class IdAndName(SnapshotRow, frozen=True):
    """What a row begins with if the service lists an id and a name of it."""

    id: RemoteId
    name: str


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


class Snapshot(OfWorkspace, frozen=True, kw_only=True):
    """The live state of a workspace. A kind without a listing was not read.

    redaction: None if e-mails are not hashed.
    """

    taken_at: str
    listings: Mapping[str, Listing[Any]] = field(default_factory=dict)
    redaction: SnapshotRedaction | None = None

    def of(self, kind: str) -> Listing[Any]:
        """Return the listing of a kind; an empty one marked incomplete if the kind was not read."""
        return self.listings.get(kind) or Listing(incomplete="it was not read")

    def rows(self, row_type: type[Listed]) -> tuple[Listed, ...]:
        """Return the rows of a type; empty if they were not read."""
        # Each listing holds the rows of one type only: that of the kind that read it, or that a file is parsed with.
        return self.of(row_type.listing).rows


def row_to_json(value: object, *, in_order: bool = False) -> Json:
    """Return a row as JSON: fields by name, sets sorted, fields that are None left out.

    Lists of objects (choices, conditions, answers) have no meaningful order and are sorted too. in_order: keep their
    order in the response.
    """
    match value:
        case None | str() | bool() | int() | float():
            return value
        case frozenset() | tuple():
            items = [row_to_json(item, in_order=in_order) for item in value]
            # A tuple of other values is a pair of a key and its value, whose order matters.
            is_set = isinstance(value, frozenset) or (not in_order and all(isinstance(item, dict) for item in items))
            return sorted(items, key=str) if is_set else items
    return {
        name: row_to_json(item, in_order=in_order)
        for name in value.__struct_fields__  # type: ignore[attr-defined]  # a row is a struct
        if (item := getattr(value, name)) is not None
    }
