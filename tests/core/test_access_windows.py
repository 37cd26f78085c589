"""Who has a content, and when, before and after a plan, on sets of people in memory."""

from __future__ import annotations

from typing import Final

import pytest

from lmsconf.model.address import Address
from lmsconf.planner.audiences import (
    HORIZON,
    AccountEnds,
    Audience,
    AudienceAssignment,
    Terms,
    Window,
    compare_access,
    positions_of,
    to_bits,
)

NOW: Final = 1_000_000
END: Final = NOW + 30 * 24 * 3600
"""The last second for which a shortened window is counted."""
Side = tuple[tuple[int | None, int | None], ...]


@pytest.mark.parametrize("size", [1, 7, 8, 9, 64, 100, 255, 256, 2048, 2049])
def test_a_set_of_people_holds_the_positions_that_it_was_made_of(size: int) -> None:
    """In order, whatever its size, also where nobody is among many."""
    for positions in (range(size), range(0, size, 7), range(size - 1, size), ()):
        bits = to_bits(positions, size)
        assert bits == sum(1 << position for position in positions)
        assert list(positions_of(bits)) == list(positions)


def test_a_window_is_counted_for_thirty_days() -> None:
    """As the guide says."""
    assert NOW + HORIZON == END


def assignment(before: Terms | None, after: Terms | None, people: int = 1) -> AudienceAssignment:
    return AudienceAssignment(audience=Audience(before=people, after=people), before=before, after=after)


def said(*assignments: AudienceAssignment, ends: AccountEnds | None = None) -> set[str]:
    """What is said of the first person: the words of the changes."""
    found = compare_access(assignments, NOW, ends or AccountEnds())
    words = ("gain", "lose", "to_mandatory", "to_optional", "window", "shortened", "archived_soon", "keep")
    assert found.changed == found.gain | found.lose | found.to_mandatory | found.to_optional | found.window
    return {word for word in words if getattr(found, word) & 1}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((), ((None, None),), {"gain"}),
        (((None, None),), (), {"lose"}),
        (((None, None),), ((None, None),), {"keep"}),
        (((None, NOW - 1),), (), set()),
        (((None, NOW),), (), {"lose"}),
        (((None, NOW - 1), (None, None)), ((None, None),), {"keep"}),
        (((None, None),), ((NOW, None),), {"window"}),
        (((None, None),), ((NOW + 1, None),), {"window", "shortened"}),
        (((END, None),), ((END + 1, None),), {"window", "shortened"}),
        (((END + 1, None),), ((END + 2, None),), {"window"}),
        (((None, None),), ((None, END),), {"window"}),
        (((None, None),), ((None, END - 1),), {"window", "shortened"}),
        (((None, END - 1),), ((None, None),), {"window"}),
        (((None, 2 * END),), ((None, 3 * END),), {"window"}),
        (((None, None),), ((None, NOW + 9), (NOW + 10, None)), {"keep"}),
        (((None, None),), ((None, NOW + 9), (NOW + 11, None)), {"keep", "shortened"}),
        (((None, NOW + 9), (NOW + 11, None)), ((None, None),), {"keep"}),
        (((NOW + 5, NOW + 9),), ((NOW + 5, NOW + 8), (NOW + 3, NOW + 4)), {"window", "shortened"}),
        (((NOW + 5, NOW + 9),), ((NOW + 4, NOW + 10),), {"window"}),
        (((NOW + 9, NOW + 9),), ((NOW + 2, NOW + 3),), {"window", "shortened"}),
        (((NOW + 2, NOW + 3), (NOW + 5, NOW + 9)), ((NOW + 5, NOW + 9),), {"window", "shortened"}),
        (((NOW + 5, NOW + 9), (NOW + 2, NOW + 3)), ((NOW + 2, NOW + 3), (NOW + 5, NOW + 9)), {"keep"}),
    ],
)
def test_what_a_plan_changes_of_the_windows_of_a_person(before: Side, after: Side, words: set[str]) -> None:
    """Only seconds of the next thirty days that are not covered any more shorten a window; others change it."""
    sides = [[Terms(mandatory=False, window=Window(*one)) for one in side] for side in (before, after)]
    both = [*(assignment(one, None) for one in sides[0]), *(assignment(None, one) for one in sides[1])]
    assert said(*both, assignment(None, Terms(mandatory=True, window=Window(None, None)), 0b10)) == words


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ((False,), (True,), {"to_mandatory"}),
        ((True,), (False,), {"to_optional"}),
        ((True, False), (True,), {"keep"}),
        ((True, False), (False,), {"to_optional"}),
        ((), (True,), {"gain"}),
        ((True,), (), {"lose"}),
    ],
)
def test_content_is_mandatory_through_any_of_its_assignments(
    before: tuple[bool, ...], after: tuple[bool, ...], words: set[str]
) -> None:
    """It changes for people who have it on both sides; for others it is only gained or lost."""
    always = Window(None, None)
    old = (assignment(Terms(mandatory=one, window=always), None) for one in before)
    assert said(*old, *(assignment(None, Terms(mandatory=one, window=always)) for one in after)) == words


@pytest.mark.parametrize(
    ("window", "end", "is_cut"),
    [
        ((None, None), NOW, True),
        ((None, None), END, True),
        ((None, None), END + 1, False),
        ((None, NOW + 5), NOW + 5, True),
        ((None, NOW + 5), NOW + 6, False),
        ((NOW + 5, NOW + 9), NOW + 7, True),
        ((END, None), NOW + 7, True),
        ((END + 1, None), NOW + 7, False),
    ],
)
def test_an_account_that_ends_while_a_window_is_open(
    window: tuple[int | None, int | None], end: int, is_cut: bool
) -> None:
    """It is cut if the account ends by the end of the window, and within thirty days."""
    terms = Terms(mandatory=False, window=Window(*window))
    ends = AccountEnds.of({end: 0b01, NOW + 20 * (END - NOW): 0b01, end + 1: 0b10})
    assert ("archived_soon" in said(assignment(terms, terms), ends=ends)) is is_cut
    several = AccountEnds.of({NOW + 9: 0b100, NOW + 2: 0b010, NOW + 1: 0b001})
    assert several.cut([(Window(None, NOW + 2), 0b111)], END) == 0b011
    assert "archived_soon" not in said(assignment(terms, None), ends=ends)


def test_a_resource_causes_what_happens_to_its_people() -> None:
    """A group whose members change, or an assignment that changes; none whose window is over on both sides."""
    group, target = Address.of("group", "A"), Address.of("content_target", "X -> group/A")
    always, over = (Terms(mandatory=False, window=Window(None, finish)) for finish in (None, NOW - 1))
    audience = Audience(before=0b011, after=0b110, causes=(group,))
    for before, after, cause, people in (
        (always, always, None, {group: 0b101}),
        (always, over, target, {group: 0b011, target: 0b011}),
        (over, always, target, {group: 0b110, target: 0b110}),
        (over, over, target, {}),
    ):
        one = AudienceAssignment(audience=audience, before=before, after=after, cause=cause)
        found = compare_access([one], NOW, AccountEnds()).causes
        assert dict(found) == people
        assert list(found) == sorted(found)
