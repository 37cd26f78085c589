"""A drift report as JUnit XML, which CI systems display: a suite per kind, a case per resource.

A resource that is as declared passes, a finding fails, a difference that is ignored or not applied yet is skipped with
its reason, and a resource that could not be compared is an error. The document is valid under both common schemas,
Ant's and Jenkins'. All texts are escaped by `xml`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from lmsconf.errors import Problem, SourceLocation
from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.address import Address
from lmsconf.model.drift import DriftFinding, DriftReport
from lmsconf.render import drift_report
from lmsconf.render.escape import escape_xml
from lmsconf.render.plan_wording import format_problem
from lmsconf.render.resource_wording import kind_plural

REST: Final = "manifests and workspace"
"""The suite of errors that concern no declared resource."""


class _Case(Struct, frozen=True, kw_only=True):
    """One test case. outcome: the element name `failure`, `error` or `skipped`; None: passed."""

    kind: str
    name: str
    outcome: str | None = None
    type: str = ""
    message: str = ""
    lines: tuple[str, ...] = ()


def drift_junit(drift: DriftReport) -> str:
    """Return the report as JUnit XML; kinds without cases have no suite."""
    suites: defaultdict[str, list[_Case]] = defaultdict(list)
    for case in _cases(drift):
        suites[case.kind].append(case)
    kinds = enumerate(sorted(suites))
    return junit_document(line for number, kind in kinds for line in _suite(drift, number, kind, suites[kind]))


def junit_document(suites: Iterable[str]) -> str:
    """Return a document with the lines of its suites."""
    head = '<?xml version="1.0" encoding="UTF-8"?>'
    return "\n".join([head, "<testsuites>", *suites, "</testsuites>"]) + "\n"


def _cases(drift: DriftReport) -> Iterator[_Case]:
    """Yield a case for each declared resource, each other finding, and each error."""
    cases: dict[Address, list[_Case]] = defaultdict(list)
    for finding in drift.findings:
        cases[finding.address].append(_failure(finding))
    for finding in drift.not_applied:
        cases[finding.address].append(
            _skipped(finding, f"{drift_report.NOT_APPLIED}: {drift_report.finding_headline(finding)}")
        )
    for ignored in drift.ignored:
        cases[ignored.finding.address].append(_skipped(ignored.finding, drift_report.ignored_sentence(ignored)))
    declared = {str(managed.address): managed.address for managed in drift.managed}
    for problem in drift.problems:
        if problem.is_error:
            at = declared.get(problem.address or "")
            cases[at or Address(REST, "")].append(_error(problem, at))
    for managed in drift.managed:
        cases.setdefault(managed.address, [_Case(kind=managed.address.kind, name=resource_title(managed.address))])
    for address in sorted(cases):
        yield from cases[address]


def _failure(finding: DriftFinding) -> _Case:
    return _Case(
        kind=finding.address.kind,
        name=resource_title(finding.address),
        outcome="failure",
        type=finding.state.value,
        message=drift_report.finding_headline(finding),
        lines=(*_place(finding.source), *drift_report.finding_details(finding)),
    )


def _skipped(finding: DriftFinding, message: str) -> _Case:
    title = resource_title(finding.address)
    return _Case(kind=finding.address.kind, name=title, outcome="skipped", message=message)


def _error(problem: Problem, at: Address | None) -> _Case:
    return _Case(
        kind=at.kind if at else REST,
        name=resource_title(at) if at else problem.code,
        outcome="error",
        type=problem.code,
        message=format_problem(problem),
        lines=(*_place(problem.source), *([problem.hint] if problem.hint else [])),
    )


def _place(source: SourceLocation | None) -> list[str]:
    return [] if source is None else [str(source)]


def _suite(drift: DriftReport, number: int, kind: str, cases: Sequence[_Case]) -> Iterator[str]:
    outcomes = [case.outcome for case in cases]
    about = {
        "id": str(number),
        "package": drift.workspace,
        "name": REST if kind == REST else kind_plural(kind),
        "timestamp": drift.created_at.removesuffix("Z"),
        "hostname": "localhost",
        "tests": str(len(cases)),
        "failures": str(outcomes.count("failure")),
        "errors": str(outcomes.count("error")),
        "skipped": str(outcomes.count("skipped")),
        "time": "0",
    }
    yield f"  <testsuite{xml_attributes(about)}>"
    yield f"    <properties><property{xml_attributes({'name': 'url', 'value': drift.url})}/></properties>"
    for case in cases:
        yield from _case(drift, case)
    yield "    <system-out/>"
    yield "    <system-err/>"
    yield "  </testsuite>"


def _case(drift: DriftReport, case: _Case) -> list[str]:
    # The schemas allow no attribute but `message` on `skipped`.
    type = {} if case.outcome == "skipped" else {"type": case.type}
    about = {"classname": f"{drift.workspace}.{case.kind}", "name": case.name, "time": "0"}
    # Keep the line breaks of a hint; those inside names are escaped already.
    lines = [line for paragraph in case.lines for line in paragraph.split("\n")]
    return junit_case(about, case.outcome, type | {"message": case.message}, lines)


def junit_case(
    about: Mapping[str, str],
    outcome: str | None = None,
    result: Mapping[str, str] | None = None,
    details: Iterable[str] = (),
) -> list[str]:
    """Return the lines of a case. outcome: the element of its result, with the attributes `result`; None: passed."""
    opening = f"    <testcase{xml_attributes(about)}"
    if outcome is None:
        return [f"{opening}/>"]
    text = "\n".join(map(escape_xml, details))
    return [f"{opening}>", f"      <{outcome}{xml_attributes(result or {})}>{text}</{outcome}>", "    </testcase>"]


def xml_attributes(values: Mapping[str, str]) -> str:
    """Return attributes, each with a space before it."""
    return "".join(f' {key}="{escape_xml(value)}"' for key, value in values.items())
