"""What `plan --undo` needs of custom fields and of people: their whole state, and what cannot be undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from lmsconf.api.spec.dialect_keys import METADATA_MODE
from lmsconf.api.spec.value_encoding import NEVER_CLEARED, clear_answer_key
from lmsconf.kinds.custom_field.compare import live_field_form
from lmsconf.kinds.custom_field.lost_answers import answer_rows
from lmsconf.kinds.custom_field.types import FLAGS, FieldRow
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, USER
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.kinds.shared.responses import AnswerRow, comparable
from lmsconf.kinds.user.types import TEXTS, PersonRow
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.forms import Form
from lmsconf.model.names import normalize_email, normalize_name
from lmsconf.model.plan import Action, Change, Plan
from lmsconf.model.snapshot import Snapshot


def field_form(row: FieldRow) -> Form:
    """Return every key of a live field; a flag that the response lacks is left out."""
    flags = {key: getattr(row, key) for key in FLAGS}
    return {**live_field_form(row), **{key: flag for key, flag in flags.items() if flag is not None}}


def _deleted_choices(field: FieldRow, change: Change) -> frozenset[str] | None:
    """Return the ids of the choices that a change deletes; None if it deletes the field."""
    if change.action is Action.DELETE:
        return None
    names = {normalize_name(str(name)) for one in change.fields if one.path == "choices" for name in one.removed}
    return frozenset(choice.id for choice in field.choices if normalize_name(choice.name) in names)


def people_losing_answers(snapshot: Snapshot, changes: Iterable[Change]) -> Iterator[PersonRow]:
    """Yield the people whose answers the changes delete, with their answers to these fields."""
    fields: dict[str, FieldRow] = {row.id: row for row in snapshot.rows(FieldRow)}
    lost: dict[str, tuple[FieldRow, frozenset[str] | None]] = {}
    for change in changes:
        field = fields.get(change.id or "") if change.address.kind == CUSTOM_FIELD else None
        choices = None if field is None else _deleted_choices(field, change)
        if field is not None and (choices is None or choices):
            lost |= dict.fromkeys((normalize_name(field.name), field.id), (field, choices))
    people = {row.id: row for row in snapshot.rows(PersonRow)}
    for row in answer_rows(snapshot) if lost else ():
        held = tuple(one for field, one in row.answers or () if field in lost and one and _is_lost(one, *lost[field]))
        person = people.get(row.id)
        if held and person is not None:
            yield PersonRow(person.id, person.email, person.archived, answers=held)
        elif held:
            # Only the answers of people were read, and an id is enough to give them back.
            yield PersonRow(row.id, "", answers=held)


def _is_lost(answer: AnswerRow, field: FieldRow, choices: frozenset[str] | None) -> bool:
    return bool(answer.picked) if choices is None else bool(_picked(answer, field, choices))


def _picked(answer: AnswerRow, field: FieldRow, choices: frozenset[str] | None) -> list[str]:
    """Return the names of the choices of an answer, as far as they are among these."""
    picked = frozenset(map(comparable, answer.picked))
    among = [one for one in field.choices if choices is None or one.id in choices]
    return [normalize_name(one.name) for one in among if picked & {comparable(one.id), comparable(one.name)}]


def lost_answer_entries(before: PlanContext, change: Change, row: FieldRow) -> Iterator[Mapping[str, Json]]:
    """Yield an entry for each person whose answer to a field, or whose choice, a run deleted."""
    choices = _deleted_choices(row, change)
    if choices is not None and not choices:
        return
    field = before.registry.name(CUSTOM_FIELD, row.id) or normalize_name(row.name)
    for person in before.snapshot.rows(PersonRow):
        for answer in person.answers or ():
            if answer.field in (normalize_name(row.name), row.id):
                value = _value(answer, row, choices)
                if value:
                    yield {"email": person.name, "id": person.id, "answers": {field: value}}


def _value(answer: AnswerRow, field: FieldRow, choices: frozenset[str] | None) -> Json:
    if field.type == "TEXT":
        return answer.as_text
    names = _picked(answer, field, choices)
    return [*names] if field.type == "MULTI_SELECT" else (names[0] if names else None)


def answered_since(live: PlanContext, row: FieldRow, plan: Plan) -> str | None:
    """Return how many people have answered a field that a run created, without the answers that the run gave."""
    name = normalize_name(row.name)
    given = {
        normalize_email(change.address.name): _given(change.after)[name]
        for change in plan.changes
        if change.address.kind == USER and name in _given(change.after)
    }
    emails = {person.id: person.name for person in live.snapshot.rows(PersonRow)}
    number = sum(
        not _is_given(_value(answer, row, None), given.get(emails.get(one.id, "")))
        for one in answer_rows(live.snapshot)
        for field, answer in one.answers or ()
        if field in (name, row.id) and answer and answer.picked
    )
    people = "1 person has" if number == 1 else f"{number:,} people have"
    return f"{people} answered it since the run" if number else None


def _is_given(answer: Json, given: Json) -> bool:
    """Whether an answer is the one that a run gave: choices in any order."""
    both = [value if isinstance(value, list) else [value] for value in (answer, given)]
    return {normalize_name(str(one)) for one in both[0]} == {normalize_name(str(one)) for one in both[1]}


def _given(form: Json) -> Mapping[str, Json]:
    return members(members(form).get("answers"))


def answers_taken(planning: PlanContext, address: Address, origin: Change) -> str | None:
    """Return why the undo of a change to a field would delete answers that others have given since the run.

    Of a field that the run created, `answered_since` knows whose answers are the run's own.
    """
    codes = {problem.code for problem in planning.problems if problem.address == str(address)}
    if "custom-field/answers-unknown" in codes:
        return "it is not known who has answered it since the run"
    if origin.action is not Action.CREATE and "custom-field/answers-lost" in codes:
        return "people have chosen since the run what it added"
    return None


def archived_instead(change: Change) -> Mapping[str, Json]:
    """Return the keys that undo the creation of an account, which is never deleted."""
    form = change.after if isinstance(change.after, dict) else {}
    return {"archived": True, **({"admin": False} if form.get("admin") else {})}


def why_not_emptied(planning: PlanContext, key: str, part: str | None, field: FieldRow | None) -> str | None:
    """Return why the service removes no such value, in the words of a draft; None if it does."""
    behaviour = planning.api_spec.behaviour
    if key in TEXTS:
        return "the service takes no empty text"
    if key == "metadata" and part is not None and behaviour(METADATA_MODE) == "merge":
        return f'the service merges metadata, so that "{part}" cannot be removed'
    if key != "answers" or field is None or behaviour(clear_answer_key(field.type)) != NEVER_CLEARED:
        return None
    return f'the service refuses to clear the answer to "{field.name}"'
