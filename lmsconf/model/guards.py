"""Settings that decide a plan: ownership, guards and their limits, consents; and how two of them differ.

A setting is weaker than another if it stops, keeps or asks for less.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, timedelta, tzinfo
from math import inf
from operator import gt, lt
from typing import Any, Final, Literal, cast

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import replace

from lmsconf.errors import SourceLocation, UsageError
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.lint_codes import PREFIX, RULES, LintLevel
from lmsconf.model.names import did_you_mean
from lmsconf.model.plan import SettingChange

SMALL: Final = 20
"""Lists shorter than this have no share limit: there, a few items are a large share."""
UNKNOWN: Final = "unknown"
"""The number of a consent to an unknown total: `answers=unknown`."""


class GuardLimit(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A guard's limit: the highest allowed total, and share of each list of at least twenty (0.1 is 10 %).

    None: that half of the guard is off.
    """

    count: int | None
    share: float | None = None


class Guard(Struct, frozen=True, kw_only=True):
    """One guard: its limit where no project file sets one, and its sentences.

    meaning     what its problem code means, up to the consent
    listed_by   codes of the problems that list what it counted
    counted     a total in words
    unknown     a total that is not known, in words; None: it is always known
    share       a share in words; `more_than_all`: if more are taken than there are
    replanned   how its total in a re-plan must compare with that of a saved plan
    takes       whether what is left of a plan after a run may count no more than the plan
    """

    limit: GuardLimit
    meaning: str
    listed_by: tuple[str, ...] = ()
    counted: str = "{total:,} {noun}"
    unknown: str | None = None
    share: str = "{total:,} of {size:,} in {of}"
    more_than_all: str | None = None
    replanned: Literal["same", "no more"] | None = None
    takes: bool = False


GUARD_TABLE: Final[Mapping[str, Guard]] = {
    "deletes": Guard(
        limit=GuardLimit(count=5, share=0.10),
        meaning="The plan deletes more resources than the guard allows. Review them, then",
        replanned="same",
        takes=True,
    ),
    "removals": Guard(
        limit=GuardLimit(count=50, share=0.10),
        meaning="The plan removes more members, managers, choices, conditions or assignments than the guard "
        "allows. Review them, then",
        replanned="same",
        takes=True,
    ),
    "recreates": Guard(
        limit=GuardLimit(count=0),
        meaning="The plan may delete and create what is a rename. Declare `previously:`, or",
        listed_by=("guard/possible-rename",),
        # Resources that no manifest declares are not compared again.
        replanned="no more",
    ),
    "refusals": Guard(
        limit=GuardLimit(count=0),
        meaning="The plan has calls that the service may refuse. Review them, then",
        listed_by=("refusal/in-use",),
    ),
    "answers": Guard(
        limit=GuardLimit(count=0),
        meaning="The plan deletes the answers of more people than the guard allows. Review them, then",
        listed_by=("custom-field/answers-lost", "custom-field/answers-unknown"),
        counted="the answers of {people}",
        unknown="the answers of an unknown number of people",
        replanned="same",
        takes=True,
    ),
    "updates": Guard(
        limit=GuardLimit(count=200, share=0.30),
        meaning="The plan changes more resources than the guard allows. Review them, then",
        # A creation that was begun counts as an update, so what is left after a run may count more.
        replanned="same",
    ),
    "people": Guard(
        limit=GuardLimit(count=20, share=0.10),
        meaning="More people lose content, or a part of its window, than the guard allows. Review them, then",
        counted="{people} {lose} content or a part of its window",
        unknown="the number of people who lose content is not known",
        share="{total:,} of the {all_people} who have {of} {lose} it",
    ),
    "mandatory": Guard(
        limit=GuardLimit(count=500, share=0.50),
        meaning="Content becomes mandatory for more people than the guard allows. Review them, then",
        counted="content becomes mandatory for {people}",
        unknown="the number of people who get mandatory content is not known",
        share="content becomes mandatory for {total:,} of {size:,} active people",
        more_than_all="content becomes mandatory for {people}, new accounts among them; {size:,} are active",
    ),
}
"""The guards by name, in the order in which they are shown."""
GUARDS: Final = tuple(GUARD_TABLE)
DEFAULTS: Final[Mapping[str, Json]] = {
    "manifests": "manifests",
    "people.unknown": "error",
    "people.create": False,
    **{f"guards.{name}": cast(Json, to_builtins(guard.limit)) for name, guard in GUARD_TABLE.items()},
    "guards.min_admins": 2,
    **{code: rule.level.value for code, rule in RULES.items()},
    "ignore": [],
    "settle": 30.0,
    "plans.valid_for": 7 * 86_400.0,
    "runs.keep": 50,
    "lock": False,
    "lock.lease": 15 * 60.0,
    "waves": [],
    "max_failures": 0,
}
"""Path → default of each setting of the project file, as `schemas/project.schema.json` says it; durations in seconds.

settle: how long to look for the effect of a write whose response was lost. plans.valid_for: how long a plan can be
applied. lock.lease: how long a lock holds without being renewed.
"""


class GuardLimits(Struct, frozen=True, kw_only=True):
    """The limits of all guards by name (None: turned off), and the resources to take nothing from.

    protect: the lists of patterns, each with its own exclusions: what any of them covers is protected.
    min_admins: how many administrators must remain after a plan that revokes administrator rights.
    """

    limits: Mapping[str, GuardLimit | None] = field(
        default_factory=lambda: {name: guard.limit for name, guard in GUARD_TABLE.items()}
    )
    protect: tuple[tuple[str, ...], ...] = ()
    min_admins: int = cast(int, DEFAULTS["guards.min_admins"])

    def stricter(self, other: GuardLimits) -> GuardLimits:
        """Return the stricter of each pair of limits, with everything that either protects."""
        return GuardLimits(
            limits={name: stricter_limit(self.limits[name], other.limits[name]) for name in GUARDS},
            protect=tuple(dict.fromkeys((*self.protect, *other.protect))),
            min_admins=max(self.min_admins, other.min_admins),
        )

    def with_limits(self, limits: Mapping[str, GuardLimit | None]) -> GuardLimits:
        """Return a copy with these limits, by guard name."""
        return replace(self, limits={**self.limits, **limits})


class Consent(Struct, frozen=True, kw_only=True):
    """Consent to a tripped guard, `removals=214`: of the command line (`until` and `source` are None) or project file.

    number: the exact total; None for an unknown one, `answers=unknown`.
    """

    guard: str
    number: int | None
    reason: str | None = None
    until: date | None = None
    source: SourceLocation | None = None


def parse_consents(texts: Iterable[str]) -> tuple[Consent, ...]:
    """Parse values of `--allow`, such as `removals=214`. Raises UsageError."""
    parsed = []
    for text in texts:
        guard, _, number = text.partition("=")
        if guard not in GUARDS:
            hint = did_you_mean(guard, GUARDS) or f"Guards are {', '.join(GUARDS)}."
            raise UsageError(f'--allow {text}: there is no guard "{guard}"', hint=hint)
        unknown = number == UNKNOWN and GUARD_TABLE[guard].unknown is not None
        if not (unknown or (number.isascii() and number.isdigit())):
            raise UsageError(
                f"--allow {text}: expected GUARD=N",
                hint=f"Write --allow {guard}=N with the number that the plan shows.",
            )
        parsed.append(Consent(guard=guard, number=None if unknown else int(number)))
    return tuple(parsed)


class Policy(Struct, frozen=True, kw_only=True):
    """Everything besides manifests and snapshot that decides a plan.

    workspace     its name, as used in `id:` maps and `only_in`
    ownership     kind → shell patterns, `!` excludes; for content targets `("declared_content",)` or `("all",)`
    leave_alone   shell patterns of addresses that are left unmanaged, owned or not
    timezone      for times without an offset; `timezone_name` is its IANA name
    skip_unknown  people who are not live give warnings instead of errors, up to a tenth of a list
    create_people whether declared people who are not live are created
    today         the date that `until:` is compared with
    ignore        shell patterns of addresses whose differences do not count as drift
    settle        seconds to look for the effect of a write whose response was lost
    valid_for     how long a plan can be applied
    verifying     whether this re-plans what was applied: `--only` and `--except` may then match nothing
    command       the lmsconf command for this project and workspace, for lines to paste
    compares      how many undeclared live resources of a kind are compared with creations; None: all
    effects       whether the effects of the plan on people are computed
    people        whether the effects name the people
    lints         code → level, where the project file sets one that holds today
    pace          requests a second, at most; None: as many as the service accepts
    """

    workspace: str
    today: date
    ownership: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    leave_alone: tuple[str, ...] = ()
    guards: GuardLimits = GuardLimits()
    consents: tuple[Consent, ...] = ()
    timezone: tzinfo | None = None
    timezone_name: str | None = None
    skip_unknown: bool = False
    create_people: bool = False
    ignore: tuple[str, ...] = ()
    settle: float = cast(float, DEFAULTS["settle"])
    valid_for: timedelta = timedelta(seconds=cast(float, DEFAULTS["plans.valid_for"]))
    additive: bool = False
    only: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    verifying: bool = False
    command: str = "lmsconf"
    compares: int | None = 200
    effects: bool = True
    people: bool = False
    lints: Mapping[str, LintLevel] = field(default_factory=dict)
    pace: float | None = None

    def settings_json(self) -> dict[str, Json]:
        """Return the settings that decide plans, as JSON: no consents or dates, and unordered lists sorted."""
        return {
            "guards": {name: limit_to_json(self.guards.limits[name]) for name in GUARDS},
            "protect": _patterns(pattern for listed in self.guards.protect for pattern in listed),
            "ownership": {kind: _patterns(owned) for kind, owned in sorted(self.ownership.items()) if owned},
            "leave_alone": _patterns(self.leave_alone),
            "ignore": _patterns(self.ignore),
            "min_admins": self.guards.min_admins,
            "people": {"unknown": "skip" if self.skip_unknown else "error", "create": self.create_people},
            "settle": self.settle,
            **({"lint": {code: level.value for code, level in sorted(self.lints.items())}} if self.lints else {}),
        }


def saved_guard_limits(limits: Mapping[str, Mapping[str, Json]], policy: Mapping[str, Json]) -> GuardLimits:
    """Return the guards that a saved plan was evaluated with, from its limits by guard name and its policy."""
    protect, least = policy.get("protect"), policy.get("min_admins")
    return GuardLimits(
        limits={name: convert(limits[name], GuardLimit) if name in limits else None for name in GUARDS},
        protect=(tuple(map(str, protect)),) if isinstance(protect, list) and protect else (),
        min_admins=least if isinstance(least, int) else GuardLimits().min_admins,
    )


def stricter_limit(first: GuardLimit | None, second: GuardLimit | None) -> GuardLimit | None:
    """Return the lower of each half of two limits; a half that is off does not limit."""
    if first is None or second is None:
        return first or second
    return GuardLimit(
        count=min((limit.count for limit in (first, second) if limit.count is not None), default=None),
        share=min((limit.share for limit in (first, second) if limit.share is not None), default=None),
    )


def limit_to_json(limit: GuardLimit | None) -> Json:
    """Return a limit as JSON: `off`, or an object with `count` and, unless it is off, `share`."""
    return "off" if limit is None else cast(Json, to_builtins(limit))


def _patterns(patterns: Iterable[str]) -> list[Json]:
    """Sort shell patterns, whose order does not matter, and drop duplicates."""
    return [*sorted(set(patterns))]


IN_USE: Final = "dialect.custom-fields.in-use"
_REFUSES_LESS: Final = {"removed-choice": 1, "never": 2}
"""What counts as a field in use → how much less it lets a plan refuse than `condition`, the default."""


def diff_settings(base: Mapping[str, Json], now: Mapping[str, Json]) -> Iterator[SettingChange]:
    """Yield each setting that differs, by path; a side that lacks it is None."""
    for path in sorted({*base, *now}):
        before, after = base.get(path), now.get(path)
        if before != after:
            yield SettingChange(path=path, base=before, now=after, weaker=_is_weaker(path, before, after))


def weaker_than_default(policy: Mapping[str, Json]) -> tuple[SettingChange, ...]:
    """Return the settings of a plan's policy that are weaker than their defaults."""
    values = {
        **{f"guards.{name}": limit for name, limit in members(policy.get("guards")).items()},
        **{f"people.{key}": value for key, value in members(policy.get("people")).items()},
        **{code: level for code, level in members(policy.get("lint")).items() if code in RULES},
        "guards.min_admins": policy.get("min_admins"),
        "settle": policy.get("settle"),
    }
    known = {path: value for path, value in values.items() if path in DEFAULTS and value is not None}
    return tuple(one for one in diff_settings({path: DEFAULTS[path] for path in known}, known) if one.weaker)


def _items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _fewer(base: Json, now: Json) -> bool:
    """Whether patterns may match less than before: one was removed, or an exclusion was added."""
    before, after = set(map(str, _items(base))), set(map(str, _items(now)))
    return any(not one.startswith("!") for one in before - after) or any(one.startswith("!") for one in after - before)


def _halves(limit: Json) -> Iterable[float]:
    """Return the count and the share of a limit; a half that is turned off is infinite."""
    halves = members(limit)
    return [inf if halves.get(half) is None else float(cast(float, halves[half])) for half in ("count", "share")]


_WEAKER: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "guards.protect": _fewer,
    "guards.min_admins": gt,
    "guards": lambda base, now: any(new > old for old, new in zip(_halves(base), _halves(now), strict=True)),
    "fleet_guards": lambda base, now: base is not None and (now is None or now > base),
    "leave_alone": _fewer,
    "ownership": lambda base, now: _fewer(now, base),
    "ignore": lambda base, now: any(item not in _items(base) for item in _items(now)),
    "allow": lambda base, now: any(item not in _items(base) for item in _items(now)),
    "settle": gt,
    "runs.keep": gt,
    "plans.valid_for": lt,
    "max_failures": lt,
    "people": lambda base, now: now in ("skip", True),
    "lock": lambda base, now: bool(base) and not now,
    "waves": lambda base, now: bool(base) and not now,
    IN_USE: lambda base, now: _REFUSES_LESS.get(str(now), 0) > _REFUSES_LESS.get(str(base), 0),
}
"""Path of a setting, or its first part → whether a value is weaker than that of the base."""


def _is_weaker(path: str, base: Json, now: Json) -> bool:
    if path.startswith(PREFIX):
        before, after = (LintLevel(str(DEFAULTS[path] if level is None else level)) for level in (base, now))
        return after.is_weaker_than(before)
    judge = _WEAKER.get(path) or _WEAKER.get(path.partition(".")[0])
    return judge is not None and judge(base, now)
