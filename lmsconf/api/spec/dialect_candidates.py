"""The dialect keys that operations and calls rely on, and the values that are tried for each.

They are assumed names and behaviours of what lmsconf sends and reads. The candidates of a key are the project's value,
the default, and then names that other services use.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations, product
from typing import Final, TypeAlias, cast

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.operations import load_api_description, with_names
from lmsconf.api.spec.value_encoding import (
    NO_WRAPPER,
    TIME_ZONE,
    WRAPPER,
    PickedChoice,
    answer_value_key,
    answers_in_body,
    clear_answer_key,
    encode_answer,
)
from lmsconf.model.time_formats import parse_response_time

ADD_MODE: Final = "manual-groups.add.mode"
"""Whether a call adds people to a list, or replaces the list."""
WHO_CAN_MANAGE: Final = "manual-groups.who-can-manage"
"""Whether managers of groups need the manager right, or are given it."""
MANAGED_GROUPS: Final = "user-access.make-manager.managed-groups"
"""Whether somebody who loses the manager right keeps managing groups."""
BATCH: Final = "manual-groups.add.batch"
"""How many people one call adds to a list."""
ON_EXISTING: Final = "content-targets.on-existing"
"""What a POST does on an assignment that exists."""
DEFAULT_START: Final = "content-targets.default-start"
"""Which start a new assignment has if none is sent."""
CLEAR_TIME: Final = "content-targets.clear-time"
"""What opens an end of an assignment's window."""
TIME_FORMAT: Final = "content-targets.time-format"
"""How times are written in the body of an assignment."""
CLEAR_DESCRIPTION: Final = "custom-fields.clear-description"
"""What clears the description of a custom field."""
EVERYONE_ID: Final = "content-targets.everyone"
"""The id of the group of all users."""
METADATA_MODE: Final = "users.update-metadata.mode"
"""Whether a call changes the metadata that it names, or replaces all."""
PAGE_SIZE: Final = "paging.limit"
"""How many rows of a listing are asked for at a time."""
_NOT_ASSUMED: Final = frozenset(
    (
        # Optional body fields that manifests never set.
        "manual-groups.create.memberIds",
        "manual-groups.create.managerIds",
        "content-targets.create.purchaseMetadata",
        # What plans take from the live members of smart groups, whatever the dialect says.
        "smart-groups.system-condition.alone",
        "smart-groups.system-condition.with-choices",
    )
)
Body = Mapping[object, object]
"""The body of a request, with canonical names."""


def assumed_keys(spec: ApiSpec, operations: Collection[str]) -> dict[str, list[str]]:
    """Return each dialect key that these operations rely on → those operations, in the order of the API description."""
    named = [operation for operation in spec.operations if operation in operations]
    keys = dict.fromkeys(key for operation in named for key in spec[operation].dialect_keys)
    return {
        key: [operation for operation in named if key in spec[operation].dialect_keys]
        for key in keys
        if key not in _NOT_ASSUMED
    }


def assumed_keys_of_call(
    spec: ApiSpec, operation: str, path: str, body: object, *, finds_nothing: bool
) -> Iterator[str]:
    """Yield the dialect keys that one call relies on: of a name only if its body has it, of a behaviour if it matters.

    body: with wire names. finds_nothing: the list or the assignment that the call is for does not exist before it.
    Where a body does not show whether a behaviour matters, the call relies on it: `""` clears a CHOICE or a TEXT.
    """
    names = load_api_description().names
    canonical = cast("Body", with_names(body, spec[operation].from_request) if isinstance(body, Mapping) else {})
    for key in spec[operation].dialect_keys:
        is_named = key in names and _has_name(body, spec.behaviour(key))
        matters = key not in names and (key not in _MATTERS or _MATTERS[key](spec, path, canonical))
        # What a call does with what it finds: nothing rests on it where there is nothing yet.
        if (is_named or matters) and not (finds_nothing and key in (ADD_MODE, ON_EXISTING)):
            yield key


def _has_name(body: object, name: str) -> bool:
    if isinstance(body, Mapping):
        return name in body or any(_has_name(part, name) for part in body.values())
    return isinstance(body, list | tuple) and any(_has_name(part, name) for part in body)


def _answers_in_form(type: str, spec: ApiSpec, path: str, body: Body) -> bool:
    """Whether an answer has the form of one to a field of that type: types may share a form."""
    behaviour = spec.behaviour
    form = _form(encode_answer(behaviour, type, "x" if type == "TEXT" else [PickedChoice("x", "x")]))
    return any(answer and _form(answer) == form for answer in answers_in_body(behaviour, body).values())


def _form(value: object) -> object:
    if isinstance(value, Mapping):
        return frozenset(value)
    return [_form(part) for part in value[:1]] if isinstance(value, list) else None


def _clears(type: str, spec: ApiSpec, path: str, body: Body) -> bool:
    """Whether an answer is cleared as those to fields of that type are; a body does not show what it leaves out."""
    behaviour = spec.behaviour
    return behaviour(clear_answer_key(type)) == "omit" or any(
        answer == encode_answer(behaviour, type, None) for answer in answers_in_body(behaviour, body).values()
    )


def _names_several(spec: ApiSpec, path: str, body: Body) -> bool:
    people = body.get("userIds")
    return isinstance(people, list) and len(people) > 1


def _has_one_of(names: Sequence[str], spec: ApiSpec, path: str, body: Body) -> bool:
    return any(map(body.get, names))


def _clears_time(spec: ApiSpec, path: str, body: Body) -> bool:
    is_left_out = spec.behaviour(CLEAR_TIME) == "omit"
    return any(name not in body if is_left_out else not body.get(name, True) for name in WINDOW)


_TYPES: Final = ("CHOICE", "MULTI_SELECT", "TEXT")
WINDOW: Final = ("startTime", "finishTime")
WINDOW_KEYS: Final = frozenset(f"content-targets.create.{name}" for name in WINDOW)
"""Keys of the names of an assignment's times."""
_MATTERS: Final[Mapping[str, Callable[[ApiSpec, str, Body], bool]]] = {
    **{answer_value_key(type): partial(_answers_in_form, type) for type in _TYPES},
    **{clear_answer_key(type): partial(_clears, type) for type in _TYPES},
    BATCH: _names_several,
    WHO_CAN_MANAGE: partial(_has_one_of, ("userIds", "managers", "managerIds")),
    CLEAR_DESCRIPTION: lambda spec, path, body: "description" in body and not body["description"],
    EVERYONE_ID: lambda spec, path, body: body.get("targetId") == spec.behaviour(EVERYONE_ID),
    TIME_FORMAT: partial(_has_one_of, WINDOW),
    "content-targets.time-precision": lambda spec, path, body: any(
        parse_response_time(str(body[name])).second for name in WINDOW if body.get(name)
    ),
    TIME_ZONE: lambda spec, path, body: spec.behaviour(TIME_FORMAT) == "iso-local" and any(map(body.get, WINDOW)),
    CLEAR_TIME: _clears_time,
    MANAGED_GROUPS: lambda spec, path, body: path.endswith("/false"),
    # It shows in the result alone, and harms nobody.
    DEFAULT_START: lambda spec, path, body: False,
    PAGE_SIZE: lambda spec, path, body: False,
}
"""Key of a behaviour → whether it matters for a call with that body. A behaviour without an entry always matters."""

Value: TypeAlias = "str | int"
"""The value of a dialect key."""
_PEOPLE: Final = ("userIds", "users", "ids", "userIdList", "user_ids", "userId", "people")
_CANDIDATES: Final[Mapping[str, tuple[Value, ...]]] = {
    BATCH: (50, 25, 10, 5, 2, 1),
    "manual-groups.rename.name": (
        *("name", "newName", "groupName", "title", "displayName", "new_name", "newGroupName"),
        *("group_name", "newTitle", "value", "label"),
    ),
    "manual-groups.add-members.userIds": (
        *_PEOPLE,
        *("memberIds", "members", "member_ids", "groupMembers", "memberUserIds", "userIdsToAdd", "add"),
    ),
    "manual-groups.add-managers.userIds": (
        *_PEOPLE,
        *("managerIds", "managers", "manager_ids", "groupManagers", "managerUserIds", "userIdsToAdd", "add"),
    ),
    "content-targets.create.mandatory": (
        *("mandatory", "isMandatory", "required", "isRequired", "compulsory", "obligatory", "is_mandatory"),
        *("mandatoryAccess", "forced"),
    ),
    "content-targets.create.startTime": (
        *("startTime", "visibleFrom", "startDate", "start", "visibilityStart", "visibilityStartTime", "startsAt"),
        *("startAt", "availableFrom", "validFrom", "from", "fromDate", "start_time", "visible_from", "opensAt"),
    ),
    "content-targets.create.finishTime": (
        *("finishTime", "visibleUntil", "finishDate", "finish", "visibilityEnd", "visibilityFinishTime", "endTime"),
        *("endDate", "end", "endsAt", "endAt", "availableUntil", "availableTo", "validUntil", "validTo", "until"),
        *("visibleTo", "to", "toDate", "finish_time", "end_time", "visible_until", "visibilityEndTime", "closesAt"),
        *("stopTime", "finishAt", "finishesAt", "dueDate"),
    ),
    TIME_FORMAT: ("auto", "iso", "iso-ms", "iso-local", "epoch-ms", "epoch-ms-number"),
    # `empty` before `omit`: leaving it out may open a window, and the empty string would have opened it too.
    CLEAR_TIME: ("null", "empty", "omit"),
    CLEAR_DESCRIPTION: ("empty", "null"),
    "users.create.email": (
        *("email", "emailAddress", "mail", "username", "userName", "userEmail", "login", "e_mail", "email_address"),
    ),
    "users.create.firstName": ("firstName", "givenName", "first_name", "firstname", "forename", "given_name"),
    "users.create.lastName": ("lastName", "familyName", "last_name", "lastname", "surname", "family_name"),
    "users.create.language": ("language", "languageCode", "lang", "locale", "preferredLanguage", "userLanguage"),
    "users.create.sendWelcomeEmail": (
        *("sendWelcomeEmail", "sendEmail", "sendInvitation", "sendInvite", "sendWelcomeMail", "welcomeEmail"),
        *("sendMail", "notify", "notifyUser", "invite", "send_welcome_email"),
    ),
    "users.set-custom-archived-date.date": (
        *("date", "customArchiveDate", "archiveDate", "customArchivedDate", "archivedDate", "archiveAt", "archivedAt"),
        *("timestamp", "time", "archive_date", "custom_archive_date"),
    ),
    WRAPPER: (
        *(NO_WRAPPER, "customFields", "answers", "values", "choices", "customFieldChoices", "selectedChoices"),
        *("customFieldAnswers", "fields"),
    ),
    answer_value_key("CHOICE"): ("id", "list", "object", "object-list", "name", "name-list", "object-id"),
    answer_value_key("MULTI_SELECT"): ("list", "object-list", "list-of-objects", "name-list"),
    answer_value_key("TEXT"): ("text", "object", "value", "list"),
    # `omit` last: it says nothing about the field, so it clears only where leaving an answer out clears it.
    **dict.fromkeys(
        map(clear_answer_key, _TYPES),
        ("empty", "null", "list", "object", "object-null", "omit"),
    ),
}


def alternative_values(key: str) -> tuple[Value, ...]:
    """The candidate values of a key besides the project's and the default; empty if it has no lesson."""
    return _CANDIDATES.get(key, ())


def candidate_values(key: str, current: str) -> list[Value]:
    """The values to try for a key, without duplicates. current: the project's value."""
    return list(dict.fromkeys([current, ApiSpec.default().behaviour(key), *alternative_values(key)]))


def candidate_combinations(keys: Sequence[str], current: Callable[[str], str]) -> Iterator[dict[str, Value]]:
    """Yield every combination of values to try for several keys at once, the likeliest first.

    The first key goes through all its values for each combination of the others. current: the value of a key so far.
    """
    first, *others = ([*enumerate(candidate_values(key, current(key)))] for key in keys)
    for combination in sorted(product(*others), key=lambda one: sum(rank for rank, _ in one)):
        for choice in first:
            yield dict(zip(keys, (value for _, value in (choice, *combination)), strict=True))


def likeliest(key: str, current: str, refusal: str) -> list[Value]:
    """Return the other values of a key: its candidates, or those described; first what a refusal mentions."""
    described = load_api_description().behaviours.get(key, {}).get("values") or ()
    values = alternative_values(key) or cast("Sequence[Value]", described)
    others = (value for value in values if str(value) != current)
    return sorted(others, key=lambda value: not mentions(refusal, str(value)))


def joint_values(keys: Sequence[str], current: Callable[[str], str], refusal: str) -> Iterator[dict[str, Value]]:
    """Yield other values of two keys at once, or six of each of three keys, the likeliest first."""
    ranked = {key: [*enumerate(likeliest(key, current(key), refusal))] for key in keys}
    joint = (
        dict(zip(some, values, strict=True))
        for number in (2, 3)
        for some in combinations(keys, number)
        for values in product(*(ranked[key][: None if number == 2 else 6] for key in some))
    )
    for values in sorted(joint, key=lambda one: (len(one), sum(rank for rank, _ in one.values()))):
        yield {key: value for key, (_, value) in values.items()}


def mentions(text: str, word: str) -> bool:
    """Whether a text has a word."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
