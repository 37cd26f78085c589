"""What is there twice, and the person who deletes the one that nobody uses."""

from __future__ import annotations

from typing import Final, NamedTuple

from lmsconf.sandbox.store import Repository

_LIVE_TWICE: Final = """
    SELECT kind, name FROM (SELECT kind, name FROM groups UNION ALL SELECT 'FIELD', name FROM fields)
    GROUP BY kind, name HAVING count(*) > 1
"""
_USES_OF_GROUP: Final = """
    SELECT (SELECT count(*) FROM members WHERE grp = ?1) + (SELECT count(*) FROM targets WHERE audience = ?1)
        + (SELECT count(*) FROM managers WHERE grp = ?1)
"""
_USES_OF_FIELD: Final = "SELECT count(*) FROM conditions WHERE field = ?"
_PARTS: Final = {
    "groups": (("members", "grp"), ("managers", "grp"), ("conditions", "grp"), ("condition_choices", "grp")),
    "fields": (("choices", "field"), ("answers", "field")),
}


class Duplicate(NamedTuple):
    """A name that is live more than once, with the ids that have it, in the order in which they came."""

    kind: str
    name: str
    ids: tuple[str, ...]


def twins(repository: Repository) -> list[Duplicate]:
    """Everything that is live more than once."""
    found = []
    for kind, name in repository.pairs(_LIVE_TWICE):
        if kind == "FIELD":
            ids = repository.column("SELECT id FROM fields WHERE name = ? ORDER BY seq", name)
        else:
            ids = repository.column("SELECT id FROM groups WHERE kind = ? AND name = ? ORDER BY seq", kind, name)
        found.append(Duplicate(str(kind), str(name), tuple(ids)))
    return found


def delete_idle(repository: Repository, twin: Duplicate) -> None:
    """Leaves the one that is used most, of equals the oldest."""
    table, uses = ("fields", _USES_OF_FIELD) if twin.kind == "FIELD" else ("groups", _USES_OF_GROUP)
    kept = max(twin.ids, key=lambda id: repository.number(uses, id))
    for id in twin.ids:
        if id != kept:
            repository.execute(f"DELETE FROM {table} WHERE id = ?", id)  # noqa: S608  the names stand above
            for part, column in _PARTS[table]:
                repository.execute(f"DELETE FROM {part} WHERE {column} = ?", id)  # noqa: S608  names of ours, values apart
            repository.execute("DELETE FROM targets WHERE audience = ?", id)
