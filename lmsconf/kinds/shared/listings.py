"""The list operation of each kind (API specification, the listing endpoint of each kind)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from lmsconf.api.spec.listings import CATALOG, CUSTOM_FIELDS, MANUAL_GROUPS, SMART_GROUPS, USERS
from lmsconf.kinds.shared.names import CONTENT, CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.model.api import ListOperation
from lmsconf.model.snapshot import HasName, Listing
from lmsconf.model.values import Json

LISTINGS: Final[Mapping[str, ListOperation]] = {
    USER: USERS,
    CUSTOM_FIELD: CUSTOM_FIELDS,
    GROUP: MANUAL_GROUPS,
    SMART_GROUP: SMART_GROUPS,
    CONTENT: CATALOG,
}


def only(*keys: str) -> Callable[[dict[str, Json]], dict[str, Json]]:
    """Return a filter that keeps only these keys of a row; missing ones are skipped."""
    return lambda row: {key: row[key] for key in keys if key in row}


def sorted_listing(rows: Iterable[HasName], incomplete: str | None) -> Listing[Any]:
    """Return rows sorted by id, so that the snapshot does not depend on the order of reading."""
    return Listing(rows=tuple(sorted(rows, key=lambda row: row.id)), incomplete=incomplete)
