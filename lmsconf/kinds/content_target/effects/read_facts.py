"""Read the members and the content of audiences, as far as a plan affects them or a question uses them.

Everything that the plan itself has read is taken from there. Members of smart groups come only with
`GET /smart-groups/{smartGroupId}?includeMembers=true`, and assignments only by content (API specification, Smart
Groups, Content Targeting), so a change of members costs a request for each content.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from lmsconf.api.spec.operations import CATALOG, CUSTOM_FIELDS, MANUAL_GROUPS, SMART_GROUPS
from lmsconf.kinds.content_target.effects.facts import AccessFacts, LiveSmartGroup, affected_contents, moved_audiences
from lmsconf.kinds.content_target.effects.query import ResolvedQuery
from lmsconf.kinds.content_target.effects.scope import AccessScope, AudienceKey
from lmsconf.kinds.content_target.read import TargetsRead
from lmsconf.kinds.content_target.target_requests import read_targets
from lmsconf.kinds.content_target.types import ContentRow, TargetRow, parse_content_row
from lmsconf.kinds.custom_field.types import parse_field_row
from lmsconf.kinds.manual_group.read import read_group_members
from lmsconf.kinds.manual_group.types import parse_group_row
from lmsconf.kinds.shared.kind_names import CONTENT, CUSTOM_FIELD, GROUP, SMART_GROUP
from lmsconf.kinds.shared.response_json import id_set, require_object
from lmsconf.kinds.smart_group.types import SmartGroupRow, parse_detail_row, parse_listed_row
from lmsconf.kinds.user.answer_index import read_answer_index
from lmsconf.model.address import RemoteId
from lmsconf.model.api import ListOperation
from lmsconf.model.names import LOCK_PREFIX
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.reading import ReadContext, keep_keys, sorted_listing


class _Reader(Struct):
    """Reads what the plan has not read yet. incomplete: reasons why listings may lack rows."""

    reading: ReadContext
    snapshot: Snapshot
    incomplete: list[str] = field(default_factory=list)

    def listing(self, name: str, operation: ListOperation, parse: Any, *keys: str) -> Listing[Any]:
        """Return a listing of the plan, or read it."""
        listing = self.snapshot.listings.get(name)
        if listing is None:
            rows = self.reading.api.rows(operation, keep=keep_keys(*keys) if keys else None)
            listing = sorted_listing(map(parse, rows.rows), rows.incomplete)
        if listing.incomplete is not None:
            self.incomplete.append(f"the listing of {name.replace('_', ' ')}s is not complete: {listing.incomplete}")
        return listing


def read_access_facts(
    reading: ReadContext, snapshot: Snapshot, scope: AccessScope, query: ResolvedQuery
) -> AccessFacts:
    """Read what the effects of a plan rest on, beyond what `snapshot`, which the reading returned, holds.

    query: what is read for questions, beside the effects.
    """
    reader = _Reader(reading, snapshot)
    people = read_answer_index(reading)
    if people.incomplete is not None:
        reader.incomplete.append(f"the listing of people is not complete: {people.incomplete}")
    catalog = reader.listing(CONTENT, CATALOG, parse_content_row, "courseId", "name", "contentType")
    groups = reader.listing(GROUP, MANUAL_GROUPS, parse_group_row, "groupId", "name")
    smart = reader.listing(SMART_GROUP, SMART_GROUPS, parse_listed_row, "smartGroupId", "name")
    fields = reader.listing(CUSTOM_FIELD, CUSTOM_FIELDS, parse_field_row)
    contents = {row.id: row for row in catalog.rows}
    asked = {id for id, row in contents.items() if query.wants_content(row.name)}
    targets = _targets(reading, scope, contents, asked)
    facts = AccessFacts(
        people=people,
        fields=fields.rows,
        contents={row.id: row.name for row in catalog.rows},
        groups={row.id: row for row in groups.rows if not row.name.startswith(LOCK_PREFIX)},
        smart_groups={row.id: row for row in smart.rows},
        members={},
        conditions={},
        targets=targets,
        everyone=reading.call_templates.behaviour("content-targets.everyone"),
        planned=snapshot.rows(TargetRow),
        groups_incomplete=groups.incomplete or smart.incomplete,
        incomplete=tuple(reader.incomplete),
    )
    return _with_members(reading, scope, facts, query, asked)


def _targets(
    reading: ReadContext, scope: AccessScope, contents: Mapping[RemoteId, ContentRow], asked: Collection[RemoteId]
) -> dict[RemoteId, tuple[TargetRow, ...]]:
    """Return the targets of the contents that can be affected: all, if an audience changes that has existed before.

    asked: contents whose targets are read in any case.
    """
    wanted = {change.content for change in scope.assignments} | set(asked)
    live = any(isinstance(key, str) for key in (*scope.groups, *scope.smart_groups))
    if live or scope.changes_accounts or scope.changes_answers:
        wanted |= contents.keys()
    known = reading.shared_state(TargetsRead).rows
    rest = [contents[id] for id in sorted(wanted - known.keys()) if id in contents]
    read = read_targets(reading.api, rest)
    return {id: known[id] for id in wanted & known.keys()} | {id: rows for id, (_, rows) in read.items()}


def _with_members(
    reading: ReadContext, scope: AccessScope, facts: AccessFacts, query: ResolvedQuery, asked: Collection[RemoteId]
) -> AccessFacts:
    """Return facts with the audiences of the contents that can be affected or are asked for, and those that change."""
    smart: dict[RemoteId, LiveSmartGroup] = {}
    if scope.changes_answers or scope.changes_accounts:
        # Any smart group may have a condition on what changes.
        smart = _smart_groups(reading, facts.smart_groups.values())
    facts = replace(facts, conditions=smart)
    moved = moved_audiences(scope, facts)
    affected = affected_contents(scope, facts)
    wanted = {facts.audience_of(row) for id in affected for row in facts.targets.get(id, ())} | moved
    wanted |= {change.audience for change in scope.assignments}
    wanted |= {(GROUP, id) for id in _groups_of_leaving(reading, scope, facts)}
    questioned: set[AudienceKey | None] = {facts.audience_of(row) for id in asked for row in facts.targets.get(id, ())}
    questioned |= {*query.keys(facts)}
    both = wanted | questioned
    ids = {kind: sorted(str(id) for of, id in filter(None, both) if of == kind) for kind in (GROUP, SMART_GROUP)}
    groups = [facts.groups[RemoteId(id)] for id in ids[GROUP] if id in facts.groups]
    rest = [RemoteId(id) for id in ids[SMART_GROUP] if id in facts.smart_groups and id not in smart]
    further = {(kind, RemoteId(str(id))) for kind, id in filter(None, questioned - wanted)}
    return replace(
        facts,
        members=read_group_members(reading, groups, facts.people.positions.keys()),
        conditions=smart | _smart_groups(reading, [facts.smart_groups[id] for id in rest]),
        affected=affected,
        beyond=frozenset(further - {(SMART_GROUP, id) for id in smart}),
    )


def _groups_of_leaving(reading: ReadContext, scope: AccessScope, facts: AccessFacts) -> Collection[RemoteId]:
    """Return the manual groups that people leave because they are archived: all, if the service does not tell.

    An id in `memberOfGroups` may be that of a smart group; a manual group of that id is then read in vain.
    """
    if not scope.leaving or len(scope.leaving) >= len(facts.groups):
        return facts.groups if scope.leaving else ()
    found: set[RemoteId] = set()
    for answer in reading.api.each("users.get", [({"userId": id}, {}) for id in scope.leaving]):
        groups = require_object(answer, "a person").get("memberOfGroups")
        if not isinstance(groups, list):
            return facts.groups
        found |= {RemoteId(str(group.get("groupId"))) for group in groups if isinstance(group, dict)}
    return found


def _smart_groups(reading: ReadContext, rows: Iterable[SmartGroupRow]) -> dict[RemoteId, LiveSmartGroup]:
    listed = list(rows)
    answers = reading.api.each(
        "smart-groups.get", [({"smartGroupId": row.id}, {"includeMembers": True}) for row in listed]
    )
    groups: dict[RemoteId, LiveSmartGroup] = {}
    for row, answer in zip(listed, answers, strict=True):
        data = require_object(answer, "a smart group")
        members = id_set(data, "members") if data.get("members") is not None else None
        groups[row.id] = LiveSmartGroup(parse_detail_row(row, answer), members)
    return groups
