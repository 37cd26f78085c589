"""Load the entries of a seed into an empty workspace: resolve names to ids, and insert rows in bulk.

Entries that are few are created by the API handlers, so that seed and API follow the same rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from lmsconf.sandbox.handlers import custom_fields
from lmsconf.sandbox.handlers.analytics import APPROVED, STATES
from lmsconf.sandbox.handlers.content import EVERYONE, USER, assign_content
from lmsconf.sandbox.handlers.groups import write_conditions
from lmsconf.sandbox.handlers.users import store_details
from lmsconf.sandbox.request_context import GROUP, SMART_GROUP, Json, Refusal, Request, RequestContext
from lmsconf.sandbox.seed_rows import (
    INSERT_CONTENT,
    INSERT_PERSON,
    Entry,
    InvalidSeedValue,
    content_row,
    person_row,
    read_flag,
    read_instant,
    read_list,
    read_mapping,
    read_mappings,
    read_order_details,
    read_text,
    read_texts,
    read_whole_number,
    refuse_unknown,
    reserve_id,
)
from lmsconf.sandbox.store import Repository, Value

_PREFIXES: Final = {
    "people": "u",
    "groups": "g",
    "smart_groups": "sg",
    "content": "c",
    "participations": "p",
    "certificates": "cert",
}
_FLAGS: Final = {"hidden": "isHidden", "locked": "isLocked", "optional": "isOptional"}


class SeedLoader:
    """A workspace being filled, section by section. Errors are collected in `problems`; loading continues."""

    def __init__(self, context: RequestContext) -> None:
        self.problems: list[str] = []
        self._context = context
        self._repository = context.repository
        self._people: dict[str, str] = {}
        self._groups: dict[tuple[str, str], list[str]] = {}
        self._contents: dict[str, list[str]] = {}
        self._fields: dict[str, tuple[str, dict[str, str]]] = {}

    def load_custom_fields(self, entries: Sequence[Entry]) -> None:
        """Create the fields, and record the ids of their choices by name."""
        for place, entry in enumerate(entries):
            with self.collect_problems("custom_fields", place):
                body: dict[str, Json] = {"name": read_text(entry, "name"), "type": read_text(entry, "type")}
                if body["type"] not in ("CHOICE", "MULTI_SELECT", "TEXT"):
                    raise InvalidSeedValue(f"type {body['type']!r} is none of CHOICE, MULTI_SELECT, TEXT")
                if "choices" in entry:
                    body["choices"] = [{"name": name} for name in read_texts(entry, "choices")]
                body["description"] = read_text(entry, "description", "")
                body |= {wire_name: read_flag(entry, key) for key, wire_name in _FLAGS.items() if key in entry}
                made = custom_fields.create(self._context, Request({}, {}, body))
                self._fields[str(body["name"])] = (str(made["id"]), _choice_ids(made))

    def load_people(self, entries: Sequence[Entry]) -> None:
        """Create the people with their answers."""
        now = self._repository.now()
        rows: list[Sequence[Value]] = []
        answers: list[Sequence[Value]] = []
        for place, (id, entry) in enumerate(self.pair_with_ids("people", entries)):
            with self.collect_problems("people", place):
                email = read_text(entry, "email")
                if self._people.setdefault(email.casefold(), id) != id:
                    raise InvalidSeedValue(f"{email} is a duplicate")
                rows.append(person_row(id, email, entry, now))
                answers.extend(self._answers(id, entry))
                if "order_details" in entry:
                    store_details(self._repository, id, read_order_details(entry))
        self._repository.execute_many(INSERT_PERSON, rows)
        self._repository.execute_many("INSERT INTO answers VALUES (?, ?, ?, ?)", answers)

    def load_groups(self, entries: Sequence[Entry]) -> None:
        """Create the manual groups with members and managers."""
        made = self._make_groups("groups", GROUP, entries)
        for list_name in ("members", "managers"):
            self._enrol("groups", list_name, made)

    def load_smart_groups(self, entries: Sequence[Entry]) -> None:
        """Create the smart groups with conditions and managers."""
        made = self._make_groups("smart_groups", SMART_GROUP, entries)
        for place, (id, entry) in enumerate(made):
            with self.collect_problems("smart_groups", place):
                conditions = [self._condition(one) for one in read_mappings(entry, "conditions")]
                write_conditions(self._context, id, conditions)
        self._enrol("smart_groups", "managers", made)

    def load_contents(self, entries: Sequence[Entry]) -> None:
        """Create the catalog. A content may declare its programs, listed before or after itself."""
        now, made = self._repository.now(), self.pair_with_ids("content", entries)
        for id, entry in made:
            self._contents.setdefault(str(entry.get("name")), []).append(id)
        rows: list[Sequence[Value]] = []
        for place, (id, entry) in enumerate(made):
            with self.collect_problems("content", place):
                programs = [self.find_content_id(name) for name in read_texts(entry, "programs")]
                rows.append(content_row(id, entry, programs, now))
        self._repository.execute_many(INSERT_CONTENT, rows)

    def load_content_targets(self, entries: Sequence[Entry]) -> None:
        """Assign content."""
        for place, entry in enumerate(entries):
            with self.collect_problems("content_targets", place):
                content = self.find_content_id(read_text(entry, "content"))
                value = (
                    read_flag(entry, "mandatory"),
                    read_instant(entry, "visible_from"),
                    read_instant(entry, "visible_until"),
                )
                for audience in read_list(entry, "assign_to"):
                    assign_content(self._repository, content, self._audience(audience), value, replace=False)

    @contextmanager
    def collect_problems(self, section: str, place: int) -> Iterator[None]:
        """Convert an error inside the context to a problem of that entry."""
        try:
            yield
        except (InvalidSeedValue, Refusal) as wrong:
            self.problems.append(f"{section}[{place}]: {wrong}")

    def pair_with_ids(self, section: str, entries: Sequence[Entry]) -> list[tuple[str, Entry]]:
        """Pair each entry with its id, declared or new."""
        prefix = _PREFIXES[section]
        taken = set(self._repository.existing_ids(prefix))
        given: list[str | None] = []
        for place, entry in enumerate(entries):
            given.append(None)
            with self.collect_problems(section, place):
                if "id" in entry:
                    given[-1] = reserve_id(read_text(entry, "id"), taken)
        made = iter(self._repository.new_ids(prefix, given.count(None), frozenset(taken)))
        return [(id or next(made), entry) for id, entry in zip(given, entries, strict=True)]

    def _make_groups(self, section: str, kind: str, entries: Sequence[Entry]) -> list[tuple[str, Entry]]:
        made = self.pair_with_ids(section, entries)
        rows: list[Sequence[Value]] = []
        for place, (id, entry) in enumerate(made):
            with self.collect_problems(section, place):
                name = read_text(entry, "name")
                self._groups.setdefault((kind, name), []).append(id)
                rows.append((id, kind, name))
        self._repository.execute_many("INSERT INTO groups (id, kind, name) VALUES (?, ?, ?)", rows)
        return made

    def _enrol(self, section: str, list_name: str, groups: list[tuple[str, Entry]]) -> None:
        """Add people to one list of many groups."""
        rows: list[Sequence[Value]] = []
        for place, (id, entry) in enumerate(groups):
            with self.collect_problems(section, place):
                rows.extend([(id, self.find_person_id(email)) for email in read_texts(entry, list_name)])
        self._repository.execute_many(f"INSERT OR IGNORE INTO {list_name} VALUES (?, ?)", rows)  # noqa: S608  the names are ours

    def find_content_id(self, name: str) -> str:
        """The id of the one content of that name."""
        return _only(self._contents.get(name, []), "content", name)

    def find_person_id(self, email: str) -> str:
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

    def _answers(self, person: str, entry: Entry) -> list[Sequence[Value]]:
        """Rows for a person's answers: a text for a TEXT field, one choice or several for any other."""
        rows: list[Sequence[Value]] = []
        for name, answer in read_mapping(entry, "answers").items():
            id, choices = self._field(name)
            if not choices and isinstance(answer, str):
                rows.append((person, id, "", answer))
            else:
                for choice in dict.fromkeys([answer] if isinstance(answer, str) else read_texts({name: answer}, name)):
                    rows.append((person, id, self._choice(name, choice), None))
        return rows

    def _condition(self, entry: Entry) -> dict[str, Json]:
        """A condition as the API takes it."""
        field = read_text(entry, "field")
        condition: dict[str, Json] = {"customFieldId": self._field(field)[0]}
        if "choices" in entry:
            condition["choiceIds"] = [self._choice(field, name) for name in read_texts(entry, "choices")]
        if "system_condition" in entry:
            condition["systemCondition"] = read_text(entry, "system_condition")
        return condition

    def _audience(self, target: object) -> tuple[str, str]:
        """Kind and id of an assignment's target."""
        if target in ("everyone", {"everyone": "true"}, {"everyone": True}):
            return EVERYONE, self._context.behaviour("content-targets.everyone")
        if isinstance(target, dict) and len(target) == 1:
            [(key, name)] = target.items()
            if key == "user":
                return USER, self.find_person_id(str(name))
            if kind := {"group": GROUP, "smart_group": SMART_GROUP}.get(key):
                return kind, _only(self._groups.get((kind, str(name)), []), key, str(name))
        raise InvalidSeedValue(f"{target!r} is none of everyone, {{group: …}}, {{smart_group: …}}, {{user: …}}")


def _choice_ids(field: Mapping[str, Json]) -> dict[str, str]:
    choices = field.get("choices", [])
    return {one["name"]: one["choiceId"] for one in choices}  # type: ignore[union-attr,index,call-overload,misc]  # as checked


def _only(ids: list[str], kind: str, name: str) -> str:
    if len(ids) != 1:
        raise InvalidSeedValue(
            f"there is no {kind} {name!r}" if not ids else f"there are {len(ids)} of {kind} {name!r}"
        )
    return ids[0]


_EVENT_KEYS: Final = ("at", "mandatory", "manually", "revision", "status")
_ATTACHMENT_KEYS: Final = ("created", "name", "url")
_Rows = list[Sequence[Value]]


def load_participations(loader: SeedLoader, repository: Repository, entries: Sequence[Entry]) -> None:
    """Store participations. Each has its declared events, or one event for its state."""
    rows: _Rows = []
    events: _Rows = []
    taken: set[tuple[str, str]] = set()
    for place, (id, entry) in enumerate(loader.pair_with_ids("participations", entries)):
        with loader.collect_problems("participations", place):
            pair = _pair(loader, entry, taken)
            updated = _or_now(repository, entry, "updated")
            enrolled = updated if "enrolled" not in entry else _or_now(repository, entry, "enrolled")
            state = _state(entry, "state")
            percentage = read_whole_number(entry, "percentage") if "percentage" in entry else 100 * (state == APPROVED)
            rows.append((id, *pair, state, percentage, read_whole_number(entry, "revision") or 1, enrolled, updated))
            events.extend(_events(id, entry, state, updated))
    repository.execute_many(
        "INSERT INTO participations (id, person, content, state, percentage, revision, enrolled_at, updated_at) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )
    ids = repository.new_ids("e", len(events))
    repository.execute_many(
        "INSERT INTO events (id, participation, status, revision, at, mandatory, manually) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(id, *event) for id, event in zip(ids, events, strict=True)],
    )


def load_certificates(loader: SeedLoader, repository: Repository, entries: Sequence[Entry]) -> None:
    """Store certificates."""
    rows: _Rows = []
    taken: set[tuple[str, str]] = set()
    for place, (id, entry) in enumerate(loader.pair_with_ids("certificates", entries)):
        with loader.collect_problems("certificates", place):
            pair = _pair(loader, entry, taken)
            issued, expires = _or_now(repository, entry, "issued"), read_instant(entry, "expires")
            if expires is not None and expires <= issued:
                raise InvalidSeedValue("expires is not after issued")
            following = (
                loader.find_content_id(read_text(entry, "recertification")) if "recertification" in entry else None
            )
            attachments = [_attachment(one, issued) for one in read_mappings(entry, "attachments")]
            rows.append((id, *pair, issued, expires, following, read_flag(entry, "notify"), json.dumps(attachments)))
    repository.execute_many(
        "INSERT INTO certificates (id, person, content, issued, expires_at, recertification, notify, attachments) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        rows,
    )


def _pair(loader: SeedLoader, entry: Entry, taken: set[tuple[str, str]]) -> tuple[str, str]:
    """The ids of person and content, a pair that may be declared only once."""
    pair = loader.find_person_id(read_text(entry, "user")), loader.find_content_id(read_text(entry, "content"))
    if pair in taken:
        raise InvalidSeedValue(f"{entry['user']} with {entry['content']} is a duplicate")
    taken.add(pair)
    return pair


def _events(participation: str, entry: Entry, state: str, updated: int) -> Iterator[Sequence[Value]]:
    """One row for each event of a participation."""
    events: list[Entry] = read_mappings(entry, "events") if "events" in entry else [{"status": state}]
    for event in events:
        refuse_unknown("events", event, _EVENT_KEYS)
        at = read_instant(event, "at")
        yield (
            *(
                participation,
                _state(event, "status"),
                read_whole_number(event, "revision") or 1,
                updated if at is None else at,
            ),
            *(read_flag(event, "mandatory"), read_flag(event, "manually")),
        )


def _attachment(entry: Entry, issued: int) -> Mapping[str, Json]:
    refuse_unknown("attachments", entry, _ATTACHMENT_KEYS)
    created = read_instant(entry, "created")
    return {
        "url": read_text(entry, "url"),
        "name": read_text(entry, "name", ""),
        "createdAt": issued if created is None else created,
    }


def _state(entry: Entry, key: str) -> str:
    state = read_text(entry, key)
    if state not in STATES:
        raise InvalidSeedValue(f"{key} {state!r} is none of {', '.join(STATES)}")
    return state


def _or_now(repository: Repository, entry: Entry, key: str) -> int:
    time = read_instant(entry, key)
    return repository.now() if time is None else time
