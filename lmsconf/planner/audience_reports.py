"""Who is in an audience, now and after a plan: numbers, answers to a field, and members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from lmsconf.model.access import (
    AnswerCount,
    AnswerState,
    AudienceMember,
    AudienceReport,
    ReportHeader,
)
from lmsconf.model.address import EVERYBODY, Address, unescape
from lmsconf.model.effects import Basis
from lmsconf.model.names import did_you_mean, normalize_email, normalize_name
from lmsconf.planner.access_reports import find_person, judged_header, report_error
from lmsconf.planner.access_state import AccessState, FieldAnswers
from lmsconf.planner.audiences import Audience, Bits, positions_of
from lmsconf.planner.kind import AnyKind

KEEP: Final = "keep"
NONE: Final = "none"
_AUDIENCE_HINT: Final = "Write it as plans print it: group/Sales, smart_group/Sales Nordics, user/E-MAIL or everyone."


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
        header=judged_header(state, header, [audience.basis if before is not None else Basis.UNKNOWN]),
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
        raise report_error("audience/address", f"{address} is not an audience", _AUDIENCE_HINT)
    if audience is None:
        names = state.audience_names(address.kind)
        near = did_you_mean(address.name, names)
        raise report_error("audience/unknown", f"{address} is neither live nor declared", near)
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
        raise report_error("field/unknown", f'no field is called "{by}"', did_you_mean(by, state.field_names()))
    if not field.has_choices:
        raise report_error("field/text", f'the field "{by}" takes a text, so there are no choices to count', None)
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
        raise report_error("audience/address", f"{text} is not the address of an audience", _AUDIENCE_HINT)
    kind = next((kind for kind in kinds.values() if word in (kind.name, kind.section)), None)
    if kind is None:
        raise report_error("audience/address", f"{text} is not the address of an audience", _AUDIENCE_HINT)
    inner = kind.audience_in(Address(kind.name, normalize_name(rest)))
    return Address.of(kind.name, unescape(normalize_name(rest))) if inner is None else parse_audience(inner, kinds)
