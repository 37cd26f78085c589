"""Read the five kinds concurrently, and the declared attributes of people with as few requests as possible.

GET /users has names, metadata, answers and dates. Only GET /users/{userId} has language and applications; rights are
there and in GET /users/extended-info, a page of people per request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial, reduce
from itertools import repeat
from typing import Any, Final

from msgspec.structs import replace

from lmsconf.api.spec.dialect_candidates import MANAGED_GROUPS, WHO_CAN_MANAGE
from lmsconf.api.spec.operations import EXTENDED_INFO, USERS
from lmsconf.errors import InvalidResponse, Rejected
from lmsconf.kinds.group import ManualGroupSpec
from lmsconf.kinds.shared.kind_names import (
    ADMIN,
    ANSWERS,
    CONTENT_TARGET,
    CUSTOM_FIELD,
    GROUP,
    HOLDERS,
    SMART_GROUP,
    USER,
)
from lmsconf.kinds.shared.plan_context import MatchResult, PlanContext
from lmsconf.kinds.shared.responses import require_object
from lmsconf.kinds.smart_group import SmartGroupSpec
from lmsconf.kinds.user.compare import has_enough_declared_admins
from lmsconf.kinds.user.types import (
    SINGLE_KEYS,
    AdminRow,
    HolderRow,
    PersonRow,
    PersonSpec,
    loses_manager_right,
    parse_managed_groups,
    parse_person_row,
    parse_rights,
    parse_values,
)
from lmsconf.model.address import RemoteId
from lmsconf.model.calls import Api, ListedRows
from lmsconf.model.canonical_json import Json
from lmsconf.model.names import normalize_email
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.read.assignments import read_assignments
from lmsconf.planner.read.fields_and_groups import (
    copies_answers,
    find_contradicted_listings,
    loses_answers,
    may_copy_answers,
    may_delete_fields,
    read_fields,
    read_groups,
    read_smart_groups,
)
from lmsconf.planner.read.needed_listings import ReadContext, keep_keys, sorted_listing
from lmsconf.planner.read.people_listings import Row, read_shown_people

_LISTED = frozenset({"first_name", "last_name", "metadata", "answers", "custom_archive_date"})
_ALONE = frozenset({"first_name", "last_name", "metadata", "language", "applications", "manager"})


def read_people(reading: ReadContext) -> Iterator[None]:
    """Read the people, with the attributes that are compared, and count them; no listing if only that is needed.

    1: the first page, or all. 3: the people in lists, or else the other pages. 4: what the listing does not have.
    """
    needed = USER in reading.needed or copies_answers(reading)
    index, keep = reading.answers, _kept(reading)
    index.keeps_texts = reading.everything or may_delete_fields(reading)
    if reading.effects or reading.everything or reading.covers(CUSTOM_FIELD):
        keep = partial(index.collect, keep)
    pages = reading.api.pages(USERS, keep=keep)
    rows = next(pages) if needed else count_people(reading.api)
    reading.people, reading.page = rows.total, len(rows.rows)
    most = _most_lookups(reading, rows)
    if needed and not most:
        *_, rows = rows, *pages
    yield
    yield
    loses = loses_answers(reading)
    if not needed and not loses:
        return
    few = _looked_up(reading, rows, most, keep) if most and not loses else None
    *_, rows = (few,) if few else (rows, *pages)
    unlisted = () if few else tuple(_unlisted(reading, rows, keep))
    if reading.effects and not few:
        index.finish(rows.incomplete)
    # Without a total in the response, a listing read to its end gives the number.
    reading.people = len(rows.rows) if rows.total is None and rows.incomplete is None else rows.total
    people = [*map(parse_person_row, rows.rows), *(replace(parse_person_row(one), unlisted=True) for one in unlisted)]
    rows = replace(rows, rows=(*rows.rows, *unlisted))
    listing = reading.listings[USER] = sorted_listing(people, rows.incomplete)
    if not needed or loses:
        kept = (index.people[RemoteId(str(row["userId"]))] for row in rows.rows)
        reading.found[ANSWERS] = sorted_listing(kept, rows.incomplete)
    yield
    listing = read_manager_rights(reading, listing)
    if reading.covers(USER):
        listing = _with_attributes(reading, listing, rows)
    if needed:
        reading.found[USER] = listing


def _with_attributes(reading: ReadContext, listing: Listing[PersonRow], rows: ListedRows) -> Listing[PersonRow]:
    """Return the listing with declared attributes, and groups that people lose; count who holds choices."""
    planning, matched = reading.match(USER, {USER: listing}, reading.manifests)
    listing = read_attributes(reading, planning, matched, listing, rows)
    if reading.everything:
        held = Counter(choice for one in listing.rows for answer in one.answers or () for choice in answer.choices)
        reading.found[HOLDERS] = sorted_listing(
            (HolderRow(RemoteId(id), people) for id, people in held.items()), rows.incomplete
        )
    return read_managed_groups(reading, matched, listing)


def count_people(api: Api) -> ListedRows:
    """Return no rows, and the number of people, if the service reports it."""
    total = require_object(api.get("users.list", query={"skip": 0, "limit": 1}), "the people").get("matchCount")
    return ListedRows(rows=(), total=total if isinstance(total, int) else None)


_FEW_LOOKUPS: Final = 5
"""Up to how many last editors, or e-mails, are looked up, a request each."""


def _most_lookups(reading: ReadContext, first: ListedRows) -> int:
    """Return how many people may be looked up who are not on the first page; 0 if all people must be listed.

    Looking up may be in vain, so it is tried only where it takes half as many requests at most.
    """
    if first.total is None or not first.rows or not _only_in_lists(reading):
        return 0
    most = (-(-first.total // len(first.rows)) - 1) // 2
    return most if len(reading.named_emails() - _emails(first.rows)) <= most else 0


def _looked_up(reading: ReadContext, first: ListedRows, most: int, keep: Callable[[Row], Row]) -> ListedRows | None:
    """Return the first page and the rows of the other people in lists; None if all people must be listed."""
    known = {str(row["userId"]) for row in first.rows}
    unknown, others = reading.named_emails() - _emails(first.rows), sorted(reading.people_in_lists - known)
    if reading.needs_all_people or len(others) > most or len(unknown) > len(others):
        return None
    try:
        people = [keep(row) for row in _read_people(reading, others).values()]
    except (Rejected, InvalidResponse):
        # The id is not a person's, or the response cannot be read: only the listing shows whose it is.
        return None
    if [str(person.get("userId")) for person in people] != others or not unknown <= _emails(people):
        return None
    # So that drift can name them; of one who is no person of the workspace the id is shown.
    editors = {edit.by for edit in reading.last_edits.values() if edit.by and "@" not in edit.by}
    few = sorted(editors - known.union(others))[:_FEW_LOOKUPS]
    people += map(keep, read_shown_people(reading.api, few).values())
    return ListedRows(rows=(*first.rows, *people), total=first.total)


def _unlisted(reading: ReadContext, rows: ListedRows, keep: Callable[[Row], Row]) -> Iterator[Row]:
    """Yield the rows of declared people that the listing does not have, by their pins, or those of a plan.

    The API specification does not say whether GET /users has archived people (Users). Where an entry says
    whether somebody is archived, GET /users/extended-info may have the id.
    """
    entries = [one for one in reading.declared_of(USER) if reading.chosen(one.address)]
    ids = {pin for one in entries if (pin := one.pin(reading.policy.workspace))} | reading.named_people
    if not any(row.get("archivedAt") for row in rows.rows):
        emails = {one.address.name for one in entries if "archived" in one.spec.declared_keys} - _emails(rows.rows)
        ids |= _ids_by_email(reading, emails)
    more = sorted(ids - {str(row["userId"]) for row in rows.rows})
    yield from map(keep, _read_people(reading, more, frozenset(more)).values())


def _ids_by_email(reading: ReadContext, emails: AbstractSet[str]) -> set[RemoteId]:
    """Return the ids that the extended listing has for e-mails. How its filter matches is not documented."""
    queries = [{"filter": email} for email in sorted(emails)] if len(emails) <= _FEW_LOOKUPS else [{}]
    rows = (
        row
        for query in queries
        for row in reading.api.rows(EXTENDED_INFO, query=query, keep=keep_keys("userId", "email")).rows
    )
    return {RemoteId(str(row["userId"])) for row in rows if normalize_email(str(row.get("email") or "")) in emails}


def _emails(people: Iterable[Row]) -> frozenset[str]:
    return frozenset(normalize_email(str(person.get("email") or "")) for person in people)


def _only_in_lists(reading: ReadContext) -> bool:
    """Return whether of people only ids and e-mails in lists are needed, unless answers are lost.

    Declared people must be known by id, with keys that a single response has as the listing does.
    """
    all_known = all(
        one.pin(reading.policy.workspace) in reading.named_people and one.spec.declared_keys <= _ALONE
        for one in reading.declared_of(USER)
        if reading.chosen(one.address)
    )
    may_all_manage = reading.api_spec.behaviour(WHO_CAN_MANAGE) == "anybody"
    return not reading.everything and (all_known or not reading.covers(USER)) and may_all_manage


def _kept(reading: ReadContext) -> Callable[[dict[str, Json]], dict[str, Json]]:
    """Return the filter of user rows: whole rows only for declared people, to bound memory with 200,000 people."""
    if reading.everything:
        return keep_keys("userId", "email", "archivedAt", "firstName", "lastName", "metadata", "customArchiveDate")
    people = reading.declared_of(USER)
    emails = {name for one in people for name in (one.address.name, *one.previously)}
    pinned = {one.pin(reading.policy.workspace) for one in people}
    few = keep_keys("userId", "email", "archivedAt")
    return lambda row: row if row["userId"] in pinned or normalize_email(str(row.get("email"))) in emails else few(row)


def read_attributes(
    reading: ReadContext,
    planning: PlanContext,
    matched: MatchResult[PersonSpec, PersonRow],
    listing: Listing[PersonRow],
    rows: ListedRows,
) -> Listing[PersonRow]:
    """Return the listing with declared attributes, or with all that listings have; add that of admins where it is read.

    The extended listing is read if its pages are fewer than single requests for rights, or if the declarations alone
    do not keep enough admins. Unless everything is read, rows hold only declared attributes, however they were read, so
    that reading again for fewer people gives equal rows.
    """
    specs: dict[str, PersonSpec] = {
        str(match.row.id): match.declared.spec
        for match in matched.matches
        if match.row is not None and (reading.everything or planning.chosen(match.address))
    }
    listed = {
        id: _listed_values(reading, row, specs.get(id))
        for row in rows.rows
        if (id := str(row["userId"])) in specs or reading.everything
    }
    asked = {id for id, spec in specs.items() if not spec.declared_keys.isdisjoint(SINGLE_KEYS)}
    rights = {id for id, spec in specs.items() if spec.needs_live_rights} - asked
    reads_rights = reading.everything or -(-len(listing.rows) // max(1, reading.page)) < len(rights)
    held = _extended_rights(reading, listed.keys() if reading.everything else rights) if reads_rights else {}
    asked |= set() if reading.everything else rights - held.keys()
    people = _read_people(reading, sorted(asked), {row.id for row in listing.rows if row.archived})
    unshown = asked - people.keys()
    single = {id: _single_values(specs[id], row) for id, row in people.items()}
    details = [listed, held, _extended_rights(reading, unshown) if unshown else {}, single]
    listing = reduce(_with_details, details, listing)
    if reads_rights or unshown or not has_enough_declared_admins(planning, _again(matched, listing)):
        reading.found[ADMIN] = admin_listing(reading.extended_rows(), listing.rows)
    return listing


def _extended_rights(reading: ReadContext, ids: AbstractSet[str]) -> dict[str, dict[str, object]]:
    """Return the rights that the extended listing has of some people, by id."""
    return {id: parse_rights(row) for row in reading.extended_rows().rows if (id := str(row["userId"])) in ids}


def _with_details(listing: Listing[PersonRow], details: Mapping[Any, Mapping[str, Any]]) -> Listing[PersonRow]:
    """Return the listing with the attributes that were read for people, by id."""
    rows = (replace(row, **details[row.id]) if details.get(row.id) else row for row in listing.rows)
    return replace(listing, rows=tuple(rows)) if details else listing


def _read_people(reading: ReadContext, ids: Sequence[str], archived: AbstractSet[str] = frozenset()) -> dict[str, Row]:
    """Return the row of each person, but of archived people that the service does not show. Raises ApiError."""
    try:
        answers = reading.api.each("users.get", [({"userId": id}, {}) for id in ids])
    except Rejected:
        if archived.isdisjoint(ids):
            raise
        others = [id for id in ids if id not in archived]
        return _read_people(reading, others) | read_shown_people(reading.api, sorted(archived & {*ids}))
    return {id: dict(require_object(answer, "a user")) for id, answer in zip(ids, answers, strict=True)}


def _listed_values(reading: ReadContext, row: Row, spec: PersonSpec | None) -> dict[str, object]:
    """Return the declared values that a row of the listing has; all of them if everything is read."""
    if not reading.everything:
        return {} if spec is None else parse_values(row, spec.declared_keys & _LISTED)
    held = reading.answers.people[RemoteId(str(row["userId"]))]
    return {**parse_values(row, _LISTED - {"answers"}), "answers": held.all_answers}


def _single_values(spec: PersonSpec, row: Row) -> dict[str, object]:
    """Return the declared values that only the response for one person has, and the rights if compared."""
    values = parse_values(row, spec.declared_keys & SINGLE_KEYS)
    return values | parse_rights(row) if spec.needs_live_rights else values


def read_manager_rights(reading: ReadContext, listing: Listing[PersonRow]) -> Listing[PersonRow]:
    """Return the listing with the rights of all people in declared lists of managers, also under an earlier e-mail.

    Only where these decide who can manage.
    """
    declared = [one for one in reading.manifests.declared if reading.chosen(one.address)]
    named = {
        email
        for one in declared
        if isinstance(one.spec, ManualGroupSpec | SmartGroupSpec) and one.spec.managers is not None
        for email in one.spec.managers.include
    }
    if not named or reading.api_spec.behaviour(WHO_CAN_MANAGE) == "anybody":
        return listing
    people_entries = [one for one in declared if one.address.kind == USER and one.address.name in named]
    named.update(old for one in people_entries for old in one.previously)
    pinned = {one.pin(reading.policy.workspace) for one in people_entries}
    wanted = {row.id for row in listing.rows if normalize_email(row.email) in named or row.id in pinned}
    return _with_details(listing, _extended_rights(reading, wanted))


def read_managed_groups(
    reading: ReadContext, matched: MatchResult[PersonSpec, PersonRow], listing: Listing[PersonRow]
) -> Listing[PersonRow]:
    """Return the listing with the groups that people manage who lose the manager right, where these go with it."""
    if reading.policy.additive or reading.api_spec.behaviour(MANAGED_GROUPS) != "lose":
        return listing
    losing = sorted(
        match.row.id
        for match in _again(matched, listing).matches
        if match.row and reading.chosen(match.address) and loses_manager_right(match.declared.spec, match.row)
    )
    return _with_details(listing, {id: parse_managed_groups(row) for id, row in _read_people(reading, losing).items()})


def admin_listing(everybody: ListedRows, people: Sequence[PersonRow]) -> Listing[AdminRow]:
    """Return the listing of active people with administrator rights, by id."""
    admins = {str(row["userId"]) for row in everybody.rows if row.get("admin") is True}
    return sorted_listing(
        (AdminRow(row.id, row.name) for row in people if row.id in admins and not row.archived), everybody.incomplete
    )


def _again(
    matched: MatchResult[PersonSpec, PersonRow], listing: Listing[PersonRow]
) -> MatchResult[PersonSpec, PersonRow]:
    """Return the same matches with their rows replaced by those of the listing."""
    rows = {row.id: row for row in listing.rows}
    return MatchResult(
        matches=[replace(match, row=rows[match.row.id]) if match.row else match for match in matched.matches]
    )


_READ: Final[Mapping[str, Callable[[ReadContext], Iterator[None]]]] = {
    USER: read_people,
    CUSTOM_FIELD: read_fields,
    GROUP: read_groups,
    SMART_GROUP: read_smart_groups,
    CONTENT_TARGET: read_assignments,
}
"""Kind → its job, which adds to `found`; each `yield` ends a phase. People are the most pages, so first."""


def read_snapshot(reading: ReadContext, *, url: str, taken_at: str) -> Snapshot:
    """Run a reading, and return its snapshot; what its jobs share can be read on.

    In each phase the jobs of all kinds run concurrently, and use what all of them have read before: 1. listings,
    2. details of what is compared, 3. people, 4. what depends on those.
    Raises ApiError, also for a response that is not a listing. A listing that looks complete is marked incomplete if
    another one contradicts it. url, taken_at: recorded in the snapshot as given.
    """
    jobs = {kind: read(reading) for kind, read in _READ.items() if kind == USER or kind in reading.needed}
    # Where people are needed only to copy answers, the fields say whether they are.
    fields_first = USER not in reading.needed and may_copy_answers(reading)
    for kinds in (jobs.keys() & {CUSTOM_FIELD} if fields_first else (), *repeat(jobs, 4)):
        reading.api.together({kind: partial(next, jobs[kind], None) for kind in kinds})
    listings = {name: reading.found[name] for name in (*jobs, *sorted(reading.found)) if name in reading.found}
    snapshot = Snapshot(
        workspace=reading.policy.workspace, url=url, taken_at=taken_at, people=reading.people, listings=listings
    )
    doubts = {
        name: replace(listings[name], incomplete=reason)
        for name, reason in find_contradicted_listings(snapshot)
        if listings[name].incomplete is None
    }
    return replace(snapshot, listings={**listings, **doubts})
