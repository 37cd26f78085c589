"""Content targets: which content is assigned to which audience. Shown to users as assignments.

An assignment is one value: content, audience, `mandatory`, and the window in which the content is visible. The API has
no due date; `visible_until` hides the content (API specification, Content Targeting).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from types import MappingProxyType
from typing import Any, Final, cast

from lmsconf.api.spec.listings import CATALOG
from lmsconf.errors import Problem, SourceLocation
from lmsconf.kinds.content_target import redact
from lmsconf.kinds.content_target.catalog import ContentRow
from lmsconf.kinds.content_target.edits import last_edits
from lmsconf.kinds.content_target.export import (
    REFERENCES,
    absent_assignment,
    content_id,
    entries_by_content,
    target_entries,
)
from lmsconf.kinds.content_target.matching import identify_targets
from lmsconf.kinds.content_target.read import read_assignments, unlisted_groups
from lmsconf.kinds.content_target.steps import ON_EXISTING, read_window, target_deletion, target_grant, target_steps
from lmsconf.kinds.content_target.types import (
    AUDIENCES,
    Assignment,
    TargetRow,
    assignment_form,
    parts_of,
    row_form,
    target_address,
)
from lmsconf.kinds.shared.common import (
    ABOUT,
    NAME,
    ONLY_IN,
    PIN,
    UNTIL,
    absent,
    entry_schema,
    partial_undo,
    pins,
    texts,
)
from lmsconf.kinds.shared.names import CONTENT, CONTENT_TARGET, EDITS, EVERYONE, USER
from lmsconf.kinds.shared.times import BadTime, manifest_time
from lmsconf.model.address import EVERYBODY, Address, RemoteId
from lmsconf.model.api import ListOperation
from lmsconf.model.dependency_graph import Edge
from lmsconf.model.drift import Edit
from lmsconf.model.names import email, in_line, normal
from lmsconf.model.snapshot import HasName, ListedRow, Listing, Snapshot
from lmsconf.model.values import Action, Call, Change, DeleteEntry, DesiredResource, Json, SourceMap, Step, Undo
from lmsconf.planner.context import BeforeAfter, Deletion, Effect, Match, MatchResult, PlanContext
from lmsconf.planner.entries import EntryBody, EntryItems, ExportedEntry, UnexportableRow
from lmsconf.planner.grants import GrantCheck
from lmsconf.planner.kind import Kind, ManifestEntry
from lmsconf.planner.live_names import LiveNames
from lmsconf.planner.reading import ReadContext
from lmsconf.planner.redaction import Entry, RedactionContext, Report, RestoreContext

_MANDATORY: dict[str, Json] = {"type": "boolean", "description": "Required of people; left out: false."}
_FROM: dict[str, Json] = {
    "type": ["string", "null"],
    "x-time": True,
    "description": "When it can be seen first; a date means its first second. Left out or null: always.",
}
_UNTIL: dict[str, Json] = {
    "type": ["string", "null"],
    "x-time": True,
    "description": "When it is hidden; a date means its last second. Not a due date. Left out or null: never.",
}
_VALUE: dict[str, Json] = {"mandatory": _MANDATORY, "visible_from": _FROM, "visible_until": _UNTIL}


def _audience(key: str, value: Json, more: Mapping[str, Json]) -> dict[str, Json]:
    return entry_schema({key: value, **more}, [key], f"The audience: {key}.")


def _named(kind: str) -> dict[str, Json]:
    return {**NAME, "x-person": True} if kind == USER else NAME


def _assign_to(more: Mapping[str, Json]) -> dict[str, Json]:
    return {
        "type": "array",
        "minItems": 1,
        "description": "Who gets the content.",
        "items": {
            "oneOf": [
                {"type": "string", "enum": ["everyone"], "description": "Short for {everyone: true}."},
                *(_audience(key, _named(kind), more) for key, kind in AUDIENCES.items()),
                _audience("everyone", {"const": True}, more),
            ]
        },
    }


_SINGLE_CONTENT: Json = {
    "oneOf": [NAME, entry_schema({"name": NAME, "id": PIN}, ["name"], "Content that is pinned to an id.")]
}
_CONTENT: dict[str, Json] = {
    "description": "The content by its name, or a list of contents that are all assigned alike.",
    "oneOf": [
        NAME,
        entry_schema({"name": NAME, "id": PIN}, ["name"], "Content that is pinned to an id."),
        {"type": "array", "items": _SINGLE_CONTENT, "minItems": 1},
    ],
}


@dataclass(frozen=True, slots=True)
class Below:
    """The SourceMap of one audience of an entry; `content` is located in the entry itself."""

    places: SourceMap
    path: tuple[str | int, ...]

    def at(self, *path: str | int) -> SourceLocation:
        return self.places.at(*path) if path[:1] == ("content",) else self.places.at(*self.path, *path)

    def find(self, text: str, *path: str | int) -> SourceLocation:
        return self.places.find(text, *self.path, *path)


class ContentTargetKind(Kind[Assignment, TargetRow]):
    """The kind `content_target`."""

    name = CONTENT_TARGET
    section = "content_targets"
    noun = "assignment"
    plural = "assignments"
    is_relation = True
    rank = 4
    reports_people = True
    row_type = TargetRow
    ownership_schema: Mapping[str, Json] | None = {
        "enum": ["declared_content", "all"],
        "description": "All assignments of any content that an entry under content_targets names, or all there are; "
        "absent alone owns none.",
    }
    listing_nouns: Mapping[str, tuple[str, str]] = {
        CONTENT: ("content", "contents"),
        EDITS: ("assignment with its last edit", "assignments with their last edits"),
    }
    title_keys = frozenset({"content", "assign_to"})
    example = "content_target/GDPR basics -> everyone"
    update_hint = ON_EXISTING
    catalogs: Mapping[str, ListOperation] = {CONTENT: CATALOG}
    operations = (
        "users.list",
        "users.extended-info",
        "manual-groups.list",
        "smart-groups.list",
        "content.list",
        "content-targets.list",
        "content-targets.create",
        "content-targets.delete",
    )
    row_types = (ContentRow, TargetRow)
    schema = entry_schema(
        {"content": _CONTENT, **_VALUE, "assign_to": _assign_to(_VALUE), "only_in": ONLY_IN, "about": ABOUT},
        ["content", "assign_to"],
        "Assignments: content and who gets it.",
    )
    absent_schema = entry_schema(
        {"content": _CONTENT, "assign_to": _assign_to({}), "until": UNTIL, "only_in": ONLY_IN},
        ["content", "assign_to"],
        "Assignments to take away if they are there.",
    )

    def parse(self, entry: ManifestEntry) -> Iterator[DesiredResource[Assignment]]:
        """Yield one assignment for each content and audience of the entry; report bad times."""
        only_in = entry.body.get("only_in")
        for content, content_pins in _contents(entry.body["content"]):
            for position, item in enumerate(cast("list[Json]", entry.body["assign_to"])):
                spec = self._assignment(entry, content, content_pins, position, item)
                if spec is None:
                    continue
                yield DesiredResource(
                    address=target_address(content, spec.audience),
                    spec=spec,
                    places=Below(entry.places, ("assign_to", position)),
                    only_in=frozenset(texts(only_in)) if only_in is not None else None,
                    about=cast("Mapping[str, Json] | None", entry.body.get("about")),
                )

    def _assignment(
        self, entry: ManifestEntry, content: str, content_pins: Mapping[str, str], position: int, item: Json
    ) -> Assignment | None:
        audience: Mapping[str, Json] = item if isinstance(item, dict) else {}
        at = ("assign_to", position)
        start = _moment(entry, audience, at, "visible_from", end_of_day=False)
        finish = _moment(entry, audience, at, "visible_until", end_of_day=True)
        if start is not None and finish is not None and finish <= start:
            key = "visible_until"
            entry.report(
                Problem(
                    code="content-target/window",
                    message=f"{content}: it would be hidden before it can be seen",
                    hint="`visible_until` must be later than `visible_from`.",
                    source=entry.places.at(*at, key) if key in audience else entry.places.at(key),
                )
            )
            return None
        mandatory = audience.get("mandatory", entry.body.get("mandatory", False))
        return Assignment(content, _to(item), bool(mandatory), start, finish, content_pins)

    def parse_absent(self, entry: ManifestEntry) -> Iterator[DeleteEntry[Any]]:
        """Yield the assignments that an `absent` entry deletes."""
        for content, content_pins in _contents(entry.body["content"]):
            for item in cast("list[Json]", entry.body["assign_to"]):
                to = _to(item)
                spec = Assignment(content, to, False, None, None, content_pins)
                yield absent(entry, target_address(content, to), spec)

    def dependencies(self, declared: DesiredResource[Assignment]) -> list[Address]:
        """Its audience."""
        return [declared.spec.audience]

    def match(
        self, planning: PlanContext, declared: Sequence[DesiredResource[Assignment]], absent: Sequence[DeleteEntry[Any]]
    ) -> MatchResult[Assignment, TargetRow]:
        """Match by content and audience."""
        return identify_targets(planning, declared, absent)

    def diff(self, planning: PlanContext, match: Match[Assignment, TargetRow]) -> BeforeAfter | None:
        """Compare `mandatory` and the window; an assignment is one value, so an omitted key means its default.

        None, with a problem, if a live time cannot be parsed.
        """
        row = match.row
        spec = match.declared.spec
        after = assignment_form(spec, planning.policy)
        if row is None:
            return BeforeAfter(before=None, after=after)
        window = read_window(planning, row, match.declared)
        if window is None:
            return None
        live = replace(spec, mandatory=row.mandatory, visible_from=window[0], visible_until=window[1])
        return BeforeAfter(before=assignment_form(live, planning.policy), after=after)

    def state_before_delete(self, planning: PlanContext, deletion: Deletion[TargetRow]) -> BeforeAfter:
        """The live assignment; a time that cannot be parsed is shown verbatim."""
        row = deletion.row
        form = row_form(planning, row)
        spec = None if deletion.absent is None else deletion.absent.spec
        if spec is not None and spec.content_pins:
            form["content"] = {"name": spec.content, "id": row.content}
        return BeforeAfter(before=form, after=None)

    def action(self, planning: PlanContext, match: Match[Assignment, TargetRow]) -> Action:
        """An update, or a replacement under the dialect `content-targets.on-existing: recreate`."""
        recreate = planning.terms.behaviour("content-targets.on-existing") == "recreate"
        return Action.REPLACE if recreate else Action.UPDATE

    def plan_steps(self, planning: PlanContext, match: Match[Assignment, TargetRow], sides: BeforeAfter) -> list[Step]:
        """One POST; a replacement sends a DELETE first, which interrupts access."""
        return target_steps(planning, match)

    def lost_on(
        self,
        planning: PlanContext,
        subject: Match[Assignment, TargetRow] | Deletion[TargetRow] | Effect,
        sides: BeforeAfter,
    ) -> Undo:
        """An assignment that is deleted, even to be created again, loses its progress."""
        stays = isinstance(subject, Match) and (
            subject.row is None or self.action(planning, subject) is not Action.REPLACE
        )
        return Undo() if stays else partial_undo("the assignment comes back with another id and without progress")

    def plan_delete(self, planning: PlanContext, deletion: Deletion[TargetRow]) -> list[Step]:
        """One DELETE with a body."""
        return [target_deletion(planning, deletion.row, deletion.address)]

    def grant_check(self, call: Call) -> GrantCheck | None:
        """Assignments to groups are verified by reading the assignments of the content."""
        return target_grant(call)

    def revokes(self, call: Call) -> bool:
        """Deletions."""
        return call.operation == "content-targets.delete"

    omitted_means_default = True
    entry_items = EntryItems("assign_to", "audience", "content")
    time_keys = MappingProxyType({"visible_from": False, "visible_until": True})
    references = REFERENCES
    graph_shape = "note"

    def to_entries(self, live: LiveNames) -> Iterator[ExportedEntry | UnexportableRow]:
        """Yield every assignment, each with one audience."""
        return target_entries(live)

    def arrange_entries(self, entries: Iterable[ExportedEntry]) -> Iterator[EntryBody]:
        """Yield one entry for each content, with all its audiences."""
        return entries_by_content(entries)

    def export_conflict(self, id: str, deleted: Collection[str]) -> str | None:
        """An owning project deletes the other assignments of the content."""
        same = content_id(id) in map(content_id, deleted)
        return "of the same content, an assignment that cannot be declared would be deleted" if same else None

    def absent_entry(self, declared: DesiredResource[Assignment], workspace: str) -> Json:
        """Content and audience."""
        return absent_assignment(declared.spec, workspace)

    def item_addresses(self, entry: Mapping[str, Json], item: Json) -> list[Address]:
        """The assignments of the contents to one audience."""
        return [target_address(name, _to(item)) for name, _ in _contents(entry["content"])]

    def expand_item(self, item: Json) -> dict[str, Json] | None:
        """The word `everyone` is short for `{everyone: true}`."""
        return {EVERYBODY: True} if item == EVERYBODY else None

    def replay_entry(self, change: Change, form: Mapping[str, Json], calls: Sequence[Call]) -> Mapping[str, Json]:
        """The form itself; of a deletion, content and audience."""
        return {key: form[key] for key in ("content", "assign_to")} if change.action is Action.DELETE else form

    def graph_node(self, declared: DesiredResource[Assignment]) -> Address:
        """The content."""
        return Address.of(CONTENT, declared.spec.content)

    def graph_edges(self, declared: DesiredResource[Assignment]) -> list[Edge]:
        """From the content to the audience."""
        return [Edge(self.graph_node(declared), declared.spec.audience, declared.spec.mandatory)]

    def title(self, address: Address) -> str:
        """`assignment of GDPR basics to group/Sales`."""
        return f"{self.noun} of {self.short(address)}" if parts_of(address) else str(address)

    def short(self, address: Address) -> str:
        """`GDPR basics to group/Sales`."""
        parts = parts_of(address)
        return f"{in_line(parts[0])} to {parts[1]}" if parts else super().short(address)

    def normal_pattern(self, pattern: str) -> str:
        """Unchanged: the address also has an unescaped slash before the audience's name."""
        return pattern

    def is_about_people(self, address: Address) -> bool:
        """Whether the audience is a person."""
        return f" -> {USER}/" in address.text

    def needs(self, reading: ReadContext) -> frozenset[str]:
        """The audiences."""
        return frozenset(AUDIENCES.values())

    def read(self, reading: ReadContext) -> Listing[TargetRow] | None:
        """Read the catalog, and the targets of the named contents."""
        return read_assignments(self, reading)

    def contradicts(self, snapshot: Snapshot) -> Iterator[tuple[str, str]]:
        """Listings of groups that are empty, although content is assigned to groups."""
        return unlisted_groups(snapshot)

    def edits(self, snapshot: Snapshot, zone: tzinfo | None) -> Mapping[RemoteId, Edit]:
        """The last edits as listed with the targets."""
        return last_edits(snapshot, zone)

    def people_named(self, entry: DesiredResource[Assignment] | DeleteEntry[Any]) -> Iterator[str]:
        """Yield the e-mail of an audience that is a person."""
        return redact.people_named(entry)

    def redact(self, redaction: RedactionContext, row_type: type[ListedRow]) -> Iterable[HasName]:
        """Count the assignments to undeclared people."""
        return redact.redacted(redaction) if row_type is TargetRow else super().redact(redaction, row_type)

    def restore(self, restoring: RestoreContext, row_type: type[ListedRow]) -> Iterable[HasName]:
        """Add the assignments to people who are only counted."""
        return redact.restored(restoring) if row_type is TargetRow else super().restore(restoring, row_type)

    def without_people(self, entry: Entry, new: frozenset[str], report: Report) -> Entry | None:
        """Leave out people that a redacted snapshot does not know."""
        return redact.without_people(entry, new, report)


def _contents(value: Json) -> Iterator[tuple[str, Mapping[str, str]]]:
    for item in value if isinstance(value, list) else [value]:
        if isinstance(item, dict):
            yield normal(str(item["name"])), pins(item.get("id"))
        else:
            yield normal(str(item)), {}


def _to(item: Json) -> Address:
    if isinstance(item, dict):
        for key, kind in AUDIENCES.items():
            if key in item:
                name = str(item[key])
                return Address.of(kind, email(name) if kind == USER else normal(name))
    return EVERYONE


def _moment(
    entry: ManifestEntry, audience: Mapping[str, Json], at: tuple[str | int, ...], key: str, *, end_of_day: bool
) -> datetime | None:
    """The time under `key`: the value of the audience, even null, overrides that of the entry."""
    body, place = (audience, (*at, key)) if key in audience else (entry.body, (key,))
    value = body.get(key)
    if value is None:
        return None
    try:
        return manifest_time(str(value), entry.timezone, end_of_day=end_of_day)
    except BadTime as wrong:
        source = entry.places.at(*place)
        entry.report(Problem(code="manifest/time", message=f"{key}: {wrong}", hint=wrong.hint, source=source))
        return None


KIND: Final = ContentTargetKind()
