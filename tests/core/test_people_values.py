"""Values of people on their own: what can be undone of a change, and how many answers are kept."""

from __future__ import annotations

from datetime import date
from typing import cast

import pytest

from lmsconf.api.spec import ApiSpec
from lmsconf.kinds.shared.call_placeholders import SpecCallTemplates
from lmsconf.kinds.shared.responses import AnswerRow
from lmsconf.kinds.smart_group.conditions import (
    SimilarConditions,
    condition_refs,
    condition_set,
    keep_system_conditions,
    ordered_conditions,
)
from lmsconf.kinds.smart_group.types import DeclaredCondition
from lmsconf.kinds.undo import archived_instead, person_undo
from lmsconf.kinds.user.answer_index import PeopleWithAnswers
from lmsconf.kinds.user.types import AnswersRow
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.forms import Form
from lmsconf.model.plan import Action, Change, UndoLevel
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Snapshot
from lmsconf.planner.context import BeforeAfter, PlanContext
from lmsconf.planner.reading import ReadContext


@pytest.mark.parametrize(
    ("before", "after", "reason", "merged"),
    [
        (None, {"email": "a@x.example"}, "the account can be archived, and not deleted", None),
        ({"first_name": "Ann"}, {"first_name": "Anne"}, None, None),
        ({"first_name": ""}, {"first_name": ""}, None, None),
        ({"first_name": ""}, {"first_name": "Ann"}, "first_name cannot be made empty again", None),
        (
            {"first_name": "", "last_name": "Ek", "language": ""},
            {"first_name": "Ann", "last_name": "Berg", "language": "sv"},
            "first_name and language cannot be made empty again",
            None,
        ),
        ({"metadata": {"a": "1"}}, {"metadata": {"a": "2"}}, None, None),
        ({"metadata": {"a": "1"}}, {"metadata": {"a": None}}, None, None),
        ({"metadata": {"a": None}}, {"metadata": {"a": None}}, None, None),
        (
            {"metadata": {"a": "1", "b": None}},
            {"metadata": {"a": "2", "b": "3"}},
            None,
            "the service merges metadata, so that no key can be removed",
        ),
        ({"admin": False}, {"admin": True}, None, None),
    ],
)
def test_how_much_of_a_change_to_a_person_can_be_undone(
    before: Form | None, after: Form, reason: str | None, merged: str | None
) -> None:
    """No account is deleted and no name made empty; a new key of metadata stays where the service merges them."""
    snapshot = Snapshot(workspace="w", url="", taken_at="", people=1)
    for mode, expected in (("replace", reason), ("merge", reason or merged)):
        templates = SpecCallTemplates(ApiSpec({"users.update-metadata.mode": mode}))
        planning = PlanContext(snapshot, Policy(workspace="w", today=date(2030, 1, 1)), templates, lambda _: True)
        undo = person_undo(planning, BeforeAfter(before=before, after=after), None)
        assert (undo.level, undo.reason) == (UndoLevel.PARTIAL if expected else UndoLevel.FULL, expected)


@pytest.mark.parametrize("admin", [True, False, None])
def test_a_created_account_is_archived_instead_of_deleted(admin: bool | None) -> None:
    """An administrator cannot be archived, so the right goes with it."""
    form: dict[str, Json] = {"email": "a@x.example"} if admin is None else {"admin": admin}
    change = Change(
        address=Address.of("user", "a@x.example"),
        action=Action.CREATE,
        id=None,
        about=None,
        source=None,
        before=None,
        after=form,
        fields=(),
    )
    assert archived_instead(change) == {"archived": True, **({"admin": False} if admin else {})}


def test_people_are_kept_with_the_answers_that_can_be_read() -> None:
    """By id, with None for an answer of no known shape, and for all of them where they are no object."""
    people = PeopleWithAnswers(cast("ReadContext", None))
    held: dict[str, Json] = {"Skills": ["c-1"], "Badge": "7", "Odd": True, "Empty": {"choices": []}, "None": None}
    people.add({"userId": "u-5", "email": "e@x.example", "customFields": None})
    people.add({"userId": "u-4", "email": "d@x.example", "archivedAt": None})
    assert not people.finish(None).has_answers
    people.add({"userId": "u-2", "email": "B@x.example", "customFields": held})
    people.add({"userId": "u-1", "email": "a@x.example", "archivedAt": "2030-01-01", "customFields": {**held}})
    people.add({"userId": "u-3", "customFields": "Skills"})
    people.add({"userId": "u-6", "email": "f@x.example", "customFields": {"Skills": ["c-1"]}})
    index = people.finish("a page is missing")
    badge, skills = AnswerRow("Badge", frozenset(), "7"), AnswerRow("Skills", frozenset({"c-1"}), None)
    answers = (("Badge", badge), ("Odd", None), ("Skills", skills))
    assert index.people == (
        AnswersRow(RemoteId("u-1"), answers, email="a@x.example", archived=True),
        AnswersRow(RemoteId("u-2"), answers, email="B@x.example"),
        AnswersRow(RemoteId("u-3"), None),
        AnswersRow(RemoteId("u-4"), (), has_answers=False, email="d@x.example"),
        AnswersRow(RemoteId("u-5"), (), email="e@x.example"),
        AnswersRow(RemoteId("u-6"), answers[2:], email="f@x.example"),
    )
    first, second, *_, last = (person.answers or () for person in index.people)
    assert (first is second, last[0] is first[2]) == (True, True)
    assert (index.has_answers, index.incomplete, index.positions["u-3"]) == (True, "a page is missing", 2)
    assert people.answers_of(RemoteId("u-2")) is index.people[1]


@pytest.mark.parametrize("keeps_texts", [True, False])
def test_long_texts_are_kept_only_where_answers_are_deleted_or_copied(keeps_texts: bool) -> None:
    """Elsewhere their digests do, however many there are: equal texts have equal ones, and each is short."""
    people = PeopleWithAnswers(cast("ReadContext", None))
    people.keeps_texts = keeps_texts
    texts = ["x" * 400, "x" * 400, "x" * 401, "x" * 64, {"value": "x" * 400}, ["x" * 400, "y"]]
    for number, text in enumerate(texts):
        people.add({"userId": f"u-{number}", "customFields": {"A": cast("Json", text)}})
    kept = [answers[0][1].picked for one in people.finish(None).people if (answers := one.answers) and answers[0][1]]
    assert kept[0] == kept[1] == kept[4] != kept[2]
    assert (kept[3], len(kept[5]), kept[0] <= kept[5]) == ({"x" * 64}, 2, True)
    assert {len(text) for picked in kept for text in picked} == ({1, 64, 400, 401} if keeps_texts else {1, 64})


# Conditions of smart groups: when two sets may be those of one group, and what a declared one keeps of a live one.


def conditions(*written: str) -> list[DeclaredCondition]:
    """Conditions as `Country: SE FI IS_ANY`; words that begin with IS are system conditions."""
    found = []
    for one in written:
        field, _, rest = one.partition(":")
        words = rest.split()
        system = next((word for word in words if word.startswith("IS")), None)
        found.append(DeclaredCondition(field, frozenset(words) - {system or ""}, system))
    return found


@pytest.mark.parametrize(
    ("one", "other", "may_be"),
    [
        (["Country: SE"], ["Country: SE"], True),
        (["Country: SE"], ["Country: FI"], False),
        (["Country: SE"], ["Country: SE", "Level: High"], False),
        (["Country: SE", "Level: High"], ["Level: High", "Country: SE"], True),
        (["Country: SE"], ["Country: SE IS_ANY"], True),
        (["Country: SE IS_ALL"], ["Country: SE IS_ANY"], False),
        (["Country: SE", "Country: SE"], ["Country: SE"], False),
        (["Country: SE", "Country: SE"], ["Country: SE IS_ALL", "Country: SE IS_ANY"], True),
        (["Country: SE IS_ALL", "Country: SE"], ["Country: SE IS_ALL", "Country: SE IS_ANY"], True),
        (["Country: SE IS_ONE", "Country: SE"], ["Country: SE IS_ALL", "Country: SE IS_ANY"], False),
        (["Country: SE IS_ALL", "Country: SE IS_ALL"], ["Country: SE IS_ALL", "Country: SE"], True),
        (["Country: SE IS_ALL", "Country: SE IS_ALL"], ["Country: SE IS_ALL", "Country: SE IS_ANY"], False),
        (["Country: SE IS_ALL", "Level: High"], ["Country: SE IS_ANY", "Level: High"], False),
    ],
)
def test_conditions_may_be_those_of_one_group(one: list[str], other: list[str], may_be: bool) -> None:
    """A system condition that only one side has may have been filled in; the order does not matter."""
    left, right = (SimilarConditions(condition_set(conditions(*side))) for side in (one, other))
    assert (left == right, right == left) == (may_be, may_be)
    assert not may_be or hash(left) == hash(right)


@pytest.mark.parametrize(
    ("declared", "live", "kept"),
    [
        (["Country: SE"], ["Country: SE IS_ANY"], ["Country: SE IS_ANY"]),
        (["Country: SE"], ["Country: FI IS_ANY"], ["Country: SE"]),
        (["Country: SE IS_ALL"], ["Country: SE IS_ANY"], ["Country: SE IS_ALL"]),
        (["Country: SE"], ["Country: SE IS_ANY", "Country: SE IS_ALL"], ["Country: SE IS_ALL"]),
        (["Country: SE"], ["Country: SE IS_ANY", "Country: SE"], ["Country: SE"]),
        (
            ["Country: SE", "Country: SE IS_ALL"],
            ["Country: SE IS_ALL", "Country: SE IS_ANY"],
            ["Country: SE IS_ANY", "Country: SE IS_ALL"],
        ),
        (
            ["Country: SE", "Country: SE", "Country: SE"],
            ["Country: SE IS_ALL", "Country: SE IS_ANY"],
            ["Country: SE IS_ALL", "Country: SE IS_ANY", "Country: SE"],
        ),
        (
            ["Country: SE IS_ALL", "Country: SE IS_ALL", "Country: SE"],
            ["Country: SE IS_ALL", "Country: SE IS_ALL", "Country: SE IS_ALL"],
            ["Country: SE IS_ALL", "Country: SE IS_ALL", "Country: SE IS_ALL"],
        ),
    ],
)
def test_a_declared_condition_keeps_the_system_condition_of_a_live_one(
    declared: list[str], live: list[str], kept: list[str]
) -> None:
    """Of one with its field and choices that no other declared one names; of several the first in the alphabet."""
    assert list(keep_system_conditions(conditions(*declared), conditions(*live))) == conditions(*kept)


def test_conditions_are_sent_in_a_fixed_order() -> None:
    """Equal ones as often as they are declared."""
    written = conditions("Level: High", "Country: SE", "Level: High", "Country: FI")
    sent = ordered_conditions({"conditions": condition_set(written)})
    assert sent == conditions("Country: FI", "Country: SE", "Level: High", "Level: High")
    assert ordered_conditions({}) == []


def test_conditions_reference_their_fields_and_choices() -> None:
    """Also the field of a condition without choices."""
    country, level = Address.of("custom_field", "Country"), Address.of("custom_field", "Level")
    refs = condition_refs(conditions("Country: SE FI", "Level: IS_SET"))
    assert refs == {Ref(country), Ref(country, "SE"), Ref(country, "FI"), Ref(level)}
