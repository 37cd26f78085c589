"""One project that meets one service for the first time, from the probe to the undo, and what became of everybody."""

import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Final

import pytest
from waiting import nobody_waits, served

from lmsconf.api.spec.operations import load_api_description
from lmsconf.cli import main
from lmsconf.workspace.fill_sandbox import fill_workspace

from .points import Points
from .service import RandomService

Fact = tuple[str, ...]
BO, ANNA, PAST, NEW = "bo.ek@acme.example", "anna.berg@acme.example", "past@acme.example", "new.one@acme.example"
P0, P1, P2, P3, P4 = (f"p{number}@acme.example" for number in range(5))
COMPANY: Final = {
    "custom_fields": [
        {"name": "Department", "type": "CHOICE", "choices": ["Sales", "Engineering"]},
        {"name": "Hobbies", "type": "MULTI_SELECT", "choices": ["Chess", "Golf"]},
    ],
    "people": [
        {"email": ANNA, "first_name": "Anna", "last_name": "Berg", "answers": {"Department": "Sales"}, "admin": True},
        {"email": "ada.ny@acme.example", "admin": True},
        {"email": BO, "first_name": "Bo", "last_name": "Ek", "answers": {"Department": "Sales", "Hobbies": ["Chess"]},
         "metadata": {"cost": "100", "unit": "A"}},
        {"email": PAST, "archived": True, "answers": {"Department": "Engineering"}},
        *({"email": f"p{number}@acme.example", "answers": {"Department": "Engineering"} if number % 2 else {},
           "manager": number == 4} for number in range(5)),
        *({"email": f"q{number}@acme.example"} for number in range(15)),
    ],
    "groups": [
        {"name": "Coaches", "members": [BO, PAST, P4], "managers": [ANNA]},
        {"name": "Interns", "members": [P3, P4]},
        {"name": "Book club", "members": [P0, P1], "managers": [P4, ANNA]},
    ],
    "smart_groups": [
        {"name": "Sales", "conditions": [{"field": "Department", "choices": ["Sales"]}]},
        {"name": "Hobbyists", "conditions": [{"field": "Hobbies", "system_condition": "IS_ANY"}]},
        {"name": "Chess", "conditions": [{"field": "Hobbies", "choices": ["Chess"], "system_condition": "IS_ANY"}]},
    ],
    "content": [{"name": "GDPR basics"}, {"name": "Fire safety"}, {"name": "First aid"}],
    "content_targets": [
        {"content": "GDPR basics", "assign_to": ["everyone", {"group": "Coaches"}]},
        {"content": "Fire safety", "assign_to": [{"group": "Interns"}, {"smart_group": "Sales"}]},
    ],
}  # fmt: skip
PROJECT: Final = """\
workspaces: {{production: {{url: "{url}", token: {{env: LMSCONF_TOKEN}}}}}}
manifests: manifests
timezone: Europe/Stockholm
people: {{create: true}}
guards: off
"""
FIRST, SECOND = (Path(__file__).with_name(f"{name}.yaml").read_text(encoding="utf-8") for name in ("first", "second"))
"""The manifests of both applies, with the people and the right of one of them as `$` and a name."""
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
_SPOKEN: Final = re.compile(r"[a-z-]+\.[a-z-]+(?:\.[A-Za-z-]+)?")


@dataclass(slots=True)
class Outcome:
    """What became of one service. stage: where it ended; kind: converged, stopped, part, unsettled, crashed.

    lost: what people had and nobody announced; left: what differs after the probe; keys: dialect keys that the last
    output names; output: of the stage that it ended in; learnt: what the probe wrote; astray: resources that a stop
    left neither as before nor as planned, where these are more than the keys that it names
    """

    kind: str = "converged"
    stage: str = ""
    code: int = 0
    first: str = ""
    keys: tuple[str, ...] = ()
    lost: list[Fact] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    output: str = ""
    learnt: str = ""
    calls: list[str] = field(default_factory=list)
    changed: dict[str, object] = field(default_factory=dict)
    rounds: dict[str, int] = field(default_factory=dict)
    astray: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def label(self) -> str:
        """The outcome in one word, the worst first."""
        return "loss" if self.lost else "left" if self.left else self.kind


def photo(service: RandomService) -> dict[str, list[tuple[object, ...]]]:
    """Everything in the workspace, without times of changes and the order of creation."""
    with service.store.read_transaction() as repository:
        return {
            table: sorted(repository.rows(f"SELECT {columns} FROM {table}"), key=repr)  # noqa: S608  of this module
            for table, columns in _TABLES.items()
        }


_TABLES: Final = {
    "people": "id, email, first_name, last_name, admin, manager, archived_at, custom_archive_at, language, "
    "json(metadata), applications",
    "fields": "id, name, type, description, coalesce(hidden, 0), coalesce(locked, 0), coalesce(optional, 0)",
    "choices": "id, field, name, position",
    "answers": "person, field, choice, text",
    "groups": "id, kind, name",
    "members": "grp, person",
    "managers": "grp, person",
    "conditions": "grp, position, field, system_condition",
    "condition_choices": "grp, position, choice",
    "targets": "content, kind, audience, mandatory, start, finish",
}


def facts(service: RandomService, *, values: bool = False) -> set[Fact]:
    """What people have: memberships, rights, answers, metadata and assignments, each by names.

    values: with the values of answers, of metadata and of assignments.
    """
    with service.store.read_transaction() as repository:
        found: set[Fact] = set()
        for table in ("member", "manager"):
            rows = repository.rows(
                f"SELECT g.name, p.email FROM {table}s m "  # noqa: S608  one of two names of ours
                "JOIN groups g ON g.id = m.grp JOIN people p ON p.id = m.person"
            )
            found |= {(table, str(group), str(person)) for group, person in rows}
        for email, admin, manager, applications, metadata in repository.rows(
            "SELECT email, admin, manager, applications, metadata FROM people"
        ):
            rights = [right for right, held in (("admin", admin), ("manager", manager)) if held]
            found |= {("right", str(email), right) for right in [*rights, *json.loads(str(applications))]}
            found |= {
                ("metadata", str(email), key, *([text] if values else []))
                for key, text in json.loads(str(metadata)).items()
            }
        for email, name, choice, text in repository.rows(
            "SELECT p.email, f.name, c.name, a.text FROM answers a JOIN people p ON p.id = a.person "
            "JOIN fields f ON f.id = a.field LEFT JOIN choices c ON c.id = a.choice"
        ):
            found.add(("answer", str(email), str(name), *([str(choice or text)] if values else [])))
        for content, audience, *value in repository.rows(
            "SELECT c.name, coalesce(g.name, p.email, t.audience), t.mandatory, t.start, t.finish FROM targets t "
            "JOIN contents c ON c.id = t.content LEFT JOIN groups g ON g.id = t.audience AND g.kind = t.kind "
            "LEFT JOIN people p ON p.id = t.audience AND t.kind = 'USER'"
        ):
            found.add(("assignment", str(content), str(audience), *(map(str, value) if values else [])))
        return found


class Project:
    """A project in a folder against one service, as somebody at the command line has it."""

    def __init__(self, folder: Path, service: RandomService, url: str) -> None:
        self.folder, self.service = folder, service
        (folder / "manifests").mkdir(exist_ok=True)
        (folder / "lmsconf.yaml").write_text(PROJECT.format(url=url), encoding="utf-8")

    def write(self, manifest: str) -> None:
        """Write the one manifest. Where a service demands the manager right of managers, all of them have it."""
        right = "manager: true, " if self.service.points.manage == "with-right" else ""
        people = {"bo": BO, "anna": ANNA, "new": NEW, "p0": P0, "p1": P1, "p2": P2, "p3": P3, "p4": P4}
        (self.folder / "manifests" / "all.yaml").write_text(
            Template(manifest).substitute(right=right, **people), encoding="utf-8"
        )

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
        out = io.StringIO()
        with redirect_stdout(out), redirect_stderr(out):
            try:
                main(["-C", str(self.folder), *arguments])
            except SystemExit as ended:
                return int(ended.code or 0), out.getvalue()
        raise AssertionError("a command ends with its exit code")


@contextmanager
def opened(points: Points, seed: int, folder: Path, patch: pytest.MonkeyPatch) -> Iterator[Project]:
    """The company behind a port, and a project that knows nothing of it."""
    nobody_waits(patch)
    patch.setenv("LMSCONF_TOKEN", "sandbox")
    patch.setenv("XDG_STATE_HOME", str(folder / "state"))
    for name in ("LMSCONF_URL", "LMSCONF_WORKSPACE"):
        patch.delenv(name, raising=False)
    service = RandomService(points, seed)
    with service.store.write_transaction() as repository:
        fill_workspace(repository, COMPANY, spec=service.spec)
    with served(service, patch) as server:
        yield Project(folder, service, server.url)
    service.close_workspace()


def play(project: Project) -> Outcome:
    """Probe, two manifests, and the undo of the second one."""
    outcome = Outcome(changed=dict(project.service.points.changed()))
    before = photo(project.service)
    project.write(FIRST)
    code, output = project.run("doctor", "--probe", "--yes", "--user", BO, "--user", P0, "--content", "GDPR basics")
    outcome.learnt = output
    after = photo(project.service)
    outcome.left = list(_differences(before, after))
    if code != 0:
        return _ended(outcome, project, "probe", code, output, "part" if outcome.left else "stopped")
    for stage, manifest in (("apply 1", FIRST), ("apply 2", SECOND)):
        project.write(manifest)
        before, had, had_values = photo(project.service), facts(project.service), facts(project.service, values=True)
        if not _applies(outcome, project, stage, had, MAY_GO[stage], before):
            return outcome
    gave = facts(project.service) - had
    before, has = photo(project.service), facts(project.service)
    code, output = project.run("plan", "--undo", "latest", "--out", str(project.folder / "undo.json"))
    if code == 0:
        asked = len(project.service.asked)
        code, output = project.run("apply", str(project.folder / "undo.json"))
        outcome.calls = [str(one) for one in project.service.asked[asked:]]
    outcome.lost = sorted(has - facts(project.service) - gave)
    if code != 0:
        return _ended(outcome, project, "undo", code, output, "stopped" if photo(project.service) == before else "part")
    now = facts(project.service, values=True)
    if missing := sorted(had_values - now - project.announced):
        _ended(
            outcome,
            project,
            "undo",
            code,
            f"not undone: {missing}; instead: {sorted(now - had_values)}\n{output}",
            "unsettled",
        )
    return outcome


def play_unprobed(project: Project) -> Outcome:
    """Both manifests without a probe: after each stop the lines that it says are pasted, and the next run goes on."""
    outcome = Outcome(changed=dict(project.service.points.changed()))
    stated: dict[str, str] = {}
    stops: list[tuple[set[Fact], set[Fact], dict[str, str]]] = []
    for stage, manifest in (("apply 1", FIRST), ("apply 2", SECOND)):
        project.write(manifest)
        for turn in range(ROUNDS):
            outcome.rounds[stage] = turn + 1
            outcome.kind = "converged"
            before, had = photo(project.service), facts(project.service)
            had_values = facts(project.service, values=True)
            if _applies(outcome, project, stage, had, MAY_GO[stage], before):
                break
            if outcome.lost:
                return outcome
            lines = dict(_PASTED.findall(outcome.output))
            stops.append((had_values, facts(project.service, values=True), lines))
            outcome.said.append(f"{stage} {turn + 1}: {lines or outcome.first}")
            if stated.items() >= lines.items():
                outcome.kind = f"{outcome.kind} (stuck)"
                return outcome
            stated |= lines
            project.state(stated)
        else:
            return outcome
        planned = facts(project.service, values=True)
        for before_stop, after_stop, lines in stops:
            # The names after a rename, which a stop may come before.
            new = {(fact, tuple(RENAMED.get(word, word) for word in fact)) for fact in after_stop - before_stop}
            astray = {_resource(fact) for fact, renamed in new if not {fact, renamed} & planned}
            if len(astray) > max(1, len(lines)):
                outcome.astray += [f"{stage}, {sorted(lines)}: {sorted(astray)}"]
        stops.clear()
    return outcome


def _resource(fact: Fact) -> Fact:
    """What a fact is about: a group's list, an assignment, or a person."""
    return (
        fact[:3] if fact[0] == "assignment" else fact[:2] if fact[0] in ("member", "manager") else ("person", fact[1])
    )


def _applies(
    outcome: Outcome, project: Project, stage: str, had: set[Fact], may_go: Iterable[Fact], before: object
) -> bool:
    """Whether an apply converges, and the next plan is empty. What people lost is noted in any case."""
    asked = len(project.service.asked)
    code, output = project.run("apply", "--auto-approve")
    outcome.calls = [str(one) for one in project.service.asked[asked:]]
    names = RENAMED if stage == "apply 2" else {}
    now = facts(project.service)
    renamed = {tuple(names.get(word, word) for word in fact) for fact in may_go}
    for fact in sorted(had - now - set(may_go) - renamed - project.announced):
        if tuple(names.get(word, word) for word in fact) not in now:
            outcome.lost.append(fact)
    if code != 0:
        _ended(outcome, project, stage, code, output, "stopped" if photo(project.service) == before else "part")
        return False
    code, output = project.run("plan", "--detailed-exitcode")
    if code != 0:
        _ended(outcome, project, f"{stage}, plan", code, output, "unsettled")
        return False
    return not outcome.lost


def _ended(outcome: Outcome, project: Project, stage: str, code: int, output: str, kind: str) -> Outcome:
    outcome.kind, outcome.stage, outcome.code, outcome.output = kind, stage, code, output
    outcome.first = _first_error(output)
    known = load_api_description()
    keys = {*known.behaviours, *known.names}
    outcome.keys = tuple(dict.fromkeys(one for one in _SPOKEN.findall(output) if one in keys))
    return outcome


def _first_error(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    marks = (
        "error",
        "refused",
        "rejected",
        "failed",
        "not as planned",
        "cannot",
        "not undone",
        "stops",
        "unknown format",
    )
    return next((line for mark in marks for line in lines if mark in line.lower()), lines[-1] if lines else "")[:300]


def _differences(
    before: dict[str, list[tuple[object, ...]]], after: dict[str, list[tuple[object, ...]]]
) -> Iterator[str]:
    for table in before:
        for row in before[table]:
            if row not in after[table]:
                yield f"{table}: lost {row}"
        for row in after[table]:
            if row not in before[table]:
                yield f"{table}: has {row}"
