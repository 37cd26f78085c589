"""`lmsconf snapshot`: what the workspace holds, as a file."""

from __future__ import annotations

from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING

import click

from lmsconf.cli.frame import Context, pass_context, say
from lmsconf.cli.planning import max_rate, opened, parallelism, reading, settings_of
from lmsconf.errors import Exit

if TYPE_CHECKING:
    from lmsconf.core.plan import Manifests
    from lmsconf.settings import Settings


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--redact", is_flag=True, help="Leave people out: e-mails become salted hashes, names and answers go.")
@parallelism
@max_rate
@pass_context
def snapshot(context: Context, *, file: Path, redact: bool, parallelism: int, max_rate: float | None) -> Exit:
    """Save what the workspace holds to a file.

    Plans can be made against it without a connection: lmsconf plan --snapshot FILE. It holds people's e-mails, so it
    is written for its owner only. People's language and applications are in it where the manifests speak of them.

    With --redact it holds nobody's e-mail, name, metadata or answers. Plans count the same, and show a hash for
    everybody whom the manifests do not name. Such people are pseudonymous, not anonymous: who knows an e-mail can find
    out whether it is among them. Names of groups and texts of fields stay as they are.
    """
    from lmsconf.files import write_atomically
    from lmsconf.kinds.snapshotfile import dumps
    from lmsconf.views import wording

    settings = settings_of(context)
    manifests = _sound(settings)
    with opened(settings, parallelism, max_rate) as workspace, reading("Reading") as tell:
        found = workspace.snapshot(tell, manifests)
    if redact:
        from lmsconf.kinds.pseudonyms import without_people

        found = without_people(found, token_hex(16))
    write_atomically(file, dumps(found))
    say(f"Saved workspace {found.workspace} to {file}{', its people pseudonymous' if redact else ''}.")
    lacking = {kind: listing.incomplete for kind, listing in found.listings.items() if listing.incomplete is not None}
    for kind, why in lacking.items():
        say(f"Not all of {wording.plural(wording.noun(kind))} is in it: {why}.")
    return Exit.OK


def _sound(settings: Settings) -> Manifests | None:
    """The manifests; None where they cannot be read, and then what the snapshot lacks is told."""
    from lmsconf.seeing import read_manifests

    found = read_manifests(settings)
    if not any(problem.is_error for problem in found.problems):
        return found
    say(
        "No manifests could be read, so nobody's language and applications are in the snapshot. `lmsconf validate` "
        "says why."
    )
    return None
