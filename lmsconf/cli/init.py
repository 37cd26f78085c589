"""`lmsconf init`: create a project, prompting for the open options on a terminal."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lmsconf.cli.command import Command
from lmsconf.cli.frame import CommandContext, pass_context
from lmsconf.cli.init_answers import CI_SYSTEMS, InitOptions, collect_answers
from lmsconf.cli.output_streams import can_ask, report_problems, write_stderr
from lmsconf.errors import ExitCode, LmsconfError, UsageError

if TYPE_CHECKING:
    from lmsconf.project.templates import InitAnswers

_PROBE: Final = (
    "It tries what lmsconf only assumes about the service, on objects of its own, named lmsconf-probe-…, and on the "
    "people and the content that you name. It says what it will touch, asks, and puts all of it back."
)
"""What `doctor --probe` touches, below the command."""


@click.command(cls=Command)
@click.argument("folder", required=False, metavar="[DIR]", type=click.Path(path_type=Path))
@click.option("--url", metavar="URL", help="URL of the workspace's API, or sandbox for an embedded one.")
@click.option("--workspace-name", metavar="NAME", help="The name of the workspace.")
@click.option("--token-env", metavar="VARIABLE", help="The name of the environment variable with the token.")
@click.option("--timezone", metavar="ZONE", help="Time zone for times without an offset: Europe/Stockholm.")
@click.option("--ci", type=click.Choice(CI_SYSTEMS), help="Write the workflows of this CI system too.")
@click.option("--no-input", is_flag=True, help="Ask no questions; use the defaults.")
@click.option(
    "--schemas/--no-schemas", default=None,
    help="Write JSON Schemas for completion in editors (the default); in an existing project, update only them.",
)  # fmt: skip
@pass_context
def init(
    context: CommandContext,
    *,
    folder: Path | None,
    url: str | None,
    workspace_name: str | None,
    token_env: str | None,
    timezone: str | None,
    ci: str | None,
    no_input: bool,
    schemas: bool | None,
) -> ExitCode:
    """Create a project: a project file, a first manifest, a workflow.

    On a terminal it asks for what the options do not set. Elsewhere the defaults are a sandbox, the time zone of this
    machine, and no workflow. Existing files are never overwritten.

    Each YAML file names a JSON Schema in its first line, which is in schemas/: editors with a YAML language server then
    complete and explain keys, without a network. After an update of lmsconf, `lmsconf init --schemas` writes those of
    the new version.

    On a terminal it also offers to write manifests for what is live, as `lmsconf export --into` does. If that fails,
    the project is still created.
    """
    from lmsconf import __version__
    from lmsconf.project.templates import PROJECT_FILE, render_project_files

    if context.workspace is not None:
        raise UsageError("--workspace selects a workspace of a project", hint="Name a new one with --workspace-name.")
    target = context.directory if folder is None else context.directory / folder
    if os.path.lexists(target / PROJECT_FILE):
        if schemas:
            return _update_schemas(target)
        raise LmsconfError(f"{target / PROJECT_FILE} already exists", hint="Name another folder, or edit that file.")
    given = InitOptions(url, workspace_name, token_env, timezone, ci, schemas is not False)
    answers, wanted = collect_answers(given, context.environ, asks=can_ask() and not no_input)
    _write(target, render_project_files(answers, __version__))
    if not wanted:
        _tell(target, answers, context.environ, export=wanted is None)
        return ExitCode.OK
    return _export(target, answers, context.environ)


def _update_schemas(target: Path) -> ExitCode:
    """Write the schemas of this version of lmsconf into an existing project."""
    from lmsconf.project.schema_files import write_schemas

    written = list(write_schemas(target, replace=True))
    write_stderr("\n".join(f"Wrote {path}" for path in written) or "The schemas are those of this version.")
    return ExitCode.OK


def _export(target: Path, answers: InitAnswers, environ: Mapping[str, str]) -> ExitCode:
    """Run `lmsconf export --into` in the new project, print the next steps, and return the exit code.

    An LmsconfError of the export is reported, not raised.
    """
    from lmsconf.cli.export import export

    # Export the workspace of the new project, even if the environment selects another one.
    chosen = {name: value for name, value in environ.items() if name not in ("LMSCONF_URL", "LMSCONF_WORKSPACE")}
    project = CommandContext(target, None, chosen)
    code, done = ExitCode.OK, False
    try:
        with export.make_context("export", ["--into"], parent=click.get_current_context(), obj=project) as command:
            code = export.invoke(command)
        done = True
    except LmsconfError as error:
        report_problems(error.problems)
        code = error.exit
    finally:  # after an interrupted export the project exists too
        if not done:
            write_stderr(
                "The project is created, but the live resources are not in its manifests yet: run the `export "
                "--into` below."
            )
        _tell(target, answers, environ, export=not done)
    return code


def _write(target: Path, texts: Mapping[str, str]) -> None:
    """Write the files that do not exist yet, all or none. Raises LmsconfError if one cannot be written."""
    from lmsconf.project.templates import MANIFESTS
    from lmsconf.support.atomic_files import os_error_message

    manifests = target / MANIFESTS
    is_searched = manifests.is_dir() and _is_inside(manifests, target)
    begun = is_searched and any(path.suffix in (".yaml", ".yml") for path in manifests.rglob("*"))
    notes, path, undo = [], target, ExitStack()
    try:
        with undo:
            for name, text in texts.items():
                path = target / name
                if begun and path.parent == manifests:
                    notes.append(f"{manifests} already has manifests, so no example manifest was written.")
                elif _new(target, path, text, undo):
                    notes.append(f"Wrote {path}")
                else:
                    notes.append(f"{path} already exists and is not changed.{_lacking(path, text)}")
            undo.pop_all()  # success: keep the files
    except OSError as error:
        hint = "Name another folder. Nothing was written."
        raise LmsconfError(f"{path} cannot be written: {os_error_message(error)}", hint=hint) from error
    write_stderr("\n".join(notes))


def _is_inside(path: Path, target: Path) -> bool:
    """Whether a path stays in the project's folder once its symbolic links are resolved."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(target))


def _new(target: Path, path: Path, text: str, undo: ExitStack) -> bool:
    """Create a file and register its removal in `undo`; return False if it exists already. Raises OSError."""
    if not _is_inside(path.parent, target):
        raise NotADirectoryError(None, "its folder is a symbolic link out of the project")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        file = path.open("x", encoding="utf-8")
    except FileExistsError:
        return False
    undo.callback(path.unlink, missing_ok=True)
    with file:
        file.write(text)
    return True


def _lacking(path: Path, text: str) -> str:
    """Return a note with the template's lines that an existing .gitignore or requirements.txt lacks."""
    if path.name not in (".gitignore", "requirements.txt") or not path.is_file():
        return ""
    has = path.read_text(encoding="utf-8", errors="replace").splitlines()
    lacking = [line for line in text.splitlines() if line not in has and not line.startswith("#")]
    return f" Add to it: {' '.join(lacking)}" if lacking else ""


def _tell(target: Path, answers: InitAnswers, environ: Mapping[str, str], *, export: bool) -> None:
    """Print the next steps, as commands for the current folder. export: the live workspace is to be exported first."""
    from lmsconf.project.templates import CiSystem, next_commands

    if answers.ci is not CiSystem.NONE:
        write_stderr("requirements.txt pins lmsconf: let CI install it from your own index or a wheel, with hashes.")
    if answers.ci is CiSystem.GITHUB:
        write_stderr("On GitHub, create the environments lms-plan and lms-apply, with the secret LMSCONF_TOKEN.")
        if not (target / ".git").exists():
            write_stderr("GitHub runs workflows only from .github in the root of the repository.")
    if answers.ci is CiSystem.GITLAB:
        write_stderr("On GitLab, create the masked variables LMSCONF_TOKEN and LMSCONF_PLAN_KEY.")
    if answers.embedded and answers.ci is not CiSystem.NONE:
        write_stderr("Until lmsconf.yaml names another workspace, each CI run uses a new embedded one.")
    if not answers.embedded and not environ.get(answers.token_env):
        write_stderr(f"Set the token of the workspace in the environment variable {answers.token_env}.")
    at = "" if target == Path() else f" -C {shlex.quote(str(target))}"
    commands = next_commands(answers, export=export and not answers.embedded)
    lines = [f"lmsconf{at} {command}" for command in commands] + _git_commands(target, answers)
    write_stderr("\nNext:\n" + "\n".join(f"  {line}" for line in lines))
    if not answers.embedded:
        probe = f"lmsconf{at} doctor --probe --user EMAIL --user EMAIL --content NAME"
        write_stderr(f"\nBefore the first apply, once:\n  {probe}\n{_PROBE}")


def _git_commands(target: Path, answers: InitAnswers) -> list[str]:
    """Return the commands that commit the project's files; outside a repository, after one that creates it."""
    from lmsconf.project.templates import project_entries
    from lmsconf.support.folders import find_work_tree

    git = "git" if target == Path() else f"git -C {shlex.quote(str(target))}"
    creation = [] if find_work_tree(target) else [f"{git} init"]
    added = " ".join(project_entries(answers))
    return [*creation, f"{git} add {added}", f"{git} commit -m 'Create the lmsconf project'"]
