"""EnrollmentStatus of people with content: by which assignment they are enrolled, and their progress.

An enrolment follows from assignments; it is mandatory if one of them is. Participation in content that is not assigned
counts too, as not enrolled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from msgspec import Struct

from lmsconf.sandbox.handlers.content_targets import EVERYONE, USER
from lmsconf.sandbox.handlers.smart_group_membership import compute_members
from lmsconf.sandbox.request_context import SMART_GROUP, RequestContext
from lmsconf.sandbox.store import Repository, encode_ids

APPROVED, IN_PROGRESS, NOT_STARTED = "APPROVED", "IN_PROGRESS", "NOT_STARTED"
EXPIRED, FAILED = "EXPIRED", "FAILED"
STATES: Final = (APPROVED, IN_PROGRESS, NOT_STARTED, EXPIRED, FAILED)
MANDATORY, OPTIONAL, NOT_ENROLLED = "MANDATORY", "OPTIONAL", "NOT_ENROLLED"
_ANSWERING: Final = "SELECT person FROM answers WHERE field = ? AND choice IN (SELECT value FROM json_each(?))"


class Enrolment(NamedTuple):
    """An enrolment: since the first assignment, and mandatory if one of them is."""

    since: int
    mandatory: bool


Enrolments: TypeAlias = "dict[str, Enrolment]"
"""Person → enrolment in one content."""


class Participation(NamedTuple):
    """A participation in a content."""

    state: str
    percentage: int
    revision: int
    enrolled_at: int
    updated_at: int


class CertificateDates(NamedTuple):
    """The dates of a certificate."""

    issued: int
    expires_at: int | None


class EnrollmentStatus(Struct, frozen=True):
    """One person and one content."""

    content: str
    person: str
    enrolment: Enrolment | None
    participation: Participation | None
    certificate: CertificateDates | None
    expired: bool

    @property
    def state(self) -> str:
        """The progress state: EXPIRED if the certificate has expired, whatever the participation's state."""
        if self.expired:
            return EXPIRED
        return self.participation.state if self.participation else NOT_STARTED

    @property
    def enrollment(self) -> str:
        """The enrolment type, in the specification's terms."""
        if self.enrolment is None:
            return NOT_ENROLLED
        return MANDATORY if self.enrolment.mandatory else OPTIONAL

    @property
    def enrolled_at(self) -> int | None:
        """When it began: with the participation, else with the assignment."""
        return (
            self.participation.enrolled_at if self.participation else self.enrolment.since if self.enrolment else None
        )

    @property
    def last_event_at(self) -> int | None:
        """When the last event occurred."""
        return self.participation.updated_at if self.participation else self.enrolled_at


def list_enrollment_statuses(
    context: RequestContext, contents: Iterable[str], people: Mapping[str, object]
) -> Iterator[EnrollmentStatus]:
    """Everyone of `people` who is enrolled in a content, or has a participation or certificate, in their order."""
    now, audiences = context.repository.now(), _TargetAudiences(context, people)
    for content in contents:
        enrolled = audiences.of(content)
        done = dict(_participations(context.repository, content))
        certified = dict(_certificates(context.repository, content))
        for person in people:
            if person in enrolled or person in done or person in certified:
                certificate = certified.get(person)
                expired = certificate is not None and has_expired(certificate.expires_at, now)
                yield EnrollmentStatus(content, person, enrolled.get(person), done.get(person), certificate, expired)


def find_enrolment(context: RequestContext, content: str, person: str) -> Enrolment | None:
    """One person's enrolment in one content."""
    return _TargetAudiences(context, {person: None}).of(content).get(person)


def has_expired(expires_at: int | None, now: int) -> bool:
    """Whether a certificate with that expiry has expired."""
    return expires_at is not None and expires_at <= now


def find_people_in_groups(context: RequestContext, groups: Iterable[str]) -> set[str] | None:
    """The ids of the people in any of these groups; None for everyone. An unknown group has no members."""
    people: set[str] = set()
    for group in groups:
        if group == context.behaviour("content-targets.everyone"):
            return None
        for kind in context.repository.column("SELECT kind FROM groups WHERE id = ?", group):
            people.update(_members(context, kind, group))
    return people


def _members(context: RequestContext, kind: str, group: str) -> list[str]:
    if kind == SMART_GROUP:
        return compute_members(context, group)
    return context.repository.column("SELECT person FROM members WHERE grp = ?", group)


class _TargetAudiences:
    """Enrolments of the given people. Members of a group are read once."""

    def __init__(self, context: RequestContext, people: Mapping[str, object]) -> None:
        self._context = context
        self._all = people
        self._known: dict[tuple[str, str], list[str]] = {}

    def of(self, content: str) -> Enrolments:
        """The enrolments of these people in a content."""
        enrolments: Enrolments = {}
        for kind, audience, mandatory, since in self._context.repository.rows(
            "SELECT kind, audience, mandatory, created_at FROM targets WHERE content = ? ORDER BY seq", content
        ):
            for person in self._people(str(kind), str(audience)):
                before = enrolments.get(person, Enrolment(int(since or 0), False))
                enrolments[person] = Enrolment(min(before.since, int(since or 0)), before.mandatory or bool(mandatory))
        return enrolments

    def _people(self, kind: str, audience: str) -> Iterable[str]:
        if kind == EVERYONE:
            return self._all
        if kind == USER:
            return [audience] if audience in self._all else []
        if (kind, audience) not in self._known:
            self._known[kind, audience] = [one for one in _members(self._context, kind, audience) if one in self._all]
        return self._known[kind, audience]


def _participations(repository: Repository, content: str) -> Iterator[tuple[str, Participation]]:
    for person, state, *numbers in repository.rows(
        "SELECT person, state, percentage, revision, enrolled_at, updated_at FROM participations WHERE content = ?",
        content,
    ):
        yield str(person), Participation(str(state), *(int(number or 0) for number in numbers))


def _certificates(repository: Repository, content: str) -> Iterator[tuple[str, CertificateDates]]:
    for person, issued, expires_at in repository.rows(
        "SELECT person, issued, expires_at FROM certificates WHERE content = ?", content
    ):
        yield str(person), CertificateDates(int(issued or 0), None if expires_at is None else int(expires_at))


def find_people_by_answer(context: RequestContext, field: str, choices: Iterable[str]) -> set[str]:
    """The ids of the people who answered a field with one of these choices."""
    return set(context.repository.column(_ANSWERING, field, encode_ids(choices)))
