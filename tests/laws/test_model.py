"""The sandbox does what a workspace of plain dictionaries does, whatever is asked of it in whatever order."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Final, TypeVar
from urllib.parse import urlencode

import httpx
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from laws.model import EVERYONE, GROUP, SMART_GROUP, Refused, Said
from laws.model_views import APPLICATIONS, ListedModel
from laws.sandbox_project import tried

from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.fill_sandbox import fill_workspace

pytestmark = pytest.mark.sampled(day=4, gate=6)  # minutes in all

names = st.sampled_from(["Coaches", "coaches", "Åre | 100 %", "Straße", ""])
field_names = st.sampled_from(["Unit", "Badge", "Åre"])
emails = st.sampled_from(["anna@x.example", "ANNA@x.example", "bo@x.example", "cy@x.example", "åse@x.example", "none"])
languages = st.sampled_from(["sv", "no", "uk", "SV"])
parts = st.sampled_from(["", "a", "ANNA", "åre", "strasse", "%", "_"])
written_names = {"firstName": names, "lastName": names}
metadata = st.dictionaries(st.sampled_from(["unit", "cost"]), st.sampled_from(["7", "ø"]))
written_languages = st.fixed_dictionaries({"language": languages})
written_metadata = st.fixed_dictionaries({"metadata": metadata})
times = st.sampled_from([None, "2025-12-31T23:00:00Z", "2026-01-01T02:00:00+01:00", "2026-02-01T00:00:00Z", "soon"])
kinds = st.sampled_from([GROUP, SMART_GROUP])
choice_names = st.lists(st.sampled_from(["East", "West", "Öst"]), max_size=3)
details = st.fixed_dictionaries(
    {},
    optional={
        "description": st.sampled_from(["Where", "", None]),
        "isHidden": st.booleans(),
        "isLocked": st.booleans(),
        "isOptional": st.booleans(),
    },
)


def mostly(ids: Iterable[str]) -> st.SearchStrategy[str]:
    """One of the ids, and now and then one that nothing has."""
    return st.sampled_from([*list(ids) * 9, "none"])


NOW: Final = 1_767_225_600_000  # 2026-01-01T00:00:00Z
HOUR: Final = 3_600_000
GRANTED: Final = {"authorization": "Bearer sandbox"}
CODES: Final = {400: "bad_request", 403: "forbidden", 404: "not_found", 409: "conflict"}
CONTENTS: Final = {"c-1": "COURSE", "c-2": "SCORM"}
NO_ORDER: Final = {"userIds", "managers", "members", "memberOfGroups", "managerOfGroups"}
PLACES: Final = {GROUP: "/groups", SMART_GROUP: "/smart-groups"}
LISTS: Final = [(GROUP, "members"), (GROUP, "managers"), (SMART_GROUP, "managers")]

T = TypeVar("T")
S = st.SearchStrategy


def live(draw: Callable[[Workspace], S[T]]) -> S[T]:
    """What can be drawn depends on what is in the workspace by then."""
    return st.runner().flatmap(draw)


person = live(lambda machine: mostly(machine.model.people))
people = live(lambda machine: st.lists(mostly(machine.model.people), max_size=3))
field = live(lambda machine: mostly(machine.model.fields))
content = st.sampled_from([*list(CONTENTS) * 3, "none"])
conditions = live(lambda machine: st.lists(machine.a_condition(), max_size=3))
answers = live(lambda machine: machine.some_answers())
audience = live(lambda machine: machine.an_audience())
target = live(lambda machine: st.sampled_from([*list(machine.model.targets) * 5, ("c-1", "USER", "none")]))
group = live(lambda machine: mostly(machine.model.groups))
smart_group = live(lambda machine: mostly(id for id, one in machine.model.groups.items() if one.kind == SMART_GROUP))


def in_order(said: Any) -> Any:
    """What was said, with everything that has no order in one: lists of people's ids, and of groups beside people."""
    if isinstance(said, list):
        return [in_order(one) for one in said]
    if not isinstance(said, dict):
        return said
    return {key: sorted(value, key=str) if key in NO_ORDER else in_order(value) for key, value in said.items()}


class Workspace(RuleBasedStateMachine):
    """A sandbox and a model that are told the same. Every answer and, after every step, every listing is the same."""

    dialect: ClassVar[Mapping[str, str | int]] = {}
    model: ListedModel

    def __init__(self) -> None:
        super().__init__()
        spec = ApiSpec(self.dialect)
        self.model = ListedModel(spec.behaviour, NOW, CONTENTS)
        self.sandbox = Sandbox(spec=spec, clock=lambda: self.model.now / 1000)
        with self.sandbox.store.write_transaction() as repository:
            seed = [{"name": f"Content {id}", "id": id, "type": type} for id, type in CONTENTS.items()]
            fill_workspace(repository, {"content": seed}, spec=spec)
        self.client = httpx.Client(transport=self.sandbox, base_url="http://sandbox", headers=GRANTED)

    def teardown(self) -> None:
        self.client.close()
        self.sandbox.close_workspace()

    # What is asked and what should come of it

    def told(self, method: str, path: str, body: object, expected: Callable[[Said], Said | None]) -> None:
        """Asks the sandbox, then the model, which is handed what the sandbox said; both say the same."""
        answer = self.client.request(method, path, json=body)
        heard: dict[str, Any] = answer.json() if answer.content else {}
        try:
            wanted = expected(heard)
            status = 204 if wanted is None else 200
        except Refused as refused:
            status, wanted = refused.status, {"error": CODES[refused.status], "message": heard.get("message")}
        assert (answer.status_code, in_order(heard)) == (status, in_order(wanted or {})), (method, path, body)

    def read(self, path: str, **query: str | int | bool) -> dict[str, Any]:
        """What the sandbox answers to a question that nothing is wrong with."""
        # Nearly all requests are reads, and most of their time would be httpx's own.
        answer = self.sandbox.answer("GET", path, urlencode(query).replace("=True", "=true"), GRANTED, b"")
        assert answer.status == 200, answer
        found: dict[str, Any] = in_order(json.loads(answer.body))
        return found

    def whole(self, path: str, key: str) -> list[Said]:
        """A listing to its end."""
        rows: list[Said] = []
        while more := self.read(path, skip=len(rows))[key]:
            rows += more
            if len(more) < self.largest_page:
                break
        return rows

    @property
    def largest_page(self) -> int:
        return int(self.model.behaviour("paging.limit"))

    @property
    def lists_the_one(self) -> bool:
        """Whether the one choice of a CHOICE field is written as a list."""
        return self.model.behaviour("users.update-custom-field-choice.value") == "list"

    # What can be said of a workspace as it is

    def a_condition(self) -> S[Said]:
        """A condition on a field: some of its choices, which are not always right, a system condition, or both."""

        def on(id: str) -> S[Said]:
            choices = self.model.fields[id].choices if id in self.model.fields else {}
            system = st.sampled_from(["IS_ANY", "IS_ANY", "IS_ODD"])
            parts = {"choiceIds": st.lists(mostly(choices), min_size=1, max_size=2), "systemCondition": system}
            said = [("systemCondition",), *([("choiceIds",), ("choiceIds",), tuple(parts)] if choices else [])]
            return st.sampled_from(said).flatmap(
                lambda keys: st.fixed_dictionaries({"customFieldId": st.just(id), **{key: parts[key] for key in keys}})
            )

        return mostly(self.model.fields).flatmap(on)

    def some_answers(self) -> S[Said]:
        """Answers to some fields, each of a form that its field can have, but for one that no field has."""
        chosen = st.lists(mostly(self.model.fields), max_size=3, unique=True)
        return chosen.flatmap(lambda ids: st.fixed_dictionaries({id: self._an_answer(id) for id in ids}))

    def _an_answer(self, id: str) -> S[object]:
        if id not in self.model.fields or self.model.fields[id].type == "TEXT":
            return st.sampled_from(["B-1", "ø", "", None])
        choices = mostly(self.model.fields[id].choices)
        if self.model.fields[id].type == "MULTI_SELECT" or self.lists_the_one:
            return st.lists(choices, max_size=2) | st.none()
        return choices | st.sampled_from(["", None])

    def an_audience(self) -> S[dict[str, str]]:
        """A person, a group of either kind, or everyone."""
        of_people = st.fixed_dictionaries({"userId": mostly(self.model.people)})
        return of_people | st.fixed_dictionaries({"targetId": mostly([*self.model.groups, EVERYONE])})

    # Accounts

    @initialize()
    def begin(self) -> None:
        """Nothing is as dull as an empty workspace: two people, three fields, a group of each kind."""
        for email in ("anna@x.example", "bo@x.example"):
            self.create_person(email, {"firstName": "Anna", "lastName": "Åre"})
        for name, type, choices in (("Unit", "CHOICE", ["East"]), ("Skills", "MULTI_SELECT", ["Öst", "West"])):
            self.create_field(name, type, choices, {})
        self.create_field("Badge", "TEXT", [], {})
        unit, skills, badge = self.model.fields
        east = min(self.model.fields[unit].choices)
        some: Said = {"customFieldId": unit, "choiceIds": [east], "systemCondition": "IS_ANY"}
        any: Said = {"customFieldId": badge, "systemCondition": "IS_ANY"}
        anna, bo = self.model.people
        self.create_smart_group("East", [some], [anna])
        self.create_smart_group("Coaches", [any, some], [])
        self.create_group("coaches", [anna, bo], [bo])
        for id in self.model.groups:
            self.assign("c-1", {"targetId": id}, True, None, None)
        self.answer(anna, {unit: [east] if self.lists_the_one else east, badge: "B-1"})
        self.answer(bo, {skills: list(self.model.fields[skills].choices)})

    @rule(email=emails, said=st.fixed_dictionaries({}, optional={**written_names, "language": languages}))
    def create_person(self, email: str, said: dict[str, str]) -> None:
        body = {"email": email, **said}
        self.told("POST", "/users", body, lambda heard: self.model.create_person(heard, body))

    @rule(id=person)
    def delete_person(self, id: str) -> None:
        self.told("DELETE", f"/users/{id}", None, lambda _: self.model.delete_person(id))

    @rule(id=person, back=st.booleans())
    def archive(self, id: str, back: bool) -> None:
        """Out of service, or back into it."""
        done = self.model.unarchive if back else self.model.archive
        self.told("POST", f"/users/{id}/{done.__name__}", None, lambda _: done(id))

    @rule(id=person, after=st.sampled_from([None, -HOUR, 0, HOUR, 48 * HOUR]))
    def set_archive_date(self, id: str, after: int | None) -> None:
        date = None if after is None else self.model.now + after
        path = f"/users/{id}/set-custom-archived-date"
        self.told("POST", path, {"date": date}, lambda _: self.model.set_archive_date(id, date))

    @rule(milliseconds=st.sampled_from([1000, HOUR, 30 * HOUR]))
    def wait(self, milliseconds: int) -> None:
        self.model.pass_time(milliseconds)

    @rule(id=person, right=st.sampled_from(["admin", "manager"]), given=st.booleans())
    def grant(self, id: str, right: str, given: bool) -> None:
        path = f"/users/{id}/make-{right}/{str(given).lower()}"
        self.told("POST", path, None, lambda _: self.model.grant(id, right, given))

    @rule(id=person, email=emails)
    def update_email(self, id: str, email: str) -> None:
        self.told("POST", f"/users/{id}/update-email", {"email": email}, lambda _: self.model.update_email(id, email))

    @rule(id=person, body=st.fixed_dictionaries({}, optional=written_names) | written_languages | written_metadata)
    def update_profile(self, id: str, body: dict[str, str] | dict[str, dict[str, str]]) -> None:
        """Names, the language, or metadata: each has a call of its own."""
        word = next((word for word in ("language", "metadata") if word in body), "fullname")
        self.told("POST", f"/users/{id}/update-{word}", body, lambda _: self.model.update_profile(id, body))

    @rule(id=person, action=st.sampled_from(["ADD", "REMOVE"]), application=st.sampled_from(APPLICATIONS))
    def set_access(self, id: str, action: str, application: str) -> None:
        body = {"applicationId": application}
        self.told(
            "POST", f"/users/{id}/access/{action}", body, lambda _: self.model.set_access(id, action, application)
        )

    @rule(id=person, said=answers)
    def answer(self, id: str, said: dict[str, str | list[str] | None]) -> None:
        wrapper = self.model.behaviour("users.update-custom-field-choice.wrapper")
        body = said if wrapper == "none" else {wrapper: said}
        self.told("POST", f"/users/{id}/update-custom-field-choice", body, lambda _: self.model.answer(id, said))

    @rule(said=answers, id=person)
    def answer_more(self, said: dict[str, str | list[str] | None], id: str) -> None:
        """Once more, because membership hangs on answers."""
        self.answer(id, said)

    # Custom fields

    @rule(
        name=field_names, type=st.sampled_from(["CHOICE", "MULTI_SELECT", "TEXT"]), choices=choice_names, said=details
    )
    def create_field(self, name: str, type: str, choices: list[str], said: Said) -> None:
        body = {"name": name, "type": type, "choices": [{"name": choice} for choice in choices], **said}
        if type == "TEXT" and len(choices) < 3:
            del body["choices"]
        self.told("POST", "/custom-fields", body, lambda heard: self.model.create_field(heard, body))

    @rule(count=st.integers(7, 10))
    def create_many_fields(self, count: int) -> None:
        for number in range(count):
            self.create_field(f"Badge {number}", "TEXT", [], {})

    @rule(data=st.data(), id=field, name=field_names, new=choice_names, said=details)
    def replace_field(self, data: st.DataObject, id: str, name: str, new: list[str], said: Said) -> None:
        live = self.model.fields.get(id)
        type = live.type if live else "CHOICE"
        kept = data.draw(st.lists(mostly(live.choices if live else ()), max_size=3))
        choices = [{"choiceId": choice, "name": f"Was {choice}"} for choice in kept] + [{"name": one} for one in new]
        body = {"name": name, "type": type, **said} | ({} if type == "TEXT" else {"choices": choices})
        self.told("PUT", f"/custom-fields/{id}", body, lambda heard: self.model.replace_field(heard, id, body))

    @rule(id=field)
    def delete_field(self, id: str) -> None:
        self.told("DELETE", f"/custom-fields/{id}", None, lambda _: self.model.delete_field(id))

    # Groups

    @rule(name=names, members=people, managers=people)
    def create_group(self, name: str, members: list[str], managers: list[str]) -> None:
        body = {"name": name, "memberIds": members, "managerIds": managers}
        self.told("POST", "/groups", body, lambda heard: self.model.create_group(heard, name, members, managers))

    @rule(name=names, said=conditions, managers=people)
    def create_smart_group(self, name: str, said: list[Said], managers: list[str]) -> None:
        body = {"name": name, "conditions": said, "managers": managers}
        self.told(
            "POST", "/smart-groups", body, lambda heard: self.model.create_smart_group(heard, name, said, managers)
        )

    @rule(id=smart_group, said=conditions)
    def replace_conditions(self, id: str, said: list[Said]) -> None:
        path, body = f"/smart-groups/{id}/replace-conditions", {"conditions": said}
        self.told("POST", path, body, lambda _: self.model.replace_conditions(id, said))

    @rule(kind=kinds, id=group, name=names)
    def rename_group(self, kind: str, id: str, name: str) -> None:
        self.told("POST", f"{PLACES[kind]}/{id}/rename", {"name": name}, lambda _: self.model.rename(id, kind, name))

    @rule(kind=kinds, id=group)
    def delete_group(self, kind: str, id: str) -> None:
        self.told("DELETE", f"{PLACES[kind]}/{id}", None, lambda _: self.model.delete_group(id, kind))

    @rule(place=st.sampled_from(LISTS), id=group, more=people)
    def add_people(self, place: tuple[str, str], id: str, more: list[str]) -> None:
        kind, listed = place
        path = f"{PLACES[kind]}/{id}/{listed}"
        self.told("POST", path, {"userIds": more}, lambda _: self.model.add_people(id, kind, listed, more))

    @rule(place=st.sampled_from(LISTS), id=group, one=person)
    def remove_person(self, place: tuple[str, str], id: str, one: str) -> None:
        kind, listed = place
        path = f"{PLACES[kind]}/{id}/{listed}/{one}"
        self.told("DELETE", path, None, lambda _: self.model.remove_person(id, kind, listed, one))

    # Content targets

    @rule(content=content, audience=audience, mandatory=st.booleans(), start=times, finish=times)
    def assign(
        self, content: str, audience: dict[str, str], mandatory: bool, start: str | None, finish: str | None
    ) -> None:
        body = {"contentId": content, **audience, "mandatory": mandatory, "startTime": start, "finishTime": finish}
        # A start that is open is said as null, a finish is left out, as is what is false.
        said = {key: value for key, value in body.items() if value is not False and (value or key != "finishTime")}
        self.told(
            "POST", "/content/targets", said, lambda _: self.model.assign(content, audience, mandatory, start, finish)
        )

    @rule(key=target)
    def withdraw(self, key: tuple[str, str, str]) -> None:
        body = dict(zip(("contentId", "targetType", "targetId"), key, strict=True))
        self.told("DELETE", "/content/targets", body, lambda _: self.model.withdraw(*key))

    # Listings

    @rule(skip=st.integers(0, 3), limit=st.integers(0, 3), part=parts)
    def turn_pages(self, skip: int, limit: int, part: str) -> None:
        """Any page of any listing is that part of the whole, of those who fit its filter."""
        model, cut = self.model, min(limit, self.largest_page)
        for path, rows in (("/users", model.users()), ("/users/extended-info", model.extended())):
            found = model.matching(rows, part)
            said: Said = {"skip": skip, "limit": cut, "filter": part, "matchCount": len(found)}
            found = found[skip : skip + cut]
            assert self.read(path, skip=skip, limit=limit, filter=part) == said | {"users": found}
        groups, smart = model.listed_groups(GROUP), model.listed_groups(SMART_GROUP, part)
        assert self.read("/groups", skip=skip, limit=limit)["groups"] == groups[skip : skip + cut]
        found = smart[skip : skip + cut]
        assert self.read("/smart-groups", skip=skip, limit=limit, filter=part) == {"smartGroups": found}

    @rule(text=parts, pairs=metadata, groups=st.booleans(), skip=st.integers(0, 2))
    def search(self, text: str, pairs: dict[str, str], groups: bool, skip: int) -> None:
        """A search finds those who fit, page by page, as the model does."""
        found = self.model.search(text, pairs, groups)
        body = {"text": text, "metadata": pairs, "includeGroups": groups, "skip": skip, "limit": 2}
        wanted: Said = {"users": found[skip : skip + 2], "matchCount": len(found)}
        self.told("POST", "/users/search", body, lambda _: wanted)

    @invariant()
    def listings_agree(self) -> None:
        """Whatever can be read is as the model has it, of groups with the members that they have by then."""
        model = self.model
        assert self.whole("/users", "users") == model.users()
        assert self.whole("/users/extended-info", "users") == model.extended()
        for id in model.people:
            assert self.read(f"/users/{id}") == model.user(id)
        for kind, key in ((GROUP, "groups"), (SMART_GROUP, "smartGroups")):
            assert self.whole(PLACES[kind], key) == model.listed_groups(kind)
        for id, group in model.groups.items():
            for kind, listed in LISTS:
                if kind == group.kind:
                    assert self.read(f"{PLACES[kind]}/{id}/{listed}")["userIds"] == sorted(getattr(group, listed))
            if group.kind == SMART_GROUP:
                assert self.read(f"/smart-groups/{id}", includeMembers=True) == model.smart_group(id)
        assert self.read("/custom-fields")["customFields"] == [model.shown_field(id) for id in model.fields]
        for content in CONTENTS:
            assert self.read("/content/targets", contentId=content)["targets"] == model.listed_targets(content)


# Everything that a dialect can say of it is said otherwise.
SECOND: Final[Mapping[str, str | int]] = {
    "paging.limit": 2,
    "custom-fields.in-use": "never",
    "content-targets.on-existing": "recreate",
    "users.update-custom-field-choice.wrapper": "customFields",
    "users.update-custom-field-choice.value": "list",
    "users.update-custom-field-choice.omitted": "clear",
    **{f"users.update-custom-field-choice.clear-{type}": "null" for type in ("choice", "multi-select", "text")},
    "users.update-metadata.mode": "merge",
}


@pytest.mark.parametrize(
    ("dialect", "runs"),
    [({}, 300), (SECOND, 80), ({"custom-fields.in-use": "removed-choice"}, 30)],
    ids=["assumed", "second", "only choices in use"],
)
def test_the_sandbox_is_as_its_model(dialect: Mapping[str, str | int], runs: int) -> None:
    """In runs of 30 steps, in three dialects, no answer and no listing of the sandbox differs from the model's."""
    machine = type("Workspace", (Workspace,), {"dialect": dialect})
    run_state_machine_as_test(machine, settings=settings(tried(runs), stateful_step_count=30))
