"""AccessState → what one person has and why, and who is in one audience."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from lmsconf.errors import Problem, ProblemsFound
from lmsconf.model.access import (
    AccessRoute,
    ConditionResult,
    HeldContent,
    PersonAccess,
    PersonContent,
    ReportHeader,
    RouteSide,
)
from lmsconf.model.address import RemoteId
from lmsconf.model.effects import AccessChange, Basis
from lmsconf.model.names import did_you_mean, did_you_mean_email, nearest_email
from lmsconf.planner.access_state import AccessState, PlacedAssignment, PlacedSide
from lmsconf.planner.audiences import Bits, access_of, positions_of
from lmsconf.planner.effects import weakest_basis

KEEP: Final = "keep"
NONE: Final = "none"


def person_access(state: AccessState, header: ReportHeader, email: str, content: str | None) -> PersonAccess:
    """Return what a person has, and why; only of one content if it is named, then with every assignment of it.

    Raises ProblemsFound for an unknown or archived person, or an unknown content.
    """
    position = find_person(state, email)
    names = state.contents()
    wanted = [id for id, name in names.items() if content in (None, name)]
    if content is not None and not wanted:
        near = did_you_mean(content, names.values()) or "Write the whole name, as in the catalog, in quotes."
        raise report_error("content/unknown", f'the catalog has no content "{content}"', near)
    contents: list[PersonContent] = []
    bases: list[Basis] = []
    for id in sorted(wanted, key=lambda id: (names[id], id)):
        placed = state.assignments(id)
        bases.extend(placement.assignment.audience.basis for placement in placed)
        held = _content(state, names[id], id, placed, position, planned=header.planned)
        if content is not None:
            contents.append(held)
        elif _matters(held):
            routes = tuple(route for route in held.routes if _leads(route))
            contents.append(replace(held, routes=routes))
    unknown = any(one.before is None or (header.planned and one.after is None) for one in contents)
    return PersonAccess(
        header=judged_header(state, header, [*bases, *([Basis.UNKNOWN] if unknown else [])]),
        email=state.emails[position],
        is_live=bool(state.live >> position & 1),
        stays=bool(state.active_after >> position & 1) if header.planned else None,
        content=content,
        contents=tuple(contents),
    )


def find_person(state: AccessState, email: str) -> int:
    """Return the position of a person who is active. Raises ProblemsFound for anybody else."""
    position = state.person(email)
    active = state.active_before | state.active_after
    if position is not None and active >> position & 1:
        return position
    if position is not None:
        hint = "To unarchive the account, declare the person under `users:` with `archived: false`."
        raise report_error("person/archived", f"{email} is archived, and archived people have no access", hint)
    doubt = f"; {'; '.join(state.incomplete)}" if state.incomplete else ""
    emails = [state.emails[position] for position in positions_of(active)]
    near = did_you_mean_email(email, emails) or nearest_person(email, emails)
    raise report_error("person/unknown", f"{email} is not a person of this workspace{doubt}", near)


def nearest_person(text: str, emails: Iterable[str]) -> str:
    """Return the hint for a text that is not similar to an e-mail of the workspace: perhaps a person's name."""
    if "@" in text:
        return "Correct the e-mail."
    email = nearest_email(text, emails)
    return f'Write the person\'s e-mail. Did you mean "{email}"?' if email else "Write the person's e-mail."


def report_error(code: str, message: str, hint: str | None) -> ProblemsFound:
    return ProblemsFound([Problem(code=code, message=message, hint=hint)])


def judged_header(state: AccessState, header: ReportHeader, bases: Iterable[Basis]) -> ReportHeader:
    """Return the header with how far the report can be trusted, and why."""
    basis = Basis.UNKNOWN if state.incomplete else weakest_basis(bases)
    reasons = () if basis is Basis.EXACT else tuple(dict.fromkeys((*state.incomplete, *state.reasons)))
    return replace(header, basis=basis, reasons=reasons)


def _matters(held: PersonContent) -> bool:
    """Whether a person has a content before or after, or it is not known and an assignment may give it."""
    sides = [side for side in (held.before, held.after) if side is not None]
    return any(side.word != NONE for side in sides) or (held.change is None and any(map(_leads, held.routes)))


def _leads(route: AccessRoute) -> bool:
    """Whether a person is, or may be, in the audience of an assignment on one side."""
    return any(side is not None and side.member is not False for side in (route.before, route.after))


def _content(
    state: AccessState, name: str, id: RemoteId, placed: Sequence[PlacedAssignment], position: int, *, planned: bool
) -> PersonContent:
    bit = 1 << position
    known = not state.incomplete
    before = _held(state, [placement.before for placement in placed], bit) if known else None
    after = _held(state, [placement.after for placement in placed], bit) if known and planned else None
    return PersonContent(
        content=name,
        id=id,
        before=before,
        after=after,
        change=None if before is None or after is None else change_between(before, after),
        routes=tuple(_route(state, placement, position, planned=planned) for placement in placed),
    )


def _held(state: AccessState, sides: Sequence[PlacedSide], bit: Bits) -> HeldContent | None:
    """Return what a person has through assignments; None if an assignment that is not over is not known."""
    there = [(terms, people) for exists, terms, people in sides if exists]
    current = [(terms, people) for terms, people in there if terms is None or not terms.window.is_over(state.now)]
    if any(terms is None or people is None for terms, people in current):
        return None
    access = access_of(((terms, (people or 0) & bit) for terms, people in current), state.now)
    start, finish = (next(iter(bounds), None) for bounds in (access.starts, access.finishes))
    word = "mandatory" if access.mandatory else "optional" if access.has else NONE
    return HeldContent(word=word, start=_time(state, start), finish=_time(state, finish))


def change_between(before: HeldContent, after: HeldContent) -> str:
    """Return what changes between two sides, in the words of effects; `keep` or `none` if nothing does."""
    if before == after:
        return NONE if before.word == NONE else KEEP
    if before.word == after.word:
        return AccessChange.WINDOW.value
    words = {(NONE, after.word): AccessChange.GAIN, (before.word, NONE): AccessChange.LOSE}
    changed = AccessChange.TO_MANDATORY if after.word == "mandatory" else AccessChange.TO_OPTIONAL
    return words.get((before.word, after.word), changed).value


def _route(state: AccessState, placed: PlacedAssignment, position: int, *, planned: bool) -> AccessRoute:
    conditions = state.conditions(placed.audience, position)
    before, after = (
        _route_side(state, side, position, results)
        for side, results in zip((placed.before, placed.after), conditions, strict=True)
    )
    return AccessRoute(
        address=placed.address, audience=placed.audience, before=before, after=after if planned else None
    )


def _time(state: AccessState, bound: int | None) -> str | None:
    """Return a bound of a window as ISO 8601, in the project's time zone."""
    return None if bound is None else state.format_time(bound)


def _route_side(
    state: AccessState, side: PlacedSide, position: int, conditions: Sequence[ConditionResult]
) -> RouteSide | None:
    exists, terms, people = side
    if not exists:
        return None
    member = None if people is None else bool(people >> position & 1)
    if terms is None:
        return RouteSide(
            mandatory=None,
            visible_from=None,
            visible_until=None,
            is_over=None,
            member=member,
            conditions=tuple(conditions),
        )
    start, finish = (_time(state, bound) for bound in terms.window)
    return RouteSide(
        mandatory=terms.mandatory,
        visible_from=start,
        visible_until=finish,
        is_over=terms.window.is_over(state.now),
        member=member,
        conditions=tuple(conditions),
    )
