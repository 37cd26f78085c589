"""lmsconf: configuration as code for a learning platform's workspace.

From Python, `lmsconf.open(path)` gives a project with `plan`, `apply`, `drift`, `export` and `snapshot`, as safe as the
command line; `client.Service` speaks the API alone. Who may import whom stands in `tests/rules/test_imports.py`.

    errors                       what goes wrong, with place, reason and way out
    discovery                    where the project file is
    project, settings            the project file; flags, environment and file as one frozen value
    credential, endpoint, redact tokens, URLs, and secrets taken out of all that leaves
    approvals                    which commands may be run for a token
    trust                        what a branch's project file may not change alone
    connect                      settings → a connection: to the service, or to the embedded sandbox
    wire                         the API as data: operations, and the dialect of a service
    client                       speaks the API, and knows no manifest
    manifest                     YAML and CSV → declarations with their places
    kinds                        fields, groups, smart groups, assignments, people: all that is particular to each
    core                         declarations + snapshot → plan → calls → outcomes, for any kind
    seeing, offline              validate, plan, snapshot, drift
    apply                        the one safe sequence of an apply; `open` and its Project
    workspace, sending           execute a plan: the calls in their order, and a look at what came of them
    readback                     what a fresh plan says of a run: of everything, or of what it touched
    settling, granting           what became of a lost answer; nobody goes before whoever comes is in
    locking, journal             one run at a time; what each run did
    git                          git on a repository that others fill: no configuration of it, no program
    basis, comparing             a plan beside the plan of the manifests before it
    compared_settings            and its settings beside theirs
    exporting, editing, starting live → manifests; manifests edited in place; new projects
    doctor                       what can be known of a service before a plan relies on it
    sandbox                      the embedded workspace
    views, cli                   values → text; the commands
    files, resources             whole files or none; what travels with the package
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from lmsconf.apply.library import Project

__version__ = "0.1.0"


def open(
    path: str | os.PathLike[str], *, workspace: str | None = None, environ: Mapping[str, str] | None = None
) -> Project:
    """The project in the folder `path`, to validate, plan, apply, export and look for drift from Python.

    workspace: one of the project file's, where it has several. environ: what stands in for the environment variables
    of this process. Raises ProblemsFound for a project file with errors, UsageError for a folder or a workspace that
    does not exist.
    """
    from lmsconf.apply.library import open_project

    return open_project(path, workspace=workspace, environ=environ)
