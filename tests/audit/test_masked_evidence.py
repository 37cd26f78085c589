"""A folder of evidence that did not ask for people names nobody, in no file and no file name."""

from __future__ import annotations

import json
import re
from pathlib import Path

from cli.test_masking import SEED
from flow.project import Project as Folder
from flow.shell import lmsconf as command
from msgspec.structs import replace

from audit.scene import verified
from lmsconf.documents import report_file
from lmsconf.errors import ExitCode, Problem, SourceLocation
from lmsconf.journal.journal_folder import decode_lines, encode_line
from lmsconf.journal.journal_reader import find_run
from lmsconf.journal.kept_runs import kept_report_text, report_path
from lmsconf.model.calls import CallStatus
from lmsconf.model.canonical_json import sha256_of_bytes

NAMES = re.compile(rb"canary", re.IGNORECASE)
GROUPS = """
groups:
  - {name: Coaches, members: [di.canary@canary.example, "o'cy.canary@canary.example"], managers: []}
  - {name: Mentors, members: {file: ../canary/hr.csv, column: email}, managers: [bo.canary@canary.example],
     about: {owner: Canarynew Ek, ticket: for di.canary@canary.example}}
smart_groups: [{name: Nordics, conditions: [{field: Country, choices: [SE]}], managers: [bo.canary@canary.example]}]
content_targets:
  - {content: GDPR basics, assign_to: [{user: di.canary@canary.example}], mandatory: true}
absent:
  content_targets: [{content: Old intro, assign_to: [{user: di.canary@canary.example}]}]
"""
PEOPLE = """
users:
  - email: anna.canary@canary.example
    first_name: Canarynew
    last_name: Canary Berg
    metadata: {badge: canaryother}
    answers: {Nickname: canarysaid, Country: "NO"}
    about: {owner: Canarynew, reason: Canary Berg married}
  - {email: new.canary@canary.example, first_name: Canaryfirst, last_name: Canarylast, language: en}
"""
OPTIONS = "timezone: UTC\npeople: {create: true}\nguards: {min_admins: 1}\n"
META = ("approved_by=di.canary@canary.example", "ticket=T-1")


def bundle(folder: Folder, *arguments: str) -> dict[str, bytes]:
    """The content of each file of the evidence by its path."""
    ran = command(folder.root, "evidence", "--since", "2020-01-01", "--out", "evidence", *arguments)
    assert ran.code == ExitCode.OK, ran.err
    assert verified(folder.root / "evidence").code == ExitCode.OK
    top = folder.root / "evidence"
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def written(root: Path) -> Folder:
    folder = Folder(root / "project", SEED, OPTIONS)
    (folder.root / "canary").mkdir()
    (folder.root / "canary" / "hr.csv").write_text("email\ndi.canary@canary.example\n")
    folder.write(GROUPS, "canary-teams.yaml")
    folder.write(PEOPLE, "bo.canary@canary.example.yaml")
    return folder


def seen(files: dict[str, bytes]) -> list[str]:
    texts = {name: content.replace(b"canary.example/", b"") for name, content in files.items()}
    return [
        f"{name}: …{content[max(0, match.start() - 60) : match.end() + 20].decode()}…"
        for name, content in texts.items()
        for match in NAMES.finditer(name.encode() + b" " + content)
    ]


def test_a_folder_names_nobody(tmp_path: Path) -> None:
    """People in members, managers, answers, names, assignments, approvals, reasons and file names; whole copies do."""
    folder = written(tmp_path)
    stated = [word for pair in META for word in ("--meta", pair)]
    ran = command(folder.root, "apply", "--auto-approve", "--allow", "removals=5", *stated)
    assert ran.code == ExitCode.OK, ran.err
    files = bundle(folder)
    assert seen(files) == []
    (run,) = json.loads(files["evidence.json"])["runs"]
    assert run["approvals"]["ticket"] == "T-1"
    assert re.fullmatch(r"person \d+", run["approvals"]["approved_by"])
    records = [
        json.loads(line) for name in files if name.endswith("journal.jsonl") for line in files[name].splitlines()
    ]
    (report,) = (json.loads(content) for name, content in files.items() if name.endswith("report.json"))
    people = [one for one in (*records, *report["outcomes"]) if "user/" in one.get("address", "")]
    assert {one["operation"] for one in people if one.get("status") == "done"} >= {"users.create"}
    assert {one.get("id") for one in people} == {None}
    (folder.root / "evidence").rename(folder.root / "masked")
    whole = bundle(folder, "--people")
    for content in (b"di.canary@canary.example", b"Canaryfirst", b"canarysaid", b"canary-teams.yaml"):
        assert any(content in text for text in whole.values())


def test_reasons_of_failures_name_nobody(tmp_path: Path) -> None:
    """A reason may quote the body of a refusal, an id in a path, or the name and the answers of a person."""
    folder = written(tmp_path)
    assert command(folder.root, "apply", "--auto-approve", "--allow", "removals=5").code == ExitCode.OK
    run = find_run(folder.root, "latest")
    reason = (
        "PATCH /users/u-canary-1 answered 400: Canaryanna is not allowed",
        "Canarynew Canary Berg (user id u-canary-1) said canarysaid, ask di.canary@canary.example",
    )
    report = report_file.loads(kept_report_text(run))
    problem = Problem(code="person/unknown", message=reason[1], hint=reason[0], source=SourceLocation("canary.yaml"))
    failed = tuple(
        replace(outcome, status=CallStatus.FAILED, reason=reason[number % 2], hint=reason[1])
        for number, outcome in enumerate(report.outcomes)
    )
    text = report_file.dumps(replace(report, outcomes=failed, problems=(problem,)))
    journal = run.journal
    assert journal is not None
    report_path(journal).write_text(text)
    entries = [dict(entry) for entry in decode_lines(journal.read_bytes()) if entry]
    for number, entry in enumerate(entries):
        entry |= {"reason": reason[number % 2], "status": "failed"} if entry["event"] == "outcome" else {}
    entries[-1]["report_sha256"] = sha256_of_bytes(text.encode())
    journal.write_bytes(b"".join(map(encode_line, entries)))
    files = bundle(folder)
    assert sum(content.count(b"answered 400: (masked)") for content in files.values()) >= len(failed) - 1
    assert seen(files) == []


def test_labels_are_those_of_the_same_people_in_all_files(tmp_path: Path) -> None:
    """One person has one label in plan, report and journal of all runs, so that who did what twice is seen."""
    folder = Folder(tmp_path / "project", SEED, OPTIONS)
    for members in ("[di.canary@canary.example]", "[bo.canary@canary.example, di.canary@canary.example]"):
        folder.write(f"groups: [{{name: Mentors, members: {members}}}]\n")
        assert command(folder.root, "apply", "--auto-approve").code == ExitCode.OK
    files = bundle(folder)
    journals = sorted(name for name in files if name.endswith("journal.jsonl"))
    people = [
        json.loads(line)["people"]
        for name in journals
        for line in files[name].splitlines()
        if json.loads(line)["event"] == "intent"
    ]
    assert [one for one in people if one] == [["person 1"], ["person 2"]]
