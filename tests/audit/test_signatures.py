"""Signed evidence, as tools that others wrote verify it: in-toto's statement and securesystemslib's DSSE."""

import base64
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from audit.scene import STEPS, copy_of, evidence, kept, names, project_with_runs, rewritten, verified
from cli.test_masking import SEED
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_public_key,
)
from flow.project import Project as Folder
from flow.shell import lmsconf as command
from google.protobuf import json_format
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from json_schemas import schema_validator
from msgspec.structs import replace
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey
from texts import text_of

from lmsconf.audit.statement import load_public_key
from lmsconf.audit.verify_evidence import verify_evidence
from lmsconf.documents import reports
from lmsconf.documents.json_documents import render_json
from lmsconf.errors import ExitCode, Problem, SourceLocation
from lmsconf.model.calls import CallStatus
from lmsconf.model.canonical_json import sha256_of_bytes

pytestmark = pytest.mark.sampled(day=8, daily=False)

PASSWORD = BestAvailableEncryption(b"secret")


def write_key(path: Path, key: object = None, encryption: object = None) -> Path:
    """Write a private key, as openssl does, and its public key beside it."""
    key = key or Ed25519PrivateKey.generate()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption()))
    path.chmod(0o600)
    path.with_suffix(".pub").write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    made = project_with_runs(tmp_path_factory.mktemp("signed") / "project", ("groups: [{name: A}]\n",))
    write_key(made.root / "key.pem")
    write_key(made.root / "other.pem")
    return made


@pytest.fixture(scope="module")
def signed(folder: Folder) -> Path:
    return evidence(folder, "latest", "--sign-key", "key.pem")


def test_securesystemslib_verifies_the_envelope(folder: Folder, signed: Path) -> None:
    """With the public key, and with no other."""
    envelope = Envelope.from_dict(json.loads((signed / "evidence.dsse.json").read_text()))
    paths = [folder.root / name for name in ("key.pub", "other.pub")]
    key, other = (
        SSlibKey.from_crypto(load_pem_public_key(path.read_bytes()), load_public_key(path).keyid) for path in paths
    )
    assert set(envelope.verify([key], 1)) == {key.keyid}
    assert envelope.payload_type == "application/vnd.in-toto+json"
    assert envelope.payload == (signed / "evidence.intoto.json").read_bytes()
    with pytest.raises(VerificationError):
        envelope.verify([other], 1)


def test_the_statement_is_one_of_in_toto(signed: Path) -> None:
    """Version 1, with every other file as a subject, by its digest, and a predicate type of our own."""
    message = json_format.Parse((signed / "evidence.intoto.json").read_text(), StatementMessage())
    Statement.copy_from_pb(message).validate()
    files = {path for path in signed.rglob("*") if path.is_file()}
    files -= {signed / "evidence.intoto.json", signed / "evidence.dsse.json"}
    assert {subject.name: subject.digest["sha256"] for subject in message.subject} == {
        path.relative_to(signed).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }
    assert message.predicate_type == "https://lmsconf.example/evidence/v1"


def test_verify_with_the_key(folder: Folder, signed: Path) -> None:
    """It names the key; without `--key` it says that whose key it is was not verified.

    An unsigned folder does not pass for a signed one: with the envelope dropped, or with a statement that was written
    anew without a signer.
    """
    key, other = str(folder.root / "key.pub"), str(folder.root / "other.pub")
    keyid = load_public_key(folder.root / "key.pub").keyid
    assert f"The signature is of the key in --key: {keyid}" in verified(signed, "--key", key).out
    assert "Pass --key to verify whose key that is" in verified(signed).out
    assert "another key signed it" in verified(signed, "--key", other, code=ExitCode.ERROR).err
    copy = copy_of(signed)
    (copy / "evidence.dsse.json").unlink()
    assert "evidence.dsse.json is missing" in verified(copy, code=ExitCode.ERROR).err
    command(folder.root, "evidence", "latest", "--out", "plain", code=ExitCode.OK)
    assert not (folder.root / "plain" / "evidence.dsse.json").exists()
    assert "the folder is not signed" in verified(folder.root / "plain", "--key", key, code=ExitCode.ERROR).err


def test_a_statement_that_names_a_key_of_another_kind(signed: Path) -> None:
    """That is a finding about the signature, not about the spelling of the statement."""
    path = copy_of(signed) / "evidence.intoto.json"
    statement = json.loads(path.read_text())
    statement["predicate"]["signer"]["public_key"] = "no key"
    path.write_text(render_json(statement))
    assert {one.code for one in verify_evidence(path.parent, None).findings} == {"evidence/signature"}


def test_each_byte_of_the_envelope_counts(signed: Path) -> None:
    """A bit flipped anywhere in it is found, without a key too; so is a signature of another statement."""
    path = copy_of(signed) / "evidence.dsse.json"
    content = path.read_bytes()
    for at in [*range(0, len(content), 997), *range(len(content) - 130, len(content), 7)]:
        path.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :])
        assert verify_evidence(path.parent, None).findings, at
    document = json.loads(content)
    document["signatures"][0]["sig"] = base64.b64encode(bytes(64)).decode()
    path.write_text(json.dumps(document))
    assert verify_evidence(path.parent, None).findings


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda path: path.chmod(0o640), "other users can read"),
        (lambda path: path.write_text("no key"), "is not a private key in PEM"),
        (lambda path: path.unlink(), "cannot be read"),
        (lambda path: write_key(path, ec.generate_private_key(ec.SECP256R1())), "is not an Ed25519 key"),
        (lambda path: write_key(path, encryption=PASSWORD), "is encrypted"),
    ],
)
def test_a_key_that_cannot_sign_is_refused(folder: Folder, tmp_path: Path, spoil: object, message: str) -> None:
    """Before anything is written, with what to do."""
    path = write_key(tmp_path / "bad.pem")
    spoil(path)
    arguments = ("evidence", "latest", "--out", "none", "--sign-key", str(path))
    assert message in command(folder.root, *arguments, code=ExitCode.ERROR).err
    assert not (folder.root / "none").exists()


# A folder of evidence that did not ask for people names nobody, in no file and no file name.


NAMES = re.compile("canary", re.IGNORECASE)
GROUPS = text_of(__file__, "signatures_groups.yaml")
PEOPLE = text_of(__file__, "signatures_people.yaml")
OPTIONS = "timezone: UTC\npeople: {create: true}\nguards: {min_admins: 1}\n"
META = ("approved_by=di.canary@canary.example", "ticket=T-1")


def bundle(folder: Folder, *arguments: str) -> dict[str, bytes]:
    """The content of each file of the evidence by its path."""
    top = evidence(folder, *arguments)
    verified(top)
    return {str(path.relative_to(top)): path.read_bytes() for path in top.rglob("*") if path.is_file()}


def written(root: Path) -> Folder:
    folder = Folder(root / "project", SEED, OPTIONS)
    (folder.root / "canary").mkdir()
    (folder.root / "canary" / "hr.csv").write_text("email\ndi.canary@canary.example\n")
    folder.write(GROUPS, "canary-teams.yaml")
    folder.write(PEOPLE, "bo.canary@canary.example.yaml")
    return folder


def seen(files: dict[str, bytes]) -> list[str]:
    texts = (f"{name} {content.decode()}".replace("canary.example/", "") for name, content in files.items())
    return [text[max(0, found.start() - 60) : found.end() + 20] for text in texts for found in NAMES.finditer(text)]


def apply(folder: Folder, *arguments: str) -> None:
    command(folder.root, "apply", "--auto-approve", "--allow", "removals=5", *arguments, code=ExitCode.OK)


def test_a_folder_names_nobody(tmp_path: Path) -> None:
    """People in members, managers, answers, names, assignments, approvals, reasons and file names; whole copies do."""
    folder = written(tmp_path)
    apply(folder, *(word for pair in META for word in ("--meta", pair)))
    files = bundle(folder)
    assert seen(files) == []
    (run,) = json.loads(files["evidence.json"])["runs"]
    assert run["approvals"]["ticket"] == "T-1"
    assert re.fullmatch(r"person \d+", run["approvals"]["approved_by"])
    (journal,) = (content for name, content in files.items() if name.endswith("journal.jsonl"))
    (report,) = (json.loads(content) for name, content in files.items() if name.endswith("report.json"))
    people = [
        one
        for one in (*map(json.loads, journal.splitlines()), *report["outcomes"])
        if "user/" in one.get("address", "")
    ]
    assert {one["operation"] for one in people if one.get("status") == "done"} >= {"users.create"}
    assert {one.get("id") for one in people} == {None}
    (folder.root / "evidence").rename(folder.root / "masked")
    whole = bundle(folder, "--people")
    for content in (b"di.canary@canary.example", b"Canaryfirst", b"canarysaid", b"canary-teams.yaml"):
        assert any(content in text for text in whole.values())


def test_reasons_of_failures_name_nobody(tmp_path: Path) -> None:
    """A reason may quote the body of a refusal, an id in a path, or the name and the answers of a person."""
    folder = written(tmp_path)
    apply(folder)
    reason = (
        "PATCH /users/u-canary-1 answered 400: Canaryanna is not allowed",
        "Canarynew Canary Berg (user id u-canary-1) said canarysaid, ask di.canary@canary.example",
    )
    report = reports.load_apply_report(kept(folder, "report.json").read_text())
    problem = Problem(code="person/unknown", message=reason[1], hint=reason[0], source=SourceLocation("canary.yaml"))
    failed = tuple(
        replace(outcome, status=CallStatus.FAILED, reason=reason[number % 2], hint=reason[1])
        for number, outcome in enumerate(report.outcomes)
    )
    text = reports.apply_json(replace(report, outcomes=failed, problems=(problem,)))
    kept(folder, "report.json").write_text(text)
    for number, entry in enumerate(rewritten(kept(folder))):
        if entry["event"] == "outcome":
            entry |= {"reason": reason[number % 2], "status": "failed"}
        elif entry["event"] == "end":
            entry["report_sha256"] = sha256_of_bytes(text.encode())
    files = bundle(folder)
    assert sum(content.count(b"answered 400: (masked)") for content in files.values()) >= len(failed) - 1
    assert seen(files) == []


def test_labels_are_those_of_the_same_people_in_all_files(tmp_path: Path) -> None:
    """One person has one label in plan, report and journal of all runs, so that who did what twice is seen."""
    folder = Folder(tmp_path / "project", SEED, OPTIONS)
    for members in ("[di.canary@canary.example]", "[bo.canary@canary.example, di.canary@canary.example]"):
        folder.write(f"groups: [{{name: Mentors, members: {members}}}]\n")
        apply(folder)
    files = bundle(folder)
    journals = sorted(name for name in files if name.endswith("journal.jsonl"))
    entries = [json.loads(line) for name in journals for line in files[name].splitlines()]
    assert [one["people"] for one in entries if one.get("people") and one["event"] == "intent"] == [
        ["person 1"],
        ["person 2"],
    ]


# `lmsconf history`: which runs changed a resource or a person, and what is not known.


ABOUT = "groups: [{name: Coaches, members: [], about: {ticket: HR-7}}, {name: Trainers, members: []}]\n"


@pytest.fixture(scope="module")
def history_folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return project_with_runs(tmp_path_factory.mktemp("history") / "project")


def history(folder: Folder, address: str, *arguments: str) -> dict[str, Any]:
    """The document of one address, which fits its schema."""
    ran = command(folder.root, "history", address, "--format", "json", *arguments, code=ExitCode.OK)
    schema_validator("history").validate(ran.document)
    return ran.document


def test_a_resource_is_followed_through_its_rename(history_folder: Folder) -> None:
    """The newest run first; before the rename the resource is found under its old name.

    A name alone, and the words of a view, find what the address finds.
    """
    found = history(history_folder, "group/Trainers")
    assert [one["run"] for one in found["changes"]] == names(history_folder)[::-1]
    assert [one["address"] for one in found["changes"]] == ["group/Trainers"] * 3 + ["group/Mentors"]
    assert [one["approvals"] for one in found["changes"]] == [{"ticket": f"T-{number}"} for number in (4, 3, 2, 1)]
    assert [one["change"]["action"] for one in found["changes"]] == ["update", "update", "update", "create"]
    assert found["changes"][2]["change"]["fields"] == [
        {"path": "name", "before": "Mentors", "after": "Trainers", "added": [], "removed": []}
    ]
    assert {one["result"] for one in found["changes"]} == {"done"}
    assert found["earlier_names"] == ["group/Mentors"]
    for words in ("Trainers", "group Trainers"):
        assert history(history_folder, words)["changes"] == found["changes"]


def test_a_person_is_found_in_lists_and_assignments(history_folder: Folder) -> None:
    """By e-mail, in any case, or by the address of the person; other people of the same lists are left out."""
    changes = history(history_folder, "Bo.Ek@acme.example")["changes"]
    shown = [(one["address"], one["change"]["action"]) for one in changes]
    assert sorted(shown[:2]) == [("group/Coaches", "update"), ("group/Trainers", "update")]
    assert ("content_target/GDPR basics -> user/bo.ek@acme.example", "create") in shown
    assert "cy.dahl" not in json.dumps([one["change"] for one in changes])
    assert ["bo.ek@acme.example"] in [field["removed"] for one in changes for field in one["change"]["fields"]]
    assert history(history_folder, "user/bo.ek@acme.example")["changes"] == changes


def test_text_says_who_why_and_what(tmp_path: Path) -> None:
    """When, by which run, what the caller stated, why (`about`), and the values before and after."""
    folder = project_with_runs(tmp_path / "project", ("groups: [{name: Trainers}]\n", ABOUT))
    text = command(folder.root, "history", "group/Coaches", code=ExitCode.OK).out
    for said in (
        "group/Coaches: done",
        f"run {names(folder)[1]} on sandbox, stated by the caller: ticket=T-2",
        "was changed",
        "ticket: HR-7",
        "members: - bo.ek@acme.example",
        "Looked at: 2 runs since ",
        "by hand, or from another folder is not recorded here.",
    ):
        assert said in text, text


def test_what_no_run_changed_is_not_said_to_be_unchanged(history_folder: Folder) -> None:
    """It says from when runs are kept, and names the nearest addresses that runs changed."""
    text = command(history_folder.root, "history", "group/Trainer", code=ExitCode.OK).out
    assert "No kept run changed group/Trainer. Looked at: 4 runs since " in text
    assert "Did you mean group/Trainers" in text
    assert "What was changed before " in text
    assert "never" not in text


@pytest.mark.parametrize(
    ("status", "result"), [("failed", "failed"), ("in_flight", "unknown"), ("blocked", "failed"), (None, "unknown")]
)
def test_what_was_not_done_is_not_shown_as_done(tmp_path: Path, status: str | None, result: str) -> None:
    """A refused call, one in flight, one that was not sent; in a run that was cut short the last one is not known."""
    folder = project_with_runs(tmp_path / "project", ("groups: [{name: A}]\n",))
    for entry in rewritten(kept(folder)):
        entry |= {"status": status} if entry["event"] == "outcome" and status else {}
    if status is None:
        kept(folder).write_bytes(b"".join(kept(folder).read_bytes().splitlines(keepends=True)[:2]))
    (one,) = history(folder, "group/A")["changes"]
    assert (one["result"], one["calls"]) == (result, {"done": 0, "planned": 1})


def test_a_run_whose_plan_is_not_kept_is_found_by_its_calls(tmp_path: Path) -> None:
    """Then what it changed is not known, and the history says why."""
    folder = project_with_runs(tmp_path / "project", ("groups: [{name: A, members: [bo.ek@acme.example]}]\n",))
    kept(folder, "plan.json").unlink()
    for asked in ("group/A", "bo.ek@acme.example"):
        (one,) = history(folder, asked)["changes"]
        assert (one["address"], one["change"], one["result"]) == ("group/A", None, "done")
        assert "is not kept" in one["why_no_plan"]


@pytest.mark.sampled(day=1)
def test_a_workspace_can_be_chosen(tmp_path: Path) -> None:
    """`--workspace` leaves out runs on others; a journal that cannot be read is named, as it may be of any."""
    folder = project_with_runs(tmp_path / "project", STEPS[:1])
    kept(folder).with_stem("20200101T000000Z-abc").write_bytes(b"damaged\n")
    found = history(folder, "group/Coaches", "--workspace", "other")
    assert (found["changes"], found["runs"], found["unreadable"]) == ([], 0, ["20200101T000000Z-abc"])
    assert "cannot be read; it may have changed" in command(folder.root, "history", "group/Coaches").out
