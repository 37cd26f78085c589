"""`lmsconf doctor --probe`: learns what differs on scratch objects, and leaves the workspace as it was."""

import os
import signal
from pathlib import Path

import pytest
import yaml
from on_terminal import at_terminal
from random_services.points import made_of
from random_services.scenario import opened, photo
from texts import listed_cases

from lmsconf.api.spec import ApiSpec
from lmsconf.project.settings import load_settings
from lmsconf.sandbox.faults import ALWAYS, Fault, FaultScript
from lmsconf.sandbox.service import LoggedRequest, Sandbox

from .clinic import (
    ANNA,
    ANSWERS,
    BO,
    CREATES,
    GDPR,
    P0,
    P1,
    PROJECT,
    SEED,
    Altered,
    Body,
    Clinic,
    Open,
    ShowsLate,
    ShowsLocalTimes,
    held,
    probe_waits,
    unchanged,
)
from .test_probe_people import ACCOUNT, NOT_LEARNABLE, SECOND, WHOLE, declaring

pytestmark = pytest.mark.sampled(daily=False)  # some seconds in all

DELETIONS = {"content-targets.delete", "smart-groups.delete", "manual-groups.delete", "custom-fields.delete"}
BOTH = ("--user", BO, "--user", P0, "--content", GDPR)
ONE_PAGE = {"paging.limit": "no listing is longer than a page"}
MORE_PEOPLE = (f"--user {BO}", f"--user {P0} --user {P1}")
NO_ACCOUNT = "the project file does not allow creating people, so no account is created"


@pytest.mark.parametrize("project", [PROJECT, CREATES], ids=["person", "accounts"])
@pytest.mark.parametrize("dialect", [{}, SECOND], ids=["assumed", "second"])
def test_every_key_that_manifests_rely_on_is_found(
    open_clinic: Open, dialect: dict[str, str | int], project: str
) -> None:
    """On a service that differs in every key, each is found; on one as assumed, each is confirmed.

    All of them are written beside the comments, so that no run tries them again, and all is as before. Without leave to
    create people no account is made; with it, the people who are named are only put into the scratch group.
    """
    clinic = declaring(open_clinic(dialect, WHOLE), project)
    before = held(clinic)
    assumptions = clinic.report()["assumptions"]
    lessons = clinic.lessons(*BOTH)
    unknown = {
        **(NOT_LEARNABLE if dialect else ONE_PAGE),
        **(dict.fromkeys(ACCOUNT, NO_ACCOUNT) if project is PROJECT else {}),
    }
    assert {key: one["reason"] for key, one in lessons.items() if one["verdict"] == "unknown"} == unknown
    learnt = {key: (one["verdict"], str(one["value"])) for key, one in lessons.items() if key not in unknown}
    assert learnt == {
        key: ("found", str(dialect[key])) if key in dialect else ("confirmed", ApiSpec.default().behaviour(key))
        for key in {one["key"] for one in assumptions} - unknown.keys()
    }
    assert held(clinic) == before
    written = load_settings(clinic.root, None, dict(os.environ)).dialect
    assert {key: str(value) for key, value in written.items()} == {key: value for key, (_, value) in learnt.items()}
    assert clinic.project.startswith(project)
    touched = {one.path for one in clinic.sandbox.log if one.writes and "/users/u-2/" in one.path}
    assert bool(touched) is ("users.create" not in clinic.sent()) is (project is PROJECT)


def test_the_report_says_what_is_new(open_clinic: Open) -> None:
    """The end counts the written values, names those that differ, and says what is next; a second writes nothing."""
    clinic = open_clinic({"manual-groups.rename.name": "title"})
    first, second = (clinic.probed(*BOTH).out for _ in range(2))
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
    dialect = load_settings(clinic.root, None, dict(os.environ)).dialect
    assert {one: said for one, said in dialect.items() if str(said) != ApiSpec.default().behaviour(one)} == {key: value}


def test_without_person_and_content_that_is_said(clinic: Clinic) -> None:
    """What needs a person or a content is not learnt, with the option that would help; the rest is."""
    out = clinic.probed().out
    assert "  no person was named; pass --user EMAIL:\n    users.set-custom-archived-date.date\n" in out
    assert "  no content was named; pass --content NAME:\n    content-targets.create.mandatory\n" in out
    assert "  manual-groups.rename.name: name (confirmed" in out
    assert not {"content-targets.create", "manual-groups.add-members"} & {*clinic.sent()}
    out = clinic.probed("--user", BO).out
    assert "  it needs a second person; pass --user EMAIL twice:\n    manual-groups.add.mode\n" in out


@pytest.mark.parametrize(
    ("option", "value", "reason"),
    [
        ("--user", "bo.eek@acme.example", 'Did you mean "bo.ek@acme.example"?'),
        ("--content", "GDPR basic", 'Did you mean "GDPR basics"?'),
        ("--content", "Fire safety", "--content Fire safety: several match: c-2, c-3"),
    ],
)
def test_who_is_not_there_is_said_first(open_clinic: Open, option: str, value: str, reason: str) -> None:
    """A wrong person or content, or one of two contents, ends the probe before anything is made; an id says which."""
    clinic = open_clinic(more={"content": [{"name": GDPR}, {"name": "Fire safety"}, {"name": "Fire safety"}]})
    assert reason in clinic.probed(option, value, code=1).err
    assert clinic.sent() == []
    assert clinic.probe("--content", "c-3")["content-targets.create.mandatory"] == ("confirmed", "mandatory")


MOMENTS = [
    *(("", after, number) for after in (1, 2, 3, 8, 16, 24, 30) for number in (signal.SIGINT, signal.SIGTERM)),
    *(("users.", after, signal.SIGINT) for after in (1, 2, 4, 9, *range(11, 19))),
]
"""When so many calls have written whose operation begins so, and which signal comes then."""


@pytest.mark.parametrize("project", [PROJECT, CREATES], ids=["person", "accounts"])
@pytest.mark.parametrize(("begin", "after", "number"), MOMENTS)
def test_an_interruption_leaves_nothing_behind(
    open_clinic: Open, begin: str, after: int, number: signal.Signals, project: str
) -> None:
    """Whenever a probe is interrupted, it deletes what it made, the people named are as before, nothing is written."""
    seen: list[LoggedRequest] = []

    def interrupt(entry: LoggedRequest) -> None:
        if entry.writes and str(entry.operation).startswith(begin):
            seen.append(entry)
            if len(seen) == after:
                os.kill(os.getpid(), number)

    clinic = declaring(open_clinic(SECOND, WHOLE, on_log=interrupt), project)
    before = held(clinic)
    assert "Cleaning up." in clinic.probed(*BOTH, code=128 + number).err
    assert (held(clinic), clinic.project) == (before, project)


@pytest.mark.parametrize("operation", ["manual-groups.rename", "content-targets.create", "custom-fields.replace"])
def test_an_error_leaves_nothing_behind(open_clinic: Open, operation: str) -> None:
    """When the service takes the credential back in the middle, the probe ends with that and deletes what it made."""
    clinic = open_clinic(faults=FaultScript(Fault(operation=operation, status=401)))
    with unchanged(clinic):
        clinic.probed(*BOTH, code=7)


@pytest.mark.parametrize("project", [PROJECT, CREATES], ids=["person", "accounts"])
@pytest.mark.parametrize("kind", ["custom-fields", "users", "manual-groups", "smart-groups"])
def test_what_cannot_be_deleted_is_left_once(open_clinic: Open, kind: str, project: str) -> None:
    """What stays is named with its id and the reason; no second one of its kind is made, by this probe or the next."""
    clinic = open_clinic(faults=FaultScript(Fault(operation=f"{kind}.delete", status=409, times=ALWAYS)))
    clinic.configure(project)
    is_made = kind != "users" or project != PROJECT
    for _ in range(2):
        out = clinic.probed(*BOTH, code=int(is_made)).out
    made = [one for one in clinic.sandbox.log if (one.operation, one.status) == (f"{kind}.create", 200)]
    # The condition of a smart group that stays keeps its field, too.
    left = 2 if kind == "smart-groups" else int(is_made)
    assert (len(made), out.count("LEFT BEHIND: ")) == (int(is_made), left), out
    assert ("answered 409" in out) is ("could not be deleted, so no other is created" in out) is is_made
    assert (kind == "manual-groups") is ("LEFT BEHIND: group/lmsconf-probe-" in out)


def test_leftovers_of_an_earlier_run_are_deleted(open_clinic: Open) -> None:
    """What an earlier run left is listed and deleted, with its assignments anywhere; what only looks alike stays."""
    old = "lmsconf-probe-0ld-"
    clinic = open_clinic(
        more={
            "custom_fields": [*SEED["custom_fields"], {"name": f"{old}field", "type": "CHOICE", "choices": ["A"]}],
            "groups": [{"name": "Coaches", "members": [BO]}, {"name": f"{old}group"}, {"name": f"Not {old}"}],
            "smart_groups": [{"name": f"{old}smart", "conditions": [{"field": f"{old}field", "choices": ["A"]}]}],
            "content_targets": [{"content": "Fire safety", "assign_to": [{"group": f"{old}group"}]}],
        }
    )
    out = clinic.probed("--content", GDPR).out
    assert out.count("An earlier probe had left ") == 3
    assert f"An earlier probe had left group/{old}group (g-2); it is deleted." in out
    # Before its group went, and though another content was named: not every service takes assignments away itself.
    assert [one for one in clinic.sent() if one in DELETIONS][:2] == ["content-targets.delete", "smart-groups.delete"]
    assert [name for (name,) in clinic.rows("SELECT name FROM groups ORDER BY seq")] == ["Coaches", f"Not {old}"]
    assert clinic.rows("SELECT * FROM targets") == []


def answered(clinic: Clinic, typed: str, *options: str, code: int) -> str:
    """What a terminal shows on which a probe is asked for, and its question is answered so."""
    env = {"LMSCONF_URL": clinic.url, "LMSCONF_TOKEN": "sandbox"}
    words = ("doctor", "--probe", *options)
    ran, screen = at_terminal(clinic.root, *words, typed=typed, env=env, streams=("stdin", "stderr"), columns=200)
    assert ran.code == code, screen
    return screen


def test_nothing_is_done_without_consent(clinic: Clinic) -> None:
    """Without a terminal --yes is needed; on a terminal only `yes` is taken for yes, and the question names all."""
    assert "Pass --yes" in clinic("doctor", "--probe", *BOTH, code=64).err
    for answer, code in (("y\n", 1), ("yes\n", 0)):
        screen = answered(clinic, answer, *BOTH, code=code)
        for said in ("groups, smart groups and custom fields named lmsconf-probe-...", BO, P0, GDPR):
            assert said in screen[: screen.index("Start the probe?")]
        assert bool(clinic.sent()) is (code == 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), ["Without --user EMAIL, given twice", "Without --content NAME"]),
        (
            ("--user", BO),
            [f"{BO}: added to a scratch group", "Without a second --user EMAIL", "Without --content NAME"],
        ),
        (BOTH, [f"{BO}: added", f"{P0}: added", f'"{GDPR}": assigned to a scratch group without members']),
    ],
)
def test_it_is_said_first_what_is_touched_and_what_will_not_be_learnt(
    clinic: Clinic, options: tuple[str, ...], said: list[str]
) -> None:
    """Each person and content by name, and each option that would help: before anything is made."""
    screen = answered(clinic, "no\n", *options, code=1)
    assert all(line in screen for line in said)
    assert screen.count("Without") == sum(line.startswith("Without") for line in said)
    assert clinic.sent() == []


@pytest.mark.parametrize(
    "words", [f"--user {BO}", "--content GDPR", "--yes", *(f"--probe --yes --user {BO} {more}" for more in MORE_PEOPLE)]
)
def test_options_of_the_probe_need_it_and_two_different_people_at_most(clinic: Clinic, words: str) -> None:
    """An option that only a probe has, the same person twice, three people: a wrong command line, nothing is sent."""
    clinic("doctor", *words.split(), code=64)
    assert clinic.sandbox.log == []


def test_what_was_learnt_is_told_though_the_file_cannot_be_edited(open_clinic: Open) -> None:
    """A layout that cannot be edited safely is left alone: the lines to paste are said, and the exit code is 1."""
    clinic = open_clinic({"manual-groups.rename.name": "newName"})
    project = '{workspaces: {production: {url: "https://lms.example/api"}}}\n'
    clinic.configure(project)
    ran = clinic.probed(code=1)
    assert clinic.project == project
    assert "manual-groups.rename.name: newName" in ran.err
    assert "Differs from what was used before: 1\n  manual-groups.rename.name: newName" in ran.out


@listed_cases("points", "verdict", "value")
def test_how_many_a_call_may_carry_where_ids_are_counted_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: dict[str, str | int], verdict: str, value: int | None
) -> None:
    """The one person, named ever so often, finds out, and is in no group afterwards.

    A service that counts repeated ids once is told from one that takes many; where it cannot be, nothing is said.
    """
    with opened(made_of(points), 0, tmp_path, monkeypatch) as it:
        before = photo(it.service)
        code, out = it.run("doctor", "--probe", "--yes", "--user", BO, "--format", "json", "--output", "-")
        assert code == 0, out
        document = yaml.safe_load(out[out.index("{") :])
        [lesson] = [one for one in document["probe"]["lessons"] if one["key"] == "manual-groups.add.batch"]
        assert (lesson["verdict"], lesson["value"]) == (verdict, value), lesson
        assert photo(it.service) == before


RIGHT, WITH_RIGHT = "manual-groups.who-can-manage", {"manual-groups.who-can-manage": "with-right"}
MANAGERS = "manual-groups.add-managers.userIds"


@pytest.mark.parametrize(
    ("dialect", "project", "user", "managers", "right", "said"),
    [
        ({}, PROJECT, BO, "confirmed", "confirmed", "somebody without the manager right was accepted"),
        ({}, PROJECT, ANNA, "confirmed", "unknown", "name somebody without the manager right"),
        (WITH_RIGHT, PROJECT, ANNA, "confirmed", "unknown", "name somebody without the manager right"),
        (WITH_RIGHT, PROJECT, BO, "unknown", "unknown", "nobody could be made manager"),
        (WITH_RIGHT, CREATES, BO, "confirmed", "found", "refused without the manager right, and accepted with it"),
    ],
)
def test_who_can_manage_is_learnt_with_the_person(
    open_clinic: Open, dialect: dict[str, str | int], project: str, user: str, managers: str, right: str, said: str
) -> None:
    """Only somebody without the right tells whether it is asked for; where the person was refused, that may be why.

    An account of the probe's own is refused without the right and taken with it; the person is not touched then.
    """
    clinic = open_clinic(dialect)
    clinic.configure(project)
    with unchanged(clinic):
        lessons = clinic.lessons("--user", user)
        assert (lessons[MANAGERS]["verdict"], lessons[RIGHT]["verdict"]) == (managers, right)
        assert lessons[RIGHT]["value"] == (None if right == "unknown" else dialect.get(RIGHT, "anybody"))
        assert said in lessons[RIGHT]["reason"]
        lacks = "the person tried lacks the manager right, which some services require: name somebody who has it"
        assert (lacks in lessons[MANAGERS]["reason"]) is (managers == "unknown")
    assert project is PROJECT or not [one for one in clinic.sandbox.log if one.writes and "/users/u-2/" in one.path]


class WithoutStart(Altered):
    """Keeps the start of an assignment, and never shows it."""

    def shown(self, path: str, query: str, body: Body) -> Body:
        for one in body["targets"] if path == "/content/targets" else ():
            one["startTime"] = None
        return body


class OtherType(Altered):
    """Shows fields of texts under a type that the specification does not have."""

    def shown(self, path: str, query: str, body: Body) -> Body:
        for one in body["customFields"] if path == "/custom-fields" else ():
            one["type"] = one["type"].replace("TEXT", "FREE_TEXT")
        return body


@pytest.mark.parametrize(
    ("made", "key", "reason"),
    [
        (WithoutStart, "content-targets.clear-time", "without the name of startTime there is nothing to clear"),
        (OtherType, f"{ANSWERS}.value-text", "the scratch field is of type FREE_TEXT, not TEXT"),
    ],
)
def test_what_a_service_does_not_show_is_not_learnt(
    open_clinic: Open, made: type[Sandbox], key: str, reason: str
) -> None:
    """The lesson on it has its reason, the others are learnt, and all is as before."""
    clinic = open_clinic(made=made)
    with unchanged(clinic):
        lessons = clinic.lessons(*BOTH)
        assert (lessons[key]["verdict"], lessons[key]["reason"]) == ("unknown", reason)
        assert {lessons[one]["verdict"] for one in ("content-targets.on-existing", f"{ANSWERS}.value")} == {"confirmed"}


def test_archived_people_may_be_counted_and_not_listed(open_clinic: Open) -> None:
    """No account is created from a listing that lacks people, until the project says who they are."""
    key = "users.list.match-count"
    clinic = open_clinic({key: "all"}, {"people": [*SEED["people"], {"email": "gone@acme.example", "archived": True}]})
    clinic.declare("users: [{email: nia@acme.example, first_name: Nia, last_name: Ny, language: en}]")
    clinic.configure(CREATES)
    assert f"(if that includes archived people, set `{key}: all` in `dialect`)" in clinic("plan", code=1).err
    assert clinic.probe(*BOTH)[key] == ("found", "all")
    clinic.apply()


@pytest.mark.parametrize(
    ("project", "made", "dialect", "zone"),
    [
        ("timezone: Africa/Lagos\n", ShowsLocalTimes, {}, ("found", "Africa/Lagos")),
        ("timezone: Africa/Lagos\n", Sandbox, {}, ("confirmed", "UTC")),
        ("timezone: Asia/Kolkata\n", ShowsLocalTimes, {}, ("unknown", None)),
        ("", Sandbox, {"content-targets.time-format": "iso-local"}, ("unknown", None)),
    ],
)
def test_the_zone_of_times_is_that_of_the_project_or_utc(
    open_clinic: Open, project: str, made: type[Sandbox], dialect: dict[str, str | int], zone: tuple[str, str | None]
) -> None:
    """It is learnt from a start that was sent with an offset; sent and shown without one, it could be any."""
    clinic = open_clinic(dialect, made=made)
    clinic.configure(clinic.project + project)
    with unchanged(clinic):
        lessons = clinic.probe(*BOTH)
        assert lessons["content-targets.time-zone"] == zone
        is_known = zone != ("unknown", None) or bool(dialect)
        assert (lessons["content-targets.create.finishTime"][0] == "confirmed") is is_known


# Services that show late what was done.


@pytest.mark.sampled(day=1)
def test_everything_that_shows_late_is_waited_for(open_clinic: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that was accepted is not taken for the one that was tried when it showed."""
    how = {"clock": probe_waits(monkeypatch), "late": 2, "queries": ("", "contentId=c-1")}
    dialect = {
        "manual-groups.rename.name": "groupName",
        "manual-groups.add-members.userIds": "memberIds",
        "content-targets.create.mandatory": "required",
        "content-targets.create.startTime": "visibleFrom",
        "content-targets.time-precision": "minute",
    }
    clinic = open_clinic(dialect, made=type("Drawn", (ShowsLate,), how))
    with unchanged(clinic):
        assert {key: ("found", value) for key, value in dialect.items()}.items() <= clinic.probe(*BOTH).items()


@pytest.mark.parametrize("end", ["/members", "/users"])
def test_what_a_list_shows_late_is_not_credited_to_another_name(
    open_clinic: Open, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """A name must have its effect twice, and an account that was created is waited for; none is left behind."""
    how = {"clock": probe_waits(monkeypatch), "takes": 0.05, "late": 0.4, "end": end}
    queries = ("", "filter=lmsconf-probe-&skip=0&limit=100")
    clinic = open_clinic({}, made=type("Drawn", (ShowsLate,), {**how, "queries": queries}))
    clinic.configure(CREATES)
    before = clinic.rows("SELECT email FROM people")
    clinic("doctor", "--probe", "--yes", *BOTH)
    dialect = yaml.safe_load(clinic.project)["dialect"]
    lists = ("manual-groups.add-members.userIds", "manual-groups.add-managers.userIds")
    assert {dialect.get(key, "userIds") for key in lists} == {"userIds"}
    assert dialect.get("users.create.email") == "email"
    assert clinic.rows("SELECT email FROM people") == before
