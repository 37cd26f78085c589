"""Plans, apply reports and snapshots as Markdown comments: riskiest changes first, fitted to a size limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote

from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import Problem
from lmsconf.model.blockers import Blocker, blockers, consent_command
from lmsconf.model.outcomes import ApplyReport, CallOutcome, CallStatus
from lmsconf.model.plan import Action, Change, Plan, UnmanagedResources
from lmsconf.model.snapshot import Snapshot
from lmsconf.render import phrases, settings_words
from lmsconf.render.change_summary import Risk, apply_command, by_risk, kinds, present, taken, tally, worst_first
from lmsconf.render.escape import code, fence, md
from lmsconf.render.markdown.parts import (
    NAME_SIZE,
    Section,
    SummaryRow,
    address_entry,
    change_entry,
    let_go_entry,
    problem_entry,
    render,
    within,
)
from lmsconf.render.size_budget import WHOLE, SizeLimit, size


def plan_markdown(plan: Plan, *, limit: SizeLimit = WHOLE) -> str:
    """Render a plan. The counts, deletions included, are complete whatever the limit; details as far as they fit."""
    digest = plan_digest(plan)
    head = paragraphs(
        marker("plan", plan.workspace, limit),
        f"### lmsconf plan: {within(plan.workspace, code)}",
        _stops(plan),
        f"**{phrases.closing(plan)}**",
        first_line(plan.workspace, plan.url, plan.people),
        *map(md, phrases.scope(plan)),
        _listed(settings_words.CHANGED, settings_words.changed(plan)),
        _listed(settings_words.RELAXED, settings_words.relaxed(plan)),
        _listed(settings_words.CONSENTS, settings_words.consents(plan)),
        _counts(plan.changes),
    )
    errors = [problem for problem in plan.problems if problem.is_error]
    others = [problem for problem in worst_first(plan.problems) if not problem.is_error]
    changes = list(_changes(plan.changes, limit))
    safe = [section for risk, section in changes if risk.safe]
    sections = [
        *problem_section(errors),
        *(section for risk, section in changes if not risk.safe),
        *(section_of(phrases.let_go(plan), map(let_go_entry, plan.let_go)) if plan.let_go else ()),
        *problem_section(others),
        *safe,
        *_left_out(plan, limit),
        *unmanaged_sections(plan.unmanaged, limit),
    ]
    return fitted(head, sections, _how_to_apply(plan, digest), limit)


def apply_markdown(report: ApplyReport, *, limit: SizeLimit = WHOLE) -> str:
    """Render an apply report, failures first."""
    head = paragraphs(
        marker("apply", report.workspace, limit),
        f"### lmsconf apply: {within(report.workspace, code)}",
        f"**{phrases.ending(report)}** {phrases.convergence(report)}",
        first_line(report.workspace, report.url, report.people),
        _statuses(report),
    )
    sections = [
        *problem_section(worst_first(report.problems)),
        *_outcomes(report, limit),
        *(section for _, section in _changes(report.remaining_changes, limit, f"{phrases.LEFT} ")),
        *(
            section
            for _, section in _changes(report.foreign_changes, limit, f"{phrases.other_changes_heading(report)} ")
        ),
        *section_of("About this run", map(_noted, sorted(report.meta.items()))),
    ]
    foot = f"Plan {code(report.plan_digest)} · {md(report.started_at)} to {md(report.finished_at)}"
    return fitted(head, sections, foot, limit)


def snapshot_markdown(snapshot: Snapshot, *, limit: SizeLimit = WHOLE) -> str:
    """Render a snapshot: counts per kind."""
    rows = [f"- {within(phrases.listing(kind, listing), md, 500)}" for kind, listing in snapshot.listings.items()]
    return paragraphs(
        marker("snapshot", snapshot.workspace, limit),
        f"### lmsconf snapshot: {within(snapshot.workspace, code)}",
        first_line(snapshot.workspace, snapshot.url, snapshot.people),
        f"Taken {md(snapshot.taken_at)}.",
        "\n".join(rows),
    )


def marker(kind: str, workspace: str, limit: SizeLimit = WHOLE) -> str:
    """Return an invisible line by which a later CI run finds its comment, to replace it."""
    name = within(workspace, lambda text: quote(text, safe="", errors="backslashreplace").replace("--", "-%2D"))
    return f"<!-- lmsconf:{kind}:{name} -->" if limit.folds else f"[//]: # (lmsconf:{kind}:{name})"


def fitted(head: str, sections: Sequence[Section], foot: str, limit: SizeLimit) -> str:
    """Join head, sections and foot; head and foot are kept whole, the sections shortened to the limit."""
    foot = f"\n{foot}\n" if foot else ""
    if limit.size is None:
        return head + render(sections, None)[0] + foot
    shortened = (
        f"\nShortened to fit {limit.size:,} bytes: not all is listed and told in full. "
        "The page (`--format html`) and the document (`--format json`) leave nothing out.\n"
    )
    body, whole = render(sections, limit.size - size(head) - size(foot) - size(shortened))
    return head + body + shortened * (not whole) + foot


def paragraphs(*blocks: str) -> str:
    return "\n\n".join(filter(None, blocks)) + "\n"


def first_line(workspace: str, url: str, people: int | None) -> str:
    return within(phrases.first_line(workspace, url, people), md, 2 * NAME_SIZE)


_MOST_STOPS = 6
"""Maximum number of blockers listed at the top; the others are counted there and shown with their changes."""


def _stops(plan: Plan) -> str:
    """Return the plan's blockers with reason and hint, and the command that consents to them."""
    blocking = blockers(plan)
    if not blocking:
        return ""
    lines = [f"**⛔ {phrases.STOPS}:**", "", *map(_stop, blocking[:_MOST_STOPS])]
    if len(blocking) > _MOST_STOPS:
        lines.append(f"- … and {phrases.count(len(blocking) - _MOST_STOPS, 'more reason')}")
    line = consent_command(plan)
    if line is not None:
        lines += ["", "To allow exactly this:", "", fence(line, "sh")]
    return "\n".join(lines)


def _stop(blocker: Blocker) -> str:
    lines = [str(blocker), " ".join((blocker.hint or "").split("\n"))]
    return "- " + "\n  ".join(within(line, md, 2 * NAME_SIZE) for line in lines if line)


def _listed(heading: str, lines: Iterable[str]) -> str:
    """Return lines under a heading; empty without lines."""
    rows = [f"- {within(line, md, 2 * NAME_SIZE)}" for line in lines]
    return "\n".join([f"**{heading}:**", "", *rows]) if rows else ""


_COLUMNS: tuple[tuple[Action | str, str], ...] = (
    (Action.DELETE, "to delete"),
    ("taken", "taken away"),
    (Action.REPLACE, "to replace"),
    (Action.UPDATE, "to change"),
    (Action.CREATE, "to create"),
)


def _counts(changes: Sequence[Change]) -> str:
    """Return the counts per kind and action as a table."""
    table = tally(changes)
    columns = [(key, title) for key, title in _COLUMNS if any(counts[key] for counts in table.values())]
    if not columns:
        return ""
    rows = [
        f"| {md(phrases.plural(kind))} | {' | '.join(_number(counts[key]) for key, _ in columns)} |"
        for kind, counts in table.items()
    ]
    head = f"| | {' | '.join(title for _, title in columns)} |"
    return "\n".join([head, f"|:--|{'--:|' * len(columns)}", *rows])


def _number(number: int) -> str:
    return f"{number:,}" if number else ""


def section_of(heading: str, entries: Iterable[SummaryRow], *, folded: bool = False) -> Iterator[Section]:
    rows = tuple(entries)
    if rows:
        yield Section(heading, rows, folded)


def problem_section(problems: Sequence[Problem]) -> Iterator[Section]:
    yield from section_of(phrases.problem_counts(problems).capitalize(), map(problem_entry, problems))


def _changes(changes: Iterable[Change], limit: SizeLimit, before: str = "") -> Iterator[tuple[Risk, Section]]:
    """Yield the sections of changes: one open section per risk; safe changes are folded, one section per kind."""
    for risk, group in by_risk(changes).items():
        for alike in [group] if not (risk.safe and limit.folds) else _kinds(group):
            entries = [change_entry(change, folds=limit.folds) for change in alike]
            yield risk, Section(before + _heading(risk, alike), entries, folded=risk.safe and limit.folds)


def _kinds(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    for kind in dict.fromkeys(change.address.kind for change in changes):
        yield [change for change in changes if change.address.kind == kind]


def _heading(risk: Risk, changes: Sequence[Change]) -> str:
    if risk is Risk.TAKEN:
        return f"{risk.value}: {phrases.count(sum(map(taken, changes)), 'item')} from {kinds(changes)}"
    return f"{risk.value}: {kinds(changes)}"


def _left_out(plan: Plan, limit: SizeLimit) -> Iterator[Section]:
    heading = f"Left out, because this plan only adds: {phrases.count(len(plan.left_out), 'change')}"
    yield from section_of(heading, map(address_entry, plan.left_out), folded=limit.folds)


def unmanaged_sections(groups: Iterable[UnmanagedResources], limit: SizeLimit) -> Iterator[Section]:
    """Yield the unmanaged resources, folded."""
    for group in present(groups):
        yield Section(
            phrases.unmanaged(group), [address_entry(address) for address in group.addresses], folded=limit.folds
        )


def _how_to_apply(plan: Plan, digest: str) -> str:
    if not plan.changes:
        return ""
    line = apply_command(plan, digest)
    command = f"To apply exactly this plan:\n\n{fence(line, 'sh')}\n\n" if line else ""
    return f"---\n\n{command}Digest {code(digest)}"


def _statuses(report: ApplyReport) -> str:
    """Return the number of calls per status as a table."""
    counts = " | ".join(f"{report.count(status):,}" for status in CallStatus)
    titles = " | ".join(status.value.replace("_", " ") for status in CallStatus)
    return f"| calls | {titles} |\n|:--|{'--:|' * len(CallStatus)}\n| | {counts} |"


_TITLES = {
    CallStatus.FAILED: "Failed",
    CallStatus.BLOCKED: "Skipped",
    CallStatus.NOT_ATTEMPTED: "Not attempted",
    CallStatus.DONE: "Done",
}


def _outcomes(report: ApplyReport, limit: SizeLimit) -> Iterator[Section]:
    """Yield the calls by status; all but the failures are folded."""
    for status, title in _TITLES.items():
        outcomes = [outcome for outcome in report.outcomes if outcome.status is status]
        heading = f"{title}: {phrases.count(len(outcomes), 'API call')}"
        yield from section_of(heading, map(_outcome, outcomes), folded=limit.folds and status is not CallStatus.FAILED)


def _outcome(outcome: CallOutcome) -> SummaryRow:
    def row(*more: str | None) -> str:
        head = f"- {within(phrases.title(outcome.address), code)} ({within(phrases.call(outcome), md)})"
        lines = [line for text in more for line in (text or "").split("\n") if line.strip()]
        return "\n  ".join([head, *map(md, lines)]) + "\n"

    return SummaryRow(("API call", "API calls"), (row, lambda: row(outcome.reason, outcome.hint)))


def _noted(pair: tuple[str, str]) -> SummaryRow:
    return SummaryRow(("note", "notes"), (lambda: f"- {within(': '.join(pair), md, 2 * NAME_SIZE)}\n",))
