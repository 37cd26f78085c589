"""Find out whether a call that names managers was refused because some of them lack the manager right.

The API specification does not say who may manage a group (Manual Groups, Smart Groups).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from lmsconf.api.spec.assumed_keys import WHO_CAN_MANAGE
from lmsconf.apply.dialect_hint import dialect_hint
from lmsconf.errors import ApiError, Rejected
from lmsconf.kinds.shared.response_json import require_object

if TYPE_CHECKING:
    from lmsconf.api.client import Client
    from lmsconf.apply.ambiguous_writes import IssuedRequest

_SHOWN: Final = 5


class ManagerRightMissing(Rejected):
    """People named as managers lack the manager right. values: dialect key → the value that explains the refusal."""

    code = "refusal/manager-right"
    values: Mapping[str, str] = {WHO_CAN_MANAGE: "with-right"}


def missing_manager_right(client: Client, sent: IssuedRequest, refused: Rejected) -> ManagerRightMissing | None:
    """Return the error of a refused call that makes people managers who lack the right; None for any other call.

    Reads each of these people.
    """
    spec, operation = client.spec, sent.call.operation
    if WHO_CAN_MANAGE not in spec.dialect_keys(operation) or spec.behaviour(WHO_CAN_MANAGE) != "anybody":
        return None
    try:
        managers = _managers(spec[operation].request_names.from_wire(sent.body))
        unable = [email for id in managers if (email := _unable(client, id))]
    except ApiError:
        return None
    if not unable:
        return None
    more = f" and {len(unable) - _SHOWN} more" if len(unable) > _SHOWN else ""
    people = f"{', '.join(unable[:_SHOWN])}{more} {'has' if len(unable) == 1 else 'have'}"
    return ManagerRightMissing(
        f"{refused.message}; {people} no manager right",
        hint="The service may require the right of managers: set `manager: true` for the person under `users:`, or "
        f"grant it by hand.\n{dialect_hint(ManagerRightMissing.values, ', so that the plan foretells it')}",
        operation=operation,
        status=refused.status,
        body=refused.body,
    )


def _managers(body: object) -> list[str]:
    """Return the user ids that a body names as managers."""
    names = ("userIds", "managers", "managerIds")
    lists = (body.get(name) for name in names) if isinstance(body, Mapping) else ()
    return [str(id) for ids in lists if isinstance(ids, list) for id in ids]


def _unable(client: Client, id: str) -> str | None:
    """Return the e-mail of a person without manager or administrator rights; None for any other."""
    person = require_object(client.call("users.get", path={"userId": id}), "a user")
    return None if person.get("admin") or person.get("manager") else str(person.get("email") or id)
