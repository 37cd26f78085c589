"""What one person has and why, and who is in an audience, as text for a terminal. All names are escaped."""

from __future__ import annotations

from collections.abc import Iterator

from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.access import (
    AccessRoute,
    AnswerState,
    AudienceReport,
    ConditionResult,
    HeldContent,
    PersonAccess,
    PersonContent,
    ReportHeader,
    RouteSide,
)
from lmsconf.model.effects import Basis
from lmsconf.model.names import quote_if_ambiguous
from lmsconf.render.escape import escape_terminal
from lmsconf.render.plan_wording import workspace_line
from lmsconf.render.resource_wording import count_noun, format_condition
from lmsconf.render.text.blocks import join_blocks

NOT_KNOWN = "not known"
_SIGNS = {"gain": "+", "lose": "-", "to_mandatory": "~", "to_optional": "~", "window": "~"}
_ELSEWHERE = "Access through programs or purchases is not counted."


def access_text(report: PersonAccess) -> str:
    """Render what a person has: each content, and the assignments that give it."""
    return join_blocks(
        [
            _about(report.header),
            [escape_terminal(_person_sentence(report))],
            *(_content(content, planned=report.header.planned) for content in report.contents),
            [_ELSEWHERE],
            _doubts(report.header),
        ],
        color=False,
    )


def audience_text(report: AudienceReport) -> str:
    """Render who is in an audience: numbers, counts by answer, and the members if they were asked for."""
    return join_blocks(
        [
            _about(report.header),
            [escape_terminal(_audience_sentence(report))],
            _answers(report),
            _members(report),
            _doubts(report.header),
        ],
        color=False,
    )


def _about(header: ReportHeader) -> Iterator[str]:
    yield escape_terminal(workspace_line(header.workspace, header.url, header.people))
    if not header.planned:
        errors = count_noun(len(header.problems), "error")
        yield f"The plan cannot be made ({errors}), so only the live state is shown."


def _person_sentence(report: PersonAccess) -> str:
    email, planned = report.email, report.header.planned
    if not report.is_live:
        return f"{email} has no account yet: the plan creates it. What the account will have:"
    if report.stays is False:
        return f"{email} will be archived by the plan, and archived people have no access."
    if report.content is not None:
        return f"{email} and {report.content}:"
    before, after = (_held_count(report, side) for side in ("before", "after"))
    return f"{email} has {before} now{f'; after the plan {after}' if planned else ''}."


def _held_count(report: PersonAccess, side: str) -> str:
    """`2 contents`, `2 contents and 1 not known`."""
    held: list[HeldContent | None] = [getattr(content, side) for content in report.contents]
    number = count_noun(sum(one is not None and one.word != "none" for one in held), "content")
    unknown = held.count(None)
    return f"{number} and {unknown:,} {NOT_KNOWN}" if unknown else number


def _content(content: PersonContent, *, planned: bool) -> Iterator[str]:
    sign = _SIGNS.get(content.change or "", " ")
    now = _held(content.before)
    later = _held(content.after)
    sides = now if content.change in ("keep", "none") else f"now {now}{f', after the plan {later}' if planned else ''}"
    yield escape_terminal(f"  {sign} {quote_if_ambiguous(content.content)}: {sides}")
    for route in content.routes:
        yield from _route(route, planned=planned)


def _held(held: HeldContent | None) -> str:
    if held is None:
        return NOT_KNOWN
    return "nothing" if held.word == "none" else f"{held.word}{_window(held.start, held.finish)}"


def _window(start: str | None, finish: str | None) -> str:
    return "".join((f", from {start}" if start else "", f", until {finish}" if finish else ""))


def _route(route: AccessRoute, *, planned: bool) -> Iterator[str]:
    yield escape_terminal(f"      {resource_title(route.address)}")
    if planned and route.before == route.after and route.before is not None:
        yield from _side("now and after the plan", route.before)
        return
    yield from _side("now", route.before)
    if planned:
        yield from _side("after the plan", route.after)


def _side(when: str, side: RouteSide | None) -> Iterator[str]:
    if side is None:
        yield f"        {when}: no such assignment"
        return
    member = {True: "in the audience", False: "not in the audience", None: f"in the audience or not is {NOT_KNOWN}"}
    yield escape_terminal(f"        {when}: {member[side.member]}; {_terms(side)}")
    yield from (escape_terminal(f"          {_condition(condition)}") for condition in side.conditions)


def _terms(side: RouteSide) -> str:
    if side.mandatory is None:
        return "its window cannot be read"
    over = " (over)" if side.is_over else ""
    return f"{'mandatory' if side.mandatory else 'optional'}{_window(side.visible_from, side.visible_until)}{over}"


def _condition(condition: ConditionResult) -> str:
    """`met: Country is SE or NO (answer: SE)`."""
    words = {True: "met", False: "not met", None: NOT_KNOWN}
    text = format_condition(
        {
            "field": condition.field,
            "choices": list(condition.choices),
            "system_condition": condition.system_condition,
        }
    )
    answer = NOT_KNOWN if condition.answer is None else " and ".join(condition.answer) or "no answer"
    return f"{words[condition.met]}: {text} (answer: {answer})"


def _audience_sentence(report: AudienceReport) -> str:
    title = resource_title(report.address)
    if not report.is_live:
        return f"{title} does not exist yet. After the plan: {_number(report.after)}."
    if not report.header.planned:
        return f"{title}: {_number(report.before)} now."
    if report.stays is False:
        return f"{title}: {_number(report.before)} now. The plan deletes it."
    moves = "" if report.join is None else f" ({_digits(report.join)} join, {_digits(report.leave)} leave)"
    return f"{title}: {_number(report.before)} now, {_number(report.after)} after the plan{moves}."


def _number(number: int | None) -> str:
    return NOT_KNOWN if number is None else count_noun(number, "person", "people")


def _digits(number: int | None) -> str:
    return NOT_KNOWN if number is None else f"{number:,}"


def _answers(report: AudienceReport) -> Iterator[str]:
    """Yield a table of answers: now and after the plan."""
    if report.by is None:
        return
    planned = report.header.planned
    words = {AnswerState.NONE: "no answer", AnswerState.UNKNOWN: NOT_KNOWN}
    rows = [(report.by, "now", "after the plan")]
    for answer in report.answers:
        name = quote_if_ambiguous(answer.choice) if answer.choice is not None else words[answer.state]
        rows.append((name, _digits(answer.before), _digits(answer.after)))
    cells = [[escape_terminal(cell) for cell in (row if planned else row[:2])] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *rest in cells:
        numbers = "  ".join(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        yield f"  {first.ljust(widths[0])}  {numbers}"


def _members(report: AudienceReport) -> Iterator[str]:
    for member in report.members or ():
        sign = " " if member.after is None or member.before == member.after else "+" if member.after else "-"
        yield escape_terminal(f"  {sign} {member.email}")


def _doubts(header: ReportHeader) -> Iterator[str]:
    if header.basis is Basis.ESTIMATE:
        yield "This is an estimate:"
    elif header.basis is not Basis.EXACT:
        yield "Not everything is known:"
    yield from (escape_terminal(f"  {reason}") for reason in header.reasons)
