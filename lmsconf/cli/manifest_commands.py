"""`lmsconf validate`, `fmt`, `graph` and `explain`: commands about manifests, which never look at the workspace."""

from __future__ import annotations

import sys
from codecs import BOM_UTF8
from collections.abc import Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from lmsconf.cli.command import Command, completes
from lmsconf.cli.context import CommandContext
from lmsconf.cli.output import (
    PLAN_FORMATS,
    Output,
    output_options,
    report_problems,
    supports_color,
    terminal_size,
    write_redacted,
)
from lmsconf.cli.workspace_options import load_context_settings
from lmsconf.errors import ExitCode, Problem, ProblemsFound, SourceLocation, problem_found, raise_found, refuse_if
from lmsconf.model.names import count_noun

if TYPE_CHECKING:
    from lmsconf.manifest.file_set import ManifestFileReader
    from lmsconf.manifest.load import ExpandedEntries


@click.command(cls=Command)
@click.option("--expanded", is_flag=True, help="Print the manifests with variables, for_each and sets expanded.")
@output_options(PLAN_FORMATS, problems=PLAN_FORMATS[1:])
@click.pass_obj
def validate(context: CommandContext, *, expanded: bool, output: Output) -> None:
    """Check the manifests, without a connection.

    Reports every problem of every file with its line, and the findings of lints: manifests that are valid but probably
    not intended (`lmsconf explain lint` lists them). Exits 1 if there is an error.

    For code reviews: --format markdown prints a comment, github prints workflow commands, which GitHub shows at each
    line, sarif a log for code scanning, and codequality GitLab's report of that name.

    --expanded prints the manifests without variables, for_each, sets, except and CSV files.
    """
    from lmsconf.workspace.project_manifests import error_free, validate_offline

    refuse_if((expanded and output.format != "text", "--expanded prints YAML", "Remove --format."))
    plain: ExpandedEntries | None = [] if expanded else None
    manifests = error_free(validate_offline(load_context_settings(context), plain))
    if output.format != "text":
        from lmsconf.render import PROBLEMS_VIEWS

        output.show(PROBLEMS_VIEWS, manifests.problems)
        return
    report_problems(manifests.problems)
    if plain is not None:
        from lmsconf.workspace.export_files import expanded_manifest

        output.write(expanded_manifest(plain))
    else:
        tested = f" and {count_noun(len(manifests.tests), 'test')}" if manifests.tests else ""
        output.write(
            f"{count_noun(len(manifests.declared), 'resource')}{tested} in "
            f"{count_noun(len(manifests.files), 'file')}: no errors.\n"
        )


@click.command(cls=Command)
@click.argument("key", metavar="[KEY|CODE]", default="", shell_complete=completes("explained"))
@output_options(["text", "json"], pages=True)
def explain(*, key: str, output: Output) -> None:
    """Explain a key of manifests or of lmsconf.yaml, or a code.

    KEY is a kind or section with keys below it, a key of the project file, or a key alone, such as for_each. CODE is
    in brackets after a message. Without an argument, what can be explained is listed; `lmsconf explain project`, `lint`
    and `codes` list more.
    """
    from lmsconf.manifest.explain import explain as explained
    from lmsconf.render import EXPLAIN_VIEWS

    columns = min(terminal_size(sys.stdout).columns, 96) if output.is_on_terminal else 96
    output.show({**EXPLAIN_VIEWS, "text": partial(EXPLAIN_VIEWS["text"], columns=columns)}, explained(key))


@click.command(cls=Command)
@click.option(
    "--only",
    metavar="ADDRESS",
    multiple=True,
    shell_complete=completes("addresses"),
    help="Show only this address and what it needs; * is a wildcard.",
)
@output_options(["mermaid", "dot"])
@click.pass_obj
def graph(context: CommandContext, *, only: tuple[str, ...], output: Output) -> None:
    """Show the dependency graph.

    An edge leads from content to its audience, thick if mandatory, and from a smart group to the fields of its
    conditions. Resources that no manifest declares are dashed. The workspace is not read.
    """
    from msgspec.structs import replace

    from lmsconf.planner.call_order import build_graph
    from lmsconf.planner.selection import Selection
    from lmsconf.render import GRAPH_VIEWS
    from lmsconf.workspace.project_manifests import error_free, load_manifests

    settings = load_context_settings(context)
    manifests = error_free(load_manifests(settings))
    chosen = Selection(manifests.declared, replace(settings.policy, only=only))
    raise_found(list(chosen.problems()))
    output.show(GRAPH_VIEWS, build_graph(one for one in manifests.declared if chosen(one.address)))


@click.command(cls=Command)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Write nothing; exit 2 if a manifest is not in order.")
@click.option("--diff", is_flag=True, help="Show the differences.")
@click.pass_obj
def fmt(context: CommandContext, *, paths: tuple[Path, ...], check: bool, diff: bool) -> ExitCode:
    """Put keys and lists of manifests in order.

    Keys come in the order of the schema. Entries, people and the choices of conditions are sorted by name; lists whose
    order is seen or may matter, such as the choices of a field and the audiences of an assignment, stay as they are.
    Comments, anchors, quotes and line breaks are kept, and what a manifest declares never changes.

    Each PATH is a manifest or a folder; without one, all manifests of the project are formatted. The names of files
    that change are listed. A comment between blank lines is a heading: entries are sorted above and below it. A file
    that cannot be ordered safely is left as it is, with a warning.

    Exit 0; with --check, 2 if a manifest is not in order. An unreadable file, a link or invalid YAML is exit 1.
    """
    from lmsconf.render.escape import escape_terminal
    from lmsconf.support.files import write_all_or_none
    from lmsconf.workspace.accept_drift import file_diff

    reader, files = _files(context, paths)
    before, after, problems = _formatted(reader, files)
    report_problems(problems)
    if not check:
        write_all_or_none(reader.root, before, after)
    for path in after:
        name = escape_terminal(path)
        output = file_diff(name, before[path], after[path]) if diff else f"{name}\n"
        write_redacted(output, sys.stdout, color=diff and supports_color(sys.stdout))
    if any(problem.is_error for problem in problems):
        return ExitCode.ERROR
    return ExitCode.CHANGES if check and after else ExitCode.OK


def _files(context: CommandContext, paths: Sequence[Path]) -> tuple[ManifestFileReader, list[Path]]:
    """Return the manifests of the project, or those at the paths. Raises UsageError and ProblemsFound."""
    from lmsconf.manifest.file_set import ManifestFileReader, find_manifests

    if not paths:
        settings = load_context_settings(context)
        reader = ManifestFileReader(settings.root)
        folders = (settings.manifests, *settings.overlays)
        return reader, [path for folder in folders for path in find_manifests(folder, reader)]
    found = (find_manifests(path, ManifestFileReader(path)) if _is_folder(path) else [path] for path in paths)
    return ManifestFileReader(Path()), list(dict.fromkeys(chain.from_iterable(found)))


def _is_folder(path: Path) -> bool:
    """Whether a path is a folder of manifests. Raises UsageError for what is none, and no file either."""
    from lmsconf.manifest.file_set import PROJECT_FILE

    refuse_if(
        (not path.exists(), f"{path}: there is no such file or folder", "Name manifests, or leave PATH out."),
        (
            (path / PROJECT_FILE).exists(),
            f"{path}: that is the folder of a project, not of manifests",
            f"Write lmsconf -C {quote(str(path))} fmt.",
        ),
    )
    return path.is_dir()


def _formatted(
    reader: ManifestFileReader, files: Sequence[Path]
) -> tuple[dict[str, bytes], dict[str, bytes], list[Problem]]:
    """Return the manifests that are not in order, as they are and in order, and the problems of those that stay."""
    from lmsconf.manifest.edit.ordering import order_manifest
    from lmsconf.manifest.schema_check import manifest_schema

    before, after, problems = dict[str, bytes](), dict[str, bytes](), list[Problem]()
    for path in files:
        name = reader.relative_path(path)
        try:
            mark, text = _read(reader, path)
            ordered = order_manifest(name, text, manifest_schema())
        except ProblemsFound as error:
            problems += error.problems
            continue
        if ordered != text:
            before[name], after[name] = mark + text.encode(), mark + ordered.encode()
    return before, after, problems


def _read(reader: ManifestFileReader, path: Path) -> tuple[bytes, str]:
    """Return a manifest's byte order mark, if it has one, and its text. Raises ProblemsFound, also for a link."""
    from lmsconf.manifest.file_set import read_manifest

    root = reader.root
    folders = (folder for folder in path.parents if folder != root and folder.is_relative_to(root))
    if any(part.is_symlink() for part in (path, *folders)):
        source = SourceLocation(reader.relative_path(path))
        raise problem_found("manifest/linked", "is a link", "Format the file that it leads to.", source)
    text = read_manifest(path, reader) if path.is_dir() else reader.read_yaml(path)
    with path.open("rb") as file:
        return (BOM_UTF8 if file.read(len(BOM_UTF8)) == BOM_UTF8 else b""), text
