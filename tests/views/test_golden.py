"""Every view of every sample, as it was read and found good."""

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from fleet.fleet_project import FLEETS
from json_schemas import schema_validator
from msgspec.structs import replace
from views.document_samples import BASICS, COACHES, DEPARTMENT, EVIL, HASH, NORDICS, PLANS, REPORTS
from views.drift_samples import DRIFTS

from lmsconf.cli import app, run_command_line
from lmsconf.documents import plan_file
from lmsconf.documents.reports import problems_json
from lmsconf.errors import ExitCode, Problem, Severity, SourceLocation
from lmsconf.model.access import AccessClaim, AccessTest, AccessTestReport, AccessTestResult
from lmsconf.model.address import Address
from lmsconf.model.outcomes import CallState, JournalHeader, RecordedCall, RecordedRun, RunEnding, VerifyMode
from lmsconf.model.plan import Plan
from lmsconf.render import APPLY_VIEWS, DRIFT_VIEWS, FLEET_VIEWS, PLAN_VIEWS, RUN_VIEWS, RUNS_VIEWS, TEST_VIEWS
from lmsconf.render.ci_formats import problems_github
from lmsconf.render.escape import parse_size_limit
from lmsconf.render.markdown import problems_markdown
from lmsconf.render.text import problems_text

Compare = Callable[[str, str], None]
SUFFIX = {"text": "txt", "markdown": "md"}
ASSETS = re.compile(r"<(style|script)>.*?</\1>|sha256-[\w+/=]+", re.DOTALL)


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("view", PLAN_VIEWS)
def test_plans_read_as_they_did(name: str, view: str, golden: Compare) -> None:
    """Each plan reads in each format as its golden file does."""
    golden(f"plan_{name}.{SUFFIX.get(view, view)}", _stable(PLAN_VIEWS[view](PLANS[name])))


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("view", APPLY_VIEWS)
def test_reports_read_as_they_did(name: str, view: str, golden: Compare) -> None:
    """Each apply report reads in each format as its golden file does."""
    golden(f"apply_{name}.{SUFFIX.get(view, view)}", _stable(APPLY_VIEWS[view](REPORTS[name])))


@pytest.mark.parametrize("name", DRIFTS)
@pytest.mark.parametrize("view", ["markdown", "html"])
def test_drift_reads_as_it_did(name: str, view: str, golden: Compare) -> None:
    """Each drift report reads in the formats for comments and browsers as its golden file does."""
    golden(f"drift_{name}.{SUFFIX.get(view, view)}", _stable(DRIFT_VIEWS[view](DRIFTS[name])))


@pytest.mark.parametrize("name", FLEETS)
@pytest.mark.parametrize("view", FLEET_VIEWS)
def test_fleets_read_as_they_did(name: str, view: str, golden: Compare) -> None:
    """The results of each fleet read in each format as their golden file does."""
    golden(f"fleet_{name}.{SUFFIX.get(view, view)}", _stable(FLEET_VIEWS[view](FLEETS[name])))


def test_problems_read_as_they_did(golden: Compare) -> None:
    """Problems are listed with place, reason, code and way out, then counted."""
    problems = [problem for plan in PLANS.values() for problem in plan.all_problems]
    golden("problems.txt", problems_text(problems))
    golden("problems.json", _stable(problems_json(problems)))


def _stable(text: str) -> str:
    """The text without what a release changes: the version, and with it the seal; in a page its style and script."""
    if text.startswith("<!doctype html>"):
        return ASSETS.sub("…", text).replace("><", ">\n<")
    if not text.startswith("{"):
        return text
    document = json.loads(text)
    lines = text.splitlines(keepends=True)
    hidden = {'  "tool"': '  "tool": …,\n', '  "seal"': '  "seal": …,\n'}
    assert set(document) >= {"tool"}
    return "".join(hidden.get(line.partition(":")[0], line) for line in lines)


# Every view of judged tests, as it was read and found good.


JUDGED_SUFFIX = {"text": "txt", "junit": "xml"}
JUDGED_COACHES, JUDGED_NORDICS = Address("group", "Coaches"), Address("smart_group", "Nordics")


def case(claim: AccessClaim, *audiences: Address, line: int = 3, **more: object) -> AccessTest:
    at = SourceLocation("manifests/tests.yaml", line, 5)
    one = AccessTest(claim=claim, audiences=audiences, source=at, mandatory=False)
    return replace(one, **more)  # type: ignore[arg-type]  # its own fields


TESTS = (
    case(
        AccessClaim.ALL,
        JUDGED_NORDICS,
        content="GDPR",
        mandatory=True,
        name="All must",
        about={"ticket": "L-1", "n": 2},
    ),
    case(AccessClaim.NONE, JUDGED_COACHES, content="GDPR", line=4),
    case(AccessClaim.SIZE, JUDGED_COACHES, least=300, most=1600, line=5),
    case(AccessClaim.SIZE, JUDGED_COACHES, least=3, most=3, line=6),
    case(AccessClaim.SIZE, JUDGED_COACHES, most=3, line=7),
    case(AccessClaim.SIZE, JUDGED_COACHES, least=3, line=8),
    case(AccessClaim.DISJOINT, JUDGED_COACHES, JUDGED_NORDICS, line=9),
    case(AccessClaim.HAS, Address("user", "bo@acme.example"), content="GDPR", line=10),
    case(
        AccessClaim.HAS_NOT,
        Address("user", "bo@acme.example"),
        content="GDPR",
        source=SourceLocation("manifests/tests.yaml", 11, 5, "who=bo"),
    ),
)
HOSTILE = case(
    AccessClaim.ALL,
    Address("group", EVIL),
    content=EVIL,
    name=EVIL,
    about={EVIL: [EVIL]},
    source=SourceLocation(EVIL, 1),
)
REPORT = AccessTestReport(
    workspace="production",
    url="https://lms.example/api",
    people=1200,
    created_at="2026-03-01T08:00:00Z",
    live=False,
    results=tuple(AccessTestResult(test=test, reason="7 of 9 people have it") for test in TESTS),
)
JUDGED_REPORTS = {
    "failed": REPORT,
    "passed": replace(REPORT, live=True, results=tuple(AccessTestResult(test=test) for test in TESTS)),
    "none": replace(REPORT, results=(), people=None),
    "hostile": replace(REPORT, results=(AccessTestResult(test=HOSTILE, reason=EVIL),)),
}


@pytest.mark.parametrize("name", JUDGED_REPORTS)
@pytest.mark.parametrize("view", TEST_VIEWS)
def test_results_read_as_they_did(name: str, view: str, golden: Compare) -> None:
    """Each report reads in each format as its golden file does."""
    text = TEST_VIEWS[view](JUDGED_REPORTS[name])
    lines = ('  "tool": …,\n' if line.startswith('  "tool"') else line for line in text.splitlines(keepends=True))
    golden(f"test_{name}.{JUDGED_SUFFIX.get(view, view)}", "".join(lines))


# Every view of the runs that journals tell of, as it was read and found good.


BEGAN = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


def at(seconds: int) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def call(number: int, address: Address, operation: str, state: CallState, **more: str) -> RecordedCall:
    blocked = state in (CallState.BLOCKED, CallState.NOT_ATTEMPTED)
    return RecordedCall(
        call=f"c{number}",
        address=address,
        operation=operation,
        status=state,
        begun=None if blocked else at(number),
        ended=None if state is CallState.IN_FLIGHT else at(number + 1),
        reason=more.get("reason"),
        id=more.get("id"),
    )


OPENING = JournalHeader(
    digest=HASH,
    workspace="production",
    url="https://lms.example/api",
    started=BEGAN,
    tool="0.1.0",
    calls=3,
    meta={"commit": "9f3c", "approver": "cy"},
)
COMPLETE = RecordedRun(
    name="20260301T080000Z-5f5f5f5f5f5f",
    opening=OPENING,
    calls=(
        call(1, DEPARTMENT, "custom-fields.create", CallState.DONE, id="f-1"),
        call(2, NORDICS, "smart-groups.create", CallState.DONE, id="s-1"),
        call(3, BASICS, "content-targets.create", CallState.DONE),
    ),
    ending=RunEnding(at=at(9), exit=0, verified=VerifyMode.ALL, converged=True),
)
PARTIAL = replace(
    COMPLETE,
    name="20260301T080000Z-5f5f5f5f5f5f-2",
    calls=(
        call(1, DEPARTMENT, "custom-fields.replace", CallState.FAILED, reason="403: the field is in use"),
        call(2, NORDICS, "smart-groups.create", CallState.BLOCKED, reason="it needs c1, which was not done"),
        call(3, BASICS, "content-targets.create", CallState.NOT_ATTEMPTED, reason="the run was interrupted before it"),
    ),
    ending=RunEnding(at=at(9), exit=5, verified=VerifyMode.TOUCHED, converged=False),
)
CUT_SHORT = replace(
    COMPLETE,
    name="20260302T080000Z-5f5f5f5f5f5f",
    opening=replace(OPENING, calls=1200, meta={}),
    calls=(
        call(1, DEPARTMENT, "custom-fields.create", CallState.DONE, id="f-1"),
        call(2, COACHES, "manual-groups.create", CallState.IN_FLIGHT),
    ),
    ending=None,
    damaged=1,
)
UNKNOWN = RecordedRun(name="20260303T080000Z-5f5f5f5f5f5f", damaged=2)
RUNS_HOSTILE = RecordedRun(
    name=EVIL,
    opening=replace(OPENING, workspace=EVIL, url=EVIL, tool=EVIL, digest=EVIL, meta={EVIL: EVIL}),
    calls=(
        replace(
            call(1, Address.of("group", EVIL), EVIL, CallState.FAILED, reason=f"::error::{EVIL}", id=EVIL), call=EVIL
        ),
    ),
)
RUNS = {"complete": COMPLETE, "partial": PARTIAL, "cut_short": CUT_SHORT, "unknown": UNKNOWN, "hostile": RUNS_HOSTILE}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("view", RUN_VIEWS)
def test_runs_read_as_they_did(name: str, view: str, golden: Compare) -> None:
    """Each run reads in each format as its golden file does."""
    golden(f"run_{name}.{'txt' if view == 'text' else view}", _runs_stable(RUN_VIEWS[view](RUNS[name])))


@pytest.mark.parametrize("view", RUNS_VIEWS)
def test_the_list_reads_as_it_did(view: str, golden: Compare) -> None:
    """All of them in a list read in each format as the golden file does."""
    golden(f"runs.{'txt' if view == 'text' else view}", _runs_stable(RUNS_VIEWS[view](list(RUNS.values()))))


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        *(("plan", PLAN_VIEWS["json"](plan)) for plan in PLANS.values()),
        *(("apply", APPLY_VIEWS["json"](report)) for report in REPORTS.values()),
        *(("fleet", FLEET_VIEWS["json"](report)) for report in FLEETS.values()),
        *(("problems", problems_json(plan.all_problems)) for plan in PLANS.values()),
        *(("test", TEST_VIEWS["json"](report)) for report in JUDGED_REPORTS.values()),
        *(("runs", RUN_VIEWS["json"](run)) for name, run in RUNS.items() if name != "hostile"),
        *(("runs", RUNS_VIEWS["json"]([run])) for name, run in RUNS.items() if name != "hostile"),
    ],
)
def test_documents_fit_their_schemas(schema: str, text: str) -> None:
    """Every document is what its JSON Schema says, and one with an unknown key is not."""
    validator, document = schema_validator(schema), json.loads(text)
    assert [error.message for error in validator.iter_errors(document)] == []
    assert not validator.is_valid({**document, "extra": 1})


def _runs_stable(text: str) -> str:
    """The text without the version that wrote it, which a release changes."""
    return "".join('  "tool": …,\n' if line.startswith('  "tool"') else line for line in text.splitlines(keepends=True))


# What scripts take from a plan file: `lmsconf show --format digest` and `--format gitlab`.


def shown(plan: Plan, format: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command prints of a saved plan."""
    path = folder / "plan.json"
    path.write_text(plan_file.dumps(plan), encoding="utf-8")
    assert run_command_line(app, ["show", str(path), "--format", format]) == ExitCode.OK
    return capsys.readouterr().out


@pytest.mark.parametrize("name", PLANS)
def test_the_digest_stands_alone(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`digest` prints what the plan file has under that key, and a line break."""
    text = shown(PLANS[name], "digest", tmp_path, capsys)
    assert text == json.loads(plan_file.dumps(PLANS[name]))["digest"] + "\n"


@pytest.mark.parametrize("name", PLANS)
def test_gitlab_counts_three_things(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """GitLab knows create, update and delete: a replacement is one of the first and one of the last."""
    counts = PLANS[name].summary
    assert json.loads(shown(PLANS[name], "gitlab", tmp_path, capsys)) == {
        "create": counts.create + counts.replace,
        "update": counts.update,
        "delete": counts.delete + counts.replace,
    }


# Problems as GitHub shows them at the lines of files, and as a comment where there is no plan.


ANNOTATIONS_HOSTILE = Problem(
    code="manifest/x",
    message="50% of\r\n::error::z <b> @all",
    hint="a\nb",
    source=SourceLocation("a,b:c%\n.yaml", 3, 7),
    severity=Severity.WARNING,
)
PLAIN = Problem(code="manifest/y", message="unknown key", source=SourceLocation("a.yaml", 1, 2))


def test_an_annotation_is_one_command_at_its_place() -> None:
    """Errors come first; nothing in a message or a file's name ends the command or begins another."""
    first, second = problems_github([ANNOTATIONS_HOSTILE, PLAIN]).splitlines()
    assert first == "::error file=a.yaml,line=1,col=2,title=manifest/y::unknown key"
    assert second == (
        "::warning file=a%2Cb%3Ac%25\\n.yaml,line=3,col=7,title=manifest/x::50%25 of\\r\\n::error::z <b> @all%0Aa\\nb"
    )


def test_the_comment_is_that_of_the_plan() -> None:
    """Its first line is the mark by which the plan's own comment is found; it holds no HTML, and fits its place."""
    many = [
        Problem(code="x", message=f"{number} <b>" + "x" * 500, source=SourceLocation("a.yaml", number))
        for number in range(500)
    ]
    text = problems_markdown(many, limit=parse_size_limit("github"))
    assert text.startswith("<!-- lmsconf:plan -->\n")
    assert len(text.encode()) <= 65_536
    assert "500 errors" in text
    assert not re.search(r"<b>", text)
