"""`lmsconf explain`: print the documentation of a manifest key."""

from __future__ import annotations

import click

from lmsconf.cli.frame import Output, output_options
from lmsconf.errors import ExitCode


@click.command()
@click.argument("key", metavar="[KIND[.FIELD]]", default="")
@output_options(["text", "json"])
def explain(*, key: str, output: Output) -> ExitCode:
    """Tell what a manifest key means.

    It is told from the schema that manifests are checked by. For example: lmsconf explain smart_group.conditions.
    Without a word, all sections are listed.
    """
    from lmsconf.kinds import all_kinds
    from lmsconf.manifest.explain import explain as explained
    from lmsconf.render.key_explanation import EXPLAIN_VIEWS

    output.show(EXPLAIN_VIEWS, explained(all_kinds(), key))
    return ExitCode.OK
