"""The five kinds of resources: a folder each, a module for each question that is asked of all, and what they share.

kind_table          a row for each kind: names, schemas, where entries refer to others
schemas             the JSON Schemas of their manifest entries
parsing             entry → declared resources, and what these name and depend on
kind_functions      match, differences, steps: which function answers for which kind
exported_entries    live resource → manifest entry
grant_verification  how a call that grants access is verified
shared              the state of a plan, matching by name, keys of entries, parts of responses
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from lmsconf.kinds.shared.kind import Kind


def all_kinds() -> Mapping[str, Kind]:
    """Return the five kinds by name, in the order in which they are planned."""
    from lmsconf.kinds.kind_table import KINDS  # it imports the modules of this package

    return KINDS
