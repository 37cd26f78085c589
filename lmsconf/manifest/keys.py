"""Keys of manifests that are expanded before entries are looked at: sets, windows, `use`, `except` and `for_each`."""

from __future__ import annotations

from typing import Final

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
