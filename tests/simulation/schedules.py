"""Which request meets which mishap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final, Protocol

from .request_faults import KINDS, RequestFault

_IN_STORMS: Final = sorted(KINDS)


@dataclass(frozen=True, slots=True)
class Place:
    """A request among all of a schedule: `write` counts those that write, from 1; None for one that reads."""

    write: int | None
    what: str


class Script(Protocol):
    """What strikes a request, if anything does."""

    def strike(self, place: Place) -> RequestFault | None: ...


class Calm:
    """Nothing goes wrong."""

    def strike(self, place: Place) -> RequestFault | None:
        return None


@dataclass(frozen=True, slots=True)
class ScriptedFaults:
    """Mishaps by the number of the write that they strike."""

    at: Mapping[int, RequestFault]

    def strike(self, place: Place) -> RequestFault | None:
        return None if place.write is None else self.at.get(place.write)


@dataclass(slots=True)
class Storm:
    """Every request may be struck, by anything. The dice know only the request itself and how often it was made.

    So the order in which reads are sent side by side decides nothing, and the same seed gives the same storm.
    """

    seed: int
    chance: float
    _seen: Counter[str] = field(default_factory=Counter)

    def strike(self, place: Place) -> RequestFault | None:
        self._seen[place.what] += 1
        dice = Random(f"{self.seed} {self._seen[place.what]} {place.what}")  # noqa: S311  weather is no secret
        if dice.random() >= self.chance:
            return None
        return dice.choice(KINDS[dice.choice(_IN_STORMS)])
