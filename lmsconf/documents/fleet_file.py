"""The index of a fleet: `lmsconf.fleet/1`, the result of one command in each workspace."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.documents.change_values import problem_from_json, problem_json
from lmsconf.documents.document import TOOL, JsonObjectReader, parse_document, render_json, verify_format
from lmsconf.documents.plan_values import blocker_from_json, blocker_json
from lmsconf.errors import ExitCode, LmsconfError
from lmsconf.model.canonical_json import Json
from lmsconf.model.fleet import FleetAction, FleetEntry, FleetIndex

FORMAT: Final = "lmsconf.fleet/1"


def dumps(index: FleetIndex) -> str:
    """Return the text of an index, one workspace per line."""
    return render_json(index_json(index))


def index_json(index: FleetIndex) -> dict[str, Json]:
    """Return an index as JSON."""
    return {
        "format": FORMAT,
        "tool": TOOL,
        "action": index.action.value,
        "created_at": index.created_at,
        "exit": index.exit.value,
        "summary": {
            "workspaces": len(index.entries),
            "failed": len(index.failed),
            "changed": sum(bool(entry.changes) for entry in index.entries),
        },
        "workspaces": [entry_json(entry) for entry in index.entries],
    }


def entry_json(entry: FleetEntry) -> dict[str, Json]:
    """Return the result in one workspace as JSON."""
    return {
        "workspace": entry.workspace,
        "url": entry.url,
        "labels": dict(entry.labels),
        "exit": entry.exit.value,
        "digest": entry.digest,
        "summary": dict(entry.summary),
        "people": None if entry.people is None else dict(entry.people),
        "guards": dict(entry.guards),
        "blocked": [blocker_json(blocker) for blocker in entry.blocked],
        "problems": [problem_json(problem) for problem in entry.problems],
        "file": entry.file,
    }


def loads(text: str) -> FleetIndex:
    """Return the index that `dumps` wrote. Raises LmsconfError for a document of another kind or a damaged one."""
    document = parse_document(text)
    verify_format(document, FORMAT)
    reader = JsonObjectReader(document)
    try:
        return FleetIndex(
            action=FleetAction(reader.text("action")),
            created_at=reader.text("created_at"),
            entries=reader.each("workspaces", entry_from_json),
        )
    except ValueError as error:
        hint = "Create it again with lmsconf fleet."
        raise LmsconfError(f"the file is not an index of a fleet: {error}", hint=hint) from error


def entry_from_json(at: JsonObjectReader) -> FleetEntry:
    """Return the result that `entry_json` wrote. Raises ValueError for any other value."""
    summary = at.reader("summary")
    return FleetEntry(
        workspace=at.text("workspace"),
        url=at.text("url"),
        labels=at.text_map("labels"),
        exit=ExitCode(at.number("exit")),
        digest=at.maybe("digest", at.text),
        summary={name: summary.number(name) for name in at.object("summary")},
        people=at.maybe("people", lambda key: _counts(at, key)),
        guards=_counts(at, "guards"),
        blocked=at.each("blocked", blocker_from_json),
        problems=at.each("problems", problem_from_json),
        file=at.maybe("file", at.text),
    )


def _counts(at: JsonObjectReader, key: str) -> Mapping[str, int | None]:
    inside = at.reader(key)
    return {name: inside.maybe(name, inside.number) for name in at.object(key)}
