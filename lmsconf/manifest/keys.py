"""Keys of manifests that are expanded before entries are looked at: sets, windows, `use`, `except` and `for_each`."""

from __future__ import annotations

from typing import Final

from lmsconf.model.canonical_json import Json

PEOPLE_SETS: Final = "people_sets"
CONDITION_SETS: Final = "condition_sets"
WINDOWS: Final = "windows"
SET_SECTIONS: Final = (CONDITION_SETS, PEOPLE_SETS, WINDOWS)
SET: Final = "set"
ALLOW_EMPTY: Final = "allow_empty"
USE: Final = "use"
EXCEPT: Final = "except"
CONDITIONS: Final = "conditions"
CHOICES: Final = "choices"
FOR_EACH: Final = "for_each"
FOR_EACH_SCHEMA: Final[dict[str, Json]] = {
    "type": "object",
    "description": "Expands the entry for each value, which is $(name) in it; for several names, for each combination.",
    "minProperties": 1,
    "additionalProperties": {
        "type": "array",
        "description": "The values: a list, or a variable that is a list.",
        "items": {"type": ["string", "number", "boolean"]},
    },
}
