"""Side effects of a call on people: on rights, on the groups that they manage, and on what they can do.

The API specification says neither who may manage a group (Manual Groups, Smart Groups) nor what becomes of the groups
that somebody manages when the manager right is taken (User Access). A call that names managers may be refused, or give
them the right along; one that takes the right may end managing. Nor does it say what else comes or goes with a
right, an application or an archived account. People are read before and after the first such call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from itertools import chain, product
from typing import Final

from msgspec.structs import replace

from lmsconf.api.spec.dialect_candidates import MANAGED_GROUPS, WHO_CAN_MANAGE, Value, likeliest
from lmsconf.api.spec.operations import load_api_description, with_names
from lmsconf.apply.ambiguous_writes import AmbiguousWriteResolver, IssuedRequest
from lmsconf.apply.check_first_changes import ComparedList, read_person
from lmsconf.apply.explain_mismatch import dialect_hint, few
from lmsconf.errors import ApiError, Problem, Rejected, Severity, WrongAssumption
from lmsconf.kinds.shared.kind_names import SMART_GROUP, USER
from lmsconf.kinds.shared.manifest_entry import LISTS
from lmsconf.kinds.shared.rename_and_list_steps import request_target
from lmsconf.kinds.shared.responses import object_list
from lmsconf.kinds.user.types import RIGHTS
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.names import count_noun, normalize_email, normalize_name
from lmsconf.model.plan import Change

_SHOWN: Final = 5


_CATEGORIES: Final[Mapping[str, str]] = {
    "users.archive": "archive",
    "users.unarchive": "unarchive",
    "smart-groups.create": "add-managers",
    **{f"{of}.{verb}": verb for of in ("manual-groups", "smart-groups") for verb in ("add-managers", "remove-manager")},
}
"""Operation → the sort of its calls. The path tells those of rights and applications apart."""


def side_effect_category(call: Call) -> str | None:
    """Return the category of a call that may change more of people than the plan says; None for any other.

    The first call of each category is watched.
    """
    if call.operation.startswith("user-access."):
        return f"{call.operation.rpartition('.')[2]}/{call.path.rpartition('/')[2]}"
    return _CATEGORIES.get(call.operation) if call.people or call.operation != "smart-groups.create" else None


class ManagerRightMissing(Rejected, code="refusal/manager-right"):
    """People named as managers lack the manager right."""


def missing_manager_right(sent: IssuedRequest, refused: Rejected) -> ApiError | None:
    """Return the error of a refused call that makes people managers who lack the right; None for any other call.

    Reads each of these people.
    """
    spec, operation = sent.client.spec, sent.call.operation
    if WHO_CAN_MANAGE not in spec[operation].dialect_keys or spec.behaviour(WHO_CAN_MANAGE) != "anybody":
        return None
    with suppress(ApiError):
        people = {id: read_person(sent.client, id) for id in _manager_ids_in_body(sent)}
        if unable := [str(one.get("email") or id) for id, one in people.items() if not _may_manage(one)]:
            return refused.restated(
                ManagerRightMissing,
                "The service may require the right of managers: set `manager: true` for the person under `users:`, or "
                f"grant it by hand.\n{dialect_hint({WHO_CAN_MANAGE: 'with-right'}, ', so that the plan foretells it')}",
                f"{refused.message}; {few(unable, most=_SHOWN)} {'has' if len(unable) == 1 else 'have'} no manager "
                "right",
            )
    return None


class SideEffectCheck:
    """Reads the person in the path of a call, or one of its managers, before the call may also change them.

    Of managers, the first who lacks the manager right shows whether it is given as a side effect. keys: of the call.
    able: the ids of people who were seen to have the right, added to. removed: the paths of the plan's DELETE calls;
    groups that these take anyway are not compared. changes: of the plan, if all that the person can do and belongs to
    is compared, apart from what these give or take; else empty. Raises ApiError if the keys need a person who cannot be
    read.
    """

    def __init__(
        self,
        sent: IssuedRequest,
        resolver: AmbiguousWriteResolver,
        keys: frozenset[str],
        able: set[str],
        removed: frozenset[str],
        changes: Sequence[Change],
    ) -> None:
        self._client, self._sent, self._resolver, self._changes = sent.client, sent, resolver, changes
        is_first = bool(changes) or MANAGED_GROUPS in keys
        own = sent.values.path.get("userId") if is_first else None
        named = [own] if own else _manager_ids_in_body(sent)
        unknown = [id for id in named if id not in able] if WHO_CAN_MANAGE in keys else []
        self._before: Mapping[str, Json] = {}
        self._lacking: list[str] = []
        # A service that shows no single person shows nothing of this.
        with suppress(Rejected if keys & {WHO_CAN_MANAGE, MANAGED_GROUPS} else ApiError):
            for id in unknown or (named[:1] if is_first else []):
                person = read_person(sent.client, id)
                if not self._lacking:
                    self._before, self._id = person, id
                if not _may_manage(person):
                    self._lacking.append(id)
                elif WHO_CAN_MANAGE in keys:
                    able.add(id)
        managed = _managed(self._before) if MANAGED_GROUPS in keys else {}
        self._groups = {id: name for id, name in managed.items() if removed.isdisjoint(self._revoking_paths(id))}
        is_lacking = WHO_CAN_MANAGE in keys and self._lacking
        self.key = WHO_CAN_MANAGE if is_lacking else MANAGED_GROUPS if self._groups else None
        """The key whose value the person can show; None if there is none."""

    def compare(self) -> list[Problem] | None:
        """Return a warning where the call has changed more of the person than the plan says, once it shows.

        None if the person cannot be read.

        Raises WrongAssumption if the person was given the manager right, which stays, because removing it
        might end managing, or if groups were lost that the plan does not take, after giving them back.
        """
        if not (self._changes or self.key) or not self._before:
            return [] if self._before else None
        # A list that the call changes was waited for already, and a person may not show it.
        after = self._resolver.poll(self._read_now, self._is_call_visible)
        self._email = str(after.get("email") or self._id)
        if self.key == WHO_CAN_MANAGE and _may_manage(after):
            others = (read_person(self._client, id) for id in self._lacking[1:])
            given = [self._email, *(str(one.get("email") or one.get("userId")) for one in others if _may_manage(one))]
            raise WrongAssumption(
                f"the service gave the manager right to {few(given, most=_SHOWN)} along, because managers have it; "
                "it is left to them",
                values={WHO_CAN_MANAGE: "given"},
            )
        lost = {id: name for id, name in self._groups.items() if id not in _managed(after)}
        if lost:
            raise self._restore_managed_groups(lost)
        # Where the person shows what a key needs, what else they hold need not be readable.
        with suppress(ApiError) if self.key else nullcontext():
            return self._warn_of_unplanned(_access_items(after), _access_items(self._before)) if self._changes else []
        return []

    def _is_call_visible(self, now: Mapping[str, Json]) -> bool:
        """Whether the person shows the call; of a list, it was waited for already."""
        if self.key == MANAGED_GROUPS:
            return not now.get("manager")
        return self._sent.call.address.kind != USER or _access_items(now) != _access_items(self._before)

    def _warn_of_unplanned(self, now: frozenset[str], before: frozenset[str]) -> list[Problem]:
        """Return a warning if something has changed that the changes of the plan do not say."""
        planned = frozenset(chain.from_iterable(_planned_items(one, self._email) for one in self._changes))
        other = (now ^ before) - planned
        # Answers decide who is in a smart group.
        if any(field.path.startswith(("answers", "choices")) for one in self._changes for field in one.fields):
            other = frozenset(one for one in other if not one.startswith("member of"))
        if not other:
            return []
        changed = [f"{'+' if one in now else '-'} {one}" for one in sorted(other)]
        return [
            Problem(
                code="apply/side-effect",
                message=f"{self._sent.call.address}: {self._sent.call.operation} also changed {self._email}, and the "
                f"plan does not show it: {few(changed, most=_SHOWN)}. It may do the same with other people",
                hint="Declare it for the people concerned, so that plans show and change it.",
                severity=Severity.WARNING,
                address=str(self._sent.call.address),
            )
        ]

    def _read_now(self) -> Mapping[str, Json]:
        return read_person(self._client, self._id)

    def _restore_managed_groups(self, lost: Mapping[str, str]) -> WrongAssumption:
        """Grant the right again, which managing may need, and each group, by its id; return what tells it."""
        values: dict[str, Value] = {MANAGED_GROUPS: "lose"}
        with suppress(ApiError):
            self._client.call("user-access.make-manager", path={"userId": self._id, "endow": "true"})
        # The type of a group of a person may have any name.
        for group, kind in product(lost, ("manual-groups", "smart-groups")):
            with suppress(ApiError):
                values |= self._try_to_restore(f"{kind}.add-managers", group)
        now = _managed(self._read_now())
        left = [name for id, name in lost.items() if id not in now]
        back = f"not given back: {few(left, most=_SHOWN)}" if left else "given back, with the right"
        return WrongAssumption(
            f"with the manager right, {self._email} lost {count_noun(len(lost), 'group')} "
            f"({few(lost.values(), most=_SHOWN)}) that the plan does not take; {back}",
            values=values,
        )

    def _try_to_restore(self, operation: str, group: str) -> Mapping[str, Value]:
        """Add the person to the managers of a group: first with the whole current list; if that fails, alone.

        Returns the dialect values under which it worked. Raises ApiError if there is no such list.
        """
        path = request_target(self._client.spec, operation, {"groupId": group, "smartGroupId": group})[1]
        call = replace(self._sent.call, operation=operation)
        sent = replace(self._sent, call=call, path=path, body={"userIds": [self._id]})
        listed, key = ComparedList(sent, self._resolver), f"{operation}.userIds"
        names = likeliest(key, self._client.spec.behaviour(key), "") if key in load_api_description().names else []
        forms: list[dict[str, Value]] = [{}, *({key: name} for name in names)]
        alone = frozenset({self._id})
        for people, form in product((listed.everybody, alone), forms):
            if people == alone and not form and listed.has_archived:
                break  # Where the service replaces the list, these could not be put back.
            with self._client.speaking(form), suppress(ApiError):
                listed.add(people)
                if group in _managed(self._read_now()):
                    try:
                        listed.compare()
                    except WrongAssumption as wrong:
                        return {**form, **wrong.values}
                    return form
        return {}

    def _revoking_paths(self, group: str) -> Iterable[str]:
        """Return the paths of the calls that end managing of a group."""
        ids = {"groupId": group, "smartGroupId": group, "userId": self._id}
        ending = product(("manual-groups", "smart-groups"), ("remove-manager", "delete"))
        return (request_target(self._client.spec, f"{of}.{do}", ids)[1] for of, do in ending)


def _planned_items(change: Change, email: str) -> Iterable[str]:
    """Return what a change of the plan gives somebody or takes, as `_access_items` names it."""
    paths = [field.path for field in change.fields]
    if change.address.kind == USER:
        items = (one for field in change.fields for one in (*field.added, *field.removed))
        return map(str, (*paths, *items)) if change.address.name == normalize_email(email) else ()
    sides = [members(side) for side in (change.before, change.after)]
    names = {change.address.name, *(normalize_name(str(side["name"])) for side in sides if side.get("name"))}
    also = ["members"] if change.address.kind == SMART_GROUP else []
    lists = {*also, *({*LISTS} & {*(paths or chain.from_iterable(sides))})}
    return (f"{key.removesuffix('s')} of {name}" for key in lists for name in names)


def _manager_ids_in_body(sent: IssuedRequest) -> list[str]:
    """Return the user ids that a call names as managers."""
    body = with_names(sent.body, sent.client.spec[sent.call.operation].from_request)
    lists = map(body.get, ("userIds", "managers", "managerIds")) if isinstance(body, Mapping) else ()
    return [str(id) for ids in lists if isinstance(ids, list) for id in ids]


def _may_manage(person: Mapping[str, Json]) -> bool:
    """Whether a person has manager or administrator rights."""
    return bool(person.get("admin") or person.get("manager"))


def _access_items(person: Mapping[str, Json]) -> frozenset[str]:
    """Return the rights, the ids of applications, the groups and the dates that a person has."""
    applications = person.get("applicationIds")
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


def _managed(person: Mapping[str, Json]) -> Mapping[str, str]:
    """Return the ids of the groups that a person manages, each with the name."""
    return {
        str(one.get("groupId")): str(one.get("name") or one.get("groupId"))
        for one in _groups(person, "managerOfGroups")
    }


def _groups(person: Mapping[str, Json], key: str) -> Sequence[Mapping[str, Json]]:
    """Return the groups that somebody is in, or manages."""
    return object_list(person, key) if person.get(key) else []
