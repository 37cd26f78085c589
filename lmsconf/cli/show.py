"""`lmsconf show`: render a saved document according to its `format` key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from shlex import quote
from typing import TypeAlias

import click
from msgspec.structs import replace

from lmsconf.cli.command import Command
from lmsconf.cli.frame import CommandContext, pass_context
from lmsconf.cli.output import Output, output_options
from lmsconf.cli.output_streams import masks_people
from lmsconf.cli.planning import lmsconf_command_prefix
from lmsconf.documents import plan_file, report_file, reports, snapshot_file
from lmsconf.documents.document import errors_of_file, parse_document
from lmsconf.errors import ExitCode, LmsconfError, UsageError
from lmsconf.model.plan import Plan
from lmsconf.render import (
    APPLY_VIEWS,
    PLAN_EXTRACTS,
    PLAN_PROBLEMS_VIEWS,
    PLAN_VIEWS,
    PROBLEMS_VIEWS,
    SNAPSHOT_VIEWS,
)
from lmsconf.support.atomic_files import read_text


@click.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@output_options([*PLAN_VIEWS, *PLAN_EXTRACTS, *PLAN_PROBLEMS_VIEWS], pages=True)
@pass_context
def show(context: CommandContext, *, file: Path, output: Output) -> ExitCode:
    """Show a saved plan, snapshot or apply report.

    FILE is the output of `plan --out`, of `snapshot`, or of any command with `--format json`, including problems. A
    plan or report that was edited is refused.

    For a plan, `--format digest` prints only the digest, for `apply --expect-digest`, and `--format gitlab` the counts
    for GitLab's terraform report in merge requests. For the problems of a plan, or a file of problems, `--format
    github` prints workflow commands, which GitHub shows at each line, `--format sarif` a log for code scanning, and
    `--format codequality` GitLab's report of that name.
    """
    text = read_text(file)
    with errors_of_file(str(file), text, "show takes a saved plan, snapshot or apply report"):
        value, views = load_document(text)
    if output.format == "json" and masks_people():
        if "json" not in views:
            raise UsageError(
                "a snapshot contains e-mails", hint="Save it with `lmsconf snapshot --redact`, or remove --mask-people."
            )
        output.show(views, value)
    elif output.format == "json":
        # Written as it is: serialised again, it would name this version of lmsconf as the one that wrote it.
        output.write(text)
    elif output.format not in views:
        raise UsageError(
            f"--format {output.format} cannot show this kind of file", hint=f"Choose one of {', '.join(views)}."
        )
    else:
        if isinstance(value, Plan):
            value = replace(value, command=f"{lmsconf_command_prefix(context)} apply {quote(str(file))}")
        output.show(views, value)
    return ExitCode.OK


Views: TypeAlias = Mapping[str, Callable[..., str]]


def load_document(text: str) -> tuple[object, Views]:
    """Load a document; return its value and its views. Raises LmsconfError for an unknown or invalid format."""
    document_format = str(parse_document(text)["format"])
    if document_format not in _DOCUMENTS:
        known = " or ".join(_DOCUMENTS)
        raise LmsconfError(
            f"the file has the format {document_format!r}, which cannot be shown", hint=f"Give one in {known}."
        )
    loads, views = _DOCUMENTS[document_format]
    return loads(text), views


_DOCUMENTS: Mapping[str, tuple[Callable[[str], object], Views]] = {
    plan_file.FORMAT: (plan_file.loads, {**PLAN_VIEWS, **PLAN_EXTRACTS, **PLAN_PROBLEMS_VIEWS}),
    report_file.FORMAT: (report_file.loads, APPLY_VIEWS),
    snapshot_file.FORMAT: (snapshot_file.loads, SNAPSHOT_VIEWS),
    reports.PROBLEMS_FORMAT: (reports.load_problems, PROBLEMS_VIEWS),
}
