"""`lmsconf init`: create a project, prompting for the open options on a terminal."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lmsconf.cli.command import Command
from lmsconf.cli.context import CommandContext
from lmsconf.cli.output import can_ask, report_problems, write_redacted, write_stderr
from lmsconf.errors import ExitCode, LmsconfError, UsageError, refuse_if

if TYPE_CHECKING:
    from lmsconf.project.templates import InitAnswers


CI_SYSTEMS: Final = ("github", "gitlab", "none")


def collect_answers(
    given: Mapping[str, str | None], environ: Mapping[str, str], *, schemas: bool, asks: bool
) -> tuple[InitAnswers, bool | None]:
    """Return the answers, from options and prompts, and whether to export the live workspace now.

    given: option → its value; None for one that was not given. The second is None if nothing is asked.
    """
    from lmsconf.project.templates import CiSystem, InitAnswers

    ask = partial(_ask, asks)
    address = ask(given["url"], "URL of the workspace's API, or sandbox", "sandbox", _url)
    live = not address.startswith("sandbox:")
    answers = InitAnswers(
        url=address,
        workspace=ask(given["workspace_name"], "Name of the workspace", "production" if live else "sandbox", _name),
        token_env=ask(
            given["token_env"],
            "Environment variable for its token" if live else "",
            "LMSCONF_TOKEN",
            partial(_variable, environ),
        ),
        timezone=ask(given["timezone"], "Time zone, for times without an offset", _local_zone(environ), _zone),
        ci=CiSystem(ask(given["ci"], f"CI system: {', '.join(CI_SYSTEMS)}", "none", click.Choice(CI_SYSTEMS))),
        schemas=schemas,
    )
    if not live or not asks:
        return answers, None if live else False
    return answers, click.confirm("Import the live workspace into manifests now?", default=True, err=True)


def _ask(asks: bool, given: str | None, question: str, default: str, check: Callable[[str], str]) -> str:
    """Return the given or prompted value, converted by `check`; prompt again for an answer that it rejects.

    Without a question, or anybody to ask, return the default. Raises UsageError for a given value that `check`
    rejects.
    """
    if given is not None or not question or not asks:
        return check(default if given is None else given)

    def checked(text: str) -> str:
        try:
            return check(text)
        except UsageError as error:
            raise click.UsageError(f"{error.message}. {error.hint or ''}") from error

    return str(click.prompt(question, default=default, value_proc=checked, err=True))


def _url(text: str) -> str:
    """Return the URL as written in the project file. Raises UsageError for an invalid one."""
    from lmsconf.project.config_reader import url_problem
    from lmsconf.project.templates import SANDBOX

    address = SANDBOX if text in ("sandbox", "sandbox:") else text
    if wrong := url_problem(address):
        raise UsageError(wrong[0], hint=wrong[1])
    return address


def _name(text: str) -> str:
    """Return a valid workspace name. Raises UsageError."""
    from lmsconf.project.config_file import ENV_WORKSPACE

    refuse_if(
        (
            text == ENV_WORKSPACE,
            f"a workspace cannot be called {text}",
            "That name is reserved for the workspace of LMSCONF_URL.",
        ),
        (
            not text.strip() or not text.isprintable(),
            "the workspace has no name",
            "Choose a word such as production.",
        ),
    )
    return text


def _variable(environ: Mapping[str, str], text: str) -> str:
    """Return the name of a variable that may hold a token.

    Raises UsageError, whose message omits the text: it may be the token itself.
    """
    from lmsconf.project.credentials import ENVS, env_may_hold_token

    refuse_if(
        (
            len(text) > 60 or not env_may_hold_token(text, environ),
            "that is not the name of an environment variable for a token",
            f"Use one that begins with LMSCONF_, such as LMSCONF_TOKEN, or that {ENVS} lists. The token itself is "
            "never written to a file.",
        )
    )
    return text


def _zone(text: str) -> str:
    """Return an IANA time zone name. Raises UsageError."""
    from lmsconf.model.time_formats import is_zone

    refuse_if((not is_zone(text), f"there is no time zone {text}", "Write an IANA name such as Europe/Stockholm."))
    return text


def _local_zone(environ: Mapping[str, str]) -> str:
    """Return this machine's IANA time zone (TZ, else /etc/localtime); UTC if it is unknown."""
    from lmsconf.model.time_formats import is_zone

    linked = str(Path("/etc/localtime").resolve()).partition("/zoneinfo/")[2]
    zone = environ.get("TZ", "").removeprefix(":") or linked
    return zone if is_zone(zone) else "UTC"


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
@click.pass_obj
def init(
    context: CommandContext,
    /,
    folder: Path | None,
    no_input: bool,
    schemas: bool | None,
    **given: str | None,
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
    from lmsconf.manifest.file_set import PROJECT_FILE
    from lmsconf.project.templates import render_project_files, write_schemas

    refuse_if(
        (
            context.workspace is not None,
            "--workspace selects a workspace of a project",
            "Name a new one with --workspace-name.",
        )
    )
    target = (context.directory or Path()) / (folder or "")
    if os.path.lexists(target / PROJECT_FILE):
        if schemas:
            write_stderr(
                "\n".join(f"Wrote {path}" for path in write_schemas(target, replace=True))
                or "The schemas are those of this version."
            )
            return ExitCode.OK
        raise LmsconfError(f"{target / PROJECT_FILE} already exists", hint="Name another folder, or edit that file.")
    answers, wanted = collect_answers(
        given, context.environ, schemas=schemas is not False, asks=can_ask() and not no_input
    )
    _write(target, render_project_files(answers, __version__))
    if not wanted:
        _tell(target, answers, context.environ, export=wanted is None)
        return ExitCode.OK
    return _export(target, answers, context.environ)


def _export(target: Path, answers: InitAnswers, environ: Mapping[str, str]) -> ExitCode:
    """Run `lmsconf export --into` in the new project, print the next steps, and return the exit code.

    An LmsconfError of the export is reported, not raised.
    """
    from lmsconf.cli.export import export

    # Export the workspace of the new project, even if the environment selects another one.
    chosen = {name: value for name, value in environ.items() if name not in ("LMSCONF_URL", "LMSCONF_WORKSPACE")}
    project = CommandContext(target, None, chosen)
    code = ExitCode.INTERRUPTED
    try:
        with export.make_context("export", ["--into"], parent=click.get_current_context(), obj=project) as command:
            export.invoke(command)
        code = ExitCode.OK
    except LmsconfError as error:
        report_problems(error.problems)
        code = error.exit
    finally:  # after an interrupted export the project exists too
        if code is not ExitCode.OK:
            write_stderr(
                "The project is created, but the live resources are not in its manifests yet: run the `export "
                "--into` below."
            )
        _tell(target, answers, environ, export=code is not ExitCode.OK)
    return code


def _write(target: Path, texts: Mapping[str, str]) -> None:
    """Write the files that do not exist yet, all or none. Raises LmsconfError if one cannot be written."""
    from lmsconf.manifest.file_set import MANIFESTS
    from lmsconf.support.files import os_errors_as

    manifests = target / MANIFESTS
    is_searched = manifests.is_dir() and _is_inside(manifests, target)
    begun = is_searched and any(path.suffix in (".yaml", ".yml") for path in manifests.rglob("*"))
    notes = []
    with ExitStack() as undo:
        for name, text in texts.items():
            path = target / name
            with os_errors_as(f"{path} cannot be written", "Name another folder. Nothing was written."):
                if begun and path.parent == manifests:
                    notes.append(f"{manifests} already has manifests, so no example manifest was written.")
                elif _new(target, path, text, undo):
                    notes.append(f"Wrote {path}")
                else:
                    notes.append(f"{path} already exists and is not changed.{_lacking(path, text)}")
        undo.pop_all()  # success: keep the files
    write_stderr("\n".join(notes))


def _is_inside(path: Path, target: Path) -> bool:
    """Whether a path stays in the project's folder once its symbolic links are resolved."""
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(target))


def _new(target: Path, path: Path, text: str, undo: ExitStack) -> bool:
    """Create a file and register its removal in `undo`; return False if it exists already. Raises OSError."""
    if not _is_inside(path.parent, target):
        raise NotADirectoryError(None, "its folder is a symbolic link out of the project")
    path.parent.mkdir(parents=True, exist_ok=True)
    if os.path.lexists(path):
        return False
    with path.open("x", encoding="utf-8") as file:
        undo.callback(path.unlink, missing_ok=True)
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
    from lmsconf.project.templates import next_commands, project_entries
    from lmsconf.render.jinja import terminal_text
    from lmsconf.support.files import find_work_tree

    text = terminal_text(
        "next_steps.txt.j2",
        answers=answers,
        ci=answers.ci.value,
        at="" if target == Path() else f" -C {shlex.quote(str(target))}",
        commands=next_commands(answers, export=export and not answers.embedded),
        entries=project_entries(answers),
        has_git=(target / ".git").exists(),
        is_in_repository=find_work_tree(target) is not None,
        has_token=bool(environ.get(answers.token_env)),
    )
    # The commands stand below a blank line, also where only the names of files are above it.
    write_redacted(f"\n{text}" if text.startswith("Next:") else text, sys.stderr)
