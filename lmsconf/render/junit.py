"""A drift report as JUnit XML, which CI systems display: a suite per kind, a case per resource.

A resource that is as declared passes, a finding fails, a difference that is ignored or not applied yet is skipped with
its reason, and a resource that could not be compared is an error. The document is valid under both common schemas,
Ant's and Jenkins'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from lmsconf.errors import Problem, SourceLocation
from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.address import Address
from lmsconf.model.drift import DriftReport
from lmsconf.render import drift_report
from lmsconf.render.jinja import plain_macro
from lmsconf.render.plan_wording import format_problem
from lmsconf.render.resource_wording import kind_plural

REST: Final = "manifests and workspace"
"""The suite of errors that concern no declared resource."""


class Case(NamedTuple):
    """A case, with the attributes of its element. outcome: failure, error or skipped; None: it passed. result: the
    attributes of the outcome's element; lines: its text.
    """

    about: Mapping[str, str]
    outcome: str | None = None
    result: Mapping[str, str] = {}
    lines: Sequence[str] = ()


def junit_document(suites: Iterable[tuple[Mapping[str, str], Sequence[Case]]], url: str | None = None) -> str:
    """Return a document of suites: attributes and cases. url: of the workspace, for suites with all that Ant has."""
    return plain_macro("junit.xml.j2", "document", suites, url)


def drift_junit(drift: DriftReport) -> str:
    """Return the report as JUnit XML; kinds without cases have no suite."""
    cases: defaultdict[Address, list[Case]] = defaultdict(list)
    for address, case in _failures(drift):
        cases[address].append(case)
    for managed in drift.managed:
        cases.setdefault(managed.address, [_case(drift, managed.address, None, "")[1]])
    suites: defaultdict[str, list[Case]] = defaultdict(list)
    for address, of_one in sorted(cases.items()):
        suites[address.kind] += of_one
    return junit_document(
        [(_suite(drift, number, kind, suites[kind]), suites[kind]) for number, kind in enumerate(sorted(suites))],
        drift.url,
    )


def _failures(drift: DriftReport) -> Iterator[tuple[Address, Case]]:
    """Yield a case for each finding, each difference that does not count, and each error."""
    for finding in drift.findings:
        details = (*_place(finding.source), *drift_report.finding_details(finding))
        message = drift_report.finding_headline(finding)
        yield _case(drift, finding.address, "failure", message, *details, type=finding.state.value)
    # The schemas allow no attribute but `message` on `skipped`.
    for finding in drift.not_applied:
        yield _case(
            drift, finding.address, "skipped", f"{drift_report.NOT_APPLIED}: {drift_report.finding_headline(finding)}"
        )
    for ignored in drift.ignored:
        yield _case(drift, ignored.finding.address, "skipped", drift_report.ignored_sentence(ignored))
    declared = {str(managed.address): managed.address for managed in drift.managed}
    for problem in drift.problems:
        if problem.is_error:
            yield _error(drift, problem, declared.get(problem.address or "", Address(REST, "")))


def _error(drift: DriftReport, problem: Problem, at: Address) -> tuple[Address, Case]:
    details = (*_place(problem.source), *filter(None, [problem.hint]))
    name = problem.code if at.kind == REST else ""
    return _case(drift, at, "error", format_problem(problem), *details, name=name, type=problem.code)


def _case(
    drift: DriftReport, address: Address, outcome: str | None, message: str, *details: str, name: str = "", **type: str
) -> tuple[Address, Case]:
    title = name or resource_title(address)
    about = {"classname": f"{drift.workspace}.{address.kind}", "name": title, "time": "0"}
    # Keep the line breaks of a hint; those inside names are escaped already.
    lines = [line for paragraph in details for line in paragraph.split("\n")]
    return address, Case(about, outcome, {**type, "message": message}, lines)


def _place(source: SourceLocation | None) -> list[str]:
    return [] if source is None else [str(source)]


def _suite(drift: DriftReport, number: int, kind: str, cases: Sequence[Case]) -> dict[str, str]:
    """Return the attributes of a suite."""
    outcomes = [case.outcome for case in cases]
    return {
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
