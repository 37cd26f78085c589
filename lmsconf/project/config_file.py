"""The project file `lmsconf.yaml`, validated: its settings as plain values, merged for a workspace."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import date, tzinfo
from functools import reduce
from typing import Final, cast

from msgspec import Struct, convert, field, to_builtins
from msgspec.structs import replace

from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import Kind
from lmsconf.manifest.nodes import EntrySourceMap, Map
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.drift import IgnoreRule
from lmsconf.model.guards import DEFAULTS, GUARDS, UNKNOWN, Consent, GuardLimit, GuardLimits
from lmsconf.model.lint_codes import LintLevel, LintSetting
from lmsconf.model.names import matches_pattern, nearest_name
from lmsconf.model.time_formats import read_zone
from lmsconf.planner.selection import canonical_pattern
from lmsconf.support.strict_json import map_texts


def kind_names_by_section() -> dict[str, str]:
    """Map each section of manifests to the name of its kind, which addresses begin with."""
    return {kind.section: kind.name for kind in order_kinds()}


def order_kinds() -> list[Kind]:
    """Return the kinds in the order of their sections in manifests: those that are never deleted last."""
    return sorted(KINDS.values(), key=lambda kind: kind.is_person)


def canonical_address_pattern(pattern: str) -> str:
    """Return a pattern as addresses spell it: `groups/UI *` is `group/UI *`; a leading `!` stays."""
    bare = pattern.removeprefix("!")
    return pattern[: len(pattern) - len(bare)] + canonical_pattern(bare)


def suggest_address_pattern(pattern: str) -> str | None:
    """Return a corrected pattern for one that can match no address; None if it can match one."""
    of, slash, name = canonical_pattern(pattern).partition("/")
    if any(matches_pattern(kind.name, of) for kind in order_kinds()):
        return None if name else f"{of}/*"
    names = kind_names_by_section()
    near = nearest_name(of, [*names.values(), *names]) if slash else None
    if near is None:
        return canonical_pattern(f"{next(kind.name for kind in order_kinds() if kind.example)}/{pattern}")
    return canonical_pattern(f"{near}/{name or '*'}")


ENV_WORKSPACE: Final = "env"


class ProjectFile(Struct, frozen=True, kw_only=True):
    """A valid project file: all its workspaces were validated, not only the chosen one.

    notes         filled with one note for each expired consent that `consents` meets
    leave_alone   patterns of the addresses that are ignored
    waves         selectors of the waves in which a fleet is applied
    max_failures  how many failures a wave may have before the next one
    fleet_guards  guard → limit of its total over all workspaces of a fleet
    """

    body: Map
    places: EntrySourceMap
    notes: list[Problem] = field(default_factory=list)
    leave_alone: tuple[str, ...] = ()
    waves: tuple[str, ...] = ()
    max_failures: int = cast(int, DEFAULTS["max_failures"])
    fleet_guards: Mapping[str, int] = {}

    def mapping_at(self, *path: str) -> Mapping[str, Json]:
        """Return the mapping at `path`; empty if the file has none there."""
        return members(reduce(lambda node, step: members(node).get(step), path, cast(Json, self.body)))

    def setting(self, path: str) -> Json:
        """Return a setting of the whole project by its path, such as `lock.lease`; where there is none, its default."""
        *above, key = path.split(".")
        return self.mapping_at(*above).get(key, DEFAULTS[path])

    def merged_mapping(self, key: str, workspace: str) -> dict[str, Json]:
        """Return a mapping merged key by key: the workspace's value overrides the project's."""
        return {name: value for path in _layer_paths(workspace) for name, value in self.mapping_at(*path, key).items()}

    def dialect_locations(self, workspace: str) -> dict[str, SourceLocation]:
        """Return the source location of each key of the merged `dialect`."""
        return {
            name: self.places.key(*path, "dialect", name)
            for path in _layer_paths(workspace)
            for name in self.mapping_at(*path, "dialect")
        }

    def ownership(self, workspace: str) -> dict[str, tuple[str, ...]]:
        """Return kind → patterns of the names that lmsconf owns."""
        kinds = kind_names_by_section()
        return {
            kinds[section]: (owned,) if isinstance(owned, str) else tuple(cast("list[str]", owned))
            for section, owned in self.merged_mapping("ownership", workspace).items()
        }

    def guards(self, workspace: str) -> GuardLimits:
        """Return the merged guards; a resource is protected if the `protect` of any level covers it."""
        return reduce(
            _guarded, (self.mapping_at(*path).get("guards") for path in _layer_paths(workspace)), GuardLimits()
        )

    def variables(self, workspace: str) -> dict[str, Json]:
        """Return the values for `$(name)` in manifests: strings, booleans, or lists of them.

        A number is a string, as the file spells it. Labels are variables too, unless one of `vars` has their name.
        """
        declared = {
            name: self.places.below(*path, "vars", name).variable()
            for path in _layer_paths(workspace)
            for name in self.mapping_at(*path, "vars")
        }
        return {**self.labels(workspace), **declared}

    def labels(self, workspace: str) -> dict[str, str]:
        """Return the labels of a workspace."""
        return {name: str(value) for name, value in self.mapping_at("workspaces", workspace, "labels").items()}

    def pattern_values(self, workspace: str) -> dict[str, str]:
        """Return name → value of `$(name)` in folders and token sources: the workspace's name, and its labels."""
        return {**self.labels(workspace), "workspace": workspace}

    def expanded_token(self, workspace: str) -> Json:
        """Return the source of a workspace's token with its variables expanded; None if it has none."""
        values, source = self.pattern_values(workspace), self.mapping_at("workspaces", workspace).get("token")
        return cast(Json, map_texts(source, lambda text: expand_pattern(text, values)))

    def folders(self, workspace: str) -> list[str]:
        """Return the folders of a workspace's manifests as the file names them, variables included; empty: default."""
        own = self.mapping_at("workspaces", workspace).get("manifests", self.body.get("manifests", []))
        return [own] if isinstance(own, str) else [str(folder) for folder in cast("list[Json]", own)]

    def consents(self, workspace: str, today: date) -> Iterator[Consent]:
        """Yield the consents of `allow:` that are valid on `today`; append a note for each that has expired."""
        for path in _layer_paths(workspace):
            for _, place in self.places.below(*path, "allow").parts():
                item = members(place.value)
                guard = next(name for name in GUARDS if name in item)
                number = {"number": None if item[guard] == UNKNOWN else item[guard]}
                one = convert({**item, **number, "guard": guard, "source": place.at()}, Consent)
                if self._holds("project/consent-expired", f"allow: {guard}: {item[guard]}", one, today):
                    yield one

    def _holds(self, code: str, held: str, one: Consent | LintSetting, today: date, more: str = "") -> bool:
        """Whether an entry holds on `today`; append a note if it has expired. more: the end of its hint."""
        if one.until is None or today < one.until:
            return True
        self.notes.append(
            Problem(
                code=code,
                message=f"{held} held until {one.until} and is ignored",
                severity=Severity.NOTE,
                hint=f"Remove it from the project file{more}.",
                source=one.source,
            )
        )
        return False

    def drift_ignores(self, workspace: str) -> Iterator[IgnoreRule]:
        """Yield the entries of `ignore:` (differences that do not count as drift), the workspace's first."""
        for path in reversed(_layer_paths(workspace)):
            for _, item in self.places.below(*path, "ignore").parts():
                whole = {"until": None, **members(item.value), "source": item.at()}
                yield convert({**whole, "address": canonical_address_pattern(str(whole["address"]))}, IgnoreRule)

    def lints(self, workspace: str, today: date) -> dict[str, LintLevel]:
        """Return the levels under `lint:` that hold on `today`; append a note for each that has expired.

        The workspace's entry for a code overrides the project's, also once it has expired.
        """
        settings = {
            name: convert({"until": None, **members(item), "source": self.places.key(*path, "lint", name)}, LintSetting)
            for path in _layer_paths(workspace)
            for name, item in self.mapping_at(*path, "lint").items()
        }
        return {
            code: one.level
            for code, one in settings.items()
            if self._holds("project/lint-expired", f"lint: {code}: {one.level}", one, today, ", or set a later date")
        }

    def timezone(self) -> tzinfo | None:
        """Return the zone of times without an offset, or None. Raises like `read_zone`."""
        return read_zone(str(self.body["timezone"])) if "timezone" in self.body else None


def expand_pattern(text: str, values: Mapping[str, str]) -> str:
    """Return a text with each `$(name)` replaced by its value; an unknown name stays as it is."""
    return re.sub(r"\$\(([^()]*)\)", lambda variable: values.get(variable[1], variable[0]), text)


def _guarded(guards: GuardLimits, declared: Json) -> GuardLimits:
    """Merge one layer into the guards; `off` removes the limits, but neither `protect` nor `min_admins`."""
    if declared == "off":
        return guards.with_limits(dict.fromkeys(GUARDS))
    own = members(declared)
    limits = {name: _limit(guards.limits[name], own[name]) for name in GUARDS if name in own}
    protected = tuple(map(canonical_address_pattern, cast("list[str]", own.get("protect", []))))
    protect = (*guards.protect, protected) if protected else guards.protect
    return replace(
        guards.with_limits(limits), protect=protect, min_admins=cast(int, own.get("min_admins", guards.min_admins))
    )


def _limit(before: GuardLimit | None, declared: Json) -> GuardLimit | None:
    """Merge a declared limit into `before`: `off`, or a count, a share (0 to 1), or both."""
    if not isinstance(declared, dict):
        return None
    halves = {half: None if value == "off" else value for half, value in declared.items()}
    if isinstance(share := halves.get("share"), str):
        halves["share"] = float(share.removesuffix("%")) / 100
    return convert({**to_builtins(before or GuardLimit(count=None)), **halves}, GuardLimit)


def _layer_paths(workspace: str) -> tuple[tuple[str, ...], ...]:
    """Return the paths of the project level, and of the workspace, which takes precedence."""
    return (), ("workspaces", workspace)
