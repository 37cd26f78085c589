"""A project with some runs, and folders of evidence of them."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from flow.project import Project as Folder
from flow.project import runs_of
from flow.shell import Ran
from flow.shell import lmsconf as command

from lmsconf.documents.journal.journal_folder import decode_lines, encode_line
from lmsconf.documents.journal.journal_reader import run_names
from lmsconf.errors import ExitCode
from lmsconf.model.canonical_json import Json

SEED = """
people:
  - {email: bo.ek@acme.example, id: u1, first_name: Bo, last_name: Ek}
  - {email: cy.dahl@acme.example, id: u2}
groups: [{name: Coaches, members: [bo.ek@acme.example]}]
content: [{name: GDPR basics}]
"""
STEPS = (
    "groups: [{name: Coaches, members: [bo.ek@acme.example, cy.dahl@acme.example]}, {name: Mentors}]\n",
    "groups: [{name: Coaches, members: [cy.dahl@acme.example]}, {name: Trainers, previously: [Mentors]}]\n",
    "groups: [{name: Coaches, members: [cy.dahl@acme.example]}, {name: Trainers, members: [bo.ek@acme.example]}]\n"
    "content_targets: [{content: GDPR basics, assign_to: [{user: bo.ek@acme.example}]}]\n",
    "groups: [{name: Coaches, managers: [bo.ek@acme.example]}, {name: Trainers, members: []}]\n",
)


def project_with_runs(root: Path, steps: tuple[str, ...] = STEPS) -> Folder:
    """A project in which each of the manifests was applied in turn."""
    folder = Folder(root, SEED)
    for number, manifests in enumerate(steps, 1):
        folder.write(manifests)
        command(root, "apply", "--auto-approve", "--meta", f"ticket=T-{number}", "--allow", "removals=1", code=0)
    return folder


def names(folder: Folder) -> list[str]:
    """The names of the runs, the oldest first."""
    return run_names(folder.root)[::-1]


def kept(folder: Folder, suffix: str = "jsonl", number: int = 0) -> Path:
    """The journal of a run, or the file of that suffix beside it."""
    return runs_of(folder.root) / f"{names(folder)[number]}.{suffix}"


def rewritten(journal: Path) -> Iterator[dict[str, Json]]:
    """The lines of a journal, to be changed; afterwards it holds them with sums that fit."""
    entries = [dict(entry) for entry in decode_lines(journal.read_bytes()) if entry]
    yield from entries
    journal.write_bytes(b"".join(map(encode_line, entries)))


def evidence(folder: Folder, *arguments: str) -> Path:
    """The folder of evidence of all runs, or of those that the arguments name."""
    chosen = arguments if arguments[:1] == ("latest",) else ("--since", "2020-01-01", *arguments)
    command(folder.root, "evidence", *chosen, "--out", "evidence", code=ExitCode.OK)
    return folder.root / "evidence"


def document(written: Path) -> dict[str, Json]:
    """What the folder states."""
    found: dict[str, Json] = json.loads((written / "evidence.json").read_text(encoding="utf-8"))
    return found


def verified(folder: Path, *arguments: str, code: ExitCode = ExitCode.OK) -> Ran:
    """What `evidence verify` says of a folder."""
    return command(folder.parent, "evidence", "verify", str(folder), *arguments, code=code)


def copy_of(folder: Path) -> Path:
    """A copy of a folder, to change."""
    copy = folder.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    return copy
