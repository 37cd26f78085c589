"""Faults on script: what a client meets when the network or the service has a bad day."""

from __future__ import annotations

import httpx
import pytest

from lmsconf.sandbox.faults import Fault, Faults


def names(api) -> list[str]:
    return [one["name"] for one in api.ok("GET", "/groups")["groups"]]


def test_an_answer_is_refused(open_workspace):
    """A status takes the answer's place with its headers, for as many requests as said, and nothing is done."""
    fault = Fault(operation="manual-groups.create", status=429, headers={"retry-after": "7"}, times=2)
    api = open_workspace(faults=Faults(fault))
    for _ in range(2):
        answer = api.call("POST", "/groups", {"name": "New"})
        assert (answer.status_code, answer.headers["retry-after"]) == (429, "7")
    assert names(api) == ["Coaches"]
    api.ok("POST", "/groups", {"name": "New"})


@pytest.mark.parametrize(("fault", "done"), [({"cut": True}, False), ({"lose_answer": True}, True)])
def test_a_connection_breaks(open_workspace, fault, done):
    """A connection may break before anything is done or after it, which looks the same to a client."""
    api = open_workspace(faults=Faults(Fault(operation="*.create", **fault)))
    with pytest.raises(httpx.RemoteProtocolError):
        api.call("POST", "/groups", {"name": "New"})
    assert api.sandbox.log[-1] == ("POST", "/groups", "manual-groups.create", 0, True)
    assert ("New" in names(api)) is done


def test_a_fault_waits_its_turn(open_workspace):
    """`after` lets requests go well before it strikes, and the next fault strikes when it is used up."""
    script = Faults(Fault(status=503, after=1), Fault(status=500))
    api = open_workspace(faults=script)
    assert [api.call("GET", "/groups").status_code for _ in range(4)] == [500, 503, 200, 200]


def test_an_answer_is_late(open_workspace):
    """A delay comes before the answer, which is otherwise right."""
    api = open_workspace(faults=Faults(Fault(delay=0.05)))
    answer = api.call("GET", "/groups")
    assert answer.status_code == 200
    assert answer.elapsed.total_seconds() >= 0.05
