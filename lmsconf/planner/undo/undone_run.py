"""A run to be undone: its plan, what became of its calls, and the part of the workspace that it changed, as it was."""

from __future__ import annotations

from collections.abc import Mapping

from lmsconf.model.address import Address, RemoteId
from lmsconf.model.calls import Call, is_creation
from lmsconf.model.plan import Change, Plan
from lmsconf.model.recorded_run import CallState, RecordedRun
from lmsconf.model.snapshot import Snapshot

_MAY_BE_DONE = frozenset({CallState.DONE, CallState.IN_FLIGHT})


class RunToUndo:
    """A recorded run with its plan.

    before: what the run changed, as it was before. recreated: the ids of resources that an earlier undo of this run has
    created again, by address. unsure: addresses of creations of such a run whose outcome is not known.
    """

    def __init__(
        self,
        recorded: RecordedRun,
        plan: Plan,
        before: Snapshot,
        *,
        recreated: Mapping[Address, RemoteId] | None = None,
        unsure: frozenset[Address] = frozenset(),
    ) -> None:
        self.name, self.plan, self.before = recorded.name, plan, before
        self.digest = recorded.opening.digest if recorded.opening is not None else ""
        self.recreated, self.unsure = recreated or {}, unsure
        self._recorded = {call.call: call for call in recorded.calls}

    def calls(self, change: Change) -> list[Call]:
        """Return the calls of a change that were carried out, or may have been."""
        return [call for call in self.plan.calls if call.address == change.address and self._may_be_done(call)]

    def is_done(self, change: Change) -> bool:
        """Whether the run has, or may have, carried out any of a change."""
        if change.is_effect:
            return any(self.calls(one) for one in self.plan.changes if one.address == change.goes_with)
        return bool(self.calls(change))

    def created_id(self, change: Change) -> RemoteId | None:
        """Return the id of a resource that the run created; None if its journal has none."""
        recorded = (self._recorded[call.id] for call in self.calls(change) if is_creation(call.operation))
        return next((RemoteId(one.id) for one in recorded if one.id), None)

    def people_of(self, change: Change, key: str) -> frozenset[str] | None:
        """Return the people that the run has, or may have, added to or removed from a list; None if calls name none."""
        word = key.removesuffix("s")
        calls = [call for call in self.plan.calls if call.address == change.address and word in call.operation]
        if not any(call.people for call in calls):
            return None
        return frozenset(email for call in calls if self._may_be_done(call) for email in call.people)

    def unsure_people(self, change: Change, key: str) -> frozenset[str]:
        """Return the people that calls add to a list which were not, or may not have been, carried out."""
        word = key.removesuffix("s")
        calls = (call for call in self.plan.calls if call.address == change.address and word in call.operation)
        return frozenset(email for call in calls if not self._is_done(call) for email in call.people)

    def unsure_texts(self, change: Change) -> frozenset[str]:
        """Return the texts in the bodies of calls which were not, or may not have been, carried out."""
        bodies = [call.body for call in self.plan.calls if call.address == change.address and not self._is_done(call)]
        return frozenset(
            text for body in bodies if isinstance(body, dict) for text in body.values() if isinstance(text, str)
        )

    def is_whole(self, change: Change) -> bool:
        """Whether every call of a change was carried out."""
        return all(self._is_done(call) for call in self.plan.calls if call.address == change.address)

    def has_only_deleted(self, change: Change) -> bool:
        """Whether the run has, or may have, deleted a resource that it replaces, and did not certainly create it again.

        The run may have been cut short between the two calls, or the second may have failed.
        """
        calls = self.calls(change)
        return any(call.method == "DELETE" for call in calls) and not any(
            is_creation(call.operation) and self._is_done(call) for call in calls
        )

    def has_sent(self, change: Change, text: str) -> bool:
        """Whether a call of a change gave the resource this name: the temporary one of a circle of renames."""
        return any(isinstance(call.body, dict) and text in call.body.values() for call in self.calls(change))

    def _is_done(self, call: Call) -> bool:
        recorded = self._recorded.get(call.id)
        return recorded is not None and recorded.state is CallState.DONE

    def _may_be_done(self, call: Call) -> bool:
        recorded = self._recorded.get(call.id)
        return recorded is not None and recorded.state in _MAY_BE_DONE
