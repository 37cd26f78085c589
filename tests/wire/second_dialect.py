"""A second dialect in which every assumed key differs: derived from the description, so that a new key is in it too."""

from collections.abc import Mapping
from typing import Final, cast

from lmsconf.api.spec.dialect_candidates import alternative_values
from lmsconf.api.spec.operations import ApiDescription, load_api_description
from lmsconf.api.spec.value_encoding import NEVER_CLEARED, WRAPPER

_SMALL: Final = 3
"""Every count, so that even a handful of rows or people is more than one page or call."""
_BY_HAND: Final[Mapping[str, str]] = {
    # A service that takes and shows ISO is served by the default, `auto`, just as well, so that would be no difference.
    "content-targets.time-format": "epoch-ms",
    # The last that a probe tries, as for names.
    WRAPPER: alternative_values(WRAPPER)[-1],
}


SHOWN_BY_MEMBERS: Final = {"smart-groups.system-condition.alone", "smart-groups.system-condition.with-choices"}
"""Keys that no call rests on, and that no probe learns: plans take them from the live members of smart groups."""
FORBIDDING: Final = {
    *("manual-groups.who-can-manage", "users.list.match-count", "content-targets.time-precision"),
    *("content-targets.time-zone", "content-targets.default-start", *SHOWN_BY_MEMBERS),
}
"""Keys whose other value forbids what many tests do, puts other people into groups, or alone changes nothing.

They have tests of their own.
"""


def known_dialect() -> dict[str, str | int]:
    """Every key as it is assumed: a project that states them knows its service, and tries nothing."""
    known = load_api_description()
    behaviours = {key: cast("str | int", said["default"]) for key, said in known.behaviours.items()}
    return {**behaviours, **known.names}


def second_dialect() -> dict[str, str | int]:
    """Every key with another value than the assumed one."""
    known = load_api_description()
    behaviours = {key: _behaviour(key, said) for key, said in known.behaviours.items() if key not in FORBIDDING}
    return {**behaviours, **{key: _name(key, known) for key in known.names}}


def _behaviour(key: str, said: Mapping[str, object]) -> str | int:
    """The value that is listed after the default, a small number, or a text of its own."""
    if key in _BY_HAND:
        return _BY_HAND[key]
    if said.get("type") == "integer":
        return _SMALL
    default, values = str(said["default"]), cast("list[str] | None", said["values"])
    if values is None:
        return f"{default}-ELSE"
    return values[(values.index(default) + 1) % len(values)]


def _name(key: str, known: ApiDescription) -> str:
    """The last name that a probe tries, so that finding it proves all of them are tried; else one nobody guesses."""
    tried = alternative_values(key)
    if tried:
        return tried[-1]
    name = known.names[key]
    return f"Other-{name}" if key in known.headers else f"other{name[0].upper()}{name[1:]}"


# The values of every key of answers to custom fields, for tests that draw a service.


ANSWERS: Final = "users.update-custom-field-choice"


def answer_dialect_values() -> dict[str, list[str]]:
    """Key → its values; those that a probe tries where any text is allowed. Every answer can be cleared."""
    known = load_api_description().behaviours
    return {
        key: [
            value
            for value in cast("list[str] | None", said["values"]) or alternative_values(key)
            if value != NEVER_CLEARED
        ]
        for key, said in known.items()
        if key.startswith(f"{ANSWERS}.")
    }


def possible(drawn: Mapping[str, str]) -> dict[str, str]:
    """The drawn values as a service can have them: omission clears an answer only where omitted answers are cleared."""
    keeps = drawn[f"{ANSWERS}.omitted"] == "keep"
    return {key: "empty" if value == "omit" and keeps else value for key, value in drawn.items()}
