"""Every sentence by which a plan, a run or a report says how workspace and manifests stand, with what it rests on."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest
from document_samples import COMPLETE, DIVERGED, DOUBLED, EDITED, EMPTY, HOSTILE, STOPPED, TOUCHED, UNREAD
from drift_samples import ALL, BASED, BROKEN, NONE
from msgspec.structs import replace
from test_golden import BEGAN
from test_golden import COMPLETE as RUN

from lmsconf.cli import app
from lmsconf.cli.run_command import run_command_line
from lmsconf.errors import ExitCode, Problem, Severity
from lmsconf.model.address import Address
from lmsconf.model.outcomes import VerifiedScope, VerifyMode
from lmsconf.model.plan import PlanScope
from lmsconf.model.recorded_run import RunEnding
from lmsconf.render import drift_report
from lmsconf.render.apply_report import apply_summary, run_text, verification_result
from lmsconf.render.plan_wording import plan_summary

ROOT: Final = Path(__file__).parent.parent.parent / "lmsconf"
CLAIM: Final = re.compile(
    r"match(es)? the manifests|as planned|as the manifests sa[iy]|No drift|No changes|Apply complete|read back\."
    r"|is left to"
)
SKIPPED: Final = Problem(code="person/unknown", message="x@acme.example", severity=Severity.WARNING)
LEFT_OUT: Final = (Address.of("group", "A"),)
PARTIAL: Final = PlanScope(only=("group/A",))
ALL_OF: Final = COMPLETE.verified
NOTHING_SENT: Final = replace(COMPLETE, outcomes=(), verified=VerifiedScope(scope=VerifyMode.ALL))
SENTENCES: Final[dict[str, tuple[str, Callable[[], str]]]] = {
    # a plan
    "No changes. The workspace matches the manifests.": (
        "a whole plan on what was just read: it is empty",
        lambda: plan_summary(EMPTY),
    ),
    "No changes. The workspace matches the manifests, but for 1 mention of people who are not live.": (
        "the same, where the project skips people who are not live",
        lambda: plan_summary(replace(EMPTY, problems=(SKIPPED,))),
    ),
    "No changes. The scope of this plan matches the manifests.": (
        "an empty plan of a part, by --only or --except",
        lambda: plan_summary(replace(EMPTY, selection=PARTIAL)),
    ),
    "No changes. The snapshot matches the manifests.": (
        "an empty plan on a saved snapshot: nobody has looked at the workspace",
        lambda: plan_summary(replace(EMPTY, offline=True)),
    ),
    "No changes. This plan only adds (--additive), and leaves out 1 change.": (
        "an empty plan with --additive, beside which more differs",
        lambda: plan_summary(replace(EMPTY, selection=PlanScope(additive=True), left_out=LEFT_OUT)),
    ),
    "No changes could be planned because of the errors above.": (
        "errors of what was to be planned",
        lambda: plan_summary(replace(EMPTY, problems=HOSTILE.problems)),
    ),
    # a run, read back
    "Read back: the workspace matches the manifests.": (
        "everything declared and owned was planned again: nothing is left",
        lambda: verification_result(COMPLETE),
    ),
    "Read back: the scope of this plan matches the manifests.": (
        "the same part was planned again",
        lambda: verification_result(replace(COMPLETE, verified=replace(ALL_OF, partial=True))),
    ),
    "Read back: the workspace matches the manifests, but for 2 mentions of people who are not live.": (
        "everything was planned again, and people who are not live were skipped",
        lambda: verification_result(replace(COMPLETE, verified=replace(ALL_OF, skipped=2))),
    ),
    "Read back: nothing of the workspace is left to create or to add; "
    "1 change left out, because this plan only adds.": (
        "everything was planned again with --additive, which leaves something out",
        lambda: verification_result(replace(COMPLETE, verified=replace(ALL_OF, left_out=1))),
    ),
    "Nothing was sent: the workspace matches the manifests.": (
        "everything was planned in this very run, and no call was made",
        lambda: verification_result(NOTHING_SENT),
    ),
    "Nothing was sent, and the workspace was not read back.": (
        "a saved plan without calls, whose manifests are not at hand",
        lambda: verification_result(replace(NOTHING_SENT, verified=VerifiedScope(), converged=None)),
    ),
    "The 2 resources of this plan are as planned. Nothing else was checked (--verify touched).": (
        "the plan's own resources were planned again",
        lambda: verification_result(TOUCHED),
    ),
    "The 2 resources of this plan are as planned.": (
        "the same, without more to say",
        lambda: verification_result(replace(TOUCHED, verified=replace(TOUCHED.verified, reason=None))),
    ),
    "The 2 resources of this plan are not all as planned: 1 resource differs.": (
        "the same: one is still wanted",
        lambda: verification_result(replace(DIVERGED, verified=VerifiedScope(scope=VerifyMode.TOUCHED, resources=2))),
    ),
    "Read back: the workspace does not match the manifests; 1 resource differs.": (
        "everything was planned again: a resource of the plan is still wanted",
        lambda: verification_result(DIVERGED),
    ),
    "Read back: the workspace does not match the manifests; 2 resources differ, 1 of them not part of this plan.": (
        "everything was planned again: one that the plan touched, and one that somebody else did",
        lambda: verification_result(EDITED),
    ),
    "Read back: the workspace does not match the manifests; a new plan finds 1 error.": (
        "everything was planned again as far as that can be: one resource cannot be",
        lambda: verification_result(DOUBLED),
    ),
    "The workspace was not read back, so it is not known whether it matches the manifests.": (
        "nothing: the run was stopped, or nobody could read",
        lambda: verification_result(UNREAD),
    ),
    # the last line of a run
    "Apply complete! 2 resources changed (3 API calls).": (
        "the outcome of every call, and nothing that was looked at is otherwise",
        lambda: apply_summary(COMPLETE),
    ),
    "Apply ended, but it is not known whether the workspace is as planned (3 API calls done).": (
        "the outcome of every call: nobody could look",
        lambda: apply_summary(UNREAD),
    ),
    "Apply ended, but the workspace is not as planned: 1 resource differs (3 API calls done).": (
        "the outcome of every call, and a resource of the plan that is still wanted",
        lambda: apply_summary(DIVERGED),
    ),
    "Apply ended, but the workspace does not match the manifests: 1 resource differs, which is not part of this plan "
    "(3 API calls done).": (
        "the outcome of every call, and a resource that only somebody else touched",
        lambda: apply_summary(replace(EDITED, residue=EDITED.foreign_changes)),
    ),
    "Apply stopped before any change. 0 of 2 API calls done.": (
        "the outcome of every call",
        lambda: apply_summary(STOPPED),
    ),
    # drift
    "No drift. The workspace matches the manifests.": (
        "everything declared and owned was compared: nothing differs, and nothing is ignored",
        lambda: drift_report.drift_summary(NONE),
    ),
    "No drift. The workspace matches the manifests, but for 1 mention of people who are not live.": (
        "the same, where the project skips people who are not live",
        lambda: drift_report.drift_summary(replace(NONE, problems=(SKIPPED,))),
    ),
    "No drift. These differences do not count: 2 not applied yet, 1 ignored.": (
        "what differs is as the base says, or fits an entry under ignore",
        lambda: drift_report.drift_summary(replace(BASED, findings=())),
    ),
    "Drift: none found, but not everything could be compared: see the errors above.": (
        "errors of what was to be compared",
        lambda: drift_report.drift_summary(BROKEN),
    ),
    "Drift: 1 changed. In addition: 1 ignored.": (
        "what differs and counts, by what is wrong with it, and what differs and does not count",
        lambda: drift_report.drift_summary(replace(ALL, findings=ALL.findings[:1])),
    ),
}
"""The sentence → what it rests on, and how it comes about."""

ENDINGS: Final[dict[tuple[VerifyMode, bool | None], str]] = {
    (VerifyMode.ALL, True): "Read back: the scope of the plan matched the manifests.",
    (VerifyMode.ALL, False): "Read back: the scope of the plan did not match the manifests.",
    (VerifyMode.TOUCHED, True): "Read back: what the plan changes was as planned.",
    (VerifyMode.TOUCHED, False): "Read back: what the plan changes was not as planned.",
    (VerifyMode.NONE, None): "The workspace was not read back.",
}
"""What a journal tells of how a run ended: at what it looked, whether that was as it should be → the sentence."""

OTHERS: Final = {
    "Not part of this plan, but drifted:": "a heading over what a plan of everything wants beside it",
    "is not as the manifests say": "a finding of drift, in its own line",
    "Change the workspace back to match the manifests{}": "a heading over a line to paste",
    "− in the manifests, + in the workspace": "a legend",  # noqa: RUF001  the minus sign of the legend
    "the calls, but it is still not as planned": "an error of one resource that was read back",
    "Change the workspace to match the manifests.": "help",
}
"""What says such a thing, and is no closing sentence → what it is instead."""


@pytest.mark.parametrize("sentence", SENTENCES)
def test_a_sentence_rests_on_what_was_looked_at(sentence: str) -> None:
    """It is said where that was looked at which it speaks of."""
    rests_on, said = SENTENCES[sentence]
    assert rests_on
    assert said() == sentence


@pytest.mark.parametrize(("verified", "converged"), ENDINGS)
def test_a_journal_says_what_the_run_looked_at(verified: VerifyMode, converged: bool | None) -> None:
    """A run that looked at what it touched does not speak of all that its plan looks at."""
    ending = RunEnding(at=BEGAN + timedelta(seconds=9), exit=0, verified=verified, converged=converged)
    assert f"with exit 0. {ENDINGS[verified, converged]}\n" in run_text(replace(RUN, ending=ending))


def test_there_is_no_other_sentence() -> None:
    """Whatever the program says of the whole is in the tables above: a new sentence needs what it rests on."""
    known = [_pattern(one) for one in claims()]
    listed = [*SENTENCES, *ENDINGS.values(), *OTHERS]
    unknown = [one.pattern for one in known if not any(one.fullmatch(said) for said in listed)]
    assert unknown == []


def claims() -> Iterator[str]:
    """The texts of views and commands that claim something of the workspace; `{}` stands for what is filled in."""
    for path in sorted([*(ROOT / "views").glob("*.py"), *(ROOT / "cli").glob("*.py"), *ROOT.glob("*.py")]):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
        docs = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
                text = "".join(str(part) for part in parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside | docs:
                text = node.value
            else:
                continue
            if CLAIM.search(text) and "(?P<" not in text:
                yield text


def _pattern(text: str) -> re.Pattern[str]:
    """The text with anything in the place of what is filled in."""
    return re.compile(".*".join(map(re.escape, text.split("{}"))))


# The line that allows what a guard stops leads on when it is pasted, and never in a circle.


PROJECT = """
workspaces: {production: {url: 'sandbox:production.db', seed: seed.yaml}}
guards: {removals: {count: 0}, deletes: {count: 0}}
"""
SEED = """
people: [{email: anna@acme.example, answers: {Country: SE}}]
custom_fields: [{name: Country, type: CHOICE, choices: [SE, "NO"]}]
groups: [{name: A, members: [anna@acme.example]}, {name: B}]
smart_groups: [{name: Norwegians, conditions: [{field: Country, choices: ["NO"]}]}]
"""
MANIFEST = """
custom_fields: [{name: Country, choices: ["NO"]}]
groups: [{name: A, members: []}]
absent: {groups: [B]}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "manifests").mkdir()
    (tmp_path / "lmsconf.yaml").write_text(PROJECT)
    (tmp_path / "seed.yaml").write_text(SEED)
    (tmp_path / "manifests" / "all.yaml").write_text(MANIFEST)
    return tmp_path


def offered(text: str) -> list[str]:
    """The line that is offered first, as a shell takes it apart, without the program."""
    line = next(one for one in text.splitlines() if " apply " in one and "--allow" in one)
    return shlex.split(line[line.index("lmsconf ") :])[1:]


@pytest.mark.parametrize("saved", [False, True], ids=["manifests", "plan-file"])
def test_pasting_the_line_leads_on(root: Path, capsys: pytest.CaptureFixture[str], saved: bool) -> None:
    """Whatever of it was allowed before, the line holds all that is needed: it is never stopped again."""
    command = ["-C", str(root), "apply", str(root / "plan.json") if saved else "--auto-approve"]
    run_command_line(app, ["-C", str(root), "plan", "--out", str(root / "plan.json")])
    capsys.readouterr()
    assert run_command_line(app, command) == ExitCode.BLOCKED
    whole = offered(capsys.readouterr().err)
    consents = whole[whole.index("--allow") :]
    assert consents[0::2] == ["--allow"] * 4
    for first in range(0, len(consents), 2):
        assert run_command_line(app, [*command, *consents[first : first + 2]]) == ExitCode.BLOCKED
        assert offered(capsys.readouterr().err) == whole
    assert run_command_line(app, [*whole, *([] if saved else ["--auto-approve"])]) not in (
        ExitCode.BLOCKED,
        ExitCode.USAGE,
    )


def test_what_the_project_allows_is_not_repeated(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A consent of the project file holds for every command, so no line carries it."""
    with (root / "lmsconf.yaml").open("a") as project:
        project.write("allow: [{deletes: 1, until: 2099-01-01, reason: B was a trial}]\n")
    assert run_command_line(app, ["-C", str(root), "apply", "--auto-approve"]) == ExitCode.BLOCKED
    whole = offered(capsys.readouterr().err)
    assert "deletes=1" not in whole
    assert run_command_line(app, [*whole, "--auto-approve"]) not in (ExitCode.BLOCKED, ExitCode.USAGE)
