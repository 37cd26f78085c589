"""`lmsconf show`, `runs`, `history` and `evidence`: what was saved and what was applied before."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from shlex import quote
from typing import cast

import click
from msgspec.structs import replace

from lmsconf.cli.command import Command, completes
from lmsconf.cli.context import CommandContext
from lmsconf.cli.output import Output, masks_people, output_options, report_problems, write_redacted, write_stderr
from lmsconf.cli.workspace_options import lmsconf_command_prefix, load_saved
from lmsconf.documents import plan_file, reports, snapshot_file
from lmsconf.documents.json_documents import parse_document
from lmsconf.errors import LmsconfError, UsageError, raise_found, refuse_if
from lmsconf.model.canonical_json import Json
from lmsconf.model.outcomes import RecordedRun
from lmsconf.model.plan import Plan
from lmsconf.render import (
    APPLY_VIEWS,
    PLAN_EXTRACTS,
    PLAN_PROBLEMS_VIEWS,
    PLAN_VIEWS,
    PROBLEMS_VIEWS,
    RUN_VIEWS,
    RUNS_VIEWS,
    SNAPSHOT_VIEWS,
    Views,
)


@click.command(cls=Command)
@click.argument("file", type=click.Path(path_type=Path))
@output_options([*PLAN_VIEWS, *PLAN_EXTRACTS, *PLAN_PROBLEMS_VIEWS], pages=True)
@click.pass_obj
def show(context: CommandContext, *, file: Path, output: Output) -> None:
    """Show a saved plan, snapshot or apply report.

    FILE is the output of `plan --out`, of `snapshot`, or of any command with `--format json`, including problems. A
    plan or report that was edited is refused.

    For a plan, `--format digest` prints only the digest, for `apply --expect-digest`, and `--format gitlab` the counts
    for GitLab's terraform report in merge requests. For the problems of a plan, or a file of problems, `--format
    github` prints workflow commands, which GitHub shows at each line, `--format sarif` a log for code scanning, and
    `--format codequality` GitLab's report of that name.
    """
    text, (value, views) = load_saved(
        file, lambda text: (text, load_document(text)), "show takes a saved plan, snapshot or apply report"
    )
    is_json, masked = output.format == "json", masks_people()
    refuse_if(
        (
            is_json and masked and "json" not in views,
            "a snapshot contains e-mails",
            "Save it with `lmsconf snapshot --redact`, or remove --mask-people.",
        ),
        (
            not is_json and output.format not in views,
            f"--format {output.format} cannot show this kind of file",
            f"Choose one of {', '.join(views)}.",
        ),
    )
    if is_json and not masked:
        # Written as it is: serialised again, it would name this version of lmsconf as the one that wrote it.
        output.write(text)
        return
    if isinstance(value, Plan) and not is_json:
        value = replace(value, command=f"{lmsconf_command_prefix(context)} apply {quote(str(file))}")
    output.show(views, value)


def load_document(text: str) -> tuple[object, Views]:
    """Load a document; return its value and its views. Raises LmsconfError for an unknown or invalid format."""
    name = str(parse_document(text)["format"])
    refuse_if(
        (
            name not in _DOCUMENTS,
            f"the file has the format {name!r}, which cannot be shown",
            f"Give one in {' or '.join(_DOCUMENTS)}.",
        ),
        error=LmsconfError,
    )
    loads, views = _DOCUMENTS[name]
    return loads(text), views


_DOCUMENTS: Mapping[str, tuple[Callable[[str], object], Views]] = {
    plan_file.FORMAT: (plan_file.loads, {**PLAN_VIEWS, **PLAN_EXTRACTS, **PLAN_PROBLEMS_VIEWS}),
    reports.APPLY_FORMAT: (reports.load_apply_report, APPLY_VIEWS),
    snapshot_file.FORMAT: (snapshot_file.loads, SNAPSHOT_VIEWS),
    reports.PROBLEMS_FORMAT: (reports.load_problems, PROBLEMS_VIEWS),
}


@click.command(cls=Command)
@click.argument("run", required=False, shell_complete=completes("runs"))
@output_options(["text", "json"])
@click.pass_obj
def runs(context: CommandContext, *, run: str | None, output: Output) -> None:
    """List what was applied from here, or show one run call by call.

    RUN is `latest`, or the beginning of the name of a run or of the digest of its plan. With `lmsconf --workspace NAME
    runs`, only runs on that workspace are listed. In an interrupted run, a call in flight may have been sent, and its
    result is not known.
    """
    from lmsconf.documents.journal.journal_reader import find_run, read_runs

    if run is not None:
        output.show(RUN_VIEWS, find_run(context.project, run))
    else:
        here = [
            one
            for one in read_runs(context.project)
            if context.workspace in (None, one.opening and one.opening.workspace)
        ]
        output.show(RUNS_VIEWS, here)


@click.command(cls=Command)
@click.argument("address", metavar="ADDRESS|EMAIL", shell_complete=completes("addresses"))
@output_options(["text", "json"], pages=True)
@click.pass_obj
def history(context: CommandContext, *, address: str, output: Output) -> None:
    """Show which runs changed a resource or a person.

    Lists when and by which commit and approval it was changed, why, and what. ADDRESS is as a plan prints it, such as
    `group/Onboarding coaches`. For an e-mail, changes of the person, of lists
    with the person, and of assignments to the person are shown. Renames are followed back.

    Only runs that are kept in this folder are looked at, and what was done by hand is not recorded.
    """
    from lmsconf.audit.history import HISTORY_VIEWS, find_history
    from lmsconf.documents.journal.journal_reader import read_runs

    runs = (
        run
        for run in read_runs(context.project)
        if run.opening is None or context.workspace in (None, run.opening.workspace)
    )
    output.show(HISTORY_VIEWS, find_history(runs, address))


@click.command(cls=Command)
@click.argument("words", nargs=-1, metavar="[RUN | head | verify DIR]", shell_complete=completes("runs"))
@click.option("--since", metavar="DATE", help="All runs since this date, such as 2026-01-31 (UTC), in place of RUN.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="A new or empty folder to write into.")
@click.option("--people", is_flag=True, help="Write whole copies, which name people.")
@click.option(
    "--sign-key", type=click.Path(path_type=Path), metavar="FILE", help="Sign with this Ed25519 key: PEM, mode 0600."
)
@click.option(
    "--key", type=click.Path(path_type=Path), metavar="FILE", help="With verify: the public key of the signer, PEM."
)
@click.option(
    "--head",
    "heads",
    metavar="DIGEST",
    multiple=True,
    help="With verify: a digest that `evidence head` printed; its run must be in the folder.",
)
@click.pass_obj
def evidence(
    context: CommandContext,
    *,
    words: tuple[str, ...],
    since: str | None,
    out: Path | None,
    people: bool,
    sign_key: Path | None,
    key: Path | None,
    heads: tuple[str, ...],
) -> None:
    """Write a folder that shows what runs did, or verify one.

    The folder has an index page, evidence.json, and plan, report and journal of each run. People are masked in it
    unless --people is given; the digests are those of the originals. RUN is `latest`, or the beginning of the name of a
    run or of the digest of its plan. Approvals are what the caller of `apply` stated with --meta.

    `lmsconf evidence verify DIR` finds any file that was changed, added or dropped, a run that is missing between two,
    and a chain or page that does not fit; then it exits 1. Without a signature, a folder is only compared with itself.

    `lmsconf evidence head` prints the digest of the journal of the last run of each workspace. Keep it outside of the
    project after each apply, such as in the log of a CI job: `verify --head DIGEST` then finds a folder without that
    run.
    """
    from lmsconf.documents.journal.journal_reader import chain_heads

    given = since or out or people or sign_key
    verifies = words[:1] == ("verify",)
    refuse_if(
        (
            verifies and (len(words) != 2 or given),
            "verify takes one folder, --key and --head",
            "Write: lmsconf evidence verify DIR",
        ),
        (key and not verifies, "--key is for verify", "Sign with --sign-key FILE."),
        (heads and not verifies, "--head is for verify", "Write: lmsconf evidence verify DIR --head …"),
        *(
            (
                not re.fullmatch(r"\s*[0-9a-fA-F]{64}\s*", head),
                f"--head {head}: that is not a digest",
                "Pass 64 digits that `evidence head` printed.",
            )
            for head in heads
        ),
    )
    if verifies:
        _verify(Path(words[1]), key, tuple(head.strip().lower() for head in heads))
    elif words == ("head",) and not given:
        ends = [head for head in chain_heads(context.project) if context.workspace in (None, head[0])]
        hint = "Run this where lmsconf apply has run, after it."
        refuse_if((not ends, "no run is recorded here", hint), error=LmsconfError)
        write_redacted("".join(f"{digest}  {run}  {workspace}\n" for workspace, run, digest in ends), sys.stdout)
    else:
        _write(context, [*words, *([] if since is None else [since])], since, out, sign_key, people=people)


def _write(
    context: CommandContext,
    chosen: Sequence[str],
    since: str | None,
    out: Path | None,
    sign_key: Path | None,
    *,
    people: bool,
) -> None:
    """Write the evidence of the run that is chosen, or of all since a date. Raises UsageError for more than one."""
    from lmsconf.audit.bundle import write_evidence
    from lmsconf.audit.statement import PublicKey, chain_findings, load_signing_key
    from lmsconf.cli.people_masking import PeopleMask
    from lmsconf.documents.journal.journal_reader import find_run
    from lmsconf.model.names import count_noun

    if len(chosen) != 1 or out is None:
        hint = "Write: lmsconf evidence latest --out DIR, or lmsconf evidence --since 2026-01-31 --out DIR"
        several = "evidence takes one run, or --since" if chosen[1:] else "--out is missing"
        raise UsageError(several if chosen else "no run is given", hint=hint)
    key = None if sign_key is None else load_signing_key(sign_key)
    runs = [find_run(context.project, chosen[0])] if since is None else _since(context, since)
    document = write_evidence(runs, out, datetime.now(UTC), mask=None if people else PeopleMask(), since=since, key=key)
    report_problems(list(chain_findings(cast("list[Mapping[str, Json]]", document["runs"]))))
    masked = "It names people." if people else "People are masked in it."
    signed = "It is not signed." if key is None else f"Signed with {PublicKey.of(key.public_key()).keyid}."
    write_stderr(f"Wrote the evidence of {count_noun(len(runs), 'run')} to {out}. {masked} {signed}")


def _since(context: CommandContext, since: str) -> Sequence[RecordedRun]:
    """Return the runs since a date, of the chosen workspace or of all. Raises LmsconfError if there are none."""
    from lmsconf.documents.journal.journal_reader import read_runs

    try:
        begin = datetime.combine(date.fromisoformat(since), datetime.min.time(), tzinfo=UTC)
    except ValueError as error:
        raise UsageError(f"--since {since}: that is not a date", hint="Write --since 2026-01-31.") from error
    kept = []
    for run in read_runs(context.project):
        refuse_if(
            (
                run.opening is None and run.name[:8] >= f"{begin:%Y%m%d}",
                f"the journal of the run {run.name} cannot be read",
                f"Its first line is damaged. Move .lmsconf/runs/{run.name}.jsonl away to leave the run out.",
            ),
            error=LmsconfError,
        )
        if run.opening and run.opening.started >= begin and context.workspace in (None, run.opening.workspace):
            kept.append(run)
    refuse_if(
        (not kept, f"no run since {since} is recorded here", "List what is kept with: lmsconf runs"),
        error=LmsconfError,
    )
    return kept


def _verify(folder: Path, key_file: Path | None, heads: tuple[str, ...]) -> None:
    from lmsconf.audit.statement import load_public_key
    from lmsconf.audit.verify_evidence import verify_evidence
    from lmsconf.render.jinja import terminal_text

    key = None if key_file is None else load_public_key(key_file)
    result = verify_evidence(folder, key, heads)
    raise_found(result.findings)
    write_redacted(terminal_text("verified.txt.j2", result=result, key=key, heads=heads), sys.stdout)
