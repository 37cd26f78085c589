"""The content that manifests name, looked up in the catalog by name or pinned id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from lmsconf.kinds.assignment.types import AssignmentSpec, ContentRow, TargetRow, unnamed_content
from lmsconf.kinds.shared.kind_names import CONTENT, EVERYONE
from lmsconf.kinds.shared.managed_resources import similar_name
from lmsconf.kinds.shared.missing_references import hint_on_missing, suggest_name
from lmsconf.kinds.shared.plan_context import PlanContext
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.declarations import DeleteEntry, DesiredResource, pin_in
from lmsconf.model.names import confusable_skeleton, grouped, normalize_name, quote_name

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
    planning.report(
        entry,
        "identity/live-twice",
        f"it is live {len(rows)} times, as " + ", ".join(sorted(row.id for row in rows)),
        hint="Delete the duplicate in the product, or check the dialect key content-targets.on-existing.",
    )
