"""The calls that create or change a person, and answers to custom fields: compared by name, sent by id.

Rights are revoked before an archive date is set and before the account is archived. No administrator right is revoked
before all of the plan's grants of it are done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, TypeAlias, cast

from msgspec.structs import replace

from lmsconf.api.spec.value_encoding import ANSWERS, PickedChoice, build_answers_body, encode_answer, sends_names
from lmsconf.kinds.custom_field.compare import (
    answered_ref,
    named_ref,
    references_exist,
)
from lmsconf.kinds.custom_field.lost_answers import FieldOrChoiceDeletion, answer_keys
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, USER, choices_registry_kind
from lmsconf.kinds.shared.manifest_entry import PeopleList, included
from lmsconf.kinds.shared.plan_context import BeforeAfter, Match, PlanContext
from lmsconf.kinds.shared.responses import AnswerRow
from lmsconf.kinds.shared.steps import free_name_ref, freed_name_ref, granted_rights_ref, refs_in
from lmsconf.kinds.user.types import APPLICATIONS, RIGHTS, TEXTS, Answer, PersonRow, PersonSpec, picked_choices
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.calls import Step
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.forms import Form
from lmsconf.model.names import normalize_name
from lmsconf.model.time_formats import format_request_time

_SEVERAL: Final = "MULTI_SELECT"
_Value: TypeAlias = "str | list[PickedChoice] | None"
"""An answer as it is encoded."""


def resolve_declared_answers(planning: PlanContext, declared: DesiredResource[PersonSpec]) -> dict[str, Answer] | None:
    """Return the declared answers in the shape of their fields' types; None, with problems, if one is invalid."""
    wanted: dict[str, Answer] = {}
    whole = True
    for field, answer in declared.spec.answers.items():
        type, at = _type(planning, field), ("answers", field)
        if wrong := _misfit(type, answer):
            planning.report(
                declared, "user/answer", f"{Address.of(CUSTOM_FIELD, field)} {wrong}", at=declared.places.at(*at)
            )
            whole = False
        choices = frozenset[str]() if type == "TEXT" else picked_choices(answer)
        whole = references_exist(planning, declared, field, choices, at) and whole
        wanted[field] = _shaped(type, answer)
    return wanted if whole else None


def _misfit(type: str, answer: Answer) -> str | None:
    """Return why a field of that type cannot hold the answer, or None."""
    if isinstance(answer, frozenset):
        if type == "TEXT":
            return "is a TEXT field and takes a text, not a list"
        if type == "CHOICE" and len(answer) > 1:
            return "is a CHOICE field and takes one choice"
    return None


def _shaped(type: str, answer: Answer) -> Answer:
    """Return an answer as plans show it: a set for a MULTI_SELECT field, one text for any other."""
    if type == _SEVERAL:
        return picked_choices(answer)
    return next(iter(answer), None) if isinstance(answer, frozenset) else answer


def live_answers(planning: PlanContext, row: PersonRow, wanted: Iterable[str]) -> dict[str, Answer]:
    """Return the live answers to the fields `wanted`, with fields and choices by their names after the plan."""
    ids = _field_ids(planning) if row.answers else {}
    held = {_field_name(planning, ids, answer): answer for answer in row.answers or ()}
    return {field: _live(planning, field, held.get(field)) for field in wanted}


def _live(planning: PlanContext, field: str, answer: AnswerRow | None) -> Answer:
    type = _type(planning, field)
    if type == "TEXT":
        return (answer.as_text or None) if answer else None
    scope = choices_registry_kind(field)
    return _shaped(
        type, frozenset(planning.registry.name(scope, one) or one for one in (answer.picked if answer else ()))
    )


def _field_name(planning: PlanContext, ids: Mapping[str, RemoteId], answer: AnswerRow) -> str:
    """Return the name that the field of a live answer will have after the plan. ids: live field name → id."""
    id = ids.get(answer.field)
    return (planning.registry.name(CUSTOM_FIELD, id) if id else None) or answer.field


def _field_ids(planning: PlanContext) -> dict[str, RemoteId]:
    return {normalize_name(row.name): row.id for row in planning.snapshot.rows(FieldRow)}


def choice_refs_in_answers(planning: PlanContext, answers: Mapping[str, Answer]) -> frozenset[Ref]:
    """Return Refs to the choices that answers name."""
    return frozenset(
        Ref(Address.of(CUSTOM_FIELD, field), name)
        for field, answer in answers.items()
        if planning.field_types.get(field) != "TEXT"
        for name in picked_choices(answer)
    )


def record_choice_changes(planning: PlanContext, before: Mapping[str, Answer], after: Mapping[str, Answer]) -> None:
    """Record the choices dropped and picked as `changed_refs`: fields make or rename the new first."""
    old, new = choice_refs_in_answers(planning, before), choice_refs_in_answers(planning, after)
    if old != new:
        sent = ((field, _value(planning, field, answer)) for field, answer in after.items())
        planning.changed_refs.append((old - new, (new - old) | _named(planning, sent)))


def answers_steps(
    planning: PlanContext,
    at: Address,
    path: Mapping[str, str | Ref],
    row: PersonRow | None,
    before: Mapping[str, Answer],
    after: Mapping[str, Answer],
) -> list[Step]:
    """Return one call, or two: what is set, then what is cleared after smart groups have moved from it to what is set.

    Nobody leaves these smart groups for a moment, which can be many calls long.
    """
    given, moves = choice_refs_in_answers(planning, after), planning.added_refs
    cleared = (field for field in after if before.get(field) and not after[field])
    late = {field: before[field] for field in cleared if given & moves.get(field, frozenset())}
    if not late:
        return [_answers_step(planning, path, row, before, after)]
    between = {**after, **late}
    first = _answers_step(planning, path, row, before, between)
    last = _answers_step(planning, path, row, between, after)
    done = frozenset({answered_ref(at)})
    return [replace(first, makes=first.makes | done), replace(last, makes=frozenset(), uses=last.uses | done)]


def _answers_step(
    planning: PlanContext,
    path: Mapping[str, str | Ref],
    row: PersonRow | None,
    before: Mapping[str, Answer],
    after: Mapping[str, Answer],
) -> Step:
    """Return one call with the changed answers, or with all if the dialect says that omitted ones are cleared."""
    changed = {field: answer for field, answer in after.items() if (before.get(field) or None) != (answer or None)}
    behaviour = planning.api_spec.behaviour
    sent: dict[RemoteId | Ref, tuple[str, _Value]] = {}
    if row is not None and behaviour(f"{ANSWERS}.omitted") == "clear":
        sent.update(_kept(planning, row))
        changed |= {field: answer for field, answer in after.items() if answer}
    for field, answer in changed.items():
        id = planning.registry.id_or_ref(Ref(Address.of(CUSTOM_FIELD, field)))
        sent[id] = field, _value(planning, field, answer)
    body = {id: encode_answer(behaviour, _type(planning, field), value) for id, (field, value) in sent.items()}
    old, new = choice_refs_in_answers(planning, before), choice_refs_in_answers(planning, after)
    return Step(
        operation=ANSWERS,
        path=path,
        body=build_answers_body(behaviour, body),
        makes=_answered(changed, new),
        uses=_to_come(planning, changed) | _named(planning, sent.values()) | frozenset(refs_in(path)),
        releases=(old - new) | _deleted_fields(planning, row),
        follows=_answers_taken(old, new),
    )


def _answers_taken(old: frozenset[Ref], new: frozenset[Ref]) -> frozenset[Ref]:
    """Return Refs to the answers that a call takes away without another: smart groups cease to ask for them first."""
    changed = {ref.address for ref in new - old}
    return frozenset(answered_ref(ref.address, ref.part) for ref in old - new if ref.address not in changed)


def _answered(changed: Mapping[str, Answer], picked: frozenset[Ref]) -> frozenset[Ref]:
    """Return Refs to the answers that a call sets: smart groups that start to ask for them wait for it."""
    fields = {Address.of(CUSTOM_FIELD, field) for field in changed}
    return frozenset(answered_ref(ref.address, ref.part) for ref in picked if ref.address in fields) | {
        answered_ref(field) for field in fields
    }


def _deleted_fields(planning: PlanContext, row: PersonRow | None) -> frozenset[Ref]:
    """Return Refs to the answered fields that the plan deletes: they are deleted after the call."""
    answered = {answer.field for answer in (row.answers if row else None) or ()}
    deleted = (loss for loss in planning.losses if loss.choices is None)
    return frozenset(Ref(loss.address) for loss in deleted if answered & answer_keys(loss.field))


def _to_come(planning: PlanContext, answers: Mapping[str, Answer]) -> frozenset[Ref]:
    """Return Refs to the fields and choices in the answers that this plan creates."""
    fields = (Ref(Address.of(CUSTOM_FIELD, field)) for field in answers)
    named = {*fields, *choice_refs_in_answers(planning, answers)}
    return frozenset(ref for ref in named if isinstance(planning.registry.id_or_ref(ref), Ref))


def _named(planning: PlanContext, sent: Iterable[tuple[str, _Value]]) -> frozenset[Ref]:
    """Return Refs to the choices that a call names being renamed so, which the plan may do."""
    behaviour = planning.api_spec.behaviour
    return frozenset(
        named_ref(Address.of(CUSTOM_FIELD, field), choice.name)
        for field, value in sent
        if isinstance(value, list) and sends_names(behaviour, _type(planning, field))
        for choice in value
    )


def _type(planning: PlanContext, field: str) -> str:
    return planning.field_types.get(field, _SEVERAL)


def _value(planning: PlanContext, field: str, answer: Answer) -> _Value:
    """Return an answer as `encode_answer` takes it; an empty one removes the answer."""
    if _type(planning, field) == "TEXT":
        return cast("str | None", answer)
    at = Address.of(CUSTOM_FIELD, field)
    return [PickedChoice(planning.registry.id_or_ref(Ref(at, name)), name) for name in sorted(picked_choices(answer))]


def _kept(planning: PlanContext, row: PersonRow) -> dict[RemoteId | Ref, tuple[str, _Value]]:
    """Return all live answers of a person by field id, with the field's name, as `encode_answer` takes them.

    Choices that the plan deletes are left out: their call may come first, and the service would refuse. A field is
    deleted after the call.
    """
    out: dict[RemoteId | Ref, tuple[str, _Value]] = {}
    lost = {subject for loss in planning.losses for subject in _lost_ids(loss)}
    field_ids = _field_ids(planning)
    for answer in row.answers or ():
        id = field_ids.get(answer.field)
        if id is not None:
            name = _field_name(planning, field_ids, answer)
            kept = [_choice(planning, name, choice) for choice in sorted(answer.picked) if (id, choice) not in lost]
            if value := answer.as_text if _type(planning, name) == "TEXT" else kept:
                out[id] = name, value
    return out


def _lost_ids(loss: FieldOrChoiceDeletion) -> Iterator[object]:
    """Yield the field id with the id and the name of each deleted choice of a field that stays."""
    for choice in loss.field.choices:
        if loss.choices is not None and choice.id in loss.choices:
            yield from ((loss.field.id, choice.id), (loss.field.id, choice.name))


def _choice(planning: PlanContext, field: str, shown: str) -> PickedChoice:
    """Return a choice that a live answer gives by id or by name."""
    scope = choices_registry_kind(field)
    name = planning.registry.name(scope, shown)
    if name is None and planning.registry.has(scope, shown):
        return PickedChoice(planning.registry.id_or_ref(Ref(Address.of(CUSTOM_FIELD, field), shown)), shown)
    return PickedChoice(shown, name or shown)


_ADMINS: Final = Ref(Address(USER, ""), "(all admins)")

_PROFILE: Final = {
    "users.update-email": ("email",),
    "users.update-fullname": ("first_name", "last_name"),
    "users.update-language": ("language",),
}
"""Operation → the keys of entries that it sets."""
Path = Mapping[str, "str | Ref"]


def person_steps(planning: PlanContext, match: Match[PersonSpec, PersonRow], sides: BeforeAfter) -> list[Step]:
    """Return the calls: create or unarchive, profile, metadata, answers, rights, applications, archive date, archive.

    An archive date is cleared before rights are granted, and set after they are revoked.
    """
    at, row = match.address, match.row
    spec = match.declared.spec
    before, after = sides.before or {}, sides.after or {}
    path: Path = {"userId": Ref(at) if row is None else row.id}
    steps = [_creation(planning, at, after)] if row is None else []
    if before.get("archived") and not after["archived"]:
        steps.append(Step(operation="users.unarchive", path=path, makes=frozenset({Ref(at, "(active)")})))
    ready = frozenset(ref for step in steps for ref in step.makes)
    if row is not None:
        steps.extend(_profile(planning, at, row, path, ready, before, after))
    steps.extend(_metadata(planning, row, path, ready, before, after))
    if _differs(before, after, "answers"):
        old, new = (cast("Mapping[str, Answer]", form.get("answers", {})) for form in (before, after))
        steps.extend(replace(one, uses=one.uses | ready) for one in answers_steps(planning, at, path, row, old, new))
    if _differs(before, after, "custom_archive_date") and spec.archive_date is None and row is not None:
        steps.append(_archive_date(planning, path, None, ready, cleared=at))
    steps.extend(_rights(at, path, ready, before, after))
    steps.extend(_applications(planning, at, path, ready, before, after))
    if _differs(before, after, "custom_archive_date") and spec.archive_date is not None:
        steps.append(_archive_date(planning, path, spec.archive_date, ready | _revoked(at)))
    if row is not None and after.get("archived") and not before["archived"]:
        made = frozenset(ref for step in steps for ref in step.makes)
        # The person may be an administrator, so new administrators are granted first.
        steps.append(Step(operation="users.archive", path=path, uses=made | _revoked(at) | {_ADMINS}, revokes=True))
    return steps


def _differs(before: Form, after: Form, key: str) -> bool:
    return key in after and (key not in before or before[key] != after[key])


def _creation(planning: PlanContext, at: Address, after: Form) -> Step:
    """Return the call that creates the account, without a welcome e-mail: sending one is not lmsconf's decision."""
    texts = {wire_name: after[key] for key, wire_name in TEXTS.items()}
    return Step(
        operation="users.create",
        body=planning.api_spec.body_to_wire("users.create", email=at.name, **texts, sendWelcomeEmail=False),
        makes=frozenset({Ref(at)}),
        uses=free_name_ref(at),
    )


def _profile(
    planning: PlanContext, at: Address, row: PersonRow, path: Path, ready: frozenset[Ref], before: Form, after: Form
) -> Iterator[Step]:
    """Yield the changes of e-mail, names and language of an existing account."""
    for operation, keys in _PROFILE.items():
        values = {TEXTS.get(key, key): after[key] for key in keys if _differs(before, after, key)}
        if values:
            is_renamed = "email" in values
            yield Step(
                operation=operation,
                path=path,
                body=planning.api_spec.body_to_wire(operation, **values),
                makes=freed_name_ref(USER, row) if is_renamed else frozenset(),
                uses=ready | (free_name_ref(at) if is_renamed else frozenset()),
            )


def _metadata(
    planning: PlanContext, row: PersonRow | None, path: Path, ready: frozenset[Ref], before: Form, after: Form
) -> Iterator[Step]:
    """Yield one call with the live map and the declared keys: the service may replace the whole map."""
    if not _differs(before, after, "metadata"):
        return
    declared = cast("Mapping[str, str | None]", after["metadata"])
    held = dict(row.metadata or ()) if row else {}
    whole = {key: value for key, value in {**held, **declared}.items() if value is not None}
    if whole != held:
        yield Step(
            operation="users.update-metadata",
            path=path,
            body=planning.api_spec.body_to_wire("users.update-metadata", metadata=whole),
            uses=ready,
        )


def _rights(at: Address, path: Path, ready: frozenset[Ref], before: Form, after: Form) -> Iterator[Step]:
    """Yield grants and revocations; adding the person to a list of managers waits for the grants."""
    for key in RIGHTS:
        if not _differs(before, after, key) or (key not in before and not after[key]):
            continue
        is_granted = bool(after[key])
        everybody = frozenset({_ADMINS}) if key == "admin" else frozenset()
        yield Step(
            operation=f"user-access.make-{key}",
            path={**path, "endow": str(is_granted).lower()},
            makes=granted_rights_ref(at.name) | everybody if is_granted else _revoked(at),
            uses=ready | ({_cleared(at)} if is_granted else everybody),
            revokes=not is_granted,
        )


def _applications(
    planning: PlanContext, at: Address, path: Path, ready: frozenset[Ref], before: Form, after: Form
) -> Iterator[Step]:
    """Yield one call per application to add or remove.

    The initial applications of a new account are not specified, so for it all additions and removals are sent.
    """
    wanted = after.get("applications")
    if not isinstance(wanted, PeopleList):
        return
    held = included(before, "applications")
    unwanted = held - wanted.include
    if "applications" not in before:
        unwanted = frozenset(APPLICATIONS) - wanted.include if wanted.whole else wanted.exclude
    for action, applications in (("ADD", wanted.include - held), ("REMOVE", unwanted)):
        for application in sorted(applications):
            taken = action == "REMOVE"
            yield Step(
                operation="user-access.set",
                path={**path, "action": action},
                body=planning.api_spec.body_to_wire("user-access.set", applicationId=application),
                makes=_revoked(at) if taken else frozenset(),
                uses=ready,
                revokes=taken,
            )


def _archive_date(
    planning: PlanContext, path: Path, date: datetime | None, uses: frozenset[Ref], cleared: Address | None = None
) -> Step:
    operation = "users.set-custom-archived-date"
    moment = None if date is None else format_request_time(date, "epoch-ms-number")
    makes = frozenset({_cleared(cleared)}) if cleared else frozenset()
    body = planning.api_spec.body_to_wire(operation, date=moment)
    # A date revokes access when it is reached; clearing it does not restore access already lost.
    return Step(operation=operation, path=path, body=body, makes=makes, uses=uses, revokes=date is not None)


def _cleared(at: Address) -> Ref:
    """Return the Ref made by clearing the archive date; grants of rights depend on it."""
    return Ref(at, "(no archive date)")


def _revoked(at: Address) -> frozenset[Ref]:
    """Return the Ref made by revocations; setting an archive date and archiving depend on it."""
    return frozenset({Ref(at, "(revoked)")})
