"""Plan, report and journal of a run as copies without people: no e-mail, name, answer or id of a person.

Beside what `--mask-people` hides, these copies hide the names of manifest files, which may be those of people, and what
is known of the people of the plan where a message quotes it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Protocol, TypeVar, cast

from msgspec.structs import replace

from lmsconf.documents import plan_file, report_file
from lmsconf.errors import Problem
from lmsconf.journal.journal_folder import decode_lines, encode_line
from lmsconf.kinds import all_kinds
from lmsconf.kinds.content_target.types import is_about_people
from lmsconf.model.address import Address
from lmsconf.model.canonical_json import Json
from lmsconf.model.outcomes import ApplyReport, CallOutcome
from lmsconf.model.plan import Change, FieldChange, Plan

HIDDEN: Final = "(masked)"
DAMAGED: Final[Mapping[str, Json]] = {"event": "damaged"}
"""Stands in a masked journal for a line that cannot be read, and so cannot be masked."""
_SHORTEST: Final = 2
Value = TypeVar("Value")


class Mask(Protocol):
    """Replaces people by labels, the same one for a person wherever they are named."""

    def mask_value(self, value: Value) -> Value: ...
    def mask_text(self, text: str) -> str: ...


class CopyMask:
    """Masks the documents of one run."""

    def __init__(self, mask: Mask, plan: Plan | None) -> None:
        self._mask = mask
        known = sorted(set() if plan is None else _personal_texts(plan), key=len, reverse=True)
        self._known = re.compile("|".join(rf"(?<!\w){re.escape(text)}(?!\w)" for text in known)) if known else None

    def plan(self, plan: Plan) -> str:
        """Return the text of a plan file, which has the original's digest, and cannot be applied."""
        hidden = replace(
            plan,
            manifests_files=tuple(f"file {number}" for number, _ in enumerate(plan.manifests_files, 1)),
            changes=tuple(map(self._change, plan.changes)),
            problems=tuple(map(self._problem, plan.problems)),
            base=None if plan.base is None else HIDDEN,
        )
        return plan_file.dumps(self._mask.mask_value(hidden))

    def report(self, report: ApplyReport) -> str:
        """Return the text of a report."""
        hidden = replace(
            report,
            outcomes=tuple(map(self._outcome, report.outcomes)),
            residue=tuple(map(self._change, report.residue)),
            problems=tuple(map(self._problem, report.problems)),
        )
        return report_file.dumps(self._mask.mask_value(hidden))

    def journal(self, content: bytes) -> bytes:
        """Return the lines of a journal, each with the checksum of what is left of it."""
        return b"".join(
            encode_line(DAMAGED if entry is None else self._entry(entry)) for entry in decode_lines(content)
        )

    def _entry(self, entry: Mapping[str, Json]) -> dict[str, Json]:
        masked = {key: self._text_of(value) for key, value in entry.items()}
        if isinstance(text := entry.get("address"), str):
            masked["address"] = str(self._mask.mask_value(Address.parse(text)))
            # The id of an assignment to a person is the person's.
            masked |= {"id": None} if "id" in entry and is_about_people(Address.parse(text)) else {}
        return masked

    def _text_of(self, value: Json) -> Json:
        if isinstance(value, str):
            return self._mask.mask_text(self._scrub(value))
        if isinstance(value, list):
            return [self._text_of(item) for item in value]
        if isinstance(value, dict):
            return {self._mask.mask_text(key): self._text_of(item) for key, item in value.items()}
        return value

    def _change(self, change: Change) -> Change:
        about = None if change.about is None else cast("dict[str, Json]", self._text_of(dict(change.about)))
        return replace(
            change,
            about=about,
            source=None,
            reason=self._maybe(change.reason),
            problems=tuple(map(self._problem, change.problems)),
        )

    def _outcome(self, outcome: CallOutcome) -> CallOutcome:
        id = None if is_about_people(outcome.address) else outcome.id
        return replace(outcome, reason=self._maybe(outcome.reason), hint=self._maybe(outcome.hint), id=id)

    def _problem(self, problem: Problem) -> Problem:
        return replace(problem, message=self._scrub(problem.message), hint=self._maybe(problem.hint), source=None)

    def _maybe(self, text: str | None) -> str | None:
        return None if text is None else self._scrub(text)

    def _scrub(self, text: str) -> str:
        return text if self._known is None else self._known.sub(HIDDEN, text)


def _personal_texts(plan: Plan) -> Iterator[str]:
    """Yield the texts that the plan has of people: names and answers, but no e-mails, which are masked anyway."""
    for change in plan.changes:
        kind = all_kinds().get(change.address.kind)
        if kind is not None and kind.is_person:
            values = (change.before, change.after, *(leaf for field in change.fields for leaf in _values(field)))
            yield from (text for text in _texts(values) if len(text) >= _SHORTEST)


def _values(field: FieldChange) -> tuple[Json, ...]:
    return field.before, field.after, *field.added, *field.removed


def _texts(values: Iterable[Json]) -> Iterator[str]:
    """Yield the strings in JSON values, without the keys."""
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from _texts(value)
        elif isinstance(value, dict):
            yield from _texts(value.values())
