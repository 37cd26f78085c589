"""Everything that lmsconf does besides plan and apply, on a server that chooses otherwise where the API is silent."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import pytest
from stranger.choices import Choices
from stranger.project import FIRST, Case, Open, ServerProject, opening
from stranger.server import Request

from .test_independent_server import SECOND, assert_second

pytestmark = pytest.mark.sampled  # some seconds in all

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


def test_people(desk: ServerProject) -> None:
    """People are as the manifests say, on the listings and the details of any service."""
    desk.write(PEOPLE, {"paging.limit": 50}, MORE)
    desk.applies()


ANSWERS = """
users:
  - {email: bo@acme.example, answers: {Department: Engineering, Badge: "4"}}
  - {email: cy@acme.example, answers: {Hobby: [Skiing], Badge: "17", Department: null}}
"""


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
