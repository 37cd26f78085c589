"""What stops an apply, sentence by sentence: counts, shares, consent, protection, and no way around them."""

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from flow.project import Project
from msgspec.structs import replace
from texts import listed_cases

from lmsconf.errors import Problem
from lmsconf.model.address import Address
from lmsconf.model.guards import Consent, GuardLimit, GuardLimits
from lmsconf.model.plan import Action, Change, FieldChange, GuardCount, GuardResult
from lmsconf.model.problem_codes import blockers
from lmsconf.planner.check_guards import evaluate_guards, find_protected_changes, find_protected_losses

from .served_project import ServedProject, numbered, staged

pytestmark = pytest.mark.sampled  # some seconds in all


def spelled(text: str) -> str:
    """A manifest with each range spelled out: [0-2] are the first three of forty people, [c0-c2] three choices."""

    def names(found: re.Match[str]) -> str:
        numbers = range(int(found[2]), int(found[3]) + 1)
        return "[" + ", ".join(f"c{n}" if found[1] else f"p{n:02}@acme.example" for n in numbers) + "]"

    return re.sub(r"\[(c?)(\d+)-c?(\d+)\]", names, text)


SEED = spelled(
    numbered("people", range(40), "{{email: p{n:02}@acme.example}}")
    + numbered("smart_groups", range(6), "{{name: S{n}, conditions: [{{field: D, choices: [X]}}]}}")
    + numbered("content", range(25), "{{name: C{n}}}")
    + numbered("content_targets", range(20), "{{content: C{n}, assign_to: [everyone]}}")
    + "  - {content: C0, assign_to: [{group: Assigned}]}\n  - {content: C1, assign_to: [{group: Assigned}]}\n"
    + numbered("groups", range(6), "{{name: T{n}}}")
    + """
  - {name: Twenty, members: [0-19], managers: [0-19]}
  - {name: Nineteen, members: [0-18]}
  - {name: Assigned, members: [0-1], managers: [2-2]}
  - {name: 'Kept/1', members: [0-2], managers: [3-3]}
custom_fields:
  - {name: D, type: CHOICE, choices: [X, Y]}
  - {name: Many, type: CHOICE, choices: [c0-c19]}
  - {name: E1, type: TEXT}
  - {name: E2, type: TEXT}
"""
)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    with staged(tmp_path, SEED, monkeypatch) as stage:
        yield stage


def guards(stage: ServedProject, manifests: str, options: str = "") -> Mapping[str, Any]:
    """How the plan stands to each guard."""
    stage.options(options)
    stage.write(spelled(manifests))
    found: Any = stage("plan", "--format", "json", code=0).document["guards"]
    return {str(one["name"]): one for one in found}


@listed_cases("manifests", "options", "guard", "total", "tripped")
def test_a_guard_counts(
    stage: ServedProject, manifests: str, options: str, guard: str, total: int, tripped: bool
) -> None:
    """Totals over all kinds, shares of a list or a kind of at least twenty: the plan tells, and apply stops with 4."""
    found = guards(stage, manifests, options)[guard]
    assert (found["total"], found["tripped"]) == (total, tripped), found["reason"]
    if tripped:
        ran = stage("apply", "--auto-approve", code=4)
        assert ran.writes == []
        assert f"--allow {guard}={total}" in ran.err


SIX = "absent: {groups: [T0, T1, T2, T3, T4, T5]}\n"


@pytest.mark.parametrize(
    "said", ["guards:\n", "guards: null\n", "guards: false\n", "guards: 'no'\n", "guards: {all: off}\n"]
)
def test_off_is_said_never_implied(stage: ServedProject, said: str) -> None:
    """Whatever else is written in its place is an error of the project file, and never a plan without guards."""
    stage.options(said)
    stage.write(SIX)
    assert stage("apply", "--auto-approve", code=1).writes == []


def test_off_is_off(stage: ServedProject) -> None:
    """Said, there is no guard; an empty mapping says nothing, so that the usual limits hold."""
    assert guards(stage, SIX, "guards: off\n") == {}
    assert guards(stage, SIX, "guards: {}\n")["deletes"]["tripped"]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--allow", "deletes=6"], 0),
        (["--allow", "deletes=5"], 4),
        (["--allow", "deletes=7"], 4),
        (["--allow", "removals=6"], 4),
        (["--allow", "deletes=5", "--allow", "deletes=6"], 0),
        (["--allow", "deletes=*"], 64),
        (["--allow", "deletes=-1"], 64),
        (["--allow", "deletes=²"], 64),
        (["--allow", "deletes=٦"], 64),
        (["--allow", "protect=6"], 64),
        (["--allow", "deletes"], 64),
    ],
    ids=str,
)
def test_consent_is_exact(stage: ServedProject, arguments: list[str], code: int) -> None:
    """It names the guard and the plan's own total, in plain digits, and nothing else passes."""
    stage.write(SIX)
    assert bool(stage("apply", "--auto-approve", *arguments, code=code).writes) == (code == 0)


@listed_cases("allow", "code")
def test_consent_of_the_project_file_has_a_date(stage: ServedProject, allow: str, code: int) -> None:
    """It holds for the exact number and before its day; without a day it is an error."""
    stage.options(f"allow: [{allow}]\n")
    stage.write(SIX)
    assert bool(stage("apply", "--auto-approve", code=code).writes) == (code == 0)


def test_the_guards_of_a_plan_file_are_computed_again(stage: ServedProject) -> None:
    """What counts is the project file of the day of the apply: stricter limits stop, and consent must be given anew."""
    stage.write("absent: {groups: [T0, T1]}")
    plan = stage.saved()
    for options in ("guards: {protect: [group/T1]}\n", "guards: {deletes: {count: 1}}\n"):
        stage.options(options)
        assert stage("apply", plan, code=4).writes == []
    stage("apply", plan, "--allow", "deletes=2", code=0)


def test_consent_given_to_the_plan_is_none_for_the_apply(stage: ServedProject) -> None:
    """A plan that was made while a consent held is stopped once the project file has it no more."""
    stage.options("allow: [{deletes: 6, until: 2999-01-01}]\n")
    stage.write(SIX)
    plan = stage.saved()
    stage.options("")
    assert stage("apply", plan, code=4).writes == []


OFF = "guards: {deletes: off, removals: off}\n"
TAKES: Mapping[str, tuple[str, str]] = {
    "deleted": ("absent: {groups: ['Kept/1']}", OFF),
    "owned and not declared": ("groups: [{name: T0}]", "guards: off\n"),
    "renamed": ("groups: [{name: Other, previously: ['Kept/1']}]", OFF),
    "member": ("groups: [{name: 'Kept/1', members: [0-1]}]", OFF),
    "manager": ("groups: [{name: 'Kept/1', managers: []}]", OFF),
    "excluded": ("groups: [{name: 'Kept/1', members: {exclude: [0-0]}}]", OFF),
    "swapped": ("groups: [{name: 'Kept/1', members: [1-3]}]", OFF),
}


@pytest.mark.parametrize("how", TAKES)
def test_nothing_lifts_protection(stage: ServedProject, how: str) -> None:
    """Not deleted, not renamed, nothing taken out: not with guards off, not with any consent, not from a plan file."""
    manifest, off = TAKES[how]
    owned = "ownership: {groups: ['Kept*']}\n" if how == "owned and not declared" else ""
    stage.options(owned + off)
    stage.write(spelled(manifest))
    plan = stage.saved()
    stage.options(owned + "guards: {deletes: off, removals: off, recreates: off, protect: ['group/Kept*']}\n")
    allowed = [word for n in range(5) for guard in ("deletes", "removals") for word in ("--allow", f"{guard}={n}")]
    for arguments in (["--auto-approve", *allowed], [plan, *allowed]):
        ran = stage("apply", *arguments, code=4)
        assert ran.writes == []
        assert "refusal/protected" in ran.err


@pytest.mark.parametrize(
    "spoil",
    [
        lambda folder: folder.joinpath("all.yaml").unlink(),
        lambda folder: folder.joinpath("all.yaml").write_text(""),
        lambda folder: folder.joinpath("all.yaml").write_text("# nothing\n---\n...\n"),
        lambda folder: folder.joinpath("all.yaml").write_text("{}\n"),
        lambda folder: folder.joinpath("all.yaml").write_text("x-anchors: {a: 1}\n"),
        lambda folder: folder.joinpath("all.yaml").write_text("groups:\n"),
        lambda folder: folder.joinpath("all.yaml").write_bytes(b"\xff\xfe\x00"),
        lambda folder: folder.joinpath("all.yaml").rename(folder / "_all.yaml"),
        lambda folder: folder.rename(folder.parent / "elsewhere"),
        lambda folder: (folder.joinpath("all.yaml").unlink(), folder.joinpath("all.yaml").symlink_to("/nowhere.yaml")),
        lambda folder: folder.joinpath("b.yaml").mkdir() or folder.joinpath("all.yaml").write_text("groups: [}"),
    ],
    ids=["no file", "empty", "no document", "{}", "x-", "null", "binary", "hidden", "no folder", "dangling", "broken"],
)
def test_empty_manifests_with_ownership_are_refused(stage: ServedProject, spoil: Callable[[Path], object]) -> None:
    """Where nothing can be read, or nothing is said, everything owned would go: that is an error and no plan."""
    stage.options("ownership: {groups: ['T*'], smart_groups: all}\nguards: off\n")
    stage.write("groups: [{name: T0}]")
    spoil(stage.root / "manifests")
    for command in (["plan"], ["apply", "--auto-approve"]):
        ran = stage(*command, code=1)
        assert (ran.writes, bool(ran.err)) == ([], True)


# Guards on measures alone: what each says, at its limit and one beside it.


def judged(*measures: GuardCount, limit: GuardLimit | None = None, consents: tuple[Consent, ...] = ()) -> GuardResult:
    """How the guard on deletions stands."""
    limits = {"deletes": limit or GuardLimit(count=5, share=0.1)}
    return evaluate_guards(measures, GuardLimits().with_limits(limits), consents)[0]


def deletes(taken: int, size: int = 0, of: str = "all groups") -> GuardCount:
    return GuardCount(guard="deletes", of=of, taken=taken, size=size)


@pytest.mark.parametrize(
    ("taken", "size", "limit", "reason"),
    [
        (5, 0, None, None),
        (6, 0, None, "6 deletes, and the limit is 5"),
        (2, 20, None, None),
        (3, 20, None, "3 of 20 in all groups, and the limit is 10%"),
        (3, 19, None, None),
        (29, 100, GuardLimit(count=None, share=0.29), None),
        (90, 100, GuardLimit(count=None, share=0.125), "90 of 100 in all groups, and the limit is 12.5%"),
        (99, 100, GuardLimit(count=99), None),
    ],
)
def test_a_limit_may_be_reached_and_not_passed(
    taken: int, size: int, limit: GuardLimit | None, reason: str | None
) -> None:
    """By the total, or by the share of a list of twenty and more; the reason says which."""
    guard = judged(deletes(taken, size), limit=limit)
    assert (guard.reason, guard.tripped, guard.total) == (reason, reason is not None, taken)
    assert guard.allow == (None if reason is None else f"deletes={taken}")
    assert guard.allowed_by is None


def test_consent_that_nothing_needs_allows_nothing() -> None:
    """A guard that does not stop was allowed by nobody."""
    guard = judged(deletes(5), consents=(Consent(guard="deletes", number=5),))
    assert (guard.tripped, guard.allowed_by, guard.allow) == (False, None, None)


def change(name: str, action: Action, *fields: FieldChange, of: str = "group") -> Change:
    nothing = dict.fromkeys(("id", "about", "source", "before", "after"))
    return Change(address=Address.of(of, name), action=action, fields=fields, **nothing)


def test_an_exclusion_lifts_no_pattern_of_another_list() -> None:
    """Neither a workspace's one, nor one of the limits that a plan was saved with; one of the same list does."""
    base, other = ("group/Safety*", "!group/Safety test"), ("!group/Safety officers",)
    changes = [change("Safety officers", Action.DELETE), change("Safety test", Action.DELETE)]
    for first, second in ((base, other), (other, base)):
        lists = GuardLimits(protect=(first,)).stricter(GuardLimits(protect=(second,))).protect
        assert [one.address for one in find_protected_changes(changes, lists)] == ["group/Safety officers"]


# What stands where apply would stop: the first five reasons of a guard, and how many more there are.


@pytest.mark.parametrize(("number", "more"), [(4, None), (5, None), (6, "… and 1 more"), (9, "… and 4 more")])
def test_five_reasons_are_listed(tmp_path: Path, number: int, more: str | None) -> None:
    """Five of them one by one, the rest as a count."""
    seed = numbered("groups", range(3), "{{name: G{n}}}")
    plan = Project(tmp_path, seed, "guards: {deletes: {count: 0}}\n").plan("absent: {groups: [G0]}")
    guard = replace(next(one for one in plan.guards if one.tripped), name="answers")
    problems = tuple(Problem(code="custom-field/answers-lost", message=f"reason {n}") for n in range(number))
    [blocker] = blockers(replace(plan, guards=(guard,), problems=problems))
    lines = (blocker.hint or "").splitlines()
    assert lines[:5] == [f"reason {n}." for n in range(min(number, 5))]
    assert lines[5:] == ([more] if more else [])


def test_what_one_of_two_lists_protects_keeps_its_people() -> None:
    """The project's list, or that of a base: a smart group that people leave is named by either."""
    address = Address.of("smart_group", "Board")
    for lists in ((("smart_group/Board",), ("group/*",)), (("group/*",), ("smart_group/Board",))):
        [problem] = find_protected_losses({address: 3}, lists)
        assert problem.code == "refusal/protected"


def test_a_condition_more_takes_people_out_of_what_is_protected() -> None:
    """Nothing is removed from the list of conditions, and people leave the smart group all the same."""
    more = FieldChange(path="conditions", before=["a"], after=["a", "b"], added=("b",))
    narrowed = change("Board", Action.UPDATE, more, of="smart_group")
    [problem] = find_protected_changes([narrowed], [("smart_group/Board",)])
    assert "add a condition to it" in problem.message
