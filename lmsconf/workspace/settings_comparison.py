"""The settings of a project as plain values by path, to compare them with those of the base."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lmsconf.kinds import all_kinds
from lmsconf.model.canonical_json import Json
from lmsconf.model.policy import GUARDS, UNKNOWN, Consent, Policy, limit_to_json
from lmsconf.project.config_file import DEFAULT_KEPT_RUNS
from lmsconf.project.settings import DEFAULT_MANIFESTS, Settings


def settings_by_path(settings: Settings) -> dict[str, Json]:
    """All settings that affect plans and runs of the current workspace, except where its requests are sent."""
    lock: Json = False if settings.lock is None else {"lease": settings.lock.lease}
    folders = [_relative(folder, settings.root) for folder in (settings.manifests, *settings.overlays)]
    return {
        **_of_policy(settings.policy),
        **{f"dialect.{key}": value for key, value in settings.dialect.items()},
        **{f"vars.{name}": value for name, value in settings.variables.items()},
        "ignore": [_ignore(rule.pattern, rule.reason, str(rule.until or "")) for rule in settings.ignores],
        "lock": lock,
        "manifests": folders[0] if len(folders) == 1 else list[Json](folders),
        **{f"labels.{name}": value for name, value in settings.labels.items()},
        **settings.shared,
    }


def _relative(folder: Path, root: Path) -> str:
    return (folder.relative_to(root) if folder.is_relative_to(root) else folder).as_posix()


def default_settings_by_path(policy: Policy) -> dict[str, Json]:
    """The same for an empty project file; workspace and date are the policy's."""
    bare = Policy(workspace=policy.workspace, today=policy.today)
    shared: dict[str, Json] = {"runs.keep": DEFAULT_KEPT_RUNS, "waves": [], "max_failures": 0}
    return {**_of_policy(bare), **shared, "ignore": [], "lock": False, "manifests": Path(DEFAULT_MANIFESTS).as_posix()}


def _of_policy(policy: Policy) -> dict[str, Json]:
    values = policy.settings_json()
    sections = {name: kind.section for name, kind in all_kinds().items()}
    ownership = values["ownership"]
    owned = ownership if isinstance(ownership, dict) else {}
    return {
        **{f"guards.{name}": limit_to_json(policy.guards.limit(name)) for name in GUARDS},
        "guards.protect": values["protect"],
        "guards.min_admins": values["min_admins"],
        **{f"ownership.{sections[kind]}": patterns for kind, patterns in owned.items()},
        "leave_alone": values["leave_alone"],
        "people.unknown": "skip" if policy.skip_unknown else "error",
        "people.create": policy.create_people,
        "settle": values["settle"],
        **{code: level.value for code, level in policy.lints.items()},
        "plans.valid_for": policy.valid_for.total_seconds(),
        "allow": [_consent(consent) for consent in policy.consents],
        **({} if policy.timezone_name is None else {"timezone": policy.timezone_name}),
    }


def _consent(consent: Consent) -> Json:
    entry: dict[str, Json] = {consent.guard: UNKNOWN if consent.number is None else consent.number}
    if consent.reason is not None:
        entry["reason"] = consent.reason
    return {**entry, "until": str(consent.until)}


def _ignore(pattern: str, reason: str, until: str) -> Json:
    entry: Mapping[str, Json] = {"address": pattern, "reason": reason}
    return {**entry, "until": until} if until else {**entry}
