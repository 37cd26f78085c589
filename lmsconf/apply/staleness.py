"""Whether a plan is stale: compare what was reviewed with what is live now, by resource and key.

A plan fits if it could be made again: its changes, re-planned on the current snapshot, give the same calls on resources
that are unchanged. Other changes in the workspace do not matter.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import reduce
from operator import and_
from typing import Final, cast

from msgspec.structs import replace

from lmsconf.apply.explain_mismatch import few
from lmsconf.documents.json_documents import change_json
from lmsconf.errors import (
    Problem,
    StalePlan,
    refuse_if,
)
from lmsconf.model.calls import Call
from lmsconf.model.canonical_json import Json, members, sha256
from lmsconf.model.control_characters import escape_invisible
from lmsconf.model.guards import GUARD_TABLE
from lmsconf.model.names import grouped, quote_name
from lmsconf.model.plan import Action, Change, Plan, total_taken
from lmsconf.model.time_formats import ISO, format_request_time, parse_response_time
from lmsconf.workspace.reader import WorkspaceReader

_ABSENT: Final = object()
"""Marks a key that one side lacks."""


def find_stale_resources(plan: Plan, now: Plan, unplannable: Sequence[Problem] = ()) -> tuple[Problem, ...]:
    """Return why the plan no longer fits; empty if it fits.

    now: the same changes re-planned against the current snapshot. unplannable: the problems of those that can no longer
    be planned.
    """
    wanted, today = ({str(change.address): change for change in one.changes} for one in (plan, now))
    broken = {problem.address for problem in unplannable}
    problems = [_unplannable(problem, wanted.get(problem.address or "")) for problem in unplannable]
    reviewed, fresh = (grouped(one.calls, lambda call: str(call.address)) for one in (plan, now))
    for address in sorted(({*wanted, *today} | {*plan.fingerprints, *now.fingerprints}) - broken):
        differs = plan.fingerprints.get(address) != now.fingerprints.get(address)
        if differs or address not in wanted or address not in today:
            problems.append(_changed(address, wanted.get(address), today.get(address)))
        elif reviewed.get(address) != fresh.get(address) and (
            [*map(_request, reviewed.get(address, ()))] != [*map(_request, fresh.get(address, ()))]
        ):
            # A reference resolves to another id, or the plan was edited.
            problems.append(
                _problem(
                    wanted[address],
                    f"{address}: what it needs has changed since the plan was made, so its calls would differ",
                )
            )
    problems.extend(_new_errors(plan, now))
    problems = problems or list(_other_differences(plan, now))
    if not problems and any(
        _counts_more(name, plan, now) or (guard.replanned == "same" and _counts_more(name, now, plan))
        for name, guard in GUARD_TABLE.items()
        if guard.replanned
    ):
        problems.append(_problem(None, "the plan removes other things than its guards counted"))
    return tuple(problems)


def find_foreign_changes(plan: Plan, left: Plan, unplannable: Sequence[Problem] = ()) -> tuple[Problem, ...]:
    """Return why what is left of a plan cannot be applied; empty if it is all part of the plan.

    left: the plan's changes re-planned against the current snapshot, after a run that has carried out any number of its
    calls. A resource must be as it was when the plan was made, as the plan makes it, or between: each key has the value
    of one of them, and each list has what both have, and nothing that neither has.
    """
    wanted, today = ({str(change.address): change for change in one.changes} for one in (plan, left))
    problems = [
        *(_unplannable(problem, wanted.get(problem.address or "")) for problem in unplannable),
        *(
            _changed(address, wanted.get(address), now)
            for address, now in today.items()
            if address not in wanted or not _is_part_done(wanted[address], now)
        ),
        *(
            _problem(None, f"{address} has changed since the plan was made", address=address)
            for address in sorted(left.fingerprints.keys() - wanted.keys())
            if left.fingerprints[address] != plan.fingerprints.get(address)
        ),
        *_new_errors(plan, left),
    ]
    if not problems and any(_counts_more(name, plan, left) for name, guard in GUARD_TABLE.items() if guard.takes):
        problems.append(_problem(None, "what is left of the plan removes other things than its guards counted"))
    return tuple(problems)


def _new_errors(plan: Plan, now: Plan) -> Iterable[Problem]:
    """Return the errors of a re-plan that the plan did not have."""
    known = {(problem.code, problem.address) for problem in plan.all_problems}
    return (
        replace(one, code=StalePlan.code)
        for one in now.all_problems
        if one.is_error and (one.code, one.address) not in known
    )


def _counts_more(guard: str, plan: Plan, now: Plan) -> bool:
    """Whether a guard counts more in another plan."""
    total, again = (total_taken(guard, one.measures) for one in (plan, now))
    return total is not None and (again is None or again > total)


def _is_part_done(then: Change, now: Change) -> bool:
    """Whether a change of a re-plan is one of the plan, not begun or carried out in part."""
    if then.action is Action.DELETE or now.action is Action.DELETE:
        return then.action is now.action and then.id == now.id and _is_between(then.before, {}, now.before)
    if now.before is None:
        return then.action in (Action.CREATE, Action.REPLACE)
    if then.action is Action.UPDATE and then.id != now.id:
        return False
    planned = members(then.after)
    # What a creation does not name, the service decides, and the plan shows nothing of it.
    live = {key: value for key, value in members(now.before).items() if then.before is not None or key in planned}
    return _is_between(then.before, planned, live)


def _is_between(before: object, after: object, live: object) -> bool:
    """Whether a live value is one of two values, or between them."""
    if _alike(live, before) or _alike(live, after):
        return True
    if isinstance(live, dict):
        old, new = (side if isinstance(side, dict) else {} for side in (before, after))
        return all(_is_between(old.get(key), new.get(key), value) for key, value in live.items())
    if isinstance(live, list):
        old_items, new_items, items = (
            Counter(map(_inline, side)) if isinstance(side, list) else Counter() for side in (before, after, live)
        )
        return old_items & new_items <= items <= old_items | new_items
    return False


def _other_differences(plan: Plan, now: Plan) -> Iterator[Problem]:
    """Yield each change or call that differs from a re-plan of the same changes on the same resources."""
    # A partial plan may show live values by names that only the rest of the manifests introduces.
    keys = ("address", "action", "id", "after", *(() if plan.partial else ("before", "fields", "defaults")))
    # Of two live resources of a name, one may be changed and the other deleted.
    today = {(change.address, change.id): change for change in now.changes}
    for change in plan.changes:
        same = today.get((change.address, change.id))
        if same is None or (
            _exactly(same, keys) != _exactly(change, keys) and change_hash(same, keys) != change_hash(change, keys)
        ):
            yield _problem(
                change,
                f"{change.address}: a new plan has another id for it, or another difference; "
                "the file may have been edited",
            )
    fresh = {call.id: call for call in now.calls}
    for call in plan.calls:
        again = fresh.get(call.id)
        if again is None or (call != again and _whole(call) != _whole(again)):
            why = "a new plan has another call there; the file may have been edited"
            if not call.may_be_refused and any(
                one.may_be_refused and _request(one) == _request(call) for one in now.calls
            ):
                # Its field came into use since then.
                why = "the service may now refuse it, which the plan does not show"
            yield _problem(None, f"{call.id} ({call.address}): {why}", address=str(call.address))
            return
    if [call.id for call in plan.calls] != [call.id for call in now.calls]:
        yield _problem(None, "a new plan has other calls, or another order of calls")


def _exactly(change: Change, keys: Iterable[str]) -> str:
    """A text that differs for different changes, and for lists in another order: faster than `change_hash`."""
    return repr([getattr(change, key) for key in keys])


def change_hash(change: Change, keys: Iterable[str]) -> str:
    """Hash a change as its document shows it, without source and cause; lists are unordered."""
    return sha256({key: _sorted(value) for key, value in change_json(change).items() if key in keys})


def _sorted(value: Json) -> Json:
    """A value with every list sorted."""
    if isinstance(value, list | tuple):
        return sorted(map(_sorted, value), key=_inline)
    return {key: _sorted(value[key]) for key in sorted(value)} if isinstance(value, dict) else value


def _unplannable(problem: Problem, change: Change | None) -> Problem:
    """The error of a re-plan, with what was reviewed of the resource."""
    sides = {} if change is None else {"reviewed:": change.after, "live then:": change.before}
    lines = [f"{label:<10} {'not there' if form is None else _inline(form)}" for label, form in sides.items()]
    lines += [problem.hint] if problem.hint else []
    return _problem(change, f"{problem.message}, which was different when the plan was made", lines, problem.address)


def _changed(address: str, then: Change | None, now: Change | None) -> Problem:
    """A resource that differs from the reviewed state, key by key."""
    if then is None:
        why = f": {now.reason}" if now and now.reason else ""
        return _problem(now, f"{address}: it is not part of the plan, but would now be{why}", address=address)
    if now is None and then.action is not Action.DELETE:
        return _problem(then, f"{address}: it is already as planned; the plan may have been applied before")
    form = then.after if now is None else now.before
    before, live = members(then.before), members(form)
    keys = [key for key in {**before, **live} if not _alike(before.get(key, _ABSENT), live.get(key, _ABSENT))]
    what = f"{', '.join(keys)} changed" if keys else "something changed that the plan does not contain"
    if now is None:
        what = "it is already deleted"
    elif then.before is None:
        what = "it did not exist, and now exists"
    elif form is None:
        what = "it existed, and no longer exists"
    return _problem(
        then,
        f"{address} has changed since the plan was made: {what}",
        [line for key in keys for line in _key_lines(key, then, form)],
    )


def _alike(value: object, other: object) -> bool:
    """Whether two values are equal; lists in manifests are unordered."""
    return _sorted(cast(Json, value)) == _sorted(cast(Json, other))


def _key_lines(key: str, then: Change, live: Json) -> Iterator[str]:
    """The lines of one key: reviewed, live then, live now."""
    sides = [members(side).get(key, _ABSENT) for side in (then.after, then.before, live)]
    counts = [Counter(map(_inline, side)) for side in sides if isinstance(side, list)]
    shared = reduce(and_, counts) if len(counts) > 1 else Counter[str]()
    yield f"{key}{f' ({shared.total():,} unchanged)' if shared else ''}:"
    for label, side in zip(("reviewed", "live then", "live now"), sides, strict=True):
        yield f"  {label + ':':<10} {_side(side, shared)}"


def _side(value: object, shared: Counter[str]) -> str:
    if value is _ABSENT:
        return "not there"
    if not isinstance(value, list):
        return _inline(cast(Json, value))
    shown = few(sorted((Counter(map(_inline, value)) - shared).elements()), most=10)
    return shown or ("only the unchanged" if shared else "none")


def _inline(value: Json) -> str:
    """A value on one line, as a manifest could declare it."""
    if value is None:
        return "none"
    return quote_name(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _whole(call: Call) -> list[object]:
    """Every field of a call but its id, including the calls it needs."""
    return [call.address, _request(call), call.needs, call.may_be_refused, sorted(call.people)]


def _request(call: Call) -> list[object]:
    """What a call sends. Whether it may be refused depends on other resources, and is left out."""
    body = call.body
    if call.operation == "content-targets.create" and isinstance(body, dict):
        body = {key: _in_milliseconds(value) for key, value in body.items()}
    return [call.operation, call.method, call.path, call.query, body]


def _in_milliseconds(value: Json) -> Json:
    """Return a time as digits: which form a service shows may be seen in one reading, and not in a smaller one."""
    if isinstance(value, str) and ISO.fullmatch(value):
        with suppress(ValueError):
            return format_request_time(parse_response_time(value), "epoch-ms")
    return str(value) if type(value) is int else value


def _problem(change: Change | None, message: str, lines: Iterable[str] = (), address: str | None = None) -> Problem:
    return Problem(
        code=StalePlan.code,
        message=message,
        hint="\n".join([*map(escape_invisible, lines), "Plan again and review it."]),
        source=None if change is None else change.source,
        address=address if change is None else str(change.address),
    )


def refuse_unusable(workspace: WorkspaceReader, plan: Plan) -> None:
    """Raise StalePlan if the plan is offline, expired, or for another workspace."""
    moment, here = workspace.now(), (workspace.connection.name, workspace.connection.url)
    refuse_if(
        (
            plan.offline,
            "the plan was made from a snapshot file and cannot be applied",
            "Plan against the workspace, without --snapshot.",
        ),
        (
            plan.expires_at <= moment,
            f"the plan expired at {plan.expires_at}, and it is now {moment}",
            "Plan again and review it. `plans: {valid_for: 7d}` in the project file sets how long plans are valid.",
        ),
        (
            (plan.workspace, plan.url) != here,
            f"the plan was made for workspace {plan.workspace} ({plan.url}), and this is {here[0]} ({here[1]})",
            "Choose the workspace with --workspace, or plan again.",
        ),
        error=StalePlan,
    )
