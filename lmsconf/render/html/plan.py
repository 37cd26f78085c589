"""Plans, apply reports and snapshots as self-contained HTML pages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lmsconf.documents.plan_file import plan_digest
from lmsconf.model.outcomes import ApplyReport, CallOutcome, CallStatus
from lmsconf.model.plan import Change, Plan
from lmsconf.model.snapshot import Snapshot
from lmsconf.render import phrases, settings_words
from lmsconf.render.change_summary import Risk, apply_command, by_risk, kinds, present, removals, taken, worst_first
from lmsconf.render.html.calls import ACTIONS, call_list, calls_of, graph
from lmsconf.render.html.page import Child, Markup, join, page, tag
from lmsconf.render.html.parts import (
    Row,
    SectionGroup,
    cards,
    change_body,
    change_row,
    contents,
    facts,
    hint,
    lines_below,
    named,
    note,
    rows,
    section,
    stops,
)


def plan_html(plan: Plan) -> str:
    """Render a plan as an HTML page."""
    digest = plan_digest(plan)
    sections = [
        ("attention", "Look at this first", _attention(plan)),
        ("changes", "Changes", _changes(plan)),
        ("let-go", "Let go", _let_go(plan)),
        ("left-out", "Left out", _left_out(plan)),
        ("unmanaged", "Not managed", _unmanaged(plan)),
        ("order", "Call order", graph(plan, _anchors(plan.changes)) if plan.calls else None),
        ("calls", "Calls", _calls(plan)),
    ]
    top = header("plan", plan.workspace, phrases.first_line(plan.workspace, plan.url, plan.people))
    verdict = [
        list(stops(plan)),
        tag("p", phrases.closing(plan), class_="verdict"),
        [tag("p", line, class_="scope") for line in phrases.scope(plan)],
        lines_below(settings_words.CHANGED, settings_words.changed(plan)),
        lines_below(settings_words.RELAXED, settings_words.relaxed(plan)),
        lines_below(settings_words.CONSENTS, settings_words.consents(plan)),
        _plan_cards(plan),
    ]
    command = apply_command(plan, digest)
    footer = facts(
        [
            ("Made", plan.created_at),
            ("Can be applied until", plan.expires_at),
            ("Digest", tag("code", digest)),
            *([("To apply exactly this plan", tag("code", command))] if command else []),
            ("Manifests", f"{phrases.count(len(plan.manifests_files), 'file')}, sha256 {plan.manifests_digest}"),
        ]
    )
    return sections_page(f"Plan for {plan.workspace}", [top, verdict], sections, footer)


def apply_html(report: ApplyReport) -> str:
    """Render an apply report as an HTML page."""
    sections = [
        ("attention", "Look at this first", [note(problem) for problem in worst_first(report.problems)]),
        ("calls", "Calls", rows(list(_outcomes(report)), _STATUSES, word="result") if report.outcomes else None),
        ("residue", phrases.LEFT.rstrip(":"), _residue(report.remaining_changes)),
        ("others", phrases.other_changes_heading(report).rstrip(":"), _residue(report.foreign_changes)),
    ]
    top = header("apply", report.workspace, phrases.first_line(report.workspace, report.url, report.people))
    verdict = [
        tag("p", phrases.ending(report), class_="verdict"),
        tag("p", phrases.convergence(report), class_="scope"),
        cards((status, report.count(CallStatus(status)), label.lower()) for status, label in _STATUSES.items()),
    ]
    times = (("Started", report.started_at), ("Finished", report.finished_at))
    footer = facts([*times, ("Plan", tag("code", report.plan_digest)), *sorted(report.meta.items())])
    return sections_page(f"Apply to {report.workspace}", [top, verdict], sections, footer)


def snapshot_html(snapshot: Snapshot) -> str:
    """Render a snapshot as an HTML page: counts per kind."""
    items = [tag("li", phrases.listing(kind, listing)) for kind, listing in snapshot.listings.items()]
    where = phrases.first_line(snapshot.workspace, snapshot.url, snapshot.people)
    top = header("snapshot", snapshot.workspace, where)
    sections = [("holds", "What it holds", tag("ul", items) if items else None)]
    return sections_page(f"Snapshot of {snapshot.workspace}", top, sections, facts([("Taken", snapshot.taken_at)]))


def sections_page(title: str, top: Child, sections: Iterable[tuple[str, str, Child]], footer: Child) -> str:
    """Return a page of (anchor, heading, body) sections; empty ones are left out."""
    held = [(anchor, heading, join(body)) for anchor, heading, body in sections]
    held = [part for part in held if part[2]]
    links = contents((anchor, heading) for anchor, heading, _ in held) if len(held) > 1 else None
    return page(title, header=[top, links], main=[section(*part) for part in held], footer=footer)


def header(kind: str, workspace: str, first_line: str) -> list[Child]:
    return [
        tag("p", tag("b", "lmsconf"), f" {kind}", class_="brand"),
        tag("button", "Dark", type="button", id="theme", hidden=True, title="Dark or light"),
        tag("h1", workspace),
        tag("p", first_line, class_="where"),
    ]


def _plan_cards(plan: Plan) -> Markup:
    counts = plan.summary
    replaced = [("replace", counts.replace, "to replace")] if counts.replace else []
    items, removed = sum(map(taken, plan.changes)), removals(plan)
    # The guard counts more than the section "Taken away", such as the members of a deleted group.
    guarded = [("taken", removed, "removals, as the guard counts")] if removed > items else []
    return cards(
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


def _attention(plan: Plan) -> list[Child]:
    return [note(problem) for problem in worst_first(plan.problems)]


def _anchors(changes: Iterable[Change]) -> Mapping[str, str]:
    """Return address → HTML anchor of its row."""
    return {str(change.address): f"change-{number}" for number, change in enumerate(changes, 1)}


def _changes(plan: Plan) -> Child:
    if not plan.changes:
        return tag("p", phrases.closing(plan))
    anchors, calls = _anchors(plan.changes), calls_of(plan)
    groups = [
        SectionGroup(
            _heading(risk, group),
            [change_row(anchors[at := str(change.address)], change, calls.get(at)) for change in group],
        )
        for risk, group in by_risk(plan.changes).items()
    ]
    return rows(groups, ACTIONS, word="action")


def _heading(risk: Risk, changes: Sequence[Change]) -> str:
    items = f"{phrases.count(sum(map(taken, changes)), 'item')} from " if risk is Risk.TAKEN else ""
    return f"{risk.value}: {items}{kinds(changes)}"


def _calls(plan: Plan) -> Child:
    if not plan.calls:
        return None
    heading = f"{phrases.count(len(plan.calls), 'API call')}, in the order in which they are sent"
    return tag("details", tag("summary", heading), call_list(plan.calls, _anchors(plan.changes)), class_="fold")


def _let_go(plan: Plan) -> Child:
    """List the resources that only the base declares, each with the manifest line that would delete it."""
    if not plan.let_go:
        return None
    items = [
        tag("li", phrases.title(abandoned.address), " ", tag("code", abandoned.absent)) for abandoned in plan.let_go
    ]
    return [tag("p", phrases.let_go(plan)), tag("ul", items, class_="plain")]


def _left_out(plan: Plan) -> Child:
    if not plan.left_out:
        return None
    return named(f"This plan only adds; {phrases.count(len(plan.left_out), 'change')} left out.", plan.left_out)


def _unmanaged(plan: Plan) -> list[Child]:
    return [named(phrases.unmanaged(group), group.addresses) for group in present(plan.unmanaged)]


def _residue(changes: Sequence[Change]) -> Child:
    if not changes:
        return None
    return tag("ul", [tag("li", change_body(change)) for change in changes])


_STATUSES = {
    CallStatus.FAILED.value: "Failed",
    CallStatus.BLOCKED.value: "Skipped",
    CallStatus.NOT_ATTEMPTED.value: "Not attempted",
    CallStatus.DONE.value: "Done",
}
_SIGNS = {CallStatus.DONE: "✓", CallStatus.FAILED: "✗", CallStatus.BLOCKED: "–", CallStatus.NOT_ATTEMPTED: "…"}  # noqa: RUF001  # a dash


def _outcomes(report: ApplyReport) -> Iterator[SectionGroup]:
    """Group the calls by status, failures first."""
    numbered = list(enumerate(report.outcomes, 1))
    for status, label in _STATUSES.items():
        call_rows = [_outcome(number, outcome) for number, outcome in numbered if outcome.status.value == status]
        if call_rows:
            yield SectionGroup(f"{label}: {phrases.count(len(call_rows), 'API call')}", call_rows)


def _outcome(number: int, outcome: CallOutcome) -> Row:
    made = tag("p", "The service calls it ", tag("code", outcome.id)) if outcome.id is not None else None
    return Row(
        anchor=f"call-{number}",
        address=outcome.address,
        state=outcome.status.value,
        sign=_SIGNS[outcome.status],
        facts=outcome.operation,
        source=None,
        body=[
            tag("p", f"{phrases.title(outcome.address)}: ", tag("code", phrases.call(outcome))),
            tag("p", outcome.reason) if outcome.reason is not None else None,
            hint(outcome.hint),
            made,
        ],
    )
