"""The Markdown view of a fleet, for the comment of a pull request: within its size, failures first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lmsconf.model.fleet import FleetEntry, FleetReport, SharedChanges, SharedFailure, group_failures
from lmsconf.model.plan import Change
from lmsconf.render.escape import escape_markdown, markdown_code
from lmsconf.render.fleet_wording import failed_workspaces, fleet_headline, name_list, outcome_words, shared_headline
from lmsconf.render.markdown.plan import comment_marker, fit_comment, paragraphs, section_if_any
from lmsconf.render.markdown.sections import MarkdownSection, SectionEntry, change_entry, problem_text, truncate
from lmsconf.render.resource_wording import resource_title
from lmsconf.render.size_limit import UNLIMITED, SizeLimit

_NAMES: Final = 10
_WORDS: Final = 400
_PROBLEMS: Final = 3
_NOUNS: Final = ("workspace", "workspaces")


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
    yield from section_if_any("Failed", map(_failure, group_failures(entries)))


def _blocked(entries: Sequence[FleetEntry]) -> Iterator[MarkdownSection]:
    rows = [_row(entry, "; ".join(map(str, entry.blocked))) for entry in entries if entry.blocked and not entry.failed]
    yield from section_if_any("Apply would stop here", rows)


def _failure(failure: SharedFailure) -> SectionEntry:
    entry = failure.entry
    words = f"{failed_workspaces(failure, _NAMES)}: {outcome_words(entry)}"
    line = f"- {truncate(words, escape_markdown, _WORDS)}\n"
    more = "".join(f"  {problem_text(problem, short=True).rstrip()}\n" for problem in entry.problems[:_PROBLEMS])
    return SectionEntry(_NOUNS, (lambda: line, lambda: line + more))


def _row(entry: FleetEntry, words: str) -> SectionEntry:
    line = f"- {markdown_code(entry.workspace)}: {truncate(words, escape_markdown, _WORDS)}\n"
    return SectionEntry(_NOUNS, (lambda: line,))


def _shared(shared: SharedChanges, report: FleetReport, limit: SizeLimit) -> MarkdownSection:
    headline = shared_headline(shared, len(report.index.entries))
    if shared.one_each:
        first = change_entry(shared.changes[0], folds=limit.folds)
        pairs = zip(shared.changes, shared.workspaces, strict=True)
        return MarkdownSection(headline, [first, *(_named(change, workspace) for change, workspace in pairs)])
    heading = f"{headline}: {truncate(name_list(shared.workspaces, _NAMES), escape_markdown, _WORDS)}"
    return MarkdownSection(heading, [change_entry(change, folds=limit.folds) for change in shared.changes])


def _named(change: Change, workspace: str) -> SectionEntry:
    line = f"- {markdown_code(workspace)}: {truncate(resource_title(change.address), markdown_code, _WORDS)}\n"
    return SectionEntry(("change", "changes"), (lambda: line,))


def _others(report: FleetReport) -> Iterator[MarkdownSection]:
    """Yield the workspaces whose result no list of changes shows."""
    if report.shared:
        return
    changed = [entry for entry in report.index.entries if entry.changes and not entry.failed]
    yield from section_if_any("Workspaces", [_row(entry, outcome_words(entry)) for entry in changed])
