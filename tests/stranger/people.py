"""The endpoints of people on a stranger's service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .state import Choices, Kept, Row, WorkspaceState

Query = Mapping[str, list[str]]
Handler = Callable[..., object]
DONE = object()
"""What an endpoint without an answer gives."""


class Refused(Exception):
    """A refusal with its status."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Made:
    """An answer that tells of a new thing."""

    def __init__(self, value: Row) -> None:
        self.value = value


def out(choices: Choices, id: str) -> object:
    """An id as it looks in JSON."""
    return int(id) if choices.ids == "number" and id.isdigit() else id


def page(choices: Choices, key: str, rows: list[Row], query: Query, total: str | None) -> Row:
    """One page of a listing."""
    skip, limit = int(query.get("skip", ["0"])[0]), int(query.get("limit", ["100"])[0])
    if limit > choices.page_most:
        raise Refused(400, f"limit must not exceed {choices.page_most}")
    given = rows[skip : skip + min(limit, choices.page_cap)]
    found: Row = {key: given or ([] if choices.no_rows == "empty" else None), "skip": skip, "limit": limit}
    if total and choices.totals != "absent":
        found[total] = {"null": None, "text": str(len(rows))}.get(choices.totals, len(rows))
    return found


def one_of(kept: Kept, id: str) -> dict[str, Any]:
    """The thing with that id. Raises Refused."""
    if id not in kept:
        raise Refused(404, f"unknown id {id}")
    return kept[id]


_WHEN = 1_700_000_000_000


class People:
    """The endpoints below /users. Each takes the ids of its path, the query and the body."""

    def __init__(self, choices: Choices, held: WorkspaceState) -> None:
        self.choices, self.held = choices, held

    def table(self) -> dict[tuple[str, str], Handler]:
        """Method and path → endpoint."""
        return {
            ("GET", "users/extended-info"): self.extended,
            ("GET", "users"): self.listed,
            ("POST", "users"): self.make,
            ("GET", "users/*"): self.single,
            ("DELETE", "users/*"): self.drop,
            ("POST", "users/*/archive"): self.archive,
            ("POST", "users/*/unarchive"): self.unarchive,
            ("POST", "users/*/set-custom-archived-date"): self.set_date,
            ("POST", "users/*/update-custom-field-choice"): self.answer,
            ("POST", "users/*/update-email"): self.say("email"),
            ("POST", "users/*/update-fullname"): self.say("firstName", "lastName"),
            ("POST", "users/*/update-language"): self.say("language"),
            ("POST", "users/*/update-metadata"): self.say("metadata"),
            ("POST", "users/*/make-admin/*"): self.endow("admin"),
            ("POST", "users/*/make-manager/*"): self.endow("manager"),
            ("POST", "users/*/access/*"): self.access,
        }

    def listed(self, *, query: Query, **_: object) -> object:
        """GET /users."""
        found = [
            self.choices.dressed({
                "userId": out(self.choices, id), "email": one["email"], "firstName": one["firstName"],
                "lastName": one["lastName"], "metadata": dict(one["metadata"]), **self._answers(one),
                **self.choices.optional(avatarUrl=None, customArchiveDate=one["date"], archivedAt=_archived(one)),
            })
            for id, one in self.held.listed(self.held.users)
            if self.choices.users == "all" or not one["archived"]
        ]  # fmt: skip
        return page(self.choices, "users", found, query, "matchCount")

    def extended(self, *, query: Query, **_: object) -> object:
        """GET /users/extended-info: some services leave archived people out here, or somebody."""
        people = self.held.listed(self.held.users)
        if self.choices.extended == "active":
            people = [pair for pair in people if not pair[1]["archived"]]
        if self.choices.extended == "lacking":
            people = people[1:]
        found = [
            self.choices.dressed({
                "userId": out(self.choices, id), "email": one["email"], "availableApplications": one["applications"],
                **self._groups(id),
                **self.choices.optional(admin=one["admin"], manager=one["manager"]),
            })
            for id, one in people
        ]  # fmt: skip
        return page(self.choices, "users", found, query, "matchCount")

    def single(self, id: str, **_: object) -> object:
        """GET /users/{id}."""
        one = one_of(self.held.users, id)
        return self.choices.dressed({
            "userId": out(self.choices, id), "email": one["email"], "firstName": one["firstName"],
            "lastName": one["lastName"], "language": one["language"], "metadata": dict(one["metadata"]),
            "applicationIds": one["applications"], **self._answers(one), **self._groups(id),
            **self.choices.optional(admin=one["admin"], manager=one["manager"], archivedAt=_archived(one),
                                    customArchiveDate=one["date"], lastLoginAt=None, timeZone=None),
        })  # fmt: skip

    def make(self, *, body: Any, **_: object) -> object:
        """POST /users: an e-mail that is there gives the account that has it."""
        email = str(body[self.choices.name("users.create.email")])
        if email in [one["email"] for one in self.held.users.values()]:
            return Made({"userId": out(self.choices, self.held.named(self.held.users, email)), "newUser": False})
        id = self.held.new_id("users")
        texts = {key: body.get(self.choices.name(f"users.create.{key}"), "") for key in ("firstName", "lastName")}
        self.held.users[id] = {
            "email": email, "archived": False, "admin": False, "manager": False, **texts, "metadata": {},
            "language": body.get(self.choices.name("users.create.language"), "en"), "answers": {}, "date": None,
            "applications": ["learn"],
        }  # fmt: skip
        return Made({"userId": out(self.choices, id), "newUser": True})

    def drop(self, id: str, **_: object) -> object:
        """DELETE /users/{id}."""
        one_of(self.held.users, id)
        del self.held.users[id]
        for group in (*self.held.groups.values(), *self.held.smart.values()):
            for key in ("members", "managers"):
                group[key] = [one for one in group[key] if one != id]
        return DONE

    def archive(self, id: str, **_: object) -> object:
        """POST /users/{id}/archive: not an admin; and somebody archived only where that may be said again."""
        one = one_of(self.held.users, id)
        if one["admin"]:
            raise Refused(400, "an admin cannot be archived")
        if one["archived"] and self.choices.again >= 400:
            raise Refused(self.choices.again, "archived already")
        one["archived"] = True
        return DONE

    def unarchive(self, id: str, **_: object) -> object:
        """POST /users/{id}/unarchive."""
        one = one_of(self.held.users, id)
        if not one["archived"] and self.choices.again >= 400:
            raise Refused(self.choices.again, "active already")
        one["archived"] = False
        return DONE

    def set_date(self, id: str, *, body: Any, **_: object) -> object:
        """POST /users/{id}/set-custom-archived-date."""
        one, key = one_of(self.held.users, id), self.choices.name("users.set-custom-archived-date.date")
        if one["admin"] or one["manager"]:
            raise Refused(400, "not for an admin or a manager")
        if key not in body:
            raise Refused(400, f"{key} is missing")
        one["date"] = body[key]
        return DONE

    def answer(self, id: str, *, body: Any, **_: object) -> object:
        """POST /users/{id}/update-custom-field-choice: field id → choice, choices or text."""
        one = one_of(self.held.users, id)
        for field, said in body.items():
            known = {choice["choiceId"] for choice in one_of(self.held.fields, str(field))["choices"]}
            picked = list(map(str, said)) if isinstance(said, list) else said
            if picked and isinstance(picked, str) and known:
                picked = [picked]
            if known and not set(picked or ()) <= known:
                raise Refused(422, "no such choice")
            one["answers"].pop(str(field), None)
            if picked:
                one["answers"][str(field)] = picked
        return DONE

    def say(self, *keys: str) -> Handler:
        """An endpoint that replaces parts of a person."""

        def said(id: str, *, body: Any, **_: object) -> object:
            if not set(body) & set(keys):
                raise Refused(400, f"one of {keys} is needed")
            one_of(self.held.users, id).update({key: body[key] for key in keys if key in body})
            return DONE

        return said

    def endow(self, right: str) -> Handler:
        """An endpoint that grants or revokes a right."""

        def endowed(id: str, endow: str, **_: object) -> object:
            one, wanted = one_of(self.held.users, id), endow == "true"
            if one[right] == wanted and self.choices.again >= 400:
                raise Refused(self.choices.again, "so it is")
            one[right] = wanted
            return DONE

        return endowed

    def access(self, id: str, action: str, *, body: Any, **_: object) -> object:
        """POST /users/{id}/access/{action}."""
        one, application = one_of(self.held.users, id), str(body["applicationId"])
        if (application in one["applications"]) == (action == "ADD") and self.choices.again >= 400:
            raise Refused(self.choices.again, "so it is")
        one["applications"] = [other for other in one["applications"] if other != application]
        one["applications"] += [application] if action == "ADD" else []
        return DONE

    def _answers(self, one: Row) -> Row:
        """What a person answers, by the names of the fields."""
        match self.choices.answers:
            case "null":
                return {"customFields": None}
            case "missing":
                return {}
        answers: Any = one["answers"]
        known = [(id, said) for id, said in answers.items() if id in self.held.fields]
        return {"customFields": {self.held.fields[id]["name"]: self._shown(id, said) for id, said in known}}

    def _shown(self, id: str, said: Any) -> object:
        """One answer, in the shape of this service."""
        names = {one["choiceId"]: one["name"] for one in self.held.fields[id]["choices"]}
        picked = [names[one] for one in said] if isinstance(said, list) else [said]
        match self.choices.answers:
            case "values":
                return {"value": picked[0] if picked else None, "type": self.held.fields[id]["type"]}
            case "unlike":
                return {"field": id, "selection": {"labels": picked}, "version": 3}
            case "lists":
                return picked
            case "choice-ids":
                ids = [out(self.choices, one) for one in said] if isinstance(said, list) else []
                return {"choiceIds": ids, "text": None if ids else said, "customFieldId": out(self.choices, id)}
        if not isinstance(said, list):
            return {"text": said, "choices": None}
        return {"choices": [{"choiceId": out(self.choices, one), "name": names[one]} for one in said]}

    def _groups(self, user: str) -> Row:
        """The groups that a person is in, and those that a person manages."""
        found: Row = {}
        for key, name in (("memberOfGroups", "members"), ("managerOfGroups", "managers")):
            refs = self._refs(user, name)
            if refs or self.choices.group_lists == "empty":
                found[key] = refs
            elif self.choices.group_lists == "null":
                found[key] = None
        return found

    def _refs(self, user: str, name: str) -> list[Row]:
        held = [("MANUAL", self.held.groups), ("SMART", self.held.smart)]
        return [
            {"groupId": out(self.choices, id), "groupType": type, "name": group["name"]}
            for type, kept in held
            for id, group in kept.items()
            if user in group.get(name, [])
        ]


def _archived(one: Row) -> int | None:
    return _WHEN if one["archived"] else None
