"""`lmsconf export`: write manifests for the live workspace; a plan of them is empty."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lmsconf.cli.command import Command, completes
from lmsconf.cli.context import CommandContext
from lmsconf.cli.output import report_problems, write_redacted
from lmsconf.cli.workspace_options import (
    load_context_settings,
    load_snapshot,
    max_rate,
    open_workspace,
    parallelism,
    show_reading_progress,
)
from lmsconf.errors import LmsconfError, refuse_if

if TYPE_CHECKING:
    from lmsconf.model.declarations import Manifests
    from lmsconf.project.settings import Settings


@click.command(cls=Command)
@click.argument("folder", required=False, metavar="[DIR]", type=click.Path(path_type=Path))
@click.option(
    "--kind", "sections", metavar="KIND", multiple=True, shell_complete=completes("sections"),
    help="Export only this kind: custom_fields, groups, smart_groups, content_targets or users. Without it, all but "
    "users.",
)  # fmt: skip
@click.option("--into", is_flag=True, help="Add what existing manifests do not declare yet, in new files.")
@click.option(
    "--snapshot", "snapshot_file", type=click.Path(path_type=Path), metavar="FILE",
    help="Export a saved snapshot, without a connection.",
)  # fmt: skip
@click.option(
    "--by", metavar="FIELD|PREFIX",
    help="Split the files by team, a folder for each: by the value of this custom field, or, with prefix:SEPARATOR, by "
    "the part of names before the separator.",
)  # fmt: skip
@parallelism
@max_rate
@click.pass_obj
def export(
    context: CommandContext,
    *,
    folder: Path | None,
    sections: tuple[str, ...],
    into: bool,
    snapshot_file: Path | None,
    by: str | None,
    parallelism: int,
    max_rate: float | None,
) -> None:
    """Write manifests for the live workspace.

    Writes one file per kind to DIR, or to the manifests folder of the project, with names and e-mails and without
    default values. A plan right afterwards is empty. What a manifest cannot express is not exported, and is reported.

    With --by, each team has a folder with files of its own. With the name of a custom field, a team is a value of that
    field: a person's answer, the one choice in the conditions of a smart group, the one answer of all members of a
    group; an assignment goes with its audience. With --by 'prefix: - ', "Sales - Leads" goes to sales/, and an
    assignment goes with its content. Resources without a team stay in DIR.

    With --into, new files are added to a folder that already has manifests, with only what they do not declare.
    Existing files are not changed.
    """
    from lmsconf.render.jinja import terminal_text
    from lmsconf.render.resource_wording import count_kind
    from lmsconf.workspace.export import export_snapshot as exported
    from lmsconf.workspace.export_files import parse_rule

    settings = load_context_settings(context)
    target = settings.manifests if folder is None else folder
    kinds = _chosen(sections) or None
    existing = _existing(settings, target, into)
    with open_workspace(settings, parallelism, max_rate) as workspace:
        if snapshot_file is None:
            with show_reading_progress("Reading") as tell:
                snapshot = workspace.snapshot(tell, existing)
        else:
            snapshot = load_snapshot(snapshot_file)
            refuse_if(
                (
                    snapshot.redaction is not None,
                    "this snapshot is redacted: its people have no e-mails that a manifest could name",
                    "Export the workspace itself, or a snapshot that was taken without --redact.",
                ),
                error=LmsconfError,
            )
    generated = exported(
        snapshot,
        settings.policy,
        workspace.connection.spec,
        only_kinds=kinds,
        existing_manifests=existing,
        by=None if by is None else parse_rule(by, snapshot),
    )
    report_problems(generated.problems)
    paths = _write(settings.root, target, generated.files, "exported-" if existing is not None else "")
    counts = ", ".join(count_kind(number, kind) for kind, number in generated.counts.items() if number)
    write_redacted(terminal_text("exported.txt.j2", generated=generated, paths=paths, counts=counts), sys.stderr)


def _chosen(sections: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of manifest sections. Raises UsageError for an unknown section."""
    from lmsconf.kinds.kind_table import KINDS

    known = {kind.section: name for name, kind in KINDS.items()}
    hint = f"There are {', '.join(known)}."
    refuse_if(*((one not in known, f"--kind {one}: there is no such kind", hint) for one in sections))
    return tuple(known[section] for section in sections)


def _existing(settings: Settings, target: Path, into: bool) -> Manifests | None:
    """Return the manifests already in the target folder, or of the project if it is inside; None if there are none.

    Raises LmsconfError if there are some and --into was not given, ProblemsFound if they have errors.
    """
    from msgspec.structs import replace

    from lmsconf.manifest.file_set import ManifestFileReader, find_manifests
    from lmsconf.workspace.project_manifests import error_free, load_manifests

    if not target.resolve().is_relative_to(settings.manifests.resolve()):
        settings = replace(settings, root=target, manifests=target)
    base = settings.manifests
    if not base.is_dir() or not find_manifests(base, ManifestFileReader(settings.root)):
        return None
    refuse_if(
        (
            not into,
            f"{base} already has manifests",
            "Pass --into to add what they do not declare yet, or name another folder.",
        ),
        error=LmsconfError,
    )
    return error_free(load_manifests(settings))


def _write(root: Path, target: Path, files: Mapping[str, str], prefix: str) -> list[Path]:
    """Write each section to a new file with its name and return the paths. Raises LmsconfError.

    The first line of each names the manifest's schema, which is written into the project if it is missing.
    """
    from lmsconf.manifest.file_set import MANIFEST_SCHEMA
    from lmsconf.project.templates import schema_comment, write_schemas
    from lmsconf.support.files import os_errors_as, write_atomically

    for folder in dict.fromkeys([target, *((target / name).parent for name in files)]):
        with os_errors_as(f"{folder} cannot be created", "Name another folder."):
            folder.mkdir(parents=True, exist_ok=True)
    paths = list(write_schemas(root, replace=False)) if files else []
    for name, text in files.items():
        folder = (target / name).parent
        paths.append(_unused(folder, f"{prefix}{Path(name).name}"))
        # They are committed, like other sources.
        write_atomically(paths[-1], schema_comment(MANIFEST_SCHEMA, folder, root) + text, mode=0o644)
    return paths


def _unused(target: Path, stem: str) -> Path:
    """Return an unused path for the name, numbered from 2 if it exists."""
    stems = chain([stem], (f"{stem}-{number}" for number in count(2)))
    paths = (target / f"{name}.yaml" for name in stems)
    return next(path for path in paths if not (path.exists() or path.is_symlink()))
