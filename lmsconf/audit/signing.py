"""The in-toto Statement v1 of a folder of evidence, the DSSE envelope that signs it, and Ed25519 keys.

Signatures need the package `cryptography`, which only those have who sign or verify. An envelope has at least one
signature (DSSE 1.0.2), so a folder that is not signed has the statement alone.
"""

from __future__ import annotations

import json
import os
import stat
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from msgspec import Struct

from lmsconf.documents.document import render_json, value_at
from lmsconf.errors import LmsconfError
from lmsconf.model.canonical_json import Json, sha256_of_bytes
from lmsconf.support.atomic_files import os_error_message

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


_LARGEST: Final = 64 << 10
_INSTALL: Final = "Install it with: pip install 'lmsconf[signing]'"
_MAKE: Final = "Make one with: openssl genpkey -algorithm ed25519 -out key.pem && chmod 600 key.pem"
_PUBLIC: Final = "Write it with: openssl pkey -in key.pem -pubout -out public.pem"


class SigningError(LmsconfError):
    """A key cannot be used, or the package for signatures is not installed."""

    code = "evidence/key"


class PublicKey(Struct, frozen=True):
    """The key that verifies signatures. keyid: the SHA-256 of its DER form. pem: its PEM text."""

    keyid: str
    pem: str

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether the holder of the private key signed the message."""
        from cryptography.exceptions import InvalidSignature

        try:
            _loaded(self.pem.encode("utf-8")).verify(signature, message)
        except InvalidSignature:
            return False
        return True


class SigningKey(Struct, frozen=True):
    """The key that signs."""

    _key: Ed25519PrivateKey

    @property
    def public(self) -> PublicKey:
        return _public(self._key.public_key())

    def sign(self, message: bytes) -> bytes:
        return self._key.sign(message)


def load_signing_key(path: Path) -> SigningKey:
    """Load an Ed25519 key in PEM, unencrypted PKCS 8. Raises SigningError, also if other users can read the file."""
    require_package()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    content = _content(path, private=True)
    try:
        key = load_pem_private_key(content, password=None)
    except TypeError as error:
        raise SigningError(f"{path} is encrypted", hint="Give a key without a passphrase.") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SigningError(f"{path} is not a private key in PEM", hint=_MAKE) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise SigningError(f"{path} is not an Ed25519 key", hint=_MAKE)
    return SigningKey(key)


def load_public_key(path: Path) -> PublicKey:
    """Load an Ed25519 public key in PEM. Raises SigningError."""
    require_package()
    return parse_public_key(_content(path, private=False), str(path))


def parse_public_key(content: bytes, name: str) -> PublicKey:
    """Return the public key in a PEM text; name: what to call it in the SigningError for another text."""
    require_package()
    try:
        return _public(_loaded(content))
    except ValueError as error:
        raise SigningError(f"{name} is not an Ed25519 public key in PEM", hint=_PUBLIC) from error


def _loaded(content: bytes) -> Ed25519PublicKey:
    """Raises ValueError for another key, or none."""
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(content)
    except UnsupportedAlgorithm as error:
        raise ValueError("it has another algorithm") from error
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError("it is not an Ed25519 key")
    return key


def _public(key: Ed25519PublicKey) -> PublicKey:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    der = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return PublicKey(sha256_of_bytes(der), key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode())


def require_package() -> None:
    """Raise SigningError unless the package for signatures is installed."""
    try:
        import cryptography  # noqa: F401  # slow to import, and an optional extra
    except ImportError as missing:
        raise SigningError("signatures need the package cryptography", hint=_INSTALL) from missing


def _content(path: Path, *, private: bool) -> bytes:
    """Return the content of a key file. private: nobody but its owner may read it."""
    try:
        # O_NONBLOCK: opening a named pipe would block until it has a writer.
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if private and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise SigningError(f"other users can read {path}", hint=f"Run: chmod 600 {path}")
            return file.read(_LARGEST)
    except OSError as error:
        raise SigningError(f"{path} cannot be read: {os_error_message(error)}", hint="Check the path.") from error


STATEMENT: Final = "evidence.intoto.json"
ENVELOPE: Final = "evidence.dsse.json"
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
PREDICATE_TYPE: Final = "https://lmsconf.example/evidence/v1"
_TYPE: Final = "https://in-toto.io/Statement/v1"
_SUMMARY: Final = (
    "run",
    "workspace",
    "digest",
    "started_at",
    "ended_at",
    "exit",
    "approvals",
    "commit",
    "chain",
    "originals",
)
"""The keys of a run that the predicate repeats."""


def statement_text(evidence: Mapping[str, Json], digests: Mapping[str, str], signer: PublicKey | None) -> str:
    """Return the statement: which files there are, by their SHA-256, and about which runs.

    evidence: the document `evidence.json`. digests: by path, of all files but the statement and its envelope.
    """
    runs = cast("list[Mapping[str, Json]]", evidence["runs"])
    subject: list[Json] = [{"name": path, "digest": {"sha256": digests[path]}} for path in sorted(digests)]
    about: dict[str, Json] = {key: evidence[key] for key in ("format", "tool", "created_at", "since", "people")}
    about["signer"] = None if signer is None else {"keyid": signer.keyid, "public_key": signer.pem}
    about["runs"] = [{key: run[key] for key in _SUMMARY} for run in runs]
    return render_json({"_type": _TYPE, "subject": subject, "predicateType": PREDICATE_TYPE, "predicate": about})


def envelope_text(statement: bytes, key: SigningKey) -> str:
    """Return the DSSE envelope of the statement with its signature."""
    return _envelope(statement, key.public.keyid, key.sign(pre_authentication_encoding(statement)))


def signature_in(envelope: str, statement: bytes, keyid: str) -> bytes:
    """Return the signature in an envelope of the statement. Raises ValueError for any other text."""
    (signature,) = value_at(json.loads(envelope), list[dict[str, Json]], "signatures")
    signed = b64decode(value_at(signature, str, "sig"), validate=True)
    if _envelope(statement, keyid, signed) != envelope:
        raise ValueError("it does not hold the statement beside it, or not as lmsconf writes it")
    return signed


def pre_authentication_encoding(payload: bytes) -> bytes:
    """Return what a DSSE signature is made of: the type and the payload, each with its length."""
    kind = PAYLOAD_TYPE.encode("ascii")
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def _envelope(statement: bytes, keyid: str, signature: bytes) -> str:
    signatures: list[Json] = [{"keyid": keyid, "sig": b64encode(signature).decode("ascii")}]
    payload = b64encode(statement).decode("ascii")
    return render_json({"payloadType": PAYLOAD_TYPE, "payload": payload, "signatures": signatures})
