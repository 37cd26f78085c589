"""The Markdown view of a fleet, for the comment of a pull request: within its size, failures first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from lmsconf.model.blockers import Blocker
from lmsconf.model.fleet import (
    FleetAction,
    FleetEntry,
    FleetReport,
    SharedChanges,
    SharedFailure,
    group_blocked,
    group_failures,
)
from lmsconf.model.plan import Change
from lmsconf.render.escape import escape_html, escape_markdown, markdown_code
from lmsconf.render.fleet_wording import (
    SHOWN_ERRORS,
    failed_workspaces,
    fleet_assumptions,
    fleet_effects,
    fleet_headline,
    fleet_relaxed,
    more_errors,
    outcome_words,
    shared_headline,
    workspace_count,
)
from lmsconf.render.markdown.plan import comment_marker, fit_comment, paragraphs, section_if_any
from lmsconf.render.markdown.sections import (
    MarkdownSection,
    SectionEntry,
    change_entry,
    details_block,
    problem_text,
    truncate,
)
from lmsconf.render.resource_wording import resource_title
from lmsconf.render.settings_wording import RELAXED_HEADING
from lmsconf.render.size_limit import UNLIMITED, SizeLimit

_NAMES: Final = 10
_WORDS: Final = 400
_CHANGE_VARIANTS: Final = 3
"""How many texts, from a row to all details, `change_entry` has for a change."""
_NOUNS: Final = ("workspace", "workspaces")
_SETTINGS: Final = ("setting", "settings")
_LISTS: Final = ("list of workspaces", "lists of workspaces")


def fleet_markdown(report: FleetReport, *, limit: SizeLimit = UNLIMITED) -> str:
    """Return the comment."""
    action = report.index.action.value
    head = paragraphs(
        comment_marker("fleet", action, limit),
        f"### lmsconf fleet {action}",
        f"**{fleet_headline(report)}**",
        escape_markdown(fleet_effects(report)),
        escape_markdown(fleet_assumptions(report) or ""),
    )
    sections = [
        *section_if_any(
            "Failed", [_failure(failure, report.index.action) for failure in group_failures(report.index.entries)]
        ),
        *section_if_any(RELAXED_HEADING, map(_setting, fleet_relaxed(report))),
        *section_if_any("Apply would stop here", map(_blocked, group_blocked(report.index.entries))),
        *(_shared(shared, report, limit) for shared in report.shared),
        *_others(report),
    ]
    return fit_comment(head, sections, "", limit)


def _failure(failure: SharedFailure, action: FleetAction) -> SectionEntry:
    entry = failure.entry
    line = f"- {truncate(failed_workspaces(failure), escape_markdown, _WORDS)}{_some(failure.workspaces)}\n"
    more = "".join(f"  {problem_text(problem, short=True).rstrip()}\n" for problem in entry.problems[:SHOWN_ERRORS])
    if left := more_errors(entry, action):
        more += f"  - {escape_markdown(left)}\n"
    return SectionEntry(_NOUNS, (lambda: line, lambda: line + more))


def _blocked(stopped: tuple[Sequence[Blocker], Sequence[str]]) -> SectionEntry:
    blockers, names = stopped
    where = markdown_code(names[0]) if len(names) == 1 else workspace_count(len(names))
    words = truncate("; ".join(map(str, blockers)), escape_markdown, _WORDS)
    line = f"- {where}: {words}{_some(names)}\n"
    return SectionEntry(_NOUNS, (lambda: line,))


def _setting(words: str) -> SectionEntry:
    line = f"- {truncate(words, escape_markdown, _WORDS)}\n"
    return SectionEntry(_SETTINGS, (lambda: line,))


def _row(entry: FleetEntry, words: str) -> SectionEntry:
    line = f"- {markdown_code(entry.workspace)}: {truncate(words, escape_markdown, _WORDS)}\n"
    return SectionEntry(_NOUNS, (lambda: line,))


def _shared(shared: SharedChanges, report: FleetReport, limit: SizeLimit) -> MarkdownSection:
    headline = shared_headline(shared, len(report.index.entries))
    if shared.one_each:
        pairs = zip(shared.changes, shared.workspaces, strict=True)
        rows = [f"- {markdown_code(name)}: {_title(change)}" for change, name in pairs]
        return MarkdownSection(
            headline, [change_entry(shared.changes[0], folds=limit.folds), _list(shared.workspaces, rows, "\n", limit)]
        )
    names = _list(shared.workspaces, [markdown_code(name) for name in shared.workspaces], ", ", limit)
    return MarkdownSection(headline, [names, *(change_entry(change, folds=limit.folds) for change in shared.changes)])


def _title(change: Change) -> str:
    return truncate(resource_title(change.address), markdown_code, _WORDS)


def _some(names: Sequence[str]) -> str:
    """Return the names of several workspaces, after what is the same in them."""
    return f". {_shortened([markdown_code(name) for name in names], ', ')}" if len(names) > 1 else ""


def _list(names: Sequence[str], items: Sequence[str], separator: str, limit: SizeLimit) -> SectionEntry:
    """Return the entry for a list of workspaces: the first of them, or all, folded up where they are many.

    All of them have room only once the changes are in full. items: the lines or words for the names.
    """
    short, full = f"\n{_shortened(items, separator)}\n", f"\n{separator.join(items)}\n"
    if limit.folds and len(names) > _NAMES:
        first = ", ".join(f"<code>{truncate(name, escape_html)}</code>" for name in names[:2])
        full = details_block(f"In {first} and {len(names) - 2:,} more", full)
    return SectionEntry(_LISTS, (*([lambda: short] * _CHANGE_VARIANTS), lambda: full))


def _shortened(items: Sequence[str], separator: str) -> str:
    shown = separator.join(items[:_NAMES])
    return shown if len(items) <= _NAMES else f"{shown}{separator}… and {len(items) - _NAMES:,} more"


def _others(report: FleetReport) -> Iterator[MarkdownSection]:
    """Yield the workspaces whose result no list of changes shows."""
    if report.shared:
        return
    changed = [entry for entry in report.index.entries if entry.changes and not entry.failed]
    yield from section_if_any("Workspaces", [_row(entry, outcome_words(entry)) for entry in changed])
