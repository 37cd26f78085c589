"""The content that manifests name, looked up by name or pinned id, and whose id a live assignment has.

There is one answer for the plan, its effects, `keep`, exports and redacted files. Kinds may share ids, and
the values of `targetType` are not documented (API specification, Content Targeting).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from lmsconf.kinds.assignment.types import (
    EVERYONE_KEY,
    AssignmentSpec,
    ContentRow,
    TargetRow,
    assignment_form,
    audience_entry,
    readable_time,
    unnamed_content,
    unresolved_audience_label,
)
from lmsconf.kinds.shared.kind_names import CONTENT, EVERYONE
from lmsconf.kinds.shared.managed_resources import similar_name
from lmsconf.kinds.shared.match_by_name import list_ids
from lmsconf.kinds.shared.plan_context import (
    PlanContext,
    hint_on_missing,
    suggest_name,
)
from lmsconf.model.address import Address, RemoteId, escape
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource, pin_in
from lmsconf.model.forms import Form
from lmsconf.model.names import confusable_skeleton, grouped, normalize_name, quote_name


def resolve_audience(planning: PlanContext, row: TargetRow) -> Address | None:
    """The audience of a live target, None if it is not known, or has no name."""
    key = planning.audiences.of(row)
    if key == EVERYONE_KEY:
        return EVERYONE
    name = None if key is None else planning.registry.name(*key)
    return Address.of(key[0], name) if key and name else None


def audience_candidates(planning: PlanContext, row: TargetRow) -> list[Address]:
    """Every group, smart group and person with the id of a target, whose type may be for them: kinds may share ids."""
    return [
        Address.of(kind, name)
        for kind in planning.audiences.candidates(row)
        if (name := planning.registry.name(kind, row.target))
    ]


def live_entry(planning: PlanContext, row: TargetRow) -> Form:
    """A live target as a manifest entry; an unparsable time is shown verbatim, and an unresolved name as an id."""
    name = planning.registry.name(CONTENT, row.content) or f"content id {row.content}"
    content: Json = {"name": name, "id": row.content} if row.content in planning.shared_content else name
    audience = resolve_audience(planning, row)
    to: Json = unresolved_audience_label(row) if audience is None else audience_entry(audience)
    return assignment_form(
        content, to, row.mandatory, readable_time(row.start), readable_time(row.finish), planning.policy.timezone
    )


Identity: TypeAlias = tuple[RemoteId | None, Address]
"""Content id, None if unresolved, and audience: the identity of an assignment."""


AssignmentEntry: TypeAlias = DesiredResource[AssignmentSpec] | DeleteEntry[Any]


class ContentResolver:
    """The catalog by name and id, and the ids of the content that manifests name."""

    def __init__(self, planning: PlanContext) -> None:
        self._planning = planning
        self._by_id = {row.id: row for row in planning.snapshot.rows(ContentRow)}
        self._by_name = grouped(planning.snapshot.rows(ContentRow), lambda row: normalize_name(row.name))
        for row in self._by_id.values():
            planning.registry.set_display_name(CONTENT, normalize_name(row.name), row.id)
        self.named: dict[tuple[str, str], RemoteId | None] = {}
        self._looks: dict[str, Mapping[str, list[str]]] = {}
        planning.shared_content = frozenset(row.id for rows in self._by_name.values() if len(rows) > 1 for row in rows)

    def find_id(self, entry: AssignmentEntry) -> RemoteId | None:
        """The id of the content that an assignment names, None if unresolved; problems are reported once per content.

        An entry under `absent` may name what the catalog lacks.
        """
        spec = entry.spec
        pin = pin_in(spec.content_pins, self._planning.policy.workspace)
        key = (spec.content, pin or "")
        if key not in self.named:
            self.named[key] = self._look(entry, pin)
            if (id := self.named[key]) is not None:
                self._planning.registry.register(CONTENT, spec.content, id)
        return self.named[key]

    def missing(self, spec: AssignmentSpec) -> tuple[str, str | None] | None:
        """What the catalog lacks of the content that a spec names or pins, and a hint; None if it has the content."""
        pin = pin_in(spec.content_pins, self._planning.policy.workspace)
        if pin in self._by_id or (pin is None and spec.content in self._by_name):
            return None
        if pin is None:
            return (
                f'the catalog has no content "{spec.content}"',
                suggest_name(self._planning, spec.content, self._by_name),
            )
        ids = list_ids(self._by_name.get(spec.content, ()))
        return (
            f'no content with the id "{pin}" is in the catalog',
            f"{quote_name(spec.content)} has the id {ids}." if ids else "Correct the id, or remove it.",
        )

    def identity(self, entry: AssignmentEntry) -> Identity:
        """The identity of an assignment."""
        return self.find_id(entry), entry.spec.audience

    def _look(self, entry: AssignmentEntry, pin: RemoteId | None) -> RemoteId | None:
        """Return the id of the content that an entry names or pins; None, with a problem, if there is none."""
        report = partial(self._planning.report, entry, at=entry.places.at("content"))
        name: str = entry.spec.content
        named = self._by_name.get(name, [])
        if pin is not None:
            return self._look_pinned(entry.spec, pin, named, report)
        if len(named) == 1:
            return named[0].id
        if named:
            report(
                "content/twice",
                f'"{name}" is in the catalog with the ids {list_ids(named)}',
                f"Select one with `content: {{name: {quote_name(name)}, id: ...}}`.",
            )
        elif isinstance(entry, DesiredResource) and (missing := self.missing(entry.spec)):
            report(
                "content/unknown",
                missing[0],
                hint_on_missing(
                    self._planning,
                    CONTENT,
                    missing[1],
                    "Write the name as in the catalog. Content is created in the product, not with lmsconf.",
                ),
            )
        return None

    def _look_pinned(
        self, spec: AssignmentSpec, pin: RemoteId, named: Sequence[ContentRow], report: Callable[..., None]
    ) -> RemoteId | None:
        """Return the pinned id if its content has the name; else None, with a problem. named: all with the name."""
        if missing := self.missing(spec):
            report(
                "content/pin-not-live",
                missing[0],
                # The id of the name is a better hint than that the list is not complete.
                missing[1] if named else hint_on_missing(self._planning, CONTENT, missing[1], ""),
            )
            return None
        live_name = normalize_name(self._by_id[pin].name)
        # An export writes `content ID` where a manifest cannot hold the name.
        if live_name == spec.content or (spec.content == unnamed_content(pin) and not named):
            return pin
        # lmsconf cannot rename content.
        live = f', and "{spec.content}" has the id {list_ids(named)}' if named else ""
        report(
            "content/other-name",
            f'the content with the id "{pin}" is called "{self._by_id[pin].name}" in the catalog{live}',
            f"If this is the right content, write its name: {quote_name(live_name)}. "
            "Otherwise correct the id, or remove it.",
        )
        return None

    def similar_name(self, entry: DeleteEntry[Any]) -> str | None:
        """The content or audience name that an `absent` entry without a match may have meant."""
        to, registry = entry.spec.audience, self._planning.registry
        if self.find_id(entry) is None:
            kind, name, names = CONTENT, entry.spec.content, list(self._by_name)
        elif to == EVERYONE or registry.has(to.kind, to.name):
            return None
        else:
            kind, name, names = to.kind, to.name, registry.names(to.kind)
        if kind not in self._looks:
            self._looks[kind] = grouped(names, confusable_skeleton)
        return similar_name(name, names, self._looks[kind])


def report_live_twice(planning: PlanContext, entry: DesiredResource[AssignmentSpec], rows: Sequence[TargetRow]) -> None:
    planning.report(
        entry,
        "identity/live-twice",
        f"it is live {len(rows)} times, as {list_ids(rows)}",
        "Delete the duplicate in the product, or check the dialect key content-targets.on-existing.",
    )


class LiveAssignments(ContentResolver):
    """The catalog and the live assignments of a plan by identity, and the entries that name them.

    live: identity → targets; an unresolved audience has an address with its id. unclear: each identity that a target of
    an unresolved audience may have → that target. entry_of: identity → the first entry that names it.
    """

    def __init__(self, planning: PlanContext) -> None:
        super().__init__(planning)
        self.live: defaultdict[Identity, list[TargetRow]] = defaultdict(list)
        self.unclear: dict[Identity, TargetRow] = {}
        self.entry_of: dict[Identity, AssignmentEntry] = {}
        for row in planning.snapshot.rows(TargetRow):
            audience = resolve_audience(planning, row)
            self.live[row.content, audience or Address(escape(unresolved_audience_label(row)), "")].append(row)
            if audience is None:
                self.unclear |= {(row.content, candidate): row for candidate in audience_candidates(planning, row)}

    def claim(self, entry: AssignmentEntry) -> tuple[AssignmentEntry, Sequence[TargetRow], TargetRow | None]:
        """Return the first entry of the same assignment, maybe this one, its targets, and an unclear one."""
        key = self.identity(entry)
        return self.entry_of.setdefault(key, entry), self.live.get(key, ()), self.unclear.get(key)
