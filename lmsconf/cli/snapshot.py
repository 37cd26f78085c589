"""`lmsconf snapshot`: what the workspace holds, as a file."""

from __future__ import annotations

from pathlib import Path

import click

from lmsconf.cli.frame import Context, pass_context, say
from lmsconf.cli.planning import opened, parallelism, reading, settings_of
from lmsconf.errors import Exit


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@parallelism
@pass_context
def snapshot(context: Context, *, file: Path, parallelism: int) -> Exit:
    """Save what the workspace holds to a file.

    Plans can be made against it without a connection: lmsconf plan --snapshot FILE. It holds people's e-mails, so it
    is written for its owner only.
    """
    from lmsconf.files import write_atomically
    from lmsconf.kinds.snapshotfile import dumps

    with opened(settings_of(context), parallelism) as workspace, reading("Reading") as tell:
        found = workspace.snapshot(tell)
    write_atomically(file, dumps(found))
    say(f"Saved workspace {found.workspace} to {file}.")
    return Exit.OK
