"""What was read from a workspace, as one plain value: rows by kind, and whether each listing is whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lmsconf.core.identity import HasName
from lmsconf.core.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The rows of one kind, in the order of their ids, and why they may not be all, or None when they are."""

    rows: tuple[HasName, ...] = ()
    incomplete: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a workspace held. A kind without a listing was not read.

    people: how many the workspace says it has, None when it did not say. salt: that of the hashes that stand where
    e-mails were; None where they are what they are.
    """

    workspace: str
    url: str
    taken_at: str
    people: int | None
    listings: Mapping[str, Listing] = field(default_factory=dict)
    salt: str | None = None

    def of(self, kind: str) -> Listing:
        """The listing of a kind; an empty one marked incomplete where the kind was not read."""
        return self.listings.get(kind, _NOT_READ)


_NOT_READ = Listing(incomplete="it was not read")


def row_json(value: object, *, in_order: bool = False) -> Json:
    """A row as JSON: its fields by name, sets sorted, what is None left out.

    A list of choices, conditions or answers means nothing by its order, so it is sorted too. in_order: it keeps the
    order in which the service told it.
    """
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if hasattr(value, "_asdict"):
        return {key: row_json(item, in_order=in_order) for key, item in value._asdict().items() if item is not None}
    if isinstance(value, frozenset | tuple):
        items = [row_json(item, in_order=in_order) for item in value]
        # What is no list of objects is a pair, of a key and its value.
        is_set = isinstance(value, frozenset) or (not in_order and all(isinstance(item, dict) for item in items))
        return sorted(items, key=str) if is_set else items
    return {
        name: row_json(item, in_order=in_order)
        for name in value.__dataclass_fields__  # type: ignore[attr-defined]  # a row is a dataclass
        if (item := getattr(value, name)) is not None
    }
