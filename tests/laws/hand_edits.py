"""Edits of a workspace by somebody else, through the API."""

from contextlib import suppress
from typing import Any, Final

from laws.sandbox_project import SandboxProject

from lmsconf.api.client import Client
from lmsconf.api.sdk.service import Service
from lmsconf.errors import Rejected

EDITS: Final = (
    *("add", "remove", "rename", "rename_smart", "mandatory", "conditions", "describe", "assign", "create"),
    *("answer", "answer"),  # which may be of any of three types
)


class NothingThere(LookupError):
    """The workspace has nothing of that kind."""


def edit_by_hand(stage: SandboxProject, word: str, which: int, what: int) -> None:
    """Make one edit, of the thing that `which` chooses, if there is one and the service takes it."""
    with stage.workspace.connection.worker_pool(1) as pool:
        pool.submit(lambda client: _Edit(stage, client, which, what).make(word)).result()


class _Edit:
    def __init__(self, stage: SandboxProject, client: Client, which: int, what: int) -> None:
        self._service, self._raw = Service(client), stage.look()
        self._which, self._what = which, what
        self._text = f"By hand {len(stage.sandbox.log)}"

    def make(self, word: str) -> None:
        with suppress(Rejected, NothingThere):
            getattr(self, f"_{word}")()

    def _one(self, kind: str, which: int) -> tuple[str, dict[str, Any]]:
        return _pick([(id, said) for (of, id), said in self._raw.items() if of == kind], which)

    def _add(self) -> None:
        self._service.groups.add_members(self._one("group", self._which)[0], [self._one("user", self._what)[0]])

    def _remove(self) -> None:
        id, said = self._one("group", self._which)
        self._service.groups.remove_member(id, _pick(said["members"], self._what))

    def _rename(self) -> None:
        self._service.groups.rename(self._one("group", self._which)[0], self._text)

    def _rename_smart(self) -> None:
        self._service.smart_groups.rename(self._one("smart_group", self._which)[0], self._text)

    def _mandatory(self) -> None:
        id, said = self._one("content_target", self._which)
        content, _, target = id.partition("/")
        self._service.content_targets.create(content, target_id=target, mandatory=not said["mandatory"])

    def _conditions(self) -> None:
        field, _ = self._one("custom_field", self._what)
        conditions = [{"customFieldId": field, "choiceIds": [], "systemCondition": self._text}]
        self._service.smart_groups.replace_conditions(self._one("smart_group", self._which)[0], conditions)

    def _describe(self) -> None:
        id, said = self._one("custom_field", self._which)
        self._service.custom_fields.replace(
            id, said["name"], said["type"], choices=said.get("choices"), description=self._text
        )

    def _assign(self) -> None:
        (content, _), (group, _) = self._one("content", self._what), self._one("group", self._which)
        if ("content_target", f"{content}/{group}") not in self._raw:
            self._service.content_targets.create(content, target_id=group, mandatory=True)

    def _create(self) -> None:
        self._service.groups.create(self._text)

    def _answer(self) -> None:
        (id, said), (person, _) = self._one("custom_field", self._which), self._one("user", self._what)
        choices = [one["choiceId"] for one in said.get("choices") or ()]
        answer = _pick(choices, self._which + self._what) if choices else self._text
        update = self._service.users.update_custom_field_choice
        if said["type"] == "TEXT":
            update(person, text={id: answer})
        elif said["type"] == "CHOICE":
            update(person, choice={id: answer})
        else:
            update(person, multi_select={id: [answer]})


def _pick(rows: list[Any], which: int) -> Any:
    if not rows:
        raise NothingThere
    return rows[which % len(rows)]
