"""Recorded runs as text and as the JSON document."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Final

from lmsconf.documents.document import TOOL, render_json
from lmsconf.model.canonical_json import Json
from lmsconf.model.recorded_run import CallState, RecordedCall, RecordedRun, undo_command
from lmsconf.model.time_formats import format_utc
from lmsconf.render.apply_report import describe_call
from lmsconf.render.escape import escape_terminal
from lmsconf.render.jinja import terminal_text
from lmsconf.render.report_texts import table_lines
from lmsconf.render.resource_wording import count_noun

FORMAT: Final = "lmsconf.runs/1"
_COUNTED: Final = {
    CallState.DONE: "DONE",
    CallState.FAILED: "FAILED",
    CallState.BLOCKED: "BLOCKED",
    CallState.IN_FLIGHT: "IN FLIGHT",
    CallState.NOT_ATTEMPTED: "NOT ATTEMPTED",
}
_HEAD: Final = ("STARTED", "WORKSPACE", "RUN", *_COUNTED.values(), "END")
_TEXTS: Final = [column for column, title in enumerate(_HEAD) if title not in _COUNTED.values()]
"""The columns that are no counts."""
_UNKNOWN: Final = "?"


def runs_text(runs: Sequence[RecordedRun]) -> str:
    """Render a table: one line per run, with counts of calls per state."""
    if not runs:
        return "No runs recorded.\n"
    rows = [_HEAD, *(_row(run) for run in runs)]
    return "".join(f"{line}\n" for line in table_lines(rows, _TEXTS))


def run_text(run: RecordedRun) -> str:
    """Render one run: plan, each recorded call, counts, and what is unknown."""
    return terminal_text("run.txt.j2", run=run, describe_call=describe_call, undo_command=undo_command, utc=_time)


def runs_json(runs: Sequence[RecordedRun]) -> str:
    """Return the runs, without calls, as JSON."""
    return _document([_run(run) for run in runs])


def run_json(run: RecordedRun) -> str:
    """Return one run with its calls as JSON."""
    return _document([{**_run(run), "calls": [_call_json(call) for call in run.calls]}])


RUNS_VIEWS: Mapping[str, Callable[[Sequence[RecordedRun]], str]] = {"text": runs_text, "json": runs_json}
RUN_VIEWS: Mapping[str, Callable[[RecordedRun], str]] = {"text": run_text, "json": run_json}


def _row(run: RecordedRun) -> tuple[str, ...]:
    opening = run.opening
    started, workspace = (format_utc(opening.started), opening.workspace) if opening else (_UNKNOWN, _UNKNOWN)
    counts = (f"{run.summary[state]:,}" for state in _COUNTED)
    return (started, escape_terminal(workspace), escape_terminal(run.name), *counts, _end(run))


def _end(run: RecordedRun) -> str:
    end = "not ended" if run.ending is None else f"exit {run.ending.exit}"
    return f"{end}, {count_noun(run.damaged, 'line')} damaged" if run.damaged else end


def _document(runs: Iterable[Json]) -> str:
    return render_json({"format": FORMAT, "tool": TOOL, "runs": list(runs)})


def _run(run: RecordedRun) -> dict[str, Json]:
    opening, ending = run.opening, run.ending
    return {
        "run": run.name,
        "digest": opening.digest if opening else None,
        "workspace": {"name": opening.workspace, "url": opening.url} if opening else None,
        "tool": {"name": "lmsconf", "version": opening.tool} if opening else None,
        "meta": dict(sorted(opening.meta.items())) if opening else {},
        "started_at": _time(opening.started) if opening else None,
        "ended_at": _time(ending.at) if ending else None,
        "exit": ending.exit if ending else None,
        "verified": ending.verified.value if ending else None,
        "converged": ending.converged if ending else None,
        "summary": {state.value: run.summary[state] for state in CallState},
        "damaged": run.damaged,
    }


def _call_json(call: RecordedCall) -> Json:
    return {
        "call": call.call,
        "address": call.address,
        "operation": call.operation,
        "status": call.state.value,
        "reason": call.reason,
        "id": call.id,
        "people": list(call.people),
        "begun_at": _time(call.begun),
        "ended_at": _time(call.ended),
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else format_utc(at)
