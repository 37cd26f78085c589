"""The results of the `tests:` of manifests as text and as JUnit XML, which CI systems display."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lmsconf.documents.reports import access_tests_json
from lmsconf.model.access import AccessTestReport, AccessTestResult
from lmsconf.render.escape import escape_terminal, escape_xml
from lmsconf.render.plan_wording import workspace_line
from lmsconf.render.resource_wording import count_noun, format_value
from lmsconf.render.text.blocks import join_blocks


def tests_text(report: AccessTestReport) -> str:
    """Render the results: the failed tests with their place and reason, then a count."""
    return join_blocks(
        [
            [escape_terminal(workspace_line(report.workspace, report.url, report.people))],
            *(_failure(result) for result in report.failed),
            [_summary(report)],
        ],
        color=False,
    )


def _failure(result: AccessTestResult) -> Iterator[str]:
    test = result.test
    yield escape_terminal(f"  - {test.title}: {result.reason}")
    yield escape_terminal(f"      {test.source}")
    if test.name is not None:
        yield escape_terminal(f"      says: {test.statement}")
    yield from (escape_terminal(f"      about {line}") for line in _about(result))


def _about(result: AccessTestResult) -> Iterator[str]:
    for key, value in (result.test.about or {}).items():
        yield f"{key}: {value if isinstance(value, str) else format_value(value)}"


def _summary(report: AccessTestReport) -> str:
    if not report.results:
        return "The manifests have no tests for this workspace."
    state = "the live state" if report.live else "the state after the plan"
    number, failed = count_noun(len(report.results), "test"), len(report.failed)
    return f"{number} on {state}: {len(report.results) - failed:,} passed, {failed:,} failed."


def tests_junit(report: AccessTestReport) -> str:
    """Return the results as JUnit XML: one suite, a case for each test, with its file and line."""
    suite = {
        "name": "tests",
        "tests": str(len(report.results)),
        "failures": str(len(report.failed)),
        "errors": "0",
        "skipped": "0",
        "time": "0",
        "timestamp": report.created_at.removesuffix("Z"),
        "hostname": "localhost",
    }
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        "<testsuites>",
        f"  <testsuite{_attributes(suite)}>",
        *(line for result in report.results for line in _case(report, result)),
        "  </testsuite>",
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _case(report: AccessTestReport, result: AccessTestResult) -> Iterator[str]:
    test = result.test
    case = {
        "classname": f"{report.workspace}.tests",
        "name": f"{test.title} ({test.source.each})" if test.source.each else test.title,
        "file": test.source.file,
        "line": str(test.source.line),
        "time": "0",
    }
    if result.reason is None:
        yield f"    <testcase{_attributes(case)}/>"
        return
    texts = [str(test.source), test.statement, *_about(result)]
    yield f"    <testcase{_attributes(case)}>"
    message = _attributes({"type": "test/failed", "message": result.reason})
    yield f"      <failure{message}>{chr(10).join(map(escape_xml, texts))}</failure>"
    yield "    </testcase>"


def _attributes(values: Mapping[str, str]) -> str:
    return "".join(f' {key}="{escape_xml(value)}"' for key, value in values.items())


TEST_VIEWS = {"text": tests_text, "json": access_tests_json, "junit": tests_junit}
