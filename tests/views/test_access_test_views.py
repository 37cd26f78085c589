"""Every view of judged tests, as it was read and found good."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from document_samples import EVIL
from json_schemas import schema_validator
from msgspec.structs import replace

from lmsconf.errors import SourceLocation
from lmsconf.model.access import AccessClaim, AccessTest, AccessTestReport, AccessTestResult
from lmsconf.model.address import Address
from lmsconf.render.access_tests import TEST_VIEWS

Compare = Callable[[str, str], None]
SUFFIX = {"text": "txt", "junit": "xml"}
COACHES, NORDICS = Address("group", "Coaches"), Address("smart_group", "Nordics")


def case(claim: AccessClaim, *audiences: Address, line: int = 3, **more: object) -> AccessTest:
    at = SourceLocation("manifests/tests.yaml", line, 5)
    one = AccessTest(claim=claim, audiences=audiences, source=at, mandatory=False)
    return replace(one, **more)  # type: ignore[arg-type]  # its own fields


TESTS = (
    case(AccessClaim.ALL, NORDICS, content="GDPR", mandatory=True, name="All must", about={"ticket": "L-1", "n": 2}),
    case(AccessClaim.NONE, COACHES, content="GDPR", line=4),
    case(AccessClaim.SIZE, COACHES, least=300, most=1600, line=5),
    case(AccessClaim.SIZE, COACHES, least=3, most=3, line=6),
    case(AccessClaim.SIZE, COACHES, most=3, line=7),
    case(AccessClaim.SIZE, COACHES, least=3, line=8),
    case(AccessClaim.DISJOINT, COACHES, NORDICS, line=9),
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
REPORTS = {
    "failed": REPORT,
    "passed": replace(REPORT, live=True, results=tuple(AccessTestResult(test=test) for test in TESTS)),
    "none": replace(REPORT, results=(), people=None),
    "hostile": replace(REPORT, results=(AccessTestResult(test=HOSTILE, reason=EVIL),)),
}


@pytest.mark.parametrize("name", REPORTS)
@pytest.mark.parametrize("view", TEST_VIEWS)
def test_results_read_as_they_did(name: str, view: str, golden: Compare) -> None:
    """Each report reads in each format as its golden file does."""
    text = TEST_VIEWS[view](REPORTS[name])
    lines = ('  "tool": …,\n' if line.startswith('  "tool"') else line for line in text.splitlines(keepends=True))
    golden(f"test_{name}.{SUFFIX.get(view, view)}", "".join(lines))


@pytest.mark.parametrize("name", REPORTS)
def test_documents_fit_their_schema(name: str) -> None:
    """Every document is what its JSON Schema says, and one with an unknown key is not."""
    validator, document = schema_validator("test"), json.loads(TEST_VIEWS["json"](REPORTS[name]))
    assert [error.message for error in validator.iter_errors(document)] == []
    assert not validator.is_valid({**document, "extra": 1})
