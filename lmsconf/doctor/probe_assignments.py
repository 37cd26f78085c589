"""Lessons on assignments of one content to a scratch group without members."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from lmsconf.api.spec.dialect_candidates import (
    CLEAR_TIME,
    DEFAULT_START,
    EVERYONE_ID,
    ON_EXISTING,
    TIME_FORMAT,
    Value,
)
from lmsconf.api.spec.value_encoding import TIME_ZONE
from lmsconf.doctor.probe_trials import ScratchObjects, TrialClient, Trying, WriteResult, required
from lmsconf.kinds.assignment.types import TargetRow
from lmsconf.model.canonical_json import Json
from lmsconf.model.time_formats import (
    format_request_time,
    is_local_time,
    parse_response_time,
    time_format_of,
    with_offset,
)

MANDATORY: Final = "content-targets.create.mandatory"
START: Final = "content-targets.create.startTime"
FINISH: Final = "content-targets.create.finishTime"
PRECISION: Final = "content-targets.time-precision"
KEYS: Final = (
    *(MANDATORY, START, TIME_ZONE, TIME_FORMAT, PRECISION, FINISH),
    *(DEFAULT_START, ON_EXISTING, CLEAR_TIME, EVERYONE_ID),
)
_FORMS: Final = ("iso", "iso-ms", "iso-local", "epoch-ms", "epoch-ms-number")


class AssignmentLessons:
    """One content, one group; each lesson begins without an assignment. zone: the project's."""

    def __init__(
        self,
        client: TrialClient,
        scratch: ScratchObjects,
        content: str,
        group: str,
        now: datetime,
        zone: str | None,
    ) -> None:
        self._client, self._scratch, self._content, self._group, self._zone = client, scratch, content, group, zone
        self._start = datetime(now.year, now.month, now.day, 6, 30, tzinfo=UTC) + timedelta(days=1)
        self._finish = self._start + timedelta(days=30)
        self._taken: list[str] = []
        self._shown, self._is_awaited = "", True

    def probe_keys(self) -> None:
        """Probe all keys of assignments, names before behaviours."""
        self._client.try_candidates(MANDATORY, self._is_mandatory)
        self._client.try_candidates(START, self._is_start)
        self._client.learn((TIME_ZONE, TIME_FORMAT, PRECISION), self._formats)
        self._client.try_candidates(FINISH, self._is_finish)
        self._default_start()
        self._client.learn((ON_EXISTING,), self._existing)
        self._client.learn((CLEAR_TIME,), self._clearing)
        self._scratch.delete_assignments(self._content, self._group)
        # The id of everyone is looked for among the assignments that there are: a try would reach everybody.
        id = self._client.project_spec.behaviour(EVERYONE_ID)
        self._client.conclude(
            EVERYONE_ID,
            (self._scratch.list_assignments(self._content, id), id, "the content has an assignment to this id"),
            (True, None, f"the content has no assignment to {id}, and none is made for a try"),
        )

    def _is_mandatory(self, value: Value) -> bool:
        """Whether the flag follows the field both ways: a service could also default to true."""
        rows = ((flag, self._fresh({"mandatory": flag}, {MANDATORY: value})) for flag in (True, False))
        return all(row is not None and row.mandatory is flag for flag, row in rows)

    def _is_start(self, value: Value) -> bool:
        """Whether a start under that name is shown again, in whichever format it had to be sent."""
        form = next((form for form in _FORMS if self._starts(form, {START: value})), None)
        self._taken = [form] if form else []
        return form is not None

    def _starts(self, form: str, trying: Trying) -> bool:
        """Whether a start in that format is shown as sent, or as the same time of the project's zone."""
        shown = self._fresh_start(self._start, form, trying)
        local = with_offset(shown, self._zone) if shown and self._zone and form != "iso-local" else None
        if not (_is_at(shown, self._start) or self._client.is_determined(TIME_ZONE)) and _is_at(local, self._start):
            self._client.conclude(TIME_ZONE, (True, self._zone, f"a time was shown as {shown}, without offset"))
            shown = local
        if not _is_at(shown, self._start):
            return False
        self._shown = str(shown)
        return True

    def _formats(self) -> None:
        """Probe the formats in which a time is accepted, and how exactly it is kept."""
        required(self._client.is_determined(START), "without the name of startTime no time can be sent")
        self._taken += [form for form in _FORMS if form not in self._taken and self._starts(form, {})]
        # `auto` uses the format that the service shows, or else ISO.
        auto = {"iso", time_format_of(self._shown)} <= set(self._taken)
        self._client.try_candidates(TIME_FORMAT, lambda form: auto if form == "auto" else form in self._taken)
        if not self._client.is_determined(TIME_ZONE):
            self._client.conclude(
                TIME_ZONE,
                (
                    self._taken == ["iso-local"] and is_local_time(self._shown),
                    None,
                    "times are accepted and shown without an offset alone",
                ),
                (True, "UTC", "a time was shown as the instant that was sent"),
            )
        precise = self._start + timedelta(seconds=37)
        shown = self._fresh_start(precise, self._taken[0])
        self._client.conclude(
            PRECISION,
            (_is_at(shown, precise), "second", "a time with seconds was shown as sent"),
            (_is_at(shown, self._start), "minute", "the seconds of a time were cut off"),
            (True, None, f"a time with seconds is shown as {shown}"),
        )

    def _fresh_start(self, moment: datetime, form: str, trying: Trying | None = None) -> str | None:
        """The start that an assignment shows which is created with this one."""
        row = self._fresh({"startTime": self._sent(moment, form)}, trying)
        return None if row is None else row.start

    def _sent(self, moment: datetime, form: str) -> str | int:
        return format_request_time(moment, form, self._client.spec.behaviour(TIME_ZONE))

    def _is_finish(self, value: Value) -> bool:
        return any(
            row is not None and _is_at(row.finish, self._finish)
            for form in self._taken or _FORMS  # the end may need another format than any that was sent
            for row in [self._fresh({"finishTime": self._sent(self._finish, form)}, {FINISH: value})]
        )

    def _default_start(self) -> None:
        """Probe which start an assignment has that is created without one."""
        row = self._fresh({})
        self._client.conclude(
            DEFAULT_START,
            (row is None, None, "no assignment could be made"),
            (row is not None and row.start is None, "open", "an assignment without a start is shown without one"),
            (True, "now", f"an assignment without a start is shown with {row.start if row else None}"),
        )

    def _existing(self) -> None:
        """Probe whether a POST updates an existing assignment, or it must be deleted first."""
        is_flag = self._client.is_determined(MANDATORY)
        required(
            is_flag or self._client.is_determined(START),
            "nothing is known that could be changed: neither mandatory nor startTime",
        )
        required(self._fresh({"mandatory": False} if is_flag else {}), "no assignment could be made")
        sent = self._post({"mandatory": True} if is_flag else self._with_start())
        rows = self._rows()
        changed = len(rows) == 1 and (rows[0].mandatory if is_flag else rows[0].start is not None)
        why = sent.reason or ("it was created twice" if len(rows) > 1 else "it had no effect")
        self._client.conclude(
            ON_EXISTING,
            (changed, "update", "a second POST changed the assignment"),
            (True, "recreate", f"a second POST did not change the assignment: {why}"),
        )

    def _clearing(self) -> None:
        """Probe what clears a side of the window, by the confirmed way of changing assignments."""
        required(self._client.is_determined(START), "without the name of startTime there is nothing to clear")
        if (
            not self._client.try_candidates(CLEAR_TIME, self._clears)
            and self._client.spec.behaviour(ON_EXISTING) == "update"
            and self._client.is_determined(ON_EXISTING)
        ):
            self._client.conclude(
                ON_EXISTING,
                (True, "recreate", "a second POST changes an assignment, but opens no end of its window"),
            )
            self._client.try_candidates(CLEAR_TIME, self._clears)

    def _clears(self, value: Value) -> bool:
        row = self._fresh(self._with_start())
        if row is None or row.start is None:
            return False
        if self._client.spec.behaviour(ON_EXISTING) == "recreate":
            self._scratch.delete_assignments(self._content, self._group)
        cleared = {} if value == "omit" else {"startTime": "" if value == "empty" else None}
        sent = self._post({"mandatory": False, **cleared})
        rows = self._rows()
        return sent.accepted and len(rows) == 1 and rows[0].start is None

    def _with_start(self) -> dict[str, Json]:
        return {"mandatory": False, "startTime": self._sent(self._start, self._taken[0])}

    def _fresh(self, fields: Mapping[str, Json], trying: Trying | None = None) -> TargetRow | None:
        """The assignment that a POST creates where none was; None if it creates none."""
        self._scratch.delete_assignments(self._content, self._group)
        sent, lag = self._post(fields, trying), self._client.lag
        # The first one that is not refused shows how late a service shows them, unless it never shows.
        rows = self._scratch.wait_for(self._rows, sent) if self._is_awaited else self._rows()
        self._is_awaited &= sent.refused
        self._client.lag = self._client.lag if rows else lag
        return rows[0] if rows else None

    def _post(self, fields: Mapping[str, Json], trying: Trying | None = None) -> WriteResult:
        return self._client.send(
            "content-targets.create",
            fields={"contentId": self._content, "targetId": self._group, **fields},
            trying=trying,
        )

    def _rows(self) -> list[TargetRow]:
        return self._scratch.list_assignments(self._content, self._group)


def _is_at(text: str | None, moment: datetime) -> bool:
    """Whether a live time value equals that moment."""
    try:
        return text is not None and parse_response_time(text) == moment
    except ValueError:
        return False
