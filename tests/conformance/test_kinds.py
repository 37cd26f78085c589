"""Every kind is asked the same questions. A new kind needs only its samples."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest
import yaml
from jsonschema import Draft202012Validator
from laws.random_manifests import RandomManifests
from laws.random_workspaces import RandomWorkspace
from laws.sandbox_project import SandboxProject, open_stage
from texts import text_of

from lmsconf.api.spec import ApiSpec
from lmsconf.kinds.kind_table import KINDS
from lmsconf.kinds.shared.kind_names import Kind, row_type_of
from lmsconf.kinds.shared.rename_and_list_steps import fill_refs_in_path
from lmsconf.manifest.schema_check import branches_of, declared_section, sections_by_path
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Action, Plan
from lmsconf.planner.plan import desired_state_of_changes

pytestmark = pytest.mark.sampled(day=8)

KINDS = list(KINDS.values())
SAMPLES = yaml.safe_load(text_of(__file__, "samples.yaml"))
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
Planned = Callable[..., tuple[SandboxProject, Plan]]


class SeededWorkspace(RandomWorkspace):
    """A world that is a seed already."""

    def seed(self) -> dict[str, object]:
        return dict(SAMPLES["seed"])


@pytest.fixture
def planned(tmp_path: Path) -> Iterator[Planned]:
    """The plan of some entries of one kind, declared or absent, on the sample workspace."""
    stages: list[SandboxProject] = []

    def plan(kind: Kind, entries: list[dict[str, Json]], *, absent: bool = False) -> tuple[SandboxProject, Plan]:
        said: dict[str, list[dict[str, object]]] = {kind.section: [dict(entry) for entry in entries]}
        wish = RandomManifests(absent=said) if absent else RandomManifests(sections=said)
        world = SeededWorkspace(dialect={"custom-fields.in-use": "never"})
        stages.append(open_stage(tmp_path, world, wish).with_accounts())
        return stages[-1], stages[-1].plan()

    yield plan
    for stage in stages:
        stage.sandbox.close_workspace()


def _every_plan(planned: Planned, kind: Kind) -> Iterator[tuple[SandboxProject, Plan]]:
    yield planned(kind, SAMPLES["new"][kind.name])
    yield planned(kind, SAMPLES["changed"][kind.name])
    if kind.name in SAMPLES["gone"]:
        yield planned(kind, SAMPLES["gone"][kind.name], absent=True)


@every_kind
def test_there_are_samples(planned: Planned, kind: Kind) -> None:
    """The samples of a kind create, change and delete, so that the other questions ask something."""
    created, changed, *gone = (plan for _, plan in _every_plan(planned, kind))
    assert {change.action for change in created.changes} == {Action.CREATE}
    assert {change.action for change in changed.changes} == {Action.UPDATE}
    for plan in gone:
        assert {change.action for change in plan.changes if change.address.kind == kind.name} == {Action.DELETE}
    assert gone or kind.name == "user"


@every_kind
def test_only_an_update_lists_differences(planned: Planned, kind: Kind) -> None:
    """What is created or deleted is shown as a whole, and has no keys that differ."""
    for _, plan in _every_plan(planned, kind):
        assert [bool(one.fields) for one in plan.changes] == [one.action is Action.UPDATE for one in plan.changes]


@every_kind
def test_what_is_shown_is_read_as_what_was_declared(planned: Planned, kind: Kind) -> None:
    """Parse, show, parse again: a creation's form in the plan declares the same value as the manifest did."""
    stage, plan = planned(kind, SAMPLES["new"][kind.name])
    said = {one.address: one.spec for one in stage.manifests().declared}
    assert {address.kind for address in said} == {kind.name}
    assert {one.address: one.spec for one in desired_state_of_changes(plan).declared} == said


@every_kind
def test_a_change_that_was_made_is_not_made_again(planned: Planned, kind: Kind) -> None:
    """The forms of a plan, read as manifests, want nothing more once the plan was applied."""
    for stage, plan in _every_plan(planned, kind):
        assert stage.apply(plan).converged is True
        replayed = stage.workspace.plan(desired_state_of_changes(plan), stage.settings.policy)
        assert replayed.changes == ()


@every_kind
def test_every_call_is_one_of_the_description(planned: Planned, kind: Kind) -> None:
    """Operation, method, path and body of every call are those that the API description has, and it writes."""
    spec = ApiSpec.default()
    for _, plan in _every_plan(planned, kind):
        assert plan.calls
        for call in plan.calls:
            route = spec.match_route(call.method, fill_refs_in_path(call.path, defaultdict(lambda: "new")))
            assert route is not None
            assert route[0].id == call.operation
            assert route[0].writes
            spec[call.operation].refuse_unknown_names(cast("dict[str, object]", call.body or {}))


@every_kind
def test_schemas_are_json_schemas(kind: Kind) -> None:
    """The shapes of an entry, declared and absent, are valid JSON Schema, and describe each of their keys."""
    absent = sections_by_path()[("absent", kind.section)].shape.schema
    for schema in (declared_section(kind).shape.schema, (branches_of(absent) or [absent])[-1]):
        Draft202012Validator.check_schema(schema)
        properties = cast("dict[str, dict[str, object]]", schema["properties"])
        assert [key for key, said in properties.items() if not said.get("description")] == []


@every_kind
def test_samples_fit_the_schemas(kind: Kind) -> None:
    """What the samples say is what the shapes allow, and an unknown key is not."""
    shape = Draft202012Validator(declared_section(kind).shape.schema)
    for entry in [*SAMPLES["new"][kind.name], *SAMPLES["changed"][kind.name]]:
        assert list(shape.iter_errors(entry)) == []
        assert list(shape.iter_errors({**entry, "nmae": "x"})) != []
    gone = Draft202012Validator(sections_by_path()[("absent", kind.section)].shape.schema)
    assert [error for entry in SAMPLES["gone"].get(kind.name, []) for error in gone.iter_errors(entry)] == []


@every_kind
def test_forms_hold_names_and_no_ids(planned: Planned, kind: Kind) -> None:
    """What a plan shows for review speaks of names and e-mails; an id stands there only where a manifest pinned it."""
    for stage, plan in _every_plan(planned, kind):
        ids = {id.rpartition("/")[2] for _, id in stage.look()} | {"ch-1", "ch-2"}
        ids -= {"EVERYONE", "c2"}  # a reserved word, and what a sample pins
        forms: list[object] = [[one.before, one.after] for one in plan.changes]
        forms += [
            [field.before, field.after, field.added, field.removed] for one in plan.changes for field in one.fields
        ]
        assert ids
        assert ids.isdisjoint(_texts(forms))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _texts(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item)


def test_every_listing_is_of_one_kind() -> None:
    """Snapshot files hold each row type under its own key, and a kind has rows of its own type among them."""
    listings = [row_type.listing for kind in KINDS for row_type in kind.row_types]
    assert len(set(listings)) == len(listings)
    assert all(row_type_of(kind) in kind.row_types and row_type_of(kind).listing == kind.name for kind in KINDS)
