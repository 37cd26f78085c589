"""What the project file decides about planning: whose things are whose, and where to stop. Plain frozen values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta, tzinfo
from typing import Final

from lmsconf.errors import SourceLocation, UsageError
from lmsconf.model.values import Json

GUARDS: Final = ("deletes", "removals", "recreates", "refusals", "answers", "updates")
"""The names of the guards, which are the attributes of Guards, in the order in which they are told."""


UNKNOWN: Final = "unknown"
"""What stands for a total that is not known, in a consent."""
CAN_BE_UNKNOWN: Final = ("answers",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A guard's limit: a total that may be reached, and a share of each list of at least twenty (0.1 is 10 %).

    None: that half of the guard is off.
    """

    count: int | None
    share: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """The limits and the resources that nothing may be taken from. A limit that is None was said to be off.

    min_admins: how many people must have administrator rights after a plan that takes them from somebody.
    """

    deletes: Limit | None = Limit(count=5, share=0.10)
    removals: Limit | None = Limit(count=50, share=0.10)
    recreates: Limit | None = Limit(count=0)
    refusals: Limit | None = Limit(count=0)
    answers: Limit | None = Limit(count=0)
    updates: Limit | None = Limit(count=200, share=0.30)
    protect: tuple[str, ...] = ()
    min_admins: int = 2

    def limit(self, name: str) -> Limit | None:
        """The limit of the guard of that name."""
        found: Limit | None = getattr(self, name)
        return found

    def stricter(self, other: Guards) -> Guards:
        """Of each limit what lets less pass, and all that either protects."""
        limits = {name: _stricter(self.limit(name), other.limit(name)) for name in GUARDS}
        protect = tuple(dict.fromkeys((*self.protect, *other.protect)))
        return replace(self.limited(limits), protect=protect, min_admins=max(self.min_admins, other.min_admins))

    def limited(self, limits: Mapping[str, Limit | None]) -> Guards:
        """The same with these limits, by the names of their guards."""
        return replace(self, **limits)  # type: ignore[arg-type]  # the names are those of limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """`removals=214`, from the command line (`until` and `source` are None) or from the project file.

    number: None consents to a total that is not known: `answers=unknown`.
    """

    guard: str
    number: int | None
    reason: str | None = None
    until: date | None = None
    source: SourceLocation | None = None


def consents(texts: Iterable[str]) -> tuple[Consent, ...]:
    """`removals=214` of a command line as values. Raises UsageError."""
    found = []
    for text in texts:
        guard, _, number = text.partition("=")
        unknown = number == UNKNOWN and guard in CAN_BE_UNKNOWN
        if guard not in GUARDS or not (unknown or (number.isascii() and number.isdigit())):
            raise UsageError(
                f"--allow {text}: that is no guard and number",
                hint=f"Write --allow removals=214; guards are {', '.join(GUARDS)}.",
            )
        found.append(Consent(guard=guard, number=None if unknown else int(number)))
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Everything beside manifests and snapshot that decides a plan.

    workspace     its name, which `id:` maps and `only_in` speak of
    ownership     kind → shell patterns, `!` excludes; for content targets `("declared_content",)` or `("all",)`
    leave_alone   shell patterns over addresses
    timezone      for times that name no offset; `timezone_name` is its IANA name
    skip_unknown  people that are not live are warnings, up to a tenth of a list
    create_people whether people who are declared and not live are created
    today         decides `until:` dates
    ignore        shell patterns over addresses whose differences do not count as drift
    settle        seconds to look for what a lost answer may have made
    valid_for     for how long a plan can be applied
    verifying     plans again what was applied: what `--only` and `--except` name need not be there any more
    command       how lmsconf is called for this project and workspace, for the lines to paste
    compares      how many live resources of a kind, that no manifest speaks of, are compared with creations; None: all
    """

    workspace: str
    today: date
    ownership: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leave_alone: tuple[str, ...] = ()
    guards: Guards = Guards()
    consents: tuple[Consent, ...] = ()
    timezone: tzinfo | None = None
    timezone_name: str | None = None
    skip_unknown: bool = False
    create_people: bool = False
    ignore: tuple[str, ...] = ()
    settle: float = 30.0
    valid_for: timedelta = timedelta(days=7)
    additive: bool = False
    only: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    verifying: bool = False
    command: str = "lmsconf"
    compares: int | None = 200

    def normalised(self) -> dict[str, Json]:
        """What decides plans of this project, normalised: no consents, no dates, and no order where none matters."""
        return {
            "guards": {name: limit_json(self.guards.limit(name)) for name in GUARDS},
            "protect": _patterns(self.guards.protect),
            "ownership": {kind: _patterns(owned) for kind, owned in sorted(self.ownership.items()) if owned},
            "leave_alone": _patterns(self.leave_alone),
            "ignore": _patterns(self.ignore),
            "min_admins": self.guards.min_admins,
            "people": {"unknown": "skip" if self.skip_unknown else "error", "create": self.create_people},
            "settle": self.settle,
        }


def saved_guards(limits: Mapping[str, Mapping[str, Json]], policy: Mapping[str, Json]) -> Guards:
    """What a saved plan was judged by: the limits of its guards, by name, and what its policy protects."""
    found = {name: _saved_limit(limits[name]) if name in limits else None for name in GUARDS}
    protect, least = policy.get("protect"), policy.get("min_admins")
    return replace(
        Guards().limited(found),
        protect=tuple(map(str, protect)) if isinstance(protect, list) else (),
        min_admins=least if isinstance(least, int) else Guards().min_admins,
    )


def _saved_limit(said: Mapping[str, Json]) -> Limit:
    count, share = said.get("count"), said.get("share")
    return Limit(
        count=count if isinstance(count, int) else None, share=float(share) if isinstance(share, int | float) else None
    )


def _stricter(one: Limit | None, other: Limit | None) -> Limit | None:
    """Each half as whichever lets less pass; one that is off lets all pass."""
    if one is None or other is None:
        return one or other
    counts = [limit.count for limit in (one, other) if limit.count is not None]
    shares = [limit.share for limit in (one, other) if limit.share is not None]
    return Limit(count=min(counts, default=None), share=min(shares, default=None))


def limit_json(limit: Limit | None) -> Json:
    """A limit as it stands in documents: `off`, or the halves that are on."""
    if limit is None:
        return "off"
    return {"count": limit.count} if limit.share is None else {"count": limit.count, "share": limit.share}


def _patterns(said: Iterable[str]) -> list[Json]:
    """Shell patterns, of which the order never matters."""
    return [*sorted(set(said))]
