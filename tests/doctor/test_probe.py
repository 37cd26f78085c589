"""`lmsconf doctor --probe`: learns what differs on scratch objects, and leaves the workspace as it was."""

import json
import os
import signal
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast
from zoneinfo import ZoneInfo

import pytest
import yaml
from api.guide_tables import EXPERIMENTS
from json_schemas import schema_validator
from on_terminal import on_terminal
from random_services.points import made_of
from random_services.scenario import opened, photo
from texts import listed_cases
from waiting import VirtualClock
from wire.second_dialect import FORBIDDING, SHOWN_BY_MEMBERS, second_dialect

from lmsconf.api.spec import ApiSpec
from lmsconf.project.settings import load_settings
from lmsconf.sandbox.faults import ALWAYS, Fault, FaultScript
from lmsconf.sandbox.service import LoggedRequest, Sandbox, SandboxResponse, json_response

from .served_project import BO, GDPR, PROJECT, SEED, ServedProject, held

pytestmark = pytest.mark.sampled  # some seconds in all

Open = Callable[..., ServedProject]
NOT_LEARNABLE = {"content-targets.everyone": "the content has no assignment to EVERYONE, and none is made for a try"}
"""What no probe finds out where it is otherwise than assumed, with the reason that it gives."""
SECOND = second_dialect()
ACCOUNTS = {key for key in EXPERIMENTS if key.startswith("users.create.")}
"""What shows only on accounts of the probe's own."""
OTHERWISE = {key: SECOND[key] for key in EXPERIMENTS if key in SECOND.keys() - ACCOUNTS - NOT_LEARNABLE.keys()}
"""What is learnt of the person who is named, all of it otherwise than assumed."""
DELETIONS = {"content-targets.delete", "smart-groups.delete", "manual-groups.delete", "custom-fields.delete"}
ANSWERED = {"people": [{**one, "metadata": {"cost": "1"}} if one["email"] == BO else one for one in SEED["people"]]}
"""The person who is named has metadata, of which a key can be left out."""
BOTH = ("--user", BO, "--user", "p0@acme.example", "--content", GDPR)


def said(clinic: ServedProject) -> dict[str, str | int]:
    """What the project file says by now that is not the default."""
    dialect = load_settings(clinic.folder, None, dict(os.environ)).dialect
    return {key: value for key, value in dialect.items() if str(value) != ApiSpec.default().behaviour(key)}


def test_every_key_that_manifests_rely_on_is_found(open_clinic: Open) -> None:
    """On a service that differs in every key, each is found and written down, and nothing else is changed."""
    clinic = open_clinic(SECOND, ANSWERED)
    before = held(clinic.service)
    lessons = clinic.probe(*BOTH)
    assert {key: ("found", value) for key, value in OTHERWISE.items()}.items() <= lessons.items()
    assert lessons.keys() - OTHERWISE.keys() == NOT_LEARNABLE.keys() | (FORBIDDING - SHOWN_BY_MEMBERS) | ACCOUNTS
    assert held(clinic.service) == before
    assert said(clinic) == OTHERWISE
    assert clinic.project.startswith(PROJECT)
    _, out = clinic.run("doctor", "--format", "json")
    assert {one["key"] for one in json.loads(out)["assumptions"]} <= lessons.keys()


def test_the_assumed_service_is_confirmed(clinic: ServedProject) -> None:
    """Defaults that were seen are written too, so that no run tries them again; what was not seen is not."""
    before = held(clinic.service)
    lessons = clinic.probe(*BOTH)
    assert {verdict for verdict, _ in lessons.values()} == {"confirmed", "unknown"}
    dialect = load_settings(clinic.folder, None, dict(os.environ)).dialect
    assert dialect == {key: value for key, (verdict, value) in lessons.items() if verdict == "confirmed"}
    assert (clinic.project.startswith(PROJECT), held(clinic.service)) == (True, before)


def test_the_report_says_what_is_new(open_clinic: Open) -> None:
    """The end counts the written values, names those that differ, and says what is next; a second writes nothing."""
    clinic = open_clinic({"manual-groups.rename.name": "title"})
    first, second = (clinic.run("doctor", "--probe", "--yes", *BOTH)[1] for _ in range(2))
    assert "Differs from what was used before: 1\n  manual-groups.rename.name: title (confirmed by" in first
    *_, written, last = first.splitlines()
    assert written.startswith("Written under `dialect:` in the project file: ")
    assert written.endswith("29 values. 1 of them differs from what was used before.")
    assert last == "Review and commit the project file, then run lmsconf plan."
    left = "Nothing is left behind: what the probe created is deleted, and what it changed is as before.\n"
    assert left in first
    assert second.endswith(f"\n\n{left}The project file states all that was learnt already.\n")


@listed_cases("key", "value")
def test_one_behaviour_is_found(open_clinic: Open, key: str, value: str) -> None:
    """Every value of a behaviour is told from the others, also where all else is as assumed."""
    clinic = open_clinic({key: value})
    assert clinic.probe(*BOTH)[key] == ("found", value)
    assert said(clinic) == {key: value}


@pytest.mark.parametrize("most", [2, 3, 64, 99])
def test_how_many_a_call_may_carry(open_clinic: Open, most: int) -> None:
    """The one person, named ever so often, finds out, and is in no group afterwards."""
    clinic = open_clinic({"manual-groups.add.batch": most})
    before = held(clinic.service)
    assert clinic.probe(*BOTH)["manual-groups.add.batch"] == ("found", most)
    assert held(clinic.service) == before


def test_without_person_and_content_that_is_said(clinic: ServedProject) -> None:
    """What needs a person or a content is not learnt, with the option that would help; the rest is."""
    out = clinic.run("doctor", "--probe", "--yes", code=0).out
    assert "  no person was named; pass --user EMAIL:\n    users.set-custom-archived-date.date\n" in out
    assert "  no content was named; pass --content NAME:\n    content-targets.create.mandatory\n" in out
    assert "  manual-groups.rename.name: name (confirmed" in out
    touched = {one.operation for one in clinic.service.log if one.writes}
    assert not {"content-targets.create", "manual-groups.add-members"} & touched


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--user", "bo.eek@acme.example", 'Did you mean "bo.ek@acme.example"?'),
        ("--content", "GDPR basic", 'Did you mean "GDPR basics"?'),
    ],
)
def test_who_is_not_there_is_said_first(clinic: ServedProject, option: str, value: str, reason: str) -> None:
    """A wrong person or content ends the probe before anything is made."""
    code, _ = clinic.run("doctor", "--probe", "--yes", option, value)
    assert (code, reason in clinic.err) == (1, True)
    assert not any(one.writes for one in clinic.service.log)


def test_a_content_that_is_there_twice_is_named_by_its_id(open_clinic: Open) -> None:
    """Of two contents with one name none is touched; an id says which."""
    clinic = open_clinic(more={"content": [{"name": GDPR}, {"name": "Fire safety"}, {"name": "Fire safety"}]})
    code, _ = clinic.run("doctor", "--probe", "--yes", "--content", "Fire safety")
    assert (code, "--content Fire safety: several match: c-2, c-3" in clinic.err) == (1, True)
    assert clinic.probe("--content", "c-3")["content-targets.create.mandatory"] == ("confirmed", "mandatory")


class _Interrupting:
    """Presses Ctrl-C, or terminates, when that many writing requests were answered."""

    def __init__(self, after: int, number: signal.Signals) -> None:
        self._left, self._number = after, number

    def __call__(self, entry: LoggedRequest) -> None:
        self._left -= entry.writes
        if self._left == 0 and entry.writes:
            os.kill(os.getpid(), self._number)


@pytest.mark.parametrize("after", [1, 2, 3, 8, 16, 24, 30])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_leaves_nothing_behind(
    open_clinic: Open, after: int, number: signal.Signals, code: int
) -> None:
    """Whenever a probe is interrupted, it deletes what it made, and writes nothing down."""
    clinic = open_clinic(OTHERWISE, on_log=_Interrupting(after, number))
    before = held(clinic.service)
    assert clinic.run("doctor", "--probe", "--yes", *BOTH)[0] == code
    assert "Cleaning up." in clinic.err
    assert (held(clinic.service), clinic.project) == (before, PROJECT)


@pytest.mark.parametrize("operation", ["manual-groups.rename", "content-targets.create", "custom-fields.replace"])
def test_an_error_leaves_nothing_behind(open_clinic: Open, operation: str) -> None:
    """When the service takes the credential back in the middle, the probe ends with that and deletes what it made."""
    clinic = open_clinic(faults=FaultScript(Fault(operation=operation, status=401)))
    before = held(clinic.service)
    assert clinic.run("doctor", "--probe", "--yes", *BOTH)[0] == 7
    assert held(clinic.service) == before


def test_what_cannot_be_cleaned_up_is_named(open_clinic: Open) -> None:
    """A scratch group that stays is named with its id and the reason, and the exit code is 1."""
    clinic = open_clinic(faults=FaultScript(Fault(operation="manual-groups.delete", status=409, times=9)))
    out = clinic.run("doctor", "--probe", "--yes", code=1).out
    assert "LEFT BEHIND: group/lmsconf-probe-" in out
    assert "answered 409" in out
    assert "lmsconf-probe-" in json.dumps(held(clinic.service))


@pytest.mark.parametrize("project", [PROJECT, PROJECT + "people: {create: true}\n"], ids=["person", "accounts"])
@pytest.mark.parametrize("kind", ["custom-fields", "users", "manual-groups", "smart-groups"])
def test_what_cannot_be_deleted_is_left_once(open_clinic: Open, kind: str, project: str) -> None:
    """Where something stays, no second one of its kind is made, by this probe or by the next."""
    clinic = open_clinic(faults=FaultScript(Fault(operation=f"{kind}.delete", status=409, times=ALWAYS)))
    clinic.configure(project)
    for _ in range(2):
        code, out = clinic.run("doctor", "--probe", "--yes", *BOTH)
    made = [one for one in clinic.service.log if (one.operation, one.status) == (f"{kind}.create", 200)]
    is_made = kind != "users" or project != PROJECT
    # The condition of a smart group that stays keeps its field, too.
    left = 2 if kind == "smart-groups" else int(is_made)
    assert (code, len(made), out.count("LEFT BEHIND: ")) == (int(is_made), int(is_made), left), out
    assert ("could not be deleted, so no other is created" in out) is is_made


def test_leftovers_of_an_earlier_run_are_deleted(open_clinic: Open) -> None:
    """What an earlier run left is listed and deleted, with its assignments anywhere; what only looks alike stays."""
    old = "lmsconf-probe-0ld-"
    choices = ["Sales", "Engineering"]
    field = {"name": f"{old}field", "type": "CHOICE", "choices": ["A"]}
    clinic = open_clinic(
        more={
            "custom_fields": [{"name": "Department", "type": "CHOICE", "choices": choices}, field],
            "groups": [{"name": "Coaches", "members": [BO]}, {"name": f"{old}group"}, {"name": f"Not {old}"}],
            "smart_groups": [{"name": f"{old}smart", "conditions": [{"field": f"{old}field", "choices": ["A"]}]}],
            "content_targets": [{"content": "Fire safety", "assign_to": [{"group": f"{old}group"}]}],
        }
    )
    out = clinic.run("doctor", "--probe", "--yes", "--content", GDPR, code=0).out
    assert out.count("An earlier probe had left ") == 3
    assert f"An earlier probe had left group/{old}group (g-2); it is deleted." in out
    # Before its group went, and though another content was named: not every service takes assignments away itself.
    ends = [one.operation for one in clinic.service.log if one.operation in DELETIONS]
    assert ends[:2] == ["content-targets.delete", "smart-groups.delete"]
    left = held(clinic.service)
    assert [row["name"] for row in left["/groups"]] == ["Coaches", f"Not {old}"]
    assert left["/smart-groups"] == []
    assert left["/content/targets?contentId=c-2"] == {"targets": []}


def test_nothing_is_done_without_consent(clinic: ServedProject) -> None:
    """Without a terminal --yes is needed; on a terminal only `yes` is taken for yes, and the question names all."""
    assert clinic.run("doctor", "--probe", *BOTH)[0] == 64
    assert "Pass --yes" in clinic.err
    for answer, code in (("y\n", 1), ("yes\n", 0)):
        with on_terminal(answer, streams=("stdin", "stderr")) as screen:
            assert clinic.run("doctor", "--probe", *BOTH)[0] == code
        for said in ("groups, smart groups and custom fields named lmsconf-probe-...", BO, "p0@acme.example", GDPR):
            assert said in screen.text[: screen.text.index("Start the probe?")]
        assert any(one.writes for one in clinic.service.log) is (code == 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), ["Without --user EMAIL, given twice", "Without --content NAME"]),
        (
            ("--user", BO),
            [f"{BO}: added to a scratch group", "Without a second --user EMAIL", "Without --content NAME"],
        ),
        (BOTH, [f"{BO}: added", "p0@acme.example: added", f'"{GDPR}": assigned to a scratch group without members']),
    ],
)
def test_it_is_said_first_what_is_touched_and_what_will_not_be_learnt(
    clinic: ServedProject, options: tuple[str, ...], said: list[str]
) -> None:
    """Each person and content by name, and each option that would help: before anything is made."""
    with on_terminal("no\n", streams=("stdin", "stderr"), columns=200) as screen:
        assert clinic.run("doctor", "--probe", *options)[0] == 1
    assert all(line in screen.text for line in said)
    assert screen.text.count("Without") == sum(line.startswith("Without") for line in said)
    assert not any(one.writes for one in clinic.service.log)


@pytest.mark.parametrize("options", [("--user", BO), ("--content", GDPR), ("--yes",)])
def test_options_of_the_probe_need_it(clinic: ServedProject, options: tuple[str, ...]) -> None:
    """An option that only a probe has is refused without one."""
    assert clinic.run("doctor", *options)[0] == 64


def test_what_was_learnt_is_told_though_the_file_cannot_be_edited(open_clinic: Open) -> None:
    """A layout that cannot be edited safely is left alone: the lines to paste are said, and the exit code is 1."""
    clinic = open_clinic({"manual-groups.rename.name": "newName"})
    project = '{workspaces: {production: {url: "https://lms.example/api"}}}\n'
    clinic.configure(project)
    code, out = clinic.run("doctor", "--probe", "--yes")
    assert (code, clinic.project) == (1, project)
    assert "manual-groups.rename.name: newName" in clinic.err
    assert "Differs from what was used before: 1\n  manual-groups.rename.name: newName" in out


def test_the_document_fits_its_schema(open_clinic: Open) -> None:
    """`lmsconf.doctor/1` is as its schema says, with a probe and without."""
    clinic = open_clinic(OTHERWISE)
    for options in ((), ("--probe", "--yes", *BOTH), ()):
        _, out = clinic.run("doctor", "--format", "json", *options)
        assert [error.message for error in schema_validator("doctor").iter_errors(json.loads(out))] == []


@listed_cases("points", "verdict", "value")
def test_how_many_a_call_may_carry_where_ids_are_counted_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: dict[str, str | int], verdict: str, value: int | None
) -> None:
    """A service that counts repeated ids once is told from one that takes many; where it cannot be, nothing is said."""
    with opened(made_of(points), 0, tmp_path, monkeypatch) as it:
        before = photo(it.service)
        code, out = it.run("doctor", "--probe", "--yes", "--user", BO, "--format", "json", "--output", "-")
        assert code == 0, out
        lessons = json.loads(out[out.index("{") :])["probe"]["lessons"]
        (lesson,) = [one for one in lessons if one["key"] == "manual-groups.add.batch"]
        assert (lesson["verdict"], lesson["value"]) == (verdict, value), lesson
        assert photo(it.service) == before


RIGHT = "manual-groups.who-can-manage"
MANAGERS = "manual-groups.add-managers.userIds"
ROOT = "anna.berg@acme.example"


@pytest.mark.parametrize(
    ("dialect", "user", "managers", "right", "said"),
    [
        ({}, BO, "confirmed", "confirmed", "somebody without the manager right was accepted"),
        ({}, ROOT, "confirmed", "unknown", "name somebody without the manager right"),
        ({RIGHT: "with-right"}, ROOT, "confirmed", "unknown", "name somebody without the manager right"),
        ({RIGHT: "with-right"}, BO, "unknown", "unknown", "nobody could be made manager"),
    ],
)
def test_who_can_manage_is_learnt_with_the_person(
    open_clinic: Open, dialect: dict[str, str | int], user: str, managers: str, right: str, said: str
) -> None:
    """Only somebody without the right tells whether it is asked for; where the person was refused, that may be why."""
    clinic = open_clinic(dialect)
    before = held(clinic.service)
    out = clinic.run("doctor", "--probe", "--yes", "--format", "json", "--user", user, code=0).out
    lessons = {one["key"]: one for one in json.loads(out)["probe"]["lessons"]}
    assert (lessons[MANAGERS]["verdict"], lessons[RIGHT]["verdict"]) == (managers, right)
    assert said in lessons[RIGHT]["reason"]
    lacks = "the person tried lacks the manager right, which some services require: name somebody who has it"
    assert (lacks in lessons[MANAGERS]["reason"]) is (managers == "unknown")
    assert held(clinic.service) == before


class Altered(Sandbox):
    """Shows one listing otherwise than it is."""

    altered: ClassVar[str]

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        said = super().answer(method, path, query, headers, body)
        if path == self.altered and said.status < 300:
            self.written(method)
            return json_response(200, self.shown(json.loads(said.body))) if method == "GET" else said
        return said

    def written(self, method: str) -> None:
        """Hears of each call."""

    def shown(self, listing: dict[str, Any]) -> dict[str, Any]:
        """The listing as it is shown."""
        raise NotImplementedError


class WithoutStart(Altered):
    """Keeps the start of an assignment, and never shows it."""

    altered = "/content/targets"

    def shown(self, listing: dict[str, Any]) -> dict[str, Any]:
        return {"targets": [{**one, "startTime": None} for one in listing["targets"]]}


class Late(Altered):
    """Shows assignments to groups two seconds after the last one was made."""

    altered, clock, made = "/content/targets", VirtualClock(), -9.0

    def written(self, method: str) -> None:
        self.made = self.clock.now() if method == "POST" else self.made

    def shown(self, listing: dict[str, Any]) -> dict[str, Any]:
        is_late = self.clock.now() < self.made + 2
        return {"targets": [one for one in listing["targets"] if one["targetType"] != "GROUP" or not is_late]}


class OtherType(Altered):
    """Shows fields of texts under a type that the specification does not have."""

    altered = "/custom-fields"

    def shown(self, listing: dict[str, Any]) -> dict[str, Any]:
        types = {"TEXT": "FREE_TEXT"}
        rows = listing["customFields"]
        return {"customFields": [{**one, "type": types.get(one["type"], one["type"])} for one in rows]}


ANSWER = "users.update-custom-field-choice"


@pytest.mark.parametrize(
    ("made", "key", "reason"),
    [
        (WithoutStart, "content-targets.clear-time", "without the name of startTime there is nothing to clear"),
        (OtherType, f"{ANSWER}.value-text", "the scratch field is of type FREE_TEXT, not TEXT"),
    ],
)
def test_what_a_service_does_not_show_is_not_learnt(
    open_clinic: Open, made: type[Sandbox], key: str, reason: str
) -> None:
    """The lesson on it has its reason, the others are learnt, and all is as before."""
    clinic = open_clinic(made=made)
    before = held(clinic.service)
    out = clinic.run("doctor", "--probe", "--yes", "--format", "json", *BOTH, code=0).out
    lessons = {one["key"]: one for one in json.loads(out)["probe"]["lessons"]}
    assert (lessons[key]["verdict"], lessons[key]["reason"]) == ("unknown", reason)
    assert {lessons[one]["verdict"] for one in ("content-targets.on-existing", f"{ANSWER}.value")} == {"confirmed"}
    assert held(clinic.service) == before


def test_assignments_that_show_late_are_waited_for(open_clinic: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The names and behaviours of an assignment are found where it alone shows late."""
    monkeypatch.setattr(
        "lmsconf.doctor.probe_trials.time", SimpleNamespace(monotonic=Late.clock.now, sleep=Late.clock.sleep)
    )
    dialect = {
        "content-targets.create.mandatory": "required",
        "content-targets.create.startTime": "visibleFrom",
        "content-targets.time-precision": "minute",
    }
    clinic = open_clinic(dialect, made=Late)
    before = held(clinic.service)
    lessons = clinic.probe(*BOTH)
    assert {key: ("found", value) for key, value in dialect.items()}.items() <= lessons.items()
    assert held(clinic.service) == before


def test_archived_people_may_be_counted_and_not_listed(open_clinic: Open) -> None:
    """No account is created from a listing that lacks people, until the project says who they are."""
    key = "users.list.match-count"
    people = [*cast("list[object]", SEED["people"]), {"email": "gone@acme.example", "archived": True}]
    clinic = open_clinic({key: "all"}, {"people": people})
    (clinic.folder / "lmsconf.yaml").write_text(f"{clinic.project}people: {{create: true}}\n", encoding="utf-8")
    new = "{email: nia@acme.example, first_name: Nia, last_name: Ny, language: en}"
    (clinic.folder / "manifests" / "all.yaml").write_text(f"users: [{new}]", encoding="utf-8")
    assert clinic.run("plan")[0] == 1
    assert f"(if that includes archived people, set `{key}: all` in `dialect`)" in clinic.err
    assert clinic.probe(*BOTH)[key] == ("found", "all")
    assert clinic.run("apply", "--auto-approve")[0] == 0, clinic.err


class Local(Altered):
    """Shows the times of assignments as local ones of Lagos, without an offset."""

    altered = "/content/targets"

    def shown(self, listing: dict[str, Any]) -> dict[str, Any]:
        for one in listing["targets"]:
            for key in one.keys() & {"startTime", "finishTime"}:
                local = datetime.fromisoformat(one[key]).astimezone(ZoneInfo("Africa/Lagos"))
                one[key] = local.replace(tzinfo=None).isoformat()
        return listing


@pytest.mark.parametrize(
    ("project", "made", "dialect", "zone"),
    [
        ("timezone: Africa/Lagos\n", Local, {}, ("found", "Africa/Lagos")),
        ("timezone: Africa/Lagos\n", Sandbox, {}, ("confirmed", "UTC")),
        ("timezone: Asia/Kolkata\n", Local, {}, ("unknown", None)),
        ("", Sandbox, {"content-targets.time-format": "iso-local"}, ("unknown", None)),
    ],
)
def test_the_zone_of_times_is_that_of_the_project_or_utc(
    open_clinic: Open, project: str, made: type[Sandbox], dialect: dict[str, str | int], zone: tuple[str, str | None]
) -> None:
    """It is learnt from a start that was sent with an offset; sent and shown without one, it could be any."""
    clinic = open_clinic(dialect, made=made)
    (clinic.folder / "lmsconf.yaml").write_text(clinic.project + project, encoding="utf-8")
    before = held(clinic.service)
    lessons = clinic.probe(*BOTH)
    assert lessons["content-targets.time-zone"] == zone
    is_known = zone != ("unknown", None) or bool(dialect)
    assert (lessons["content-targets.create.finishTime"][0] == "confirmed") is is_known
    assert held(clinic.service) == before


_LISTS = ("manual-groups.add-members.userIds", "manual-groups.add-managers.userIds")


class LateList(Sandbox):
    """Shows lists whose path has an ending as they were some seconds before; each request takes a part of a second."""

    ending: ClassVar[str]
    clock: ClassVar[VirtualClock]
    seen: ClassVar[dict[tuple[str, str], list[tuple[float, SandboxResponse]]]]

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        for asked in ("", "filter=lmsconf-probe-&skip=0&limit=100") if path.endswith(self.ending) else ():
            if (path, asked) not in self.seen:
                self.seen[path, asked] = [(self.clock.now(), super().answer("GET", path, asked, headers, b""))]
        said = super().answer(method, path, query, headers, body)
        self.clock.sleep(0.05)
        now = self.clock.now()
        if method != "GET":
            for (one, asked), states in self.seen.items():
                states.append((now, super().answer("GET", one, asked, headers, b"")))
        elif path.endswith(self.ending):
            states = self.seen.setdefault((path, query), [(now, said)])
            return [state for at, state in states if at <= now - 0.4 or at == states[0][0]][-1]
        return said


@pytest.mark.parametrize("ending", ["/members", "/users"])
def test_what_a_list_shows_late_is_not_credited_to_another_name(
    open_clinic: Open, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    """A name must have its effect twice, and an account that was created is waited for; none is left behind."""
    clock = VirtualClock()
    monkeypatch.setattr("lmsconf.doctor.probe_trials.time", SimpleNamespace(monotonic=clock.now, sleep=clock.sleep))
    clinic = open_clinic({}, made=type("Drawn", (LateList,), {"ending": ending, "clock": clock, "seen": {}}))
    clinic.configure(f"{PROJECT}people: {{create: true}}\n")

    def emails() -> set[object]:
        with clinic.service.store.read_transaction() as repository:
            return {*repository.column("SELECT email FROM people")}

    before = emails()
    clinic.run("doctor", "--probe", "--yes", *BOTH)
    dialect = yaml.safe_load(clinic.project)["dialect"]
    assert {dialect.get(key, "userIds") for key in _LISTS} == {"userIds"}
    assert dialect.get("users.create.email") == "email"
    assert emails() == before
