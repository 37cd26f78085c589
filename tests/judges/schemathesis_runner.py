"""Puts a sandbox in this process before Schemathesis, which calls it by the API description and checks each answer."""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final

import schemathesis
import yaml
from schemathesis.config import SchemathesisConfig
from schemathesis.core.failures import Failure
from schemathesis.core.transport import Response
from schemathesis.engine import Status, events, from_schema
from schemathesis.engine.recorder import CheckFailureInfo, ScenarioRecorder
from schemathesis.openapi.checks import RejectedPositiveData
from texts import text_of

from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox.faults import FaultScript
from lmsconf.sandbox.service import Sandbox
from lmsconf.sandbox.synthetic_seed import generate_seed
from lmsconf.support.files import read_schema
from lmsconf.workspace.fill_sandbox import fill_workspace

TOKEN: Final = "sandbox"
PHASES: Final = ("examples", "coverage", "fuzzing", "stateful")
SHARE_OF_LIVE: Final = 0.6
_HEADERS: Final = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
_GENERATION: Final = {"userId": "u-2", "contentId": "c-2", "contentType": "COURSE"}
_BEGIN: Final = 1_767_225_600  # 2026-01-01T00:00:00Z
_Message = dict[str, Any]
_App = Callable[[_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]], Awaitable[None]]

LIVE: Final[Mapping[str, list[str]]] = yaml.safe_load(text_of(__file__, "live.yaml"))
"""What is live → the parameters that it is good for."""
_REFUSALS = (line for line in text_of(__file__, "as_things_stand.txt").splitlines() if not line.startswith("#"))
AS_THINGS_STAND: Final = re.compile(rf"(conditions\[\d+\]: )?({'|'.join(_REFUSALS)})", re.DOTALL)
"""The refusals with 400 of requests that are just as described. Any other 400 of such a request is a failure."""


@dataclass
class Examination:
    """What came of it. statuses: how often each operation answered with which status."""

    failures: list[str] = field(default_factory=list)
    checks: set[str] = field(default_factory=set)
    statuses: dict[str, Counter[int]] = field(default_factory=dict)

    @property
    def carried_out(self) -> set[str]:
        """The operations that were done at least once, and not only refused."""
        return {operation for operation, counts in self.statuses.items() if any(200 <= one < 300 for one in counts)}


def workspace(faults: FaultScript | None = None, spec: ApiSpec | None = None) -> Sandbox:
    """A small workspace that is the same each time: its clock goes on by a second a look."""
    ticks = count()
    service = Sandbox(clock=lambda: _BEGIN + next(ticks), faults=faults, spec=spec)
    with service.store.write_transaction() as repository:
        fill_workspace(
            repository, generate_seed(users=120, groups=12, smart_groups=6, fields=8, contents=15, participations=80)
        )
    started = service.answer(
        "POST", "/manage-certificate/participation", "", _HEADERS, json.dumps(_GENERATION).encode()
    )
    assert started.status == 200, started
    return service


def examine(service: Sandbox, phase: str, *, seed: int, examples: int, only: str | None = None) -> Examination:
    """Runs one phase with all checks, which is the end of the workspace. `only`: what paths have to fit."""
    found = Examination()
    seen: set[tuple[str, str]] = set()
    for event in from_schema(_schema(service, phase, seed, examples, only)).execute():
        if isinstance(event, events.FatalError):
            raise event.exception
        if isinstance(event, events.NonFatalError):
            found.failures.append(f"{event.label}: {event.value!r}")
        if isinstance(event, events.ScenarioFinished):
            _note(found, event.recorder, seen)
    service.close_workspace()
    return found


def _schema(
    service: Sandbox, phase: str, seed: int, examples: int, only: str | None
) -> schemathesis.schemas.BaseSchema:
    """The description with the sandbox behind it. Its own server is only an example of one."""
    document = json.loads(read_schema("openapi.json")) | {"servers": [{"url": "/"}]}
    config = SchemathesisConfig.from_dict(_config(service, phase, seed, examples))
    schema = schemathesis.openapi.from_dict(document, config=config)
    schema.app = app(service)
    schema.hook("filter_failure")(_is_failure)
    return schema.include(path_regex=only) if only else schema


def _config(service: Sandbox, phase: str, seed: int, examples: int) -> dict[str, object]:
    """One phase, every check, nothing kept on disk, and the same calls for the same seed."""
    with service.store.read_transaction() as repository:
        known = {query: sorted(set(repository.column(query))) for query in LIVE}
    enabled: dict[str, dict[str, object]] = {name: {"enabled": name == phase} for name in PHASES}
    enabled["examples"]["fill-missing"] = True
    enabled["coverage"]["generate-duplicate-query-parameters"] = True
    return {
        "seed": seed,
        "headers": {"Authorization": _HEADERS["authorization"]},
        "continue-on-failure": True,
        "generation": {"max-examples": examples, "database": "none"},
        "checks": {"enabled": True},
        "phases": enabled,
        "dictionaries": {query: {"values": values} for query, values in known.items()},
        "parameters": {
            place: {"dictionary": query, "probability": SHARE_OF_LIVE}
            for query, places in LIVE.items()
            for place in places
        },
    }


def _is_failure(context: object, failure: Failure, case: object, response: Response) -> bool:
    """Whether a failure counts: all do, but for right requests that the state of the workspace does not allow."""
    if not isinstance(failure, RejectedPositiveData) or response.status_code != 400:
        return True
    return not AS_THINGS_STAND.fullmatch(response.json()["message"])


def _note(found: Examination, recorder: ScenarioRecorder, seen: set[tuple[str, str]]) -> None:
    """Adds what one scenario brought. Of failures that are alike the first is told."""
    for id, interaction in recorder.interactions.items():
        if interaction.response is not None and id in recorder.cases:
            counts = found.statuses.setdefault(recorder.cases[id].value.operation.label, Counter())
            counts[interaction.response.status_code] += 1
    for id, operation, check, failure in _checked(recorder):
        found.checks.add(check)
        if failure is not None and (operation, failure.failure.title) not in seen:
            seen.add((operation, failure.failure.title))
            found.failures.append(_told(recorder, id, operation, check, failure))


def _checked(recorder: ScenarioRecorder) -> Iterator[tuple[str, str, str, CheckFailureInfo | None]]:
    """Case, operation, check, and what failed, for every check that was made."""
    for id, checks in recorder.checks.items():
        for check in checks:
            assert check.status in (Status.SUCCESS, Status.FAILURE), f"{check.name} broke at {id}"
            yield id, recorder.cases[id].value.operation.label, check.name, check.failure_info


def _told(recorder: ScenarioRecorder, id: str, operation: str, check: str, failure: CheckFailureInfo) -> str:
    """A failure for people: what, how to see it again, and what was answered."""
    interaction = recorder.interactions.get(id)
    answer = interaction.response if interaction else None
    body = answer.content[:400].decode(errors="replace") if answer and answer.content else ""
    return (
        f"{operation}: {failure.failure.title} [{check}]\n{failure.failure.message}\n"
        f"{failure.code_sample}\nanswered {answer.status_code if answer else 'nothing'} {body}"
    )


def app(service: Sandbox) -> _App:
    """The service as an ASGI application, which is how Schemathesis reaches what is in its own process."""

    async def answer(
        scope: _Message, receive: Callable[[], Awaitable[_Message]], send: Callable[[_Message], Awaitable[None]]
    ) -> None:
        if scope["type"] != "http":
            raise NotImplementedError("there is no lifespan to follow")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        body = (await receive())["body"]
        said = service.answer(
            scope["method"], scope["raw_path"].decode(), scope["query_string"].decode(), headers, body
        )
        fields = [(name.encode(), value.encode()) for name, value in said.headers.items()]
        await send({"type": "http.response.start", "status": said.status, "headers": fields})
        await send({"type": "http.response.body", "body": said.body})

    return answer
