"""Which answers a migration copies, which it cannot copy, and whether the old field is deleted.

Nothing is kept between runs: what is left follows from the live answers to both fields.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from lmsconf.errors import Severity, shorten
from lmsconf.kinds.custom_field.lost_answers import answer_keys, known_answers
from lmsconf.kinds.custom_field.types import (
    LEFT_OUT,
    ActiveMigration,
    CustomFieldSpec,
    FieldRow,
    Migration,
    choices_hint,
    deletion_of_source,
    unknown_target_choices,
)
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, USER, choices_registry_kind
from lmsconf.kinds.shared.plan_context import Deletion, MatchResult, PlanContext, UndeclaredResource
from lmsconf.kinds.shared.responses import AnswerRow
from lmsconf.kinds.user.types import AnswersRow, PersonRow, PersonSpec, picked_choices
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.effects import count_people
from lmsconf.model.names import count_noun, did_you_mean, matches_patterns, normalize_name, quote_name

_SHOWN: Final = 3
"""How many people a message names; the others are counted."""
_OTHER: Final = "the person has another answer to {target}"
_SEVERAL: Final = "several choices are picked, and {target} takes one"
_NO_CHOICE: Final = "it is not a choice of {target}"
_NO_EMAIL: Final = "no e-mail names the person alone"
"""Why nothing is known of an answer; it refuses the migration."""


def deletions_by_migration(
    planning: PlanContext, declared: Sequence[DesiredResource[CustomFieldSpec]], absent: Sequence[DeleteEntry[Any]]
) -> Iterator[DeleteEntry[Migration]]:
    """Yield the deletion of the old field of each migration; none if that field is not live any more."""
    rows = {normalize_name(row.name): row.id for row in planning.snapshot.rows(FieldRow)}
    listed = {entry.address: entry for entry in absent}
    migrating = ((one, one.spec.migrate) for one in declared if one.spec.migrate and not planning.policy.additive)
    for resource, migration in ((one, move) for one, move in migrating if move.source != one.address.name):
        if migration.source not in rows:
            _warn_of_unknown_source(planning, resource, migration, rows)
            continue
        entry = deletion_of_source(migration, resource)
        planning.replaced[resource.address].add(rows[migration.source])
        if entry.address in listed:
            planning.report(
                resource,
                "migrate/absent",
                f"migrate: {entry.address} is listed under `absent` too",
                hint=f"Remove it there ({listed[entry.address].source}): the migration deletes it once every answer is "
                "copied.",
                at=migration.places.at("from"),
            )
        elif left := [address for address in (entry.address, resource.address) if not planning.chosen(address)]:
            planning.problem(
                "migrate/left-out",
                f"{resource.address}: no answer is copied, because the plan leaves out {left[0]}",
                hint="Plan without --except to migrate.",
                at=migration.places.at("from"),
                address=resource.address if planning.chosen(resource.address) else None,
                severity=Severity.NOTE,
            )
        else:
            yield entry


def _warn_of_unknown_source(
    planning: PlanContext, one: DesiredResource[CustomFieldSpec], migration: Migration, live: Collection[str]
) -> None:
    """Warn of an old field that is not live while the new one is not live either: its name may be wrong."""
    near = did_you_mean(migration.source, live)
    if near is not None and one.address.name not in live and not planning.policy.verifying:
        planning.report(
            one,
            "migrate/unknown-field",
            f"migrate: no field called {quote_name(shorten(migration.source))} is live, so that no answer is copied",
            hint=near,
            at=migration.places.at("from"),
            severity=Severity.WARNING,
        )


def plan_migrations(planning: PlanContext, matched: MatchResult[CustomFieldSpec, FieldRow]) -> None:
    """Record what each migration copies; keep the old field where some answers cannot be copied."""
    deletions, matched.deletions = matched.deletions, []
    for deletion in deletions:
        active = _active_migration(planning, deletion)
        if active is None:
            matched.deletions.append(deletion)
        elif active.is_held:
            # The old field stays, as one that no manifest declares.
            planning.registry.register(CUSTOM_FIELD, deletion.address.name, deletion.row.id)
            matched.unmanaged.append(UndeclaredResource(deletion.address, deletion.row))
        else:
            matched.deletions.append(replace(deletion, reason=f"its answers are copied to {active.target}"))


def _active_migration(planning: PlanContext, deletion: Deletion[FieldRow]) -> ActiveMigration | None:
    """Return the migration that deletes a field, with what it copies; None without one, or if it has an error."""
    migration = deletion.absent.spec if deletion.absent else None
    if not isinstance(migration, Migration) or not planning.chosen(deletion.address):
        return None
    target = Address.of(CUSTOM_FIELD, migration.target)
    planning.replaced[target].add(deletion.row.id)
    # Without a type, there is an error of its own already.
    type = planning.field_types.get(migration.target)
    if type is None or _report_choices(planning, migration, target, type, deletion.row):
        return None
    active = ActiveMigration(migration, deletion.address, deletion.row, target, type)
    planning.migrations[deletion.address] = active
    known = known_answers(planning.snapshot)
    if isinstance(known, str):
        _report_unknown(planning, active, known)
    else:
        _sort_all(planning, active, known)
    if active.keeps_old:
        _report_uncopied(planning, active)
    if active.copies:
        _note_copies(planning, active)
    return active


def _report_choices(planning: PlanContext, migration: Migration, target: Address, type: str, old: FieldRow) -> bool:
    """Report the choices without a counterpart; return whether there are any."""
    if type == "TEXT":
        return False
    known = planning.registry.names(choices_registry_kind(target.name))
    before = len(planning.problems)
    planning.problems.extend(unknown_target_choices(target, migration, sorted(known)))
    if old.type != "TEXT":
        names = [normalize_name(choice.name) for choice in old.choices]
        for name in sorted(migration.choices.keys() - set(names)):
            planning.problem(
                "reference/unknown-choice",
                f'{target}: migrate: {quote_name(migration.source)} has no choice "{shorten(name)}"',
                hint=choices_hint(sorted(names), did_you_mean(name, names)),
                at=migration.places.at("choices", name),
                address=target,
            )
        for name in names:
            if name not in migration.choices and name not in known:
                planning.problem(
                    "migrate/unmapped-choice",
                    f"{target}: migrate: {quote_name(migration.source)} has the choice {quote_name(shorten(name))}, "
                    f"and {target.name} has none of that name",
                    hint=f"Write what it becomes: `choices: {{{quote_name(name)}: …}}`, or `null` for no answer. "
                    f"{target.name} has {', '.join(sorted(known))}.",
                    at=migration.places.at("choices") if migration.choices else migration.places.at(),
                    address=target,
                )
    return any(problem.is_error for problem in planning.problems[before:])


def _sort_all(planning: PlanContext, active: ActiveMigration, known: Mapping[RemoteId, AnswersRow]) -> None:
    """Sort everybody's answer to the old field; report how many cannot be read."""
    name = active.migration.target
    people = {row.id: row for row in planning.snapshot.rows(PersonRow)}
    declared = _declared_answers(planning, active)
    # The new field may be one that the plan renames so.
    target = next(
        (row for row in planning.snapshot.rows(FieldRow) if planning.registry.name(CUSTOM_FIELD, row.id) == name), None
    )
    old_keys, new_keys = answer_keys(active.row), answer_keys(target) if target else frozenset[str]()
    name_of = partial(planning.registry.name, choices_registry_kind(name))
    unreadable = 0
    for id, row in known.items():
        old, new = _answers(row, old_keys), _answers(row, new_keys)
        if row.answers is None or (old and None in (*old, *new)):
            unreadable += 1
        elif old and old[0] is not None:
            live = frozenset[str]().union(*(_named(one, active.target_type, name_of) for one in new if one))
            unreadable += not _sort_answer(planning, active, row, old[0], declared.get(id, live), people.get(id))
    if unreadable:
        _report_unknown(planning, active, f"the answers of {count_people(unreadable)} have an unknown format")


def _declared_answers(planning: PlanContext, active: ActiveMigration) -> dict[RemoteId, frozenset[str] | None]:
    """Return the declared answers to the new field, which hold after the plan; None for no answer."""
    name = active.migration.target
    found: dict[RemoteId, frozenset[str] | None] = {}
    for resource in planning.declared:
        answers = resource.spec.answers if isinstance(resource.spec, PersonSpec) else {}
        if name in answers and planning.chosen(resource.address):
            ids = planning.people.ids_of(resource, planning.policy.workspace)
            found |= dict.fromkeys(ids, picked_choices(answers[name]) or None)
    return found


def _sort_answer(
    planning: PlanContext,
    active: ActiveMigration,
    row: AnswersRow,
    old: AnswerRow,
    live: frozenset[str] | None,
    person: PersonRow | None,
) -> bool:
    """Sort one person's answer: to be copied, already there, without a counterpart, or not to be copied.

    live: the answer to the new field, as declared or live; None: declared to be none. Return False where a copy would
    have to repeat an unreadable answer.
    """
    takes_several = active.target_type == "MULTI_SELECT"
    names: dict[str, str] = {choice.id: normalize_name(choice.name) for choice in active.row.choices}
    picked = _named(old, active.row.type, names.get)
    mapped = {active.migration.choices.get(name, name) for name in picked}
    wanted = frozenset(name for name in mapped if name is not None)
    is_there = live is not None and (live == wanted or (takes_several and wanted <= live))
    reason = _why_untranslatable(planning, active, picked, wanted)
    if reason is None and wanted and not is_there:
        reason = _why_not_copied(planning, active, live, person)
        if reason is None:
            if row.all_answers is None:
                return False
            active.copies[row.id] = wanted if takes_several else next(iter(wanted))
    if reason is not None:
        active.uncopied[reason].append(f"user/{person.name}" if person and person.email else f"user id {row.id}")
    elif wanted and None not in mapped:
        # Nobody is settled of whose answer a part is dropped.
        active.settled.add(row.id)
    return True


def _why_not_copied(
    planning: PlanContext, active: ActiveMigration, live: frozenset[str] | None, person: PersonRow | None
) -> str | None:
    """Return why an answer that the new field can take is not copied; None if it is."""
    if live or live is None:
        return _OTHER
    if person is None or not planning.people.emails.get(person.id):
        return _NO_EMAIL
    address = Address.of(USER, person.name)
    if matches_patterns(str(address), planning.policy.leave_alone):
        return LEFT_OUT
    include = planning.chosen if active.migration.is_replayed else planning.include
    return None if include(address) else LEFT_OUT


def _why_untranslatable(
    planning: PlanContext, active: ActiveMigration, picked: frozenset[str], wanted: frozenset[str]
) -> str | None:
    """Return why an answer has no counterpart among the choices of the new field; None if it has."""
    has = partial(planning.registry.has, choices_registry_kind(active.target.name))
    if active.row.type != "TEXT" and picked - {normalize_name(choice.name) for choice in active.row.choices}:
        return _NO_CHOICE
    if active.target_type != "MULTI_SELECT" and len(wanted) > 1:
        return _SEVERAL
    return None if active.target_type == "TEXT" or all(map(has, wanted)) else _NO_CHOICE


def _report_unknown(planning: PlanContext, active: ActiveMigration, why: str) -> None:
    planning.problem(
        "refusal/answers-unknown",
        f"{active.address}: it cannot be migrated, because it is not known who answered it: {why}",
        hint="Plan again once all answers can be read. Nothing is deleted before.",
        at=active.migration.places.at("from"),
        address=active.address,
    )


def _report_uncopied(planning: PlanContext, active: ActiveMigration) -> None:
    """Report who keeps the old field from being deleted."""
    replayed = active.migration.is_replayed
    for reason, labels in sorted(active.uncopied.items()):
        more = f" and {len(labels) - _SHOWN:,} more" if len(labels) > _SHOWN else ""
        planning.problem(
            "refusal/not-copied" if replayed else "migrate/not-copied",
            f"{active.address}: it {'cannot be deleted' if replayed else 'is kept'}, because "
            f"{count_noun(len(labels), 'answer to it is', 'answers to it are')} not copied: "
            f"{reason.format(target=active.target.name)} ({', '.join(sorted(labels)[:_SHOWN])}{more})",
            hint=_HINTS[reason],
            at=active.migration.places.at("from"),
            severity=Severity.ERROR if replayed else Severity.WARNING,
            address=active.address,
        )


def _note_copies(planning: PlanContext, active: ActiveMigration) -> None:
    """Note how many calls the migration takes, and how long, where the pace is known."""
    number, pace = len(active.copies), planning.policy.pace
    # Each answer is one call, and is read back before the old field is deleted.
    time = (
        "how long that takes is not known: --max-rate sets a pace"
        if pace is None
        else f"about {count_noun(max(1, round(2 * number / pace / 60)), 'minute')} at {pace:g} requests a second"
    )
    planning.problem(
        "migrate/copies",
        f"{active.target}: the answers of {count_people(number)} are copied from {active.address}: "
        f"{count_noun(number, 'call')} and as many reads to verify them, {time}",
        at=active.migration.places.at("from"),
        severity=Severity.NOTE,
    )


_DELETE: Final = "write `not_copied: delete` to delete them with the field, which the guard `answers` counts."
_HINTS: Final = {
    _OTHER: f"Nobody's answer is overwritten. Correct one of the two answers, or {_DELETE}",
    _SEVERAL: f"Reduce them to one choice, make the new field MULTI_SELECT, or {_DELETE}",
    _NO_CHOICE: f"Write under `choices` what they become, or {_DELETE}",
    _NO_EMAIL: f"Give each account an e-mail of its own, or {_DELETE}",
    LEFT_OUT: "Plan without --except and without `leave_alone` for these people.",
}


def _answers(row: AnswersRow, keys: frozenset[str]) -> list[AnswerRow | None]:
    """Return the answer of a person to a field, None for one of an unknown format, in a list; empty without one."""
    return [answer for name, answer in row.answers or () if name in keys]


def _named(answer: AnswerRow, type: str, name_of: Callable[[str], str | None]) -> frozenset[str]:
    """Return the choices of an answer by the names of `name_of`, or else as shown; its text for a TEXT field."""
    if type == "TEXT":
        return frozenset({normalize_name(answer.as_text)} if answer.as_text else ())
    return frozenset(name_of(one) or normalize_name(one) for one in answer.picked)
