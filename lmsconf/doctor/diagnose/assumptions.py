"""Which assumptions the manifests depend on: the dialect keys of every call that a plan of them could send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from lmsconf.api.spec import ApiSpec
from lmsconf.doctor.findings import Assumption
from lmsconf.errors import SourceLocation
from lmsconf.kinds.shared.names import CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP, USER

_PEOPLE: Final = ("users.list", "users.extended-info")
OPERATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    CUSTOM_FIELD: (
        *("custom-fields.list", "custom-fields.create", "custom-fields.replace", "custom-fields.delete"),
        *("smart-groups.list", "smart-groups.get"),
    ),
    GROUP: (
        *_PEOPLE,
        *("manual-groups.list", "manual-groups.create", "manual-groups.delete", "manual-groups.rename"),
        *("manual-groups.members", "manual-groups.add-members", "manual-groups.remove-member"),
        *("manual-groups.managers", "manual-groups.add-managers", "manual-groups.remove-manager"),
        *("content.list", "content-targets.list", "content-targets.delete"),
    ),
    SMART_GROUP: (
        *_PEOPLE,
        "custom-fields.list",
        *("smart-groups.list", "smart-groups.get", "smart-groups.create", "smart-groups.delete"),
        *("smart-groups.rename", "smart-groups.replace-conditions"),
        *("smart-groups.managers", "smart-groups.add-managers", "smart-groups.remove-manager"),
        *("content.list", "content-targets.list", "content-targets.delete"),
    ),
    CONTENT_TARGET: (
        *_PEOPLE,
        *("manual-groups.list", "smart-groups.list", "content.list"),
        *("content-targets.list", "content-targets.create", "content-targets.delete"),
    ),
    USER: (
        *_PEOPLE,
        *("users.get", "users.create", "users.archive", "users.unarchive", "custom-fields.list"),
        *("users.set-custom-archived-date", "users.update-custom-field-choice", "users.update-email"),
        *("users.update-fullname", "users.update-language", "users.update-metadata"),
        *("user-access.set", "user-access.make-admin", "user-access.make-manager"),
    ),
}
"""Kind → the operations that read and change it."""
_NEVER_SAID: Final = {
    "manual-groups.create.memberIds",
    "manual-groups.create.managerIds",
    "content-targets.create.purchaseMetadata",
}
"""Optional body fields of those operations that manifests never set."""


def assumptions(wire: ApiSpec, kinds: Iterable[str], at: Mapping[str, SourceLocation]) -> tuple[Assumption, ...]:
    """Return every key that manifests of these kinds depend on, in the order of the API description.

    at: where the project file overrides a key.
    """
    default, leaning = ApiSpec.default(), _leaning(wire, kinds)
    return tuple(
        Assumption(
            key=key,
            value=wire.behaviour(key),
            default=default.behaviour(key),
            operations=tuple(operations),
            source=at.get(key),
        )
        for key, operations in leaning.items()
    )


def _leaning(wire: ApiSpec, kinds: Iterable[str]) -> dict[str, list[str]]:
    """Key → the operations that depend on it."""
    wanted = {operation for kind in kinds for operation in OPERATIONS.get(kind, ())}
    found: dict[str, list[str]] = {}
    for operation in wire.operations:
        for key in wire.dialect_keys(operation) if operation in wanted else ():
            if key not in _NEVER_SAID:
                found.setdefault(key, []).append(operation)
    return found
