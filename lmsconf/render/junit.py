"""A drift report as JUnit XML, which CI systems display: a suite per kind, a case per resource.

A resource that is as declared passes, a finding fails, a difference that is ignored or not applied yet is skipped with
its reason, and a resource that could not be compared is an error. The document is valid under both common schemas,
Ant's and Jenkins'.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from lmsconf.errors import SourceLocation
from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.address import Address
from lmsconf.model.drift import DriftReport
from lmsconf.render import drift_report
from lmsconf.render.jinja import xml_macro
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
    return xml_macro("junit.xml.j2", "document", suites, url)


def drift_junit(drift: DriftReport) -> str:
    """Return the report as JUnit XML; kinds without cases have no suite."""
    suites: defaultdict[str, list[Case]] = defaultdict(list)
    for address, cases in sorted(_cases(drift).items()):
        suites[address.kind] += cases
    return junit_document(
        [(_suite(drift, number, kind, suites[kind]), suites[kind]) for number, kind in enumerate(sorted(suites))],
        drift.url,
    )


def _cases(drift: DriftReport) -> Mapping[Address, list[Case]]:
    """Return a case for each declared resource, each other finding, and each error."""
    cases: defaultdict[Address, list[Case]] = defaultdict(list)

    def add(address: Address, outcome: str | None, message: str, *details: str, name: str = "", **type: str) -> None:
        title = name or resource_title(address)
        about = {"classname": f"{drift.workspace}.{address.kind}", "name": title, "time": "0"}
        # Keep the line breaks of a hint; those inside names are escaped already.
        lines = [line for paragraph in details for line in paragraph.split("\n")]
        cases[address].append(Case(about, outcome, {**type, "message": message}, lines))

    for finding in drift.findings:
        details = (*_place(finding.source), *drift_report.finding_details(finding))
        add(finding.address, "failure", drift_report.finding_headline(finding), *details, type=finding.state.value)
    # The schemas allow no attribute but `message` on `skipped`.
    for finding in drift.not_applied:
        headline = drift_report.finding_headline(finding)
        add(finding.address, "skipped", f"{drift_report.NOT_APPLIED}: {headline}")
    for ignored in drift.ignored:
        add(ignored.finding.address, "skipped", drift_report.ignored_sentence(ignored))
    declared = {str(managed.address): managed.address for managed in drift.managed}
    for problem in drift.problems:
        if problem.is_error:
            at, name = declared.get(problem.address or "", Address(REST, "")), problem.code
            details = (*_place(problem.source), *filter(None, [problem.hint]))
            message = format_problem(problem)
            add(at, "error", message, *details, name=name if at.kind == REST else "", type=problem.code)
    for managed in drift.managed:
        if managed.address not in cases:
            add(managed.address, None, "")
    return cases


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
