"""Plans, apply reports and snapshots as Markdown comments: riskiest changes first, fitted to a size limit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate
from math import inf
from urllib.parse import quote

from lmsconf.documents.plan_file import plan_digest
from lmsconf.errors import Problem
from lmsconf.model.blockers import CONSENT_LEAD, Blocker, blockers, consent_command, reviewed_consent
from lmsconf.model.plan import Action, Change, Plan, UnmanagedResources
from lmsconf.model.snapshot import Snapshot
from lmsconf.render import settings_wording
from lmsconf.render.change_summary import (
    Risk,
    apply_command,
    count_actions_by_kind,
    count_kinds,
    count_removed_items,
    drop_empty_groups,
    group_by_risk,
    sort_by_severity,
)
from lmsconf.render.escape import escape_markdown, markdown_code, markdown_fence
from lmsconf.render.markdown.effects import effects_paragraphs, effects_sections
from lmsconf.render.markdown.rehearsal import rehearsal_paragraph, rehearsal_sections
from lmsconf.render.markdown.sections import (
    NAME_SIZE,
    MarkdownSection,
    SectionEntry,
    abandoned_entry,
    address_entry,
    change_entry,
    fit_sections,
    problem_entry,
    truncate,
)
from lmsconf.render.plan_wording import (
    BLOCKERS_HEADING,
    abandoned_heading,
    assumptions_sentence,
    count_severities,
    plan_summary,
    scope_sentences,
    workspace_line,
)
from lmsconf.render.resource_wording import count_listed_rows, count_noun, count_unmanaged, kind_plural
from lmsconf.render.size_limit import UNLIMITED, SizeLimit, byte_size


def plan_markdown(plan: Plan, *, limit: SizeLimit = UNLIMITED) -> str:
    """Render a plan. The counts, deletions included, are complete whatever the limit; details as far as they fit."""
    digest = plan_digest(plan)
    effects, details = effects_paragraphs(plan, limit)
    head = paragraphs(
        comment_marker("plan", plan.workspace, limit),
        f"### lmsconf plan: {truncate(plan.workspace, markdown_code)}",
        workspace_paragraph(plan.workspace, plan.url, plan.people),
        effects,
        _stops(plan),
        details,
        rehearsal_paragraph(plan),
        f"**{plan_summary(plan)}**",
        escape_markdown(assumptions_sentence(plan) or ""),
        *map(escape_markdown, scope_sentences(plan)),
        _listed(settings_wording.CHANGED_HEADING, settings_wording.changed_settings(plan), limit),
        _listed(settings_wording.RELAXED_HEADING, settings_wording.relaxed_settings(plan), limit),
        _listed(settings_wording.CONSENTS_HEADING, settings_wording.consented_guards(plan), limit),
        _counts(plan.changes),
    )
    errors = [problem for problem in plan.problems if problem.is_error]
    others = [problem for problem in sort_by_severity(plan.problems) if not problem.is_error]
    changes = list(change_sections(plan.changes, limit))
    safe = [section for risk, section in changes if risk.safe]
    sections = [
        *effects_sections(plan, limit),
        *problem_section(errors),
        *rehearsal_sections(plan, limit),
        *(section for risk, section in changes if not risk.safe),
        *(section_if_any(abandoned_heading(plan), map(abandoned_entry, plan.let_go)) if plan.let_go else ()),
        *problem_section(others),
        *safe,
        *_left_out(plan, limit),
        *unmanaged_sections(plan.unmanaged, limit),
    ]
    return fit_comment(head, sections, _how_to_apply(plan, digest), limit)


def snapshot_markdown(snapshot: Snapshot, *, limit: SizeLimit = UNLIMITED) -> str:
    """Render a snapshot: counts per kind."""
    rows = [
        f"- {truncate(count_listed_rows(kind, listing), escape_markdown, 500)}"
        for kind, listing in snapshot.listings.items()
    ]
    return paragraphs(
        comment_marker("snapshot", snapshot.workspace, limit),
        f"### lmsconf snapshot: {truncate(snapshot.workspace, markdown_code)}",
        workspace_paragraph(snapshot.workspace, snapshot.url, snapshot.people),
        f"Taken {escape_markdown(snapshot.taken_at)}.",
        "\n".join(rows),
    )


def comment_marker(kind: str, workspace: str, limit: SizeLimit = UNLIMITED) -> str:
    """Return an invisible line by which a later CI run finds its comment, to replace it."""
    name = truncate(workspace, lambda text: quote(text, safe="", errors="backslashreplace").replace("--", "-%2D"))
    return f"<!-- lmsconf:{kind}:{name} -->" if limit.folds else f"[//]: # (lmsconf:{kind}:{name})"


def fit_comment(head: str, sections: Sequence[MarkdownSection], foot: str, limit: SizeLimit) -> str:
    """Join head, sections and foot; head and foot are kept whole, the sections shortened to the limit."""
    foot = f"\n{foot}\n" if foot else ""
    if limit.size is None:
        return head + fit_sections(sections, None)[0] + foot
    shortened = (
        f"\nShortened to fit {limit.size:,} bytes: not everything is listed in full. "
        "`--format html` and `--format json` are complete.\n"
    )
    body, whole = fit_sections(sections, limit.size - byte_size(head) - byte_size(foot) - byte_size(shortened))
    return head + body + shortened * (not whole) + foot


def paragraphs(*blocks: str) -> str:
    return "\n\n".join(filter(None, blocks)) + "\n"


def workspace_paragraph(workspace: str, url: str, people: int | None) -> str:
    return truncate(workspace_line(workspace, url, people), escape_markdown, 2 * NAME_SIZE)


_MOST_STOPS = 6
"""Maximum number of blockers listed at the top; the others are counted there and shown with their changes."""


def _stops(plan: Plan) -> str:
    """Return the plan's blockers with reason and hint, and the command that consents to them."""
    blocking = blockers(plan)
    if not blocking:
        return ""
    lines = [f"**⛔ {BLOCKERS_HEADING}:**", "", *map(_stop, blocking[:_MOST_STOPS])]
    if len(blocking) > _MOST_STOPS:
        lines.append(f"- … and {count_noun(len(blocking) - _MOST_STOPS, 'more reason')}")
    line = consent_command(plan)
    if line is not None:
        lines += ["", CONSENT_LEAD, "", markdown_fence(line, "sh")]
    if (reviewed := reviewed_consent(plan)) is not None:
        lines += ["", "Or, to have it reviewed, add this to the project file:", "", markdown_fence(reviewed, "yaml")]
    return "\n".join(lines)


def _stop(blocker: Blocker) -> str:
    lines = [str(blocker), " ".join((blocker.hint or "").split("\n"))]
    return "- " + "\n  ".join(truncate(line, escape_markdown, 2 * NAME_SIZE) for line in lines if line)


_SETTINGS_SHARE = 8
"""A list of settings has at most this part of the limit, so that many harmless ones displace nothing else."""


def _listed(heading: str, lines: Iterable[str], limit: SizeLimit) -> str:
    """Return lines under a heading, the first of them within a part of the limit; empty without lines."""
    rows = list(map(_setting, lines))
    room = inf if limit.size is None else limit.size // _SETTINGS_SHARE
    sizes = accumulate(byte_size(row) + 1 for row in rows)
    shown = [row for row, size in zip(rows, sizes, strict=True) if size <= room]
    if left := rows[len(shown) :]:
        weaker = sum(row.endswith(settings_wording.WEAKER) for row in left)
        of_these = f", {weaker:,} of them weaker" if weaker else ""
        shown.append(f"- … and {len(left):,} more{of_these}, which `--format html` and `--format json` list")
    return "\n".join([f"**{heading}:**", "", *shown]) if rows else ""


def _setting(line: str) -> str:
    """Return the line of a setting; where it is truncated, it still ends by saying that it is weaker."""
    end = settings_wording.WEAKER if line.endswith(settings_wording.WEAKER) else ""
    return f"- {truncate(line.removesuffix(end), escape_markdown, 2 * NAME_SIZE)}{end}"


_COLUMNS: tuple[tuple[Action | str, str], ...] = (
    (Action.DELETE, "to delete"),
    ("taken", "taken away"),
    (Action.REPLACE, "to replace"),
    (Action.UPDATE, "to change"),
    (Action.CREATE, "to create"),
)


def _counts(changes: Sequence[Change]) -> str:
    """Return the counts per kind and action as a table."""
    table = count_actions_by_kind(changes)
    columns = [(key, title) for key, title in _COLUMNS if any(counts[key] for counts in table.values())]
    if not columns:
        return ""
    rows = [
        f"| {escape_markdown(kind_plural(kind))} | {' | '.join(_number(counts[key]) for key, _ in columns)} |"
        for kind, counts in table.items()
    ]
    head = f"| | {' | '.join(title for _, title in columns)} |"
    return "\n".join([head, f"|:--|{'--:|' * len(columns)}", *rows])


def _number(number: int) -> str:
    return f"{number:,}" if number else ""


def section_if_any(heading: str, entries: Iterable[SectionEntry], *, folded: bool = False) -> Iterator[MarkdownSection]:
    rows = tuple(entries)
    if rows:
        yield MarkdownSection(heading, rows, folded)


def problem_section(problems: Sequence[Problem]) -> Iterator[MarkdownSection]:
    yield from section_if_any(count_severities(problems).capitalize(), map(problem_entry, problems))


def change_sections(
    changes: Iterable[Change], limit: SizeLimit, before: str = ""
) -> Iterator[tuple[Risk, MarkdownSection]]:
    """Yield the sections of changes: one open section per risk; safe changes are folded, one section per kind."""
    for risk, group in group_by_risk(changes).items():
        for alike in [group] if not (risk.safe and limit.folds) else _kinds(group):
            entries = [change_entry(change, folds=limit.folds) for change in alike]
            yield risk, MarkdownSection(before + _heading(risk, alike), entries, folded=risk.safe and limit.folds)


def _kinds(changes: Sequence[Change]) -> Iterator[Sequence[Change]]:
    for kind in dict.fromkeys(change.address.kind for change in changes):
        yield [change for change in changes if change.address.kind == kind]


def _heading(risk: Risk, changes: Sequence[Change]) -> str:
    if risk is Risk.ITEMS_REMOVED:
        return f"{risk.value}: {count_noun(sum(map(count_removed_items, changes)), 'item')} from {count_kinds(changes)}"
    return f"{risk.value}: {count_kinds(changes)}"


def _left_out(plan: Plan, limit: SizeLimit) -> Iterator[MarkdownSection]:
    heading = f"Left out, because this plan only adds: {count_noun(len(plan.left_out), 'change')}"
    yield from section_if_any(heading, map(address_entry, plan.left_out), folded=limit.folds)


def unmanaged_sections(groups: Iterable[UnmanagedResources], limit: SizeLimit) -> Iterator[MarkdownSection]:
    """Yield the unmanaged resources, folded."""
    for group in drop_empty_groups(groups):
        yield MarkdownSection(
            count_unmanaged(group),
            [address_entry(address) for address in group.addresses],
            folded=limit.folds,
        )


def _how_to_apply(plan: Plan, digest: str) -> str:
    if not plan.changes:
        return ""
    line = apply_command(plan, digest)
    command = f"To apply exactly this plan:\n\n{markdown_fence(line, 'sh')}\n\n" if line else ""
    return f"---\n\n{command}Digest {markdown_code(digest)}"
