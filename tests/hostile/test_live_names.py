"""Names that are live in the workspace, in every format of every view and in every command: nothing of them acts."""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path

import pytest
from flow import shell
from msgspec.structs import replace

import lmsconf.render
from lmsconf.cli.output import report_problems
from lmsconf.cli.terminal import progress_lines
from lmsconf.errors import ExitCode, Problem, Severity, SourceLocation
from lmsconf.kinds.kind_table import KINDS
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Call, CallStatus, RunProgress
from lmsconf.model.fleet import FleetAction, FleetEntry, FleetIndex, FleetReport, SharedChanges
from lmsconf.model.outcomes import (
    ApplyReport,
    CallOutcome,
    CallState,
    JournalHeader,
    RecordedCall,
    RecordedRun,
    RunEnding,
    VerifiedScope,
    VerifyMode,
)
from lmsconf.model.plan import Action, Change, FieldChange, GuardCount, GuardResult, Plan, PlanScope, UnmanagedResources
from lmsconf.model.problem_codes import Blocker
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


def changes(names: list[str]) -> Iterator[Change]:
    """A change of every sort, with a name in every place that holds text."""
    for number, name in enumerate(names):
        address = Address.of(list(KINDS)[number % len(KINDS)], name)
        form = {
            "description": name,
            "members": [name, name],
            "choices": [{"name": name, "id": name}],
            name: name,
            "conditions": [{"field": name, "choices": [name, name], "system_condition": name}],
        }
        action = list(Action)[number % len(Action)]
        yield Change(
            address=address,
            action=action,
            id=RemoteId(name),
            about={name: name, "owner": [name]},
            source=SourceLocation(name, 1, 1),
            before=None if action is Action.CREATE else form,
            after=None if action is Action.DELETE else form,
            fields=(
                FieldChange(path=name, before=name, after=name),
                FieldChange(path="members", added=(name, {"name": name, "k": name}), removed=(name,)),
            ),
            problems=(problem(name),),
            defaults=(name,),
            reason=name,
        )


def problem(name: str) -> Problem:
    return Problem(
        code="a/b",
        message=name,
        severity=Severity.WARNING,
        hint=f"{name}\n{name}",
        source=SourceLocation(name, 2),
        address=str(Address.of("group", name)),
    )


def plan(names: list[str]) -> Plan:
    """A plan full of names."""
    addresses = tuple(Address.of("group", name) for name in names)
    return Plan(
        workspace=names[0],
        url=names[1],
        people=1,
        created_at="2026-06-01T00:00:00Z",
        expires_at="2026-03-08T08:00:00Z",
        policy={},
        manifests_digest="ab" * 32,
        manifests_files=tuple(names),
        selection=PlanScope(only=tuple(names), excluded=tuple(names)),
        offline=True,
        timezone=names[2],
        changes=tuple(changes(names)),
        calls=tuple(
            Call(
                id=f"c{n}",
                address=Address.of("group", name),
                operation="manual-groups.rename",
                method="PUT",
                path=f"/{name}",
                query={name: name},
                body={name: name},
            )
            for n, name in enumerate(names)
        ),
        guards=tuple(
            GuardResult(name=name, limit={name: name}, total=1, tripped=True, allow=f"{name}=1", reason=name)
            for name in names
        ),
        unmanaged=tuple(UnmanagedResources(kind="group", addresses=(one,)) for one in addresses),
        fingerprints={str(one): "5f" * 32 for one in addresses},
        problems=tuple(map(problem, names)),
        left_out=addresses,
        measures=tuple(GuardCount(guard="removals", of=name, taken=1, size=1) for name in names),
    )


def apply_report(names: list[str]) -> ApplyReport:
    """A report full of names."""
    statuses = list(CallStatus)
    return ApplyReport(
        plan_digest="ab" * 32,
        workspace=names[0],
        url=names[1],
        people=None,
        started_at="2026-06-01T00:00:00Z",
        finished_at="2026-06-01T00:00:00Z",
        outcomes=tuple(
            CallOutcome(
                call=f"c{n}",
                address=Address.of("group", name),
                operation="a.b",
                status=statuses[n % len(statuses)],
                reason=name,
                hint=f"{name}\n{name}",
                id=name,
            )
            for n, name in enumerate(names)
        ),
        verified=VerifiedScope(scope=VerifyMode.ALL, resources=1, reason=names[0]),
        converged=False,
        residue=tuple(changes(names)),
        problems=tuple(map(problem, names)),
        meta={name: name for name in names},
        exit=5,
    )


def recorded(names: list[str]) -> list[RecordedRun]:
    """Runs full of names."""
    return [
        RecordedRun(
            name=name,
            opening=JournalHeader(
                digest="ab", workspace=name, url=name, started=NOW, tool=name, calls=1, meta={name: name}
            ),
            calls=(
                RecordedCall(
                    call="c1",
                    address=Address("group", name),
                    operation=name,
                    status=CallState.FAILED,
                    reason=name,
                    id=name,
                ),
            ),
            ending=RunEnding(at=NOW, exit=5, verified=VerifyMode.NONE, converged=None),
        )
        for name in names
    ]


def one_run(names: list[str]) -> RecordedRun:
    return replace(recorded(names[:1])[0], calls=tuple(one.calls[0] for one in recorded(names)))


def problems(names: list[str]) -> list[Problem]:
    return [problem(name) for name in names]


def fleet(names: list[str]) -> FleetReport:
    """A fleet whose workspaces, labels, changes, blockers and errors are names."""
    entries = tuple(
        FleetEntry(
            workspace=name,
            url=name,
            labels={name: name},
            exit=code,
            summary={"create": 1},
            blocked=(Blocker(type="guard", name=name, message=name),),
            problems=(problem(name),),
        )
        for name in names
        for code in (ExitCode.CHANGES, ExitCode.ERROR)
    )
    made = tuple(changes(names))
    shared = (
        SharedChanges(changes=made, workspaces=tuple(names)),
        SharedChanges(changes=made, workspaces=(names * len(made))[: len(made)], one_each=True),
    )
    index = FleetIndex(action=FleetAction.PLAN, created_at="2026-06-01T00:00:00Z", entries=entries)
    return FleetReport(index=index, shared=shared)


VIEWS: dict[str, tuple[Mapping[str, Callable[..., str]], Callable[[list[str]], object]]] = {
    "plan": (PLAN_VIEWS, plan),
    "plan problems": (PLAN_PROBLEMS_VIEWS, plan),
    "apply": (APPLY_VIEWS, apply_report),
    "problems": (PROBLEMS_VIEWS, problems),
    "runs": (RUNS_VIEWS, recorded),
    "run": (RUN_VIEWS, one_run),
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


@pytest.mark.sampled
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


def test_lines_of_a_run() -> None:
    """The label of a progress is one line, whatever it says."""
    stream = StringIO()
    for outcome in apply_report(ALL).outcomes:
        with progress_lines(stream, outcome.reason or "") as tell:
            tell(RunProgress(done=100, total=200, is_final=True))
    assert text(stream.getvalue()) == []
    assert stream.getvalue().count("\n") == len(ALL)


def test_problems_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    """Problems that name them are told on stderr, and act there no more than elsewhere."""
    report_problems(problems(ALL))
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
    with sandbox.store.write_transaction() as repository:
        for number, name in enumerate(["GDPR", *LIVE]):
            repository.execute(
                "INSERT INTO contents (id, type, name, description, price, updated_at) VALUES (?, 'COURSE', ?, ?, 0, 0)",  # noqa: E501  SQL in one piece
                f"c-{number}",
                name,
                name,
            )
    headers = {"authorization": "Bearer sandbox", "content-type": "application/json"}
    for name in LIVE:
        body = json.dumps({"name": name}).encode()
        assert sandbox.answer("POST", "/groups", "", headers, body).status < 300
    sandbox.close_workspace()
    return root


def printed(root: Path, *arguments: str, code: int | None = None) -> str:
    """What one command prints. code: what it has to exit with."""
    told = shell.lmsconf(root, *arguments, code=code)
    assert text(told.err) == [], arguments
    return told.out


@pytest.mark.sampled
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
