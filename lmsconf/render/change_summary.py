"""What markdown and html share: changes in the order of their risk, and key by key. Nothing is escaped yet.

Risk, by_risk   deletions first, then what is taken away, then the rest
Told, told      one key of a resource in words: values that come and values that go
differs         the same for a finding of a drift report
tally           how much happens to each kind
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
from lmsconf.model.drift import Finding
from lmsconf.model.values import Action, Change, FieldChange, Json, Plan, Unmanaged
from lmsconf.render import drift_words, phrases


class Addressed(Protocol):
    """Something about one resource."""

    @property
    def address(self) -> Address: ...


class Risk(Enum):
    """What a reviewer looks at first, and what last. The value is what a section of such changes is called."""

    DELETED = "Deleted"
    REPLACED = "Replaced"
    TAKEN = "Taken away"
    CHANGED = "Changed"
    CREATED = "Created"

    @property
    def safe(self) -> bool:
        """Whether nobody loses anything."""
        return self in (Risk.CHANGED, Risk.CREATED)


_BY_ACTION = {Action.DELETE: Risk.DELETED, Action.REPLACE: Risk.REPLACED, Action.CREATE: Risk.CREATED}


def risk(change: Change) -> Risk:
    """How much a change asks for a second look."""
    return _BY_ACTION.get(change.action) or (Risk.TAKEN if taken(change) else Risk.CHANGED)


def taken(change: Change) -> int:
    """How many items are taken out of lists of a resource that stays."""
    return sum(len(field.removed) for field in change.fields) if change.action is Action.UPDATE else 0


def by_risk(changes: Iterable[Change]) -> Mapping[Risk, Sequence[Change]]:
    """The changes of each risk that there is, in the plan's order, the riskiest first."""
    found: dict[Risk, list[Change]] = {one: [] for one in Risk}
    for change in changes:
        found[risk(change)].append(change)
    return {one: group for one, group in found.items() if group}


@dataclass(frozen=True, slots=True)
class Told:
    """One key in words. A single value has at most one item on each side.

    note: what is said beside the key: how many items come and go.
    """

    path: str
    gone: tuple[str, ...] = ()
    come: tuple[str, ...] = ()
    note: str = ""


def told(change: Change) -> Iterator[Told]:
    """What changes in a resource, or all that comes or goes with it beyond what its title says."""
    if change.action is Action.CREATE:
        yield from (Told(path, come=items) for path, items in _whole(change, change.after))
        yield from (Told(key, note=phrases.SERVICE_DEFAULT) for key in change.defaults)
    elif change.action is Action.DELETE:
        yield from (Told(path, gone=items) for path, items in _whole(change, change.before) if items != _EMPTY)
    else:
        yield from map(_field, change.fields)


_EMPTY = (phrases.NOTHING,)
"""What was empty is no loss."""


def _whole(change: Change, form: Json) -> Iterator[tuple[str, tuple[str, ...]]]:
    titled = phrases.told_by_title(change.address)
    for path, value in phrases.leaves(form):
        if value is not None and path.partition(".")[0] not in titled:
            several = isinstance(value, list) and value
            yield path, tuple(map(phrases.words, value)) if several else (phrases.quoted(value),)  # type: ignore[arg-type]  # a list


def _field(field: FieldChange) -> Told:
    if field.added or field.removed:
        come, gone = tuple(map(phrases.words, field.added)), tuple(map(phrases.words, field.removed))
        return Told(field.path, gone, come, phrases.set_counts(field))
    return Told(field.path, (phrases.quoted(field.before),), (phrases.quoted(field.after),))


def differs(finding: Finding) -> Iterator[Told]:
    """In what the workspace is not as declared: what the manifests say goes first, what it has instead comes."""
    for one in finding.fields:
        if one.missing or one.extra:
            note = drift_words.field(one).removeprefix(f"{one.path}: ")
            yield Told(one.path, tuple(map(phrases.words, one.missing)), tuple(map(phrases.words, one.extra)), note)
        else:
            yield Told(one.path, (phrases.quoted(one.declared),), (phrases.quoted(one.live),))


def ways_out(finding: Finding) -> Iterator[tuple[str, str]]:
    """What may be done about a finding, and the line that does it."""
    if finding.restore is not None:
        first = "".join(f"; first write {line} beside its name" for line in drift_words.earlier_name(finding))
        yield f"Put it back as the manifests say{first}", finding.restore
    if finding.accept is not None:
        yield "Take it over into the manifests", finding.accept


def kinds(found: Iterable[Addressed]) -> str:
    """`3 assignments, 1 group`: how many resources of each kind there are, in the order of the report."""
    counts = Counter(one.address.kind for one in found)
    return ", ".join(phrases.count(number, phrases.noun(kind)) for kind, number in counts.items())


def tally(changes: Iterable[Change]) -> Mapping[str, Counter[Action | str]]:
    """For each kind, how many resources each action is done to; `taken`: how many items leave those that stay."""
    found: dict[str, Counter[Action | str]] = {}
    for change in changes:
        counts = found.setdefault(change.address.kind, Counter())
        counts[change.action] += 1
        counts["taken"] += taken(change)
    return found


def removals(plan: Plan) -> int:
    """How much is taken from people and lists, as the guard of that name counts it."""
    totals = [guard.total for guard in plan.guards if guard.name == "removals"]
    return sum(filter(None, totals or (measure.taken for measure in plan.measures if measure.guard == "removals")))


def worst_first(problems: Iterable[Problem]) -> Sequence[Problem]:
    """Errors, then warnings, then notes."""
    order = list(Severity)
    return sorted(problems, key=lambda problem: order.index(problem.severity))


def apply_command(plan: Plan, digest: str) -> str | None:
    """The line that applies exactly this plan; None where that needs the plan's file, or cannot be."""
    refused = any(problem.is_error for problem in plan.all_problems)
    if not plan.changes or plan.offline or plan.partial or plan.left_out or refused:
        return None
    return " ".join([plan.command, f"--expect-digest {digest}", *allowances(plan.guards)])


def present(groups: Iterable[Unmanaged]) -> Iterator[Unmanaged]:
    """The kinds of which something is not managed."""
    return (group for group in groups if group.addresses or group.left_alone)
