"""Faults on script: what a client meets when the network or the service has a bad day."""

from __future__ import annotations

import json

import httpx
import pytest
import yaml

from lmsconf.errors import LmsconfError, ProblemsFound
from lmsconf.sandbox.faults import ALWAYS, Fault, FaultScript, parse_faults


def names(api) -> list[str]:
    return [one["name"] for one in api.ok("GET", "/groups")["groups"]]


def test_an_answer_is_refused(open_workspace):
    """A status takes the answer's place with its headers, for as many requests as said, and nothing is done."""
    fault = Fault(operation="manual-groups.create", status=429, headers={"retry-after": "7"}, times=2)
    api = open_workspace(faults=FaultScript(fault))
    for _ in range(2):
        answer = api.call("POST", "/groups", {"name": "New"})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert names(api) == ["Coaches"]
    api.ok("POST", "/groups", {"name": "New"})


@pytest.mark.parametrize(("fault", "done"), [({"cut": True}, False), ({"lose_answer": True}, True)])
def test_a_connection_breaks(open_workspace, fault, done):
    """A connection may break before anything is done or after it, which looks the same to a client."""
    api = open_workspace(faults=FaultScript(Fault(operation="*.create", **fault)))
    with pytest.raises(httpx.RemoteProtocolError):
        api.call("POST", "/groups", {"name": "New"})
    assert api.sandbox.log[-1] == ("POST", "/groups", "manual-groups.create", 0, True)
    assert ("New" in names(api)) is done


def test_a_fault_waits_its_turn(open_workspace):
    """`after` lets requests go well before it strikes, and the next fault strikes when it is used up."""
    script = FaultScript(Fault(status=503, after=1), Fault(status=500))
    api = open_workspace(faults=script)
    assert [api.call("GET", "/groups").status_code for _ in range(4)] == [500, 503, 200, 200]


def test_an_answer_is_late(open_workspace):
    """A delay comes before the answer, which is otherwise right."""
    api = open_workspace(faults=FaultScript(Fault(delay=0.05)))
    answer = api.call("GET", "/groups")
    assert answer.status_code == 200
    assert answer.elapsed.total_seconds() >= 0.05


def statuses(api, count: int) -> list[int]:
    return [api.call("GET", "/groups").status_code for _ in range(count)]


def test_faults_by_the_number_of_the_call(open_workspace):
    """`calls` are numbers of requests over all operations, counted from 1."""
    script = FaultScript(Fault(status=503, calls=frozenset((2, 4)), times=ALWAYS))
    assert statuses(open_workspace(faults=script), 5) == [200, 503, 200, 503, 200]


def test_faults_by_chance_are_the_same_each_time(open_workspace):
    """`chance` strikes some requests and spares others, the same ones for the same seed, others for another."""

    def struck(seed: int) -> list[int]:
        return statuses(open_workspace(faults=FaultScript(Fault(status=500, chance=0.3, seed=seed, times=ALWAYS))), 60)

    assert struck(1) == struck(1) != struck(2)
    assert 5 < struck(1).count(500) < 35


@pytest.mark.parametrize("headers", [{}, {"retry-after": "2"}])
def test_too_many_requests(open_workspace, headers):
    """429 comes with a Retry-After or without one."""
    answer = open_workspace(faults=FaultScript(Fault(status=429, headers=headers))).call("GET", "/groups")
    assert (answer.status_code, answer.headers.get("retry-after")) == (429, headers.get("retry-after"))


def test_an_answer_is_truncated(open_workspace):
    """A truncated answer has half of its body, which is no JSON; the change was made. No body stays no body."""
    api = open_workspace(faults=FaultScript(Fault(spoil="truncated", times=2)))
    answer = api.call("POST", "/groups", {"name": "New"})
    assert (answer.status_code, answer.content) == (200, b'{"groupI')
    assert api.call("POST", "/groups/g-2/rename", {"name": "Newer"}).status_code == 204
    assert names(api) == ["Coaches", "Newer"]


def test_an_answer_is_no_json(open_workspace):
    """An answer may be a page instead of JSON, with status 200; the change was made."""
    api = open_workspace(faults=FaultScript(Fault(spoil="html")))
    answer = api.call("POST", "/groups", {"name": "New"})
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html")
    assert answer.content.startswith(b"<!doctype html>")
    assert names(api) == ["Coaches", "New"]


def test_a_read_is_stale(open_workspace):
    """A stale read sees the workspace as it was before the last change; writes are never stale."""
    script = FaultScript(Fault(operation="manual-groups.*", stale=True, after=1, times=2))
    api = open_workspace(faults=script)
    assert names(api) == ["Coaches"]
    for name in ("New", "Newest"):
        api.ok("POST", "/groups", {"name": name})
    assert names(api) == names(api) == ["Coaches", "New"]
    assert names(api) == ["Coaches", "New", "Newest"]


def test_a_stale_read_of_what_never_changed(open_workspace):
    """Before any change a stale read is like any other."""
    assert names(open_workspace(faults=FaultScript(Fault(stale=True)))) == ["Coaches"]


SCRIPT = """
- {operation: "manual-groups.*", status: 429, headers: {Retry-After: 2}, times: 2}
- {calls: [3], status: 503}
- {calls: 4, cut: true}
- {operation: users.list, chance: 0, times: always, delay: 0.5}
- {spoil: html}
"""


@pytest.mark.parametrize("as_json", [False, True])
def test_a_script_is_read_from_a_file(open_workspace, tmp_path, as_json):
    """A file of faults, in YAML or JSON, goes wrong as the same script made by a program does."""
    path = tmp_path / "faults.yaml"
    path.write_text(json.dumps(yaml.safe_load(SCRIPT.replace("0.5", "'0.5'"))) if as_json else SCRIPT, encoding="utf-8")
    api = open_workspace(faults=FaultScript(*parse_faults(path)))
    answers = [api.call("GET", "/groups") for _ in range(3)]
    assert [(one.status_code, one.headers.get("retry-after")) for one in answers] == [
        *((429, "2"), (429, "2")),
        (503, None),
    ]
    with pytest.raises(httpx.RemoteProtocolError):
        api.call("GET", "/groups")
    assert api.call("GET", "/users").headers["content-type"] == "text/html"
    assert statuses(api, 2) == [200, 200]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("a: b", ["it has no list of faults"]),
        ("- x", ["[0]: it is not a mapping"]),
        ("- {colour: red}", ["[0]: unknown key 'colour'; there are operation, times, status, headers, delay, cut, "]),
        (
            "- {times: -1}\n- {times: 1}\n- {after: x}",
            ["[0]: times is not a count: -1", "[2]: after is not a count: x"],
        ),
        ("- {status: 99}", ["[0]: status is not an HTTP status: 99"]),
        ("- {headers: [x]}", ["[0]: headers is not a mapping of texts"]),
        ("- {spoil: pdf}", ["[0]: spoil is neither truncated nor html: pdf"]),
        ("- {cut: perhaps}", ["[0]: cut is neither true nor false: perhaps"]),
        ("- {chance: 2}", ["[0]: chance is not from 0 to 1: 2"]),
        ("- {chance: nan}", ["[0]: chance is not from 0 to 1: nan"]),
        ("- {delay: long}", ["[0]: delay is not a number: long"]),
        ("- {calls: [1, x]}", ["[0]: calls is not a count: x"]),
    ],
)
def test_a_wrong_script_is_refused(tmp_path, text, messages):
    """Everything that is wrong in a script is told together, with the file."""
    path = tmp_path / "faults.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProblemsFound) as found:
        FaultScript(*parse_faults(path))
    told = [problem.message for problem in found.value.problems]
    assert len(told) == len(messages)
    assert all(one.startswith(message) for one, message in zip(told, messages, strict=True))
    assert {str(problem.source) for problem in found.value.problems} == {str(path)}


def test_a_script_that_is_empty_or_not_there(open_workspace, tmp_path):
    """An empty file is a script of nothing; a missing one is an error that names it."""
    (tmp_path / "faults.yaml").touch()
    assert statuses(open_workspace(faults=FaultScript(*parse_faults(tmp_path / "faults.yaml"))), 1) == [200]
    with pytest.raises(LmsconfError, match=r"missing\.yaml: cannot be read"):
        FaultScript(*parse_faults(tmp_path / "missing.yaml"))


def test_the_shortest_way_to_every_key(tmp_path):
    """A file can say all that a fault can be."""
    path = tmp_path / "faults.yaml"
    path.write_text(
        "- {operation: a.b, times: 2, status: 500, headers: {A: b}, delay: 1.5, cut: true, lose_answer: true, "
        "spoil: truncated, stale: true, after: 3, calls: [1, 2], chance: 0.5, seed: 4}",
        encoding="utf-8",
    )
    said = Fault(
        operation="a.b",
        times=2,
        status=500,
        headers={"a": "b"},
        delay=1.5,
        cut=True,
        lose_answer=True,
        spoil="truncated",
        stale=True,
        after=3,
        calls=frozenset((1, 2)),
        chance=0.5,
        seed=4,
    )
    assert parse_faults(path) == [said]
    assert all(getattr(said, key) != getattr(Fault(), key) for key in Fault.__struct_fields__)
