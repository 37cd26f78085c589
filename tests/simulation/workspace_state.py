"""What the workspace holds, in names, and words that nothing which is given away may hold."""

import io
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Final, NamedTuple

from lmsconf.cli import report_crash
from lmsconf.cli.output import report_problems
from lmsconf.documents.plan_file import dumps
from lmsconf.errors import Problem
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Plan
from lmsconf.render import APPLY_VIEWS, PLAN_VIEWS
from lmsconf.sandbox.store import Repository

_PEOPLE_OF: Final = """(
    SELECT group_concat(email) FROM (
        SELECT p.email FROM {0} m JOIN people p ON p.id = m.person WHERE m.grp = g.id ORDER BY p.email
    )
)"""
_CONDITIONS: Final = """(
    SELECT group_concat(said, '; ') FROM (
        SELECT coalesce(f.name, '') || ' ' || coalesce(c.system_condition, '') || ' ' || coalesce((
            SELECT group_concat(name) FROM (
                SELECT h.name FROM condition_choices o LEFT JOIN choices h ON h.id = o.choice
                WHERE o.grp = c.grp AND o.position = c.position ORDER BY h.name
            )
        ), '') said FROM conditions c LEFT JOIN fields f ON f.id = c.field WHERE c.grp = g.id ORDER BY said
    )
)"""
_ITEMS: Final = {
    # An optional flag that is absent from an answer equals false, so both are the same here.
    "custom_field": """
        SELECT name, id, type, description, coalesce(hidden, 0), coalesce(locked, 0), coalesce(optional, 0) FROM fields
    """,
    "choice": "SELECT f.name || ' ' || c.name, c.id, c.position FROM choices c JOIN fields f ON f.id = c.field",
    "group": f"""
        SELECT name, id, kind, {_PEOPLE_OF.format("members")}, {_PEOPLE_OF.format("managers")}, {_CONDITIONS}
        FROM groups g
    """,  # noqa: S608  the parts stand above
    "target": """
        SELECT c.name || ' -> ' || t.kind || ' ' || coalesce(g.name, p.email, t.audience), NULL, t.mandatory, t.start,
            t.finish, t.created_at, t.updated_at
        FROM targets t JOIN contents c ON c.id = t.content LEFT JOIN groups g ON g.id = t.audience
            LEFT JOIN people p ON p.id = t.audience
    """,
    "answer": """
        SELECT a.person || ' ' || f.name, NULL, coalesce(h.name, a.text)
        FROM answers a JOIN fields f ON f.id = a.field LEFT JOIN choices h ON h.id = a.choice
    """,
    "person": """
        SELECT email, NULL, id, first_name, last_name, admin, manager, archived_at, custom_archive_at, language,
            json(metadata), applications
        FROM people
    """,
    "content": "SELECT name, NULL, * FROM contents",
}
"""What there is of everything: the name of each thing, its id where that is ours to know, and all else about it."""
_FOREIGN: Final = "Foreign"
_UNTOUCHABLE: Final = ("person", "content")


class Item(NamedTuple):
    """One thing of the workspace: what it is called, and all else about it."""

    kind: str
    name: str
    rest: tuple[object, ...]

    @property
    def is_foreign(self) -> bool:
        return self.kind in _UNTOUCHABLE or _FOREIGN in self.name


Portrait = Counter[Item]


def ids(repository: Repository) -> frozenset[str]:
    """Every id there is by now."""
    return frozenset().union(*(repository.existing_ids(prefix) for prefix in ("f", "ch", "g")))


def portrait(repository: Repository, old: frozenset[str]) -> Portrait:
    """The workspace as it is now. `old`: the ids that are told."""
    found: Portrait = Counter()
    for kind, sql in _ITEMS.items():
        for name, id, *rest in repository.rows(sql):
            item = Item(kind, str(name), (id if id in old or id is None else "new", *rest))
            # When something was made or changed is part of what must not change, where it is not ours.
            found[item if kind != "target" or item.is_foreign else item._replace(rest=item.rest[:4])] += 1
    return found


@dataclass(frozen=True, slots=True)
class Difference:
    """How a workspace differs from the one that should be."""

    lost: tuple[Item, ...] = ()
    duplicated: tuple[Item, ...] = ()
    foreign: tuple[Item, ...] = ()
    extra: tuple[Item, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lost or self.duplicated or self.foreign or self.extra)


def compare(wanted: Portrait, found: Portrait) -> Difference:
    """What is missing, doubled, touched though it is foreign, and there without being wanted."""
    missing, surplus = [*(wanted - found).elements()], [*(found - wanted).elements()]
    known = {(one.kind, one.name) for one in found - Counter(surplus)}
    return Difference(
        lost=tuple(one for one in missing if not one.is_foreign),
        duplicated=tuple(one for one in surplus if not one.is_foreign and (one.kind, one.name) in known),
        foreign=tuple(one for one in (*missing, *surplus) if one.is_foreign),
        extra=tuple(one for one in surplus if not one.is_foreign and (one.kind, one.name) not in known),
    )


# What is there twice, and the person who deletes the one that nobody uses.


_LIVE_TWICE: Final = """
    SELECT kind, name, group_concat(id) FROM (
        SELECT kind, name, id, seq FROM groups UNION ALL SELECT 'FIELD', name, id, seq FROM fields ORDER BY 1, 2, seq
    ) GROUP BY kind, name HAVING count(*) > 1
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
    rows = repository.rows(_LIVE_TWICE)
    return [Duplicate(str(kind), str(name), tuple(str(ids).split(","))) for kind, name, ids in rows]


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


# A token and a pre-signed link that everything which goes wrong repeats, and what must never hold either.


TOKEN: Final = "canary/token+0815=="
LINK: Final = "https://files.example/in?X-Amz-Expires=60&X-Amz-Signature=canary-link-4711"
SAID: Final = f"you sent Bearer {TOKEN} for {LINK}"
"""What is put into every answer and every failure that is not the real one."""
CANARIES: Final = (b"token+0815", b"token%2B0815", b"canary-link-4711")


class RunOutputs:
    """What the runs of one schedule give away, byte for byte. Formats take turns, but for JSON, which holds all."""

    def __init__(self) -> None:
        self._written = io.StringIO()
        self._turns = cycle(name for name in APPLY_VIEWS if name != "json")

    def plan(self, plan: Plan) -> None:
        """A plan as it is saved, and as it is shown."""
        self._written.write(dumps(plan))
        self._written.write(PLAN_VIEWS[next(self._turns)](plan))

    def outcome(self, done: ApplyReport) -> None:
        """What became of a plan, and the problems that it came with."""
        self._written.write(APPLY_VIEWS["json"](done))
        self._written.write(APPLY_VIEWS[next(self._turns)](done))
        self.problems(done.problems)

    def problems(self, found: Sequence[Problem]) -> None:
        """Problems, as a command tells of them."""
        self._heard(lambda: report_problems(found))

    def error(self, error: BaseException) -> None:
        """An error, as a command tells of one that nobody foresaw: with all that led to it."""
        self._heard(lambda: report_crash(type(error), error, error.__traceback__))

    def _heard(self, say: Callable[[], None]) -> None:
        with redirect_stderr(self._written):
            say()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Everything that is logged meanwhile is put down too."""
        root, handler = logging.getLogger(), logging.StreamHandler(self._written)
        level = root.level
        root.addHandler(handler)
        root.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            root.setLevel(level)
            root.removeHandler(handler)

    def leaks(self, folder: Path | None) -> tuple[str, ...]:
        """The canaries in all of it, and in the files of a folder."""
        files = [] if folder is None else [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
        texts = [self._written.getvalue().encode(), *files]
        return tuple(canary.decode() for canary in CANARIES if any(canary in text for text in texts))
