"""The manifest line that deletes a resource that was declared before."""

from __future__ import annotations

from typing import Any, cast

from lmsconf.kinds.content_target.values import Assignment, audience_form
from lmsconf.manifest.edit.yaml_text import inline
from lmsconf.model.values import DesiredResource, Json, pin_in
from lmsconf.planner.kind import AnyKind


def absent_line(kind: AnyKind, one: DesiredResource[Any], workspace: str) -> str:
    """Return the `absent` section that deletes one resource in a workspace, such as `absent: {groups: [Sales]}`."""
    spec = one.spec
    if isinstance(spec, Assignment):
        pin = pin_in(spec.content_pins, workspace)
        content: Json = spec.content if pin is None else {"name": spec.content, "id": pin}
        entry: Json = {"content": content, "assign_to": [audience_form(spec.audience)]}
    else:
        id = one.pin(workspace)
        entry = one.address.name if id is None else cast(Json, {"name": one.address.name, "id": id})
    return f"absent: {inline({kind.section: [entry]})}"
