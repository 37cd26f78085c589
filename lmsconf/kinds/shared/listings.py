"""The list operation of each kind (API specification, the listing endpoint of each kind)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.api.spec.listings import CATALOG, CUSTOM_FIELDS, MANUAL_GROUPS, SMART_GROUPS, USERS
from lmsconf.kinds.shared.names import CONTENT, CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.model.api import ListOperation

LISTINGS: Final[Mapping[str, ListOperation]] = {
    USER: USERS,
    CUSTOM_FIELD: CUSTOM_FIELDS,
    GROUP: MANUAL_GROUPS,
    SMART_GROUP: SMART_GROUPS,
    CONTENT: CATALOG,
}
