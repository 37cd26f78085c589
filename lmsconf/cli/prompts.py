"""Questions: asked only where somebody sees them and can answer."""

from __future__ import annotations

import sys

from lmsconf.cli.output_streams import can_ask, write_redacted, write_stderr
from lmsconf.errors import UsageError


def refuse_without_terminal(hint: str) -> None:
    """Raise UsageError where no question can be asked. hint: what to pass instead."""
    if not can_ask():
        raise UsageError("there is no terminal to ask for approval", hint=hint)


def confirm(question: str, about: str = "") -> bool:
    """Ask on stderr; only the answer `yes` agrees. about: what the question is about, in the line above it."""
    from lmsconf.cli.progress import without_progress_bar
    from lmsconf.render.escape import escape_terminal

    with without_progress_bar():
        if about:
            write_stderr(about)
        # In one line, also on a narrow terminal: a program that answers may wait for these words.
        write_redacted(escape_terminal(f"{question} Only 'yes' will be accepted: "), sys.stderr, wraps=False)
        return sys.stdin.readline().rstrip("\r\n") == "yes"
