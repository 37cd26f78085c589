"""Edits of a workspace by somebody else, through the API, and whether they are still there."""

from collections.abc import Callable
from typing import Any, Final

from laws.sandbox_project import Raw, SandboxProject

from lmsconf.api.client import Client
from lmsconf.api.sdk.service import Service
from lmsconf.errors import Rejected
from lmsconf.model.plan import Plan

EDITS: Final = (
    *("add", "remove", "rename", "rename-smart", "mandatory", "conditions", "describe", "assign", "create"),
    "answer",
)
Check = Callable[[Raw], bool]


class HandEdits:
    """Edits by hand, each with what must hold after an undo that leaves them alone."""

    def __init__(self, stage: SandboxProject) -> None:
        self._stage = stage
        self._checks: dict[str, Check] = {}
        self._made: dict[str, set[str]] = {}
        self._number = 0

    def edit(self, kind: str, which: int, what: int) -> None:
        """Make one edit, of the thing that `which` chooses, if there is one and the service takes it."""
        client = self._stage.workspace.connection.worker_pool(1)
        with client as pool:
            pool.submit(lambda client: self._edit(client, kind, which, what)).result()

    def check(self, raw: Raw, undo: Plan) -> None:
        """All edits are there."""
        for name, check in self._checks.items():
            assert check(raw), "\n".join(map(str, [name, *undo.changes, *undo.problems]))

    def _edit(self, client: Client, kind: str, which: int, what: int) -> None:
        self._number += 1
        try:
            getattr(self, f"_{kind.replace('-', '_')}")(Service(client), which, what)
        except Rejected:
            return

    def _one(self, kind: str, which: int) -> tuple[str, dict[str, Any]] | None:
        rows = [(id, said) for (of, id), said in self._stage.look().items() if of == kind]
        return rows[which % len(rows)] if rows else None

    def _person(self, what: int) -> str:
        row = self._one("user", what)
        assert row is not None
        return row[0]

    def _add(self, service: Service, which: int, what: int) -> None:
        if (row := self._one("group", which)) is not None:
            id, person = row[0], self._person(what)
            if person in row[1]["members"]:
                return
            service.groups.add_members(id, [person])
            if self._checks.pop(f"remove {id} {person}", None) is not None:
                return  # nothing differs any more from what the run made
            self._checks[f"add {id} {person}"] = lambda raw: person in _at(raw, "group", id).get("members", ())

    def _remove(self, service: Service, which: int, what: int) -> None:
        row = self._one("group", which)
        if row is not None and row[1]["members"]:
            id, person = row[0], row[1]["members"][what % len(row[1]["members"])]
            service.groups.remove_member(id, person)
            if self._checks.pop(f"add {id} {person}", None) is not None:
                return
            self._checks[f"remove {id} {person}"] = lambda raw: person not in _at(raw, "group", id).get("members", ())

    def _rename(self, service: Service, which: int, what: int) -> None:
        if (row := self._one("group", which)) is not None:
            id, name = row[0], f"By hand {self._number}"
            service.groups.rename(id, name)
            self._checks[f"rename {id}"] = lambda raw: _at(raw, "group", id).get("name") == name

    def _rename_smart(self, service: Service, which: int, what: int) -> None:
        if (row := self._one("smart_group", which)) is not None:
            id, name = row[0], f"By hand {self._number}"
            service.smart_groups.rename(id, name)
            self._checks[f"rename {id}"] = lambda raw: _at(raw, "smart_group", id).get("name") == name

    def _mandatory(self, service: Service, which: int, what: int) -> None:
        if (row := self._one("content_target", which)) is not None:
            id, said = row
            content, target = id.partition("/")[::2]
            wanted = not said["mandatory"]
            service.content_targets.create(content, target_id=target, mandatory=wanted)
            if self._checks.pop(f"target {id}", None) is not None:
                return
            self._checks[f"target {id}"] = lambda raw: _at(raw, "content_target", id).get("mandatory") == wanted

    def _conditions(self, service: Service, which: int, what: int) -> None:
        row, field = self._one("smart_group", which), self._one("custom_field", what)
        if row is not None and field is not None:
            id = row[0]
            service.smart_groups.replace_conditions(
                id, [{"customFieldId": field[0], "choiceIds": [], "systemCondition": f"BY_HAND_{self._number}"}]
            )
            word = f"BY_HAND_{self._number}"
            self._checks[f"conditions {id}"] = lambda raw: (
                [one.get("systemCondition") for one in _at(raw, "smart_group", id).get("conditions", [])] == [word]
            )

    def _describe(self, service: Service, which: int, what: int) -> None:
        if (row := self._one("custom_field", which)) is not None:
            id, said = row
            choices = [{"choiceId": one["choiceId"], "name": one["name"]} for one in said.get("choices") or []]
            text = f"By hand {self._number}"
            service.custom_fields.replace(
                id, str(said["name"]), said["type"], choices=choices or None, description=text
            )
            self._checks[f"describe {id}"] = lambda raw: _at(raw, "custom_field", id).get("description") == text

    def _answer(self, service: Service, which: int, what: int) -> None:
        if (row := self._one("custom_field", which)) is None:
            return
        (id, said), person = row, self._person(what)
        choices = [one["choiceId"] for one in said.get("choices") or []]
        wanted = {choices[(which + what) % len(choices)] if choices else f"By hand {self._number}"}
        key, made = f"answer {person} {id}", _answer_in(self._stage.look(), person, id)
        if said["type"] == "TEXT":
            service.users.update_custom_field_choice(person, text={id: min(wanted)})
        elif said["type"] == "CHOICE":
            service.users.update_custom_field_choice(person, choice={id: min(wanted)})
        else:
            service.users.update_custom_field_choice(person, multi_select={id: [*wanted]})
        made = self._made.setdefault(key, made)
        if wanted == made:
            self._checks.pop(key, None)
        elif said["type"] == "MULTI_SELECT":
            # A list is changed back item by item.
            added, removed = wanted - made, made - wanted
            self._checks[key] = lambda raw: added <= (held := _answer_in(raw, person, id)) and not removed & held
        else:
            self._checks[key] = lambda raw: _answer_in(raw, person, id) == wanted

    def _assign(self, service: Service, which: int, what: int) -> None:
        content, group = self._one("content", what), self._one("group", which)
        if content is None or group is None:
            return
        key = f"{content[0]}/{group[0]}"
        if ("content_target", key) not in self._stage.look():
            service.content_targets.create(content[0], target_id=group[0], mandatory=True)
            self._checks[f"target {key}"] = lambda raw: _at(raw, "content_target", key).get("mandatory") is True

    def _create(self, service: Service, which: int, what: int) -> None:
        id = service.groups.create(f"Made by hand {self._number}")["groupId"]
        self._checks[f"create {id}"] = lambda raw: ("group", id) in raw


def _answer_in(raw: Raw, person: str, field: str) -> set[str]:
    """The ids of the choices of an answer, or its text."""
    given = _at(raw, "user", person).get("customFields", {}).get(_at(raw, "custom_field", field).get("name"), {})
    return {one["choiceId"] for one in given.get("choices", [])} or {given["text"]} if given else set()


def _at(raw: Raw, kind: str, id: str) -> dict[str, Any]:
    return raw.get((kind, id), {})
