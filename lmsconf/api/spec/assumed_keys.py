"""Which dialect keys operations rely on: assumed names and behaviours of what lmsconf sends to them and reads."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from lmsconf.api.spec import ApiSpec

ADD_MODE: Final = "manual-groups.add.mode"
"""Whether a call adds people to a list, or replaces the list."""
_NEVER_SENT: Final = frozenset(
    (
        "manual-groups.create.memberIds",
        "manual-groups.create.managerIds",
        "content-targets.create.purchaseMetadata",
    )
)
"""Optional body fields that manifests never set."""


def assumed_keys(spec: ApiSpec, operations: Collection[str]) -> dict[str, list[str]]:
    """Return each dialect key that these operations rely on → those operations, in the order of the API description."""
    dependents: dict[str, list[str]] = {}
    for operation in spec.operations:
        for key in spec.dialect_keys(operation) if operation in operations else ():
            if key not in _NEVER_SENT:
                dependents.setdefault(key, []).append(operation)
    return dependents
