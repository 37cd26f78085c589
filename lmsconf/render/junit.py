"""A drift report as JUnit XML, which CI systems display: a suite per kind, a case per resource.

A resource that is as declared passes, a finding fails, a difference that is ignored or not applied yet is skipped with
its reason, and a resource that could not be compared is an error. The document is valid under both common schemas,
Ant's and Jenkins'. All texts are escaped by `xml`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from msgspec import Struct

from lmsconf.errors import Problem, SourceLocation
from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.address import Address
from lmsconf.model.drift import DriftFinding, DriftReport
from lmsconf.render import drift_wording
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
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        "<testsuites>",
        *(line for number, kind in enumerate(sorted(suites)) for line in _suite(drift, number, kind, suites[kind])),
        "</testsuites>",
    ]
    return "\n".join(lines) + "\n"


def _cases(drift: DriftReport) -> Iterator[_Case]:
    """Yield a case for each declared resource, each other finding, and each error."""
    cases: dict[Address, list[_Case]] = defaultdict(list)
    for finding in drift.findings:
        cases[finding.address].append(_failure(finding))
    for finding in drift.not_applied:
        cases[finding.address].append(
            _skipped(finding, f"{drift_wording.NOT_APPLIED}: {drift_wording.finding_headline(finding)}")
        )
    for ignored in drift.ignored:
        cases[ignored.finding.address].append(_skipped(ignored.finding, drift_wording.ignored_sentence(ignored)))
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
        message=drift_wording.finding_headline(finding),
        lines=tuple(_details(finding)),
    )


def _details(finding: DriftFinding) -> Iterator[str]:
    yield from _place(finding.source)
    yield from drift_wording.cause_sentences(finding)
    yield from map(drift_wording.field_line, finding.fields)
    yield from drift_wording.remedy_lines(finding)


def _skipped(finding: DriftFinding, message: str) -> _Case:
    return _Case(
        kind=finding.address.kind,
        name=resource_title(finding.address),
        outcome="skipped",
        message=message,
    )


def _error(problem: Problem, at: Address | None) -> _Case:
    return _Case(
        kind=at.kind if at else REST,
        name=resource_title(at) if at else problem.code,
        outcome="error",
        type=problem.code,
        message=format_problem(problem),
        lines=(*_place(problem.source), *([problem.hint] if problem.hint else [])),
    )


def _place(source: SourceLocation | None) -> Iterator[str]:
    if source is not None:
        yield str(source)


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
    yield f"  <testsuite{_attributes(about)}>"
    yield f"    <properties><property{_attributes({'name': 'url', 'value': drift.url})}/></properties>"
    for case in cases:
        yield from _case(drift, case)
    yield "    <system-out/>"
    yield "    <system-err/>"
    yield "  </testsuite>"


def _case(drift: DriftReport, case: _Case) -> Iterator[str]:
    about = {"classname": f"{drift.workspace}.{case.kind}", "name": case.name, "time": "0"}
    opening = f"    <testcase{_attributes(about)}"
    if case.outcome is None:
        yield f"{opening}/>"
        return
    # The schemas allow no attribute but `message` on `skipped`.
    type = {} if case.outcome == "skipped" else {"type": case.type}
    attributes = _attributes(type | {"message": case.message})
    # Keep the line breaks of a hint; those inside names are escaped already.
    text = "\n".join(escape_xml(line) for paragraph in case.lines for line in paragraph.split("\n"))
    yield f"{opening}>"
    yield f"      <{case.outcome}{attributes}>{text}</{case.outcome}>"
    yield "    </testcase>"


def _attributes(values: Mapping[str, str]) -> str:
    return "".join(f' {key}="{escape_xml(value)}"' for key, value in values.items())
