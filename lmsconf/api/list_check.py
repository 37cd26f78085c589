"""Reject a listing without its list: read as empty it would plan the creation of everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from lmsconf.api.spec import Operation
from lmsconf.api.spec.property_names import Schema, dialect_key_of
from lmsconf.errors import InvalidResponse
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import quote_name


def required_list(operation: Operation) -> tuple[str, str]:
    """Return the wire name and the dialect key of a response's one required list; empty if there is none."""
    success = operation.success or {}
    properties = cast("Mapping[str, Schema]", success.get("properties", {}))
    match success.get("required"):
        case [str(name)] if properties[name].get("type") == "array":
            return name, dialect_key_of(properties[name])
    return "", ""


def refuse_missing_list(operation: Operation, response: Json) -> Json:
    """Return the response. Raises InvalidResponse if its list is missing or is not a list."""
    listed, key = required_list(operation)
    if listed and isinstance(response, dict) and not isinstance(response.get(listed), list):
        place = f"{operation.method} {operation.path}"
        raise InvalidResponse(
            f"an answer to {place} is missing its list of {listed}",
            hint=missing_list_hint(listed, key, response),
            operation=operation.id,
        )
    return response


def missing_list_hint(list_name: str, dialect_key: str, response: Json) -> str:
    """Word what is wrong with the list, that nothing is changed because of it, and how to fix it."""
    members = response if isinstance(response, dict) else {}
    lists = [name for name, item in members.items() if isinstance(item, list)]
    wrong = (
        f"{quote_name(list_name)} is not a list"
        if list_name in members
        else f"the key {quote_name(list_name)} is missing"
    )
    match lists:
        case [only]:
            other = f", and there is a list under {quote_name(only)}"
        case _:
            other = ""
    way_out = f"No dialect key names it: the service must write {list_name}, and [] where there are none."
    if dialect_key:
        way_out = f"If the service uses another name, set it under `dialect:` ({dialect_key})."
    return f"In the answer {wrong}{other}. Nothing is created or deleted from such a response. {way_out}"
