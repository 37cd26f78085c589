"""Settings in words: those weaker than the default, those that differ from the base, and consents."""

from __future__ import annotations

from collections.abc import Iterator

from lmsconf.model.settings_changes import weaker_than_default
from lmsconf.model.values import Json, Plan, SettingChange
from lmsconf.render import phrases

RELAXED = "Settings weaker than the default"
CHANGED = "Settings changed"
CONSENTS = "Allowed by consent"


def relaxed(plan: Plan) -> Iterator[str]:
    """Yield each setting weaker than its default, with the default."""
    weaker = weaker_than_default(plan.policy)
    off = [one.path for one in weaker if one.now == "off"]
    guards = [path for path in plan_guards(plan) if path not in off]
    if off and not guards:
        yield "guards: off"
    yield from (_line(one, "default") for one in weaker if guards or one.path not in off)


def consents(plan: Plan) -> Iterator[str]:
    """Yield each guard that a consent lets pass, with that consent."""
    for one in plan.guards:
        if one.allowed_by:
            yield f"Guard {one.name}: {one.reason}. Allowed by {one.allowed_by}."


def plan_guards(plan: Plan) -> list[str]:
    """Return the paths of the guards in a plan's policy."""
    said = plan.policy.get("guards")
    return [f"guards.{name}" for name in said] if isinstance(said, dict) else []


def changed(plan: Plan) -> Iterator[str]:
    """Yield each setting that differs from the base, weaker ones first."""
    for one in sorted(plan.settings_changed, key=lambda one: not one.weaker):
        yield f"{_line(one, phrases.base_name(plan.base))}{', which is weaker' if one.weaker else ''}"


def _line(one: SettingChange, base: str) -> str:
    """`guards.removals: off (default: 50 or 10%)`."""
    return f"{one.path}: {_value(one.path, one.now)} ({base}: {_value(one.path, one.base)})"


def _value(path: str, value: Json) -> str:
    if isinstance(value, dict) and value.keys() <= {"count", "share"}:
        share = value.get("share")
        halves = [value.get("count"), None if share is None else f"{float(str(share)) * 100:g}%"]
        return " or ".join(str(half) for half in halves if half is not None) or "off"
    if path in ("settle", "plans.valid_for") and isinstance(value, int | float):
        return f"{value:g} s"
    return value if isinstance(value, str) else phrases.quoted(value)
