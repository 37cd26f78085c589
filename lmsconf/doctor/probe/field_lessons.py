"""Lessons on a scratch field: how to clear a description, and when the field counts as in use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lmsconf.api.spec.dialect_keys import Value
from lmsconf.api.spec.operations import CUSTOM_FIELDS, SMART_GROUPS
from lmsconf.doctor.probe.scratch_objects import ScratchObjects, reason_of_leftover
from lmsconf.doctor.probe.trial_client import TrialClient, WriteResult, required
from lmsconf.kinds.custom_field.types import FieldRow, parse_field_row
from lmsconf.model.canonical_json import Json

DESCRIPTION: Final = "custom-fields.clear-description"
IN_USE: Final = "custom-fields.in-use"
KEYS: Final = (DESCRIPTION, IN_USE)
_TEXT: Final = "Created by a probe of lmsconf, and deleted afterwards."
_CLEARING: Final[Mapping[Value, str | None]] = {"empty": "", "null": None}
_FORBIDDEN: Final = 403


def probe_field_keys(client: TrialClient, scratch: ScratchObjects) -> None:
    """Probe both keys on a hidden field with two choices. Raises Undetermined if there cannot be one."""
    scratch.count_free_fields()
    definition = {
        "type": "CHOICE",
        "choices": [{"name": "A"}, {"name": "B"}],
        "description": _TEXT,
        "isHidden": True,
        "isOptional": True,
    }
    _FieldLessons(client, scratch, parse_field_row(scratch.create(CUSTOM_FIELDS, definition))).learn()


class _FieldLessons:
    def __init__(self, client: TrialClient, scratch: ScratchObjects, field: FieldRow) -> None:
        self._client, self._scratch, self._field = client, scratch, field

    def learn(self) -> None:
        """Probe the description first: a field in use may not be changeable."""
        if self._live().description:
            self._client.try_candidates(DESCRIPTION, self._clears)
        self._client.record_undetermined((DESCRIPTION,), "the scratch field did not get a description")
        self._in_use()

    def _clears(self, value: Value) -> bool:
        return self._put({"description": _CLEARING[value]}).accepted and not self._live().description

    def _in_use(self) -> None:
        """Probe which changes are refused while a condition names the field, from the least to the greatest."""
        required(self._put({}).accepted, "replacing the scratch field is refused although no smart group names it")
        required(SMART_GROUPS not in self._scratch.left, reason_of_leftover(SMART_GROUPS))
        choices = [str(choice.id) for choice in self._field.choices]
        required(len(choices) == 2, "the scratch field did not get its two choices")
        first, second = choices
        group = str(self._scratch.create(SMART_GROUPS, {"conditions": [self._condition(first)]})["smartGroupId"])
        sent, forbidden = self._put({}), "condition"
        if sent.accepted:
            sent, forbidden = self._put({"choices": [{"choiceId": second, "name": "B"}]}), "removed-choice"
        if sent.accepted:
            # Removing the choice may have removed it from the condition, so that names the other one from here on.
            conditions = {"conditions": [self._condition(second)]}
            self._client.send("smart-groups.replace-conditions", path={"smartGroupId": group}, fields=conditions)
            sent = self._client.send("custom-fields.delete", path={"customFieldId": self._field.id})
        self._conclude(sent, forbidden)

    def _conclude(self, sent: WriteResult, forbidden: str) -> None:
        self._client.conclude(
            IN_USE,
            (sent.accepted, "never", "nothing was refused while a smart group named the field"),
            (sent.status == _FORBIDDEN, forbidden, f"refused while a smart group named the field: {sent.reason}"),
            (True, None, f"the field was refused for another reason: {sent.reason}"),
        )

    def _condition(self, choice: str) -> dict[str, Json]:
        return {"customFieldId": str(self._field.id), "choiceIds": [choice]}

    def _put(self, changes: Mapping[str, object]) -> WriteResult:
        """Replace the whole field with its live values, except those given."""
        live = self._live()
        body: dict[str, object] = {
            "name": live.name,
            "type": live.type,
            "choices": [{"choiceId": str(choice.id), "name": choice.name} for choice in live.choices],
            "isHidden": True,
            "isOptional": True,
            **({"description": live.description} if live.description else {}),
            **changes,
        }
        return self._client.send("custom-fields.replace", path={"customFieldId": self._field.id}, fields=body)

    def _live(self) -> FieldRow:
        return parse_field_row(self._scratch.read_row(CUSTOM_FIELDS, self._field.id))
