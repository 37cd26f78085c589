"""Names that are live in the workspace, in every format of every view and in every command: nothing of them acts."""

import builtins
import collections.abc
import json
import types
import typing
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from enum import Enum
from functools import cache, partial
from pathlib import Path
from typing import Any, NewType, get_args, get_origin, get_type_hints

import pytest
from flow import shell
from msgspec import Struct
from msgspec.structs import replace

import lmsconf.render
from lmsconf.cli.output import report_problems
from lmsconf.errors import Problem
from lmsconf.kinds.kind_table import KINDS
from lmsconf.model.address import Address
from lmsconf.model.fleet import FleetIndex, SharedChanges
from lmsconf.model.outcomes import ApplyReport, RecordedRun
from lmsconf.model.plan import Change, FieldChange, GuardResult, Plan
from lmsconf.render import (
    APPLY_VIEWS,
    FLEET_VIEWS,
    PLAN_PROBLEMS_VIEWS,
    PLAN_VIEWS,
    PROBLEMS_VIEWS,
    RUN_VIEWS,
    RUNS_VIEWS,
)
from lmsconf.sandbox.service import Sandbox

from .active_content import HALF, JUDGES, NAMES, text

pytestmark = pytest.mark.sampled(day=8)

ALL = [*NAMES, *HALF]
PLAIN = [f"name {number}" if name.strip() else name for number, name in enumerate(ALL)]
NOW = datetime(2026, 6, 1, tzinfo=UTC)
SAID_BY_LMSCONF: Mapping[str, object] = {
    **dict.fromkeys(("created_at", "expires_at", "started_at", "finished_at", "taken_at"), "2026-06-01T00:00:00Z"),
    **dict.fromkeys(("digest", "plan_digest", "manifests_digest", "sha256", "previous_sha256"), "ab" * 32),
    "code": "a/b",
    "operation": "manual-groups.rename",
    "method": "PUT",
    "masked_digest": None,
    "change": "lose",
    "before": "mandatory",
    "after": "none",
}
"""Fields whose texts are neither the service's nor a file's: moments, digests and words of lmsconf."""


def filled(kind: Any, name: str, number: int) -> Any:
    """A value of a type of the model with that name in the place of every text, and the choice of that number."""
    first, *_ = get_args(kind) or (kind,)
    if kind in (Any, object):
        return {
            "description": name,
            "members": [name, name],
            "choices": [{"name": name, "id": name}],
            name: name,
            "conditions": [{"field": name, "choices": [name, name], "system_condition": name}],
        }
    match get_origin(kind):
        case None if isinstance(kind, NewType) or kind is str:
            return name
        case builtins.tuple if first is FieldChange:
            items: dict[str, Any] = {"added": (name, {"name": name, "k": name}), "removed": (name,)}
            return FieldChange(path=name, before=name, after=name), FieldChange(path="members", **items)
        case builtins.tuple:
            return (filled(first, name, number),)
        case collections.abc.Mapping:
            return {name: filled(get_args(kind)[1], name, number)}
        case types.UnionType | typing.Union:
            return filled(first, name, number)
        case typing.Literal:
            return first
    if issubclass(kind, Struct):
        hints = _hints(kind)
        texts = {field for field in kind.__struct_fields__ if str in (hints[field], *get_args(hints[field]))}
        said = {**SAID_BY_LMSCONF, "address": str(filled(Address, name, number)), "hint": f"{name}\n{name}"}
        own = {field: text for field, text in said.items() if field in texts}
        own |= {"tripped": True} if kind is GuardResult else {}
        rest = {*kind.__struct_fields__} - own.keys()
        return kind(**own, **{field: filled(hints[field], name, number) for field in rest})
    if issubclass(kind, Enum):
        return list(kind)[number % len(kind)]
    if issubclass(kind, Address):
        return Address.of(list(KINDS)[number % len(KINDS)], name)
    return {bool: False, int: 1, float: 1.0, datetime: NOW, Path: Path("journal")}[kind]


_hints = cache(get_type_hints)


def each(kind: Any, names: list[str]) -> tuple[Any, ...]:
    """A value of that type for each name."""
    return tuple(filled(kind, name, number) for number, name in enumerate(names))


def fleet(names: list[str]) -> FleetIndex:
    """A fleet whose workspaces, labels, changes, blockers and errors are names."""
    made = each(Change, names)
    shared = (
        SharedChanges(changes=made, workspaces=tuple(names)),
        SharedChanges(changes=made, workspaces=(names * len(made))[: len(made)], one_each=True),
    )
    return replace(whole(FleetIndex, names), shared=shared)


def whole(kind: Any, names: list[str]) -> Any:
    """A document of that type, whose lists have an item for each name."""
    hints = _hints(kind)
    lists = {field: get_args(hints[field])[0] for field in kind.__struct_fields__ if get_origin(hints[field]) is tuple}
    return replace(filled(kind, names[0], 0), **{field: each(item, names) for field, item in lists.items()})


VIEWS: dict[str, tuple[Mapping[str, Callable[..., str]], Callable[[list[str]], object]]] = {
    "plan": (PLAN_VIEWS, partial(whole, Plan)),
    "plan problems": (PLAN_PROBLEMS_VIEWS, partial(whole, Plan)),
    "apply": (APPLY_VIEWS, partial(whole, ApplyReport)),
    "problems": (PROBLEMS_VIEWS, partial(each, Problem)),
    "runs": (RUNS_VIEWS, partial(each, RecordedRun)),
    "run": (RUN_VIEWS, partial(whole, RecordedRun)),
    "fleet": (FLEET_VIEWS, fleet),
}
CASES = [(subject, format) for subject, (views, _) in VIEWS.items() for format in views]


def test_no_view_is_forgotten() -> None:
    """Every table of views that there is stands in these tests."""
    tables = [
        table for name, table in vars(lmsconf.render).items() if name.endswith("_VIEWS") and name not in _ELSEWHERE
    ]
    assert all(any(table is known for known, _ in VIEWS.values()) for table in tables)
    assert {"text", "json"} <= {format for _, format in CASES}


_ELSEWHERE = {
    *("DRIFT_VIEWS", "SNAPSHOT_VIEWS", "ACCESS_VIEWS", "AUDIENCE_VIEWS", "TEST_VIEWS", "EXPLAIN_VIEWS", "GRAPH_VIEWS"),
}
"""A drift is a plan in other words, a snapshot is shown below, and tests/views has hostile names for people.

A graph has declared names: tests/cli/test_validate.py.

What is explained comes from the schema, and has no names of a workspace.
"""


@pytest.mark.sampled(gate=3)
@pytest.mark.parametrize(("subject", "format"), CASES)
def test_every_format_of_every_view(subject: str, format: str) -> None:
    """With hostile names a document has exactly the active parts that it has with plain ones."""
    views, make = VIEWS[subject]
    judge = JUDGES[format]
    assert judge(views[format](make(ALL))) == judge(views[format](make(PLAIN)))


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(("subject", "format"), [case for case in CASES if case[1] == "json"])
def test_json_gives_names_back(subject: str, format: str) -> None:
    """JSON holds every name exactly, to the last half character."""
    views, make = VIEWS[subject]
    assert set(ALL) - {""} <= set(_texts(json.loads(views[format](make(ALL)))))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        yield from (text for item in value.values() for text in _texts(item))
    elif isinstance(value, list):
        yield from (text for item in value for text in _texts(item))


def test_problems_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """Problems that name them are told on stderr, and act there no more than elsewhere."""
    report_problems(each(Problem, ALL))
    told = capsys.readouterr()
    assert text(told.err) == []
    assert told.out == ""


LIVE = [name for name in NAMES if name.strip() and len(name) < 1_000]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose workspace has a group and a content of each name, and wants to delete all groups but one."""
    root = tmp_path_factory.mktemp("live")
    (root / "manifests").mkdir()
    (root / "manifests" / "a.yaml").write_text(
        "groups: [{name: Kept}]\ncontent_targets: [{content: {name: GDPR, id: c-0}, assign_to: [everyone]}]\n"
        "smart_groups: [{name: Unknown, conditions: [{field: no such field, choices: [a]}], only_in: [none]}]\n"
    )
    (root / "lmsconf.yaml").write_text(
        "workspaces: {live: {url: 'sandbox:live.db'}, none: {url: 'sandbox:'}}\ndefault_workspace: live\n"
        "ownership: {groups: all, smart_groups: all}\nguards: {deletes: off, removals: off, recreates: off}\n"
    )
    sandbox = Sandbox(root / "live.db")
    course = "INSERT INTO contents (id, type, name, description, price, updated_at) VALUES (?, 'COURSE', ?, ?, 0, 0)"
    with sandbox.store.write_transaction() as repository:
        for number, name in enumerate(["GDPR", *LIVE]):
            repository.execute(course, f"c-{number}", name, name)
    headers = {"authorization": "Bearer sandbox", "content-type": "application/json"}
    for name in LIVE:
        assert sandbox.answer("POST", "/groups", "", headers, json.dumps({"name": name}).encode()).status < 300
    sandbox.close_workspace()
    return root


def printed(root: Path, *arguments: str, code: int | None = None) -> str:
    """What one command prints. code: what it has to exit with."""
    told = shell.lmsconf(root, *arguments, code=code)
    assert text(told.err) == [], arguments
    return told.out


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("format", PLAN_VIEWS)
def test_plan_show_and_apply(format: str, project: Path, tmp_path: Path) -> None:
    """Names that are live in the workspace act in no output of plan, show, snapshot and apply."""
    # A page has nodes of its own: those of plain and hostile names are compared above.
    judge = JUDGES[format] if format in ("text", "json") else text
    saved, state = tmp_path / "plan.json", tmp_path / "snapshot.json"
    assert judge(printed(project, "plan", "--format", format, "--out", str(saved), code=0)) == []
    assert len(json.loads(saved.read_text())["changes"]) > len(LIVE) - 5
    assert judge(printed(project, "show", str(saved), "--format", format)) == []
    printed(project, "snapshot", str(state), code=0)
    assert JUDGES["json"](state.read_text()) == []
    assert judge(printed(project, "show", str(state), "--format", format)) == []
    assert judge(printed(project, "plan", "--snapshot", str(state), "--format", format, code=0)) == []
    assert judge(printed(project, "doctor", "--format", format)) == []
