"""Snapshot → manifests whose plan on the same snapshot is empty."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import cast

from lmsconf.errors import LmsconfError, Problem, Severity
from lmsconf.export.file_layout import files, told
from lmsconf.export.live_names import LiveNames, Spoken, spoken_of
from lmsconf.export.rows import SECTIONS, Saying, Unsaid
from lmsconf.export.verify_empty_plan import Trial, is_owned_loss
from lmsconf.kinds.shared.names import USER
from lmsconf.kinds.user.values import PersonRow
from lmsconf.model.address import Address
from lmsconf.model.names import matches
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Snapshot
from lmsconf.model.values import Change, Json, Plan
from lmsconf.planner.context import Terms
from lmsconf.planner.kind import AnyKind
from lmsconf.planner.plan import Manifests, make_plan

USUAL = tuple(kind for kind in SECTIONS if kind != USER)
"""Kinds exported by default: all but people, which other systems manage."""


_TOLD = 20
"""How many problems of one sort are reported individually."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Manifests of a live workspace.

    files: section → text. said: kind → number of entries. problems: what could not be exported. left_alone: number of
    rows that the project ignores. declared: number of rows that existing manifests declare.
    """

    files: Mapping[str, str]
    said: Mapping[str, int]
    problems: tuple[Problem, ...]
    left_alone: int
    declared: int


def export(
    snapshot: Snapshot,
    kinds: Mapping[str, AnyKind],
    policy: Policy,
    terms: Terms,
    *,
    only: Collection[str] = USUAL,
    existing: Manifests | None = None,
) -> Export:
    """Export the rows of some kinds that existing manifests do not declare.

    Raises LmsconfError for a snapshot in which such a kind is incomplete, and ProblemsFound if the existing manifests
    cannot be planned.
    """
    _refuse_parts(snapshot, only)
    policy = replace(policy, only=(), excluded=(), additive=False)
    existing = existing or Manifests()

    def planned(manifests: Manifests) -> Plan:
        return make_plan(kinds, manifests, snapshot, policy, terms, created_at=snapshot.taken_at, offline=True)

    planned(existing)  # reports problems of the existing manifests alone
    live = LiveNames(snapshot, kinds, policy, terms)
    spoken = spoken_of(existing, snapshot, kinds, policy, terms)
    trial = Trial(kinds, existing, policy.timezone, planned)
    found = [one for kind in SECTIONS if kind in only for one in SECTIONS[kind](live)]
    new = [one for one in found if one.id not in spoken.ids.get(one.address.kind, ())]
    wanted = [one for one in new if not matches(str(one.address), policy.leave_alone)]
    trial.unsaid.extend(one for one in wanted if isinstance(one, Unsaid))
    sayings = [_here(one, spoken, policy, trial) for one in wanted if isinstance(one, Saying)]
    said, plan = trial.passed(one for one in sayings if one is not None)
    return Export(
        files=files(said, trial.unsaid, kinds, snapshot.workspace),
        said={kind: sum(one.address.kind == kind for one in said) for kind in SECTIONS if kind in only},
        problems=(
            *_first(_unsaid(trial.unsaid)),
            *_first(_notes(said)),
            *_unread(said, snapshot),
            *_first(_losses(plan)),
        ),
        left_alone=len(new) - len(wanted),
        declared=len(found) - len(new),
    )


def _refuse_parts(snapshot: Snapshot, only: Collection[str]) -> None:
    for kind in only:
        if (why := snapshot.of(kind).incomplete) is not None:
            raise LmsconfError(
                f"what kind {kind} holds was not read whole: {why}",
                hint="An export of a part would pass for the whole. Try again, or leave the kind out with --kind.",
            )


def _here(one: Saying, spoken: Spoken, policy: Policy, trial: Trial) -> Saying | None:
    """Limit the entry to this workspace if others declare its address; None if this one does, reported as left out."""
    if one.address in spoken.here:
        why = "the manifests have an entry of that name, which means something else"
        trial.unsaid.append(Unsaid(address=one.address, id=one.id, why=why))
        return None
    if one.address not in spoken.elsewhere:
        return one
    return replace(one, body={**one.body, "only_in": cast(Json, [policy.workspace])})


def _unsaid(unsaid: Iterable[Unsaid]) -> Iterator[Problem]:
    for one in unsaid:
        yield _warning("export/left-out", f"left out: {told(one)}", one.address, "It stays as it is, unmanaged.")


def _notes(said: Iterable[Saying]) -> Iterator[Problem]:
    for one in said:
        for note in one.notes:
            yield _warning("export/in-part", f"{one.address}: {note}", one.address, None)


def _unread(said: Iterable[Saying], snapshot: Snapshot) -> Iterator[Problem]:
    """Note people whose language or applications are unknown: only the response for a single user contains them."""
    people = {str(row.id): row for row in snapshot.rows(PersonRow)}
    lacking = [one for one in said if one.address.kind == USER and None in _single(people[one.id])]
    if lacking:
        who = "1 person" if len(lacking) == 1 else f"{len(lacking):,} people"
        yield Problem(
            code="export/unread",
            message=f"language and applications of {who} are left out: the list API omits these fields",
            severity=Severity.NOTE,
            hint="`lmsconf api GET /users/ID` shows those of one. Unsaid, they stay as they are, unmanaged.",
        )


def _single(row: PersonRow) -> tuple[object, object]:
    return row.language, row.applications


def _first(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield the first _TOLD problems, and the number of the others."""
    every = list(problems)
    yield from every[:_TOLD]
    if len(every) > _TOLD:
        more = f"and {len(every) - _TOLD:,} more like the last; the files say which"
        yield replace(every[_TOLD], message=more, hint=None, address=None)


def _losses(plan: Plan) -> Iterator[Problem]:
    """Warn about resources that are owned and in no manifest: the next plan would delete them."""
    for change in plan.changes:
        if is_owned_loss(change):
            yield _loss(change)


def _loss(change: Change) -> Problem:
    message = f"{change.address}: the project owns it and no manifest declares it, so a plan would delete it"
    hint = f'Export its kind too, or add it to `leave_alone:` in the project file: "{_pattern(change.address)}"'
    return _warning("export/owned", message, change.address, hint)


def _pattern(address: Address) -> str:
    """Return a shell pattern that matches the address and has only printable characters."""
    return "".join(char if char.isprintable() and char not in '*?["\\' else "?" for char in str(address))


def _warning(code: str, message: str, address: Address, hint: str | None) -> Problem:
    return Problem(code=code, message=message, severity=Severity.WARNING, address=str(address), hint=hint)
