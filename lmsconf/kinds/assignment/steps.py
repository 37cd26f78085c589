"""The calls that create, update and delete assignments, and how a creation is verified.

POST takes the whole value; its effect on an existing target is not documented, so the result is read back. DELETE
needs `targetType`, which only a live target has (API specification, Content Targeting).
"""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Final, cast

from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.dialect_candidates import DEFAULT_START, EVERYONE_ID, ON_EXISTING, TIME_FORMAT
from lmsconf.api.spec.value_encoding import TIME_ZONE, encode_cleared_time
from lmsconf.kinds.assignment.target_ids import resolve_audience
from lmsconf.kinds.assignment.types import AssignmentSpec, TargetRow
from lmsconf.kinds.group import GroupRow
from lmsconf.kinds.shared.kind_names import CONTENT, EVERYONE, GROUP, USER
from lmsconf.kinds.shared.plan_context import GRANTED, BeforeAfter, Deletion, Match, PlanContext
from lmsconf.kinds.shared.rename_and_list_steps import joined_group_ref
from lmsconf.model.address import Address, Ref
from lmsconf.model.calls import Step
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.declarations import DesiredResource, pin_in
from lmsconf.model.plan import Action
from lmsconf.model.time_formats import format_request_time, parse_response_time, time_format_of

TARGET_KEYS: Final = {
    "mandatory": "content-targets.create.mandatory",
    "visible_from": "content-targets.create.startTime",
    "visible_until": "content-targets.create.finishTime",
}
"""Part of an assignment → the key of its name."""
HINT_ON_EXISTING: Final = (
    "Check the dialect key content-targets.on-existing: with `recreate`, an assignment that changes is deleted and "
    "created again."
)
"""The hint for an assignment that the service does not update when it is assigned again."""


def parse_live_window(
    planning: PlanContext, row: TargetRow, declared: DesiredResource[AssignmentSpec]
) -> tuple[datetime | None, datetime | None] | None:
    """The live (start, end) of visibility, each None for no limit; None, with a problem, if one cannot be parsed.

    A start that the service set itself, of today or earlier, counts as none.
    """
    try:
        start, finish = (None if text is None else parse_response_time(text) for text in (row.start, row.finish))
    except ValueError as wrong:
        planning.report(
            declared, "content-target/time", f"{wrong}", hint="Check the dialect key content-targets.time-format."
        )
        return None
    may_be_default = declared.spec.visible_from is None and planning.api_spec.behaviour(DEFAULT_START) == "now"
    midnight = datetime.combine(planning.policy.today, time.max, planning.policy.timezone or UTC)
    return None if may_be_default and start is not None and start <= midnight else start, finish


def assignment_steps(planning: PlanContext, match: Match[AssignmentSpec, TargetRow], sides: BeforeAfter) -> list[Step]:
    """One POST with the whole value; a replacement sends a DELETE first."""
    spec, row = match.declared.spec, match.row
    at, to = match.address, spec.audience
    # Content with the same name is told apart by its pin.
    content = pin_in(spec.content_pins, planning.policy.workspace) or planning.registry.id_or_ref(
        Ref(Address.of(CONTENT, spec.content))
    )
    target = planning.api_spec.behaviour(EVERYONE_ID) if to == EVERYONE else planning.registry.id_or_ref(Ref(to))
    body: dict[str, object] = {
        "contentId": content,
        "userId" if to.kind == USER else "targetId": target,
        "mandatory": spec.mandatory,
    }
    recreated = row if update_action(planning) is Action.REPLACE else None
    # What is created anew has no limit that was to be cleared.
    body.update(_times(planning, spec, None if recreated else row))
    fresh = frozenset({Ref(at, "(old)")})
    post = Step(
        operation="content-targets.create",
        body=planning.api_spec.body_to_wire("content-targets.create", **body),
        makes=frozenset({Ref(Address(CONTENT, str(content)), GRANTED), Ref(at, GRANTED)}),
        uses=frozenset(() if to == EVERYONE else {Ref(to)}) | fresh | _after(spec),
        revokes=bool(spec.replaced_by),
    )
    if recreated is None:
        return [post]
    return [replace(_deletion(planning, recreated), makes=fresh, uses=_after(spec)), post]


def body_of_live(spec: ApiSpec, body: object, before: Json) -> dict[str, object]:
    """Return the body of a POST with the values that the assignment had before, in the form of those sent."""
    held, sent = members(before), members(cast("Json", body))
    names = {path: spec.behaviour(key) for path, key in TARGET_KEYS.items()}
    form, zone = spec.behaviour(TIME_FORMAT), spec.behaviour(TIME_ZONE)
    if form == "auto":
        times = (str(sent[name]) for path, name in names.items() if path != "mandatory" and sent.get(name))
        form = time_format_of(next(times, ""))
    values = {names[path]: value for path, value in held.items() if path in names and value is not None}
    values |= {
        names[path]: format_request_time(datetime.fromisoformat(str(held[path])), form, zone)
        for path in ("visible_from", "visible_until")
        if held.get(path)
    }
    return {**{key: value for key, value in sent.items() if key not in names.values()}, **values}


def _after(spec: AssignmentSpec) -> frozenset[Ref]:
    """Return what must be granted before an assignment that is replaced is changed."""
    return frozenset(Ref(address, GRANTED) for address in spec.after)


def _times(planning: PlanContext, spec: AssignmentSpec, row: TargetRow | None) -> dict[str, object]:
    """The body fields for declared limits of the window, and those that clear undeclared live limits."""
    behaviour = planning.api_spec.behaviour
    form = behaviour(TIME_FORMAT)
    if form == "auto":
        form = "epoch-ms" if planning.live_time_formats == {"epoch-ms"} else "iso"
    body: dict[str, object] = {}
    for name, wanted, live in (
        ("startTime", spec.visible_from, row and row.start),
        ("finishTime", spec.visible_until, row and row.finish),
    ):
        if wanted is not None:
            body[name] = format_request_time(wanted, form, behaviour(TIME_ZONE))
        elif live is not None:
            body |= encode_cleared_time(behaviour, name)
    return body


def assignment_deletion(planning: PlanContext, deletion: Deletion[TargetRow]) -> list[Step]:
    """One DELETE with a body, after all POSTs for the same content.

    Of a manual group that is deleted with it, the members who move elsewhere are added there first.
    """
    row, audience = deletion.row, resolve_audience(planning, deletion.row)
    uses = {Ref(Address(CONTENT, row.content), GRANTED)}
    if audience is not None and audience.kind == GROUP and audience in planning.deleted:
        for group in (group for group in planning.snapshot.rows(GroupRow) if group.id == row.target):
            uses.update(map(joined_group_ref, planning.people.display_names(group.members or ())))
    if deletion.absent is not None:
        uses |= _after(deletion.absent.spec)
    return [
        replace(
            _deletion(planning, row),
            uses=frozenset(uses),
            releases=frozenset({Ref(audience)} if audience else ()),
        )
    ]


def _deletion(planning: PlanContext, row: TargetRow) -> Step:
    return Step(
        operation="content-targets.delete",
        body=planning.api_spec.body_to_wire(
            "content-targets.delete", targetId=row.target, targetType=row.type, contentId=row.content
        ),
        revokes=True,
    )


def update_action(planning: PlanContext) -> Action:
    """Return how an assignment is changed: a replacement under the dialect `content-targets.on-existing: recreate`."""
    return Action.REPLACE if planning.api_spec.behaviour(ON_EXISTING) == "recreate" else Action.UPDATE
