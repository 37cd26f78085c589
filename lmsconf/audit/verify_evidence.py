"""Find what was changed in a folder of evidence: files, their digests, the chain of runs, the page, the signature."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
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
    parse_public_key,
    pre_authentication_encoding,
    require_package,
    run_entry,
    signature_in,
    statement_text,
)
from lmsconf.documents.document import TOOL, json_at, parse_document, render_json, value_at
from lmsconf.errors import LmsconfError, Problem
from lmsconf.model.canonical_json import Json, members, sha256_of_bytes
from lmsconf.support.files import os_error_message

_MOST: Final = 100_000
"""Files of a folder that are looked at."""


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
        paths = sorted(islice(_paths(root), _MOST + 1))
        if len(paths) > _MOST:
            raise LmsconfError(
                f"{root} has more than {_MOST:,} files", hint="Name a folder that lmsconf evidence wrote."
            )
        for path in paths:
            name = path.relative_to(root).as_posix()
            try:
                if path.is_symlink() or not path.is_file():
                    self.found("evidence/added", f"{name} is not a file that lmsconf wrote")
                elif path.stat().st_size > 1 << 30:
                    self.found("evidence/changed", f"{name} is larger than lmsconf writes")
                else:
                    self.contents[name] = path.read_bytes()
            except OSError as error:
                self.found("evidence/changed", f"{name} cannot be read: {os_error_message(error)}")

    def found(self, code: str, message: str) -> None:
        self.findings.append(finding(code, message))

    def expect(self, holds: object, code: str, message: str) -> None:
        """Note what is wrong, unless this holds."""
        if not holds:
            self.found(code, message)


def verify_evidence(root: Path, key: PublicKey | None, heads: Sequence[str] = ()) -> Verification:
    """Compare everything in a folder of evidence with everything else in it, and its signature with a key.

    heads: digests of journals that were the last of their workspace at some time, and must be among the runs.

    Raises LmsconfError if there is no such folder, and SigningError if it is signed and `cryptography` is missing.
    """
    if not root.is_dir():
        raise LmsconfError(f"there is no folder {root}", hint="Name a folder that lmsconf evidence wrote.")
    folder = _Folder(root)
    statement = _parsed(folder, STATEMENT)
    signer = None
    if statement is not None:
        digests, signer = _stated(folder, statement)
        _compare_files(folder, digests)
        for name in sorted(folder.contents.keys() - digests.keys() - {STATEMENT, ENVELOPE}):
            folder.found("evidence/added", f"{name} was added")
    evidence = _parsed(folder, EVIDENCE)
    entries: list[Mapping[str, Json]] = []
    compared_page = False
    if evidence is not None:
        try:
            entries, compared_page = _compare_evidence(folder, evidence, signer)
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
        compared_page=compared_page,
    )


def _paths(root: Path) -> Iterator[Path]:
    """Yield what is in the folder and below; a folder only if it is empty, or a link."""
    for above, folders, files in os.walk(root):
        links = [name for name in folders if (Path(above) / name).is_symlink()]
        names = [*files, *links] if files or folders or Path(above) == root else [""]
        yield from (Path(above) / name for name in names)


def _parsed(folder: _Folder, name: str) -> dict[str, Json] | None:
    """Return a JSON document of the folder, which must be spelled as lmsconf spells it."""
    content = folder.contents.get(name)
    if content is None:
        folder.found("evidence/missing", f"{name} is missing")
        return None
    try:
        document = members(json.loads(content))
        if render_json(document).encode("utf-8", "surrogatepass") != content:
            raise ValueError("it is spelled in another way")
        return document
    except (ValueError, RecursionError) as error:
        folder.found("evidence/changed", f"{name} was changed: {error}")
    return None


def _stated(folder: _Folder, statement: Mapping[str, Json]) -> tuple[dict[str, str], PublicKey | None]:
    """Return the digests of the files of the statement, by path, and the key of its signer."""
    digests: dict[str, str] = {}
    try:
        digests = {
            value_at(one, str, "name"): value_at(one, str, "digest", "sha256")
            for one in value_at(statement, list[dict[str, Json]], "subject")
        }
        if json_at(statement, "predicate", "signer") is not None:
            return digests, _signer(folder, value_at(statement, str, "predicate", "signer", "public_key"))
    except ValueError as error:
        folder.found("evidence/changed", f"{STATEMENT} is not what lmsconf writes: {error}")
    return digests, None


def _signer(folder: _Folder, pem: str) -> PublicKey | None:
    require_package()
    try:
        return parse_public_key(pem.encode("utf-8", "surrogatepass"), f"the signer in {STATEMENT}")
    except LmsconfError as error:
        folder.found("evidence/signature", error.message)
        return None


def _compare_files(folder: _Folder, digests: Mapping[str, str]) -> None:
    """Find files that are missing or changed, by their digests."""
    for name, digest in digests.items():
        content = folder.contents.get(name)
        if content is None:
            folder.found("evidence/missing", f"{name} is missing")
        else:
            folder.expect(sha256_of_bytes(content) == digest, "evidence/changed", f"{name} was changed")


def _compare_evidence(
    folder: _Folder, evidence: Mapping[str, Json], signer: PublicKey | None
) -> tuple[list[Mapping[str, Json]], bool]:
    """Compare `evidence.json` with the copies of each run, the chain, the page and the statement. Raises ValueError.

    Returns its entries, and whether the page was compared.
    """
    if (format := json_at(evidence, "format")) != FORMAT:
        raise ValueError(f"it has the format {format}, and this lmsconf reads {FORMAT}")
    entries = value_at(evidence, list[Mapping[str, Json]], "runs")
    files: set[str] = set()
    for entry in entries:
        files |= _compare_run(folder, entry, whole=json_at(evidence, "people") == "whole")
    listed = value_at(evidence, dict[str, str], "files")
    for name in sorted(files ^ listed.keys()):
        folder.found("evidence/forged", f"{EVIDENCE} does not list {name} as the runs do")
    _compare_files(folder, listed)
    folder.findings.extend(chain_findings(entries))
    # Another version may word the page in another way; then its digest alone is compared.
    same_version = evidence["tool"] == TOOL
    folder.expect(
        not same_version or folder.contents.get(PAGE) in (None, evidence_html(evidence).encode("utf-8")),
        "evidence/forged",
        f"{PAGE} does not show what {EVIDENCE} states",
    )
    digests = {
        name: sha256_of_bytes(content) for name, content in folder.contents.items() if name not in (STATEMENT, ENVELOPE)
    }
    content = folder.contents.get(STATEMENT)
    folder.expect(
        folder.findings or content in (None, statement_text(evidence, digests, signer).encode()),
        "evidence/forged",
        f"{STATEMENT} does not state what {EVIDENCE} does",
    )
    return entries, same_version


def _compare_run(folder: _Folder, entry: Mapping[str, Json], *, whole: bool) -> set[str]:
    """Compare an entry with the copies of the run; return the paths of these copies."""
    run, originals = value_at(entry, str, "run"), value_at(entry, dict[str, Json], "originals")
    paths = {name: copy_path(run, name) for name in FILES if json_at(originals, name) is not None}
    held = {name: folder.contents[path] for name, path in paths.items() if path in folder.contents}
    for name, content in held.items():
        folder.expect(
            not whole or sha256_of_bytes(content) == originals[name],
            "evidence/forged",
            f"{paths[name]} is not the original that {EVIDENCE} names by its digest",
        )
    for name in ("plan", "report"):
        folder.expect(
            name not in paths or originals[name] == json_at(entry, f"recorded_{name}"),
            "evidence/forged",
            f"the journal of {run} records another {name} than {EVIDENCE} names by its digest",
        )
    if held.keys() == paths.keys():
        _compare_copies(folder, entry, run, held)
    return set(paths.values())


def _compare_copies(folder: _Folder, entry: Mapping[str, Json], run: str, held: Mapping[str, bytes]) -> None:
    try:
        shown = {**run_entry(run, held), "originals": entry["originals"]}
        documents = (content.decode("utf-8") for name, content in held.items() if name != "journal")
        digests = {str(parse_document(text).get("digest")) for text in documents}
    except (LmsconfError, ValueError, RecursionError) as error:
        folder.found("evidence/changed", f"the copies of {run} cannot be read: {error}")
        return
    for key in sorted(shown.keys() | entry.keys()):
        folder.expect(
            shown.get(key) == entry.get(key),
            "evidence/forged",
            f"{EVIDENCE} states {key} of {run} otherwise than the copies of its files",
        )
    folder.expect(
        digests <= {str(entry.get("digest"))},
        "evidence/forged",
        f"plan, report and journal of {run} are not of the same plan",
    )


def _compare_signature(folder: _Folder, signer: PublicKey | None, key: PublicKey | None) -> None:
    code, envelope, statement = "evidence/signature", folder.contents.get(ENVELOPE), folder.contents.get(STATEMENT)
    if signer is None or statement is None:
        folder.expect(envelope is None, code, f"{ENVELOPE} was added: the statement names no signer")
        folder.expect(key is None, code, "the folder is not signed, and --key names whose signature it should have")
        return
    if envelope is None:
        folder.found(code, f"{ENVELOPE} is missing, and the statement names a signer")
        return
    try:
        is_valid = signer.verifies(
            signature_in(envelope.decode("utf-8"), statement, signer.keyid), pre_authentication_encoding(statement)
        )
    except (ValueError, RecursionError) as error:
        folder.found(code, f"{ENVELOPE} was changed: {error}")
        return
    folder.expect(is_valid, code, f"{ENVELOPE} does not have the signature of the signer that the statement names")
    if key is not None:
        folder.expect(
            key.keyid == signer.keyid, code, f"another key signed it: {signer.keyid}, and --key is {key.keyid}"
        )
