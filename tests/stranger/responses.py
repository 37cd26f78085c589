"""What the endpoints of a stranger's service share: how they refuse, what they answer with, pages and ids."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .choices import Choices, Row
from .state import Kept

Query = Mapping[str, list[str]]
Handler = Callable[..., object]
DONE = object()
"""What an endpoint without an answer gives."""


class Refused(Exception):
    """A refusal with its status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Made:
    """An answer that tells of a new thing."""

    def __init__(self, value: Row) -> None:
        self.value = value


def out(choices: Choices, id: str) -> object:
    """An id as it looks in JSON."""
    return int(id) if choices.ids == "number" and id.isdigit() else id


def page(choices: Choices, key: str, rows: list[Row], query: Query, total: str | None) -> Row:
    """One page of a listing."""
    skip, limit = int(query.get("skip", ["0"])[0]), int(query.get("limit", ["100"])[0])
    if limit > choices.page_most:
        raise Refused(400, f"limit must not exceed {choices.page_most}")
    given = rows[skip : skip + min(limit, choices.page_cap)]
    found: Row = {key: given or ([] if choices.no_rows == "empty" else None), "skip": skip, "limit": limit}
    if total and choices.totals != "absent":
        found[total] = {"null": None, "text": str(len(rows))}.get(choices.totals, len(rows))
    return found


def one_of(kept: Kept, id: str) -> dict[str, Any]:
    """The thing with that id. Raises Refused."""
    if id not in kept:
        raise Refused(404, f"unknown id {id}")
    return kept[id]
