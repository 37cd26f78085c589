"""Who is in an audience, now and after a plan: numbers, answers to a field, and members."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from lmsconf.kinds.shared.kind_names import split_address
from lmsconf.model.access import (
    AnswerCount,
    AnswerState,
    AudienceMember,
    AudienceReport,
    ReportHeader,
)
from lmsconf.model.address import EVERYBODY, Address, shell_quoted, unescape
from lmsconf.model.effects import Basis
from lmsconf.model.names import did_you_mean, nearest_names, normalize_email, normalize_name
from lmsconf.planner.access_reports import find_person, judged_header, report_error
from lmsconf.planner.access_state import AccessState, FieldAnswers
from lmsconf.planner.address_patterns import AMBIGUOUS, canonical_pattern
from lmsconf.planner.audiences import Audience, Bits, positions_of
from lmsconf.planner.kind import Kind

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
    if address.kind not in state.audience_kinds:
        raise report_error("audience/address", f"{address} is not an audience", _AUDIENCE_HINT)
    audience = state.audience(address)
    if audience is None:
        near = _nearest(state, address.name, address.kind)
        raise report_error("audience/unknown", f"{address} is neither live nor declared", near)
    return audience


def _members(state: AccessState, before: Bits | None, after: Bits | None) -> Iterator[AudienceMember]:
    """Yield everybody who is in an audience on a side that is known, sorted by e-mail."""
    positions = positions_of((before or 0) | (after or 0))
    members = (
        AudienceMember(email=state.emails[position], before=_has(before, position), after=_has(after, position))
        for position in positions
    )
    yield from sorted(members, key=lambda member: member.email.casefold())


def _has(people: Bits | None, position: int) -> bool | None:
    return None if people is None else bool(people >> position & 1)


def _answers(state: AccessState, by: str, before: Bits | None, after: Bits | None) -> Iterator[AnswerCount]:
    """Yield the counts of each choice, of no answer, and of answers that are not known."""
    field = state.field(by)
    if field is None:
        raise report_error("field/unknown", f'there is no custom field "{by}"', did_you_mean(by, state.field_names()))
    if not field.has_choices:
        raise report_error("field/text", f'the field "{by}" is a TEXT field, so there are no choices to count', None)
    counts = [_side_counts(field.before, before), _side_counts(field.after, after)]
    keys = dict.fromkeys(key for side in counts for key in side)
    for given, choice in sorted(keys, key=lambda key: list(AnswerState).index(key[0])):
        old, new = (side.get((given, choice), 0) for side in counts)
        if given is AnswerState.ANSWERED or old or new:
            yield AnswerCount(
                state=given,
                choice=choice,
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


def parse_audience(text: str, kinds: Mapping[str, Kind]) -> tuple[Address, ...]:
    """Parse an audience as plans print it, or an assignment, which names one; a name alone may be of several kinds.

    Section names and the words of a view are understood too. Raises ProblemsFound for a text that is not an address.
    """
    inner = _audience_in_words(text, kinds)
    if inner is not None:
        return (inner,)
    typed = canonical_pattern(text, kinds)
    word, slash, rest = typed.partition("/")
    if slash and rest and word in kinds:
        if parts := split_address(Address.parse(typed)):
            return parse_audience(parts[1], kinds)
        return (Address.of(word, unescape(rest)),)
    if slash or not typed:
        raise report_error("audience/address", f"{text} is not the address of an audience", _AUDIENCE_HINT)
    named_kinds = (kind for kind in kinds.values() if not kind.is_relation)
    return tuple(
        Address.of(kind.name, kind.normalize_name(name)) for kind in named_kinds for name in _names(text, kind)
    )


def _names(text: str, kind: Kind) -> Iterator[str]:
    """Yield the names that a text without a kind may mean: all of it, or `Sales (smart group)` of a graph."""
    name = normalize_name(unescape(text) if "\\" in text else text)
    yield name
    if name.endswith(label := f" ({kind.noun})"):
        yield name.removesuffix(label)


def _audience_in_words(text: str, kinds: Mapping[str, Kind]) -> Address | None:
    """Return the audience of `everyone`, or of `assignment of GDPR basics to group/Sales`; None for other texts."""
    if text == EVERYBODY:
        return Address(EVERYBODY, "")
    if not any(kind.is_relation and text.startswith(f"{kind.noun} of ") for kind in kinds.values()):
        return None
    words = text.split(" to ")
    for number in range(len(words)):
        rest = " to ".join(words[number:])
        typed = canonical_pattern(rest, kinds)
        if rest == EVERYBODY or typed.partition("/")[0] in kinds:
            return Address(EVERYBODY, "") if rest == EVERYBODY else Address.parse(typed)
    return None


def find_audience(state: AccessState, text: str, candidates: Sequence[Address]) -> Address:
    """Return the audience among the candidates that a text may mean. Raises ProblemsFound unless exactly one is there.

    A candidate alone is returned as it is, so that `audience_report` says what is wrong with it.
    """
    matching = candidates
    if len(candidates) > 1:
        matching = [one for one in candidates if one.kind in state.audience_kinds and state.audience(one) is not None]
    if len(matching) == 1:
        return matching[0]
    if matching:
        hint = f"Write one of: {', '.join(_quoted(one) for one in matching)}."
        raise report_error(AMBIGUOUS, f"{text}: {len(matching)} audiences match", hint)
    raise report_error("audience/unknown", f"no audience is called {text}", _nearest(state, text) or _AUDIENCE_HINT)


def _nearest(state: AccessState, name: str, kind: str | None = None) -> str | None:
    """Return a hint with the audiences of that name in other kinds, or else the nearest; kind: that of the address."""
    kinds = sorted(state.audience_kinds - {EVERYBODY})
    same = [Address.of(one, name) for one in kinds if one != kind and name in state.audience_names(one)]
    known = {
        other: Address.of(one, other) for one in kinds if kind in (None, one) for other in state.audience_names(one)
    }
    near = same or [known[other] for other in nearest_names(name, known, 3)]
    return f"Did you mean {' or '.join(map(_quoted, near))}?" if near else None


def _quoted(address: Address) -> str:
    return shell_quoted(address)
