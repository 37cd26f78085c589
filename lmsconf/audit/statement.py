"""What `evidence.json` states of a run, the in-toto Statement v1 of the folder, and its Ed25519 signature.

Signatures need the package `cryptography`, which only those have who sign or verify. An envelope has at
least one signature (DSSE 1.0.2), so a folder that is not signed has the statement alone.
"""

from __future__ import annotations

import json
import os
import stat
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from msgspec import Struct

from lmsconf.documents.journal.journal_reader import parse_journal
from lmsconf.documents.json_documents import from_json, json_at, object_json, parse_document, render_json, value_at
from lmsconf.errors import LmsconfError, Problem
from lmsconf.model.canonical_json import Json, sha256_of_bytes
from lmsconf.model.effects import PredictedTotals
from lmsconf.model.time_formats import format_utc
from lmsconf.render.effects_wording import totals_sentence
from lmsconf.render.jinja import html_page
from lmsconf.support.files import open_nonblocking, os_error_message

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey


FOLDER: Final = "runs"
FILES: Final = {"journal": "journal.jsonl", "plan": "plan.json", "report": "report.json"}
"""What there are copies of → the name of the copy in the folder of its run."""


def copy_path(run: str, name: str) -> str:
    """Return the path of a copy below the folder of evidence. name: a key of FILES."""
    return f"{FOLDER}/{run}/{FILES[name]}"


def run_entry(name: str, copies: Mapping[str, bytes]) -> dict[str, Json]:
    """Return what the copies of a run's files show: of its journal, and of plan and report where they are kept.

    copies: by the keys of FILES, masked or whole. Raises ValueError or LmsconfError for what lmsconf did not write.
    """
    run = parse_journal(name, copies["journal"])
    if run.opening is None:
        raise ValueError("the first line of the journal cannot be read")
    header, ending = run.opening, run.ending
    documents = {one: parse_document(copies[one].decode("utf-8")) for one in ("plan", "report") if one in copies}
    if any(document.get("digest") != header.digest for document in documents.values()):
        raise ValueError("plan, report and journal are not of the same plan")
    report = documents.get("report")
    return {
        "run": run.name,
        "workspace": {"name": header.workspace, "url": header.url},
        "digest": header.digest,
        "tool": header.tool,
        "started_at": format_utc(header.started),
        "approvals": dict(sorted(header.meta.items())),
        "commit": None if header.commit is None else object_json(header.commit),
        "before": None if header.before is None else object_json(header.before),
        "chain": None if header.chain is None else object_json(header.chain),
        "recorded_plan": header.plan_sha256,
        "ended_at": None if ending is None else format_utc(ending.at),
        "exit": None if ending is None else ending.exit,
        "verified": None if ending is None else ending.verified.value,
        "converged": None if ending is None else ending.converged,
        "after": None if ending is None or ending.after is None else object_json(ending.after),
        "recorded_report": None if ending is None else ending.report_sha256,
        "calls": {state.value: number for state, number in run.summary.items()},
        "damaged": run.damaged,
        **_plan(documents.get("plan")),
        "problems": None if report is None else len(value_at(report, list[Json], "problems")),
        "left": None if report is None else len(value_at(report, list[Json], "residue")),
    }


def _plan(plan: Mapping[str, Json] | None) -> dict[str, Json]:
    """Return the counts of a plan: changes, what it does to people, and the consents it was given."""
    if plan is None:
        return {"manifests": None, "changes": None, "effects": None, "consents": []}
    return {
        "manifests": value_at(plan, str, "manifests", "digest"),
        "changes": {name: value_at(plan, int, "summary", name) for name in ("create", "update", "replace", "delete")},
        "effects": object_json(value_at(plan, PredictedTotals, "effects")),
        "consents": [
            {"guard": json_at(one, "name"), "total": json_at(one, "total"), "reason": json_at(one, "allowed_by")}
            for one in value_at(plan, list[dict[str, Json]], "guards")
            if json_at(one, "allowed_by") is not None
        ],
    }


def entry_order(entry: Mapping[str, Json]) -> tuple[str, str, int, str, str]:
    """Return the key that sorts the runs of a folder: by workspace, then by their number, then by time."""
    number = 0 if json_at(entry, "chain") is None else value_at(entry, int, "chain", "number")
    workspace = value_at(entry, str, "workspace", "name"), value_at(entry, str, "workspace", "url")
    return *workspace, number, value_at(entry, str, "started_at"), value_at(entry, str, "run")


Entry = Mapping[str, Json]


def chain_findings(entries: Sequence[Entry]) -> Iterator[Problem]:
    """Yield what is wrong with the order and the links of the runs. Raises ValueError for entries of another form."""
    if list(map(entry_order, entries)) != sorted(map(entry_order, entries)):
        yield finding("evidence/order", "the runs are not in the order of their numbers")
    for _, group in groupby(sorted(entries, key=entry_order), key=lambda entry: entry_order(entry)[:2]):
        links = pairwise(entry for entry in group if entry["chain"] is not None)
        yield from filter(None, starmap(_wrong_link, links))


def _wrong_link(earlier: Entry, later: Entry) -> Problem | None:
    """Return what is wrong with the link of a run to the one before it; None if nothing is."""
    here, there = value_at(earlier, int, "chain", "number"), value_at(later, int, "chain", "number")
    name, run = value_at(earlier, str, "run"), value_at(later, str, "run")
    missing = "a run is" if there == here + 2 else f"{there - here - 1} runs are"
    cases = (
        # A folder `.lmsconf/runs` that was deleted begins a chain with number 1 again.
        (there <= here, f"{run} and {name} are both run {there} of their workspace, or out of order"),
        (there != here + 1, f"{missing} missing between {name} (run {here}) and {run} (run {there})"),
        (json_at(later, "chain", "previous") != name, f"{run} names another run before it than {name}"),
        (
            json_at(later, "chain", "previous_sha256") != json_at(earlier, "originals", "journal"),
            f"the journal of {name} is not the one that {run} names by its digest",
        ),
    )
    return next((finding("evidence/chain", message) for is_wrong, message in cases if is_wrong), None)


def head_findings(entries: Sequence[Entry], heads: Sequence[str]) -> Iterator[Problem]:
    """Return the heads of chains that none of the runs is: runs at the end of a chain were dropped.

    The first run of a folder names the run before it, which is as good: nothing is missing after that.
    """
    known = [
        *(json_at(entry, "originals", "journal") for entry in entries),
        *(json_at(entry, "chain", "previous_sha256") for entry in entries if json_at(entry, "chain") is not None),
    ]
    return (
        Problem(
            code="evidence/head",
            message=f"the run with the journal {head} is not here: runs at the end are missing",
            hint="Ask for the folder again from where the runs were made, with all runs since then.",
        )
        for head in heads
        if head not in known
    )


def finding(code: str, message: str) -> Problem:
    """Return what is wrong with a folder of evidence."""
    return Problem(code=code, message=message, hint="Ask for the folder again from where the runs were made.")


def evidence_html(evidence: Mapping[str, Json]) -> str:
    """Render the document `evidence.json` as a page. Raises ValueError for a document of another form."""
    return html_page(
        "evidence.html.j2",
        evidence=evidence,
        findings=list(chain_findings(cast("list[Entry]", evidence["runs"]))),
        # In the words of plans.
        effects_sentence=lambda effects: totals_sentence(from_json(effects, PredictedTotals)),
        folder=FOLDER,
        files=FILES,
    )


_MAKE: Final = "Make one with: openssl genpkey -algorithm ed25519 -out key.pem && chmod 600 key.pem"


class SigningError(LmsconfError, code="evidence/key"):
    """A key cannot be used, or the package for signatures is not installed."""


class PublicKey(Struct, frozen=True):
    """The key that verifies signatures. keyid: the SHA-256 of its DER form. pem: its PEM text."""

    keyid: str
    pem: str

    @classmethod
    def of(cls, key: Ed25519PublicKey) -> PublicKey:
        """Return a key as it is written down."""
        from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

        der, pem = (key.public_bytes(form, PublicFormat.SubjectPublicKeyInfo) for form in (Encoding.DER, Encoding.PEM))
        return cls(sha256_of_bytes(der), pem.decode())

    @classmethod
    def parse(cls, pem: str) -> PublicKey:
        """Return the key in a PEM text. Raises ValueError for any other text."""
        return cls.of(_loaded(pem))

    def verify(self, signature: bytes, message: bytes) -> None:
        """Raise ValueError unless the holder of the private key signed the message."""
        from cryptography.exceptions import InvalidSignature

        try:
            _loaded(self.pem).verify(signature, message)
        except InvalidSignature as error:
            raise ValueError("it does not have the signature of the signer that the statement names") from error


SigningKey: TypeAlias = "Ed25519PrivateKey"
"""The key that signs."""


def load_signing_key(path: Path) -> SigningKey:
    """Load an Ed25519 key in PEM, unencrypted PKCS 8. Raises SigningError, also if other users can read the file."""
    require_package()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        key = load_pem_private_key(_content(path, private=True), password=None)
    except TypeError as error:
        raise SigningError(f"{path} is encrypted", hint="Give a key without a passphrase.") from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SigningError(f"{path} is not a private key in PEM", hint=_MAKE) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise SigningError(f"{path} is not an Ed25519 key", hint=_MAKE)
    return key


def load_public_key(path: Path) -> PublicKey:
    """Load an Ed25519 public key in PEM. Raises SigningError."""
    try:
        return PublicKey.parse(_content(path, private=False).decode("utf-8"))
    except ValueError as error:
        raise SigningError(
            f"{path} is not an Ed25519 public key in PEM",
            hint="Write it with: openssl pkey -in key.pem -pubout -out public.pem",
        ) from error


def _loaded(pem: str) -> Ed25519PublicKey:
    """Raises ValueError for another key, or none; SigningError without the package for signatures."""
    require_package()
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    try:
        key = load_pem_public_key(pem.encode("utf-8", "surrogatepass"))
    except UnsupportedAlgorithm as error:
        raise ValueError(str(error)) from error
    if not isinstance(key, Ed25519PublicKey):
        raise ValueError("it is not an Ed25519 key")
    return key


def require_package() -> None:
    """Raise SigningError unless the package for signatures is installed."""
    try:
        import cryptography  # noqa: F401  # slow to import, and an optional extra
    except ImportError as missing:
        raise SigningError(
            "signatures need the package cryptography", hint="Install it with: pip install 'lmsconf[signing]'"
        ) from missing


def _content(path: Path, *, private: bool) -> bytes:
    """Return the content of a key file. private: nobody but its owner may read it."""
    try:
        with open_nonblocking(path) as file:
            if private and stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise SigningError(f"other users can read {path}", hint=f"Run: chmod 600 {path}")
            return file.read(64 << 10)
    except OSError as error:
        raise SigningError(f"{path} cannot be read: {os_error_message(error)}", hint="Check the path.") from error


STATEMENT: Final = "evidence.intoto.json"
ENVELOPE: Final = "evidence.dsse.json"
PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"


def statement_text(evidence: Mapping[str, Json], digests: Mapping[str, str], signer: PublicKey | None) -> str:
    """Return the statement: which files there are, by their SHA-256, and about which runs.

    evidence: the document `evidence.json`. digests: by path, of all files but the statement and its envelope.
    """
    subject: list[Json] = [{"name": path, "digest": {"sha256": digests[path]}} for path in sorted(digests)]
    about: dict[str, Json] = {
        **{key: evidence[key] for key in ("format", "tool", "created_at", "since", "people")},
        "signer": None if signer is None else {"keyid": signer.keyid, "public_key": signer.pem},
        "runs": [
            {
                **{key: run[key] for key in ("run", "workspace", "digest", "started_at", "ended_at", "exit")},
                **{key: run[key] for key in ("approvals", "commit", "chain", "originals")},
            }
            for run in cast("list[Mapping[str, Json]]", evidence["runs"])
        ],
    }
    return render_json(
        {
            "_type": "https://in-toto.io/Statement/v1",
            "subject": subject,
            "predicateType": "https://lmsconf.example/evidence/v1",
            "predicate": about,
        }
    )


def signed_envelope(statement: bytes, key: SigningKey) -> str:
    """Return the DSSE envelope of the statement with the signature of a key."""
    return _envelope(statement, PublicKey.of(key.public_key()).keyid, key.sign(pre_authentication_encoding(statement)))


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
    return render_json(
        {
            "payloadType": PAYLOAD_TYPE,
            "payload": b64encode(statement).decode("ascii"),
            "signatures": [{"keyid": keyid, "sig": b64encode(signature).decode("ascii")}],
        }
    )
