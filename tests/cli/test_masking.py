"""`--mask-people`: nobody is shown, in any format of any view, on stdout, on stderr and in files."""

import io
import json
import re
import subprocess
import sys
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest
from cli.served import served
from flow.project import Project
from flow.shell import Ran, lmsconf
from json_schemas import schema_validator
from texts import text_of

from lmsconf.cli.output import report_problems, write_redacted
from lmsconf.errors import Problem
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.support.secrets import register_secret

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
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path, SEED, OPTIONS)
    (tmp_path / "hr.csv").write_text("email,name\ndi.canary@canary.example,Canarydi\n")
    (tmp_path / "bad.csv").write_text("email,name\nCanarybo Ek,x\nnot a canary,x\n")
    made.write(MANIFESTS)
    return made


def masked(project: Project, *arguments: str, env: Mapping[str, str] | None = None, code: int | None = None) -> Ran:
    """Runs a command with --mask-people, which shows nobody on stdout and stderr. code: what it has to exit with."""
    ran = lmsconf(project.root, "--mask-people", *arguments, env=env, code=code)
    shows_nobody(ran.out + ran.err)
    return ran


def shows_nobody(text: str) -> None:
    found = NAMES.search(text)
    assert found is None, text[max(0, found.start() - 200) : found.end() + 80]


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    ("command", "format"), [pair for one in ("plan", "drift") for pair in product([one], FORMATS[one])]
)
def test_a_view_shows_nobody(project: Project, command: str, format: str) -> None:
    """E-mails, ids, names, metadata and answers, wherever they stand; people are told apart by number."""
    out = masked(project, command, "--format", format).out
    assert "person 1" in out
    assert len(out) > 500


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("format", FORMATS["show"])
def test_a_saved_plan_and_report_show_nobody(project: Project, format: str) -> None:
    """`show` masks what was saved whole; an `apply` that a guard stops masks the plan that it tells, and why."""
    lmsconf(project.root, "plan", "--out", "whole.json", code=0)
    assert "person 1" in masked(project, "show", "whole.json", "--format", format).out
    masked(project, "apply", "--auto-approve", "--format", "json", "--output", "unseen.json")


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("format", ["text", "json", "markdown", "html"])
def test_a_report_shows_nobody(project: Project, format: str) -> None:
    """What an apply did, and what every run did that is written down here."""
    meta = ("--meta", "approver=di.canary@canary.example")
    assert masked(project, "apply", "--auto-approve", "--allow", "deletes=1", "--format", format, *meta).out
    masked(project, "runs", "latest")


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("command", "format"), [("plan", "text"), ("plan", "json"), ("validate", "json"), ("drift", "sarif")]
)
def test_a_problem_shows_nobody(project: Project, command: str, format: str) -> None:
    """The nearest e-mail, quoted cells of a CSV file, pinned ids: none is told; places and codes stay."""
    project.write(WRONG)
    assert "manifests/all.yaml" in masked(project, command, "--format", format, code=1).err


@pytest.mark.sampled
def test_calls_and_problems_about_a_person_keep_their_form(project: Project) -> None:
    """A path about a person that the plan creates stays a path; a problem's address has the label of its change."""
    project.write_options(OPTIONS.replace("min_admins: 1", "min_admins: 2") + "people: {create: true}\n")
    project.write(text_of(__file__, "masking_created.yaml"))
    out = masked(project, "plan", "--format", "json").out
    document = json.loads(out)
    schema_validator("plan").validate(document)
    assert "/users/(masked)/update-custom-field-choice" in [call["path"] for call in document["calls"]]
    assert '{"$ref":"custom_field/Track","choice":"Full"}' in out
    (change,) = [change for change in document["changes"] if change["problems"]]
    assert [problem["address"] for problem in change["problems"]] == [change["address"]] == ["user/person 1"]


@pytest.mark.sampled(day=1)
def test_a_masked_plan_cannot_be_applied(project: Project) -> None:
    """It has no seal and says so; --out is refused, and so is the JSON of a snapshot. `--output` masks as stdout."""
    masked(project, "plan", "--out", "plan.json", code=64)
    assert not (project.root / "plan.json").exists()
    masked(project, "plan", "--format", "json", "--output", "masked.json", code=0)
    text = (project.root / "masked.json").read_text()
    shows_nobody(text)
    document = json.loads(text)
    assert (document["masked"], document["seal"], document["fingerprints"]) == (True, "", {})
    schema_validator("plan").validate(document)
    assert "with masked people, and cannot be applied" in lmsconf(project.root, "apply", "masked.json", code=3).err
    lmsconf(project.root, "snapshot", "all.json", code=0)
    masked(project, "show", "all.json", "--format", "json", code=64)
    masked(project, "show", "all.json", code=0)


@pytest.mark.sampled
@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_what_is_about_nobody_stays_as_it_is(tmp_path: Path, format: str) -> None:
    """Without people in it, a view is the same to the letter: pages keep their script and their styles."""
    project = Project(tmp_path, "content: [{name: GDPR basics}]\n", "timezone: UTC\n")
    project.write("groups: [{name: 'Sales @ night', members: []}]\n")
    plain = lmsconf(tmp_path, "plan", "--format", format).out
    shown = masked(project, "plan", "--format", format).out
    moment = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d")
    assert moment.sub("", shown) == moment.sub("", plain)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("format", ["text", "json", "html"])
def test_a_quoted_answer_is_hidden_and_nothing_else_of_the_document(project: Project, format: str) -> None:
    """What a refusal quotes may name people; behind it, documents go on as ever: JSON stays JSON, HTML has its end."""
    project.write("groups: [{name: A}, {name: B}]\n")
    apply = ("apply", "--auto-approve", "--format", format, "--events", "seen.jsonl")
    with served(project.root, faults=FaultScript(Fault(operation="manual-groups.create", status=400))) as (_, env):
        out = masked(project, *apply, env=env, code=5).out
    assert "answered 400: (masked)" in out
    events = [json.loads(line) for line in (project.root / "seen.jsonl").read_text().splitlines()]
    (failed,) = [event["reason"] for event in events if event.get("status") == "failed" and "reason" in event]
    assert failed.endswith("answered 400: (masked)")
    if format == "json":
        assert sorted(outcome["status"] for outcome in json.loads(out)["outcomes"]) == ["done", "failed"]
    elif format == "html":
        assert out.rstrip().endswith("</html>")


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("command", [("plan",), ("drift",), ("apply", "--auto-approve", "--allow", "deletes=1")])
def test_events_show_nobody(project: Project, command: tuple[str, ...]) -> None:
    """Neither a change, a finding, a call nor a problem names anybody, and every line is JSON."""
    masked(project, *command, "--events", "seen.jsonl")
    text = (project.root / "seen.jsonl").read_text()
    shows_nobody(text)
    assert {"start", "problem", "end"} < {json.loads(line)["type"] for line in text.splitlines()}
    assert json.loads(masked(project, *command, "--events", "-").out.splitlines()[-1])["type"] == "end"


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


def test_a_mistake_of_our_own_is_told_without_keys() -> None:
    """A traceback of the program names the place, and neither its message nor that of its cause holds a key."""
    code = (
        "import lmsconf.cli, lmsconf.support.secrets\n"
        f"lmsconf.support.secrets.register_secret({TOKEN!r})\n"
        f"def run(*_): raise RuntimeError('with {TOKEN}') from ValueError('at {LINK}')\n"
        "lmsconf.cli.run_command_line = run\n"
        "lmsconf.cli.main([])\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    assert "canary" not in ran.stderr
    assert re.search(r'File ".*cli/__init__\.py", line \d+, in main', ran.stderr)
    assert "ValueError: at https://files.example/***" in ran.stderr
    assert "RuntimeError: with ***" in ran.stderr


def test_what_is_asked_for_by_hand_stays_whole() -> None:
    """Every stream loses the token, but the answer to `lmsconf api`, which is the caller's own."""
    register_secret(TOKEN)
    usual, whole = io.StringIO(), io.StringIO()
    write_redacted(f"it is {TOKEN}", usual)
    write_redacted(f"it is {TOKEN}", whole, whole=True)
    assert (usual.getvalue(), whole.getvalue()) == ("it is ***", f"it is {TOKEN}")
