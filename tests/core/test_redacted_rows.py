"""What a kind without people in its rows gets by default: no text of a row keeps an undeclared person's e-mail."""

from __future__ import annotations

import re
from datetime import date
from typing import Any, NamedTuple

import pytest
from msgspec import Struct

from lmsconf.api.spec import ApiSpec
from lmsconf.kinds import all_kinds
from lmsconf.kinds.content_target.types import TargetRow
from lmsconf.kinds.manual_group.types import GroupRow
from lmsconf.kinds.shared.call_placeholders import SpecCallTemplates
from lmsconf.model.address import RemoteId
from lmsconf.model.declarations import Manifests
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.context import PlanContext
from lmsconf.planner.redaction import LivePerson, RedactionContext, RestoreContext, UnnamedRow
from lmsconf.planner.snapshot_redaction import redact_snapshot

TEXT = "ask ada@acme.example or Bob@acme.example"


class Part(NamedTuple):
    id: str
    note: str | None


class ToyRow(Struct, frozen=True):
    listing = "toy"

    id: RemoteId
    name: str
    size: int = 3
    parts: tuple[Part, ...] = ()
    tags: frozenset[str] = frozenset()
    more: Any = None


def planning(snapshot: Snapshot) -> PlanContext:
    policy = Policy(workspace="w", today=date(2030, 1, 1))
    return PlanContext(snapshot, policy, SpecCallTemplates(ApiSpec.default()), lambda _: True)


def context() -> RedactionContext:
    snapshot = Snapshot(workspace="w", url="", taken_at="", people=None)
    people = [LivePerson(RemoteId(name), f"{name}@acme.example", True, False) for name in ("ada", "bob")]
    return RedactionContext(planning(snapshot), {}, people, named=frozenset({"ada@acme.example"}), quoted=frozenset())


def test_every_text_of_a_row_but_its_ids_is_redacted() -> None:
    """In settings, parts and sets, at any depth; what the manifests name stays, so that it still compares."""
    row = ToyRow(RemoteId(TEXT), TEXT, parts=(Part(TEXT, TEXT), Part("2", None)), tags=frozenset({TEXT}))
    red = context().redact_row(row)
    assert (red.id, red.parts[0].id, red.size, red.parts[1]) == (TEXT, TEXT, 3, Part("2", None))
    for text in (red.name, red.parts[0].note, *red.tags):
        assert re.fullmatch("ask ada@acme.example or person-[0-9a-f]{16}", str(text))


def test_a_value_of_unknown_shape_is_refused() -> None:
    """It could hold an e-mail anywhere."""
    with pytest.raises(TypeError, match="dict"):
        context().redact_row(ToyRow(RemoteId("1"), "x", more={"note": TEXT}))


def test_people_who_are_not_shown_are_counted() -> None:
    """By whether lists with them are compared; who is in no list of people is unknown."""
    redaction = context()
    ids = frozenset(map(RemoteId, ("ada", "bob", "eve")))
    assert redaction.redact_people("toy", RemoteId("1"), "crew", ids) == {"ada"}
    assert redaction.redact_people("toy", RemoteId("2"), "crew", None) is None
    assert [(row.id, row.active, row.archived, row.unknown) for row in redaction.counted_rows()] == [
        ("toy/1/crew", 1, 0, 1)
    ]


def test_people_who_are_only_counted_come_back_as_that_many() -> None:
    """Each becomes an unnamed person of one list only; nothing is known of people whom no listing contains."""
    rows = (
        UnnamedRow("toy", RemoteId("1"), "crew", active=2, archived=1, unknown=2),
        UnnamedRow("toy", RemoteId("2"), "crew", active=1, archived=0, unknown=0),
        UnnamedRow("game", RemoteId("1"), "crew", active=0, archived=0, unknown=1),
    )
    snapshot = Snapshot(
        workspace="w", url="", taken_at="", people=None, listings={UnnamedRow.listing: Listing(rows=rows)}
    )
    restoring = RestoreContext(snapshot, {})
    ada = RemoteId("ada")
    assert restoring.restore_people("toy", "1", "crew", None) is None
    assert restoring.restore_people("toy", "3", "crew", frozenset({ada})) == {ada}
    assert sorted(restoring.restore_people("toy", "1", "crew", frozenset({ada})) or ()) == [
        "ada",
        "unnamed 4",
        "unnamed 5",
        "unnamed person 1",
        "unnamed person 2",
        "unnamed person 3",
    ]
    assert [one.archived for one in restoring.stand_ins] == [False, False, True]
    assert restoring.restore_people("toy", "2", "crew", frozenset()) == {"unnamed person 6"}
    assert restoring.counted_lists("toy") == [("1", "crew"), ("2", "crew")]


def test_an_assignment_keeps_a_label_that_is_the_name_of_its_group() -> None:
    """Another label may be the name of a person, and is left out."""
    targets = [TargetRow(RemoteId(f"c-{label}"), "g-1", "GROUP", label=label) for label in ("Coaches", "Bob Ek")]
    listings = {
        "group": Listing(rows=(GroupRow(RemoteId("g-1"), "Coaches"),)),
        "content_target": Listing(rows=tuple(targets)),
    }
    snapshot = Snapshot(workspace="w", url="", taken_at="", people=1, listings=listings)
    red = redact_snapshot(planning(snapshot), Manifests(), all_kinds())
    assert [row.label for row in red.rows(TargetRow)] == ["Coaches", ""]
