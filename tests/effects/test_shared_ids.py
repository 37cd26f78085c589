"""Whose a live assignment is where groups, smart groups and people share an id, and its type is not documented."""

from __future__ import annotations

import pytest

from lmsconf.kinds.content_target.effects.facts import AccessFacts
from lmsconf.kinds.content_target.types import TargetRow
from lmsconf.kinds.manual_group.types import GroupRow
from lmsconf.kinds.shared.kind_names import GROUP, SMART_GROUP, USER
from lmsconf.kinds.smart_group.types import SmartGroupRow
from lmsconf.kinds.user.answer_index import AnswerIndex, IndexedPerson
from lmsconf.model.address import RemoteId

C = RemoteId("c-1")
ALL, SHARED, MANUAL, SMART = (RemoteId(id) for id in ("ALL", "1", "2", "3"))
GROUPS = {id: GroupRow(id, f"Group {id}") for id in (ALL, SHARED, MANUAL)}
SMART_GROUPS = {id: SmartGroupRow(id, f"Smart {id}") for id in (ALL, SHARED, SMART)}
ANNA = IndexedPerson(ALL, "anna@acme.example", False, ())
OTHERS = (
    TargetRow(C, MANUAL, "M"),
    TargetRow(C, SMART, "S"),
    TargetRow(C, MANUAL, "both"),
    TargetRow(C, SMART, "both"),
)


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        (TargetRow(C, RemoteId("EVERYONE"), "anything"), "everyone"),
        (TargetRow(C, SHARED, "SMART_GROUP"), "smart_group"),
        (TargetRow(C, SHARED, "GROUP"), "group"),
        (TargetRow(C, RemoteId("9"), "USER"), "user"),
        (TargetRow(C, SHARED, "M"), "group"),
        (TargetRow(C, SHARED, "S"), "smart_group"),
        (TargetRow(C, SHARED, "both"), None),
        (TargetRow(C, SHARED, "both", label="Smart 1"), "smart_group"),
        (TargetRow(C, SHARED, "new", label="Group 1"), "group"),
        (TargetRow(C, SHARED, "new", label="Another"), None),
        (TargetRow(C, MANUAL, "new"), "group"),
        (TargetRow(C, SMART, "GROUP"), "smart_group"),
        (TargetRow(C, ALL, "M"), "group"),
        (TargetRow(C, ALL, "new", label="anna@acme.example"), "user"),
        (TargetRow(C, RemoteId("9"), "new"), None),
    ],
)
def test_whose_an_assignment_is(row: TargetRow, kind: str | None) -> None:
    """By the words in its type, else by the only holder of its id, by other targets of the type, or by its label."""
    facts = _facts(row)
    found = facts.audience_of(row)
    assert (None if found is None else found[0]) == kind
    assert found is None or kind == "everyone" or found[1] == row.target


@pytest.mark.parametrize(
    ("row", "kind", "may_be"),
    [
        (TargetRow(C, SHARED, "both"), GROUP, True),
        (TargetRow(C, SHARED, "both"), SMART_GROUP, True),
        (TargetRow(C, SHARED, "both"), USER, False),
        (TargetRow(C, SHARED, "GROUP"), GROUP, True),
        (TargetRow(C, SHARED, "GROUP"), SMART_GROUP, False),
        (TargetRow(C, ALL, "USER"), GROUP, False),
        (TargetRow(C, RemoteId("9"), "new"), GROUP, False),
    ],
)
def test_an_assignment_may_be_for_each_audience_with_its_id_unless_it_says_whose_it_is(
    row: TargetRow, kind: str, may_be: bool
) -> None:
    """A content that may be assigned to a group that changes is looked at."""
    assert _facts(row).may_be_in(row, {(kind, row.target), (kind, MANUAL)}) is may_be


def _facts(row: TargetRow) -> AccessFacts:
    return AccessFacts(
        people=AnswerIndex((ANNA,), has_answers=True),
        fields=(),
        contents={C: "GDPR"},
        groups=GROUPS,
        smart_groups=SMART_GROUPS,
        members={},
        conditions={},
        targets={C: (*OTHERS, row)},
        everyone="EVERYONE",
    )
