"""What an undo leaves alone, in words: conflicts with what others have changed since the run.

`restored_entries` finds them, and `undo` reports them as problems of its plan.
"""

from __future__ import annotations

import json
from typing import Final

from msgspec import Struct

from lmsconf.errors import Problem, Severity
from lmsconf.kinds.kind_table import KINDS
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.plan import Change
from lmsconf.planner.undo.three_way_merge import Names, with_names
from lmsconf.planner.undo.undone_run import MARK

CONFLICT: Final = "undo/conflict"
LIMITED: Final = "undo/limited"
"""The code of what cannot come back of a change that is undone."""
ALL: Final = ""
"""The key of a conflict about a whole resource."""
_SHOWN: Final = 200
"""The number of characters of a value that a conflict quotes."""


class LeftAlone(Struct, frozen=True, kw_only=True):
    """What an undo leaves alone of a change. key: ALL for the whole resource.

    values: of what others have changed since, the value before the run, as the run made it, and now.
    """

    change: Change
    key: str
    reason: str
    values: tuple[Json, Json, Json] | None = None

    @property
    def is_of_name(self) -> bool:
        """Whether it is the name of a resource that the run renamed."""
        return self.key == KINDS[self.change.address.kind].name_key and self.change.before is not None

    def warning(self, names: Names) -> Problem:
        """Return the conflict to show. names: those that live resources have after the undo."""
        address, hint = str(self.change.address), None
        if self.values is not None:
            was, run, now = (self._shown(value, names) for value in self.values)
            hint = f"Before the run: {was}. The run made: {run}. Live now: {now}."
        return Problem(
            code=CONFLICT,
            message=f"{address}: {self.reason}",
            hint=hint,
            severity=Severity.WARNING,
            address=address,
        )

    def _shown(self, value: Json, names: Names) -> str:
        """Return a value for people to read, also of what is not there."""
        if value is None or value == []:
            return "nothing"
        named = with_names(
            KINDS[self.change.address.kind], members(value) if self.key == ALL else {self.key: value}, names
        )
        value = named if self.key == ALL else named[self.key]
        whole = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False).replace(r"\u0000", MARK)
        whole = whole.replace(MARK, "")
        return whole if len(whole) <= _SHOWN else f"{whole[:_SHOWN]}…"
