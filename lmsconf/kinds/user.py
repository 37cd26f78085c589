"""The people of the workspace, by e-mail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lmsconf.core.address import RemoteId
from lmsconf.core.values import Json
from lmsconf.kinds.answers import label, text


@dataclass(frozen=True, slots=True)
class PersonRow:
    """A person as GET /users lists them; only that listing says who is archived."""

    id: RemoteId
    email: str
    archived: bool = False

    @property
    def name(self) -> str:
        return self.email


def person_row(data: Mapping[str, Json]) -> PersonRow:
    """A person as the service describes them."""
    return PersonRow(RemoteId(text(data, "userId")), label(data, "email"), bool(data.get("archivedAt")))
