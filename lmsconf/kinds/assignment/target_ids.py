"""Whose id an assignment has, the content that manifests name, and the calls that change assignments.

There is one answer for the plan, its effects, `keep`, exports and redacted files. Kinds may share ids, and
the values of `targetType` are not documented (API specification, Content Targeting).

POST takes the whole value; its effect on an existing target is not documented, so the result is read back. DELETE
needs `targetType`, which only a live target has (API specification, Content Targeting).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, TypeAlias

from msgspec import Struct

from lmsconf.api.spec.dialect_keys import EVERYONE_ID, ON_EXISTING, TIME_FORMAT
from lmsconf.api.spec.value_encoding import encode_cleared_time
from lmsconf.kinds.assignment.types import (
    AssignmentSpec,
    ContentRow,
    TargetRow,
    assignment_form,
    audience_entry,
    kind_from_target_type,
    may_be_for,
    readable_time,
    unnamed_content,
    unresolved_audience_label,
)
from lmsconf.kinds.groups import GroupRow
from lmsconf.kinds.shared.kind_names import CONTENT, EVERYONE, GROUP, SMART_GROUP, USER
from lmsconf.kinds.shared.managed_resources import similar_name
from lmsconf.kinds.shared.plan_context import (
    GRANTED,
    BeforeAfter,
    Deletion,
    Match,
    PlanContext,
    hint_on_missing,
    suggest_name,
)
from lmsconf.kinds.shared.steps import joined_group_ref
from lmsconf.kinds.user.people_directory import people_display_names
from lmsconf.model.address import Address, Ref, RemoteId
from lmsconf.model.calls import Step
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource, pin_in
from lmsconf.model.forms import Form
from lmsconf.model.names import confusable_skeleton, grouped, normalize_email, normalize_name, quote_name
from lmsconf.model.plan import Action
from lmsconf.model.time_formats import format_request_time, parse_response_time

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
    incomplete: str | None,
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
            planning.api_spec.behaviour(EVERYONE_ID),
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


Identity: TypeAlias = tuple[RemoteId | None, Address]
"""Content id, None if unresolved, and audience: the identity of an assignment."""


_Entry: TypeAlias = "DesiredResource[AssignmentSpec] | DeleteEntry[Any]"


class ContentResolver:
    """The catalog by name and id, and the ids of the content that manifests name."""

    def __init__(self, planning: PlanContext) -> None:
        self._planning = planning
        self._rows = planning.snapshot.rows(ContentRow)
        self._by_name = grouped(self._rows, lambda row: normalize_name(row.name))
        self._by_id = {row.id: row for row in self._rows}
        for row in self._rows:
            planning.registry.set_display_name(CONTENT, normalize_name(row.name), row.id)
        self.named: dict[tuple[str, str], RemoteId | None] = {}
        self._looks: dict[str, Mapping[str, list[str]]] = {}
        planning.shared_content = frozenset(row.id for rows in self._by_name.values() if len(rows) > 1 for row in rows)

    def find_id(self, entry: _Entry, *, must: bool = True) -> RemoteId | None:
        """The id of the content that an assignment names, None if unresolved; problems are reported once per content.

        must: whether a name that the catalog lacks is a problem.
        """
        spec = entry.spec
        pin = pin_in(spec.content_pins, self._planning.policy.workspace) if spec.content_pins else None
        key = (spec.content, pin or "")
        if key not in self.named:
            self.named[key] = self._look(entry, pin, must)
            if (id := self.named[key]) is not None:
                self._planning.registry.register(CONTENT, spec.content, id)
        return self.named[key]

    def missing(self, spec: AssignmentSpec) -> tuple[str, str | None] | None:
        """What the catalog lacks of the content that a spec names or pins, and a hint; None if it has the content."""
        pin = pin_in(spec.content_pins, self._planning.policy.workspace)
        if pin is not None:
            return None if RemoteId(pin) in self._by_id else self._wrong_pin(pin, spec.content)
        if spec.content in self._by_name:
            return None
        return f'the catalog has no content "{spec.content}"', suggest_name(self._planning, spec.content, self._by_name)

    def _wrong_pin(self, pin: str, name: str) -> tuple[str, str]:
        """What is wrong with an id that no content has, and a hint."""
        live = self._by_name.get(name, [])
        ids = ", ".join(sorted(row.id for row in live))
        hint = f"{quote_name(name)} has the id {ids}." if live else "Correct the id, or remove it."
        return f'no content with the id "{pin}" is in the catalog', hint

    def identity(self, entry: _Entry) -> Identity:
        """The identity of an assignment that was passed to `find_id`."""
        return self.find_id(entry), entry.spec.audience

    def _look(self, entry: _Entry, pin: str | None, must: bool) -> RemoteId | None:
        """Return the id of the content that an entry names or pins; None, with a problem, if there is none."""
        spec = entry.spec
        if pin is not None:
            row = self._by_id.get(RemoteId(pin))
            if row is None:
                self._report(entry, "content/pin-not-live", *self._wrong_pin(pin, spec.content))
            elif self._is_called(row, spec.content):
                return row.id
            else:
                self._report_other_name(entry, row, spec.content)
            return None
        rows = self._by_name.get(spec.content, [])
        if len(rows) == 1:
            return rows[0].id
        if rows:
            ids = ", ".join(sorted(row.id for row in rows))
            self._report(
                entry,
                "content/twice",
                f'"{spec.content}" is in the catalog with the ids {ids}',
                f"Select one with `content: {{name: {quote_name(spec.content)}, id: ...}}`.",
            )
        elif must:
            near = hint_on_missing(
                self._planning,
                CONTENT,
                suggest_name(self._planning, spec.content, self._by_name),
                "Write the name as in the catalog. Content is created in the product, not with lmsconf.",
            )
            self._report(entry, "content/unknown", f'the catalog has no content "{spec.content}"', near)
        return None

    def similar_name(self, entry: DeleteEntry[Any]) -> str | None:
        """The content or audience name that an `absent` entry without a match may have meant."""
        spec = entry.spec
        to, registry = spec.audience, self._planning.registry
        if self.find_id(entry, must=False) is None:
            kind, name, names = CONTENT, spec.content, list(self._by_name)
        elif to == EVERYONE or registry.has(to.kind, to.name):
            return None
        else:
            kind, name, names = to.kind, to.name, registry.names(to.kind)
        if kind not in self._looks:
            self._looks[kind] = grouped(names, confusable_skeleton)
        return similar_name(name, names, self._looks[kind])

    def _is_called(self, row: ContentRow, name: str) -> bool:
        """Whether pinned content has the declared name: lmsconf cannot rename content, so another name is an error.

        An export writes `content ID` where a manifest cannot hold the name.
        """
        return normalize_name(row.name) == name or (name == unnamed_content(row.id) and name not in self._by_name)

    def _report_other_name(self, entry: _Entry, row: ContentRow, name: str) -> None:
        others = ", ".join(sorted(other.id for other in self._by_name.get(name, ())))
        live = f', and "{name}" has the id {others}' if others else ""
        self._report(
            entry,
            "content/other-name",
            f'the content with the id "{row.id}" is called "{row.name}" in the catalog{live}',
            f"If this is the right content, write its name: {quote_name(normalize_name(row.name))}. "
            "Otherwise correct the id, or remove it.",
        )

    def _report(self, entry: _Entry, code: str, text: str, hint: str | None) -> None:
        self._planning.report(entry, code, text, hint=hint, at=entry.places.at("content"))


def report_live_twice(planning: PlanContext, entry: DesiredResource[AssignmentSpec], rows: Sequence[TargetRow]) -> None:
    message = f"it is live {len(rows)} times, as " + ", ".join(sorted(row.id for row in rows))
    hint = "Delete the duplicate in the product, or check the dialect key content-targets.on-existing."
    planning.report(entry, "identity/live-twice", message, hint=hint)


HINT_ON_EXISTING: Final = (
    "Check the dialect key content-targets.on-existing: with `recreate`, an assignment that changes is deleted and "
    "created again."
)
"""The hint for an assignment that the service does not update when it is assigned again."""


def parse_live_window(
    planning: PlanContext, row: TargetRow, declared: DesiredResource[AssignmentSpec]
) -> tuple[datetime | None, datetime | None] | None:
    """The live (start, end) of visibility, each None for no limit; None, with a problem, if one cannot be parsed."""
    try:
        start, finish = (None if text is None else parse_response_time(text) for text in (row.start, row.finish))
    except ValueError as wrong:
        planning.report(
            declared, "content-target/time", f"{wrong}", hint="Check the dialect key content-targets.time-format."
        )
        return None
    return start, finish


def assignment_steps(planning: PlanContext, match: Match[AssignmentSpec, TargetRow], sides: BeforeAfter) -> list[Step]:
    """One POST with the whole value; a replacement sends a DELETE first."""
    spec, row = match.declared.spec, match.row
    at, to = match.address, spec.audience
    # Content with the same name is told apart by its pin.
    pin = pin_in(spec.content_pins, planning.policy.workspace)
    content = pin or planning.registry.id_or_ref(CONTENT, spec.content, Ref(at))
    body: dict[str, object] = {"contentId": content, **_audience(planning, to), "mandatory": spec.mandatory}
    recreates = row is not None and planning.api_spec.behaviour(ON_EXISTING) == "recreate"
    # What is created anew has no limit that was to be cleared.
    body.update(_times(planning, spec, None if recreates else row))
    fresh = frozenset({Ref(at, "(old)")})
    post = Step(
        operation="content-targets.create",
        body=planning.api_spec.body_to_wire("content-targets.create", **body),
        makes=frozenset({Ref(Address(CONTENT, str(content)), GRANTED), Ref(at, GRANTED)}),
        uses=(frozenset() if to == EVERYONE else frozenset({Ref(to)})) | fresh | _after(spec),
        revokes=bool(spec.replaced_by),
    )
    if row is None or not recreates:
        return [post]
    body = _identity(planning, row)
    delete = Step(operation="content-targets.delete", body=body, makes=fresh, uses=_after(spec), revokes=True)
    return [delete, post]


def _after(spec: AssignmentSpec) -> frozenset[Ref]:
    """Return what must be granted before an assignment that is replaced is changed."""
    return frozenset(Ref(address, GRANTED) for address in spec.after)


def _audience(planning: PlanContext, to: Address) -> dict[str, object]:
    if to.kind == USER:
        return {"userId": planning.registry.id_or_ref(USER, to.name, Ref(to))}
    if to == EVERYONE:
        return {"targetId": planning.api_spec.behaviour(EVERYONE_ID)}
    return {"targetId": planning.registry.id_or_ref(to.kind, to.name, Ref(to))}


def _times(planning: PlanContext, spec: AssignmentSpec, row: TargetRow | None) -> dict[str, Json]:
    """The body fields for declared limits of the window, and those that clear undeclared live limits."""
    start, finish = (None, None) if row is None else (row.start, row.finish)
    return {
        **_time(planning, "startTime", spec.visible_from, start),
        **_time(planning, "finishTime", spec.visible_until, finish),
    }


def _time(planning: PlanContext, name: str, wanted: datetime | None, live: str | None) -> Mapping[str, Json]:
    if wanted is not None:
        return {name: format_request_time(wanted, _form(planning))}
    return {} if live is None else encode_cleared_time(planning.api_spec.behaviour, name)


def _form(planning: PlanContext) -> str:
    """The format of times: that of the dialect; under `auto`, epoch-ms if all live times have it, else ISO 8601."""
    time_format = planning.api_spec.behaviour(TIME_FORMAT)
    if time_format != "auto":
        return time_format
    return "epoch-ms" if planning.live_time_formats == {"epoch-ms"} else "iso"


def assignment_deletion(planning: PlanContext, deletion: Deletion[TargetRow]) -> list[Step]:
    """One DELETE with a body, after all POSTs for the same content.

    Of a manual group that is deleted with it, the members who move elsewhere are added there first.
    """
    row, absent = deletion.row, deletion.absent
    spec = None if absent is None else absent.spec
    audience = resolve_audience(planning, row)
    manual = audience is not None and audience.kind == GROUP and audience in planning.deleted
    movers = _members(planning, row) if manual else frozenset[str]()
    return [
        Step(
            operation="content-targets.delete",
            body=_identity(planning, row),
            uses=frozenset({Ref(Address(CONTENT, row.content), GRANTED), *map(joined_group_ref, movers)})
            | (_after(spec) if isinstance(spec, AssignmentSpec) else frozenset()),
            releases=frozenset({Ref(audience)} if audience else ()),
            revokes=True,
        )
    ]


def _members(planning: PlanContext, row: TargetRow) -> frozenset[str]:
    """The e-mails of the members of the manual group that a target is for; empty for another audience."""
    ids = next((group.members for group in planning.snapshot.rows(GroupRow) if group.id == row.target), None)
    return people_display_names(planning, ids or ())


def _identity(planning: PlanContext, row: TargetRow) -> dict[str, object]:
    return planning.api_spec.body_to_wire(
        "content-targets.delete", targetId=row.target, targetType=row.type, contentId=row.content
    )


def update_action(planning: PlanContext) -> Action:
    """Return how an assignment is changed: a replacement under the dialect `content-targets.on-existing: recreate`."""
    recreate = planning.api_spec.behaviour(ON_EXISTING) == "recreate"
    return Action.REPLACE if recreate else Action.UPDATE
