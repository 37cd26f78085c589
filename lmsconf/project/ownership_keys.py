"""What the project file says by kind: which sections can be owned, and the patterns that can match an address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lmsconf.kinds import all_kinds
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import matches_pattern, nearest_name
from lmsconf.planner.address_patterns import canonical_pattern

if TYPE_CHECKING:
    from lmsconf.planner.kind import Kind


def ownership_properties() -> dict[str, Json]:
    """Return the JSON Schema of each key under `ownership`, as `schemas/project.schema.json` has it."""
    return {
        kind.section: _never_owned(kind) if kind.ownership_schema is None else dict(kind.ownership_schema)
        for kind in all_kinds().values()
    }


def _never_owned(kind: Kind) -> dict[str, Json]:
    # Any value fits the schema, so that `unownable_sections` alone says what is wrong.
    return {"description": f"An error: {kind.plural} cannot be owned, because people are never deleted."}


def unownable_sections(owned: Mapping[str, Json]) -> dict[str, str]:
    """Map each key under `ownership` that cannot be owned to the display name of its resources."""
    kinds = all_kinds().values() if owned else ()
    return {kind.section: kind.plural for kind in kinds if kind.section in owned and kind.ownership_schema is None}


def kind_names_by_section() -> dict[str, str]:
    """Map each section of manifests to the name of its kind, which addresses begin with."""
    return {kind.section: kind.name for kind in _kinds()}


def _kinds() -> list[Kind]:
    """Return the kinds in the order in which messages list them: those that are never deleted last."""
    return sorted(all_kinds().values(), key=lambda kind: kind.ownership_schema is None)


def canonical_address_pattern(pattern: str) -> str:
    """Return a pattern as addresses spell it: `groups/UI *` is `group/UI *`; a leading `!` stays."""
    bare = pattern.removeprefix("!")
    return pattern[: len(pattern) - len(bare)] + canonical_pattern(bare, all_kinds())


def suggest_address_pattern(pattern: str) -> str | None:
    """Return a corrected pattern for one that can match no address; None if it can match one."""
    canonical = canonical_pattern(pattern, all_kinds())
    of, slash, name = canonical.partition("/")
    if any(matches_pattern(kind.name, of) for kind in _kinds()):
        return None if name else f"{of}/*"
    names = kind_names_by_section()
    near = nearest_name(of, [*names.values(), *names]) if slash else None
    if near is None:
        return canonical_pattern(f"{next(kind.name for kind in _kinds() if kind.example)}/{pattern}", all_kinds())
    return canonical_pattern(f"{near}/{name or '*'}", all_kinds())
