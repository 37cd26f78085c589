"""Run the lints of all kinds, on manifests alone or on a plan; see lmsconf/model/lint_codes.py."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, time
from typing import TYPE_CHECKING

from lmsconf.errors import Problem, SourceLocation
from lmsconf.kinds.kind_table import KINDS
from lmsconf.model.address import Address
from lmsconf.model.declarations import Manifests
from lmsconf.model.lint_codes import LintLevel, apply_levels
from lmsconf.model.policy import Policy
from lmsconf.planner.lint_rules import LintContext, lint_declarations, lint_name

if TYPE_CHECKING:
    from lmsconf.planner.audience.people_sets import AudienceSize
    from lmsconf.planner.plan import DraftPlan


def lint_manifests(manifests: Manifests, policy: Policy) -> list[Problem]:
    """Return the findings of lints that need no workspace."""
    now = datetime.combine(policy.today, time(), tzinfo=policy.timezone or UTC)
    context = LintContext(manifests=manifests.in_workspace(policy.workspace), now=now, timezone=policy.timezone)
    findings = _run(context, policy.lints)
    return sorted(findings, key=lambda finding: (finding.source or SourceLocation(""), finding.code))


def lint_plan(draft: DraftPlan, sizes: Mapping[Address, AudienceSize]) -> list[Problem]:
    """Return the findings of lints about what a plan looks at. sizes: as in LintContext."""
    context = LintContext(
        manifests=draft.manifests,
        now=datetime.fromisoformat(draft.plan.created_at),
        timezone=draft.planning.policy.timezone,
        plan=draft,
        sizes=sizes,
    )
    findings = _run(context, draft.lint_levels)
    chosen = (one for one in findings if one.address and draft.planning.chosen(Address.parse(one.address)))
    # By address, not by place: a plan does not depend on the files that its declarations stand in.
    return sorted(chosen, key=lambda one: (one.address or "", one.code, one.message))


def _run(context: LintContext, levels: Mapping[str, LintLevel]) -> list[Problem]:
    findings = list(lint_declarations(context))
    for kind in KINDS.values():
        if not kind.is_relation and not kind.is_person:
            for one in context.of(kind.name):
                findings.extend(lint_name(one.address, one.address.name, one.source, "its name"))
    return list(apply_levels(findings, levels))
