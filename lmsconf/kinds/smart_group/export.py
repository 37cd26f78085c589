"""Live smart groups as manifest entries, and where conditions refer to fields and choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, USER
from lmsconf.kinds.smart_group.conditions import conditions_by_name
from lmsconf.kinds.smart_group.types import SmartGroupRow
from lmsconf.kinds.user.export import only_text, people_list_trails, people_lists_body
from lmsconf.model.canonical_json import Json
from lmsconf.planner.live_names import LiveNames
from lmsconf.planner.manifest_entries import ANY, EntryBody, PartReferences, Trail

_CONDITIONS: Final[tuple[Trail, ...]] = (("smart_groups", ANY, "conditions", ANY), ("condition_sets", ANY, ANY))
REFERENCES: Final[Mapping[str, Sequence[Trail]]] = {
    CUSTOM_FIELD: tuple((*trail, "field") for trail in _CONDITIONS),
    USER: people_list_trails(("smart_groups", ANY, "managers")),
}
PART_REFERENCES: Final[Mapping[str, Sequence[PartReferences]]] = {
    CUSTOM_FIELD: tuple(PartReferences(at, "field", (("choices", ANY), ("except", ANY))) for at in _CONDITIONS)
}


def only_choice(conditions: Json, field: str) -> str | None:
    """Return the one choice of a field that exported conditions name."""
    listed = conditions if isinstance(conditions, list) else []
    about = [one for one in listed if isinstance(one, dict) and one.get("field") == field]
    return only_text(about[0].get("choices")) if len(about) == 1 else None


def smart_group_entry_body(live: LiveNames, row: SmartGroupRow) -> EntryBody:
    """Return the conditions of a smart group, and its managers if there are any."""
    people = people_lists_body(live, {"managers": row.managers})
    if row.conditions is None:
        return people
    conditions = [condition.to_json() for condition in conditions_by_name(live.planning, row.conditions)]
    return EntryBody({"conditions": conditions, **people.keys}, people.notes)
