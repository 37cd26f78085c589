"""Whose id a live assignment has: one answer for the plan, its effects, `keep`, exports and redacted files.

Kinds may share ids, and the values of `targetType` are not documented (API specification, Content Targeting).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from lmsconf.kinds.assignment.types import (
    TargetRow,
    assignment_form,
    audience_entry,
    kind_from_target_type,
    may_be_for,
    readable_time,
    unresolved_audience_label,
)
from lmsconf.kinds.shared.kind_names import CONTENT, EVERYONE, GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.canonical_json import Json
from lmsconf.model.forms import Form
from lmsconf.model.names import normalize_email

EVERYONE_KEY: Final = ("everyone", RemoteId(""))
"""The audience of all people, as a kind and an id."""


class Audiences(Struct, frozen=True):
    """The live groups, smart groups and people with the ids of targets.

    names: kind → id → name, of people the e-mail. Without people, an id that no group has is that of a person.
    types: `targetType` → the kinds of the targets with that type whose id is that of one kind only.
    incomplete: why a group may be missing.
    """

    names: Mapping[str, Mapping[RemoteId, str]]
    everyone: str
    types: Mapping[str, frozenset[str]]
    incomplete: str | None

    def candidates(self, row: TargetRow) -> list[str]:
        """Return the kinds of which one has the id of a target, and may have its type."""
        return _candidates(self.names, row)

    def of(self, row: TargetRow) -> tuple[str, RemoteId] | None:
        """Return the kind and id of a target's audience; None if its id is that of several kinds, or of none.

        Words in its type decide, then other targets of the type, then its label. A target for a group or a person who
        is not listed any more has an audience without people.
        """
        if row.target == self.everyone:
            return EVERYONE_KEY
        kinds, implied = self.candidates(row), kind_from_target_type(row.type)
        if implied in kinds or (implied is not None and not kinds):
            return implied, row.target
        if not kinds and USER not in self.names:
            return USER, row.target
        learnt = self.types.get(row.type, frozenset())
        if len(kinds) > 1 and len(learnt) == 1:
            kinds = [kind for kind in kinds if kind in learnt]
        if len(kinds) > 1 or (kinds == [USER] and implied is None and self.incomplete is not None):
            kinds = [kind for kind in kinds if self._is_label(kind, row)]
        return (kinds[0], row.target) if len(kinds) == 1 else None

    def _is_label(self, kind: str, row: TargetRow) -> bool:
        """Whether the label of a target is the name of the audience of a kind with its id."""
        name, label = self.names[kind][row.target], row.label
        return bool(label) and (name == label if kind != USER else normalize_email(name) == normalize_email(label))


def audiences_among(
    rows: Mapping[str, Iterable[tuple[RemoteId, str]]],
    targets: Iterable[TargetRow],
    everyone: str,
    *,
    planned: Iterable[TargetRow] = (),
    incomplete: str | None = None,
) -> Audiences:
    """Return the audiences that targets may be for. rows: kind → ids and names of all that are live.

    planned: the targets from which a plan learnt what their types mean, so that its effects find the same.
    """
    targets = list(targets)
    wanted = {row.target for row in targets}
    names = {kind: {id: name for id, name in pairs if id in wanted} for kind, pairs in rows.items()}
    return Audiences(names, everyone, _learn(names, targets) | _learn(names, planned), incomplete)


def _candidates(names: Mapping[str, Mapping[RemoteId, str]], row: TargetRow) -> list[str]:
    return [kind for kind, ids in names.items() if row.target in ids and may_be_for(kind, row.type)]


def _learn(names: Mapping[str, Mapping[RemoteId, str]], rows: Iterable[TargetRow]) -> dict[str, frozenset[str]]:
    """Return every `targetType` with the kinds of its targets that have a single candidate."""
    types: dict[str, set[str]] = {}
    for row in rows:
        kinds, found = types.setdefault(row.type, set()), _candidates(names, row)
        kinds.update(found if len(found) == 1 else ())
    return {type: frozenset(kinds) for type, kinds in types.items()}


def live_audiences(planning: PlanContext) -> Audiences:
    """Return the audiences that the live targets of a plan may be for."""
    if planning.audiences is None:
        snapshot = planning.snapshot
        planning.audiences = audiences_among(
            {
                kind: [(row.id, row.name) for row in snapshot.of(kind).rows]
                for kind in (GROUP, SMART_GROUP, USER)
                if kind != USER or kind in snapshot.listings
            },
            snapshot.rows(TargetRow),
            planning.api_spec.behaviour("content-targets.everyone"),
            incomplete=snapshot.of(GROUP).incomplete or snapshot.of(SMART_GROUP).incomplete,
        )
    return planning.audiences


def resolve_audience(planning: PlanContext, row: TargetRow) -> Address | None:
    """The audience of a live target, None if it is not known, or has no name."""
    key = live_audiences(planning).of(row)
    if key is None or key == EVERYONE_KEY:
        return None if key is None else EVERYONE
    name = planning.registry.name(*key)
    return Address.of(key[0], name) if name else None


def audience_candidates(planning: PlanContext, row: TargetRow) -> list[Address]:
    """Every group, smart group and person with the id of a target, whose type may be for them: kinds may share ids."""
    kinds = live_audiences(planning).candidates(row)
    return [Address.of(kind, name) for kind in kinds if (name := planning.registry.name(kind, row.target))]


def live_entry(planning: PlanContext, row: TargetRow) -> Form:
    """A live target as a manifest entry; an unparsable time is shown verbatim, and an unresolved name as an id."""
    name = planning.registry.name(CONTENT, row.content) or f"content id {row.content}"
    content: Json = {"name": name, "id": row.content} if row.content in planning.shared_content else name
    audience = resolve_audience(planning, row)
    to: Json = unresolved_audience_label(row) if audience is None else audience_entry(audience)
    start, finish = readable_time(row.start), readable_time(row.finish)
    return assignment_form(content, to, row.mandatory, start, finish, planning.policy.timezone)
