"""Group: what the typed methods of each endpoint group stand on.

Callers use the description's own names. Those of the project's dialect come in here, and out again in answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import Final, Literal, TypeAlias, cast

from lmsconf.client.arguments import check_values
from lmsconf.client.client import Client
from lmsconf.core.values import Json
from lmsconf.errors import BadAnswer

ListOf = list
"""`list`, for annotations in classes that have a method of that name."""


class Missing(Enum):
    """The value of an argument that was not given, where None is a value of its own."""

    LEFT_OUT = "left out"


LEFT_OUT: Final = Missing.LEFT_OUT
LeftOut: TypeAlias = Literal[Missing.LEFT_OUT]
Page = Callable[[int, int], Mapping[str, object]]
"""Fetches one page: how many rows to skip, and how many to give → the answer."""


class Group:
    """The operations of one group, over one client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def _ask(
        self,
        operation: str,
        *,
        path: Mapping[str, str | bool] | None = None,
        query: Mapping[str, object] | None = None,
        headers: Mapping[str, str | None] | None = None,
        body: Mapping[str, object] | None = None,
        nullable: Mapping[str, object] | None = None,
    ) -> object:
        """The answer, in the description's own names. What is None is left out, among `nullable` what is LEFT_OUT.

        Raises ValueError for values that are not of the kind that the description says, before anything is sent.
        """
        wire = self._client.wire
        known = wire[operation]
        content: dict[str, object] | None = None
        if known.body is not None:
            content = _given(body)
            content |= {name: value for name, value in (nullable or {}).items() if value is not LEFT_OUT}
        asked, named = _given(query), _given(headers)
        check_values(operation, path=path or {}, query=asked, headers=named, body=content)
        answer = self._client.call(
            operation,
            path={name: _text(value) for name, value in (path or {}).items()},
            query=cast("Mapping[str, Json]", asked),
            body=None if content is None else wire.body(operation, **content),
            headers={known.headers[name]: str(value) for name, value in named.items()},
        )
        return known.heard.from_wire(answer)

    def _map(self, operation: str, answers: Mapping[str, object]) -> Mapping[str, object]:
        """A body that is a map, in the shape that the dialect says. Raises ValueError for what is none."""
        _check_map(operation, answers)
        wrapped = self._client.wire.behaviour(f"{operation}.shape") == "wrapped"
        return {"customFields": dict(answers)} if wrapped else answers

    def _every(self, page: Page, *, rows: str, id: str | None, total: str | None) -> Iterator[object]:
        """Every row of a listing, each id once.

        Raises BadAnswer where the service repeats itself, or where at the end not all rows came that it counts.
        """
        limit = self._client.wire.number("paging.limit")
        seen: set[object] = set()
        skip, last = 0, None
        while True:
            answer = page(skip, limit)
            found = _rows(answer, rows)
            fresh = [row for row in found if id is None or row.get(id) not in seen]
            if found and (not fresh or found == last):
                raise BadAnswer(f"a page of {rows} brought only rows that were there before", hint=_AGAIN)
            yield from fresh
            seen.update(row.get(id) for row in fresh if id is not None)
            # By what came, never by what was asked for: a service may hold its pages smaller.
            skip, last = skip + len(found), found
            counted = answer.get(total) if total else None
            if not found or (id is not None and len(seen) == counted):
                if isinstance(counted, int) and id is not None and len(seen) != counted:
                    raise BadAnswer(f"{len(seen)} {rows} came, and the service counts {counted}", hint=_AGAIN)
                return


_AGAIN = "The workspace may have changed meanwhile: read it again."


def _rows(answer: Mapping[str, object], key: str) -> list[Mapping[str, object]]:
    """The rows of a page. Raises BadAnswer where there are none to be had."""
    found = answer.get(key)
    if not isinstance(found, list) or not all(isinstance(row, dict) for row in found):
        raise BadAnswer(f"a page came without its list of {key}")
    return cast("list[Mapping[str, object]]", found)


def _check_map(operation: str, answers: object) -> None:
    """Refuses what is no map of texts and lists of them. The description allows more: it has to fit every shape."""
    if not isinstance(answers, Mapping):
        raise ValueError(f"{operation} takes a map, not {type(answers).__name__}")
    for key, value in answers.items():
        if not isinstance(key, str):
            raise ValueError(f"{operation} takes only names that are texts")
        if not all(isinstance(one, str) for one in (value if isinstance(value, list) else [value])):
            raise ValueError(f"{operation}: {key} must be string or array of string")


def _given(values: Mapping[str, object] | None) -> dict[str, object]:
    """What is not None."""
    return {name: value for name, value in (values or {}).items() if value is not None}


def _text(value: str | bool) -> str:
    """A path parameter as it stands in a path."""
    return value if isinstance(value, str) else str(value).lower()
