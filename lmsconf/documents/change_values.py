"""Values in several documents ⇄ JSON: changes, problems and their locations."""

from __future__ import annotations

from lmsconf.documents.document import JsonObjectReader
from lmsconf.errors import Problem, Severity, SourceLocation
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Action, Change, ChangeOrigin, FieldChange, Undo, UndoLevel


def location_json(location: SourceLocation | None) -> Json:
    if location is None:
        return None
    more: dict[str, Json] = {key: text for key in ("each", "sheet") if (text := getattr(location, key))}
    return {"file": location.file, "line": location.line, "column": location.column, **more}


def location_from_json(reader: JsonObjectReader) -> SourceLocation:
    return SourceLocation(
        reader.text("file"),
        reader.number("line"),
        reader.number("column"),
        reader.text_or_nothing("each"),
        reader.text_or_nothing("sheet"),
    )


def problem_json(problem: Problem) -> dict[str, Json]:
    return {
        "code": problem.code,
        "severity": problem.severity.value,
        "message": problem.message,
        "hint": problem.hint,
        "source": location_json(problem.source),
        "address": problem.address,
    }


def problem_from_json(reader: JsonObjectReader) -> Problem:
    return Problem(
        code=reader.text("code"),
        severity=Severity(reader.text("severity")),
        message=reader.text("message"),
        hint=reader.maybe("hint", reader.text),
        source=reader.maybe("source", lambda key: location_from_json(reader.reader(key))),
        address=reader.maybe("address", reader.text),
    )


def change_json(change: Change) -> dict[str, Json]:
    return {
        "address": str(change.address),
        "kind": change.address.kind,
        "name": change.address.name,
        "action": change.action.value,
        "id": change.id,
        "about": None if change.about is None else dict(change.about),
        "source": location_json(change.source),
        "before": change.before,
        "after": change.after,
        "fields": [_field_json(field) for field in change.fields],
        "defaults": list(change.defaults),
        "reason": change.reason,
        "goes_with": None if change.goes_with is None else str(change.goes_with),
        **({"replaced_by": [str(address) for address in change.replaced_by]} if change.replaced_by else {}),
        **({} if change.origin is None else {"origin": change.origin.value}),
        "undo": {"level": change.undo.level.value, "reason": change.undo.reason},
        "problems": [problem_json(problem) for problem in change.problems],
    }


def change_from_json(reader: JsonObjectReader) -> Change:
    return Change(
        address=Address.parse(reader.text("address")),
        action=Action(reader.text("action")),
        id=reader.maybe("id", lambda key: RemoteId(reader.text(key))),
        about=reader.maybe("about", reader.object),
        source=reader.maybe("source", lambda key: location_from_json(reader.reader(key))),
        before=reader.json("before"),
        after=reader.json("after"),
        fields=reader.each("fields", _field_value),
        problems=reader.each("problems", problem_from_json),
        defaults=reader.texts("defaults"),
        reason=reader.maybe("reason", reader.text),
        goes_with=reader.maybe("goes_with", lambda key: Address.parse(reader.text(key))),
        replaced_by=tuple(map(Address.parse, reader.texts("replaced_by"))) if reader.has("replaced_by") else (),
        origin=ChangeOrigin(reader.text("origin")) if reader.has("origin") else None,
        undo=_undo_value(reader.reader("undo")),
    )


def _undo_value(at: JsonObjectReader) -> Undo:
    return Undo(level=UndoLevel(at.text("level")), reason=at.maybe("reason", at.text))


def _field_json(field: FieldChange) -> Json:
    return {
        "path": field.path,
        "before": field.before,
        "after": field.after,
        "added": list(field.added),
        "removed": list(field.removed),
    }


def _field_value(at: JsonObjectReader) -> FieldChange:
    return FieldChange(
        path=at.text("path"),
        before=at.json("before"),
        after=at.json("after"),
        added=tuple(at.items("added")),
        removed=tuple(at.items("removed")),
    )
