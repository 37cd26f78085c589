"""Order calls topologically: create before use, release before delete.

The nodes are calls, not resources: one resource may need a call before another's and a call after it.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence

from lmsconf.model.address import Ref
from lmsconf.model.calls import Step


class DependencyCycle(Exception):  # a property of the graph, not an error of the program
    """A dependency cycle of calls; `members` are their positions."""

    def __init__(self, members: Sequence[int]) -> None:
        super().__init__(f"{len(members)} calls wait for each other")
        self.members = tuple(members)


def step_dependencies(steps: Sequence[Step]) -> list[set[int]]:
    """Return, for each step, the positions of the steps it depends on. Linear in the number of references."""
    makers: defaultdict[Ref, list[int]] = defaultdict(list)
    releasers: defaultdict[Ref, list[int]] = defaultdict(list)
    for position, step in enumerate(steps):
        for ref in step.makes:
            makers[ref].append(position)
        for ref in step.releases:
            releasers[ref].append(position)
    out: list[set[int]] = []
    for position, step in enumerate(steps):
        before = {maker for ref in step.uses for maker in makers.get(ref, ())}
        before.update(releaser for ref in step.ends | step.avoids for releaser in releasers.get(ref, ()))
        before.update(releaser for ref in step.follows for releaser in releasers.get(ref, ()))
        before.discard(position)
        out.append(before)
    return out


def topological_order(before: Sequence[set[int]], rank: Sequence[tuple[object, ...]]) -> list[int]:
    """Return the positions in an order that respects `before`, lowest `rank` first. Raises DependencyCycle."""
    waiting = [len(dependencies) for dependencies in before]
    after: defaultdict[int, list[int]] = defaultdict(list)
    for position, dependencies in enumerate(before):
        for earlier in dependencies:
            after[earlier].append(position)
    ready = [(rank[position], position) for position, count in enumerate(waiting) if not count]
    heapq.heapify(ready)
    out = []
    while ready:
        _, position = heapq.heappop(ready)
        out.append(position)
        for later in after[position]:
            waiting[later] -= 1
            if not waiting[later]:
                heapq.heappush(ready, (rank[later], later))
    if len(out) < len(before):
        raise DependencyCycle(_find_cycle(before, set(range(len(before))) - set(out)))
    return out


def _find_cycle(before: Sequence[set[int]], left: set[int]) -> list[int]:
    """Return one cycle among positions `left`, of which each depends on another one of them."""
    path, at = [], min(left)
    while at not in path:
        path.append(at)
        at = min(before[at] & left)
    return path[path.index(at) :]
