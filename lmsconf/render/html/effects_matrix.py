"""The matrix of courses and changed audiences: how many lose and gain a content through which group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from lmsconf.model.address import Address
from lmsconf.model.effects import CauseCount, ContentEffects, Effects, GroupEffects
from lmsconf.render.effects_sentences import cause_counts, sort_contents
from lmsconf.render.effects_wording import format_count
from lmsconf.render.html.document import Child, Markup, tag
from lmsconf.render.resource_wording import kind_noun, short_title

_MOST_GROUPS: Final = 20
_MOST_CONTENTS: Final = 40
_Cells: TypeAlias = "Mapping[tuple[int, Address], CauseCount]"
"""Position of a content and a group → how many lose and gain it through the group."""


def effects_matrix(effects: Effects) -> Child:
    """Render which contents people lose and gain through which groups; None for fewer than two groups.

    The headings have the head-counts before and after. Only the most affected groups and contents are shown.
    """
    contents = sort_contents(effects.contents)
    cells = _cells(contents, effects)
    through = {address for _, address in cells}
    groups = _most_changed(group for group in effects.groups if group.address in through)
    columns = {group.address for group in groups}
    shown = {(row, address): cause for (row, address), cause in cells.items() if address in columns}
    rows = sorted({row for row, _ in shown})[:_MOST_CONTENTS]
    if len(groups) < 2:
        return None
    is_whole = len(shown) == len(cells) and len({row for row, _ in shown}) == len(rows)
    table = tag(
        "table",
        tag("thead", tag("tr", tag("th", "content", scope="col"), [_column(group) for group in groups])),
        tag("tbody", [_row(contents[row], [shown.get((row, group.address)) for group in groups]) for row in rows]),
        class_="counts matrix",
    )
    more = "" if is_whole else " Only the groups and contents with the most changes are shown."
    return [
        tag("h3", "Through which groups"),
        tag("p", f"Under each name: how many people before → after.{more}", class_="soft"),
        tag("div", table, class_="wide", role="region", tabindex="0", aria_label="Contents by group"),
    ]


def _cells(contents: list[ContentEffects], effects: Effects) -> _Cells:
    groups = {group.address for group in effects.groups}
    return {
        (row, cause.address): cause
        for row, content in enumerate(contents)
        for cause in content.causes
        if cause.address in groups and (cause.lose or cause.gain)
    }


def _most_changed(groups: Iterable[GroupEffects]) -> list[GroupEffects]:
    order = sorted(groups, key=lambda group: (-(group.leave or 0), -(group.join or 0), group.address))
    return order[:_MOST_GROUPS]


def _column(group: GroupEffects) -> Markup:
    noun = tag("small", kind_noun(group.address.kind), class_="soft")
    return tag("th", noun, " ", short_title(group.address), _head_count(group.before, group.after), scope="col")


def _head_count(before: int | None, after: int | None) -> Markup:
    return tag("small", f"{format_count(before)} → {format_count(after)}", class_="heads")


def _row(content: ContentEffects, causes: list[CauseCount | None]) -> Markup:
    head = tag(
        "th", tag("span", content.content, class_="name"), _head_count(content.before, content.after), scope="row"
    )
    return tag("tr", head, [_cell(cause) for cause in causes])


def _cell(cause: CauseCount | None) -> Markup:
    return tag("td") if cause is None else tag("td", cause_counts(cause), class_="lose" if cause.lose else "gain")
