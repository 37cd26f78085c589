"""Run the lints of all kinds, on manifests alone or on a plan; see lmsconf/model/lint_codes.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, time, tzinfo
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from lmsconf.errors import Problem, SourceLocation
from lmsconf.model.address import Address
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.lint_codes import LintLevel, apply_levels, lint_problem
from lmsconf.model.names import may_be_suspicious
from lmsconf.model.policy import Policy

if TYPE_CHECKING:
    from lmsconf.kinds.shared.kind import Kind
    from lmsconf.planner.audience.people_sets import AudienceSize
    from lmsconf.planner.plan import DraftPlan


class LintContext(Struct, frozen=True, kw_only=True):
    """What lints look at. declared: kind → the declarations that apply in the workspace, in the order of the manifests.

    now: the time of the plan, or the beginning of the day. timezone: in which times are shown. plan: None where only
    the manifests are known. sizes: how many people are in which audience after it, as far as that is known exactly.
    """

    declared: Mapping[str, Sequence[DesiredResource[Any]]]
    now: datetime
    timezone: tzinfo | None
    plan: DraftPlan | None = None
    sizes: Mapping[Address, AudienceSize] = field(default_factory=dict)

    def of(self, kind: str) -> Sequence[DesiredResource[Any]]:
        """Return the declarations of a kind."""
        return self.declared.get(kind, ())


def lint_manifests(
    kinds: Mapping[str, Kind], declared: Sequence[DesiredResource[Any]], policy: Policy
) -> list[Problem]:
    """Return the findings of lints that need no workspace."""
    now = datetime.combine(policy.today, time(), tzinfo=policy.timezone or UTC)
    context = LintContext(declared=_by_kind(declared, policy), now=now, timezone=policy.timezone)
    findings = _run(kinds, context, policy.lints)
    return sorted(findings, key=lambda finding: (finding.source or SourceLocation(""), finding.code))


def lint_plan(kinds: Mapping[str, Kind], draft: DraftPlan, sizes: Mapping[Address, AudienceSize]) -> list[Problem]:
    """Return the findings of lints about what a plan looks at. sizes: as in LintContext."""
    context = LintContext(
        declared=_by_kind(draft.declared, draft.planning.policy),
        now=datetime.fromisoformat(draft.plan.created_at),
        timezone=draft.planning.policy.timezone,
        plan=draft,
        sizes=sizes,
    )
    findings = _run(kinds, context, draft.lint_levels)
    chosen = (one for one in findings if one.address and draft.planning.chosen(Address.parse(one.address)))
    # By address, not by place: a plan does not depend on the files that its declarations stand in.
    return sorted(chosen, key=lambda one: (one.address or "", one.code, one.message))


def _by_kind(declared: Iterable[DesiredResource[Any]], policy: Policy) -> dict[str, list[DesiredResource[Any]]]:
    by_kind: dict[str, list[DesiredResource[Any]]] = {}
    for resource in declared:
        if resource.applies_in(policy.workspace):
            by_kind.setdefault(resource.address.kind, []).append(resource)
    return by_kind


def _run(kinds: Mapping[str, Kind], context: LintContext, levels: Mapping[str, LintLevel]) -> list[Problem]:
    from lmsconf.planner.lint_rules import lint_declarations  # it imports this module

    findings = list(lint_declarations(context))
    for kind in kinds.values():
        if not kind.is_relation and not kind.is_person:
            for one in context.of(kind.name):
                if may_be_suspicious(one.address.name):
                    findings.extend(lint_name(one.address, one.address.name, one.source, "its name"))
    return list(apply_levels(findings, levels))


def lint_name(address: Address, name: str, source: SourceLocation, subject: str) -> Iterator[Problem]:
    """Yield a finding about a name that probably holds characters that nobody meant to write. subject: whose name."""
    if not may_be_suspicious(name):
        return
    from lmsconf.model.names import suspicion  # most names are plain

    wrong = suspicion(name)
    if wrong is not None:
        yield lint_problem("lint/suspicious-name", f"{subject} {wrong}", source=source, address=address)
