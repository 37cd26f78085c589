"""The interface of a handler: a validated request, the context it works in, a page of a listing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from msgspec import Struct

from lmsconf.sandbox.api_refusal import bad_request, not_found
from lmsconf.sandbox.store import Repository, encode_ids

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Entry: TypeAlias = "dict[str, Json]"
GROUP: Final = "GROUP"
SMART_GROUP: Final = "SMART_GROUP"
"""The two kinds of groups, as responses name them."""
_INT64: Final = range(-(2**63), 2**63)


class Request(Struct, frozen=True):
    """A request that matches the API description: the accessors only add the type that was checked there.

    The body has the description's own names, whatever the dialect names them in JSON.
    """

    path: Mapping[str, str]
    query: Mapping[str, Json]
    body: Mapping[str, Json]

    def body_text(self, key: str) -> str:
        """A required text of the body."""
        return cast(str, self.body[key])

    def body_texts(self, key: str) -> list[str]:
        """A list of texts in the body, without duplicates; empty if missing."""
        return list(dict.fromkeys(cast("list[str]", self.body.get(key, []))))

    def body_objects(self, key: str) -> list[Mapping[str, Json]]:
        """A list of objects in the body; empty if missing."""
        return cast("list[Mapping[str, Json]]", self.body.get(key, []))

    def body_instant(self, key: str) -> int | None:
        """A date of the body in epoch milliseconds; None if missing or null. Raises Refusal (400) beyond 64 bits."""
        value = cast("int | None", self.body.get(key))
        if value is None:
            return None
        if int(value) not in _INT64:
            raise bad_request(f"{key} is not a date: {value}")
        return int(value)

    def query_flag(self, key: str) -> bool:
        """Whether a query parameter is true."""
        return self.query.get(key) is True

    @property
    def name_filter(self) -> str:
        """The text that names are searched for; empty for all."""
        return cast(str, self.query.get("filter", ""))


class PageRange(Struct, frozen=True):
    """A range of rows of a listing."""

    skip: int
    limit: int


class RequestContext(Struct, frozen=True):
    """The open transaction, and the workspace's behaviour where the specification leaves it open."""

    repository: Repository
    behaviour: Callable[[str], str]

    def requested_page(self, request: Request, max_size: int | None = None) -> PageRange:
        """The requested page, limited to the largest page size."""
        limit = cast(int, request.query.get("limit", 100))
        return self.capped_page(
            cast(int, request.query.get("skip", 0)), limit if max_size is None else min(limit, max_size)
        )

    def capped_page(self, skip: int, limit: int) -> PageRange:
        """The page from `skip` on, limited to the largest page size."""
        return PageRange(int(skip), min(int(limit), int(self.behaviour("paging.limit"))))

    def require_group(self, id: str, kind: str) -> str:
        """The name of a group of that kind. Raises Refusal (404) for an unknown one."""
        names = self.repository.column("SELECT name FROM groups WHERE id = ? AND kind = ?", id, kind)
        if not names:
            raise not_found("group" if kind == GROUP else "smart group", id)
        return names[0]

    def require_path_person(self, request: Request) -> str:
        """The id of the person in the path. Raises Refusal (404) for an unknown one."""
        id = request.path["userId"]
        self.require_person(id)
        return id

    def require_person(self, id: str) -> None:
        """Raises Refusal (404) for an id without a person."""
        if not self.repository.number("SELECT count(*) FROM people WHERE id = ?", id):
            raise not_found("user", id)

    def require_people(self, ids: list[str]) -> list[str]:
        """Return the ids. Raises Refusal (400) for the whole list if one of them is unknown."""
        listed = "SELECT id FROM people WHERE id IN (SELECT value FROM json_each(?))"
        known = set(self.repository.column(listed, encode_ids(ids)))
        unknown = [id for id in ids if id not in known]
        if unknown:
            raise bad_request(f"there is no user {', '.join(map(repr, unknown[:5]))}")
        return ids


Handler: TypeAlias = "Callable[[RequestContext, Request], Json]"
"""Carries out one operation. None: done, without a response body."""
