"""`lmsconf show`: a saved document, rendered by what it says it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import click

from lmsconf.cli.frame import Output, output_options
from lmsconf.core import planfile, reportfile
from lmsconf.core.document import parse
from lmsconf.errors import Exit, LmsconfError
from lmsconf.files import read_text
from lmsconf.kinds import snapshotfile
from lmsconf.views import APPLY_VIEWS, PLAN_VIEWS
from lmsconf.views.text import snapshot_text


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@output_options(list(PLAN_VIEWS))
def show(file: Path, output: Output) -> Exit:
    """Show a saved plan, snapshot or apply report.

    FILE is what `plan --out` or `snapshot` wrote, or `plan` and `apply` with `--format json`. A plan or report that was
    changed since is refused.
    """
    output.write(render(read_text(file), output.format))
    return Exit.OK


def render(text: str, format: str) -> str:
    """A document's text in that format. Raises LmsconfError for a document that lmsconf did not write."""
    found = str(parse(text)["format"])
    if found not in _DOCUMENTS:
        known = " or ".join(_DOCUMENTS)
        raise LmsconfError(f"the file has the format {found!r}, which cannot be shown", hint=f"Give one in {known}.")
    rendered = _DOCUMENTS[found](text, format)
    # The document is its own JSON; made anew it would name this version of lmsconf as the one that wrote it.
    return text if format == "json" else rendered


def _plan(text: str, format: str) -> str:
    return PLAN_VIEWS[format](planfile.loads(text))


def _report(text: str, format: str) -> str:
    return APPLY_VIEWS[format](reportfile.loads(text))


def _snapshot(text: str, format: str) -> str:
    return text if format == "json" else snapshot_text(snapshotfile.loads(text))


_DOCUMENTS: Mapping[str, Callable[[str, str], str]] = {
    planfile.FORMAT: _plan,
    reportfile.FORMAT: _report,
    snapshotfile.FORMAT: _snapshot,
}
