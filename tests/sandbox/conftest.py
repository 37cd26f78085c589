"""A small workspace and somebody who calls it, for every test of the sandbox."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

import httpx
import pytest
import yaml

from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox.faults import FaultScript
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import fill_if_empty
from lmsconf.workspace.fill_sandbox import fill_workspace

NOW = 1_767_225_600.0  # 2026-01-01T00:00:00Z

TEXTS = Path(__file__).parent / "texts"
SEED = yaml.safe_load((TEXTS / "small_workspace.yaml").read_text(encoding="utf-8"))


class Caller:
    """Somebody with the right credential. `call` gives the answer whole, `ok` its JSON, `no` its status and message."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        headers = {"authorization": "Bearer sandbox"}
        self.client = httpx.Client(transport=sandbox, base_url="http://sandbox", headers=headers)

    def call(self, method: str, path: str, body: object = None, **query: object) -> httpx.Response:
        return self.client.request(method, path, json=body, params=query or None)

    def ok(self, method: str, path: str, body: object = None, **query: object) -> dict[str, object]:
        answer = self.call(method, path, body, **query)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else {}

    def no(self, method: str, path: str, body: object = None, **query: object) -> tuple[int, str]:
        answer = self.call(method, path, body, **query)
        assert answer.is_error, answer.text
        return answer.status_code, answer.json()["message"]


class Clock:
    """A clock that stands still until it is moved. Times are epoch milliseconds, as the API has them."""

    def __init__(self) -> None:
        self.now = int(NOW * 1000)

    def __call__(self) -> float:
        return self.now / 1000


DAY = 86_400_000
Open = Callable[..., Caller]


@pytest.fixture
def open_workspace() -> Iterator[Open]:
    """Opens a seeded workspace in memory; `dialect`, `faults`, `clock`, more of a seed or a seed's file may be said."""
    opened: list[Caller] = []

    def open(
        dialect: Mapping[str, str | int] | None = None,
        faults: FaultScript | None = None,
        clock: Callable[[], float] = lambda: NOW,
        more: Mapping[str, object] | None = None,
        seed: str | None = None,
    ) -> Caller:
        sandbox = Sandbox(spec=ApiSpec(dialect), clock=clock, faults=faults)
        fill_if_empty(sandbox, TEXTS / seed if seed else None)
        if seed is None:
            with sandbox.store.write_transaction() as repository:
                fill_workspace(repository, {**SEED, **(more or {})}, spec=sandbox.spec)
        opened.append(Caller(sandbox))
        return opened[-1]

    yield open
    for caller in opened:
        caller.client.close()
        caller.sandbox.close_workspace()


@pytest.fixture
def api(open_workspace: Open) -> Caller:
    """A caller of the seeded workspace."""
    return open_workspace()


# Marks the tests that show what the sandbox does where the specification is silent.


Test = TypeVar("Test", bound=Callable[..., object])


def chosen(*names: str) -> Callable[[Test], Test]:
    """This test shows the choices of those names."""
    assert names
    return lambda test: test
