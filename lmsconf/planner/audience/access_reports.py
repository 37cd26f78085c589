"""What one person has and why, and who is in one audience: numbers, answers to a field, and members."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from lmsconf.errors import problem_found
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP, USER, split_address
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
from lmsconf.model.address import EVERYBODY, Address, RemoteId, shell_quoted, unescape
from lmsconf.model.effects import Basis
from lmsconf.model.names import (
    did_you_mean,
    did_you_mean_email,
    nearest_email,
    nearest_names,
    normalize_email,
    normalize_name,
)
from lmsconf.planner.audience.choice_holders import FieldHolders
from lmsconf.planner.audience.people_questions import WorkspaceAccess, choice_name
from lmsconf.planner.audience.people_sets import (
    NONE,
    AudienceAssignment,
    Bits,
    Terms,
    change_between,
    count_of,
    held_content,
    positions_of,
    weakest_basis,
)
from lmsconf.planner.selection import AMBIGUOUS, canonical_pattern, kind_words

_NAMED_KINDS: Final = (GROUP, SMART_GROUP, USER)
"""The kinds of audiences that have names."""


def person_access(state: WorkspaceAccess, header: ReportHeader, email: str, content: str | None) -> PersonAccess:
    """Return what a person has, and why; only of one content if it is named, then with every assignment of it.

    Raises ProblemsFound for an unknown or archived person, or an unknown content.
    """
    position = find_person(state, email)
    names = [(state.facts.content_name(id), id) for id in state.facts.contents]
    wanted = sorted(pair for pair in names if content in (None, pair[0]))
    if content is not None and not wanted:
        raise problem_found(
            "content/unknown",
            f'the catalog has no content "{content}"',
            did_you_mean(content, (name for name, _ in names)) or "Write the whole name, as in the catalog, in quotes.",
        )
    contents: list[PersonContent] = []
    bases: list[Basis] = []
    for _, id in wanted:
        placed = state.assignments(id)
        bases.extend(one.audience.basis for one in placed)
        held = _content(state, id, placed, position, planned=header.planned)
        leading = tuple(filter(_leads, held.routes))
        has_it = any(side is not None and side.word != NONE for side in (held.before, held.after))
        # Where it is not known what changes, an assignment may give it.
        if content is not None or has_it or (held.change is None and leading):
            contents.append(replace(held, routes=held.routes if content is not None else leading))
    if any(one.before is None or (header.planned and one.after is None) for one in contents):
        bases.append(Basis.UNKNOWN)
    return PersonAccess(
        header=judged_header(state, header, bases),
        email=state.emails[position],
        is_live=position < len(state.facts.people.people),
        stays=bool(state.active_after >> position & 1) if header.planned else None,
        content=content,
        contents=tuple(contents),
    )


def find_person(state: WorkspaceAccess, email: str) -> int:
    """Return the position of a person who is active. Raises ProblemsFound for anybody else."""
    position = state.by_email.get(normalize_email(email))
    active = state.active_before | state.active_after
    if position is not None and active >> position & 1:
        return position
    if position is not None:
        raise problem_found(
            "person/archived",
            f"{email} is archived, and archived people have no access",
            "To unarchive the account, declare the person under `users:` with `archived: false`.",
        )
    doubt = f"; {'; '.join(state.facts.incomplete)}" if state.facts.incomplete else ""
    emails = [state.emails[position] for position in positions_of(active)]
    hint = "Correct the e-mail." if "@" in email else "Write the person's e-mail."
    if "@" not in email and (nearest := nearest_email(email, emails)):
        hint = f'{hint} Did you mean "{nearest}"?'
    raise problem_found(
        "person/unknown",
        f"{email} is not a person of this workspace{doubt}",
        did_you_mean_email(email, emails) or hint,
    )


def judged_header(state: WorkspaceAccess, header: ReportHeader, bases: Iterable[Basis]) -> ReportHeader:
    """Return the header with how far the report can be trusted, and why."""
    basis = Basis.UNKNOWN if state.facts.incomplete else weakest_basis(bases)
    reasons = () if basis is Basis.EXACT else dict.fromkeys((*state.facts.incomplete, *state.reasons))
    return replace(header, basis=basis, reasons=tuple(reasons))


def _leads(route: AccessRoute) -> bool:
    """Whether a person is, or may be, in the audience of an assignment on one side."""
    return any(side is not None and side.member is not False for side in (route.before, route.after))


def _content(
    state: WorkspaceAccess, id: RemoteId, placed: Sequence[AudienceAssignment], position: int, *, planned: bool
) -> PersonContent:
    before = _held(state, placed, position, live=True)
    after = _held(state, placed, position, live=False) if planned else None
    return PersonContent(
        content=state.facts.content_name(id),
        id=id,
        before=before,
        after=after,
        change=None if before is None or after is None else change_between(before, after),
        routes=tuple(_route(state, one, position, planned=planned) for one in placed),
    )


def _held(
    state: WorkspaceAccess, placed: Iterable[AudienceAssignment], position: int, *, live: bool
) -> HeldContent | None:
    """Return what a person has through assignments; None if something that counts is not known."""
    current = [one.current(state.now, live=live) for one in placed]
    if state.facts.incomplete or any(people is None for _, people in current):
        return None
    return held_content([one for one, people in current if one and _has(people, position)], state.format_time)


def _route(state: WorkspaceAccess, one: AudienceAssignment, position: int, *, planned: bool) -> AccessRoute:
    kind, id = one.key or (None, None)
    old, new = state.conditions(id) if id is not None and kind == SMART_GROUP else (None, None)
    met = state.condition_results(old or (), state.answers_before, position)
    meets = state.condition_results(new or (), state.answers_after, position)
    return AccessRoute(
        address=one.address,
        audience=one.to,
        before=_route_side(state, one.before, _has(one.audience.before, position), met),
        after=_route_side(state, one.after, _has(one.audience.after, position), meets) if planned else None,
    )


def _route_side(
    state: WorkspaceAccess, terms: Terms | None, member: bool | None, conditions: tuple[ConditionResult, ...]
) -> RouteSide | None:
    if terms is None:
        return None
    start, finish = (None if bound is None else state.format_time(bound) for bound in (terms.start, terms.finish))
    return RouteSide(
        mandatory=terms.mandatory,
        visible_from=start,
        visible_until=finish,
        is_over=None if terms.mandatory is None else terms.is_over(state.now),
        member=member,
        conditions=conditions,
    )


_NAME_HINT: Final = "Write the whole name, as in the workspace or in the manifests."
_AUDIENCE_HINT: Final = "Write it as plans print it: group/Sales, smart_group/Sales Nordics, user/E-MAIL or everyone."


def audience_report(
    state: WorkspaceAccess, header: ReportHeader, address: Address, by: str | None, *, members: bool
) -> AudienceReport:
    """Return who is in an audience. by: the field to count answers of. members: whether to name the people.

    Raises ProblemsFound for an unknown audience or field.
    """
    if address.kind == USER:
        address = Address.of(address.kind, normalize_email(state.emails[find_person(state, address.name)]))
    if address.kind not in (*_NAMED_KINDS, EVERYBODY):
        raise problem_found("audience/address", f"{address} is not an audience", _AUDIENCE_HINT)
    audience = state.named_audience(address)
    if audience is None:
        raise problem_found(
            "audience/unknown",
            f"{address} is neither live nor declared",
            _nearest(state, address.name, address.kind) or _NAME_HINT,
        )
    if state.facts.incomplete:
        audience = replace(audience, before=None, after=None)
    basis = audience.basis
    if not header.planned:
        audience = replace(audience, after=None)
    return AudienceReport(
        header=judged_header(state, header, [basis]),
        address=address,
        is_live=audience.is_live,
        stays=audience.stays if header.planned else None,
        before=count_of(audience.before),
        after=count_of(audience.after),
        join=count_of(audience.joins),
        leave=count_of(audience.leaves),
        by=by,
        answers=tuple(_answers(state, by, audience.before, audience.after)) if by is not None else (),
        members=_members(state, audience.before, audience.after) if members else None,
    )


def _members(state: WorkspaceAccess, before: Bits | None, after: Bits | None) -> tuple[AudienceMember, ...]:
    """Return everybody who is in an audience on a side that is known, sorted by e-mail."""
    known = sorted(positions_of((before or 0) | (after or 0)), key=lambda position: state.emails[position].casefold())
    return tuple(
        AudienceMember(email=state.emails[position], before=_has(before, position), after=_has(after, position))
        for position in known
    )


def _has(people: Bits | None, position: int) -> bool | None:
    return None if people is None else bool(people >> position & 1)


def _answers(state: WorkspaceAccess, by: str, before: Bits | None, after: Bits | None) -> Iterator[AnswerCount]:
    """Yield the counts of each choice, of no answer, and of answers that are not known."""
    id = state.field_id(by)
    if id is None:
        raise problem_found(
            "field/unknown",
            f'there is no custom field "{by}"',
            did_you_mean(by, state.names(CUSTOM_FIELD)) or _NAME_HINT,
        )
    row = state.facts.fields.get(id)
    if row is not None and row.type == "TEXT":
        raise problem_found("field/text", f'the field "{by}" is a TEXT field, so there are no choices to count', None)
    old = _side_counts(row, state.answers_before.get(id), before)
    new = _side_counts(row, state.answers_after.get(id), after)
    for given, choice in sorted({**old, **new}, key=lambda key: list(AnswerState).index(key[0])):
        had, has = old[given, choice], new[given, choice]
        if given is AnswerState.ANSWERED or had or has:
            yield AnswerCount(
                state=given,
                choice=choice,
                before=None if before is None else had,
                after=None if after is None else has,
            )


def _side_counts(
    row: FieldRow | None, answers: FieldHolders | None, people: Bits | None
) -> Counter[tuple[AnswerState, str | None]]:
    """Return (what was answered, the choice) → how many of these people; a person may pick several choices."""
    held, among = answers or FieldHolders(), people or 0
    counts: Counter[tuple[AnswerState, str | None]] = Counter()
    for choice, holders in held.choices.items():
        counts[AnswerState.ANSWERED, choice_name(row, choice)] += (holders & among).bit_count()
    counts[AnswerState.NONE, None] = (among & ~held.answered & ~held.unreadable).bit_count()
    counts[AnswerState.UNKNOWN, None] = (among & held.unreadable).bit_count()
    return counts


_TYPED: Final = re.compile(
    rf"(?:{KINDS[CONTENT_TARGET].noun} of .*? to )?"
    rf"({EVERYBODY}|(?:{'|'.join(word for kind in KINDS.values() for word in kind_words(kind))})/.*)",
    re.DOTALL,
)
"""An audience as plans print it, or the words of a view: `assignment of GDPR basics to group/Sales`."""


def parse_audience(text: str) -> tuple[Address, ...]:
    """Parse an audience as plans print it, or an assignment, which names one; a name alone may be of several kinds.

    Section names and the words of a view are understood too. Raises ProblemsFound for a text that is not an address.
    """
    words = _TYPED.fullmatch(text)
    typed = canonical_pattern(words[1] if words else text)
    word, slash, rest = typed.partition("/")
    if typed == EVERYBODY:
        return (Address(EVERYBODY, ""),)
    if slash and rest and word in KINDS:
        if parts := split_address(Address.parse(typed)):
            return parse_audience(parts[1])
        return (Address.of(word, unescape(rest)),)
    if slash or not typed:
        raise problem_found("audience/address", f"{text} is not the address of an audience", _AUDIENCE_HINT)
    name = normalize_name(unescape(text))
    return tuple(
        # A graph writes `Sales (smart group)`.
        Address.of(kind.name, kind.normalize_name(one))
        for kind in KINDS.values()
        if kind.name in _NAMED_KINDS
        for one in dict.fromkeys((name, name.removesuffix(f" ({kind.noun})")))
    )


def find_audience(state: WorkspaceAccess, text: str, candidates: Sequence[Address]) -> Address:
    """Return the audience among the candidates that a text may mean. Raises ProblemsFound unless exactly one is there.

    A candidate alone is returned as it is, so that `audience_report` says what is wrong with it.
    """
    matching = [one for one in candidates if len(candidates) == 1 or state.named_audience(one) is not None]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise problem_found(
            AMBIGUOUS,
            f"{text}: {len(matching)} audiences match",
            f"Write one of: {', '.join(map(shell_quoted, matching))}.",
        )
    raise problem_found("audience/unknown", f"no audience is called {text}", _nearest(state, text) or _AUDIENCE_HINT)


def _nearest(state: WorkspaceAccess, name: str, kind: str | None = None) -> str | None:
    """Return a hint with the audiences of that name in other kinds, or else the nearest; kind: that of the address."""
    same = [Address.of(one, name) for one in _NAMED_KINDS if one != kind and name in state.names(one)]
    known = {other: Address.of(one, other) for one in _NAMED_KINDS if kind in (None, one) for other in state.names(one)}
    near = same or [known[other] for other in nearest_names(name, known, 3)]
    return f"Did you mean {' or '.join(map(shell_quoted, near))}?" if near else None
