"""`--mask-people`: nobody is shown, in any format of any view, on stdout, on stderr and in files."""

import io
import json
import re
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from flow.project import Project
from json_schemas import schema_validator
from texts import text_of

from lmsconf.cli import app, report_crash, run_command_line
from lmsconf.cli.output import report_problems, write_redacted
from lmsconf.errors import Problem
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox
from lmsconf.support.secrets import register_secret
from lmsconf.workspace.connection import fill_if_empty

SEED = text_of(__file__, "masking_seed.yaml")
MANIFESTS = text_of(__file__, "masking_manifests.yaml")
OPTIONS = (
    "timezone: UTC\nownership: {content_targets: declared_content}\n"
    "guards: {protect: ['user/nobody.canary@canary.example'], min_admins: 1}\n"
    "ignore: [{address: 'user/bo.canary@canary.example', reason: as di.canary@canary.example says}]\n"
)
WRONG = text_of(__file__, "masking_wrong.yaml")
FORMATS = {
    "plan": ("text", "json", "markdown", "html"),
    "drift": ("text", "json", "markdown", "html", "junit", "sarif"),
    "show": ("text", "json", "markdown", "html"),
}
NAMES = re.compile(r"canary(?!\.example/api)", re.IGNORECASE)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    made = Project(tmp_path, SEED, OPTIONS)
    (tmp_path / "hr.csv").write_text("email,name\ndi.canary@canary.example,Canarydi\n")
    (tmp_path / "bad.csv").write_text("email,name\nCanarybo Ek,x\nnot a canary,x\n")
    made.write(MANIFESTS)
    monkeypatch.chdir(tmp_path)
    return made


class CommandOutput:
    """What a command wrote, on both streams."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = self.err = ""

    def __call__(self, *arguments: str) -> int:
        code = run_command_line(app, [*arguments])
        self.out, self.err = self._capsys.readouterr()
        return code

    def shows_nobody(self) -> None:
        found = NAMES.search(self.out + self.err)
        assert found is None, (self.out + self.err)[max(0, found.start() - 200) : found.end() + 80]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> CommandOutput:
    return CommandOutput(capsys)


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("command", "format"), [pair for one in ("plan", "drift") for pair in product([one], FORMATS[one])]
)
def test_a_view_shows_nobody(project: Project, told: CommandOutput, command: str, format: str) -> None:
    """E-mails, ids, names, metadata and answers, wherever they stand; people are told apart by number."""
    told("--mask-people", command, "--format", format)
    told.shows_nobody()
    assert "person 1" in told.out
    assert len(told.out) > 500


@pytest.mark.sampled
def test_a_file_shows_nobody(project: Project, told: CommandOutput) -> None:
    """`--output` writes what stdout would show."""
    assert told("--mask-people", "plan", "--format", "html", "--output", "plan.html") == 0
    assert not NAMES.search((project.root / "plan.html").read_text())


@pytest.mark.sampled
@pytest.mark.parametrize("format", FORMATS["show"])
def test_a_saved_plan_and_report_show_nobody(project: Project, told: CommandOutput, format: str) -> None:
    """`show` masks what was saved whole; `apply` masks the plan that it asks about, its progress and its report."""
    assert told("plan", "--out", "whole.json") == 0
    told("--mask-people", "show", "whole.json", "--format", format)
    told.shows_nobody()
    assert "person 1" in told.out
    told("--mask-people", "apply", "--auto-approve", "--format", "json", "--output", "unseen.json")
    told.shows_nobody()
    if format == "json":
        told("--mask-people", "apply", "--auto-approve", "--allow", "deletes=1", "--format", format)
        told.shows_nobody()


@pytest.mark.sampled
@pytest.mark.parametrize("format", ["text", "json", "markdown", "html"])
def test_a_report_shows_nobody(project: Project, told: CommandOutput, format: str) -> None:
    """What an apply did, and what every run did that is written down here."""
    told("--mask-people", "apply", "--auto-approve", "--format", format, "--meta", "approver=di.canary@canary.example")
    told.shows_nobody()
    assert told.out
    told("--mask-people", "runs", "latest")
    told.shows_nobody()


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("command", "format"), [("plan", "text"), ("plan", "json"), ("validate", "json"), ("drift", "sarif")]
)
def test_a_problem_shows_nobody(project: Project, told: CommandOutput, command: str, format: str) -> None:
    """The nearest e-mail, quoted cells of a CSV file, pinned ids: none is told; places and codes stay."""
    project.write(WRONG)
    assert told("--mask-people", command, "--format", format) == 1
    told.shows_nobody()
    assert "manifests/all.yaml" in told.err


@pytest.mark.sampled
def test_calls_and_problems_about_a_person_keep_their_form(project: Project, told: CommandOutput) -> None:
    """A path about a person that the plan creates stays a path; a problem's address has the label of its change."""
    project.write_options(OPTIONS.replace("min_admins: 1", "min_admins: 2") + "people: {create: true}\n")
    project.write(
        "users:\n"
        "  - {email: bo.canary@canary.example, admin: false}\n"
        "  - {email: new.canary@canary.example, first_name: N, last_name: C, language: sv, answers: {Country: SE}}\n"
        "custom_fields: [{name: Track, type: CHOICE, choices: [Full]}]\n"
        "smart_groups:\n"
        "  - {name: On track, conditions: [{field: Track, choices: [Full]}], managers: [new.canary@canary.example]}\n"
    )
    told("--mask-people", "plan", "--format", "json")
    told.shows_nobody()
    document = json.loads(told.out)
    schema_validator("plan").validate(document)
    assert "/users/(masked)/update-custom-field-choice" in [call["path"] for call in document["calls"]]
    assert '{"$ref":"custom_field/Track","choice":"Full"}' in told.out
    (change,) = [change for change in document["changes"] if change["problems"]]
    assert [problem["address"] for problem in change["problems"]] == [change["address"]] == ["user/person 1"]


@pytest.mark.sampled
def test_a_masked_plan_cannot_be_applied(project: Project, told: CommandOutput) -> None:
    """It has no seal and says so; --out is refused, and so is the JSON of a snapshot."""
    assert told("--mask-people", "plan", "--out", "plan.json") == 64
    assert not (project.root / "plan.json").exists()
    assert told("--mask-people", "plan", "--format", "json", "--output", "masked.json") == 0
    document = json.loads((project.root / "masked.json").read_text())
    assert document["masked"] is True
    assert document["seal"] == ""
    assert document["fingerprints"] == {}
    schema_validator("plan").validate(document)
    assert told("apply", "masked.json") == 3
    assert "with masked people, and cannot be applied" in told.err
    assert told("snapshot", "all.json") == 0
    assert told("--mask-people", "show", "all.json", "--format", "json") == 64
    assert told("--mask-people", "show", "all.json") == 0


@pytest.mark.sampled
@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_what_is_about_nobody_stays_as_it_is(
    tmp_path: Path, told: CommandOutput, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    """Without people in it, a view is the same to the letter: pages keep their script and their styles."""
    project = Project(tmp_path, "content: [{name: GDPR basics}]\n", "timezone: UTC\n")
    project.write("groups: [{name: 'Sales @ night', members: []}]\n")
    monkeypatch.chdir(tmp_path)
    told("plan", "--format", format)
    plain = told.out
    told("--mask-people", "plan", "--format", format)
    moment = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
    assert moment.sub("", told.out) == moment.sub("", plain)


@pytest.mark.sampled
@pytest.mark.parametrize("format", ["text", "json", "html"])
def test_a_quoted_answer_is_hidden_and_nothing_else_of_the_document(
    project: Project, told: CommandOutput, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    """What a refusal quotes may name people; behind it, documents go on as ever: JSON stays JSON, HTML has its end."""
    monkeypatch.setenv("LMSCONF_KEY", "sandbox")
    refusing = FaultScript(Fault(operation="manual-groups.create", status=400))
    sandbox = fill_if_empty(Sandbox(faults=refusing), project.root / "workspace.yaml")
    (project.root / "manifests" / "all.yaml").write_text("groups: [{name: A}, {name: B}]\n")
    with serve(sandbox) as server:
        (project.root / "lmsconf.yaml").write_text(
            f"workspaces: {{w: {{url: '{server.url}', token: {{env: LMSCONF_KEY}}}}}}\n"
        )
        assert told("--mask-people", "apply", "--auto-approve", "--format", format, "--events", "seen.jsonl") == 5
    sandbox.close_workspace()
    assert "answered 400: (masked)" in told.out
    events = [json.loads(line) for line in (project.root / "seen.jsonl").read_text().splitlines()]
    (failed,) = [event["reason"] for event in events if event.get("status") == "failed" and "reason" in event]
    assert failed.endswith("answered 400: (masked)")
    if format == "json":
        outcomes = json.loads(told.out)["outcomes"]
        assert sorted(outcome["status"] for outcome in outcomes) == ["done", "failed"]
    elif format == "html":
        assert told.out.rstrip().endswith("</html>")


@pytest.mark.sampled
@pytest.mark.parametrize("command", [("plan",), ("drift",), ("apply", "--auto-approve", "--allow", "deletes=1")])
def test_events_show_nobody(project: Project, told: CommandOutput, command: tuple[str, ...]) -> None:
    """Neither a change, a finding, a call nor a problem names anybody, and every line is JSON."""
    told("--mask-people", *command, "--events", "seen.jsonl")
    told.shows_nobody()
    told.out = (project.root / "seen.jsonl").read_text()
    told.shows_nobody()
    events = [json.loads(line) for line in told.out.splitlines()]
    assert {"start", "problem", "end"} < {event["type"] for event in events}
    told("--mask-people", *command, "--events", "-")
    told.shows_nobody()
    assert json.loads(told.out.splitlines()[-1])["type"] == "end"


# Nothing that lmsconf says of a failure holds a key.


TOKEN = "token-canary-0815"  # it is of no service
LINK = "https://files.example/canary/x?X-Amz-Signature=canary"


def test_problems_are_told_without_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """A problem's words and its hint lose tokens and links, and keep the rest."""
    register_secret(TOKEN)
    report_problems([Problem(code="api/rejected", message=f"refused {TOKEN} at {LINK}", hint=f"ask Bearer {TOKEN}")])
    said = capsys.readouterr().err
    assert "canary" not in said
    assert "refused *** at https://files.example/***" in said


def test_a_mistake_of_our_own_is_told_without_keys(capsys: pytest.CaptureFixture[str]) -> None:
    """A traceback names the place, and neither its message nor that of its cause holds a key."""
    register_secret(TOKEN)
    try:
        try:
            raise ValueError(f"at {LINK}")
        except ValueError as cause:
            raise RuntimeError(f"with {TOKEN}") from cause
    except RuntimeError as error:
        report_crash(type(error), error, error.__traceback__)
    said = capsys.readouterr().err
    assert "canary" not in said
    assert "test_masking.py" in said
    assert "RuntimeError: with ***" in said


def test_the_command_line_uses_it() -> None:
    """A program that crashes prints its traceback through the same door."""
    code = (
        "import lmsconf.cli\n"
        f"def run(*_): raise RuntimeError({LINK!r})\n"
        "lmsconf.cli.run_command_line = run\n"
        "lmsconf.cli.main([])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "RuntimeError: https://files.example/***" in ran.stderr


def test_what_is_asked_for_by_hand_stays_whole() -> None:
    """Every stream loses the token, but the answer to `lmsconf api`, which is the caller's own."""
    register_secret(TOKEN)
    usual, whole = io.StringIO(), io.StringIO()
    write_redacted(f"it is {TOKEN}", usual)
    write_redacted(f"it is {TOKEN}", whole, whole=True)
    assert (usual.getvalue(), whole.getvalue()) == ("it is ***", f"it is {TOKEN}")
