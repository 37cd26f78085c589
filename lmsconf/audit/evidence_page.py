"""The index page of a folder of evidence, made of `evidence.json` alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, cast

from msgspec.structs import asdict

from lmsconf.audit.run_chain import chain_findings
from lmsconf.audit.run_entry import FOLDER, JOURNAL, PLAN, REPORT
from lmsconf.documents.document import JsonObjectReader
from lmsconf.model.canonical_json import Json
from lmsconf.model.effects import NO_CHANGE, AccessCounts, Basis, PredictedTotals
from lmsconf.render.effects_wording import totals_sentence
from lmsconf.render.html.components import count_cards, definition_list, problem_note
from lmsconf.render.html.document import Child, tag
from lmsconf.render.html.plan import page_header, sections_page
from lmsconf.render.resource_wording import count_noun

STATED: Final = "Approvals are what the caller of lmsconf apply stated with --meta. lmsconf did not check who that was."
_CHANGES: Final = {"create": "created", "update": "changed", "replace": "replaced", "delete": "deleted"}


def evidence_html(evidence: Mapping[str, Json]) -> str:
    """Render the document as a page. Raises ValueError for a document of another form."""
    at = JsonObjectReader(dict(evidence))
    entries = cast("list[Mapping[str, Json]]", at.items("runs"))
    runs = [JsonObjectReader(dict(entry)) for entry in entries]
    findings = [problem_note(problem) for problem in chain_findings(entries)]
    top = [
        page_header("evidence", count_noun(len(runs), "run"), _where(runs)),
        tag("p", _verdict(runs, found=bool(findings)), class_="verdict"),
        tag("p", STATED, class_="scope"),
        tag("p", _people(at), class_="scope"),
        count_cards(_cards(runs)),
    ]
    sections: list[tuple[str, str, Child]] = [
        ("attention", "Check this first", findings),
        *((f"run-{number}", _title(run), _run(run)) for number, run in enumerate(runs, 1)),
        ("verify", "Verify", _verify()),
    ]
    tool = at.reader("tool")
    footer = definition_list(
        [
            ("Made", at.text("created_at")),
            ("By", f"{tool.text('name')} {tool.text('version')}"),
            ("Runs since", at.maybe("since", at.text) or "chosen by name"),
        ]
    )
    return sections_page("Evidence", top, sections, footer)


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


def _title(run: JsonObjectReader) -> str:
    return f"{run.text('started_at')}: {run.reader('workspace').text('name')}"


def _run(run: JsonObjectReader) -> list[Child]:
    return [
        tag("p", _outcome(run), class_="lead"),
        definition_list([(term, value) for term, value in _facts(run) if value is not None], "record"),
        tag("details", tag("summary", "Digests"), _digests(run), class_="fold"),
        tag("p", "Files: ", [[link, " "] for link in _links(run)]),
    ]


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


def _facts(run: JsonObjectReader) -> Iterator[tuple[str, Child]]:
    approvals = run.text_map("approvals")
    stated = ", ".join(f"{key}: {value}" for key, value in approvals.items())
    yield "Approval as stated", stated or "nothing was stated"
    yield "Commit", _commit(run)
    yield "Planned changes", _counted(run, "changes", _CHANGES)
    yield "Effects on people", _effects(run)
    for consent in map(JsonObjectReader, run.items("consents")):
        yield f"Consent: {consent.text('guard')}", f"{consent.json('total')}: {consent.text('reason')}"
    yield "Chain", _link(run)


def _digests(run: JsonObjectReader) -> Child:
    """Render the SHA-256 of the plan, of the manifests, of what was read, and of the files of the run."""
    originals = run.reader("originals")
    files: list[tuple[str, Child]] = []
    for name in ("journal", "plan", "report"):
        digest = originals.maybe(name, originals.text)
        missing = None if name == "journal" else originals.maybe(f"without_{name}", originals.text)
        files.append((f"Original {name}", tag("code", digest) if digest is not None else missing))
    manifests = run.maybe("manifests", run.text)
    return definition_list(
        [
            ("Plan", tag("code", run.text("digest"))),
            ("Manifests", "not known: the plan is not kept" if manifests is None else tag("code", manifests)),
            ("Workspace before", _snapshot(run, "before")),
            ("Workspace after", _snapshot(run, "after")),
            *files,
        ],
        "record",
    )


def _commit(run: JsonObjectReader) -> Child:
    if run.json("commit") is None:
        return "not recorded"
    at = run.reader("commit")
    name = at.maybe("commit", at.text)
    if name is None:
        return f"none: {at.maybe('reason', at.text)}"
    return [tag("code", name), "" if at.flag("clean") else " with uncommitted changes"]


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


def _snapshot(run: JsonObjectReader, key: str) -> Child:
    if run.json(key) is None:
        return "not read" if key == "after" else "not recorded"
    at = run.reader(key)
    rows = ", ".join(f"{name} {count:,}" for name, count in at.object("rows").items())
    return [tag("code", at.text("sha256")), f", of what was read at {at.text('taken_at')}: {rows}"]


def _link(run: JsonObjectReader) -> Child:
    if run.json("chain") is None:
        return "an earlier version of lmsconf made this run, and recorded no chain"
    at = run.reader("chain")
    previous = at.maybe("previous", at.text)
    number = f"run {at.number('number'):,} of this workspace"
    return number if previous is None else [f"{number}, after ", tag("code", previous)]


def _links(run: JsonObjectReader) -> Iterator[Child]:
    for name, file in (("journal", JOURNAL), ("plan", PLAN), ("report", REPORT)):
        originals = run.reader("originals")
        if originals.json(name) is not None:
            yield tag("a", file, href=f"{FOLDER}/{run.text('run')}/{file}")


def _verify() -> list[Child]:
    return [
        tag("p", "Find any change in this folder with:"),
        tag("pre", "lmsconf evidence verify FOLDER --key public.pem"),
        tag("p", "Without a signature, that shows only that the folder is consistent with itself."),
    ]
