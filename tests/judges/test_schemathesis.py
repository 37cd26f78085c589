"""Schemathesis, all checks and all phases, on the sandbox: the description and the workspace say the same.

Every run makes the same calls. JUDGES=17 makes ten times as many from another seed, here from 17.
"""

import os
from typing import Final, NamedTuple

import pytest
from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox.faults import ALWAYS, Fault, FaultScript

pytest.importorskip("schemathesis", reason="the extra `judges` is not installed")
from .schemathesis_runner import examine, workspace

pytestmark = [pytest.mark.slow, pytest.mark.sampled(gate=2)]
SEED: Final = int(os.environ.get("JUDGES", "1"))
TIMES: Final = 10 if "JUDGES" in os.environ else 1
OPERATIONS: Final = 60
CHECKS: Final = {
    *("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_headers_conformance"),
    *("response_schema_conformance", "positive_data_acceptance", "negative_data_rejection", "missing_required_header"),
    *("unsupported_method", "allow_header_conformance", "ignored_auth", "object_level_authorization"),
    *("use_after_free", "ensure_resource_availability"),
}
PEOPLE: Final = "^/(users|auth|manage-certificate)"


class Run(NamedTuple):
    """One phase, with so many examples of each operation or walks from one to the next; `only` where paths fit."""

    phase: str
    examples: int
    only: str | None = None


RUNS: Final = (
    Run("examples", 1),
    Run("coverage", 1),
    Run("fuzzing", 20),
    Run("stateful", 60),
    # Walks through all operations seldom go deep, so there are some that stay in one part of the workspace.
    Run("stateful", 60, PEOPLE),
    Run("stateful", 60, "^/(groups|users$)"),
    Run("stateful", 60, "^/(smart-groups|custom-fields|users$)"),
    Run("stateful", 60, "^/(content|analyse|users$|users/{userId}$)"),
)


GROUPS: Final = Run("coverage", 1, "^/groups$")


def test_the_sandbox_keeps_to_the_description() -> None:
    """Whatever Schemathesis asks, the sandbox answers as described; and each operation is done, not only refused."""
    failures: list[str] = []
    checks: set[str] = set()
    done: set[str] = set()
    for run in RUNS:
        found = examine(workspace(), run.phase, seed=SEED, examples=run.examples * TIMES, only=run.only)
        failures += [f"{run.phase}: {failure}" for failure in found.failures]
        checks |= found.checks
        done |= found.carried_out
    assert not failures, "\n\n".join([f"{len(failures)} failures from the seed {SEED}", *failures])
    assert checks >= CHECKS
    assert len(done) == OPERATIONS


@pytest.mark.sampled(gate=3)
@pytest.mark.parametrize(
    ("run", "fault", "checks"),
    [
        (GROUPS, Fault(operation="manual-groups.list", status=500), {"not_a_server_error"}),
        (GROUPS, Fault(operation="manual-groups.list", spoil="html"), {"content_type_conformance"}),
        (
            GROUPS,
            Fault(operation="manual-groups.list", status=200),
            {"response_schema_conformance", "ignored_auth", "negative_data_rejection"},
        ),
        (Run("stateful", 60, PEOPLE), Fault(operation="users.delete", status=200), {"use_after_free"}),
        (Run("stateful", 60, PEOPLE), Fault(operation="users.get", status=404), {"ensure_resource_availability"}),
    ],
    ids=lambda value: value.operation if isinstance(value, Fault) else "",
)
def test_a_wrong_answer_is_found(run: Run, fault: Fault, checks: set[str]) -> None:
    """A sandbox whose answers are not what they should be is found out, by the check that is there for it."""
    found: set[str] = set()
    # Hypothesis draws from the constants of every loaded module, so one seed's walks differ from process to process.
    for seed in range(1, 11):
        broken = workspace(faults=FaultScript(replace(fault, times=ALWAYS)))
        failures = examine(broken, run.phase, seed=seed, examples=run.examples, only=run.only).failures
        found |= {check for check in CHECKS if any(f"[{check}]" in failure for failure in failures)}
        if checks <= found:
            return
    pytest.fail(f"not found from ten seeds: {sorted(checks - found)}")


def test_a_refusal_of_what_is_right_is_found() -> None:
    """A sandbox that takes another name than the description has is found out."""
    other = workspace(spec=ApiSpec({"manual-groups.create.memberIds": "people"}))
    found = examine(other, "coverage", seed=1, examples=1, only="^/groups$")
    assert any("[positive_data_acceptance]" in failure for failure in found.failures)
