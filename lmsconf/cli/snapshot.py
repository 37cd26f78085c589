"""`lmsconf snapshot`: save the workspace's state to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from lmsconf.cli.command import Command
from lmsconf.cli.frame import CommandContext, pass_context
from lmsconf.cli.output import refuse_unwritable
from lmsconf.cli.output_streams import write_stderr
from lmsconf.cli.planning import load_context_settings, max_rate, open_workspace, parallelism, show_reading_progress
from lmsconf.errors import ExitCode

if TYPE_CHECKING:
    from lmsconf.model.declarations import Manifests
    from lmsconf.project.settings import Settings


@click.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--redact", is_flag=True, help="Omit people who are not in the manifests.")
@parallelism
@max_rate
@pass_context
def snapshot(
    context: CommandContext, *, file: Path, redact: bool, parallelism: int, max_rate: float | None
) -> ExitCode:
    """Save the state of the workspace to a file.

    `lmsconf plan --snapshot FILE` plans against it without a connection. The file contains e-mails, so only its owner
    can read it. It has the language and applications of people if the manifests manage them.

    With --redact, people who are not in the manifests cannot be identified: each list only counts them. The e-mails of
    people in the manifests become salted hashes that plans recognise, and what `users:` declares of them is kept.
    Names of groups and texts of fields are kept, without e-mails in them. A plan against a redacted snapshot does not
    compare people who are new in the manifests, and the snapshot cannot be exported.
    """
    from lmsconf.documents.snapshot_file import text_pieces
    from lmsconf.support.atomic_files import write_atomically

    refuse_unwritable(file, str(file))
    settings = load_context_settings(context)
    manifests = _sound(settings)
    with open_workspace(settings, parallelism, max_rate) as workspace, show_reading_progress("Reading") as tell:
        state = workspace.snapshot(tell, manifests)
        if redact:
            state = workspace.redact_snapshot(state, manifests)
    write_atomically(file, text_pieces(state))
    without = ", without people who are not in the manifests" if redact else ""
    write_stderr(f"Saved workspace {state.workspace} to {file}{without}.")
    from lmsconf.render.resource_wording import kind_plural

    lacking = {kind: listing.incomplete for kind, listing in state.listings.items() if listing.incomplete is not None}
    for kind, why in lacking.items():
        write_stderr(f"Not all of {kind_plural(kind)} is in it: {why}.")
    return ExitCode.OK


def _sound(settings: Settings) -> Manifests | None:
    """Return the manifests; if they have errors, None, with a note about what the snapshot will lack."""
    from lmsconf.workspace.project_manifests import load_manifests

    manifests = load_manifests(settings)
    if not any(problem.is_error for problem in manifests.problems):
        return manifests
    write_stderr(
        "No manifests could be read, so the snapshot has no languages and applications of people, and a redacted one "
        "recognises nobody. `lmsconf validate` shows why."
    )
    return None
