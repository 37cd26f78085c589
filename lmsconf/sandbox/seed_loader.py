"""Load the entries of a seed into an empty workspace: resolve names to ids, and insert rows in bulk.

Entries that are few are created by the API handlers, so that seed and API follow the same rules.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias, cast

from lmsconf.sandbox.handlers import custom_fields
from lmsconf.sandbox.handlers.analytics import STATES
from lmsconf.sandbox.handlers.content import EVERYONE, OCCASIONS, USER, assign_content
from lmsconf.sandbox.handlers.groups import WRITE_CONDITIONS
from lmsconf.sandbox.handlers.users import ADDRESS_KEYS, FIRST_LANGUAGE, KEYS, store_details, validate_language
from lmsconf.sandbox.request_context import (
    APPLICATIONS,
    GROUP,
    SMART_GROUP,
    RequestContext,
    default_applications,
    encode_applications,
)
from lmsconf.sandbox.seed_rows import (
    ANSWERS,
    CONTENTS,
    GROUPS,
    MANAGERS,
    MEMBERS,
    PEOPLE,
    Entry,
    EntryLoader,
    InvalidSeedValue,
    Rows,
    Table,
    read_flag,
    read_instant,
    read_list,
    read_mapping,
    read_mappings,
    read_text,
    read_texts,
    read_whole_number,
    refuse_unknown,
    reserve_id,
)
from lmsconf.sandbox.store import Json, Value

_PREFIXES: Final = {
    "people": "u",
    "groups": "g",
    "smart_groups": "sg",
    "content": "c",
    "participations": "p",
    "certificates": "cert",
}
_FLAGS: Final = {"hidden": "isHidden", "locked": "isLocked", "optional": "isOptional"}
_PARTICIPATIONS: Final = Table(
    "participations (id, person, content, state, percentage, revision, enrolled_at, updated_at)"
)
_CERTIFICATES: Final = Table(
    "certificates (id, person, content, issued, expires_at, recertification, notify, attachments)"
)
_EVENTS: Final = Table("events (id, participation, status, revision, at, mandatory, manually)")
_EVENT_KEYS: Final = ("at", "mandatory", "manually", "revision", "status")
_ATTACHMENT_KEYS: Final = ("created", "name", "url")
_LINKS: Final = {"link": "link", "backgroundImageUrl": "image"}
_SWITCHES: Final = ("companyPayment", "disablePayment")
_Numbered: TypeAlias = "tuple[str, Entry]"
"""An id, and the entry that has it."""


class SeedLoader(EntryLoader):
    """A workspace being filled from a seed, whose entries name each other."""

    def __init__(self, context: RequestContext) -> None:
        super().__init__(context)
        self._people: dict[str, str] = {}
        self._groups: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        self._contents: defaultdict[str, list[str]] = defaultdict(list)
        self._fields: dict[str, tuple[str, dict[str, str]]] = {}
        self._pairs: set[tuple[str, str, str]] = set()
        self._events: list[tuple[Value, ...]] = []

    def load_sections(self, sections: Mapping[str, Sequence[Entry]]) -> None:
        """Create what the sections list. A section follows those that it references."""
        self.load("custom_fields", sections["custom_fields"], self._custom_field)
        self.load("people", self._numbered(sections, "people"), self._person)
        self.load("groups", self._numbered(sections, "groups"), partial(self._group, GROUP))
        self.load("smart_groups", self._numbered(sections, "smart_groups"), partial(self._group, SMART_GROUP))
        contents = self._numbered(sections, "content")
        for id, entry in contents:  # a content may declare its programs, listed before or after itself
            self._contents[str(entry.get("name"))].append(id)
        self.load("content", contents, self._content)
        self.load("content_targets", sections["content_targets"], self._target)
        self.load("participations", self._numbered(sections, "participations"), self._participation)
        ids = self.repository.new_ids("e", len(self._events))
        self.load("events", zip(ids, self._events, strict=True), lambda pair: [(_EVENTS, (pair[0], *pair[1]))])
        self.load("certificates", self._numbered(sections, "certificates"), self._certificate)

    def _numbered(self, sections: Mapping[str, Sequence[Entry]], section: str) -> list[_Numbered]:
        """Pair each entry with its id, declared or new."""
        prefix = _PREFIXES[section]
        taken = set(self.repository.existing_ids(prefix))
        given: list[str | None] = []
        for place, entry in enumerate(sections[section]):
            given.append(None)
            with self.collect_problems(section, place):
                if "id" in entry:
                    given[-1] = reserve_id(read_text(entry, "id"), taken)
        made = iter(self.repository.new_ids(prefix, given.count(None), frozenset(taken)))
        return [(id or next(made), entry) for id, entry in zip(given, sections[section], strict=True)]

    def _custom_field(self, entry: Entry) -> Rows:
        """Create a field, and record the ids of its choices by name."""
        body: dict[str, Json] = {"name": read_text(entry, "name"), "type": read_text(entry, "type")}
        if body["type"] not in ("CHOICE", "MULTI_SELECT", "TEXT"):
            raise InvalidSeedValue(f"type {body['type']!r} is none of CHOICE, MULTI_SELECT, TEXT")
        if "choices" in entry:
            body["choices"] = [{"name": name} for name in read_texts(entry, "choices")]
        body["description"] = read_text(entry, "description", "")
        body |= {wire_name: read_flag(entry, key) for key, wire_name in _FLAGS.items() if key in entry}
        made = custom_fields.create(self.context.with_body(body))
        choices = cast("list[Mapping[str, str]]", made.get("choices", []))
        self._fields[str(body["name"])] = (str(made["id"]), {one["name"]: one["choiceId"] for one in choices})
        return ()

    def _person(self, numbered: _Numbered) -> Rows:
        """A person with their answers."""
        id, entry = numbered
        email, date = read_text(entry, "email"), read_instant(entry, "custom_archive_date", None)
        if self._people.setdefault(email.casefold(), id) != id:
            raise InvalidSeedValue(f"{email} is a duplicate")
        admin, manager, archived = read_flag(entry, "admin"), read_flag(entry, "manager"), read_flag(entry, "archived")
        if date is not None and (admin or manager):
            raise InvalidSeedValue("an admin or manager cannot have a custom archive date")
        row: tuple[Value, ...] = (
            *(id, email, read_text(entry, "first_name", ""), read_text(entry, "last_name", ""), admin, manager),
            *(self.now if archived else None, self.now, date),
            validate_language(read_text(entry, "language", FIRST_LANGUAGE)),
            json.dumps(_metadata(entry)),
            encode_applications(_applications(entry, default_applications(admin=admin, manager=manager))),
        )
        yield PEOPLE, row
        for name, answer in read_mapping(entry, "answers").items():
            field, choices = self._field(name)
            if not choices and isinstance(answer, str):
                yield ANSWERS, (id, field, "", answer)
            else:
                for choice in dict.fromkeys([answer] if isinstance(answer, str) else read_texts({name: answer}, name)):
                    yield ANSWERS, (id, field, self._choice(name, choice), None)
        if "order_details" in entry:
            store_details(self.repository, id, _order_details(entry))

    def _group(self, kind: str, numbered: _Numbered) -> Rows:
        """A group of either kind, with its conditions, members and managers."""
        id, entry = numbered
        name = read_text(entry, "name")
        self._groups[kind, name].append(id)
        yield GROUPS, (id, kind, name)
        if kind == SMART_GROUP:
            conditions = [self._condition(one) for one in read_mappings(entry, "conditions")]
            WRITE_CONDITIONS(self.context.with_body({"smartGroupId": id, "conditions": conditions}))
        for table, key in ((MEMBERS, "members"), (MANAGERS, "managers")):
            for person in dict.fromkeys(map(self._person_id, read_texts(entry, key))):
                yield table, (id, person)

    def _condition(self, entry: Entry) -> dict[str, Json]:
        """A condition as the API takes it."""
        field = read_text(entry, "field")
        condition: dict[str, Json] = {"customFieldId": self._field(field)[0]}
        if "choices" in entry:
            condition["choiceIds"] = [self._choice(field, name) for name in read_texts(entry, "choices")]
        if "system_condition" in entry:
            condition["systemCondition"] = read_text(entry, "system_condition")
        return condition

    def _content(self, numbered: _Numbered) -> Rows:
        id, entry = numbered
        details: dict[str, Json] = {
            "partOfPrograms": [self._content_id(name) for name in read_texts(entry, "programs")],
            "categories": read_texts(entry, "categories"),
            "metadata": _metadata(entry),
        }
        details |= {key: read_text(entry, name) for key, name in _LINKS.items() if name in entry}
        if "occasions" in entry:
            occasions = enumerate(read_mappings(entry, "occasions"), 1)
            details[OCCASIONS] = [_occasion(f"{id}-{number}", one) for number, one in occasions]
        row: tuple[Value, ...] = (
            *(id, read_text(entry, "type", "COURSE"), read_text(entry, "name"), read_text(entry, "description", "")),
            *(read_whole_number(entry, "price"), read_instant(entry, "updated", self.now), json.dumps(details)),
        )
        yield CONTENTS, row

    def _target(self, entry: Entry) -> Rows:
        """Assign content."""
        value: dict[str, Json] = {
            "contentId": self._content_id(read_text(entry, "content")),
            "mandatory": read_flag(entry, "mandatory"),
            "startTime": read_instant(entry, "visible_from", None),
            "finishTime": read_instant(entry, "visible_until", None),
        }
        for audience in read_list(entry, "assign_to"):
            kind, id = self._audience(audience)
            assign_content(self.context.with_body({**value, "kind": kind, "audience": id}), replaces=False)
        return ()

    def _audience(self, target: object) -> tuple[str, str]:
        """Kind and id of an assignment's target."""
        if target in ("everyone", {"everyone": "true"}, {"everyone": True}):
            return EVERYONE, self.context.behaviour("content-targets.everyone")
        if isinstance(target, dict) and len(target) == 1:
            [(key, name)] = target.items()
            if key == "user":
                return USER, self._person_id(str(name))
            if kind := {"group": GROUP, "smart_group": SMART_GROUP}.get(key):
                return kind, _only(self._groups[kind, str(name)], key, str(name))
        raise InvalidSeedValue(f"{target!r} is none of everyone, {{group: …}}, {{smart_group: …}}, {{user: …}}")

    def _participation(self, numbered: _Numbered) -> Rows:
        """A participation with its declared events, or one event for its state."""
        id, entry = numbered
        pair = self._pair("participations", entry)
        updated, state = read_instant(entry, "updated", self.now), _state(entry, "state")
        enrolled = read_instant(entry, "enrolled", updated)
        percentage = read_whole_number(entry, "percentage", 100 * (state == "APPROVED"))
        revision = read_whole_number(entry, "revision") or 1
        yield _PARTICIPATIONS, (id, *pair, state, percentage, revision, enrolled, updated)
        self._events.extend(_events(id, entry, state, updated))

    def _certificate(self, numbered: _Numbered) -> Rows:
        id, entry = numbered
        pair = self._pair("certificates", entry)
        issued, expires = read_instant(entry, "issued", self.now), read_instant(entry, "expires", None)
        if expires is not None and expires <= issued:
            raise InvalidSeedValue("expires is not after issued")
        following = self._content_id(read_text(entry, "recertification")) if "recertification" in entry else None
        attachments = json.dumps([_attachment(one, issued) for one in read_mappings(entry, "attachments")])
        yield _CERTIFICATES, (id, *pair, issued, expires, following, read_flag(entry, "notify"), attachments)

    def _pair(self, section: str, entry: Entry) -> tuple[str, str]:
        """The ids of person and content, a pair that a section may declare only once."""
        person, content = self._person_id(read_text(entry, "user")), self._content_id(read_text(entry, "content"))
        if (section, person, content) in self._pairs:
            raise InvalidSeedValue(f"{entry['user']} with {entry['content']} is a duplicate")
        self._pairs.add((section, person, content))
        return person, content

    def _content_id(self, name: str) -> str:
        """The id of the one content of that name."""
        return _only(self._contents[name], "content", name)

    def _person_id(self, email: str) -> str:
        """The id of the person with that e-mail."""
        try:
            return self._people[email.casefold()]
        except KeyError:
            raise InvalidSeedValue(f"there is no person with the e-mail {email}") from None

    def _field(self, name: str) -> tuple[str, dict[str, str]]:
        """A field's id, and the ids of its choices by name."""
        if name not in self._fields:
            raise InvalidSeedValue(f"there is no custom field {name!r}")
        return self._fields[name]

    def _choice(self, field: str, name: str) -> str:
        choices = self._field(field)[1]
        if name not in choices:
            raise InvalidSeedValue(f"custom field {field!r} has no choice {name!r}")
        return choices[name]


def _only(ids: list[str], kind: str, name: str) -> str:
    if len(ids) != 1:
        raise InvalidSeedValue(
            f"there is no {kind} {name!r}" if not ids else f"there are {len(ids)} of {kind} {name!r}"
        )
    return ids[0]


def _events(participation: str, entry: Entry, state: str, updated: int) -> Iterator[tuple[Value, ...]]:
    """One row for each event of a participation."""
    events: list[Entry] = read_mappings(entry, "events") if "events" in entry else [{"status": state}]
    for event in events:
        refuse_unknown("events", event, _EVENT_KEYS)
        yield (
            *(
                participation,
                _state(event, "status"),
                read_whole_number(event, "revision") or 1,
                read_instant(event, "at", updated),
            ),
            *(read_flag(event, "mandatory"), read_flag(event, "manually")),
        )


def _attachment(entry: Entry, issued: int) -> Mapping[str, Json]:
    refuse_unknown("attachments", entry, _ATTACHMENT_KEYS)
    created = read_instant(entry, "created", issued)
    return {"url": read_text(entry, "url"), "name": read_text(entry, "name", ""), "createdAt": created}


def _state(entry: Entry, key: str) -> str:
    state = read_text(entry, key)
    if state not in STATES:
        raise InvalidSeedValue(f"{key} {state!r} is none of {', '.join(STATES)}")
    return state


def _order_details(entry: Entry) -> dict[str, Json]:
    """The order details of a person, with the API's names. Raises InvalidSeedValue."""
    details = read_mapping(entry, "order_details")
    known = {_snake(key): key for key in (*KEYS, "disablePayment")}
    refuse_unknown("order_details", details, known)
    return {known[key]: _detail(details, key, known[key]) for key in details}


def _detail(details: Entry, key: str, name: str) -> Json:
    """One of the order details: a boolean, an address, or a text."""
    if name in _SWITCHES:
        return read_flag(details, key)
    if name != "address":
        return read_text(details, key)
    address = read_mapping(details, key)
    refuse_unknown("address", address, ADDRESS_KEYS)
    return {part: read_text(address, part) for part in address}


def _occasion(id: str, entry: Entry) -> Mapping[str, Json]:
    """One date of a meetup, with the number of attendees."""
    refuse_unknown("occasions", entry, ("starts", "attending"))
    starts = read_instant(entry, "starts", None)
    if starts is None:
        raise InvalidSeedValue("occasions: starts is missing")
    return {"occasionId": id, "startTime": starts, "attendanceCount": read_whole_number(entry, "attending")}


def _metadata(entry: Entry) -> dict[str, str]:
    metadata = read_mapping(entry, "metadata")
    return {key: read_text(metadata, key) for key in metadata}


def _applications(entry: Entry, first: Sequence[str]) -> Sequence[str]:
    """The applications of a person, by default the first ones. Raises InvalidSeedValue for an unknown one."""
    named = read_texts(entry, "applications") if "applications" in entry else first
    if unknown := sorted(set(named) - set(APPLICATIONS)):
        raise InvalidSeedValue(f"application {unknown[0]!r} is none of {', '.join(APPLICATIONS)}")
    return named


def _snake(name: str) -> str:
    """The seed's name of an API field: `companyName` → `company_name`."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
