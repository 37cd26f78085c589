"""What was read to know who has what, and which audiences and contents the changes of a plan can affect."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from lmsconf.kinds.content_target.effects.scope import EVERYONE_KEY, AccessScope, AudienceKey
from lmsconf.kinds.content_target.types import ContentRow, TargetRow, kind_from_target_type, may_be_for
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.manual_group.types import GroupRow
from lmsconf.kinds.shared.kind_names import CONTENT, CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.kinds.smart_group.types import SmartGroupRow
from lmsconf.kinds.user.answer_index import AnswerIndex, IndexedPerson
from lmsconf.kinds.user.types import PersonRow
from lmsconf.model.address import RemoteId
from lmsconf.model.names import normalize_name
from lmsconf.model.snapshot import Snapshot
from lmsconf.support.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class LiveSmartGroup:
    """A smart group with its conditions, and its members, None if the service does not return them."""

    row: SmartGroupRow
    members: frozenset[RemoteId] | None


@dataclass(frozen=True, kw_only=True)
class AccessFacts:
    """What was read to know who has what. incomplete: why something that all numbers rest on may be missing.

    targets: the live targets of every content that was read. affected: the contents whose people may change.
    beyond: (kind, id) of groups whose members were read only because they are asked for.
    """

    people: AnswerIndex
    fields: tuple[FieldRow, ...]
    contents: Mapping[RemoteId, str]
    groups: Mapping[RemoteId, GroupRow]
    smart_groups: Mapping[RemoteId, SmartGroupRow]
    members: Mapping[RemoteId, frozenset[RemoteId]]
    conditions: Mapping[RemoteId, LiveSmartGroup]
    targets: Mapping[RemoteId, tuple[TargetRow, ...]]
    everyone: str
    affected: frozenset[RemoteId] = frozenset()
    incomplete: tuple[str, ...] = ()
    beyond: frozenset[tuple[str, RemoteId]] = frozenset()

    def of_plan(self) -> AccessFacts:
        """Return the same without the members of groups that the changes of the plan do not affect."""
        if not self.beyond:
            return self
        return replace(
            self,
            members={id: held for id, held in self.members.items() if (GROUP, id) not in self.beyond},
            conditions={id: held for id, held in self.conditions.items() if (SMART_GROUP, id) not in self.beyond},
            beyond=frozenset(),
        )

    def live_ids(self, kind: str, name: str) -> list[RemoteId]:
        """Return the ids of the live groups or smart groups of a name."""
        return sorted(row.id for row in self.audiences(kind) if normalize_name(row.name) == name)

    def audiences(self, kind: str) -> Sequence[GroupRow | SmartGroupRow]:
        """Return the live groups or smart groups."""
        rows: Mapping[RemoteId, GroupRow | SmartGroupRow] = self.groups if kind == GROUP else self.smart_groups
        return list(rows.values())

    def audience_of(self, row: TargetRow) -> tuple[str, RemoteId] | None:
        """Return the kind and id of a target's audience; None if its id is that of several kinds, or of none.

        A target for a group or a person who is not listed any more has an audience without people.
        """
        if row.target == self.everyone:
            return EVERYONE_KEY
        implied, holders = kind_from_target_type(row.type), self.holders(row)
        if implied is not None and (implied in holders or not holders):
            return implied, row.target
        if len(holders) > 1:
            # As the plan itself does: the type is that of other targets, or the label is the name.
            holders = holders & self.types.get(row.type, frozenset()) or holders
        if len(holders) > 1:
            holders = {kind for kind in holders if row.label and row.label == self._name(kind, row.target)}
        return (next(iter(holders)), row.target) if len(holders) == 1 else None

    def may_be_in(self, row: TargetRow, audiences: Collection[AudienceKey]) -> bool:
        """Return whether a target is for one of these audiences, or may be."""
        audience = self.audience_of(row)
        if audience is not None:
            return audience in audiences
        return any((kind, row.target) in audiences for kind in self.holders(row))

    def holders(self, row: TargetRow) -> set[str]:
        """Return the kinds of which one has the id of a target, and may have its type."""
        known = ((GROUP, self.groups), (SMART_GROUP, self.smart_groups), (USER, self.people.positions))
        return {kind for kind, ids in known if row.target in ids and may_be_for(kind, row.type)}

    def _name(self, kind: str, id: RemoteId) -> str:
        if kind == USER:
            return self.people.people[self.people.positions[id]].email
        return (self.groups if kind == GROUP else self.smart_groups)[id].name

    @cached_property
    def types(self) -> Mapping[str, frozenset[str]]:
        """`targetType` → the kinds of the targets with that type whose id is that of one kind only."""
        types: defaultdict[str, set[str]] = defaultdict(set)
        for rows in self.targets.values():
            for row in rows:
                if len(holders := self.holders(row)) == 1:
                    types[row.type] |= holders
        return {type: frozenset(kinds) for type, kinds in types.items() if len(kinds) == 1}


def facts_from_snapshot(snapshot: Snapshot, scope: AccessScope, everyone: str) -> AccessFacts:
    """Return what a snapshot file holds; it lacks the members of smart groups."""
    incomplete = [] if snapshot.redaction is None else ["the snapshot is redacted"]
    for name in (USER, CONTENT, GROUP, SMART_GROUP, CUSTOM_FIELD, CONTENT_TARGET):
        if (reason := snapshot.of(name).incomplete) is not None:
            incomplete.append(f"the snapshot has no complete listing of {name.replace('_', ' ')}s: {reason}")
    people = tuple(
        IndexedPerson(
            row.id,
            row.email,
            row.archived,
            None if row.answers is None else tuple((answer.field, answer) for answer in row.answers),
        )
        for row in snapshot.rows(PersonRow)
    )
    targets: dict[RemoteId, list[TargetRow]] = {row.id: [] for row in snapshot.rows(ContentRow)}
    for row in snapshot.rows(TargetRow):
        targets.setdefault(row.content, []).append(row)
    smart = {row.id: row for row in snapshot.rows(SmartGroupRow)}
    facts = AccessFacts(
        people=AnswerIndex(people, has_answers=True),
        fields=snapshot.rows(FieldRow),
        contents={row.id: row.name for row in snapshot.rows(ContentRow)},
        groups={row.id: row for row in snapshot.rows(GroupRow)},
        smart_groups=smart,
        members={row.id: row.members for row in snapshot.rows(GroupRow) if row.members is not None},
        conditions={id: LiveSmartGroup(row, None) for id, row in smart.items()},
        targets={id: tuple(rows) for id, rows in targets.items()},
        everyone=everyone,
        incomplete=tuple(incomplete),
    )
    return replace(facts, affected=affected_contents(scope, facts))


def moved_audiences(scope: AccessScope, facts: AccessFacts) -> frozenset[AudienceKey]:
    """Return the groups and smart groups whose membership may change."""
    all_smart_groups, fields = scope.changes_accounts, scope.fields
    groups: set[AudienceKey] = {(GROUP, id) for id in scope.groups}
    smart: set[AudienceKey] = {(SMART_GROUP, id) for id in scope.smart_groups}
    for id, group in facts.conditions.items():
        if all_smart_groups or any(condition.field in fields for condition in group.row.conditions or ()):
            smart.add((SMART_GROUP, id))
    return frozenset(groups | smart)


def affected_contents(scope: AccessScope, facts: AccessFacts) -> frozenset[RemoteId]:
    """Return the contents whose assignments change, and those that are assigned to an audience that may change."""
    if scope.changes_accounts:
        return frozenset(facts.targets)
    moved = moved_audiences(scope, facts)
    assigned = (id for id, rows in facts.targets.items() if any(facts.may_be_in(row, moved) for row in rows))
    return frozenset([*(change.content for change in scope.assignments), *assigned])
