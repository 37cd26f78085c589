"""What was read from a workspace, as one plain value: rows by kind, and whether each listing is whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from lmsconf.model.address import RemoteId


class HasName(Protocol):
    """A live thing: a resource, or a choice of a field."""

    @property
    def id(self) -> RemoteId: ...
    @property
    def name(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The rows of one kind, in the order of their ids, and why they may not be all, or None when they are."""

    rows: tuple[HasName, ...] = ()
    incomplete: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """How people were taken out of a snapshot.

    salt: that of the hashes that stand for the e-mails of people whom the manifests named. named: the hashes of all
    whom they named, live or not: of anybody else the snapshot cannot tell whether they are in the workspace.
    """

    salt: str
    named: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a workspace held. A kind without a listing was not read.

    people: how many the workspace says it has, None when it did not say. redaction: None where e-mails are e-mails.
    """

    workspace: str
    url: str
    taken_at: str
    people: int | None
    listings: Mapping[str, Listing] = field(default_factory=dict)
    redaction: Redaction | None = None

    def of(self, kind: str) -> Listing:
        """The listing of a kind; an empty one marked incomplete where the kind was not read."""
        return self.listings.get(kind, _NOT_READ)


_NOT_READ = Listing(incomplete="it was not read")
