"""Where the laws are tried: a sandbox in memory, manifests as YAML on disk, and a look that does without lmsconf."""

from __future__ import annotations

import json
import os
import pkgutil
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from datetime import UTC, date, datetime
from functools import cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Final

import httpx
import waiting
from hypothesis import HealthCheck, Phase, assume, reject, settings
from laws.random_manifests import ELSEWHERE, RandomManifests
from laws.random_workspaces import RandomWorkspace
from msgspec import Struct
from msgspec.structs import replace
from sampling import PARTS, WHOLE

from lmsconf.api.client import Client
from lmsconf.api.concurrent_requests import ConcurrentReader, WorkerPool
from lmsconf.api.retry_and_rate_limit import RetryPolicy
from lmsconf.api.spec import ApiSpec
from lmsconf.apply.replanning import reevaluate_guards, refuse_stale_plan
from lmsconf.apply.run_plan import execute
from lmsconf.documents.plan_file import dumps
from lmsconf.errors import ProblemsFound
from lmsconf.model.calls import Report
from lmsconf.model.declarations import Manifests
from lmsconf.model.guards import Consent, Policy
from lmsconf.model.names import normalize_name
from lmsconf.model.outcomes import ApplyReport
from lmsconf.model.plan import Plan
from lmsconf.project.settings import Settings, load_settings
from lmsconf.sandbox.faults import FaultScript
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.fill_sandbox import fill_workspace
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WaitClock, WorkspaceReader

NOW: Final = 1_767_225_600.0  # 2026-01-01T00:00:00Z
NAME: Final = "sandbox"
_PROJECT: Final = f"""
workspaces: {{{NAME}: {{url: "sandbox:"}}, {ELSEWHERE}: {{url: "sandbox:other.db"}}}}
timezone: Europe/Stockholm
"""

Raw = dict[tuple[str, str], dict[str, Any]]
"""Kind and id → what the API says of that thing. A target's id is that of its content, a slash, and its audience's."""


class TransportConnection(Connection):
    """A connection over a transport of the test's choosing, whose clients lose no time between their tries."""

    token = "sandbox"

    def __init__(self, transport: httpx.BaseTransport, spec: ApiSpec, retry: RetryPolicy | None = None) -> None:
        self.name, self.url, self.spec = NAME, "sandbox:", spec
        self._transport, self._retry = transport, retry or waiting.retry_in_virtual_time()
        self.is_given = False

    def worker_pool(self, parallelism: int, progress: Report | None = None) -> WorkerPool:
        return WorkerPool(self._client, parallelism=parallelism, progress=progress)

    def reader(self, pool: WorkerPool, *, everything: bool = False) -> ConcurrentReader:
        return ConcurrentReader(pool, self.spec, whole_rows=everything)

    def _client(self) -> Client:
        return Client("http://sandbox", self.token, spec=self.spec, transport=self._transport, retry=self._retry)


class VirtualClock(waiting.VirtualClock):
    """The same as an apply asks for it."""

    def timing(self) -> WaitClock:
        return WaitClock(now=self.now, sleep=self.sleep)


class Shuffled(httpx.BaseTransport):
    """A service that lists the same rows in another order."""

    _ROWS: Final = ("users", "customFields", "groups", "smartGroups", "courses", "targets", "userIds")

    def __init__(self, service: httpx.BaseTransport, seed: int) -> None:
        self._service, self._random = service, random.Random(seed)  # noqa: S311  an order is no secret

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        answer = self._service.handle_request(request)
        said = json.loads(answer.read() or b"null")
        for key in self._ROWS:
            if isinstance(said, dict) and isinstance(said.get(key), list):
                self._random.shuffle(said[key])
        return httpx.Response(answer.status_code, json=said)


class SandboxProject(Struct, frozen=True, kw_only=True):
    """One world with one wish: `workspace` is lmsconf's view of it, `sandbox` the thing itself."""

    folder: Path
    sandbox: Sandbox
    settings: Settings
    workspace: WorkspaceReader

    def manifests(self) -> Manifests:
        """What the manifests on disk say."""
        return load_manifests(self.settings)

    def plan(self, policy: Policy | None = None) -> Plan:
        """A fresh plan of the manifests on disk. A wish makes sense, so there are no errors to tell of but one.

        In a workspace of ten fields, a group that is to leave the field that goes for the one that comes in its place
        has no order to do so in; the plan says that, and the example is another.
        """
        try:
            return self.workspace.plan(self.manifests(), policy or self.settings.policy)
        except ProblemsFound as found:
            if {problem.code for problem in found.problems if problem.is_error} == {"plan/circle"}:
                reject()
            raise AssertionError([str(problem) for problem in found.problems if problem.is_error]) from found

    def consented(self, plan: Plan) -> Plan:
        """The plan with the exact consents that its guards ask for."""
        judged = reevaluate_guards(
            self.workspace, plan, [Consent(guard=one.name, number=one.total) for one in plan.guards]
        )
        assert not any(guard.tripped for guard in judged.guards)
        return judged

    def apply(self, plan: Plan) -> ApplyReport:
        """Carries a plan out whatever its guards say, once it is found fresh, which writes nothing."""
        plan, wrote = self.consented(plan), self.writes()
        refuse_stale_plan(self.workspace, plan)
        assert self.writes() == wrote
        return execute(self.workspace, plan, meta={})

    def with_accounts(self) -> SandboxProject:
        """The same stage in a project whose file allows to create people."""
        settings = replace(self.settings, policy=replace(self.settings.policy, create_people=True))
        return replace(self, settings=settings, workspace=replace(self.workspace, settings=settings))

    def one_by_one(self) -> SandboxProject:
        """The same stage, where one request is under way at a time, so that ids are given out in one order."""
        return replace(self, workspace=replace(self.workspace, parallelism=1))

    def seen_through(self, transport: httpx.BaseTransport) -> SandboxProject:
        """The same stage, reached by another way."""
        link = TransportConnection(transport, self.sandbox.spec)
        return replace(self, workspace=replace(self.workspace, connection=link))

    def rewrite(self, files: Mapping[str, str]) -> None:
        """Other manifests in the place of those there are."""
        for old in self.settings.manifests.iterdir():
            old.unlink()
        for name, text in files.items():
            (self.settings.manifests / name).write_text(text, encoding="utf-8")

    def writes(self) -> int:
        """How many writing requests the workspace has seen."""
        return sum(one.writes for one in self.sandbox.log)

    def look(self) -> Raw:
        """All that manifests can speak of, as the API answers it."""
        return dict(self._rows())

    def _rows(self) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
        for field in self.get("/custom-fields")["customFields"]:
            yield ("custom_field", field["id"]), field
        for group in self._pages("/groups", "groups"):
            at = f"/groups/{group['groupId']}"
            lists = {key: self.get(f"{at}/{key}")["userIds"] for key in ("members", "managers")}
            yield ("group", group["groupId"]), {"name": group["name"], **lists}
        for group in self._pages("/smart-groups", "smartGroups"):
            whole = self.get(f"/smart-groups/{group['smartGroupId']}")
            yield (
                ("smart_group", group["smartGroupId"]),
                {key: whole[key] for key in ("name", "conditions", "managers")},
            )
        for person in self._pages("/users", "users"):
            keys = ("email", "firstName", "lastName", "archivedAt", "customFields")
            yield ("user", person["userId"]), {key: person.get(key) for key in keys}
        for content in self._pages("/content/all", "courses"):
            yield ("content", content["courseId"]), {key: content[key] for key in ("name", "contentType")}
            for target in self.get("/content/targets", f"contentId={content['courseId']}")["targets"]:
                del target["name"]  # it follows the audience's name, which is no property of the assignment
                yield ("content_target", f"{content['courseId']}/{target['targetId']}"), target

    def _pages(self, path: str, key: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = []
        while page := self.get(path, f"skip={len(rows)}&limit=100")[key]:
            rows.extend(page)
        return rows

    def get(self, path: str, query: str = "") -> dict[str, Any]:
        """What the API answers."""
        answer = self.sandbox.answer("GET", path, query, {"authorization": "Bearer sandbox"}, b"")
        assert answer.status == 200, answer
        found: dict[str, Any] = json.loads(answer.body)
        return found


_numbers = count()


def open_stage(
    folder: Path, world: RandomWorkspace, wish: RandomManifests, faults: FaultScript | None = None
) -> SandboxProject:
    """A sandbox that holds the world, and a project beside it that wants the wish."""
    root = folder / str(next(_numbers))
    (root / "manifests").mkdir(parents=True)
    (root / "manifests" / "all.yaml").write_text(yaml_text(wish.document()), encoding="utf-8")
    spec = ApiSpec(world.dialect)
    sandbox = Sandbox(spec=spec, clock=lambda: NOW, faults=faults)
    with sandbox.store.write_transaction() as repository:
        fill_workspace(repository, world.seed(), spec=spec)
    usual = _settings(folder)
    policy = replace(usual.policy, ownership=wish.ownership, leave_alone=wish.leave_alone)
    settings = replace(usual, root=root, manifests=root / "manifests", policy=policy, dialect=world.dialect)
    workspace = WorkspaceReader(
        settings=settings,
        connection=TransportConnection(sandbox, spec),
        parallelism=2,
        clock=lambda: datetime.fromtimestamp(NOW, UTC),
        timing=VirtualClock().timing(),
    )
    return SandboxProject(folder=root, sandbox=sandbox, settings=settings, workspace=workspace)


@cache
def _settings(folder: Path) -> Settings:
    """What a project file says; read once, because what differs between stages is not in it."""
    (folder / "lmsconf.yaml").write_text(_PROJECT, encoding="utf-8")
    return load_settings(folder, NAME, {}, today=date(2026, 1, 1))


def yaml_text(document: Mapping[str, object]) -> str:
    """Sections as YAML, whose flow style JSON is."""
    return "".join(f"{key}: {json.dumps(_verbatim(value), ensure_ascii=False)}\n" for key, value in document.items())


def _verbatim(value: object) -> object:
    """The value with a variable's sign taken for itself; in keys there are none."""
    if isinstance(value, dict):
        return {key: _verbatim(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_verbatim(item) for item in value]
    return value.replace("$(", "$$(") if isinstance(value, str) else value


def document_of(plan: Plan) -> dict[str, Any]:
    """The plan's document, the way a script reads it."""
    document: dict[str, Any] = json.loads(dumps(plan))
    return document


def assume_sure(plan: Plan) -> None:
    """The example is another where a plan has no calls, or has some that the service may refuse."""
    assume(plan.calls and not any(call.may_be_refused for call in plan.calls))


def in_names(value: Any, names: Mapping[str, str], passing: Set[str], unset: tuple[object, ...] = ()) -> Any:
    """The value with a name wherever an id stood, lists in order, and without keys that pass and values for unset."""
    if isinstance(value, dict):
        lasting = {key: item for key, item in value.items() if key not in passing and item not in unset}
        return {normalize_name(key): in_names(item, names, passing, unset) for key, item in lasting.items()}
    if isinstance(value, list):
        named = (in_names(item, names, passing, unset) for item in value)
        return sorted(named, key=lambda one: json.dumps(one, sort_keys=True))
    return names.get(value, normalize_name(value)) if isinstance(value, str) else value


def shape(raw: Raw) -> Counter[str]:
    """The workspace with names for ids, and lists in order: how often each thing is there."""
    passing = {"createdAt", "updatedAt", "updatedBy"}
    names = {id: normalize_name(str(said.get("name", said.get("email")))) for (_, id), said in raw.items()}
    for (kind, _), said in raw.items():
        if kind == "custom_field":
            names |= {one["choiceId"]: normalize_name(one["name"]) for one in said.get("choices") or ()}
    return Counter(
        json.dumps([kind, in_names(said, names, passing, (None, "", False))], sort_keys=True, ensure_ascii=False)
        for (kind, _), said in raw.items()
    )


# How hard the laws are tried: the same examples in every run, or with LAWS=search new ones each time.
#
# With every fourth commit that is a sixtieth of them, with TESTS=all all. In .ci/run each law is tried with every sixth
# commit. LAWS=quick stops at the first example that fails instead of making it smaller, which can take minutes.


SEARCH: Final = os.environ.get("LAWS") == "search"
_PHASES: Final = [Phase.explicit, Phase.generate, *([] if os.environ.get("LAWS") == "quick" else [Phase.shrink])]


def tried(number: int) -> settings:
    """Settings for so many examples at most, ten times as many in a search. What an example takes is not limited."""
    return settings(
        max_examples=number * 10 if SEARCH else number if WHOLE else max(1, number // PARTS),
        derandomize=not SEARCH,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much],
        phases=_PHASES,
        report_multiple_bugs=False,
    )


def load_everything() -> None:
    """Imports all of lmsconf: hypothesis takes constants from what is loaded, so the examples would depend on order."""
    import lmsconf

    for found in pkgutil.walk_packages(lmsconf.__path__, "lmsconf."):
        if not found.name.endswith("__main__"):
            import_module(found.name)


load_everything()
