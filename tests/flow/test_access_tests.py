"""`tests:` in manifests: statements about who has what, judged by `lmsconf test`, `plan` and `apply`."""

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from json_schemas import schema_validator
from texts import listed_cases

from lmsconf.errors import ExitCode

from .project import Project
from .shell import Ran, lmsconf
from .test_people_commands import NARROWED, SEED

pytestmark = pytest.mark.sampled(day=8, daily=False)

HOLDS = "{all: {smart_group: Nordics}, has: GDPR, mandatory: true}"


def project(root: Path, *tests: str, manifests: str = NARROWED, options: str = "", seed: str = SEED) -> Path:
    listed = "".join(f"\n  - {test}" for test in tests)
    Project(root, seed, options).write(f"{manifests}\ntests:{listed or ' []'}\n")
    return root


def judged(root: Path, *arguments: str) -> dict[str, Any]:
    ran = lmsconf(root, "test", *arguments, "--format", "json")
    assert ran.out, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    assert [error.message for error in schema_validator("test").iter_errors(document)] == []
    assert ran.code == (ExitCode.ERROR if document["summary"]["failed"] else 0)
    return document


def reason(root: Path, test: str, *arguments: str, **more: Any) -> str | None:
    """Why a test fails; None: it passes."""
    (result,) = judged(project(root, test, **more), *arguments)["tests"]
    assert result["passed"] == (result["reason"] is None)
    found: str | None = result["reason"]
    return found


@pytest.mark.sampled
@listed_cases("test", "fails")
def test_each_form_is_judged_on_the_state_after_the_plan(tmp_path: Path, test: str, fails: str | None) -> None:
    """The plan narrows Nordics to one person; archived people count nowhere; a window that is over gives nothing."""
    assert reason(tmp_path, test) == fails


def test_the_live_state_is_judged_if_asked(tmp_path: Path) -> None:
    """Before the plan bo has it; after it he has not."""
    project(tmp_path, "{user: bo@acme.example, has: GDPR}", "{audience: {smart_group: Nordics}, size: {min: 2}}")
    assert judged(tmp_path, "--live")["summary"] == {"passed": 2, "failed": 0}
    planned = judged(tmp_path)
    assert (planned["state"], planned["summary"]) == ("planned", {"passed": 0, "failed": 2})


@pytest.mark.sampled
@listed_cases("test", "said")
def test_what_is_empty_or_unknown_fails(tmp_path: Path, test: str, said: str) -> None:
    """Also a statement that would hold for nobody."""
    assert said in str(reason(tmp_path, test, seed=SEED.replace("groups:\n", "groups:\n  - {name: Empty}\n", 1)))


@listed_cases("manifests")
def test_a_name_that_two_groups_have_fails_the_tests_of_it(tmp_path: Path, manifests: str) -> None:
    """Which of them is meant cannot be told, also where the plan renames or deletes both; other tests are judged."""
    seed = SEED.replace("groups:\n", "groups:\n  - {name: Twin, id: g-8}\n  - {name: Twin, id: g-9}\n", 1)
    tests = ("{audience: {group: Twin}, size: {min: 0}}", "{all: {group: Coaches}, has: Coaching}")
    twin, other = judged(project(tmp_path, *tests, manifests=manifests, seed=seed))["tests"]
    assert twin["reason"] == "group/Twin is live more than once, with the ids g-8, g-9"
    assert other["passed"]


PARTS = """
groups: [{name: Coaches, members: []}]
smart_groups:
  - {name: North, previously: [Nordics], managers: [ann@acme.example]}
  - {name: Strange, id: sg-2, managers: [ann@acme.example]}
  - {name: New, conditions: [{field: Country, choices: [SE]}]}
"""


@pytest.mark.sampled
@pytest.mark.parametrize("part", ["group/Coaches", "smart_group/Strange"])
@listed_cases("test", "fails")
def test_a_partial_plan_judges_tests_of_what_it_leaves_out(
    tmp_path: Path, part: str, test: str, fails: str | None
) -> None:
    """Whether or not the plan reads their kind: by the name, the earlier name or the id in the manifests."""
    project(tmp_path, test, manifests=PARTS)
    blocked = lmsconf(tmp_path, "plan", "--only", part, "--format", "json").document["summary"]["blocked"]
    said = [one["message"] for one in blocked if one["type"] == "test"]
    assert len(said) == (fails is not None)
    assert all(str(fails) in message for message in said)


def test_what_is_not_known_after_the_plan_fails(tmp_path: Path) -> None:
    """The reason is told. On the live state, which the service lists, the same test can pass."""
    changed = "smart_groups: [{name: Odd, conditions: [{field: Country, choices: [FI], system_condition: IS_NOT_ALL}]}]"
    for test in ("{audience: {smart_group: Odd}, size: {min: 1}}", "{none: everyone, has: Odd one}"):
        said = str(reason(tmp_path, test, manifests=changed))
        assert "not known" in said
        assert "IS_NOT_ALL" in said


def test_a_failing_test_stops_apply_before_the_first_call(tmp_path: Path) -> None:
    """The plan keeps its exit code and lists it under what stops apply; apply exits 4."""
    project(tmp_path, HOLDS, "{name: All have it, all: everyone, has: GDPR, about: {ticket: L-1}}")
    ran = lmsconf(tmp_path, "plan", "--format", "json")
    plan = ran.document
    assert ran.code == 0
    (blocked,) = [one for one in plan["summary"]["blocked"] if one["type"] == "test"]
    assert (blocked["name"], blocked["allow"]) == ("test/failed", None)
    (problem,) = [one for one in plan["problems"] if one["code"] == "test/failed"]
    assert problem["message"] == 'test "All have it" fails: 2 of 3 people do not have it'
    assert problem["source"] == {"file": "manifests/all.yaml", "line": 7, "column": 5}
    for format in ("text", "markdown", "html"):
        assert "All have it" in lmsconf(tmp_path, "plan", "--format", format).out
    assert lmsconf(tmp_path, "apply", "--auto-approve").code == ExitCode.BLOCKED
    assert lmsconf(tmp_path, "plan", "--detailed-exitcode").code == ExitCode.CHANGES


def test_tests_that_pass_stop_nothing(tmp_path: Path) -> None:
    """They leave no trace in the plan, whose digest is that without them; that there are none is said."""
    digests = set()
    for tests in ((HOLDS,), ("{user: ann@acme.example, has: GDPR}",), ()):
        project(tmp_path, *tests)
        digests.add(lmsconf(tmp_path, "plan", "--format", "json").document["digest"])
    assert len(digests) == 1
    assert "no tests" in lmsconf(tmp_path, "test", code=0).out
    project(tmp_path, HOLDS)
    assert lmsconf(tmp_path, "apply", "--auto-approve").code == 0
    assert lmsconf(tmp_path, "test", "--live").code == 0


def test_a_plan_file_carries_its_failing_tests(tmp_path: Path) -> None:
    """They stop it wherever it is applied, and are not judged again, also where the manifests have gone."""
    project(tmp_path, "{all: everyone, has: GDPR}")
    assert lmsconf(tmp_path, "plan", "--out", "plan.json").code == 0
    Project(tmp_path, SEED).write(NARROWED)
    assert "2 of 3 people do not have it" in lmsconf(tmp_path, "show", "plan.json").out
    assert lmsconf(tmp_path, "apply", "plan.json").code == ExitCode.BLOCKED


@pytest.mark.parametrize(
    ("tests", "number"), [((HOLDS,), "1 test of the manifests was"), ((HOLDS, HOLDS), "2 tests of the manifests were")]
)
def test_without_effects_tests_are_not_judged_and_apply_stops(
    tmp_path: Path, tests: tuple[str, ...], number: str
) -> None:
    """Nothing passes unjudged: the plan says how many tests there are, and where the first one is."""
    project(tmp_path, *tests)
    ran = lmsconf(tmp_path, "plan", "--no-effects", "--format", "json")
    (blocked,) = [one for one in ran.document["summary"]["blocked"] if one["type"] == "test"]
    assert (blocked["name"], blocked["message"]) == (
        "test/not-judged",
        f"{number} not run, because of --no-effects",
    )
    (problem,) = [one for one in ran.document["problems"] if one["code"] == "test/not-judged"]
    assert problem["source"] == {"file": "manifests/all.yaml", "line": 6, "column": 5}
    stopped = lmsconf(tmp_path, "apply", "--no-effects", "--auto-approve")
    assert (stopped.code, "test/not-judged" in stopped.err) == (ExitCode.BLOCKED, True)


def test_on_a_snapshot_tests_are_judged_as_far_as_it_tells(tmp_path: Path) -> None:
    """A whole one tells who has what; a redacted one does not, so every test fails and says why."""
    project(tmp_path, "{user: ann@acme.example, has: GDPR}")
    for option, messages in (
        ((), []),
        (("--redact",), ['test "user/ann@acme.example has GDPR" fails: it is not known: the snapshot is redacted']),
    ):
        assert lmsconf(tmp_path, "snapshot", *option, "live.json").code == 0
        plan: Any = lmsconf(tmp_path, "plan", "--snapshot", "live.json", "--format", "json").document
        assert [one["message"] for one in plan["summary"]["blocked"] if one["type"] == "test"] == messages


def test_tests_alone_are_a_project(tmp_path: Path) -> None:
    """Nothing changes, and what is live is judged. A failing test stops apply although there is nothing to do."""
    project(tmp_path, "{user: bo@acme.example, has: GDPR}", manifests="")
    assert lmsconf(tmp_path, "validate").code == 0
    plan = lmsconf(tmp_path, "plan", "--format", "json").document
    assert (plan["changes"], plan["summary"]["blocked"]) == ([], [])
    assert judged(tmp_path)["summary"]["passed"] == 1
    project(tmp_path, "{user: cy@acme.example, has: GDPR}", manifests="")
    assert lmsconf(tmp_path, "apply", "--auto-approve").code == ExitCode.BLOCKED


def test_variables_for_each_and_only_in_as_in_other_entries(tmp_path: Path) -> None:
    """Each copy is a test with its value; another workspace's test is not judged."""
    project(
        tmp_path,
        '{for_each: {who: [ann, bo]}, user: "$(who)@acme.example", has: "$(course)"}',
        "{all: everyone, has: GDPR, only_in: [env]}",
        options="vars: {course: GDPR}\n",
    )
    assert [(one["statement"], one["passed"], one["source"]["each"]) for one in judged(tmp_path)["tests"]] == [
        ("user/ann@acme.example has GDPR", True, "who=ann"),
        ("user/bo@acme.example has GDPR", False, "who=bo"),
    ]
    plan: Any = lmsconf(tmp_path, "plan", "--format", "json").document
    (blocked,) = plan["summary"]["blocked"]
    assert "user/bo@acme.example" in blocked["message"]


def test_text_and_junit_say_where(tmp_path: Path) -> None:
    """File and line of each test; the reason and the annotations of one that fails."""
    project(tmp_path, HOLDS, "{name: 'All <have> it', all: everyone, has: GDPR, about: {ticket: L-1}}")
    text = lmsconf(tmp_path, "test")
    assert "All <have> it: 2 of 3 people do not have it" in text.out
    assert "manifests/all.yaml:7:5" in text.out
    assert "about ticket: L-1" in text.out
    assert "2 tests on the state after the plan: 1 passed, 1 failed." in text.out
    root = ElementTree.fromstring(lmsconf(tmp_path, "test", "--format", "junit", code=ExitCode.ERROR).out)
    passed, failed = root.iter("testcase")
    assert (passed.get("file"), passed.get("line"), len(passed)) == ("manifests/all.yaml", "6", 0)
    assert (failed.get("name"), failed.get("line")) == ("All <have> it", "7")
    assert failed[0].get("message") == "2 of 3 people do not have it"


def test_errors_come_before_tests(tmp_path: Path) -> None:
    """Without a plan only the live state can be judged."""
    project(
        tmp_path, "{user: bo@acme.example, has: GDPR}", manifests="groups: [{name: X, members: [who@acme.example]}]"
    )
    ran: Ran = lmsconf(tmp_path, "test")
    assert (ran.code, "person/unknown" in ran.err, ran.out) == (ExitCode.ERROR, True, "")
    assert lmsconf(tmp_path, "test", "--live").code == 0


def test_masked_people_are_nowhere(tmp_path: Path) -> None:
    """Neither in the results, nor in the plan that they stop."""
    project(tmp_path, "{user: bo@acme.example, has: GDPR}")
    for arguments in (("test",), ("test", "--format", "json"), ("test", "--format", "junit"), ("plan",)):
        ran = lmsconf(tmp_path, "--mask-people", *arguments)
        assert "acme" not in ran.out + ran.err
        assert "person 1" in ran.out


@listed_cases("test", "place", "said")
def test_malformed_tests_have_their_place(tmp_path: Path, test: str, place: str, said: str) -> None:
    """At file, line and column, with what to write."""
    ran = lmsconf(project(tmp_path, test), "validate", code=ExitCode.ERROR)
    assert f"manifests/all.yaml:{place}: error: tests: " in ran.err
    assert said in ran.err


def test_a_renamed_group_is_renamed_in_tests_by_drift(tmp_path: Path) -> None:
    """`drift --accept` changes a new name wherever the manifests speak of the old one."""
    manifests = "groups: [{name: Trainers, members: [ann@acme.example, bo@acme.example]}]"
    seed = SEED.replace("groups:\n", "groups:\n  - {name: Mentors, members: [ann@acme.example, bo@acme.example]}\n", 1)
    project(tmp_path, "{all: {group: Trainers}, has: GDPR}", manifests=manifests, seed=seed)
    lmsconf(tmp_path, "drift", "--accept", "group/Trainers", code=0)
    assert "all: {group: Mentors}" in (tmp_path / "manifests" / "all.yaml").read_text(encoding="utf-8")
