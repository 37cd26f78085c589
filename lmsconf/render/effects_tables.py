"""Effects on people as tables that all formats share: a row per content and per group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.address import Address
from lmsconf.model.effects import Basis, CauseCount, ContentEffects, Effects, GroupEffects
from lmsconf.render.effects_wording import (
    GROUP_NOUNS,
    NOT_KNOWN,
    format_count,
    sort_contents,
)

_CONTENT_COLUMNS: Final = {
    "before": "before",
    "after": "after",
    "gain": "gain",
    "lose": "lose",
    "keep": "keep",
    "to_mandatory": "becomes mandatory",
    "to_optional": "becomes optional",
    "window": "window changed",
    "shortened": "shortened",
}
_GROUP_COLUMNS: Final = {"before": "before", "after": "after", "join": "join", "leave": "leave"}
_STATES: Final = ("not_started", "in_progress", "approved", "failed", "expired")


class EffectsRow(Struct, frozen=True, kw_only=True):
    """A content or a group with its numbers.

    unknown: what stands in place of all numbers if none is known. note: how far those are who lose a content.
    causes: each person whose answers change is one, so views show the first.
    bar: of a content, how many lose, still have and gain it; None if that is not known.
    """

    title: str
    address: Address | None
    cells: tuple[str, ...]
    unknown: str | None = None
    is_estimate: bool = False
    note: str | None = None
    causes: tuple[CauseCount, ...] = ()
    bar: tuple[int, int, int] | None = None


class EffectsTable(Struct, frozen=True, kw_only=True):
    """Rows with the headings of their numbers. nouns: what a row is, singular and plural."""

    headings: tuple[str, ...]
    rows: Sequence[EffectsRow]
    nouns: tuple[str, str]


def content_table(effects: Effects) -> EffectsTable:
    """Return the contents whose access changes, losses first. A column of zeros alone is left out."""
    contents = sort_contents(effects.contents)
    counted: list[Mapping[str, int | None]] = [
        {"before": one.before, "after": one.after, "keep": one.keep, **asdict(one.counts)} for one in contents
    ]
    columns = [
        name
        for name in _CONTENT_COLUMNS
        if name in ("before", "after", "gain", "lose") or any(numbers[name] for numbers in counted)
    ]
    return EffectsTable(
        headings=tuple(_CONTENT_COLUMNS[name] for name in columns),
        rows=[
            _content_row(one, [numbers[name] for name in columns])
            for one, numbers in zip(contents, counted, strict=True)
        ],
        nouns=("content", "contents"),
    )


def _content_row(content: ContentEffects, numbers: Sequence[int | None]) -> EffectsRow:
    before, gain, lose = content.before, content.counts.gain, content.counts.lose
    unknown = NOT_KNOWN if lose is None else f"{NOT_KNOWN}; nobody loses it"
    return EffectsRow(
        title=content.content,
        address=None,
        cells=tuple(map(format_count, numbers)),
        unknown=unknown if before is None and gain is None else None,
        is_estimate=content.basis is Basis.ESTIMATE,
        note=_progress_note(content) if lose else None,
        causes=content.causes,
        bar=None if before is None or gain is None else (lose or 0, max(before - (lose or 0), 0), gain),
    )


def _progress_note(content: ContentEffects) -> str:
    """Return how far those are who lose a content, and when their certificates expire."""
    progress, expiring = content.progress or {}, content.certificates_expiring
    states = dict.fromkeys((*_STATES, *progress))  # the usual ones in their order, then others
    counts = (f"{progress[state]:,} {state.replace('_', ' ')}" for state in states if progress.get(state))
    note = f"progress {NOT_KNOWN}" if content.progress is None else ", ".join(counts)
    if expiring is None:
        note += f"; expiring certificates {NOT_KNOWN}"
    elif any(expiring.values()):
        soon = ", ".join(f"{number:,} within {days} days" for days, number in sorted(expiring.items()))
        note += f"; certificates that expire: {soon}"
    return f"Of those who lose it: {note}."


def group_table(effects: Effects) -> EffectsTable:
    """Return the groups whose members change, those with the most who leave first."""
    return EffectsTable(
        headings=tuple(_GROUP_COLUMNS.values()),
        rows=[
            EffectsRow(
                title=resource_title(group.address),
                address=group.address,
                cells=tuple(format_count(getattr(group, column)) for column in _GROUP_COLUMNS),
                is_estimate=group.basis is Basis.ESTIMATE,
            )
            for group in _most_changed(effects.groups)
        ],
        nouns=GROUP_NOUNS,
    )


def _most_changed(groups: Sequence[GroupEffects]) -> list[GroupEffects]:
    return sorted(groups, key=lambda group: (-(group.leave or 0), -(group.join or 0), group.address))


def audience_matrix(
    effects: Effects,
) -> tuple[Sequence[GroupEffects], Sequence[tuple[ContentEffects, Sequence[CauseCount | None]]], bool] | None:
    """Return which contents people lose and gain through which groups: the groups, and a row for each content.

    A row has for each group how many people lose and gain the content through that group.
    Also whether that is all, and not only the groups and contents with the most changes. None for fewer than two
    groups.
    """
    contents = sort_contents(effects.contents)
    changed = {group.address for group in effects.groups}
    cells = {
        (row, cause.address): cause
        for row, content in enumerate(contents)
        for cause in content.causes
        if cause.address in changed and (cause.lose or cause.gain)
    }
    through = {address for _, address in cells}
    groups = [group for group in _most_changed(effects.groups) if group.address in through][:20]
    if len(groups) < 2:
        return None
    columns = [group.address for group in groups]
    shown = sorted({row for row, address in cells if address in columns})
    rows = [(contents[row], [cells.get((row, address)) for address in columns]) for row in shown[:40]]
    return groups, rows, through == {*columns} and len(rows) == len(shown)
