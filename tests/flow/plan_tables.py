"""Tables of plans: what is live, what is declared, and what the plan is, which is then carried out and settles."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml
from manifest.cases import cases
from msgspec.structs import replace

from lmsconf.documents.plan_file import dumps, loads
from lmsconf.errors import ExitCode, ProblemsFound
from lmsconf.model.guards import Consent
from lmsconf.model.plan import Change, Plan

from .project import Project, told_problems


class PlanCase(NamedTuple):
    """What is live and declared, with the options of the project and of its plan, and what the plan is."""

    title: str
    options: str
    seed: str
    manifests: str
    told: str


def plan_cases(name: str) -> list[PlanCase]:
    """The cases of a table: options, seed and manifests, or the last two or one. What is live may be that above."""
    seed, found = "", []
    for case in cases(Path(__file__).with_name(name)):
        *before, manifests = re.split("^---.*\n", case.text, flags=re.MULTILINE)
        options = before.pop(0) if len(before) == 2 or "--- above\n" in case.text else ""
        seed = before[0] if before else seed
        found.append(PlanCase(case.title, options, seed, manifests, case.told))
    return found


def assert_planned(root: Path, case: PlanCase) -> None:
    """The plan is as the table says, also in its file, and nothing is left to do after that is carried out.

    Consent to exactly what the guards count lets it pass; what may be refused is, before anything else is changed.
    """
    of_plan, options = re.fullmatch("(plan:.*\n)?((?s:.*))", case.options).groups()
    said = yaml.safe_load(of_plan)["plan"] if of_plan else {}
    more = {key: tuple(value) if isinstance(value, list) else value for key, value in said.items()}
    it = Project(root, case.seed, options)
    try:
        plan = it.plan(case.manifests, **more)
        told = told_plan(plan)
    except ProblemsFound as error:
        plan, told = None, told_problems(error.problems)
    assert told == case.told
    if plan is None:
        return
    assert loads(dumps(plan)) == replace(plan, renames=())
    if any(one.is_error for one in plan.all_problems):
        return
    tripped = {name: int(number) for name, number in (one.allow.split("=") for one in plan.guards if one.tripped)}
    plan = it.plan(**more, consents=tuple(Consent(guard=name, number=number) for name, number in tripped.items()))
    report = it.apply(plan=loads(dumps(plan)))
    if "refusals" in tripped:
        assert (report.exit, len(it.calls)) == (ExitCode.BLOCKED, tripped["refusals"]), report
        return
    assert (report.exit, report.converged) == (ExitCode.OK, True), report
    assert sorted(map(str, (call.operation for call in it.calls))) == sorted(call.operation for call in plan.calls)
    assert it.plan(**more).changes == ()


def told_plan(plan: Plan) -> str:
    """A plan in the form of the table."""
    lines = [line for change in plan.changes for line in _change(change)]
    for call in plan.calls:
        after = f" after {', '.join(call.needs)}" if call.needs else ""
        lines.append(f"{call.id} {call.operation} {call.path}{after}")
    counted = ", ".join(f"{one.name} {one.total}" for one in plan.guards if one.total)
    lines += [f"counted: {counted}"] * bool(counted)
    lines += [f"guard {one.name} stops: {one.reason}" for one in plan.guards if one.tripped]
    lines += [f"left out: {address}" for address in plan.left_out]
    for one in plan.unmanaged:
        alone = f"; left alone: {one.left_alone}" if one.left_alone else ""
        lines.append(f"unmanaged: {', '.join(map(str, one.addresses))}{alone}")
    return "".join(f"{line}\n" for line in lines) + told_problems(plan.all_problems)


def _change(change: Change) -> Iterator[str]:
    """A change, why it is made if no entry says it, what of it cannot be undone, and what it changes."""
    yield f"{change.action} {change.address}" + (f", because {change.reason}" if change.reason else "")
    if change.undo.reason:
        yield f"  undo: {change.undo.level}: {change.undo.reason}"
    for one in change.fields:
        values = f"{one.before} -> {one.after}" if not (one.added or one.removed) else ""
        signs = [f"{sign}{json.dumps(value)}" for sign, of in (("+", one.added), ("-", one.removed)) for value in of]
        yield f"  {one.path}: {values}{' '.join(signs)}"
    if change.defaults:
        yield f"  not said: {', '.join(change.defaults)}"
