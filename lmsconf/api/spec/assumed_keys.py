"""Which dialect keys operations and calls rely on: assumed names and behaviours of what lmsconf sends and reads."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Final, cast

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.operations import load_api_description
from lmsconf.api.spec.value_encoding import (
    NO_WRAPPER,
    WRAPPER,
    PickedChoice,
    answer_value_key,
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
CLEAR_TIME: Final = "content-targets.clear-time"
"""What opens an end of an assignment's window."""
TIME_FORMAT: Final = "content-targets.time-format"
"""How times are written in the body of an assignment."""
_NEVER_SENT: Final = frozenset(
    (
        "manual-groups.create.memberIds",
        "manual-groups.create.managerIds",
        "content-targets.create.purchaseMetadata",
    )
)
"""Optional body fields that manifests never set."""
_SHOWN_BY_MEMBERS: Final = frozenset(
    ("smart-groups.system-condition.alone", "smart-groups.system-condition.with-choices")
)
"""What plans take from the live members of smart groups, whatever the dialect says."""
_OF_READING: Final = frozenset(("paging.limit",))
_OF_WHAT_IS_THERE: Final = frozenset((ADD_MODE, ON_EXISTING))
"""What a call does with what it finds: nothing rests on it where there is nothing yet."""
Body = Mapping[object, object]
"""The body of a request, with canonical names."""


def assumed_keys(spec: ApiSpec, operations: Collection[str]) -> dict[str, list[str]]:
    """Return each dialect key that these operations rely on → those operations, in the order of the API description."""
    dependents: dict[str, list[str]] = {}
    for operation in spec.operations:
        for key in spec.dialect_keys(operation) if operation in operations else ():
            if key not in _NEVER_SENT | _SHOWN_BY_MEMBERS:
                dependents.setdefault(key, []).append(operation)
    return dependents


def assumed_keys_of_call(
    spec: ApiSpec, operation: str, path: str, body: object, *, finds_nothing: bool
) -> Iterator[str]:
    """Yield the dialect keys that one call relies on: of a name only if its body has it, of a behaviour if it matters.

    body: with wire names. finds_nothing: the list or the assignment that the call is for does not exist before it.
    Where a body does not show whether a behaviour matters, the call relies on it: `""` clears a CHOICE or a TEXT.
    """
    names = load_api_description().names
    canonical = cast("Body", spec[operation].request_names.from_wire(body) if isinstance(body, Mapping) else {})
    for key in spec.dialect_keys(operation):
        if key in names:
            is_relied_on = _has_name(body, spec.behaviour(key))
        elif finds_nothing and key in _OF_WHAT_IS_THERE:
            is_relied_on = False
        elif key == MANAGED_GROUPS:
            is_relied_on = path.endswith("/false")
        else:
            is_relied_on = key not in _OF_READING and (key not in _MATTERS or _MATTERS[key](spec, canonical))
        if is_relied_on:
            yield key


def _has_name(body: object, name: str) -> bool:
    if isinstance(body, Mapping):
        return name in body or any(_has_name(part, name) for part in body.values())
    return isinstance(body, list | tuple) and any(_has_name(part, name) for part in body)


def _answers(spec: ApiSpec, body: Body) -> Collection[object]:
    """Return the values of the answers, whether the body is the map or holds it."""
    wrapper = spec.behaviour(WRAPPER)
    answers = body if wrapper == NO_WRAPPER else body.get(wrapper)
    return answers.values() if isinstance(answers, Mapping) else ()


def _answers_in_form(type: str, spec: ApiSpec, body: Body) -> bool:
    """Whether an answer has the form of one to a field of that type: types may share a form."""
    form = _form(encode_answer(spec.behaviour, type, "x" if type == "TEXT" else [PickedChoice("x", "x")]))
    return any(answer and _form(answer) == form for answer in _answers(spec, body))


def _form(value: object) -> object:
    if isinstance(value, Mapping):
        return frozenset(value)
    return [_form(part) for part in value[:1]] if isinstance(value, list) else None


def _clears(type: str, spec: ApiSpec, body: Body) -> bool:
    """Whether an answer is cleared as those to fields of that type are; a body does not show what it leaves out."""
    return spec.behaviour(clear_answer_key(type)) == "omit" or any(
        answer == encode_answer(spec.behaviour, type, None) for answer in _answers(spec, body)
    )


def _names_several(_: ApiSpec, body: Body) -> bool:
    people = body.get("userIds")
    return isinstance(people, list) and len(people) > 1


def _names_managers(_: ApiSpec, body: Body) -> bool:
    return any(body.get(name) for name in ("userIds", "managers", "managerIds"))


def _clears_description(_: ApiSpec, body: Body) -> bool:
    return "description" in body and not body["description"]


def _is_for_everyone(spec: ApiSpec, body: Body) -> bool:
    return body.get("targetId") == spec.behaviour("content-targets.everyone")


def _has_time(_: ApiSpec, body: Body) -> bool:
    return any(body.get(name) for name in _WINDOW)


def _has_seconds(_: ApiSpec, body: Body) -> bool:
    return any(parse_response_time(str(body[name])).second for name in _WINDOW if body.get(name))


def _clears_time(spec: ApiSpec, body: Body) -> bool:
    if spec.behaviour(CLEAR_TIME) == "omit":
        return any(name not in body for name in _WINDOW)
    return any(name in body and not body[name] for name in _WINDOW)


_TYPES: Final = ("CHOICE", "MULTI_SELECT", "TEXT")
_WINDOW: Final = ("startTime", "finishTime")
_MATTERS: Final[Mapping[str, Callable[[ApiSpec, Body], bool]]] = {
    **{answer_value_key(type): partial(_answers_in_form, type) for type in _TYPES},
    **{clear_answer_key(type): partial(_clears, type) for type in _TYPES},
    BATCH: _names_several,
    WHO_CAN_MANAGE: _names_managers,
    "custom-fields.clear-description": _clears_description,
    "content-targets.everyone": _is_for_everyone,
    TIME_FORMAT: _has_time,
    "content-targets.time-precision": _has_seconds,
    CLEAR_TIME: _clears_time,
}
"""Key of a behaviour → whether it matters for a call with that body. A behaviour without an entry always matters."""
