"""Questions: asked only where somebody sees them and can answer."""

from __future__ import annotations

import sys

from lmsconf.cli.output_streams import can_ask, write_redacted
from lmsconf.errors import UsageError


def refuse_without_terminal(hint: str) -> None:
    """Raise UsageError where no question can be asked. hint: what to pass instead."""
    if not can_ask():
        raise UsageError("there is no terminal to ask for approval", hint=hint)


def confirm(question: str) -> bool:
    """Ask on stderr; only the answer `yes` agrees."""
    from lmsconf.cli.progress import without_progress_bar
    from lmsconf.render.escape import escape_terminal

    with without_progress_bar():
        write_redacted(escape_terminal(f"{question} Only 'yes' will be accepted: "), sys.stderr)
        return sys.stdin.readline().strip() == "yes"
