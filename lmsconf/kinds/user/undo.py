"""What `plan --undo` needs of people: their whole state, and what can be undone of changes to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec.structs import replace

from lmsconf.api.spec.assumed_keys import WHO_CAN_MANAGE
from lmsconf.api.spec.value_encoding import NEVER_CLEARED, clear_answer_key
from lmsconf.kinds.custom_field.choices import field_types
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.export import answer_values
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.kinds.shared.times import format_time
from lmsconf.kinds.user.types import RIGHTS, TEXTS, PersonRow, PersonSpec
from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.forms import Form
from lmsconf.model.names import normalize_name
from lmsconf.model.plan import FULL_UNDO, Change, Undo, UndoLevel
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.context import BeforeAfter, PlanContext
from lmsconf.planner.undo.names import marked_id

_MERGED: Final = "users.update-metadata.mode"


def whole_form(planning: PlanContext, row: PersonRow) -> Form:
    """Return every value of a person that was read."""
    form: Form = {"email": row.name}
    form.update({key: normalize_name(text) for key in TEXTS if (text := getattr(row, key)) is not None})
    form.update({key: right for key in RIGHTS if (right := getattr(row, key)) is not None})
    if row.applications is not None:
        form["applications"] = row.applications
    if row.metadata is not None:
        form["metadata"] = dict(row.metadata)
    if row.answers is not None:
        form["answers"] = dict(answer_values(planning, row.answers))
    form["archived"] = row.archived
    if row.archive_date is not None:
        moment = datetime.fromtimestamp(row.archive_date // 1000, UTC)
        form["custom_archive_date"] = format_time(moment, planning.policy.timezone)
    return form


def archived_instead(change: Change) -> Mapping[str, Json]:
    """Return the keys that undo the creation of an account, which is never deleted."""
    form = change.after if isinstance(change.after, dict) else {}
    return {"archived": True, **({"admin": False} if form.get("admin") else {})}


def person_undo(planning: PlanContext, sides: BeforeAfter, row: PersonRow | None) -> Undo:
    """Return how much of a change to a person can be undone."""
    if sides.before is None:
        return Undo(level=UndoLevel.PARTIAL, reason="the account can be archived, and not deleted")
    after = sides.after or {}
    if row is not None and row.manages:
        return Undo(level=UndoLevel.PARTIAL, reason="groups that go with the manager right are not given back")
    empty = [key for key in TEXTS if key in sides.before and not sides.before[key] and after.get(key)]
    if empty:
        return Undo(level=UndoLevel.PARTIAL, reason=f"{' and '.join(empty)} cannot be made empty again")
    if set_for_good := _set_for_good(planning, sides.before, after):
        answers = " and ".join(f'"{field}"' for field in set_for_good)
        return Undo(level=UndoLevel.PARTIAL, reason=f"the service refuses to clear the answer to {answers} again")
    merges = planning.call_templates.behaviour(_MERGED) == "merge"
    held, given = sides.before.get("metadata"), after.get("metadata")
    if merges and isinstance(held, dict) and isinstance(given, dict):
        new = sorted(key for key, value in given.items() if value is not None and held.get(key) is None)
        if new:
            return Undo(level=UndoLevel.PARTIAL, reason="the service merges metadata, so that no key can be removed")
    return FULL_UNDO


def _set_for_good(planning: PlanContext, before: Form, after: Form) -> list[str]:
    """Return the fields that a change answers for the first time, and whose answers the service clears in no form."""
    held, given = before.get("answers"), after.get("answers")
    if not isinstance(held, dict) or not isinstance(given, dict):
        return []
    new = (field for field, answer in given.items() if answer and not held.get(field))
    types, behaviour = field_types(planning), planning.call_templates.behaviour
    return sorted(field for field in new if behaviour(clear_answer_key(types.get(field, "TEXT"))) == NEVER_CLEARED)


def why_not_emptied(planning: PlanContext, key: str, part: str | None) -> str | None:
    """Return why the service removes no such value, in the words of a draft; None if it does."""
    behaviour = planning.call_templates.behaviour
    if key in TEXTS:
        return "the service takes no empty text"
    if key == "metadata" and part is not None and behaviour(_MERGED) == "merge":
        return f'the service merges metadata, so that "{part}" cannot be removed'
    if key != "answers" or part is None:
        return None
    fields = {normalize_name(row.name): row for row in planning.snapshot.rows(FieldRow)}
    by_id = {row.id: row for row in fields.values()}
    field = by_id.get(RemoteId(marked_id(part) or part)) or fields.get(normalize_name(part))
    if field is None or behaviour(clear_answer_key(field.type)) != NEVER_CLEARED:
        return None
    return f'the service refuses to clear the answer to "{field.name}"'


def with_declared_values(
    planning: PlanContext, snapshot: Snapshot, declared: Sequence[DesiredResource[PersonSpec]]
) -> Snapshot:
    """Return a snapshot whose people hold only the values that these declarations, pinned by id, have read."""
    specs = {resource.pin(planning.policy.workspace): resource.spec for resource in declared}
    rights = planning.call_templates.behaviour(WHO_CAN_MANAGE) != "anybody"
    listing = snapshot.of(USER)
    rows = tuple(_limited(row, specs.get(row.id), keeps_rights=rights) for row in snapshot.rows(PersonRow))
    return replace(snapshot, listings={**snapshot.listings, USER: replace(listing, rows=rows)})


def _limited(row: PersonRow, spec: PersonSpec | None, *, keeps_rights: bool) -> PersonRow:
    keys = frozenset[str]() if spec is None else spec.declared_keys
    keeps_rights = keeps_rights or (spec is not None and spec.needs_live_rights)
    return PersonRow(
        row.id,
        row.email,
        row.archived,
        first_name=row.first_name if "first_name" in keys else None,
        last_name=row.last_name if "last_name" in keys else None,
        language=row.language if "language" in keys else None,
        admin=row.admin if keeps_rights else None,
        manager=row.manager if keeps_rights else None,
        applications=row.applications if "applications" in keys else None,
        metadata=row.metadata if "metadata" in keys else None,
        answers=row.answers if "answers" in keys else None,
        archive_date=row.archive_date if "custom_archive_date" in keys else None,
        manages=row.manages,
    )
