"""The results of a fleet as one HTML page: failures first, then the changes that workspaces share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from lmsconf.model.fleet import FleetEntry, FleetReport, SharedChanges, SharedFailure, group_failures
from lmsconf.render.fleet_wording import failed_workspaces, fleet_headline, name_list, outcome_words, shared_headline
from lmsconf.render.html.call_graph import ACTIONS
from lmsconf.render.html.components import (
    RowGroup,
    change_row,
    count_cards,
    definition_list,
    filterable_rows,
    problem_note,
)
from lmsconf.render.html.document import Child, tag
from lmsconf.render.html.packed_rows import is_large
from lmsconf.render.html.plan import page_header, sections_page

_NAMES: Final = 12


def fleet_html(report: FleetReport) -> str:
    """Render the results of a fleet as an HTML page."""
    index = report.index
    changes = sum(len(shared.changes) for shared in report.shared)
    sections: list[tuple[str, str, Child]] = [
        ("failed", "Failed", list(map(_failure, group_failures(index.entries)))),
        ("blocked", "Apply would stop here", [_blocked(entry) for entry in index.entries if _stops(entry)]),
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
    top = [
        page_header("fleet", index.action.value, f"{len(index.entries):,} workspaces"),
        tag("p", fleet_headline(report), class_="verdict"),
        count_cards(_counts(report)),
    ]
    footer = definition_list([("Made", index.created_at)])
    return sections_page(f"Fleet: {index.action.value}", top, sections, footer, large=is_large(changes))


def _stops(entry: FleetEntry) -> bool:
    return bool(entry.blocked) and not entry.failed


def _counts(report: FleetReport) -> Iterator[tuple[str, int, str]]:
    """Yield (class, count, label) for each state of a workspace."""
    entries = report.index.entries
    changed = sum(bool(entry.changes) and not entry.failed for entry in entries)
    failed = len(report.index.failed)
    yield "delete", failed, "failed"
    yield "update", changed, "with changes"
    yield "uncounted", len(entries) - failed - changed, "without changes"


def _failure(failure: SharedFailure) -> Child:
    entry = failure.entry
    return [
        tag("h3", f"{failed_workspaces(failure, _NAMES)}: {outcome_words(entry)}"),
        [problem_note(problem) for problem in entry.problems],
    ]


def _blocked(entry: FleetEntry) -> Child:
    return [tag("h3", entry.workspace), tag("ul", [tag("li", str(blocker)) for blocker in entry.blocked])]


def _groups(report: FleetReport) -> Iterator[RowGroup]:
    number = 0
    for shared in report.shared:
        rows = []
        for change in shared.changes:
            number += 1
            rows.append(change_row(f"c{number}", change))
        yield RowGroup(_heading(shared, len(report.index.entries)), rows)


def _heading(shared: SharedChanges, of: int) -> str:
    headline = shared_headline(shared, of)
    return headline if shared.one_each else f"{headline}: {name_list(shared.workspaces, _NAMES)}"


def _workspaces(entries: tuple[FleetEntry, ...]) -> Child:
    """Return a table with a row for each workspace."""
    head = tag("tr", [tag("th", text, scope="col") for text in ("Workspace", "Labels", "Result", "Exit code")])
    rows = [
        tag(
            "tr",
            tag("th", entry.workspace, scope="row"),
            tag("td", ", ".join(f"{key}={value}" for key, value in entry.labels.items())),
            tag("td", outcome_words(entry)),
            tag("td", str(entry.exit.value)),
        )
        for entry in entries
    ]
    table = tag("table", tag("thead", head), tag("tbody", rows), class_="counts")
    return tag("div", table, class_="wide", role="region", tabindex="0", aria_label="Workspaces")
