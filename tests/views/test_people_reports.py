"""Every view of what a person has and of who is in an audience, as it was read and found good."""

import io
import json
import os
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest
from flow.project import Project
from flow.shell import lmsconf
from json_schemas import sarif_log, schema_validator
from jsonschema import Draft4Validator
from junitparser import JUnitXml
from manifest.cases import Case, cases
from msgspec.structs import replace
from texts import text_of
from views.document_samples import EVIL, golden_document
from views.drift_samples import ALL, DRIFTS, HOSTILE

from lmsconf import render
from lmsconf.documents.json_documents import from_json, value_at
from lmsconf.documents.reports import access_json, audience_json
from lmsconf.errors import SourceLocation
from lmsconf.model.access import AudienceReport, PersonAccess
from lmsconf.model.drift import ManagedShare
from lmsconf.render import DRIFT_VIEWS
from lmsconf.render.people_reports import access_csv, audience_csv, audience_text

Compare = Callable[[str, str], None]
Report = TypeVar("Report", PersonAccess, AudienceReport)


def sample(name: str, kind: type[Report]) -> Report:
    """A report as a document of tests/golden has it."""
    document = golden_document(name)
    workspace = value_at(document, dict[str, str], "workspace")
    header = {**document, "workspace": workspace["name"], "url": workspace["url"]}
    return from_json({**document, "header": header}, kind)


PEOPLE = {
    name: sample(f"access_{name}", PersonAccess)
    for name in ("changed", "nothing", "unknown", "one", "broken", "new", "archived", "hostile")
}
AUDIENCES = {
    name: sample(f"audience_{name}", AudienceReport)
    for name in ("counted", "plain", "members", "unknown", "broken", "new", "deleted", "hostile")
}
ACCESS_VIEWS = {"txt": render.ACCESS_VIEWS["text"], "json": access_json, "csv": access_csv}
AUDIENCE_VIEWS = {"txt": audience_text, "json": audience_json, "csv": audience_csv}


@pytest.mark.parametrize("name", PEOPLE)
@pytest.mark.parametrize("view", ACCESS_VIEWS)
def test_what_a_person_has_reads_as_it_did(name: str, view: str, golden: Compare) -> None:
    """Each report reads in each format as its golden file does."""
    golden(f"access_{name}.{view}", _stable(ACCESS_VIEWS[view](PEOPLE[name])))


@pytest.mark.parametrize("name", AUDIENCES)
@pytest.mark.parametrize("view", AUDIENCE_VIEWS)
def test_who_is_in_an_audience_reads_as_it_did(name: str, view: str, golden: Compare) -> None:
    """Each report reads in each format as its golden file does."""
    golden(f"audience_{name}.{view}", _stable(AUDIENCE_VIEWS[view](AUDIENCES[name])))


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        *(("access", access_json(report)) for report in PEOPLE.values()),
        *(("audience", audience_json(report)) for report in AUDIENCES.values()),
        *(("drift", DRIFT_VIEWS["json"](DRIFTS[name])) for name in ("none", "all", "broken")),
    ],
)
def test_documents_fit_their_schemas(schema: str, text: str) -> None:
    """Every document is what its JSON Schema says, and one with an unknown key is not."""
    validator, document = schema_validator(schema), json.loads(text)
    assert [error.message for error in validator.iter_errors(document)] == []
    assert not validator.is_valid({**document, "extra": 1})


def _stable(text: str) -> str:
    """The text without the version of lmsconf."""
    lines = text.splitlines(keepends=True)
    return "".join('  "tool": …,\n' if line.startswith('  "tool"') else line for line in lines)


# Every view of every sample of a drift report, as it was read and found good, and as machines read them.


FILES = {"text": "txt", "json": "json", "junit": "xml", "sarif": "sarif"}


@pytest.mark.parametrize("name", DRIFTS)
@pytest.mark.parametrize("view", FILES)
def test_reports_read_as_they_did(name: str, view: str, golden: Compare) -> None:
    """Each report reads in each format as its golden file does."""
    golden(f"drift_{name}.{FILES[view]}", _drift_stable(DRIFT_VIEWS[view](DRIFTS[name])))


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
    log = sarif_log(DRIFT_VIEWS["sarif"](DRIFTS[name]))
    (run,) = log.runs
    rules = [rule.id for rule in run.tool.driver.rules or []]
    results = run.results or []
    drift = DRIFTS[name]
    assert len(results) == len(drift.findings) + len(drift.not_applied) + len(drift.ignored)
    assert all(rules[result.rule_index or 0] == result.rule_id for result in results)


def test_each_result_points_at_the_line_of_its_resource() -> None:
    """File, line and column are those of the manifest; where there is none it is the project file."""
    for finding, result in zip(ALL.findings, _results(ALL), strict=False):
        place = result["locations"][0]["physicalLocation"]
        where = finding.source or SourceLocation("lmsconf.yaml", 1, 1)
        assert place["artifactLocation"] == {"uri": where.file, "uriBaseId": "%SRCROOT%"}
        assert place["region"] == {"startLine": where.line, "startColumn": where.column}


def test_fingerprints_stay_where_lines_and_values_change() -> None:
    """A finding is known again by workspace, address and state; all of a report differ."""
    moved = tuple(
        replace(one, source=SourceLocation("elsewhere.yaml", 99, 9), live={"x": 1}, fields=(), id=None)
        for one in ALL.findings
    )
    assert _prints(ALL) == _prints(replace(ALL, findings=moved))
    assert len(set(_prints(ALL))) == len(_prints(ALL))
    assert not set(_prints(ALL)) & set(_prints(replace(ALL, workspace="staging")))


def test_what_is_ignored_is_suppressed() -> None:
    """It stands in the log with the reason, so that a reader sees it and need not act."""
    suppressed = [result for result in _results(ALL) if "suppressions" in result]
    assert [result["suppressions"][0]["justification"] for result in suppressed] == [
        "HR is moving fields over (until 2027-01-01)"
    ]


def test_hostile_names_do_nothing() -> None:
    """No control reaches the text; XML and JSON can be read, and say the name as it can be seen; no link is made."""
    for view in ("text", "junit", "sarif"):
        text = DRIFT_VIEWS[view](HOSTILE)
        assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2028\ud800-\udfff]", text)
        text.encode()
    root = ET.fromstring(DRIFT_VIEWS["junit"](HOSTILE))
    assert {node.tag for node in root.iter()} <= {
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


def _drift_stable(text: str) -> str:
    """The text without the version that wrote it, which a release changes."""
    lines = text.splitlines(keepends=True)
    return "".join(re.sub(r'^(  "tool": |  +"version": "0)\S.*', r"\1…", line) for line in lines)


# The calls that create, change and delete custom fields, with what they wait for: tests/golden/fields_….txt.


HERE = Path(__file__).parent
SEED = text_of(__file__, "field_calls_seed.yaml")

MANY = "".join(f"  - {{name: K{n}, type: TEXT}}\n" for n in range(7))
NEW = "{{name: {}, type: CHOICE, choices: [Sales, Tech, Oslo, Bergen]{}}}"
TO_NEW = NEW.format("New", ", migrate: {from: Team, conditions: all}")
TO_NEXT = NEW.format("Next", ", migrate: {from: Site}")
SLOTS = {
    "full": (7, "custom_fields: [{name: Y, type: TEXT}, {name: Z, type: TEXT}]\nabsent: {custom_fields: [K1]}", {}),
    "full_additive": (7, "custom_fields: [{name: Z, type: TEXT}]\nabsent: {custom_fields: [K1]}", {"additive": True}),
    "full_declared": (7, f"custom_fields:\n{MANY}  - {{name: Motto, hidden: true}}", {}),
    "full_left_out": (
        7,
        "custom_fields: [{name: Z, type: TEXT}, {name: Motto, hidden: true}]\nabsent: {custom_fields: [K1]}",
        {"excluded": ("custom_field/Z",)},
    ),
    "full_kept": (
        7,
        "custom_fields: [{name: Z, type: TEXT}]\nabsent: {custom_fields: [K1]}",
        {"excluded": ("custom_field/K1",)},
    ),
    "freed": (6, "custom_fields: [{name: Y, type: TEXT}, {name: Z, type: TEXT}]\nabsent: {custom_fields: [K1]}", {}),
    "moved": (7, f"custom_fields: [{TO_NEW}]", {}),
    "moved_two": (7, f"custom_fields: [{TO_NEW}, {TO_NEXT}]", {}),
    "moved_one_by_one": (6, f"custom_fields: [{TO_NEW}, {TO_NEXT}]", {}),
    "moved_beside": (6, f"custom_fields: [{TO_NEW}, {{name: A, type: TEXT}}]", {}),
    "moved_and_freed": (7, f"custom_fields: [{TO_NEW}]\nabsent: {{custom_fields: [K1]}}", {}),
}


def shown(it: Project, manifests: str, more: dict[str, object]) -> str:
    """Each call of the plan, and after which others it is sent; then what may stop it."""
    plan = it.plan(manifests, **more)
    lines = []
    for call in plan.calls:
        after = f" after {', '.join(call.needs)}" if call.needs else ""
        tried = ", may be refused" if call.may_be_refused else ""
        lines.append(f"{call.id}{after}{tried}: {call.method} {call.path} ({call.address})")
        if call.body is not None:
            lines.append(f"    {json.dumps(call.body, default=str)}")
    for problem in (one for one in plan.all_problems if not one.code.startswith("lint/")):
        lines.append(f"{problem.source or '-'}: {problem.message} [{problem.code}]\n    {problem.hint}")
    return "\n".join([*lines, ""])


@pytest.mark.sampled(day=4)
@pytest.mark.parametrize("case", cases(HERE / "field_calls.txt"), ids=lambda case: case.title)
def test_the_calls_of_fields(tmp_path: Path, case: Case, golden: Callable[[str, str], None]) -> None:
    """A field is replaced as a whole, by as few calls as its smart groups and names allow."""
    golden(f"fields_{case.title}.txt", shown(Project(tmp_path, SEED, case.told), case.text, {}))


@pytest.mark.sampled(day=4)
@pytest.mark.parametrize("name", SLOTS)
def test_the_calls_of_ten_fields(tmp_path: Path, name: str, golden: Callable[[str, str], None]) -> None:
    """A workspace has at most ten: a new one waits for a deletion, or is refused."""
    number, manifests, more = SLOTS[name]
    fields = "".join(MANY.splitlines(keepends=True)[:number])
    it = Project(tmp_path, SEED.replace("smart_groups:", f"{fields}smart_groups:"), "guards: off\n")
    golden(f"fields_{name}.txt", shown(it, manifests, more))


# What `plan` prints of fields whose answers move to another one: tests/golden/migration_….txt.


PROJECT = """\
workspaces: {sandbox: {url: "sandbox:", seed: workspace.yaml}}
leave_alone: [user/gus@x.se]
"""
MIGRATIONS_SEED = text_of(__file__, "field_calls_migrations_seed.yaml")


@pytest.mark.sampled
@pytest.mark.parametrize("case", cases(HERE / "migrations.txt"), ids=lambda case: case.title)
def test_a_plan_says_which_answers_move(tmp_path: Path, case: Case, golden: Callable[[str, str], None]) -> None:
    """It names what is not copied and why, what is deleted, and what to change in the manifest."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "lmsconf.yaml").write_text(PROJECT)
    (tmp_path / "workspace.yaml").write_text(MIGRATIONS_SEED)
    (tmp_path / "manifests" / "all.yaml").write_text(case.text)
    ran = lmsconf(tmp_path, "plan", *case.told.split())
    text = re.sub(r"Digest: .*", "Digest: …", ran.out + ran.err)
    golden(f"migration_{case.title}.txt", f"{text}[exit {ran.code}]\n")


# What `validate` and `plan` find in groups, smart groups and fields: tests/golden/lints_….txt.


LINT_TEXTS_SEED = text_of(__file__, "field_calls_lint_texts_seed.txt")
MORE = "  - {email: cai@x.se, answers: {Country: SE}}\n  - {email: old@x.se, archived: true}"
MANIFEST = (HERE / "odd_groups.yaml").read_text(encoding="utf-8")
SIXTY = {
    "many": LINT_TEXTS_SEED.replace("MORE", MORE),
    "two": LINT_TEXTS_SEED.replace("MORE", "  - {email: old@x.se, archived: true}"),
    "one": LINT_TEXTS_SEED.replace("MORE", "  - {email: old@x.se, archived: true}").replace(
        "a@x.se, ans", "a@x.se, archived: true, ans"
    ),
}


@pytest.mark.parametrize("people", SIXTY)
def test_a_plan_tells_what_is_odd_about_groups(tmp_path: Path, people: str, golden: Callable[[str, str], None]) -> None:
    """Conditions that nobody or everybody meets, the audience of another group, and no active manager."""
    plan = Project(tmp_path, SIXTY[people]).plan(MANIFEST)
    found = [one for one in plan.all_problems if one.code.startswith("lint/")]
    lines = [f"{one.source}: {one.severity}: {one.message} [{one.code}]\n    {one.hint}\n" for one in found]
    golden(f"lints_{people}.txt", "".join(lines))


def test_validate_tells_what_is_odd_about_groups(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    """What shows without a workspace: of a field whose type is not declared nothing is known."""
    it = Project(tmp_path, SIXTY["many"])
    it.write(MANIFEST)
    golden("lints_validate.txt", lmsconf(it.root, "validate").err)
