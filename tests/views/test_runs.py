"""Every view of the runs that journals tell of, as it was read and found good."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from document_samples import BASICS, COACHES, DEPARTMENT, EVIL, HASH, NORDICS
from json_schemas import schema_validator
from msgspec.structs import replace

from lmsconf.model.address import Address
from lmsconf.model.outcomes import VerifyMode
from lmsconf.model.recorded_run import CallState, JournalHeader, RecordedCall, RecordedRun, RunEnding
from lmsconf.render.recorded_runs import RUN_VIEWS, RUNS_VIEWS

Compare = Callable[[str, str], None]
BEGAN = datetime(2026, 3, 1, 8, 0, tzinfo=UTC)


def at(seconds: int) -> datetime:
    return BEGAN + timedelta(seconds=seconds)


def call(number: int, address: Address, operation: str, state: CallState, **more: str) -> RecordedCall:
    blocked = state in (CallState.BLOCKED, CallState.NOT_ATTEMPTED)
    return RecordedCall(
        call=f"c{number}",
        address=address,
        operation=operation,
        state=state,
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
HOSTILE = RecordedRun(
    name=EVIL,
    opening=replace(OPENING, workspace=EVIL, url=EVIL, tool=EVIL, digest=EVIL, meta={EVIL: EVIL}),
    calls=(
        replace(
            call(1, Address.of("group", EVIL), EVIL, CallState.FAILED, reason=f"::error::{EVIL}", id=EVIL), call=EVIL
        ),
    ),
)
RUNS = {"complete": COMPLETE, "partial": PARTIAL, "cut_short": CUT_SHORT, "unknown": UNKNOWN, "hostile": HOSTILE}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("view", RUN_VIEWS)
def test_runs_read_as_they_did(name: str, view: str, golden: Compare) -> None:
    """Each run reads in each format as its golden file does."""
    golden(f"run_{name}.{'txt' if view == 'text' else view}", _stable(RUN_VIEWS[view](RUNS[name])))


@pytest.mark.parametrize("view", RUNS_VIEWS)
def test_the_list_reads_as_it_did(view: str, golden: Compare) -> None:
    """All of them in a list read in each format as the golden file does."""
    golden(f"runs.{'txt' if view == 'text' else view}", _stable(RUNS_VIEWS[view](list(RUNS.values()))))


@pytest.mark.parametrize("run", [run for name, run in RUNS.items() if name != "hostile"])
def test_runs_fit_their_schema(run: RecordedRun) -> None:
    """Every document is what its JSON Schema says, and one with an unknown key is not."""
    validator = schema_validator("runs")
    for text in (RUN_VIEWS["json"](run), RUNS_VIEWS["json"]([run])):
        document = json.loads(text)
        assert [error.message for error in validator.iter_errors(document)] == []
        assert not validator.is_valid({**document, "extra": 1})


def test_no_run_is_a_sentence() -> None:
    """Where nothing was applied yet, the list says so."""
    assert RUNS_VIEWS["text"]([]) == "No runs recorded.\n"


def _stable(text: str) -> str:
    """The text without the version that wrote it, which a release changes."""
    return "".join('  "tool": …,\n' if line.startswith('  "tool"') else line for line in text.splitlines(keepends=True))
