"""Fill an empty workspace from a seed: names become ids, and rows are inserted in bulk.

Custom fields, conditions and assignments are created as requests are, so that the API's rules hold for them.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeVar, cast

from msgspec import Struct, to_builtins
from msgspec.json import encode

from lmsconf.sandbox.handlers import custom_fields
from lmsconf.sandbox.handlers.content import EVERYONE, USER, assign_content
from lmsconf.sandbox.handlers.groups import write_conditions
from lmsconf.sandbox.handlers.users import validate_language
from lmsconf.sandbox.request_context import (
    APPLICATIONS,
    GROUP,
    SMART_GROUP,
    RequestContext,
    default_applications,
    encode_applications,
)
from lmsconf.sandbox.seed_format import (
    SeedCertificate,
    SeedCondition,
    SeedContent,
    SeedContentTarget,
    SeedCustomField,
    SeedEntryWithId,
    SeedEvent,
    SeedGroup,
    SeedOrderDetails,
    SeedParticipation,
    SeedPerson,
    SeedSmartGroup,
    with_empty,
)
from lmsconf.sandbox.seed_rows import (
    ANSWERS,
    CONTENTS,
    GROUPS,
    MANAGERS,
    MEMBERS,
    PEOPLE,
    EntryLoader,
    Instant,
    InvalidSeedValue,
    read_entry,
    reserve_id,
)
from lmsconf.sandbox.store import Json

S = TypeVar("S", bound=Struct)
T = TypeVar("T", bound=SeedEntryWithId)
_ORDERS: Final = "INSERT INTO orders (person, details, created_at, updated_at) VALUES (?, ?, ?, ?)"
_PARTICIPATIONS: Final = (
    "INSERT INTO participations (id, person, content, state, percentage, revision, enrolled_at, updated_at) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_EVENTS: Final = (
    "INSERT INTO events (id, participation, status, revision, at, mandatory, manually) VALUES (?, ?, ?, ?, ?, ?, ?)"
)
_CERTIFICATES: Final = (
    "INSERT INTO certificates (id, person, content, issued, expires_at, recertification, notify, attachments) "
    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)


class SeedLoader(EntryLoader):
    """A workspace that is being filled from a seed, whose entries name each other."""

    def __init__(self, context: RequestContext, sections: Mapping[str, Sequence[object]]) -> None:
        super().__init__(context)
        self._sections = sections
        self._people: dict[str, str] = {}
        self._fields: dict[str, tuple[str, dict[str, str]]] = {}
        self._groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self._contents: defaultdict[str, list[str]] = defaultdict(list)
        self._pairs: set[tuple[str, str, str]] = set()

    def load_sections(self) -> None:
        """Create what the sections list, each after those that its entries name."""
        self.load("custom_fields", self._read("custom_fields", SeedCustomField), self._load_field)
        self.load("people", self._numbered("people", SeedPerson, "u"), self._load_person)
        self.load("groups", self._numbered("groups", SeedGroup, "g"), self._load_group)
        self.load("smart_groups", self._numbered("smart_groups", SeedSmartGroup, "sg"), self._load_smart_group)
        contents = self._numbered("content", SeedContent, "c")
        for id, content in contents.values():  # it may name a program that is listed after it
            self._contents[content.name].append(id)
        self.load("content", contents, self._load_content)
        self.load("content_targets", self._read("content_targets", SeedContentTarget), self._load_target)
        self.load("participations", self._numbered("participations", SeedParticipation, "p"), self._load_participation)
        self.load("certificates", self._numbered("certificates", SeedCertificate, "cert"), self._load_certificate)

    def _read(self, section: str, kind: type[S]) -> dict[int, S]:
        """The entries of a section by their place, without those that cannot be read."""
        read: dict[int, S] = {}
        for place, entry in enumerate(self._sections.get(section) or ()):
            with self.collect_problems(section, place):
                read[place] = read_entry(with_empty(entry), kind)
        return read

    def _numbered(self, section: str, kind: type[T], prefix: str) -> dict[int, tuple[str, T]]:
        """The entries of a section by their place, each with its own id or a new one."""
        entries = self._read(section, kind)
        taken, own = set(self.repository.existing_ids(prefix)), dict[int, str]()
        for place, entry in entries.items():
            with self.collect_problems(section, place):
                if entry.id is not None:
                    own[place] = reserve_id(entry.id, taken)
        made = iter(self.repository.new_ids(prefix, len(entries) - len(own), frozenset(taken)))
        return {place: (own.get(place) or next(made), entry) for place, entry in entries.items()}

    def _load_field(self, field: SeedCustomField) -> None:
        body: dict[str, Json] = {
            "name": field.name,
            "type": field.type,
            "description": field.description,
            "isHidden": field.hidden,
            "isLocked": field.locked,
            "isOptional": field.optional,
            **({} if field.choices is None else {"choices": [{"name": name} for name in field.choices]}),
        }
        made = custom_fields.create(self.context.with_body(body))
        choices = cast("list[Mapping[str, str]]", made.get("choices", []))
        self._fields[field.name] = str(made["id"]), {choice["name"]: choice["choiceId"] for choice in choices}

    def _load_person(self, numbered: tuple[str, SeedPerson]) -> None:
        id, person = numbered
        if self._people.setdefault(person.email.casefold(), id) != id:
            raise InvalidSeedValue(f"{person.email} is a duplicate")
        if person.custom_archive_date is not None and (person.admin or person.manager):
            raise InvalidSeedValue("an admin or manager cannot have a custom archive date")
        row = (
            *(id, person.email, person.first_name, person.last_name, person.admin, person.manager),
            *(self.now if person.archived else None, self.now, person.custom_archive_date),
            *(validate_language(person.language), encode(person.metadata).decode(), _applications(person)),
        )
        self.rows[PEOPLE].append(row)
        self.rows[ANSWERS].extend(self._answers(id, person))
        if person.order_details is not None:
            self.rows[_ORDERS].append((id, _order_details(person.order_details), self.now, self.now))

    def _answers(self, id: str, person: SeedPerson) -> Iterator[tuple[str, str, str, str | None]]:
        """The rows of a person's answers."""
        for name, answer in person.answers.items():
            field, choices = self._field(name)
            if isinstance(answer, str) and not choices:
                yield id, field, "", answer
            else:
                for choice in (answer,) if isinstance(answer, str) else answer or ():
                    yield id, field, _choice(name, choices, choice), None

    def _load_group(self, numbered: tuple[str, SeedGroup]) -> None:
        id, group = numbered
        self._groups[GROUP, group.name].append(id)
        self.rows[GROUPS].append((id, GROUP, group.name))
        self.rows[MEMBERS].extend((id, self._person(email)) for email in group.members)
        self.rows[MANAGERS].extend((id, self._person(email)) for email in group.managers)

    def _load_smart_group(self, numbered: tuple[str, SeedSmartGroup]) -> None:
        id, group = numbered
        self._groups[SMART_GROUP, group.name].append(id)
        self.rows[GROUPS].append((id, SMART_GROUP, group.name))
        self.rows[MANAGERS].extend((id, self._person(email)) for email in group.managers)
        write_conditions(self.repository, id, [self._condition(condition) for condition in group.conditions])

    def _condition(self, condition: SeedCondition) -> Mapping[str, Json]:
        """A condition as the API takes it."""
        field, choices = self._field(condition.field)
        return {
            "customFieldId": field,
            "choiceIds": [_choice(condition.field, choices, name) for name in condition.choices],
            "systemCondition": condition.system_condition,
        }

    def _load_content(self, numbered: tuple[str, SeedContent]) -> None:
        id, content = numbered
        details = {
            "partOfPrograms": [self._content(name) for name in content.programs],
            "categories": content.categories,
            "metadata": content.metadata,
            "link": content.link,
            "backgroundImageUrl": content.image,
            "occasions": [
                {"occasionId": f"{id}-{number}", "startTime": int(one.starts), "attendanceCount": one.attending}
                for number, one in enumerate(content.occasions, 1)
            ],
        }
        stored = encode({key: detail for key, detail in details.items() if detail}).decode()
        updated = self._time(content.updated)
        row = (id, content.type, content.name, content.description, content.price, updated, stored)
        self.rows[CONTENTS].append(row)

    def _load_target(self, target: SeedContentTarget) -> None:
        assignment: dict[str, Json] = {
            "contentId": self._content(target.content),
            "mandatory": target.mandatory,
            "startTime": target.visible_from,
            "finishTime": target.visible_until,
        }
        for named in target.assign_to:
            kind, audience = self._audience(named)
            context = self.context.with_body({**assignment, "kind": kind, "audience": audience})
            assign_content(context, replaces=False)

    def _audience(self, named: object) -> tuple[str, str]:
        """Kind and id of an audience."""
        if named in ("everyone", {"everyone": "true"}, {"everyone": True}):
            return EVERYONE, self.context.behaviour("content-targets.everyone")
        if isinstance(named, dict) and len(named) == 1:
            [(key, name)] = named.items()
            if key == "user":
                return USER, self._person(str(name))
            if kind := {"group": GROUP, "smart_group": SMART_GROUP}.get(key):
                return kind, _only(self._groups[kind, str(name)], key, str(name))
        raise InvalidSeedValue(f"{named!r} is none of everyone, {{group: …}}, {{smart_group: …}}, {{user: …}}")

    def _load_participation(self, numbered: tuple[str, SeedParticipation]) -> None:
        id, entry = numbered
        person, content = self._pair("participations", entry)
        updated = self._time(entry.updated)
        enrolled = updated if entry.enrolled is None else entry.enrolled
        percentage = 100 * (entry.state == "APPROVED") if entry.percentage is None else entry.percentage
        row = (id, person, content, entry.state, percentage, entry.revision or 1, enrolled, updated)
        self.rows[_PARTICIPATIONS].append(row)
        events = (SeedEvent(status=entry.state),) if entry.events is None else entry.events
        for event_id, event in zip(self.repository.new_ids("e", len(events)), events, strict=True):
            at = updated if event.at is None else event.at
            values = (event.status, event.revision or 1, at, event.mandatory, event.manually)
            self.rows[_EVENTS].append((event_id, id, *values))

    def _load_certificate(self, numbered: tuple[str, SeedCertificate]) -> None:
        id, entry = numbered
        person, content = self._pair("certificates", entry)
        issued = self._time(entry.issued)
        if entry.expires is not None and entry.expires <= issued:
            raise InvalidSeedValue("expires is not after issued")
        renewal = None if entry.recertification is None else self._content(entry.recertification)
        attachments = [
            {"url": one.url, "name": one.name, "createdAt": int(issued if one.created is None else one.created)}
            for one in entry.attachments
        ]
        row = (id, person, content, issued, entry.expires, renewal, entry.notify, encode(attachments).decode())
        self.rows[_CERTIFICATES].append(row)

    def _pair(self, section: str, entry: SeedParticipation | SeedCertificate) -> tuple[str, str]:
        """The ids of person and content, a pair that a section has only once."""
        pair = self._person(entry.user), self._content(entry.content)
        if (section, *pair) in self._pairs:
            raise InvalidSeedValue(f"{entry.user} with {entry.content} is a duplicate")
        self._pairs.add((section, *pair))
        return pair

    def _time(self, instant: Instant | None) -> int:
        """An instant, by default now."""
        return self.now if instant is None else instant

    def _person(self, email: str) -> str:
        if (id := self._people.get(email.casefold())) is None:
            raise InvalidSeedValue(f"there is no person with the e-mail {email}")
        return id

    def _content(self, name: str) -> str:
        return _only(self._contents[name], "content", name)

    def _field(self, name: str) -> tuple[str, dict[str, str]]:
        """A field's id, and the ids of its choices by name."""
        if name not in self._fields:
            raise InvalidSeedValue(f"there is no custom field {name!r}")
        return self._fields[name]


def _choice(field: str, choices: Mapping[str, str], name: str) -> str:
    """The id of one of the choices of a field."""
    if name not in choices:
        raise InvalidSeedValue(f"custom field {field!r} has no choice {name!r}")
    return choices[name]


def _only(ids: list[str], noun: str, name: str) -> str:
    """The one id of that name."""
    if len(ids) != 1:
        how_many = f"there are {len(ids)} of" if ids else "there is no"
        raise InvalidSeedValue(f"{how_many} {noun} {name!r}")
    return ids[0]


def _applications(person: SeedPerson) -> str:
    """The applications of a person as stored. Raises InvalidSeedValue for an unknown one."""
    if person.applications is None:
        return encode_applications(default_applications(admin=person.admin, manager=person.manager))
    if unknown := sorted(set(person.applications) - set(APPLICATIONS)):
        raise InvalidSeedValue(f"application {unknown[0]!r} is none of {', '.join(APPLICATIONS)}")
    return encode_applications(person.applications)


def _order_details(details: SeedOrderDetails) -> str:
    """The order details as stored, with the API's names: `company_name` → `companyName`."""
    values = to_builtins(details).items()
    return encode({re.sub("_(.)", lambda found: found[1].upper(), key): value for key, value in values}).decode()
