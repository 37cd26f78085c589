"""Lessons on a scratch field and on a scratch group.

Of a field: how to clear a description, and when it counts as in use. Of a group: the body fields of
renaming and of adding people, and how many ids a call may carry.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Final, TypeAlias, cast

from lmsconf.api.spec.dialect_candidates import (
    ADD_MODE,
    BATCH,
    CLEAR_DESCRIPTION,
    MANAGED_GROUPS,
    WHO_CAN_MANAGE,
    Value,
)
from lmsconf.api.spec.operations import CUSTOM_FIELDS, MANUAL_GROUPS, SMART_GROUPS
from lmsconf.doctor.probe_trials import SEEN, ScratchObjects, TrialClient, WriteResult, required
from lmsconf.kinds.custom_field.types import FieldRow, parse_field_row
from lmsconf.model.canonical_json import Json

IN_USE: Final = "custom-fields.in-use"
FIELD_KEYS: Final = (CLEAR_DESCRIPTION, IN_USE)
_TEXT: Final = "Created by a probe of lmsconf, and deleted afterwards."


def probe_field_keys(client: TrialClient, scratch: ScratchObjects) -> None:
    """Probe on one hidden field with two choices. Raises Undetermined if there cannot be one."""
    scratch.count_free_fields()
    field = scratch.create_field("CHOICE", description=_TEXT)
    put, live = partial(_put, client, scratch, field), partial(_live, scratch, field)
    # The description first: a field in use may not be changeable.
    if live().description:
        client.try_candidates(
            CLEAR_DESCRIPTION,
            lambda value: put({"description": "" if value == "empty" else None}).accepted and not live().description,
        )
    client.record_undetermined((CLEAR_DESCRIPTION,), "the scratch field did not get a description")
    required(put({}).accepted, "replacing the scratch field is refused although no smart group names it")
    required(len(field.choices) == 2, "the scratch field did not get its two choices")
    _learn_in_use(client, scratch, field)


def _learn_in_use(client: TrialClient, scratch: ScratchObjects, field: FieldRow) -> None:
    """Probe which changes are refused while a condition names the field, from the least to the greatest."""
    first, second = (
        {"conditions": [{"customFieldId": str(field.id), "choiceIds": [str(choice.id)]}]} for choice in field.choices
    )
    group = str(scratch.create(SMART_GROUPS, first)["smartGroupId"])
    sent, forbidden = _put(client, scratch, field, {}), "condition"
    if sent.accepted:
        forbidden = "removed-choice"
        sent = _put(client, scratch, field, {"choices": [{"choiceId": str(field.choices[1].id), "name": "B"}]})
    if sent.accepted:
        # Removing the choice may have removed it from the condition, so that names the other one from here on.
        client.send("smart-groups.replace-conditions", path={"smartGroupId": group}, fields=second)
        sent = client.send("custom-fields.delete", path={"customFieldId": field.id})
    client.conclude(
        IN_USE,
        (sent.accepted, "never", "nothing was refused while a smart group named the field"),
        (sent.is_forbidden, forbidden, f"refused while a smart group named the field: {sent.reason}"),
        (True, None, f"the field was refused for another reason: {sent.reason}"),
    )


def _put(client: TrialClient, scratch: ScratchObjects, field: FieldRow, changes: Mapping[str, object]) -> WriteResult:
    """Replace the whole field with its live values, except those given."""
    live = _live(scratch, field)
    body: dict[str, object] = {
        "name": live.name,
        "type": live.type,
        "choices": [{"choiceId": str(choice.id), "name": choice.name} for choice in live.choices],
        "isHidden": True,
        "isOptional": True,
        **({"description": live.description} if live.description else {}),
        **changes,
    }
    return client.send("custom-fields.replace", path={"customFieldId": field.id}, fields=body)


def _live(scratch: ScratchObjects, field: FieldRow) -> FieldRow:
    return parse_field_row(scratch.read_row(CUSTOM_FIELDS, field.id))


RENAME: Final = "manual-groups.rename.name"
MEMBERS: Final = "manual-groups.add-members.userIds"
MANAGERS: Final = "manual-groups.add-managers.userIds"
LIST_KEYS: Final = (MEMBERS, MANAGERS, WHO_CAN_MANAGE, MANAGED_GROUPS, BATCH, ADD_MODE)
_LISTS: Final = {
    MEMBERS: ("manual-groups.members", "manual-groups.add-members", "manual-groups.remove-member"),
    MANAGERS: ("manual-groups.managers", "manual-groups.add-managers", "manual-groups.remove-manager"),
    SMART_GROUPS.id: ("smart-groups.managers", "smart-groups.add-managers", "smart-groups.remove-manager"),
}
"""Key, or the id of smart groups → the operations that list people, add them and remove them."""
_MANY: Final = 1001
"""Ids in a call that a service which counts repeated ids should refuse."""


def probe_rename_key(client: TrialClient, scratch: ScratchObjects, group: str) -> None:
    """Probe the name field. Each try sends another name, so that its effect is not mistaken for a later one's."""
    number = count(1)

    def works(value: Value) -> bool:
        name = scratch.unique_name(f"renamed-{next(number)}")
        client.send("manual-groups.rename", path={"groupId": group}, fields={"name": name}, trying={RENAME: value})
        return scratch.read_row(MANUAL_GROUPS, group).get("name") == name

    client.try_candidates(RENAME, works)


Managers: TypeAlias = "Mapping[str, bool | None]"
"""The ids of people to make manager → whether they have a right that some services require; None: not known."""


def probe_member_keys(
    client: TrialClient,
    scratch: ScratchObjects,
    group: Mapping[str, str],
    people: Sequence[str],
    managers: Managers,
    accounts: Collection[str],
) -> None:
    """Probe the fields of user ids: add a person, read back, remove; and who can be a manager.

    group: the path parameter of the scratch group, its name and the id. people: a second one shows whether the
    first one stays in the list; more of them, how many a call may name. managers: one without and one with the
    right show whether it is required. accounts: the ids of those of the probe, which may be given the right.
    """
    client.conclude_value(MEMBERS, _working_name(client, scratch, MEMBERS, group, people[0]))
    _learn_managers(client, scratch, group, managers, accounts)
    client.learn((MANAGED_GROUPS,), partial(_learn_managed_groups, client, group, managers, accounts))
    client.learn((BATCH,), partial(_learn_batch, client, group, people))
    client.learn((ADD_MODE,), partial(_learn_mode, client, scratch, group, people, managers, accounts))


def _learn_mode(
    client: TrialClient,
    scratch: ScratchObjects,
    group: Mapping[str, str],
    people: Sequence[str],
    candidates: Managers,
    accounts: Collection[str],
) -> None:
    """Probe whether adding a second person to a list keeps the first one in it: of members, then of managers.

    A service may keep one list and replace another. Calls that name everybody in the list are right for both.
    """
    required(len(people) > 1, "it needs a second person; pass --user EMAIL twice")
    required(client.is_determined(MEMBERS), "nobody can be added")
    kept = [_keeps(client, MEMBERS, group, people[:2])]
    able = sorted(candidates, key=lambda id: candidates[id] is not True)[:2] if kept[0] else []
    for id in able:
        if id in accounts:
            _endow(client, id, "true")
    kept.append(_keeps(client, MANAGERS, group, able))
    if all(kept):
        scratch.delete_created(SMART_GROUPS, CUSTOM_FIELDS)
        scratch.refuse_leftovers(SMART_GROUPS)
        scratch.count_free_fields()
        field = scratch.create_field("CHOICE", "managers", _TEXT)
        condition = {"customFieldId": str(field.id), "choiceIds": [str(one.id) for one in field.choices]}
        smart = scratch.create(SMART_GROUPS, {"conditions": [condition]}, "managers")
        kept.append(_keeps(client, SMART_GROUPS.id, {SMART_GROUPS.id: str(smart[SMART_GROUPS.id])}, able))
    client.conclude(
        ADD_MODE,
        (kept[0] is None, None, "the second person could not be added"),
        (False in kept, "replace", "adding a second person took the first one out of the list"),
        (None in kept, None, "members are kept; to try managers it needs two people who can be managers"),
        (True, "add", "the first person stayed in the list when a second one was added"),
    )


def _keeps(client: TrialClient, key: str, group: Mapping[str, str], people: Sequence[str]) -> bool | None:
    """Return whether the first of two people stays in a list; None if the second one cannot be added."""
    for one in people:
        client.send(_LISTS[key][1], path=group, fields={"userIds": [one]})
    listed = _people(client, key, group)
    _take_out(client, key, group, *people)
    return people[0] in listed if len(people) > 1 and people[1] in listed else None


def _learn_managers(
    client: TrialClient,
    scratch: ScratchObjects,
    group: Mapping[str, str],
    candidates: Managers,
    accounts: Collection[str],
) -> None:
    """Probe the managers field, if possible first with a person without the right that some services require."""
    lacking = next((id for id, is_able in candidates.items() if is_able is False), None)
    able = next((id for id, is_able in candidates.items() if is_able is not False), None)
    value = None if lacking is None else _working_name(client, scratch, MANAGERS, group, lacking)
    is_refused = lacking is not None and value is None
    if value is None and able is None and lacking is not None and lacking in accounts:
        _endow(client, lacking, "true")
        able = lacking
    if value is None and able is not None:
        value = _working_name(client, scratch, MANAGERS, group, able)
    why = client.failure_reason(MANAGERS)
    client.conclude(
        MANAGERS,
        (value is not None, value, SEEN),
        (
            able is None,
            None,
            f"{why}; the person tried lacks the manager right, which some services require: name somebody who has it",
        ),
        (True, None, why),
    )
    is_given = value is not None and lacking and not is_refused and client.read_person(lacking).get("manager")
    client.conclude(
        WHO_CAN_MANAGE,
        (value is None, None, "nobody could be made manager"),
        (lacking is None, None, "the person tried may manage in any case; name somebody without the manager right"),
        (is_refused, "with-right", "refused without the manager right, and accepted with it"),
        (is_given, "given", "somebody without the manager right was accepted, and has it now"),
        (True, "anybody", "somebody without the manager right was accepted"),
    )


def _learn_managed_groups(
    client: TrialClient, group: Mapping[str, str], candidates: Managers, accounts: Collection[str]
) -> None:
    """Probe whether somebody who loses the manager right keeps managing the scratch group.

    Only with an account of the probe, or a person who has nothing to lose with the right: no other group, no other
    right, no archive date, which a grant may clear.
    """
    required(client.is_determined(MANAGERS), "nobody could be made manager")
    person = required(
        next((id for id, able in candidates.items() if id in accounts or _is_free(client, id, able)), None),
        "it needs somebody who has no rights, manages no group and has no archive date; name somebody else",
    )
    _endow(client, person, "true")
    is_added = _adds(client, MANAGERS, group, person, client.spec.behaviour(MANAGERS))
    was_manager = is_added and bool(client.read_person(person).get("manager"))
    _endow(client, person, "false")
    is_manager, has_right = person in _people(client, MANAGERS, group), client.read_person(person).get("manager")
    _take_out(client, MANAGERS, group, person)
    client.conclude(
        MANAGED_GROUPS,
        (not was_manager or has_right, None, f"the manager right could not be given and taken: {client.last}"),
        (is_manager, "keep", "somebody whose manager right was taken manages the group still"),
        (True, "lose", "somebody whose manager right was taken lost the group"),
    )


def _endow(client: TrialClient, person: str, endow: str) -> None:
    """Give the manager right, or take it."""
    client.send("user-access.make-manager", path={"userId": person, "endow": endow})


def _is_free(client: TrialClient, person: str, is_able: bool | None) -> bool:
    """Whether somebody has no rights, manages no group and has no archive date."""
    kept = ("managerOfGroups", "customArchiveDate", "archivedAt")
    return is_able is False and not any(map(client.read_person(person).get, kept))


def _working_name(
    client: TrialClient, scratch: ScratchObjects, key: str, group: Mapping[str, str], person: str
) -> Value | None:
    """Return the first name of a list's field that adds the person; remove the person again.

    It must add the person twice: a list may show late what another name has done.
    """
    adds, value = partial(_adds, client, key, group, person), None
    for _ in range(2):
        lag, value = client.lag, client.first_working_value(key, adds)
        _take_out(client, key, group, person)
        scratch.wait_for(lambda: person not in _people(client, key, group), WriteResult(True))
        if client.lag == lag if value is None else adds(value):
            break
    _take_out(client, key, group, person)
    return value


def _learn_batch(client: TrialClient, group: Mapping[str, str], people: Sequence[str]) -> None:
    """Probe how many ids a call may carry, by repeating the first person's id.

    A service may count the same id once, so the few people are named together, too, and then ids that nobody has.
    """
    required(client.is_determined(MEMBERS), "without the name of the list nobody can be added")
    takes, most = partial(_takes, client, group), client.spec.integer_behaviour(BATCH)
    too_many = next((number for number in range(2, len(people) + 1) if not takes(people[:number])), None)
    if too_many is not None and takes(people[:1]):
        client.conclude(BATCH, (True, too_many - 1, f"a call with the ids of {too_many} people was refused"))
        return
    same = [people[0]] * max(most, _MANY)
    different = [people[0], *(f"lmsconf-probe-{position}" for position in range(1, most))]
    alike = _limit(takes, same, most)
    counts_once = alike == most and takes(same[:_MANY])
    apart = _limit(takes, different, most) if counts_once else most
    client.conclude(
        BATCH,
        (not alike, None, "a call that names the one person twice is refused, and no other person may be changed"),
        (alike < most, alike, f"a call with {alike + 1} ids, all of the same person, was refused"),
        (not counts_once, most, f"a call with {most} ids, all of the same person, was accepted"),
        (
            not apart,
            None,
            f"{_MANY} ids of the same person are accepted, and ids of nobody are not: it may count different ids",
        ),
        (apart < most, apart, f"a call with {apart + 1} different ids was refused"),
        (True, most, f"a call with {most} different ids was accepted"),
    )


def _takes(client: TrialClient, group: Mapping[str, str], ids: Sequence[str]) -> bool:
    """Whether a call may name these people."""
    sent = client.send(_LISTS[MEMBERS][1], path=group, fields={"userIds": [*ids]})
    # Some services reject existing members, which would look like a batch that is too large.
    _take_out(client, MEMBERS, group, *ids)
    return sent.accepted


def _limit(takes: Callable[[Sequence[str]], bool], ids: Sequence[str], most: int) -> int:
    """Return how many of the ids a call takes; 0 if it does not take two."""
    if not takes(ids[:2]):
        return 0
    if takes(ids[:most]):
        return most
    return 2 + bisect_left(range(3, most), True, key=lambda number: not takes(ids[:number]))


def _adds(client: TrialClient, key: str, group: Mapping[str, str], person: str, value: Value) -> bool:
    """Return whether a call with that field adds the person to the list."""
    client.send(_LISTS[key][1], path=group, fields={"userIds": [person]}, trying={key: value})
    return person in _people(client, key, group)


def _take_out(client: TrialClient, key: str, group: Mapping[str, str], *people: str) -> None:
    """Take people out of the list, those who are in it."""
    for one in sorted({*people}.intersection(_people(client, key, group))):
        client.send(_LISTS[key][2], path={**group, "userId": one})


def _people(client: TrialClient, key: str, group: Mapping[str, str]) -> list[str]:
    answer = cast("dict[str, Json]", client.reader.get(_LISTS[key][0], path=group))
    return [str(id) for id in cast("list[Json]", answer.get("userIds") or [])]
