"""Find what was changed in a folder of evidence: files, their digests, the chain of runs, the page, the signature."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from lmsconf.audit.bundle import EVIDENCE, FORMAT, PAGE
from lmsconf.audit.statement import (
    ENVELOPE,
    FILES,
    STATEMENT,
    PublicKey,
    chain_findings,
    copy_path,
    evidence_html,
    finding,
    head_findings,
    pre_authentication_encoding,
    run_entry,
    signature_in,
    statement_text,
)
from lmsconf.documents.json_documents import TOOL, json_at, render_json, value_at
from lmsconf.errors import LmsconfError, Problem, refuse_if
from lmsconf.model.canonical_json import Json, members, sha256, sha256_of_bytes
from lmsconf.support.files import os_error_message, os_errors_as

_MOST: Final = 100_000
"""Files of a folder that are looked at."""
_ANOTHER: Final = "Name a folder that lmsconf evidence wrote."


class Verification(Struct, frozen=True, kw_only=True):
    """What was looked at in a folder, and what is wrong with it. signer: whose signature it has, if any.

    compared_page: whether its page was made again, which only the version that wrote it can.
    """

    findings: tuple[Problem, ...]
    files: int
    runs: int
    unchained: int
    signer: PublicKey | None
    compared_page: bool


class _Folder:
    """The files of a folder by path, and the findings so far."""

    def __init__(self, root: Path) -> None:
        self.findings: list[Problem] = []
        self.contents: dict[str, bytes] = {}
        with os_errors_as(f"{root} cannot be read", _ANOTHER):
            paths = _listed(root)
        # Those below a folder follow it. A walk that calls itself would end at a thousand folders in each other.
        for path in paths:
            name = path.relative_to(root).as_posix()
            try:
                if path.is_symlink() or not (path.is_file() or path.is_dir()):
                    self.found("evidence/added", f"{name} is not a file that lmsconf wrote")
                elif path.stat().st_size > 1 << 30:
                    self.found("evidence/changed", f"{name} is larger than lmsconf writes")
                elif path.is_file():
                    self.contents[name] = path.read_bytes()
                else:  # lmsconf makes a folder only for a file
                    below = _listed(path)
                    self.expect(below, "evidence/added", f"{name} is not a file that lmsconf wrote")
                    paths += below
            except OSError as error:
                self.found("evidence/changed", f"{name} cannot be read: {os_error_message(error)}")
            refuse_if((len(paths) > _MOST, f"{root} has more than {_MOST:,} files", _ANOTHER), error=LmsconfError)

    def found(self, code: str, message: str) -> None:
        self.findings.append(finding(code, message))

    def expect(self, holds: object, code: str, message: str) -> None:
        """Note what is wrong, unless this holds."""
        if not holds:
            self.found(code, message)

    def document(self, name: str) -> dict[str, Json] | None:
        """Return a JSON document of the folder; None if it is missing or not spelled as lmsconf spells it."""
        try:
            document = members(json.loads(self.contents[name]))
            if render_json(document).encode("utf-8", "surrogatepass") == self.contents[name]:
                return document
            self.found("evidence/changed", f"{name} was changed: it is spelled in another way")
        except KeyError:
            self.found("evidence/missing", f"{name} is missing")
        except (ValueError, RecursionError) as error:
            self.found("evidence/changed", f"{name} was changed: {error}")
        return None

    def compare_files(self, digests: Mapping[str, str]) -> None:
        """Find files that are missing or changed, by their digests."""
        for name, digest in digests.items():
            if name not in self.contents:
                self.found("evidence/missing", f"{name} is missing")
            elif sha256_of_bytes(self.contents[name]) != digest:
                self.found("evidence/changed", f"{name} was changed")


def _listed(folder: Path) -> list[Path]:
    """Return what a folder holds, but hardly more than a folder of evidence may. Raises OSError."""
    return sorted(islice(folder.iterdir(), _MOST + 1))


def verify_evidence(root: Path, key: PublicKey | None, heads: Sequence[str] = ()) -> Verification:
    """Compare everything in a folder of evidence with everything else in it, and its signature with a key.

    heads: digests of journals that were the last of their workspace at some time, and must be among the runs.

    Raises LmsconfError if there is no such folder, and SigningError if it is signed and `cryptography` is missing.
    """
    if not root.is_dir():
        raise LmsconfError(f"there is no folder {root}", hint=_ANOTHER)
    folder = _Folder(root)
    signer = _compare_with_statement(folder)
    evidence = folder.document(EVIDENCE)
    entries: list[Mapping[str, Json]] = []
    if evidence is not None:
        try:
            entries = _compare_runs(folder, evidence)
            folder.findings.extend(chain_findings(entries))
            _compare_made_from(folder, evidence, signer)
            folder.findings.extend(head_findings(entries, heads))
        except (ValueError, LookupError, TypeError, RecursionError) as error:
            folder.found("evidence/forged", f"{EVIDENCE} is not what lmsconf writes: {error}")
    _compare_signature(folder, signer, key)
    return Verification(
        findings=tuple(dict.fromkeys(folder.findings)),
        files=len(folder.contents),
        runs=len(entries),
        unchained=sum(entry.get("chain") is None for entry in entries),
        signer=signer,
        compared_page=(evidence or {}).get("tool") == TOOL,
    )


def _compare_with_statement(folder: _Folder) -> PublicKey | None:
    """Compare the files with the digests in the statement; return the key of the signer that it names."""
    statement, code = folder.document(STATEMENT), "evidence/changed"
    if statement is None:
        return None
    try:
        subjects = value_at(statement, list[dict[str, Json]], "subject")
        digests = {value_at(one, str, "name"): value_at(one, str, "digest", "sha256") for one in subjects}
        folder.compare_files(digests)
        for name in sorted(folder.contents.keys() - digests.keys() - {STATEMENT, ENVELOPE}):
            folder.found("evidence/added", f"{name} was added")
        if json_at(statement, "predicate", "signer") is not None:
            pem, code = value_at(statement, str, "predicate", "signer", "public_key"), "evidence/signature"
            return PublicKey.parse(pem)
    except (ValueError, RecursionError) as error:
        folder.found(code, f"{STATEMENT} is not what lmsconf writes: {error}")
    return None


def _compare_runs(folder: _Folder, evidence: Mapping[str, Json]) -> list[Mapping[str, Json]]:
    """Compare the entries of `evidence.json` with the copies of the runs; return them. Raises ValueError."""
    if (format := json_at(evidence, "format")) != FORMAT:
        raise ValueError(f"it has the format {format}, and this lmsconf reads {FORMAT}")
    entries = value_at(evidence, list[Mapping[str, Json]], "runs")
    copies: set[str] = set()
    for entry in entries:
        copies |= _compare_run(folder, entry, whole=json_at(evidence, "people") == "whole")
    listed = value_at(evidence, dict[str, str], "files")
    for name in sorted(copies ^ listed.keys()):
        folder.found("evidence/forged", f"{EVIDENCE} does not list {name} as the runs do")
    folder.compare_files(listed)
    return entries


def _compare_made_from(folder: _Folder, evidence: Mapping[str, Json], signer: PublicKey | None) -> None:
    """Make the page and the statement again from `evidence.json`, and compare them. Raises ValueError."""
    # Another version may word the page in another way; then its digest alone is compared.
    folder.expect(
        evidence["tool"] != TOOL or folder.contents.get(PAGE) in (None, evidence_html(evidence).encode("utf-8")),
        "evidence/forged",
        f"{PAGE} does not show what {EVIDENCE} states",
    )
    if folder.findings:
        return
    others = folder.contents.keys() - {STATEMENT, ENVELOPE}
    digests = {name: sha256_of_bytes(folder.contents[name]) for name in others}
    folder.expect(
        folder.contents[STATEMENT] == statement_text(evidence, digests, signer).encode(),
        "evidence/forged",
        f"{STATEMENT} does not state what {EVIDENCE} does",
    )


def _compare_run(folder: _Folder, entry: Mapping[str, Json], *, whole: bool) -> set[str]:
    """Compare an entry with the copies of the run; return the paths of these copies.

    whole: the copies are the originals, and not masked.
    """
    run, originals = value_at(entry, str, "run"), value_at(entry, dict[str, Json], "originals")
    paths = {name: copy_path(run, name) for name in FILES if json_at(originals, name) is not None}
    held = {name: folder.contents[path] for name, path in paths.items() if path in folder.contents}
    for name in sorted(paths.keys() - {"journal"}):
        folder.expect(
            originals[name] == json_at(entry, f"recorded_{name}"),
            "evidence/forged",
            f"the journal of {run} records another {name} than {EVIDENCE} names by its digest",
        )
    if held.keys() == paths.keys():  # else the digests show what is missing
        digests = {name: sha256_of_bytes(content) for name, content in held.items()} if whole else {}
        try:
            shown = {**run_entry(run, held), "originals": {**originals, **digests}}
        except (LmsconfError, ValueError, RecursionError) as error:
            folder.found("evidence/changed", f"the copies of {run} cannot be read: {error}")
            shown = dict(entry)
        for key in sorted(shown.keys() | entry.keys()):
            same = sha256(shown.get(key)) == sha256(entry.get(key))
            message = f"{EVIDENCE} states {key} of {run} otherwise than the copies of its files"
            folder.expect(same, "evidence/forged", message)
    return set(paths.values())


def _compare_signature(folder: _Folder, signer: PublicKey | None, key: PublicKey | None) -> None:
    code, envelope, statement = "evidence/signature", folder.contents.get(ENVELOPE), folder.contents.get(STATEMENT, b"")
    if signer is None:
        folder.expect(envelope is None, code, f"{ENVELOPE} was added: the statement names no signer")
        folder.expect(key is None, code, "the folder is not signed, and --key names whose signature it should have")
    elif envelope is None:
        folder.found(code, f"{ENVELOPE} is missing, and the statement names a signer")
    else:
        try:
            signature = signature_in(envelope.decode("utf-8"), statement, signer.keyid)
            signer.verify(signature, pre_authentication_encoding(statement))
        except (ValueError, RecursionError) as error:
            folder.found(code, f"{ENVELOPE} was changed: {error}")
        # The same key, or none to compare it with.
        folder.expect(
            key in (None, signer), code, f"another key signed it: {signer.keyid}, and --key is {key and key.keyid}"
        )
