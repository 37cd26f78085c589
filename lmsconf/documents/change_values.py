"""Values in several documents ⇄ JSON: changes, problems and their locations."""

from __future__ import annotations

from lmsconf.documents.document import object_json
from lmsconf.errors import Problem, SourceLocation
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Change


def location_json(location: SourceLocation | None) -> Json:
    return None if location is None else object_json(location)


def problem_json(problem: Problem) -> dict[str, Json]:
    return object_json(problem)


def change_json(change: Change) -> dict[str, Json]:
    values = object_json(change)
    for key in ("replaced_by", "origin"):
        if not values[key]:
            del values[key]
    return {"address": values["address"], "kind": change.address.kind, "name": change.address.name, **values}
