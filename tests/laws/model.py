"""A workspace as plain dictionaries, written from the API's specification: what the sandbox is compared with.

Every change is a method. It raises Refused where the service says no, and gives what the service answers; None where an
answer has no body. Where the specification is silent it does what the sandbox says that it chose. A creation is handed
what the service answered, because only that knows the new id. What a request says by itself is looked at first, then
what its path names, then what its body names.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeVar

Said = dict[str, object]
Answers = dict[str, "str | list[str]"]
"""Field id → a text, or the ids of choices."""

GROUP: Final = "GROUP"
SMART_GROUP: Final = "SMART_GROUP"
USER: Final = "USER"
EVERYONE: Final = "EVERYONE"


@dataclass
class Person:
    """One account; `said` is what the API says of it alone. Instants are epoch milliseconds."""

    said: dict[str, Any]
    applications: set[str] = field(default_factory=lambda: {"learn"})
    answers: Answers = field(default_factory=dict)


@dataclass
class Field:
    """One custom field; `choices` are names by id, and `details` what else was said of it."""

    name: str
    type: str
    choices: dict[str, str]
    details: Said


@dataclass
class Condition:
    """One condition of a smart group."""

    field: str
    choices: list[str]
    system: str | None

    def met_by(self, answers: Answers) -> bool:
        """Whether somebody with these answers meets it: with one of its choices, or with any answer at all."""
        if not self.choices:
            return self.system is not None and self.field in answers
        return any(choice in answers.get(self.field, []) for choice in self.choices)


@dataclass
class Group:
    """A group of either kind: a manual one has members put in by hand, a smart one has conditions."""

    kind: str
    name: str
    managers: set[str]
    members: set[str] = field(default_factory=set)
    conditions: list[Condition] = field(default_factory=list)


Heard = Mapping[str, Any]
T = TypeVar("T")
MOST_FIELDS: Final = 10
_EMAIL: Final = re.compile(r"\S+@\S+\.\S+")
_SHAPED: Final = "users.update-custom-field-choice"


class Refused(Exception):
    """The service says no, with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


TargetKey = tuple[str, str, str]
"""Content, type of the audience, id of the audience."""


@dataclass
class Model:
    """The workspace. Dictionaries keep the order in which things were made, as listings do."""

    behaviour: Callable[[str], str]
    now: int
    contents: Mapping[str, str]
    people: dict[str, Person] = field(default_factory=dict)
    fields: dict[str, Field] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    targets: dict[TargetKey, dict[str, Any]] = field(default_factory=dict)
    """What is said of an assignment beside its content and its audience. Instants are epoch milliseconds."""
    given: set[str] = field(default_factory=set)
    """Every id that was ever given out: none is given twice."""

    # Accounts

    def create_person(self, heard: Heard, body: Mapping[str, str]) -> Said:
        """A new account; an e-mail that has one gets that one, unchanged."""
        _check_email(body["email"])
        if not body.get("language", "en").islower():
            raise Refused(400)
        for id in self._with_email(body["email"]):
            return {"userId": id, "newUser": False}
        id = self._fresh(heard, "userId")
        usual = {"firstName": "", "lastName": "", "language": "en", "admin": False, "manager": False, "metadata": {}}
        dates = {"createdAt": self.now, "archivedAt": None, "customArchiveDate": None}
        self.people[id] = Person({"userId": id, **usual, **dates, **body})
        return {"userId": id, "newUser": True}

    def delete_person(self, id: str) -> None:
        """The account goes with its answers, memberships and assignments."""
        self._person(id)
        del self.people[id]
        for group in self.groups.values():
            group.members.discard(id)
            group.managers.discard(id)
        self._end_targets(USER, id)

    def archive(self, id: str) -> None:
        """Archived as of now, unless it is already; an admin is not."""
        said = self._person(id).said
        if said["admin"]:
            raise Refused(400)
        if said["archivedAt"] is None:
            said["archivedAt"] = self.now

    def unarchive(self, id: str) -> None:
        """Active again, and an archive date that has come is over."""
        said = self._person(id).said
        said["archivedAt"] = None
        if said["customArchiveDate"] is not None and said["customArchiveDate"] <= self.now:
            said["customArchiveDate"] = None

    def set_archive_date(self, id: str, date: int | None) -> None:
        """Neither admins nor managers have one; null clears it."""
        said = self._person(id).said
        if date is not None and (said["admin"] or said["manager"]):
            raise Refused(400)
        said["customArchiveDate"] = date
        self.pass_time(0)

    def pass_time(self, milliseconds: int) -> None:
        """Time goes by, and whose archive date has come is archived as of that date."""
        self.now += milliseconds
        for said in (person.said for person in self.people.values()):
            date = said["customArchiveDate"]
            if said["archivedAt"] is None and date is not None and date <= self.now:
                said["archivedAt"] = date

    def grant(self, id: str, right: str, given: bool) -> None:
        """Admin or manager rights; who gets one has no archive date from then on."""
        said = self._person(id).said
        said[right] = given
        if given:
            said["customArchiveDate"] = None

    def set_access(self, id: str, action: str, application: str) -> None:
        """An application more or less; doing it again changes nothing."""
        person = self._person(id)
        change = person.applications.add if action == "ADD" else person.applications.discard
        change(application)

    def update_email(self, id: str, email: str) -> None:
        """Another e-mail, of the right shape and nobody else's."""
        _check_email(email)
        person = self._person(id)
        if set(self._with_email(email)) - {id}:
            raise Refused(409)
        person.said["email"] = email

    def _with_email(self, email: str) -> list[str]:
        return [id for id, one in self.people.items() if one.said["email"].casefold() == email.casefold()]

    def update_profile(self, id: str, body: Mapping[str, Any]) -> None:
        """Names, either or both; a language, by its lowercase code; or metadata, replaced or merged by dialect."""
        if not body or not body.get("language", "en").islower():
            raise Refused(400)
        said = self._person(id).said
        kept = said["metadata"] if self.behaviour("users.update-metadata.mode") == "merge" else {}
        said.update(body if "metadata" not in body else {"metadata": {**kept, **body["metadata"]}})

    def answer(self, id: str, answers: Mapping[str, str | list[str] | None]) -> None:
        """Sets or clears answers by field. How they are cleared, and what becomes of others, is as the dialect says."""
        person = self._person(id)
        for name, value in answers.items():
            self._check_answer(name, value)
        kept = {} if self.behaviour(f"{_SHAPED}.omitted") == "clear" else person.answers
        given = {
            name: value if self.fields[name].type == "TEXT" or not value else _ids(value)
            for name, value in answers.items()
        }
        person.answers = {name: value for name, value in {**kept, **given}.items() if value}

    def _check_answer(self, id: str, value: str | list[str] | None) -> None:
        """Refuses an answer that the field cannot hold."""
        if id not in self.fields:
            raise Refused(400)
        of = self.fields[id]
        listed = of.type == "MULTI_SELECT" or (of.type == "CHOICE" and self.behaviour(f"{_SHAPED}.value") == "list")
        if not value:
            form = self.behaviour(f"{_SHAPED}.clear-{of.type.lower().replace('_', '-')}")
            if value != {"null": None, "list": [], "empty": [] if listed else ""}[form]:
                raise Refused(400)
            return
        if isinstance(value, list) != listed:
            raise Refused(400)
        if of.type != "TEXT":
            chosen = set(_ids(value))
            if not chosen <= of.choices.keys() or (of.type == "CHOICE" and len(chosen) > 1):
                raise Refused(400)

    # Custom fields

    def create_field(self, heard: Heard, body: Heard) -> Said:
        """A new field, the tenth at most, whose choices get ids."""
        self._check_choices(body)
        if len(self.fields) >= MOST_FIELDS:
            raise Refused(400)
        id = self._fresh(heard, "customFieldId")
        self.fields[id] = Field(body["name"], body["type"], {}, {})
        self._write_field(id, heard, body)
        return self.shown_field(id)

    def replace_field(self, heard: Heard, id: str, body: Heard) -> Said:
        """The field as said, whole: choices without an id are new, those left out are gone. 403 while it is in use."""
        self._check_choices(body)
        live = _found(self.fields, id)
        named = [choice["choiceId"] for choice in _choices(body) if "choiceId" in choice]
        if body["type"] != live.type or not set(named) <= live.choices.keys() or len(set(named)) < len(named):
            raise Refused(400)
        gone = live.choices.keys() - set(named)
        self._refuse_in_use(id, gone, whole=False)
        self._write_field(id, heard, body)
        for person in self.people.values():
            if live.type != "TEXT" and (left := [one for one in _ids(person.answers.pop(id, [])) if one not in gone]):
                person.answers[id] = left
        for condition in self._conditions():
            condition.choices = [choice for choice in condition.choices if choice not in gone]
        return self.shown_field(id)

    def delete_field(self, id: str) -> None:
        """The field goes with everybody's answers. 403 while it is in use."""
        self._refuse_in_use(id, _found(self.fields, id).choices.keys(), whole=True)
        del self.fields[id]
        for person in self.people.values():
            person.answers.pop(id, None)
        for group in self.groups.values():
            group.conditions = [condition for condition in group.conditions if condition.field != id]

    def shown_field(self, id: str) -> Said:
        """A field as the API shows it: its id under two names, and nothing that was never said."""
        found = self.fields[id]
        shown: Said = {"customFieldId": id, "id": id, "type": found.type, "name": found.name, **found.details}
        if found.type != "TEXT":
            shown["choices"] = [{"choiceId": choice, "name": name} for choice, name in found.choices.items()]
        return shown

    def _check_choices(self, body: Heard) -> None:
        """Choices are required, but for a text, which has none."""
        if bool(body.get("choices")) if body["type"] == "TEXT" else "choices" not in body:
            raise Refused(400)

    def _write_field(self, id: str, heard: Heard, body: Heard) -> None:
        """Stores the field; the ids of choices that had none are heard, each in its place."""
        found = self.fields[id]
        answered = heard.get("choices", []) if found.type != "TEXT" else []
        choices: dict[str, str] = {}
        for place, choice in enumerate(_choices(body)):
            known = choice.get("choiceId")
            assert known or place < len(answered), f"the choice {choice['name']!r} got no id: {heard}"
            choices[known or self._fresh(answered[place], "choiceId")] = choice["name"]
        details = {key: body[key] for key in ("isHidden", "isLocked", "isOptional") if key in body}
        said = {"description": body["description"]} if body.get("description") else {}
        found.name, found.choices, found.details = body["name"], choices, {**details, **said}

    def _refuse_in_use(self, id: str, gone: Iterable[str], *, whole: bool) -> None:
        """403 where a smart group's condition names the field, or what goes of it, as the dialect says."""
        rule = self.behaviour("custom-fields.in-use")
        named = [condition for condition in self._conditions() if condition.field == id]
        if rule == "removed-choice" and not whole:
            named = [condition for condition in named if set(condition.choices) & set(gone)]
        if named and rule != "never":
            raise Refused(403)

    # Groups of both kinds

    def create_group(self, heard: Heard, name: str, members: list[str], managers: list[str]) -> Said:
        """A new manual group with its people, who all exist."""
        self._known([*members, *managers])
        id = self._fresh(heard, "groupId")
        self.groups[id] = Group(GROUP, name, set(managers), set(members))
        return {"groupId": id}

    def create_smart_group(self, heard: Heard, name: str, said: Sequence[Heard], managers: list[str]) -> Said:
        """A new smart group; its conditions fit the fields there are."""
        conditions = self._read_conditions(said)
        self._known(managers)
        id = self._fresh(heard, "smartGroupId")
        self.groups[id] = Group(SMART_GROUP, name, set(managers), conditions=conditions)
        return {"smartGroupId": id}

    def replace_conditions(self, id: str, said: Sequence[Heard]) -> None:
        """New conditions in the place of all that there were."""
        _check_shape(said)
        self.group(id, SMART_GROUP).conditions = self._read_conditions(said)

    def rename(self, id: str, kind: str, name: str) -> None:
        """Another name, and nothing else."""
        self.group(id, kind).name = name

    def delete_group(self, id: str, kind: str) -> None:
        """The group goes with its assignments; a smart group that is not there is gone already."""
        if kind == SMART_GROUP and (id not in self.groups or self.groups[id].kind != kind):
            return
        self.group(id, kind)
        del self.groups[id]
        self._end_targets(kind, id)

    def add_people(self, id: str, kind: str, listed: str, people: list[str]) -> None:
        """More people in a list of the group, who all exist."""
        group = self.group(id, kind)
        self._known(people)
        getattr(group, listed).update(people)

    def remove_person(self, id: str, kind: str, listed: str, person: str) -> None:
        """One less; taking out who is not in it changes nothing."""
        group = self.group(id, kind)
        self._person(person)
        getattr(group, listed).discard(person)

    def group(self, id: str, kind: str) -> Group:
        """The group. Refuses an id that none of that kind has."""
        return _found({id: group for id, group in self.groups.items() if group.kind == kind}, id)

    def members(self, group: Group) -> list[str]:
        """Who is in it: of a smart group, the active people who meet all of its conditions."""
        if group.kind == GROUP:
            return sorted(group.members)
        return [
            id
            for id, person in self.people.items()
            if person.said["archivedAt"] is None
            and group.conditions
            and all(condition.met_by(person.answers) for condition in group.conditions)
        ]

    def _read_conditions(self, said: Sequence[Heard]) -> list[Condition]:
        """Refuses those that do not fit their fields."""
        _check_shape(said)
        read = []
        for one in said:
            choices, system = list(dict.fromkeys(one.get("choiceIds", []))), one.get("systemCondition")
            live = self.fields.get(one["customFieldId"])
            if live is None or not set(choices) <= live.choices.keys():
                raise Refused(400)
            read.append(Condition(one["customFieldId"], choices, system))
        return read

    def _conditions(self) -> Iterator[Condition]:
        return (condition for group in self.groups.values() for condition in group.conditions)

    # Content targets

    def assign(self, content: str, audience: Mapping[str, str], mandatory: bool, start: object, finish: object) -> None:
        """Assigns content with one whole value; what is assigned already is changed or refused, as the dialect says."""
        if content not in self.contents:
            raise Refused(400)
        key = (content, *self._audience(audience))
        times = {"startTime": _instant(start), "finishTime": _instant(finish), "updatedAt": self.now}
        live = self.targets.get(key)
        if live is not None and self.behaviour("content-targets.on-existing") != "update":
            raise Refused(409)
        self.targets[key] = {"mandatory": mandatory, "createdAt": live["createdAt"] if live else self.now, **times}

    def withdraw(self, content: str, kind: str, audience: str) -> None:
        """Ends an assignment."""
        if (content, kind, audience) not in self.targets:
            raise Refused(404)
        del self.targets[content, kind, audience]

    def _audience(self, said: Mapping[str, str]) -> tuple[str, str]:
        if "userId" in said:
            self._known([said["userId"]])
            return USER, said["userId"]
        if said["targetId"] == EVERYONE:
            return EVERYONE, EVERYONE
        if said["targetId"] not in self.groups:
            raise Refused(400)
        return self.groups[said["targetId"]].kind, said["targetId"]

    def _end_targets(self, kind: str, id: str) -> None:
        self.targets = {key: target for key, target in self.targets.items() if key[1:] != (kind, id)}

    # Ids

    def _person(self, id: str) -> Person:
        return _found(self.people, id)

    def _known(self, people: Iterable[str]) -> None:
        if not set(people) <= self.people.keys():
            raise Refused(400)

    def _fresh(self, heard: Heard, key: str) -> str:
        """The id that the service gave, which nothing had before."""
        id = heard.get(key)
        assert isinstance(id, str), f"no new {key} was answered: {heard}"
        assert id, f"the new {key} is empty"
        assert id not in self.given, f"{id} was given out before"
        self.given.add(id)
        return id


def _found(things: Mapping[str, T], id: str) -> T:
    if id not in things:
        raise Refused(404)
    return things[id]


def _ids(value: Any) -> list[str]:
    """The choice ids of an answer, which is one, a list of them, or empty."""
    return [value] if isinstance(value, str) and value else list(value)


def _choices(body: Heard) -> list[dict[str, str]]:
    choices: list[dict[str, str]] = body.get("choices", [])
    return choices


def _check_shape(conditions: Sequence[Heard]) -> None:
    """At least one condition, each with choices or a system condition."""
    if not conditions or not all(one.get("choiceIds") or one.get("systemCondition") for one in conditions):
        raise Refused(400)


def _check_email(email: str) -> None:
    if not _EMAIL.fullmatch(email):
        raise Refused(400)


def _instant(time: object) -> int | None:
    """An ISO 8601 time as epoch milliseconds; null is open."""
    if time is None:
        return None
    try:
        return int(datetime.fromisoformat(str(time)).timestamp() * 1000)
    except ValueError:
        raise Refused(400) from None
