"""Plans, apply reports and snapshots as self-contained HTML pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import Problem
from lmsconf.model.outcomes import ApplyReport, CallOutcome, CallStatus
from lmsconf.model.plan import Change, Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.render import settings_wording
from lmsconf.render.apply_wording import (
    REMAINING_CHANGES_HEADING,
    apply_summary,
    describe_call,
    other_changes_heading,
    verification_result,
)
from lmsconf.render.change_summary import (
    Risk,
    apply_command,
    count_kinds,
    count_removals,
    count_removed_items,
    drop_empty_groups,
    group_by_risk,
    sort_by_severity,
)
from lmsconf.render.effects_wording import EFFECTS_HEADING, predicted_line
from lmsconf.render.html.call_graph import ACTIONS, call_anchors, call_links, call_list, graph_svg
from lmsconf.render.html.components import (
    MOST_ROWS,
    ExpandableRow,
    RowGroup,
    blocker_notes,
    change_details,
    change_row,
    count_cards,
    definition_list,
    filterable_rows,
    folded_titles,
    headed_list,
    hint_paragraph,
    problem_note,
    rows_note,
    section,
    table_of_contents,
)
from lmsconf.render.html.document import Child, Markup, join_markup, render_document, tag
from lmsconf.render.html.effects import effects_summary, effects_tables
from lmsconf.render.html.effects_people import people_search, people_warning
from lmsconf.render.html.rehearsal import rehearsal_section, rehearsal_verdict
from lmsconf.render.plan_wording import (
    abandoned_heading,
    assumptions_sentence,
    count_severities,
    plan_summary,
    scope_sentences,
    workspace_line,
)
from lmsconf.render.rehearsal_wording import HEADING as REHEARSAL_HEADING
from lmsconf.render.resource_wording import count_listed_rows, count_noun, count_unmanaged, resource_title


def plan_html(plan: Plan) -> str:
    """Render a plan as an HTML page."""
    digest = plan_digest(plan)
    anchors = _anchors(plan.changes)
    calls = call_anchors(plan, anchors)
    sections = [
        ("people", EFFECTS_HEADING, effects_tables(plan, anchors)),
        ("who", "Who gains, who loses", people_search(plan)),
        ("attention", "Check this first", [problem_note(problem) for problem in sort_by_severity(plan.problems)]),
        ("changes", "Changes", _changes(plan, anchors, calls)),
        ("rehearsal", REHEARSAL_HEADING, rehearsal_section(plan)),
        ("let-go", "No longer declared", _let_go(plan)),
        ("left-out", "Left out", _left_out(plan)),
        ("unmanaged", "Not managed", _unmanaged(plan)),
        ("order", "Call order", graph_svg(plan, calls, anchors) if plan.calls else None),
        ("calls", "Calls", _calls(plan, calls, anchors)),
    ]
    top = page_header("plan", plan.workspace, workspace_line(plan.workspace, plan.url, plan.people))
    verdict = [
        people_warning(plan),
        effects_summary(plan),
        list(blocker_notes(plan)),
        rehearsal_verdict(plan),
        tag("p", plan_summary(plan), class_="verdict"),
        [tag("p", line, class_="scope") for line in filter(None, [assumptions_sentence(plan)])],
        [tag("p", line, class_="scope") for line in scope_sentences(plan)],
        headed_list(settings_wording.CHANGED_HEADING, settings_wording.changed_settings(plan)),
        headed_list(settings_wording.RELAXED_HEADING, settings_wording.relaxed_settings(plan)),
        headed_list(settings_wording.CONSENTS_HEADING, settings_wording.consented_guards(plan)),
        _plan_cards(plan),
    ]
    command = apply_command(plan, digest)
    footer = definition_list(
        [
            ("Made", plan.created_at),
            ("Can be applied until", plan.expires_at),
            ("Digest", tag("code", digest)),
            *([("To apply exactly this plan", tag("code", command))] if command else []),
            _made_from(plan),
        ]
    )
    return sections_page(f"Plan for {plan.workspace}", [top, verdict], sections, footer)


def _made_from(plan: Plan) -> tuple[str, str]:
    if plan.undo_of is not None:
        return "Undoes", f"the run {plan.undo_of.run}"
    return "Manifests", f"{count_noun(len(plan.manifests_files), 'file')}, sha256 {plan.manifests_digest}"


def apply_html(report: ApplyReport) -> str:
    """Render an apply report as an HTML page."""
    sections = [
        ("attention", "Check this first", [problem_note(problem) for problem in sort_by_severity(report.problems)]),
        (
            "calls",
            "Calls",
            filterable_rows(list(_outcomes(report)), _STATUSES, state_noun="result", command=_SHOW_REPORT)
            if report.outcomes
            else None,
        ),
        ("residue", REMAINING_CHANGES_HEADING.rstrip(":"), _residue(report.remaining_changes)),
        ("others", other_changes_heading(report).rstrip(":"), _residue(report.foreign_changes)),
    ]
    top = page_header("apply", report.workspace, workspace_line(report.workspace, report.url, report.people))
    verdict = [
        tag("p", apply_summary(report), class_="verdict"),
        tag("p", verification_result(report), class_="scope"),
        [tag("p", line, class_="scope") for line in filter(None, [predicted_line(report.predicted)])],
        count_cards((status, report.count(CallStatus(status)), label.lower()) for status, label in _STATUSES.items()),
    ]
    times = (("Started", report.started_at), ("Finished", report.finished_at))
    footer = definition_list([*times, ("Plan", tag("code", report.plan_digest)), *sorted(report.meta.items())])
    return sections_page(f"Apply to {report.workspace}", [top, verdict], sections, footer)


def problems_html(problems: Sequence[Problem]) -> str:
    """Render problems as a page, which also stands in the place of a result that errors prevent."""
    ordered = sort_by_severity(problems)
    failed = any(problem.is_error for problem in problems)
    title = "Errors" if failed else "Problems"
    top = page_header("problems", title, count_severities(ordered) or "No problems.")
    notes = [("attention", "Check this first" if failed else title, [problem_note(one) for one in ordered])]
    return sections_page(title, top, notes, None)


def snapshot_html(snapshot: Snapshot) -> str:
    """Render a snapshot as an HTML page: counts per kind."""
    items = [tag("li", count_listed_rows(kind, listing)) for kind, listing in snapshot.listings.items()]
    where = workspace_line(snapshot.workspace, snapshot.url, snapshot.people)
    top = page_header("snapshot", snapshot.workspace, where)
    sections = [("holds", "Contents", tag("ul", items) if items else None)]
    return sections_page(
        f"Snapshot of {snapshot.workspace}", top, sections, definition_list([("Taken", snapshot.taken_at)])
    )


def sections_page(title: str, top: Child, sections: Iterable[tuple[str, str, Child]], footer: Child) -> str:
    """Return a page of (anchor, heading, body) sections; empty ones are left out."""
    held = [(anchor, heading, join_markup(body)) for anchor, heading, body in sections]
    held = [part for part in held if part[2]]
    links = table_of_contents((anchor, heading) for anchor, heading, _ in held) if len(held) > 1 else None
    main = [section(*part) for part in held]
    return render_document(title, header=[top, links], main=main, footer=footer)


def page_header(kind: str, workspace: str, first_line: str) -> list[Child]:
    return [
        tag("p", tag("b", "lmsconf"), f" {kind}", class_="brand"),
        tag("button", "Dark", type="button", id="theme", hidden=True, title="Dark or light"),
        tag("h1", workspace),
        tag("p", first_line, class_="where"),
    ]


def _plan_cards(plan: Plan) -> Markup:
    counts = plan.summary
    replaced = [("replace", counts.replace, "to replace")] if counts.replace else []
    items, removed = sum(map(count_removed_items, plan.changes)), count_removals(plan)
    # The guard counts more than the section "Taken away", such as the members of a deleted group.
    guarded = [("taken", removed, "removals, as the guard counts")] if removed > items else []
    return count_cards(
        [
            ("delete", counts.delete, "to delete"),
            ("taken", items, "taken away"),
            *guarded,
            *replaced,
            ("update", counts.update, "to change"),
            ("create", counts.create, "to create"),
            ("calls", counts.calls, "API calls"),
        ]
    )


def _anchors(changes: Sequence[Change]) -> Mapping[str, str]:
    """Return address → HTML anchor of its row, of the changes that the page shows: the riskiest."""
    numbers = {str(change.address): number for number, change in enumerate(changes, 1)}
    by_risk = chain.from_iterable(group_by_risk(changes).values())
    return {at: f"change-{numbers[at]}" for at in (str(change.address) for change in islice(by_risk, MOST_ROWS))}


def _changes(plan: Plan, anchors: Mapping[str, str], call_anchors: Mapping[str, str]) -> Child:
    if not plan.changes:
        return tag("p", plan_summary(plan))
    calls = call_links(plan, call_anchors)
    groups = [
        RowGroup(
            _heading(risk, group),
            [change_row(anchors.get(at := str(change.address), ""), change, calls.get(at)) for change in group],
        )
        for risk, group in group_by_risk(plan.changes).items()
    ]
    return filterable_rows(groups, ACTIONS, state_noun="action", command=_SHOW_PLAN, first="riskiest")


def _heading(risk: Risk, changes: Sequence[Change]) -> str:
    items = f"{count_noun(sum(map(count_removed_items, changes)), 'item')} from " if risk is Risk.ITEMS_REMOVED else ""
    return f"{risk.value}: {items}{count_kinds(changes)}"


def _calls(plan: Plan, anchors: Mapping[str, str], resource_anchors: Mapping[str, str]) -> Child:
    if not plan.calls:
        return None
    heading = f"{count_noun(len(plan.calls), 'API call')}, in the order in which they are sent"
    is_part = len(plan.changes) > MOST_ROWS
    note = rows_note("those of the changes above", _SHOW_CALLS) if is_part else None
    calls = call_list(plan.calls, anchors, resource_anchors)
    return tag("details", tag("summary", heading), note, calls, class_="fold")


def _let_go(plan: Plan) -> Child:
    """List the resources that only the base declares, each with the manifest line that would delete it."""
    if not plan.let_go:
        return None
    items = [
        tag("li", resource_title(abandoned.address), " ", tag("code", abandoned.absent)) for abandoned in plan.let_go
    ]
    return [tag("p", abandoned_heading(plan)), tag("ul", items, class_="plain")]


def _left_out(plan: Plan) -> Child:
    if not plan.left_out:
        return None
    return folded_titles(f"This plan only adds; {count_noun(len(plan.left_out), 'change')} left out.", plan.left_out)


def _unmanaged(plan: Plan) -> list[Child]:
    return [folded_titles(count_unmanaged(group), group.addresses) for group in drop_empty_groups(plan.unmanaged)]


def _residue(changes: Sequence[Change]) -> Child:
    if not changes:
        return None
    return tag("ul", [tag("li", change_details(change)) for change in changes])


_SHOW_PLAN = "lmsconf show PLAN.json --format text"
_SHOW_CALLS = "lmsconf show PLAN.json --format json"
_SHOW_REPORT = "lmsconf show REPORT.json --format text"

_STATUSES = {
    CallStatus.FAILED.value: "Failed",
    CallStatus.BLOCKED.value: "Skipped",
    CallStatus.NOT_ATTEMPTED.value: "Not attempted",
    CallStatus.DONE.value: "Done",
}
_SIGNS = {CallStatus.DONE: "✓", CallStatus.FAILED: "✗", CallStatus.BLOCKED: "–", CallStatus.NOT_ATTEMPTED: "…"}  # noqa: RUF001  # a dash


def _outcomes(report: ApplyReport) -> Iterator[RowGroup]:
    """Group the calls by status, failures first."""
    numbered = list(enumerate(report.outcomes, 1))
    for status, label in _STATUSES.items():
        call_rows = [_outcome(number, outcome) for number, outcome in numbered if outcome.status.value == status]
        if call_rows:
            heading = f"{label}: {count_noun(len(call_rows), 'API call')}"
            yield RowGroup(heading, call_rows)


def _outcome(number: int, outcome: CallOutcome) -> ExpandableRow:
    made = tag("p", "Id in the service: ", tag("code", outcome.id)) if outcome.id is not None else None
    return ExpandableRow(
        anchor=f"call-{number}",
        address=outcome.address,
        state=outcome.status.value,
        sign=_SIGNS[outcome.status],
        facts=outcome.operation,
        source=None,
        body=[
            tag(
                "p",
                f"{resource_title(outcome.address)}: ",
                tag("code", describe_call(outcome)),
            ),
            tag("p", outcome.reason) if outcome.reason is not None else None,
            hint_paragraph(outcome.hint),
            made,
        ],
    )
