"""How the effect of a call that grants access is verified: which ids it grants, and a read that shows who has them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from msgspec import Struct

from lmsconf.model.api import GetRequest


class SentCall(Struct, frozen=True):
    """The path parameters and the body of a call as it was sent, with ids in place of references."""

    path: Mapping[str, str]
    body: object

    def body_value(self, key: str) -> object:
        """Return a value of the body; None if it has none."""
        return self.body.get(key) if isinstance(self.body, Mapping) else None

    def listed_ids(self) -> frozenset[str]:
        """Return the ids in the lists of the body, whatever the names of their fields."""
        lists = self.body.values() if isinstance(self.body, Mapping) else ()
        return frozenset(str(item) for value in lists if isinstance(value, list) for item in value)


class GrantVerification(NamedTuple):
    """How the effect of one granting operation is verified.

    granted: the ids that a call grants. visible: reads the ids that are granted now. missing: the message if some are
    not visible, with the places {missing} and {granted} for their number. spared: what is therefore not done.
    """

    granted: Callable[[SentCall], Collection[str]]
    visible: Callable[[GetRequest, SentCall], Collection[str]]
    missing: str
    spared: str = "nobody is removed"
