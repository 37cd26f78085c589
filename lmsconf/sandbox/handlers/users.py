"""Users: four views of people, none of them complete, and every change of an account (API specification, Users).

Order details are stored as a whole, with a separate flag that disables payment. Also access (Authentication group and
User Access): login links, applications one by one, the admin and manager flags.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import Final, cast

from lmsconf.sandbox.handlers.groups import compute_memberships
from lmsconf.sandbox.request_context import (
    APPLICATIONS,
    PAGE,
    PAGE_SIZE,
    Entry,
    Handler,
    RequestContext,
    Sql,
    bad_request,
    conflict,
    not_found,
)
from lmsconf.sandbox.store import Json, Repository, Value, json_flag, json_known, json_list, json_time, json_value

_GROUPS: Final = json_list(
    "SELECT g.id, g.kind, g.name FROM {table} JOIN groups g ON g.id = grp WHERE person = people.id ORDER BY g.seq",
    "json_object('groupId', id, 'groupType', kind, 'name', name)",
)
_CHOICES: Final = json_list(
    "SELECT choice, c.name FROM answers LEFT JOIN choices c ON c.id = choice "
    "WHERE person = people.id AND answers.field = f.id ORDER BY c.position",
    "json_object('choiceId', choice, 'name', name)",
)
_ANSWERS: Final = json_value(f"""
    SELECT json_group_object(name, json(CASE type WHEN 'TEXT' THEN json_object('text', text)
    ELSE json_object('choices', {_CHOICES}) END)) FROM (
        SELECT f.id, f.name, f.type, a.text, max(f.seq) AS seq FROM answers a JOIN fields f ON f.id = a.field
        WHERE a.person = people.id GROUP BY f.name ORDER BY seq
    ) f""")
"""Field name → answer. Of two fields with one name the newer one's: with max(), SQLite takes a row's other columns."""
_NAMES: Final = "'userId', id, 'email', email, 'firstName', first_name, 'lastName', last_name"
_FLAGS: Final = f"'admin', {json_flag('admin')}, 'manager', {json_flag('manager')}"
_DATES: Final = "'archivedAt', archived_at, 'customArchiveDate', custom_archive_at"
_METADATA: Final = f"'metadata', json(metadata), 'customFields', {_ANSWERS}"
_AVAILABLE: Final = "'availableApplications', json(applications)"
_MEMBER_OF: Final = (
    f"'memberOfGroups', {_GROUPS.format(table='members')}, 'managerOfGroups', {_GROUPS.format(table='managers')}"
)
_MATCHES: Final = "instr(casefold(first_name || ' ' || last_name || char(10) || email), casefold({text}))"
_NO_FILTER: Final = "coalesce(:filter, '') = ''"
_FILTERED: Final = f"({_NO_FILTER} OR {_MATCHES.format(text=':filter')})"
_SOUGHT: Final = f"""
    (coalesce(:text, '') = '' OR {_MATCHES.format(text=":text")}) AND (:metadata IS NULL
        OR (SELECT count(*) FROM json_each(:metadata)) = (SELECT count(*) FROM json_each(:metadata) wanted
            JOIN json_each(people.metadata) held ON held.key = wanted.key AND held.value = wanted.value))
"""
_WHOLE: Final = (
    f"{_NAMES}, {_METADATA}, {_FLAGS}, {_DATES}, {_MEMBER_OF}, 'language', language, "
    "'createdAt', created_at, 'applicationIds', json(applications), 'integrationIds', json('{}')"
)


def _people(shown: str, rule: str) -> str:
    """SQL for a page of the people that a rule fits, in creation order. shown: the members of each."""
    # The page is selected first, so that skipping does not read whole rows.
    return json_list(
        f"SELECT {json_known(shown)} AS item FROM people "
        f"WHERE seq IN (SELECT seq FROM people WHERE {rule} ORDER BY seq {PAGE}) ORDER BY seq"
    )


def _listing(shown: str) -> str:
    listed = f"{_FILTERED} AND ($dialect(users.list.match-count) = 'listed' OR archived_at IS NULL)"
    # SQLite counts a whole table fast, but not with a condition.
    return f"""
        SELECT json_object('users', {_people(shown, listed)},
            'skip', coalesce(:skip, 0), 'limit', {PAGE_SIZE}, 'filter', coalesce(:filter, ''),
            'matchCount', CASE WHEN {_NO_FILTER} THEN (SELECT count(*) FROM people)
                ELSE (SELECT count(*) FROM people WHERE {_FILTERED}) END)
    """


_ON_REQUEST: Final = ", ".join(
    f"'{name}', json(CASE WHEN :includeGroups THEN {value} END)"
    for name, value in {
        "availableApplications": "applications",
        "memberOfGroups": _GROUPS.format(table="members"),
        "managerOfGroups": _GROUPS.format(table="managers"),
    }.items()
)
_SEARCH: Final = f"""
    SELECT json_object('users', {_people(f"{_NAMES}, {_METADATA}, {_FLAGS}, {_ON_REQUEST}", _SOUGHT)},
        'matchCount', (SELECT count(*) FROM people WHERE {_SOUGHT}))
"""
"""A page of people by name or e-mail and by metadata, with groups and applications on request."""


def answer_with_groups(query: str, context: RequestContext) -> Json:
    """Answer with a person or a page of people, and add smart groups to any groups: manual ones come first."""
    answer = cast(Entry, context.repository.json(query))
    listed = cast("list[dict[str, list[Json]]]", answer.get("users", [answer]))
    people = [person for person in listed if "memberOfGroups" in person]
    computed = compute_memberships(context, [str(person["userId"]) for person in people])
    for person in people:
        person["memberOfGroups"].extend(computed.get(cast(Value, person["userId"]), ()))
    return answer


FIRST_LANGUAGE: Final = "en"


_NO_EMAIL: Final = {
    r"SELECT repr(:email) || ' is not an e-mail' "
    r"WHERE NOT matches(:email, '[^@\s]+@[^@\s.]+(\.[^@\s.]+)+')": bad_request
}
_HAVE_EMAIL: Final = "FROM people WHERE casefold(email) = casefold(:email)"
_CREATE: Final = Sql(
    new_ids={"id": "u"},
    changes=[
        "INSERT INTO people (id, email, first_name, last_name, admin, manager, created_at, language, applications) "
        "VALUES (:id, :email, coalesce(:firstName, ''), coalesce(:lastName, ''), FALSE, FALSE, :now, "
        f"coalesce(:language, '{FIRST_LANGUAGE}'), '[\"learn\"]')"
    ],
    answer="SELECT json_object('userId', :id, 'newUser', json('true'))",
)


def create(context: RequestContext) -> Json:
    """Create an account; for an e-mail in use, return the existing account unchanged."""
    context.refuse(_NO_EMAIL)
    for known in context.repository.column(f"SELECT id {_HAVE_EMAIL}"):
        return {"userId": known, "newUser": False}
    return _CREATE(context)


def archive_due_accounts(repository: Repository) -> None:
    """Archive every account whose custom archive date is due, as of that date."""
    repository.execute(
        "UPDATE people SET archived_at = custom_archive_at WHERE archived_at IS NULL AND custom_archive_at <= ?",
        repository.now(),
    )


_SHOW_ORDER: Final = f"""
    SELECT json_patch(json_patch('{{"disablePayment": false}}', coalesce(o.details, '{{}}')),
        json_object('createdAt', {json_time("o.created_at")}, 'updatedAt', {json_time("o.updated_at")}))
    FROM people p LEFT JOIN orders o ON o.person = p.id WHERE p.id = :userId
"""


_STORE_ORDER: Final = Sql(
    changes=[
        """
        INSERT INTO orders VALUES (:userId, :sent, :now, :now)
        ON CONFLICT (person) DO UPDATE SET updated_at = excluded.updated_at, details = json_patch(
            CASE WHEN NOT :replaces THEN details WHEN json_extract(details, '$.disablePayment')
                THEN '{"disablePayment": true}' ELSE '{}' END, :sent)
        """
    ],
    answer=_SHOW_ORDER,
)


def store_order_details(context: RequestContext, *, replaces: bool) -> Json:
    """Store the order details of the body in place of those stored, but keep the flag that disables payment.

    replaces: whether the others are dropped, which the body does not name.
    """
    context.values.update(sent=json.dumps(context.body), replaces=replaces)
    return _STORE_ORDER(context)


def _update(change: str) -> Sql:
    return Sql(changes=[f"UPDATE people SET {change} WHERE id = :userId"])


_ASKED: Final = "CASE WHEN :userId IS NULL THEN casefold(email) = casefold(:email) ELSE id = :userId END"
"""The person to sign in: `userId` takes precedence over `email`."""
_END_DATE: Final = "UPDATE people SET custom_archive_at = NULL WHERE :endow = 'true' AND id = :userId"
"""Neither an admin nor a manager can have a custom archive date."""

HANDLERS: Final[Mapping[str, Handler]] = {
    "users.list": Sql(answer=_listing(f"{_NAMES}, {_METADATA}, {_DATES}")),
    "users.extended-info": partial(answer_with_groups, _listing(f"{_NAMES}, {_FLAGS}, {_AVAILABLE}, {_MEMBER_OF}")),
    "users.get": partial(answer_with_groups, f"SELECT {json_known(_WHOLE)} FROM people WHERE id = :userId"),
    "users.search": partial(answer_with_groups, _SEARCH),
    "users.create": create,
    # With an account go the rows that belong to this person only.
    "users.delete": Sql(
        changes=[
            "DELETE FROM events WHERE participation IN (SELECT id FROM participations WHERE person = :userId)",
            *(
                f"DELETE FROM {table} WHERE person = :userId"
                for table in (
                    *("answers", "members", "managers", "links", "orders", "certificates", "generations"),
                    "participations",
                )
            ),
            "DELETE FROM targets WHERE audience = :userId AND kind = 'USER'",
            "DELETE FROM people WHERE id = :userId",
        ]
    ),
    "users.archive": Sql(
        refusals={
            "SELECT 'an admin cannot be archived: revoke administrator rights first' FROM people "
            "WHERE id = :userId AND admin": bad_request
        },
        changes=["UPDATE people SET archived_at = :now WHERE id = :userId AND archived_at IS NULL"],
    ),
    # A custom archive date in the past would archive the account again at once.
    "users.unarchive": _update("archived_at = NULL, custom_archive_at = nullif(max(custom_archive_at, :now), :now)"),
    "users.set-custom-archived-date": Sql(
        refusals={
            "SELECT 'an admin or manager cannot have a custom archive date' FROM people "
            "WHERE id = :userId AND :date IS NOT NULL AND (admin OR manager)": bad_request
        },
        changes=["UPDATE people SET custom_archive_at = :date WHERE id = :userId"],
    ),
    "users.update-email": Sql(
        refusals={
            **_NO_EMAIL,
            "SELECT 'another user has the e-mail ' || repr(:email) "
            f"WHERE EXISTS (SELECT 1 {_HAVE_EMAIL} AND id != :userId)": conflict,
        },
        changes=["UPDATE people SET email = :email WHERE id = :userId"],
    ),
    "users.update-fullname": _update(
        "first_name = coalesce(:firstName, first_name), last_name = coalesce(:lastName, last_name)"
    ),
    "users.update-language": _update("language = :language"),
    "users.update-metadata": _update(
        "metadata = CASE $dialect(users.update-metadata.mode) WHEN 'merge' THEN json_patch(metadata, :metadata) "
        "ELSE :metadata END"
    ),
    "users.order-details": Sql(answer=_SHOW_ORDER),
    "users.set-order-details": partial(store_order_details, replaces=True),
    "users.disable-payment": partial(store_order_details, replaces=False),
    # A login link that lasts 15 minutes.
    "auth.create": Sql(
        new_ids={"secret": "link"},
        refusals={
            "SELECT 'there is no user ' || quote(coalesce(:userId, :email)) "
            f"WHERE NOT EXISTS (SELECT 1 FROM people WHERE {_ASKED})": not_found,
            "SELECT 'an archived user cannot sign in' FROM people "
            f"WHERE {_ASKED} AND archived_at IS NOT NULL": bad_request,
        },
        changes=[
            "INSERT INTO links (id, person, redirect, expires_at) SELECT :secret, id, coalesce(:redirectUri, ''), "
            f":now + 15 * 60 * 1000 FROM people WHERE {_ASKED} LIMIT 1"
        ],
        answer="""
            SELECT json_object('preSignedInLink', 'https://sandbox.invalid/sign-in?secret=' || encode_query(id)
                || CASE redirect WHEN '' THEN '' ELSE '&redirectUri=' || encode_query(redirect) END,
                'expiresAt', expires_at)
            FROM links WHERE id = :secret
        """,
    ),
    "user-access.set": Sql(
        changes=[
            f"""UPDATE people SET applications = (SELECT json_group_array(value) FROM (
                SELECT value FROM json_each('{json.dumps(APPLICATIONS)}') WHERE CASE value WHEN :applicationId
                THEN :action = 'ADD' ELSE value IN (SELECT value FROM json_each(people.applications)) END ORDER BY key
            )) WHERE id = :userId"""
        ]
    ),
    "user-access.make-admin": Sql(changes=["UPDATE people SET admin = :endow = 'true' WHERE id = :userId", _END_DATE]),
    "user-access.make-manager": Sql(
        changes=[
            "UPDATE people SET manager = :endow = 'true' WHERE id = :userId",
            _END_DATE,
            "DELETE FROM managers WHERE person = :userId AND :endow = 'false' "
            "AND $dialect(user-access.make-manager.managed-groups) = 'lose'",
        ]
    ),
}
