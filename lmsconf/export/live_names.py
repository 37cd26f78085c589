"""Names of live resources and people as manifests use them, and which cannot be named."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from lmsconf.kinds.shared.names import CONTENT, CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP
from lmsconf.kinds.user.directory import Directory, directory
from lmsconf.manifest.edit.yaml_text import is_sayable
from lmsconf.model.address import Address
from lmsconf.model.names import email, look, normal
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import HasName, Snapshot
from lmsconf.model.values import DeleteEntry, DesiredResource, Json
from lmsconf.planner.context import PlanContext, Terms
from lmsconf.planner.kind import AnyKind
from lmsconf.planner.plan import Manifests

_NAMED: Final = (CUSTOM_FIELD, GROUP, SMART_GROUP, CONTENT)


@dataclass(frozen=True, slots=True)
class PeopleSaid:
    """A list of people in manifest form; `said` is None if none can be named. notes: who was left out."""

    said: Json
    notes: tuple[str, ...]


class LiveNames:
    """A live workspace. `planning` resolves its names and people, with nothing declared."""

    def __init__(self, snapshot: Snapshot, kinds: Mapping[str, AnyKind], policy: Policy, terms: Terms) -> None:
        plain = Policy(workspace=policy.workspace, today=policy.today, timezone=policy.timezone)
        self.planning = PlanContext(snapshot, plain, terms, lambda _: True)
        self.snapshot, self.timezone = snapshot, policy.timezone
        self.owns_assignments = bool(policy.ownership.get(CONTENT_TARGET))
        for each in kinds.values():
            each.match(self.planning, (), ())
        self._looks = {kind: Counter(look(row.name) for row in self.rows(kind)) for kind in _NAMED}
        self._names = {kind: Counter(normal(row.name) for row in self.rows(kind)) for kind in _NAMED}
        self._first: dict[tuple[str, str], str] = {}
        for kind in _NAMED:
            for row in self.rows(kind):
                self._first.setdefault((kind, normal(row.name)), row.id)

    def rows(self, kind: str) -> tuple[HasName, ...]:
        """Return the live rows of a kind, by id."""
        return self.snapshot.of(kind).rows

    @property
    def directory(self) -> Directory:
        return directory(self.planning)

    def is_first(self, kind: str, row: HasName) -> bool:
        """Whether the name of a row resolves to it: of several rows with one name, only to the first."""
        return self._first[kind, normal(row.name)] == row.id

    def needs_id(self, kind: str, row: HasName) -> bool:
        """Whether another row of the kind has the same name, or one that looks the same to a reader."""
        return self._looks[kind][look(row.name)] > 1

    def is_twice(self, kind: str, row: HasName) -> bool:
        """Whether another row of the kind has exactly the same name."""
        return self._names[kind][normal(row.name)] > 1

    def email(self, id: str, *, archived: bool = False) -> str | None:
        """Return the e-mail that identifies a person; None without a unique one, or if archived unless `archived`."""
        key = self.directory.emails.get(id)
        if key is None or (key in self.directory.archived and not archived):
            return None
        return spelt(self.directory.by_email[key].email)

    def people(self, ids: Iterable[str], noun: str) -> PeopleSaid:
        """Return a live list in manifest form: complete, or as `include` if an active person cannot be named."""
        named: list[Json] = []
        left: Counter[str] = Counter()
        partly = False
        for id in ids:
            if (one := self.email(id)) is not None:
                named.append(one)
            else:
                left[why := self._why_not(id)] += 1
                partly = partly or why == _NO_EMAIL
        people: Json = sorted(named, key=str)
        said = ({"include": people} if named else None) if partly else people
        notes = tuple(f"{number} {noun if number == 1 else noun + 's'} left out: {why}" for why, number in left.items())
        return PeopleSaid(said, notes)

    def _why_not(self, id: str) -> str:
        if id not in self.directory.ids:
            return "no list of people shows whose id it is"
        if id not in self.directory.emails:
            return "more than one person has the e-mail"
        return "archived" if self.directory.emails[id] in self.directory.archived else _NO_EMAIL


_NO_EMAIL: Final = "no e-mail that a manifest can hold"


def spelt(said: str) -> str | None:
    """Normalize an e-mail to its spelling in manifests, in lower case; None if it is not a valid one."""
    small = normal(said.strip()).lower()
    small = small if email(small) == email(said) else email(said)
    before, at, after = small.partition("@")
    is_one = before and at and after and "@" not in after and not any(char.isspace() for char in small)
    return small if is_one and is_sayable(small) else None


@dataclass(frozen=True, slots=True)
class Spoken:
    """What existing manifests declare or delete.

    ids: of live rows by kind. here: addresses for this workspace. elsewhere: addresses only for other workspaces.
    """

    ids: Mapping[str, frozenset[str]]
    here: frozenset[Address]
    elsewhere: frozenset[Address]


def spoken_of(
    existing: Manifests, snapshot: Snapshot, kinds: Mapping[str, AnyKind], policy: Policy, terms: Terms
) -> Spoken:
    """Return the live rows that manifests declare or delete, under whatever name.

    Rows that are deleted together with those are included.
    """
    # Without ownership: rows that are owned but not declared are to be exported.
    planning = PlanContext(snapshot, replace(policy, ownership={}), terms, lambda _: True)
    here = [one for one in existing.declared if _is_here(one, policy)]
    gone = [one for one in existing.absent if _is_here(one, policy)]
    ids: defaultdict[str, set[str]] = defaultdict(set)
    for name, kind in kinds.items():
        mine = [one for one in here if one.address.kind == name]
        away = [one for one in gone if one.address.kind == name]
        found = kind.match(planning, mine, away)
        ids[name].update(match.row.id for match in found.matches if match.row is not None)
        ids[name].update(one.row.id for one in found.gone if one.absent is not None or one.with_ is not None)
    said = frozenset([one.address for one in here] + [one.address for one in gone])
    every = [one.address for one in existing.declared] + [one.address for one in existing.absent]
    others = frozenset(every) - said
    return Spoken({kind: frozenset(found) for kind, found in ids.items()}, said, others)


def _is_here(one: DesiredResource[Any] | DeleteEntry[Any], policy: Policy) -> bool:
    return one.applies_in(policy.workspace)
