"""Drift in words that all formats share, which are not escaped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.address import Address
from lmsconf.model.drift import (
    DriftCause,
    DriftFinding,
    DriftReport,
    DriftState,
    ManagedShare,
)
from lmsconf.model.names import first_lines, grouped
from lmsconf.model.outcomes import count_skipped_people
from lmsconf.render.plan_wording import escape_base_name, skipped_people_clause
from lmsconf.render.resource_wording import (
    MAX_SHOWN_ITEMS,
    KeyChange,
    RowGroup,
    count_kind,
    count_kinds,
    counted_items,
    key_change,
    numbered_groups,
)

SIGNS: Final = {
    DriftState.CHANGED: "~",
    DriftState.MISSING: "-",
    DriftState.RENAMED: "~",
    DriftState.UNDECLARED: "+",
    DriftState.UNMANAGED: "+",
}
"""The sign of a finding: `~` differs, `-` declared and not live, `+` live and not declared."""

IS: Final = {
    DriftState.CHANGED: "has drifted",
    DriftState.MISSING: "is missing from the workspace",
    DriftState.RENAMED: "was renamed by hand",
    DriftState.UNDECLARED: "is live but must not exist",
    DriftState.UNMANAGED: "is live but not declared",
}

COUNTED: Final = {
    DriftState.CHANGED: "changed",
    DriftState.MISSING: "missing",
    DriftState.RENAMED: "renamed by hand",
    DriftState.UNDECLARED: "undeclared",
    DriftState.UNMANAGED: "unmanaged",
}

TO_COME: Final = {
    DriftState.CHANGED: "is to change",
    DriftState.MISSING: "is to be created",
    DriftState.RENAMED: "is to be created, or renamed",
    DriftState.UNDECLARED: "is to be deleted",
}
"""States of differences that are not applied yet. Unmanaged has none: what is not declared is not to be changed."""

NOT_APPLIED: Final = "Not applied yet"
"""The heading of those differences."""


def findings_by_state(drift: DriftReport) -> Iterator[RowGroup]:
    """Yield the findings of each state that findings have."""
    return numbered_groups(
        drift.findings, "state", COUNTED, lambda group: count_kinds(one.address.kind for one in group)
    )


def finding_headline(finding: DriftFinding) -> str:
    """`group/Coaches has drifted`."""
    words = TO_COME if finding.cause is DriftCause.NOT_APPLIED else IS
    return f"{resource_title(finding.address)} {words[finding.state]}"


def cause_sentences(finding: DriftFinding) -> Iterator[str]:
    """Yield what is known about the cause of a finding."""
    if finding.reason is not None:
        yield finding.reason
    elif finding.state is DriftState.UNDECLARED:
        yield "it is listed under `absent`"
    for one in finding.candidates:
        # Where several live resources have the same content, one of them may have been renamed.
        is_clear = finding.state is DriftState.RENAMED and finding.live is not None
        way = "" if is_clear else f"; if they are the same, write {one.line} beside the name"
        yield f"{resource_title(one.address)} (id {one.id}) has {one.why}, and no manifest declares it{way}"
    if finding.cause is DriftCause.BY_HAND:
        yield "changed by hand"
    if finding.unapplied:
        yield f"not applied yet: {', '.join(finding.unapplied)}"
    if finding.edit is not None:
        by, at = finding.edit
        yield f"last changed{f' by {by}' if by else ''}{f' at {at}' if at else ''}"


def finding_keys(finding: DriftFinding) -> Iterator[KeyChange]:
    """Return the keys of a finding: `removed` is the declared side, `added` the live side."""
    return (
        key_change(one, (one.removed, "missing in the workspace"), (one.added, "not in the manifests"))
        for one in finding.fields
    )


def key_sentence(key: KeyChange) -> str:
    """`mandatory: true in the manifests, false in the workspace`; for a list, counts of missing and extra items."""
    sides = key.note if key.is_list else f"{key.removed[0]} in the manifests, {key.added[0]} in the workspace"
    return f"{key.path}: {sides}"


def _key_line(key: KeyChange) -> str:
    """Return a key in one line, with the first items of a list."""
    lists = [
        f"{verb}: {', '.join(first_lines(items, MAX_SHOWN_ITEMS))}"
        for verb, items in (("missing", key.removed), ("extra", key.added))
        if key.is_list and items
    ]
    return f"{key_sentence(key)} ({'; '.join(lists)})" if lists else key_sentence(key)


def finding_details(finding: DriftFinding) -> Iterator[str]:
    """Return what is known about a finding, a line each: its cause, its keys, its remedies."""
    return chain(cause_sentences(finding), map(_key_line, finding_keys(finding)), remedy_lines(finding))


def remedies(finding: DriftFinding) -> Iterator[tuple[str, str, str]]:
    """Yield each remedy of a finding: what it is for, in short and as a sentence, and its command."""
    # Of a resource that was renamed, the lines of the manifest with which apply renames it back.
    lines = [one.line for one in finding.candidates] if finding.state is DriftState.RENAMED else []
    if finding.restore is not None:
        # What is created again has another id, and what it held elsewhere, such as answers, does not come back.
        way = "to create it again" if finding.state is DriftState.MISSING else "to revert"
        first = "".join(f"write {line} beside its name, then " for line in lines)
        before = "".join(f"; first write {line} beside its name" for line in lines)
        yield f"{way}: {first}", f"Change the workspace back to match the manifests{before}", finding.restore
    if finding.accept is not None:
        yield "to keep: ", "Change the manifests to match the workspace", finding.accept


def remedy_lines(finding: DriftFinding) -> Iterator[str]:
    """Return the remedies of a finding, one line each: restore, accept."""
    return (f"{way}{command}" for way, _, command in remedies(finding))


def ignored_sentence(finding: DriftFinding) -> str:
    """`group/UI tests has drifted. Ignored until 2027-01-01: …`; empty for a finding that counts."""
    if (entry := finding.ignored_by) is None:
        return ""
    return f"{finding_headline(finding)}. Ignored{f' until {entry.until}' if entry.until else ''}: {entry.reason}"


def managed_share(counts: ManagedShare) -> str:
    """`12 of 25 groups (48.0 %), 3 left alone`."""
    share = "" if counts.percent is None else f" ({counts.percent:.1f} %)"
    return f"{counts.managed:,} of {managed_of(counts, share)}"


def managed_of(counts: ManagedShare, share: str = "") -> str:
    """`25 groups, 3 left alone`: what the managed ones are a part of."""
    alone = f", {counts.left_alone:,} left alone" if counts.left_alone else ""
    rest = f"; not all were read: {counts.incomplete}" if counts.incomplete is not None else ""
    return f"{count_kind(counts.live, counts.kind)}{share}{alone}{rest}"


def base_sentences(drift: DriftReport) -> Iterator[str]:
    """Yield a sentence about the base that the drift was also compared with, if any."""
    if drift.base is not None:
        yield (
            f"{escape_base_name(drift.base)} is the state that was applied last: what also differs from it was "
            "changed by hand; what differs only from the current manifests is not applied yet, and does not count."
        )


def unread_sentences(drift: DriftReport) -> Iterator[str]:
    """Yield a sentence on what was not read, if that is so."""
    if not drift.reads_all:
        yield "Only the resources of the manifests were read; --unmanaged and --coverage read the whole workspace."


REST: Final = "manifests and workspace"
"""The suite of errors that concern no declared resource."""


def junit_suites(drift: DriftReport) -> Mapping[str, Sequence[tuple[Address, str, object]]]:
    """Return kind → cases of JUnit: address, what came of it, and the finding or problem that says so."""
    declared = {str(address): address for address in drift.managed}
    cases: list[tuple[Address, str, object]] = [
        *((one.address, "finding", one) for one in drift.findings),
        *((one.address, "not applied", one) for one in drift.not_applied),
        *((one.address, "ignored", one) for one in drift.ignored),
        *((declared.get(one.address or "", Address(REST, "")), "error", one) for one in drift.problems if one.is_error),
    ]
    failing = {address for address, _, _ in cases}
    cases += [(address, "as declared", address) for address in drift.managed if address not in failing]
    return grouped(sorted(cases, key=lambda case: case[0]), lambda case: case[0].kind)


def drift_summary(drift: DriftReport) -> str:
    """Return the summary sentence of a drift report."""
    counts = [f"{number:,} {COUNTED[state]}" for state in DriftState if (number := drift.count(state))]
    others = counted_items((drift.not_applied, "not applied yet"), (drift.ignored, "ignored"))
    rest = f" In addition: {others}." if others else ""
    if counts:
        return f"Drift: {', '.join(counts)}.{rest}"
    if any(problem.is_error for problem in drift.problems):
        return f"Drift: none found, but not everything could be compared: see the errors above.{rest}"
    if others:
        return f"No drift. These differences do not count: {others}."
    return (
        f"No drift. The workspace matches the manifests{skipped_people_clause(count_skipped_people(drift.problems))}."
    )
