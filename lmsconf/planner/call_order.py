"""Steps → calls: in dependency order, each with an id, and with paths and bodies as they are sent.

The graph of the declarations has what each resource depends on, and what relations link. Kinds whose
resources are too many for a graph, such as people, are left out.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Any, Final

from msgspec.structs import replace

from lmsconf.errors import Severity
from lmsconf.kinds.kind_table import KINDS, dependencies
from lmsconf.kinds.shared.kind_names import CONTENT, CONTENT_TARGET, CUSTOM_FIELD, SMART_GROUP, USER
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.kinds.shared.rename_and_list_steps import refs_in, request_target
from lmsconf.model.address import Address, shell_quoted
from lmsconf.model.calls import Call, Step
from lmsconf.model.declarations import DependencyGraph, DesiredResource, Edge
from lmsconf.model.names import grouped

_SHAPES: Final = {CUSTOM_FIELD: "parallelogram", SMART_GROUP: "ellipse", CONTENT: "note"}
"""Kind of a node → how graphs show it, in the words of DOT; others are boxes."""


def build_graph(declared: Iterable[DesiredResource[Any]]) -> DependencyGraph:
    """Return the graph of these declarations, sorted, so that their order does not matter.

    Edges to kinds that are not shown are left out; those that a relation declares are counted.
    """
    nodes = [(KINDS[one.address.kind], *_node(one)) for one in declared if one.address.kind != USER]
    own = frozenset(node for _, node, _ in nodes)
    links = [(kind, edge) for kind, _, on in nodes for edge in on]
    edges = {edge for _, edge in links if edge.on.kind != USER}
    return DependencyGraph(
        edges=tuple(sorted(edges)),
        declared=own,
        shapes={node: _SHAPES.get(node.kind, "box") for node in sorted(own.union(edge.on for edge in edges))},
        hidden_edges=Counter(
            (kind.noun, KINDS[USER].plural) for kind, edge in links if edge.on.kind == USER and kind.is_relation
        ),
    )


def _node(declared: DesiredResource[Any]) -> tuple[Address, list[Edge]]:
    """Return the node of a declaration, and the edges from it; an assignment is an edge from content to audience."""
    if declared.address.kind == CONTENT_TARGET:
        content = Address.of(CONTENT, declared.spec.content)
        return content, [Edge(content, declared.spec.audience, declared.spec.mandatory)]
    return declared.address, [Edge(declared.address, other) for other in dependencies(declared)]


def step_dependencies(steps: Sequence[Step]) -> list[set[int]]:
    """Return, for each step, the positions of the steps it depends on. Linear in the number of references."""
    makers = grouped(((ref, at) for at, step in enumerate(steps) for ref in step.makes), lambda one: one[0])
    releasers = grouped(((ref, at) for at, step in enumerate(steps) for ref in step.releases), lambda one: one[0])
    made = ({at for ref in step.uses for _, at in makers.get(ref, ())} for step in steps)
    released = (
        {at for ref in step.ends | step.avoids | step.follows for _, at in releasers.get(ref, ())} for step in steps
    )
    return [(one | other) - {position} for position, (one, other) in enumerate(zip(made, released, strict=True))]


def topological_order(before: Sequence[set[int]], rank: Sequence[tuple[object, ...]]) -> list[int]:
    """Return the positions in an order that respects `before`, lowest `rank` first.

    Raises CycleError; its second argument is a cycle of positions, with the first one again at the end.
    """
    graph = TopologicalSorter(dict(enumerate(before)))
    graph.prepare()
    ready: list[tuple[tuple[object, ...], int]] = []
    out: list[int] = []
    while graph.is_active():
        for position in graph.get_ready():
            heapq.heappush(ready, (rank[position], position))
        out.append(heapq.heappop(ready)[1])
        graph.done(out[-1])
    return out


def order_calls(planning: PlanContext, work: Sequence[tuple[Address, Sequence[Step]]]) -> tuple[Call, ...]:
    """Return the calls of all resources in one order; record a problem for a cycle or an unresolved reference.

    Of calls that need no order, those of earlier kinds go first. Returns no calls if a cycle cannot be broken.
    """
    rank = {kind: position for position, kind in enumerate(KINDS)}
    owners = [address for address, steps in work for _ in steps]
    steps = [step for _, own_steps in work for step in own_steps]
    _check_refs(planning, owners, steps)
    while True:
        before = step_dependencies(steps)
        ranks = [
            (_phase(step, before[position]), rank[owners[position].kind], owners[position].text, position)
            for position, step in enumerate(steps)
        ]
        try:
            sequence = topological_order(before, ranks)
            break
        except CycleError as error:
            cycle = sorted(set[int](error.args[1]))
            if not _break_cycle(planning, owners, steps, cycle):
                names = ", ".join(dict.fromkeys(str(owners[position]) for position in cycle))
                planning.problem(
                    "plan/circle",
                    f"the calls of {names} depend on each other in a cycle",
                    hint="Make the change in two steps: apply the first half of it, then the second.",
                )
                return ()
    numbers = {position: number for number, position in enumerate(sequence, 1)}
    return tuple(
        _call(planning, numbers[at], owners[at], steps[at], sorted(numbers[one] for one in before[at]))
        for at in sequence
    )


def _phase(step: Step, before: set[int]) -> int:
    """Return the phase: 0, before any change, for a call that may be refused and needs no other; 2 for a revocation."""
    if step.may_be_refused and not before:
        return 0
    return 2 if step.revokes else 1


def _break_cycle(planning: PlanContext, owners: Sequence[Address], steps: list[Step], cycle: Sequence[int]) -> bool:
    """Break a cycle by dropping its `follows` edges, else its `avoids` edges; those calls may be refused.

    Return False if it has neither.
    """
    released = frozenset().union(*(steps[position].releases for position in cycle))
    following = [position for position in cycle if steps[position].follows & released]
    for position in following:
        steps[position] = replace(steps[position], follows=frozenset())
    avoiding = [] if following else [position for position in cycle if steps[position].avoids & released]
    for position in avoiding:
        users = {str(owners[other]) for other in cycle if steps[other].releases & steps[position].avoids}
        steps[position] = replace(steps[position], avoids=frozenset(), may_be_refused=True)
        planning.problem(
            "refusal/in-use",
            f"{owners[position]}: may be refused, because it is changed while it is in use; it is named by "
            f"{', '.join(sorted(users))}, and nobody loses access before the new assignments exist",
            hint="Allow `refusals` to try it before all other calls. Or make the change in two steps: remove what is "
            "deleted, apply, add it again, and apply again.",
            address=owners[position],
            severity=Severity.WARNING,
        )
    return bool(following or avoiding)


def _call(planning: PlanContext, number: int, address: Address, step: Step, before: Sequence[int]) -> Call:
    method, path = request_target(planning.api_spec, step.operation, step.path)
    return Call(
        id=f"c{number}",
        address=address,
        operation=step.operation,
        method=method,
        path=path,
        query=step.query,
        body=step.body,
        needs=tuple(f"c{other}" for other in before),
        may_be_refused=step.may_be_refused,
        people=step.people,
    )


def _check_refs(planning: PlanContext, owners: Sequence[Address], steps: Sequence[Step]) -> None:
    """Record a problem for each reference to an id that no call of this plan creates."""
    made = {ref for step in steps for ref in step.makes}
    # A resource with an error has no calls; that error is reported already.
    wrong = {problem.address for problem in planning.problems if problem.is_error}
    needed = ((owner, ref) for owner, step in zip(owners, steps, strict=True) for ref in refs_in(step.path, step.body))
    for owner, ref in needed:
        if ref not in made and str(ref.address) not in wrong:
            planning.problem(
                "reference/not-planned",
                f"{owner}: it needs {ref}, which does not exist yet and is not part of this plan",
                hint=f"Plan it too: remove it from --except, or add --only {shell_quoted(ref.address)}.",
                address=owner,
            )
