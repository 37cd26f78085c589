"""The JSON view of a fleet: its index, and the changes that its plans share."""

from __future__ import annotations

from lmsconf.documents.change_values import change_json
from lmsconf.documents.document import render_json
from lmsconf.documents.fleet_file import index_json
from lmsconf.model.canonical_json import Json
from lmsconf.model.fleet import FleetReport, SharedChanges


def fleet_json(report: FleetReport) -> str:
    """Return the document `lmsconf.fleet/1` with `shared`: which changes are the same in which workspaces."""
    return render_json({**index_json(report.index), "shared": [_shared_json(one) for one in report.shared]})


def _shared_json(shared: SharedChanges) -> Json:
    return {
        "workspaces": list[Json](shared.workspaces),
        "one_each": shared.one_each,
        "changes": [change_json(change) for change in shared.changes],
    }
