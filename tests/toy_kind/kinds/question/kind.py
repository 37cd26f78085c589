"""Questions: text fields of the workspace, of which only `hidden` can be declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from lmsconf.kinds.shared.manifest_entries import (
    ABSENT_NAMED,
    NAMED,
    delete_entry_by_name,
    desired_resource_by_name,
    entry_schema,
)
from lmsconf.kinds.shared.response_json import require_text
from lmsconf.model.address import RemoteId
from lmsconf.model.api import ListOperation
from lmsconf.model.calls import Step
from lmsconf.model.canonical_json import Json
from lmsconf.model.declarations import DeleteEntry, DesiredResource
from lmsconf.model.forms import Form
from lmsconf.model.names import normalize_name
from lmsconf.planner.context import BeforeAfter, Deletion, Match, MatchResult, PlanContext
from lmsconf.planner.kind import Kind, ManifestEntry
from lmsconf.planner.matching import match_named


class QuestionSpec(Struct, frozen=True):
    hidden: bool | None


class QuestionRow(Struct, frozen=True):
    listing = "question"

    id: RemoteId
    name: str
    hidden: bool


class QuestionKind(Kind[QuestionSpec, QuestionRow]):
    """The kind `question`."""

    name = "question"
    section = "questions"
    noun = "question"
    plural = "questions"
    rank = 9
    schema = entry_schema(
        {**NAMED, "hidden": {"type": "boolean", "description": "Whether the field is hidden from people."}},
        ["name"],
        "A question.",
    )
    absent_schema = ABSENT_NAMED
    row_type = QuestionRow
    list_operation = ListOperation("custom-fields.list", "customFields", "customFieldId")

    def parse_row(self, data: Mapping[str, Json]) -> QuestionRow:
        return QuestionRow(
            RemoteId(require_text(data, "customFieldId")), require_text(data, "name"), data.get("isHidden") is True
        )

    def parse(self, entry: ManifestEntry) -> Iterator[DesiredResource[QuestionSpec]]:
        hidden = entry.body.get("hidden")
        yield desired_resource_by_name(self.name, entry, QuestionSpec(None if hidden is None else bool(hidden)))

    def parse_absent(self, entry: ManifestEntry) -> Iterator[DeleteEntry[Any]]:
        yield delete_entry_by_name(self.name, entry)

    def match(
        self,
        planning: PlanContext,
        declared: Sequence[DesiredResource[QuestionSpec]],
        absent: Sequence[DeleteEntry[Any]],
    ) -> MatchResult[QuestionSpec, QuestionRow]:
        return match_named(planning, QuestionRow, self.noun, declared, absent)

    def diff(self, planning: PlanContext, match: Match[QuestionSpec, QuestionRow]) -> BeforeAfter:
        hidden = match.declared.spec.hidden
        setting: Form = {} if hidden is None else {"hidden": hidden}
        after = {"name": match.address.name, **setting}
        if match.row is None:
            return BeforeAfter(before=None, after=after)
        live = self.live_form(planning, match.row)
        return BeforeAfter(before={key: live[key] for key in after}, after=after)

    def live_form(self, planning: PlanContext, row: QuestionRow) -> Form:
        return {"name": normalize_name(row.name), "hidden": row.hidden}

    def state_before_delete(self, planning: PlanContext, deletion: Deletion[QuestionRow]) -> BeforeAfter:
        return BeforeAfter(before=self.live_form(planning, deletion.row), after=None)

    def plan_steps(
        self, planning: PlanContext, match: Match[QuestionSpec, QuestionRow], sides: BeforeAfter
    ) -> list[Step]:
        form = {**({} if match.row is None else self.live_form(planning, match.row)), **(sides.after or {})}
        values = {"name": form["name"], "type": "TEXT", "isHidden": form.get("hidden", False)}
        operation = "custom-fields.create" if match.row is None else "custom-fields.replace"
        path = {} if match.row is None else {"customFieldId": match.row.id}
        return [Step(operation=operation, path=path, body=planning.call_templates.body(operation, **values))]

    def plan_delete(self, planning: PlanContext, deletion: Deletion[QuestionRow]) -> list[Step]:
        return [Step(operation="custom-fields.delete", path={"customFieldId": deletion.row.id}, revokes=True)]


KIND = QuestionKind()
