"""Live resources of the five kinds as manifest entries."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias, cast

from msgspec import Struct, field

from lmsconf.errors import Problem, Severity
from lmsconf.kinds.assignment.parse import audience_from
from lmsconf.kinds.assignment.target_ids import resolve_audience
from lmsconf.kinds.assignment.types import (
    ContentRow,
    TargetRow,
    assignment_address,
    audience_entry,
    readable_time,
    unnamed_content,
)
from lmsconf.kinds.custom_field.types import FLAGS, TYPES, FieldRow
from lmsconf.kinds.shared.kind_names import (
    CONTENT_TARGET,
    CUSTOM_FIELD,
    EVERYONE,
    GROUP,
    SMART_GROUP,
    USER,
    choices_registry_kind,
    split_address,
)
from lmsconf.kinds.shared.manifest_entry import (
    LISTS,
    format_shortest_time,
    format_time,
)
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.kinds.shared.responses import AnswerRow
from lmsconf.kinds.smart_group import live_conditions_as_declared
from lmsconf.kinds.user.types import ARCHIVE_DATE, KEYS, RIGHTS, TEXTS, PersonRow
from lmsconf.model.address import EVERYBODY, Address, Ref
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.control_characters import FORBIDDEN, is_representable, is_valid_name
from lmsconf.model.effects import count_people
from lmsconf.model.forms import Form, form_to_json, without_empty
from lmsconf.model.guards import Policy
from lmsconf.model.names import casefold_name, count_noun, grouped, normalize_email, normalize_name
from lmsconf.model.snapshot import Snapshot


class ExportedEntry(Struct, frozen=True, kw_only=True):
    """The manifest entry of one live row. notes: what it leaves out, and why.

    reason: why a manifest cannot declare the row, which then has no body; None if it can.
    """

    address: Address
    id: str
    body: Mapping[str, Json] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    reason: str | None = None


EntryBody: TypeAlias = tuple[Mapping[str, Json], tuple[str, ...]]
"""The keys of an entry beside its name, and notes of what it leaves out, and why."""
_NO_EMAIL: Final = "no e-mail that a manifest can contain"


def manifest_email(planning: PlanContext, id: str, *, archived: bool = False) -> str | None:
    """Return the e-mail that identifies a person; None without a unique one, or if archived unless `archived`."""
    email = planning.people.emails.get(id, "")
    # As the service spells it, in lower case.
    spelt = normalize_name(planning.people.by_email[email].email.strip()).lower() if email else ""
    is_valid = re.fullmatch(r"[^@\s]+@[^@\s]+", spelt) and is_representable(spelt) and not FORBIDDEN.search(spelt)
    return spelt if is_valid and (archived or email not in planning.people.archived) else None


def people_lists_body(planning: PlanContext, lists: Mapping[str, Iterable[str] | None]) -> EntryBody:
    """Return the keys of an entry for lists of people, key → ids or None; an empty list for members only."""
    keys: dict[str, Json] = {}
    notes: list[str] = []
    for key, ids in lists.items():
        emails = {id: manifest_email(planning, id) for id in sorted(ids or ())}
        left = Counter(_why_not(planning, id) for id, email in emails.items() if email is None)
        people: list[Json] = [*sorted(email for email in emails.values() if email is not None)]
        # The list is not complete if an active person cannot be named.
        if people or (ids is not None and key == "members" and _NO_EMAIL not in left):
            keys[key] = {"include": people} if _NO_EMAIL in left else people
        notes.extend(f"{count_noun(n, key.removesuffix('s'))} left out: {why}" for why, n in left.items())
    return keys, tuple(notes)


def _why_not(planning: PlanContext, id: str) -> str:
    people = planning.people
    if id not in people.ids:
        return "no list of people contains the id"
    if id not in people.emails:
        return "more than one person has the e-mail"
    return "archived" if people.emails[id] in people.archived else _NO_EMAIL


def only_text(value: Json) -> str | None:
    """Return a text, or the only one of a list; None for anything else."""
    match value:
        case str(text) | [str(text)]:
            return text
    return None


def person_entries(planning: PlanContext) -> Iterator[ExportedEntry]:
    """Yield every person, with the values that were read.

    Values that only the response for a single user contains are usually missing; see `unread_value_notes`.
    """
    for row in planning.snapshot.rows(PersonRow):
        address = Address.of(USER, row.name)
        mail = manifest_email(planning, row.id, archived=True)
        if mail is None:
            yield ExportedEntry(address=address, id=row.id, reason="no e-mail that names one person only")
            continue
        form = person_form(planning, row)
        if row.archives_at is not None:
            form[ARCHIVE_DATE] = format_shortest_time(row.archives_at, planning.policy.timezone, end_of_day=False)
        # That somebody has no applications is said.
        said = (key for key in KEYS if form.get(key) or (key == "applications" and key in form))
        yield ExportedEntry(
            address=address, id=row.id, body={"email": mail, **{key: form_to_json(form[key]) for key in said}}
        )


def person_form(planning: PlanContext, row: PersonRow) -> Form:
    """Return every value of a person that was read, in the order of the keys of manifests."""
    values: Form = {
        "email": row.name,
        **{key: normalize_name(getattr(row, key)) for key in TEXTS if getattr(row, key) is not None},
        **{key: getattr(row, key) for key in RIGHTS},
        "applications": row.applications,
        "metadata": None if row.metadata is None else dict(row.metadata),
        "answers": None if row.answers is None else dict(answer_values(planning, row.answers)),
        "archived": row.archived,
        ARCHIVE_DATE: row.archives_at and format_time(row.archives_at, planning.policy.timezone),
    }
    return {key: value for key, value in values.items() if value is not None}


def answer_values(planning: PlanContext, answers: tuple[AnswerRow, ...]) -> Iterator[tuple[str, Json]]:
    """Yield a person's answers by field, in the form of the field's type."""
    for answer in answers:
        type, scope = planning.field_types.get(answer.field), choices_registry_kind(answer.field)
        names: list[Json] = [*sorted({planning.registry.name(scope, id) or id for id in answer.picked})]
        one = answer.as_text if type == "TEXT" else next(iter(names), None)
        if value := names if type == "MULTI_SELECT" else one:
            yield answer.field, value


def unread_value_notes(entries: Sequence[ExportedEntry], snapshot: Snapshot) -> Iterator[Problem]:
    """Note people whose language or applications are unknown: only the response for a single user contains them."""
    rows = {str(row.id): row for row in snapshot.rows(PersonRow)}
    number = sum(None in (rows[entry.id].language, rows[entry.id].applications) for entry in entries)
    if number:
        yield Problem(
            code="export/unread",
            message=f"language and applications of {count_people(number)} are left out: the list API omits these "
            "fields",
            severity=Severity.NOTE,
            hint="`lmsconf api GET /users/ID` shows those of one. Omitted, they stay unmanaged.",
        )


def named_entries(planning: PlanContext, kind: str) -> Iterator[ExportedEntry]:
    """Yield every field, group or smart group without default values, with its id if the name is ambiguous."""
    rows = planning.snapshot.of(kind).rows
    looks = Counter(casefold_name(row.name) for row in rows)
    for row in rows:
        name = normalize_name(row.name)
        address = Address.of(kind, name)
        if reason := _why_unnamed(planning, address, row.id):
            yield ExportedEntry(address=address, id=row.id, reason=reason)
            continue
        keys, notes = field_entry_body(row) if kind == CUSTOM_FIELD else _group_entry_body(planning, row)
        # The id tells it from another of the same name, or of one that looks the same to a reader.
        pin = {"id": row.id} if looks[casefold_name(row.name)] > 1 else {}
        yield ExportedEntry(address=address, id=row.id, body={"name": name, **pin, **keys}, notes=notes)


def _why_unnamed(planning: PlanContext, address: Address, id: str) -> str | None:
    """Return why a manifest cannot declare a row by its name; None if it can."""
    if not is_valid_name(address.name):
        return "its name contains characters that a manifest must not contain" if address.name else "it has no name"
    # Of several rows with one name, only the first has it.
    return None if planning.registry.id_or_ref(Ref(address)) == id else "another resource has its name, and is declared"


def _group_entry_body(planning: PlanContext, row: Any) -> EntryBody:
    keys, notes = people_lists_body(planning, {key: getattr(row, key) for key in LISTS if hasattr(row, key)})
    conditions: list[Json] = [
        one.to_json() for one in live_conditions_as_declared(planning, getattr(row, "conditions", ()) or ())
    ]
    return {**without_empty({"conditions": conditions}), **keys}, notes


def team_of(kind: str, body: Mapping[str, Json], field: str, teams: Mapping[Address, str]) -> str | None:
    """Return the one value of a custom field that an exported entry is about. teams: those of other entries."""
    match body:
        case {"answers": dict(answers)} if kind == USER:
            return only_text(answers.get(field))
        case {"members": [*people] | {"include": [*people]}} if kind == GROUP:
            named = {teams.get(Address.of(USER, normalize_email(str(email)))) for email in people}
            return named.pop() if len(named) == 1 else None
        case {"conditions": [*conditions]} if kind == SMART_GROUP:
            about = [one for one in conditions if isinstance(one, dict) and one.get("field") == field]
            return only_text(about[0].get("choices")) if len(about) == 1 else None
        case {"assign_to": [audience, *_]}:
            return teams.get(audience_from(audience))
    return None


def field_entry_body(row: FieldRow) -> EntryBody:
    """Return the type, choices in live order, description and flags of a field."""
    names = [normalize_name(choice.name) for choice in row.choices]
    choices: list[Json] = [name for name in names if names.count(name) == 1 and is_valid_name(name)]
    left = len(names) - len(choices)
    body: dict[str, Json] = {
        "type": row.type if row.type in TYPES else None,
        "choices": {"include": choices} if left and choices else choices,
        "description": row.description,
        **{key: getattr(row, key) for key in FLAGS},
    }
    notes = [] if body["type"] else [f"its type {row.type} is not supported in manifests"]
    notes += [f"choices that share a name, or have none: {left}"] if left else []
    return {key: value for key, value in body.items() if value}, tuple(notes)


_VALUE: Final = ("mandatory", "visible_from", "visible_until")


def content_id_of_target(target: str) -> str:
    """Return the id of the content in the id of a live target."""
    return target.partition("/")[0]


def assignment_entries(planning: PlanContext, policy: Policy) -> Iterator[ExportedEntry]:
    """Yield every assignment, each with one audience. policy: that of the export."""
    contents = {row.id: row for row in planning.snapshot.rows(ContentRow)}
    for row in planning.snapshot.rows(TargetRow):
        content, name = _content(planning, contents.get(row.content))
        audience = resolve_audience(planning, row)
        address = assignment_address(name, audience or Address("audience", row.target))
        reason = (
            "its content is not in the catalog" if content is None else _unnameable(planning, policy, row, audience)
        )
        if audience is None or reason is not None:
            yield ExportedEntry(address=address, id=row.id, reason=str(reason))
            continue
        body: dict[str, Json] = {
            "content": content,
            "mandatory": row.mandatory,
            "visible_from": row.start and _time(row.start, planning, end_of_day=False),
            "visible_until": row.finish and _time(row.finish, planning, end_of_day=True),
            "assign_to": [
                {"user": manifest_email(planning, row.target, archived=True)}
                if audience.kind == USER
                else audience_entry(audience)
            ],
        }
        yield ExportedEntry(address=address, id=row.id, body=without_empty(body))


def _content(planning: PlanContext, row: ContentRow | None) -> tuple[Json, str]:
    """Return how a manifest refers to content, and its name.

    The id is added if two contents share the name, or if the name cannot be written.
    """
    if row is None:
        return None, "content"
    # The id identifies the content, whatever name is given with it.
    name = normalize_name(row.name) if is_valid_name(normalize_name(row.name)) else unnamed_content(row.id)
    is_plain = name == normalize_name(row.name) and row.id not in planning.shared_content
    return name if is_plain else {"name": name, "id": row.id}, name


def _unnameable(planning: PlanContext, policy: Policy, row: TargetRow, audience: Address | None) -> str | None:
    """Return the reason why no manifest can refer to the audience; None if one can."""
    if audience is None:
        return "its audience is unknown"
    if audience.kind == USER:
        if manifest_email(planning, row.target, archived=True) is None:
            return "the person has no e-mail that a manifest can contain"
        # Owned assignments are deleted unless declared. Otherwise leave it out: each plan would report archived people.
        owned = policy.ownership.get(CONTENT_TARGET)
        return "the person is archived" if not owned and manifest_email(planning, row.target) is None else None
    # Of several with one name, only the first is named by it.
    registry = planning.registry
    is_named = registry.has(audience.kind, audience.name) and registry.id_or_ref(Ref(audience)) == row.target
    return None if is_named or audience == EVERYONE else "another audience has the same name"


def _time(text: str, planning: PlanContext, *, end_of_day: bool) -> str:
    """Format a live time for a manifest; an unreadable one is returned unchanged, and reported by the plan."""
    moment = readable_time(text)
    if isinstance(moment, datetime):
        return format_shortest_time(moment, planning.policy.timezone, end_of_day=end_of_day)
    return text


def group_by_content(entries: Iterable[ExportedEntry]) -> Iterator[Mapping[str, Json]]:
    """Group assignments into one entry per content: values that all audiences share once, others at each audience."""
    by_content = grouped(sorted(entries, key=_order), lambda one: str((one.body["content"], one.body.get("only_in"))))
    for same in sorted(by_content.values(), key=lambda same: (_order(same[0])[0], min(entry.id for entry in same))):
        first = same[0].body
        shared = {
            key: first[key]
            for key in _VALUE
            if key in first and all(entry.body.get(key) == first[key] for entry in same)
        }
        yield {
            "content": first["content"],
            **shared,
            "assign_to": [_audience(entry, shared) for entry in same],
            **{key: first[key] for key in ("only_in",) if key in first},
        }


def _order(entry: ExportedEntry) -> tuple[str, int, str]:
    """Return by what assignments are sorted: the content, the sort of the audience, and its name."""
    content, audience = split_address(entry.address) or ("", "")
    kind, _, name = audience.partition("/")
    return casefold_name(content), (EVERYBODY, SMART_GROUP, GROUP, USER).index(kind), casefold_name(name)


def _audience(entry: ExportedEntry, shared: Mapping[str, Json]) -> Json:
    [to] = cast("list[Json]", entry.body["assign_to"])
    own = {key: entry.body[key] for key in _VALUE if key in entry.body and key not in shared}
    return EVERYBODY if EVERYBODY in members(to) and not own else {**members(to), **own}
