"""The index page of a folder of evidence, made of `evidence.json` alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from msgspec.structs import asdict

from lmsconf.audit.run_entry import FOLDER, JOURNAL, PLAN, REPORT, chain_findings
from lmsconf.documents.document import JsonObjectReader
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import NO_CHANGE, AccessCounts, Basis, PredictedTotals
from lmsconf.render.effects_wording import CodeText, Phrase, totals_sentence
from lmsconf.render.jinja import html_page
from lmsconf.render.resource_wording import count_noun

STATED: Final = "Approvals are what the caller of lmsconf apply stated with --meta. lmsconf did not check who that was."
_CHANGES: Final = {"create": "created", "update": "changed", "replace": "replaced", "delete": "deleted"}


def evidence_html(evidence: Mapping[str, Json]) -> str:
    """Render the document as a page. Raises ValueError for a document of another form."""
    at = JsonObjectReader(dict(evidence))
    entries = cast("list[Mapping[str, Json]]", at.items("runs"))
    runs = [JsonObjectReader(dict(entry)) for entry in entries]
    findings, tool = list(chain_findings(entries)), at.reader("tool")
    return html_page(
        "evidence.html.j2",
        heading=count_noun(len(runs), "run"),
        where=_where(runs),
        verdict=_verdict(runs, found=bool(findings)),
        stated=STATED,
        people=_people(at),
        cards=list(_cards(runs)),
        findings=findings,
        runs=list(map(_run, runs)),
        made=[
            ("Made", at.text("created_at")),
            ("By", f"{tool.text('name')} {tool.text('version')}"),
            ("Runs since", at.maybe("since", at.text) or "chosen by name"),
        ],
    )


def _where(runs: list[JsonObjectReader]) -> str:
    spaces = dict.fromkeys(f"{at.text('name')} ({at.text('url')})" for at in (run.reader("workspace") for run in runs))
    return f"Workspace {', '.join(spaces)}" if len(spaces) == 1 else f"Workspaces {', '.join(spaces)}"


def _verdict(runs: list[JsonObjectReader], *, found: bool) -> str:
    if found:
        return "The chain of the runs is broken."
    if len(runs) == 1:
        return "One run. Nothing here shows what was run before or after it."
    unchained = sum(run.json("chain") is None for run in runs)
    whole = "Each run names the run before it, and none is missing between them."
    return whole if not unchained else f"{count_noun(unchained, 'run')} of an earlier version stand outside the chain."


def _people(at: JsonObjectReader) -> str:
    if at.text("people") == "whole":
        return "The files name people: keep them as confidential as the workspace."
    return (
        "The files are copies without people, labelled person 1, person 2 and so on. The digests beside them are those "
        "of the originals."
    )


def _cards(runs: list[JsonObjectReader]) -> Iterator[tuple[str, int, str]]:
    """Yield (class, number, label): what the plans of all runs came to."""
    changes = [run.reader("changes") for run in runs if run.json("changes") is not None]
    for name in ("delete", "replace", "update", "create"):
        yield name, sum(change.number(name) for change in changes), f"planned to be {_CHANGES[name]}"
    yield "calls", sum(run.reader("calls").number("done") for run in runs), "API calls done"


def _run(run: JsonObjectReader) -> dict[str, object]:
    """Return what the page shows of a run: texts, facts and digests by name, and the paths of files by name."""
    return {
        "title": f"{run.text('started_at')}: {run.reader('workspace').text('name')}",
        "outcome": _outcome(run),
        "facts": list(_facts(run)),
        "digests": list(_digests(run)),
        "files": list(_files(run)),
    }


def _outcome(run: JsonObjectReader) -> str:
    calls = run.reader("calls")
    counts = [
        f"{calls.number(state):,} {state.replace('_', ' ')}"
        for state in ("done", "failed", "blocked", "in_flight", "not_attempted")
    ]
    end = run.maybe("exit", run.number)
    how = "The run was cut short." if end is None else f"Exit code {end}."
    return f"API calls: {', '.join(counts)}. {how} {_verified(run)}"


def _verified(run: JsonObjectReader) -> str:
    scope = run.maybe("verified", run.text)
    if scope in (None, "none"):
        return "The workspace was not read back."
    if scope == "all":
        verb = "matched" if run.json("converged") else "did not match"
        return f"Read back: the scope of the plan {verb} the manifests."
    return f"Read back: what the plan changes {'was' if run.json('converged') else 'was not'} as planned."


def _facts(run: JsonObjectReader) -> Iterator[tuple[str, Phrase | str | None]]:
    approvals = run.text_map("approvals")
    stated = ", ".join(f"{key}: {value}" for key, value in approvals.items())
    yield "Approval as stated", stated or "nothing was stated"
    yield "Commit", _commit(run)
    yield "Planned changes", _counted(run, "changes", _CHANGES)
    yield "Effects on people", _effects(run)
    for consent in map(JsonObjectReader, run.items("consents")):
        yield f"Consent: {consent.text('guard')}", f"{consent.json('total')}: {consent.text('reason')}"
    yield "Chain", _link(run)


def _digests(run: JsonObjectReader) -> Iterator[tuple[str, Phrase | str | None]]:
    """Yield the SHA-256 of the plan, of the manifests, of what was read, and of the files of the run."""
    manifests = run.maybe("manifests", run.text)
    yield "Plan", (CodeText(run.text("digest")),)
    yield "Manifests", "not known: the plan is not kept" if manifests is None else (CodeText(manifests),)
    yield "Workspace before", _snapshot(run, "before")
    yield "Workspace after", _snapshot(run, "after")
    originals = run.reader("originals")
    for name in ("journal", "plan", "report"):
        digest = originals.maybe(name, originals.text)
        missing = None if name == "journal" else originals.maybe(f"without_{name}", originals.text)
        yield f"Original {name}", missing if digest is None else (CodeText(digest),)


def _commit(run: JsonObjectReader) -> Phrase | str:
    if run.json("commit") is None:
        return "not recorded"
    at = run.reader("commit")
    name = at.maybe("commit", at.text)
    if name is None:
        return f"none: {at.maybe('reason', at.text)}"
    return (CodeText(name), "" if at.flag("clean") else " with uncommitted changes")


def _counted(run: JsonObjectReader, key: str, words: Mapping[str, str]) -> str | None:
    if run.json(key) is None:
        return None
    at = run.reader(key)
    return ", ".join(f"{at.number(name):,} {word}" for name, word in words.items() if at.number(name)) or "none"


def _effects(run: JsonObjectReader) -> str | None:
    """Return what the plan predicted for people, in the words of plans."""
    if run.json("effects") is None:
        return None
    at = run.reader("effects")
    people, basis = at.reader("people"), Basis(at.text("basis"))
    numbers = {name: cast("int | None", people.json(name)) for name in asdict(NO_CHANGE)}
    return totals_sentence(PredictedTotals(people=AccessCounts(**numbers), basis=basis))


def _snapshot(run: JsonObjectReader, key: str) -> Phrase | str:
    if run.json(key) is None:
        return "not read" if key == "after" else "not recorded"
    at = run.reader(key)
    rows = ", ".join(f"{name} {count:,}" for name, count in at.object("rows").items())
    return (CodeText(at.text("sha256")), f", of what was read at {at.text('taken_at')}: {rows}")


def _link(run: JsonObjectReader) -> Phrase | str:
    if run.json("chain") is None:
        return "an earlier version of lmsconf made this run, and recorded no chain"
    at = run.reader("chain")
    previous = at.maybe("previous", at.text)
    number = f"run {at.number('number'):,} of this workspace"
    return number if previous is None else (f"{number}, after ", CodeText(previous))


def _files(run: JsonObjectReader) -> Iterator[tuple[str, str]]:
    originals = run.reader("originals")
    for name, file in (("journal", JOURNAL), ("plan", PLAN), ("report", REPORT)):
        if originals.json(name) is not None:
            yield file, f"{FOLDER}/{run.text('run')}/{file}"
