"""`lmsconf snapshot`: what the workspace holds, as a file."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex

import click

from lmsconf.cli.frame import Context, pass_context, say
from lmsconf.cli.planning import max_rate, opened, parallelism, reading, settings_of
from lmsconf.errors import Exit


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--redact", is_flag=True, help="Leave people out: e-mails become salted hashes, names and answers go.")
@parallelism
@max_rate
@pass_context
def snapshot(context: Context, *, file: Path, redact: bool, parallelism: int, max_rate: float | None) -> Exit:
    """Save what the workspace holds to a file.

    Plans can be made against it without a connection: lmsconf plan --snapshot FILE. It holds people's e-mails, so it
    is written for its owner only.

    With --redact it holds nobody's e-mail, name, metadata or answers. Plans count the same, and show a hash for
    everybody whom the manifests do not name. Such people are pseudonymous, not anonymous: who knows an e-mail can find
    out whether it is among them. Names of groups and texts of fields stay as they are.
    """
    from lmsconf.files import write_atomically
    from lmsconf.kinds.snapshotfile import dumps

    with opened(settings_of(context), parallelism, max_rate) as workspace, reading("Reading") as tell:
        found = workspace.snapshot(tell)
    if redact:
        from lmsconf.kinds.pseudonyms import without_people

        found = without_people(found, token_hex(16))
    write_atomically(file, dumps(found))
    say(f"Saved workspace {found.workspace} to {file}{', its people pseudonymous' if redact else ''}.")
    return Exit.OK
