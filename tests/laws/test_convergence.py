"""What holds for every workspace and every manifest: apply settles, and what no manifest declares stays as it is."""

import json
import re
from random import Random
from typing import Any, Final

import pytest
from hypothesis import assume, event, example, given
from hypothesis import strategies as st
from laws.conftest import Both, Open
from laws.random_manifests import ALL, RandomManifests, wishes
from laws.random_workspaces import Field, Group, RandomWorkspace
from laws.sandbox_project import Raw, SandboxProject, Shuffled, assume_sure, shape, tried, yaml_text
from msgspec.structs import replace

from lmsconf.documents.plan_file import dumps
from lmsconf.errors import ExitCode, ProblemsFound
from lmsconf.kinds.kind_table import dependencies
from lmsconf.model.calls import CallStatus
from lmsconf.model.plan import Action, Plan
from lmsconf.sandbox.faults import Fault, FaultScript

pytestmark = pytest.mark.sampled(day=4, gate=6)  # minutes in all


@tried(500)
@given(wishes())
def test_what_is_applied_settles_and_touches_nothing_else(opened: Open, both: Both) -> None:
    """A plan writes nothing. After an apply the next one is empty, and what no manifest declares is what it was."""
    stage = opened(both)
    before = stage.look()
    plan = stage.plan()
    assert stage.writes() == 0
    if any(call.may_be_refused for call in plan.calls):
        _fails_only_as_foretold(stage, plan)
    else:
        _settles(stage, plan)
    assert_untouched(before, stage.look(), both[1])


def _settles(stage: SandboxProject, plan: Plan) -> None:
    event("applied" if plan.calls else "nothing to do")
    if plan.calls:
        report = stage.apply(plan)
        assert [str(one) for one in report.outcomes if one.status is not CallStatus.DONE] == []
        assert (report.converged, report.exit, report.problems) == (True, ExitCode.OK, ()), report.residue
    again = stage.plan()
    assert (again.changes, again.calls) == ((), ())
    assert not any(guard.tripped for guard in again.guards)


def _fails_only_as_foretold(stage: SandboxProject, plan: Plan) -> None:
    """A service that refuses what the plan said it may refuse makes nothing else fail."""
    event("refused")
    report = stage.apply(plan)
    risky = {call.id for call in plan.calls if call.may_be_refused}
    assert {one.call for one in report.outcomes if one.status is CallStatus.FAILED} <= risky
    left = {change.address for change in stage.plan().changes}
    assert left <= {one.address for one in report.outcomes if one.status is not CallStatus.DONE}


def assert_untouched(before: Raw, after: Raw, wish: RandomManifests) -> None:
    """Things that the wish does not speak of are there as they were, and so are the keys that it leaves out."""
    for (kind, id), said in before.items():
        spoken = wish.spoken.get((kind, id), frozenset())
        if spoken == ALL or (kind == "content_target" and _goes_along(id, before, wish)):
            continue
        now = after[kind, id]
        for key, value in said.items():
            if f"{key}-" in spoken:
                named = wish.named[kind, id, key]
                if key == "choices":
                    named |= _ids(now[key]) - _ids(value)  # new ones are of those that were named
                assert _others(value, named) == _others(now[key], named), (kind, id, key)
            elif key not in spoken:
                assert now[key] == value, (kind, id, key)
        if not spoken:
            assert now.keys() == said.keys()


def _others(value: list[Any], named: frozenset[str]) -> list[object]:
    """What a list holds beside those that are named."""
    return [one for one in value if _id(one) not in named]


def _ids(value: list[Any]) -> frozenset[str]:
    return frozenset(map(_id, value))


def _id(one: Any) -> str:
    return str(one["choiceId"] if isinstance(one, dict) else one)


def _goes_along(id: str, before: Raw, wish: RandomManifests) -> bool:
    """Whether an assignment goes because its group does, or because lmsconf owns it."""
    content, _, audience = id.partition("/")
    if any(wish.spoken.get((kind, audience)) == ALL for kind in ("group", "smart_group")):
        return True
    owned = wish.ownership.get("content_target")
    speaks = any(kind == "content_target" and one.startswith(f"{content}/") for kind, one in wish.spoken)
    return owned is not None and ("all" in owned or speaks)


# What holds for every run that goes wrong: run again, and it converges with no duplicates.


MISHAPS = st.sampled_from(
    [
        *(Fault(status=status) for status in (500, 403, 401, 409, 503)),
        Fault(status=503, times=2, headers={"retry-after": "0"}),
        Fault(cut=True),
        Fault(lose_answer=True),
    ]
)


@tried(80)
@given(wishes(), MISHAPS, st.integers(0, 60))
def test_a_run_cut_short_is_finished_by_the_next(opened: Open, both: Both, mishap: Fault, place: int) -> None:
    """Whichever call is refused, cut, or done without an answer: the next run ends where the first one would have."""
    stage = opened(both)
    plan = stage.plan()
    assume_sure(plan)
    stage.apply(plan)
    wanted = shape(stage.look())

    struck, earlier = plan.calls[place % len(plan.calls)].operation, plan.calls[: place % len(plan.calls)]
    after = sum(call.operation == struck for call in earlier)
    stage = opened(both, FaultScript(replace(mishap, operation=struck, after=after)))
    report = stage.apply(stage.plan())
    event("failed" if any(one.status is CallStatus.FAILED for one in report.outcomes) else "recovered")
    again = stage.plan()
    if again.calls:
        assert stage.apply(again).converged is True
    assert stage.plan().changes == ()
    assert shape(stage.look()) == wanted


# What holds for every order: neither that of files and entries nor that of rows in answers shows in a plan.


ORDERS = st.randoms(use_true_random=False)


# Two smart groups whose system conditions are read differently: each reading is a reason of the effects.
READINGS: Final = (
    RandomWorkspace(
        people={"anna@x.example": "p1"},
        fields=[Field(id="f-1", name="A", type="CHOICE", choices=[("ch-1", "a")])],
        smart_groups=[
            Group(id=id, name=word, conditions=[{"field": "A", "system_condition": word}])
            for id, word in (("s1", "IS_ANY"), ("s2", "IS_NOT"))
        ],
        contents={"c0": "Intro"},
        targets=[("Intro", {"smart_group": "IS_ANY"}, {}), ("Intro", {"smart_group": "IS_NOT"}, {})],
    ),
    RandomManifests(sections={"content_targets": [{"content": "Intro", "assign_to": ["everyone"]}]}),
)


@tried(80)
@given(wishes(), st.integers(0, 999))
@example(READINGS, 0)
def test_the_order_of_rows_does_not_show(opened: Open, both: Both, seed: int) -> None:
    """Plans of one workspace are byte-equal, in whatever order it lists its things and their people."""
    stage = opened(both)
    assert dumps(stage.seen_through(Shuffled(stage.sandbox, seed)).plan()) == dumps(stage.plan())


@tried(80)
@given(wishes(), ORDERS)
def test_the_order_of_files_and_entries_does_not_show(opened: Open, both: Both, order: Random) -> None:
    """Manifests spread over files and shuffled give the same plan, but for where it says that things stand."""
    stage = opened(both)
    before = _placeless(stage.plan())
    stage.rewrite(_spread(both[1].document(), order))
    assert _placeless(stage.plan()) == before


def _spread(document: dict[str, Any], order: Random) -> dict[str, str]:
    """The same entries in other files, in another order."""
    parts: dict[str, list[dict[str, object]]] = {"b.yaml": [], "a.yml": [], "deep é.yaml": []}
    for section, entries in document.items():
        absent = section == "absent"
        for key, items in (entries if absent else {section: entries}).items():
            mixed = [*items]
            order.shuffle(mixed)
            for item in mixed or [None]:
                part: dict[str, object] = {key: [] if item is None else [item]}
                parts[order.choice(list(parts))].append({"absent": part} if absent else part)
    for documents in parts.values():
        order.shuffle(documents)
    return {name: "---\n".join(map(yaml_text, documents)) for name, documents in parts.items()}


_PLACE = re.compile(r'manifests/[^:"]*\.ya?ml:\d+:\d+')


def _placeless(plan: Plan) -> dict[str, object]:
    """The plan's document without the places of its manifests."""
    text = _PLACE.sub("PLACE", dumps(plan))
    document = json.loads(text, object_hook=lambda one: {key: one[key] for key in one.keys() - {"source"}})
    return {key: document[key] for key in document.keys() - {"manifests", "seal"}}


# What holds for every part of a plan: `--additive` only adds, `--only` touches what it names and what that needs.


LISTS = ("members", "managers", "choices")


@tried(80)
@given(wishes())
def test_additive_only_adds(opened: Open, both: Both) -> None:
    """After an additive run everything is there under its name and as it was; only lists may have grown."""
    stage = opened(both)
    # A name that is left as it is cannot be told from outside by what refers to it under its new one.
    assume("name" not in [field.path for change in stage.plan().changes for field in change.fields])
    before = stage.look()
    additive = replace(stage.settings.policy, additive=True)
    try:
        plan = stage.workspace.plan(stage.manifests(), additive)
    except ProblemsFound as refused:
        assume({one.code for one in refused.problems if one.is_error} != {"reference/not-renamed"})
        raise
    assert not any(guard.total for guard in plan.guards if guard.name in ("deletes", "removals"))
    if plan.calls:
        stage.apply(plan)
    after = stage.look()
    for at, said in before.items():
        for key, value in said.items():
            now = after[at][key]
            if key in LISTS:
                assert {*map(str, value)} <= {*map(str, now)}, (at, key)
            else:
                assert now == value, (at, key)


@tried(80)
@given(wishes(), st.integers(0, 99))
def test_only_touches_what_it_names_and_needs(opened: Open, both: Both, place: int) -> None:
    """A plan of one address changes that resource, what it needs, and what goes with it; so does its apply."""
    stage = opened(both)
    whole = stage.plan()
    declared = {one.address: one for one in stage.manifests().declared}
    # A deletion at a declared address is that of another live resource with the same name, which is not what is named.
    chosen = [one for one in whole.changes if one.address in declared and one.action is not Action.DELETE]
    chosen = [change for change in chosen if "*" not in str(change.address)]
    chosen = [change for change in chosen if not set("?[") & set(str(change.address))]
    assume(chosen)
    address = chosen[place % len(chosen)].address
    needed = {address}
    for _ in range(3):  # an assignment needs a group, which needs fields
        needed |= {one for at in needed & declared.keys() for one in dependencies(declared[at])}
    # A name that another thing gives up can only be taken together with that one.
    given_up = {
        (one.address.kind, field.before) for one in whole.changes for field in one.fields if field.path == "name"
    }
    assume(not any((one.kind, one.name) in given_up for one in needed))
    plan = stage.plan(replace(stage.settings.policy, only=(str(address),)))
    assert plan.partial
    assert address in {change.address for change in plan.changes}
    assert {change.address for change in plan.changes} <= needed
    assert not any(change.action is Action.DELETE for change in plan.changes)
    assume(not any(problem.is_error for problem in plan.all_problems))  # a full workspace may lack a deletion now
    before = stage.look()
    stage.apply(plan)
    touched = {(change.address.kind, change.id) for change in plan.changes}
    after = stage.look()
    for at, said in before.items():
        if at not in touched and at[0] != "content_target":
            assert after[at] == said
    assert len(after) == len(before) + sum(change.action is Action.CREATE for change in plan.changes)
