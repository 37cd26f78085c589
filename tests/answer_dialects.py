"""The values of every key of answers to custom fields, for tests that draw a service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from lmsconf.api.spec.assumed_keys import alternative_values
from lmsconf.api.spec.operations import load_api_description
from lmsconf.api.spec.value_encoding import NEVER_CLEARED

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
