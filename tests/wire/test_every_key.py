"""Every key of the dialect, one at a time: planner, typed client and sandbox go by it, or a reason says why not."""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import cast

import httpx
import pytest
import yaml
from client.network import Network, client, said, typed_call
from flow.project import Project
from texts import listed_cases, text_of

from lmsconf.api import Service
from lmsconf.api.client import Client
from lmsconf.api.spec import ApiSpec
from lmsconf.api.spec.operations import load_api_description
from lmsconf.doctor.checks import list_dialect_assumptions
from lmsconf.errors import ExitCode, Rejected
from lmsconf.kinds.kind_table import KINDS
from lmsconf.model.canonical_json import Json
from lmsconf.model.plan import Plan
from lmsconf.workspace.connection import Connection

from .second_dialect import second_dialect

WHO = "manual-groups.who-can-manage"
MANAGED = "user-access.make-manager.managed-groups"
OTHER = {**second_dialect(), "paging.limit": 1, "manual-groups.add.batch": 1, WHO: "with-right"}
"""Each key's other value."""
ANSWERS = "users.update-custom-field-choice"
BEHAVIOURS = {
    key for key, *_ in json.loads(text_of(__file__, "test_every_key.json"))["test_the_typed_client_goes_by_a_behaviour"]
}
"""Keys by which the typed client goes."""
REASONS = yaml.safe_load(text_of(__file__, "every_key_reasons.yaml"))
THE_SERVICES_OWN = REASONS["the_services_own"].keys()
"""Keys for all values of which the typed client sends the same."""
UNPLANNED = REASONS["unplanned"].keys()
"""Keys of operations that plans use, and on which no plan depends."""
OF_THEIR_OWN = {
    *("users.update-metadata.mode", "users.list.match-count"),
    *("content-targets.time-precision", "content-targets.time-zone", "content-targets.default-start", WHO, MANAGED),
}
"""Keys with a test of their own."""

SEED = text_of(__file__, "every_key_seed.yaml")
MANIFEST = text_of(__file__, "every_key_manifest.yaml")
IN_USE = "custom_fields: [{name: Dept, choices: [Sales, HR, Ops]}]"
OPTIONS = "timezone: UTC\npeople: {create: true}\n"


def keys() -> list[str]:
    known = load_api_description()
    return sorted(known.behaviours.keys() | known.names.keys())


def sent(network: Network) -> list[object]:
    """What each request says: its JSON, or its query."""
    return [json.loads(one.content) if one.content else dict(_query(one)) for one in network.requests]


def _query(request: httpx.Request) -> Iterator[tuple[str, str]]:
    for name in request.url.params:
        yield name, ",".join(request.url.params.get_list(name))


def test_the_tables_hold_every_behaviour() -> None:
    """Each has a call of the typed client, or a reason; neither table has more."""
    assert load_api_description().behaviours.keys() == BEHAVIOURS | THE_SERVICES_OWN
    assert not BEHAVIOURS & THE_SERVICES_OWN


@listed_cases("key", "calls", "assumed", "otherwise")
def test_the_typed_client_goes_by_a_behaviour(
    key: str, calls: list[tuple[str, dict[str, object]]], assumed: list[object], otherwise: list[object]
) -> None:
    """The same calls are other requests where the dialect says another value."""
    for dialect, expected in (({}, assumed), ({key: OTHER[key]}, otherwise)):
        network = Network(said(200, {"groups": []}))
        for method, given in calls:
            typed_call(Service(client(network=network, dialect=dialect)), method, given)
        assert sent(network) == expected


@listed_cases("dialect", "type", "answer", "value")
def test_an_answer_is_written_as_the_dialect_says(
    dialect: dict[str, str], type: str, answer: object, value: object
) -> None:
    """Each form of an answer and of nothing, for each type of field; the caller gives a name where a name is sent."""
    network = Network(said(200, {}))
    service = Service(client(network=network, dialect={f"{ANSWERS}.{key}": name for key, name in dialect.items()}))
    typed_call(service, "users.update_custom_field_choice", {"user_id": "u", type: {"f": answer}})
    assert sent(network) == [{"f": value}]


def planned() -> list[str]:
    """The keys that plans lean on."""
    leaning = {one.key for one in list_dialect_assumptions(ApiSpec.default(), KINDS, {})} - UNPLANNED
    return sorted(leaning)


def test_the_other_keys_are_those_of_calls_that_no_plan_sends() -> None:
    """Whatever is not tried below belongs to operations that planning and applying never use."""
    used = {operation for kind in KINDS.values() for operation in kind.operations}
    for key in set(keys()) - set(planned()) - UNPLANNED:
        leaning = {one.id for one in ApiSpec.default().operations.values() if key in one.dialect_keys}
        assert not leaning & used, key


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("key", planned())
def test_plan_and_sandbox_go_by_a_key(tmp_path: Path, key: str) -> None:
    """With another value the plan says something else and converges; the calls of before do not have its effect."""
    if key in OF_THEIR_OWN:
        pytest.skip("it has a test of its own")
    manifest = IN_USE if key == "custom-fields.in-use" else MANIFEST
    assumed, otherwise, stale = (Project(tmp_path / name, SEED, OPTIONS) for name in ("assumed", "otherwise", "stale"))
    for one in (otherwise, stale):
        one.write_options(f"{OPTIONS}dialect: {{{key}: {json.dumps(OTHER[key])}}}\n")
    before, after = assumed.plan(manifest), otherwise.plan(manifest)
    pages = len(assumed.calls) != len(otherwise.calls)
    bodies = [call.body for call in before.calls] != [call.body for call in after.calls]
    guards = before.guards != after.guards
    by_guards = ("custom-fields.in-use", "content-targets.on-existing")
    assert pages == (key in ("paging.limit", "manual-groups.add.mode"))
    assert bodies == (key not in ("paging.limit", "custom-fields.in-use"))
    assert guards == (key in by_guards)
    if bodies:
        stale.plan("groups: []")
        _send(stale, before)
        assert stale.plan(manifest).changes
    report = otherwise.apply(manifest)
    assert (report.exit, report.converged) == (ExitCode.OK, True)
    assert otherwise.plan().changes == ()


@pytest.mark.parametrize(("who", "codes"), [("anybody", []), ("with-right", ["refusal/manager-right"])])
def test_managers_are_planned_as_the_service_takes_them(tmp_path: Path, who: str, codes: list[str]) -> None:
    """Who lacks the right that the service asks for is told before anything is sent; the sandbox does either."""
    it = Project(tmp_path, SEED, f"{OPTIONS}dialect: {{{WHO}: {who}}}\n")
    plan = it.plan("groups: [{name: Coaches, managers: [bo@acme.example]}]")
    assert [problem.code for problem in plan.all_problems if problem.is_error] == codes
    call = partial(it.send, "manual-groups.add-managers", {"groupId": "g-1"}, {"userIds": ["u-bo"]})
    if codes:
        with pytest.raises(Rejected, match="manager right"):
            call()
    else:
        call()


def _send(it: Project, plan: Plan) -> None:
    """The calls of a plan as they stand, until one is refused."""
    with Connection(it.settings) as connection, connection.worker_pool(1) as pool:
        for one in plan.calls:
            send = partial(Client.send, method=one.method, path=one.path, body=cast(Json, one.body))
            try:
                pool.submit(send).result()
            except Rejected:
                return
