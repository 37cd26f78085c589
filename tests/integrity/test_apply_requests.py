"""What plan, apply, undo and a fleet ask: what they touch, and no tries where the service is known."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from fleet.fleet_project import ServedFleet, served
from integrity.served_project import ServedProject, numbered, staged
from texts import text_of
from wire.second_dialect import known_dialect

from lmsconf.api.spec.operations import load_api_description
from lmsconf.errors import ExitCode
from lmsconf.sandbox.faults import ALWAYS, Fault, FaultScript
from lmsconf.sandbox.service import LoggedRequest

TABLES = yaml.safe_load(text_of(__file__, "apply_requests.yaml"))
DIALECT: Mapping[str, str | int] = {"paging.limit": 20}
KNOWN = {**known_dialect(), **DIALECT}
OPTIONS = f"dialect: {json.dumps(KNOWN)}\nownership: {{content_targets: declared_content}}\n"
DECLARED = """\
custom_fields: [{name: Country}, {name: Site, hidden: false, choices: [Rome, Oslo]}]
groups: [{name: G1, members: [p1@acme.example, p100@acme.example], managers: []}, {name: G2}, {name: G3, members: []}]
smart_groups: [{name: S1, conditions: [{field: Country, choices: [SE]}], managers: [p200@acme.example]}, {name: S2}]
content_targets: [{content: C1, assign_to: [{group: G1}, {smart_group: S1}]}]
users: [{email: p300@acme.example, metadata: {cost: "1"}, manager: false}]
"""


SEED = (
    numbered("people", range(420), "{{email: p{n}@acme.example, id: u-{n:05}}}")
    .replace("u-00000", "u-00000, admin: true")
    .replace("u-00001", "u-00001, admin: true")
    .replace("u-00300", "u-00300, metadata: {cost: '1'}")
    + numbered("groups", range(1, 41), "{{name: G{n}, id: g-{n}}}").replace(
        "id: g-1}", "id: g-1, members: [p1@acme.example, p100@acme.example]}"
    )
    + numbered(
        "smart_groups", range(1, 41), "{{name: S{n}, id: s-{n}, conditions: [{{field: Country, choices: [SE]}}]}}"
    ).replace("id: s-1,", "id: s-1, managers: [p200@acme.example],")
    + numbered("content", range(1, 41), "{{name: C{n}, id: c-{n}}}")
    + "custom_fields: [{name: Country, type: CHOICE, choices: [SE, NO]}, "
    "{name: Site, type: CHOICE, choices: [Rome, Oslo]}]\n"
    "content_targets: [{content: C1, assign_to: [{group: G1}, {smart_group: S1}]}]\n"
)
"""What is declared, as it is declared, among many others."""


class Phases(NamedTuple):
    """The operations that an apply asked for: for its plan, then until its last write, and for its verification."""

    plan: Counter[str]
    beside: Counter[str]
    verification: Counter[str]


def applied(stage: ServedProject, *words: str, code: int = 0) -> Phases:
    """Plans and applies in one run, and sorts what the workspace was asked."""
    log = stage.sandbox.log
    log.clear()
    marks: list[int] = []
    stage("apply", "--auto-approve", *words, code=code, meanwhile=lambda: marks.append(len(log)))
    writes = [position for position, one in enumerate(log) if one.writes and position >= marks[0]]
    parts = (0, marks[0], writes[-1] + 1 if writes else len(log), len(log))
    return Phases(*(Counter(one.operation or "" for one in log[start:end]) for start, end in pairwise(parts)))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    with staged(tmp_path, SEED, monkeypatch, OPTIONS, DIALECT) as stage:
        stage.write(DECLARED)
        assert stage("plan", "--detailed-exitcode").code == 0
        yield stage


TOUCHED = TABLES["touched"]
WHOLE: Mapping[str, tuple[str, str, str]] = {
    "group, deleted": ("{name: G2}, ", "", "absent: {groups: [G2]}\n"),
    "choice, deleted": ("[Rome, Oslo]", "[Rome]", ""),
    "admin right": ("manager: false", "manager: false, admin: true", ""),
}
"""What counts, or takes away, more than the resource itself shows."""


def asked(stage: ServedProject, *words: str) -> Counter[str]:
    """The operations that one command asks for."""
    stage.sandbox.log.clear()
    stage(*words, code=0)
    return Counter(one.operation or "" for one in stage.sandbox.log)


def rewritten(stage: ServedProject, old: str, new: str, more: str = "") -> None:
    """The same manifests but for one thing."""
    assert old in DECLARED
    stage.write(DECLARED.replace(old, new, 1) + more)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("what", TOUCHED)
def test_an_apply_reads_what_it_touches(stage: ServedProject, what: str) -> None:
    """Before its calls, and after them with `--verify touched`: of everything else only names."""
    old, new, reads, calls, verified = TOUCHED[what]
    rewritten(stage, old, new)
    phases = applied(stage, "--verify", "touched")
    assert phases.beside == Counter({**reads, **dict.fromkeys(calls, 1)})
    assert phases.verification == Counter(verified)
    stage("plan", "--detailed-exitcode", code=0)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("what", TOUCHED)
def test_a_saved_plan_asks_what_one_made_just_now_asks(stage: ServedProject, what: str) -> None:
    """Names are listed, and people looked up by the plan's ids, before its calls and after them."""
    old, new, reads, calls, verified = TOUCHED[what]
    rewritten(stage, old, new)
    assert asked(stage, "apply", stage.saved(), "--verify", "touched") == Counter(reads) + Counter(verified) + Counter(
        calls
    )


def test_the_default_verification_costs_what_a_plan_costs(stage: ServedProject) -> None:
    """An apply of one key: few requests beside its plan and a plan of everything that is declared."""
    planned = asked(stage, "plan")
    rewritten(stage, *TOUCHED["person, metadata"][:2])
    phases = applied(stage)
    assert phases.plan == phases.verification == planned
    assert phases.beside == Counter({"users.list": 1, "users.get": 2, "users.update-metadata": 1})


def test_a_deletion_that_waits_for_a_grant_asks_for_nothing_more(stage: ServedProject) -> None:
    """The new assignment is read back before the old one is deleted; only a field's deletion is planned again."""
    rewritten(stage, "{group: G1}, {smart", "{group: G2}, {smart")
    phases = applied(stage, "--verify", "touched")
    more = {"content-targets.list": 3, "content-targets.create": 1, "content-targets.delete": 1}
    assert phases.beside == Counter({**TOUCHED["assignment, out"][2], **more})


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("what", WHOLE)
def test_more_is_read_where_a_single_resource_does_not_show_enough(stage: ServedProject, what: str) -> None:
    """The assignments of a deleted group, the answers to a deleted choice, the other administrators."""
    rewritten(stage, *WHOLE[what])
    phases = applied(stage, "--verify", "touched", "--allow", "refusals=1", "--allow", "removals=1")
    assert phases.beside.total() > 20


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("what", TABLES["edits"])
def test_a_person_who_is_looked_up_is_compared(stage: ServedProject, what: str) -> None:
    """A saved plan is stale when one of its people is another one by now, though not all people are listed."""
    case, operation, id, body = TABLES["edits"][what]
    rewritten(stage, *TOUCHED[case][:2])
    plan = stage.saved()
    stage.hand(operation, {"userId": id}, body)
    assert stage("apply", plan, code=3).writes == []


@pytest.mark.sampled(day=2)
@pytest.mark.parametrize("fault", [{"status": 404}, {"spoil": "html"}], ids=str)
def test_where_single_reads_do_not_help_all_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: dict[str, Any]
) -> None:
    """A service that gives no readable single person: the listing shows that the plan still fits."""
    script = FaultScript(Fault(operation="users.get", times=ALWAYS, **fault))
    with staged(tmp_path, SEED, monkeypatch, OPTIONS, DIALECT, faults=script) as stage:
        stage.write("users: [{email: p300@acme.example, metadata: {cost: '2'}}]")
        phases = applied(stage)
        assert phases.beside["users.list"] == 21
        assert phases.beside["users.update-metadata"] == 1
        assert stage("plan", "--detailed-exitcode").code == 0


def test_a_new_person_in_a_touched_list_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An account that is created during the run and added to a changed group is found: the run has not converged."""
    by_hand = ["new@acme.example"]

    def add_somebody(seen: LoggedRequest) -> None:
        if seen.operation == "manual-groups.add-members" and by_hand:
            names = {"firstName": "N", "lastName": "N", "language": "en"}
            made = stage.hand("users.create", body={"email": by_hand.pop(), **names})
            assert isinstance(made, dict)
            stage.hand("manual-groups.add-members", {"groupId": "g-1"}, {"userIds": [made["userId"]]})

    with staged(tmp_path, SEED, monkeypatch, OPTIONS + "settle: 0s\n", DIALECT, on_log=add_somebody) as stage:
        rewritten(stage, *TOUCHED["group, member"][:2])
        phases = applied(stage, "--verify", "touched", code=ExitCode.NOT_CONVERGED)
        assert by_hand == []
        assert phases.verification["users.list"] > 0


def test_a_lock_costs_requests_of_its_own(stage: ServedProject) -> None:
    """Groups are listed before its lock is made, until it shows, and for others after that; then it is deleted."""
    stage.options(OPTIONS + "lock: {lease: 10m}\n")
    rewritten(stage, *TOUCHED["person, metadata"][:2])
    phases = applied(stage, "--verify", "touched")
    own = Counter({"manual-groups.list": 12, "manual-groups.create": 1, "manual-groups.delete": 1})
    assert phases.beside + phases.verification == own + Counter(
        {"users.list": 2, "users.get": 4, "users.update-metadata": 1}
    )


# What plan, apply, undo and a fleet ask of a service that is known: as many requests as when nothing was assumed.


__all__ = ["served"]
EVERY_KEY = {
    **load_api_description().names,
    **{key: behaviour["default"] for key, behaviour in load_api_description().behaviours.items()},
}
KNOWN_OPTIONS = f"timezone: UTC\nguards: off\npeople: {{create: true}}\nsettle: 0s\ndialect: {json.dumps(EVERY_KEY)}\n"
KNOWN_DECLARED = text_of(__file__, "apply_requests_known_declared.yaml")
"""A change that rests on every key that manifests rest on, each more than once where that is possible."""
FIELD = "{name: Department, type: CHOICE, choices: [Sales, Support]}"


@pytest.fixture
def known_stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    with staged(tmp_path, text_of(__file__, "apply_requests_seed.yaml"), monkeypatch, KNOWN_OPTIONS) as known_stage:
        known_stage.write(KNOWN_DECLARED)
        yield known_stage


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("verify", ["all", "touched"])
def test_a_known_service_is_asked_as_before_assumptions_were_tried(known_stage: ServedProject, verify: str) -> None:
    """A plan, an apply, the plan of its undo, and the apply of that: so many requests, as before there were tries."""
    assert asked(known_stage, "plan") == TABLES["known"]["plan"]
    assert asked(known_stage, "apply", "--auto-approve", "--verify", verify) == TABLES["known"]["apply"]
    undo = str(known_stage.root / "undo.json")
    assert asked(known_stage, "plan", "--undo", "latest", "--out", undo) == TABLES["known"]["undo"]
    assert asked(known_stage, "apply", undo, "--verify", verify) == TABLES["known"]["undone"]


def test_a_saved_plan_asks_as_before(known_stage: ServedProject) -> None:
    """The apply of a plan file reads no more than what its plan and its verification read."""
    whole = Counter(TABLES["known"]["apply"]) - Counter(TABLES["known"]["plan"])
    assert asked(known_stage, "apply", known_stage.saved()) == whole


def test_new_smart_groups_are_not_looked_up_by_their_names(known_stage: ServedProject) -> None:
    """Who is in them after an apply is compared with the prediction: their names are not looked up again."""
    conditions = "conditions: [{field: Department, choices: [Sales]}]"
    counts = []
    for start, number in ((0, 1), (1, 7)):
        lines = "".join(f"- {{name: Team {one}, {conditions}}}\n" for one in range(start, start + number))
        known_stage.write(f"smart_groups:\n{lines}")
        counts.append(asked(known_stage, "apply", "--auto-approve", "--verify", "touched")["smart-groups.list"])
    assert counts[0] == counts[1]


def test_a_service_that_is_not_known_is_asked_more(known_stage: ServedProject) -> None:
    """Without the dialect the same apply tries: the counts above would show it."""
    known_stage.options(KNOWN_OPTIONS[: KNOWN_OPTIONS.index("dialect:")])
    assert asked(known_stage, "apply", "--auto-approve").total() > sum(TABLES["known"]["apply"].values())


@pytest.mark.sampled(daily=False)
def test_a_fleet_asks_each_known_service_as_before(served: ServedFleet) -> None:
    """Each workspace by itself: an apply of its saved plan, and nothing that is tried."""
    served.write("lmsconf.yaml", served.project(KNOWN_OPTIONS.replace("settle: 0s\n", "")))
    group = "groups: [{name: Team, members: {include: [p2@acme.example]}}]\n"
    answers = "".join(f"- {{email: p{number}@acme.example, answers: {{Department: Sales}}}}\n" for number in (1, 2))
    served.write("manifests/a.yaml", f"custom_fields: [{FIELD}]\n{group}users:\n{answers}")
    for name in ("north", "south"):
        served.serve(name)
        for number in range(4):
            person = {"email": f"p{number}@acme.example", "firstName": "A", "lastName": "B", "language": "en"}
            served.ask(name, "POST", "/users", person)
        served.ask(name, "POST", "/groups", {"name": "Team", "memberIds": ["u-1"]})
    served.plan()
    for service in served.services.values():
        service.log.clear()
    assert served.apply()[0] == 0
    counts = {name: Counter(one.operation for one in service.log) for name, service in served.services.items()}
    assert counts == dict.fromkeys(("north", "south"), TABLES["known"]["fleet"])
