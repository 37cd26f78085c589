"""Which live person each declaration means, what differs, rights, and answers that are copied."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from msgspec.structs import replace

from lmsconf.api.spec.dialect_candidates import METADATA_MODE
from lmsconf.api.spec.value_encoding import NEVER_CLEARED, clear_answer_key
from lmsconf.errors import Severity
from lmsconf.kinds.custom_field.compare import report_unrenamed_choices
from lmsconf.kinds.custom_field.lost_answers import answer_rows
from lmsconf.kinds.custom_field.types import ActiveMigration
from lmsconf.kinds.shared.kind_names import ADMIN, USER
from lmsconf.kinds.shared.managed_resources import match_declared, report_taken_names
from lmsconf.kinds.shared.manifest_entry import format_time
from lmsconf.kinds.shared.plan_context import (
    BeforeAfter,
    Match,
    MatchResult,
    PlanContext,
    hint_on_missing,
    report_missing_key,
    report_unread_list,
    suggest_name,
)
from lmsconf.kinds.user.people_directory import lists_archived, may_be_hidden, register_planned_people
from lmsconf.kinds.user.steps import (
    choice_refs_in_answers,
    live_answers,
    record_choice_changes,
    resolve_declared_answers,
)
from lmsconf.kinds.user.types import (
    ARCHIVE_DATE,
    KEYS,
    RIGHTS,
    TEXTS,
    AdminRow,
    Answer,
    PersonRow,
    PersonSpec,
    loses_manager_right,
    planned_flag,
)
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.forms import Form
from lmsconf.model.names import did_you_mean_email, normalize_name


def match_people(
    planning: PlanContext, declared: Sequence[DesiredResource[PersonSpec]], absent: Sequence[DeleteEntry[Any]]
) -> MatchResult[PersonSpec, PersonRow]:
    """Match by e-mail, ignoring case. Undeclared people are the usual case, so they are not listed as unmanaged."""
    declared = add_copied_answers(planning, declared)
    if not declared:
        return MatchResult()
    rows = _with_copied_answers(planning, _nameable(planning, declared))
    declared = _without_hidden_pins(planning, declared, rows)
    matched, _ = match_declared(planning, USER, "person", declared, rows)
    matched.live = sum(not row.archived for row in rows)
    report_taken_names(planning, matched, rows)
    register_planned_people(planning, matched)
    return matched


def add_copied_answers(
    planning: PlanContext, declared: Sequence[DesiredResource[PersonSpec]]
) -> Sequence[DesiredResource[PersonSpec]]:
    """Return the declared people with the answers that migrations copy, and everybody else who has such an answer."""
    copies: defaultdict[RemoteId, dict[str, Answer]] = defaultdict(dict)
    migration_of: dict[RemoteId, ActiveMigration] = {}
    for _, active in sorted(planning.migrations.items()):
        for id, answer in active.copies.items():
            copies[id][active.target.name] = answer
            migration_of[id] = active
    out: list[DesiredResource[PersonSpec]] = []
    people = {row.id: row for row in planning.snapshot.rows(PersonRow) if row.id in copies}
    for resource in declared:
        ids = planning.people.ids_of(resource, planning.policy.workspace) if people else ()
        person = next((id for id in ids if id in people), None)
        if person is not None and (resource.address in planning.included or not planning.chosen(resource.address)):
            continue  # the selection leaves out what else is declared of the person, and it was not read
        if person is not None and person in copies:
            spec = resource.spec
            # Those that it has itself hold.
            answers = {**copies.pop(person), **spec.answers}
            resource = replace(
                resource, spec=replace(spec, declared_keys=spec.declared_keys | {"answers"}, answers=answers)
            )
        out.append(resource)
    return out + [
        DesiredResource(
            address=Address.of(USER, people[id].name),
            spec=PersonSpec(declared_keys=frozenset({"answers"}), answers=answers),
            places=migration_of[id].migration.places,
            pins={planning.policy.workspace: id},
            reason=f"its answer is copied from {migration_of[id].address} to {migration_of[id].target}",
        )
        for id, answers in copies.items()
    ]


def _with_copied_answers(planning: PlanContext, rows: Sequence[PersonRow]) -> Sequence[PersonRow]:
    """Return the rows; those of people with copied answers have their live answers, as if these had been declared."""
    wanted = {id for one in planning.migrations.values() for id in one.copies}
    known = {row.id: row.all_answers for row in (answer_rows(planning.snapshot) if wanted else ())}
    return [replace(row, answers=known[row.id]) if row.answers is None and row.id in wanted else row for row in rows]


def _nameable(planning: PlanContext, declared: Sequence[DesiredResource[PersonSpec]]) -> tuple[PersonRow, ...]:
    """Return live people, without placeholders and unpinned archived accounts whose e-mail an active one has."""
    rows = [row for row in planning.snapshot.rows(PersonRow) if not row.stand_in]
    pinned = {resource.pin(planning.policy.workspace) for resource in declared}
    active = {row.name for row in rows if not row.archived}
    return tuple(row for row in rows if not row.archived or row.id in pinned or row.name not in active)


def _without_hidden_pins(
    planning: PlanContext, declared: Sequence[DesiredResource[PersonSpec]], rows: Sequence[PersonRow]
) -> list[DesiredResource[PersonSpec]]:
    """Return the declared people, without the pins of people to archive that a service does not show."""
    if lists_archived(planning):
        return list(declared)
    known = {key for row in rows for key in (row.id, row.name)}
    identities = ((one, {one.address.name, one.pin(planning.policy.workspace)}) for one in declared)
    return [
        replace(one, pins={}) if one.spec.flags.get("archived") and known.isdisjoint(identity) else one
        for one, identity in identities
    ]


def diff_person(planning: PlanContext, match: Match[PersonSpec, PersonRow]) -> BeforeAfter | None:
    """Compare the declared keys; None, with problems reported, if the person cannot be created or compared."""
    declared, row, spec = match.declared, match.row, match.declared.spec
    if row is None and not _may_come(planning, match):
        return None
    if row and (missing := first_unread_key(spec, row)):
        report_unread_list(planning, declared.address, missing, declared.places.at(missing))
        return None
    answers = resolve_declared_answers(planning, declared)
    if answers is None:
        return None
    check_rights_changes(planning, match)
    after = declared_form(planning, declared, answers)
    if row is None:
        report_unrenamed_choices(planning, declared, choice_refs_in_answers(planning, answers))
        return BeforeAfter(before=None, after=after)
    held = live_answers(planning, row, answers)
    before = live_form(planning, row, spec, held)
    if not planning.policy.additive:
        record_choice_changes(planning, cast("Mapping[str, Answer]", before.get("answers", {})), answers)
    _report_refused(planning, declared, row, held, answers)
    return BeforeAfter(
        before=before,
        after=after,
        sizes={"applications": len(row.applications or ())},
        is_archived=row.archived,
    )


_NOT_LIVE: Final = {
    "hidden": (
        "person/not-listed",
        "listed, and the service may not list archived people",
        "If the account exists, pin it in the entry: `id: ID`. It is read by its id then.",
    ),
    "archived": (
        "person/unknown",
        "a person of this workspace",
        "There is nobody to archive: remove the entry.",
    ),
    "new": (
        "person/unknown",
        "a person of this workspace",
        "Creating people must be allowed in the project file: `people: {create: true}`.",
    ),
}
"""What somebody is who is not live → the code, what the person is not, and a way out."""


def _may_come(planning: PlanContext, match: Match[PersonSpec, PersonRow]) -> bool:
    """Return whether a person who is not live can be created, and report why not."""
    declared, spec = match.declared, match.declared.spec
    missing = [key for key in TEXTS if key not in spec.texts]
    is_hidden, is_archived = may_be_hidden(planning, match), spec.flags.get("archived")
    if planning.policy.create_people and not is_archived and not (is_hidden and missing):
        for key in missing:
            report_missing_key(planning, declared, key)
        return not missing
    name = declared.address.name
    near = suggest_name(planning, name, planning.people.by_email, did_you_mean_email)
    code, why, way = _NOT_LIVE["hidden" if is_hidden else "archived" if planning.policy.create_people else "new"]
    planning.report(
        declared,
        code,
        f"{name} is not {why}",
        hint=" ".join(filter(None, [hint_on_missing(planning, USER, near, ""), way])),
        severity=Severity.WARNING if is_hidden and is_archived else Severity.ERROR,
    )
    return False


def _report_refused(
    planning: PlanContext,
    declared: DesiredResource[PersonSpec],
    row: PersonRow,
    held: Mapping[str, Answer],
    wanted: Mapping[str, Answer],
) -> None:
    """Report metadata that the service only merges, and so cannot remove, and answers that it clears in no form."""
    merges, metadata = planning.api_spec.behaviour(METADATA_MODE) == "merge", declared.spec.metadata
    for key in sorted(key for key, _ in row.metadata or () if merges and metadata.get(key, "") is None):
        planning.report(
            declared,
            "refusal/metadata-merged",
            f'the metadata "{key}" cannot be removed, because the service merges metadata',
            hint="Set an empty text instead, or check the dialect key users.update-metadata.mode.",
            at=declared.places.at("metadata", key),
        )
    cleared = [field for field, answer in wanted.items() if held.get(field) and not answer]
    for field in sorted(cleared if not planning.policy.additive else ()):
        key = clear_answer_key(planning.field_types.get(field, "MULTI_SELECT"))
        if planning.api_spec.behaviour(key) == NEVER_CLEARED:
            planning.report(
                declared,
                "refusal/answer-not-cleared",
                f'the answer to "{field}" cannot be cleared, because the service refuses it',
                hint=f"Give another answer, or remove the entry to keep this one. The dialect key is {key}.",
                at=declared.places.at("answers", field),
            )


def declared_form(planning: PlanContext, declared: DesiredResource[PersonSpec], answers: Mapping[str, Answer]) -> Form:
    """Return the desired state; `answers` are those of `resolve_declared_answers`."""
    spec = declared.spec
    values: Form = {
        **spec.texts,
        **spec.flags,
        "applications": spec.applications,
        "metadata": dict(spec.metadata),
        "answers": dict(answers),
        ARCHIVE_DATE: spec.archive_date and format_time(spec.archive_date, planning.policy.timezone),
    }
    return {"email": declared.address.name, **{key: values[key] for key in KEYS if key in spec.declared_keys}}


def live_form(planning: PlanContext, row: PersonRow, spec: PersonSpec, answers: Mapping[str, Answer]) -> Form:
    """Return the live state under the same keys, in the same order; `answers` are those of `live_answers`."""
    held, applications = dict(row.metadata or ()), spec.applications
    values: Form = {
        **{key: normalize_name(getattr(row, key) or "") for key in TEXTS},
        **{key: bool(getattr(row, key)) for key in RIGHTS},
        "applications": applications and applications.live_to_compare(row.applications or frozenset()),
        "metadata": {key: held.get(key) for key in spec.metadata},
        "answers": dict(answers),
        "archived": row.archived,
        ARCHIVE_DATE: row.archives_at and format_time(row.archives_at, planning.policy.timezone),
    }
    return {"email": row.name, **{key: values[key] for key in KEYS if key in spec.declared_keys}}


def first_unread_key(spec: PersonSpec, row: PersonRow) -> str | None:
    """Return a declared key whose live value was not read, or None if all were."""
    wanted = spec.declared_keys & {*TEXTS, "applications", "metadata", "answers"}
    # Of somebody who is archived, a service may show no rights, and none forbids anything any more.
    if not spec.declared_keys.isdisjoint(RIGHTS) or (spec.needs_live_rights and not row.archived):
        wanted |= {*RIGHTS}
    return next((key for key in sorted(wanted) if getattr(row, key) is None), None)


def check_rights_changes(planning: PlanContext, match: Match[PersonSpec, PersonRow]) -> None:
    """Report changes that the service would refuse because of a person's rights, and note admins gained and lost."""
    spec, row = match.declared.spec, match.row
    is_admin = planned_flag(spec, row, "admin")
    if spec.flags.get("archived") and row is not None and not row.archived and is_admin:
        planning.problem(
            "refusal/admin-archived",
            f"{match.address}: an admin cannot be archived",
            hint="Set `admin: false` too: rights are revoked before an account is archived.",
            at=match.declared.places.at("archived"),
            address=match.address,
        )
    right = "admin" if is_admin else "manager" if planned_flag(spec, row, "manager") else None
    if spec.archive_date is not None and right:
        planning.problem(
            "refusal/archive-date",
            f"{match.address}: {'an admin' if right == 'admin' else 'a manager'} cannot have a custom archive date",
            hint=f"Set `{right}: false` too, or remove `custom_archive_date`.",
            at=match.declared.places.at("custom_archive_date"),
            address=match.address,
        )
    if row is not None and row.manages and loses_manager_right(spec, row) and not planning.policy.additive:
        planning.problem(
            "person/loses-groups",
            f"{match.address}: with the manager right, the person loses the groups that they manage: "
            f"{', '.join(row.manages)}",
            at=match.declared.places.at("manager"),
            address=match.address,
            severity=Severity.NOTE,
        )


def report_admin_lockout(planning: PlanContext, matched: MatchResult[PersonSpec, PersonRow]) -> None:
    """Report a plan that revokes administrator rights and leaves fewer admins than `min_admins`, or none.

    Declared admins count first; only if they are too few does the listing of all admins matter. Admins that it lacks do
    not count, so that an incomplete listing may block a revocation.
    """
    sure, losing = admin_changes(planning, matched)
    least = max(1, planning.policy.guards.min_admins)
    listing = planning.snapshot.of(ADMIN)
    counted = {match.row.id for match in (*sure, *losing) if match.row}
    archived = {
        match.row.id
        for match in matched.matches
        if match.row and planning.chosen(match.address) and planned_flag(match.declared.spec, match.row, "archived")
    }
    left = len(sure) + len({row.id for row in planning.snapshot.rows(AdminRow)} - counted - archived)
    why = f"; the others could not be counted, because {listing.incomplete}" if listing.incomplete else ""
    for match in losing if left < least and not planning.policy.additive else ():
        planning.problem(
            "refusal/lock-out",
            f"{match.address}: the plan would leave {left} {'admin' if left == 1 else 'admins'}, and there must be "
            f"{least}{why}",
            hint="Make somebody else an admin too. `guards: {min_admins: 1}` allows a single admin; never none.",
            at=match.declared.places.at("admin"),
            address=match.address,
        )


def admin_changes(
    planning: PlanContext, matched: MatchResult[PersonSpec, PersonRow]
) -> tuple[list[Match[PersonSpec, PersonRow]], list[Match[PersonSpec, PersonRow]]]:
    """Return the people who are administrators after the plan for certain, and those who lose the right."""
    planned = [(match, match.declared.spec, match.row) for match in matched.matches if planning.chosen(match.address)]
    return (
        [
            match
            for match, spec, row in planned
            if spec.flags.get("admin") is True and not planned_flag(spec, row, "archived")
        ],
        [
            match
            for match, spec, row in planned
            if spec.flags.get("admin") is False and row and row.admin and not row.archived
        ],
    )


def has_enough_declared_admins(planning: PlanContext, matched: MatchResult[PersonSpec, PersonRow]) -> bool:
    """Return whether undeclared admins need not be read: no admin loses the right, or enough declared ones keep it."""
    sure, losing = admin_changes(planning, matched)
    return not losing or len(sure) >= max(1, planning.policy.guards.min_admins)
