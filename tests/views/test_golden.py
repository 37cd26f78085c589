"""Every view of every sample, as it was read and found good, and as machines read them."""

import io
import json
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from fleet.fleet_project import FLEETS
from flow.shell import lmsconf
from json_schemas import sarif_log, schema_validator
from jsonschema import Draft4Validator
from junitparser import JUnitXml
from msgspec.structs import replace
from texts import text_of
from views.document_samples import EVIL, HASH, PLANS, REPORTS, golden_document
from views.drift_samples import ALL, DRIFTS, HOSTILE

from lmsconf import render
from lmsconf.documents import plan_file
from lmsconf.documents.json_documents import from_json
from lmsconf.documents.reports import problems_json
from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.model.access import AccessTest, AccessTestReport, AccessTestResult, AudienceReport, PersonAccess
from lmsconf.model.address import Address
from lmsconf.model.drift import ManagedShare
from lmsconf.model.outcomes import RecordedRun
from lmsconf.render import DRIFT_VIEWS
from lmsconf.render.ci_formats import problems_github
from lmsconf.render.escape import parse_size_limit
from lmsconf.render.markdown import problems_markdown


def listed(name: str) -> Any:
    """Samples of the folder `texts`, with the hostile name and the digest in place of their words."""
    text = text_of(__file__, name).replace("HASH", HASH)
    for plain, hostile in (("ADDRESS", str(Address.of("group", EVIL))), ("EVIL", EVIL)):
        text = text.replace(plain, json.dumps(hostile)[1:-1])
    return json.loads(text)


def on_people(name: str, kind: type[Any]) -> Any:
    """A report as a document of tests/golden has it."""
    document: Any = golden_document(name)
    workspace = document["workspace"]
    header = {**document, "workspace": workspace["name"], "url": workspace["url"]}
    return from_json({**document, "header": header}, kind)


*TESTS, HOSTILE_TEST = (from_json(one, AccessTest) for one in listed("golden_tests.json"))
JUDGED = AccessTestReport(
    workspace="production",
    url="https://lms.example/api",
    people=1200,
    created_at="2026-03-01T08:00:00Z",
    live=False,
    results=tuple(AccessTestResult(test=test, reason="7 of 9 people have it") for test in TESTS),
)
TEST_REPORTS = {
    "failed": JUDGED,
    "passed": replace(JUDGED, live=True, results=tuple(AccessTestResult(test=test) for test in TESTS)),
    "none": replace(JUDGED, results=(), people=None),
    "hostile": replace(JUDGED, results=(AccessTestResult(test=HOSTILE_TEST, reason=EVIL),)),
}
RUNS = {name: from_json(run, RecordedRun) for name, run in listed("golden_runs.json").items()}
ACCESS = ("changed", "nothing", "unknown", "one", "broken", "new", "archived", "hostile")
AUDIENCES = ("counted", "plain", "members", "unknown", "broken", "new", "deleted", "hostile")
PROBLEMS = [problem for plan in PLANS.values() for problem in plan.all_problems]
SAMPLES: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = {
    "plan": (render.PLAN_VIEWS, PLANS),
    "apply": (render.APPLY_VIEWS, REPORTS),
    "drift": (DRIFT_VIEWS, DRIFTS),
    "fleet": (render.FLEET_VIEWS, FLEETS),
    "test": (render.TEST_VIEWS, TEST_REPORTS),
    "run": (render.RUN_VIEWS, RUNS),
    "runs": (render.RUNS_VIEWS, {"": [*RUNS.values()]}),
    "problems": ({"text": render.text.problems_text, "json": problems_json}, {"": PROBLEMS}),
    "access": (render.ACCESS_VIEWS, {name: on_people(f"access_{name}", PersonAccess) for name in ACCESS}),
    "audience": (render.AUDIENCE_VIEWS, {name: on_people(f"audience_{name}", AudienceReport) for name in AUDIENCES}),
}
"""What there is a view of → its views, and its samples by their names."""
SUFFIX = {"text": "txt", "markdown": "md", "junit": "xml"}
ASSETS = re.compile(r"<(style|script)>.*?</\1>|sha256-[\w+/=]+", re.DOTALL)


@pytest.mark.parametrize(
    ("kind", "view", "name"),
    [(kind, view, name) for kind, (views, samples) in SAMPLES.items() for view in views for name in samples],
)
def test_each_view_reads_as_it_did(kind: str, view: str, name: str, golden: Callable[[str, str], None]) -> None:
    """Each sample reads in each format as its golden file does."""
    views, samples = SAMPLES[kind]
    file = f"{kind}_{name}".rstrip("_")
    golden(f"{file}.{SUFFIX.get(view, view)}", stable(kind, views[view](samples[name])))


def stable(kind: str, text: str) -> str:
    """The text without what a release changes: the version, and with it the seal; in a page its style and script."""
    if text.startswith("<!doctype html>"):
        return ASSETS.sub("…", text).replace("><", ">\n<")
    if kind == "drift":
        return re.sub(r'^(  "tool": |  +"version": "0)\S.*', r"\1…", text, flags=re.MULTILINE)
    return re.sub(r'^  "(tool|seal)": .*', r'  "\1": …,', text, flags=re.MULTILINE)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        *(
            ("runs" if kind == "run" else kind, views["json"](sample))
            for kind, (views, samples) in SAMPLES.items()
            for name, sample in samples.items()
            if (kind, name) not in {("run", "hostile"), ("drift", "hostile"), ("drift", "based"), ("runs", "")}
        ),
        *(("runs", render.RUNS_VIEWS["json"]([run])) for name, run in RUNS.items() if name != "hostile"),
        *(("problems", problems_json(plan.all_problems)) for plan in PLANS.values()),
    ],
)
def test_documents_fit_their_schemas(schema: str, text: str) -> None:
    """Every document is what its JSON Schema says, and one with an unknown key is not."""
    validator, document = schema_validator(schema), json.loads(text)
    assert [error.message for error in validator.iter_errors(document)] == []
    assert not validator.is_valid({**document, "extra": 1})


@pytest.mark.parametrize("name", PLANS)
def test_what_scripts_take_of_a_plan_file(name: str, tmp_path: Path) -> None:
    """`digest` prints what the file has under that key, and a line break; GitLab knows create, update and delete, so
    that a replacement is one of the first and one of the last."""
    text, counts = plan_file.dumps(PLANS[name]), PLANS[name].summary
    (tmp_path / "plan.json").write_text(text, encoding="utf-8")
    assert lmsconf(tmp_path, "show", "plan.json", "--format", "digest", code=0).out == json.loads(text)["digest"] + "\n"
    assert lmsconf(tmp_path, "show", "plan.json", "--format", "gitlab", code=0).document == {
        "create": counts.create + counts.replace,
        "update": counts.update,
        "delete": counts.delete + counts.replace,
    }


# Drift reports, as programs read them.


@pytest.mark.parametrize(
    ("managed", "live", "percent"), [(0, 0, None), (0, 3, 0.0), (1, 3, 33.3), (9999, 10000, 99.9), (7, 7, 100.0)]
)
def test_only_all_is_a_hundred_percent(managed: int, live: int, percent: float | None) -> None:
    """A share is rounded to a tenth, but never up to all; of nothing there is none."""
    assert ManagedShare(kind="group", managed=managed, live=live).percent == percent


@pytest.mark.parametrize("name", DRIFTS)
def test_a_real_consumer_reads_the_junit_file(name: str) -> None:
    """junitparser finds a suite for each kind, a case for each resource, and counts as the suites say."""
    drift = DRIFTS[name]
    found = JUnitXml.fromroot(ET.fromstring(DRIFT_VIEWS["junit"](drift)))
    results = [(type(result).__name__, result.type) for suite in found for case in suite for result in case.result]
    assert sorted(kind for name, kind in results if name == "Failure") == sorted(one.state for one in drift.findings)
    assert sum(name == "Skipped" for name, _ in results) == len(drift.ignored) + len(drift.not_applied)
    assert sum(name == "Error" for name, _ in results) == sum(problem.is_error for problem in drift.problems)
    said = {suite.name: (suite.tests, suite.failures, suite.errors, suite.skipped) for suite in found}
    for suite in found:
        suite.update_statistics()
    assert said == {suite.name: (suite.tests, suite.failures, suite.errors, suite.skipped) for suite in found}


@pytest.mark.parametrize("name", DRIFTS)
def test_a_model_of_the_standard_reads_the_sarif_file(name: str) -> None:
    """It is a SARIF log with one run, whose results name rules that are there."""
    (run,) = sarif_log(DRIFT_VIEWS["sarif"](DRIFTS[name])).runs
    rules = [rule.id for rule in run.tool.driver.rules or []]
    results = run.results or []
    drift = DRIFTS[name]
    assert len(results) == len(drift.findings) + len(drift.not_applied) + len(drift.ignored)
    assert all(rules[result.rule_index or 0] == result.rule_id for result in results)


def test_fingerprints_stay_where_lines_and_values_change() -> None:
    """A finding is known again by workspace, address and state; all of a report differ."""
    moved = tuple(
        replace(one, source=SourceLocation("elsewhere.yaml", 99, 9), live={"x": 1}, fields=(), id=None)
        for one in ALL.findings
    )
    assert _prints(ALL) == _prints(replace(ALL, findings=moved))
    assert len(set(_prints(ALL))) == len(_prints(ALL))
    assert not set(_prints(ALL)) & set(_prints(replace(ALL, workspace="staging")))


def test_hostile_names_do_nothing() -> None:
    """No control reaches the text; XML and JSON can be read, and say the name as it can be seen; no link is made."""
    for view in ("text", "junit", "sarif"):
        text = DRIFT_VIEWS[view](HOSTILE)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028\ud800-\udfff]", text)
        text.encode()
    assert {node.tag for node in ET.fromstring(DRIFT_VIEWS["junit"](HOSTILE)).iter()} <= {
        *("testsuites", "testsuite", "properties", "property", "testcase", "failure", "skipped", "error"),
        *("system-out", "system-err"),
    }
    assert not any(line.lstrip().startswith("::") for line in DRIFT_VIEWS["text"](HOSTILE).splitlines())
    assert "](" not in DRIFT_VIEWS["sarif"](HOSTILE)
    assert EVIL not in DRIFT_VIEWS["sarif"](HOSTILE)


@pytest.mark.skipif("LMSCONF_SARIF_SCHEMA" not in os.environ, reason="LMSCONF_SARIF_SCHEMA names no schema file")
@pytest.mark.parametrize("name", DRIFTS)
def test_the_sarif_schema_takes_it(name: str) -> None:
    """The log is what the JSON Schema of SARIF 2.1.0 says."""
    rules = json.loads(Path(os.environ["LMSCONF_SARIF_SCHEMA"]).read_text(encoding="utf-8"))
    Draft4Validator.check_schema(rules)
    errors = Draft4Validator(rules).iter_errors(json.loads(DRIFT_VIEWS["sarif"](DRIFTS[name])))
    assert [error.message for error in errors] == []


@pytest.mark.skipif("LMSCONF_JUNIT_XSD" not in os.environ, reason="LMSCONF_JUNIT_XSD names no schema files")
@pytest.mark.parametrize("name", DRIFTS)
def test_the_junit_schemas_take_it(name: str) -> None:
    """The file is what the XML Schemas say: that of Ant, that of Jenkins, whichever are named."""
    etree = pytest.importorskip("lxml.etree")
    for path in os.environ["LMSCONF_JUNIT_XSD"].split(os.pathsep):
        schema = etree.XMLSchema(etree.parse(path))
        schema.assertValid(etree.parse(io.BytesIO(DRIFT_VIEWS["junit"](DRIFTS[name]).encode())))


def _results(drift: object) -> list[dict[str, object]]:
    found = json.loads(DRIFT_VIEWS["sarif"](drift))["runs"][0]["results"]
    assert isinstance(found, list)
    return found


def _prints(drift: object) -> list[str]:
    return [result["partialFingerprints"]["lmsconfAddress/v1"] for result in _results(drift)]


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
