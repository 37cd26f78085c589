"""A read that fails, is short, repeats or is cut never becomes a creation or a deletion, at any page of any list."""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from lmsconf.api.spec import ApiSpec
from lmsconf.errors import LmsconfError, ProblemsFound
from lmsconf.model.plan import Action, Plan
from lmsconf.sandbox.service import Sandbox

from .served_project import LinkedProject, linked, numbered

GROUP: Final = "{{name: G{n}, members: [p{n}@acme.example], managers: [p0@acme.example]}}"
SAME: Final = numbered("custom_fields", range(3), "{{name: F{n}, type: CHOICE, choices: [A, B]}}") + numbered(
    "content_targets", range(3), "{{content: C{n}, assign_to: [{{group: G{n}}}, {{smart_group: S{n}}}, everyone]}}"
)
SEED: Final = (
    SAME
    + numbered("people", range(7), "{{email: p{n}@acme.example, id: u-{n}}}")
    + numbered("groups", range(6), GROUP.replace("G{n},", "G{n}, id: g-{n},"))
    + numbered("smart_groups", range(6), "{{name: S{n}, id: s-{n}, conditions: [{{field: F{m}, choices: [A]}}]}}")
    + numbered("content", range(5), "{{name: C{n}, id: c-{n}}}")
)
WANTED: Final = (
    SAME
    + numbered("groups", range(5), GROUP)
    + "  - {name: New, members: [p1@acme.example]}\n"
    + numbered("smart_groups", range(5), "{{name: S{n}, conditions: [{{field: F{m}, choices: [A]}}]}}")
    + "  - {name: New smart, conditions: [{field: F1, choices: [B]}]}\n"
    + "absent: {groups: [G9], content_targets: [{content: C4, assign_to: [everyone]}]}\n"
)
"""Most of what is live, one group and one smart group more, and one of each less: those are owned, and go."""
OWNED: Final = "ownership: {groups: all, smart_groups: all, custom_fields: all, content_targets: declared_content}\n"
PAGE: Final = 2

Answer = Callable[[httpx.Request], httpx.Response]
Spoil = Callable[[Answer, httpx.Request], httpx.Response]


def rows_of(said: dict[str, Any]) -> str | None:
    """The key of an answer's list."""
    return next((key for key, value in said.items() if isinstance(value, list)), None)


def edited(edit: Callable[[list[Any]], list[Any]]) -> Spoil:
    """The right answer with its list edited."""

    def spoil(ask: Answer, request: httpx.Request) -> httpx.Response:
        said = json.loads(ask(request).read())
        key = rows_of(said)
        return httpx.Response(200, json=said if key is None else {**said, key: edit(said[key])})

    return spoil


def recounted(edit: Callable[[int], int]) -> Spoil:
    """The right answer with another total."""

    def spoil(ask: Answer, request: httpx.Request) -> httpx.Response:
        said = json.loads(ask(request).read())
        counts = {key: edit(said[key]) for key in ("matchCount", "total") if key in said}
        return httpx.Response(200, json={**said, **counts})

    return spoil


def repeated(ask: Answer, request: httpx.Request) -> httpx.Response:
    """The page before, as if it were this one."""
    skip = int(request.url.params.get("skip", "0"))
    url = request.url.copy_merge_params({"skip": str(max(0, skip - PAGE))}) if skip else request.url
    return ask(httpx.Request("GET", url, headers=request.headers))


def cut(ask: Answer, request: httpx.Request) -> httpx.Response:
    """The first half of the right answer."""
    body = ask(request).read()
    return httpx.Response(200, content=body[: len(body) // 2], headers={"content-type": "application/json"})


SPOILS: Final[Mapping[str, Spoil]] = {
    "500": lambda ask, request: httpx.Response(500, json={"error": "oops"}),
    "404": lambda ask, request: httpx.Response(404, json={"error": "not found"}),
    "no list": lambda ask, request: httpx.Response(200, json={}),
    "null list": lambda ask, request: httpx.Response(200, json={rows_of(json.loads(ask(request).read())) or "x": None}),
    "cut": cut,
    "repeated": repeated,
    "first row missing": edited(lambda rows: rows[1:]),
    "last row missing": edited(lambda rows: rows[:-1]),
    "empty": edited(lambda rows: []),
    "one more": recounted(lambda count: count + 1),
    "one less": recounted(lambda count: count - 1),
    "none counted": recounted(lambda count: 0),
}


@dataclass
class Spoiled(httpx.BaseTransport):
    """A workspace of which one read goes wrong: every time, or only the first."""

    sandbox: Sandbox
    url: str | None = None
    spoil: Spoil | None = None
    times: int = 2**31
    asked: list[str] = field(default_factory=list)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url.raw_path.decode()
        self.asked.append(url)
        if url != self.url or self.spoil is None or self.times < 1:
            return self.sandbox.handle_request(request)
        self.times -= 1
        return self.spoil(self.sandbox.handle_request, request)


def planned(world: LinkedProject, transport: Spoiled) -> Plan:
    """The plan, read in pages of two. Raises LmsconfError."""
    return world.plan(world.reader(transport, ApiSpec({"paging.limit": PAGE}), parallelism=2))


def radical(plan: Plan) -> set[tuple[str, str]]:
    """What a plan creates and deletes."""
    return {(one.action, str(one.address)) for one in plan.changes if one.action is not Action.UPDATE}


@pytest.fixture
def world(tmp_path: Path) -> Iterator[LinkedProject]:
    with linked(tmp_path, SEED, WANTED, OWNED) as world:
        yield world


SHORT: Final = ("first row missing", "last row missing", "empty")


def spoiled(world: LinkedProject, url: str, name: str, times: int) -> set[tuple[str, str]] | None:
    """What a plan creates and deletes where that read is spoiled; None where there is an error instead."""
    with suppress(LmsconfError):
        return radical(planned(world, Spoiled(world.sandbox, url, SPOILS[name], times)))
    return None


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    ("name", "times"),
    [*((name, 2**31) for name in SPOILS), *((name, 1) for name in (*SHORT, "repeated", "cut", "500"))],
)
def test_no_bad_read_becomes_a_change(world: LinkedProject, name: str, times: int) -> None:
    """Whatever is wrong with any one read, the plan creates and deletes what the right one does, or there is none."""
    whole = Spoiled(world.sandbox)
    truth = radical(planned(world, whole))
    assert {action for action, _ in truth} == {Action.CREATE, Action.DELETE}
    positions = sorted(set(whole.asked))
    assert len(positions) > 20
    found = {url: spoiled(world, url, name, times) for url in positions}
    may_be_short = name in SHORT and times > 1
    wrong = {url: made - truth for url, made in found.items() if made and not made <= truth}
    assert [url for url in wrong if not (may_be_short and url.startswith("/content/targets"))] == [], wrong
    # These are reads that the plan needs: without them there is none.
    assert name != "404" or [*found.values()].count(None) > 15


@pytest.mark.parametrize(
    ("path", "name", "times"),
    [
        ("/content/targets", "empty", 1),
        ("/custom-fields", "empty", 2**31),
        *((f"/groups?skip=2&limit={PAGE}", name, 1) for name in ("empty", "first row missing")),
        *((f"/smart-groups?skip=4&limit={PAGE}", name, 1) for name in ("empty", "first row missing")),
    ],
)
def test_a_list_that_comes_empty_creates_nothing_twice(world: LinkedProject, path: str, name: str, times: int) -> None:
    """Assignments are looked at once more before any is made, fields that smart groups name are there.

    A page that lacks rows once costs a second look.
    """
    whole = Spoiled(world.sandbox)
    truth = planned(world, whole)
    [url, *_] = sorted({one for one in whole.asked if one.startswith(path)})
    assert spoiled(world, url, name, times) in (None, radical(truth))


def test_no_field_is_made_from_two_different_listings(world: LinkedProject) -> None:
    """Fields come without a count: where the second look before a creation brings others, it is an error."""
    world.write("custom_fields: [{name: F0}, {name: Fresh, type: TEXT}]\n")
    world.options("")
    assert radical(planned(world, Spoiled(world.sandbox))) == {("create", "custom_field/Fresh")}
    with pytest.raises(ProblemsFound) as caught:
        planned(world, Spoiled(world.sandbox, "/custom-fields", SPOILS["last row missing"], 1))
    assert [one.code for one in caught.value.problems] == ["read/incomplete"]
    assert "it was read twice, with different results" in caught.value.problems[0].message


def test_no_assignment_is_made_from_two_different_answers(world: LinkedProject) -> None:
    """Where the second look before a creation brings other assignments, the content is named in an error."""
    whole = Spoiled(world.sandbox)
    planned(world, whole)
    [url, *_] = sorted({one for one in whole.asked if one.startswith("/content/targets")})
    with pytest.raises(ProblemsFound) as caught:
        planned(world, Spoiled(world.sandbox, url, SPOILS["empty"], 1))
    assert any("those of C0 were read twice, with different results" in one.message for one in caught.value.problems)


def test_results_are_read_until_a_page_has_no_new_ones(world: LinkedProject) -> None:
    """A service that returns the same results for every page is asked twice, and each result counts once."""
    manifests = "absent: {content_targets: [{content: C0, assign_to: [everyone, {group: G0}, {smart_group: S0}]}]}\n"
    world.write(manifests)
    row = {"userId": "u-0", "contentId": "c-0", "state": "IN_PROGRESS"}
    same = Spoiled(world.sandbox, "/analyse/results", edited(lambda rows: [row]), times=5)
    [loss] = planned(world, same).effects.contents
    assert loss.progress == {"not_started": 6, "in_progress": 1, "approved": 0, "failed": 0, "expired": 0}
    assert same.asked.count("/analyse/results") == 2


@pytest.mark.sampled(day=3)
@pytest.mark.parametrize("group", [{"name": "X"}, "X", None], ids=["no id", "text", "null"])
def test_a_group_without_an_id_is_no_group_to_leave_out(world: LinkedProject, group: object) -> None:
    """Where the listing of everybody names a group that nobody can tell, the groups themselves are asked."""
    whole = Spoiled(world.sandbox)
    truth = planned(world, whole)
    assert not any(url.endswith("/members") for url in whole.asked)
    [url, *_] = sorted({one for one in whole.asked if one.startswith("/users/extended-info")})
    unnamed = edited(lambda rows: [{**row, "memberOfGroups": [*row["memberOfGroups"], group]} for row in rows])
    odd = Spoiled(world.sandbox, url, unnamed)
    assert radical(planned(world, odd)) == radical(truth)
    assert any(url.endswith("/members") for url in odd.asked)
