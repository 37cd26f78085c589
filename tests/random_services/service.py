"""A service with drawn points: the sandbox within, and its requests and responses changed on the way in and out.

What the sandbox has points for itself is settled within; here each request is read strictly as this service takes it,
and each response shown as this service shows it.
"""

import json
import random
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta, timezone
from itertools import count
from typing import Any, Final
from urllib.parse import parse_qs, urlencode

from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox.service import Sandbox, SandboxResponse
from lmsconf.sandbox.store import Repository, Value

from .points import NAMES, Field, Points, Unreadable, read_answer, shown_answers

Row = dict[str, Any]
MISSING: Final = 0
"""Stands for the status with which this service says that a thing is not there."""
REFUSED: Final = 1
"""Stands for the status with which this service refuses a request."""
_ANSWER: Final = "users.update-custom-field-choice"
_TYPES: Final = ("GROUP", "SMART_GROUP", "USER", "EVERYONE")
_TIMES: Final = ("startTime", "finishTime", "createdAt", "updatedAt")
_LISTS: Final[Mapping[str, tuple[str, str]]] = {
    "users.list": ("users", "userId"),
    "users.extended-info": ("users", "userId"),
    "users.search": ("users", "userId"),
    "manual-groups.list": ("groups", "groupId"),
    "smart-groups.list": ("smartGroups", "smartGroupId"),
    "content.list": ("courses", "courseId"),
}
_UNSET: Final[Mapping[str, tuple[str, ...]]] = {
    "user": ("avatarUrl", "lastLoginAt", "archivedAt", "customArchiveDate", "scheduledDeleteDate", "timeZone"),
    "field": ("description",),
    "target": ("startTime", "finishTime", "triggeredStartTime", "triggeredFinishTime"),
    "content": ("backgroundImageUrl", "link"),
}
_TEXTS: Final = ("avatarUrl", "description", "backgroundImageUrl", "link", *_TIMES, *_UNSET["target"])
_FLAGS: Final = ("isHidden", "isLocked", "isOptional", "mandatory", "admin", "manager")


class Refused(Exception):
    """The service says no. status: MISSING, REFUSED, or one that the specification fixes."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class RandomService(Sandbox):
    """One workspace with drawn points. asked: (method, path, body, status) of every request that writes."""

    def __init__(self, points: Points, seed: int = 0) -> None:
        within: dict[str, str | int] = {
            "paging.limit": 1_000_000,
            f"{_ANSWER}.omitted": str(points.answer_omitted),
            **{f"{_ANSWER}.clear-{type}": "null" for type in ("choice", "multi-select", "text")},
            "users.update-metadata.mode": "merge" if points.metadata == "merged" else "replace",
            "manual-groups.add.batch": 1_000_000,
            "manual-groups.add.mode": "replace" if points.add == "replaces" else "add",
            "custom-fields.in-use": "never",
            "custom-fields.clear-description": "null",
            "content-targets.time-format": "epoch-ms-number",
        }
        super().__init__(spec=ApiSpec(within), ids=_ids(points, seed))
        self.points = points
        self.asked: list[tuple[str, str, str, int]] = []
        self._seed, self._one_at_a_time = seed, threading.RLock()
        self._headers: Mapping[str, str] = {}
        of_groups: dict[str, Callable[[Row, Row, Row], object]] = {
            "create": self._create_group,
            "rename": self._rename,
            "delete": self._delete_group,
            **dict.fromkeys(("members", "managers"), self._people),
            **dict.fromkeys(("add-members", "add-managers"), self._add),
            **dict.fromkeys(("remove-member", "remove-manager"), self._remove),
        }
        self._handlers: dict[str, Callable[[Row, Row, Row], object]] = {
            "users.create": self._create_user,
            "users.get": self._get_user,
            _ANSWER: self._answer_fields,
            "user-access.make-manager": self._make_manager,
            **{f"manual-groups.{word}": handler for word, handler in of_groups.items()},
            **{f"smart-groups.{word}": handler for word, handler in of_groups.items()},
            "smart-groups.get": self._get_smart_group,
            "custom-fields.list": self._list_fields,
            "custom-fields.create": self._create_field,
            "custom-fields.replace": self._replace_field,
            "custom-fields.delete": self._delete_field,
            "content-targets.list": self._list_targets,
            "content-targets.create": self._create_target,
            "content-targets.delete": self._delete_target,
        }

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        """Answer one request as this service does."""
        operation, parameters = self.spec.match_route(method, path) or (None, {})
        with self._one_at_a_time:
            if operation is None or not headers.get("authorization"):
                response = super().answer(method, path, query, headers, body)
            else:
                self._headers = headers
                asked = {"operation": operation.id, "method": method, "path": path, **parameters}
                response = self._respond(asked, query, body)
        if operation is not None and operation.writes:
            self.asked.append((method, path, body.decode(), response.status))
        return response

    def _respond(self, asked: Row, query: str, body: bytes) -> SandboxResponse:
        try:
            told = self._body(asked["operation"], body)
            wanted = {key: values[-1] for key, values in parse_qs(query, keep_blank_values=True).items()}
            if asked["operation"] in _LISTS:
                value = self._page(asked, query, wanted, told)
            elif handler := self._handlers.get(asked["operation"]):
                value = handler(asked, wanted, told)
            else:
                value = self._within(asked["method"], asked["path"], told if body else None, query)
        except Refused as refused:
            return self._refusal(refused)
        except Unreadable as unreadable:
            return self._refusal(Refused(REFUSED, str(unreadable)))
        if value is None:
            return SandboxResponse(int(self.points.done), {"content-length": "0"}, b"")
        made = asked["method"] == "POST" and asked["operation"].endswith(".create")
        return _response(int(self.points.made) if made else 200, json.dumps(value, ensure_ascii=False))

    def _refusal(self, refused: Refused) -> SandboxResponse:
        points = self.points
        status = {MISSING: int(points.missing), REFUSED: int(points.refusal)}.get(refused.status, refused.status)
        page = f"<html><body><h1>{status}</h1><p>{refused.reason}</p></body></html>"
        problem = {"type": "about:blank", "status": status, "detail": refused.reason}
        return _response(
            status,
            *{
                "json": (json.dumps({"error": refused.reason}, ensure_ascii=False),),
                "text": (refused.reason, "text/plain"),
                "html": (page, "text/html"),
                "empty": ("", "text/plain"),
                "problem": (json.dumps(problem), "application/problem+json"),
            }[str(points.errors)],
        )

    def _body(self, operation: str, body: bytes) -> Row:
        """The parts of a body under the description's names. Raises Refused for a part that is not known here."""
        if not body:
            return {}
        told = json.loads(body)
        if operation == _ANSWER or not isinstance(told, dict):
            return dict(told)
        known = {self.points.name(key): key.rpartition(".")[2] for key in NAMES if key.startswith(f"{operation}.")}
        ours = {key.rpartition(".")[2] for key in NAMES if key.startswith(f"{operation}.")} - known.keys()
        properties = (self.spec.operations[operation].body or {"properties": ()})["properties"]
        named: Row = {}
        for key, value in told.items():
            if key in known or (key in properties and key not in ours):
                named[known.get(key, key)] = value
            elif self.points.unknown == "refused":
                raise Refused(REFUSED, f"unknown property {key}")
        return named

    def _within(self, method: str, path: str, body: Row | None = None, query: str = "") -> Any:
        """What the sandbox within answers. Raises Refused."""
        headers = {**self._headers, "content-type": "application/json"}
        answer = super().answer(method, path, query, headers, b"" if body is None else json.dumps(body).encode())
        if answer.status < 300:
            return json.loads(answer.body) if answer.body else None
        reason = json.loads(answer.body)["message"]
        fixed = answer.status in (401, 403, 405) or (answer.status == 400 and path.endswith("/archive"))
        raise Refused(answer.status if fixed else MISSING if answer.status == 404 else REFUSED, reason)

    def _rows(self, sql: str, *values: Value) -> list[tuple[Value, ...]]:
        with self.store.read_transaction() as repository:
            return repository.rows(sql, *values)

    def _column(self, sql: str, *values: Value) -> list[str]:
        return [str(one) for (one,) in self._rows(sql, *values)]

    # Listings

    def _page(self, asked: Row, query: str, wanted: Row, told: Row) -> Row:
        """One page of a listing, in this service's order."""
        points, operation = self.points, asked["operation"]
        key, id = _LISTS[operation]
        search = operation == "users.search"
        said = told if search else wanted
        limit, skip = int(said.get("limit", 100)), int(said.get("skip", 0))
        most = 100 if operation == "content.list" else int(points.page)
        if limit > most and points.page_over == "refused" and operation != "content.list":
            raise Refused(REFUSED, f"limit is at most {most}")
        limit = min(limit, most)
        whole = self._whole(asked, query, told, key, search=search)
        if operation == "manual-groups.list" and points.everyone != "absent":
            whole.append({"groupId": "EVERYONE", "name": "Everyone"})
        if key == "users":
            whole = self._shown_people([row for row in whole if self._is_listed(operation, row, wanted)])
        rows = self._ordered(whole, id)
        page = rows[skip : skip + limit]
        if operation == "content.list":
            page = [self._unset("content", row) for row in page]
        numbers: Row = {}
        if key == "users":
            numbers = {"skip": skip, "limit": limit, "filter": wanted.get("filter", ""), "matchCount": len(rows)}
        elif key == "courses":
            numbers = {"skip": skip, "limit": limit, "total": len(rows)}
        return {key: page, **numbers}

    def _whole(self, asked: Row, query: str, told: Row, key: str, *, search: bool) -> list[Row]:
        """All rows that the sandbox within lists."""
        if search:
            told = {**told, "skip": 0, "limit": 1_000_000}
            return list(self._within("POST", asked["path"], told)[key])
        wanted = [(name, one) for name, values in parse_qs(query, keep_blank_values=True).items() for one in values]
        kept = [(name, one) for name, one in wanted if name not in ("skip", "limit")]
        if key == "users" and self.points.filter != "contains":
            kept = [(name, one) for name, one in kept if name != "filter"]
        rows: list[Row] = []
        while True:
            asks = urlencode([*kept, ("skip", len(rows)), ("limit", 1_000_000)])
            page = self._within("GET", asked["path"], query=asks)[key]
            rows += page
            if len(page) < 100:
                return rows

    def _is_listed(self, operation: str, row: Row, wanted: Row) -> bool:
        if row["userId"] in self._archived() and (
            self.points.past_users == "active" or (self.points.past_users == "list" and operation != "users.list")
        ):
            return False
        text = wanted.get("filter", "").casefold()
        match self.points.filter if text else "contains":
            case "email":
                return text in row["email"].casefold()
            case "equals":
                return text in (row["email"].casefold(), f"{row['firstName']} {row['lastName']}".casefold())
        return True

    def _ordered(self, rows: list[Row], id: str | None = None) -> list[Any]:
        """The rows in this service's order, the same each time."""
        if self.points.order == "reversed":
            return rows[::-1]
        if self.points.order == "shuffled":
            return sorted(rows, key=lambda row: random.Random(f"{self._seed}{row[id] if id else row}").random())  # noqa: S311  no secret
        return rows

    def _unset(self, kind: str, row: Row) -> Row:
        """The row with what this service says of values that are not set."""
        row = {key: value for key, value in row.items() if value is not None}
        if self.points.unset != "absent":
            blank = self.points.unset == "blank"
            row |= {key: "" if blank and key in _TEXTS else None for key in _UNSET[kind] if key not in row}
        for flag in _FLAGS:
            if row.get(flag) is False and self.points.false != "false":
                row.pop(flag)
                row |= {flag: None} if self.points.false == "null" else {}
        return row

    # People

    def _shown_people(self, people: list[Row]) -> list[Row]:
        with self.store.read_transaction() as repository:
            fields, members = _fields(repository), self._smart_members(repository)
            answers = [_answers(repository, row["userId"]) for row in people]
        return [self._shown_person(row, fields, given, members) for row, given in zip(people, answers, strict=True)]

    def _shown_person(
        self, row: Row, fields: Sequence[Field], given: Mapping[str, list[str] | str], members: Mapping[str, set[str]]
    ) -> Row:
        row = self._unset("user", row)
        if "customFields" in row:
            row["customFields"] = shown_answers(self.points, fields, given)
        if "memberOfGroups" in row:
            words = dict(zip(_TYPES, str(self.points.group_types).split(), strict=False))
            held = [one for one in row["memberOfGroups"] if one["groupType"] == "GROUP"]
            if row["userId"] in self._archived() and self.points.past_members == "absent":
                held, row["managerOfGroups"] = [], []
            for id, name in self._rows("SELECT id, name FROM groups WHERE kind = 'SMART_GROUP' ORDER BY seq"):
                if row["userId"] in members[str(id)]:
                    held.append({"groupId": id, "groupType": "SMART_GROUP", "name": name})
            held = [one | {"groupType": words[one["groupType"]]} for one in held]
            row["memberOfGroups"] = self._ordered(held, "groupId")
            row["managerOfGroups"] = [one | {"groupType": words[one["groupType"]]} for one in row["managerOfGroups"]]
        return row

    def _smart_members(self, repository: Repository) -> dict[str, set[str]]:
        """Smart group → its members, as this service reads its conditions."""
        people = repository.rows("SELECT id, archived_at FROM people ORDER BY seq")
        counted = [str(id) for id, past in people if past is None or self.points.past_smart == "listed"]
        given = {id: _answers(repository, id) for id in counted}
        members: dict[str, set[str]] = {}
        for (group,) in repository.rows("SELECT id FROM groups WHERE kind = 'SMART_GROUP'"):
            meets = set(counted)
            for position, field, system in repository.rows(
                "SELECT position, field, system_condition FROM conditions WHERE grp = ?", group
            ):
                chosen = "SELECT choice FROM condition_choices WHERE grp = ? AND position = ?"
                choices = set(repository.column(chosen, group, position))
                means = "choices" if system is None else self.points.is_any_beside if choices else self.points.is_any
                if means == "any-answer":
                    meets = {one for one in meets if field in given[one]}
                elif means != "all":
                    meets = {one for one in meets if choices & set(given[one].get(str(field), []))}
            members[str(group)] = meets
        return members

    def _archived(self) -> set[str]:
        return set(self._column("SELECT id FROM people WHERE archived_at IS NOT NULL"))

    def _get_user(self, asked: Row, wanted: Row, told: Row) -> Row:
        return self._shown_people([self._within("GET", asked["path"])])[0]

    def _create_user(self, asked: Row, wanted: Row, told: Row) -> object:
        if not told.get("email"):
            raise Refused(REFUSED, "an account needs its address")
        made = self._within("POST", "/users", told)
        if not made["newUser"] and self.points.account == "refused":
            raise Refused(REFUSED, "there is an account with that address")
        return made

    def _answer_fields(self, asked: Row, wanted: Row, told: Row) -> None:
        key = str(self.points.answer_key)
        given = told.get(key) if key else told
        if not isinstance(given, dict) or (key and set(told) != {key} and self.points.unknown == "refused"):
            raise Refused(REFUSED, f"the answers are under {key}" if key else "the body is a map")
        with self.store.read_transaction() as repository:
            fields = {field.id: field for field in _fields(repository)}
        answers: Row = {}
        for id, value in given.items():
            if id in fields:
                read = read_answer(self.points, fields[id], value)
                answers[id] = read[0] if isinstance(read, list) and fields[id].type == "CHOICE" else read
            elif self.points.unknown == "refused":
                raise Refused(REFUSED, f"there is no field {id}")
        return self._within("POST", asked["path"], answers)  # type: ignore[no-any-return]  # it is None

    def _make_manager(self, asked: Row, wanted: Row, told: Row) -> None:
        self._within("POST", asked["path"])
        if asked["endow"] == "false" and self.points.losing == "ends":
            with self.store.write_transaction() as repository:
                repository.execute("DELETE FROM managers WHERE person = ?", asked["userId"])

    # Groups

    def _named(self, table: str, kind: str, name: str, own: str = "") -> str:
        """The name as it is kept. Raises Refused for one that is too long, or not unique."""
        name = name.strip() if self.points.trimmed == "yes" else name
        if len(name) > int(self.points.longest):
            raise Refused(REFUSED, f"a name has at most {self.points.longest} characters")
        of_kind = f" AND kind = '{kind}'" if kind else ""
        others = self._column(f"SELECT name FROM {table} WHERE id != ?{of_kind}", own)  # noqa: S608  names of this module
        cased = str.casefold if self.points.unique == "case" else str
        if self.points.unique != "no" and cased(name) in map(cased, others):
            raise Refused(REFUSED, "that name is taken")
        return name

    def _create_group(self, asked: Row, wanted: Row, told: Row) -> object:
        body = {**told, "name": self._named("groups", _kind(asked), told.get("name", ""))}
        for key in ("memberIds", "managerIds", "managers"):
            if key in told:
                body[key] = self._accepted("members" if key == "memberIds" else "managers", told[key])
        made = self._within("POST", asked["path"], body)
        self._give_rights(body.get("managerIds", body.get("managers", [])))
        return made

    def _rename(self, asked: Row, wanted: Row, told: Row) -> object:
        if not told.get("name"):
            raise Refused(REFUSED, "a group has a name")
        name = self._named("groups", _kind(asked), told["name"], _group(asked))
        return self._within("POST", asked["path"], {"name": name})

    def _delete_group(self, asked: Row, wanted: Row, told: Row) -> object:
        targets = self._rows("SELECT * FROM targets WHERE audience = ? AND kind = ?", _group(asked), _kind(asked))
        if targets and self.points.deleting == "refused":
            raise Refused(REFUSED, "content is assigned to the group")
        value = self._within("DELETE", asked["path"])
        if self.points.deleting == "stay":
            with self.store.write_transaction() as repository:
                repository.execute_many(f"INSERT INTO targets VALUES ({','.join('?' * 10)})", targets)  # noqa: S608  question marks
        return value

    def _people(self, asked: Row, wanted: Row, told: Row) -> object:
        if _group(asked) == "EVERYONE" and self.points.everyone == "readable" and _listed(asked) == "members":
            return {"userIds": self._column("SELECT id FROM people WHERE archived_at IS NULL")}
        return {"userIds": self._ordered(self._without_past(self._within("GET", asked["path"])["userIds"]))}

    def _in_list(self, asked: Row) -> set[str]:
        return set(self._column(f"SELECT person FROM {_listed(asked)} WHERE grp = ?", _group(asked)))  # noqa: S608  tables

    def _without_past(self, ids: Iterable[Any]) -> list[Any]:
        past = self._archived() if self.points.past_members == "absent" else set()
        return [id for id in ids if id not in past]

    def _add(self, asked: Row, wanted: Row, told: Row) -> None:
        points, ids, table = self.points, told.get("userIds"), _listed(asked)
        if not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
            if ids is None and points.unknown == "passed-over":
                return
            raise Refused(REFUSED, "the call names nobody")
        there = self._in_list(asked)
        if points.listed == "refused" and points.add == "adds" and there & set(ids):
            raise Refused(REFUSED, "somebody is in the list already")
        if len(set(ids) if points.counted == "distinct" else ids) > int(points.batch):
            raise Refused(REFUSED, f"a call takes {points.batch} people")
        # A list that is replaced is the one that is shown; who is in it already is not judged again.
        known = there if points.add == "replaces" else set()
        ids = [*(id for id in ids if id in known), *self._accepted(table, [id for id in ids if id not in known])]
        if points.add == "replaces" and points.past_members == "absent":
            ids += sorted(there & self._archived())
        self._within("POST", asked["path"], {"userIds": ids})
        if table == "managers":
            self._give_rights(ids)

    def _accepted(self, table: str, ids: list[str]) -> list[str]:
        """The people that a call adds. Raises Refused."""
        points = self.points
        rows = self._rows("SELECT id, archived_at, admin OR manager FROM people")
        past, able = {str(id): at is not None for id, at, _ in rows}, {str(id): bool(right) for id, _, right in rows}
        kept: list[str] = []
        for id in dict.fromkeys(ids):
            how = points.stranger if id not in past else points.archived if past[id] else "taken"
            if how == "refused":
                raise Refused(REFUSED, f"{id} cannot be added")
            if table == "managers" and points.manage == "with-right" and not able.get(id):
                raise Refused(REFUSED, f"{id} has no manager rights")
            kept += [id] if how == "taken" else []
        return kept

    def _give_rights(self, ids: list[str]) -> None:
        if self.points.manage == "given":
            with self.store.write_transaction() as repository:
                for id in ids:
                    repository.execute("UPDATE people SET manager = TRUE WHERE id = ? AND NOT admin", id)

    def _remove(self, asked: Row, wanted: Row, told: Row) -> object:
        if asked["userId"] not in self._in_list(asked) and self.points.removing == "missing":
            raise Refused(MISSING, "nobody of that id is in the list")
        return self._within("DELETE", asked["path"])

    def _get_smart_group(self, asked: Row, wanted: Row, told: Row) -> Row:
        group: Row = self._within("GET", asked["path"])
        for condition in group["conditions"]:
            if "systemCondition" not in condition and self.points.system != "absent":
                condition["systemCondition"] = None if self.points.system == "null" else self.points.system
        group["managers"] = self._ordered(self._without_past(group["managers"]))
        if wanted.get("includeMembers") == "true":
            with self.store.read_transaction() as repository:
                group["members"] = self._ordered(sorted(self._smart_members(repository)[asked["smartGroupId"]]))
        elif self.points.unset != "absent":
            group["members"] = None
        return group

    # Custom fields

    def _shown_field(self, field: Row) -> Row:
        shown = self._unset("field", field)
        if shown["type"] == "TEXT" and self.points.unset != "absent":
            shown["choices"] = None if self.points.unset == "null" else []
        return shown

    def _list_fields(self, asked: Row, wanted: Row, told: Row) -> Row:
        fields = [self._shown_field(field) for field in self._within("GET", "/custom-fields")["customFields"]]
        return {"customFields": self._ordered(fields, "id")}

    def _described(self, told: Row) -> Row:
        """A field's body. Raises Refused for a description that this service does not take."""
        how, text = self.points.clear_description, told.get("description", "a")
        if (text is None and how == "empty") or (text == "" and how == "null"):
            raise Refused(REFUSED, "this is no description")
        return {**told, "description": told["description"] or None} if "description" in told else told

    def _create_field(self, asked: Row, wanted: Row, told: Row) -> Row:
        body = {**self._described(told), "name": self._named("fields", "", told.get("name", ""))}
        return self._shown_field(self._within("POST", "/custom-fields", body))

    def _replace_field(self, asked: Row, wanted: Row, told: Row) -> Row:
        id = asked["customFieldId"]
        body = {**self._described(told), "name": self._named("fields", "", told.get("name", ""), id)}
        live = next((one for one in self._within("GET", "/custom-fields")["customFields"] if one["id"] == id), None)
        if live is None:
            raise Refused(MISSING, "there is no such field")
        kept = {one.get("choiceId") for one in told.get("choices") or []}
        self._refuse_in_use(id, [one["choiceId"] for one in live.get("choices", []) if one["choiceId"] not in kept])
        if self.points.put == "keeps":
            optional = ("description", "isHidden", "isLocked", "isOptional")
            body = {**{key: live[key] for key in optional if key in live}, **body}
        return self._shown_field(self._within("PUT", asked["path"], body))

    def _delete_field(self, asked: Row, wanted: Row, told: Row) -> object:
        self._refuse_in_use(asked["customFieldId"], None)
        return self._within("DELETE", asked["path"])

    def _refuse_in_use(self, field: str, removed: list[str] | None) -> None:
        """403 for a field in use. removed: the choices that a PUT leaves out; None: the field is deleted."""
        named = self._column("SELECT 'x' FROM conditions WHERE field = ?", field)
        answered = self._column("SELECT 'x' FROM answers WHERE field = ?", field)
        choices = self._column("SELECT choice FROM condition_choices WHERE field = ?", field)
        choices += self._column("SELECT choice FROM answers WHERE field = ?", field)
        rule = self.points.in_use
        used = named if rule == "condition" else answered if rule == "answers" else [*named, *answered]
        if rule == "removed" and removed is not None:
            used = [choice for choice in removed if choice in choices]
        if used:
            raise Refused(403, "the field is in use")

    # Targets

    def _list_targets(self, asked: Row, wanted: Row, told: Row) -> Row:
        query = urlencode({"contentId": wanted.get("contentId", "")})
        targets = self._within("GET", "/content/targets", query=query)["targets"]
        return {"targets": self._ordered([self._shown_target(one) for one in targets], "targetId")}

    def _shown_target(self, target: Row) -> Row:
        word = dict(zip(_TYPES, str(self.points.types).split(), strict=True))[target["targetType"]]
        times = {key: self._shown_time(int(target[key])) for key in _TIMES if key in target}
        shown = self._unset("target", {**target, "targetType": word, **times})
        known = self._column("SELECT id FROM groups WHERE id = ?", target["targetId"])
        if target["targetType"] in ("GROUP", "SMART_GROUP") and not known:
            shown["name"] = None
        return shown

    def _shown_time(self, instant: int) -> str:
        moment = datetime.fromtimestamp(instant / 1000, UTC)
        iso = moment.strftime("%Y-%m-%dT%H:%M:%S")
        return {
            "z": f"{iso}Z",
            "ms-z": f"{iso}.{instant % 1000:03d}Z",
            "+00:00": f"{iso}+00:00",
            "+02:00": moment.astimezone(timezone(timedelta(hours=2))).isoformat(timespec="seconds"),
            "+0000": f"{iso}+0000",
            "local": iso,
            "epoch": str(instant),
        }[str(self.points.time_shown)]

    def _read_time(self, value: object) -> int:
        """The instant of a time in a body. Raises Refused for a form that this service does not take."""
        how, text = self.points.time_taken, value if isinstance(value, str) else ""
        day, zone = r"\d{4}-\d\d-\d\dT\d\d:\d\d", r"(Z|[+-]\d\d:?\d\d)"
        forms = {
            "iso": rf"{day}(:\d\d(\.\d+)?)?{zone}",
            "iso-ms": rf"{day}:\d\d\.\d{{3}}{zone}",
            "iso-z": rf"{day}:\d\dZ",
            "local": rf"{day}:\d\d",
            "epoch": r"\d{11,15}",
        }
        if isinstance(value, int) and not isinstance(value, bool) and how in ("number", "any"):
            instant = value
        elif how in ("epoch", "any") and re.fullmatch(forms["epoch"], text):
            instant = int(text)
        elif how not in ("epoch", "number") and re.fullmatch(forms["iso" if how == "any" else str(how)], text):
            moment = datetime.fromisoformat(text)
            instant = round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)
        else:
            raise Refused(REFUSED, f"{value} is not a time")
        step = {"ms": 1, "second": 1000, "minute": 60_000}[str(self.points.precision)]
        return instant // step * step

    def _create_target(self, asked: Row, wanted: Row, told: Row) -> None:
        points = self.points
        if not told.get("contentId") or ("userId" in told) == ("targetId" in told):
            raise Refused(REFUSED, "a target has a content, and a user or a group")
        body = dict(told)
        for key in ("startTime", "finishTime"):
            if key not in told:
                continue
            clears = {"null": [None], "empty": [""], "both": [None, ""], "neither": []}[str(points.clear_time)]
            body[key] = None if told[key] in clears else self._read_time(told[key])
        live = self._live_target(str(told["contentId"]), str(told.get("userId") or told.get("targetId")))
        if live is not None and points.existing in ("refused", "ignored"):
            if points.existing == "refused":
                raise Refused(REFUSED, "this is assigned already")
            return
        if live is not None and points.existing == "keep":
            body = {**live, **body}
        self._within("POST", "/content/targets", body)

    def _live_target(self, content: str, audience: str) -> Row | None:
        rows = self._rows(
            "SELECT mandatory, start, finish FROM targets WHERE content = ? AND audience = ?", content, audience
        )
        return {"mandatory": bool(rows[0][0]), "startTime": rows[0][1], "finishTime": rows[0][2]} if rows else None

    def _delete_target(self, asked: Row, wanted: Row, told: Row) -> None:
        words = str(self.points.types).split()
        kinds = [type for type, word in zip(_TYPES, words, strict=True) if word == told.get("targetType")]
        if not kinds or not told.get("contentId") or not told.get("targetId"):
            raise Refused(REFUSED, "a target has a content, a type and an id")
        with self.store.write_transaction() as repository:
            gone = "DELETE FROM targets WHERE content = ? AND kind = ? AND audience = ?"
            done = sum(repository.execute(gone, told["contentId"], kind, told["targetId"]) for kind in kinds)
        if not done and self.points.target_gone == "missing":
            raise Refused(MISSING, "there is no such target")


def _kind(asked: Row) -> str:
    return "GROUP" if asked["operation"].startswith("manual") else "SMART_GROUP"


def _group(asked: Row) -> str:
    return str(asked.get("groupId") or asked.get("smartGroupId"))


def _listed(asked: Row) -> str:
    """The list of a group that a request is about, which is a table within."""
    return "managers" if "manager" in asked["operation"].partition(".")[2] else "members"


def _fields(repository: Repository) -> list[Field]:
    choices: dict[str, dict[str, str]] = {}
    for field, id, name in repository.rows("SELECT field, id, name FROM choices ORDER BY position"):
        choices.setdefault(str(field), {})[str(id)] = str(name)
    rows = repository.rows("SELECT id, name, type FROM fields ORDER BY seq")
    return [Field(str(id), str(name), str(type), choices.get(str(id), {})) for id, name, type in rows]


def _answers(repository: Repository, person: str) -> dict[str, list[str] | str]:
    """Field → the ids of the choices, or the text."""
    given: dict[str, list[str] | str] = {}
    for field, choice, text in repository.rows("SELECT field, choice, text FROM answers WHERE person = ?", person):
        given[str(field)] = str(text) if not choice else [*given.get(str(field), []), str(choice)]
    return given


def _ids(points: Points, seed: int) -> Callable[[str], str] | None:
    if points.ids == "digits":
        # A target names its group by an id alone, so no two kinds can have the same one.
        number = count(1)
        return lambda prefix: str(next(number))
    if points.ids == "uuid":
        dice = random.Random(seed)  # noqa: S311  no secret
        return lambda prefix: str(uuid.UUID(int=dice.getrandbits(128)))
    return None


def _response(status: int, text: str, type: str = "application/json") -> SandboxResponse:
    body = text.encode()
    return SandboxResponse(status, {"content-type": type, "content-length": str(len(body))}, body)
