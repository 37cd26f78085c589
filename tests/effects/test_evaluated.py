"""Random workspaces and changes: what a plan says of people is what the workspace shows afterwards.

Four hundred of all kinds, and three hundred under each meaning of system conditions, which a third of their smart
groups have.
"""

import dataclasses
import json
from collections import Counter
from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from laws.sandbox_project import SandboxProject, document_of, open_stage
from msgspec.structs import replace
from wire.second_dialect import second_dialect

from effects.crowd import answered
from effects.evaluator import LONG_PAGES, Evaluated, Look, evaluate, explaining, look, seconds
from effects.random_access import NOW, Case, RandomCase
from lmsconf.documents.reports import people_json
from lmsconf.errors import ExitCode, ProblemsFound
from lmsconf.model.plan import Plan
from lmsconf.sandbox.service import Sandbox

DIALECTS: Final[Mapping[str, Mapping[str, str | int]]] = {"assumed": {}, "second": second_dialect()}
MEANINGS: Final = ("any-answer", "always", "choices")
_SYSTEM: Final = "smart-groups.system-condition"
_TRIES: Final = 60


def opened(folder: Path, case: Case) -> SandboxProject:
    """A sandbox that holds the workspace of the case, and a project beside it."""
    stage = open_stage(folder, case, case).with_accounts()  # type: ignore[arg-type]  # made for random cases, and asked the same
    for name, text in case.files.items():
        (stage.settings.manifests / name).write_text(text, encoding="utf-8")
    return stage


class Listening(httpx.BaseTransport):
    """The way to a sandbox. `members`: the ids of the smart groups whose members were asked for."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox, self.members = sandbox, set[str]()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Hand it on."""
        if request.url.params.get("includeMembers") == "true":
            self.members.add(request.url.path.rpartition("/")[2])
        return self._sandbox.handle_request(request)


def planned(
    folder: Path, seed: int, dialect: Mapping[str, str | int], *, systems: bool = False
) -> tuple[SandboxProject, Plan, set[str]]:
    """The case of that number, its plan, and the smart groups whose members it read.

    Where manifests make no sense, the next ones made from the number.
    """
    for attempt in range(_TRIES):
        case = RandomCase(f"{seed}/{attempt}", dict(dialect), systems=systems).make()
        stage = opened(folder, case)
        way = Listening(stage.sandbox)
        stage = stage.seen_through(way)
        try:
            policy = replace(
                stage.settings.policy, people=True, only=case.only, excluded=case.excluded, additive=case.additive
            )
            plan = stage.workspace.plan(stage.manifests(), policy)
        except ProblemsFound:
            stage.sandbox.close_workspace()
            continue
        certain = [problem for problem in plan.all_problems if problem.is_error]
        if plan.calls and not certain and not any(call.may_be_refused for call in plan.calls):
            return stage, plan, set(way.members)
        stage.sandbox.close_workspace()
    raise AssertionError("no manifests made sense")


def seen(stage: SandboxProject) -> Look:
    """The workspace as its API tells it."""
    spoken = stage.sandbox.spec
    stage.sandbox.spec = spoken.with_values(LONG_PAGES)
    try:
        return look(partial(answered, stage.sandbox))
    finally:
        stage.sandbox.spec = spoken


@pytest.mark.sampled(day=240, gate=6)
@pytest.mark.parametrize(
    ("seed", "dialect"), [*((seed, "assumed") for seed in range(300)), *((seed, "second") for seed in range(300, 400))]
)
def test_effects_are_what_the_workspace_shows(tmp_path: Path, seed: int, dialect: str) -> None:
    """Every number of `effects`, the totals of the guards by people and each row of `--people`, after an apply."""
    assert_as_told(*planned(tmp_path, seed, DIALECTS[dialect]))


@pytest.mark.sampled(day=240, gate=6)
@pytest.mark.parametrize("alone", MEANINGS)
@pytest.mark.parametrize("seed", range(300))
def test_what_system_conditions_mean_is_read_off_the_members(tmp_path: Path, seed: int, alone: str) -> None:
    """Whatever they mean alone: what is told is so, and only what they leave open is not told."""
    assert_as_told(*planned(tmp_path, seed, {f"{_SYSTEM}.alone": alone}, systems=True))


def assert_as_told(stage: SandboxProject, plan: Plan, read: set[str]) -> None:
    """Apply the plan, and compare what it told with what the workspace shows."""
    before = seen(stage)
    report = stage.apply(plan)
    assert (report.exit, report.converged) == (ExitCode.OK, True), report
    after = seen(stage)
    stage.sandbox.close_workspace()
    assert not differences(document_of(plan), plan, evaluate(before, after, NOW, read), before, after)


def differences(document: Mapping[str, Any], plan: Plan, found: Evaluated, before: Look, after: Look) -> list[str]:
    """What the plan says otherwise than the workspace does, in lines to read."""
    effects = document["effects"]
    wrong = [
        *_contents(effects, found),
        *_groups(effects, found, before, after),
        *_compare("people", effects["people"], found.people, bool(found.unsure_contents)),
        *_guards(document, found),
    ]
    if effects["basis"] == "unknown" and not found.unsure:
        wrong.append(f"unknown without a reason: {effects['reasons']}")
    people = json.loads(people_json(plan.effects))
    not_told = {one["id"] for one in effects["contents"] if one["basis"] == "unknown"}
    audiences = {one["audience"] for one in people["unknown"] if one["contents"]}
    names = {name for one in people["unknown"] for name in one["contents"]}
    if names != {before.contents[id] for id in not_told} or not audiences <= {after.names[id] for id in found.unsure}:
        wrong.append(f"not known of {people['unknown']}, and not told of {not_told}")
    told = dataclasses.replace(found, lines=[line for line in found.lines if line.content_id not in not_told])
    wrong += _rows(people["rows"], told)
    return wrong if not_told else [*wrong, *_causes(document, people["rows"], found, before, after)]


def _compare(at: str, said: Mapping[str, Any], counts: Mapping[str, int], unsure: bool) -> list[str]:
    """Numbers that differ. A null is right only where nobody can know."""
    wrong = []
    for count, number in counts.items():
        if said[count] is None and not unsure:
            wrong.append(f"{at}: {count} is null, and is {number}")
        elif said[count] is not None and said[count] != number:
            wrong.append(f"{at}: {count} is said {said[count]}, and is {number}")
    return wrong


def _contents(effects: Mapping[str, Any], found: Evaluated) -> list[str]:
    said = {one["id"]: one for one in effects["contents"]}
    wrong = _entries(said, found.contents, found.unsure_contents, found.estimated)
    for id, one in said.items():
        if one["lose"]:
            progress = {**one["progress"], **one["certificates_expiring"]}
            wrong += _compare(id, progress, {key: found.progress[id][key] for key in progress}, False)
    return wrong


def _groups(effects: Mapping[str, Any], found: Evaluated, before: Look, after: Look) -> list[str]:
    names = {**before.names, **after.names}
    real = {names[id]: numbers for id, numbers in found.groups.items()}
    unsure, estimated = ({names[id] for id in ids if id in names} for ids in (found.unsure, found.estimated))
    return _entries({one["address"]: one for one in effects["groups"]}, real, unsure, estimated)


def _entries(
    said: Mapping[str, Any], real: Mapping[str, Mapping[str, int]], unsure: Collection[str], estimated: Collection[str]
) -> list[str]:
    """What is said otherwise of contents or of groups than it is."""
    wrong = [f"{at}: not told: {real[at]}" for at in real.keys() - said.keys()]
    for at, one in said.items():
        if at not in real and at not in unsure:
            wrong.append(f"{at}: told without a change: {one}")
            continue
        wrong += _compare(at, one, real.get(at, {}), at in unsure)
        sure = {"exact", "estimate"} if at in estimated else {"exact"}
        if one["basis"] not in ({"unknown", "estimate"} if at in unsure else sure):
            wrong.append(f"{at}: {one['basis']}")
    return wrong


def _guards(document: Mapping[str, Any], found: Evaluated) -> list[str]:
    """The guards as section 9 says: totals, and whether they stop."""
    wrong = []
    share = found.mandatory / found.active if found.active >= 20 else 0.0
    stops = {
        "people": (found.losing, found.losing > 20 or found.worst > 0.10),
        "mandatory": (found.mandatory, found.mandatory > 500 or share > 0.50),
    }
    for guard in document["guards"]:
        if guard["name"] not in stops:
            continue
        total, tripped = stops[guard["name"]]
        if guard["total"] is None and not found.unsure_contents:
            wrong.append(f"guard {guard['name']}: not known, and is {total}")
        elif guard["total"] is not None and (guard["total"], guard["tripped"]) != (total, tripped):
            wrong.append(f"guard {guard['name']}: said {guard['total']}, {guard['tripped']}, is {total}, {tripped}")
    if not stops.keys() <= {guard["name"] for guard in document["guards"]}:
        wrong.append("a guard is missing")
    return wrong


def _rows(rows: list[dict[str, Any]], found: Evaluated) -> list[str]:
    order = [(one["content"], one["content_id"], one["email"].casefold()) for one in rows]
    wrong = [] if order == sorted(order) else ["rows are not in order"]
    said = Counter(_row(one) for one in rows)
    real = Counter(_folded(line[2:]) for line in found.lines)
    wrong += [f"row not told: {one}" for one in real - said]
    return wrong + [f"row not so: {one}" for one in said - real]


def _row(one: Mapping[str, Any]) -> tuple[object, ...]:
    words = tuple(one[key] for key in ("email", "content", "content_id", "change", "before", "after"))
    times = tuple(seconds(one[key]) for key in ("from_before", "until_before", "from_after", "until_after"))
    return _folded((*words, times[:2], times[2:], one["shortened"]))


def _folded(row: tuple[object, ...]) -> tuple[object, ...]:
    return (str(row[0]).casefold(), *row[1:])


def _causes(
    document: Mapping[str, Any], rows: list[dict[str, Any]], found: Evaluated, before: Look, after: Look
) -> list[str]:
    """Each cause is a changed address on a path that differs, and each such path has one; contents count them."""
    changed = {_folded_address(change["address"]) for change in document["changes"]}
    lines = {(line.email.casefold(), line.content_id): line for line in found.lines}
    wrong = []
    counted: Counter[tuple[str, str, str]] = Counter()
    for one in rows:
        at = f"{one['email']} {one['content_id']} {one['change']}"
        causes = {_folded_address(address) for address in one["causes"]}
        line = lines.get((one["email"].casefold(), one["content_id"]))
        paths = [{_folded_address(one) for one in could} for could in explaining(line, before, after)] if line else []
        if not causes or not causes <= changed:
            wrong.append(f"{at}: causes {one['causes']} are no changes")
        if causes - set().union(*paths):
            wrong.append(f"{at}: {causes - set().union(*paths)} are on no path that differs")
        wrong += [f"{at}: {one['causes']} do not explain {sorted(could)}" for could in paths if not causes & could]
        if one["change"] in ("gain", "lose"):
            counted.update((one["content_id"], address, one["change"]) for address in one["causes"])
    for content in document["effects"]["contents"]:
        for cause in content["causes"]:
            for change in ("gain", "lose"):
                number = counted.pop((content["id"], cause["address"], change), 0)
                if number != cause[change]:
                    wrong.append(f"{content['id']}: {cause} where rows count {number} {change}")
    return wrong + [f"a cause is not counted: {one}" for one in counted]


def _folded_address(address: str) -> str:
    kind, _, name = address.partition("/")
    return f"{kind}/{name.casefold()}"
