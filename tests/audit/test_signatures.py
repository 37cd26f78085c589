"""Signed evidence, as tools that others wrote verify it: in-toto's statement and securesystemslib's DSSE."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from flow.project import Project as Folder
from flow.shell import lmsconf as command
from google.protobuf import json_format
from in_toto_attestation.v1.statement import Statement
from in_toto_attestation.v1.statement_pb2 import Statement as StatementMessage
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import SSlibKey

from audit.scene import copy_of, evidence, project_with_runs, verified
from lmsconf.audit.signing import load_public_key
from lmsconf.audit.verification import verify_evidence
from lmsconf.errors import ExitCode

PASSWORD = BestAvailableEncryption(b"secret")


def write_key(path: Path, key: object = None, encryption: object = None) -> Path:
    """Write a private key, as openssl does, and its public key beside it."""
    key = key or Ed25519PrivateKey.generate()
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption()))
    path.chmod(0o600)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    path.with_suffix(".pub").write_bytes(public)
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


def foreign_key(folder: Folder, name: str = "key.pub") -> SSlibKey:
    pem = (folder.root / name).read_bytes()
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    return SSlibKey.from_crypto(load_pem_public_key(pem), load_public_key(folder.root / name).keyid)


def test_securesystemslib_verifies_the_envelope(folder: Folder, signed: Path) -> None:
    """With the public key, and with no other."""
    envelope = Envelope.from_dict(json.loads((signed / "evidence.dsse.json").read_text()))
    key = foreign_key(folder)
    assert set(envelope.verify([key], 1)) == {key.keyid}
    assert envelope.payload_type == "application/vnd.in-toto+json"
    assert envelope.payload == (signed / "evidence.intoto.json").read_bytes()
    with pytest.raises(VerificationError):
        envelope.verify([foreign_key(folder, "other.pub")], 1)


def test_the_statement_is_one_of_in_toto(signed: Path) -> None:
    """Version 1, with every other file as a subject, by its digest, and a predicate type of our own."""
    message = json_format.Parse((signed / "evidence.intoto.json").read_text(), StatementMessage())
    Statement.copy_from_pb(message).validate()
    subjects = {subject.name: subject.digest["sha256"] for subject in message.subject}
    files = {path for path in signed.rglob("*") if path.is_file()}
    files -= {signed / "evidence.intoto.json", signed / "evidence.dsse.json"}
    assert subjects == {
        path.relative_to(signed).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files
    }
    assert message.predicate_type == "https://lmsconf.example/evidence/v1"


def test_verify_with_the_key(folder: Folder, signed: Path) -> None:
    """It names the key; without `--key` it says that whose key it is was not verified."""
    keyid = load_public_key(folder.root / "key.pub").keyid
    assert (
        f"The signature is of the key in --key: {keyid}" in verified(signed, "--key", str(folder.root / "key.pub")).out
    )
    assert "Pass --key to verify whose key that is" in verified(signed).out
    ran = verified(signed, "--key", str(folder.root / "other.pub"))
    assert (ran.code, "another key signed it" in ran.err) == (ExitCode.ERROR, True)


def test_an_unsigned_folder_does_not_pass_for_a_signed_one(folder: Folder, signed: Path) -> None:
    """With the envelope dropped, or with a statement that was written anew without a signer."""
    copy = copy_of(signed)
    (copy / "evidence.dsse.json").unlink()
    assert "evidence.dsse.json is missing" in verified(copy).err
    plain = folder.root / "plain"
    assert command(folder.root, "evidence", "latest", "--out", "plain").code == ExitCode.OK
    assert not (plain / "evidence.dsse.json").exists()
    ran = verified(plain, "--key", str(folder.root / "key.pub"))
    assert (ran.code, "the folder is not signed" in ran.err) == (ExitCode.ERROR, True)


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
    ran = command(folder.root, "evidence", "latest", "--out", "none", "--sign-key", str(path))
    assert (ran.code, message in ran.err) == (ExitCode.ERROR, True), ran.err
    assert not (folder.root / "none").exists()


def test_a_public_key_is_asked_for_by_verify(folder: Folder, signed: Path) -> None:
    """A private one is none."""
    ran = verified(signed, "--key", str(folder.root / "key.pem"))
    assert (ran.code, "is not an Ed25519 public key" in ran.err) == (ExitCode.ERROR, True)
