"""What holds for every run that is undone: all is as it was but for what the plan announced, and no more is touched."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Set
from typing import Any, Final, NamedTuple, cast

import pytest
from hypothesis import assume, event, example, given
from hypothesis import strategies as st
from laws.conftest import Both, Open
from laws.hand_edits import EDITS, edit_by_hand
from laws.random_manifests import RandomManifests, answered_wishes
from laws.random_workspaces import Field, Group, RandomWorkspace
from laws.sandbox_project import Raw, SandboxProject, assume_sure, shape, tried
from simulation.request_faults import KEPT, Killed, MortalJournal

from lmsconf.apply.replanning import refuse_stale_plan
from lmsconf.apply.run_plan import execute
from lmsconf.documents.journal.journal_reader import find_run
from lmsconf.errors import ExitCode
from lmsconf.kinds.shared.kind_names import CUSTOM_FIELD, USER
from lmsconf.model.address import Address
from lmsconf.model.calls import CallStatus
from lmsconf.model.names import normalize_email, normalize_name
from lmsconf.model.plan import Action, Change, Plan, UndoLevel
from lmsconf.planner.undo.kept_state import pre_image
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.workspace.plan_undo import load_run, plan_undo

pytestmark = pytest.mark.sampled(day=4, gate=6)  # minutes in all

_IDS_ALONE = "another id|other ids|new id"
"""In the reason of a change that is undone but for ids, which these laws do not compare."""


def carry_out(stage: SandboxProject, plan: Plan, dies_at: int | None = None) -> list[object]:
    """Applies a plan as the command does: with a journal, and what was before beside it. Returns what went wrong.

    dies_at: the call after which the process dies, before its outcome is recorded.
    """
    plan = stage.consented(plan)
    before = pre_image(plan, refuse_stale_plan(stage.workspace, plan))
    with MortalJournal.begin(stage.folder, plan, meta={}, **KEPT, pre_image=before) as journal:
        assert isinstance(journal, MortalJournal)
        journal.dies_at = dies_at
        try:
            report = execute(stage.workspace, plan, meta={}, journal=journal)
        except Killed:
            return ["killed"]
    failed = [one for one in report.outcomes if one.status is not CallStatus.DONE]
    return [] if report.exit == 0 else [report.exit, *failed, *report.residue, *report.problems]


def undo_of(stage: SandboxProject, name: str = "latest") -> Plan:
    return plan_undo(stage.workspace, load_run(stage.workspace, find_run(stage.folder, name)), stage.settings.policy)


def undone(stage: SandboxProject) -> Plan:
    """The plan that undoes the latest run, which is carried out."""
    undo = undo_of(stage)
    if undo.calls:
        assume_sure(undo)
        assert carry_out(stage, undo) == []
    return undo


# Two choices that look alike keep a deleted field from coming back, and so the answers to it.
FIELD_LOST: Final = (
    RandomWorkspace(
        people={"anna@x.example": "p1"},
        fields=[
            Field(id="f-1", name="S", type="CHOICE", choices=[("ch-1", "a"), ("ch-2", "Sales"), ("ch-3", "SALES")])
        ],
        answers={"anna@x.example": {"S": "a"}},
        dialect={"custom-fields.in-use": "condition"},
    ),
    RandomManifests(absent={"custom_fields": [{"name": "S"}]}),
)


@pytest.mark.sampled(day=20, gate=6)
@tried(200)
@given(answered_wishes())
@example(FIELD_LOST)
def test_an_undone_run_leaves_only_what_the_plan_announced(opened: Open, both: Both) -> None:
    """Applied and undone, the workspace holds what it held, but for ids and what the plan said cannot come back."""
    stage = opened(both)
    plan = stage.plan()
    assume_sure(plan)
    before = shape(stage.look())
    assert carry_out(stage, plan) == []
    undo = undone(stage)
    announced = [one for one in plan.changes if one.undo.level is not UndoLevel.FULL]
    told = {problem.address for problem in undo.problems if problem.code == "undo/conflict"}
    assert told <= {str(one.address) for one in announced}, [f"{one} {one.hint}" for one in undo.problems]
    # What comes back with another id is compared by name. Of the rest, the plan has named what stays as it is.
    excused = [one for one in announced if not re.search(_IDS_ALONE, str(one.undo.reason))]
    event("; ".join(sorted({f"{one.action} {one.undo.level} {one.undo.reason}"[:60] for one in excused})) or "whole")
    fields = {normalize_name(name) for one in excused if one.address.kind == CUSTOM_FIELD for name in _names(one)}
    before, after = (_without_answers(one, fields) for one in (before, shape(stage.look())))
    names = {json.dumps(name, ensure_ascii=False) for one in excused for name in _names(one)}
    differing = [text for text in ((before - after) + (after - before)) if not any(name in text for name in names)]
    assert not differing, "\n".join(map(str, [*differing, *plan.changes, "UNDO", *undo.changes, *undo.problems]))


# The run changes a list of choices, and somebody chooses a third one.
LIST_ANSWERED: Final = (
    RandomWorkspace(
        people={"anna@x.example": "p1"},
        fields=[Field(id="f-1", name="S", type="MULTI_SELECT", choices=[(f"ch-{one}", one) for one in "abc"])],
        answers={"anna@x.example": {"S": ["a"]}},
        dialect={"custom-fields.in-use": "condition"},
    ),
    RandomManifests(sections={"users": [{"email": "anna@x.example", "answers": {"S": ["b"]}}]}),
)


@pytest.mark.sampled(day=20, gate=6)
@tried(100)
@given(
    answered_wishes(),
    st.lists(st.tuples(st.sampled_from(EDITS), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=4),
)
@example(LIST_ANSWERED, [("answer", 0, 2)])
def test_what_others_have_done_since_is_left_alone(opened: Open, both: Both, edits: list[tuple[str, int, int]]) -> None:
    """Whatever is edited by hand between a run and its undo: the undo neither overwrites nor deletes it."""
    stage = opened(both)
    plan = stage.plan()
    assume_sure(plan)
    assert carry_out(stage, plan) == []
    made = set(facts(stage.look(), systems=True))
    for word, which, what in edits:
        edit_by_hand(stage, word, which, what)
    edited = set(facts(stage.look(), systems=True))
    undo = undone(stage)
    after = set(facts(stage.look(), systems=True))
    overwritten = (edited - made - after) | ((made - edited) & after)
    assert not overwritten, "\n".join(map(str, [*overwritten, *undo.changes, *undo.problems]))


@pytest.mark.sampled(day=20, gate=6)
@tried(80)
@given(answered_wishes(), st.integers(0, 60))
def test_a_run_that_was_cut_short_is_undone_as_far_as_it_went(opened: Open, both: Both, place: int) -> None:
    """Whichever call the process dies after: what was done until then is undone, that call with it."""
    stage = opened(both).one_by_one()
    plan = stage.plan()
    assume_sure(plan)
    assume(all(one.undo.reason is None or re.search(_IDS_ALONE, one.undo.reason) for one in plan.changes))
    before = shape(stage.look())
    assert carry_out(stage, plan, place % len(plan.calls) + 1) == ["killed"]
    undo = undone(stage)
    after = shape(stage.look())
    assert after == before, "\n".join(
        map(str, ["", before - after, after - before, *plan.changes, "UNDO", *undo.changes, *undo.problems])
    )


@pytest.mark.slow
@tried(80)
@given(
    answered_wishes(), st.integers(0, 60), st.sampled_from([{}, {"status": 500}, {"cut": True}, {"lose_answer": True}])
)
def test_an_undo_that_is_cut_short_is_finished_by_the_next(
    opened: Open, both: Both, place: int, mishap: dict[str, Any]
) -> None:
    """Whichever call of an undo fails, is cut, or loses its answer: `--undo` of the run again ends at the same."""
    ends, script, dies_at = [], FaultScript(), None
    for is_disturbed in (False, True):
        stage = opened(both, script).one_by_one()
        plan = stage.plan()
        assume_sure(plan)
        assert carry_out(stage, plan) == []
        name = find_run(stage.folder, "latest").name
        undo = undo_of(stage, name)
        assume_sure(undo)
        wrong = carry_out(stage, undo, dies_at)
        again = undo_of(stage, name)
        if again.calls:
            assert is_disturbed, [*undo.changes, "AGAIN", *again.changes, *again.problems]
            assert carry_out(stage, again) == [], wrong
        assert undo_of(stage, name).calls == ()
        ends.append(shape(stage.look()))
        if mishap:
            struck, earlier = undo.calls[place % len(undo.calls)].operation, undo.calls[: place % len(undo.calls)]
            after = sum(call.operation == struck for call in (*plan.calls, *earlier))
            script = FaultScript(Fault(operation=struck, after=after, **mishap))
        else:
            dies_at = place % len(undo.calls) + 1
    assert ends[0] == ends[1], "\n".join(
        map(str, [*plan.changes, "UNDO", *undo.changes, "AGAIN", *again.changes, *again.problems])
    )


def _without_answers(shaped: Counter[str], fields: Set[str]) -> Counter[str]:
    """The same shape without the answers of people to these fields."""
    rows: Counter[str] = Counter()
    for text, number in shaped.items():
        kind, said = json.loads(text)
        if kind == USER:
            said["customFields"] = {name: one for name, one in said["customFields"].items() if name not in fields}
        rows[json.dumps([kind, said], sort_keys=True, ensure_ascii=False)] += number
    return rows


def _names(change: Change) -> Iterator[str]:
    """The names of a resource before and after a change, and that of an assignment's content."""
    for form in (change.before, change.after):
        if isinstance(form, dict):
            yield str(form.get("name", form.get("content")))


# Whatever a workspace loses by an apply stood in the plan, and nothing changes of which the plan did not speak.


PEOPLE: Final = ("members", "managers")
SINGLE: Final = {
    "isHidden": "hidden",
    "isLocked": "locked",
    "isOptional": "optional",
    "description": "description",
    "mandatory": "mandatory",
    "startTime": "visible_from",
    "finishTime": "visible_until",
    "name": "name",
}
"""Keys of the API with a single value, and what a plan calls them."""


# The rename of a field in use is refused; the plan names a condition that goes by the field's new name.
REFUSED_RENAME: Final = (
    RandomWorkspace(
        people={"anna@x.example": "p1"},
        fields=[
            Field(id=f"f-{number}", name=name, type="CHOICE", choices=[(f"ch-{number}", "a")])
            for number, name in enumerate("ABC")
        ],
        smart_groups=[
            Group(id=id, name=id, conditions=[{"field": "A", "system_condition": "IS_ANY"}]) for id in ("s0", "s1")
        ],
    ),
    RandomManifests(
        sections={
            "custom_fields": [{"name": "C", "previously": ["A"]}, {"name": "D", "previously": ["C"]}],
            "smart_groups": [{"name": "s0", "conditions": [{"field": "B", "system_condition": "IS_ANY"}]}],
        }
    ),
)


@tried(200)
@given(answered_wishes(declared=False))
@example(REFUSED_RENAME)
def test_losses_are_announced(opened: Open, both: Both) -> None:
    """Two looks at the workspace differ only in what the plan names, resource by resource and item by item."""
    stage = opened(both)
    plan = stage.plan()
    assume(plan.calls)
    before = stage.look()
    report = stage.apply(plan)
    after = stage.look()
    said, old, new = Announced(plan, before, after), set(facts(before)), set(facts(after))
    assert [fact for fact in sorted(old - new) if not said.loses(fact)] == []
    assert [fact for fact in sorted(new - old) if not any(said.changes(fact))] == []
    # A service that refuses to change a field in use makes the run end in part, as the plan says.
    robbed = len({fact.person for fact in old - new if fact.key == "answers"})
    [answers] = [guard.total for guard in plan.guards if guard.name == "answers"]
    assert answers == robbed if report.exit is ExitCode.OK else cast("int", answers) >= robbed


class Fact(NamedTuple):
    """One thing that is so: kind and id of a resource, one of its keys, and one item of that key.

    An answer is a fact of its field: its item is a choice's id or a text, and `person` says whose it is.
    """

    kind: str
    id: str
    key: str
    item: str
    person: str = ""


def facts(raw: Raw, *, systems: bool = False) -> Iterator[Fact]:
    """All that a plan can speak of. systems: with the system conditions of conditions."""
    fields = {said["name"]: id for (kind, id), said in raw.items() if kind == "custom_field"}
    for (kind, id), said in raw.items():
        yield Fact(kind, id, "", "")
        yield from (Fact(kind, id, key, str(said[name])) for name, key in SINGLE.items() if said.get(name))
        yield from (Fact(kind, id, key, one) for key in PEOPLE for one in said.get(key) or ())
        yield from (Fact(kind, id, "choices", one["choiceId"]) for one in said.get("choices") or ())
        for one in said.get("conditions") or ():
            condition = [one["customFieldId"], sorted(one.get("choiceIds") or ())]
            yield Fact(kind, id, "conditions", json.dumps([*condition, one.get("systemCondition") if systems else ""]))
        for field, answer in (said.get("customFields") or {}).items():
            parts = [one["choiceId"] for one in answer["choices"]] if "choices" in answer else [answer["text"]]
            yield from (Fact("custom_field", fields[field], "answers", str(part), id) for part in parts)


class Announced:
    """What a plan says of resources, found by their id, or by their name before it or after it."""

    def __init__(self, plan: Plan, before: Raw, after: Raw) -> None:
        self._changes = plan.changes
        self._sides = (before, after)
        fields = [field for one in plan.changes for field in one.fields if field.path.startswith("choices.")]
        self._renamed = {str(field.before): str(field.after) for field in fields}

    def loses(self, fact: Fact) -> bool:
        """Whether the plan says that this goes."""
        return any(self._goes(change, fact) for change in self.changes(fact))

    def changes(self, fact: Fact) -> Iterator[Change]:
        """The changes of the resource."""
        found = {one for raw in self._sides if (fact.kind, fact.id) in raw for one in self._addresses(raw, fact)}
        for change in self._changes:
            if change.address.kind == fact.kind and (change.id == fact.id or change.address in found):
                yield change

    def _addresses(self, raw: Raw, fact: Fact) -> Iterator[Address]:
        if fact.kind != "content_target":
            yield Address.of(fact.kind, _name(fact.kind, raw[fact.kind, fact.id]))
            return
        content, _, audience = fact.id.partition("/")
        name = Address.of("group", _name("content", raw["content", content])).text
        audiences = [
            str(Address.of(kind, _name(kind, said)))
            for side in self._sides
            for (kind, id), said in side.items()
            if id == audience and kind in ("group", "smart_group", "user")
        ]
        yield from (Address("content_target", f"{name} -> {one}") for one in audiences or ["everyone"])

    def _goes(self, change: Change, fact: Fact) -> bool:
        if change.action in (Action.DELETE, Action.REPLACE):
            listed = cast("dict[str, list[str]]", change.before).get(fact.key, [])
            return fact.key not in PEOPLE or self._person(fact.item) in map(normalize_email, listed)
        path = "choices" if fact.key == "answers" else fact.key
        if path not in (*PEOPLE, "choices", "conditions"):
            return any(field.path == path for field in change.fields)
        gone = [_bare(item) for field in change.fields if field.path == path for item in field.removed]
        return any(item in gone for raw in self._sides for item in self._forms(raw, fact))

    def _person(self, id: str) -> str:
        return normalize_email(str(self._sides[0]["user", id]["email"]))

    def _forms(self, raw: Raw, fact: Fact) -> Iterator[object]:
        """How a plan may write an item: with the names of one side, or with the new names of fields and choices."""
        if fact.key in PEOPLE:
            yield self._sides[0]["user", fact.item]["email"]
            yield self._person(fact.item)
            return
        rows = cast("list[dict[str, str]]", [row for said in raw.values() for row in said.get("choices") or ()])
        choices = {row["choiceId"]: normalize_name(row["name"]) for row in rows}
        if fact.key != "conditions":
            yield choices.get(fact.item, fact.item)
            return
        field, ids, _ = json.loads(fact.item)
        if ("custom_field", field) in raw and set(ids) <= set(choices):
            names = [choices[id] for id in ids]
            # A service may refuse the new name of a field in use.
            new = [one.address.name for one in self._changes if one.id == field]
            for called in (normalize_name(str(raw["custom_field", field]["name"])), *new):
                for told in (names, [self._renamed.get(name, name) for name in names]):
                    yield {"field": called, **({"choices": sorted(told)} if told else {})}


def _bare(item: object) -> object:
    """A condition without its system condition, which may stand beside the same choices on both sides."""
    return {key: value for key, value in item.items() if key != "system_condition"} if isinstance(item, dict) else item


def _name(kind: str, said: dict[str, object]) -> str:
    return normalize_email(str(said["email"])) if kind == "user" else normalize_name(str(said["name"]))
