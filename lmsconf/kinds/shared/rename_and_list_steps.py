"""Calls that several kinds share: renames, and additions to lists of people and removals from them.

Ids in a call may not be known yet: paths and bodies have a Ref in place of each, which an apply fills in.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final
from urllib.parse import quote, unquote

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.dialect_candidates import ADD_MODE, BATCH
from lmsconf.api.spec.operations import encode_path_segment
from lmsconf.kinds.shared.kind_names import GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.manifest_entry import included
from lmsconf.kinds.shared.match_by_name import cycles
from lmsconf.kinds.shared.plan_context import GRANTED, BeforeAfter, Match, PlanContext
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.calls import Step
from lmsconf.model.names import normalize_name
from lmsconf.model.snapshot import HasName


def request_target(spec: ApiSpec, operation: str, path: Mapping[str, str | Ref]) -> tuple[str, str]:
    """Return method and path of a call; a Ref is written `{group/New name}`, with braces and percent signs encoded."""

    def segment(place: re.Match[str]) -> str:
        value = path[place[1]]
        if isinstance(value, Ref):
            return "{" + quote(str(value), safe="/ \\#:@!$&'()*+,;=[]|^`\"<>?~") + "}"
        return encode_path_segment(value)

    return spec[operation].method, re.sub(r"\{(\w+)\}", segment, spec[operation].path)


def fill_refs_in_path(path: str, ids: Mapping[Ref, str]) -> str:
    """Return the path with each Ref replaced by its id. Raises KeyError for a Ref without an id."""
    return re.sub(r"\{([^{}]*)\}", lambda place: encode_path_segment(ids[Ref(Address.parse(unquote(place[1])))]), path)


def fill_refs_in_body(body: object, ids: Mapping[Ref, str]) -> object:
    """Return the body with each Ref, key or value, replaced by its id. Raises KeyError for a Ref without an id."""
    if isinstance(body, Ref):
        return ids[body]
    if isinstance(body, Mapping):
        return {fill_refs_in_body(key, ids): fill_refs_in_body(value, ids) for key, value in body.items()}
    return [fill_refs_in_body(item, ids) for item in body] if isinstance(body, list | tuple) else body


def refs_in(*values: object) -> Iterator[Ref]:
    """Yield every id not known yet in a path or a body, keys included."""
    for value in values:
        if isinstance(value, Ref):
            yield value
        elif isinstance(value, Mapping):
            yield from refs_in(*value.keys(), *value.values())
        elif isinstance(value, list | tuple):
            yield from refs_in(*value)


def free_name_ref(address: Address) -> frozenset[Ref]:
    """Return the Ref for that address's name being free: used by the call that takes it."""
    return frozenset({Ref(address, "(vacant name)")})


def free_name_ref_of_row(kind: str, row: HasName) -> frozenset[Ref]:
    """Return the Ref for the name of a live resource being free: made by the call that gives it up."""
    return free_name_ref(Address.of(kind, normalize_name(row.name)))


def temporary_name(id: str) -> str:
    """Return a temporary name in a cycle of renames; its id identifies the resource if the run is interrupted."""
    return f"lmsconf renames {id}"


def find_rename_cycles(planning: PlanContext) -> None:
    """In each cycle of renames choose the resource that takes a temporary name first: the one with the lowest id."""
    renames = {old: new for old, new in planning.renamed.items() if planning.chosen(new)}
    for path in cycles(renames):
        ids = {str(planning.registry.id_or_ref(Ref(renames[old]))): renames[old] for old in path}
        planning.temporary_names.add(ids[min(ids)])


def rename_steps(
    planning: PlanContext, operation: str, path: Mapping[str, str | Ref], match: Match[Any, Any], sides: BeforeAfter
) -> Iterator[Step]:
    """Yield one rename, or two via a temporary name; none if the name is unchanged."""
    row, at = match.row, match.address
    if row is None or sides.before is None or sides.after is None or sides.before["name"] == sides.after["name"]:
        return
    rename = partial(planning.api_spec.body_to_wire, operation)
    old = free_name_ref_of_row(at.kind, row)
    if at in planning.temporary_names:
        yield Step(operation=operation, path=path, body=rename(name=temporary_name(row.id)), makes=old)
        old = frozenset()
    yield Step(operation=operation, path=path, body=rename(name=at.name), makes=old, uses=free_name_ref(at))


_LISTS: Final = {
    GROUP: (
        ("managers", "manual-groups.add-managers", "manual-groups.remove-manager"),
        ("members", "manual-groups.add-members", "manual-groups.remove-member"),
    ),
    SMART_GROUP: (("managers", "smart-groups.add-managers", "smart-groups.remove-manager"),),
}
"""Kind → its lists of people, in the order in which they are changed, with the operations that add and remove."""


def list_steps(
    planning: PlanContext, match: Match[Any, Any], path: Mapping[str, str | Ref], sides: BeforeAfter
) -> Iterator[Step]:
    """Yield the calls that change the declared lists of a group or a smart group."""
    for key, adds, removes in _LISTS[match.address.kind]:
        before, after = (included(form or {}, key) for form in (sides.before, sides.after))
        live = getattr(match.row, key, None) or ()
        yield from _additions(planning, match.address, path, adds, sorted(after - before), live)
        for person in sorted(before - after):
            arrived = [joined_group_ref(person)] if key == "members" else []
            yield Step(
                operation=removes,
                path={**path, "userId": planning.people.id(person)},
                uses=frozenset({Ref(match.address, f"{GRANTED} {adds}"), *arrived}),
                revokes=True,
                people=(person,),
            )


def _additions(
    planning: PlanContext,
    at: Address,
    path: Mapping[str, str | Ref],
    adds: str,
    added: Sequence[str],
    live: Iterable[RemoteId],
) -> Iterator[Step]:
    """Yield the additions to a list of people, in batches.

    adds: the operation. live: the user ids in the list now, also those that the manifest does not manage.
    Where the service replaces the list, each call names them and all who are added so far, and waits for the one before
    it. A person who changes groups is added to the new group before being removed from the old one, so that access is
    never interrupted.
    """
    is_membership = adds.endswith("members")
    replaces, size = planning.api_spec.behaviour(ADD_MODE) == "replace", int(planning.api_spec.behaviour(BATCH))
    named: list[RemoteId | Ref] = sorted(live) if replaces else []
    earlier: frozenset[Ref] = frozenset()
    for number, start in enumerate(range(0, len(added), size)):
        batch, done = added[start : start + size], Ref(at, f"{GRANTED} {adds} {number}")
        named = [*(named if replaces else ()), *map(planning.people.id, batch)]
        arrived = map(joined_group_ref, batch if is_membership else ())
        yield Step(
            operation=adds,
            path=path,
            body=planning.api_spec.body_to_wire(adds, userIds=named),
            makes=frozenset({Ref(at, f"{GRANTED} {adds}"), done, *arrived}),
            uses=people_dependencies(planning, batch, manages=not is_membership) | earlier | frozenset(refs_in(path)),
            people=tuple(batch),
        )
        earlier = frozenset({done} if replaces else ())


def people_dependencies(planning: PlanContext, people: Collection[str], *, manages: bool) -> frozenset[Ref]:
    """Return what a call that names people depends on: their creation and, for managers, the grants of rights."""
    created = frozenset(refs_in(*map(planning.people.id, people)))
    return created.union(*map(granted_rights_ref, people)) if manages else created


def granted_rights_ref(person: str) -> frozenset[Ref]:
    """Return the Ref made by the calls that grant rights to a person."""
    return frozenset({Ref(Address.of(USER, person), "(rights)")})


def joined_group_ref(person: str) -> Ref:
    """Return the Ref made by adding a person to new groups; removal from a group depends on it."""
    return Ref(Address.of(USER, person), GRANTED)
