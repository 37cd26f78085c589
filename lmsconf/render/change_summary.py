"""Changes by risk and key by key, shared by Markdown and HTML. Results are not escaped.

Risk, by_risk           group changes: deleted, replaced, items removed, changed, created
KeyChange, key_changes  one key of a change in words: values added and removed
differs                 the same for a finding of a drift report
tally                   counts per kind and action
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from lmsconf.errors import Problem, Severity
from lmsconf.model.address import Address
from lmsconf.model.blockers import allowances
from lmsconf.model.canonical_json import Json
from lmsconf.model.drift import DriftFinding
from lmsconf.model.plan import Action, Change, FieldChange, Plan, UnmanagedResources
from lmsconf.render import drift_words, phrases


class Addressed(Protocol):
    """A value with the address of one resource."""

    @property
    def address(self) -> Address: ...


class Risk(Enum):
    """The risk of a change, riskiest first. The value is the heading of a section of such changes."""

    DELETED = "Deleted"
    REPLACED = "Replaced"
    TAKEN = "Taken away"
    CHANGED = "Changed"
    CREATED = "Created"

    @property
    def safe(self) -> bool:
        """Whether nothing is deleted or removed."""
        return self in (Risk.CHANGED, Risk.CREATED)


_BY_ACTION = {Action.DELETE: Risk.DELETED, Action.REPLACE: Risk.REPLACED, Action.CREATE: Risk.CREATED}


def risk(change: Change) -> Risk:
    """Return the risk of a change."""
    return _BY_ACTION.get(change.action) or (Risk.TAKEN if taken(change) else Risk.CHANGED)


def taken(change: Change) -> int:
    """Return the number of items removed from lists of an updated resource; 0 for other actions."""
    return sum(len(field.removed) for field in change.fields) if change.action is Action.UPDATE else 0


def by_risk(changes: Iterable[Change]) -> Mapping[Risk, Sequence[Change]]:
    """Group changes by risk, riskiest first, each group in the plan's order; empty groups are left out."""
    groups: dict[Risk, list[Change]] = {one: [] for one in Risk}
    for change in changes:
        groups[risk(change)].append(change)
    return {one: group for one, group in groups.items() if group}


@dataclass(frozen=True, slots=True)
class KeyChange:
    """One key of a change in words.

    removed, added: values before and after, or items of a list; a scalar has at most one each. note: the counts of
    items, or a remark, shown beside the key.
    """

    path: str
    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    note: str = ""


def key_changes(change: Change) -> Iterator[KeyChange]:
    """Yield the changed keys of an update; for a creation or deletion all keys that the title does not contain."""
    if change.action is Action.CREATE:
        yield from (KeyChange(path, added=items) for path, items in _whole(change, change.after))
        yield from (KeyChange(key, note=phrases.SERVICE_DEFAULT) for key in change.defaults)
    elif change.action is Action.DELETE:
        yield from (KeyChange(path, removed=items) for path, items in _whole(change, change.before) if items != _EMPTY)
    else:
        yield from map(_field, change.fields)


_EMPTY = (phrases.NOTHING,)
"""Skipped on deletion: an empty value is no loss."""


def _whole(change: Change, form: Json) -> Iterator[tuple[str, tuple[str, ...]]]:
    titled = phrases.title_keys(change.address)
    for path, value in phrases.leaves(form):
        if value is not None and path.partition(".")[0] not in titled:
            several = isinstance(value, list) and value
            yield path, tuple(map(phrases.words, value)) if several else (phrases.quoted(value),)  # type: ignore[arg-type]  # a list


def _field(field: FieldChange) -> KeyChange:
    if field.added or field.removed:
        added, removed = tuple(map(phrases.words, field.added)), tuple(map(phrases.words, field.removed))
        return KeyChange(field.path, removed, added, phrases.set_counts(field))
    return KeyChange(field.path, (phrases.quoted(field.before),), (phrases.quoted(field.after),))


def differs(finding: DriftFinding) -> Iterator[KeyChange]:
    """Yield the keys of a finding: `removed` is the declared side, `added` the live side."""
    for field in finding.fields:
        if field.missing or field.extra:
            note = drift_words.field(field).removeprefix(f"{field.path}: ")
            yield KeyChange(
                field.path, tuple(map(phrases.words, field.missing)), tuple(map(phrases.words, field.extra)), note
            )
        else:
            yield KeyChange(field.path, (phrases.quoted(field.declared),), (phrases.quoted(field.live),))


def ways_out(finding: DriftFinding) -> Iterator[tuple[str, str]]:
    """Yield (description, command) for each remedy of a finding."""
    if finding.restore is not None:
        first = "".join(f"; first write {line} beside its name" for line in drift_words.earlier_name(finding))
        yield f"Put it back as the manifests say{first}", finding.restore
    if finding.accept is not None:
        yield "Take it over into the manifests", finding.accept


def kinds(resources: Iterable[Addressed]) -> str:
    """`3 assignments, 1 group`: resources per kind, in the order of first appearance."""
    counts = Counter(resource.address.kind for resource in resources)
    return ", ".join(phrases.count_of(number, kind) for kind, number in counts.items())


def tally(changes: Iterable[Change]) -> Mapping[str, Counter[Action | str]]:
    """Return kind → resources per action; key `taken`: items removed from updated resources."""
    by_kind: dict[str, Counter[Action | str]] = {}
    for change in changes:
        counts = by_kind.setdefault(change.address.kind, Counter())
        counts[change.action] += 1
        counts["taken"] += taken(change)
    return by_kind


def removals(plan: Plan) -> int:
    """Return the number of removals as the guard `removals` counts them."""
    totals = [guard.total for guard in plan.guards if guard.name == "removals"]
    return sum(filter(None, totals or (measure.taken for measure in plan.measures if measure.guard == "removals")))


def worst_first(problems: Iterable[Problem]) -> Sequence[Problem]:
    """Sort problems: errors, warnings, notes."""
    order = list(Severity)
    return sorted(problems, key=lambda problem: order.index(problem.severity))


def apply_command(plan: Plan, digest: str) -> str | None:
    """Return the command that applies exactly this plan.

    None for a plan that is empty, offline, or has errors, and for one that needs its file: partial, or additive with
    changes left out.
    """
    refused = any(problem.is_error for problem in plan.all_problems)
    if not plan.changes or plan.offline or plan.partial or plan.left_out or refused:
        return None
    return " ".join([plan.command, f"--expect-digest {digest}", *allowances(plan.guards)])


def present(groups: Iterable[UnmanagedResources]) -> Iterator[UnmanagedResources]:
    """Yield the kinds with unmanaged resources."""
    return (group for group in groups if group.addresses or group.left_alone)
