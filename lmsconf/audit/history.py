"""Which kept runs changed a resource or a person, as text and as the document `lmsconf.history/1`."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from lmsconf.documents import plan_file
from lmsconf.documents.journal.journal_reader import kept_plan_text
from lmsconf.documents.json_documents import TOOL, change_json, escape_in_strings, object_json, render_json
from lmsconf.errors import LmsconfError
from lmsconf.kinds.shared.kind_names import USER
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.names import exact_pattern, grouped, nearest_names, normalize_email
from lmsconf.model.outcomes import CallState, JournalHeader, RecordedRun
from lmsconf.model.plan import Action, Change, FieldChange, Plan
from lmsconf.model.time_formats import format_utc
from lmsconf.planner.selection import canonical_pattern, resolve_pattern
from lmsconf.render.jinja import terminal_text


class RecordedChange(Struct, frozen=True, kw_only=True):
    """A change of a run to what is asked about.

    change: None if the plan of the run is not kept; why says so then. states: of all calls that were planned for it.
    """

    run: RecordedRun
    address: Address
    states: Sequence[CallState]
    change: Change | None = None
    why_no_plan: str | None = None

    @property
    def result(self) -> Literal["done", "failed", "unknown", "not_attempted"]:
        """What became of it, by the states of its calls. unknown: one of them may have been carried out."""
        if CallState.IN_FLIGHT in self.states:
            return "unknown"
        if all(state is CallState.NOT_ATTEMPTED for state in self.states):
            return "not_attempted"
        return "done" if self.done == len(self.states) else "failed"

    @property
    def done(self) -> int:
        """How many of its calls were done."""
        return self.states.count(CallState.DONE)


class History(Struct, frozen=True, kw_only=True):
    """What runs changed, the newest first.

    asked: the address or e-mail. kept_since: when the oldest run began that was looked at; None if none is kept.
    earlier_names: the addresses that were followed back through renames. near: other addresses of the history that the
    one asked for may be meant as, if nothing was found. unreadable: runs whose journals cannot be read.
    """

    asked: str
    changes: tuple[RecordedChange, ...]
    runs: int
    kept_since: str | None
    earlier_names: tuple[str, ...]
    near: tuple[str, ...]
    unreadable: tuple[str, ...]


def find_history(runs: Iterable[RecordedRun], asked: str) -> History:
    """Return what these runs, newest first, changed of a resource by its address, or of a person by e-mail.

    Words of a view, or a name alone, are understood where they mean exactly one resource that the runs changed.
    """
    listed = list(runs)
    readable = [run for run in listed if run.opening is not None]
    seen = sorted({call.address for run in readable for call in run.calls})
    search = _Search(asked, readable)
    meant = None if search.changes else _meant(asked, seen)
    if meant is not None:
        search = _Search(meant, readable)
    began = [run.opening.started for run in readable if run.opening is not None]
    return History(
        asked=asked if meant is None else meant,
        changes=tuple(search.changes),
        runs=len(readable),
        kept_since=f"{began[-1]:%Y-%m-%d}" if began else None,
        earlier_names=tuple(search.earlier),
        near=() if search.changes else tuple(nearest_names(search.canonical, seen, 3)),
        unreadable=tuple(run.name for run in listed if run.opening is None),
    )


def _meant(asked: str, seen: Sequence[str]) -> str | None:
    """Return the one of these addresses that other words than an address mean."""
    addresses = list(map(Address.parse, seen))
    pattern = resolve_pattern(asked, addresses)
    exact = (str(address) for address in addresses if exact_pattern(str(address)) == pattern.pattern)
    return next(exact, None) if pattern.matches else None


class _Search:
    """What runs, from the newest to the oldest, changed of exactly one resource, or one person."""

    def __init__(self, asked: str, runs: Iterable[RecordedRun]) -> None:
        is_email = "@" in asked and "/" not in asked
        self.canonical = self.current = asked if is_email else canonical_pattern(asked)
        self.email = normalize_email(asked) if is_email else _person_in(self.canonical)
        self.earlier: list[str] = []
        self.changes = [change for run in runs for change in self._in_run(run)]

    def _in_run(self, run: RecordedRun) -> Iterator[RecordedChange]:
        try:
            text = kept_plan_text(run)
            # Most plans name neither: loading a large one takes seconds.
            plan = plan_file.loads(text) if self._may_be_in(text) else None
        except LmsconfError as error:
            yield from self._without_plan(run, f"{error.message}. {error.hint}")
            return
        if plan is not None:
            for change in list(filter(None, map(self._fitting, plan.changes))):
                yield RecordedChange(run=run, address=change.address, states=_states(plan, change, run), change=change)
                self._follow(change)

    def _may_be_in(self, text: str) -> bool:
        """Whether the text of a plan file has the address, or the e-mail, anywhere."""
        names_person = self.email is not None and self.email in normalize_email(text)
        return names_person or escape_in_strings(json.dumps(self.current, ensure_ascii=False))[1:-1] in text

    def _fitting(self, change: Change) -> Change | None:
        """Return the change as far as it is about what is asked; None if it is not."""
        is_own = self.email is not None and _person_in(str(change.address)) == self.email
        about = None if self.email is None else _about_person(change, self._is_person)
        return change if is_own or str(change.address) == self.current else about

    def _is_person(self, value: Json) -> bool:
        return isinstance(value, str) and "@" in value and normalize_email(value) == self.email

    def _follow(self, change: Change) -> None:
        """Look for the old name of a renamed resource in all earlier runs."""
        for field in change.fields if str(change.address) == self.current else ():
            if field.path == "name" and isinstance(field.before, str) and field.before and field.after is not None:
                self.current = str(Address.of(change.address.kind, field.before))
                self.earlier.append(self.current)

    def _without_plan(self, run: RecordedRun, why: str) -> Iterator[RecordedChange]:
        """Yield what the journal alone shows: which addresses had calls, and how these ended."""
        fitting = (one for one in run.calls if one.address == self.current or any(map(self._is_person, one.people)))
        for text, calls in grouped(fitting, lambda call: call.address).items():
            yield RecordedChange(
                run=run, address=Address.parse(text), states=[call.effect for call in calls], why_no_plan=why
            )


def _person_in(address: str) -> str | None:
    """Return the e-mail in the address of a person, or of an assignment to one, as e-mails are compared."""
    match = re.fullmatch(rf"(?:.* -> )?{USER}/(.*)", address, re.DOTALL)
    return None if match is None else normalize_email(match[1])


def _about_person(change: Change, is_person: Callable[[Json], bool]) -> Change | None:
    """Return a change with only those of its values that name the person; None if none does."""
    before, after = (_only(form, is_person) for form in (change.before, change.after))
    fields = tuple(filter(None, (_field(field, is_person) for field in change.fields)))
    is_whole = change.action in (Action.CREATE, Action.DELETE) and not (before is None and after is None)
    return replace(change, before=before, after=after, fields=fields) if fields or is_whole else None


def _only(form: Json, is_person: Callable[[Json], bool]) -> Json:
    """Return the keys of a resource that name the person, their lists reduced to the person; None if none does."""
    named = {
        key: list(filter(is_person, value)) if isinstance(value, list) else is_person(value) and value
        for key, value in members(form).items()
    }
    return {key: value for key, value in named.items() if value} or None


def _field(field: FieldChange, is_person: Callable[[Json], bool]) -> FieldChange | None:
    added, removed = (tuple(filter(is_person, items)) for items in (field.added, field.removed))
    if added or removed or is_person(field.before) or is_person(field.after):
        return replace(field, added=added, removed=removed)
    return None


def _states(plan: Plan, change: Change, run: RecordedRun) -> list[CallState]:
    """Return what became of each call of a change."""
    # A change that the service makes itself follows the change that causes it.
    at = change.goes_with if change.is_side_effect and change.goes_with is not None else change.address
    recorded = {call.call: call.effect for call in run.calls}
    return [recorded.get(call.id, CallState.NOT_ATTEMPTED) for call in plan.calls if call.address == at]


def history_text(history: History) -> str:
    """Render the changes run by run, newest first, and how far back the runs go."""
    return terminal_text(
        "history.txt.j2", history=history, near=" or ".join(map(shlex.quote, history.near)), utc=format_utc
    )


def history_json(history: History) -> str:
    """Return the history as JSON."""
    return render_json(
        {
            "format": "lmsconf.history/1",
            "tool": TOOL,
            "asked": history.asked,
            "runs": history.runs,
            "kept_since": history.kept_since,
            "earlier_names": list(history.earlier_names),
            "near": list(history.near),
            "unreadable": list(history.unreadable),
            "changes": [_change_json(change) for change in history.changes],
        }
    )


HISTORY_VIEWS: Mapping[str, Callable[[History], str]] = {"text": history_text, "json": history_json}


def _change_json(recorded: RecordedChange) -> dict[str, Json]:
    header = cast("JournalHeader", recorded.run.opening)  # runs without one are not looked at
    whole = None if recorded.change is None else change_json(recorded.change)
    return {
        "run": recorded.run.name,
        "workspace": {"name": header.workspace, "url": header.url},
        "started_at": format_utc(header.started),
        "approvals": dict(sorted(header.meta.items())),
        "commit": None if header.commit is None else object_json(header.commit),
        "address": str(recorded.address),
        "result": recorded.result,
        "calls": {"done": recorded.done, "planned": len(recorded.states)},
        "change": None
        if whole is None
        else {key: whole[key] for key in ("action", "about", "reason", "source", "before", "after", "fields")},
        "why_no_plan": recorded.why_no_plan,
    }
