"""Guards on measures alone: what each says, at its limit and one beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from flow.project import Project
from msgspec.structs import replace

from lmsconf.errors import Problem
from lmsconf.kinds import all_kinds
from lmsconf.model.address import Address
from lmsconf.model.blockers import blockers
from lmsconf.model.plan import Action, Change, FieldChange, GuardCount, GuardResult
from lmsconf.model.policy import Consent, GuardLimit, GuardLimits
from lmsconf.planner.guards import (
    evaluate_guards,
    refuse_protected_changes,
)


def judged(*measures: GuardCount, limit: GuardLimit | None = None, consents: tuple[Consent, ...] = ()) -> GuardResult:
    """How the guard on deletions stands."""
    return evaluate_guards(measures, GuardLimits(deletes=limit or GuardLimit(count=5, share=0.1)), consents)[0]


def deletes(taken: int, size: int = 0, of: str = "all groups") -> GuardCount:
    return GuardCount(guard="deletes", of=of, taken=taken, size=size)


@pytest.mark.parametrize(
    ("taken", "size", "reason"),
    [
        (5, 0, None),
        (6, 0, "6 deletes, and the limit is 5"),
        (2, 20, None),
        (3, 20, "3 of 20 in all groups, and the limit is 10%"),
        (3, 19, None),
    ],
)
def test_a_limit_may_be_reached_and_not_passed(taken: int, size: int, reason: str | None) -> None:
    """By the total, or by the share of a list of twenty and more; the reason says which."""
    guard = judged(deletes(taken, size))
    assert (guard.reason, guard.tripped, guard.total) == (reason, reason is not None, taken)
    assert guard.allow == (None if reason is None else f"deletes={taken}")
    assert guard.allowed_by is None


def test_totals_add_up_and_shares_do_not() -> None:
    """Every measure of its own guard counts, and none of another's."""
    other = GuardCount(guard="removals", of="group/A members", taken=40, size=400)
    assert judged(deletes(3), deletes(3), other).reason == "6 deletes, and the limit is 5"
    assert judged(deletes(2, 20), deletes(2, 20, "all fields"), other).reason is None
    found = judged(deletes(2, 20), deletes(3, 20, "all fields"))
    assert found.reason == "3 of 20 in all fields, and the limit is 10%"


def test_half_a_limit_can_be_off() -> None:
    """Without a count only shares stop, without a share only the total does; the limit shows what is on."""
    assert judged(deletes(99), limit=GuardLimit(count=None, share=0.5)).reason is None
    assert judged(deletes(11, 20), limit=GuardLimit(count=None, share=0.5)).tripped
    assert judged(deletes(99, 100), limit=GuardLimit(count=99)).reason is None
    assert dict(judged(limit=GuardLimit(count=99)).limit) == {"count": 99}
    assert dict(judged(limit=GuardLimit(count=None, share=0.125)).limit) == {"count": None, "share": 0.125}
    assert judged(deletes(90, 100), limit=GuardLimit(count=None, share=0.125)).reason == (
        "90 of 100 in all groups, and the limit is 12.5%"
    )


@pytest.mark.parametrize(
    ("consent", "passes"),
    [
        (Consent(guard="deletes", number=6), "--allow"),
        (Consent(guard="deletes", number=6, reason="Spring cleaning"), "Spring cleaning"),
        (Consent(guard="deletes", number=7), None),
        (Consent(guard="deletes", number=5), None),
        (Consent(guard="removals", number=6), None),
    ],
)
def test_consent_lifts_exactly_what_it_names(consent: Consent, passes: str | None) -> None:
    """Its guard and its number; the guard keeps its reason, and says who allowed it."""
    guard = judged(deletes(6), consents=(Consent(guard="refusals", number=6), consent))
    assert (guard.tripped, guard.allowed_by) == (passes is None, passes)
    assert guard.reason == "6 deletes, and the limit is 5"


def test_consent_that_nothing_needs_allows_nothing() -> None:
    """A guard that does not stop was allowed by nobody."""
    guard = judged(deletes(5), consents=(Consent(guard="deletes", number=5),))
    assert (guard.tripped, guard.allowed_by, guard.allow) == (False, None, None)


def change(name: str, action: Action, *fields: FieldChange, of: str = "group") -> Change:
    return Change(
        address=Address.of(of, name),
        action=action,
        id=None,
        about=None,
        source=None,
        before=None,
        after=None,
        fields=fields,
    )


def test_an_exclusion_lifts_no_pattern_of_another_list() -> None:
    """Neither a workspace's one, nor one of the limits that a plan was saved with; one of the same list does."""
    base, other = ("group/Safety*", "!group/Safety test"), ("!group/Safety officers",)
    changes = [change("Safety officers", Action.DELETE), change("Safety test", Action.DELETE)]
    for first, second in ((base, other), (other, base)):
        lists = GuardLimits(protect=(first,)).stricter(GuardLimits(protect=(second,))).protect
        found = refuse_protected_changes(all_kinds(), changes, lists)
        assert [one.address for one in found] == ["group/Safety officers"]


# What stands where apply would stop: the first five reasons of a guard, and how many more there are.


SEED = "groups: [" + ", ".join(f"{{name: G{n}}}" for n in range(3)) + "]\n"


@pytest.mark.parametrize(("number", "more"), [(4, None), (5, None), (6, "… and 1 more"), (9, "… and 4 more")])
def test_five_reasons_are_listed(tmp_path: Path, number: int, more: str | None) -> None:
    """Five of them one by one, the rest as a count."""
    plan = Project(tmp_path, SEED, "guards: {deletes: {count: 0}}\n").plan("absent: {groups: [G0]}")
    guard = replace(next(one for one in plan.guards if one.tripped), name="answers")
    problems = tuple(Problem(code="custom-field/answers-lost", message=f"reason {n}") for n in range(number))
    [blocker] = blockers(replace(plan, guards=(guard,), problems=problems))
    lines = (blocker.hint or "").splitlines()
    assert lines[:5] == [f"reason {n}." for n in range(min(number, 5))]
    assert lines[5:] == ([more] if more else [])
