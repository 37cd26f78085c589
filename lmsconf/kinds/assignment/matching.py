"""Match declared assignments with live targets by identity: the content and the audience."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec.structs import replace

from lmsconf.kinds.assignment.replacement import ReplacementPlanner, report_without_replacement
from lmsconf.kinds.assignment.steps import parse_live_window
from lmsconf.kinds.assignment.target_ids import (
    ContentResolver,
    Identity,
    audience_candidates,
    live_audiences,
    live_entry,
    report_live_twice,
    resolve_audience,
)
from lmsconf.kinds.assignment.types import (
    AssignmentSpec,
    TargetRow,
    assignment_address,
    declared_entry,
    unresolved_audience_label,
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
from lmsconf.kinds.user.people_directory import WHICH_PERSON, people_directory, shared_email_message
from lmsconf.model.address import Address, RemoteId, escape
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.names import grouped, matches_patterns, nearest_email, quote_name

Target: TypeAlias = tuple[TargetRow, Address | None]
"""A live target and its audience, None if unresolved."""
_Entry: TypeAlias = DesiredResource[AssignmentSpec] | DeleteEntry[Any]


def match_assignments(
    planning: PlanContext, declared: Sequence[DesiredResource[AssignmentSpec]], absent: Sequence[DeleteEntry[Any]]
) -> MatchResult[AssignmentSpec, TargetRow]:
    """Match assignments, and find those to delete: under `absent`, owned, or with their deleted group.

    An incomplete listing gives a problem for each creation and deletion instead.
    """
    for id, person_email in people_directory(planning).emails.items():
        planning.registry.register(USER, person_email, RemoteId(id))
    contents = ContentResolver(planning)
    # A problem with content is reported once, so chosen resources, whose problems are kept, look it up first.
    declared = sorted(_kept_precisely(planning, declared), key=lambda entry: not planning.chosen(entry.address))
    ready = [entry for entry in declared if _is_ready(planning, contents, entry)]
    for absent_entry in absent:
        contents.find_id(absent_entry, must=False)
    targets = [(row, resolve_audience(planning, row)) for row in planning.snapshot.rows(TargetRow)]
    live = {identity: [row for row, _ in same] for identity, same in grouped(targets, _identity).items()}
    why = planning.snapshot.of(CONTENT_TARGET).incomplete
    out: MatchResult[AssignmentSpec, TargetRow] = MatchResult(
        live=len(targets) + len(planning.snapshot.of(UNNAMED_TARGETS).rows)
    )
    unclear = _unclear_targets(planning, targets)
    entry_of: dict[Identity, _Entry] = {}
    for entry in ready:
        _match(planning, contents, entry, entry_of, live, unclear, out)
    for entry in declared:
        if (key := contents.identity(entry))[0] is not None:
            entry_of.setdefault(key, entry)
    for absent_entry in absent:
        _delete(planning, contents, absent_entry, entry_of, live, unclear, out)
    planner = ReplacementPlanner(planning, contents, live, entry_of, out)
    planner.plan_all(ready)
    report_without_replacement(planning, (*declared, *absent), live, ready)
    _settle(planning, live, planner.settled, frozenset(map(contents.find_id, declared)), out)
    if why:
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
    windows = ({"visible_from": one.spec.visible_from, "visible_until": one.spec.visible_until} for one in declared)
    minutes = ({key: time and time.replace(second=0, microsecond=0) for key, time in one.items()} for one in windows)
    return [replace(one, spec=replace(one.spec, **times)) for one, times in zip(declared, minutes, strict=True)]


def _match(
    planning: PlanContext,
    contents: ContentResolver,
    entry: DesiredResource[AssignmentSpec],
    entry_of: dict[Identity, _Entry],
    live: Mapping[Identity, Sequence[TargetRow]],
    unclear: Mapping[Identity, TargetRow],
    out: MatchResult[AssignmentSpec, TargetRow],
) -> None:
    """Match a declaration, or report why that is not possible.

    entry_of: the first entry that names an identity. unclear: the targets whose audience is not known, by each identity
    that they may have.
    """
    key, why = contents.identity(entry), planning.snapshot.of(CONTENT_TARGET).incomplete
    first, rows = entry_of.setdefault(key, entry), live.get(key, ())
    if first is not entry:
        _report_same_assignment(planning, entry, first)
    elif len(rows) > 1:
        report_live_twice(planning, entry, rows)
    elif not rows and key in unclear:
        _report_unclear_audience(planning, entry, unclear[key])
    elif not rows and why:
        _report_incomplete(planning, entry.address, entry, why)
    else:
        out.matches.append(Match(declared=entry, row=rows[0] if rows else None))


def _delete(
    planning: PlanContext,
    contents: ContentResolver,
    entry: DeleteEntry[Any],
    entry_of: dict[Identity, _Entry],
    live: Mapping[Identity, Sequence[TargetRow]],
    unclear: Mapping[Identity, TargetRow],
    out: MatchResult[AssignmentSpec, TargetRow],
) -> None:
    """Add the deletions of an entry under `absent`, or report why there are none; the arguments are as for `_match`."""
    key = contents.identity(entry)
    first = entry_of.setdefault(key, entry)
    rows = live.get(key, ()) if first is entry else ()
    out.deletions.extend(Deletion(address=entry.address, row=row, absent=entry) for row in rows)
    if isinstance(first, DesiredResource):
        _report_same_assignment(planning, entry, first)
    elif not rows and key in unclear:
        _report_unclear_audience(planning, entry, unclear[key])
    elif not rows:
        report_absent_not_live(planning, entry, contents.similar_name(entry))


def _is_ready(planning: PlanContext, contents: ContentResolver, entry: DesiredResource[AssignmentSpec]) -> bool:
    """Whether the content and the audience of a declared assignment exist or will exist; report problems."""
    to, has_content = entry.spec.audience, contents.find_id(entry) is not None
    if report_ambiguous_reference(planning, entry, to):
        return False
    if to == EVERYONE or planning.registry.has(to.kind, to.name):
        return has_content
    if to.kind == USER and (ids := people_directory(planning).twice.get(to.name)):
        planning.report(entry, "person/twice", f"{to.name} {shared_email_message(ids)}", hint=WHICH_PERSON)
    else:
        near = _meant(planning, to) or suggest_name(planning, to.name, planning.registry.names(to.kind))
        code = "person/unknown" if to.kind == USER else "reference/unknown-audience"
        planning.report(entry, code, *why_name_is_missing(planning, to, near))
    return False


def _meant(planning: PlanContext, to: Address) -> str | None:
    """A hint for an unknown audience that exists under another kind, or for a person who is not named by e-mail."""
    if to.name == str(EVERYONE):
        return f"For everyone, write {EVERYONE} alone."
    if to.kind == USER and "@" not in to.name:
        near = suggest_name(planning, to.name, planning.registry.names(USER), nearest_email)
        return "Write the person's e-mail." + (f' Did you mean "{near}"?' if near else "")
    for kind in (GROUP, SMART_GROUP):
        if kind != to.kind and planning.registry.has(kind, to.name):
            return f"There is {Address.of(kind, to.name)}: write {{{kind}: {quote_name(to.name)}}}."
    return None


def _identity(target: Target) -> Identity:
    """The identity of a live target; an unresolved audience gets an address with its id."""
    row, audience = target
    return row.content, audience or Address(escape(unresolved_audience_label(row)), "")


def _settle(
    planning: PlanContext,
    live: Mapping[Identity, list[TargetRow]],
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
        if key in settled:
            continue
        content, to = key
        address = assignment_address(planning.registry.name(CONTENT, content or "") or f"content id {content}", to)
        for row in rows:
            audience = resolve_audience(planning, row)
            if audience in planning.deleted:
                out.deletions.append(Deletion(address=address, row=row, absent=None, with_=audience))
            elif matches_patterns(str(address), policy.leave_alone):
                out.left_alone += 1
            elif audience is not None and not policy.only and ("all" in owned or (owned and row.content in declared)):
                out.deletions.append(Deletion(address=address, row=row, absent=None))
            else:
                out.unmanaged.append(UndeclaredResource(address, row))


def _report_same_assignment(
    planning: PlanContext,
    entry: _Entry,
    other: _Entry,
) -> None:
    """Report two entries for one assignment: pinned content can have two names, and so two addresses."""
    planning.report(
        entry,
        "content-target/same",
        f"it is the same assignment as {other.address}, with the content under another name",
        hint=f"See {other.source}. Keep one of the two.",
    )


def _unclear_targets(planning: PlanContext, targets: Sequence[Target]) -> dict[Identity, TargetRow]:
    """Each possible identity of a live target with several candidate audiences → that target."""
    return {
        (row.content, candidate): row
        for row, audience in targets
        if audience is None
        for candidate in audience_candidates(planning, row)
    }


def _report_unclear_audience(planning: PlanContext, entry: _Entry, row: TargetRow) -> None:
    audiences = audience_candidates(planning, row)
    names = " and ".join(audiences)
    hint = "Remove the assignment from the manifests: lmsconf sends nothing that could change the other one."
    if len(audiences) == 1:
        names += f", and perhaps that of a group that was not read ({live_audiences(planning).incomplete})"
        hint = "Plan again once the groups can be read."
    planning.report(
        entry,
        "content-target/audience",
        f'a live assignment is for the id "{row.target}", which is that of {names}, and its '
        f'targetType "{row.type}" does not tell which',
        hint=hint,
    )


def _report_incomplete(planning: PlanContext, address: Address, entry: _Entry | None, why: str) -> None:
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
    spec = None if deletion.absent is None else deletion.absent.spec
    if spec is not None and spec.content_pins:
        form["content"] = {"name": spec.content, "id": deletion.row.content}
    return BeforeAfter(before=form, after=None)
