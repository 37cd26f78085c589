"""What is live in place of what the calls of a run should have made, and which value of the dialect would explain it.

The API specification leaves open how much a call does (names of body fields, lists that are added to or replaced, forms
of answers and times). What was sent and what is read back tell the explanations apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import chain
from typing import Final

from msgspec import Struct

from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.dialect_candidates import (
    ADD_MODE,
    CLEAR_DESCRIPTION,
    CLEAR_TIME,
    DEFAULT_START,
    METADATA_MODE,
    ON_EXISTING,
    TIME_FORMAT,
    WHO_CAN_MANAGE,
)
from lmsconf.api.spec.operations import load_api_description
from lmsconf.api.spec.value_encoding import ANSWERS, OMITTED, TIME_ZONE, answer_value_key, clear_answer_key
from lmsconf.apply.scheduler import RunResult
from lmsconf.errors import LmsconfError, Problem, Severity, WrongAssumption
from lmsconf.kinds.assignment.steps import TARGET_KEYS
from lmsconf.manifest.edit.text_edits import format_keys
from lmsconf.model.calls import Call, CallStatus
from lmsconf.model.canonical_json import Json, members
from lmsconf.model.names import count_noun
from lmsconf.model.plan import Action, Change, FieldChange, Plan
from lmsconf.model.time_formats import cut_time, duration_in_words


def dialect_hint(values: Mapping[str, str | int], purpose: str = ", and apply again") -> str:
    """Return the hint. purpose: what follows on `Set in the project file`."""
    return "\n".join(
        [f"Set in the project file{purpose}:", "  dialect:", *format_keys(dict(sorted(values.items())), "    ")]
    )


def look_at(keys: Iterable[str]) -> str:
    """Return the hint where no value is known that is right."""
    return f"Check the dialect keys {', '.join(keys)}, or find them out with `lmsconf doctor --probe`."


def wrong_assumptions(errors: Iterable[LmsconfError]) -> Iterator[Problem]:
    """Yield the problem of a run that found values of the dialect: all of them, as one block to paste."""
    found = (error.values.items() for error in errors if isinstance(error, WrongAssumption))
    if values := dict(chain.from_iterable(found)):
        yield Problem(
            code=WrongAssumption.code,
            message=f"the service differs in {count_noun(len(values), 'point')} from what was assumed; nothing else "
            "was sent that rests on them",
            severity=Severity.WARNING,
            hint=f"{dialect_hint(values)}\n"
            "`lmsconf doctor --probe --user EMAIL --content NAME` finds out the others before the next apply.",
        )


class _Explanation(Struct, frozen=True):
    """What would explain a difference: keys with their values, and keys of which any other value may be right."""

    values: Mapping[str, str] = {}
    keys: tuple[str, ...] = ()
    why: str = ""


_PRECISIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "visible_from": ("hour", "day"),
    "visible_until": ("hour", "day"),
    "custom_archive_date": ("minute", "hour", "day"),
}
"""Key → how a service may cut its time. Minutes of a window are tried as a value of their key."""


def no_effect_problem(plan: Plan, run: RunResult, change: Change, spec: ApiSpec) -> Problem:
    """Return the problem of a change that a fresh plan still has, although its calls were accepted."""
    calls = [call for call in plan.calls if call.address == change.address]
    message = "the service accepted its creation, but it still cannot be read"
    # Where nothing is known of its keys, any key of the calls may be wrong.
    explained = [_Explanation(keys=tuple(key for call in calls for key in spec[call.operation].dialect_keys))]
    if all(outcome.status is CallStatus.DONE for outcome in run.outcomes if outcome.address == change.address):
        message = "the service accepted the calls, but it is still not as planned"
        planned = next((one for one in plan.changes if one.address == change.address), None)
        if change.action is Action.DELETE:
            message, explained = f"{message}: it is still there", []
        elif planned is not None and change.action is not Action.CREATE:
            explained = [_explained(one, change, planned, calls, plan.timezone, spec) for one in change.fields]
            message = f"{message}: {few(map(_seen, change.fields, explained), '; ')}"
    values = {key: value for one in explained for key, value in one.values.items()}
    keys = dict.fromkeys(key for one in explained for key in one.keys if key not in values)
    hint = [dialect_hint(values)] if values else []
    if keys:
        hint.append(look_at(f"{key} (now {spec.behaviour(key)})" for key in keys))
    return Problem(
        code="apply/no-effect",
        message=f"{change.address}: {message}",
        hint="\n".join(hint or ["Plan again to see what remains."]),
        source=change.source,
        address=str(change.address),
    )


def _seen(field: FieldChange, explanation: _Explanation) -> str:
    """Return what is live of one key, what was planned, and why."""
    said = f"{field.path} is {_text(field.before)}, not {_text(field.after)}"
    if field.added or field.removed:
        sides = (("lack", field.added), ("still have", field.removed))
        said = f"{field.path} {' and '.join(f'{verb} {few(_texts(items))}' for verb, items in sides if items)}"
    return f"{said} ({explanation.why})" if explanation.why else said


def _explained(
    field: FieldChange, change: Change, planned: Change, calls: Sequence[Call], zone: str | None, spec: ApiSpec
) -> _Explanation:
    """Return what would explain that one key is not as planned, by the operations that should have changed it.

    field, change: of a fresh plan, which still has them: `before` is live. planned, calls: of the plan that
    was applied, for this resource. zone: the name of the project's time zone.
    """
    path, sent = field.path, {call.operation for call in calls}
    for operation in sent & {f"{of}.add-{path}" for of in ("manual-groups", "smart-groups")}:
        return _of_list(field, change, [call for call in calls if call.operation == operation], spec)
    if "content-targets.create" in sent and path in TARGET_KEYS:
        return _of_target(field, change, planned, zone, spec)
    if ANSWERS in sent and path.startswith("answers"):
        return _of_answer(field, planned)
    if (
        "users.update-metadata" in sent
        and path.startswith("metadata")
        and field.before is not None
        and field.after is None
    ):
        return _Explanation({METADATA_MODE: "merge"}, why="the service keeps what a call omits")
    if "custom-fields.replace" in sent and path == "description" and not field.after:
        return _Explanation({CLEAR_DESCRIPTION: "null" if spec.behaviour(CLEAR_DESCRIPTION) == "empty" else "empty"})
    if path == "custom_archive_date" and (why := deviation_of(field)):
        return _Explanation(why=why)
    key = {
        "first_name": "users.create.firstName",
        "last_name": "users.create.lastName",
        "language": "users.create.language",
        "custom_archive_date": "users.set-custom-archived-date.date",
        "name": "manual-groups.rename.name",
    }.get(path, "")
    return _Explanation(keys=(key,) if key.rpartition(".")[0] in sent else ())


def _of_list(field: FieldChange, change: Change, calls: Sequence[Call], spec: ApiSpec) -> _Explanation:
    """A list of people: were the missing ones in it before, or did the calls of that operation name them?"""
    missing = {*_texts(field.added)}
    batches = [{*call.people} for call in calls]
    named = set().union(*batches)
    arrived = named - missing
    if not missing:
        return _Explanation()
    if arrived and spec.behaviour(ADD_MODE) == "add" and (missing - named or (batches[-1] <= arrived != named)):
        live = members(change.before).get(field.path)
        holds_only = isinstance(live, list) and {*_texts(live)} == arrived
        people = count_noun(len(arrived), "person who was", "people who were")
        why = f"the list now holds only the {people} added" if holds_only else "they were in the list before"
        return _Explanation({ADD_MODE: "replace"}, why=f"{why}: the service replaces")
    if arrived:
        return _Explanation(why="the service passed them over")
    keys = tuple(key for key in load_api_description().names if key.startswith(f"{calls[0].operation}."))
    if field.path == "managers" and spec.behaviour(WHO_CAN_MANAGE) == "anybody":
        return _Explanation(keys=(*keys, WHO_CAN_MANAGE), why="nobody was added, as where managers need the right")
    return _Explanation(keys=keys, why="nobody was added")


def _of_answer(field: FieldChange, planned: Change) -> _Explanation:
    """An answer: one that no call named, one that was to be cleared, or one that was to be given."""
    live, wanted = field.before, field.after
    was_named = any(one.path == field.path for one in planned.fields)
    if not was_named and planned.action is not Action.CREATE and not live:
        return _Explanation({OMITTED: "clear"}, why="the service clears the answers that a call omits")
    several = isinstance(live or wanted, list) or field.added or field.removed
    of = answer_value_key if wanted or field.added else clear_answer_key
    keys = tuple(map(of, ("MULTI_SELECT",) if several else ("CHOICE", "TEXT")))
    hidden = "a service may not show answers to hidden fields: leave them out"
    return _Explanation(keys=keys, why="" if live or field.removed else hidden)


def _of_target(field: FieldChange, change: Change, planned: Change, zone: str | None, spec: ApiSpec) -> _Explanation:
    """A value of an assignment."""
    path, live, wanted = field.path, field.before, field.after
    why = deviation_of(field)
    is_kept = planned.action is Action.UPDATE and planned.fields == change.fields
    if why and (not is_kept or _cut(field)):
        is_local = zone is not None and _instant(live) - _instant(wanted) == _instant(wanted).utcoffset()
        return _Explanation({TIME_ZONE: str(zone)} if is_local else {}, why=why)
    if is_kept:
        return _Explanation({ON_EXISTING: "recreate"}, why="an assignment that is there stays as it is")
    if path == "mandatory" or (live is None and wanted is not None):
        return _Explanation(keys=(TARGET_KEYS[path],))
    if wanted is None and planned.action is not Action.UPDATE:
        again = ", or apply again to clear it" if planned.action is Action.CREATE else ""
        stays = path == "visible_from" and spec.behaviour(ON_EXISTING) == "recreate"
        return _Explanation(
            {DEFAULT_START: "now"} if stays and spec.behaviour(DEFAULT_START) == "open" else {},
            why=f"the service sets it by itself: declare a value{again}",
        )
    if wanted is None:
        tried = spec.behaviour(CLEAR_TIME)
        other = " or ".join(way for way in ("null", "omit", "empty") if way != tried)
        return _Explanation(keys=(CLEAR_TIME,), why=f"{tried} does not open it; {other} may")
    if abs(_instant(live) - _instant(wanted)) < timedelta(minutes=1) and not _instant(live).second:
        return _Explanation({"content-targets.time-precision": "minute"}, why="the service cuts seconds off")
    return _Explanation(keys=(TIME_FORMAT,))


def deviation_of(field: FieldChange) -> str | None:
    """Return how a service keeps or shows a declared time otherwise; None if the live one is another."""
    if field.path not in _PRECISIONS or not field.before or not field.after:
        return None
    if cut := _cut(field):
        return cut
    shift = _instant(field.before) - _instant(field.after)
    is_zone = field.path != "custom_archive_date" and shift and not shift % timedelta(minutes=15)
    if not is_zone or abs(shift) > timedelta(hours=14):
        return None
    by = f"{duration_in_words(abs(shift).total_seconds())} {'later' if shift > timedelta() else 'earlier'}"
    return f"it is shown {by}, as a local time would be: {TIME_ZONE} names the zone"


def _cut(field: FieldChange) -> str | None:
    live, wanted = _instant(field.before), _instant(field.after)
    cuts = (one for one in _PRECISIONS[field.path] if live == cut_time(wanted, one) != wanted)
    return next((f"the service cuts it to the {one}: declare the time that it keeps" for one in cuts), None)


def deviates(fields: Iterable[FieldChange], planned: Collection[FieldChange]) -> bool:
    """Whether fields that a fresh plan has left are times that a service keeps or shows otherwise.

    planned: the fields of the plan that was applied. One of them that is shown hours off may be as it was.
    """
    return all(deviation_of(one) and (one not in planned or _cut(one)) for one in fields)


def _instant(value: Json) -> datetime:
    return datetime.fromisoformat(str(value))


def _texts(items: Iterable[Json]) -> list[str]:
    return [one if isinstance(one, str) else _text(one) for one in items]


def _text(value: Json) -> str:
    if value is None or value == []:
        return "(none)"
    if isinstance(value, list):
        return few(_texts(value))
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else f'"{value}"'


def few(texts: Iterable[str], separator: str = ", ", *, most: int = 3) -> str:
    """Return the first texts, joined, and how many more there are."""
    shown = list(texts)
    more = f"{separator}and {len(shown) - most:,} more" if len(shown) > most else ""
    return separator.join(shown[:most]) + more
