"""Recorded runs as a table, as text call by call, and as the JSON document `lmsconf.runs/1`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from lmsconf.documents.document import TOOL, render_json
from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.canonical_json import Json
from lmsconf.model.outcomes import VerifyMode
from lmsconf.model.recorded_run import CallState, RecordedCall, RecordedRun, RunEnding, undo_command
from lmsconf.model.time_formats import format_utc
from lmsconf.render.apply_wording import describe_call
from lmsconf.render.escape import escape_terminal
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
_FIRST_COUNT: Final = _HEAD.index("DONE")
_UNKNOWN: Final = "?"


def runs_text(runs: Sequence[RecordedRun]) -> str:
    """Render a table: one line per run, with counts of calls per state."""
    if not runs:
        return "No runs recorded.\n"
    rows = [_HEAD, *(_row(run) for run in runs)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    return "".join(f"{_aligned(row, widths)}\n" for row in rows)


def run_text(run: RecordedRun) -> str:
    """Render one run: plan, each recorded call, counts, and what is unknown."""
    blocks = (_about(run), (line for call in run.calls for line in _call(call)), _counts(run))
    return "\n\n".join(filter(None, ("\n".join(block) for block in blocks))) + "\n"


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
    started, workspace = (_time(opening.started), opening.workspace) if opening else (_UNKNOWN, _UNKNOWN)
    counts = (f"{run.summary[state]:,}" for state in _COUNTED)
    return (started, escape_terminal(workspace), escape_terminal(run.name), *counts, _end(run))


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    """Join the cells of a row, padded to the column widths: text left-aligned, counts right-aligned."""
    counts = range(_FIRST_COUNT, _FIRST_COUNT + len(_COUNTED))
    cells = (
        cell.rjust(width) if column in counts else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(row, widths, strict=True))
    )
    return "  ".join(cells).rstrip()


def _end(run: RecordedRun) -> str:
    end = "not ended" if run.ending is None else f"exit {run.ending.exit}"
    return f"{end}, {count_noun(run.damaged, 'line')} damaged" if run.damaged else end


def _about(run: RecordedRun) -> Iterator[str]:
    opening = run.opening
    if opening is None:
        yield escape_terminal(
            f"Run {run.name}. The first line of its journal is damaged, so its workspace is not known."
        )
    else:
        yield escape_terminal(
            f"Run {run.name} on the workspace {opening.workspace} ({opening.url}), by lmsconf {opening.tool}."
        )
        yield escape_terminal(f"Plan {opening.digest}, {count_noun(opening.calls, 'API call')}.")
        yield from (escape_terminal(f"  {key}: {value}") for key, value in sorted(opening.meta.items()))
        yield f"Started {_time(opening.started)}."
    if run.ending is not None:
        yield f"Ended {_time(run.ending.at)} with exit {run.ending.exit}. {_read_back(run.ending)}"
    else:
        yield "It has no end: it was interrupted, or is still running."


def _read_back(ending: RunEnding) -> str:
    """Return the result of the run's verification."""
    if ending.converged is None or ending.verified is VerifyMode.NONE:
        return "The workspace was not read back."
    if ending.verified is VerifyMode.TOUCHED:
        return f"Read back: what the plan changes {'was' if ending.converged else 'was not'} as planned."
    return f"Read back: the scope of the plan {'matched' if ending.converged else 'did not match'} the manifests."


def _call(call: RecordedCall) -> Iterator[str]:
    """Yield the line of a call and, if recorded, its reason."""
    made = f" [id={call.id}]" if call.id else ""
    when = call.begun or call.ended
    title = resource_title(call.address)
    yield escape_terminal(
        f"  {_time(when) if when else _UNKNOWN}  {_spoken(call.state):13}  {title} ({describe_call(call)}){made}"
    )
    if call.reason:
        yield f"      {escape_terminal(call.reason)}"


def _counts(run: RecordedRun) -> Iterator[str]:
    other_counts = [f"{run.summary[state]:,} {_spoken(state)}" for state in CallState if state is not CallState.DONE]
    yield f"{count_noun(run.summary[CallState.DONE], 'call')} done, {', '.join(other_counts)}."
    if run.damaged:
        lines = count_noun(run.damaged, "line")
        yield f"{lines} of the journal cannot be read; more may have been done than is listed here."
    if run.in_flight:
        yield "Calls in flight may have been sent; it is not known whether they were carried out."
    if run.opening is not None and run.opening.pre_image_sha256 and (run.summary[CallState.DONE] or run.in_flight):
        yield escape_terminal(f"Undo: {undo_command(run.name)}")
    if run.ending is None:
        yield "If it was interrupted, run: lmsconf apply. What was done is detected, and only the rest is done."


def _spoken(state: CallState) -> str:
    return state.value.replace("_", " ")


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
        "begun_at": _time(call.begun) if call.begun else None,
        "ended_at": _time(call.ended) if call.ended else None,
    }


def _time(at: datetime) -> str:
    return format_utc(at)
