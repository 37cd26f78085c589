"""A project with some runs, and folders of evidence of them."""

import shutil
from pathlib import Path

from flow.project import Project as Folder
from flow.shell import Ran
from flow.shell import lmsconf as command

from lmsconf.documents.journal.journal_reader import run_names
from lmsconf.errors import ExitCode

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
        ran = command(root, "apply", "--auto-approve", "--meta", f"ticket=T-{number}", "--allow", "removals=1")
        assert ran.code == ExitCode.OK, ran.err
    return folder


def names(folder: Folder) -> list[str]:
    """The names of the runs, the oldest first."""
    return run_names(folder.root)[::-1]


def evidence(folder: Folder, *arguments: str) -> Path:
    """The folder of evidence of all runs, or of those that the arguments name."""
    chosen = arguments or ("--since", "2020-01-01")
    ran = command(folder.root, "evidence", *chosen, "--out", "evidence")
    assert ran.code == ExitCode.OK, ran.err
    return folder.root / "evidence"


def verified(folder: Path, *arguments: str) -> Ran:
    """What `evidence verify` says of a folder."""
    return command(folder.parent, "evidence", "verify", str(folder), *arguments)


def copy_of(folder: Path) -> Path:
    """A copy of a folder, to change."""
    copy = folder.with_name("copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(folder, copy)
    return copy
