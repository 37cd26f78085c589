"""`lmsconf snapshot`, `unlock`, `api` and `doctor`: save a workspace, remove its lock, send a request, check it."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from lmsconf.cli.command import Command
from lmsconf.cli.context import CommandContext
from lmsconf.cli.output import (
    Output,
    masks_people,
    output_options,
    refuse_unwritable,
    refuse_without_terminal,
    report_problems,
    require_consent,
    write_redacted,
    write_stderr,
)
from lmsconf.cli.workspace_options import (
    load_context_settings,
    max_rate,
    on_request,
    open_workspace,
    parallelism,
    show_reading_progress,
    split_pairs,
)
from lmsconf.errors import ExitCode, LmsconfError, UsageError, refuse_if
from lmsconf.model.names import grouped, normalize_email
from lmsconf.support.files import state_folder

if TYPE_CHECKING:
    from lmsconf.apply.remote_lock import WorkspaceLock
    from lmsconf.doctor.report import DoctorReport, ProbeResult
    from lmsconf.model.canonical_json import Json
    from lmsconf.model.declarations import Manifests
    from lmsconf.project.settings import Settings
    from lmsconf.workspace.connection import Connection


@click.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--redact", is_flag=True, help="Omit people who are not in the manifests.")
@parallelism
@max_rate
@click.pass_obj
def snapshot(context: CommandContext, *, file: Path, redact: bool, parallelism: int, max_rate: float | None) -> None:
    """Save the state of the workspace to a file.

    `lmsconf plan --snapshot FILE` plans against it without a connection. The file contains e-mails, so only its owner
    can read it. It has the language and applications of people if the manifests manage them.

    With --redact, people who are not in the manifests cannot be identified: each list only counts them. The e-mails of
    people in the manifests become salted hashes that plans recognise, and what `users:` declares of them is kept.
    Names of groups and texts of fields are kept, without e-mails in them. A plan against a redacted snapshot does not
    compare people who are new in the manifests, and the snapshot cannot be exported.
    """
    from lmsconf.documents.snapshot_file import text_pieces
    from lmsconf.render.resource_wording import kind_nouns
    from lmsconf.support.files import write_atomically

    refuse_unwritable(file, str(file))
    settings = load_context_settings(context)
    manifests = _sound(settings)
    with open_workspace(settings, parallelism, max_rate) as workspace, show_reading_progress("Reading") as tell:
        state = workspace.snapshot(tell, manifests)
        if redact:
            state = workspace.redact_snapshot(state, manifests)
    write_atomically(file, text_pieces(state))
    without = ", without people who are not in the manifests" if redact else ""
    write_stderr(f"Saved workspace {state.workspace} to {file}{without}.")
    for kind, listing in state.listings.items():
        if listing.incomplete is not None:
            write_stderr(f"Not all of {kind_nouns(kind)[1]} is in it: {listing.incomplete}.")


def _sound(settings: Settings) -> Manifests | None:
    """Return the manifests; if they have errors, None, with a note about what the snapshot will lack."""
    from lmsconf.workspace.project_manifests import load_manifests

    manifests = load_manifests(settings)
    if not any(problem.is_error for problem in manifests.problems):
        return manifests
    write_stderr(
        "No manifests could be read, so the snapshot has no languages and applications of people, and a redacted one "
        "recognises nobody. `lmsconf validate` shows why."
    )
    return None


@click.command(cls=Command)
@click.option("--id", "id", metavar="ID", help="Remove the lock with this id, without a question.")
@click.pass_obj
def unlock(context: CommandContext, *, id: str | None) -> None:
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
        ended = f"Workspace {connection.name} is not locked."
        if locks or id is not None:
            chosen = _named(locks, id) if id is not None else _confirmed(locks)
            manager.delete(chosen)
            ended = f"Unlocked: {chosen.description}."
    write_redacted(f"{escape_terminal(ended)}\n", sys.stdout)


def _named(locks: list[WorkspaceLock], id: str) -> WorkspaceLock:
    known = {lock.id: lock for lock in locks}
    live = ", ".join(lock.description for lock in locks) or "none"
    refuse_if((id not in known, f"there is no lock with the id {id}", f"Existing locks: {live}."), error=LmsconfError)
    return known[id]


def _confirmed(locks: list[WorkspaceLock]) -> WorkspaceLock:
    """Return the only lock once the user confirms on the terminal.

    Raises UsageError for several locks or without a terminal, LmsconfError if declined.
    """
    from lmsconf.render.escape import escape_terminal

    write_redacted("".join(f"Locked by {escape_terminal(lock.description)}.\n" for lock in locks), sys.stderr)
    hint = f"Pass --id {locks[0].id}."
    refuse_if((len(locks) > 1, "it is not clear which lock to remove", hint))
    refuse_without_terminal(hint)
    require_consent("Remove this lock?")
    return locks[0]


@click.command(cls=Command)
@click.argument(
    "method", metavar="METHOD", type=click.Choice(("GET", "POST", "PUT", "PATCH", "DELETE"), case_sensitive=False)
)
@click.argument("path")
@click.option("--query", metavar="K=V", multiple=True, help="A query parameter. Can be repeated.")
@click.option("--body", metavar="JSON", help="The request's body; - reads it from stdin.")
@click.pass_obj
def api(context: CommandContext, *, method: str, path: str, query: tuple[str, ...], body: str | None) -> None:
    """Send one request to the API and print the response.

    PATH is relative to the workspace's url, and percent-encoded: lmsconf api GET /users --query limit=5. Names are
    sent as they are: the project's dialect is not applied. The response is printed unchanged, including any people,
    keys and links in it; with --mask-people, no request is sent.
    """
    from lmsconf.documents.json_documents import escape_in_strings
    from lmsconf.workspace.connection import Connection

    refuse_if(
        (
            masks_people(),
            "--mask-people: the response would be printed unchanged, with the people in it",
            "Remove --mask-people, or unset LMSCONF_MASK_PEOPLE.",
        )
    )
    parameters = parse_query(query)
    content = None if body is None else _body(sys.stdin.buffer.read() if body == "-" else body.encode())
    with (
        Connection(load_context_settings(context), on_call=on_request()) as connection,
        connection.worker_pool(1) as pool,
    ):
        try:
            answer = pool.submit(
                lambda client: client.send(method.upper(), path, query=parameters, body=content)
            ).result()
        except ValueError as error:
            raise UsageError(
                str(error),
                hint="PATH begins with /, is percent-encoded, and has no query: pass --query NAME=VALUE.",
            ) from error
    if answer is not None:
        write_redacted(
            f"{escape_in_strings(json.dumps(answer, ensure_ascii=False, indent=2))}\n", sys.stdout, whole=True
        )


def parse_query(pairs: Sequence[str]) -> dict[str, Json]:
    """Parse `k=v` pairs as query parameters, each name with its values. Raises UsageError."""
    given = grouped(split_pairs("--query", pairs, "NAME=VALUE", "limit=5"), lambda pair: pair[0])
    return {name: [value for _, value in alike] for name, alike in given.items()}


def _body(text: bytes) -> Json:
    """Parse the request body. Raises UsageError for invalid JSON."""
    from lmsconf.api.request_encoding import decode

    try:
        return decode(text)
    except ValueError as error:
        raise UsageError(
            f"--body: {error}", hint="""Quote it for the shell: --body '{"name": "Coaches"}'."""
        ) from error


@click.command(cls=Command)
@click.option("--probe", is_flag=True, help="Learn names and behaviours on scratch objects, which are deleted again.")
@click.option(
    "--user",
    "emails",
    metavar="EMAIL",
    multiple=True,
    help="With --probe: a person who may be changed temporarily. Repeat it for a second one, who is only added to the "
    "scratch group: that shows whether adding people keeps those who are in the list. If one of them has the manager "
    "right and the other not, it shows who can manage.",
)
@click.option("--content", metavar="NAME", help="With --probe: a content that may be assigned to the scratch group.")
@click.option("--yes", is_flag=True, help="With --probe: do not ask.")
@parallelism
@max_rate
@output_options(["text", "json"])
@click.pass_obj
def doctor(
    context: CommandContext,
    *,
    probe: bool,
    emails: tuple[str, ...],
    content: str | None,
    yes: bool,
    parallelism: int,
    max_rate: float | None,
    output: Output,
) -> ExitCode:
    """Check the connection, the token, and the assumptions about the service.

    Without --probe nothing is changed. With --probe, objects whose names begin with lmsconf-probe- are created,
    changed and deleted, and each name and behaviour that was seen is written to `dialect:` in the project file. Only
    the people and the content of --user and --content are added to a group or assigned, temporarily. If the project
    file allows creating people, scratch accounts are created; otherwise the first person of --user is changed and
    restored.
    """
    from lmsconf.doctor.checks import ClockSkewCheck, run_read_only_checks
    from lmsconf.doctor.report import DOCTOR_VIEWS
    from lmsconf.render.jinja import terminal_text
    from lmsconf.workspace.connection import Connection

    people = {normalize_email(email) for email in emails}
    refuse_if(
        (
            not probe and (emails or content or yes),
            "--user, --content and --yes need --probe",
            "Add --probe, or remove them.",
        ),
        (
            len(people) != len(emails) or len(emails) > 2,
            "--user takes two different people at most",
            "Name one or two people.",
        ),
    )
    if probe and not yes:
        refuse_without_terminal("Pass --yes to let the probe change the workspace.")
    settings = load_context_settings(context)
    now = partial(datetime.now, UTC)
    watch = ClockSkewCheck(now)
    with Connection(
        settings, on_call=on_request(watch.record_date), max_rate=max_rate, only_reads=not probe
    ) as connection:
        with connection.worker_pool(parallelism) as pool:
            diagnosis = run_read_only_checks(settings, connection.spec, connection.reader(pool), watch, now())
        if probe and diagnosis.failure is None:
            text = terminal_text(
                "probe.txt.j2",
                diagnosis=diagnosis,
                users=emails,
                content=content,
                account=settings.policy.create_people,
            )
            write_redacted(text, sys.stderr)
            if not yes:
                require_consent("Start the probe?")
            diagnosis = _written(settings, diagnosis, _probed(settings, connection, emails, content))
    output.show(DOCTOR_VIEWS, diagnosis)
    return diagnosis.exit_code


def _probed(settings: Settings, connection: Connection, users: Sequence[str], content: str | None) -> ProbeResult:
    """Run the probe with one worker, so its requests are sequential."""
    from lmsconf.doctor.person_backup import KeptPeople
    from lmsconf.doctor.probe_run import ProbeRun
    from lmsconf.doctor.probe_trials import TrialClient

    with connection.worker_pool(1) as pool:
        return ProbeRun(
            TrialClient(pool, settings.dialect),
            users=users,
            content=content,
            accounts=settings.policy.create_people,
            now=datetime.now(UTC),
            zone=settings.policy.timezone_name,
            settle=settings.policy.settle,
            kept=KeptPeople(state_folder(os.environ), settings.root, settings.workspace.url),
            tell=write_stderr,
        ).run()


def _written(settings: Settings, diagnosis: DoctorReport, probe: ProbeResult) -> DoctorReport:
    """Return the report with a probe, after writing the discovered dialect into the project file, keeping its mode.

    If that fails, report the problems; the report has that exit code as its `failure`.
    """
    from lmsconf.doctor.probe_run import set_dialect_keys
    from lmsconf.manifest.file_set import PROJECT_FILE
    from lmsconf.support.files import read_text, write_atomically

    words = {one.key: one.value for one in probe.lessons if one.value not in (None, settings.dialect.get(one.key))}
    if not words:
        return replace(diagnosis, probe=probe)
    path = (settings.root / PROJECT_FILE).resolve()
    try:
        write_atomically(
            path,
            set_dialect_keys(read_text(path), words, settings.workspace.name),
            mode=path.stat().st_mode & 0o777,
        )
    except LmsconfError as error:
        report_problems(error.problems)
        return replace(diagnosis, probe=probe, failure=error.exit)
    return replace(diagnosis, probe=replace(probe, written=words))
