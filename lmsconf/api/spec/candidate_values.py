"""The values tried for each key: the project's, the default, and then names that other services use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Final, TypeAlias, cast

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.operations import load_api_description
from lmsconf.api.spec.value_encoding import NO_WRAPPER, WRAPPER, answer_value_key, clear_answer_key

_OF_EACH: Final = 6
"""How many values of each key are combined with those of two others."""
_BATCH: Final = "manual-groups.add.batch"
_BATCHES: Final = (50, 25, 10, 5, 2, 1)
Value: TypeAlias = "str | int"
"""The value of a dialect key."""
_PEOPLE: Final = ("userIds", "users", "ids", "userIdList", "user_ids", "userId", "people")
_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
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
    "content-targets.time-format": ("auto", "iso", "iso-ms", "iso-local", "epoch-ms", "epoch-ms-number"),
    # `empty` before `omit`: leaving it out may open a window, and the empty string would have opened it too.
    "content-targets.clear-time": ("null", "empty", "omit"),
    "custom-fields.clear-description": ("empty", "null"),
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
        map(clear_answer_key, ("CHOICE", "MULTI_SELECT", "TEXT")),
        ("empty", "null", "list", "object", "object-null", "omit"),
    ),
}


def other_values(key: str) -> Sequence[Value]:
    """Every value that may be tried for a key: its candidates, or those that the description lists."""
    if key == _BATCH:
        return _BATCHES
    listed = load_api_description().behaviours.get(key, {}).get("values")
    return alternative_values(key) or cast("Sequence[str]", listed or ())


def alternative_values(key: str) -> tuple[str, ...]:
    """The candidate values of a key besides the project's and the default; empty if it has no lesson."""
    return _NAMES.get(key, ())


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
    """Return the other values of a key, first those that the text of a refusal mentions."""
    others = (value for value in other_values(key) if str(value) != current)
    return sorted(others, key=lambda value: not mentions(refusal, str(value)))


def joint_values(keys: Sequence[str], current: Callable[[str], str], refusal: str) -> Iterator[dict[str, Value]]:
    """Yield other values of two or three keys at once, the likeliest first."""
    ranked = {key: [*enumerate(likeliest(key, current(key), refusal))] for key in keys}
    joint = (
        dict(zip(some, values, strict=True))
        for number in (2, 3)
        for some in combinations(keys, number)
        for values in product(*(ranked[key][: None if number == 2 else _OF_EACH] for key in some))
    )
    for values in sorted(joint, key=lambda one: (len(one), sum(rank for rank, _ in one.values()))):
        yield {key: value for key, (_, value) in values.items()}


def mentions(text: str, word: str) -> bool:
    """Whether a text has a word."""
    return re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text) is not None
