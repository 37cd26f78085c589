"""Verify that grants took effect before any revocation is sent, so that no one loses access to a grant without effect.

The service may accept a list of people and ignore it, because it expects another name for the body field, or apply it
late. The revocations that depend on it are then not sent (API specification, Manual Groups, Smart Groups, User Access,
Content Targeting).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from lmsconf.errors import NoEffect
from lmsconf.kinds.content_target.values import target_row
from lmsconf.kinds.shared.answers import an_object, ids, objects
from lmsconf.kinds.shared.names import GROUP, SMART_GROUP
from lmsconf.model.address import RemoteId
from lmsconf.model.values import Call, Plan

if TYPE_CHECKING:
    from lmsconf.api.client import Client
    from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest


class GrantCheck(NamedTuple):
    """The ids that a call grants access to, the ids that have access, and the message about missing ones."""

    coming: Callable[[Client, IssuedRequest], Collection[str]]
    inside: Callable[[Client, IssuedRequest], Collection[str]]
    missing: str


def grants_to_verify(plan: Plan) -> frozenset[str]:
    """Return the ids of the granting calls that a revoking call depends on."""
    grants = {call.id for call in plan.calls if _is_grant(call)}
    return frozenset(need for call in plan.calls if _takes_out(call) for need in call.needs if need in grants)


def verify_grant(client: Client, sent: IssuedRequest, settling: AmbiguousWriteResolver) -> None:
    """Poll until every id that the call grants is visible. Raises NoEffect when the time for that is over."""
    operation = sent.call.operation
    proof = _PROOFS[operation]
    coming = frozenset(proof.coming(client, sent))
    missing: Collection[str] = coming
    for _ in settling.shows():
        missing = coming.difference(proof.inside(client, sent))
        if not missing:
            return
    keys = client.wire.dialect_keys(operation)
    raise NoEffect(
        f"the service accepted it, and {proof.missing.format(missing=len(missing), coming=len(coming))}; "
        "nobody is taken out",
        hint=f"Look at the dialect keys {', '.join(keys)}." if keys else "Plan again to see what is left.",
    )


def _is_grant(call: Call) -> bool:
    if call.operation == _MAKE_ADMIN:
        return call.path.endswith("/true")
    if call.operation == _ASSIGN:
        # The id of everyone, or of one person, may be listed as another id.
        return call.address.name.rpartition(" -> ")[2].partition("/")[0] in (GROUP, SMART_GROUP)
    return call.operation in _PROOFS


def _takes_out(call: Call) -> bool:
    if call.operation == _MAKE_ADMIN:
        return call.path.endswith("/false")
    return call.operation in _TAKING or call.operation.rpartition(".")[2] in ("remove-member", "remove-manager")


def _listed(client: Client, sent: IssuedRequest) -> set[str]:
    """The ids in a body, whatever the name of its list field."""
    lists = sent.body.values() if isinstance(sent.body, Mapping) else ()
    return {str(one) for value in lists if isinstance(value, list) for one in value}


def _inside(operation: str, listing: str) -> Callable[[Client, IssuedRequest], set[str]]:
    """Return a function that reads one id list of the call's group."""

    def inside(client: Client, sent: IssuedRequest) -> set[str]:
        answer = client.call(operation, path=_path(client, sent))
        return {str(id) for id in ids(an_object(answer, "a group"), listing)}

    return inside


def _person(client: Client, sent: IssuedRequest) -> set[str]:
    return {_path(client, sent)["userId"]}


def _admins(client: Client, sent: IssuedRequest) -> set[str]:
    """The person of a call, if an administrator; otherwise empty."""
    person = an_object(client.call("users.get", path={"userId": _path(client, sent)["userId"]}), "a person")
    return _person(client, sent) if person.get("admin") is True else set()


def _audience(client: Client, sent: IssuedRequest) -> set[str]:
    body = sent.body if isinstance(sent.body, Mapping) else {}
    return {str(body["targetId"])}


def _audiences(client: Client, sent: IssuedRequest) -> set[str]:
    """Every target id that the call's content is assigned to."""
    body = sent.body if isinstance(sent.body, Mapping) else {}
    content = RemoteId(str(body["contentId"]))
    answer = an_object(client.call("content-targets.list", query={"contentId": content}), "the targets")
    return {str(target_row(content, one).target) for one in objects(answer, "targets")}


def _path(client: Client, sent: IssuedRequest) -> Mapping[str, str]:
    found = client.wire.route(sent.call.method, sent.path)
    return found[1] if found else {}


_MAKE_ADMIN: Final = "user-access.make-admin"
_ASSIGN: Final = "content-targets.create"
_TAKING: Final = ("content-targets.delete", "users.archive")
_OF_LIST: Final = "{missing} of {coming} are not in the list"
_PROOFS: Final[Mapping[str, GrantCheck]] = {
    "manual-groups.add-members": GrantCheck(_listed, _inside("manual-groups.members", "userIds"), _OF_LIST),
    "manual-groups.add-managers": GrantCheck(_listed, _inside("manual-groups.managers", "userIds"), _OF_LIST),
    "smart-groups.add-managers": GrantCheck(_listed, _inside("smart-groups.get", "managers"), _OF_LIST),
    _MAKE_ADMIN: GrantCheck(_person, _admins, "the person is no administrator"),
    _ASSIGN: GrantCheck(_audience, _audiences, "the content is not assigned"),
}
"""Granting operation → how its effect is verified."""
