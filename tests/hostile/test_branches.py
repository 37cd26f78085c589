"""Hostile branches: what a pull request may plant, and that planning it runs nothing, asks nobody and reads nothing.

Each case plants something in a branch, which is then validated, planned and looked at for drift, with the base beside
it and without. A listening port that the base does not name, a program that leaves a mark, and files outside of the
project tell what came of it.
"""

import json
import socket
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml
from cli.served import served
from texts import text_of

from lmsconf.cli import app, run_command_line
from lmsconf.sandbox.service import Sandbox, SandboxResponse

TOKEN = "t0ken-of-the-base"
CANARY = "c4n4ry-0utside"
BASE = "{env: LMSCONF_KEY}"
MANIFEST = "groups: [{name: Coaches, members: []}]\n"


PLANTS: dict[str, dict[str, Any]] = yaml.safe_load(text_of(__file__, "branches.yaml"))


class Recording(Sandbox):
    """The workspace that the base names, which keeps what credentials it was shown."""

    shown: set[str]

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        self.shown.add(headers.get("authorization", ""))
        return super().answer(method, path, query, headers, body)


@dataclass
class Branch:
    """A work tree on a branch, with a project in the folder `lms`, and what lies around it."""

    top: Path
    outside: Path
    url: str
    evil: str
    shown: set[str]
    """The credentials that the workspace of the base was shown."""

    @property
    def root(self) -> Path:
        return self.top / "lms"

    def plant(
        self,
        bare: str | None = None,
        links: Mapping[str, str] | None = None,
        files: Mapping[str, str] | None = None,
        people: str | None = None,
        project: Mapping[str, str] | None = None,
    ) -> None:
        """What a case says. people: the list that a group takes its members from."""
        for name, target in (links or {}).items():
            self.link(name, target)
        for name, text in (files or {}).items():
            self.write(name, text)
        if bare is not None:  # a repository among the files of the branch, which a commit can hold
            self.write("HEAD", "ref: refs/heads/main\n")
            self.write("config", f"[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tworktree = ..\n{bare}")
            self.write("objects/keep", "")
            self.write("refs/heads/main", "1" * 40 + "\n")
        if people is not None:
            members = f"{{file: {json.dumps(people)}, column: email}}"
            self.write("manifests/all.yaml", f"groups: [{{name: Coaches, members: {members}}}]\n")
        if project is not None:
            self.project(**project)

    def write(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self._here(text), encoding="utf-8")

    def link(self, name: str, target: str) -> None:
        path = self.root / name
        if path.is_dir():
            (path / "all.yaml").unlink()
            path.rmdir()
        path.unlink(missing_ok=True)
        path.symlink_to(self._here(target))

    def _here(self, text: str) -> str:
        host = urlsplit(self.evil)
        for word, meant in (
            *(("OUTSIDE", str(self.outside)), ("TOOL", str(self.outside / "tool"))),
            *(("EVIL_HOST", host.netloc), ("EVIL_PORT", str(host.port)), ("EVIL", self.evil), ("URL", self.url)),
        ):
            text = text.replace(word, meant)
        return text

    def project(self, url: str = "URL", token: str = BASE, more: str = "") -> None:
        workspace = f"{{url: {json.dumps(url)}, token: {token}}}"
        self.write("lmsconf.yaml", f"workspaces:\n  p: {workspace}\ndefault_workspace: p\n{more}")


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@x.example", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


class Stranger(TCPServer):
    """A port that the base does not name: it says no to everybody, and counts who came."""

    visits = 0

    def process_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        self.visits += 1
        if isinstance(request, socket.socket):
            request.sendall(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        self.shutdown_request(request)


@pytest.fixture
def evil() -> Iterator[Stranger]:
    with Stranger(("127.0.0.1", 0), BaseRequestHandler) as made:
        listening = threading.Thread(target=made.serve_forever, args=(0.02,), daemon=True)
        listening.start()
        yield made
        made.shutdown()
        listening.join()


@pytest.fixture
def branch(tmp_path: Path, evil: Stranger, monkeypatch: pytest.MonkeyPatch) -> Iterator[Branch]:
    """A branch that is still as its base, and the environment of the job that plans it."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "key").write_text(f"-----BEGIN PRIVATE KEY-----\n{CANARY}: [{CANARY}\n{CANARY}\n")
    (outside / "token").write_text(CANARY)
    (outside / "people.csv").write_text(f"email\n{CANARY}@x.example\n{CANARY}\n")
    (outside / "a.yaml").write_text(f"groups: [{{name: {CANARY}}}]\n")
    (outside / "tool").write_text(f"#!/bin/sh\ntouch '{outside}/ran'\necho {TOKEN}\n")
    (outside / "tool").chmod(0o755)
    environ = {"LMSCONF_KEY": TOKEN, "AWS_SECRET_ACCESS_KEY": CANARY, "LMSCONF_PLAN_KEY": CANARY * 3}
    for name, value in {**environ, "HOME": str(outside), "XDG_STATE_HOME": str(tmp_path / "state")}.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "workspace.yaml").write_text("groups: [{name: Other}]\n")
    with served(tmp_path, Recording, TOKEN) as (service, there):
        service.shown = set()
        hosts = (there["LMSCONF_URL"], f"http://127.0.0.1:{evil.server_address[1]}")
        made = Branch(tmp_path / "work", outside, *hosts, service.shown)
        (outside / "project.yaml").write_text(
            f"workspaces: {{p: {{url: '{made.evil}', token: {{env: LMSCONF_KEY}}}}}}\n"
        )
        made.top.mkdir()
        made.project()
        made.write("manifests/all.yaml", MANIFEST)
        git(made.top, "init", "-q", "-b", "main")
        git(made.top, "add", ".")
        git(made.top, "commit", "-q", "-m", "base")
        git(made.top, "checkout", "-q", "-b", "change")
        monkeypatch.chdir(made.top)
        yield made


def outcome(branch: Branch, capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code of a command, and all that it wrote: to its streams, and to files of the work tree."""
    code = run_command_line(app, ["-C", "lms", *arguments])
    out, err = capfd.readouterr()
    texts = [path.read_bytes() for path in branch.top.rglob("*") if path.is_file() and not path.is_symlink()]
    return code, out + err + b"\n".join(texts).decode("utf-8", "replace")


COMMANDS = (
    ("validate",),
    ("plan", "--base", "main", "--format", "json", "--out", "plan.json"),
    ("plan", "--base", "main"),
    ("drift", "--base", "main"),
)


def test_an_innocent_branch_is_planned(branch: Branch, capfd: pytest.CaptureFixture[str]) -> None:
    """The harness would see requests: the base's own workspace gets them, with the base's credential."""
    branch.write("manifests/all.yaml", MANIFEST.replace("Coaches", "Mentors"))
    assert [outcome(branch, capfd, *arguments)[0] for arguments in COMMANDS] == [0, 0, 0, 0]
    assert branch.shown == {f"Bearer {TOKEN}"}


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("planted", PLANTS)
def test_a_hostile_branch_takes_nothing(
    planted: str,
    branch: Branch,
    evil: Stranger,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """No program runs, nobody is asked but the base's host, with its credential, and nothing outside is told or kept.

    Without a base it is the environment that names the hosts. It is so with LMSCONF_TOKEN set, too.
    """
    around = {path.name: path.read_bytes() for path in branch.outside.iterdir()}
    branch.plant(**PLANTS[planted])
    git(branch.top, "add", "--all", ".")
    git(branch.top, "commit", "-q", "--allow-empty", "-m", "change")
    told = [outcome(branch, capfd, *arguments) for arguments in COMMANDS]
    monkeypatch.setenv("LMSCONF_TOKEN", TOKEN)
    told += [outcome(branch, capfd, *arguments) for arguments in COMMANDS[2:]]
    monkeypatch.delenv("LMSCONF_TOKEN")
    monkeypatch.setenv("LMSCONF_ALLOWED_HOSTS", urlsplit(branch.url).netloc)
    told.append(outcome(branch, capfd, "plan"))
    for code, text in told:
        assert CANARY not in text
        assert "Traceback" not in text
        assert code in (0, 1, 2, 64), text
    assert evil.visits == 0
    assert branch.shown <= {f"Bearer {TOKEN}"}
    assert {path.name: path.read_bytes() for path in branch.outside.iterdir()} == around
