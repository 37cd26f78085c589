"""Hostile branches: what a pull request may plant, and that planning it runs nothing, asks nobody and reads nothing.

Each case plants something in a branch, which is then validated, planned and looked at for drift, with the base beside
it and without. A listening port that the base does not name, a program that leaves a mark, and files outside of the
project tell what came of it.
"""

import json
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from socketserver import BaseRequestHandler, TCPServer
from urllib.parse import urlsplit

import pytest

from lmsconf.cli import app, run_command_line
from lmsconf.sandbox.serve import Server
from lmsconf.sandbox.service import Sandbox, SandboxResponse
from lmsconf.workspace.connection import fill_if_empty

TOKEN = "t0ken-of-the-base"
CANARY = "c4n4ry-0utside"
BASE = "{env: LMSCONF_KEY}"
MANIFEST = "groups: [{name: Coaches, members: []}]\n"


class Recording(Sandbox):
    """The workspace that the base names, which keeps what credentials it was shown."""

    def answer(self, method: str, path: str, query: str, headers: Mapping[str, str], body: bytes) -> SandboxResponse:
        self.shown.add(headers.get("authorization", ""))
        return super().answer(method, path, query, headers, body)

    def __init__(self, *arguments: object, **options: object) -> None:
        self.shown: set[str] = set()
        super().__init__(*arguments, **options)  # type: ignore[arg-type]  # whatever the class takes


@dataclass
class Branch:
    """A work tree on a branch, with a project in the folder `lms`, and what lies around it."""

    top: Path
    outside: Path
    url: str
    evil: str
    files: set[Path] = field(default_factory=set)

    @property
    def root(self) -> Path:
        return self.top / "lms"

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def link(self, name: str, target: str | Path) -> None:
        path = self.root / name
        if path.is_dir():
            (path / "all.yaml").unlink()
            path.rmdir()
        path.unlink(missing_ok=True)
        path.symlink_to(target)

    def project(self, *, url: str | None = None, token: str = BASE, more: str = "") -> None:
        said = json.dumps(self.url if url is None else url)
        self.write("lmsconf.yaml", f"workspaces:\n  p: {{url: {said}, token: {token}}}\ndefault_workspace: p\n{more}")


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@x.example", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def bare(branch: Branch, config: str) -> None:
    """A bare repository among the files of the branch, which a commit can hold."""
    branch.write("HEAD", "ref: refs/heads/main\n")
    branch.write("config", f"[core]\n\trepositoryformatversion = 1\n\tbare = false\n\tworktree = ..\n{config}")
    branch.write("objects/keep", "")
    branch.write("refs/heads/main", "1" * 40 + "\n")


def runs(branch: Branch) -> str:
    return str(branch.outside / "tool")


def people(file: str) -> str:
    return f"groups: [{{name: Coaches, members: {{file: {json.dumps(file)}, column: email}}}}]\n"


Plant = Callable[[Branch], object]
PLANTS: dict[str, Plant] = {
    # git
    "bare: fsmonitor": lambda b: bare(b, f"\tfsmonitor = {runs(b)}\n"),
    "bare: ssh": lambda b: bare(
        b,
        f"\tsshCommand = {runs(b)}\n[extensions]\n\tpartialClone = o\n"
        '[remote "o"]\n\turl = ssh://x.invalid/x\n\tpromisor = true\n',
    ),
    "bare: upload-pack": lambda b: bare(
        b, f'[extensions]\n\tpartialClone = o\n[remote "o"]\n\turl = .\n\tpromisor = true\n\tuploadpack = {runs(b)}\n'
    ),
    "bare: hooks": lambda b: bare(b, f"\thooksPath = {b.outside}\n\tpager = {runs(b)}\n[include]\n\tpath = ../key\n"),
    "git: attributes": lambda b: b.write(".gitattributes", "* filter=x diff=x\n"),
    "git: submodule": lambda b: b.write("../.gitmodules", f'[submodule "x"]\n\tpath = lms\n\turl = ext::{runs(b)}\n'),
    "git: folder main": lambda b: (
        b.write("../main/lmsconf.yaml", f"workspaces: {{p: {{url: '{b.evil}', token: {{env: LMSCONF_KEY}}}}}}\n"),
        b.project(url=b.evil),
    ),
    "git: file named as an option": lambda b: b.write(f"--upload-pack={Path(runs(b)).name}", ""),
    # links
    "link: project file": lambda b: b.link("lmsconf.yaml", b.outside / "key"),
    "link: project file, relative": lambda b: b.link("lmsconf.yaml", "../../outside/project.yaml"),
    "link: manifests": lambda b: b.link("manifests", b.outside),
    "link: a manifest": lambda b: b.link("manifests/more.yaml", b.outside / "key"),
    "link: a folder of manifests": lambda b: b.link("manifests/more", "../../../outside"),
    "link: CSV": lambda b: (
        b.link("people.csv", b.outside / "people.csv"),
        b.write("manifests/all.yaml", people("../people.csv")),
    ),
    "link: CSV that is a key": lambda b: (
        b.link("people.csv", b.outside / "key"),
        b.write("manifests/all.yaml", people("../people.csv")),
    ),
    "link: seed": lambda b: (
        b.link("seed.yaml", b.outside / "key"),
        b.project(url="sandbox:", token="{env: A}, seed: seed.yaml"),
    ),
    "link: database": lambda b: (b.link("w.db", b.outside / "w.db"), b.project(url="sandbox:w.db")),
    "link: the journal": lambda b: b.link(".lmsconf", b.outside),
    "path: CSV above": lambda b: b.write("manifests/all.yaml", people("../../../outside/people.csv")),
    "path: CSV, absolute": lambda b: b.write("manifests/all.yaml", people(str(b.outside / "people.csv"))),
    # where requests go
    "url: another host": lambda b: b.project(url=b.evil),
    "url: a name and a host": lambda b: b.project(url=f"{b.url}@{urlsplit(b.evil).netloc}"),
    "url: another name of this machine": lambda b: b.project(url=b.evil.replace("127.0.0.1", "localhost")),
    "url: a new default": lambda b: b.write(
        "lmsconf.yaml",
        f"workspaces:\n  p: {{url: '{b.url}', token: {{env: LMSCONF_KEY}}}}\n"
        f"  q: {{url: '{b.evil}', token: {{env: LMSCONF_KEY}}}}\ndefault_workspace: q\n",
    ),
    "url: an anchor": lambda b: b.write(
        "lmsconf.yaml",
        f"x-a: &a {{url: '{b.evil}', token: {{env: LMSCONF_KEY}}}}\nworkspaces: {{p: *a}}\ndefault_workspace: p\n",
    ),
    "url: sandbox outside": lambda b: b.project(url="sandbox:../../outside/w.db"),
    "url: sandbox, absolute": lambda b: b.project(url=f"sandbox:{b.outside}/w.db"),
    "dialect: a path": lambda b: b.project(more=f"dialect: {{paging.limit: 7}}\nvars: {{x: '{b.evil}'}}\n"),
    # tokens
    "token: another variable": lambda b: b.project(token="{env: AWS_SECRET_ACCESS_KEY}"),
    "token: the key of plans": lambda b: b.project(token="{env: LMSCONF_PLAN_KEY}"),
    "token: a file above": lambda b: b.project(token="{file: ../../outside/token}"),
    "token: a file, absolute": lambda b: b.project(token=f"{{file: '{b.outside}/token'}}"),
    "token: a file of the home folder": lambda b: b.project(token="{file: ~/token}"),
    "token: a linked file": lambda b: (b.link("token", b.outside / "token"), b.project(token="{file: token}")),
    "token: a linked folder": lambda b: (b.link("vault", b.outside), b.project(token="{file: vault/token}")),
    # commands
    "command: a program": lambda b: b.project(token=f"{{command: ['{runs(b)}']}}"),
    "command: a program above": lambda b: b.project(token="{command: [../../outside/tool]}"),
    "command: a shell": lambda b: b.project(token=f"{{command: [sh, -c, '{runs(b)}']}}"),
    "command: a file of the branch": lambda b: (
        b.write("token.sh", f"{runs(b)}; echo {TOKEN}\n"),
        b.project(token="{command: [sh, token.sh]}"),
    ),
    # settings, expansion
    "settings: manifests above": lambda b: b.project(more="manifests: ../../outside\n"),
    "settings: manifests, absolute": lambda b: b.project(more=f"manifests: '{b.outside}'\n"),
    "settings: a zone that is a file": lambda b: b.project(more="timezone: ../../outside/key\n"),
    "settings: guards off": lambda b: b.project(more="guards: off\nlock: {owner: x}\n"),
    "expansion: url": lambda b: b.project(
        url="https://$(LMSCONF_KEY).x.invalid", more=f"vars: {{LMSCONF_KEY: '{b.evil}'}}\n"
    ),
    "expansion: token file": lambda b: b.project(token="{file: $(f)}", more=f"vars: {{f: '{b.outside}/token'}}\n"),
    "expansion: CSV": lambda b: (
        b.project(more="vars: {f: ../../../outside/people.csv}\n"),
        b.write("manifests/all.yaml", people("$(f)")),
    ),
    "expansion: environment": lambda b: b.write(
        "manifests/all.yaml", "groups: [{name: '${AWS_SECRET_ACCESS_KEY} $AWS_SECRET_ACCESS_KEY `id`'}]\n"
    ),
    # names
    "names: a workspace": lambda b: b.write(
        "lmsconf.yaml", f"workspaces: {{'../../outside': {{url: '{b.evil}', token: {{file: ../../outside/token}}}}}}\n"
    ),
    "names: of files": lambda b: b.write("manifests/$(touch ran)\u001b[2J.yaml", MANIFEST),
    "names: of groups": lambda b: b.write("manifests/all.yaml", "groups: [{name: '--out=../../outside/key'}]\n"),
}


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
def service(tmp_path: Path) -> Iterator[Recording]:
    (tmp_path / "seed.yaml").write_text("groups: [{name: Other}]\n")
    made = fill_if_empty(Recording(token=TOKEN), tmp_path / "seed.yaml")
    yield made
    made.close_workspace()


@pytest.fixture
def branch(tmp_path: Path, service: Recording, evil: Stranger, monkeypatch: pytest.MonkeyPatch) -> Iterator[Branch]:
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
    with Server(service) as server:
        made = Branch(tmp_path / "work", outside, server.url, f"http://127.0.0.1:{evil.server_address[1]}")
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


def test_there_are_forty() -> None:
    """Of all sorts: git, links, url, token, command, settings, expansion, names."""
    assert len(PLANTS) >= 40


def test_an_innocent_branch_is_planned(branch: Branch, service: Recording, capfd: pytest.CaptureFixture[str]) -> None:
    """The harness would see requests: the base's own workspace gets them, with the base's credential."""
    branch.write("manifests/all.yaml", MANIFEST.replace("Coaches", "Mentors"))
    assert [outcome(branch, capfd, *arguments)[0] for arguments in COMMANDS] == [0, 0, 0, 0]
    assert service.shown == {f"Bearer {TOKEN}"}


@pytest.mark.sampled
@pytest.mark.parametrize("planted", PLANTS)
def test_a_hostile_branch_takes_nothing(
    planted: str,
    branch: Branch,
    service: Recording,
    evil: Stranger,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """No program runs, nobody is asked but the base's host, with its credential, and nothing outside is told or kept.

    Without a base it is the environment that names the hosts. It is so with LMSCONF_TOKEN set, too.
    """
    around = {path.name: path.read_bytes() for path in branch.outside.iterdir()}
    PLANTS[planted](branch)
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
    assert service.shown <= {f"Bearer {TOKEN}"}
    assert {path.name: path.read_bytes() for path in branch.outside.iterdir()} == around
