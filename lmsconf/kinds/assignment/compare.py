"""Match declared assignments with live targets by identity: the content and the audience."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from lmsconf.kinds.assignment.replacement import plan_replacements, report_without_replacement
from lmsconf.kinds.assignment.steps import parse_live_window
from lmsconf.kinds.assignment.target_ids import (
    AssignmentEntry,
    ContentResolver,
    Identity,
    LiveAssignments,
    audience_candidates,
    live_entry,
    report_live_twice,
    resolve_audience,
)
from lmsconf.kinds.assignment.types import (
    AssignmentSpec,
    TargetRow,
    assignment_address,
    declared_entry,
)
from lmsconf.kinds.shared.kind_names import CONTENT, CONTENT_TARGET, EVERYONE, GROUP, SMART_GROUP, UNNAMED_TARGETS, USER
from lmsconf.kinds.shared.managed_resources import report_absent_not_live
from lmsconf.kinds.shared.plan_context import (
    BeforeAfter,
    Deletion,
    Match,
    MatchResult,
    PlanContext,
    UndeclaredResource,
    report_ambiguous_reference,
    suggest_name,
    why_name_is_missing,
)
from lmsconf.kinds.user.people_directory import WHICH_PERSON, shared_email_message
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.names import matches_patterns, nearest_email, quote_name


def match_assignments(
    planning: PlanContext, declared: Sequence[DesiredResource[AssignmentSpec]], absent: Sequence[DeleteEntry[Any]]
) -> MatchResult[AssignmentSpec, TargetRow]:
    """Match assignments, and find those to delete: under `absent`, owned, or with their deleted group.

    An incomplete listing gives a problem for each creation and deletion instead.
    """
    for id, person_email in planning.people.emails.items():
        planning.registry.register(USER, person_email, RemoteId(id))
    known = LiveAssignments(planning)
    # A problem with content is reported once, so chosen resources, whose problems are kept, look it up first.
    declared = sorted(_kept_precisely(planning, declared), key=lambda entry: not planning.chosen(entry.address))
    ready = [entry for entry in declared if _is_ready(planning, known, entry)]
    out: MatchResult[AssignmentSpec, TargetRow] = MatchResult(
        live=sum(len(planning.snapshot.of(listing).rows) for listing in (CONTENT_TARGET, UNNAMED_TARGETS))
    )
    for entry in ready:
        _match(planning, known, entry, out)
    for entry in declared:
        if (key := known.identity(entry))[0] is not None:
            known.entry_of.setdefault(key, entry)
    for absent_entry in absent:
        _delete(planning, known, absent_entry, out)
    settled = plan_replacements(planning, known, ready, out)
    report_without_replacement(planning, (*declared, *absent), known.live, ready)
    _settle(planning, known.live, settled, frozenset(map(known.find_id, declared)), out)
    if why := planning.snapshot.of(CONTENT_TARGET).incomplete:
        groups = [(address, None) for address in sorted(planning.deleted) if address.kind in (GROUP, SMART_GROUP)]
        for address, its_entry in (*((one.address, one.absent) for one in out.deletions), *groups):
            _report_incomplete(planning, address, its_entry, why)
        out.deletions.clear()
    return out


def _kept_precisely(
    planning: PlanContext, declared: Sequence[DesiredResource[AssignmentSpec]]
) -> Sequence[DesiredResource[AssignmentSpec]]:
    """Return the assignments with windows as the service can keep them: `23:59:59` is `23:59` where it cuts seconds."""
    if planning.api_spec.behaviour("content-targets.time-precision") != "minute":
        return declared
    return [
        replace(
            one,
            spec=replace(
                one.spec,
                visible_from=_to_the_minute(one.spec.visible_from),
                visible_until=_to_the_minute(one.spec.visible_until),
            ),
        )
        for one in declared
    ]


def _to_the_minute(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.replace(second=0, microsecond=0)


def _match(
    planning: PlanContext,
    known: LiveAssignments,
    entry: DesiredResource[AssignmentSpec],
    out: MatchResult[AssignmentSpec, TargetRow],
) -> None:
    """Match a declaration, or report why that is not possible."""
    first, rows, unclear = known.claim(entry)
    why = planning.snapshot.of(CONTENT_TARGET).incomplete
    if first is not entry:
        _report_same_assignment(planning, entry, first)
    elif len(rows) > 1:
        report_live_twice(planning, entry, rows)
    elif unclear and not rows:
        _report_unclear_audience(planning, entry, unclear)
    elif why and not rows:
        _report_incomplete(planning, entry.address, entry, why)
    else:
        out.matches.append(Match(declared=entry, row=rows[0] if rows else None))


def _delete(
    planning: PlanContext, known: LiveAssignments, entry: DeleteEntry[Any], out: MatchResult[AssignmentSpec, TargetRow]
) -> None:
    """Add the deletions of an entry under `absent`, or report why there are none."""
    first, rows, unclear = known.claim(entry)
    if isinstance(first, DesiredResource):
        _report_same_assignment(planning, entry, first)
    elif rows and first is entry:
        out.deletions.extend(Deletion(address=entry.address, row=row, absent=entry) for row in rows)
    elif unclear:
        _report_unclear_audience(planning, entry, unclear)
    else:
        report_absent_not_live(planning, entry, known.similar_name(entry))


def _is_ready(planning: PlanContext, contents: ContentResolver, entry: DesiredResource[AssignmentSpec]) -> bool:
    """Whether the content and the audience of a declared assignment exist or will exist; report problems."""
    to, has_content = entry.spec.audience, contents.find_id(entry) is not None
    if report_ambiguous_reference(planning, entry, to):
        return False
    if to == EVERYONE or planning.registry.has(to.kind, to.name):
        return has_content
    if to.kind == USER and (ids := planning.people.twice.get(to.name)):
        planning.report(entry, "person/twice", f"{to.name} {shared_email_message(ids)}", hint=WHICH_PERSON)
    else:
        planning.report(
            entry,
            "person/unknown" if to.kind == USER else "reference/unknown-audience",
            *why_name_is_missing(planning, to, _meant(planning, to)),
        )
    return False


def _meant(planning: PlanContext, to: Address) -> str | None:
    """A hint for an unknown audience: the kind that has it, the person's e-mail, or a name close to it."""
    if to.name == str(EVERYONE):
        return f"For everyone, write {EVERYONE} alone."
    if to.kind == USER and "@" not in to.name:
        near = suggest_name(planning, to.name, planning.registry.names(USER), nearest_email)
        return "Write the person's e-mail." + (f' Did you mean "{near}"?' if near else "")
    for kind in (GROUP, SMART_GROUP):
        if kind != to.kind and planning.registry.has(kind, to.name):
            return f"There is {Address.of(kind, to.name)}: write {{{kind}: {quote_name(to.name)}}}."
    return suggest_name(planning, to.name, planning.registry.names(to.kind))


def _settle(
    planning: PlanContext,
    live: Mapping[Identity, Sequence[TargetRow]],
    settled: Container[Identity],
    declared: Container[RemoteId | None],
    out: MatchResult[AssignmentSpec, TargetRow],
) -> None:
    """Sort targets without an entry: deleted with their group, under `leave_alone`, owned, or unmanaged.

    settled: the identities of entries, and of what these replace. declared: the contents that entries under
    `content_targets` name; an `absent` entry does not make the other assignments of its content owned.
    """
    policy = planning.policy
    owned = policy.ownership.get(CONTENT_TARGET, ())
    for key, rows in live.items():
        content, to = key
        address = assignment_address(planning.registry.name(CONTENT, content or "") or f"content id {content}", to)
        for row in () if key in settled else rows:
            audience = resolve_audience(planning, row)
            if audience in planning.deleted:
                out.deletions.append(Deletion(address=address, row=row, absent=None, with_=audience))
            elif matches_patterns(str(address), policy.leave_alone):
                out.left_alone += 1
            elif audience is not None and not policy.only and ("all" in owned or (owned and row.content in declared)):
                out.deletions.append(Deletion(address=address, row=row, absent=None))
            else:
                out.unmanaged.append(UndeclaredResource(address, row))


def _report_same_assignment(planning: PlanContext, entry: AssignmentEntry, other: AssignmentEntry) -> None:
    """Report two entries for one assignment: pinned content can have two names, and so two addresses."""
    planning.report(
        entry,
        "content-target/same",
        f"it is the same assignment as {other.address}, with the content under another name",
        hint=f"See {other.source}. Keep one of the two.",
    )


def _report_unclear_audience(planning: PlanContext, entry: AssignmentEntry, row: TargetRow) -> None:
    audiences = audience_candidates(planning, row)
    names = " and ".join(audiences)
    hint = "Remove the assignment from the manifests: lmsconf sends nothing that could change the other one."
    if len(audiences) == 1:
        names += f", and perhaps that of a group that was not read ({planning.audiences.incomplete})"
        hint = "Plan again once the groups can be read."
    planning.report(
        entry,
        "content-target/audience",
        f'a live assignment is for the id "{row.target}", which is that of {names}, and its '
        f'targetType "{row.type}" does not tell which',
        hint=hint,
    )


def _report_incomplete(planning: PlanContext, address: Address, entry: AssignmentEntry | None, why: str) -> None:
    planning.problem(
        "read/incomplete",
        f"{address}: the assignments were not read completely: {why}",
        hint="Nothing is created or deleted from an incomplete list. Plan again once it can be read.",
        at=entry.source if entry else None,
        address=address,
    )


def diff_assignment(planning: PlanContext, match: Match[AssignmentSpec, TargetRow]) -> BeforeAfter | None:
    """Compare `mandatory` and the window; an assignment is one value, so an omitted key means its default.

    None, with a problem, if a live time cannot be parsed.
    """
    row, after = match.row, declared_entry(match.declared.spec, planning.policy)
    if row is None:
        return BeforeAfter(before=None, after=after)
    window = parse_live_window(planning, row, match.declared)
    if window is None:
        return None
    live = replace(match.declared.spec, mandatory=row.mandatory, visible_from=window[0], visible_until=window[1])
    return BeforeAfter(before=declared_entry(live, planning.policy), after=after)


def assignment_before_deletion(planning: PlanContext, deletion: Deletion[TargetRow]) -> BeforeAfter:
    """Return the live assignment; a time that cannot be parsed is shown verbatim."""
    form = live_entry(planning, deletion.row)
    if deletion.absent is not None and deletion.absent.spec.content_pins:
        form["content"] = {"name": deletion.absent.spec.content, "id": deletion.row.content}
    return BeforeAfter(before=form, after=None)
