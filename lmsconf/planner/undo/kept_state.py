"""What is kept of a workspace when a plan is applied, with people's answers, and what can be undone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from lmsconf.api.spec.dialect_candidates import METADATA_MODE
from lmsconf.api.spec.value_encoding import NEVER_CLEARED, clear_answer_key
from lmsconf.kinds.assignment.steps import update_action
from lmsconf.kinds.assignment.types import is_window_declarable
from lmsconf.kinds.custom_field.lost_answers import MOST_KEPT, answer_keys, answer_rows, field_undo
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.group import why_undo_keeps_conditions
from lmsconf.kinds.kind_functions import Subject
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, SMART_GROUP, USER, is_named, row_type_of
from lmsconf.kinds.shared.manifest_entry import partial_undo
from lmsconf.kinds.shared.plan_context import BeforeAfter, Deletion, Match, PlanContext, SideEffect
from lmsconf.kinds.shared.responses import AnswerRow, comparable
from lmsconf.kinds.user.types import TEXTS, PersonRow
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.forms import Form, texts_in
from lmsconf.model.names import casefold_name, count_noun, normalize_email, normalize_name
from lmsconf.model.plan import FULL_UNDO, Action, Change, Plan, Undo, UndoLevel
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.undo.undone_run import references, renamed_to


def _deleted_choices(field: FieldRow, change: Change) -> frozenset[str] | None:
    """Return the ids of the choices that a change deletes; None if it deletes the field."""
    if change.action is Action.DELETE:
        return None
    names = {normalize_name(str(name)) for one in change.fields if one.path == "choices" for name in one.removed}
    return frozenset(choice.id for choice in field.choices if normalize_name(choice.name) in names)


def people_losing_answers(snapshot: Snapshot, changes: Iterable[Change]) -> Iterator[PersonRow]:
    """Yield the people whose answers the changes delete, with their answers to these fields."""
    fields: dict[str | None, FieldRow] = {row.id: row for row in snapshot.rows(FieldRow)}
    changed = ((fields[one.id], one) for one in changes if one.address.kind == CUSTOM_FIELD and one.id in fields)
    gone = [(field, _deleted_choices(field, change)) for field, change in changed]
    lost = {key: one for one in gone if one[1] is None or one[1] for key in answer_keys(one[0])}
    for row in answer_rows(snapshot) if lost else ():
        held = tuple(one for field, one in row.answers or () if field in lost and one and _is_lost(one, *lost[field]))
        if held:
            yield PersonRow(row.id, row.email, row.archived, answers=held)


def _is_lost(answer: AnswerRow, field: FieldRow, choices: frozenset[str] | None) -> bool:
    return bool(answer.picked) if choices is None else bool(_picked(answer, field, choices))


def _picked(answer: AnswerRow, field: FieldRow, choices: frozenset[str] | None) -> list[str]:
    """Return the names of the choices of an answer, as far as they are among these."""
    picked = frozenset(map(comparable, answer.picked))
    among = [one for one in field.choices if choices is None or one.id in choices]
    return [normalize_name(one.name) for one in among if picked & {comparable(one.id), comparable(one.name)}]


def lost_answer_entries(before: PlanContext, change: Change, row: FieldRow) -> Iterator[Mapping[str, Json]]:
    """Return an entry for each person whose answer to a field, or whose choice, a run deleted."""
    choices = _deleted_choices(row, change)
    field = before.registry.name(CUSTOM_FIELD, row.id) or normalize_name(row.name)
    lost = (
        (person, _value(answer, row, choices))
        for person in people_losing_answers(before.snapshot, [change])
        for answer in person.answers or ()
    )
    return ({"email": one.name, "id": one.id, "answers": {field: value}} for one, value in lost if value)


def _value(answer: AnswerRow, field: FieldRow, choices: frozenset[str] | None) -> Json:
    if field.type == "TEXT":
        return answer.as_text
    names = _picked(answer, field, choices)
    return [*names] if field.type == "MULTI_SELECT" else (names[0] if names else None)


def answered_since(live: PlanContext, row: FieldRow, plan: Plan) -> str | None:
    """Return how many people have answered a field that a run created, without the answers that the run gave."""
    name = normalize_name(row.name)
    given = {
        normalize_email(change.address.name): members(members(change.after).get("answers")).get(name)
        for change in plan.changes
        if change.address.kind == USER
    }
    emails = {person.id: person.name for person in live.snapshot.rows(PersonRow)}
    number = sum(
        _texts(_value(answer, row, None)) != _texts(given.get(emails.get(one.id, "")))
        for one in answer_rows(live.snapshot)
        for field, answer in one.answers or ()
        if field in (name, row.id) and answer and answer.picked
    )
    return f"{count_noun(number, 'person has', 'people have')} answered it since the run" if number else None


def _texts(answer: Json) -> frozenset[str]:
    """Return the choices of an answer, which have no order, or its text."""
    return frozenset(normalize_name(str(one)) for one in (answer if isinstance(answer, list) else [answer]))


def answers_taken(planning: PlanContext, address: Address, origin: Change) -> str | None:
    """Return why the undo of a change to a field would delete answers that others have given since the run.

    Of a field that the run created, `answered_since` knows whose answers are the run's own.
    """
    codes = {problem.code for problem in planning.problems if problem.address == str(address)}
    if "custom-field/answers-unknown" in codes:
        return "it is not known who has answered it since the run"
    is_taken = origin.action is not Action.CREATE and "custom-field/answers-lost" in codes
    return "people have chosen since the run what it added" if is_taken else None


def archived_instead(change: Change) -> Mapping[str, Json]:
    """Return the keys that undo the creation of an account, which is never deleted."""
    return {"archived": True, **({"admin": False} if members(change.after).get("admin") else {})}


def why_not_emptied(planning: PlanContext, key: str, part: str | None) -> str | None:
    """Return why the service removes no such value of a person, such as an answer to a field; None if it does."""
    if key == "metadata" and part is not None and _merges_metadata(planning):
        return f'the service merges metadata, so that "{part}" cannot be removed'
    if key == "answers" and part in planning.field_types and _is_never_cleared(planning, str(part)):
        return f'the service refuses to clear the answer to "{part}"'
    return "the service takes no empty text" if key in TEXTS else None


def _merges_metadata(planning: PlanContext) -> bool:
    return planning.api_spec.behaviour(METADATA_MODE) == "merge"


def _is_never_cleared(planning: PlanContext, field: str) -> bool:
    """Whether the service clears answers to a field in no form."""
    return planning.api_spec.behaviour(clear_answer_key(planning.field_types.get(field, "TEXT"))) == NEVER_CLEARED


def undo_extent(planning: PlanContext, subject: Subject, sides: BeforeAfter) -> Undo:
    """Return how much of a change a later plan can undo; requires `settle`."""
    kind = subject.address.kind
    if kind == CUSTOM_FIELD:
        return field_undo(planning, subject.address)
    if kind == USER:
        return _person_undo(planning, sides, subject.row if isinstance(subject.row, PersonRow) else None)
    if kind == CONTENT_TARGET:
        return _assignment_undo(planning, subject)
    match subject:
        case Deletion():
            return partial_undo(f"the {kind.replace('_', ' ')} comes back with another id")
        case SideEffect():
            return partial_undo("its conditions come back, with the new id of what they name")
    reason = why_undo_keeps_conditions(sides) if kind == SMART_GROUP else None
    return FULL_UNDO if reason is None else partial_undo(reason)


def _assignment_undo(planning: PlanContext, subject: Subject) -> Undo:
    """Return the extent for an assignment: one that is deleted, even to be created again, loses its progress."""
    row = subject.row if isinstance(subject, Match | Deletion) else None
    if row is not None and not is_window_declarable(row):
        return Undo(level=UndoLevel.NONE, reason="no manifest can declare its window")
    stays = isinstance(subject, Match) and (subject.row is None or update_action(planning) is not Action.REPLACE)
    return FULL_UNDO if stays else partial_undo("the assignment comes back with another id and without progress")


def _person_undo(planning: PlanContext, sides: BeforeAfter, row: PersonRow | None) -> Undo:
    """Return how much of a change to a person can be undone."""
    if sides.before is None:
        return partial_undo("the account can be archived, and not deleted")
    reason = next(_set_for_good(planning, sides.before, sides.after or {}), None)
    if row is not None and row.manages:
        reason = "groups that go with the manager right are not given back"
    return FULL_UNDO if reason is None else partial_undo(reason)


def _set_for_good(planning: PlanContext, before: Form, after: Form) -> Iterator[str]:
    """Yield why values that a person gets for the first time stay: the service removes them in no form."""
    texts = [key for key in TEXTS if key in before and not before[key] and after.get(key)]
    if texts:
        yield f"{' and '.join(texts)} cannot be made empty again"
    held, given = (cast("dict[str, object]", side.get("answers") or {}) for side in (before, after))
    new = sorted(field for field, answer in given.items() if answer and not held.get(field))
    kept = [f'"{field}"' for field in new if _is_never_cleared(planning, field)]
    if kept:
        yield f"the service refuses to clear the answer to {' and '.join(kept)} again"
    held, given = (cast("dict[str, object]", side.get("metadata", {})) for side in (before, after))
    if _merges_metadata(planning) and any(given[key] is not None and held.get(key) is None for key in given):
        yield "the service merges metadata, so that no key can be removed"


def with_undo_limits(snapshot: Snapshot, changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the changes of a plan with what their names, and what they refer to, keep from being undone."""
    rows = [(kind, row.name) for kind in {change.address.kind for change in changes} for row in snapshot.of(kind).rows]
    names = Counter((kind, normalize_name(name)) for kind, name in rows)
    looks = Counter((kind, casefold_name(name)) for kind, name in rows)
    limited = [_limited(change, _why_name_is_lost(change, names, looks)) for change in changes]
    lost = {
        _address_before(one)
        for one in limited
        if one.undo.level is UndoLevel.NONE and one.id is not None and is_named(KINDS[one.address.kind])
    }
    return tuple(_limited(change, _why_reference_is_lost(change, lost)) if lost else change for change in limited)


def _limited(change: Change, reason: str | None) -> Change:
    """Return a change that cannot be undone for a reason: not at all, or all but in part; None: as before."""
    level = UndoLevel.NONE if change.action is Action.DELETE else UndoLevel.PARTIAL
    return change if reason is None else replace(change, undo=Undo(level=level, reason=reason))


def _why_name_is_lost(change: Change, names: Counter[tuple[str, str]], looks: Counter[tuple[str, str]]) -> str | None:
    """Return why other live names, equal or looking the same, keep a resource from getting its name back.

    names, looks: how many live resources of a kind have a name, and one that looks the same.
    """
    kind, name = KINDS[change.address.kind], _address_before(change).name
    if not is_named(kind) or change.id is None:
        return None
    if change.action is Action.DELETE:
        parts = members(change.before).get(str(kind.parts_key))
        part_looks = [casefold_name(str(part)) for part in parts] if isinstance(parts, list) else []
        if len(set(part_looks)) < len(part_looks):
            return f"two of its {kind.parts_key} look the same, so that it cannot be created again"
        if looks[kind.name, casefold_name(name)] > 1:
            return "another resource has its name, or one that looks the same, so that it cannot be created again"
    elif renamed_to(kind, change) is not None and names[kind.name, name] > 1:
        return "another resource has its earlier name, so that it keeps the new one"
    return None


def _why_reference_is_lost(change: Change, lost: set[Address]) -> str | None:
    """Return what a resource refers to that cannot come back; None if it cannot itself, or all can."""
    missing = next((one for one in references(members(change.before)) if one in lost), None)
    if missing is None or change.undo.level is UndoLevel.NONE:
        return None
    return f"it refers to {missing}, which cannot come back"


def _address_before(change: Change) -> Address:
    """Return the address that the resource of a change has before the plan."""
    name = members(change.before).get(KINDS[change.address.kind].name_key)
    return change.address if name is None else Address.of(change.address.kind, str(name))


def pre_image(plan: Plan, snapshot: Snapshot) -> Snapshot:
    """Return the rows that a plan changes, those that they and its calls refer to, and what is destroyed with them.

    Of kinds with names, all rows are kept with their names, because names are what manifests refer to; of people and
    content only those that are referred to.
    """
    ids = {change.id for change in plan.changes if change.id is not None}
    lost = sorted(people_losing_answers(snapshot, plan.changes), key=lambda row: row.id)[:MOST_KEPT]
    changed = [row for kind in KINDS.values() for row in snapshot.rows(row_type_of(kind)) if row.id in ids]
    paths = (part for call in plan.calls for part in call.path.split("/"))
    texts = {*paths, *texts_in([call.body for call in plan.calls]), *texts_in(changed)}
    listings: dict[str, Listing[Any]] = {}
    for row_type, is_whole in [(row_type, is_named(kind)) for kind in KINDS.values() for row_type in kind.row_types]:
        rows: dict[str, Any] = {
            row.id: row for row in snapshot.rows(row_type) if is_whole or row.id in ids or row.id in texts
        }
        if row_type is PersonRow:
            rows |= {row.id: _joined(rows[row.id], row) if row.id in rows else row for row in lost}
        why = snapshot.of(row_type.listing).incomplete if is_whole else "only what a run changed was kept"
        listings[row_type.listing] = Listing(rows=tuple(rows[id] for id in sorted(rows)), incomplete=why)
    return replace(snapshot, listings=listings)


def _joined(row: Any, destroyed: Any) -> Any:
    """Return a row that is kept for its own change, with the values that were read only because they are destroyed."""
    return replace(
        row, **{name: getattr(destroyed, name) for name in row.__struct_fields__ if getattr(row, name) is None}
    )
