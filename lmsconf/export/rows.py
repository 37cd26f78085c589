"""Live row → manifest entry: by name and e-mail, without default values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, cast

from lmsconf.export.live_names import LiveNames, spelt
from lmsconf.kinds.content_target.catalog import ContentRow
from lmsconf.kinds.content_target.values import TargetRow, audience_form, audience_of, target_address
from lmsconf.kinds.custom_field.choices import field_types
from lmsconf.kinds.custom_field.values import FLAGS, TYPES, FieldRow
from lmsconf.kinds.manual_group.values import LISTS, GroupRow
from lmsconf.kinds.shared.names import (
    CONTENT,
    CONTENT_TARGET,
    CUSTOM_FIELD,
    EVERYONE,
    GROUP,
    SMART_GROUP,
    USER,
    choice_scope,
)
from lmsconf.kinds.shared.times import shortest_time
from lmsconf.kinds.smart_group.conditions import in_names
from lmsconf.kinds.smart_group.values import SmartRow
from lmsconf.kinds.user.values import AnswerRow, PersonRow
from lmsconf.manifest.edit.yaml_text import is_name
from lmsconf.model.address import Address
from lmsconf.model.forms import plain
from lmsconf.model.moments import live_time
from lmsconf.model.names import normal
from lmsconf.model.snapshot import HasName
from lmsconf.model.values import Json


@dataclass(frozen=True, slots=True, kw_only=True)
class Saying:
    """The manifest entry of one live row. notes: what it leaves out, and why."""

    address: Address
    id: str
    body: Mapping[str, Json]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsaid:
    """A live row without a manifest entry, and why."""

    address: Address
    id: str
    why: str


Said = Iterator["Saying | Unsaid"]


def custom_fields(live: LiveNames) -> Said:
    """Yield every custom field, with its choices in live order."""
    for row in live.snapshot.rows(FieldRow):
        body: dict[str, Json] = {"type": row.type} if row.type in TYPES else {}
        notes = [] if body else [f"its type {row.type} is none that a manifest knows"]
        if row.choices:
            names = [normal(choice.name) for choice in row.choices]
            sayable = [name for name in names if names.count(name) == 1 and is_name(name)]
            if len(sayable) == len(names):
                body["choices"] = cast(Json, sayable)
            else:
                notes.append(f"choices that share a name, or have none: {len(names) - len(sayable)}")
                body |= {"choices": {"include": cast(Json, sayable)}} if sayable else {}
        if row.description:
            body["description"] = row.description
        body.update({key: True for key in FLAGS if getattr(row, key)})
        yield _named(live, CUSTOM_FIELD, row, body, notes)


def groups(live: LiveNames) -> Said:
    """Yield every manual group with its members, and managers if there are any."""
    for row in live.snapshot.rows(GroupRow):
        body, notes = dict[str, Json](), list[str]()
        for key in LISTS:
            _people(live, getattr(row, key), key, body, notes)
        yield _named(live, GROUP, row, body, notes)


def smart_groups(live: LiveNames) -> Said:
    """Yield every smart group with its conditions, and managers if there are any."""
    for row in live.snapshot.rows(SmartRow):
        body, notes = dict[str, Json](), list[str]()
        if row.conditions is not None:
            body["conditions"] = [one.plain() for one in in_names(live.planning, row.conditions)]
        _people(live, row.managers, "managers", body, notes)
        yield _named(live, SMART_GROUP, row, body, notes)


def content_targets(live: LiveNames) -> Said:
    """Yield every assignment, each with one audience."""
    contents = {row.id: row for row in live.snapshot.rows(ContentRow)}
    for row in live.snapshot.rows(TargetRow):
        content, name = _content(live, contents.get(row.content))
        audience = audience_of(live.planning, row)
        address = target_address(name, audience or Address("audience", row.target))
        why = "its content is not in the catalog" if content is None else _unnameable(live, row, audience)
        if audience is None or why is not None:
            yield Unsaid(address=address, id=row.id, why=str(why))
        else:
            body: dict[str, Json] = {"content": content}
            body |= {"mandatory": True} if row.mandatory else {}
            body |= {} if row.start is None else {"visible_from": _time(row.start, live, end_of_day=False)}
            body |= {} if row.finish is None else {"visible_until": _time(row.finish, live, end_of_day=True)}
            email = live.email(row.target, archived=True)
            to: Json = {"user": email} if audience.kind == USER else audience_form(audience)
            yield Saying(address=address, id=row.id, body={**body, "assign_to": [to]})


def users(live: LiveNames) -> Said:
    """Yield every person, with the values that were read.

    Values that only the response for a single user contains are usually missing; see `export.export`.
    """
    for row in live.snapshot.rows(PersonRow):
        address = Address.of(USER, row.name)
        named = live.directory.emails.get(row.id)
        mail = None if named is None else spelt(row.email)
        if mail is None:
            yield Unsaid(address=address, id=row.id, why="no e-mail that names one person only")
            continue
        body: dict[str, Json] = {"email": mail}
        names = ((key, getattr(row, key)) for key in ("first_name", "last_name", "language"))
        body |= {key: normal(text) for key, text in names if text}
        body |= {key: True for key in ("admin", "manager") if getattr(row, key)}
        body |= {"applications": cast(Json, sorted(row.applications))} if row.applications is not None else {}
        body |= {"metadata": cast(Json, dict(row.metadata))} if row.metadata else {}
        body |= {"answers": answers} if (answers := dict(_answers(live, row.answers or ()))) else {}
        body |= {"archived": True} if row.archived else {}
        if row.archive_date is not None:
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=row.archive_date // 1000)
            body["custom_archive_date"] = shortest_time(moment, live.timezone, end_of_day=False)
        yield Saying(address=address, id=row.id, body=body)


SECTIONS: Final[Mapping[str, Callable[[LiveNames], Said]]] = {
    CUSTOM_FIELD: custom_fields,
    GROUP: groups,
    SMART_GROUP: smart_groups,
    CONTENT_TARGET: content_targets,
    USER: users,
}
"""Kind → function that yields its entries, in the order of sections in manifests."""


def _named(live: LiveNames, kind: str, row: HasName, rest: Mapping[str, Json], notes: list[str]) -> Saying | Unsaid:
    """Return the entry of a named row, with its id where the name is ambiguous."""
    name = normal(row.name)
    address = Address.of(kind, name)
    if not is_name(name):
        why = "it has no name" if not name else "its name holds characters that have no place in a manifest"
        return Unsaid(address=address, id=row.id, why=why)
    if not live.is_first(kind, row):
        return Unsaid(address=address, id=row.id, why="another one has its name, and is declared under it")
    pin: dict[str, Json] = {"id": row.id} if live.needs_id(kind, row) else {}
    return Saying(address=address, id=row.id, body={"name": name, **pin, **rest}, notes=tuple(notes))


def _people(live: LiveNames, ids: frozenset[str] | None, key: str, body: dict[str, Json], notes: list[str]) -> None:
    """Add a list of people to an entry. An empty list is written for members only: most groups have no manager."""
    if ids is None:
        return
    found = live.people(ids, key.removesuffix("s"))
    notes.extend(found.notes)
    if found.said is not None and (found.said or key == "members"):
        body[key] = found.said


def _content(live: LiveNames, row: ContentRow | None) -> tuple[Json, str]:
    """Return how a manifest refers to content, and its name.

    The id is added if two contents share the name, or if the name cannot be written.
    """
    if row is None:
        return None, "content"
    name = normal(row.name)
    if not is_name(name):
        # The id identifies the content, whatever name is given with it.
        return {"name": f"content {row.id}", "id": row.id}, f"content {row.id}"
    return ({"name": name, "id": row.id} if live.is_twice(CONTENT, row) else name), name


def _unnameable(live: LiveNames, row: TargetRow, audience: Address | None) -> str | None:
    """Return the reason why no manifest can refer to the audience; None if one can."""
    if audience is None:
        return "its audience is unknown"
    if audience == EVERYONE:
        return None
    if audience.kind == USER:
        if live.email(row.target, archived=True) is None:
            return "the person has no e-mail that a manifest can hold"
        # Owned assignments are deleted unless declared. Otherwise leave it out: each plan would report archived people.
        archived = live.directory.emails[row.target] in live.directory.archived and not live.owns_assignments
        return "the person is archived" if archived else None
    found = next(one for one in live.rows(audience.kind) if one.id == row.target)
    return None if live.is_first(audience.kind, found) else "another audience has the same name"


def _time(text: str, live: LiveNames, *, end_of_day: bool) -> str:
    """Format a live time for a manifest; an unreadable one is returned unchanged, and reported by the plan."""
    try:
        return shortest_time(live_time(text), live.timezone, end_of_day=end_of_day)
    except ValueError:
        return text


def _answers(live: LiveNames, answers: tuple[AnswerRow, ...]) -> Iterator[tuple[str, Json]]:
    """Yield a person's answers by field, in the form of the field's type."""
    types = field_types(live.planning)
    for one in answers:
        scope = choice_scope(one.field)
        names = plain(frozenset(live.planning.book.name(scope, id) or id for id in one.picked))
        if types.get(one.field) == "TEXT":
            if one.said:
                yield one.field, one.said
        elif isinstance(names, list) and names:
            yield one.field, names if types.get(one.field) == "MULTI_SELECT" else names[0]
