"""Reject a listing without its list: read as empty it would plan the creation of everything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from lmsconf.api.spec import Operation
from lmsconf.api.spec.names import Schema, key_of
from lmsconf.errors import BadAnswer
from lmsconf.model.names import quote_name
from lmsconf.model.values import Json


def list_of(operation: Operation) -> tuple[str, str]:
    """Return the wire name and the dialect key of a response's one required list; empty if there is none."""
    success = operation.success or {}
    needed = cast("list[str]", success.get("required", []))
    properties = cast("Mapping[str, Schema]", success.get("properties", {}))
    if len(needed) != 1 or properties[needed[0]].get("type") != "array":
        return "", ""
    return needed[0], key_of(properties[needed[0]])


def with_its_list(operation: Operation, answer: Json) -> Json:
    """Return the response. Raises BadAnswer if its list is missing or is not a list."""
    listed, key = list_of(operation)
    if listed and isinstance(answer, dict) and not isinstance(answer.get(listed), list):
        place = f"{operation.method} {operation.path}"
        raise BadAnswer(
            f"an answer to {place} came without its list of {listed}",
            hint=list_hint(listed, key, answer),
            operation=operation.id,
        )
    return answer


def list_hint(listed: str, key: str, answer: Json) -> str:
    """Word what is wrong with the list, that nothing is changed because of it, and how to fix it."""
    members = answer if isinstance(answer, dict) else {}
    lists = [name for name, item in members.items() if isinstance(item, list)]
    wrong = f"{quote_name(listed)} is no list" if listed in members else f"the key {quote_name(listed)} is missing"
    other = f", and there is a list under {quote_name(lists[0])}" if len(lists) == 1 else ""
    way_out = f"No dialect key names it: the service must write {listed}, and [] where there are none."
    if key:
        way_out = f"If the service calls it otherwise, say so under `dialect:` ({key})."
    return f"In the answer {wrong}{other}. Nothing is created or deleted on such an answer. {way_out}"
