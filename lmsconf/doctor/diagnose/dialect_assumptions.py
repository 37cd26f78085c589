"""Which assumptions the manifests depend on: the dialect keys of every call that a plan of them could send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from lmsconf.api.spec import ApiSpec
from lmsconf.doctor.findings import DialectAssumption
from lmsconf.errors import SourceLocation
from lmsconf.kinds import all_kinds

_NEVER_SENT: Final = {
    "manual-groups.create.memberIds",
    "manual-groups.create.managerIds",
    "content-targets.create.purchaseMetadata",
}
"""Optional body fields that manifests never set."""


def list_dialect_assumptions(
    spec: ApiSpec, kinds: Iterable[str], at: Mapping[str, SourceLocation]
) -> tuple[DialectAssumption, ...]:
    """Return every key that manifests of these kinds depend on, in the order of the API description.

    at: where the project file overrides a key.
    """
    default, leaning = ApiSpec.default(), _leaning(spec, kinds)
    return tuple(
        DialectAssumption(
            key=key,
            value=spec.behaviour(key),
            default=default.behaviour(key),
            operations=tuple(operations),
            source=at.get(key),
        )
        for key, operations in leaning.items()
    )


def _leaning(spec: ApiSpec, kinds: Iterable[str]) -> dict[str, list[str]]:
    """Key → the operations that depend on it."""
    wanted = {operation for kind in kinds for operation in all_kinds()[kind].operations}
    dependents: dict[str, list[str]] = {}
    for operation in spec.operations:
        for key in spec.dialect_keys(operation) if operation in wanted else ():
            if key not in _NEVER_SENT:
                dependents.setdefault(key, []).append(operation)
    return dependents
