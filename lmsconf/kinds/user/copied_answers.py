"""Answers that move from one custom field to another: added to what manifests declare of people."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec.structs import replace

from lmsconf.kinds.custom_field.lost_answers import known_answers
from lmsconf.kinds.custom_field.migration import ActiveMigration, active_migrations
from lmsconf.kinds.shared.answer_rows import AnswerRow
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.kinds.user.types import Answer, AnswersRow, PersonRow, PersonSpec
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.declarations import DesiredResource
from lmsconf.planner.context import MatchResult, PlanContext

Person: TypeAlias = "DesiredResource[PersonSpec]"
_ANSWERS = "answers"


def add_copied_answers(planning: PlanContext, declared: Sequence[Person]) -> Sequence[Person]:
    """Return the declared people with the answers that migrations copy, and everybody else who has such an answer."""
    copies, migration_of = _copies(planning)
    if not copies:
        return declared
    out: list[Person] = []
    people = {row.id: row for row in planning.snapshot.rows(PersonRow)}
    ids = {people[id].name: id for id in copies}
    for resource in declared:
        pin = resource.pin(planning.policy.workspace)
        names = (name for name in (resource.address.name, *resource.previously) if name in ids)
        id = pin if pin in copies else next((ids[name] for name in names), None) if pin is None else None
        if id is not None and resource.address in planning.included:
            continue  # the selection leaves out what else is declared of the person, and it was not read
        added = {} if id is None else copies.pop(id, {})
        out.append(_with_answers(resource, added) if added else resource)
    for id, answers in copies.items():
        spec = PersonSpec(declared_keys=frozenset({_ANSWERS}), answers=answers)
        out.append(
            DesiredResource(
                address=Address.of(USER, people[id].name),
                spec=spec,
                places=migration_of[id].migration.places,
                pins={planning.policy.workspace: id},
            )
        )
    return out


def _copies(planning: PlanContext) -> tuple[dict[RemoteId, dict[str, Answer]], dict[RemoteId, ActiveMigration]]:
    """Return person → the answers to copy, by the new field, and the migration of each."""
    copies: defaultdict[RemoteId, dict[str, Answer]] = defaultdict(dict)
    migration_of: dict[RemoteId, ActiveMigration] = {}
    for _, active in sorted(active_migrations(planning).items()):
        for id, answer in active.copies.items():
            copies[id][active.target.name] = answer
            migration_of[id] = active
    return dict(copies), migration_of


def _with_answers(one: Person, added: Mapping[str, Answer]) -> Person:
    """Return a declaration with further answers; those that it has itself hold."""
    spec = one.spec
    keys = spec.declared_keys | {_ANSWERS}
    return replace(one, spec=replace(spec, declared_keys=keys, answers={**added, **spec.answers}))


def complete_copies(planning: PlanContext, matched: MatchResult[PersonSpec, PersonRow]) -> None:
    """Give the rows of people with copied answers their live answers, and undeclared people a reason.

    The rows are then as if the answers had been declared when they were read.
    """
    active = list(active_migrations(planning).values())
    wanted = {id for one in active for id in one.copies}
    known = known_answers(planning.snapshot) if wanted else {}
    if isinstance(known, str):
        return
    for position, match in enumerate(matched.matches):
        row = match.row
        if row is not None and row.answers is None and row.id in wanted:
            answers, places = tuple(_held(known[row.id])), match.declared.places
            moves = [f"{one.old_address} to {one.target}" for one in active if one.migration.places is places]
            reason = f"its answer is copied from {' and '.join(moves)}" if moves else None
            matched.matches[position] = replace(match, row=replace(row, answers=answers), reason=reason)


def _held(row: AnswersRow) -> Iterator[AnswerRow]:
    return (answer for _, answer in row.answers or () if answer is not None)
