"""Who has which content, before and after a plan: people as bits, audiences as sets of bits, assignments as windows.

A set of people is an integer with one bit per person: union, intersection and difference of 200,000 people are single
operations on 25 KB, and counting is `int.bit_count`.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final, TypeAlias

from msgspec import Struct

from lmsconf.model.access import HeldContent
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.effects import Basis
from lmsconf.model.time_formats import format_epoch

Bits: TypeAlias = int
"""A set of people, by their positions."""
AudienceKey: TypeAlias = "tuple[str, RemoteId | Ref]"
"""The kind and the id of an audience; a Ref for one that the plan creates."""
HORIZON: Final = 30 * 24 * 3600
"""For how many seconds from the time of the plan a shortened window is counted."""


def to_bits(positions: Iterable[int], size: int) -> Bits:
    """Return the set of these positions, each under `size`."""
    flags = bytearray(size // 8 + 1)
    for position in positions:
        flags[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(flags, "little")


def count_of(bits: Bits | None) -> int | None:
    """Return how many people are in a set; None if it is not known."""
    return None if bits is None else bits.bit_count()


def positions_of(bits: Bits) -> Iterator[int]:
    """Return the positions in a set, in order."""
    # Most sets hold few of all people: the regular expression skips the others without a step for each.
    return (one.start() for one in re.finditer(b"1", f"{bits:b}"[::-1].encode()))


class Terms(Struct, frozen=True):
    """What an assignment says beside its content and audience.

    start, finish: from when until when content is visible, both inclusive, in epoch seconds; None: open.
    mandatory: None if the window of a live assignment cannot be read.
    """

    mandatory: bool | None
    start: int | None
    finish: int | None

    def is_over(self, now: int) -> bool:
        return self.finish is not None and self.finish < now

    def is_open(self, moment: int) -> bool:
        return (self.start is None or self.start <= moment) and not self.is_over(moment)


class Audience(Struct, frozen=True, kw_only=True):
    """The people in an audience before and after a plan; None where they are not known.

    causes: the changed resources that decide who is in it. reason: why they are not known. is_estimate: whether
    they are one. is_live, stays: whether it exists before and after.
    """

    before: Bits | None
    after: Bits | None
    causes: tuple[Address, ...] = ()
    is_estimate: bool = False
    address: Address | None = None
    reason: str = ""
    is_live: bool = True
    stays: bool = True

    @property
    def is_known(self) -> bool:
        return None not in (self.before, self.after)

    @property
    def basis(self) -> Basis:
        """How far both sets can be trusted."""
        return Basis.UNKNOWN if not self.is_known else Basis.ESTIMATE if self.is_estimate else Basis.EXACT

    @property
    def joins(self) -> Bits | None:
        return None if self.before is None or self.after is None else self.after & ~self.before

    @property
    def leaves(self) -> Bits | None:
        return None if self.before is None or self.after is None else self.before & ~self.after


class AudienceAssignment(Struct, frozen=True, kw_only=True):
    """An assignment of a content before and after a plan; None where it is not there.

    to: the address of its audience, and key: its kind and id, None if it is not known. Of one whose window cannot be
    read, the audience is not known. causes: the changed resources on the path from people to the content through it.
    """

    address: Address
    to: Address
    audience: Audience
    key: AudienceKey | None
    before: Terms | None
    after: Terms | None
    causes: tuple[Address, ...]

    def current(self, now: int, *, live: bool) -> tuple[Terms | None, Bits | None]:
        """Return its terms before or after the plan, and who has the content by them, None if not known.

        No terms and nobody, if it is not there, or its window is over.
        """
        terms, people = (self.before, self.audience.before) if live else (self.after, self.audience.after)
        return (None, 0) if terms is None or terms.is_over(now) else (terms, people)


NONE: Final = "none"


def held_content(terms: Collection[Terms], as_text: Callable[[int], str]) -> HeldContent:
    """Return what somebody has of a content through assignments with these terms: the hull of their windows.

    as_text: epoch seconds → ISO 8601.
    """
    if not terms:
        return HeldContent(word=NONE)
    starts, finishes = zip(*((one.start, one.finish) for one in terms), strict=True)
    return HeldContent(
        word="mandatory" if any(one.mandatory for one in terms) else "optional",
        start=None if None in starts else as_text(min(starts)),
        finish=None if None in finishes else as_text(max(finishes)),
    )


def change_between(before: HeldContent, after: HeldContent) -> str:
    """Return what changes between two sides, in the words of effects; `keep` or `none` if nothing does."""
    if before == after:
        return NONE if before.word == NONE else "keep"
    if before.word == after.word:
        return "window"
    if NONE in (before.word, after.word):
        return "lose" if after.word == NONE else "gain"
    return "to_mandatory" if after.word == "mandatory" else "to_optional"


def _archived_within(ends: Mapping[int, Bits], terms: Iterable[Terms], last: int) -> Bits:
    """Return whose account ends while one of these windows is open, at `last` or before. ends: when → whose."""
    windows = ((one.start, last if one.finish is None else min(one.finish, last)) for one in terms)
    latest = max((until for start, until in windows if start is None or start <= until), default=0)
    return reduce(or_, (people for moment, people in ends.items() if moment <= latest), 0)


def _is_shorter(before: Collection[Terms], after: Collection[Terms], now: int) -> bool:
    """Whether windows before cover a second of the next 30 days that none after does."""
    windows = (*before, *after)
    # A window covers its last second, so what comes next begins after it.
    bounds = {*(one.start for one in windows), *(one.finish + 1 for one in windows if one.finish is not None)}
    cuts = {now, *(bound for bound in bounds if bound is not None and now < bound <= now + HORIZON)}
    return any(
        any(one.is_open(moment) for one in before) and not any(one.is_open(moment) for one in after) for moment in cuts
    )


class ContentAccess(Struct, frozen=True):
    """What changes for the people of one content. held: what they have before and after → who.

    sets: who is affected by each change, and by any (`changed`); who has it `before` and `after`, and after as before
    (`keep`); who must take it after, and not before (`bound`); who has it on both sides, but not at some second of the
    next 30 days when they had it before (`shortened`). archived_soon: who has it on both sides, and whose account the
    plan lets end while a window of theirs is open in the next 30 days. Their windows do not change, so effects leave
    them out; the guard counts them. A set that is not there is empty.
    causes: changed resources, each with everybody who has a path through it before only, after only, or changed.
    """

    held: Mapping[tuple[HeldContent, HeldContent], Bits]
    sets: Counter[str]
    causes: Sequence[tuple[Address, Bits]]


def _both_sides(one: AudienceAssignment, now: int) -> tuple[AudienceAssignment, Terms | None, Bits, Terms | None, Bits]:
    """Return an assignment whose audience is known, and its terms and people, before and after."""
    (old, before), (new, after) = one.current(now, live=True), one.current(now, live=False)
    return one, old, before or 0, new, after or 0


def _people_by_terms(
    assignments: Iterable[tuple[AudienceAssignment, Terms | None, Bits, Terms | None, Bits]],
) -> Mapping[frozenset[tuple[Terms | None, Terms | None]], Bits]:
    """Return the terms, before and after, of all assignments that people have → who has exactly these.

    None: the assignment does not hold them on that side, or its window is over.
    """
    by_terms: defaultdict[tuple[Terms | None, Terms | None], Bits] = defaultdict(int)
    for _, old, before, new, after in assignments:
        by_terms[old, new] |= before & after
        by_terms[old, None] |= before & ~after
        by_terms[None, new] |= after & ~before
    out: dict[frozenset[tuple[Terms | None, Terms | None]], Bits] = {}
    seen = 0
    for terms, people in by_terms.items():
        for held in list(out) if people & seen else ():
            if both := out[held] & people:
                out[held] ^= both
                out[held | {terms}] = both
        out[frozenset({terms})] = people & ~seen
        seen |= people
    return {held: people for held, people in out.items() if people}


def compare_access(assignments: Sequence[AudienceAssignment], now: int, ends: Mapping[int, Bits]) -> ContentAccess:
    """Return what a plan changes for the people of one content. Every audience must be known.

    ends: when accounts will be archived, and were not to be so soon, in epoch seconds → whose.
    """
    held: defaultdict[tuple[HeldContent, HeldContent], Bits] = defaultdict(int)
    sets: Counter[str] = Counter()
    sides = [_both_sides(one, now) for one in assignments]
    for both_terms, people in _people_by_terms(sides).items():
        old, new = (frozenset(filter(None, terms)) for terms in zip(*both_terms, strict=True))
        before, after = (held_content(terms, format_epoch) for terms in (old, new))
        held[before, after] |= people
        named = {
            change_between(before, after): True,
            "changed": before != after,
            "before": bool(old),
            "after": bool(new),
            "bound": after.word == "mandatory" != before.word,
            "shortened": bool(old and new) and _is_shorter(old, new, now),
        }
        for name in (name for name, applies in named.items() if applies):
            sets[name] |= people
        sets["archived_soon"] |= people & _archived_within(ends, old, now + HORIZON) if new else 0
    by_cause: defaultdict[Address, Bits] = defaultdict(int)
    for one, terms, had, new_terms, has in sides:
        # Other terms concern everybody on either side.
        differs = had ^ has if terms == new_terms else had | has
        for cause in one.causes if differs else ():
            by_cause[cause] |= differs
    return ContentAccess(held, sets, sorted(by_cause.items()))


def weakest_basis(bases: Iterable[Basis]) -> Basis:
    """Return the weakest of several."""
    return max(bases, key=list(Basis).index, default=Basis.EXACT)
