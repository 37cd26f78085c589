"""The command line: its entry points. Each command is imported only where it runs."""

from __future__ import annotations

import atexit
import gc
import os
import sys
import threading
from collections.abc import Sequence
from typing import NoReturn

from lmsconf.cli.command import app
from lmsconf.cli.output_streams import secure_standard_streams
from lmsconf.cli.run_command import report_crash, run_command_line

__all__ = ["app", "console_script", "main"]


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run one command and exit with its exit code."""
    secure_standard_streams()
    sys.excepthook = report_crash
    code = run_command_line(app, list(sys.argv[1:] if arguments is None else arguments))
    gc.freeze()  # no collection at exit: the process's memory is freed anyway
    sys.exit(code)


def console_script() -> NoReturn:
    """Run one command, and end the process without freeing each module and object: a twelfth of a small plan's time.

    Exit handlers run and output is flushed first. While another thread is at work, or when output cannot be flushed,
    the process ends in the ordinary way. Requests of an interrupted run are not waited for.
    """
    try:
        main()
    except SystemExit as ended:
        if not isinstance(ended.code, int) or any(
            not thread.daemon and not thread.name.startswith("lmsconf-")
            for thread in threading.enumerate()
            if thread is not threading.main_thread()
        ):
            raise
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            raise ended from None
        os._exit(ended.code)
