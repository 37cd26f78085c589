"""`lmsconf sandbox`: serve, seed or reset the embedded workspace."""

from __future__ import annotations

import json
import os
import secrets
import sys
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TextIO

import click
from msgspec import Struct
from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec
from lmsconf.cli.command import FiniteRange, Group
from lmsconf.cli.context import CommandContext
from lmsconf.cli.output import refuse_without_terminal, require_consent, write_redacted, write_stderr
from lmsconf.errors import LmsconfError, UsageError, refuse_if
from lmsconf.model.snapshot import Snapshot
from lmsconf.sandbox.store import IN_MEMORY, Store


@click.group("sandbox", cls=Group)
def sandbox() -> None:
    """Serve, seed or reset the embedded workspace.

    Without --db and --seed it is the workspace that lmsconf.yaml names and --workspace selects.
    """


_db = click.option("--db", type=click.Path(), metavar="FILE", help="The workspace's database file.")
_seed = click.option(
    "--seed", type=click.Path(path_type=Path), metavar="FILE", help="The seed file of a new workspace."
)


@sandbox.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="N",
    default=8765,
    show_default=True,
    help="The port to listen on; 0 chooses a free port.",
)
@_db
@_seed
@click.option("--latency", type=FiniteRange(0), default=0.0, metavar="SECONDS", help="Delay each response.")
@click.option(
    "--log", type=click.Path(path_type=Path), metavar="FILE", help="Append a JSON line to this file for each request."
)
@click.option(
    "--faults", type=click.Path(path_type=Path), metavar="FILE", help="Inject the faults in this file; see above."
)
@click.option("--token", metavar="TOKEN", help="The token to accept, for scripts; default: a new one each time.")
@click.pass_obj
def serve(
    context: CommandContext,
    port: int,
    db: str | None,
    seed: Path | None,
    latency: float,
    log: Path | None,
    faults: Path | None,
    token: str | None,
) -> None:
    """Serve a workspace over HTTP, to this machine only.

    With --seed alone it is in memory. Each start creates and prints a new token, unless --token is given. Open the
    address in a browser to see the contents of the workspace and the last calls.

    A file of faults is a YAML list. Each entry applies to the next matching request:

    \b
      - {operation: "users.*", status: 429, headers: {retry-after: 2}, times: 3}
      - {calls: [5, 9], cut: true}
      - {operation: users.list, chance: 0.05, seed: 7, times: always, stale: true}

    Faults: status with headers (nothing is done), delay in seconds, cut or lose_answer (the connection breaks before or
    after the call is done), spoil: truncated or html, stale (a read returns the state before the last change).
    Requests: operation, a shell pattern; times, a number or always; after, the number of requests to skip; calls, by
    number from 1; chance, with the seed of its random numbers.
    """
    from lmsconf.sandbox import serve as serving
    from lmsconf.sandbox.faults import FaultScript, parse_faults
    from lmsconf.sandbox.service import Sandbox
    from lmsconf.support.url_rules import token_problem
    from lmsconf.workspace.connection import fill_if_empty

    place = sandbox_location(context, db, seed)
    if token is not None and (wrong := token_problem(token)):
        raise UsageError(f"--token cannot be used: {wrong}", hint="Give it in one word of ASCII characters.")
    token = token or secrets.token_urlsafe(24)
    script = FaultScript(*parse_faults(faults)) if faults else None
    with _open_log(log or Path(os.devnull)) as file:
        # A line for each request, flushed at once, so that another process can follow the file.
        service = Sandbox(
            place.db,
            spec=place.spec,
            token=token,
            faults=script,
            on_log=lambda entry: print(json.dumps(entry._asdict(), ensure_ascii=False) + "\n", end="", file=file),
        )
        fill_if_empty(service, place.seed)
        server = serving.serve(service, port, latency=latency)
        where = "in memory, lost when it stops" if place.db == IN_MEMORY else place.db
        # One thing per line, so that scripts can parse them.
        write_redacted(
            f"A sandbox workspace listens on {server.url}\n"
            f"  data   {where}\n"
            f"  token  {token}\n"
            f"  try    LMSCONF_URL={server.url} LMSCONF_TOKEN={token} lmsconf plan\n"
            "Stop it with Ctrl-C.\n",
            sys.stdout,
            whole=True,
        )
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            write_stderr("\nStopped.")
        finally:
            server.server_close()
            service.close_workspace()


@sandbox.command("seed")
@_db
@_seed
@click.option("--users", type=click.IntRange(0), metavar="N", help="Number of users to generate.")
@click.option("--groups", type=click.IntRange(0), metavar="N", help="Number of groups to generate.")
@click.option("--smart-groups", type=click.IntRange(0), metavar="N", help="Number of smart groups to generate.")
@click.option("--fields", type=click.IntRange(0, 10), metavar="N", help="Number of custom fields to generate.")
@click.option("--contents", type=click.IntRange(0), metavar="N", help="Number of contents to generate.")
@click.option("--assignments", type=click.IntRange(0), metavar="N", help="Number of assignments to generate.")
@click.option("--seed-number", "number", default=0, metavar="N", show_default=True, help="Seed of the random numbers.")
@click.option("--out", metavar="FILE", help="Write the generated workspace as a seed file; - is stdout.")
@click.pass_obj
def seed_command(
    context: CommandContext, /, db: str | None, seed: Path | None, number: int, out: str | None, **sizes: int | None
) -> None:
    """Fill an empty workspace from its seed, or with generated data.

    With any of the number options the data is generated; the same numbers generate the same workspace. --out writes it
    to a seed file instead of a workspace.
    """
    from lmsconf.sandbox.seed import dump_seed
    from lmsconf.sandbox.synthetic_seed import generate_seed
    from lmsconf.support.files import write_atomically
    from lmsconf.workspace.fill_sandbox import load_seed

    wanted = {name: size for name, size in sizes.items() if size is not None}
    refuse_if(
        (
            (seed is not None and wanted) or (out is not None and (db is not None or seed is not None)),
            "expected one source and one destination",
            "Pass --seed or numbers, and --db or --out.",
        )
    )
    if out == "-":
        write_redacted(dump_seed(generate_seed(seed=number, **wanted)), sys.stdout, exact=True)
    elif out is not None:
        write_atomically(Path(out), dump_seed(generate_seed(seed=number, **wanted)))
        write_stderr(f"{out} is written.")
    else:
        place = _database_file(context, db, seed)
        source = None if wanted else place.seed
        values = load_seed(source) if source else generate_seed(seed=number, **wanted)
        plant(place, values, str(source or "the generated data"))
        write_stderr(f"{place.db} is filled {f'from {source}' if source else 'with generated data'}.")


@sandbox.command()
@_db
@_seed
@click.option(
    "--from",
    "source",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Fill it from this seed or snapshot instead of its own seed.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def reset(context: CommandContext, db: str | None, seed: Path | None, source: Path | None, yes: bool) -> None:
    """Delete all data of a workspace and fill it from its seed again.

    --from takes a seed, or a snapshot that `lmsconf snapshot` saved: the same people, fields, groups, contents and
    assignments, by the same ids. Results, certificates and what the catalog says beside names and types are not in a
    snapshot. A redacted snapshot is refused: it names too few people.
    """
    from lmsconf.workspace.fill_sandbox import load_seed

    place = _database_file(context, db, seed)
    place = place if source is None else replace(place, seed=source)
    refuse_foreign(Path(place.db))
    if not yes:
        refuse_without_terminal("Pass --yes to reset the workspace without a question.")
        require_consent(f"Delete all data in {place.db} and reset it?")
    fresh = replace(place, db=f"{place.db}.new")
    remove_database(fresh.db)
    try:
        # The old database is replaced only once the new one is complete, so that a bad seed loses nothing.
        plant(fresh, load_seed(place.seed) if place.seed else {}, str(place.seed))
        remove_database(place.db)
        Path(fresh.db).replace(place.db)
    finally:
        remove_database(fresh.db)
    write_stderr(f"{place.db} was reset{f' from {place.seed}' if place.seed else ', and is empty'}.")


def _open_log(path: Path) -> TextIO:
    """Open a file to append lines to, each flushed at its end. Raises LmsconfError."""
    from lmsconf.support.files import os_errors_as

    with os_errors_as(f"--log {path} cannot be written", "Check its folder."):
        return path.open("a", encoding="utf-8", buffering=1)


class SandboxLocation(Struct, frozen=True):
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
    refuse_if(
        (
            not chosen.embedded,
            f"workspace {chosen.name} is not a sandbox: {chosen.url}",
            "Name a file with --db FILE",
        )
    )
    return SandboxLocation(
        str(chosen.database or IN_MEMORY), chosen.seed, ApiSpec(settings.dialect, settings.dialect_at)
    )


def _database_file(context: CommandContext, db: str | None, seed: Path | None) -> SandboxLocation:
    """Return the same, of a workspace that is kept. Raises UsageError for one in memory."""
    place = sandbox_location(context, db, seed)
    refuse_if((place.db == IN_MEMORY, "a workspace in memory ends with its process", "Name a file with --db FILE"))
    return place


def plant(place: SandboxLocation, values: Mapping[str, object] | Snapshot, source: str) -> None:
    """Fill an empty workspace with a seed or snapshot. Raises LmsconfError if it is not empty."""
    from lmsconf.workspace.fill_sandbox import fill_workspace

    with closing(Store(place.db)) as store, store.write_transaction() as repository:
        refuse_if(
            (not repository.is_empty(), f"{place.db} is not empty", "Reset it with: lmsconf sandbox reset"),
            error=LmsconfError,
        )
        fill_workspace(repository, values, source=source, spec=place.spec)


def refuse_foreign(path: Path) -> None:
    """Raise LmsconfError for an existing file that is neither empty nor SQLite, so that it is not deleted."""
    begin = b""
    if path.is_file():
        with path.open("rb") as file:
            begin = file.read(16)
    is_other = path.exists() and not path.is_file()
    refuse_if(
        (
            is_other or begin not in (b"", b"SQLite format 3\x00"),
            f"{path} is not a sandbox workspace, and was not changed",
            "Name another file with --db",
        ),
        (path.parent.is_file(), f"{path.parent} is not a folder", "Name another file with --db"),
        error=LmsconfError,
    )


def remove_database(db: str) -> None:
    """Delete a database file with SQLite's `-journal`, `-wal` and `-shm` files."""
    for suffix in ("", "-journal", "-wal", "-shm"):
        Path(db + suffix).unlink(missing_ok=True)
