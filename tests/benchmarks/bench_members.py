"""Comparing a group of 10,000 members of whom ten are exchanged, beside the two set differences alone.

    python tests/benchmarks/bench_members.py [--repeat 31]

In this process: the group's kind compares what the manifest says with what was read, and the differences of the two
are found, from the parsed manifest and the snapshot to the lines that a plan shows.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from datetime import date
from typing import cast

from measuring import tell, verdict

from lmsconf.api.spec import ApiSpec
from lmsconf.errors import Problem
from lmsconf.kinds.entries import parse
from lmsconf.kinds.manual_group.types import GroupRow
from lmsconf.kinds.planning import diff
from lmsconf.kinds.shared.call_placeholders import SpecCallTemplates
from lmsconf.kinds.shared.kind_names import GROUP, USER
from lmsconf.kinds.user.types import PersonRow
from lmsconf.manifest.nodes import EntrySourceMap, Map, Source, pack_mark
from lmsconf.model.address import RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import FieldChange
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import HasName, Listing, Snapshot
from lmsconf.planner.context import Match, PlanContext
from lmsconf.planner.diff import diff_forms
from lmsconf.planner.manifest_entries import ManifestEntry

MEMBERS, EXCHANGED = 10_000, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeat", type=int, default=31, help="counted comparisons")
    repeat = parser.parse_args().repeat
    compare = _comparison()
    found = compare()
    if (len(found[0].added), len(found[0].removed)) != (EXCHANGED, EXCHANGED):
        raise RuntimeError(f"not what was exchanged: {found}")
    old, new = frozenset(_emails(0)), frozenset(_emails(EXCHANGED))
    ours, theirs, ratios = [], [], []
    for _ in range(repeat):
        ours.append(_timed(compare))
        theirs.append(_timed(lambda: (new - old, old - new)))
        ratios.append(ours[-1] / theirs[-1])
    tell(f"a group of {MEMBERS:,} members, {EXCHANGED} exchanged, medians of {repeat} in turn")
    tell(f"  compared         {statistics.median(ours) * 1000:6.2f} ms")
    tell(f"  set differences  {statistics.median(theirs) * 1000:6.2f} ms")
    tell(f"  ratio            {statistics.median(ratios):6.2f}  {verdict(statistics.median(ratios), 10)}")


def _timed(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _emails(first: int) -> list[str]:
    return [f"person.{number}@acme.example" for number in range(first, first + MEMBERS)]


def _comparison() -> Callable[[], tuple[FieldChange, ...]]:
    """What a plan does for the one group, everything around it done already."""
    everybody = [f"person.{number}@acme.example" for number in range(MEMBERS + EXCHANGED)]
    people = [PersonRow(RemoteId(f"u-{number}"), email) for number, email in enumerate(everybody)]
    row = GroupRow(RemoteId("g-1"), "Everybody", frozenset(person.id for person in people[:MEMBERS]), frozenset())
    snapshot = Snapshot(
        workspace="benchmark",
        url="sandbox:",
        taken_at="",
        people=len(people),
        listings={USER: Listing(rows=tuple(people)), GROUP: Listing(rows=(row,))},
    )
    policy = Policy(workspace="benchmark", today=date(2026, 1, 1))
    planning = PlanContext(snapshot, policy, SpecCallTemplates(ApiSpec.default()), lambda _: True)
    (declared,) = parse(GROUP, _entry({"name": "Everybody", "members": cast(Json, _emails(EXCHANGED))}))
    match = Match(declared=declared, row=cast(HasName, row))

    def compare() -> tuple[FieldChange, ...]:
        sides = diff(planning, match)
        if sides is None or sides.before is None or sides.after is None:
            raise RuntimeError("the group was not compared")
        return diff_forms(sides.before, sides.after)

    return compare


def _entry(body: dict[str, Json]) -> ManifestEntry:
    """A manifest entry that is never written to a file."""
    source = Source("benchmark.yaml")
    here = Map(source)
    here.update(body)
    return ManifestEntry(body=here, places=EntrySourceMap(here, source, pack_mark(1, 1)), timezone=None, report=_refuse)


def _refuse(problem: Problem) -> None:
    raise RuntimeError(problem.message)


if __name__ == "__main__":
    main()
