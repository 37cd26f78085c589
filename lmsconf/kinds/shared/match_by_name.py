"""Match declarations with live resources: by pinned id, by name, or by an earlier name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.control_characters import differing_characters
from lmsconf.model.names import casefold_name, confusable_skeleton, grouped, nearest_name, normalize_name, quote_name
from lmsconf.model.snapshot import HasName

L = TypeVar("L", bound=HasName)
Node = TypeVar("Node", int, Address)


def cycles(following: Mapping[Node, Node | None]) -> Iterator[list[Node]]:
    """Yield each cycle of a graph in which a node has at most one successor, in its order, first node first."""
    for start in sorted(following):
        path, last = {start: None}, start
        while (at := following.get(last)) is not None and at not in path:
            path[at], last = None, at
        if at == start and start == min(path):
            yield list(path)


def list_ids(rows: Iterable[HasName]) -> str:
    """Return the ids of rows in one line."""
    return ", ".join(sorted(row.id for row in rows))


def live_twice(name: str, rows: Iterable[HasName]) -> str:
    """Return the message about a name that several live rows have."""
    return f'"{name}" is live more than once, with the ids {list_ids(rows)}'


class Claim(Struct, frozen=True, kw_only=True):
    """The declared identity of a resource or a choice.

    pin: the declared id. previously: earlier names. label: how problems name it. find_source: where it is declared.
    """

    name: str
    pin: RemoteId | None
    previously: tuple[str, ...]
    label: str
    find_source: Callable[[], SourceLocation]
    address: str


class ClaimMatches(Generic[L]):
    """Claims, matched with live rows of the same kind.

    A pinned id takes precedence over the name, and the name over `previously`, which may shift a chain of names by one.
    A creation is an error if the listing is incomplete (`incomplete` says why), or if its name differs from another
    only in case or surrounding blanks; a name that is merely drawn alike is a warning.

    live: the row of each claim, None if it is to be created, or broken. unclaimed: the other rows. broken: the
    positions of claims with an error, which have no match.
    """

    def __init__(
        self, claims: Sequence[Claim], lives: Sequence[L], incomplete: str | None = None, noun: str = "resource"
    ) -> None:
        self.claims, self.lives, self.incomplete, self.noun = claims, lives, incomplete, noun
        self.by_name = grouped(lives, lambda live: normalize_name(live.name))
        self.taken: dict[RemoteId, int] = {}
        self.match: dict[int, L] = {}
        self.broken: set[int] = set()
        self.problems: list[Problem] = []
        self._pinned()
        self._named()
        self._circles()
        self._moved()
        self._created()
        self.live = [None if i in self.broken else self.match.get(i) for i in range(len(claims))]
        self.unclaimed = [live for live in lives if live.id not in self.taken]

    def _problem(
        self, index: int, code: str, message: str, hint: str | None, severity: Severity = Severity.ERROR
    ) -> None:
        claim = self.claims[index]
        self.problems.append(
            Problem(
                code=code,
                message=f"{claim.label}: {message}",
                hint=hint,
                severity=severity,
                source=claim.find_source(),
                address=claim.address,
            )
        )
        if severity is Severity.ERROR:
            self.broken.add(index)

    def _take(self, index: int, live: L) -> None:
        self.taken[live.id] = index
        self.match[index] = live

    def _pinned(self) -> None:
        by_id: dict[RemoteId | None, L] = {live.id: live for live in self.lives}
        for index, claim in [(index, one) for index, one in enumerate(self.claims) if one.pin is not None]:
            live = by_id.get(claim.pin)
            if live is None:
                others = ", ".join(other.id for other in self.by_name.get(claim.name, []))
                self._problem(
                    index,
                    "identity/pin-not-live",
                    f'no {self.noun} with the id "{claim.pin}" is live',
                    f'"{claim.name}" is live with the id {others}.' if others else "Correct the id, or remove it.",
                )
            elif live.id in self.taken:
                other = self.claims[self.taken[live.id]]
                self._problem(
                    index,
                    "identity/pinned-twice",
                    f'the id "{claim.pin}" is pinned by {other.label} already',
                    f"See {other.find_source()}. Correct one of the two ids.",
                )
            else:
                self._take(index, live)

    def _free(self, name: str) -> list[L]:
        """Return the live rows of that name that no pin has claimed."""
        return [
            live
            for live in self.by_name.get(name, [])
            if live.id not in self.taken or self.claims[self.taken[live.id]].pin is None
        ]

    def _named(self) -> None:
        for index, claim in enumerate(self.claims):
            lives = self._free(claim.name) if claim.pin is None else []
            if len(lives) > 1:
                self._twice(index, claim.name, lives)
            elif lives:
                self._take(index, lives[0])

    def _twice(self, index: int, name: str, lives: Iterable[L]) -> None:
        self._problem(index, "identity/live-twice", live_twice(name, lives), "Select one with `id:`.")

    def _circles(self) -> None:
        """Reject cycles of earlier names: swapped names look the same before and after, so only ids tell them apart."""
        named = {self.claims[index].name: index for index in self.match if self.claims[index].pin is None}
        following = {
            index: next(
                (named[old] for old in self.claims[index].previously if named.get(old, index) != index),
                None,
            )
            for index in named.values()
        }
        for path in cycles(following):
            pairs = zip(path, (*path[1:], path[0]), strict=True)
            ids = ", ".join(f"{self.claims[i].label} `id: {quote_name(self.match[to].id)}`" for i, to in pairs)
            for index in path:
                self._problem(
                    index,
                    "identity/circle",
                    "the names under `previously` form a cycle and are all live",
                    f"To swap them, pin the ids instead: {ids}. If they are swapped already, remove `previously`.",
                )

    def _moved(self) -> None:
        for index, claim in enumerate(self.claims):
            # A listing that may lack the new name does not show that a resource still has its earlier one.
            if self.incomplete is None and claim.pin is None and index not in self.match and index not in self.broken:
                self._move(index, set())
        for index, claim in enumerate(self.claims):
            if claim.previously and self._goes_by_its_name(index):
                others = [live for old in claim.previously for live in self.by_name.get(old, [])]
                other = next((live.name for live in others if live.id not in self.taken), None)
                self._problem(
                    index,
                    "identity/previously-done",
                    "there is nothing to rename" if other is None else f'"{other}" is live too, so nothing is renamed',
                    "Remove `previously`.",
                    Severity.NOTE,
                )

    def _goes_by_its_name(self, index: int) -> bool:
        """Whether the matched live row already has the declared name."""
        live = self.match.get(index)
        return live is not None and normalize_name(live.name) == self.claims[index].name and index not in self.broken

    def _move(self, index: int, visited: set[int]) -> bool:
        """Match a claim with a live row of an earlier name, rematching the claim that holds it where possible."""
        visited.add(index)
        for old, lives in [(old, free) for old in self.claims[index].previously if (free := self._free(old))]:
            if len(lives) > 1:
                self._twice(index, old, lives)
                return False
            holder = self.taken.get(lives[0].id)
            # One that goes by its present name may move on to an earlier name of its own.
            if holder is None or (
                holder not in visited and self._goes_by_its_name(holder) and self._move(holder, visited)
            ):
                self._take(index, lives[0])
                return True
            if self.claims[holder].name != old:
                self._problem(
                    index,
                    "identity/previously-twice",
                    f'"{old}" becomes {self.claims[holder].label} already',
                    f"See {self.claims[holder].find_source()}. Keep the earlier name at one of the two.",
                )
        return False

    def _created(self) -> None:
        new = [i for i in range(len(self.claims)) if i not in self.match and i not in self.broken]
        if self.incomplete is not None:
            for index in new:
                self._problem(
                    index,
                    "read/incomplete",
                    "it is not known whether it exists, because the listing was not read completely: "
                    f"{self.incomplete}",
                    "Nothing is created from an incomplete list. Plan again once it can be read.",
                )
            return
        free = [live.name for live in self.lives if new and live.id not in self.taken]
        names = [*free, *(claim.name for claim in self.claims if new)]
        looks, skeletons = grouped(names, casefold_name), grouped(names, confusable_skeleton)
        for index in new:
            name = self.claims[index].name
            self._warn_of_previously(index, free)
            alike = [*looks[casefold_name(name)], *skeletons[confusable_skeleton(name)]]
            other = next((one for one in alike if normalize_name(one) != name), None)
            if other is not None:
                self._looks_like(index, other)

    def _warn_of_previously(self, index: int, free: Sequence[str]) -> None:
        """Warn of earlier names that are not live: misspelt, or the resource was renamed or deleted by hand since."""
        claim = self.claims[index]
        if claim.previously and self.by_name.keys().isdisjoint(claim.previously):
            named = ", ".join(f'"{old}"' for old in claim.previously)
            near = next((close for old in (*claim.previously, claim.name) if (close := nearest_name(old, free))), None)
            self._problem(
                index,
                "identity/previously-not-live",
                f"`previously` names {named}, which is not live; it would be created",
                f"The nearest live name is {quote_name(near)}." if near else "Correct `previously`, or delete it.",
                Severity.WARNING,
            )

    def _looks_like(self, index: int, other: str) -> None:
        """Report a name to be created that differs from another in case or blanks, or warn that it is drawn alike."""
        name, rename = self.claims[index].name, f"rename it with `previously: [{quote_name(other)}]`"
        if casefold_name(name) == casefold_name(other):
            self._problem(
                index,
                "name/look-alike",
                f'would be created, but looks like "{other}"',
                f"Write the exact name, {rename}, or pin it with `id:`.",
            )
        else:
            by = differing_characters(name, other) or "blanks"
            self._problem(
                index,
                "name/confusable",
                f'would be created, and it looks the same as "{other}"',
                f"They differ by {by}. If they are the same, write {quote_name(other)}, or {rename}.",
                Severity.WARNING,
            )
