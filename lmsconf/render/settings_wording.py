"""Settings in words: those weaker than the default, those that differ from the base, and consents."""

from __future__ import annotations

from collections.abc import Iterator

from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Plan, SettingChange
from lmsconf.model.settings_changes import weaker_than_default
from lmsconf.render.plan_wording import escape_base_name
from lmsconf.render.resource_wording import format_value

RELAXED_HEADING = "Settings weaker than the default"
CHANGED_HEADING = "Settings changed"
CONSENTS_HEADING = "Allowed by consent"
WEAKER = ", which is weaker"
"""The end of the line of a changed setting that is weaker than in the base."""


def relaxed_settings(plan: Plan) -> Iterator[str]:
    """Yield each setting weaker than its default, with the default."""
    weaker = weaker_than_default(plan.policy)
    off = [setting.path for setting in weaker if setting.now == "off"]
    guards = [path for path in guard_paths(plan) if path not in off]
    if off and not guards:
        yield "guards: off"
    yield from (_line(setting, "default") for setting in weaker if guards or setting.path not in off)


def consented_guards(plan: Plan) -> Iterator[str]:
    """Yield each guard that a consent lets pass, with that consent."""
    for guard in plan.guards:
        if guard.allowed_by:
            yield f"Guard {guard.name}: {guard.reason}. Allowed by {guard.allowed_by}."


def guard_paths(plan: Plan) -> list[str]:
    """Return the paths of the guards in a plan's policy."""
    guards = plan.policy.get("guards")
    return [f"guards.{name}" for name in guards] if isinstance(guards, dict) else []


def changed_settings(plan: Plan) -> Iterator[str]:
    """Yield each setting that differs from the base, weaker ones first."""
    for setting in sorted(plan.settings_changed, key=lambda setting: not setting.weaker):
        yield f"{_line(setting, escape_base_name(plan.base))}{WEAKER if setting.weaker else ''}"


def _line(setting: SettingChange, base: str) -> str:
    """`guards.removals: off (default: 50 or 10%)`."""
    return f"{setting.path}: {_value(setting.path, setting.now)} ({base}: {_value(setting.path, setting.base)})"


def _value(path: str, value: Json) -> str:
    if isinstance(value, dict) and value.keys() <= {"count", "share"}:
        share = value.get("share")
        halves = [value.get("count"), None if share is None else f"{float(str(share)) * 100:g}%"]
        return " or ".join(str(half) for half in halves if half is not None) or "off"
    if path in ("settle", "plans.valid_for") and isinstance(value, int | float):
        return f"{value:g} s"
    return value if isinstance(value, str) else format_value(value)
