"""Directory of the people of a workspace, and resolution of the e-mails in declared lists."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from typing import Any, Final, cast

from msgspec.structs import replace

from lmsconf.api.spec.dialect_candidates import MANAGED_GROUPS, WHO_CAN_MANAGE
from lmsconf.errors import Severity
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.kinds.shared.manifest_entry import PeopleList, declared_lists
from lmsconf.kinds.shared.plan_context import (
    BeforeAfter,
    Match,
    MatchResult,
    PlanContext,
    hint_on_missing,
    report_unread_list,
    suggest_name,
)
from lmsconf.kinds.user.types import (
    ARCHIVE_DATE,
    RIGHTS,
    PeopleDirectory,
    PersonRow,
    PersonSpec,
    loses_manager_right,
    planned_flag,
)
from lmsconf.model.address import RemoteId
from lmsconf.model.declarations import DesiredResource
from lmsconf.model.forms import Form
from lmsconf.model.guards import SMALL
from lmsconf.model.names import did_you_mean_email, normalize_email, normalize_name

WHICH_PERSON: Final = "Correct one of the e-mails in the product, or archive the duplicate account."


def shared_email_message(ids: Iterable[str]) -> str:
    """Return the message for an e-mail that several people share."""
    return f"is the e-mail of more than one person, with the ids {', '.join(ids)}"


def count_for_share(planning: PlanContext, ids: frozenset[RemoteId]) -> int:
    """Return the size of a live list for the guards' shares: how many people in it are active."""
    # An id in no listing may be an archived person's: it counts only to make a share be judged at all.
    unknown = len(planning.people.unknown(ids))
    active = len(ids) - len(planning.archived_ids & ids) - unknown
    return max(active, min(SMALL, active + unknown))


def check_managers(
    planning: PlanContext, declared: DesiredResource[Any], managers: Iterable[str], live: Collection[str]
) -> None:
    """Report what the manager right has to do with declared managers, as far as the dialect knows it.

    People cannot be made manager because they will lack the right that the service requires, are given it along, or
    lose the group with it. live: who manages already.
    """
    behaviour = planning.api_spec.behaviour
    rule, may_lose = behaviour(WHO_CAN_MANAGE), behaviour(MANAGED_GROUPS) == "lose"
    change = "Remove the person from `managers`, or change the entry under `users:`. The dialect key is {}."
    for person in sorted(managers):
        report = partial(_person, planning, declared, "managers", person)
        match = planning.planned_people.get(person)
        spec = PersonSpec(declared_keys=frozenset()) if match is None else match.declared.spec
        if rule == "anybody" or person in live or _can_manage(planning.people, person, match):
            if may_lose and match is not None and loses_manager_right(spec, match.row):
                why = "loses the manager right in this plan, and with it the group"
                report("refusal/changed-along", why, change.format(MANAGED_GROUPS))
        elif rule != "given":
            report(
                "refusal/manager-right",
                "cannot be made manager, because the service requires the manager right",
                "Set `manager: true` for the person under `users:`, grant the right by hand, or remove the "
                f"person. The dialect key for who can manage is {WHO_CAN_MANAGE}.",
            )
        elif spec.flags.get("manager") is False or spec.archive_date:
            key = "manager" if spec.flags.get("manager") is False else ARCHIVE_DATE
            report(
                "refusal/changed-along",
                f"is given the manager right along, and the entry rules it out with `{key}`",
                change.format(WHO_CAN_MANAGE),
            )
        else:
            report(
                "person/given-right",
                "is given the manager right along, because the service gives it to managers",
                None,
                Severity.NOTE,
            )


def _can_manage(people: PeopleDirectory, person: str, match: Match[PersonSpec, PersonRow] | None) -> bool:
    """Return whether somebody can manage after the plan."""
    if match is not None and not match.declared.spec.declared_keys.isdisjoint(RIGHTS):
        return any(planned_flag(match.declared.spec, match.row, right) for right in RIGHTS)
    row = people.by_email.get(person)
    # Without rights in the row, as in an old snapshot, nothing is reported.
    return person not in people.new if row is None or row.manager is None else bool(row.manager or row.admin)


def register_planned_people(planning: PlanContext, matched: MatchResult[PersonSpec, PersonRow]) -> None:
    """Replace the directory by one with the plan's changes to people: new accounts, e-mails, archived or unarchived."""
    planning.planned_people = {one.address.name: one for one in planning.planned(matched.matches)}
    rows = {one.address.name: one.row for one in matched.matches if one.row is not None}
    rows |= {
        email: replace(match.row, email=email, archived=planned_flag(match.declared.spec, match.row, "archived"))
        for email, match in planning.planned_people.items()
        if match.row is not None
    }
    later = {row.id: row for row in rows.values()}
    hidden = frozenset(
        match.address.name
        for match in matched.matches
        if match.declared.spec.flags.get("archived") and may_be_hidden(planning, match)
    )
    new = [one.address.name for one in matched.matches if one.row is None and planning.policy.create_people]
    directory = PeopleDirectory.of(
        (later.get(row.id, row) for row in planning.snapshot.rows(PersonRow)), frozenset(new) - hidden
    )
    planning.people = replace(
        directory,
        by_email={**rows, **directory.by_email},
        archived=directory.archived | hidden,
        not_renamed={row.id: email for email, row in rows.items() if normalize_email(row.email) != email},
    )


def may_be_hidden(planning: PlanContext, match: Match[PersonSpec, PersonRow]) -> bool:
    """Return whether somebody is not listed, and may be archived: the entry says whether they are to be.

    The API specification does not say whether GET /users lists archived people (Users). A service that lists
    one does. While a run is verified, who is listed as archived may be so by this run alone.
    """
    if match.row is not None or planning.snapshot.of(USER).incomplete or "archived" not in match.declared.spec.flags:
        return False
    return planning.policy.verifying or not lists_archived(planning)


def lists_archived(planning: PlanContext) -> bool:
    """Return whether the listing of people has somebody who is archived."""
    return any(row.archived and not row.unlisted for row in planning.snapshot.rows(PersonRow))


def report_unknown_people(
    planning: PlanContext, declared: DesiredResource[Any], key: str, listed: PeopleList
) -> PeopleList:
    """Return the list without unknown people, and report them.

    Unknown people are errors, or warnings under `people: {unknown: skip}` if at most a tenth of the list, archived
    people left out. An e-mail that several active people share is an error, an archived person a warning.
    """
    people, report = planning.people, partial(_person, planning, declared, key)
    named = listed.named_emails
    # Not the difference of both: that would go through all people for each list.
    unlisted = frozenset(one for one in named if one not in people.by_email) - people.new
    missing = sorted(unlisted - people.archived)
    for person in sorted(named.intersection(people.twice)):
        report(person, "person/twice", shared_email_message(people.twice[person]), WHICH_PERSON)
    for person in sorted(named & people.archived):
        report(
            person,
            "person/archived",
            "is archived",
            "Archived people cannot learn: remove the person, or unarchive the account.",
            Severity.WARNING,
        )
    counted = len(named - people.archived)
    is_few = len(missing) * 10 <= counted
    severity = Severity.WARNING if planning.policy.skip_unknown and is_few else Severity.ERROR
    for person in missing:
        similar = suggest_name(planning, person, people.by_email, did_you_mean_email)
        hint = hint_on_missing(planning, USER, similar, "Correct the e-mail, or create the account first.")
        report(person, "person/unknown", "is not a person of this workspace", hint, severity)
    if planning.policy.skip_unknown and not is_few:
        planning.report(
            declared,
            "person/too-many-unknown",
            f"{len(missing)} of {counted} in {key} are unknown, more than a tenth",
            hint="`people: {unknown: skip}` does not apply to so many: check whether this is the right list.",
            at=declared.places.at(key),
        )
    return PeopleList(listed.include - unlisted, listed.exclude - unlisted, listed.whole)


def _person(
    planning: PlanContext,
    declared: DesiredResource[Any],
    key: str,
    person: str,
    code: str,
    text: str,
    hint: str | None,
    severity: Severity = Severity.ERROR,
) -> None:
    planning.report(
        declared, code, f"{person} {text}", hint=hint, at=declared.places.find(person, key), severity=severity
    )


def note_unlisted_ids(planning: PlanContext, declared: DesiredResource[Any], key: str, ids: Iterable[str]) -> None:
    """Note live ids that are not in the listing of people; they are never removed."""
    for id in planning.people.unknown(ids):
        planning.report(
            declared,
            "person/unexplained",
            f"{key} hold user id {id}, which is in no list of people; it is not changed",
            at=declared.places.at(key),
            severity=Severity.NOTE,
        )


def compare_group(planning: PlanContext, match: Match[Any, Any], own: Form, wanted: Form) -> BeforeAfter | None:
    """Return both sides of a group with its declared lists of people; None, with a problem, if one was not read.

    own, wanted: what it has and is to have beside its name and these lists.
    """
    row, declared, directory = match.row, match.declared, planning.people
    before: Form = {"name": normalize_name(row.name), **own} if row else {}
    after: Form = {"name": match.address.name, **wanted}
    sizes = {key: len(cast("Collection[object]", items)) for key, items in own.items()}
    archived: dict[str, frozenset[str]] = {}
    for key, people in declared_lists(declared.spec):
        after[key] = listed = report_unknown_people(planning, declared, key, people)
        live = PeopleList(frozenset())
        if row is not None:
            ids: frozenset[RemoteId] | None = getattr(row, key)
            if ids is None:
                report_unread_list(planning, declared.address, key, declared.places.at(key))
                return None
            note_unlisted_ids(planning, declared, key, ids)
            before[key] = live = directory.live_to_compare(ids, listed)
            sizes[key] = count_for_share(planning, ids)
            archived[key] = directory.live_to_compare(planning.archived_ids & ids, listed).include
        if key == "managers":
            check_managers(planning, declared, listed.include, live.include)
    return BeforeAfter(before=before if row else None, after=after, sizes=sizes, archived=archived)
