"""What holds for `plan --base --since`, for random workspaces and changes: it is the `--only` plan of the change."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import assume, given
from hypothesis import strategies as st

from laws.conftest import Open
from laws.hypothesis_profile import tried
from laws.random_manifests import RandomManifests, wishes
from laws.random_workspaces import RandomWorkspace
from laws.sandbox_project import SandboxProject, yaml_text
from lmsconf.errors import LmsconfError, ProblemsFound
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import Manifests
from lmsconf.model.names import exact_pattern
from lmsconf.model.plan import Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.workspace.base_comparison import BaseManifests, ManifestsVersion
from lmsconf.workspace.plan_since import plan_since
from lmsconf.workspace.plan_with_base import plan_with_base
from lmsconf.workspace.settings_comparison import settings_by_path
from lmsconf.workspace.since_checks import find_difference

Both = tuple[RandomWorkspace, RandomManifests]


def smaller(document: Mapping[str, object], kept: int) -> dict[str, object]:
    """The manifests with every entry of lists whose place fits `kept`, as an older version may have had them."""
    return {
        section: [entry for place, entry in enumerate(entries) if (kept >> (place % 8)) & 1]
        if isinstance(entries, list)
        else entries
        for section, entries in document.items()
    }


def base_of(stage: SandboxProject, both: Both, kept: int) -> BaseManifests:
    """A base with a part of the manifests; those on disk are whole again afterwards."""
    document = both[1].document()
    stage.rewrite({"all.yaml": yaml_text(smaller(document, kept))})
    before: Manifests = stage.manifests()
    stage.rewrite({"all.yaml": yaml_text(document)})
    assume(not any(problem.is_error for problem in before.problems))
    version = ManifestsVersion(before, stage.settings.policy, settings_by_path(stage.settings))
    return BaseManifests(name="main", version=version)


def planned(stage: SandboxProject, base: BaseManifests, snapshot: Snapshot) -> tuple[Plan | None, Plan | None]:
    """The plan with --since, and that of the whole change with --only; None for errors."""
    policy, manifests = stage.settings.policy, stage.manifests()
    try:
        difference = find_difference(manifests, base, policy)
    except LmsconfError:
        assume(False)
        raise
    assume(difference.touched)
    only = replace(policy, only=tuple(exact_pattern(str(address)) for address in difference.touched))
    plans: list[Plan | None] = []
    for make in (
        lambda: plan_since(stage.workspace, manifests, policy, base, snapshot),
        lambda: plan_with_base(stage.workspace, manifests, only, base),
    ):
        try:
            plans.append(make())
        except ProblemsFound:
            plans.append(None)
    return plans[0], plans[1]


def said(plan: Plan | None) -> Json:
    """What is equal: changes but for their origin, calls, fingerprints, guards, and effects but for their cost."""
    if plan is None:
        return None
    changes = [repr(replace(change, origin=None)) for change in plan.changes]
    effects = repr(replace(plan.effects, requests=0))
    return [changes, list(map(repr, plan.calls)), dict(plan.fingerprints), list(map(repr, plan.guards)), effects]


@tried(80)
@given(wishes(), st.integers(0, 255))
def test_it_is_the_plan_of_the_change(opened: Open, both: Both, kept: int) -> None:
    """Nothing was edited since the snapshot: the same changes, calls, fingerprints, guards and effects."""
    stage = opened(both)
    base = base_of(stage, both, kept)
    mine, theirs = planned(stage, base, stage.workspace.snapshot(manifests=stage.manifests()))
    assert said(mine) == said(theirs)
    if mine is not None:
        stage.workspace.refuse_stale_plan(mine)


@tried(80)
@given(wishes(), st.integers(0, 255))
def test_edits_since_then_are_seen_or_stopped(opened: Open, both: Both, kept: int) -> None:
    """All that the manifests want was done since the snapshot: touched resources are live, and no stale plan passes."""
    stage = opened(both)
    base = base_of(stage, both, kept)
    old = stage.workspace.snapshot(manifests=stage.manifests())
    whole = stage.plan()
    assume(not any(problem.is_error for problem in whole.all_problems))
    if whole.calls:
        stage.apply(whole)
    mine, theirs = planned(stage, base, old)
    assert said(mine) == said(theirs)
