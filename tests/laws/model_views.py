"""What the listings of a model's workspace say: the same people and groups, as each endpoint shows them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from laws.model import EVERYONE, GROUP, SMART_GROUP, USER, Group, Model, Person, Said, Target

APPLICATIONS: Final = ("achievements", "analyse", "create", "learn", "follow-up")


@dataclass(frozen=True)
class Views:
    """The model as the service would list it."""

    model: Model

    def users(self) -> list[Said]:
        """GET /users: answers and dates, without groups and rights."""
        return [
            self._named(id, person) | self._described(person) | _dates(person)
            for id, person in self.model.people.items()
        ]

    def extended(self) -> list[Said]:
        """GET /users/extended-info: groups, rights and applications."""
        return [
            self._named(id, person) | _rights(person) | self._memberships(id) | _access(person, "availableApplications")
            for id, person in self.model.people.items()
        ]

    def search(self, text: str, metadata: Mapping[str, str], groups: bool) -> list[Said]:
        """POST /users/search: those who fit the text and hold every pair; groups and applications only if asked for."""
        found = []
        for id, person in self.model.people.items():
            if _fits(person, text) and metadata.items() <= person.metadata.items():
                more = self._memberships(id) | _access(person, "availableApplications") if groups else {}
                found.append(self._named(id, person) | self._described(person) | _rights(person) | more)
        return found

    def matching(self, rows: list[Said], text: str) -> list[Said]:
        """Those rows of people whose name or e-mail has the text in it."""
        return [row for row in rows if _fits(self.model.people[str(row["userId"])], text)]

    def user(self, id: str) -> Said:
        """GET /users/{userId}: everything."""
        person = self.model.people[id]
        said: Said = {"language": person.language, "createdAt": person.created_at, "integrationIds": {}}
        whole = self._named(id, person) | self._described(person) | _dates(person) | self._memberships(id)
        return whole | said | _rights(person) | _access(person, "applicationIds")

    def groups(self, kind: str, filter: str = "") -> list[Said]:
        """GET /groups and /smart-groups: ids and names."""
        key = "groupId" if kind == GROUP else "smartGroupId"
        return [
            {key: id, "name": group.name}
            for id, group in self.model.groups.items()
            if group.kind == kind and filter.casefold() in group.name.casefold()
        ]

    def smart_group(self, id: str) -> Said:
        """GET /smart-groups/{smartGroupId}, with members. What has no order is sorted."""
        group = self.model.group(id, SMART_GROUP)
        conditions = [
            {"customFieldId": one.field, "choiceIds": one.choices}
            | ({} if one.system is None else {"systemCondition": one.system})
            for one in group.conditions
        ]
        lists: Said = {"managers": sorted(group.managers), "members": sorted(self.model.members(group))}
        return {"smartGroupId": id, "name": group.name, "conditions": conditions} | lists

    def fields(self) -> list[Said]:
        """GET /custom-fields."""
        return [self.model.shown_field(id) for id in self.model.fields]

    def targets(self, content: str) -> list[Said]:
        """GET /content/targets."""
        return [self._target(key, target) for key, target in self.model.targets.items() if key[0] == content]

    def _named(self, id: str, person: Person) -> Said:
        names = {"firstName": person.first_name, "lastName": person.last_name}
        return {"userId": id, "email": person.email, **names}

    def _described(self, person: Person) -> Said:
        """Answers by the name of their field, and metadata."""
        fields = self.model.fields
        answers: Said = {}
        for id, field in fields.items():
            if id in person.answers and field.type == "TEXT":
                answers[field.name] = {"text": person.answers[id]}
            elif id in person.answers:
                chosen = person.answers[id]
                listed = [{"choiceId": one, "name": name} for one, name in field.choices.items() if one in chosen]
                answers[field.name] = {"choices": listed}
        return {"customFields": answers, "metadata": person.metadata}

    def _memberships(self, id: str) -> Said:
        groups = self.model.groups
        return {
            "memberOfGroups": _refs({one: group for one, group in groups.items() if id in self.model.members(group)}),
            "managerOfGroups": _refs({one: group for one, group in groups.items() if id in group.managers}),
        }

    def _target(self, key: tuple[str, str, str], target: Target) -> Said:
        """One assignment; a side of its window that is open is left out."""
        content, kind, audience = key
        times = {"startTime": target.start, "finishTime": target.finish}
        times |= {"createdAt": target.created_at, "updatedAt": target.updated_at}
        seen = (target.start is None or target.start <= self.model.now) and (
            target.finish is None or self.model.now < target.finish
        )
        return {
            "targetId": audience,
            "targetType": kind,
            "contentId": content,
            "contentType": self.model.contents[content],
            "mandatory": target.mandatory,
            "name": self._label(kind, audience),
            "scheduleTriggerIsActive": target.start is not None or target.finish is not None,
            "visibilityIsActive": seen,
            "updatedBy": "api",
            **{name: _iso(time) for name, time in times.items() if time is not None},
        }

    def _label(self, kind: str, audience: str) -> str:
        """The audience's name; of a person without one, the e-mail."""
        if kind == EVERYONE:
            return "Everyone"
        if kind == USER:
            person = self.model.people[audience]
            return f"{person.first_name} {person.last_name}".strip() or person.email
        return self.model.groups[audience].name


def _fits(person: Person, text: str) -> bool:
    """Whether name or e-mail has the text in it, whatever its case."""
    name = f"{person.first_name} {person.last_name}"
    return any(text.casefold() in part.casefold() for part in (name, person.email))


def _rights(person: Person) -> Said:
    return {"admin": person.admin, "manager": person.manager}


def _access(person: Person, key: str) -> Said:
    return {key: [one for one in APPLICATIONS if one in person.applications]}


def _dates(person: Person) -> Said:
    dates = {"archivedAt": person.archived_at, "customArchiveDate": person.archive_date}
    return {key: date for key, date in dates.items() if date is not None}


def _refs(groups: Mapping[str, Group]) -> list[Mapping[str, str]]:
    """Groups as people's entries refer to them, sorted, because they have no order."""
    refs = [{"groupId": id, "groupType": group.kind, "name": group.name} for id, group in groups.items()]
    return sorted(refs, key=str)


def _iso(instant: int) -> str:
    return datetime.fromtimestamp(instant / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def page(rows: Iterable[Said], skip: int, limit: int) -> list[Said]:
    """That part of a listing."""
    return list(rows)[skip : skip + limit]
