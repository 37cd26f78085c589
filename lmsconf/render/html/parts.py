"""The pieces of the page: cards with counts, notes, rows that open, and what searches and filters them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from lmsconf.errors import Problem, SourceLocation
from lmsconf.model.address import Address
from lmsconf.model.blockers import blockers, consent_command
from lmsconf.model.values import Action, Change, Plan
from lmsconf.render import phrases
from lmsconf.render.change_summary import Told, told
from lmsconf.render.html.page import NOTHING, Child, Markup, join, tag


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """Something that opens: one line that is always seen, what is below it, and what it is found by.

    state: the word that it is filtered by, and coloured as where colour names no other; sign: what stands for it.
    """

    anchor: str
    address: Address
    state: str
    sign: str
    facts: Child
    source: SourceLocation | None
    body: Child
    colour: str | None = None


@dataclass(frozen=True, slots=True)
class Group:
    """Rows below a heading."""

    heading: str
    rows: Sequence[Row]


def cards(counts: Iterable[tuple[str, int, str]]) -> Markup:
    """`(class, number, label)` side by side."""
    return tag("ul", [_card(*one) for one in counts], class_="cards")


def _card(kind: str, number: int, label: str) -> Markup:
    return tag("li", tag("b", f"{number:,}"), tag("span", label), class_=kind if number else "none")


def section(anchor: str, heading: str, *body: Child) -> Markup:
    return tag("section", tag("h2", heading), body, id=anchor)


def contents(sections: Iterable[tuple[str, str]]) -> Markup:
    """Links to the sections of the page."""
    items = [tag("li", tag("a", heading, href=f"#{anchor}")) for anchor, heading in sections]
    return tag("nav", tag("ul", items), aria_label="On this page")


def rows(groups: Sequence[Group], states: Mapping[str, str], *, word: str) -> Markup:
    """Rows in their groups, and the tools that search and filter them. `states`: each state as people call it."""
    every = [row for group in groups for row in group.rows]
    return join(
        _tools(every, states, word),
        tag("div", [_group(group) for group in groups], id="rows"),
        tag("p", "Nothing fits this search.", class_="nothing", id="nothing", hidden=True),
    )


def _tools(every: Sequence[Row], states: Mapping[str, str], word: str) -> Markup:
    """Hidden until the script shows them: without it they could do nothing."""
    kinds = {kind: phrases.plural(phrases.noun(kind)) for kind in dict.fromkeys(row.address.kind for row in every)}
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
        data_script=True,
        hidden=True,
    )
    keys = [
        [tag("kbd", key), f" {does}  "]
        for key, does in (("/", "search"), ("j", "next"), ("k", "previous"), ("Enter", "open"))
    ]
    return join(tools, tag("p", keys, class_="keys", data_script=True, hidden=True))


def _choice(name: str, every: str, options: Mapping[str, str]) -> Markup:
    items = [tag("option", label, value=value) for value, label in options.items()]
    return tag("select", tag("option", every, value=""), items, name=name, aria_label=name.capitalize())


def _file(row: Row) -> str:
    return row.source.file if row.source else ""


def _group(group: Group) -> Markup:
    return tag(
        "div",
        tag("h3", group.heading),
        tag("div", [_row(row) for row in group.rows], class_="list"),
        class_="group",
    )


def _row(row: Row) -> Markup:
    summary = tag(
        "summary",
        tag("span", row.sign, class_=f"sign {row.colour or row.state}"),
        tag("span", phrases.noun(row.address.kind), class_="kind-of"),
        tag("span", phrases.short(row.address), class_="name"),
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


def change_row(anchor: str, change: Change, calls: Child = None) -> Row:
    """A resource of a plan: what changes in it, why, and by which calls."""
    return Row(
        anchor=anchor,
        address=change.address,
        state=change.action.value,
        sign=phrases.SIGNS[change.action],
        facts=_facts(change),
        source=change.source,
        body=[change_body(change), calls],
    )


def change_body(change: Change) -> list[Child]:
    """A resource of a plan in full: what becomes of it and why, and key by key what goes and comes."""
    undo = phrases.undo(change)
    return [
        tag("p", _lead(change), class_="lead"),
        None if undo is None else tag("p", undo),
        about(list(phrases.about(change))),
        [note(problem, inside=change.address) for problem in change.problems],
        diff(told(change)),
    ]


def _lead(change: Change) -> str:
    because = "" if change.reason is None else f"; {change.reason}"
    return f"{phrases.title(change.address)} {phrases.WILL_BE[change.action]}{because}"


def _facts(change: Change) -> Iterator[Child]:
    what = list(news(told(change) if change.action in (Action.UPDATE, Action.REPLACE) else ()))
    if change.origin is not None:
        yield f"{change.origin.value}{' · ' if what else ' '}"
    yield from what
    if change.problems:
        yield tag("span", "!", class_="warn", title=phrases.problem_counts(change.problems))


def news(keys: Iterable[Told]) -> Iterator[Child]:
    """What changes in a few characters: a key's name, how many items come, how many go."""
    news = list(keys)
    come = sum(len(one.come) for one in news if one.note)
    gone = sum(len(one.gone) for one in news if one.note)
    single = [one.path for one in news if not one.note]
    if single:
        yield f"{single[0]}{f' and {len(single) - 1} more' if len(single) > 1 else ''} "
    if come:
        yield tag("span", f"+{come:,} ", class_="more")
    if gone:
        yield tag("span", f"−{gone:,} ", class_="less")  # noqa: RUF001  # a minus as wide as the plus


def about(lines: Sequence[str]) -> Child:
    return tag("ul", [tag("li", line) for line in lines], class_="about") if lines else None


def diff(keys: Iterable[Told]) -> Child:
    """Key by key what goes and what comes; long lists open at a click."""
    items = [
        tag("div", tag("dt", key.path, tag("small", key.note) if key.note else None), tag("dd", _values(key)))
        for key in keys
    ]
    return tag("dl", items, class_="diff") if items else None


def _values(key: Told) -> Iterator[Child]:
    for name, sign, items in (("del", "−", key.gone), ("ins", "+", key.come)):  # noqa: RUF001  # as wide as the plus
        lines = [tag(name, tag("b", sign), item) for item in items]
        first, rest = lines[: phrases.FIRST_ITEMS], lines[phrases.FIRST_ITEMS :]
        yield first
        if rest:
            yield tag("details", tag("summary", f"{len(rest):,} more"), rest)


def note(problem: Problem, *, inside: Address | None = None) -> Markup:
    """A problem with its place and its way out."""
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
        tag("p", phrases.message(problem, inside=inside)),
        hint(problem.hint),
        class_=f"note {severity}",
    )


def hint(text: str | None) -> Child:
    """A text that may be several lines, each of which stays one."""
    lines = [line for line in (text or "").split("\n") if line.strip()]
    return tag("p", [(line, Markup("\n")) for line in lines], class_="hint") if text else None


def stops(plan: Plan) -> Iterator[Child]:
    """What would stop an apply, why, and what to do."""
    found = blockers(plan)
    if found:
        yield tag("p", tag("b", f"{phrases.STOPS}:"))
    for one in found:
        word = tag("span", "Stop", class_="kind")
        yield tag("div", tag("p", word, " · ", str(one)), hint(one.hint), class_="note stop")
    line = consent_command(plan)
    if line is not None:
        yield tag("p", "To allow exactly this:")
        yield tag("pre", line)


def lines_below(heading: str, lines: Iterable[str]) -> Child:
    """Lines below their heading; nothing where there are none."""
    items = [tag("li", line) for line in lines]
    return [tag("p", tag("b", f"{heading}:")), tag("ul", items)] if items else None


def named(heading: str, addresses: Sequence[Address]) -> Markup:
    """Resources that are only named, folded up below their number."""
    items = [tag("li", phrases.title(address)) for address in addresses]
    if not items:
        return tag("p", heading)
    return tag("details", tag("summary", heading), tag("ul", items, class_="names"), class_="fold")


def facts(pairs: Iterable[tuple[str, Child]]) -> Markup:
    """Terms and what they are, for the end of the page."""
    return tag("dl", [(tag("dt", term), tag("dd", told)) for term, told in pairs if told is not NOTHING])
