"""`lmsconf plan`: show what apply would change."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec.structs import replace

from lmsconf.cli.command import Command, completes
from lmsconf.cli.context import CommandContext
from lmsconf.cli.output import PLAN_FORMATS, Output, masks_people, output_options, refuse_unwritable, show_progress
from lmsconf.cli.workspace_options import (
    CommandEvents,
    apply_command_line,
    events_option,
    load_context_settings,
    load_snapshot,
    load_valid_manifests,
    max_rate,
    open_workspace,
    parallelism,
    plan_signing_key,
    selection_options,
    show_reading_progress,
    trust_project,
    trusted_parts,
)
from lmsconf.errors import ExitCode, refuse_if

if TYPE_CHECKING:
    from lmsconf.model.calls import Report
    from lmsconf.model.declarations import Manifests
    from lmsconf.model.guards import Policy
    from lmsconf.model.plan import Plan
    from lmsconf.model.snapshot import Snapshot
    from lmsconf.workspace.project_manifests import BaseManifests
    from lmsconf.workspace.reader import WorkspaceReader


@click.command(cls=Command)
@selection_options
@click.option(
    "--out", "out", type=click.Path(path_type=Path), metavar="FILE", help="Save the plan to this file, for apply."
)
@click.option(
    "--snapshot",
    "snapshot_file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Plan against a saved snapshot, without a connection; such a plan cannot be applied.",
)
@click.option(
    "--base",
    metavar="DIR|REF",
    help="Compare with the manifests of a folder or commit, and show which changes are new.",
)
@click.option(
    "--undo",
    "undone",
    metavar="RUN",
    shell_complete=completes("runs"),
    help="Plan the way back from this run: what it changed becomes what it was before.",
)
@trust_project
@click.option(
    "--people",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write who gains and who loses what, by e-mail, to FILE: .json or .csv.",
)
@click.option(
    "--rehearse",
    "rehearses",
    is_flag=True,
    help="Read the whole workspace, and try the plan's calls on a twin of it in memory.",
)
@click.option("--detailed-exitcode", "detailed", is_flag=True, help="Exit with 2 when there are changes.")
@parallelism
@max_rate
@output_options(PLAN_FORMATS, problems=PLAN_FORMATS[1:], pages=True)
@events_option
@click.pass_obj
def plan(
    context: CommandContext,
    *,
    only: tuple[str, ...],
    excluded: tuple[str, ...],
    additive: bool,
    no_effects: bool,
    people: Path | None,
    out: Path | None,
    snapshot_file: Path | None,
    base: str | None,
    undone: str | None,
    trust_project: str | None,
    rehearses: bool,
    detailed: bool,
    parallelism: int,
    max_rate: float | None,
    output: Output,
    events: CommandEvents,
) -> ExitCode:
    """Show what apply would change.

    Plan only reads the workspace. It exits 0, or 2 with --detailed-exitcode if there are changes.

    If the manifests or the project file have errors, no request is sent, and it exits 1. With a --format other than
    text, the result is then these problems in that format: with markdown the comment, with html the page. The formats
    github, sarif and codequality print only problems, each at its line: as GitHub's workflow commands, as a log for
    code scanning, and as GitLab's report of that name.

    With --base, the manifests of the base are planned on the same workspace, and each change is marked: "from this
    change" if only these manifests plan it; "already pending" if the base plans it too; "repairs an edit by hand" if
    earlier versions planned it as well. Resources that the base declares and these manifests no longer do are listed.
    No request is sent for a project file whose url, token or dialect differs from the base's, unless --trust-project
    names it.

    With --rehearse, the whole workspace is read, as by `lmsconf snapshot`, and loaded into an embedded workspace in
    memory, the twin. The plan's own calls are sent to the twin, which is then read back and planned again. The plan
    shows what was refused, what is left, and on which assumptions about the service that rests. With --out, the file
    has a receipt, which `lmsconf apply --require-rehearsal` checks. See: lmsconf help rehearsal

    With --undo, the plan takes back what a run did: RUN is `latest`, or the beginning of the name of a run or of the
    digest of its plan. What was deleted is created again, what was created is deleted, what was changed is changed
    back. What others have changed since is listed and left alone. Save the plan with --out, and apply that file. The
    manifests are not read: revert them too, or the next plan makes the same changes again.
    """
    from lmsconf.documents.plan_file import dumps
    from lmsconf.project.credentials import PARTS
    from lmsconf.render import PLAN_PROBLEMS_VIEWS, PLAN_VIEWS
    from lmsconf.support.files import write_atomically
    from lmsconf.workspace.project_manifests import load_base
    from lmsconf.workspace.reader import add_snapshot_notices

    named = trusted_parts(trust_project, base)
    # Planning on a snapshot sends no request, so every part counts as trusted.
    trusted = named if snapshot_file is None else frozenset(PARTS)
    _refuse_files({"--out": out, "--people": people}, [Path(output.path), snapshot_file])
    _refuse_options(
        undone,
        out,
        people,
        {"--base": base, "--snapshot": snapshot_file, "--additive": additive, "--rehearse": rehearses},
        no_effects=no_effects,
    )
    settings = load_context_settings(context)
    policy = replace(
        settings.policy,
        only=only,
        excluded=excluded,
        additive=additive,
        effects=not no_effects,
        people=people is not None,
        pace=max_rate,
    )
    snapshot = None if snapshot_file is None else load_snapshot(snapshot_file)
    with open_workspace(settings, parallelism, max_rate, events) as workspace:
        if undone is not None:
            made = _undone(workspace, policy, undone, events)
        else:
            manifests = load_valid_manifests(settings, events)
            against = None if base is None else load_base(base, settings, policy, context.environ, trusted=trusted)
            made = (_rehearsed if rehearses else _planned)(workspace, manifests, policy, against, snapshot, events)
        if snapshot is not None:
            made = add_snapshot_notices(made, snapshot, policy.workspace, workspace.clock())
    # A plan that undoes a run is applied from its file.
    file = None if made.undo_of is None else out or Path("undo.json")
    chosen = made.selection
    made = replace(made, command=apply_command_line(settings, chosen.only, chosen.excluded, additive, file))
    events.record(made)
    if out is not None:
        write_atomically(out, dumps(made, plan_signing_key(context)))
    if people is not None:
        _write_people(people, made)
    output.show({**PLAN_VIEWS, **PLAN_PROBLEMS_VIEWS}, made)
    return ExitCode.CHANGES if detailed and made.changes else ExitCode.OK


def _refuse_options(
    undone: str | None, out: Path | None, people: Path | None, others: Mapping[str, object], *, no_effects: bool
) -> None:
    """Raise UsageError for options that do not go together. others: those that do not go with --undo."""
    refuse_if(
        *(
            (
                undone is not None and given not in (None, False),
                f"--undo and {option} exclude each other",
                "Remove one of them: --undo plans the way back from a run, and not what the manifests declare.",
            )
            for option, given in others.items()
        ),
        (
            out is not None and masks_people(),
            "a plan file contains e-mails, so --out and --mask-people exclude each other",
            "Remove --out or --mask-people.",
        ),
        (
            people is not None and people.suffix.lower() not in (".json", ".csv"),
            f"--people {people}: unknown file format",
            "Write FILE.json or FILE.csv.",
        ),
        (
            people is not None and no_effects,
            "--people and --no-effects exclude each other",
            "Remove --no-effects or --people.",
        ),
        (
            people is not None and masks_people(),
            "--people and --mask-people exclude each other",
            "Remove --people or --mask-people.",
        ),
    )


def _undone(workspace: WorkspaceReader, policy: Policy, name: str, events: CommandEvents) -> Plan:
    """Return the plan that takes back what a run did."""
    from lmsconf.documents.journal.journal_reader import find_run
    from lmsconf.workspace.plan_undo import load_run, plan_undo

    run = load_run(workspace, find_run(workspace.settings.root, name))
    with show_reading_progress("Reading", events) as tell:
        return plan_undo(workspace, run, policy, tell)


def _planned(
    workspace: WorkspaceReader,
    manifests: Manifests,
    policy: Policy,
    base: BaseManifests | None,
    snapshot: Snapshot | None,
    events: CommandEvents,
) -> Plan:
    """Return the plan, compared with the base's if there is one, on a snapshot or on the live workspace."""
    with nullcontext() if snapshot is not None else show_reading_progress("Reading", events) as tell:
        if base is not None:
            from lmsconf.workspace.plan_with_base import plan_with_base

            return plan_with_base(workspace, manifests, policy, base, snapshot=snapshot, progress=tell)
        if snapshot is not None:
            return workspace.plan_offline(manifests, policy, snapshot)
        return workspace.plan(manifests, policy, tell)


def _refuse_files(results: Mapping[str, Path | None], others: Sequence[Path | None]) -> None:
    """Raise UsageError if a result would be written over another one, or over a file that is read.

    results: option → its file, which must be writable. Raises LmsconfError if it is not.
    """
    files = [file for file in (*results.values(), *others) if file is not None]
    named = [file.resolve() for file in files if file.is_file() or not file.exists()]
    refuse_if(
        *((named.count(file) > 1, f"two options name the file {file.name}", "Name another file.") for file in named)
    )
    for option, file in results.items():
        if file is not None:
            refuse_unwritable(file, f"{option} {file}")


def _write_people(file: Path, plan: Plan) -> None:
    """Write the people whose access a plan changes, readable only by the owner (mode 0600); warn of unknown ones."""
    from lmsconf.cli.output import report_warning
    from lmsconf.documents.reports import people_json
    from lmsconf.model.names import count_noun
    from lmsconf.render.people_reports import people_csv
    from lmsconf.support.files import write_atomically

    is_json = file.suffix.lower() == ".json"
    write_atomically(file, people_json(plan.effects) if is_json else people_csv(plan.effects))
    if unknown := plan.effects.unknown:
        contents = len({id for one in unknown for _, id in one.contents})
        what = count_noun(contents, "content") if contents else "access"
        where = "under `unknown`" if is_json else "in rows with the change `unknown`"
        report_warning(
            "people/not-known",
            f"--people {file}: who gains or loses {what} is not known",
            f"The file has everybody who is known, and the rest {where}.",
        )


def _rehearsed(
    workspace: WorkspaceReader,
    manifests: Manifests,
    policy: Policy,
    base: BaseManifests | None,
    snapshot: Snapshot | None,
    events: CommandEvents,
) -> Plan:
    """Return the plan with its rehearsal, for which the whole workspace is read."""
    from lmsconf.apply.rehearse import rehearsed_plan
    from lmsconf.apply.scheduler import ApplyEvents, unreported

    def phase(label: str) -> AbstractContextManager[Report]:
        """Show each phase of a rehearsal as the same progress bar."""
        # A twin answers at once: in a log, its progress would only be lines.
        return show_progress("Rehearsing on a twin in memory") if sys.stderr.isatty() else unreported(label)

    with nullcontext() if snapshot is not None else show_reading_progress("Reading", events) as tell:
        live = snapshot or workspace.snapshot(tell, manifests)
    return rehearsed_plan(
        workspace,
        manifests,
        policy,
        live,
        base=base,
        offline=snapshot is not None,
        max_rate=policy.pace,
        progress=ApplyEvents(phase=phase),
    )
