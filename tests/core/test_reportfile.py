"""An apply report survives the way through a file, and an edited one is refused."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from lmsconf.documents import report_file
from lmsconf.documents.document import add_seal, render_json
from lmsconf.errors import LmsconfError, Problem, StalePlan
from lmsconf.model.address import Address
from lmsconf.model.calls import CallStatus
from lmsconf.model.canonical_json import sha256
from lmsconf.model.outcomes import ApplyReport, CallOutcome, VerifiedScope, VerifyMode

REPORT = ApplyReport(
    plan_digest="ab" * 32,
    workspace="sandbox",
    url="sandbox:",
    people=None,
    started_at="2026-03-01T08:00:00Z",
    finished_at="2026-03-01T08:00:01Z",
    outcomes=(
        CallOutcome(
            call="c1",
            address=Address.of("group", "A"),
            operation="manual-groups.create",
            status=CallStatus.DONE,
            id="g",
        ),
        CallOutcome(
            call="c2",
            address=Address.of("group", "B"),
            operation="manual-groups.create",
            status=CallStatus.FAILED,
            reason="400",
            hint="Look.",
        ),
    ),
    verified=VerifiedScope(scope=VerifyMode.TOUCHED, resources=2, reason="So it was asked."),
    converged=None,
    residue=(),
    problems=(Problem(code="x", message="y"),),
    meta={"commit": "9f3c"},
    exit=5,
)
TEXT = report_file.dumps(REPORT)


@pytest.mark.parametrize("converged", [None, True, False])
def test_loads_gives_back_what_dumps_wrote(converged: bool | None) -> None:
    """A report is read as it was written, whether or not the run could look at the end."""
    report = replace(REPORT, converged=converged)
    assert report_file.loads(report_file.dumps(report)) == report


def test_every_changed_byte_is_refused() -> None:
    """Evidence in which one byte was changed is none."""
    raw = TEXT.encode()
    for position in range(len(raw)):
        flipped = raw[:position] + bytes([raw[position] ^ 1]) + raw[position + 1 :]
        with pytest.raises(LmsconfError):
            report_file.loads(flipped.decode("utf-8", "surrogateescape"))


@pytest.mark.parametrize(
    ("key", "value"), [("outcomes", None), ("exit", "5"), ("summary", {}), ("converged", 1), ("verified", {})]
)
def test_a_new_seal_does_not_make_a_report(key: str, value: object) -> None:
    """A sealed document of another shape, or with other sums, is refused."""
    document = json.loads(TEXT)
    document[key] = value
    document["seal"] = sha256({**document, "seal": ""})
    with pytest.raises(StalePlan):
        report_file.loads(render_json(document))


def test_a_report_of_another_format_is_refused() -> None:
    """By its format, also where everything else fits: a later version may mean something else by it."""
    document = {**json.loads(TEXT), "format": "lmsconf.apply/2"}
    with pytest.raises(LmsconfError, match=r"has the format 'lmsconf\.apply/2', not 'lmsconf\.apply/1'"):
        report_file.loads(render_json(add_seal(document)))


def test_an_edited_report_is_told_from_a_broken_one() -> None:
    """Whatever was edited, also where it is no report any more: the sentence says that it was changed."""
    for edited in (TEXT.replace('"exit": 5', '"exit": 6'), TEXT.replace('"exit": 5', '"exit": "5"')):
        with pytest.raises(StalePlan, match="was changed after lmsconf wrote it"):
            report_file.loads(edited)
