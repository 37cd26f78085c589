"""The in-toto Statement v1 of a folder of evidence, and the DSSE envelope that holds it with a signature.

An envelope has at least one signature (DSSE 1.0.2), so a folder that is not signed has the statement alone.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from typing import Final, cast

from lmsconf.audit.signing import PublicKey, SigningKey
from lmsconf.documents.document import JsonObjectReader, render_json
from lmsconf.model.canonical_json import Json

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
    at = JsonObjectReader(json.loads(envelope))
    (signature,) = at.each("signatures", lambda reader: reader)
    signed = b64decode(signature.text("sig"), validate=True)
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
