"""The endpoints of a stranger's service, from the API's specification alone: request in, status and value out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from .people import DONE, Handler, Made, People, Query, Refused, one_of, out, page
from .state import Choices, Kept, Row, WorkspaceState


class Service:
    """The endpoints. Each takes the ids of its path, the query and the body."""

    def __init__(self, choices: Choices) -> None:
        self.choices = choices
        self.held = WorkspaceState(choices)
        self._routes = [(method, _pattern(path), handler) for (method, path), handler in self._table().items()]

    def perform(self, method: str, parts: Sequence[str], query: Query, body: Any) -> object:
        """The value of one request, its path in decoded parts. Raises Refused."""
        for verb, pattern, handler in self._routes:
            if verb == method and len(pattern) == len(parts):
                pairs = list(zip(pattern, parts, strict=True))
                if all(one == part or (one == "*" and part) for one, part in pairs):
                    return handler(*(part for one, part in pairs if one == "*"), query=query, body=body or {})
        raise Refused(404, f"no route {method} /{'/'.join(parts)}")

    def _table(self) -> dict[tuple[str, str], Handler]:
        table: dict[tuple[str, str], Handler] = {
            ("GET", "custom-fields"): self.fields,
            ("POST", "custom-fields"): self.make_field,
            ("PUT", "custom-fields/*"): self.put_field,
            ("DELETE", "custom-fields/*"): self.drop_field,
            ("GET", "groups"): self.groups,
            ("POST", "groups"): self.make_group,
            ("DELETE", "groups/*"): self.drop_group,
            ("POST", "groups/*/rename"): self.rename_group,
            ("GET", "smart-groups"): self.smart_groups,
            ("POST", "smart-groups"): self.make_smart,
            ("GET", "smart-groups/*"): self.smart_group,
            ("DELETE", "smart-groups/*"): self.drop_smart,
            ("POST", "smart-groups/*/rename"): self.rename_smart,
            ("POST", "smart-groups/*/replace-conditions"): self.replace_conditions,
            ("GET", "content/all"): self.contents,
            ("GET", "content/targets"): self.targets,
            ("POST", "content/targets"): self.assign,
            ("DELETE", "content/targets"): self.unassign,
        }
        table.update(People(self.choices, self.held).table())
        for kind, kept, name in _LISTS:
            table.update(self._people_of(kind, kept, name))
        return table

    def _people_of(self, kind: str, kept: str, name: str) -> dict[tuple[str, str], Handler]:
        """Reading, adding and removing the people of one list of groups."""
        key = f"{'manual-groups' if kept == 'groups' else kind}.add-{name}.userIds"

        def read(id: str, **_: object) -> object:
            return {"userIds": [self._out(one) for one in one_of(getattr(self.held, kept), id)[name]]}

        def add(id: str, *, body: Any, **_: object) -> object:
            group, coming = one_of(getattr(self.held, kept), id), body.get(self.choices.name(key))
            if not isinstance(coming, list) or not coming:
                raise Refused(400, f"missing {self.choices.name(key)}")
            if set(map(str, coming)) & set(group[name]) and self.choices.again >= 400:
                raise Refused(self.choices.again, "already there")
            for one in map(str, coming):
                one_of(self.held.users, one)
                if one not in group[name]:
                    group[name].append(one)
            return DONE

        def remove(id: str, user: str, **_: object) -> object:
            group = one_of(getattr(self.held, kept), id)
            if user not in group[name]:
                return self._gone()
            group[name].remove(user)
            return DONE

        path = f"{kind}/*/{name}"
        return {("GET", path): read, ("POST", path): add, ("DELETE", f"{path}/*"): remove}

    def _gone(self) -> object:
        if self.choices.gone >= 400:
            raise Refused(self.choices.gone, "not there")
        return DONE

    def _out(self, id: str) -> object:
        return out(self.choices, id)

    def _page(self, key: str, rows: list[Row], query: Query, total: str | None) -> Row:
        return page(self.choices, key, rows, query, total)

    def _refuse_twice(self, kept: Kept, name: object) -> None:
        """Refuses a second thing of one name, where this service does."""
        if self.choices.unique and any(one["name"] == name for one in kept.values()):
            raise Refused(409, "that name is taken")

    # Custom fields

    def fields(self, **_: object) -> object:
        """GET /custom-fields."""
        return {"customFields": [self._field(id) for id, _ in self.held.listed(self.held.fields)]}

    def _field(self, id: str) -> Row:
        field = self.held.fields[id]
        ids = {"customFieldId": self._out(id), "id": self._out(id)}
        if self.choices.field_ids != "both":
            ids = {self.choices.field_ids: self._out(id)}
        choices = [self.choices.dressed({**one, "choiceId": self._out(one["choiceId"])}) for one in field["choices"]]
        flags = {key: bool(field.get(key)) for key in ("isHidden", "isLocked", "isOptional")}
        without: Row = {} if self.choices.empty == "blank" else self.choices.optional(choices=None)
        return self.choices.dressed({
            **ids, "name": field["name"], "type": field["type"], **({"choices": choices} if choices else without),
            **self.choices.optional(description=field.get("description") or None, **flags),
        })  # fmt: skip

    def make_field(self, *, body: Any, **_: object) -> object:
        """POST /custom-fields."""
        if len(self.held.fields) >= 10:
            raise Refused(422, "at most ten fields")
        self._refuse_twice(self.held.fields, body.get("name"))
        id = self.held.new_id("fields")
        self.held.fields[id] = self._checked_field(body, [])
        return Made(self._field(id))

    def put_field(self, id: str, *, body: Any, **_: object) -> object:
        """PUT /custom-fields/{id}: the whole field; a choice without its id is new."""
        field = one_of(self.held.fields, id)
        self._refuse_in_use(id)
        self.held.fields[id] = self._checked_field(body, [one["choiceId"] for one in field["choices"]])
        return Made(self._field(id))

    def _checked_field(self, body: Any, known: list[str]) -> dict[str, Any]:
        if not body.get("name") or body.get("type") not in ("CHOICE", "TEXT", "MULTI_SELECT"):
            raise Refused(422, "name and type are needed")
        said = body.get("choices") or []
        if body["type"] != "TEXT" and not said:
            raise Refused(422, "choices are needed")
        if any("choiceId" in one and str(one["choiceId"]) not in known for one in said):
            raise Refused(422, "no such choice")
        choices = [
            {"choiceId": str(one.get("choiceId") or self.held.new_id("choices")), "name": one["name"]} for one in said
        ]
        return {**{key: value for key, value in body.items() if value}, "choices": choices}

    def drop_field(self, id: str, **_: object) -> object:
        """DELETE /custom-fields/{id}."""
        one_of(self.held.fields, id)
        self._refuse_in_use(id)
        del self.held.fields[id]
        for one in self.held.users.values():
            one["answers"].pop(id, None)
        return DONE

    def _refuse_in_use(self, id: str) -> None:
        if self.choices.in_use == "answered" or any(
            one["field"] == id for group in self.held.smart.values() for one in group["conditions"]
        ):
            raise Refused(403, "in use")

    # Groups

    def groups(self, *, query: Query, **_: object) -> object:
        """GET /groups."""
        rows = [{"groupId": self._out(id), "name": one["name"]} for id, one in self.held.listed(self.held.groups)]
        return self._page("groups", [self.choices.dressed(row) for row in rows], query, None)

    def make_group(self, *, body: Any, **_: object) -> object:
        """POST /groups."""
        if set(body) != {"name"}:
            raise Refused(400, "only a name is taken here")
        self._refuse_twice(self.held.groups, body["name"])
        id = self.held.new_id("groups")
        self.held.groups[id] = {"name": body["name"], "members": [], "managers": []}
        return Made({"groupId": self._out(id)})

    def drop_group(self, id: str, **_: object) -> object:
        """DELETE /groups/{id}."""
        if self.held.groups.pop(id, None) is None:
            return self._gone()
        return DONE

    def rename_group(self, id: str, *, body: Any, **_: object) -> object:
        """POST /groups/{id}/rename; a body that says no name is accepted and does nothing."""
        group, key = one_of(self.held.groups, id), self.choices.name("manual-groups.rename.name")
        group["name"] = body.get(key, group["name"])
        return DONE

    def smart_groups(self, *, query: Query, **_: object) -> object:
        """GET /smart-groups."""
        rows = [{"smartGroupId": self._out(id), "name": one["name"]} for id, one in self.held.listed(self.held.smart)]
        return self._page("smartGroups", [self.choices.dressed(row) for row in rows], query, None)

    def smart_group(self, id: str, **_: object) -> object:
        """GET /smart-groups/{id}."""
        group = one_of(self.held.smart, id)
        conditions = [
            self.choices.dressed({
                "customFieldId": self._out(one["field"]), "choiceIds": [self._out(choice) for choice in one["choices"]],
                **self.choices.optional(systemCondition=one["system"]),
            })
            for one in group["conditions"]
        ]  # fmt: skip
        if self.choices.backwards:
            conditions.reverse()
        managers = [self._out(one) for one in group["managers"]]
        return self.choices.dressed(
            {"smartGroupId": self._out(id), "name": group["name"], "conditions": conditions, "managers": managers}
        )

    def make_smart(self, *, body: Any, **_: object) -> object:
        """POST /smart-groups."""
        self._refuse_twice(self.held.smart, body.get("name"))
        made = {
            "name": body["name"],
            "conditions": self._checked_conditions(body),
            "managers": list(map(str, body.get("managers") or [])),
        }
        id = self.held.new_id("smart")
        self.held.smart[id] = made
        return Made({"smartGroupId": self._out(id)})

    def _checked_conditions(self, body: Any) -> list[dict[str, Any]]:
        conditions = body.get("conditions")
        if not conditions:
            raise Refused(422, "conditions are needed")
        found = []
        for one in conditions:
            field, choices = str(one["customFieldId"]), list(map(str, one.get("choiceIds") or []))
            known = {choice["choiceId"] for choice in one_of(self.held.fields, field)["choices"]}
            if not set(choices) <= known:
                raise Refused(422, "no such choice")
            system = one.get("systemCondition", self.choices.system)
            found.append({"field": field, "choices": choices, "system": system})
        return found

    def drop_smart(self, id: str, **_: object) -> object:
        """DELETE /smart-groups/{id}: nothing happens where there is none."""
        self.held.smart.pop(id, None)
        return DONE

    def rename_smart(self, id: str, *, body: Any, **_: object) -> object:
        """POST /smart-groups/{id}/rename."""
        one_of(self.held.smart, id)["name"] = body["name"]
        return DONE

    def replace_conditions(self, id: str, *, body: Any, **_: object) -> object:
        """POST /smart-groups/{id}/replace-conditions."""
        one_of(self.held.smart, id)["conditions"] = self._checked_conditions(body)
        return DONE

    # Content

    def contents(self, *, query: Query, **_: object) -> object:
        """GET /content/all."""
        rows = [
            self.choices.dressed({"courseId": self._out(id), **one, **self.choices.optional(price=None, link=None)})
            for id, one in self.held.listed(self.held.contents)
        ]
        return self._page("courses", rows, query, "total")

    def targets(self, *, query: Query, **_: object) -> object:
        """GET /content/targets."""
        content = query.get("contentId", [""])[0]
        one_of(self.held.contents, content)
        mine = [one for one in self.held.targets if one["content"] == content]
        rows = self.held.ordered(mine, lambda one: (one["content"], one["to"]))
        return {"targets": [self.choices.dressed(self._target(one)) for one in rows]}

    def _target(self, one: Mapping[str, Any]) -> Row:
        times = {"startTime": one["start"], "finishTime": one["finish"]}
        shown = {key: self.choices.shown_time(moment) for key, moment in times.items()}
        name: Row = {"name": self._title(one)} if self.choices.named_targets else {}
        if self.choices.editors == "object":
            editor = {"userId": self._out(self.held.named(self.held.users, "ida@acme.example")), "name": "Ida Ek"}
            name |= {"updatedBy": editor, "updatedAt": 1_750_000_000_000}
        elif self.choices.editors == "text":
            name |= {"updatedBy": self.held.named(self.held.users, "ida@acme.example"), "updatedAt": "2025-06-15 15:06"}
        return {
            "targetId": self._out(one["to"]), "targetType": self.choices.types[one["kind"]],
            "contentId": self._out(one["content"]), "contentType": "COURSE", **name,
            **self.choices.optional(mandatory=one["mandatory"], visibilityIsActive=False, **shown),
        }  # fmt: skip

    def _title(self, one: Mapping[str, Any]) -> str:
        if one["kind"] == "everyone":
            return "All users"
        kept = {"group": self.held.groups, "smart": self.held.smart, "user": self.held.users}[one["kind"]]
        return str(kept[one["to"]].get("name") or kept[one["to"]]["email"]) if one["to"] in kept else "(gone)"

    def assign(self, *, body: Any, **_: object) -> object:
        """POST /content/targets: what it does on one that is there is this service's choice."""
        kind, to = self._audience(body)
        content = str(body["contentId"])
        one_of(self.held.contents, content)
        there = [one for one in self.held.targets if (one["content"], one["kind"], one["to"]) == (content, kind, to)]
        if there and self.choices.existing == "conflict":
            raise Refused(409, "assigned already")
        if there and self.choices.existing == "ignore":
            return DONE
        value = self._value(body, there[0] if there and self.choices.existing == "merge" else {})
        if there and self.choices.existing != "double":
            there[0].update(value)
        else:
            self.held.targets.append({"content": content, "kind": kind, "to": to, **value})
        return DONE

    def _audience(self, body: Any) -> tuple[str, str]:
        if "userId" in body:
            one_of(self.held.users, str(body["userId"]))
            return "user", str(body["userId"])
        to = str(body.get("targetId"))
        if to == self.choices.everyone:
            return "everyone", to
        for kind, kept in (("group", self.held.groups), ("smart", self.held.smart)):
            if to in kept:
                return kind, to
        raise Refused(422, "no such target")

    def _value(self, body: Any, before: Mapping[str, Any]) -> dict[str, Any]:
        """The mandatory flag and the window of a body; what a merging service is not told stays."""
        parts = ("mandatory", *_WINDOW.values())
        names = {key: self.choices.name(f"content-targets.create.{key}") for key in parts}
        if unknown := set(body) - {"contentId", "userId", "targetId", *names.values()}:
            raise Refused(400, f"unrecognised {sorted(unknown)}")
        moments = {key: self._moment(body, names[wire], before.get(key)) for key, wire in _WINDOW.items()}
        return {"mandatory": bool(body.get(names["mandatory"], before.get("mandatory"))), **moments}

    def _moment(self, body: Any, name: str, before: object) -> object:
        if name not in body:
            return before
        if body[name] in (None, ""):
            if {None: "null", "": "blank"}[body[name]] != self.choices.clears:
                raise Refused(400, f"{name} is no date")
            return None
        try:
            return self.choices.read_time(body[name])
        except ValueError as wrong:
            raise Refused(400, str(wrong)) from wrong

    def unassign(self, *, body: Any, **_: object) -> object:
        """DELETE /content/targets: all three names are needed, and the type as this service spells it."""
        wanted = [str(body.get(key)) for key in ("contentId", "targetType", "targetId")]
        left = [one for one in self.held.targets
                if [one["content"], self.choices.types[one["kind"]], one["to"]] != wanted]  # fmt: skip
        if len(left) == len(self.held.targets):
            return self._gone()
        self.held.targets = left
        return DONE


_LISTS = (("groups", "groups", "members"), ("groups", "groups", "managers"), ("smart-groups", "smart", "managers"))
_WINDOW = {"start": "startTime", "finish": "finishTime"}


def _pattern(path: str) -> list[str]:
    return re.split("/", path)
