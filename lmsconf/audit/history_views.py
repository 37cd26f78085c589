"""A history as text, and as the JSON document `lmsconf.history/1`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from lmsconf.audit.history import ChangeResult, History, RecordedChange
from lmsconf.documents.document import TOOL, change_json, render_json
from lmsconf.kinds.shared.kind_names import resource_title
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Action
from lmsconf.model.recorded_run import JournalHeader
from lmsconf.model.time_formats import format_utc
from lmsconf.render.change_summary import KeyChange, key_changes
from lmsconf.render.escape import escape_terminal
from lmsconf.render.plan_wording import annotation_lines
from lmsconf.render.resource_wording import count_noun

FORMAT: Final = "lmsconf.history/1"
_ACTIONS: Final = {
    Action.CREATE: "created",
    Action.UPDATE: "changed",
    Action.REPLACE: "replaced",
    Action.DELETE: "deleted",
}
_RESULTS: Final = {
    ChangeResult.DONE: "done",
    ChangeResult.FAILED: "failed",
    ChangeResult.UNKNOWN: "may have been done",
    ChangeResult.NOT_ATTEMPTED: "not attempted",
}


def history_text(history: History) -> str:
    """Render the changes run by run, newest first, and how far back the runs go."""
    lines = [line for change in history.changes for line in (*_change(change), "")]
    return "".join(f"{escape_terminal(line)}\n" for line in (*lines, *_scope(history)))


def history_json(history: History) -> str:
    """Return the history as JSON."""
    return render_json(
        {
            "format": FORMAT,
            "tool": TOOL,
            "asked": history.asked,
            "runs": history.runs,
            "kept_since": history.kept_since,
            "earlier_names": list(history.earlier_names),
            "near": list(history.near),
            "unreadable": list(history.unreadable),
            "changes": [_change_json(change) for change in history.changes],
        }
    )


HISTORY_VIEWS: Mapping[str, Callable[[History], str]] = {"text": history_text, "json": history_json}


def _change(recorded: RecordedChange) -> Iterator[str]:
    """Yield when and by which run, what, why, and how it ended."""
    header, change = recorded.run.opening, recorded.change
    assert header is not None  # noqa: S101  # runs without a header are not looked at
    yield f"{format_utc(header.started)}  {resource_title(recorded.address)}: {_outcome(recorded)}"
    yield f"  run {recorded.run.name} on {header.workspace}{_commit(header)}{_stated(header)}"
    if change is None:
        yield f"  What it changed is not known: {recorded.why_no_plan}"
        return
    because = "" if change.reason is None else f"; {change.reason}"
    verb = "was" if recorded.result is ChangeResult.DONE else "was to be"
    yield f"  {verb} {_ACTIONS[change.action]}{because}"
    yield from (f"  {line}" for line in annotation_lines(change))
    for key in key_changes(change):
        yield from _key(key)


def _outcome(recorded: RecordedChange) -> str:
    done, planned = recorded.calls
    result = _RESULTS[recorded.result]
    return result if done == planned else f"{result} ({done} of {count_noun(planned, 'call')} done)"


def _commit(header: JournalHeader) -> str:
    if header.commit is None or header.commit.commit is None:
        return ""
    return f", commit {header.commit.commit}{'' if header.commit.clean else ' with uncommitted changes'}"


def _stated(header: JournalHeader) -> str:
    pairs = ", ".join(f"{key}={value}" for key, value in sorted(header.meta.items()))
    return f", stated by the caller: {pairs}" if pairs else ""


def _key(key: KeyChange) -> Iterator[str]:
    if not (key.removed or key.added):
        yield f"    {key.path}: {key.note}"
    yield from (f"    {key.path}: - {item}" for item in key.removed)
    yield from (f"    {key.path}: + {item}" for item in key.added)


def _scope(history: History) -> Iterator[str]:
    """Yield what was looked at: runs before that are not known."""
    for name in history.unreadable:
        yield f"The journal of the run {name} cannot be read; it may have changed {history.asked}."
    if history.kept_since is None:
        yield "No runs are kept here, so nothing is known of earlier changes."
        return
    looked = f"{count_noun(history.runs, 'run')} since {history.kept_since}"
    if not history.changes:
        yield f"No kept run changed {history.asked}. Looked at: {looked}."
        if history.near:
            yield f"Did you mean {' or '.join(map(shlex.quote, history.near))}?"
    else:
        yield f"Looked at: {looked}."
    for name in history.earlier_names:
        yield f"Followed a rename back to {name}."
    yield f"What was changed before {history.kept_since}, by hand, or from another folder is not recorded here."


def _change_json(recorded: RecordedChange) -> dict[str, Json]:
    header = recorded.run.opening
    assert header is not None  # noqa: S101  # runs without a header are not looked at
    commit = header.commit
    return {
        "run": recorded.run.name,
        "workspace": {"name": header.workspace, "url": header.url},
        "started_at": format_utc(header.started),
        "approvals": dict(sorted(header.meta.items())),
        "commit": None if commit is None else {"commit": commit.commit, "clean": commit.clean, "reason": commit.reason},
        "address": str(recorded.address),
        "result": recorded.result.value,
        "calls": {"done": recorded.calls[0], "planned": recorded.calls[1]},
        "change": None if recorded.change is None else _brief(recorded),
        "why_no_plan": recorded.why_no_plan,
    }


def _brief(recorded: RecordedChange) -> Json:
    change = recorded.change
    assert change is not None  # noqa: S101  # the caller asked
    whole = change_json(change)
    return {key: whole[key] for key in ("action", "about", "reason", "source", "before", "after", "fields")}
