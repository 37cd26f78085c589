"""Components of the HTML pages: count cards, notes, expandable rows, search and filters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.errors import Problem, SourceLocation
from lmsconf.model.address import Address
from lmsconf.model.blockers import CONSENT_LEAD, blockers, consent_command
from lmsconf.model.plan import Action, Change, Plan
from lmsconf.render.change_summary import KeyChange, key_changes
from lmsconf.render.html.document import NOTHING, Child, Markup, join_markup, tag
from lmsconf.render.plan_wording import (
    ACTION_SIGNS,
    ACTION_WORDS,
    BLOCKERS_HEADING,
    annotation_lines,
    count_severities,
    describe_undo_limit,
    problem_message,
)
from lmsconf.render.resource_wording import MAX_SHOWN_ITEMS, kind_noun, kind_plural, resource_title, short_title

MOST_ROWS: Final = 2_000
"""How many rows a page shows."""


class ExpandableRow(Struct, frozen=True, kw_only=True):
    """An expandable row: summary line, body, and the values that it is filtered by.

    state: the filter value, and the CSS class of the colour unless `colour` is given. sign: the symbol of the state.
    """

    anchor: str
    address: Address
    state: str
    sign: str
    facts: Child
    source: SourceLocation | None
    body: Child
    colour: str | None = None


class RowGroup(Struct, frozen=True):
    """Rows under a heading. note: what stands between the heading and the rows."""

    heading: str
    rows: Sequence[ExpandableRow]
    note: Child = None


def count_cards(counts: Iterable[tuple[str, int, str]]) -> Markup:
    """Render `(class, number, label)` triples side by side."""
    return tag("ul", [_card(*one) for one in counts], class_="cards")


def _card(kind: str, number: int, label: str) -> Markup:
    return tag("li", tag("b", f"{number:,}"), tag("span", label), class_=kind if number else "none")


def section(anchor: str, heading: str, *body: Child) -> Markup:
    return tag("section", tag("h2", heading), body, id=anchor)


def table_of_contents(sections: Iterable[tuple[str, str]]) -> Markup:
    """Render links to the sections, given as (anchor, heading)."""
    items = [tag("li", tag("a", heading, href=f"#{anchor}")) for anchor, heading in sections]
    return tag("nav", tag("ul", items), aria_label="On this page")


def filterable_rows(
    groups: Sequence[RowGroup], states: Mapping[str, str], *, state_noun: str, command: str, first: str = "first"
) -> Markup:
    """Render the first rows of groups, with search and filters. states: state → label. state_noun: a row's state.

    command: prints all of them. first: what the first ones are.
    """
    total = sum(len(group.rows) for group in groups)
    groups = list(_first_rows(groups))
    return join_markup(
        rows_note(f"the {first} {MOST_ROWS:,} of {total:,}", command) if total > MOST_ROWS else None,
        _tools([row for group in groups for row in group.rows], states, state_noun),
        tag("div", map(_group, groups), id="rows"),
        tag("p", "No matches.", class_="nothing", id="nothing", hidden=True),
    )


def _first_rows(groups: Iterable[RowGroup]) -> Iterator[RowGroup]:
    """Yield groups with at most MOST_ROWS rows in all."""
    room = MOST_ROWS
    for group in groups:
        if rows := group.rows[:room]:
            yield replace(group, rows=rows)
            room -= len(rows)


def rows_note(shown: str, command: str) -> Markup:
    """Say which rows a page shows, and how to see all."""
    return tag("p", f"Shown here: {shown}. All: ", tag("code", command), class_="note")


def _tools(every: Sequence[ExpandableRow], states: Mapping[str, str], word: str) -> Markup:
    """Render search and filters, hidden until the script shows them, since they need it."""
    kinds = {kind: kind_plural(kind) for kind in dict.fromkeys(row.address.kind for row in every)}
    files = {file: file for file in sorted({_file(row) for row in every} - {""})}
    present = {row.state for row in every}
    tools = tag(
        "div",
        tag("input", type="search", id="search", placeholder="Search names, people, files …", aria_label="Search"),
        _choice("kind", "All kinds", kinds),
        _choice("state", f"All {word}s", {state: label for state, label in states.items() if state in present}),
        _choice("file", "All files", files) if files else None,
        tag("button", "Open all", type="button", id="unfold"),
        tag("output", id="count", role="status"),
        class_="tools",
        role="search",
        aria_label="Changes",
        data_script=True,
        hidden=True,
    )
    keys = [
        [tag("kbd", key), f" {does}  "]
        for key, does in (("/", "search"), ("j", "next"), ("k", "previous"), ("Enter", "open"))
    ]
    return join_markup(tools, tag("p", keys, class_="keys", data_script=True, hidden=True))


def _choice(name: str, every: str, options: Mapping[str, str]) -> Markup:
    items = [tag("option", label, value=value) for value, label in options.items()]
    return tag("select", tag("option", every, value=""), items, name=name, aria_label=name.capitalize())


def _file(row: ExpandableRow) -> str:
    return row.source.file if row.source else ""


def _group(group: RowGroup) -> Markup:
    rows = tag("div", map(_row, group.rows), class_="list")
    return tag("div", tag("h3", group.heading), group.note, rows, class_="group")


def _row(row: ExpandableRow) -> Markup:
    summary = tag(
        "summary",
        tag("span", row.sign, class_=f"sign {row.colour or row.state}"),
        tag("span", kind_noun(row.address.kind), class_="kind-of"),
        tag("span", short_title(row.address), class_="name"),
        tag("span", row.facts, class_="facts"),
        None if row.source is None else tag("span", tag("bdi", str(row.source)), class_="place"),
    )
    return tag(
        "details",
        summary,
        tag("div", row.body, class_="body"),
        class_="row",
        id=row.anchor,
        data_kind=row.address.kind,
        data_state=row.state,
        data_file=_file(row),
    )


def change_row(anchor: str, change: Change, calls: Child = None) -> ExpandableRow:
    """Return the row of a plan's resource: what changes, why, and its calls."""
    return ExpandableRow(
        anchor=anchor,
        address=change.address,
        state=change.action.value,
        sign=ACTION_SIGNS[change.action],
        facts=_facts(change),
        source=change.source,
        body=_change_body(change, calls),
    )


def _change_body(change: Change, calls: Child) -> Iterator[Child]:
    """Yield the body only when the row is rendered: all of a large plan at once take hundreds of megabytes."""
    yield change_details(change)
    yield calls


def change_details(change: Change) -> list[Child]:
    """Return the details of a plan's resource: action, reason, problems, and its diff key by key."""
    undo = describe_undo_limit(change)
    return [
        tag("p", _lead(change), class_="lead"),
        None if undo is None else tag("p", undo),
        annotation_list(list(annotation_lines(change))),
        [problem_note(problem, block_address=change.address) for problem in change.problems],
        diff_list(key_changes(change)),
    ]


def _lead(change: Change) -> str:
    because = "" if change.reason is None else f"; {change.reason}"
    return f"{resource_title(change.address)} {ACTION_WORDS[change.action]}{because}"


def _facts(change: Change) -> Iterator[Child]:
    summary = list(key_summary(key_changes(change) if change.action in (Action.UPDATE, Action.REPLACE) else ()))
    if change.origin is not None:
        yield f"{change.origin.value}{' · ' if summary else ' '}"
    yield from summary
    if change.problems:
        yield tag("span", "!", class_="warn", title=count_severities(change.problems))


def key_summary(keys: Iterable[KeyChange]) -> Iterator[Child]:
    """Yield a short summary: the first changed key, counts of items added and removed."""
    news = list(keys)
    added = sum(len(key.added) for key in news if key.note)
    removed = sum(len(key.removed) for key in news if key.note)
    single = [key.path for key in news if not key.note]
    if single:
        yield f"{single[0]}{f' and {len(single) - 1} more' if len(single) > 1 else ''} "
    if added:
        yield tag("span", f"+{added:,} ", class_="more")
    if removed:
        yield tag("span", f"−{removed:,} ", class_="less")  # noqa: RUF001  # a minus as wide as the plus


def annotation_list(lines: Sequence[str]) -> Child:
    return tag("ul", [tag("li", line) for line in lines], class_="about") if lines else None


def diff_list(keys: Iterable[KeyChange]) -> Child:
    """Render removed and added values key by key; long lists are folded."""
    items = [
        tag("div", tag("dt", key.path, tag("small", key.note) if key.note else None), tag("dd", _values(key)))
        for key in keys
    ]
    return tag("dl", items, class_="diff") if items else None


def _values(key: KeyChange) -> Iterator[Child]:
    for name, sign, items in (("del", "−", key.removed), ("ins", "+", key.added)):  # noqa: RUF001  # as wide as the plus
        lines = [tag(name, tag("b", sign), item) for item in items]
        first, rest = lines[:MAX_SHOWN_ITEMS], lines[MAX_SHOWN_ITEMS:]
        yield first
        if rest:
            yield tag("details", tag("summary", f"{len(rest):,} more"), rest)


def problem_note(problem: Problem, *, block_address: Address | None = None) -> Markup:
    """Render a problem with its location and hint."""
    severity = problem.severity.value
    place = (" · ", tag("code", str(problem.source))) if problem.source else None
    return tag(
        "div",
        tag(
            "p",
            tag("span", severity.capitalize(), class_="kind"),
            " · ",
            tag("code", problem.code),
            place,
        ),
        tag("p", problem_message(problem, block_address=block_address)),
        hint_paragraph(problem.hint),
        class_=f"note {severity}",
    )


def hint_paragraph(text: str | None) -> Child:
    """Render a hint, keeping its line breaks."""
    lines = [line for line in (text or "").split("\n") if line.strip()]
    return tag("p", [(line, Markup("\n")) for line in lines], class_="hint") if text else None


def blocker_notes(plan: Plan) -> Iterator[Child]:
    """Render the plan's blockers with reason and hint, and the command that consents to them."""
    blocking = blockers(plan)
    if blocking:
        yield tag("p", tag("b", f"{BLOCKERS_HEADING}:"))
    for blocker in blocking:
        word = tag("span", "Stop", class_="kind")
        yield tag("div", tag("p", word, " · ", str(blocker)), hint_paragraph(blocker.hint), class_="note stop")
    line = consent_command(plan)
    if line is not None:
        yield tag("p", CONSENT_LEAD)
        yield tag("pre", line)


def headed_list(heading: str, lines: Iterable[str]) -> Child:
    """Render lines under a heading; None without lines."""
    items = [tag("li", line) for line in lines]
    return [tag("p", tag("b", f"{heading}:")), tag("ul", items)] if items else None


def folded_titles(heading: str, addresses: Sequence[Address]) -> Markup:
    """Render the titles of resources, folded under the heading."""
    items = [tag("li", resource_title(address)) for address in addresses]
    if not items:
        return tag("p", heading)
    return tag("details", tag("summary", heading), tag("ul", items, class_="names"), class_="fold")


def definition_list(pairs: Iterable[tuple[str, Child]], class_: str | None = None) -> Markup:
    """Render (term, value) pairs as a definition list, for the footer; elsewhere of the class `record`."""
    items = [(tag("dt", term), tag("dd", value)) for term, value in pairs if value is not NOTHING]
    return tag("dl", items, class_=class_)
