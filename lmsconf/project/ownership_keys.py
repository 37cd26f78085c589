"""What the project file says by kind: which sections can be owned, and the patterns that can match an address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lmsconf.kinds import all_kinds
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import matches_pattern, nearest_name

if TYPE_CHECKING:
    from lmsconf.planner.kind import AnyKind


def ownership_properties() -> dict[str, Json]:
    """Return the JSON Schema of each key under `ownership`, as `schemas/project.schema.json` has it."""
    return {
        kind.section: _never_owned(kind) if kind.ownership_schema is None else dict(kind.ownership_schema)
        for kind in all_kinds().values()
    }


def _never_owned(kind: AnyKind) -> dict[str, Json]:
    # Any value fits the schema, so that `unownable_sections` alone says what is wrong.
    return {"description": f"An error: {kind.plural} are never owned, because nobody is deleted."}


def unownable_sections(owned: Mapping[str, Json]) -> dict[str, str]:
    """Map each key under `ownership` that cannot be owned to the display name of its resources."""
    kinds = all_kinds().values() if owned else ()
    return {kind.section: kind.plural for kind in kinds if kind.section in owned and kind.ownership_schema is None}


def kind_names_by_section() -> dict[str, str]:
    """Map each section of manifests to the name of its kind, which addresses begin with."""
    return {kind.section: kind.name for kind in _kinds()}


def _kinds() -> list[AnyKind]:
    """Return the kinds in the order in which messages list them: those that are never deleted last."""
    return sorted(all_kinds().values(), key=lambda kind: kind.ownership_schema is None)


def correct_address_pattern(pattern: str) -> str:
    """Return a corrected pattern that can match an address; the same pattern if it can already."""
    of, slash, name = pattern.partition("/")
    meant = [kind for kind in _kinds() if matches_pattern(kind.name, of)]
    if not meant:
        names = kind_names_by_section()
        near = names.get(of) or nearest_name(of, names.values()) if slash else None
        of, name = (near, name) if near else (next(kind.name for kind in _kinds() if kind.example), pattern)
        meant = [all_kinds()[of]]
    # A pattern over several kinds is right if it can match an address of one of them.
    right = [kind.normalize_pattern(name) for kind in meant]
    return f"{of}/{(name if name in right else right[0]) or '*'}"
