"""A clinic: a workspace with choices and habits of its own, and a project that knows nothing of them."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from types import SimpleNamespace
from typing import Any, ClassVar
from zoneinfo import ZoneInfo

import pytest
from integrity.served_project import CommandResult, ServedProject
from json_schemas import schema_validator
from waiting import VirtualClock

from lmsconf.sandbox.service import Sandbox, SandboxResponse, json_response

ANNA, BO, GDPR = "anna.berg@acme.example", "bo.ek@acme.example", "GDPR basics"
P0, P1, P2, P3, P4 = (f"p{number}@acme.example" for number in range(5))
ANSWERS = "users.update-custom-field-choice"
SEED: Mapping[str, Any] = {
    "custom_fields": [{"name": "Department", "type": "CHOICE", "choices": ["Sales", "Engineering"]}],
    "people": [
        {"email": ANNA, "answers": {"Department": "Sales"}, "admin": True},
        {"email": BO, "answers": {"Department": "Sales"}},
        *({"email": f"p{number}@acme.example"} for number in range(5)),
    ],
    "groups": [{"name": "Coaches", "members": [BO], "managers": [ANNA]}],
    "smart_groups": [{"name": "Sales", "conditions": [{"field": "Department", "choices": ["Sales"]}]}],
    "content": [{"name": GDPR}, {"name": "Fire safety"}],
    "content_targets": [{"content": GDPR, "assign_to": ["everyone", {"group": "Coaches"}]}],
}
FOUR_FIELDS: Mapping[str, Any] = {
    "custom_fields": [
        *SEED["custom_fields"],
        {"name": "Skills", "type": "MULTI_SELECT", "choices": ["SQL", "Go"]},
        {"name": "Badge", "type": "TEXT"},
        {"name": "Desk", "type": "TEXT"},
    ],
    "people": [
        {"email": ANNA, "admin": True, "answers": {"Department": "Sales", "Desk": "1"}},
        {"email": BO, "answers": {"Department": "Sales", "Skills": ["SQL", "Go"], "Badge": "7", "Desk": "2"}},
        *({"email": one, "answers": {"Desk": "3"}} for one in (P0, P1, P2, P3)),
    ],
}
"""Answers of every type."""
PROJECT = """\
# how lmsconf is set up here
workspaces:
  production: {url: "https://lms.example/api", token: {env: LMSCONF_KEY}}   # the real one
manifests: manifests   # below this folder
"""
CREATES = PROJECT + "people: {create: true}   # HR wants it\n"
MANIFEST = """
custom_fields: [{name: Department, type: CHOICE, choices: [Sales, Engineering]}]
groups: [{name: Coaches, members: [bo.ek@acme.example]}]
smart_groups: [{name: Sales, conditions: [{field: Department, choices: [Sales]}]}]
content_targets: [{content: GDPR basics, assign_to: [{group: Coaches}]}]
"""


@dataclass(frozen=True, slots=True)
class Clinic(ServedProject):
    """A project in a folder, which the environment tells where its workspace is."""

    @property
    def project(self) -> str:
        return (self.root / "lmsconf.yaml").read_text(encoding="utf-8")

    def configure(self, project: str) -> None:
        """Writes the project file."""
        (self.root / "lmsconf.yaml").write_text(project, encoding="utf-8")

    def declare(self, manifest: str, options: str = "", dialect: Mapping[str, object] | None = None) -> None:
        """Writes the only manifest, and adds to the project file; with a dialect, to that which there was at first."""
        self.write(manifest)
        self.configure((self.project if dialect is None else PROJECT) + options)
        if dialect:
            self.configure(f"{self.project}dialect: {json.dumps(dialect)}\n")

    def apply(self, *more: str, code: int = 0) -> CommandResult:
        """Plans and applies in one run."""
        return self("apply", "--auto-approve", *more, code=code)

    def settles(self) -> None:
        """An apply of the manifests at hand goes well, and leaves nothing to plan."""
        self.apply()
        self.is_settled()

    def is_settled(self) -> str:
        """Nothing is left to plan; what that plan says."""
        return self("plan", "--detailed-exitcode", code=0).told

    def probed(self, *more: str, code: int = 0) -> CommandResult:
        """A probe without questions."""
        return self("doctor", "--probe", "--yes", *more, code=code)

    def report(self, *more: str) -> dict[str, Any]:
        """What `doctor` says as JSON, which is as its schema describes it."""
        document = self("doctor", "--format", "json", *more, code=0).document
        assert [error.message for error in schema_validator("doctor").iter_errors(document)] == []
        return document

    def lessons(self, *more: str) -> dict[str, dict[str, Any]]:
        """Key → what a probe without questions says of it."""
        return {one["key"]: one for one in self.report("--probe", "--yes", *more)["probe"]["lessons"]}

    def probe(self, *more: str) -> dict[str, tuple[str, object]]:
        """Key → verdict and value, as such a probe has them."""
        return {key: (one["verdict"], one["value"]) for key, one in self.lessons(*more).items()}

    def sent(self, end: str = "", *, operation: str | None = None) -> list[str]:
        """The operations that wrote, of paths that end so, or the requests for one operation."""
        asked = [str(one.operation) for one in self.sandbox.log if one.path.endswith(end) and (operation or one.writes)]
        return [one for one in asked if operation in (None, one)]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What the workspace stores."""
        with self.sandbox.store.read_transaction() as repository:
            return [tuple(row) for row in repository.rows(query)]

    def lists(self) -> dict[str, set[str]]:
        """List of a group → who is in it, by what stands before the @ of their e-mails."""
        found: dict[str, set[str]] = {}
        for table in ("members", "managers"):
            people = f"{table} l JOIN groups g ON g.id = l.grp JOIN people p ON p.id = l.person"
            for name, email in self.rows(f"SELECT g.name, p.email FROM {people}"):  # noqa: S608  the names stand above
                found.setdefault(f"{name} {table}", set()).add(str(email).partition("@")[0])
        return found

    def answers(self) -> dict[str, dict[str, object]]:
        """E-mail → field → names of choices, or the text, as the workspace holds them."""
        said = Sandbox.answer(self.sandbox, "GET", "/users", "", _GRANTED, b"")
        return {
            one["email"]: {
                name: answer["text"] if "text" in answer else [choice["name"] for choice in answer["choices"]]
                for name, answer in one["customFields"].items()
            }
            for one in json.loads(said.body)["users"]
        }


Open = Callable[..., Clinic]
"""Opens a clinic whose service speaks a dialect, which its project does not know."""


def held(clinic: Clinic) -> dict[str, list[tuple[Any, ...]]]:
    """All that the workspace stores, but what it counts, and when something was made or changed."""
    tables = [name for (name,) in clinic.rows("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found: dict[str, list[tuple[Any, ...]]] = {}
    for table in sorted({*tables} - {"counters", "orders"}):
        names = {name for (name,) in clinic.rows(f"SELECT name FROM pragma_table_info('{table}')")}  # noqa: S608  as below
        columns = ", ".join(sorted(names - {"seq", "created_at", "updated_at"}))
        found[table] = sorted(clinic.rows(f"SELECT {columns} FROM {table}"), key=repr)  # noqa: S608  of the schema
    return found


@contextmanager
def unchanged(clinic: Clinic) -> Iterator[None]:
    """What is done meanwhile leaves the workspace as it was."""
    before = held(clinic)
    yield
    assert held(clinic) == before


_GRANTED = {"authorization": "Bearer sandbox", "content-type": "application/json"}


# Services with habits of their own.


Body = dict[str, Any]


class Altered(Sandbox):
    """A service that goes by another body than it was sent, or shows otherwise what there is.

    instead: status → the one that it gives in its place.
    """

    instead: ClassVar[Mapping[int, int]] = {}

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        if method != "GET":
            taken = self.taken(method, path, json.loads(body) if body else {})
            if isinstance(taken, SandboxResponse):
                return taken
            body = json.dumps(taken).encode() if body else body
        said = super().answer(method, path, query, headers, body)
        if said.status in self.instead:
            return json_response(self.instead[said.status], {"error": "no"})
        if method != "GET":
            return self.done(method, path, said)
        shown = self.shown(path, query, json.loads(said.body)) if said.status == 200 else said
        return shown if isinstance(shown, SandboxResponse) else json_response(200, shown)

    def ask(self, method: str, path: str, body: object = None, query: str = "") -> Any:
        """What a call of its own comes to, as the sandbox has it."""
        sent = b"" if body is None else json.dumps(body).encode()
        said = Sandbox.answer(self, method, path, query, _GRANTED, sent)
        return json.loads(said.body) if said.body else None

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        """The body that it goes by; or the response, where it does nothing."""
        return body

    def done(self, method: str, path: str, said: SandboxResponse) -> SandboxResponse:
        """The response to a call that was carried out, or refused."""
        return said

    def shown(self, path: str, query: str, body: Body) -> Body | SandboxResponse:
        """What it shows there; or another response."""
        return body


class ShowsLocalTimes(Altered):
    """Shows the times of assignments as local ones of Lagos, an hour east of Greenwich, without an offset."""

    def shown(self, path: str, query: str, body: Body) -> Body | SandboxResponse:
        for one in body["targets"] if path == "/content/targets" else ():
            for key in (key for key in ("startTime", "finishTime") if one.get(key)):
                local = datetime.fromisoformat(one[key]).astimezone(ZoneInfo("Africa/Lagos"))
                one[key] = local.replace(tzinfo=None).isoformat()
        return body


class ShowsLate(Altered):
    """Shows paths that begin and end so as they were some time ago, be it that they were not asked for then.

    Time passes with each request for them, or with waiting where there is a clock, on which a request takes time, too.
    queries: those of paths that are to be known before their first change.
    """

    begin: ClassVar[str] = ""
    end: ClassVar[str] = ""
    late: ClassVar[float]
    clock: ClassVar[VirtualClock | None] = None
    takes: ClassVar[float] = 0.0
    queries: ClassVar[Sequence[str]] = ("",)
    reads = 0

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.seen: dict[tuple[str, str], list[tuple[float, Body]]] = {}

    def time(self) -> float:
        """Seconds, or requests."""
        return self.reads if self.clock is None else self.clock.now()

    def fits(self, path: str) -> bool:
        return path.startswith(self.begin) and path.endswith(self.end)

    def taken(self, method: str, path: str, body: Body) -> Body | SandboxResponse:
        for query in self.queries if self.fits(path) else ():
            self.seen.setdefault((path, query), [(self.time(), self.ask("GET", path, query=query))])
        return super().taken(method, path, body)

    def done(self, method: str, path: str, said: SandboxResponse) -> SandboxResponse:
        for (seen, query), states in self.seen.items():
            states.append((self.time(), self.ask("GET", seen, query=query)))
        return super().done(method, path, said)

    def shown(self, path: str, query: str, body: Body) -> Body | SandboxResponse:
        if self.clock is not None:
            self.clock.sleep(self.takes)
        if not self.fits(path):
            return super().shown(path, query, body)
        self.reads += 1
        first, *more = self.seen.setdefault((path, query), [(self.time(), body)])
        past = [state for at, state in more if at <= self.time() - self.late]
        return super().shown(path, query, [first[1], *past][-1])


def probe_waits(monkeypatch: pytest.MonkeyPatch) -> VirtualClock:
    """The clock on which a probe waits from now on."""
    clock = VirtualClock()
    monkeypatch.setattr("lmsconf.doctor.probe_trials.time", SimpleNamespace(monotonic=clock.now, sleep=clock.sleep))
    return clock
