"""What the listings of a model's workspace say: the same people and groups, as each endpoint shows them."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from laws.model import EVERYONE, GROUP, SMART_GROUP, USER, Model, Person, Said

APPLICATIONS: Final = ("achievements", "analyse", "create", "learn", "follow-up")
_NAMED: Final = ("userId", "email", "firstName", "lastName")
_RIGHTS: Final = ("admin", "manager")
_DATES: Final = ("archivedAt", "customArchiveDate")


class ListedModel(Model):
    """The model as the service would list it."""

    def users(self) -> list[Said]:
        """GET /users: answers and dates, without groups and rights."""
        return [_said(person, *_NAMED, "metadata", *_DATES) | self._answers(person) for person in self.people.values()]

    def extended(self) -> list[Said]:
        """GET /users/extended-info: groups, rights and applications."""
        return [_said(person, *_NAMED, *_RIGHTS) | self._memberships(person) for person in self.people.values()]

    def search(self, text: str, metadata: Mapping[str, str], groups: bool) -> list[Said]:
        """POST /users/search: those who fit the text and hold every pair; groups and applications only if asked for."""
        return [
            _said(person, *_NAMED, "metadata", *_RIGHTS)
            | self._answers(person)
            | (self._memberships(person) if groups else {})
            for person in self.people.values()
            if _fits(person, text) and metadata.items() <= person.said["metadata"].items()
        ]

    def matching(self, rows: list[Said], text: str) -> list[Said]:
        """Those rows of people whose name or e-mail has the text in it."""
        return [row for row in rows if _fits(self.people[str(row["userId"])], text)]

    def user(self, id: str) -> Said:
        """GET /users/{userId}: everything."""
        person = self.people[id]
        whole = _said(person, *person.said) | self._answers(person) | self._memberships(person, "applicationIds")
        return whole | {"integrationIds": {}}

    def listed_groups(self, kind: str, filter: str = "") -> list[Said]:
        """GET /groups and /smart-groups: ids and names."""
        key = "groupId" if kind == GROUP else "smartGroupId"
        return [
            {key: id, "name": group.name}
            for id, group in self.groups.items()
            if group.kind == kind and filter.casefold() in group.name.casefold()
        ]

    def smart_group(self, id: str) -> Said:
        """GET /smart-groups/{smartGroupId}, with members. What has no order is sorted."""
        group = self.group(id, SMART_GROUP)
        conditions = [
            {"customFieldId": one.field, "choiceIds": one.choices}
            | ({} if one.system is None else {"systemCondition": one.system})
            for one in group.conditions
        ]
        lists: Said = {"managers": sorted(group.managers), "members": sorted(self.members(group))}
        return {"smartGroupId": id, "name": group.name, "conditions": conditions} | lists

    def listed_targets(self, content: str) -> list[Said]:
        """GET /content/targets."""
        return [self._target(*key, target) for key, target in self.targets.items() if key[0] == content]

    def _answers(self, person: Person) -> Said:
        """Answers by the name of their field."""
        answers: Said = {}
        for id, field in self.fields.items():
            chosen = person.answers.get(id)
            if chosen is not None:
                listed = [{"choiceId": one, "name": name} for one, name in field.choices.items() if one in chosen]
                answers[field.name] = {"text": chosen} if field.type == "TEXT" else {"choices": listed}
        return {"customFields": answers}

    def _memberships(self, person: Person, key: str = "availableApplications") -> Said:
        """Groups, sorted, because they have no order, and applications."""
        id = person.said["userId"]
        refs: dict[str, list[Said]] = {"memberOfGroups": [], "managerOfGroups": []}
        for one, group in self.groups.items():
            ref: Said = {"groupId": one, "groupType": group.kind, "name": group.name}
            refs["memberOfGroups"] += [ref] * (id in self.members(group))
            refs["managerOfGroups"] += [ref] * (id in group.managers)
        groups: Said = {word: sorted(found, key=str) for word, found in refs.items()}
        return groups | {key: [one for one in APPLICATIONS if one in person.applications]}

    def _target(self, content: str, kind: str, audience: str, target: dict[str, Any]) -> Said:
        """One assignment; a side of its window that is open is left out."""
        start, finish = target["startTime"], target["finishTime"]
        times = {key: _iso(time) for key, time in target.items() if key != "mandatory" and time is not None}
        return {
            "targetId": audience,
            "targetType": kind,
            "contentId": content,
            "contentType": self.contents[content],
            "mandatory": target["mandatory"],
            "name": self._label(kind, audience),
            "scheduleTriggerIsActive": start is not None or finish is not None,
            "visibilityIsActive": (start is None or start <= self.now) and (finish is None or self.now < finish),
            "updatedBy": "api",
            **times,
        }

    def _label(self, kind: str, audience: str) -> str:
        """The audience's name; of a person without one, the e-mail."""
        if kind == EVERYONE:
            return "Everyone"
        if kind == USER:
            person = self.people[audience]
            return _name(person).strip() or str(person.said["email"])
        return self.groups[audience].name


def _said(person: Person, *keys: str) -> Said:
    """What is said under these keys; a date that there is not is left out."""
    return {key: person.said[key] for key in keys if person.said[key] is not None}


def _name(person: Person) -> str:
    return f"{person.said['firstName']} {person.said['lastName']}"


def _fits(person: Person, text: str) -> bool:
    """Whether name or e-mail has the text in it, whatever its case."""
    return any(text.casefold() in part.casefold() for part in (_name(person), person.said["email"]))


def _iso(instant: int) -> str:
    return datetime.fromtimestamp(instant / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
