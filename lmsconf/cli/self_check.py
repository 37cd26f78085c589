"""`lmsconf self-check`: describe the installation and the project for a support request."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import click

from lmsconf.cli.command import Command
from lmsconf.cli.frame import CommandContext, pass_context
from lmsconf.cli.output import Output, output_options
from lmsconf.errors import ExitCode

if TYPE_CHECKING:
    from lmsconf.model.canonical_json import Json

_PAGERS: Final = frozenset({"less", "more", "most", "cat", "bat"})
"""Pagers that are named. For any other command only `set` is shown, since its words may be secret."""


@click.command("self-check", cls=Command)
@click.option("--hosts", is_flag=True, help="Name the hosts of the workspaces.")
@output_options(["text", "json"])
@pass_context
def self_check(context: CommandContext, *, hosts: bool, output: Output) -> ExitCode:
    """Describe the installation and the project for a support request.

    Attach the output to a support request. It has versions, how lmsconf was installed, the keys of the project file,
    the number of manifests and problems, and facts about git, the terminal and the folders that lmsconf writes. It has
    no token, no value of a variable, nobody's name and, without --hosts, no host. No request is sent: `lmsconf doctor`
    checks the connection.

    Exits 1 if a library is missing, the project has errors, or the journal cannot be written.
    """
    from lmsconf.doctor.self_check import run_self_check
    from lmsconf.doctor.self_check_report import SELF_CHECK_VIEWS

    check = run_self_check(context.project, context.workspace, context.environ, _terminal(context.environ), hosts=hosts)
    output.show(SELF_CHECK_VIEWS, check)
    return check.exit_code


def _terminal(environ: Mapping[str, str]) -> dict[str, Json]:
    """The streams, the locale and the pager."""
    streams: dict[str, Json] = {
        name: stream.isatty() for name, stream in (("stdin", sys.stdin), ("stdout", sys.stdout), ("stderr", sys.stderr))
    }
    pager = next(iter(environ.get("PAGER", "").split()), "less")
    program = os.path.basename(pager)  # noqa: PTH119  a word of a command, which is no path of ours
    locale = next((environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if environ.get(name)), None)
    return {
        **streams,
        "columns": shutil.get_terminal_size().columns,
        "term": environ.get("TERM"),
        "color": not environ.get("NO_COLOR"),
        "encoding": sys.stdout.encoding,
        "locale": locale,
        "pager": program if program in _PAGERS and "=" not in pager else "set",
        "pager_found": shutil.which(pager) is not None,
    }
