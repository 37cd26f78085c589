"""lmsconf: configuration as code for a learning platform's workspace.

From Python, `lmsconf.open(path)` gives a project with `plan`, `apply`, `drift`, `export` and `snapshot`, as safe as the
command line; `api.Service` speaks the API alone. `tests/rules/test_imports.py` holds the import table.

    errors       exception tree, Problem, SourceLocation, ExitCode
    support      atomic files, redaction, package data, URL rules, hardened git
    model        the frozen values that flow: declarations, snapshot, changes, calls, plan, outcomes, drift
    api          the API as data (spec), HTTP (transport), the client, and the typed methods (sdk)
    kinds        custom fields, people, manual and smart groups, assignments: a folder or a module each
    planner      what is read of a workspace; desired resources + snapshot → plan
    manifest     YAML and CSV → declarations with their places; edits in place
    documents    plan files, reports, snapshots and the journal ⇄ versioned JSON
    sandbox      the embedded workspace, which serves the whole API
    project      lmsconf.yaml, settings, credentials, trust, the files of a new project
    render       values → text, Markdown, HTML, JSON, SARIF, JUnit
    workspace    connect, read, plan, compare with a base, look for drift; live or drift → manifests
    apply        the one safe sequence, and `lmsconf.open`
    audit        evidence of runs, history of a resource
    doctor       what can be known of a service before a plan relies on it
    fleet        one command in many workspaces
    cli          the commands: they ask, show progress and print
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from lmsconf.apply.python_api import Project

__version__ = "0.1.0"


def open(
    path: str | os.PathLike[str], *, workspace: str | None = None, environ: Mapping[str, str] | None = None
) -> Project:
    """The project in the folder `path`, to validate, plan, apply, export and look for drift from Python.

    workspace: one of the project file's, where it has several. environ: what stands in for the environment variables
    of this process. Raises ProblemsFound for a project file with errors, UsageError for a folder or a workspace that
    does not exist.
    """
    from lmsconf.apply.python_api import open_project

    return open_project(path, workspace=workspace, environ=environ)
