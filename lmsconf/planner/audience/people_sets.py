"""Who has which content, before and after a plan: people as bits, audiences as sets of bits, assignments as windows.

A set of people is an integer with one bit per person: union, intersection and difference of 200,000 people are single
operations on 25 KB, and counting is `int.bit_count`.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final, NamedTuple, TypeAlias, cast

from msgspec import Struct

from lmsconf.model.address import Address
from lmsconf.model.effects import AccessChange, Basis

Bits: TypeAlias = int
"""A set of people, by their positions."""
_BY_STRENGTH: Final = (Basis.EXACT, Basis.ESTIMATE, Basis.UNKNOWN)
HORIZON: Final = 30 * 24 * 3600
"""For how many seconds from the time of the plan a shortened window is counted."""
_NONZERO_BYTES: Final = re.compile(rb"[^\x00]+")
_POSITIONS: Final = tuple(tuple(bit for bit in range(8) if byte >> bit & 1) for byte in range(256))
"""A byte → the positions of the bits that are set in it."""


def to_bits(positions: Iterable[int], size: int) -> Bits:
    """Return the set of these positions, each under `size`."""
    flags = bytearray(size // 8 + 1)
    for position in positions:
        flags[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(flags, "little")


def positions_of(bits: Bits) -> Iterator[int]:
    """Yield the positions in a set, in order."""
    # Most sets hold few of all people: the regular expression skips zero bytes without a step of Python for each.
    data = bits.to_bytes((bits.bit_length() + 7) // 8, "little")
    for run in _NONZERO_BYTES.finditer(data):
        for index in range(run.start(), run.end()):
            for offset in _POSITIONS[data[index]]:
                yield index * 8 + offset


class Window(NamedTuple):
    """From when until when content is visible, both inclusive, in epoch seconds; None: open."""

    start: int | None
    finish: int | None

    def is_over(self, now: int) -> bool:
        return self.finish is not None and self.finish < now


class Terms(NamedTuple):
    """What an assignment says beside its content and audience."""

    mandatory: bool
    window: Window


class AudienceSize(NamedTuple):
    """How many active people are in an audience after a plan, and how many there are in all."""

    people: int
    everybody: int


class Audience(Struct, frozen=True, kw_only=True):
    """The people in an audience before and after a plan; None where they are not known.

    causes: the changed resources that decide who is in it. basis: of both sets. reason: why they are not known.
    """

    before: Bits | None
    after: Bits | None
    causes: tuple[Address, ...] = ()
    basis: Basis = Basis.EXACT
    address: Address | None = None
    reason: str = ""

    @property
    def is_known(self) -> bool:
        return None not in (self.before, self.after)


class AudienceAssignment(Struct, frozen=True, kw_only=True):
    """An assignment of a content before and after a plan; `before` is None if it is created, `after` if deleted.

    cause: its address if the plan changes it.
    """

    audience: Audience
    before: Terms | None
    after: Terms | None
    cause: Address | None = None


class Access(Struct, frozen=True):
    """Who has one content on one side of a plan, and in which windows.

    starts, finishes: bound of the hull of a person's windows (None: open) → who has it.
    covered: (window, people), for the parts of the next 30 days.
    """

    has: Bits
    mandatory: Bits
    starts: dict[int | None, Bits]
    finishes: dict[int | None, Bits]
    windows: tuple[tuple[Window, Bits], ...]


def _hull(windows: Sequence[tuple[Window, Bits]], has: Bits, *, latest: bool) -> dict[int | None, Bits]:
    """Return the bound of the hull of each person's windows → people: the earliest start or the latest finish."""
    by_bound: defaultdict[int | None, Bits] = defaultdict(int)
    for window, people in windows:
        by_bound[window.finish if latest else window.start] |= people
    bounds = sorted((bound for bound in by_bound if bound is not None), reverse=latest)
    left, out = has, {}
    for bound in (None, *bounds) if None in by_bound else bounds:
        if people := by_bound[bound] & left:
            out[bound] = people
            left &= ~people
    return out


def access_of(assignments: Iterable[tuple[Terms | None, Bits]], now: int) -> Access:
    """Return who has a content through (terms, people) whose windows are not over at `now`."""
    by_terms: defaultdict[Terms, Bits] = defaultdict(int)
    for terms, people in assignments:
        if terms is not None and not terms.window.is_over(now):
            by_terms[terms] |= people
    has = mandatory = 0
    by_window: defaultdict[Window, Bits] = defaultdict(int)
    for terms, people in by_terms.items():
        has |= people
        by_window[terms.window] |= people
        if terms.mandatory:
            mandatory |= people
    windows = tuple(by_window.items())
    return Access(has, mandatory, _hull(windows, has, latest=False), _hull(windows, has, latest=True), windows)


def _covered(windows: Sequence[tuple[Window, Bits]], first: int, last: int) -> Bits:
    """Return who is covered by one window during all of [first, last], which contains no bound of a window inside."""
    bits = 0
    for window, people in windows:
        if (window.start is None or window.start <= first) and (window.finish is None or window.finish >= last):
            bits |= people
    return bits


def archived_within(ends: Mapping[int, Bits], windows: Iterable[tuple[Window, Bits]], last: int) -> Bits:
    """Return whose account ends while a window of theirs is open, at `last` or before. ends: when → whose."""
    out = 0
    for window, people in windows if ends else ():
        until = last if window.finish is None else min(window.finish, last)
        if window.start is None or window.start <= until:
            out |= reduce(or_, (people & ended for moment, ended in ends.items() if moment <= until), 0)
    return out


def shortened(before: Access, after: Access, now: int) -> Bits:
    """Return who has a content on both sides, and not at some second of the next 30 days when they had it before."""
    if before.windows == after.windows:
        return 0
    return _uncovered(before.windows, after.windows, now) & before.has & after.has


def _uncovered(before: Sequence[tuple[Window, Bits]], after: Sequence[tuple[Window, Bits]], now: int) -> Bits:
    """Return who is covered at some second of the next 30 days by windows before, and by none after."""
    cuts = {now}
    for window, _ in (*before, *after):
        # A window covers its last second, so the next part begins after it.
        cuts.update(
            bound
            for bound in (window.start, None if window.finish is None else window.finish + 1)
            if bound is not None and now < bound <= now + HORIZON
        )
    bounds = sorted(cuts)
    out = 0
    for first, after_last in zip(bounds, [*bounds[1:], now + HORIZON + 1], strict=True):
        out |= _covered(before, first, after_last - 1) & ~_covered(after, first, after_last - 1)
    return out


def _same(before: dict[int | None, Bits], after: dict[int | None, Bits]) -> Bits:
    """Return whose bound is equal on both sides."""
    out = 0
    for bound, people in before.items():
        out |= people & after.get(bound, 0)
    return out


class ContentAccess(Struct, frozen=True):
    """What changes for the people of one content.

    archived_soon: who has it on both sides, and whose account the plan lets end while a window of theirs is open in the
    next 30 days. Their windows do not change, so effects leave them out; the guard counts them.
    """

    before: Access
    after: Access
    gain: Bits
    lose: Bits
    to_mandatory: Bits
    to_optional: Bits
    window: Bits
    shortened: Bits
    archived_soon: Bits
    causes: tuple[tuple[Address, Bits], ...]

    def of(self, change: AccessChange) -> Bits:
        """Return everybody who is affected by this."""
        return cast("Bits", getattr(self, change.value))

    @property
    def bound(self) -> Bits:
        """People who have the content as mandatory after, and did not before."""
        return self.to_mandatory | (self.gain & self.after.mandatory)

    @property
    def changed(self) -> Bits:
        """Everybody whose access changes."""
        return self.gain | self.lose | self.to_mandatory | self.to_optional | self.window

    @property
    def keep(self) -> Bits:
        """Everybody who has the content after, unchanged."""
        return self.after.has & ~self.changed


def compare_access(assignments: Sequence[AudienceAssignment], now: int, ends: Mapping[int, Bits]) -> ContentAccess:
    """Return what a plan changes for the people of one content. Every audience must be known.

    ends: when accounts will be archived, and were not to be so soon, in epoch seconds → whose.
    """
    before = access_of(((assignment.before, assignment.audience.before or 0) for assignment in assignments), now)
    after = access_of(((assignment.after, assignment.audience.after or 0) for assignment in assignments), now)
    both = before.has & after.has
    same_word = ~(before.mandatory ^ after.mandatory)
    same_window = _same(before.starts, after.starts) & _same(before.finishes, after.finishes)
    return ContentAccess(
        before=before,
        after=after,
        gain=after.has & ~before.has,
        lose=before.has & ~after.has,
        to_mandatory=both & ~before.mandatory & after.mandatory,
        to_optional=both & before.mandatory & ~after.mandatory,
        window=both & same_word & ~same_window,
        shortened=shortened(before, after, now),
        archived_soon=archived_within(ends, before.windows, now + HORIZON) & both,
        causes=tuple(_causes(assignments, now)),
    )


def _causes(assignments: Sequence[AudienceAssignment], now: int) -> Iterator[tuple[Address, Bits]]:
    """Yield each changed resource with everybody who has a path through it before only, after only, or changed."""
    by_cause: defaultdict[Address, Bits] = defaultdict(int)
    for one in assignments:
        old = 0 if one.before is None or one.before.window.is_over(now) else one.audience.before or 0
        new = 0 if one.after is None or one.after.window.is_over(now) else one.audience.after or 0
        differs = old ^ new if one.before == one.after else old | new
        if differs:
            for cause in (*one.audience.causes, *(() if one.cause is None else (one.cause,))):
                by_cause[cause] |= differs
    yield from sorted(by_cause.items())


def weakest_basis(bases: Iterable[Basis]) -> Basis:
    """Return the weakest of several."""
    return max(bases, key=_BY_STRENGTH.index, default=Basis.EXACT)
