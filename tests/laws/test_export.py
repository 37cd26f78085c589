"""An export is the workspace in manifests; and what manifests say of people settles."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st
from laws.conftest import Both, Open
from laws.random_manifests import RandomManifests, wishes
from laws.random_workspaces import NAMES, Dice, RandomWorkspace, worlds
from laws.sandbox_project import SandboxProject, shape, tried
from msgspec.structs import replace
from wire.second_dialect import answer_dialect_values, possible

from lmsconf.kinds.assignment.types import ContentRow, TargetRow
from lmsconf.kinds.custom_field.types import ChoiceRow, FieldRow
from lmsconf.kinds.group import GroupRow
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import CONTENT, CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.kinds.smart_group import ConditionRow, SmartGroupRow
from lmsconf.kinds.user.types import PersonRow
from lmsconf.model.address import RemoteId
from lmsconf.model.calls import CallStatus
from lmsconf.model.guards import Policy
from lmsconf.model.lint_codes import is_lint
from lmsconf.model.names import casefold_name
from lmsconf.model.plan import Plan
from lmsconf.model.snapshot import HasName, Snapshot
from lmsconf.workspace.export import ExportResult, export_snapshot

pytestmark = pytest.mark.sampled(day=4, gate=6)  # minutes in all

STRANGE: Final = (
    *NAMES, "", " ", "\u202egroup", "bell\x07", "\ud800", "line\nbreak", "- a", "a #b", "? c", "<<", "=", "-1", "0x1F",
    "2026-01-05", "12:30", "a:", "'", '"', "~", ".inf", "...", "---", "lmsconf-lock x", "x" * 2_000, "\u00a0", "\ttab",
)  # fmt: skip
"""Names as no sandbox gives them, with all that YAML could take for something else."""
MAILS: Final = ("", "bo@x.example", "BO@x.example", "no e-mail", "a@b@c", "\u200ebo@x.example", "ß@x.example", "x@\x85")
TIMES: Final = (None, "2024-02-29T00:00:00Z", "1767225600000", "soon", "2026-03-29T00:30:00Z", "9999-12-31T23:59:59Z")
OWNED: Final[tuple[Mapping[str, tuple[str, ...]], ...]] = (
    {}, {CONTENT_TARGET: ("declared_content",)}, {CONTENT_TARGET: ("all",), GROUP: ("all",), CUSTOM_FIELD: ("a*",)},
)  # fmt: skip


def exported(stage: SandboxProject, snapshot: Snapshot, policy: Policy, **more: object) -> ExportResult:
    """The export of a snapshot, on disk in place of the manifests."""
    found = export_snapshot(snapshot, policy, stage.workspace.connection.spec, **more)
    stage.rewrite({f"{section}.yaml": text for section, text in found.files.items()} or {"none.yaml": "groups: []"})
    return found


def exported_plan(
    stage: SandboxProject, owned: Mapping[str, tuple[str, ...]], people: bool, saved: Snapshot | None = None
) -> tuple[Plan, set[str | None]]:
    """The plan of an export, and the addresses that lmsconf owns and an export cannot declare.

    Beside these, and the assignments that go with them, nothing changes. saved: read in place of the live workspace.
    """
    policy = replace(stage.settings.policy, ownership=owned)
    kinds = tuple(kind for kind in KINDS if people or kind != USER)
    found = exported(stage, saved or stage.workspace.snapshot(), policy, only_kinds=kinds)
    plan = stage.workspace.plan_offline(stage.manifests(), policy, saved) if saved else stage.plan(policy)
    lost = {problem.address for problem in found.problems if problem.code == "export/owned"}
    along = {f"it goes with {one}" for one in lost}
    assert {str(one.address) for one in plan.changes if one.reason not in along} <= lost
    assert not lost or owned
    return plan, lost


@tried(200)
@given(worlds(), st.sampled_from(OWNED), st.booleans())
def test_the_first_plan_after_an_export_is_empty(
    opened: Open, world: RandomWorkspace, owned: Mapping[str, tuple[str, ...]], people: bool
) -> None:
    """Of whatever a workspace holds: odd names, names that are live twice, empty groups, unknown system conditions."""
    plan, lost = exported_plan(opened((world, RandomManifests())), owned, people)
    # What lints say of a workspace is no fault of its export.
    told = [problem for problem in plan.all_problems if not is_lint(problem)]
    warnings = {problem.code for problem in told if problem.severity != "note"}
    assert warnings <= ({"person/archived"} if owned else set()) | ({"refusal/live-twice"} if lost else set())


@st.composite
def strange(draw: st.DrawFn) -> dict[str, list[HasName]]:
    """Rows as a service may have them that keeps no order among names, ids and people."""
    dice = Dice(draw)
    ids = [f"u{number}" for number in range(dice.number(1, 5))]
    known = [*ids, "u-nobody"]
    mails = [*MAILS, *(f"{id}@x.example" for id in ids)]
    people = [PersonRow(RemoteId(id), dice.pick(mails), dice.chance(4), "Kim", admin=dice.chance(3)) for id in ids]
    fields: list[FieldRow] = []
    for number in range(dice.number(0, 4)):
        choices = [ChoiceRow(RemoteId(f"{number}-{n}"), dice.pick(STRANGE)) for n in range(dice.number(0, 3))]
        type = dice.pick(("CHOICE", "MULTI_SELECT", "TEXT", "DATE"))
        text = dice.pick((None, *STRANGE))
        fields.append(FieldRow(RemoteId(f"f{number}"), dice.pick(STRANGE), type, tuple(choices), text, dice.chance(2)))
    groups = [
        GroupRow(RemoteId(f"g{n}"), dice.pick(STRANGE), _ids(dice, known), _ids(dice, known))
        for n in range(dice.number(0, 4))
    ]
    smart = [
        SmartGroupRow(RemoteId(f"s{n}"), dice.pick(STRANGE), _conditions(dice, fields), _ids(dice, known))
        for n in range(dice.number(0, 3))
    ]
    contents = [ContentRow(RemoteId(f"c{n}"), dice.pick(STRANGE), "COURSE") for n in range(dice.number(0, 3))]
    to = [*known, "EVERYONE", *(row.id for row in groups), *(row.id for row in smart)]
    targets = [
        TargetRow(
            content=dice.pick(contents).id,
            target=RemoteId(dice.pick(to)),
            type=dice.pick(("GROUP", "USER", "")),
            mandatory=dice.chance(2),
            start=dice.pick(TIMES),
            finish=dice.pick(TIMES),
        )
        for _ in range(dice.number(0, 5) if contents else 0)
    ]
    return {
        USER: [*people], CUSTOM_FIELD: [*fields], GROUP: [*groups], SMART_GROUP: [*smart], CONTENT: [*contents],
        CONTENT_TARGET: sorted(targets, key=lambda one: one.id),
    }  # fmt: skip


def _ids(dice: Dice, known: list[str]) -> frozenset[RemoteId]:
    return frozenset(map(RemoteId, dice.some(known)))


def _conditions(dice: Dice, fields: list[FieldRow]) -> tuple[ConditionRow, ...]:
    """Conditions on fields and choices that may be gone."""
    found = []
    for _ in range(dice.number(1, 3)):
        one = dice.pick([*fields, FieldRow(RemoteId("f-gone"), "gone", "CHOICE")])
        choices = [*(choice.id for choice in one.choices), RemoteId("choice-gone")]
        found.append(ConditionRow(one.id, frozenset(dice.some(choices)), dice.pick((None, "IS_ANY", "OTHER\x07"))))
    return tuple(found)


@tried(200)
@given(strange(), st.sampled_from(OWNED), st.booleans())
def test_no_workspace_is_too_strange(
    opened: Open, rows: dict[str, list[HasName]], owned: Mapping[str, tuple[str, ...]], people: bool
) -> None:
    """Nor of what no service should hold: people nobody knows, names twice or none, times and types nobody can read."""
    stage = opened((RandomWorkspace(), RandomManifests()))
    empty = stage.workspace.snapshot()
    listings = {kind: replace(empty.of(kind), rows=tuple(rows[kind])) for kind in rows}
    exported_plan(stage, owned, people, replace(empty, listings={**empty.listings, **listings}))


@tried(80)
@given(wishes())
def test_what_is_added_to_manifests_changes_no_plan(opened: Open, both: Both) -> None:
    """An export into manifests that are there adds what they do not speak of, and their plan stays what it was."""
    stage = opened(both)
    before = stage.plan()
    if not before.changes and not stage.manifests().declared:
        return
    snapshot, policy, mine = stage.workspace.snapshot(), stage.settings.policy, stage.manifests()
    more = export_snapshot(snapshot, policy, stage.workspace.connection.spec, existing_manifests=mine)
    for section, text in more.files.items():
        (stage.settings.manifests / f"exported-{section}.yaml").write_text(text, encoding="utf-8")
    after = stage.plan()
    went = {str(change.address) for change in before.changes if change.reason is not None}
    kept = {str(change.address): change.after for change in before.changes if str(change.address) not in went}
    now = {str(change.address): change.after for change in after.changes}
    assert {address: form for address, form in now.items() if address not in went} == kept


@tried(60)
@given(worlds().filter(lambda world: _every_name_is_alone(world) and not world.archived))
def test_an_export_makes_the_workspace_again(opened: Open, world: RandomWorkspace) -> None:
    """Applied to an empty workspace with the same people and content, it gives one that is equal, ids aside."""
    stage = opened((world, RandomManifests()))
    assert not exported(stage, stage.workspace.snapshot(), stage.settings.policy).problems
    files = {path.name: path.read_text("utf-8") for path in stage.settings.manifests.iterdir()}
    before = shape(stage.look())
    bare = RandomWorkspace(people=world.people, contents=world.contents, dialect=world.dialect)
    other = opened((bare, RandomManifests()))
    other.rewrite(files)
    report = other.apply(other.plan())
    assert report.converged, report
    assert shape(other.look()) == before


def _every_name_is_alone(world: RandomWorkspace) -> bool:
    """Whether all that can be named is named by its name, and nobody takes it for another."""
    lists = [
        [one.name for one in world.fields], [one.name for one in world.groups],
        [one.name for one in world.smart_groups], [*world.contents.values()],
        *([name for _, name in one.choices] for one in world.fields),
    ]  # fmt: skip
    return all(max(Counter(map(casefold_name, names)).values(), default=1) == 1 for names in lists)


# What holds for all people and whatever is said of them: it settles, and what is not said stays as it is.


FIELDS: Final = (
    {"name": "Dept", "type": "CHOICE", "choices": ["A", "B", "C"]},
    {"name": "Skills / all", "type": "MULTI_SELECT", "choices": ["x", "y", "z"]},
    {"name": "Badge", "type": "TEXT"},
)
APPLICATIONS: Final = ("achievements", "analyse", "create", "learn", "follow-up")
KEYS: Final = {
    "first_name": "firstName",
    "last_name": "lastName",
    "language": "language",
    "admin": "admin",
    "manager": "manager",
    "applications": "applicationIds",
    "metadata": "metadata",
    "answers": "customFields",
    "archived": "archivedAt",
    "custom_archive_date": "customArchiveDate",
}
"""Manifest key → what the API says of it."""
Entry = dict[str, object]

_texts = st.sampled_from(["a", "b", "Åsa", "$(v)", "no", "1"])
_some = st.lists(st.sampled_from(APPLICATIONS), unique=True)
_answers = {
    "Dept": st.sampled_from(["A", "B", "C"]),
    "Skills / all": st.lists(st.sampled_from(["x", "y", "z"]), unique=True, min_size=1),
    "Badge": _texts,
}
_metadata = st.dictionaries(st.sampled_from(["k", "l", "cost centre"]), _texts)


def _maybe(**keys: st.SearchStrategy[object]) -> st.SearchStrategy[Entry]:
    return st.fixed_dictionaries({}, optional=keys)


_anybody = {
    "first_name": _texts,
    "last_name": _texts,
    "language": st.sampled_from(["en", "sv"]),
    **dict.fromkeys(("manager", "admin", "archived"), st.booleans()),
}
_live = _maybe(**_anybody, applications=_some, metadata=_metadata, answers=_maybe(**_answers))
_said = _maybe(
    **_anybody,
    applications=_some | _some.map(lambda one: {"include": one[:1], "exclude": one[1:]}),
    metadata=st.dictionaries(st.sampled_from(["k", "l", "cost centre"]), _texts | st.none()),
    answers=_maybe(**{field: said | st.none() for field, said in _answers.items()}),
    custom_archive_date=st.none() | st.sampled_from(["2031-01-05", "2032-02-29T12:30:15+01:00"]),
)
_dialects = st.fixed_dictionaries(
    {
        **{key: st.sampled_from(values) for key, values in answer_dialect_values().items()},
        "users.update-metadata.mode": st.sampled_from(["replace", "merge"]),
    }
).map(possible)


class PeopleWorkspace(RandomWorkspace):
    """Three people that may be declared, one that never is, and two admins, so that the plan locks nobody out."""

    crowd: list[Entry]

    def seed(self) -> dict[str, object]:
        rest: list[Entry] = [{"email": "z@x.example", "id": "p9"}]
        rest += [{"email": f"root{n}@x.example", "id": f"r{n}", "admin": True} for n in range(2)]
        named = [{"email": f"p{n}@x.example", "id": f"p{n}", **said} for n, said in enumerate(self.crowd)]
        return {"custom_fields": list(FIELDS), "people": [*named, *rest]}


@tried(120)
@given(st.lists(_live, min_size=3, max_size=3), st.lists(_said, min_size=4, max_size=4), _dialects)
def test_what_is_said_of_people_settles(
    opened: Open, live: list[Entry], said: list[Entry], dialect: dict[str, str]
) -> None:
    """After an apply the next plan is empty; keys and people that the manifest leaves out are as they were."""
    world = PeopleWorkspace(dialect=dialect)
    world.crowd = live
    entries = [{"email": f"P{n}@x.example", **one} for n, one in enumerate(said)]
    entries[3] |= {"first_name": "N", "last_name": "Ew", "language": "sv", "archived": False}
    entries = [one for one in entries if not (one.get("archived") and one.get("admin"))]
    dated = [one for one in entries if one.get("custom_archive_date") is not None]
    assume(not any(one.get("admin") or one.get("manager") for one in dated))
    stage = opened((world, RandomManifests(sections={"users": entries}))).with_accounts()
    plan = stage.plan()
    refused = any(problem.is_error for problem in plan.all_problems)
    event("refused" if refused else "applied")
    assume(not refused)
    before = {id: stage.get(f"/users/{id}") for id in ("p0", "p1", "p2", "p9", "r0", "r1")}
    if plan.calls:
        report = stage.apply(plan)
        assert [str(one) for one in report.outcomes if one.status is not CallStatus.DONE] == []
        assert report.converged, report.residue
    assert stage.plan().changes == ()
    spoken = {str(entry["email"]).lower().partition("@")[0]: entry for entry in entries}
    for id, was in before.items():
        _stays(was, stage.get(f"/users/{id}"), spoken.get(id, {}))


def _stays(was: Mapping[str, Any], now: Mapping[str, Any], entry: dict[str, Any]) -> None:
    for key, name in KEYS.items():
        if key not in entry:
            assert now.get(name) == was.get(name), (key, was, now)
    for key in ("metadata", "answers"):
        for part in was[KEYS[key]].keys() - entry.get(key, {}).keys():
            assert now[KEYS[key]][part] == was[KEYS[key]][part]
