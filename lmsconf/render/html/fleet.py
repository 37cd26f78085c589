"""The results of a fleet as one HTML page: failures first, then the changes that workspaces share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lmsconf.model.blockers import Blocker
from lmsconf.model.fleet import (
    FleetAction,
    FleetEntry,
    FleetReport,
    SharedFailure,
    group_blocked,
    group_failures,
)
from lmsconf.render.fleet_wording import (
    failed_workspaces,
    fleet_assumptions,
    fleet_effects,
    fleet_headline,
    fleet_relaxed,
    outcome_words,
    shared_headline,
    workspace_count,
)
from lmsconf.render.html.call_graph import ACTIONS
from lmsconf.render.html.components import (
    RowGroup,
    change_row,
    count_cards,
    filterable_rows,
    headed_list,
    problem_note,
)
from lmsconf.render.html.document import Child, tag
from lmsconf.render.html.plan import page_header, sections_page
from lmsconf.render.settings_wording import RELAXED_HEADING

_NAMES: Final = 12
_TITLES: Final = {
    FleetAction.VALIDATE: "Validation of",
    FleetAction.PLAN: "Plan of",
    FleetAction.DRIFT: "Drift of",
    FleetAction.TEST: "Tests of",
    FleetAction.APPLY: "Apply to",
}


def fleet_html(report: FleetReport) -> str:
    """Render the results of a fleet as an HTML page."""
    index = report.index
    changes = sum(len(shared.changes) for shared in report.shared)
    sections: list[tuple[str, str, Child]] = [
        ("failed", "Failed", list(map(_failure, group_failures(index.entries)))),
        ("blocked", "Apply would stop here", [_blocked(*stopped) for stopped in group_blocked(index.entries)]),
        (
            "changes",
            "Changes",
            filterable_rows(
                list(_groups(report)), ACTIONS, state_noun="change", command="lmsconf fleet show --format text"
            )
            if changes
            else None,
        ),
        ("workspaces", "Workspaces", _workspaces(index.entries)),
    ]
    title = f"{_TITLES[index.action]} {workspace_count(len(index.entries))}"
    top = [
        page_header("fleet", title, f"Made {index.created_at}"),
        tag("p", fleet_headline(report), class_="verdict"),
        [tag("p", line) for line in filter(None, [fleet_effects(report), fleet_assumptions(report)])],
        count_cards(_counts(report)),
        headed_list(RELAXED_HEADING, fleet_relaxed(report)),
    ]
    return sections_page(title, top, sections, None)


def _counts(report: FleetReport) -> Iterator[tuple[str, int, str]]:
    """Yield (class, count, label) for each state of a workspace."""
    entries = report.index.entries
    changed = sum(bool(entry.changes) and not entry.failed for entry in entries)
    failed, waiting = len(report.index.failed), sum(entry.was_not_attempted for entry in entries)
    yield "delete", failed - waiting, "failed"
    if waiting:
        yield "uncounted", waiting, "not attempted"
    if report.index.action is FleetAction.APPLY:
        yield "create", len(entries) - failed, "applied or without changes"
        return
    yield "update", changed, "with changes"
    yield "uncounted", len(entries) - failed - changed, "without changes"


def _failure(failure: SharedFailure) -> Child:
    names = _names(failure.workspaces) if len(failure.workspaces) > 1 else None
    return [tag("h3", failed_workspaces(failure)), names, [problem_note(problem) for problem in failure.entry.problems]]


def _blocked(blockers: Sequence[Blocker], names: Sequence[str]) -> Child:
    heading = tag("h3", names[0] if len(names) == 1 else workspace_count(len(names)))
    return [
        heading,
        _names(names) if len(names) > 1 else None,
        tag("ul", [tag("li", str(blocker)) for blocker in blockers]),
    ]


def _names(names: Sequence[str]) -> Child:
    """Return names of workspaces, folded up where they are many."""
    if len(names) <= _NAMES:
        return tag("p", ", ".join(names), class_="scope")
    summary = tag("summary", f"In {names[0]}, {names[1]} and {len(names) - 2:,} more")
    return tag("details", summary, tag("ul", [tag("li", name) for name in names], class_="names"), class_="fold")


def _groups(report: FleetReport) -> Iterator[RowGroup]:
    number = 0
    for shared in report.shared:
        rows = []
        for place, change in enumerate(shared.changes):
            number += 1
            where = tag("p", f"Only in {shared.workspaces[place]}.") if shared.one_each else None
            rows.append(change_row(f"c{number}", change, where))
        note = None if shared.one_each else _names(shared.workspaces)
        yield RowGroup(shared_headline(shared, len(report.index.entries)), rows, note=note)


def _workspaces(entries: tuple[FleetEntry, ...]) -> Child:
    """Return a table with a row for each workspace: those that failed first, then those with changes."""
    entries = tuple(sorted(entries, key=lambda entry: (not entry.failed, not entry.changes)))
    head = tag("tr", [tag("th", text, scope="col") for text in ("Workspace", "Result", "Labels", "Exit code")])
    rows = [
        tag(
            "tr",
            tag("th", entry.workspace, scope="row"),
            tag("td", outcome_words(entry)),
            tag("td", ", ".join(f"{key}={value}" for key, value in entry.labels.items())),
            tag("td", str(entry.exit.value)),
        )
        for entry in entries
    ]
    table = tag("table", tag("thead", head), tag("tbody", rows), class_="counts words")
    return tag("div", table, class_="wide", role="region", tabindex="0", aria_label="Workspaces")
