"""What a call does along: to rights, to the groups that somebody manages, and to what people can do.

The API specification says neither who may manage a group (Manual Groups, Smart Groups) nor what becomes of the groups
that somebody manages when the manager right is taken (User Access). A call that names managers may be refused, or give
them the right along; one that takes the right may end managing. Nor does it say what else comes or goes with a
right, an application or an archived account. People are read before and after the first such call.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, product
from typing import Final

from msgspec.structs import replace

from lmsconf.api.client import Client
from lmsconf.api.spec.dialect_candidates import MANAGED_GROUPS, WHO_CAN_MANAGE, Value, likeliest
from lmsconf.api.spec.operations import load_api_description, with_names
from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest
from lmsconf.apply.check_first_changes import ComparedList, read_person
from lmsconf.apply.explain_mismatch import dialect_hint, few
from lmsconf.errors import ApiError, Problem, Rejected, Severity, WrongAssumption
from lmsconf.kinds.shared.kind_names import SMART_GROUP, USER
from lmsconf.kinds.shared.manifest_entry import LISTS
from lmsconf.kinds.shared.responses import object_list
from lmsconf.kinds.shared.steps import request_target
from lmsconf.kinds.user.types import RIGHTS
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.names import count_noun, normalize_email, normalize_name
from lmsconf.model.plan import Change

_SHOWN: Final = 5


def sort_of_call(call: Call) -> str | None:
    """Return the sort of a call that may change more of people than the plan says; None for any other."""
    verb = call.operation.rpartition(".")[2]
    if call.operation.startswith("user-access.") and verb in ("make-admin", "make-manager", "set"):
        return f"{verb}/{call.path.rpartition('/')[2]}"
    if call.operation == "smart-groups.create" and call.people:
        return "add-managers"
    return verb if verb in ("archive", "unarchive", "add-managers", "remove-manager") else None


class ManagerRightMissing(Rejected):
    """People named as managers lack the manager right. values: dialect key → the value that explains the refusal."""

    code = "refusal/manager-right"
    values: Mapping[str, str] = {WHO_CAN_MANAGE: "with-right"}


def missing_manager_right(client: Client, sent: IssuedRequest, refused: Rejected) -> ApiError | None:
    """Return the error of a refused call that makes people managers who lack the right; None for any other call.

    Reads each of these people.
    """
    spec, operation = client.spec, sent.call.operation
    if WHO_CAN_MANAGE not in spec[operation].dialect_keys or spec.behaviour(WHO_CAN_MANAGE) != "anybody":
        return None
    with suppress(ApiError):
        if unable := [email for id in _managers(client, sent) if (email := _unable(client, id))]:
            return refused.restated(
                ManagerRightMissing,
                "The service may require the right of managers: set `manager: true` for the person under `users:`, or "
                f"grant it by hand.\n{dialect_hint(ManagerRightMissing.values, ', so that the plan foretells it')}",
                f"{refused.message}; {few(unable, most=_SHOWN)} {'has' if len(unable) == 1 else 'have'} no manager "
                "right",
            )
    return None


class ComparedRights:
    """The people that a call names as managers, and that lacked the manager right before it: `before`.

    able: the ids of people who were seen to have the right, added to.
    """

    key = WHO_CAN_MANAGE

    def __init__(self, client: Client, sent: IssuedRequest, able: set[str]) -> None:
        self._client = client
        named = [id for id in _managers(client, sent) if id not in able]
        self.before = {id: email for id in named if (email := _unable(client, id))}
        able.update(id for id in named if id not in self.before)

    def compare(self) -> None:
        """Raise WrongAssumption if people have the right now. It stays: removing it might end managing."""
        given = [email for id, email in self.before.items() if _unable(self._client, id) is None]
        if given:
            raise WrongAssumption(
                f"the service gave the manager right to {few(given, most=_SHOWN)} along, because managers have it; "
                "it is left to them",
                values={self.key: "given"},
            )


class ComparedAccess:
    """What the person of a call, or the first manager that it names, can do and belongs to before it.

    changes: the changes of the plan. What these give or take is not compared. Raises ApiError.
    """

    def __init__(self, client: Client, sent: IssuedRequest, changes: Sequence[Change]) -> None:
        self._client, self._sent, self._changes = client, sent, changes
        self._id = sent.path_values(client.spec).get("userId") or next(iter(_managers(client, sent)), None)
        self._before = self._read()

    def along(self, resolver: AmbiguousWriteResolver) -> Iterator[Problem]:
        """Yield the warning where the call has changed more than the plan says, once it shows."""
        # A list that the call changes was waited for already, and a person may not show it.
        is_listed = self._sent.call.address.kind != USER
        after = resolver.poll(self._read, lambda now: is_listed or now != self._before)
        planned = frozenset(chain.from_iterable(_planned(one, self._email) for one in self._changes))
        other = (after ^ self._before) - planned
        # Answers decide who is in a smart group.
        if any(field.path.startswith(("answers", "choices")) for one in self._changes for field in one.fields):
            other = frozenset(one for one in other if not one.startswith("member of"))
        if other:
            changed = [f"{'+' if one in after else '-'} {one}" for one in sorted(other)]
            yield Problem(
                code="apply/side-effect",
                message=f"{self._sent.call.address}: {self._sent.call.operation} also changed {self._email}, and the "
                f"plan does not show it: {few(changed, most=_SHOWN)}. It may do the same with other people",
                hint="Declare it for the people concerned, so that plans show and change it.",
                severity=Severity.WARNING,
                address=str(self._sent.call.address),
            )

    def _read(self) -> frozenset[str]:
        """Return the rights, the ids of applications, the groups and the dates that the person has."""
        person = {} if self._id is None else read_person(self._client, self._id)
        self._email, applications = str(person.get("email") or self._id), person.get("applicationIds")
        return frozenset(
            (
                *(right for right in RIGHTS if person.get(right)),
                *(["archived"] if person.get("archivedAt") else []),
                *(["custom_archive_date"] if person.get("customArchiveDate") else []),
                *map(str, applications if isinstance(applications, list) else ()),
                *(
                    f"{role} of {normalize_name(str(group.get('name')))}"
                    for role in ("member", "manager")
                    for group in _groups(person, f"{role}OfGroups")
                ),
            )
        )


def _groups(person: Mapping[str, Json], key: str) -> Sequence[Mapping[str, Json]]:
    """Return the groups that somebody is in, or manages."""
    return object_list(person, key) if person.get(key) else []


def _planned(change: Change, email: str) -> Iterator[str]:
    """Yield what a change of the plan gives somebody or takes, as `ComparedAccess` names it."""
    paths = [field.path for field in change.fields]
    if change.address.kind == USER:
        if change.address.name == normalize_email(email):
            yield from map(str, (*paths, *(one for field in change.fields for one in (*field.added, *field.removed))))
        return
    sides = [members(side) for side in (change.before, change.after)]
    names = {change.address.name, *(normalize_name(str(side["name"])) for side in sides if side.get("name"))}
    lists = {*LISTS} & {*(paths or chain.from_iterable(sides))}
    lists |= {"members"} if change.address.kind == SMART_GROUP else set()
    yield from (f"{key.removesuffix('s')} of {name}" for key in lists for name in names)


class ComparedGroups:
    """The groups that somebody manages who loses the manager right, as they were before the call: `before`.

    removed: the paths of the plan's DELETE calls. What these take anyway is not compared.
    """

    key = MANAGED_GROUPS

    def __init__(
        self, client: Client, sent: IssuedRequest, resolver: AmbiguousWriteResolver, removed: frozenset[str]
    ) -> None:
        self._client, self._sent, self._resolver = client, sent, resolver
        self._id = sent.path_values(client.spec).get("userId", "")
        person = read_person(client, self._id)
        self._email, managed = str(person.get("email") or self._id), _managed(person)
        self.before = {id: name for id, name in managed.items() if removed.isdisjoint(self._endings(id))}

    def compare(self) -> None:
        """Raise WrongAssumption if groups were lost that the plan does not take, after giving them back."""
        person = self._resolver.poll(
            partial(read_person, self._client, self._id), lambda person: not person.get("manager")
        )
        lost = {id: name for id, name in self.before.items() if id not in _managed(person)}
        if not lost:
            return
        values = self._give_back(lost)
        now = _managed(read_person(self._client, self._id))
        left = [name for id, name in lost.items() if id not in now]
        back = f"not given back: {few(left, most=_SHOWN)}" if left else "given back, with the right"
        raise WrongAssumption(
            f"with the manager right, {self._email} lost {count_noun(len(lost), 'group')} "
            f"({few(lost.values(), most=_SHOWN)}) that the plan does not take; {back}",
            values={self.key: "lose", **values},
        )

    def _give_back(self, lost: Iterable[str]) -> Mapping[str, Value]:
        """Grant the right again, which managing may need, and each group, by its id.

        Returns the values of the dialect keys under which that worked.
        """
        values: dict[str, Value] = {}
        with suppress(ApiError):
            self._client.call("user-access.make-manager", path={"userId": self._id, "endow": "true"})
        # The type of a group of a person may have any name.
        for group, kind in product(lost, ("manual-groups", "smart-groups")):
            with suppress(ApiError):
                values |= self._add(f"{kind}.add-managers", group)
        return values

    def _add(self, operation: str, group: str) -> Mapping[str, Value]:
        """Add the person to the managers of a group, naming those who are in the list, too, and if not, alone.

        Returns the dialect values under which it worked. Raises ApiError if there is no such list.
        """
        path = request_target(self._client.spec, operation, {"groupId": group, "smartGroupId": group})[1]
        body = self._client.spec.body_to_wire(operation, userIds=[self._id])
        sent = replace(self._sent, call=replace(self._sent.call, operation=operation), path=path, body=body)
        listed, key = ComparedList(self._client, sent, self._resolver), f"{operation}.userIds"
        is_named = key in load_api_description().names
        names = likeliest(key, self._client.spec.behaviour(key), "") if is_named else []
        forms: list[dict[str, Value]] = [{}, *({key: name} for name in names)]
        for people in (listed.everybody, frozenset({self._id})):
            for form in forms:
                with self._client.speaking(form), suppress(ApiError):
                    body = self._client.spec.body_to_wire(operation, userIds=sorted(people))
                    self._client.send("POST", path, body=body, operation=operation)
                    if group in _managed(read_person(self._client, self._id)):
                        try:
                            listed.compare()
                        except WrongAssumption as wrong:
                            return {**form, **wrong.values}
                        return form
            if listed.has_archived:
                break  # Where the service replaces the list, these could not be put back.
        return {}

    def _endings(self, group: str) -> Iterable[str]:
        """Return the paths of the calls that end managing of a group."""
        ids = {"groupId": group, "smartGroupId": group, "userId": self._id}
        kinds, operations = ("manual-groups", "smart-groups"), ("remove-manager", "delete")
        return (request_target(self._client.spec, f"{of}.{do}", ids)[1] for of in kinds for do in operations)


def compared_along(
    client: Client,
    sent: IssuedRequest,
    resolver: AmbiguousWriteResolver,
    keys: frozenset[str],
    able: set[str],
    removed: frozenset[str],
) -> ComparedRights | ComparedGroups | None:
    """Return what a call that rests on these keys may change along; None if it cannot show anything of that.

    able, removed: of ComparedRights and ComparedGroups.
    """
    compared: ComparedRights | ComparedGroups | None = None
    with suppress(Rejected):  # A service that shows no single person shows nothing of this.
        if WHO_CAN_MANAGE in keys:
            compared = ComparedRights(client, sent, able)
        elif MANAGED_GROUPS in keys:
            compared = ComparedGroups(client, sent, resolver, removed)
    return compared if compared is not None and compared.before else None


def _managers(client: Client, sent: IssuedRequest) -> list[str]:
    """Return the user ids that a call names as managers."""
    body = with_names(sent.body, client.spec[sent.call.operation].from_request)
    lists = map(body.get, ("userIds", "managers", "managerIds")) if isinstance(body, Mapping) else ()
    return [str(id) for ids in lists if isinstance(ids, list) for id in ids]


def _unable(client: Client, id: str) -> str | None:
    """Return the e-mail of a person without manager or administrator rights; None for any other."""
    person = read_person(client, id)
    return None if person.get("admin") or person.get("manager") else str(person.get("email") or id)


def _managed(person: Mapping[str, Json]) -> Mapping[str, str]:
    """Return the ids of the groups that a person manages, each with the name."""
    return {
        str(one.get("groupId")): str(one.get("name") or one.get("groupId"))
        for one in _groups(person, "managerOfGroups")
    }
