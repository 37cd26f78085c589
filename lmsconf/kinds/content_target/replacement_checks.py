"""Problems with `replaces` that manifests alone show: an assignment that is declared and replaced at the same time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from lmsconf.errors import Problem
from lmsconf.kinds.content_target.types import AssignmentSpec, assignment_address
from lmsconf.model.address import Address
from lmsconf.model.declarations import DesiredResource


def check_replacements(declared: Sequence[DesiredResource[AssignmentSpec]]) -> Iterator[Problem]:
    """Yield a problem for each assignment that one entry declares and another one replaces in the same workspace."""
    replacing = [entry for entry in declared if entry.spec.replaces]
    if not replacing:
        return
    by_address: defaultdict[Address, list[DesiredResource[AssignmentSpec]]] = defaultdict(list)
    for entry in declared:
        by_address[entry.address].append(entry)
    for entry in replacing:
        for replaced in entry.spec.replaces:
            old = assignment_address(replaced.content, entry.spec.audience)
            for other in by_address.get(old, ()):
                if entry is not other and entry.shares_workspace(other):
                    yield Problem(
                        code="content-target/replaced-and-declared",
                        message=f"{old}: it is declared, and {entry.address} replaces it",
                        hint=_hint(entry, other),
                        source=entry.places.at(*replaced.path),
                        address=str(old),
                    )


def _hint(entry: DesiredResource[AssignmentSpec], other: DesiredResource[AssignmentSpec]) -> str:
    remove = f"See {other.source}. Remove that audience there, or this content from `replaces`."
    known = {replaced.content for replaced in entry.spec.replaces}
    more = ", ".join(replaced.content for replaced in other.spec.replaces if replaced.content not in known)
    return f"{remove} That entry replaces {more}: list it under `replaces` here, too." if more else remove
