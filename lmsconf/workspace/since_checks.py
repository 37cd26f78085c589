"""What `plan --since` touches, and when it is refused: a snapshot or a difference that cannot decide a plan."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from lmsconf.errors import LmsconfError
from lmsconf.kinds import all_kinds
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource, Manifests
from lmsconf.model.lints import PREFIX
from lmsconf.model.policy import Policy
from lmsconf.model.settings_changes import diff_settings
from lmsconf.model.snapshot import Snapshot
from lmsconf.workspace.base_comparison import BaseManifests

MOST: Final = 500
"""How many resources a change may touch: a larger one is planned by reading everything."""
LEAVE_OUT: Final = "Without --since, everything that the manifests declare is read."
_HARMLESS: Final = (
    *("guards", "allow", "plans", "ignore", "lock", "settle", "manifests", "vars"),
    *("default_workspace", "runs", "waves", "max_failures", "fleet_guards"),
)
"""Settings that change no resource. Guards are judged under the base's settings too; variables show in entries."""

_Entry = DesiredResource[Any] | DeleteEntry[Any]


class Difference(NamedTuple):
    """What manifests change of their base's declarations.

    touched: declared or under `absent`, and otherwise than in the base, or not there. dropped: declared by the base,
    and now neither declared nor under `absent` nor taken over by another name.
    """

    touched: tuple[Address, ...]
    dropped: tuple[Address, ...]


def refuse_unusable_snapshot(
    snapshot: Snapshot, *, workspace: str, url: str, now: datetime, valid_for: timedelta
) -> timedelta:
    """Return the age of a snapshot. Raises LmsconfError if a plan of a part of the workspace cannot rest on it."""
    if snapshot.redaction is not None:
        raise _unusable("it is redacted, so people cannot be identified", "Save it without --redact.")
    if (snapshot.workspace, snapshot.url) != (workspace, url):
        why = f"it is of workspace {snapshot.workspace} ({snapshot.url}), and this is {workspace} ({url})"
        raise _unusable(why, "Choose the workspace with --workspace.")
    for kind in all_kinds().values():
        for listing in (kind.row_type.listing, *kind.catalogs):
            if (reason := snapshot.of(listing).incomplete) is not None:
                raise _unusable(
                    f"it does not contain all {listing.replace('_', ' ')}s: {reason}",
                    "Save a new one: lmsconf snapshot FILE",
                )
    try:
        age = now - datetime.fromisoformat(snapshot.taken_at)
    except (TypeError, ValueError) as error:
        raise _unusable(
            f"its time cannot be read: {snapshot.taken_at}", "Save a new one: lmsconf snapshot FILE"
        ) from error
    if age < timedelta(0):
        raise _unusable(f"it was taken at {snapshot.taken_at}, which is in the future", "Compare the clocks.")
    if age > valid_for:
        why = f"it was taken at {snapshot.taken_at}, and is older than plans may be ({_days(valid_for)})"
        raise _unusable(why, "Save a new one: lmsconf snapshot FILE")
    return age


def _unusable(why: str, hint: str) -> LmsconfError:
    return LmsconfError(f"--since: the snapshot cannot be used: {why}", hint=hint)


def _days(time: timedelta) -> str:
    return f"{time.total_seconds() / 86_400:g} d"


def refuse_changed_settings(base: BaseManifests, settings: Mapping[str, Json]) -> None:
    """Raise LmsconfError where a setting differs that changes resources whose declarations are the same."""
    differing = [difference.path for difference in diff_settings(base.version.settings, settings)]
    telling = [path for path in differing if not path.startswith(PREFIX) and path.partition(".")[0] not in _HARMLESS]
    if telling:
        why = f"--since: {', '.join(telling)} differs from {base.name}, which may change any resource"
        raise LmsconfError(why, hint=LEAVE_OUT)
    if any(problem.is_error for problem in base.version.manifests.problems):
        why = f"--since: the manifests of {base.name} have errors, so it is not known what this change touches"
        raise LmsconfError(why, hint=LEAVE_OUT)


def find_difference(manifests: Manifests, base: BaseManifests, policy: Policy) -> Difference:
    """Return what the manifests change, by parsed declarations. Raises LmsconfError for too much, or for owned ones."""
    workspace, version = policy.workspace, base.version
    now, before = (_entries(one, workspace) for one in (manifests, version.manifests))
    touched = sorted(address for address, entries in now.items() if entries != before.get(address))
    taken_over = set(_taken_over(manifests.declared, workspace))
    declared = [resource for resource in version.manifests.declared if resource.applies_in(workspace)]
    gone = [one for one in declared if one.address not in now and not taken_over & set(_keys(one, workspace))]
    dropped = sorted({one.address for one in gone} - set(_following(gone, now, manifests.declared, workspace)))
    if len(touched) + len(dropped) > MOST:
        why = f"--since: this change touches {len(touched) + len(dropped):,} resources, and it takes {MOST:,} at most"
        raise LmsconfError(why, hint=LEAVE_OUT)
    if owned := [address for address in dropped if policy.ownership.get(address.kind)]:
        more = f" and {len(owned) - 1:,} more" if len(owned) > 1 else ""
        why = f"--since: {owned[0]}{more}: no longer declared, and `ownership` may delete what is not declared"
        raise LmsconfError(why, hint=LEAVE_OUT)
    return Difference(tuple(touched), tuple(dropped))


def _entries(manifests: Manifests, workspace: str) -> Mapping[Address, list[object]]:
    """Return what manifests say of each address in a workspace, without where they say it."""
    entries: defaultdict[Address, list[object]] = defaultdict(list)
    for resource in manifests.declared:
        if resource.applies_in(workspace):
            entries[resource.address].append((resource.spec, resource.pin(workspace), resource.previously))
    for entry in manifests.absent:
        if entry.applies_in(workspace):
            entries[entry.address].append(("absent", entry.spec, entry.pin(workspace), entry.until))
    return dict(entries)


def _taken_over(declared: Iterable[DesiredResource[Any]], workspace: str) -> Iterator[tuple[str, str]]:
    """Yield kind and earlier name, and kind and id, of resources that may be declared under another name."""
    for one in declared:
        if one.applies_in(workspace):
            yield from ((one.address.kind, Address.of(one.address.kind, name).text) for name in one.previously)
            if (id := one.pin(workspace)) is not None:
                yield one.address.kind, f"id {id}"


def _following(
    gone: Sequence[_Entry], now: Collection[Address], declared: Iterable[DesiredResource[Any]], workspace: str
) -> Iterator[Address]:
    """Yield the assignments that are declared for the same audience under its new name."""
    renamed = {
        str(Address.of(one.address.kind, old)): str(one.address)
        for one in declared
        if one.applies_in(workspace)
        for old in one.previously
    }
    for one in gone:
        audience = all_kinds()[one.address.kind].audience_in(one.address)
        if audience in renamed:
            text = one.address.text.removesuffix(audience) + renamed[audience]
            if Address(one.address.kind, text) in now:
                yield one.address


def _keys(one: _Entry, workspace: str) -> Sequence[tuple[str, str]]:
    id = one.pin(workspace)
    named = (one.address.kind, one.address.text)
    return [named] if id is None else [named, (one.address.kind, f"id {id}")]
