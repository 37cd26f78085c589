"""The calls that create or change a person, and answers to custom fields: compared by name, sent by id.

Rights are revoked before an archive date is set and before the account is archived. No administrator right is revoked
before all of the plan's grants of it are done.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Final, TypeAlias, cast

from msgspec.structs import replace

from lmsconf.api.spec.value_encoding import (
    ANSWERS,
    OMITTED,
    PickedChoice,
    build_answers_body,
    encode_answer,
    sends_names,
)
from lmsconf.kinds.custom_field.compare import (
    answered_ref,
    named_ref,
    references_exist,
)
from lmsconf.kinds.custom_field.lost_answers import answer_keys
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, USER, choices_registry_kind
from lmsconf.kinds.shared.manifest_entry import PeopleList, included
from lmsconf.kinds.shared.plan_context import BeforeAfter, Match, PlanContext
from lmsconf.kinds.shared.rename_and_list_steps import (
    free_name_ref,
    free_name_ref_of_row,
    granted_rights_ref,
    refs_in,
)
from lmsconf.kinds.shared.responses import AnswerRow
from lmsconf.kinds.user.types import (
    APPLICATIONS,
    ARCHIVE_DATE,
    RIGHTS,
    TEXTS,
    Answer,
    PersonRow,
    PersonSpec,
    picked_choices,
)
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.calls import Step
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.forms import Form
from lmsconf.model.names import normalize_name
from lmsconf.model.time_formats import format_request_time

_Value: TypeAlias = "str | list[PickedChoice] | None"
"""An answer as it is encoded."""


def resolve_declared_answers(planning: PlanContext, declared: DesiredResource[PersonSpec]) -> dict[str, Answer] | None:
    """Return the declared answers in the shape of their fields' types; None, with problems, if one is invalid."""
    wanted: dict[str, Answer] = {}
    whole = True
    for field, answer in declared.spec.answers.items():
        type, at = _type(planning, field), ("answers", field)
        is_list = isinstance(answer, frozenset) and type == "TEXT"
        if is_list or (isinstance(answer, frozenset) and type == "CHOICE" and len(answer) > 1):
            planning.report(
                declared,
                "user/answer",
                f"{Address.of(CUSTOM_FIELD, field)} is a {type} field and takes "
                f"{'a text, not a list' if is_list else 'one choice'}",
                at=declared.places.at(*at),
            )
            whole = False
        choices = frozenset[str]() if type == "TEXT" else picked_choices(answer)
        whole = references_exist(planning, declared, field, choices, at) and whole
        wanted[field] = _shaped(type, answer)
    return wanted if whole else None


def _shaped(type: str, answer: Answer) -> Answer:
    """Return an answer as plans show it: a set for a MULTI_SELECT field, one text for any other."""
    if type == "MULTI_SELECT":
        return picked_choices(answer)
    return min(answer, default=None) if isinstance(answer, frozenset) else answer


def live_answers(planning: PlanContext, row: PersonRow, wanted: Iterable[str]) -> dict[str, Answer]:
    """Return the live answers to the fields `wanted`, with fields and choices by their names after the plan."""
    held = {name: answer for _, name, answer in _answers_by_field(planning, row)}
    return {field: _live(planning, field, held.get(field)) for field in wanted}


def _live(planning: PlanContext, field: str, answer: AnswerRow | None) -> Answer:
    type, scope = _type(planning, field), choices_registry_kind(field)
    if type == "TEXT":
        return (answer and answer.as_text) or None
    picked = answer.picked if answer else ()
    return _shaped(type, frozenset(planning.registry.name(scope, one) or one for one in picked))


def _answers_by_field(planning: PlanContext, row: PersonRow) -> Iterator[tuple[RemoteId | None, str, AnswerRow]]:
    """Yield the live answers of a person, each with the id of its field and the name of that after the plan."""
    ids = {normalize_name(field.name): field.id for field in planning.snapshot.rows(FieldRow)} if row.answers else {}
    for answer in row.answers or ():
        id = ids.get(answer.field)
        yield id, (planning.registry.name(CUSTOM_FIELD, id) if id else None) or answer.field, answer


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
    given = choice_refs_in_answers(planning, after)
    late = {
        field: before[field]
        for field, answer in after.items()
        if before.get(field) and not answer and given & planning.added_refs.get(field, frozenset())
    }
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
    behaviour, id_or_ref = planning.api_spec.behaviour, planning.registry.id_or_ref
    is_whole = row is not None and behaviour(OMITTED) == "clear"
    changed = {
        field: answer
        for field, answer in after.items()
        if (before.get(field) or None) != (answer or None) or (is_whole and answer)
    }
    fields = {field: Ref(Address.of(CUSTOM_FIELD, field)) for field in changed}
    sent = _kept(planning, row) if row is not None and is_whole else {}
    sent |= {id_or_ref(fields[field]): (field, _value(planning, field, answer)) for field, answer in changed.items()}
    body = {id: encode_answer(behaviour, _type(planning, field), value) for id, (field, value) in sent.items()}
    old, new = choice_refs_in_answers(planning, before), choice_refs_in_answers(planning, after)
    replaced = {ref.address for ref in new - old}
    # Smart groups that start to ask for the answers wait for the call.
    answered = {answered_ref(ref.address, ref.part) for ref in new if ref.address.name in fields}
    return Step(
        operation=ANSWERS,
        path=path,
        body=build_answers_body(behaviour, body),
        makes=frozenset(answered.union(answered_ref(ref.address) for ref in fields.values())),
        uses=_named(planning, sent.values()).union(
            refs_in(path, *map(id_or_ref, (*fields.values(), *choice_refs_in_answers(planning, changed))))
        ),
        releases=(old - new) | _deleted_fields(planning, row),
        # Smart groups cease to ask first for answers that are taken away without another.
        follows=frozenset(answered_ref(ref.address, ref.part) for ref in old - new if ref.address not in replaced),
    )


def _deleted_fields(planning: PlanContext, row: PersonRow | None) -> frozenset[Ref]:
    """Return Refs to the answered fields that the plan deletes: they are deleted after the call."""
    answered = {answer.field for answer in (row.answers if row else None) or ()}
    return frozenset(
        Ref(loss.address) for loss in planning.losses if loss.choices is None and answered & answer_keys(loss.field)
    )


def _named(planning: PlanContext, sent: Iterable[tuple[str, _Value]]) -> frozenset[Ref]:
    """Return Refs to the choices that a call names being renamed so, which the plan may do."""
    return frozenset(
        named_ref(Address.of(CUSTOM_FIELD, field), choice.name)
        for field, value in sent
        if isinstance(value, list) and sends_names(planning.api_spec.behaviour, _type(planning, field))
        for choice in value
    )


def _type(planning: PlanContext, field: str) -> str:
    return planning.field_types.get(field, "MULTI_SELECT")


def _value(planning: PlanContext, field: str, answer: Answer) -> _Value:
    """Return an answer as `encode_answer` takes it; an empty one removes the answer."""
    if _type(planning, field) == "TEXT":
        return cast("str | None", answer)
    return [
        PickedChoice(planning.registry.id_or_ref(Ref(Address.of(CUSTOM_FIELD, field), name)), name)
        for name in sorted(picked_choices(answer))
    ]


def _kept(planning: PlanContext, row: PersonRow) -> dict[RemoteId | Ref, tuple[str, _Value]]:
    """Return all live answers of a person by field id, with the field's name, as `encode_answer` takes them.

    Choices that the plan deletes are left out: their call may come first, and the service would refuse. A field is
    deleted after the call.
    """
    out: dict[RemoteId | Ref, tuple[str, _Value]] = {}
    lost = {
        (loss.field.id, shown)
        for loss in planning.losses
        for choice in loss.field.choices
        if loss.choices is not None and choice.id in loss.choices
        for shown in (choice.id, choice.name)
    }
    for id, name, answer in _answers_by_field(planning, row):
        kept = [_choice(planning, name, choice) for choice in sorted(answer.picked) if (id, choice) not in lost]
        value = answer.as_text if _type(planning, name) == "TEXT" else kept
        if id is not None and value:
            out[id] = name, value
    return out


def _choice(planning: PlanContext, field: str, shown: str) -> PickedChoice:
    """Return a choice that a live answer gives by id or by name."""
    scope = choices_registry_kind(field)
    name = planning.registry.name(scope, shown)
    if name is None and planning.registry.has(scope, shown):
        return PickedChoice(planning.registry.id_or_ref(Ref(Address.of(CUSTOM_FIELD, field), shown)), shown)
    return PickedChoice(shown, name or shown)


_ADMINS: Final = Ref(Address(USER, ""), "(all admins)")
_NO_ARCHIVE_DATE: Final = "(no archive date)"

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
    before, after = sides.before or {}, sides.after or {}
    path: Path = {"userId": Ref(at) if row is None else row.id}
    first = [] if row else [_creation(planning, at, after)]
    if before.get("archived") and not after["archived"]:
        first.append(Step(operation="users.unarchive", path=path, makes=frozenset({Ref(at, "(active)")})))
    profile = _profile(planning, at, row, path, before, after) if row else ()
    steps = [*profile, *_metadata(planning, row, path, before, after)]
    if _differs(before, after, "answers"):
        old, new = (cast("Mapping[str, Answer]", form.get("answers", {})) for form in (before, after))
        steps.extend(answers_steps(planning, at, path, row, old, new))
    date = match.declared.spec.archive_date
    is_dated = _differs(before, after, ARCHIVE_DATE) and (row is not None or date is not None)
    dated = [_archive_date(planning, at, path, date)] if is_dated else []
    accesses = [*_rights(at, path, before, after), *_applications(planning, at, path, before, after)]
    steps.extend([*dated, *accesses] if date is None else [*accesses, *dated])
    ready = frozenset(ref for step in first for ref in step.makes)
    steps = [*first, *(replace(step, uses=step.uses | ready) for step in steps)]
    if row is not None and after.get("archived") and not before["archived"]:
        # The person may be an administrator, so new administrators are granted first.
        steps.append(
            Step(
                operation="users.archive",
                path=path,
                uses=_revoked(at).union({_ADMINS}, *(step.makes for step in steps)),
                revokes=True,
            )
        )
    return steps


def _differs(before: Form, after: Form, key: str) -> bool:
    return key in after and (key not in before or before[key] != after[key])


def _creation(planning: PlanContext, at: Address, after: Form) -> Step:
    """Return the call that creates the account, without a welcome e-mail: sending one is not lmsconf's decision."""
    return Step(
        operation="users.create",
        body=planning.api_spec.body_to_wire(
            "users.create",
            email=at.name,
            **{wire_name: after[key] for key, wire_name in TEXTS.items()},
            sendWelcomeEmail=False,
        ),
        makes=frozenset({Ref(at)}),
        uses=free_name_ref(at),
    )


def _profile(
    planning: PlanContext, at: Address, row: PersonRow, path: Path, before: Form, after: Form
) -> Iterator[Step]:
    """Yield the changes of e-mail, names and language of an existing account."""
    for operation, keys in _PROFILE.items():
        values = {TEXTS.get(key, key): after[key] for key in keys if _differs(before, after, key)}
        if values:
            yield Step(
                operation=operation,
                path=path,
                body=planning.api_spec.body_to_wire(operation, **values),
                makes=free_name_ref_of_row(USER, row) if "email" in values else frozenset(),
                uses=free_name_ref(at) if "email" in values else frozenset(),
            )


def _metadata(planning: PlanContext, row: PersonRow | None, path: Path, before: Form, after: Form) -> Iterator[Step]:
    """Yield one call with the live map and the declared keys: the service may replace the whole map."""
    held = dict(row.metadata or ()) if row else {}
    declared = cast("Mapping[str, str | None]", after.get("metadata", {}))
    whole = {key: value for key, value in {**held, **declared}.items() if value is not None}
    if whole != held:
        yield Step(
            operation="users.update-metadata",
            path=path,
            body=planning.api_spec.body_to_wire("users.update-metadata", metadata=whole),
        )


def _rights(at: Address, path: Path, before: Form, after: Form) -> Iterator[Step]:
    """Yield grants and revocations; adding the person to a list of managers waits for the grants."""
    for key in [key for key in RIGHTS if _differs(before, after, key) and (key in before or after[key])]:
        is_granted = bool(after[key])
        everybody = frozenset({_ADMINS}) if key == "admin" else frozenset()
        yield Step(
            operation=f"user-access.make-{key}",
            path={**path, "endow": str(is_granted).lower()},
            makes=granted_rights_ref(at.name) | everybody if is_granted else _revoked(at),
            uses=frozenset({Ref(at, _NO_ARCHIVE_DATE)}) if is_granted else everybody,
            revokes=not is_granted,
        )


def _applications(planning: PlanContext, at: Address, path: Path, before: Form, after: Form) -> Iterator[Step]:
    """Yield one call per application to add or remove.

    The initial applications of a new account are not specified, so for it all additions and removals are sent.
    """
    wanted = cast("PeopleList", after.get("applications") or PeopleList(frozenset(), whole=False))
    held = included(before, "applications")
    unwanted = held - wanted.include
    if "applications" not in before:
        unwanted = frozenset(APPLICATIONS) - wanted.include if wanted.whole else wanted.exclude
    for action, applications in (("ADD", wanted.include - held), ("REMOVE", unwanted)):
        for application in sorted(applications):
            yield Step(
                operation="user-access.set",
                path={**path, "action": action},
                body=planning.api_spec.body_to_wire("user-access.set", applicationId=application),
                makes=_revoked(at) if action == "REMOVE" else frozenset(),
                revokes=action == "REMOVE",
            )


def _archive_date(planning: PlanContext, at: Address, path: Path, date: datetime | None) -> Step:
    """Return the call that sets the archive date, after revocations, or clears it, before grants of rights."""
    return Step(
        operation="users.set-custom-archived-date",
        path=path,
        body=planning.api_spec.body_to_wire(
            "users.set-custom-archived-date", date=date and format_request_time(date, "epoch-ms-number")
        ),
        makes=frozenset({Ref(at, _NO_ARCHIVE_DATE)} if date is None else ()),
        uses=frozenset() if date is None else _revoked(at),
        # A date revokes access when it is reached; clearing it does not restore access already lost.
        revokes=date is not None,
    )


def _revoked(at: Address) -> frozenset[Ref]:
    """Return the Ref made by revocations; setting an archive date and archiving depend on it."""
    return frozenset({Ref(at, "(revoked)")})
