"""Lints about the managers of groups and smart groups, and the people known to be archived."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from lmsconf.errors import Problem
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.kinds.shared.people_lists import PeopleList
from lmsconf.kinds.user.people_directory import people_directory
from lmsconf.model.address import RemoteId
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.lints import lint_problem

if TYPE_CHECKING:
    from lmsconf.planner.lints import LintContext


def archived_people(context: LintContext) -> frozenset[str]:
    """Return the e-mails of people known to be archived: in a plan those after it, else those declared to be."""
    if context.plan is not None:
        return people_directory(context.plan.planning).archived
    return frozenset(one.address.name for one in context.of(USER) if one.spec.flag("archived"))


def lint_managers(
    context: LintContext, declared: DesiredResource[Any], live: frozenset[RemoteId] | None
) -> Iterator[Problem]:
    """Yield a finding for a group whose declared managers leave it without an active one. live: None if not read."""
    people: PeopleList | None = declared.spec.managers
    managers = None if people is None else _managers(context, people, live)
    if managers is None or managers - archived_people(context):
        return
    message = "all its managers are archived" if managers else "nobody manages it"
    yield lint_problem(
        "lint/no-active-manager", message, source=declared.places.at("managers"), address=declared.address
    )


def _managers(context: LintContext, people: PeopleList, live: frozenset[RemoteId] | None) -> frozenset[str] | None:
    """Return the managers after the plan; None if they are not known."""
    if people.whole:
        return people.include
    if context.plan is None or live is None:
        return None
    emails = people_directory(context.plan.planning).emails
    if not live <= emails.keys():
        return None
    return (frozenset(emails[id] for id in live) | people.include) - people.exclude
