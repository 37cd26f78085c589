"""Answers that a plan deletes: those to a deleted field, and those that picked a deleted choice.

The count is of distinct people, archived ones included. It is None where answers could not be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from lmsconf.api.spec.value_encoding import ANSWERS as SET_ANSWERS
from lmsconf.api.spec.value_encoding import OMITTED, answers_in_body
from lmsconf.errors import Severity
from lmsconf.kinds.custom_field.types import ChoiceRow, CustomFieldSpec, FieldOrChoiceDeletion, FieldRow
from lmsconf.kinds.shared.kind_names import ANSWERS, CUSTOM_FIELD, USER
from lmsconf.kinds.shared.plan_context import MatchResult, PlanContext
from lmsconf.kinds.shared.responses import comparable
from lmsconf.kinds.user.types import AnswersRow, HolderRow, PersonRow, answers_of
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Call
from lmsconf.model.names import count_noun, normalize_name
from lmsconf.model.plan import FULL_UNDO, GuardCount, Undo, UndoLevel
from lmsconf.model.snapshot import Snapshot

MOST_KEPT: Final = 20_000
"""Of how many people the answers are kept that a run deletes, at most."""


def record_deletions(
    planning: PlanContext, matched: MatchResult[CustomFieldSpec, FieldRow]
) -> Sequence[FieldOrChoiceDeletion]:
    """Record which live fields and choices the plan deletes, and return them."""
    losses = [FieldOrChoiceDeletion(one.address, one.row) for one in matched.deletions]
    for one in matched.matches:
        before, after = planning.field_choices[one.address]
        dropped = frozenset(before.names.keys() - after.names.keys())
        if one.row is not None and dropped:
            losses.append(FieldOrChoiceDeletion(one.address, one.row, dropped))
    planning.losses = planning.planned(losses)
    return planning.losses


def count_lost_answers(planning: PlanContext) -> None:
    """Measure for the guard `answers` how many people lose answers, and report the count of each field and choice.

    A person who gets another answer before a choice is deleted loses none.
    """
    if not planning.losses:
        return
    known = known_answers(planning.snapshot)
    lost = [_count_loss(planning, known, loss) for loss in planning.losses]
    if not isinstance(known, str):
        planning.lost_answers = {
            loss.address: None if losing is None else len(losing)
            for loss, losing in zip(planning.losses, lost, strict=True)
        }
    everybody = frozenset[RemoteId]().union(*filter(None, lost))
    if everybody or None in lost:
        planning.measures.append(
            GuardCount(
                guard="answers",
                of="all people",
                taken=None if None in lost else len(everybody),
                size=len(planning.snapshot.of(USER).rows) if isinstance(known, str) else len(known),
            )
        )


def _count_loss(
    planning: PlanContext,
    known: Mapping[RemoteId, AnswersRow] | str,
    loss: FieldOrChoiceDeletion,
) -> set[RemoteId] | None:
    """Report how many people each part of a loss concerns, and return them; None if that is not known."""
    held, why = _answers_to(known, loss, _answering(planning, loss))
    lost: set[RemoteId] = set()
    dropped = [choice for choice in loss.field.choices if choice.id in (loss.choices or ())]
    for choice in dropped if loss.choices is not None else [None]:
        names = frozenset(map(comparable, (choice.id, choice.name) if choice else ()))
        holders = [id for id, picked in held.items() if choice is None or picked & names]
        lost.update(holders)
        # A snapshot file may have only counts.
        counts = (row.people for row in planning.snapshot.rows(HolderRow) if choice and row.id == choice.id)
        _report_loss(planning, loss, choice, next(counts, len(holders)) if why else len(holders), why)
    return lost if why is None else None


def field_undo(planning: PlanContext, address: Address) -> Undo:
    """How far the deletion of a field or of its choices can be undone; NONE if the answers were not read."""
    loss = next((deletion for deletion in planning.losses if deletion.address == address), None)
    if loss is None:
        return FULL_UNDO
    again = "deleted choices come back with other ids" if loss.choices else "the field comes back with another id"
    number = planning.lost_answers.get(address)
    if number is None:
        was_read = address in planning.lost_answers
        why = "without the answers that could not be read" if was_read else "the answers were not read"
        return Undo(level=UndoLevel.NONE, reason=f"{again}, and {why}")
    kept = f", and {MOST_KEPT:,} of {number:,} people with their answers" if number > MOST_KEPT else ""
    answers = ", and with people's answers" if number else ""
    return Undo(level=UndoLevel.PARTIAL, reason=f"{again}{kept or answers}")


def answer_rows(snapshot: Snapshot) -> Sequence[AnswersRow]:
    """The answers of each person: as they were read to count what is lost, else those of the people read."""
    if ANSWERS in snapshot.listings:
        return snapshot.rows(AnswersRow)
    return [answers_of(row) for row in snapshot.rows(PersonRow)]


def known_answers(snapshot: Snapshot) -> Mapping[RemoteId, AnswersRow] | str:
    """The answers of all people by user id, or the reason why they are unknown."""
    if snapshot.redaction is not None:
        return "a redacted snapshot does not contain answers"
    listing, rows = snapshot.of(ANSWERS if ANSWERS in snapshot.listings else USER), answer_rows(snapshot)
    if listing.incomplete is not None:
        return f"the list of people is not complete: {listing.incomplete}"
    if rows and not any(row.has_answers for row in rows):
        return "no person has customFields in the response"
    answered = {name for row in rows for name, _ in row.answers or ()}
    if answered and answered.isdisjoint(key for field in snapshot.rows(FieldRow) for key in answer_keys(field)):
        return "answers have names that no field has"
    return {row.id: row for row in rows}


def answer_keys(field: FieldRow) -> frozenset[str]:
    """The keys under which answers to a field may be listed."""
    return frozenset({normalize_name(field.name), field.id})


def _answering(planning: PlanContext, loss: FieldOrChoiceDeletion) -> frozenset[RemoteId]:
    """The ids of people who lose no answer: they get another from the plan, or theirs is moved to another field."""
    if loss.choices is None:
        migration = planning.migrations.get(loss.address)
        return frozenset(() if migration is None else migration.settled)
    return frozenset(
        match.row.id
        for match in planning.planned_people.values()
        if match.row is not None and loss.address.name in match.declared.spec.answers
    )


def _answers_to(
    known: Mapping[RemoteId, AnswersRow] | str, loss: FieldOrChoiceDeletion, moved: frozenset[RemoteId]
) -> tuple[Mapping[RemoteId, frozenset[str]], str | None]:
    """The choices of a field that people picked, by person, and why there may be more, if there may."""
    if isinstance(known, str):
        return {}, known
    keys = answer_keys(loss.field)
    answers = [
        (row.id, answer)
        for row in known.values()
        if row.id not in moved
        for name, answer in row.answers or ()
        if name in keys
    ]
    # An unreadable answer is deleted with its field; whether it picked a given choice is unknown.
    doubtful = loss.choices is not None and any(answer is None for _, answer in answers)
    held = {id: frozenset(map(comparable, answer.picked if answer else ())) for id, answer in answers}
    if doubtful or any(row.answers is None for row in known.values()):
        return held, "answers have an unknown format"
    names = {comparable(name) for one in loss.field.choices for name in (one.id, one.name)}
    if loss.choices is not None and any(held.values()) and not any(picked & names for picked in held.values()):
        return held, "answers name choices that the field does not have"
    return held, None


def _report_loss(
    planning: PlanContext,
    loss: FieldOrChoiceDeletion,
    choice: ChoiceRow | None,
    number: int,
    unknown: str | None,
) -> None:
    called = "" if choice is None else f'the choice "{normalize_name(choice.name)}"'
    if number:
        nouns = ("person holds", "people hold") if choice else ("person has", "people have")
        planning.problem(
            "custom-field/answers-lost",
            f"{loss.address}: {count_noun(number, *nouns)} {called or 'answered it'}, which is deleted",
            hint="Their answers are deleted with it."
            + (" To keep them, rename the choice with `previously:`." if choice else ""),
            address=loss.address,
            severity=Severity.NOTE,
        )
    if unknown:
        planning.problem(
            "custom-field/answers-unknown",
            f"{loss.address}: it is not known how many people {f'hold {called}' if choice else 'answered it'}, which "
            f"is deleted: {unknown}",
            hint="Their answers are deleted with it.",
            address=loss.address,
            severity=Severity.WARNING,
        )


def warn_of_clearing_hidden_fields(planning: PlanContext, calls: Sequence[Call]) -> None:
    """Report hidden fields of which nobody shows an answer, where calls may clear the answers that they omit.

    A service may show no answers to hidden fields, so a call cannot send them along.
    The problem has no address, since the digest of a plan does not depend on who was read.
    """
    spec = planning.api_spec
    if spec.behaviour(OMITTED) == "keep" and spec.is_known(OMITTED):
        return
    deleted = {loss.field.id for loss in planning.losses if loss.choices is None}
    hidden = [one for one in planning.snapshot.rows(FieldRow) if one.hidden and one.id not in deleted]
    # The path of a call for somebody who is not live yet has no id.
    sent = [
        answers_in_body(spec.behaviour, call.body)
        for call in calls
        if call.operation == SET_ANSWERS and "{" not in call.path
    ]
    omitting = {one.name: sum(one.id not in answers for answers in sent) for one in hidden}
    keys = frozenset[str]().union(*map(answer_keys, hidden))
    shown = (name for row in answer_rows(planning.snapshot) for name, _ in row.answers or ())
    if any(omitting.values()) and keys.isdisjoint(shown):
        most = max(omitting.values())
        do = "would clear" if spec.behaviour(OMITTED) == "clear" else "may clear"
        fields = sorted(Address.of(CUSTOM_FIELD, name) for name, number in omitting.items() if number)
        probe = f" `lmsconf doctor --probe` finds out {OMITTED}, whether calls keep them."
        planning.problem(
            "custom-field/hidden-answers",
            f"{', '.join(fields)}: hidden, and nobody read shows an answer. The service may show none, and "
            f"{count_noun(most, 'call that sets', 'calls that set')} other answers {do} them",
            hint=f"Declare these answers, so that they are sent along.{'' if spec.is_known(OMITTED) else probe}",
            severity=Severity.WARNING,
        )
