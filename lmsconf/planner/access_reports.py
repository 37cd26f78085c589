"""AccessState → what one person has and why, and who is in one audience."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from lmsconf.errors import Problem, ProblemsFound
from lmsconf.model.access import (
    AccessRoute,
    AnswerCount,
    AnswerState,
    AudienceMember,
    AudienceReport,
    ConditionResult,
    HeldContent,
    PersonAccess,
    PersonContent,
    ReportHeader,
    RouteSide,
)
from lmsconf.model.address import EVERYBODY, Address, RemoteId, unescape
from lmsconf.model.effects import AccessChange, Basis
from lmsconf.model.names import did_you_mean, normalize_email, normalize_name
from lmsconf.planner.access_state import AccessState, FieldAnswers, PlacedAssignment
from lmsconf.planner.audiences import Audience, Bits, Terms, access_of, positions_of
from lmsconf.planner.effects import weakest_basis
from lmsconf.planner.kind import AnyKind

KEEP: Final = "keep"
NONE: Final = "none"
_AUDIENCE_HINT: Final = "Write it as plans print it: group/Sales, smart_group/Sales Nordics, user/E-MAIL or everyone."


def person_access(state: AccessState, header: ReportHeader, email: str, content: str | None) -> PersonAccess:
    """Return what a person has, and why; only of one content if it is named, then with every assignment of it.

    Raises ProblemsFound for an unknown or archived person, or an unknown content.
    """
    position = find_person(state, email)
    names = state.contents()
    wanted = [id for id, name in names.items() if content in (None, name)]
    if content is not None and not wanted:
        raise _refused(
            "content/unknown", f'the catalog has no content "{content}"', did_you_mean(content, names.values())
        )
    contents: list[PersonContent] = []
    bases: list[Basis] = []
    for id in sorted(wanted, key=lambda id: (names[id], id)):
        placed = state.assignments(id)
        bases.extend(one.assignment.audience.basis for one in placed)
        held = _content(state, names[id], id, placed, position, planned=header.planned)
        if content is not None:
            contents.append(held)
        elif _matters(held):
            routes = tuple(route for route in held.routes if _leads(route))
            contents.append(replace(held, routes=routes))
    unknown = any(one.before is None or (header.planned and one.after is None) for one in contents)
    return PersonAccess(
        header=_judged(state, header, [*bases, *([Basis.UNKNOWN] if unknown else [])]),
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
    near = did_you_mean(email, (state.emails[one] for one in positions_of(active)))
    if position is not None:
        raise _refused("person/archived", f"{email} is archived, and archived people have no access", near)
    doubt = f"; {'; '.join(state.incomplete)}" if state.incomplete else ""
    raise _refused("person/unknown", f"{email} is not a person of this workspace{doubt}", near)


def _refused(code: str, message: str, hint: str | None) -> ProblemsFound:
    return ProblemsFound([Problem(code=code, message=message, hint=hint)])


def _judged(state: AccessState, header: ReportHeader, bases: Iterable[Basis]) -> ReportHeader:
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
    before = _held(state, [_before(one) for one in placed], bit) if known else None
    after = _held(state, [_after(one) for one in placed], bit) if known and planned else None
    return PersonContent(
        content=name,
        id=id,
        before=before,
        after=after,
        change=None if before is None or after is None else change_between(before, after),
        routes=tuple(_route(state, one, position, planned=planned) for one in placed),
    )


_Side = tuple[bool, Terms | None, Bits | None]
"""Whether an assignment is there on one side of the plan, what it says, and its people; None if not known."""


def _before(one: PlacedAssignment) -> _Side:
    return one.is_live, one.assignment.before, one.assignment.audience.before


def _after(one: PlacedAssignment) -> _Side:
    return one.stays, one.assignment.after, one.assignment.audience.after


def _held(state: AccessState, sides: Sequence[_Side], bit: Bits) -> HeldContent | None:
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


def _route(state: AccessState, one: PlacedAssignment, position: int, *, planned: bool) -> AccessRoute:
    conditions = state.conditions(one.audience, position)
    before, after = (
        _route_side(state, side, position, results)
        for side, results in zip((_before(one), _after(one)), conditions, strict=True)
    )
    return AccessRoute(address=one.address, audience=one.audience, before=before, after=after if planned else None)


def _time(state: AccessState, bound: int | None) -> str | None:
    """Return a bound of a window as ISO 8601, in the project's time zone."""
    return None if bound is None else state.format_time(bound)


def _route_side(
    state: AccessState, side: _Side, position: int, conditions: Sequence[ConditionResult]
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


def audience_report(
    state: AccessState, header: ReportHeader, address: Address, by: str | None, *, members: bool
) -> AudienceReport:
    """Return who is in an audience. by: the field to count answers of. members: whether to name the people.

    Raises ProblemsFound for an unknown audience or field.
    """
    if address.kind == state.person_kind:
        address = Address.of(address.kind, normalize_email(state.emails[find_person(state, address.name)]))
    audience = _find_audience(state, address)
    if state.incomplete:
        audience = replace(audience, before=None, after=None, basis=Basis.UNKNOWN)
    before, after = audience.before, audience.after if header.planned else None
    both = None if before is None or after is None else (before, after)
    is_live, stays = state.exists(address)
    return AudienceReport(
        header=_judged(state, header, [audience.basis if before is not None else Basis.UNKNOWN]),
        address=address,
        is_live=is_live,
        stays=stays if header.planned else None,
        before=_count(before),
        after=_count(after),
        join=None if both is None else (both[1] & ~both[0]).bit_count(),
        leave=None if both is None else (both[0] & ~both[1]).bit_count(),
        by=by,
        answers=tuple(_answers(state, by, before, after)) if by is not None else (),
        members=tuple(_members(state, before, after)) if members else None,
    )


def _count(people: Bits | None) -> int | None:
    return None if people is None else people.bit_count()


def _find_audience(state: AccessState, address: Address) -> Audience:
    audience = state.audience(address)
    if address.kind not in state.audience_kinds:
        raise _refused("audience/address", f"{address} is not an audience", _AUDIENCE_HINT)
    if audience is None:
        names = state.audience_names(address.kind)
        near = did_you_mean(address.name, names)
        raise _refused("audience/unknown", f"{address} is neither live nor declared", near)
    return audience


def _members(state: AccessState, before: Bits | None, after: Bits | None) -> Iterator[AudienceMember]:
    """Yield everybody who is in an audience on a side that is known, sorted by e-mail."""
    positions = positions_of((before or 0) | (after or 0))
    members = (
        AudienceMember(email=state.emails[position], before=_has(before, position), after=_has(after, position))
        for position in positions
    )
    yield from sorted(members, key=lambda one: one.email.casefold())


def _has(people: Bits | None, position: int) -> bool | None:
    return None if people is None else bool(people >> position & 1)


def _answers(state: AccessState, by: str, before: Bits | None, after: Bits | None) -> Iterator[AnswerCount]:
    """Yield the counts of each choice, of no answer, and of answers that are not known."""
    field = state.field(by)
    if field is None:
        raise _refused("field/unknown", f'no field is called "{by}"', did_you_mean(by, state.field_names()))
    if not field.has_choices:
        raise _refused("field/text", f'the field "{by}" takes a text, so there are no choices to count', None)
    counts = [_side_counts(field.before, before), _side_counts(field.after, after)]
    keys = dict.fromkeys(key for side in counts for key in side)
    for key in sorted(keys, key=lambda key: list(AnswerState).index(key[0])):
        old, new = (side.get(key, 0) for side in counts)
        if key[0] is AnswerState.ANSWERED or old != 0 or new != 0:
            yield AnswerCount(
                state=key[0],
                choice=key[1],
                before=None if before is None else old,
                after=None if after is None else new,
            )


def _side_counts(answers: FieldAnswers, people: Bits | None) -> dict[tuple[AnswerState, str | None], int]:
    """Return (what was answered, the choice) → how many of these people; a person may pick several choices."""
    among = people or 0
    counts: dict[tuple[AnswerState, str | None], int] = {}
    answered = 0
    for choice, holders in answers.choices.items():
        counts[AnswerState.ANSWERED, choice] = (holders & among).bit_count()
        answered |= holders
    counts[AnswerState.NONE, None] = (among & ~answered & ~answers.unreadable).bit_count()
    counts[AnswerState.UNKNOWN, None] = (among & answers.unreadable).bit_count()
    return counts


def parse_audience(text: str, kinds: Mapping[str, AnyKind]) -> Address:
    """Parse an audience as plans print it, or the address of an assignment, which names one.

    The section of a kind is understood as well. Raises ProblemsFound for a text that is no address.
    """
    if text == EVERYBODY:
        return Address(EVERYBODY, "")
    word, slash, rest = text.partition("/")
    if not slash or not rest:
        raise _refused("audience/address", f"{text} is not the address of an audience", _AUDIENCE_HINT)
    kind = next((kind for kind in kinds.values() if word in (kind.name, kind.section)), None)
    if kind is None:
        raise _refused("audience/address", f"{text} is not the address of an audience", _AUDIENCE_HINT)
    inner = kind.audience_in(Address(kind.name, normalize_name(rest)))
    return Address.of(kind.name, unescape(normalize_name(rest))) if inner is None else parse_audience(inner, kinds)
