"""People, identified by e-mail: profile, rights, applications, metadata, answers to custom fields, archiving.

Keys that a manifest omits are not managed. A person is created only if the project file has `people: {create: true}`,
and never deleted: an account that is no longer needed is archived.

The guards count as removals: applications, choices of a MULTI_SELECT answer, administrator rights, manager rights, and
all access, lost by archiving now or at a date.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from lmsconf.api.spec.listings import USERS
from lmsconf.errors import Problem
from lmsconf.kinds.custom_field.lost_answers import count_lost_answers
from lmsconf.kinds.custom_field.migration import active_migrations
from lmsconf.kinds.shared.kind_names import ADMIN, CUSTOM_FIELD, HOLDERS, USER
from lmsconf.kinds.shared.manifest_entries import delete_entry, parse_about, parse_names, parse_only_in, parse_pins
from lmsconf.kinds.user.diff import diff_person
from lmsconf.kinds.user.export import PART_REFERENCES, REFERENCES, only_text
from lmsconf.kinds.user.parse import find_contradictions, parse_person
from lmsconf.kinds.user.people_directory import register_planned_people
from lmsconf.kinds.user.rights import admin_grant_verification, refuse_admin_lockout
from lmsconf.kinds.user.schema import ABSENT_SCHEMA, SCHEMA
from lmsconf.kinds.user.steps import person_steps
from lmsconf.kinds.user.types import (
    AdminRow,
    HolderRow,
    PersonRow,
    PersonSpec,
    parse_person_row,
)
from lmsconf.model.address import Address
from lmsconf.model.api import Api
from lmsconf.model.calls import Call, Step
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.names import normalize_email
from lmsconf.model.plan import Change, Undo
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.context import BeforeAfter, Deletion, Match, MatchResult, PlanContext, SideEffect
from lmsconf.planner.grant_verification import GrantVerification
from lmsconf.planner.kind import Kind, ManifestEntry
from lmsconf.planner.matching import match_declared, refuse_taken_names

if TYPE_CHECKING:
    from lmsconf.planner.reading import ReadContext

_DATE: Final = "custom_archive_date"


class UserKind(Kind[PersonSpec, PersonRow]):
    """The kind `user`."""

    name = USER
    section = "users"
    noun = "person"
    plural = "people"
    rank = 1
    row_type = PersonRow
    ownership_schema = None
    is_person = True
    listing_nouns: Mapping[str, tuple[str, str]] = {
        ADMIN: ("person with administrator rights", "people with administrator rights"),
        HOLDERS: ("choice that somebody holds", "choices that somebody holds"),
    }
    row_types = (PersonRow, AdminRow, HolderRow)
    list_operation = USERS
    operations = (
        "users.list",
        "users.extended-info",
        "users.get",
        "users.create",
        "users.archive",
        "users.unarchive",
        "custom-fields.list",
        "users.set-custom-archived-date",
        "users.update-custom-field-choice",
        "users.update-email",
        "users.update-fullname",
        "users.update-language",
        "users.update-metadata",
        "user-access.set",
        "user-access.make-admin",
        "user-access.make-manager",
    )
    schema = SCHEMA
    absent_schema = ABSENT_SCHEMA

    def parse(self, entry: ManifestEntry) -> Iterator[DesiredResource[PersonSpec]]:
        """Yield the person of one manifest entry, and report contradictions in it."""
        address = Address.of(USER, normalize_email(str(entry.body["email"])))
        spec = parse_person(entry)
        for problem in find_contradictions(entry, address, spec):
            entry.report(problem)
        yield DesiredResource(
            address=address,
            spec=spec,
            places=entry.places,
            pins=parse_pins(entry.body.get("id")),
            previously=tuple(map(normalize_email, parse_names(entry.body.get("previously")))),
            only_in=parse_only_in(entry.body),
            about=parse_about(entry.body),
        )

    def parse_absent(self, entry: ManifestEntry) -> Iterator[DeleteEntry[Any]]:
        """Report an error: deleting an account would destroy certificates and results, so manifests cannot do it."""
        address = Address.of(USER, normalize_email(str(entry.body["email"])))
        entry.report(
            Problem(
                code="user/never-deleted",
                message=f"{address}: people are never deleted",
                hint="Declare the person under `users:` with `archived: true`.",
                source=entry.places.at(),
                address=str(address),
            )
        )
        yield delete_entry(entry, address, None)

    def dependencies(self, declared: DesiredResource[PersonSpec]) -> list[Address]:
        """Return the custom fields that the person answers."""
        return [Address.of(CUSTOM_FIELD, field) for field in declared.spec.answers]

    def match(
        self, planning: PlanContext, declared: Sequence[DesiredResource[PersonSpec]], absent: Sequence[DeleteEntry[Any]]
    ) -> MatchResult[PersonSpec, PersonRow]:
        """Match by e-mail, ignoring case. Undeclared people are the usual case, so they are not listed as unmanaged."""
        migrates = bool(active_migrations(planning))
        if migrates:
            from lmsconf.kinds.user.copied_answers import add_copied_answers

            declared = add_copied_answers(planning, declared)
        if not declared:
            return MatchResult()
        rows = _nameable(planning, declared)
        matched, _ = match_declared(planning, USER, self.noun, declared, rows)
        matched.live = sum(not row.archived for row in rows)
        if migrates:
            from lmsconf.kinds.user.copied_answers import complete_copies

            complete_copies(planning, matched)
        refuse_taken_names(planning, matched, rows)
        register_planned_people(planning, matched)
        return matched

    def diff(self, planning: PlanContext, match: Match[PersonSpec, PersonRow]) -> BeforeAfter | None:
        """Compare the declared keys; None, with problems reported, if the person cannot be created or compared."""
        return diff_person(planning, match)

    def state_before_delete(self, planning: PlanContext, deletion: Deletion[PersonRow]) -> BeforeAfter:
        """Return the e-mail only: people are never deleted."""
        return BeforeAfter(before={"email": deletion.row.name}, after=None)

    def finalize(self, planning: PlanContext, matched: MatchResult[PersonSpec, PersonRow]) -> None:
        """Refuse a plan that leaves too few admins, and count the people who lose answers."""
        refuse_admin_lockout(planning, matched)
        count_lost_answers(planning, matched)

    def plan_steps(self, planning: PlanContext, match: Match[PersonSpec, PersonRow], sides: BeforeAfter) -> list[Step]:
        """Return the calls that create or change the person."""
        return person_steps(planning, match, sides)

    def undo_extent(
        self,
        planning: PlanContext,
        subject: Match[PersonSpec, PersonRow] | Deletion[PersonRow] | SideEffect,
        sides: BeforeAfter,
    ) -> Undo:
        """Return how far the change can be reverted: a created account can only be archived."""
        from lmsconf.kinds.user.undo import person_undo

        return person_undo(planning, sides, subject.row if isinstance(subject.row, PersonRow) else None)

    def plan_delete(self, planning: PlanContext, deletion: Deletion[PersonRow]) -> list[Step]:
        """Return no calls: people are never deleted."""
        return []

    def grant_verification(self, call: Call) -> GrantVerification | None:
        """Administrator rights and answers are verified by reading the person."""
        from lmsconf.kinds.user.answer_verification import answers_verification

        return admin_grant_verification(call) or answers_verification(call)

    def revokes_access(self, call: Call) -> bool:
        """Archiving, and taking away administrator or manager rights, whose path ends in `false`."""
        return call.operation == "users.archive" or call.path.endswith("/false")

    name_key = "email"
    normalize_name = staticmethod(normalize_email)
    time_keys = MappingProxyType({_DATE: False})
    references = REFERENCES
    part_references = PART_REFERENCES

    def entry_team(self, body: Mapping[str, Json], field: str, teams: Mapping[Address, str]) -> str | None:
        """The person's answer."""
        answers = body.get("answers")
        return only_text(answers.get(field)) if isinstance(answers, dict) else None

    def required_listings(self, reading: ReadContext) -> frozenset[str]:
        """The custom fields, if answers are declared."""
        declared = reading.declared_of(self)
        answers = any(resource.spec.answers and reading.chosen(resource.address) for resource in declared)
        return frozenset({CUSTOM_FIELD} if answers else ())

    def parse_row(self, data: Mapping[str, Json]) -> PersonRow:
        """Parse an entry of GET /users, without the attributes that are read only where declared."""
        return parse_person_row(data)

    def read(self, reading: ReadContext) -> Listing[PersonRow] | None:
        """Read the listing, or only the number of people, and further attributes where they are declared."""
        from lmsconf.kinds.user.read import read_people

        return read_people(self, reading)

    def can_reread(self, kept: Snapshot, changes: Sequence[Change]) -> bool:
        """Unless other people matter to a change, or they are many."""
        from lmsconf.kinds.user.read import can_reread_people

        return can_reread_people(kept, changes)

    def reread(self, api: Api, kept: Snapshot, changes: Sequence[Change]) -> Listing[PersonRow]:
        """The touched people."""
        from lmsconf.kinds.user.read import reread_people

        return reread_people(api, kept, changes)

    def named_emails(self, entry: DesiredResource[PersonSpec] | DeleteEntry[Any]) -> Iterator[str]:
        """Yield the earlier e-mails of a person."""
        return iter(entry.previously if isinstance(entry, DesiredResource) else ())


def _nameable(planning: PlanContext, declared: Sequence[DesiredResource[PersonSpec]]) -> tuple[PersonRow, ...]:
    """Return live people without placeholders and without archived accounts whose e-mail an active one has.

    A pinned archived account is kept.
    """
    everybody = planning.snapshot.rows(PersonRow)
    rows = [row for row in everybody if not row.stand_in]
    pinned = {resource.pin(planning.policy.workspace) for resource in declared}
    active = {row.name for row in rows if not row.archived}
    return tuple(row for row in rows if not row.archived or row.id in pinned or row.name not in active)


KIND: Final = UserKind()
