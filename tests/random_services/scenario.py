"""One project that meets one service for the first time, from the probe to the undo, and what became of everybody."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Final

import pytest
import yaml
from flow.shell import lmsconf
from simulation.workspace_state import Portrait, ids, portrait
from waiting import nobody_waits, served

from lmsconf.workspace.fill_sandbox import fill_workspace

from .points import Points
from .service import RandomService

Fact = tuple[str, ...]
BO, ANNA, NEW = "bo.ek@acme.example", "anna.berg@acme.example", "new.one@acme.example"
P0, P1, P2, P3, P4 = (f"p{number}@acme.example" for number in range(5))
PROJECT: Final = """\
workspaces: {{production: {{url: "{url}", token: {{env: LMSCONF_TOKEN}}}}}}
manifests: manifests
timezone: Europe/Stockholm
people: {{create: true}}
guards: off
"""
COMPANY, FIRST, SECOND = (
    Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8") for name in ("company", "first", "second")
)
"""What is there, and the manifests of both applies, with the people and the right of one of them as `$` and a name."""


def _named(text: str, right: str = "") -> str:
    people = {"bo": BO, "anna": ANNA, "new": NEW, "p0": P0, "p1": P1, "p2": P2, "p3": P3, "p4": P4}
    return Template(text).substitute(right=right, **people)


MAY_GO: Final[dict[str, frozenset[Fact]]] = {
    "apply 1": frozenset(),
    "apply 2": frozenset({
        ("member", "Coaches", P0), ("member", "Coaches", P1), ("manager", "Coaches", P1), ("member", "Newcomers", P3),
        ("member", "Interns", P3), ("member", "Interns", P4), ("manager", "Northern", P1), ("right", P1, "manager"),
        ("right", P1, "analyse"), ("right", P4, "manager"),
        ("answer", BO, "Room"), ("answer", P0, "Department"), ("answer", P1, "Skills"),
        ("assignment", "GDPR basics", P3), ("assignment", "Fire safety", "Interns"),
        ("assignment", "Fire safety", "Sales"),
    }),
}  # fmt: skip
"""What the plan of each apply announces that somebody loses. An undo may take what the apply before it gave."""
ALONG: Final[Fact] = ("manager", "Book club", P4)
"""What the plan of the second apply announces, too, once it is known that groups go with the manager right."""
RENAMED: Final = {"Newcomers": "New people", "Northern": "North", "Site": "Office"}
"""What the second manifest renames."""
ROUNDS: Final = 6
_PASTED: Final = re.compile(r"^ +([a-z-]+\.[a-z-]+(?:\.[A-Za-z-]+)*): (\S+)$", re.M)
"""A line that a stop says to paste under `dialect:`."""


@dataclass(slots=True)
class Outcome:
    """What became of one service. stage: where it ended; kind: converged, stopped, part, unsettled, crashed.

    lost: what people had and nobody announced; left: what differs after the probe; output: of the stage that it ended
    in; learnt: what the probe wrote; astray: resources that a stop left neither as before nor as planned, where these
    are more than the keys that it names
    """

    changed: dict[str, object]
    kind: str = "converged"
    stage: str = ""
    code: int = 0
    lost: list[Fact] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    output: str = ""
    learnt: str = ""
    calls: list[str] = field(default_factory=list)
    rounds: dict[str, int] = field(default_factory=dict)
    astray: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The outcome in one word, the worst first."""
        return "loss" if self.lost else "left" if self.left else self.kind

    def ends(self, stage: str, code: int, output: str, kind: str) -> Outcome:
        """It ends there."""
        self.stage, self.code, self.output, self.kind = stage, code, output, kind
        return self


def photo(service: RandomService) -> Portrait:
    """Everything in the workspace, without times of changes and the order of creation."""
    with service.store.read_transaction() as repository:
        return portrait(repository, ids(repository))


def facts(service: RandomService) -> set[Fact]:
    """What people have: memberships, rights, answers, metadata and assignments, each by names, with its values."""
    with service.store.read_transaction() as repository:
        return {(kind, *map(str, row)) for kind, sql in _FACTS.items() for row in repository.rows(sql)}


def bare(facts: Iterable[Fact]) -> set[Fact]:
    """The same without values."""
    return {fact[:3] for fact in facts}


_PEOPLE: Final = "m JOIN groups g ON g.id = m.grp JOIN people p ON p.id = m.person"
_FACTS: Final = {
    "member": f"SELECT g.name, p.email FROM members {_PEOPLE}",  # noqa: S608  the parts stand above
    "manager": f"SELECT g.name, p.email FROM managers {_PEOPLE}",  # noqa: S608  likewise
    "right": """
        SELECT email, 'admin' FROM people WHERE admin UNION SELECT email, 'manager' FROM people WHERE manager
        UNION SELECT p.email, one.value FROM people p, json_each(p.applications) one
    """,
    "metadata": "SELECT p.email, one.key, one.value FROM people p, json_each(p.metadata) one",
    "answer": """
        SELECT p.email, f.name, coalesce(c.name, a.text) FROM answers a JOIN people p ON p.id = a.person
            JOIN fields f ON f.id = a.field LEFT JOIN choices c ON c.id = a.choice
    """,
    "assignment": """
        SELECT c.name, coalesce(g.name, p.email, t.audience), t.mandatory, t.start, t.finish FROM targets t
            JOIN contents c ON c.id = t.content LEFT JOIN groups g ON g.id = t.audience AND g.kind = t.kind
            LEFT JOIN people p ON p.id = t.audience AND t.kind = 'USER'
    """,
}


class Project:
    """A project in a folder against one service, as somebody at the command line has it."""

    def __init__(self, folder: Path, service: RandomService, url: str) -> None:
        self.folder, self.service = folder, service
        (folder / "manifests").mkdir(exist_ok=True)
        (folder / "lmsconf.yaml").write_text(PROJECT.format(url=url), encoding="utf-8")

    def write(self, manifest: str) -> None:
        """Write the one manifest. Where a service demands the manager right of managers, all of them have it."""
        text = _named(manifest, "manager: true, " if self.service.points.manage == "with-right" else "")
        (self.folder / "manifests" / "all.yaml").write_text(text, encoding="utf-8")

    def state(self, dialect: dict[str, str]) -> None:
        """Write these keys under `dialect:`."""
        path = self.folder / "lmsconf.yaml"
        head = path.read_text(encoding="utf-8").partition("dialect:")[0]
        lines = "".join(f"  {key}: {value}\n" for key, value in dialect.items())
        path.write_text(f"{head}dialect:\n{lines}", encoding="utf-8")

    @property
    def announced(self) -> frozenset[Fact]:
        """What somebody loses along, if the project file says that the service does so."""
        says = "managed-groups: lose" in (self.folder / "lmsconf.yaml").read_text(encoding="utf-8")
        return frozenset({ALONG} if says else ())

    def run(self, *arguments: str) -> tuple[int, str]:
        """The exit code of a command, and all that it printed."""
        ran = lmsconf(self.folder, *arguments, env={"LMSCONF_TOKEN": "sandbox"})
        return ran.code, ran.err + ran.out


@contextmanager
def opened(points: Points, seed: int, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Project]:
    """The company behind a port, and a project that knows nothing of it."""
    nobody_waits(patch)
    patch.setenv("XDG_STATE_HOME", str(folder / "state"))
    service = RandomService(points, seed)
    with service.store.write_transaction() as repository:
        fill_workspace(repository, yaml.safe_load(_named(COMPANY)), spec=service.spec)
    with served(service, patch) as server:
        yield Project(folder, service, server.url)
    service.close_workspace()


def play(project: Project) -> Outcome:
    """Probe, two manifests, and the undo of the second one."""
    outcome, service, before = Outcome(project.service.points.changed()), project.service, photo(project.service)
    project.write(FIRST)
    code, outcome.learnt = project.run(
        *("doctor", "--probe", "--yes", "--user", BO, "--user", P0, "--content", "GDPR basics")
    )
    after = photo(service)
    outcome.left = [*(f"lost {row}" for row in before - after), *(f"has {row}" for row in after - before)]
    if code != 0:
        return outcome.ends("probe", code, outcome.learnt, "part" if outcome.left else "stopped")
    had: set[Fact] = set()
    for stage, manifest in (("apply 1", FIRST), ("apply 2", SECOND)):
        project.write(manifest)
        had = facts(service)
        if not _applies(outcome, project, stage):
            return outcome
    before, has = photo(service), facts(service)
    code, output = project.run("plan", "--undo", "latest", "--out", str(project.folder / "undo.json"))
    if code == 0:
        asked = len(service.asked)
        code, output = project.run("apply", str(project.folder / "undo.json"))
        outcome.calls = [str(one) for one in service.asked[asked:]]
    now = facts(service)
    outcome.lost = sorted((bare(had) & bare(has)) - bare(now))
    if code != 0:
        return outcome.ends("undo", code, output, "stopped" if photo(service) == before else "part")
    if missing := sorted(fact for fact in had - now if fact not in project.announced):
        output = f"not undone: {missing}; instead: {sorted(now - had)}\n{output}"
        return outcome.ends("undo", code, output, "unsettled")
    return outcome


def play_unprobed(project: Project) -> Outcome:
    """Both manifests without a probe: after each stop the lines that it says are pasted, and the next run goes on."""
    outcome, service = Outcome(project.service.points.changed()), project.service
    stated: dict[str, str] = {}
    stops: list[tuple[set[Fact], set[Fact], dict[str, str]]] = []
    for stage, manifest in (("apply 1", FIRST), ("apply 2", SECOND)):
        project.write(manifest)
        for turn in range(ROUNDS):
            outcome.rounds[stage] = turn + 1
            outcome.kind = "converged"
            had = facts(service)
            if _applies(outcome, project, stage):
                break
            if outcome.lost:
                return outcome
            lines = dict(_PASTED.findall(outcome.output))
            stops.append((had, facts(service), lines))
            outcome.said.append(f"{stage} {turn + 1}: {lines}")
            if stated.items() >= lines.items():
                outcome.kind = f"{outcome.kind} (stuck)"
                return outcome
            stated |= lines
            project.state(stated)
        else:
            return outcome
        planned = facts(service)
        for before_stop, after_stop, lines in stops:
            # The names after a rename, which a stop may come before.
            changed = after_stop - before_stop
            astray = {_resource(fact) for fact in changed if not {fact, _renamed(fact, RENAMED)} & planned}
            if len(astray) > max(1, len(lines)):
                outcome.astray += [f"{stage}, {sorted(lines)}: {sorted(astray)}"]
        stops.clear()
    return outcome


def _renamed(fact: Fact, names: Mapping[str, str]) -> Fact:
    return tuple(names.get(word, word) for word in fact)


def _resource(fact: Fact) -> Fact:
    """What a fact is about: a group's list, an assignment, or a person."""
    if fact[0] == "assignment":
        return fact[:3]
    return fact[:2] if fact[0] in ("member", "manager") else ("person", fact[1])


def _applies(outcome: Outcome, project: Project, stage: str) -> bool:
    """Whether an apply converges, and the next plan is empty. What people lost is noted in any case."""
    service = project.service
    asked, before, had = len(service.asked), photo(service), bare(facts(service))
    code, output = project.run("apply", "--auto-approve")
    outcome.calls = [str(one) for one in service.asked[asked:]]
    names, now = RENAMED if stage == "apply 2" else {}, bare(facts(service))
    may_go = {name for fact in MAY_GO[stage] for name in (fact, _renamed(fact, names))} | project.announced
    outcome.lost += sorted(fact for fact in had - now - may_go if _renamed(fact, names) not in now)
    if code != 0:
        outcome.ends(stage, code, output, "stopped" if photo(service) == before else "part")
        return False
    code, output = project.run("plan", "--detailed-exitcode")
    if code != 0:
        outcome.ends(f"{stage}, plan", code, output, "unsettled")
        return False
    return not outcome.lost
