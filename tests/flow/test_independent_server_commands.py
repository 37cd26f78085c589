"""Everything that lmsconf does besides plan and apply, on a server that chooses otherwise where the API is silent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from stranger.project import FIRST, Case, Open, ServerProject, opening
from stranger.server import Request
from stranger.state import Choices

from .test_independent_server import SECOND, assert_second

open_desk = pytest.fixture(opening)

MORE = "lock: true\nsettle: 1s\n"
PEOPLE = """
users:
  - {email: bo@acme.example, language: en, manager: true}
  - {email: ida@acme.example, first_name: Ida-Marie, manager: false, metadata: {unit: A}}
"""
CASES: Mapping[str, Case] = {
    "numbers": Case(Choices(ids="number", totals="text", page_cap=7, time="number", editors="object"), {}),
    "upside-down": Case(Choices(shuffle=-1, page_cap=1000, group_lists="null", done=200, answers="values"), {}),
    "mute": Case(Choices(wrap="mute", made=200, done=202, answers="unlike", time="local", editors="text"), {}),
    "once-only": Case(Choices(unique=True, again=409, gone=404, removed=True, answers="lists", trailing=True),
                      {"manual-groups.add.mode": "add"}),
    "gone": Case(Choices(gone=410, again=400, errors="html", group_lists="missing", answers="null", time="msz"),
                 {"manual-groups.add.mode": "add"}),
    "in-pieces": Case(Choices(chunked=True, busy_first=1, extra=True, answers="missing", ids="uuid"), {}),
    "hangs-up": Case(Choices(keep_alive=False, packed=True, answers="choice-ids", time="+0000", ids="number"), {}),
    "small-pages": Case(Choices(page_most=50, page_cap=3, totals="absent", no_rows="null", empty="absent"),
                        {"paging.limit": 50}),
    "merging": Case(Choices(existing="merge", users="active", extended="active", wrap="inside", made=200), {}),
    "shared": Case(Choices(ids="shared", shuffle=3, wrap="nothing", done=200, system="IS_ANY", backwards=True), {}),
}  # fmt: skip


@pytest.fixture(params=CASES)
def desk(request: pytest.FixtureRequest, open_desk: Open) -> ServerProject:
    """Somebody at work on each of the services, who locks the workspace."""
    case = CASES[request.param]
    desk = open_desk(case, FIRST)
    desk.write(FIRST, case.dialect, MORE)
    return desk


def counts(out: str) -> str:
    """What a plan comes to."""
    return json.dumps({key: json.loads(out)[key] for key in ("summary", "guards")})


def _consent(desk: ServerProject) -> Sequence[str]:
    """Who is in a smart group is not known where answers are missing, or unlike anything known."""
    unknown = desk.stranger.choices.answers in ("unlike", "missing", "null")
    return ("--allow", "mandatory=unknown", "--allow", "people=unknown") if unknown else ()


@pytest.mark.sampled
def test_a_day_with_a_stranger(desk: ServerProject) -> None:
    """Apply under a lock, export, snapshots whole and redacted, and drift after an edit by hand."""
    desk.applies(*_consent(desk))
    held = desk.stranger.held
    assert not [one for one in held.groups.values() if "lock" in one["name"]]

    assert desk.run("drift")[0] == 0, desk.err
    code, out = desk.run("export", str(desk.folder / "exported"))
    assert code == 0, out + desk.err
    project = desk.folder / "lmsconf.yaml"
    said = project.read_text(encoding="utf-8")
    project.write_text(said + "manifests: exported\n", encoding="utf-8")
    assert "No changes." in desk.plans(0)
    project.write_text(said, encoding="utf-8")

    everyone = next(one for one in held.targets if one["kind"] == "everyone" and not one["mandatory"])
    everyone["mandatory"] = True
    coaches = held.groups[held.named(held.groups, "Coaches")]
    coaches["members"] = [*coaches["members"][1:], held.named(held.users, "kim@acme.example")]
    code, out = desk.run("drift", "--format", "json")
    assert code == 2, desk.err
    assert "group/Coaches" in out
    assert ("ida@acme.example" in out) == (desk.stranger.choices.editors != "absent")

    # Effects on people are not known against a redacted snapshot.
    code, live = desk.run("plan", "--no-effects", "--format", "json")
    assert code == 0, desk.err
    for file, options in (("whole.json", ()), ("redacted.json", ("--redact",))):
        code, out = desk.run("snapshot", str(desk.folder / file), *options)
        assert code == 0, out + desk.err
        code, out = desk.run("plan", "--no-effects", "--snapshot", str(desk.folder / file), "--format", "json")
        assert code == 0, desk.err
        assert counts(out) == counts(live)
    desk.applies(*_consent(desk))
    code, out = desk.run("doctor")
    assert code == 0, out + desk.err


@pytest.mark.sampled
def test_people(desk: ServerProject) -> None:
    """People are as the manifests say, on the listings and the details of any service."""
    desk.write(PEOPLE, {"paging.limit": 50}, MORE)
    desk.applies()


ANSWERS = """
users:
  - {email: bo@acme.example, answers: {Department: Engineering, Badge: "4"}}
  - {email: cy@acme.example, answers: {Hobby: [Skiing], Badge: "17", Department: null}}
"""


@pytest.mark.sampled
@pytest.mark.parametrize("shape", ["choices", "choice-ids", "values", "lists"])
def test_answers_in_any_shape(open_desk: Open, shape: str) -> None:
    """Choices by id or by name, texts bare or in a list: only what differs is sent, and an export says the same."""
    desk = open_desk(Case(Choices(answers=shape, ids="number"), {}), ANSWERS)
    desk.applies()
    assert [one.path for one in desk.stranger.writes()] == ["/users/100002/update-custom-field-choice"]
    code, out = desk.run("export", str(desk.folder / "exported"), "--kind", "users")
    assert code == 0, out + desk.err
    with (desk.folder / "lmsconf.yaml").open("a", encoding="utf-8") as project:
        project.write("manifests: exported\n")
    assert "No changes." in desk.plans(0)
    written = (desk.folder / "exported" / "users.yaml").read_text(encoding="utf-8")
    assert "Engineering" in written
    assert "Skiing" in written
    assert "17" in written


@pytest.mark.sampled
def test_answers_that_cannot_be_read(open_desk: Open) -> None:
    """They are an error for whoever declares them, with their shape, and nothing is sent; nobody else is held up."""
    desk = open_desk(Case(Choices(answers="unlike"), {}), ANSWERS)
    assert desk.run("apply", "--auto-approve")[0] == 1
    assert "the answer to Department has an unknown format: ['field', 'selection', 'version']" in desk.err
    assert not desk.stranger.writes()
    desk.write("groups: [{name: Leaders, members: [bo@acme.example]}]", {})
    desk.applies()
    assert desk.run("drift")[0] == 0, desk.err


POSTS = {
    "/custom-fields", "/groups", "/smart-groups", "/content/targets", "/groups/*/members", "/groups/*/managers",
    "/smart-groups/*/managers", "/smart-groups/*/replace-conditions", "/groups/*/rename",
}  # fmt: skip
LOSING: Mapping[str, Case] = {
    "numbers": Case(Choices(ids="number", page_cap=4, again=409, gone=404, unique=True), {}),
    "random-order": Case(Choices(shuffle=-1, page_cap=1000, ids="uuid", gone=410, again=400, wrap="mute"), {}),
    "silent": Case(Choices(wrap="nothing", ids="shared", done=200, again=409, errors="empty", packed=True), {}),
}


def route(request: Request) -> tuple[str, str]:
    """Method and path of a request, without ids."""
    parts = request.path.partition("?")[0].split("/")
    known = {part for path in (*POSTS, "/content/targets/users") for part in path.split("/")}
    return request.method, "/".join(part if part in known else "*" for part in parts)


@pytest.mark.sampled
@pytest.mark.parametrize("case", LOSING.values(), ids=LOSING)
def test_every_first_answer_is_lost(open_desk: Open, case: Case) -> None:
    """The first answer of every kind of writing call is lost; one run still does all of it, and nothing twice."""
    desk = open_desk(case, FIRST)
    desk.write(FIRST, case.dialect, MORE)
    lost: set[tuple[str, str]] = set()

    def loses(request: Request) -> bool:
        first = request.writes and request.status < 300 and route(request) not in lost
        if first:
            lost.add(route(request))
        return first

    desk.stranger.loses = loses
    desk.applies()
    names = [one["name"] for one in desk.stranger.held.groups.values()]
    assert len(names) == len(set(names))
    assert len(lost) > 4
    lost.clear()
    desk.write(SECOND, case.dialect, MORE)
    desk.applies()
    assert ("DELETE", "/groups/*/members/*") in lost
    assert_second(desk.stranger)
    assert not [one for one in desk.stranger.held.groups.values() if "lock" in one["name"]]


OTHER_DATE = {"users.set-custom-archived-date.date": "archiveAt"}
PROBED: Mapping[str, Choices] = {
    "once-only": Choices(unique=True, again=409, gone=404, removed=True, answers="values", done=200),
    "numbers": Choices(ids="number", totals="text", page_cap=7, time="number", editors="object", wrap="mute"),
    "upside-down": Choices(shuffle=-1, page_cap=1000, group_lists="null", answers="unlike", gone=410, again=400),
    "in-pieces": Choices(chunked=True, packed=True, extra=True, answers="lists", names=OTHER_DATE),
    "hangs-up": Choices(keep_alive=False, answers="choice-ids", empty="absent", false_="absent", wrap="nothing"),
}  # fmt: skip


@pytest.mark.sampled
@pytest.mark.parametrize("choices", PROBED.values(), ids=PROBED)
def test_a_probe_with_people(open_desk: Open, choices: Choices) -> None:
    """A probe with a person and a content leaves the service as it was, and its lessons make plans settle."""
    desk = open_desk(Case(choices, {}), FIRST + PEOPLE)
    desk.write(FIRST + PEOPLE, {}, MORE)
    before = desk.stranger.held.photo()
    code, out = desk.run("doctor", "--probe", "--yes", "--user", "cy@acme.example", "--content", "First aid")
    assert code == 0, out + desk.err
    assert desk.stranger.held.photo() == before
    desk.applies(*_consent(desk))


@pytest.mark.sampled
def test_a_run_is_undone(desk: ServerProject) -> None:
    """What a first apply made is deleted again, and the second plan of the same run is empty, on each server."""
    before = _exported(desk, "before")
    assert desk.run("apply", "--auto-approve", *_consent(desk))[0] == 0, desk.err
    file = desk.folder / "undo.json"
    code, text = desk.run("plan", "--undo", "latest", "--out", str(file))
    # A field is not deleted where it is not known whether people have answered it since.
    unread = "it is not known who has answered it since the run [undo/conflict]" in text
    assert (code, text.count("[undo/conflict]")) == (0, int(unread)), text + desk.err
    assert not unread or _consent(desk)
    saved = json.loads(file.read_text(encoding="utf-8"))
    run, tripped = saved["undo_of"]["run"], [guard for guard in saved["guards"] if guard["tripped"]]
    consents = [part for guard in tripped for part in ("--allow", guard["allow"])]
    code, text = desk.run("apply", str(file), *consents)
    assert code == 0, text + desk.err
    assert "No changes. Nothing " in desk.run("plan", "--undo", run)[1]
    assert unread or _exported(desk, "after") == before


def _exported(desk: ServerProject, folder: str) -> dict[str, str]:
    """The manifests of the whole workspace, by file, without ids."""
    assert desk.run("export", str(desk.folder / folder))[0] == 0, desk.err
    files = sorted((desk.folder / folder).glob("*.yaml"))
    return {one.name: re.sub(r"(?m)^\s*id:.*\n", "", one.read_text(encoding="utf-8")) for one in files}


# Answers of an independent server that no description foresees: each is a message, and nothing is sent.


USUAL = Case(Choices(), {})
LONG_WAY = Case(Choices(extended="active"), {})

# Each: where, what the answer is made into, and what the message says.
UNFIT = {
    "a choice without its id": ("/custom-fields", {"customFields": [{"id": "1", "name": "Shirt", "type": "CHOICE",
                                "choices": [{"name": "S"}]}]}, "choiceId"),
    "choices that are a number": ("/custom-fields", {"customFields": [{"id": "1", "name": "Shirt", "type": "CHOICE",
                                  "choices": 7}]}, "where the list choices should be"),
    "a smart group without conditions": ("/smart-groups/sm-501", {"smartGroupId": "sm-501"}, "missing its conditions"),
    "a condition without its field": ("/smart-groups/sm-501", {"conditions": [{"choiceIds": []}]}, "customFieldId"),
    "targets that are no list": ("/content/targets", {"targets": True}, "missing its list of targets"),
    "targets that are missing": ("/content/targets", {}, "missing its list of targets"),
    "targets that are null": ("/content/targets", {"targets": None}, "missing its list of targets"),
    "a target for nobody": ("/content/targets", {"targets": [{"mandatory": True}]}, "targetId"),
    "a group whose name is not text": ("/groups", {"groups": [{"groupId": "1", "name": {}}]}, "name"),
    "members that are missing": ("/groups/gr-1/members", {}, "missing its list of userIds"),
    "a time that is none": ("/content/targets", {"targets": [{"targetId": "EVERYONE", "startTime": "soon"}]},
                            "content-targets.time-format"),
}  # fmt: skip


@pytest.mark.parametrize(("path", "answer", "said"), UNFIT.values(), ids=UNFIT)
def test_an_answer_that_is_not_as_described_is_an_error(open_desk: Open, path: str, answer: object, said: str) -> None:
    """It is named, and nothing is sent on the word of it."""
    desk = open_desk(LONG_WAY, FIRST)
    desk.stranger.garble = lambda asked, value: answer if asked == path else value
    code, _ = desk.run("apply", "--auto-approve")
    assert code == 1
    assert said in desk.err
    assert not desk.stranger.writes()


def test_pages_that_are_too_large_for_the_service_name_the_dialect_key(open_desk: Open) -> None:
    """A service that refuses our page size says so in every message that follows from it; with the key it works."""
    case = Case(Choices(page_most=50), {})
    desk = open_desk(case, FIRST)
    assert desk.run("apply", "--auto-approve")[0] == 1
    assert "paging.limit" in desk.err
    assert "limit must not exceed 50" in desk.err
    desk.write(FIRST, {"paging.limit": 50})
    desk.applies()


def test_what_may_be_there_is_not_said_to_be_gone(open_desk: Open) -> None:
    """An entry under `absent` that an incomplete listing lacks is an error, not done work."""

    def cut(path: str, value: Any) -> object:
        return {"groups": value["groups"][:1] if value["skip"] == 0 else "?"} if path == "/groups" else value

    desk = open_desk(USUAL, "absent: {groups: [Summer interns]}")
    desk.stranger.garble = cut
    code, out = desk.run("plan")
    assert code == 1
    assert "it is not known whether it is deleted" in out + desk.err
    desk.stranger.garble = lambda _, value: value
    desk.applies()
    assert "Remove the entry under `absent`" in desk.run("plan")[1]


def test_a_field_in_use_by_answers_is_an_error_of_that_field(open_desk: Open) -> None:
    """A 403 that no condition foretold is told apart from a lack of permission, and nothing else is held up."""
    manifest = """
custom_fields: [{name: Shirt, choices: [S, {name: Medium, previously: [M]}, L]}]
groups: [{name: Leaders, members: [anna@acme.example]}]
"""
    desk = open_desk(Case(Choices(in_use="answered"), {}), manifest)
    code, out = desk.run("apply", "--auto-approve")
    assert code == 5
    assert "It may be in use" in out
    held = desk.stranger.held
    assert held.groups[held.named(held.groups, "Leaders")]["members"] == [held.named(held.users, "anna@acme.example")]
