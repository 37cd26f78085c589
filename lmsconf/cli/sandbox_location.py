"""The database of a sandbox workspace: where it is, and how it is filled and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from lmsconf.api.spec import ApiSpec
from lmsconf.cli.frame import CommandContext
from lmsconf.errors import LmsconfError, UsageError
from lmsconf.sandbox.store import IN_MEMORY, Store

_SQLITE: Final = b"SQLite format 3\x00"


class SandboxLocation(NamedTuple):
    """A sandbox workspace: database file or `:memory:`, seed file, and API names (dialect applied)."""

    db: str
    seed: Path | None
    spec: ApiSpec


def sandbox_location(context: CommandContext, db: str | None, seed: Path | None) -> SandboxLocation:
    """Return the workspace of the options, or the project's if none is given.

    Raises UsageError if the project's workspace is not a sandbox.
    """
    if db is not None or seed is not None:
        return SandboxLocation(db or IN_MEMORY, seed, ApiSpec.default())
    from lmsconf.project.settings import load_settings

    settings = load_settings(context.project, context.workspace, context.environ)
    chosen = settings.workspace
    if not chosen.embedded:
        raise UsageError(f"workspace {chosen.name} is not a sandbox: {chosen.url}", hint="Name a file with --db FILE")
    return SandboxLocation(
        str(chosen.database or IN_MEMORY), chosen.seed, ApiSpec(settings.dialect, settings.dialect_at)
    )


def plant(place: SandboxLocation, values: Mapping[str, object], source: str) -> None:
    """Fill an empty workspace with the seed's values. Raises LmsconfError if it is not empty."""
    from lmsconf.sandbox.seed import fill_workspace

    store = Store(place.db)
    try:
        with store.write_transaction() as repository:
            if not repository.is_empty():
                raise LmsconfError(f"{place.db} is not empty", hint="Reset it with: lmsconf sandbox reset")
            fill_workspace(repository, values, source=source, spec=place.spec)
    finally:
        store.close()


def refuse_memory(place: SandboxLocation) -> None:
    if place.db == IN_MEMORY:
        raise UsageError("a workspace in memory ends with its process", hint="Name a file with --db FILE")


def refuse_foreign(path: Path) -> None:
    """Raise LmsconfError for an existing file that is neither empty nor SQLite, so that it is not deleted."""
    if path.is_dir() or (path.exists() and _beginning(path) not in (b"", _SQLITE)):
        raise LmsconfError(
            f"{path} is not a sandbox workspace, and was not changed", hint="Name another file with --db"
        )


def _beginning(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(len(_SQLITE))


def remove_database(db: str) -> None:
    """Delete a database file with SQLite's `-journal`, `-wal` and `-shm` files."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        Path(db + suffix).unlink(missing_ok=True)
