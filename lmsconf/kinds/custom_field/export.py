"""Live custom fields as manifest entries, and planned changes of fields as entries again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lmsconf.kinds.custom_field.types import FLAGS, TYPES, FieldRow
from lmsconf.model.address import Address
from lmsconf.model.calls import CallIndex
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import is_valid_name, normalize_name
from lmsconf.model.plan import Change
from lmsconf.planner.manifest_entries import EntryBody


def field_entry_body(row: FieldRow) -> EntryBody:
    """Return the type, choices in live order, description and flags of a field."""
    body: dict[str, Json] = {"type": row.type} if row.type in TYPES else {}
    notes = [] if body else [f"its type {row.type} is not supported in manifests"]
    if row.choices:
        names = [normalize_name(choice.name) for choice in row.choices]
        choices: list[Json] = [name for name in names if names.count(name) == 1 and is_valid_name(name)]
        if len(choices) == len(names):
            body["choices"] = choices
        else:
            notes.append(f"choices that share a name, or have none: {len(names) - len(choices)}")
            body |= {"choices": {"include": choices}} if choices else {}
    if row.description:
        body["description"] = row.description
    body.update({key: True for key in FLAGS if getattr(row, key)})
    return EntryBody(body, tuple(notes))


def replay_field_entry(change: Change, entry: Mapping[str, Json], calls: CallIndex) -> Mapping[str, Json]:
    """Return the entry of a planned change, with the choices that are kept pinned by their ids."""
    choices = entry.get("choices")
    if not isinstance(choices, list):
        return entry
    ids = dict(_kept_choices(change.address, calls))
    pinned: list[Json] = [{"name": name, "id": ids[name]} if name in ids else name for name in map(str, choices)]
    return {**entry, "choices": pinned}


def _kept_choices(field: Address, calls: CallIndex) -> Iterator[tuple[str, str]]:
    """Yield the name and id of each choice that the last custom-fields.replace call of a field keeps."""
    match [call.body for call in calls.of(field) if call.operation == "custom-fields.replace"]:
        case [*_, {"choices": [*choices]}]:
            for choice in choices:
                if isinstance(choice, dict) and isinstance(choice.get("choiceId"), str):
                    yield str(choice.get("name")), str(choice["choiceId"])
