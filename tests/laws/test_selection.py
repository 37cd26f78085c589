"""What holds for every part of a plan: `--additive` only adds, `--only` touches what it names and what that needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from laws.conftest import Open
from laws.hypothesis_profile import tried
from laws.random_manifests import RandomManifests, wishes
from laws.random_workspaces import RandomWorkspace
from lmsconf.errors import ProblemsFound
from lmsconf.kinds.entries import dependencies
from lmsconf.model.plan import Action

Both = tuple[RandomWorkspace, RandomManifests]
LISTS = ("members", "managers", "choices")


@tried(80)
@given(wishes())
def test_additive_only_adds(opened: Open, both: Both) -> None:
    """After an additive run everything is there under its name and as it was; only lists may have grown."""
    stage = opened(both)
    # A name that is left as it is cannot be told from outside by what refers to it under its new one.
    paths = [field.path for change in stage.plan().changes for field in change.fields]
    assume("name" not in paths)
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
                assert _items(value) <= _items(now), (at, key)
            else:
                assert now == value, (at, key)


def _items(value: object) -> set[str]:
    return {str(one) for one in cast("Iterable[object]", value)}


@tried(80)
@given(wishes(), st.integers(0, 99))
def test_only_touches_what_it_names_and_needs(opened: Open, both: Both, place: int) -> None:
    """A plan of one address has changes of that one, of what it needs, and of what goes with it; so has its apply."""
    stage = opened(both)
    whole = stage.plan()
    declared = {one.address: one for one in stage.manifests().declared}
    chosen = [change for change in whole.changes if change.address in declared and "*" not in str(change.address)]
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
