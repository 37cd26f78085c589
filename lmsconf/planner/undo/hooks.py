"""What a kind knows about undoing its changes: a part of the base class Kind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Final, Generic, NamedTuple, TypeVar

from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.forms import Form
from lmsconf.model.snapshot import NamedRow
from lmsconf.planner.context import BeforeAfter, Deletion, PlanContext

Row = TypeVar("Row", bound=NamedRow)
MOST_KEPT: Final = 20_000
"""Of how many people the answers are kept that a run deletes, at most."""


class EntryOf(NamedTuple):
    """A manifest entry of a kind, by name."""

    kind: str
    body: Mapping[str, Json]


class Undoable(Generic[Row]):
    """The hooks of a kind for `plan --undo`. The defaults fit a named resource without parts.

    name, name_key, parts_key: as in Kind.
    """

    name: str
    name_key: str = "name"
    parts_key: str | None = None
    is_relation: bool = False
    is_person: bool = False

    @property
    def is_named(self) -> bool:
        """Whether its resources are created with names that tell them apart: no relations, and no people."""
        return not self.is_relation and not self.is_person

    @abstractmethod
    def state_before_delete(self, planning: PlanContext, deletion: Deletion[Row]) -> BeforeAfter:
        """Return the live state of a resource to be deleted; `after` is None."""

    @abstractmethod
    def normalize_name(self, text: str) -> str:
        """Return the form in which the names of resources are compared."""

    def whole_form(self, planning: PlanContext, row: Row) -> Form:
        """Return every key of a live resource that was read, as plans show it."""
        at = Address.of(self.name, self.normalize_name(row.name))
        return dict(self.state_before_delete(planning, Deletion(address=at, row=row, absent=None)).before or {})
