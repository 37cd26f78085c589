"""The typed client and the sandbox, end to end: every operation once, each answer in the shape of the description."""

from collections.abc import Iterator, Mapping
from typing import Any

import jsonschema
import pytest
import yaml
from client.network import typed_call
from texts import text_of
from wire.second_dialect import second_dialect

from lmsconf.api import Service
from lmsconf.api.client import Client
from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.operations import load_api_description
from lmsconf.model.canonical_json import Json
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.fill_sandbox import fill_workspace

from .guide_tables import EXPERIMENTS, GUIDE, guesses, relied_on, shown, tables
from .writer import TARGET, written

DEFAULT: dict[str, str | int] = {}
OTHER: dict[str, str | int] = {
    **second_dialect(),
    "paging.limit": 1,  # so that a listing has several pages
    "manual-groups.who-can-manage": "given",
    "smart-groups.system-condition.alone": "any-answer",
    "smart-groups.system-condition.with-choices": "any-answer",
    "content-targets.time-zone": "Asia/Kolkata",
    "users.list.match-count": "all",
    "content-targets.default-start": "now",
    "content-targets.time-precision": "minute",
}
"""Every name and every behaviour other than assumed, but for one that forbids what nearly every test does."""


FIKA = {"name": "Fika", "id": "c-2", "type": "MEETUP", "categories": ["Talk"], "link": "https://a.example"}
OCCASION = {"starts": "2026-02-01T08:00:00Z", "attending": 3}
CONTENT = [{"name": "Fire safety", "id": "c-1"}, {**FIKA, "occasions": [OCCASION]}]


class RecordingClient(Client):
    """A client that looks at every answer as it comes, and keeps what was called."""

    def __init__(self, spec: ApiSpec, url: str = "http://sandbox", transport: Sandbox | None = None) -> None:
        super().__init__(url, "sandbox", spec=spec, transport=transport)
        self.called: set[str] = set()

    def call(self, operation: str, **given: Any) -> Json:
        answer = super().call(operation, **given)
        expected = self.spec[operation].success
        if expected is not None:
            jsonschema.Draft202012Validator(expected).validate(answer)
        self.called.add(operation)
        return answer


@pytest.fixture(params=[DEFAULT, OTHER], ids=["assumed names", "all names otherwise"])
def service(request: pytest.FixtureRequest) -> Iterator[Service]:
    """A service on a workspace with a course and a meetup, in two dialects."""
    spec = ApiSpec(request.param)
    sandbox = Sandbox(spec=spec)
    with sandbox.store.write_transaction() as repository:
        fill_workspace(repository, {"content": CONTENT}, source="here", spec=spec)
    yield Service(RecordingClient(spec, transport=sandbox))
    sandbox.close_workspace()


def test_every_operation_in_one_life(service: Service) -> None:
    """A person's and a group's whole life uses all 60 operations, the same in the assumed names and in others.

    Whatever a service's names are, those of the specification come back.
    """
    known: dict[str, object] = {}
    of_the_service = {str(OTHER[key]) for key in load_api_description().names}
    for method, given, *expected in yaml.safe_load(text_of(__file__, "every_operation.yaml")):
        answer = typed_call(service, method, filled(given, known))
        assert all(has(answer, one, known) for one in expected), (method, given, answer)
        assert not names(answer) & of_the_service
    assert isinstance(service.client, RecordingClient)
    assert service.client.called == service.client.spec.operations.keys()


def names(value: Any) -> set[str]:
    """All names in a JSON value."""
    if isinstance(value, list):
        return {name for item in value for name in names(item)}
    if isinstance(value, dict):
        return {*value, *(name for part in value.values() for name in names(part))}
    return set()


def filled(value: Any, known: Mapping[str, object]) -> Any:
    """The arguments of a call, with what is known by a name in its place."""
    if isinstance(value, dict):
        return {filled(key, known): filled(part, known) for key, part in value.items()}
    if isinstance(value, list):
        return [filled(part, known) for part in value]
    return known[value] if str(value).startswith("$") else value


def has(answer: Any, shown: Any, known: dict[str, object]) -> bool:
    """Whether an answer has what is shown of it: of an object the keys that are named, and lists whole."""
    if str(shown).startswith("$"):
        return answer is not None and known.setdefault(shown, answer) == answer
    if isinstance(shown, dict) and isinstance(answer, dict):
        return all(has(answer.get(known.get(key, key)), part, known) for key, part in shown.items())
    if isinstance(shown, list) and isinstance(answer, list) and len(answer) == len(shown):
        return all(has(one, part, known) for one, part in zip(answer, shown, strict=True))
    return bool(answer == shown)


# The typed client is what its writer makes of the description, and holds every operation.


def test_the_typed_client_is_up_to_date() -> None:
    """Every file of `lmsconf/client/api` is what `python -m tests.api.writer` would write."""
    there = {path.name: path.read_text(encoding="utf-8") for path in TARGET.glob("*.py")}
    assert there == written()


# What the guide says of the API is so: its tables are counted, its script is short and runs.


TABLES = tables()


@pytest.mark.parametrize(("page", "head"), TABLES)
def test_the_tables_of_the_guide_are_current(page: str, head: str) -> None:
    """They are what `python -m tests.api.guide_tables` would write."""
    assert shown((GUIDE / f"{page}.md").read_text(encoding="utf-8"), head) == TABLES[page, head]


def test_every_point_has_an_experiment() -> None:
    """The probe tries all that manifests rest on; and what a wrong guess would do is said, and the question."""
    assert EXPERIMENTS.keys() == set(relied_on()) == guesses().keys()
    assert all(key in load_api_description().behaviours or guesses()[key]["question"] for key in relied_on())
