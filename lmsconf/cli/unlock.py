"""`lmsconf unlock`: list the locks on the workspace and remove one."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from lmsconf.cli.command import Command
from lmsconf.cli.frame import CommandContext, pass_context
from lmsconf.cli.output_streams import can_ask, write_redacted
from lmsconf.cli.planning import load_context_settings, on_request
from lmsconf.cli.prompts import confirm
from lmsconf.errors import ExitCode, LmsconfError, UsageError

if TYPE_CHECKING:
    from lmsconf.apply.remote_lock import WorkspaceLock


@click.command(cls=Command)
@click.option("--id", "id", metavar="ID", help="Remove the lock with this id, without a question.")
@pass_context
def unlock(context: CommandContext, *, id: str | None) -> ExitCode:
    """Remove a stale lock.

    A lock expires when its lease ends; use this command if that takes too long. A run that is still alive checks its
    lock every five seconds and stops sending calls once the lock is deleted; calls in flight are still carried out.
    """
    from lmsconf.apply.remote_lock import LockManager
    from lmsconf.render.escape import escape_terminal
    from lmsconf.workspace.connection import Connection

    with Connection(load_context_settings(context), on_call=on_request()) as connection:
        manager = LockManager(connection)
        locks = manager.list_locks()
        if not locks and id is None:
            write_redacted(f"Workspace {escape_terminal(connection.name)} is not locked.\n", sys.stdout)
            return ExitCode.OK
        chosen = _named(locks, id) if id is not None else _confirmed(locks)
        manager.delete(chosen)
        write_redacted(f"Unlocked: {escape_terminal(chosen.description)}.\n", sys.stdout)
    return ExitCode.OK


def _named(locks: list[WorkspaceLock], id: str) -> WorkspaceLock:
    for lock in locks:
        if lock.id == id:
            return lock
    live = ", ".join(lock.description for lock in locks) or "none"
    raise LmsconfError(f"there is no lock with the id {id}", hint=f"Existing locks: {live}.")


def _confirmed(locks: list[WorkspaceLock]) -> WorkspaceLock:
    """Return the only lock once the user confirms on the terminal.

    Raises UsageError for several locks or without a terminal, LmsconfError if declined.
    """
    from lmsconf.render.escape import escape_terminal

    listed = "".join(f"Locked by {escape_terminal(lock.description)}.\n" for lock in locks)
    write_redacted(listed, sys.stderr)
    if len(locks) > 1 or not can_ask():
        raise UsageError("it is not clear which lock to remove", hint=f"Pass --id {locks[0].id}.")
    if not confirm("Remove this lock?"):
        raise LmsconfError("declined: nothing was changed")
    return locks[0]
