"""Values of assignments: live rows, declared specs, and the form in which both are shown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, tzinfo
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.kinds.shared.kind_names import CONTENT, CONTENT_TARGET, EVERYONE, GROUP, IN_PROGRESS, SMART_GROUP, USER
from lmsconf.kinds.shared.manifest_entry import format_time, parse_pins
from lmsconf.kinds.shared.responses import optional_text, require_text, text_or_none
from lmsconf.model.address import Address, RemoteId, escape
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import pin_in
from lmsconf.model.forms import Form
from lmsconf.model.guards import Policy
from lmsconf.model.names import grouped, normalize_email, normalize_name
from lmsconf.model.plan import Change, FieldChange
from lmsconf.model.snapshot import IdAndName, SnapshotRow
from lmsconf.model.time_formats import parse_response_time

AUDIENCES: Final = {"group": GROUP, "smart_group": SMART_GROUP, "user": USER}
"""Manifest key of an audience → kind."""


class ContentRow(IdAndName, frozen=True):
    """A course, program, SCORM package or meetup of the catalog."""

    listing = CONTENT

    type: str


def parse_content_row(data: Mapping[str, Json]) -> ContentRow:
    """Parse a catalog item; its id is `courseId` whatever its type (API specification, Content catalog item)."""
    return ContentRow(
        RemoteId(require_text(data, "courseId")), optional_text(data, "name"), optional_text(data, "contentType")
    )


def unnamed_content(id: str) -> str:
    """Return the name under which manifests have content whose own name they cannot hold."""
    return f"content {id}"


class TargetRow(SnapshotRow, frozen=True):
    """A live target, with ids and texts as in the response. `start` and `finish` are None for no limit."""

    listing = CONTENT_TARGET

    content: RemoteId
    target: RemoteId
    type: str
    mandatory: bool = False
    start: str | None = None
    finish: str | None = None
    label: str = ""

    @property
    def id(self) -> RemoteId:
        """`content/type/target`, since the API gives a target no id."""
        return RemoteId(f"{self.content}/{self.type}/{self.target}")

    @property
    def name(self) -> str:
        return self.label


def parse_target_row(content: RemoteId, data: Mapping[str, Json]) -> TargetRow:
    """Parse a target of a response, without what changes over time and who edited it when."""
    return TargetRow(
        content=content,
        target=RemoteId(require_text(data, "targetId")),
        type=str(data.get("targetType") or ""),
        mandatory=bool(data.get("mandatory")),
        start=text_or_none(data.get("startTime")),
        finish=text_or_none(data.get("finishTime")),
        label=str(data.get("name") or ""),
    )


class InProgressRow(SnapshotRow, frozen=True):
    """The people in the audience of a live target who are in progress; unknown: why some of them may be missing."""

    listing = IN_PROGRESS

    id: RemoteId
    people: frozenset[RemoteId]
    unknown: str | None = None


class Replacement(Struct, frozen=True, kw_only=True):
    """An earlier content whose assignment to the same audience a declared assignment takes the place of.

    becomes_optional: the earlier assignment stays, and is not mandatory. closes: it stays, and its window ends then.
    Neither: it is deleted. keep_until: until when those who are in progress keep it; None: they do not. path: where the
    entry says so.
    """

    content: str
    content_pins: Mapping[str, str]
    becomes_optional: bool = False
    closes: datetime | None = None
    keep_until: datetime | None = None
    path: tuple[str | int, ...] = ("replaces",)


class AssignmentSpec(Struct, frozen=True):
    """A declared assignment. content_pins: workspace, "" for any, → content id.

    replaces: what it takes the place of. replaced_by: what takes its place: it is not changed unless these are live
    or in the same plan. after: assignments whose creation precedes any change of this one.
    """

    content: str
    audience: Address
    mandatory: bool
    visible_from: datetime | None
    visible_until: datetime | None
    content_pins: Mapping[str, str]
    replaces: tuple[Replacement, ...] = ()
    replaced_by: tuple[Address, ...] = ()
    after: frozenset[Address] = frozenset()


def contents_of(value: Json) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield the name and pins of each content under `content`."""
    for item in value if isinstance(value, list) else [value]:
        named = item if isinstance(item, dict) else {"name": item}
        yield normalize_name(str(named["name"])), parse_pins(named.get("id"))


def assignment_address(content: str, audience: Address) -> Address:
    """The address, e.g. `content_target/GDPR basics -> smart_group/Sales Nordics`."""
    return Address(CONTENT_TARGET, f"{escape(content)} -> {audience}")


def audience_entry(audience: Address) -> Json:
    """An audience as written under `assign_to`."""
    if audience == EVERYONE:
        return {"everyone": True}
    return {key: audience.name for key, kind in AUDIENCES.items() if kind == audience.kind}


def declared_entry(spec: AssignmentSpec, policy: Policy) -> Form:
    """A declared assignment as a manifest entry of its own."""
    return assignment_form(
        content_entry(spec, policy.workspace),
        audience_entry(spec.audience),
        spec.mandatory,
        spec.visible_from,
        spec.visible_until,
        policy.timezone,
    )


def content_entry(spec: AssignmentSpec, workspace: str) -> Json:
    """The content of a declared assignment, with its id where a workspace pins one."""
    pin = pin_in(spec.content_pins, workspace)
    return spec.content if pin is None else {"name": spec.content, "id": pin}


def assignment_form(
    content: Json,
    audience: Json,
    mandatory: bool,
    start: datetime | str | None,
    finish: datetime | str | None,
    zone: tzinfo | None,
) -> Form:
    """An assignment as a manifest entry with one audience; a text in place of a time stays as it is."""
    return {
        "content": content,
        "assign_to": [audience],
        "mandatory": mandatory,
        "visible_from": format_time(start, zone) if isinstance(start, datetime) else start,
        "visible_until": format_time(finish, zone) if isinstance(finish, datetime) else finish,
    }


def is_window_declarable(row: TargetRow) -> bool:
    """Whether a manifest can declare the window: its times can be read, and it ends after it begins."""
    start, finish = readable_time(row.start), readable_time(row.finish)
    if isinstance(start, datetime) and isinstance(finish, datetime):
        return start < finish
    return not isinstance(start, str) and not isinstance(finish, str)


def readable_time(text: str | None) -> datetime | str | None:
    """Return a live time; one that cannot be read as it is."""
    try:
        return None if text is None else parse_response_time(text)
    except ValueError:
        return text


def unresolved_audience_label(row: TargetRow) -> str:
    """The label of an unresolved audience: `user id u-17`, or `TEAM without an id`."""
    id = f"id {row.target}" if row.target else "without an id"
    return f"{kind_from_target_type(row.type) or row.type or 'audience'} {id}"


def may_be_for(kind: str, type: str) -> bool:
    """Whether a `targetType` may be that of a kind: one with `group` is not that of a person, `user` of nobody else."""
    return kind_from_target_type(type) in (None, USER) if kind == USER else type.casefold() != "user"


def kind_from_target_type(type: str) -> str | None:
    """The kind that words in a `targetType` imply, None if they imply none; its values are not documented."""
    words = type.casefold()
    if "smart" in words:
        return SMART_GROUP
    return GROUP if "group" in words else USER if "user" in words else None


WINDOW_KEYS: Final = ("visible_from", "visible_until")


def lost_access(change: Change) -> Iterator[str]:
    """Yield in words what an update takes from those who are assigned: the mandatory flag, or a part of the window."""
    for one in change.fields:
        if one.path == "mandatory" and one.before is True and one.after is not True:
            yield "its mandatory flag"
        if one.path in WINDOW_KEYS and is_shorter(one):
            yield "a part of its window"


def is_shorter(window: FieldChange) -> bool:
    """Whether a side of a window moves inwards; an open side is the widest. A time that cannot be read may."""
    before, after = (readable_time(None if side is None else str(side)) for side in (window.before, window.after))
    if not isinstance(before, datetime) or not isinstance(after, datetime):
        return after is not None
    return after > before if window.path == "visible_from" else after < before


def is_about_people(address: Address) -> bool:
    """Return whether an address is of a person, or of an assignment to one."""
    return address.kind == USER or (address.kind == CONTENT_TARGET and f" -> {USER}/" in address.text)


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
        return [kind for kind, ids in self.names.items() if row.target in ids and may_be_for(kind, row.type)]

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
    incomplete: str | None,
) -> Audiences:
    """Return the audiences that targets may be for. rows: kind → ids and names of all that are live.

    planned: the targets from which a plan learnt what their types mean, so that its effects find the same.
    """
    targets = list(targets)
    wanted = {row.target for row in targets}
    names = {kind: {id: name for id, name in pairs if id in wanted} for kind, pairs in rows.items()}
    audiences = Audiences(names, everyone, {}, incomplete)
    return replace(audiences, types=_learn(audiences, targets) | _learn(audiences, planned))


def _learn(audiences: Audiences, rows: Iterable[TargetRow]) -> dict[str, frozenset[str]]:
    """Return every `targetType` with the kinds of its targets that have a single candidate."""
    found = {type: map(audiences.candidates, same) for type, same in grouped(rows, lambda row: row.type).items()}
    return {type: frozenset(kinds[0] for kinds in lists if len(kinds) == 1) for type, lists in found.items()}
