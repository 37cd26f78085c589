"""`lmsconf doctor`: check a workspace and its service; with --probe, discover undocumented API names."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from lmsconf.cli.command import Command
from lmsconf.cli.output import Output, output_options
from lmsconf.cli.output_streams import confirm, refuse_without_terminal, report_problems, write_stderr
from lmsconf.cli.planning import load_context_settings, max_rate, on_request, parallelism
from lmsconf.cli.run_command import CommandContext, pass_context
from lmsconf.errors import ExitCode, LmsconfError, UsageError
from lmsconf.model.names import normalize_email
from lmsconf.support.folders import state_folder

if TYPE_CHECKING:
    from lmsconf.api.client import Exchange
    from lmsconf.doctor.probe.probe_run import ProbeSubjects
    from lmsconf.doctor.report import DoctorReport, ProbeResult
    from lmsconf.project.settings import Settings
    from lmsconf.workspace.connection import Connection

_MOST_USERS = 2


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
@pass_context
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
    from lmsconf.doctor.probe.probe_run import ProbeSubjects
    from lmsconf.doctor.report import DOCTOR_VIEWS
    from lmsconf.workspace.connection import Connection

    _refuse(probe=probe, emails=emails, content=content, yes=yes)
    settings = load_context_settings(context)
    watch = ClockSkewCheck(_now)
    logged = on_request()

    def on_call(exchange: Exchange) -> None:
        watch.record_date(exchange)
        if logged is not None:
            logged(exchange)

    with Connection(settings, on_call=on_call, max_rate=max_rate, only_reads=not probe) as connection:
        with connection.worker_pool(parallelism) as pool:
            diagnosis = run_read_only_checks(settings, connection.spec, connection.reader(pool), watch, _now())
        if probe and diagnosis.failure is None:
            user, other = (*emails, None, None)[:2]
            subjects = ProbeSubjects(user, content, other)
            _announce(diagnosis, subjects, settings)
            if not yes and not confirm("Start the probe?"):
                raise LmsconfError("declined: nothing was changed")
            diagnosis = _written(settings, replace(diagnosis, probe=_probed(settings, connection, subjects)))
    output.show(DOCTOR_VIEWS, diagnosis)
    return diagnosis.exit_code


def _now() -> datetime:
    return datetime.now(UTC)


def _refuse(*, probe: bool, emails: tuple[str, ...], content: str | None, yes: bool) -> None:
    """Raise UsageError for contradictory options, or for a probe without --yes and without a terminal to ask on."""
    if not probe and (emails or content or yes):
        raise UsageError("--user, --content and --yes need --probe", hint="Add --probe, or remove them.")
    if len({normalize_email(email) for email in emails}) != len(emails) or len(emails) > _MOST_USERS:
        raise UsageError("--user takes two different people at most", hint="Name one or two people.")
    if probe and not yes:
        refuse_without_terminal("Pass --yes to let the probe change the workspace.")


def _announce(diagnosis: DoctorReport, subjects: ProbeSubjects, settings: Settings) -> None:
    """Write what the probe will touch."""
    from lmsconf.render.jinja import terminal_text

    account = settings.policy.create_people
    lines = terminal_text("probe.txt.j2", diagnosis=diagnosis, subjects=subjects, account=account)
    write_stderr(lines.removesuffix("\n"))


def _probed(settings: Settings, connection: Connection, subjects: ProbeSubjects) -> ProbeResult:
    """Run the probe with one worker, so its requests are sequential."""
    from lmsconf.doctor.probe.person_backup import KeptPeople
    from lmsconf.doctor.probe.probe_run import ProbeRun
    from lmsconf.doctor.probe.trial_client import TrialClient

    kept = KeptPeople.of_workspace(state_folder(os.environ), settings.root, settings.workspace.url)
    with connection.worker_pool(1) as pool:
        client = TrialClient(pool, settings.dialect)
        return ProbeRun(
            client,
            subjects,
            accounts=settings.policy.create_people,
            now=_now(),
            settle=settings.settle,
            kept=kept,
            tell=write_stderr,
        ).run()


def _written(settings: Settings, diagnosis: DoctorReport) -> DoctorReport:
    """Write the discovered dialect into the project file, keeping its mode.

    If that fails, report the problems and return the report with that exit code as its `failure`.
    """
    from lmsconf.doctor.probe.project_file_edit import set_dialect_keys
    from lmsconf.project.config_file import FILE
    from lmsconf.support.atomic_files import read_text, write_atomically

    seen = diagnosis.probe.values if diagnosis.probe else {}
    words = {key: value for key, value in seen.items() if settings.dialect.get(key) != value}
    if diagnosis.probe is None or not words:
        return diagnosis
    path = (settings.root / FILE).resolve()
    try:
        text = set_dialect_keys(read_text(path), words, settings.workspace.name)
        write_atomically(path, text, mode=path.stat().st_mode & 0o777)
    except LmsconfError as error:
        report_problems(error.problems)
        return replace(diagnosis, failure=error.exit)
    return replace(diagnosis, probe=replace(diagnosis.probe, written=words))
