"""Plans, reports, drift, fleets and snapshots as Markdown comments: riskiest first, and fitted to a size limit.

Templates print the heads and the entries; here is in which sections entries stand, and how short each may become.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Final
from urllib.parse import quote

from msgspec import Struct

from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import Problem
from lmsconf.model.address import Address
from lmsconf.model.calls import CallStatus
from lmsconf.model.drift import DriftReport
from lmsconf.model.fleet import FleetIndex, SharedChanges, group_blocked, group_failures
from lmsconf.model.names import count_noun, grouped
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Action, Change, Plan, Rehearsal, UnmanagedResources
from lmsconf.model.snapshot import Snapshot
from lmsconf.render import plan_wording
from lmsconf.render.drift_report import NOT_APPLIED, finding_headline, findings_by_state, ignored_sentence
from lmsconf.render.effects_tables import content_table, group_table
from lmsconf.render.effects_wording import (
    cause_places,
    effects_caveats,
    first_sentences,
    more_contents,
    tells_effects,
)
from lmsconf.render.escape import UNLIMITED, SizeLimit, TextVariant, byte_size, choose_variants, truncate
from lmsconf.render.jinja import markdown_macro
from lmsconf.render.outcome_wording import (
    REMAINING_CHANGES_HEADING,
    fleet_relaxed,
    other_changes_heading,
    outcomes_by_status,
    shared_headline,
)
from lmsconf.render.plan_wording import count_severities, no_longer_declared_heading
from lmsconf.render.resource_wording import (
    MAX_SHOWN_ITEMS,
    SAFE,
    apply_command,
    count_unmanaged,
    group_by_risk,
    kind_nouns,
    risk_heading,
    sort_by_severity,
)


class Entry(Struct, frozen=True):
    """One item of a section. nouns: how it is counted if omitted. variants: its texts, shortest first."""

    nouns: tuple[str, str]
    variants: Sequence[TextVariant]


def _entry(nouns: tuple[str, str], macro: str, *values: object, sizes: Sequence[object] = ()) -> Entry:
    """Return an entry that a macro prints. sizes: the last value of the macro, for each variant; empty: it has none."""
    printed = partial(markdown_macro, macro, *values)
    return Entry(nouns, [partial(printed, size) for size in sizes] or [printed])


def _resource(address: Address, macro: str, *values: object, sizes: Sequence[object] = ()) -> Entry:
    """Return the entry of a resource, which is counted as one of its kind."""
    return _entry(kind_nouns(address.kind), macro, *values, sizes=sizes)


_BRIEF_OR_WHOLE: Final = (False, True)
"""An entry in one line, and with the lines that explain it."""
_SIZES: Final = (0, MAX_SHOWN_ITEMS, None)
"""A change or a finding as a row, with the first items of its lists, in full."""


class Section(Struct, frozen=True):
    """Entries under a heading; folded: in a collapsed `<details>`. A section without entries is left out.

    entries: None where the heading is a sentence.
    """

    heading: str
    entries: Sequence[Entry] | None
    folded: bool = False


def _comment(
    marker: str, head: str, sections: Sequence[Section], foot: str, limit: SizeLimit, *, is_cut: bool = False
) -> str:
    """Join marker, head, sections and foot; all but the sections are kept whole, these are shortened to the limit.

    is_cut: whether some sections were left out before.
    """
    head, foot = f"{marker}\n\n{head.strip()}\n", f"\n{foot}" if foot else ""
    sections = [section for section in sections if section.entries is None or section.entries]
    if limit.size is None:
        return head + _fit(sections, None)[0] + foot
    shortened = (
        f"\nShortened to fit {limit.size:,} bytes: not everything is listed in full. "
        "`--format html` and `--format json` are complete.\n"
    )
    body, whole = _fit(sections, limit.size - byte_size(head) - byte_size(foot) - byte_size(shortened))
    return head + body + shortened * (is_cut or not whole) + foot


def _fit(sections: Sequence[Section], max_bytes: int | None) -> tuple[str, bool]:
    """Print sections within so many bytes (None: unlimited), earlier entries first; return (text, whether complete)."""
    if max_bytes is not None:
        max_bytes -= sum(map(_least_size, sections))
    chosen, whole = choose_variants(
        [entry.variants for section in sections for entry in section.entries or ()], max_bytes
    )
    texts = iter(chosen)
    body = ""
    for section in sections:
        fitted = [(entry, next(texts)) for entry in section.entries or ()]
        hidden = _counted(entry for entry, text in fitted if text is None)
        body += markdown_macro("parts.section", section, [text for _, text in fitted if text is not None], hidden)
    return re.sub(r"\n{3,}", "\n\n", body), whole


def _least_size(section: Section) -> int:
    """Return the bytes that a section takes beside its entries."""
    return byte_size(markdown_macro("parts.section", section, ["-"], _counted(section.entries or ())))


def _counted(entries: Iterable[Entry]) -> str:
    """`3 changes, 1 error`."""
    return ", ".join(count_noun(number, *nouns) for nouns, number in Counter(entry.nouns for entry in entries).items())


def comment_marker(kind: str, workspace: str, limit: SizeLimit = UNLIMITED) -> str:
    """Return an invisible line by which a later CI run finds its comment, to replace it."""
    name = truncate(workspace, lambda text: quote(text, safe="", errors="backslashreplace").replace("--", "-%2D"))
    return _marker(f"lmsconf:{kind}:{name}", limit)


def _marker(text: str, limit: SizeLimit) -> str:
    return f"<!-- {text} -->" if limit.folds else f"[//]: # ({text})"


def plan_markdown(plan: Plan, *, limit: SizeLimit = UNLIMITED) -> str:
    """Render a plan. The counts, deletions included, are complete whatever the limit; details as far as they fit."""
    digest, room = plan_digest(plan), None if limit.size is None else limit.size // _PART
    lists = plan_wording.settings_lists(plan).items()
    effects = _fitted_effects(plan, room) if tells_effects(plan) else ((), None, ())
    settings = [_fitted_settings(heading, lines, room) for heading, lines in lists if lines]
    head = markdown_macro("plan.head", plan, effects, settings)
    problems = sort_by_severity(plan.problems)
    changes = list(_changes(plan.changes, limit))
    sections = [
        *_effects_sections(plan, limit),
        _problems([problem for problem in plan.problems if problem.is_error]),
        *([] if plan.rehearsal is None else _rehearsal(plan, plan.rehearsal, limit)),
        *(section for risk, section in changes if risk not in SAFE),
        Section(
            no_longer_declared_heading(plan),
            [
                _resource(one.address, "plan.no_longer_declared_entry", one, sizes=_BRIEF_OR_WHOLE)
                for one in plan.no_longer_declared
            ],
        ),
        _problems([problem for problem in problems if not problem.is_error]),
        *(section for risk, section in changes if risk in SAFE),
        Section(plan_wording.left_out_heading(plan), _addresses(plan.left_out), limit.folds),
        *_unmanaged(plan.unmanaged, limit),
    ]
    foot = markdown_macro("plan.foot", plan, digest, apply_command(plan, digest))
    return _comment(comment_marker("plan", plan.workspace, limit), head, sections, foot, limit)


_PART: Final = 8
"""Sentences on effects, and each list of settings, take at most this part of a comment: deletions need their room."""


def _fitted_effects(plan: Plan, room: int | None) -> tuple[Sequence[str], str | None, Sequence[str]]:
    """Return what of the effects has room at the top: sentences, how many more there are, caveats."""
    caveats = [[partial(markdown_macro, "plan.caveat", caveat)] for caveat in effects_caveats(plan.effects)]
    sentences = [
        [partial(markdown_macro, "plan.effect", effect, part) for part in ((), causes)]
        for effect, causes in first_sentences(plan, cause_places(plan))
    ]
    (_, *texts), _ = choose_variants(
        [[partial(markdown_macro, "plan.effects_headline", plan)], *caveats, *sentences], room
    )
    told = list(filter(None, texts[len(caveats) :]))
    return told, more_contents(plan, len(told)), list(filter(None, texts[: len(caveats)]))


def _fitted_settings(heading: str, lines: Sequence[str], room: int | None) -> tuple[str, Sequence[str], int, int]:
    """Return heading, lines that have room, how many are left out, and how many of these are weaker."""
    texts, _ = choose_variants([[partial(markdown_macro, "plan.policy_line", line)] for line in lines], room)
    left = [line for line, text in zip(lines, texts, strict=True) if text is None]
    return heading, list(filter(None, texts)), len(left), sum(line.endswith(plan_wording.WEAKER) for line in left)


def _effects_sections(plan: Plan, limit: SizeLimit) -> Iterator[Section]:
    """Yield the tables, folded: a row for each content, and for each group whose members change."""
    places = cause_places(plan)
    tables = (("Access changes", content_table(plan.effects)), ("Members change", group_table(plan.effects)))
    for heading, table in tables:
        if total := len(table.rows):
            sizes = [*(most for most in (10, 50, 250) if most < total), total]
            entry = _entry(("table", "tables"), "plan.effects_table", table, places, sizes=sizes)
            yield Section(f"{heading}: {count_noun(total, *table.nouns)}", [entry], limit.folds)


def _rehearsal(plan: Plan, rehearsal: Rehearsal, limit: SizeLimit) -> list[Section]:
    """Return what was not done, what is left, and what the rehearsal rests on; the latter folded."""
    about = [
        *plan_wording.rehearsal_sentences(plan, rehearsal),
        *(f"{plan_wording.GROUPS_HEADING}, {line}" for line in map(plan_wording.group_line, rehearsal.memberships)),
    ]
    return [
        Section(
            plan_wording.FAILED_HEADING,
            [
                _entry(("call", "calls"), "plan.rehearsal_failure", call, sizes=_BRIEF_OR_WHOLE)
                for call in rehearsal.failed
            ],
        ),
        Section(
            plan_wording.REMAINING_HEADING,
            _lines(("change", "changes"), map(plan_wording.remaining_line, rehearsal.remaining)),
        ),
        Section("After the rehearsal", list(map(_problem, rehearsal.problems))),
        Section(f"About the rehearsal of {rehearsal.taken_at}", _lines(("line", "lines"), about), limit.folds),
        Section(
            plan_wording.ASSUMPTIONS_HEADING,
            _lines(("assumption", "assumptions"), map(plan_wording.assumption_line, rehearsal.assumptions)),
            limit.folds,
        ),
    ]


def _lines(nouns: tuple[str, str], lines: Iterable[str]) -> list[Entry]:
    return [_entry(nouns, "parts.line", line) for line in lines]


def _unmanaged(groups: Iterable[UnmanagedResources], limit: SizeLimit) -> Iterator[Section]:
    return (Section(count_unmanaged(group), _addresses(group.addresses) or None, limit.folds) for group in groups)


def _addresses(addresses: Iterable[Address]) -> list[Entry]:
    return [_resource(address, "parts.address", address) for address in addresses]


def _problems(problems: Sequence[Problem]) -> Section:
    return Section(count_severities(problems).capitalize(), list(map(_problem, problems)))


def _problem(problem: Problem) -> Entry:
    severity = problem.severity.value
    return _entry((severity, f"{severity}s"), "parts.problem", problem, sizes=_BRIEF_OR_WHOLE)


def _changes(changes: Iterable[Change], limit: SizeLimit, before: str = "") -> Iterator[tuple[Action | str, Section]]:
    """Yield the sections of changes: one open section per risk; safe changes are folded, one section per kind."""
    for risk, group in group_by_risk(changes).items():
        folded = risk in SAFE and limit.folds
        by_kind = grouped(group, lambda change: change.address.kind)
        for alike in by_kind.values() if folded else [group]:
            entries = [_change(change, limit) for change in alike]
            yield risk, Section(before + risk_heading(risk, alike), entries, folded)


def _change(change: Change, limit: SizeLimit) -> Entry:
    return _resource(change.address, "parts.change", change, limit.folds, sizes=_SIZES)


def apply_markdown(report: ApplyReport, *, limit: SizeLimit = UNLIMITED) -> str:
    """Render an apply report, failures first; all calls but these are folded."""
    sections = [
        _problems(sort_by_severity(report.problems)),
        *(
            Section(
                heading,
                [_entry(("API call", "API calls"), "apply.outcome", one, sizes=_BRIEF_OR_WHOLE) for _, one in group],
                limit.folds and status is not CallStatus.FAILED,
            )
            for status, heading, group in outcomes_by_status(report)
        ),
        *(section for _, section in _changes(report.remaining_changes, limit, f"{REMAINING_CHANGES_HEADING} ")),
        *(section for _, section in _changes(report.foreign_changes, limit, f"{other_changes_heading(report)} ")),
        Section("About this run", _lines(("note", "notes"), map(": ".join, sorted(report.meta.items())))),
    ]
    head, foot = markdown_macro("apply.head", report), markdown_macro("apply.foot", report)
    return _comment(comment_marker("apply", report.workspace, limit), head, sections, foot, limit)


def drift_markdown(drift: DriftReport, *, limit: SizeLimit = UNLIMITED) -> str:
    """Render a drift report, findings grouped by state; the counts are complete whatever the limit."""
    problems = sort_by_severity(drift.problems)
    sections = [
        _problems([problem for problem in problems if problem.is_error]),
        *(
            Section(
                heading,
                [_resource(one.address, "drift.finding", one, limit.folds, sizes=_SIZES) for _, one in group],
            )
            for _, heading, group in findings_by_state(drift)
        ),
        _problems([problem for problem in problems if not problem.is_error]),
        Section(
            NOT_APPLIED,
            [_resource(one.address, "parts.line", finding_headline(one)) for one in drift.not_applied],
            limit.folds,
        ),
        Section(
            "Ignored by the project file",
            [_resource(one.address, "parts.line", ignored_sentence(one)) for one in drift.ignored],
            limit.folds,
        ),
        *(() if drift.counts_unmanaged else _unmanaged(drift.unmanaged, limit)),
    ]
    head, foot = markdown_macro("drift.head", drift), markdown_macro("drift.foot", drift)
    return _comment(comment_marker("drift", drift.workspace, limit), head, sections, foot, limit)


def fleet_markdown(report: FleetIndex, *, limit: SizeLimit = UNLIMITED) -> str:
    """Render the results of a fleet: failures first, then the changes that workspaces share."""
    entries, action = report.entries, report.action
    changed = [] if report.shared else [entry for entry in entries if entry.changes and not entry.failed]
    shared = [_shared(one, len(entries), limit) for one in report.shared]
    # At most half of a comment is headings of changes.
    left = 0 if limit.size is None else sum(size > limit.size // 2 for size in accumulate(map(_least_size, shared)))
    sections = [
        Section(
            "Failed",
            [
                _entry(_WORKSPACES, "fleet.failure", alike, action, sizes=_BRIEF_OR_WHOLE)
                for alike in group_failures(entries)
            ],
        ),
        Section(
            plan_wording.RELAXED_HEADING,
            [_entry(("setting", "settings"), "parts.line", line, 400) for line in fleet_relaxed(report)],
        ),
        Section(
            plan_wording.BLOCKERS_HEADING,
            [_entry(_WORKSPACES, "fleet.blocked", alike) for alike in group_blocked(entries)],
        ),
        *shared[: len(shared) - left],
        *([Section(f"… and {count_noun(left, 'more group', 'more groups')} of changes", None)] if left else []),
        Section("Workspaces", [_entry(_WORKSPACES, "fleet.workspace", entry) for entry in changed]),
    ]
    return _comment(
        comment_marker("fleet", action.value, limit),
        markdown_macro("fleet.head", report),
        sections,
        "",
        limit,
        is_cut=left > 0,
    )


_WORKSPACES: Final = ("workspace", "workspaces")


def _shared(shared: SharedChanges, total: int, limit: SizeLimit) -> Section:
    """Return changes and the workspaces that share them: first those, unless each has one of the changes."""
    changes = [_change(change, limit) for change in (shared.changes[:1] if shared.one_each else shared.changes)]
    # All names have room only once the changes are in full.
    most = [10] * len(_SIZES) + [None]
    its = shared.changes if shared.one_each else ()
    nouns = ("list of workspaces", "lists of workspaces")
    workspaces = [_entry(nouns, "fleet.workspaces", shared.workspaces, its, limit.folds, sizes=most)]
    return Section(shared_headline(shared, total), changes + workspaces if shared.one_each else workspaces + changes)


def problems_markdown(problems: Sequence[Problem], *, limit: SizeLimit = UNLIMITED) -> str:
    """Render problems as a comment that replaces the plan's; CI finds both by the prefix of the first line's marker."""
    failed = any(problem.is_error for problem in problems)
    title = "### lmsconf: no plan" if failed else "### lmsconf validate: no errors"
    return _comment(_marker("lmsconf:plan", limit), title, [_problems(sort_by_severity(problems))], "", limit)


def snapshot_markdown(snapshot: Snapshot, *, limit: SizeLimit = UNLIMITED) -> str:
    """Render a snapshot: counts per kind."""
    head = markdown_macro("snapshot.head", snapshot)
    return _comment(comment_marker("snapshot", snapshot.workspace, limit), head, (), "", limit)
