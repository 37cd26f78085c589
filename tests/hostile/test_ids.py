"""Ids of a service that cannot stand in a path: nothing is sent with them, and every command ends with a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from flow.shell import lmsconf

from lmsconf.errors import ExitCode
from lmsconf.sandbox.serve import Server
from lmsconf.sandbox.service import Sandbox, SandboxResponse

SEED = """
people: [{email: a@x.example}]
groups: [{name: Mentors}, {name: Coaches, members: [a@x.example]}]
"""
UNUSABLE = ["..", ".", "a\u0000", "\x1b[2J", "../..\n"]


class Altering(Sandbox):
    """A workspace whose responses are altered on their way."""

    alter: Callable[[str, str], str] = staticmethod(lambda method, text: text)

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        right = super().answer(method, path, query, headers, body)
        altered = self.alter(method, right.body.decode()).encode()
        length = {name: str(len(altered)) for name in right.headers if name.lower() == "content-length"}
        return SandboxResponse(right.status, {**right.headers, **length}, altered)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Altering]:
    (tmp_path / "seed.yaml").write_text(SEED)
    made = Altering(token="sandbox-token", seed=tmp_path / "seed.yaml")
    yield made
    made.close_workspace()


@pytest.fixture
def ran(tmp_path: Path, service: Altering) -> Iterator[Callable[..., tuple[int, str]]]:
    """Runs a command in a project with one manifest."""
    root = tmp_path / "lms"
    (root / "manifests").mkdir(parents=True)
    with Server(service) as server:
        project = f"workspaces: {{p: {{url: '{server.url}', token: {{env: LMSCONF_KEY}}}}}}\nsettle: 0s\n"
        (root / "lmsconf.yaml").write_text(project)

        def run(manifest: str, *arguments: str) -> tuple[int, str]:
            (root / "manifests" / "all.yaml").write_text(manifest)
            done = lmsconf(root, *arguments, env={"LMSCONF_KEY": "sandbox-token"})
            return done.code, done.out + done.err

        yield run


@pytest.mark.parametrize("id", UNUSABLE)
def test_a_listing_with_an_unusable_id_is_incomplete(
    id: str, service: Altering, ran: Callable[..., tuple[int, str]]
) -> None:
    """It is an error with the reason where a change needs it, and no request has the id."""
    service.alter = lambda method, text: text.replace('"g-2"', json.dumps(id))
    code, text = ran("groups: [{name: Coaches, members: []}]", "plan")
    assert (code, "has an unusable groupId" in text, "Traceback" in text) == (ExitCode.ERROR, True, False)
    assert not {"\x1b", "\0"} & set(text)
    assert {request.method for request in service.log} == {"GET"}


@pytest.mark.parametrize("id", UNUSABLE)
def test_a_creation_with_an_unusable_id_is_not_built_upon(
    id: str, service: Altering, ran: Callable[..., tuple[int, str]]
) -> None:
    """The apply goes on to its end and reports the call as one whose result is not known; later calls are not sent."""

    def created(method: str, text: str) -> str:
        return text.replace('"g-3"', json.dumps(id)) if method == "POST" else text

    service.alter = created
    code, text = ran("groups: [{name: New, members: [a@x.example]}]", "apply", "--auto-approve")
    assert (code, "Traceback" in text) == (ExitCode.PARTIAL, False)
    assert "group/New" in text
    assert [request.method for request in service.log if request.writes] == ["POST"]


@pytest.mark.parametrize("id", ["", True, {}])
def test_a_creation_whose_id_is_no_text_is_looked_up(
    id: object, service: Altering, ran: Callable[..., tuple[int, str]]
) -> None:
    """It says as little as a response without an id."""
    service.alter = lambda method, text: text.replace('"g-3"', json.dumps(id)) if method == "POST" else text
    code, text = ran("groups: [{name: New, members: [a@x.example]}]", "apply", "--auto-approve")
    assert code == ExitCode.OK, text
