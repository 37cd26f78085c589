"""What a plan asks of the five kinds. The tables say which function answers for which kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeAlias

from lmsconf.api.spec import ApiSpec
from lmsconf.kinds.assignment.compare import (
    assignment_before_deletion,
    diff_assignment,
    match_assignments,
)
from lmsconf.kinds.assignment.steps import assignment_deletion, assignment_steps
from lmsconf.kinds.custom_field.compare import (
    diff_field,
    field_before_deletion,
    live_field_form,
    match_fields,
    similar_choices,
)
from lmsconf.kinds.custom_field.lost_answers import count_lost_answers, record_deletions
from lmsconf.kinds.custom_field.steps import count_slots, field_deletion, field_steps
from lmsconf.kinds.group import (
    GroupRow,
    conditions_for_rename_detection,
    diff_smart_group,
    group_before_deletion,
    group_deletion,
    group_steps,
    live_group_form,
    match_smart_groups,
    members_for_rename_detection,
)
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.managed_resources import match_named
from lmsconf.kinds.shared.plan_context import (
    BeforeAfter,
    Deletion,
    Match,
    MatchResult,
    PlanContext,
    SideEffect,
    Similarity,
)
from lmsconf.kinds.shared.rename_and_list_steps import find_rename_cycles
from lmsconf.kinds.smart_group import record_reference_changes
from lmsconf.kinds.user.compare import diff_person, match_people, report_admin_lockout
from lmsconf.kinds.user.people_directory import compare_group
from lmsconf.kinds.user.steps import person_steps
from lmsconf.model.calls import Step
from lmsconf.model.declarations import DeleteEntry, DesiredResource, Manifests
from lmsconf.model.forms import Form
from lmsconf.model.guards import Policy
from lmsconf.model.snapshot import Snapshot

Subject: TypeAlias = Match[Any, Any] | Deletion[Any] | SideEffect

_MATCH: Final[Mapping[str, Callable[..., MatchResult[Any, Any]]]] = {
    CUSTOM_FIELD: match_fields,
    USER: match_people,
    GROUP: partial(match_named, row_type=GroupRow, noun="group"),
    SMART_GROUP: match_smart_groups,
    CONTENT_TARGET: match_assignments,
}
_DIFF: Final[Mapping[str, Callable[[PlanContext, Match[Any, Any]], BeforeAfter | None]]] = {
    CUSTOM_FIELD: diff_field,
    USER: diff_person,
    GROUP: partial(compare_group, own={}, wanted={}),
    SMART_GROUP: diff_smart_group,
    CONTENT_TARGET: diff_assignment,
}
_BEFORE_DELETION: Final[Mapping[str, Callable[[PlanContext, Deletion[Any]], BeforeAfter]]] = {
    CUSTOM_FIELD: field_before_deletion,
    GROUP: group_before_deletion,
    SMART_GROUP: group_before_deletion,
    CONTENT_TARGET: assignment_before_deletion,
}
_STEPS: Final[Mapping[str, Callable[[PlanContext, Match[Any, Any], BeforeAfter], list[Step]]]] = {
    CUSTOM_FIELD: field_steps,
    USER: person_steps,
    GROUP: group_steps,
    SMART_GROUP: group_steps,
    CONTENT_TARGET: assignment_steps,
}
_DELETION_STEPS: Final[Mapping[str, Callable[[PlanContext, Deletion[Any]], list[Step]]]] = {
    CUSTOM_FIELD: field_deletion,
    GROUP: group_deletion,
    SMART_GROUP: group_deletion,
    CONTENT_TARGET: assignment_deletion,
}
_SIMILARITY: Final[Mapping[str, Callable[[PlanContext, Form], Similarity]]] = {
    CUSTOM_FIELD: similar_choices,
    GROUP: members_for_rename_detection,
    SMART_GROUP: conditions_for_rename_detection,
}


def match_kind(
    planning: PlanContext, kind: str, declared: Sequence[DesiredResource[Any]], absent: Sequence[DeleteEntry[Any]]
) -> MatchResult[Any, Any]:
    """Match declarations of a kind with live resources, and register every name as it will be after apply."""
    return _MATCH[kind](planning, declared, absent)


def match_all(planning: PlanContext, manifests: Manifests) -> dict[str, MatchResult[Any, Any]]:
    """Match the declarations of every kind; return the results by kind."""
    return {kind: match_kind(planning, kind, *manifests.of_kind(kind)) for kind in _MATCH}


def named_context(snapshot: Snapshot, policy: Policy, api_spec: ApiSpec) -> PlanContext:
    """Return a context with nothing declared, in which every kind has registered the names of its live resources."""
    planning = PlanContext(
        snapshot,
        Policy(workspace=policy.workspace, today=policy.today, timezone=policy.timezone),
        api_spec,
        lambda _: True,
    )
    match_all(planning, Manifests())
    return planning


def diff(planning: PlanContext, match: Match[Any, Any]) -> BeforeAfter | None:
    """Return the live and declared state of a resource; None after a problem that rules out a comparison."""
    return _DIFF[match.address.kind](planning, match)


def state_before_deletion(planning: PlanContext, deletion: Deletion[Any]) -> BeforeAfter:
    """Return the live state of a resource to be deleted; `after` is None."""
    return _BEFORE_DELETION[deletion.address.kind](planning, deletion)


def check_across_kinds(planning: PlanContext, results: Mapping[str, MatchResult[Any, Any]]) -> None:
    """Record what kinds need to know of each other, and check each as a whole, once all are compared.

    results: by kind, as matched.
    """
    find_rename_cycles(planning)
    record_deletions(planning, results[CUSTOM_FIELD])
    report_admin_lockout(planning, results[USER])
    count_lost_answers(planning)
    record_reference_changes(planning, results[SMART_GROUP])
    count_slots(planning, results[CUSTOM_FIELD])


def plan_steps(planning: PlanContext, subject: Subject, sides: BeforeAfter) -> list[Step]:
    """Return the calls that change a resource from `before` to `after`; none for what the service changes itself."""
    if isinstance(subject, Match):
        return _STEPS[subject.address.kind](planning, subject, sides)
    return _DELETION_STEPS[subject.address.kind](planning, subject) if isinstance(subject, Deletion) else []


def live_form(planning: PlanContext, kind: str, row: Any) -> Form:
    """Return the content of a live resource, as far as it was read, to detect renames."""
    return live_field_form(row) if kind == CUSTOM_FIELD else live_group_form(planning, row)


def similarity(planning: PlanContext, kind: str, form: Form) -> Similarity | None:
    """Return the content by which a renamed resource is detected; None if renames need no detection."""
    return _SIMILARITY[kind](planning, form) if kind in _SIMILARITY else None
