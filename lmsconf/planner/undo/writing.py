"""Drafts → manifest entries: ids become the names that their resources have after the undo."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lmsconf.kinds.custom_field.types import parts_of
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_name
from lmsconf.planner.kind import Kind
from lmsconf.planner.undo.claims import NameClaim
from lmsconf.planner.undo.drafts import Draft
from lmsconf.planner.undo.names import map_references, marked_id, plain_id
from lmsconf.planner.undo.times import Body, Times


class NotThere(Exception):
    """An entry refers to a resource that is neither live nor created again."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind}/{name}")


class EntryWriter:
    """Writes names in the place of ids. claims: the names that the undo gives back."""

    def __init__(self, times: Times, claims: Sequence[NameClaim]) -> None:
        self._times = times
        self._given = {(claim.kind.name, claim.row_id): claim.name for claim in claims}
        self._parts: dict[str, str] = {}

    def learn_parts(self, drafts: Sequence[Draft]) -> None:
        """Take over the names that drafts give to the parts of live resources."""
        for draft in drafts:
            listed = draft.body.get(str(draft.kind.parts_key))
            for item in listed if isinstance(listed, list) else ():
                if isinstance(item, dict) and isinstance(item.get("id"), str):
                    self._parts[str(item["id"])] = str(item["name"])

    def name(self, kind: Kind, draft: Draft) -> str:
        """Return the name of a draft's resource: the one that it is to have, or the one it has."""
        if draft.name is not None:
            return draft.name
        return kind.normalize_name(self._times.row_now(kind, draft.id).name)

    def written(self, kind: Kind, body: Mapping[str, Json]) -> Body:
        """Return an entry with names. Raises NotThere."""
        return map_references(kind, body, self._written, self._written_part)

    def shown(self, kind: Kind, body: Mapping[str, Json]) -> Body:
        """Return a value with names for people to read, also of what is not there."""
        return map_references(kind, body, self._shown, self._written_part)

    def _written(self, kind: str, text: str) -> str:
        id = marked_id(text)
        if id is None:
            return text
        name = self._name_of(kind, id)
        if name is None:
            raise NotThere(kind, self._shown(kind, text))
        return name

    def _shown(self, kind: str, text: str) -> str:
        id = marked_id(text)
        if id is None:
            return text
        row = self._times.row_before(self._times.kinds[kind], id)
        return self._name_of(kind, id) or (f"id {plain_id(id)}" if row is None else normalize_name(row.name))

    def _name_of(self, kind: str, id: str) -> str | None:
        given = self._given.get((kind, id))
        row = self._times.row_now(self._times.kinds[kind], id)
        if given is not None or row is None:
            return given
        return self._times.kinds[kind].normalize_name(row.name)

    def _written_part(self, kind: str, owner: str, text: str) -> str:
        id, owner_id = marked_id(text), marked_id(owner)
        if id is None:
            return text
        if id in self._parts:
            return self._parts[id]
        id = plain_id(id)
        names = {part.id: normalize_name(part.name) for part in self._parts_of(kind, owner_id)}
        return names.get(id, id)

    def _parts_of(self, kind: str, owner: str | None) -> Iterator[Any]:
        """Yield the parts of a resource: those of before first, so that those that are live now win."""
        known = self._times.kinds[kind]
        for row in (self._times.row_before(known, owner), self._times.row_now(known, owner)):
            if row is not None:
                yield from parts_of(row)
