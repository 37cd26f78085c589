"""The Markdown view of a fleet, for the comment of a pull request: within its size, failures first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lmsconf.errors import Problem
from lmsconf.model.fleet import FleetEntry, FleetReport, SharedChanges
from lmsconf.render.escape import escape_markdown, markdown_code
from lmsconf.render.fleet_wording import fleet_headline, name_list, outcome_words, shared_headline
from lmsconf.render.markdown.plan import comment_marker, fit_comment, paragraphs, section_if_any
from lmsconf.render.markdown.sections import MarkdownSection, SectionEntry, change_entry, problem_text, truncate
from lmsconf.render.size_limit import UNLIMITED, SizeLimit

_NAMES: Final = 10
_WORDS: Final = 400
_PROBLEMS: Final = 3


def fleet_markdown(report: FleetReport, *, limit: SizeLimit = UNLIMITED) -> str:
    """Return the comment."""
    action = report.index.action.value
    head = paragraphs(
        comment_marker("fleet", action, limit), f"### lmsconf fleet {action}", f"**{fleet_headline(report)}**"
    )
    sections = [
        *_failures(report.index.entries),
        *_blocked(report.index.entries),
        *(_shared(shared, report, limit) for shared in report.shared),
        *_others(report),
    ]
    return fit_comment(head, sections, "", limit)


def _failures(entries: Sequence[FleetEntry]) -> Iterator[MarkdownSection]:
    rows = [_row(entry, outcome_words(entry), entry.problems) for entry in entries if entry.failed]
    yield from section_if_any("Failed", rows)


def _blocked(entries: Sequence[FleetEntry]) -> Iterator[MarkdownSection]:
    rows = [
        _row(entry, "; ".join(map(str, entry.blocked)), ()) for entry in entries if entry.blocked and not entry.failed
    ]
    yield from section_if_any("Apply would stop here", rows)


def _row(entry: FleetEntry, words: str, problems: Sequence[Problem]) -> SectionEntry:
    line = f"- {markdown_code(entry.workspace)}: {truncate(words, escape_markdown, _WORDS)}\n"
    more = "".join(f"  - {problem_text(problem, short=True)}\n" for problem in problems[:_PROBLEMS])
    return SectionEntry(("workspace", "workspaces"), (lambda: line, lambda: line + more) if more else (lambda: line,))


def _shared(shared: SharedChanges, report: FleetReport, limit: SizeLimit) -> MarkdownSection:
    headline = shared_headline(shared, len(report.index.entries))
    heading = f"{headline}: {truncate(name_list(shared.workspaces, _NAMES), escape_markdown, _WORDS)}"
    return MarkdownSection(heading, [change_entry(change, folds=limit.folds) for change in shared.changes])


def _others(report: FleetReport) -> Iterator[MarkdownSection]:
    """Yield the workspaces whose result no list of changes shows."""
    if report.shared:
        return
    changed = [entry for entry in report.index.entries if entry.changes and not entry.failed]
    yield from section_if_any("Workspaces", [_row(entry, outcome_words(entry), ()) for entry in changed])
