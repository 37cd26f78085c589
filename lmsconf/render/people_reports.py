"""What one person has and why, who is in an audience, and the results of tests: as text, as CSV and as JUnit XML.

In CSV (RFC 4180), for spreadsheets and scripts, a cell that a spreadsheet would take for a formula begins with an
apostrophe.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from lmsconf.documents.reports import access_tests_json
from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.access import (
    AccessRoute,
    AccessTestReport,
    AccessTestResult,
    AnswerState,
    AudienceReport,
    ConditionResult,
    HeldContent,
    PersonAccess,
    PersonContent,
    ReportHeader,
    RouteSide,
)
from lmsconf.model.effects import PEOPLE_COLUMNS, Basis, Effects, UnknownPeople, count_people
from lmsconf.model.names import quote_if_ambiguous
from lmsconf.render.effects_wording import NOT_COUNTED, NOT_KNOWN, access, format_count
from lmsconf.render.escape import csv_cell, escape_terminal
from lmsconf.render.junit import junit_case, junit_document, xml_attributes
from lmsconf.render.plan_wording import annotation_lines, workspace_line
from lmsconf.render.resource_wording import count_noun, format_condition
from lmsconf.render.text import join_blocks

_SIGNS = {"gain": "+", "lose": "-", "to_mandatory": "~", "to_optional": "~", "window": "~"}


def access_text(report: PersonAccess) -> str:
    """Render what a person has: each content, and the assignments that give it."""
    return join_blocks(
        [
            _about(report.header),
            [_person_sentence(report)],
            *(_content(content, planned=report.header.planned) for content in report.contents),
            [NOT_COUNTED],
            _doubts(report.header),
        ],
    )


def audience_text(report: AudienceReport) -> str:
    """Render who is in an audience: numbers, counts by answer, and the members if they were asked for."""
    return join_blocks(
        [
            _about(report.header),
            [_audience_sentence(report)],
            _answers(report),
            _members(report),
            _doubts(report.header),
        ],
    )


def _about(header: ReportHeader) -> Iterator[str]:
    yield workspace_line(header.workspace, header.url, header.people)
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
    yield f"  {sign} {quote_if_ambiguous(content.content)}: {sides}"
    for route in content.routes:
        yield from _route(route, planned=planned)


def _held(held: HeldContent | None) -> str:
    if held is None:
        return NOT_KNOWN
    return "nothing" if held.word == "none" else access(held.word, held.start, held.finish)


def _route(route: AccessRoute, *, planned: bool) -> Iterator[str]:
    yield f"      {resource_title(route.address)}"
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
    yield f"        {when}: {member[side.member]}; {_terms(side)}"
    yield from (f"          {_condition(condition)}" for condition in side.conditions)


def _terms(side: RouteSide) -> str:
    if side.mandatory is None:
        return "its window cannot be read"
    terms = access("mandatory" if side.mandatory else "optional", side.visible_from, side.visible_until)
    return f"{terms}{' (over)' if side.is_over else ''}"


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
    moves = "" if report.join is None else f" ({format_count(report.join)} join, {format_count(report.leave)} leave)"
    return f"{title}: {_number(report.before)} now, {_number(report.after)} after the plan{moves}."


def _number(number: int | None) -> str:
    return NOT_KNOWN if number is None else count_people(number)


def _answers(report: AudienceReport) -> Iterator[str]:
    """Yield a table of answers: now and after the plan."""
    if report.by is None:
        return
    planned = report.header.planned
    words = {AnswerState.NONE: "no answer", AnswerState.UNKNOWN: NOT_KNOWN}
    rows = [(report.by, "now", "after the plan")]
    for answer in report.answers:
        name = quote_if_ambiguous(answer.choice) if answer.choice is not None else words[answer.state]
        rows.append((name, format_count(answer.before), format_count(answer.after)))
    cells = [[escape_terminal(cell) for cell in (row if planned else row[:2])] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *rest in cells:
        numbers = "  ".join(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
        yield f"  {first.ljust(widths[0])}  {numbers}"


def _members(report: AudienceReport) -> Iterator[str]:
    for member in report.members or ():
        sign = " " if member.after is None or member.before == member.after else "+" if member.after else "-"
        yield f"  {sign} {member.email}"


def _doubts(header: ReportHeader) -> Iterator[str]:
    if header.basis is Basis.ESTIMATE:
        yield "This is an estimate:"
    elif header.basis is not Basis.EXACT:
        yield "Not everything is known:"
    yield from (f"  {reason}" for reason in header.reasons)


_SIDE: Final = ("mandatory", "visible_from", "visible_until", "member")
_ACCESS_COLUMNS: Final = (
    *("email", "content", "content_id", "change"),
    *("before", "from_before", "until_before", "after", "from_after", "until_after"),
    *("assignment", "audience"),
    *(f"{name}_{side}" for side in ("before", "after") for name in _SIDE),
)
_MEMBER_COLUMNS: Final = ("email", "before", "after")
_ANSWER_COLUMNS: Final = ("state", "choice", "before", "after")
_NUMBER_COLUMNS: Final = ("address", "before", "after", "join", "leave")
HEADERS: Final = (PEOPLE_COLUMNS, _ACCESS_COLUMNS, _MEMBER_COLUMNS, _ANSWER_COLUMNS, _NUMBER_COLUMNS)
"""The columns of every CSV that is written here."""


def access_csv(report: PersonAccess) -> str:
    """Return a row for each assignment of each content of a person."""
    return _csv(_ACCESS_COLUMNS, _access_rows(report))


def _access_rows(report: PersonAccess) -> Iterator[Sequence[object]]:
    for content in report.contents:
        about = (report.email, content.content, content.id, content.change, *_held_cells(content.before))
        for route in content.routes:
            sides = (value for side in (route.before, route.after) for value in _side_cells(side))
            yield (*about, *_held_cells(content.after), str(route.address), str(route.audience), *sides)


def _held_cells(held: HeldContent | None) -> tuple[str | None, str | None, str | None]:
    return (None, None, None) if held is None else (held.word, held.start, held.finish)


def _side_cells(side: RouteSide | None) -> Iterator[object]:
    return (None if side is None else getattr(side, name) for name in _SIDE)


def audience_csv(report: AudienceReport) -> str:
    """Return the members if they were asked for, else the counts by answer, else one row of numbers."""
    if report.members is not None:
        return _csv(_MEMBER_COLUMNS, ((one.email, one.before, one.after) for one in report.members))
    if report.by is not None:
        rows = ((answer.state.value, answer.choice, answer.before, answer.after) for answer in report.answers)
        return _csv(_ANSWER_COLUMNS, rows)
    numbers = (str(report.address), report.before, report.after, report.join, report.leave)
    return _csv(_NUMBER_COLUMNS, [numbers])


def people_csv(effects: Effects) -> str:
    """Return the rows of `--people`, causes joined by `; `, and then one for each content of an unknown audience."""
    values = ([getattr(row, name) for name in PEOPLE_COLUMNS] for row in effects.rows or ())
    known = ([*value, "; ".join(causes)] for *value, causes in values)
    return _csv(PEOPLE_COLUMNS, [*known, *_unknown_rows(effects.unknown)])


def _unknown_rows(unknown: Iterable[UnknownPeople]) -> Iterator[Sequence[object]]:
    for one in unknown:
        for content, id in one.contents or ((None, None),):
            said = {"content": content, "content_id": id, "change": "unknown", "causes": one.audience}
            yield [said.get(name) for name in PEOPLE_COLUMNS]


def _csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return CSV; an empty cell for None, true and false for flags."""
    return "".join(f"{','.join(map(_cell, row))}\r\n" for row in (columns, *rows))


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "" if value is None else csv_cell(str(value))


def tests_text(report: AccessTestReport) -> str:
    """Render the results: the failed tests with their place and reason, then a count."""
    workspace = workspace_line(report.workspace, report.url, report.people)
    return join_blocks([[workspace], *map(_failed_test, report.failed), [_summary(report)]])


def _failed_test(result: AccessTestResult) -> Iterator[str]:
    test = result.test
    yield f"  - {test.title}: {result.reason}"
    yield f"      {test.source}"
    if test.name is not None:
        yield f"      says: {test.statement}"
    yield from (f"      about {line}" for line in annotation_lines(test))


def _summary(report: AccessTestReport) -> str:
    if not report.results:
        return "The manifests have no tests for this workspace."
    state = "the live state" if report.live else "the state after the plan"
    number, failed = count_noun(len(report.results), "test"), len(report.failed)
    return f"{number} on {state}: {len(report.results) - failed:,} passed, {failed:,} failed."


def tests_junit(report: AccessTestReport) -> str:
    """Return the results as JUnit XML: one suite, a case for each test, with its file and line."""
    suite = {
        "name": "tests",
        "tests": str(len(report.results)),
        "failures": str(len(report.failed)),
        "errors": "0",
        "skipped": "0",
        "time": "0",
        "timestamp": report.created_at.removesuffix("Z"),
        "hostname": "localhost",
    }
    cases = [line for result in report.results for line in _test_case(report, result)]
    return junit_document([f"  <testsuite{xml_attributes(suite)}>", *cases, "  </testsuite>"])


def _test_case(report: AccessTestReport, result: AccessTestResult) -> list[str]:
    test = result.test
    case = {
        "classname": f"{report.workspace}.tests",
        "name": f"{test.title} ({test.source.each})" if test.source.each else test.title,
        "file": test.source.file,
        "line": str(test.source.line),
        "time": "0",
    }
    if result.reason is None:
        return junit_case(case)
    details = [str(test.source), test.statement, *annotation_lines(test)]
    return junit_case(case, "failure", {"type": "test/failed", "message": result.reason}, details)


TEST_VIEWS = {"text": tests_text, "json": access_tests_json, "junit": tests_junit}
