"""The five kinds of resources: a folder each for values, and a module for each question that is asked of all."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lmsconf.kinds.shared.kind import Kind


def all_kinds() -> Mapping[str, Kind]:
    """Return the five kinds by name, in the order in which they are planned."""
    from lmsconf.kinds.kind_table import KINDS  # it imports the modules of this package

    return KINDS
