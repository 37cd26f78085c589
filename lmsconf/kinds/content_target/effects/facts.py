"""What was read to know who has what, and which audiences and contents the changes of a plan can affect."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.kinds.content_target.audiences import Audiences, audiences_among
from lmsconf.kinds.content_target.effects.scope import AccessScope, AudienceKey
from lmsconf.kinds.content_target.types import ContentRow, TargetRow
from lmsconf.kinds.custom_field.types import FieldRow
from lmsconf.kinds.manual_group.types import GroupRow
from lmsconf.kinds.shared.kind_names import CONTENT, CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP, USER
from lmsconf.kinds.smart_group.types import SmartGroupRow
from lmsconf.kinds.user.answer_index import AnswerIndex, IndexedPerson
from lmsconf.kinds.user.types import PersonRow
from lmsconf.model.address import RemoteId
from lmsconf.model.names import normalize_name
from lmsconf.model.snapshot import Snapshot


class LiveSmartGroup(Struct, frozen=True):
    """A smart group with its conditions, and its members, None if the service does not return them."""

    row: SmartGroupRow
    members: frozenset[RemoteId] | None


class AccessFacts(Struct, frozen=True, kw_only=True, dict=True):
    """What was read to know who has what. incomplete: why something that all numbers rest on may be missing.

    targets: the live targets of every content that was read. planned: those that the plan was made from.
    groups_incomplete: why a group may be missing. affected: the contents whose people may change.
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
    planned: tuple[TargetRow, ...] = ()
    groups_incomplete: str | None = None
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

    @cached_property
    def target_audiences(self) -> Audiences:
        """The audiences that the targets may be for."""
        return audiences_among(
            {
                GROUP: ((row.id, row.name) for row in self.groups.values()),
                SMART_GROUP: ((row.id, row.name) for row in self.smart_groups.values()),
                USER: ((person.id, person.email) for person in self.people.people),
            },
            chain(self.planned, chain.from_iterable(self.targets.values())),
            self.everyone,
            planned=self.planned,
            incomplete=self.groups_incomplete,
        )

    def audience_of(self, row: TargetRow) -> tuple[str, RemoteId] | None:
        """Return the kind and id of a target's audience, as the plan finds it; None if it is not known."""
        return self.target_audiences.of(row)

    def may_be_in(self, row: TargetRow, audiences: Collection[AudienceKey]) -> bool:
        """Return whether a target is for one of these audiences, or may be."""
        audience = self.audience_of(row)
        if audience is not None:
            return audience in audiences
        return any((kind, row.target) in audiences for kind in self.target_audiences.candidates(row))


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
        groups_incomplete=snapshot.of(GROUP).incomplete or snapshot.of(SMART_GROUP).incomplete,
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
