"""`lmsconf access`, `audience` and `test`: what a person has and why, who is in an audience, statements about both."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import click

from lmsconf.cli.command import Command, completes
from lmsconf.cli.context import CommandContext
from lmsconf.cli.output import Output, output_options, report_problems
from lmsconf.cli.workspace_options import (
    load_context_settings,
    load_valid_manifests,
    max_rate,
    open_workspace,
    parallelism,
    show_reading_progress,
)
from lmsconf.errors import ExitCode, ProblemsFound, refuse_if

if TYPE_CHECKING:
    from lmsconf.model.access import AudienceReport, ReportHeader
    from lmsconf.planner.audience.access_facts import AccessQuery
    from lmsconf.planner.audience.people_questions import WorkspaceAccess
    from lmsconf.render import Views


@click.command(cls=Command)
@click.argument("email", shell_complete=completes("people"))
@click.argument("content", required=False, shell_complete=completes("contents"))
@parallelism
@max_rate
@output_options(["text", "json", "csv"], pages=True)
@click.pass_obj
def access(
    context: CommandContext,
    *,
    email: str,
    content: str | None,
    parallelism: int,
    max_rate: float | None,
    output: Output,
) -> ExitCode:
    """Show what a person has, will have after the plan, and why.

    Lists each content with the assignments that give it, the group of each, and each condition of a smart group with
    the person's answer. With CONTENT, lists every assignment of that content, including those that do not reach the
    person. Without it, the assignments of each content are read with one request each.

    Access only reads the workspace. If no plan can be made, the live state is shown, and the exit code is 1.
    """
    from lmsconf.kinds.kind_table import KINDS
    from lmsconf.model.names import normalize_name
    from lmsconf.planner.audience.access_facts import AccessQuery
    from lmsconf.planner.audience.access_reports import person_access
    from lmsconf.planner.selection import typed_name
    from lmsconf.render import ACCESS_VIEWS

    email = typed_name(email, (kind for kind in KINDS.values() if kind.is_person))
    name = None if content is None else normalize_name(content)
    return _show(
        context,
        AccessQuery(contents=None if name is None else frozenset({name})),
        parallelism,
        max_rate,
        output,
        ACCESS_VIEWS,
        partial(person_access, email=email, content=name),
    )


@click.command(cls=Command)
@click.argument("address", shell_complete=completes("audiences"))
@click.option("--by", metavar="FIELD", help="Count the people by their answer to this custom field.")
@click.option("--members", is_flag=True, help="List the people by e-mail, which is personal data.")
@parallelism
@max_rate
@output_options(["text", "json", "csv"], pages=True)
@click.pass_obj
def audience(
    context: CommandContext,
    *,
    address: str,
    by: str | None,
    members: bool,
    parallelism: int,
    max_rate: float | None,
    output: Output,
) -> ExitCode:
    """Show how many people are in an audience, now and after the plan.

    ADDRESS is group/NAME, smart_group/NAME, user/EMAIL or everyone, as in plans. --by counts the people by their
    answer to a custom field; people with several choices count in each.

    Audience only reads the workspace. If no plan can be made, the live state is shown, and the exit code is 1.
    """
    from lmsconf.model.names import normalize_name
    from lmsconf.planner.audience.access_facts import AccessQuery
    from lmsconf.planner.audience.access_reports import audience_report, find_audience, parse_audience
    from lmsconf.render import AUDIENCE_VIEWS

    refuse_if(
        (
            by is not None and members and output.format == "csv",
            "CSV output has one table: --by and --members exclude each other",
            "Remove --by or --members.",
        )
    )
    asked = parse_audience(address)
    field = None if by is None else normalize_name(by)

    def report(state: WorkspaceAccess, header: ReportHeader) -> AudienceReport:
        return audience_report(state, header, find_audience(state, address, asked), field, members=members)

    query = AccessQuery(audiences=frozenset(asked), fields=frozenset(() if field is None else (field,)))
    return _show(context, query, parallelism, max_rate, output, AUDIENCE_VIEWS, report)


def _show(
    context: CommandContext,
    query: AccessQuery,
    parallelism: int,
    max_rate: float | None,
    output: Output,
    views: Views,
    report: Callable[[WorkspaceAccess, ReportHeader], object],
) -> ExitCode:
    """Read what a query asks for, show the report about it, and return the exit code.

    What kept the plan from being made is reported together with what is not found: that plan may make it.
    """
    from lmsconf.workspace.project_manifests import load_manifests
    from lmsconf.workspace.reader import read_people_view

    settings = load_context_settings(context)
    with open_workspace(settings, parallelism, max_rate) as workspace, show_reading_progress("Reading") as tell:
        state, header = read_people_view(workspace, load_manifests(settings), query, tell)
    try:
        made = report(state, header)
    except ProblemsFound as error:
        raise ProblemsFound([*header.problems, *error.problems], exit=error.exit) from error
    output.show(views, made)
    if header.planned:
        return ExitCode.OK
    report_problems(header.problems)
    return ExitCode.ERROR


@click.command(cls=Command)
@click.option("--live", is_flag=True, help="Run the tests on the live state, not on the state after the plan.")
@parallelism
@max_rate
@output_options(["text", "json", "junit"])
@click.pass_obj
def test(context: CommandContext, *, live: bool, parallelism: int, max_rate: float | None, output: Output) -> ExitCode:
    """Run the tests of the manifests on the state after the plan.

    Test only reads the workspace. A test of an empty audience fails, and so does one whose result is not known. Exits
    1 if a test fails. `lmsconf plan` shows failing tests, and they stop `lmsconf apply`.
    """
    from lmsconf.render import TEST_VIEWS
    from lmsconf.workspace.reader import run_access_tests

    settings = load_context_settings(context)
    with open_workspace(settings, parallelism, max_rate) as workspace, show_reading_progress("Reading") as tell:
        report = run_access_tests(workspace, load_valid_manifests(settings), tell, live=live)
    output.show(TEST_VIEWS, report)
    return ExitCode.ERROR if report.failed else ExitCode.OK
