"""What `evidence.json` states of a run, from the copies in the folder, the hash chain of the runs, and its page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Final, cast

from msgspec import Struct

from lmsconf.documents.document import from_json, json_at, object_json, parse_document, value_at
from lmsconf.documents.snapshot_file import snapshot_digest_json
from lmsconf.errors import Problem
from lmsconf.journal.journal_reader import parse_journal
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import PredictedTotals
from lmsconf.model.recorded_run import JournalHeader, RecordedRun, RunEnding
from lmsconf.model.time_formats import format_utc
from lmsconf.render.effects_wording import totals_sentence
from lmsconf.render.jinja import html_page

FOLDER: Final = "runs"
FILES: Final = {"journal": "journal.jsonl", "plan": "plan.json", "report": "report.json"}
"""What there are copies of → the name of the copy in the folder of its run."""


class RunCopies(Struct, frozen=True, kw_only=True):
    """The copies of the files of a run, masked or whole. plan, report: None if they are not kept."""

    run: str
    journal: bytes
    plan: str | None
    report: str | None

    def files(self) -> dict[str, bytes]:
        """Return the content of each file by its path in the folder."""
        held = {"journal": self.journal, "plan": _encoded(self.plan), "report": _encoded(self.report)}
        return {copy_path(self.run, name): content for name, content in held.items() if content is not None}


def copy_path(run: str, name: str) -> str:
    """Return the path of a copy below the folder of evidence. name: a key of FILES."""
    return f"{FOLDER}/{run}/{FILES[name]}"


def run_entry(copies: RunCopies) -> dict[str, Json]:
    """Return what the copies show of a run.

    Raises ValueError and LmsconfError for copies that are not what lmsconf writes.
    """
    run = parse_journal(copies.run, copies.journal)
    if run.opening is None:
        raise ValueError("the first line of the journal cannot be read")
    return {"run": run.name, **_opening(run.opening), **_ending(run), **_plan(copies.plan), **_report(copies.report)}


def _opening(header: JournalHeader) -> dict[str, Json]:
    return {
        "workspace": {"name": header.workspace, "url": header.url},
        "digest": header.digest,
        "tool": header.tool,
        "started_at": format_utc(header.started),
        "approvals": dict(sorted(header.meta.items())),
        "commit": None if header.commit is None else object_json(header.commit),
        "before": None if header.before is None else snapshot_digest_json(header.before),
        "chain": None if header.chain is None else object_json(header.chain),
        "recorded_plan": header.plan_sha256,
    }


def _ending(run: RecordedRun) -> dict[str, Json]:
    ending: RunEnding | None = run.ending
    return {
        "ended_at": None if ending is None else format_utc(ending.at),
        "exit": None if ending is None else ending.exit,
        "verified": None if ending is None else ending.verified.value,
        "converged": None if ending is None else ending.converged,
        "after": None if ending is None or ending.after is None else snapshot_digest_json(ending.after),
        "recorded_report": None if ending is None else ending.report_sha256,
        "calls": {state.value: number for state, number in run.summary.items()},
        "damaged": run.damaged,
    }


def _plan(text: str | None) -> dict[str, Json]:
    """Return the counts of a plan: changes, what it does to people, and the consents it was given."""
    if text is None:
        return {"manifests": None, "changes": None, "effects": None, "consents": []}
    plan = parse_document(text)
    return {
        "manifests": value_at(plan, str, "manifests", "digest"),
        "changes": {name: value_at(plan, int, "summary", name) for name in ("create", "update", "replace", "delete")},
        "effects": {
            "basis": value_at(plan, str, "effects", "basis"),
            "people": value_at(plan, dict[str, Json], "effects", "people"),
        },
        "consents": [
            {"guard": json_at(one, "name"), "total": json_at(one, "total"), "reason": json_at(one, "allowed_by")}
            for one in value_at(plan, list[dict[str, Json]], "guards")
            if json_at(one, "allowed_by") is not None
        ],
    }


def _report(text: str | None) -> dict[str, Json]:
    """Return how a report ends, and the number of its problems."""
    if text is None:
        return {"problems": None, "left": None}
    report = parse_document(text)
    return {
        "problems": len(value_at(report, list[Json], "problems")),
        "left": len(value_at(report, list[Json], "residue")),
    }


def _encoded(text: str | None) -> bytes | None:
    return None if text is None else text.encode("utf-8")


def entry_order(entry: Mapping[str, Json]) -> tuple[str, str, int, str, str]:
    """Return the key that sorts the runs of a folder: by workspace, then by their number, then by time."""
    number = 0 if json_at(entry, "chain") is None else value_at(entry, int, "chain", "number")
    workspace = value_at(entry, str, "workspace", "name"), value_at(entry, str, "workspace", "url")
    return *workspace, number, value_at(entry, str, "started_at"), value_at(entry, str, "run")


Entry = Mapping[str, Json]


def chain_findings(entries: Sequence[Entry]) -> Iterator[Problem]:
    """Yield what is wrong with the order and the links of the runs. Raises ValueError for entries of another form."""
    if list(map(entry_order, entries)) != sorted(map(entry_order, entries)):
        yield finding("evidence/order", "the runs are not in the order of their numbers")
    for _, group in groupby(sorted(entries, key=entry_order), key=lambda entry: entry_order(entry)[:2]):
        chained = [entry for entry in group if entry["chain"] is not None]
        for earlier, later in pairwise(chained):
            yield from _link_findings(earlier, later)


def _link_findings(earlier: Entry, later: Entry) -> Iterator[Problem]:
    here, there = value_at(earlier, int, "chain", "number"), value_at(later, int, "chain", "number")
    name, run = value_at(earlier, str, "run"), value_at(later, str, "run")
    if there <= here:
        # A folder `.lmsconf/runs` that was deleted begins a chain with number 1 again.
        yield finding("evidence/chain", f"{run} and {name} are both run {there} of their workspace, or out of order")
    elif there != here + 1:
        missing = "a run is" if there == here + 2 else f"{there - here - 1} runs are"
        yield finding("evidence/chain", f"{missing} missing between {name} (run {here}) and {run} (run {there})")
    elif json_at(later, "chain", "previous") != name:
        yield finding("evidence/chain", f"{run} names another run before it than {name}")
    elif json_at(later, "chain", "previous_sha256") != json_at(earlier, "originals", "journal"):
        yield finding("evidence/chain", f"the journal of {name} is not the one that {run} names by its digest")


def head_findings(entries: Sequence[Entry], heads: Sequence[str]) -> Iterator[Problem]:
    """Yield the heads of chains that none of the runs is: runs at the end of a chain were dropped.

    The first run of a folder names the run before it, which is as good: nothing is missing after that.
    """
    known = [json_at(entry, "originals", "journal") for entry in entries]
    known += [json_at(entry, "chain", "previous_sha256") for entry in entries if json_at(entry, "chain") is not None]
    for head in heads:
        if head not in known:
            yield Problem(
                code="evidence/head",
                message=f"the run with the journal {head} is not here: runs at the end are missing",
                hint="Ask for the folder again from where the runs were made, with all runs since then.",
            )


def finding(code: str, message: str) -> Problem:
    """Return what is wrong with a folder of evidence."""
    return Problem(code=code, message=message, hint="Ask for the folder again from where the runs were made.")


def evidence_html(evidence: Mapping[str, Json]) -> str:
    """Render the document `evidence.json` as a page. Raises ValueError for a document of another form."""
    return html_page(
        "evidence.html.j2",
        evidence=evidence,
        findings=list(chain_findings(cast("list[Entry]", evidence["runs"]))),
        effects_sentence=_effects_sentence,
        folder=FOLDER,
        files=FILES,
    )


def _effects_sentence(effects: Json) -> str:
    """Return what a plan predicted for people, in the words of plans."""
    return totals_sentence(from_json(effects, PredictedTotals))
