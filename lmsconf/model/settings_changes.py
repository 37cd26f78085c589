"""Compare settings: what differs, and whether the new value is weaker (stops, keeps or asks for less)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Final, cast

from lmsconf.model.canonical_json import Json
from lmsconf.model.lints import PREFIX, RULES, LintLevel
from lmsconf.model.plan import SettingChange
from lmsconf.model.policy import GUARDS, GuardLimits, limit_to_json

IN_USE: Final = "dialect.custom-fields.in-use"
_REFUSES_LESS: Final = ("condition", "removed-choice", "never")
_DEFAULT: Final = GuardLimits()
DEFAULTS: Final[Mapping[str, Json]] = {
    **{f"guards.{name}": limit_to_json(_DEFAULT.limit(name)) for name in GUARDS},
    "guards.min_admins": _DEFAULT.min_admins,
    "people.unknown": "error",
    "people.create": False,
    "settle": 30.0,
    **{code: rule.level.value for code, rule in RULES.items()},
}
"""Path → default of each setting that every plan reports where it is weaker than the default."""


def diff_settings(base: Mapping[str, Json], now: Mapping[str, Json]) -> Iterator[SettingChange]:
    """Yield each setting that differs, by path; a side that lacks it is None."""
    for path in sorted({*base, *now}):
        before, after = base.get(path), now.get(path)
        if before != after:
            yield SettingChange(path=path, base=before, now=after, weaker=_is_weaker(path, before, after))


def weaker_than_default(policy: Mapping[str, Json]) -> tuple[SettingChange, ...]:
    """Return the settings of a plan's policy that are weaker than their defaults."""
    values = {f"guards.{name}": limit for name, limit in _part(policy, "guards").items()}
    values |= {f"people.{key}": value for key, value in _part(policy, "people").items()}
    values |= _part(policy, "lint")
    values |= {"guards.min_admins": policy.get("min_admins"), "settle": policy.get("settle")}
    known = {path: value for path, value in values.items() if path in DEFAULTS and value is not None}
    return tuple(one for one in diff_settings({path: DEFAULTS[path] for path in known}, known) if one.weaker)


def _part(policy: Mapping[str, Json], key: str) -> Mapping[str, Json]:
    part = policy.get(key)
    return part if isinstance(part, dict) else {}


def _is_weaker(path: str, base: Json, now: Json) -> bool:
    section = path.partition(".")[0]
    if path in ("guards.protect", "leave_alone"):
        return _fewer(base, now)
    if section == "ownership":
        return _fewer(now, base)
    if path in ("ignore", "allow"):
        return any(item not in _items(base) for item in _items(now))
    if path in ("guards.min_admins", "settle", "runs.keep"):
        return cast(float, now) < cast(float, base)
    if path in ("plans.valid_for", "max_failures"):
        return cast(float, now) > cast(float, base)
    if section == "fleet_guards":
        return base is not None and (now is None or cast(float, now) > cast(float, base))
    if section == "guards":
        return _looser(base, now)
    if section == "people":
        return now in ("skip", True)
    if path.startswith(PREFIX):
        before, after = (LintLevel(str(DEFAULTS[path] if level is None else level)) for level in (base, now))
        return after.is_weaker_than(before)
    if path == IN_USE:
        return _leniency(now) > _leniency(base)
    return path in ("lock", "waves") and bool(base) and not now


def _items(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _fewer(base: Json, now: Json) -> bool:
    """Whether patterns may match less than before: one was removed, or an exclusion was added."""
    before, after = set(map(str, _items(base))), set(map(str, _items(now)))
    return any(not one.startswith("!") for one in before - after) or any(one.startswith("!") for one in after - before)


def _looser(base: Json, now: Json) -> bool:
    """Whether a limit, or one half of it, is higher or turned off."""
    before, after = _halves(base), _halves(now)
    return any(new > old for new, old in zip(after, before, strict=True))


def _halves(limit: Json) -> Iterable[float]:
    halves = limit if isinstance(limit, dict) else {}
    return [inf if halves.get(half) is None else float(cast(float, halves[half])) for half in ("count", "share")]


def _leniency(value: Json) -> int:
    return _REFUSES_LESS.index(value) if value in _REFUSES_LESS else 0
