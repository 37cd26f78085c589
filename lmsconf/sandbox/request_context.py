"""What a handler gets and gives: a checked request, a desk to work at, a page of a listing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from lmsconf.sandbox.api_refusal import bad_request, not_found
from lmsconf.sandbox.store import Repository, ids_text

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Entry: TypeAlias = "dict[str, Json]"
GROUP: Final = "GROUP"
SMART_GROUP: Final = "SMART_GROUP"
"""The two kinds of groups, as answers call them."""
_INT64: Final = range(-(2**63), 2**63)


@dataclass(frozen=True, slots=True)
class Request:
    """A request that the API description found right: its accessors only say the type that was checked there.

    The body has the description's own names, whatever the dialect calls them on the wire.
    """

    path: Mapping[str, str]
    query: Mapping[str, Json]
    body: Mapping[str, Json]

    def text(self, key: str) -> str:
        """A text of the body that is required."""
        return cast(str, self.body[key])

    def texts(self, key: str) -> list[str]:
        """A list of texts in the body, without repeats; empty where it is left out."""
        return list(dict.fromkeys(cast("list[str]", self.body.get(key, []))))

    def entries(self, key: str) -> list[Mapping[str, Json]]:
        """A list of objects in the body; empty where it is left out."""
        return cast("list[Mapping[str, Json]]", self.body.get(key, []))

    def instant(self, key: str) -> int | None:
        """A date of the body in epoch milliseconds; None where it is left out or null. Refuses one beyond 64 bits."""
        found = cast("int | None", self.body.get(key))
        if found is None:
            return None
        if int(found) not in _INT64:
            raise bad_request(f"{key} is no date: {found}")
        return int(found)

    def asked(self, key: str) -> bool:
        """Whether a query parameter says true."""
        return self.query.get(key) is True

    @property
    def filter(self) -> str:
        """The text that names are searched for; empty for all."""
        return cast(str, self.query.get("filter", ""))


@dataclass(frozen=True, slots=True)
class Page:
    """Which part of a listing is wanted."""

    skip: int
    limit: int


@dataclass(frozen=True, slots=True)
class RequestContext:
    """The open transaction, and how the workspace behaves where the specification leaves that open."""

    ledger: Repository
    behaviour: Callable[[str], str]

    def page(self, request: Request, cap: int | None = None) -> Page:
        """The page that is asked for, cut to the largest that is honoured."""
        limit = cast(int, request.query.get("limit", 100))
        return self.cut(cast(int, request.query.get("skip", 0)), limit if cap is None else min(limit, cap))

    def cut(self, skip: int, limit: int) -> Page:
        """The page from `skip` on, cut to the largest that is honoured."""
        return Page(int(skip), min(int(limit), int(self.behaviour("paging.limit"))))

    def group(self, id: str, kind: str) -> str:
        """The name of a group of that kind. Refuses an unknown one with 404."""
        found = self.ledger.column("SELECT name FROM groups WHERE id = ? AND kind = ?", id, kind)
        if not found:
            raise not_found("group" if kind == GROUP else "smart group", id)
        return found[0]

    def person(self, request: Request) -> str:
        """The id of the person whom the path names. Refuses an unknown one with 404."""
        id = request.path["userId"]
        self.check_person(id)
        return id

    def check_person(self, id: str) -> None:
        """Refuses with 404 an id that no person has."""
        if not self.ledger.number("SELECT count(*) FROM people WHERE id = ?", id):
            raise not_found("user", id)

    def known_people(self, ids: list[str]) -> list[str]:
        """The ids again. Refuses the whole list with 400 when no person has one of them."""
        listed = "SELECT id FROM people WHERE id IN (SELECT value FROM json_each(?))"
        known = set(self.ledger.column(listed, ids_text(ids)))
        unknown = [id for id in ids if id not in known]
        if unknown:
            raise bad_request(f"there is no user {', '.join(map(repr, unknown[:5]))}")
        return ids


Handler: TypeAlias = "Callable[[RequestContext, Request], Json]"
"""Carries out one operation. None: done, and there is nothing to say."""
