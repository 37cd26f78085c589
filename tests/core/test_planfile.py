"""A plan file gives back the plan it was made from, and nothing else passes for one."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator

import pytest
from msgspec.structs import replace

from lmsconf.apply.rehearse import refuse_unrehearsed
from lmsconf.documents import plan_file
from lmsconf.documents.document import render_canonical_json
from lmsconf.errors import ExitCode, LmsconfError, Problem, SourceLocation, StalePlan
from lmsconf.model.address import Address, Ref
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json, sha256
from lmsconf.model.plan import (
    Action,
    Change,
    Plan,
    PlanScope,
    Rehearsal,
    RehearsalOutcome,
    RehearsalPace,
    RehearsalReceipt,
    SettingChange,
    Undo,
    UndoLevel,
)

GROUP = Address.of("group", "Å/B")
PLAN = Plan(
    workspace="sandbox",
    url="sandbox:",
    people=3,
    created_at="2026-03-01T08:00:00Z",
    expires_at="2026-03-08T08:00:00Z",
    policy={},
    manifests_digest="ab",
    manifests_files=("groups.yaml",),
    offline=False,
    timezone=None,
    changes=(
        Change(
            address=GROUP,
            action=Action.CREATE,
            id=None,
            about={"owner": "hr"},
            source=SourceLocation("groups.yaml", 3, 5),
            before=None,
            after={"members": ["a@b.c"]},
            fields=(),
            problems=(Problem(code="x", message="y", source=SourceLocation("groups.yaml", 4)),),
        ),
    ),
    calls=(
        Call(
            id="c1",
            address=GROUP,
            operation="manual-groups.create",
            method="POST",
            path="/groups",
            query={},
            body={"name": "Å/B", "field": Ref(GROUP), "choice": [Ref(GROUP, "No/rth")]},
        ),
    ),
    guards=(),
    unmanaged=(),
    fingerprints={"group/A": "00"},
    problems=(),
)
TEXT = plan_file.dumps(PLAN)


def rehearsal_of_one_call(outcome: RehearsalOutcome) -> Rehearsal:
    """A rehearsal with a receipt for the plan with the digest `a`."""
    receipt = RehearsalReceipt(
        plan_digest="a", snapshot_digest="b", outcome=outcome, at="2026-03-01T08:00:00Z", tool="lmsconf 0"
    )
    return Rehearsal(
        receipt=receipt,
        taken_at="2026-03-01T08:00:00Z",
        calls=1,
        done=1,
        failed=(),
        remaining=(),
        problems=(),
        assumptions=(),
        memberships=(),
        pace=RehearsalPace(requests=7),
    )


def test_the_rate_of_a_rehearsal_is_a_number() -> None:
    """A plan file in which it is anything else is refused."""
    rehearsal = rehearsal_of_one_call(RehearsalOutcome.NOT_CONVERGED)
    text = plan_file.dumps(replace(PLAN, rehearsal=rehearsal))
    assert plan_file.loads(text).rehearsal == rehearsal
    for rate in ("fast", True):
        document = json.loads(text)
        document["rehearsal"]["pace"]["rate"] = rate
        document["seal"] = sha256({**document, "seal": ""})
        with pytest.raises(StalePlan):
            plan_file.loads(render_canonical_json(document))


def test_the_rehearsal_of_another_plan_is_none() -> None:
    """A receipt counts only for the plan whose digest it has."""
    rehearsal = rehearsal_of_one_call(RehearsalOutcome.SUCCESS)
    refuse_unrehearsed(replace(PLAN, rehearsal=rehearsal), "a")
    with pytest.raises(StalePlan, match="is of a plan with the digest a, and this one's is c"):
        refuse_unrehearsed(replace(PLAN, rehearsal=rehearsal), "c")


def test_a_plan_with_masked_people_is_no_plan_to_apply() -> None:
    """It keeps the digest of the plan that it shows, says that it is masked, and how to save that plan."""
    masked = plan_file.dumps(replace(PLAN, masked_digest="ab"))
    assert json.loads(masked)["digest"] == "ab"
    with pytest.raises(StalePlan, match="masked people, and cannot be applied") as refused:
        plan_file.loads(masked)
    assert "without --mask-people" in str(refused.value.hint)


def leaves(value: object, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """The path of every value inside a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(leaf for key, item in items for leaf in leaves(item, (*path, key)))]


def edited() -> Iterator[dict[str, Json]]:
    """The document with each of its values replaced in turn, by values of every type."""
    for path in leaves(json.loads(TEXT))[1:]:
        for value in ("another", None, 7, [], {}):
            document = json.loads(TEXT)
            at = document
            for key in path[:-1]:
                at = at[key]
            if at[path[-1]] != value:
                at[path[-1]] = value
                yield document


def test_an_edited_value_with_a_new_seal_is_no_traceback() -> None:
    """Whoever seals an edited file anew is refused, or has written a whole plan with the digest of what it does."""
    for document in edited():
        document["seal"] = sha256({**document, "seal": ""})
        # Any other exception would be the traceback that this test looks for.
        with contextlib.suppress(LmsconfError):
            assert plan_file.plan_digest(plan_file.loads(render_canonical_json(document))) == document["digest"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a complete document"),
        ("[]", "no format"),
        ('{"format": 1}', "no format"),
        ('{"format": "lmsconf.plan/1", "format": "lmsconf.plan/1"}', "duplicate key"),
        ('{"format": "lmsconf.plan/1", "people": NaN}', "NaN is not a JSON number"),
        ('{"format": "lmsconf.plan/2"}', "the format 'lmsconf.plan/2', not 'lmsconf.plan/1'"),
        ('{"format": "lmsconf.apply/1"}', "the format 'lmsconf.apply/1'"),
        ('{"format": "lmsconf.plan/1"}', "changed after"),
        ("[" * 100_000, "not a complete document"),
        ('{"format": "lmsconf.plan/1", "people": ' + "1" * 5000 + "}", "not a complete document"),
    ],
    ids=range(10),
)
def test_what_is_no_plan_file_is_refused_kindly(text: str, said: str) -> None:
    """Other texts are refused with the reason and a way out, never with a traceback."""
    with pytest.raises(LmsconfError) as caught:
        plan_file.loads(text)
    assert said in caught.value.message
    assert caught.value.hint
    assert caught.value.exit in {ExitCode.ERROR, ExitCode.STALE}


def without_places(plan: Plan) -> Plan:
    change = plan.changes[0]
    problem = replace(change.problems[0], source=None)
    return replace(plan, changes=(replace(change, source=None, about=None, problems=(problem,)),))


@pytest.mark.parametrize(
    "other",
    [
        without_places(PLAN),
        replace(PLAN, created_at="later", manifests_digest="cd", manifests_files=("b.yaml",)),
        replace(PLAN, people=4, selection=PlanScope(only=("group/A",), additive=True)),
        replace(PLAN, changes=(replace(PLAN.changes[0], undo=Undo(level=UndoLevel.NONE, reason="x")),)),
        replace(PLAN, expires_at="later"),
        replace(PLAN, base="main", settings_changed=(SettingChange(path="settle", base=30, now=0, weaker=True),)),
    ],
    ids=["places", "files", "circumstances", "undo", "expiry", "base"],
)
def test_equal_plans_have_equal_digests(other: Plan) -> None:
    """Moving a resource to another file or line, or planning later, keeps the digest that was approved."""
    assert plan_file.plan_digest(other) == plan_file.plan_digest(PLAN)
    assert json.loads(TEXT)["digest"] == plan_file.plan_digest(PLAN)


@pytest.mark.parametrize(
    "edit",
    [
        lambda plan: replace(plan, workspace="production"),
        lambda plan: replace(plan, url="https://lms.example"),
        lambda plan: replace(plan, fingerprints={}),
        lambda plan: replace(plan, policy={"settle": 0}),
        lambda plan: replace(plan, calls=()),
        lambda plan: replace(plan, changes=(replace(plan.changes[0], after={"members": []}),)),
    ],
    ids=["workspace", "url", "fingerprints", "policy", "calls", "after"],
)
def test_other_plans_have_other_digests(edit: Callable[[Plan], Plan]) -> None:
    """What would be done, where, and to what state of it are all in the digest."""
    assert plan_file.plan_digest(edit(PLAN)) != plan_file.plan_digest(PLAN)


def test_a_plan_of_another_version_is_read() -> None:
    """The format's version decides whether a file can be read, not the tool's."""
    document = json.loads(TEXT)
    document["tool"]["version"] = "99"
    document["seal"] = sha256({**document, "seal": ""})
    assert plan_file.loads(render_canonical_json(document)) == PLAN
