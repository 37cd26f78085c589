"""Which assumptions the manifests depend on: the dialect keys of every call that a plan of them could send."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.assumed_keys import assumed_keys
from lmsconf.doctor.findings import DialectAssumption
from lmsconf.errors import SourceLocation
from lmsconf.kinds import all_kinds


def list_dialect_assumptions(
    spec: ApiSpec, kinds: Iterable[str], at: Mapping[str, SourceLocation]
) -> tuple[DialectAssumption, ...]:
    """Return every key that manifests of these kinds depend on, in the order of the API description.

    at: where the project file overrides a key.
    """
    default = ApiSpec.default()
    operations_of_kinds = {operation for kind in kinds for operation in all_kinds()[kind].operations}
    return tuple(
        DialectAssumption(
            key=key,
            value=spec.behaviour(key),
            default=default.behaviour(key),
            known=spec.is_known(key),
            operations=tuple(operations),
            source=at.get(key),
        )
        for key, operations in assumed_keys(spec, operations_of_kinds).items()
    )
