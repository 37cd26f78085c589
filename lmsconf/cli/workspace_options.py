"""Shared by the commands that read a workspace: options, settings, connection, planning."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

import click
from msgspec import Struct
from msgspec.structs import replace

from lmsconf.cli.command import FiniteRange, completes
from lmsconf.cli.context import CommandContext, is_given
from lmsconf.cli.output import P, Value, add_options, can_ask, masks_people, show_progress, write_stderr
from lmsconf.errors import ExitCode, refuse_if

if TYPE_CHECKING:
    from pathlib import Path

    from lmsconf.api.client import Exchange
    from lmsconf.apply.scheduler import ApplyEvent
    from lmsconf.model.calls import Report, RunProgress
    from lmsconf.model.declarations import Manifests
    from lmsconf.model.drift import DriftReport
    from lmsconf.model.snapshot import Snapshot
    from lmsconf.project.settings import Settings
    from lmsconf.workspace.reader import WorkspaceReader


selection_options = add_options(
    click.option(
        "--only",
        metavar="ADDRESS",
        multiple=True,
        shell_complete=completes("addresses"),
        help="Plan only this address and what it needs; * is a wildcard.",
    ),
    click.option(
        "--except",
        "excluded",
        metavar="ADDRESS",
        multiple=True,
        shell_complete=completes("addresses"),
        help="Do not plan this address; * is a wildcard.",
    ),
    click.option("--additive", is_flag=True, help="Plan only creations and additions; list what is left out."),
    click.option(
        "--no-effects",
        is_flag=True,
        help="Do not compute who gains or loses content; a plan that can remove access then needs --allow.",
    ),
)
"""The options that select what is planned."""

parallelism = click.option(
    "--parallelism",
    type=click.IntRange(1, 64),
    metavar="N",
    default=8,
    show_default=True,
    help="Limit the number of concurrent requests.",
)
max_rate = click.option(
    "--max-rate",
    type=FiniteRange(min=0.1),
    metavar="N",
    help="Limit requests per second; default: as many as the service accepts.",
)
allow = click.option(
    "--allow",
    metavar="GUARD=N",
    multiple=True,
    shell_complete=completes("guards"),
    help="Allow what a guard counts, if its total is exactly N: removals=214.",
)
trust_project = click.option(
    "--trust-project",
    metavar="PARTS",
    shell_complete=completes("trusted_parts"),
    help="With --base: trust a changed url, token, command or dialect of the project file; separated by commas.",
)


Event: TypeAlias = "ApplyEvent | Manifests | DriftReport | Exchange"
"""What a command does: its manifests are read and have no errors, it compared, a request was answered."""


class CommandEvents(Struct, frozen=True):
    """What a command records while it runs; without `--events` nothing.

    phase: a phase begins; the context's value receives its progress. record: called for each event, by all threads.
    """

    phase: Callable[[str], AbstractContextManager[Report]] = lambda label: nullcontext(lambda progress: None)
    record: Callable[[Event], None] = lambda event: None


NO_EVENTS = CommandEvents()


def load_context_settings(context: CommandContext) -> Settings:
    """Load the settings of the context's project and workspace. Raises ProblemsFound and UsageError."""
    from lmsconf.project.settings import load_settings

    settings = load_settings(context.project, context.workspace, context.environ, ask=_agrees if can_ask() else None)
    return replace(settings, policy=replace(settings.policy, command=lmsconf_command_prefix(context)))


def _agrees(command: str) -> bool:
    """Ask on the terminal whether a command may be run that gets a token."""
    from lmsconf.cli.output import confirm

    about = f"The project file gets the token from a command that has not run here before:\n  {command}"
    return confirm("Run it, now and from now on?", about)


def split_pairs(option: str, pairs: Sequence[str], expected: str, example: str) -> Iterator[tuple[str, str]]:
    """Yield name and value of each `name=value`. Raises UsageError for anything else."""
    for pair in pairs:
        name, equals, value = pair.partition("=")
        refuse_if((not name or not equals, f"{option} {pair}: expected {expected}", f"Write {option} {example}."))
        yield name, value


def lmsconf_command_prefix(context: CommandContext) -> str:
    """Return `lmsconf` with this run's -C and --workspace, shell-quoted, for commands to paste."""
    from pathlib import Path
    from shlex import quote

    at = "" if context.directory in (None, Path()) else f" -C {quote(str(context.directory))}"
    on = "" if context.workspace is None else f" --workspace {quote(context.workspace)}"
    return f"lmsconf{at}{on}"


def trusted_parts(text: str | None, base: str | None) -> frozenset[str]:
    """Return the parts that `--trust-project` names. Raises UsageError for others, and without --base."""
    from lmsconf.project.credentials import parse_trusted_parts

    refuse_if(
        (
            text is not None and base is None,
            "--trust-project needs --base",
            "Without --base, the project file is trusted.",
        )
    )
    return frozenset(parse_trusted_parts(text))


def apply_command_line(
    settings: Settings, only: Sequence[str], excluded: Sequence[str], additive: bool, file: Path | None
) -> str:
    """Return the command line that applies the same: the plan file if given, else the same selection."""
    from shlex import quote

    if file is not None:
        return f"{settings.policy.command} apply {quote(str(file))}"
    chosen = [f"--only {quote(address)}" for address in only] + [f"--except {quote(address)}" for address in excluded]
    return " ".join([settings.policy.command, "apply", *chosen, *(["--additive"] if additive else [])])


def plan_signing_key(context: CommandContext) -> bytes | None:
    """Return the key that signs plan files; None if LMSCONF_PLAN_KEY is unset.

    Raises UsageError for an empty key or one under 32 bytes. A pipeline passes a missing secret as an empty string;
    accepting that would silently turn signing off.
    """
    text = context.environ.get("LMSCONF_PLAN_KEY")
    if text is None:
        return None
    key = text.encode("utf-8", "surrogateescape")
    make = "Create a key with: openssl rand -hex 32"
    refuse_if(
        (
            not text.strip(),
            "LMSCONF_PLAN_KEY is empty, so plan files would be neither signed nor verified",
            f"Set it to the key, or unset it to use plan files without signatures. {make}",
        ),
        (
            len(key) < 32,
            f"LMSCONF_PLAN_KEY has {len(key)} bytes, but a key needs at least 32, so that it cannot be guessed",
            make,
        ),
    )
    return key


@contextmanager
def open_workspace(
    settings: Settings, parallelism: int, max_rate: float | None = None, events: CommandEvents = NO_EVENTS
) -> Iterator[WorkspaceReader]:
    """Connect to the workspace of the settings, read-only, and close the connection at the end of the block."""
    from lmsconf.workspace.connection import Connection
    from lmsconf.workspace.reader import WorkspaceReader

    heard = on_request(None if events is NO_EVENTS else events.record)
    with Connection(settings, max_rate=max_rate, only_reads=True, on_call=heard) as connection:
        yield WorkspaceReader(settings=settings, connection=connection, parallelism=parallelism, on_read=events.record)


@contextmanager
def show_reading_progress(label: str, events: CommandEvents = NO_EVENTS) -> Iterator[Report]:
    """Show the progress of a phase: requests done, the total, and what limits their rate."""
    told = {"Reading": "Reading the workspace", "Checking": "Checking that the plan is current"}.get(label, label)
    with show_progress(told) as tell, events.phase(label) as record:

        def report(progress: RunProgress) -> None:
            tell(progress)
            record(progress)

        yield report


def on_request(listener: Callable[[Exchange], None] | None = None) -> Callable[[Exchange], None] | None:
    """Return what gets each request: the log of `--verbose`, the listener, or both; None for neither."""
    if not is_given("verbose"):
        return listener  # where it is None, no Exchange is made for each request

    def listen(exchange: Exchange) -> None:
        log_request(exchange)
        if listener is not None:
            listener(exchange)

    return listen


def load_valid_manifests(settings: Settings, events: CommandEvents = NO_EVENTS) -> Manifests:
    """Read the project's manifests. Raises ProblemsFound if they have errors."""
    from lmsconf.workspace.project_manifests import error_free, load_manifests

    manifests = error_free(load_manifests(settings))
    events.record(manifests)
    return manifests


def load_saved(file: Path, loads: Callable[[str], Value], taken: str) -> Value:
    """Load a saved document. taken: what the command takes, for the error of another file. Raises LmsconfError."""
    from lmsconf.documents.json_documents import errors_of_file
    from lmsconf.support.files import read_text

    text = read_text(file)
    with errors_of_file(str(file), text, taken):
        return loads(text)


def load_snapshot(file: Path) -> Snapshot:
    """Load the snapshot of `--snapshot`. Raises LmsconfError."""
    from lmsconf.documents.snapshot_file import loads

    return load_saved(file, loads, "--snapshot takes a saved snapshot")


def log_request(exchange: Exchange) -> None:
    """Write a line for one attempt of a request: time of day, request, status, duration, its number above 1."""
    from lmsconf.model.time_formats import format_utc
    from lmsconf.support.secrets import redact_secrets

    outcome = f"no response: {exchange.failure}" if exchange.status is None else str(exchange.status)
    attempt = "" if exchange.attempt == 1 else f", attempt {exchange.attempt}"
    time = format_utc(datetime.now(UTC), "milliseconds").partition("T")[2]
    spent = f"{exchange.seconds * 1000:,.0f} ms{attempt}"
    write_stderr(redact_secrets(f"{time} {exchange.method} {_target(exchange)} {outcome} ({spent})"))


def _target(exchange: Exchange) -> str:
    """Return path and query of a request. With people masked, no value of the query but where the page begins."""
    query = exchange.query
    if masks_people():
        from lmsconf.cli.people_masking import HIDDEN

        query = re.sub(r"(?<![^&])(?!skip=|limit=)([^&=]+)=[^&]*", rf"\1={HIDDEN}", query)
    return f"{exchange.path}?{query}" if query else exchange.path


def events_option(command: Callable[P, ExitCode | None]) -> Callable[P, ExitCode | None]:
    """Add `--events`; the command receives it as `events: CommandEvents`. Apply it inside of `output_options`."""

    @click.option(
        "--events",
        "events_",
        metavar="FILE",
        help="Write what happens, while it happens, to this file: one JSON object a line. - is stdout; the result then "
        "goes to stderr.",
    )
    @functools.wraps(command)
    def framed(*args: P.args, **kwargs: P.kwargs) -> ExitCode | None:
        path = kwargs.pop("events_")
        if path is None:
            kwargs["events"] = NO_EVENTS
            return command(*args, **kwargs)
        from lmsconf.cli.event_writer import open_event_writer

        with open_event_writer(str(path), click.get_current_context().info_name or "", kwargs) as writer:
            kwargs["events"] = CommandEvents(writer.phase, writer.record)
            code = command(*args, **kwargs)
            writer.end(code or ExitCode.OK)
            return code

    return framed
