"""`lmsconf evidence`: write a folder of evidence of runs, or verify one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lmsconf.cli.command import Command, completes
from lmsconf.cli.frame import CommandContext, pass_context
from lmsconf.cli.output_streams import report_problems, write_redacted, write_stderr
from lmsconf.errors import ExitCode, LmsconfError, ProblemsFound, UsageError

if TYPE_CHECKING:
    from lmsconf.audit.verification import Verification
    from lmsconf.model.recorded_run import RecordedRun

VERIFY, HEAD = "verify", "head"


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
@pass_context
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
) -> ExitCode:
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
    given = since or out or people or sign_key
    if words[:1] == (VERIFY,):
        if len(words) != 2 or given:
            raise UsageError("verify takes one folder, --key and --head", hint="Write: lmsconf evidence verify DIR")
        return _verify(Path(words[1]), key, tuple(_parsed_head(head) for head in heads))
    for option, value in (("--key", key), ("--head", heads)):
        if value:
            hint = "Sign with --sign-key FILE." if option == "--key" else "Write: lmsconf evidence verify DIR --head …"
            raise UsageError(f"{option} is for verify", hint=hint)
    if words == (HEAD,) and not given:
        return _head(context)
    if len(words) + (since is not None) != 1 or out is None:
        hint = "Write: lmsconf evidence latest --out DIR, or lmsconf evidence --since 2026-01-31 --out DIR"
        none, several = not words and since is None, len(words) + (since is not None) > 1
        wrong = "no run is given" if none else "evidence takes one run, or --since" if several else "--out is missing"
        raise UsageError(wrong, hint=hint)
    return _write(context, words[0] if words else None, since, out, sign_key, people=people)


def _write(
    context: CommandContext, run: str | None, since: str | None, out: Path, sign_key: Path | None, *, people: bool
) -> ExitCode:
    from lmsconf.audit.bundle import EvidenceOptions, write_evidence
    from lmsconf.audit.run_entry import chain_findings
    from lmsconf.audit.signing import load_signing_key
    from lmsconf.cli.masking import PeopleMask
    from lmsconf.journal.journal_reader import find_run
    from lmsconf.render.resource_wording import count_noun

    key = None if sign_key is None else load_signing_key(sign_key)
    runs = [find_run(context.project, run)] if run is not None else list(_since(context, str(since)))
    options = EvidenceOptions(mask=None if people else PeopleMask(), since=since, key=key, made_at=datetime.now(UTC))
    document = write_evidence(runs, out, options)
    entries = (
        [entry for entry in document["runs"] if isinstance(entry, dict)] if isinstance(document["runs"], list) else []
    )
    report_problems(list(chain_findings(entries)))
    masked = "It names people." if people else "People are masked in it."
    signed = "It is not signed." if key is None else f"Signed with {key.public.keyid}."
    write_stderr(f"Wrote the evidence of {count_noun(len(runs), 'run')} to {out}. {masked} {signed}")
    return ExitCode.OK


def _since(context: CommandContext, since: str) -> Iterator[RecordedRun]:
    """Yield the runs since a date, of the chosen workspace or of all. Raises LmsconfError if there are none."""
    from lmsconf.journal.journal_reader import read_runs

    try:
        begin = datetime.combine(date.fromisoformat(since), datetime.min.time(), tzinfo=UTC)
    except ValueError as error:
        raise UsageError(f"--since {since}: that is not a date", hint="Write --since 2026-01-31.") from error
    some = False
    for run in read_runs(context.project):
        name = run.name[:8]
        if run.opening is None and name >= f"{begin:%Y%m%d}":
            hint = f"Its first line is damaged. Move .lmsconf/runs/{run.name}.jsonl away to leave the run out."
            raise LmsconfError(f"the journal of the run {run.name} cannot be read", hint=hint)
        if run.opening is None or run.opening.started < begin:
            continue
        if context.workspace in (None, run.opening.workspace):
            some = True
            yield run
    if not some:
        raise LmsconfError(f"no run since {since} is recorded here", hint="List what is kept with: lmsconf runs")


def _head(context: CommandContext) -> ExitCode:
    from lmsconf.journal.kept_runs import chain_heads

    heads = [head for head in chain_heads(context.project) if context.workspace in (None, head.workspace)]
    if not heads:
        raise LmsconfError("no run is recorded here", hint="Run this where lmsconf apply has run, after it.")
    write_redacted("".join(f"{head.sha256}  {head.run}  {head.workspace}\n" for head in heads), sys.stdout)
    return ExitCode.OK


def _parsed_head(text: str) -> str:
    digest = text.strip().lower()
    if len(digest) != 64 or digest.strip("0123456789abcdef"):
        raise UsageError(f"--head {text}: that is not a digest", hint="Pass 64 digits that `evidence head` printed.")
    return digest


def _verify(folder: Path, key_file: Path | None, heads: tuple[str, ...]) -> ExitCode:
    from lmsconf.audit.signing import load_public_key
    from lmsconf.audit.verification import verify_evidence

    key = None if key_file is None else load_public_key(key_file)
    result = verify_evidence(folder, key, heads)
    if result.findings:
        raise ProblemsFound(result.findings)
    write_redacted("".join(f"{line}\n" for line in _verified(result)), sys.stdout)
    return ExitCode.OK


def _verified(result: Verification) -> Iterator[str]:
    """Yield what was verified, and what that does not show."""
    from lmsconf.render.resource_wording import count_noun

    files, runs = count_noun(result.files, "file"), count_noun(result.runs, "run")
    yield f"{files} and {runs} fit each other: no file was changed, added or dropped since this folder was written."
    if result.runs - result.unchained > 1:
        yield "Each run of a workspace names the run before it, and none is missing between them."
    if result.unchained:
        yield f"{count_noun(result.unchained, 'run')} of an earlier version of lmsconf stand outside the chain."
    if not result.compared_page:
        yield "Another version of lmsconf wrote the folder, so the page was compared by its digest only."
    if result.compared_heads:
        yield "The runs that --head names are here, or are the ones before the first."
        yield "Runs before the first, and runs after the last one that were made since, were not looked at."
    else:
        yield "Runs before the first and after the last one were not looked at."
    if result.signer is None:
        yield "The folder is not signed: this shows that it is consistent with itself, and not who wrote it."
    elif result.compared_key:
        yield f"The signature is of the key in --key: {result.signer.keyid}."
    else:
        yield f"It is signed with the key {result.signer.keyid}. Pass --key to verify whose key that is."
