"""A workspace behind a loopback port with choices of its own, and a project that knows nothing of them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

from lmsconf.cli import main
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.fill_sandbox import fill_workspace

BO, GDPR = "bo.ek@acme.example", "GDPR basics"
SEED: Mapping[str, object] = {
    "custom_fields": [{"name": "Department", "type": "CHOICE", "choices": ["Sales", "Engineering"]}],
    "people": [
        {"email": "anna.berg@acme.example", "answers": {"Department": "Sales"}, "admin": True},
        {"email": BO, "answers": {"Department": "Sales"}},
        *({"email": f"p{number}@acme.example"} for number in range(5)),
    ],
    "groups": [{"name": "Coaches", "members": [BO], "managers": ["anna.berg@acme.example"]}],
    "smart_groups": [{"name": "Sales", "conditions": [{"field": "Department", "choices": ["Sales"]}]}],
    "content": [{"name": GDPR}, {"name": "Fire safety"}],
    "content_targets": [{"content": GDPR, "assign_to": ["everyone", {"group": "Coaches"}]}],
}
PROJECT = """\
# how lmsconf is set up here
workspaces:
  production: {url: "https://lms.example/api", token: {env: LMSCONF_KEY}}   # the real one
manifests: manifests   # below this folder
"""
MANIFEST = """
custom_fields: [{name: Department, type: CHOICE, choices: [Sales, Engineering]}]
groups: [{name: Coaches, members: [bo.ek@acme.example]}]
smart_groups: [{name: Sales, conditions: [{field: Department, choices: [Sales]}]}]
content_targets: [{content: GDPR basics, assign_to: [{group: Coaches}]}]
"""


def planted(service: Sandbox, more: Mapping[str, object] | None = None) -> Sandbox:
    """The service with the company of this module in it."""
    with service.store.write_transaction() as repository:
        fill_workspace(repository, {**SEED, **(more or {})}, spec=service.spec)
    return service


def held(service: Sandbox) -> dict[str, object]:
    """Every listing and every detail that a workspace shows, without its timestamps."""
    found: dict[str, object] = {}
    for path, rows, id, details in _LISTINGS:
        listed = _rows(service, path, rows)
        found[path] = listed
        for row in listed:
            for detail in details:
                found[detail.format(row[id])] = _ask(service, detail.format(row[id]))
    return found


_LISTINGS = (
    ("/users", "users", "userId", ("/users/{}",)),
    ("/users/extended-info", "users", "userId", ()),
    ("/custom-fields", "customFields", "customFieldId", ()),
    ("/groups", "groups", "groupId", ("/groups/{}/members", "/groups/{}/managers")),
    ("/smart-groups", "smartGroups", "smartGroupId", ("/smart-groups/{}?includeMembers=true",)),
    ("/content/all", "courses", "courseId", ("/content/targets?contentId={}",)),
)


def _rows(service: Sandbox, path: str, key: str) -> list[dict[str, object]]:
    """All rows of a listing, however small its pages are."""
    found: list[dict[str, object]] = []
    while True:
        page = _ask(service, path if path == "/custom-fields" else f"{path}?skip={len(found)}")[key]
        assert isinstance(page, list)
        found += page
        if not page or path == "/custom-fields":
            return found


def _ask(service: Sandbox, target: str) -> dict[str, object]:
    path, _, query = target.partition("?")
    answer = service.answer("GET", path, query, {"authorization": "Bearer sandbox"}, b"")
    assert answer.status == 200, (target, answer.body)
    value = _timeless(json.loads(answer.body))
    assert isinstance(value, dict)
    return value


def _timeless(value: object) -> object:
    if isinstance(value, list):
        return [_timeless(item) for item in value]
    if isinstance(value, dict):
        return {key: _timeless(item) for key, item in value.items() if not key.endswith("edAt")}
    return value


class Ended(NamedTuple):
    """What a command came to."""

    code: int
    out: str


@dataclass(slots=True)
class ServedProject:
    """A project in a folder, and the service that its commands reach."""

    folder: Path
    service: Sandbox
    capsys: pytest.CaptureFixture[str]
    err: str = ""

    @property
    def project(self) -> str:
        return (self.folder / "lmsconf.yaml").read_text(encoding="utf-8")

    def declare(self, manifest: str, options: str = "") -> None:
        """Writes the only manifest, and adds to the project file."""
        (self.folder / "manifests" / "all.yaml").write_text(manifest, encoding="utf-8")
        self.configure(self.project + options)

    def configure(self, project: str) -> None:
        """Writes the project file."""
        (self.folder / "lmsconf.yaml").write_text(project, encoding="utf-8")

    def run(self, *arguments: str, code: int | None = None) -> Ended:
        """The exit code and stdout of one command; stderr is in `err`. code: what it has to exit with."""
        self.capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main(["-C", str(self.folder), *arguments])
        out, self.err = self.capsys.readouterr()
        assert isinstance(ended.value.code, int)
        assert code in (None, ended.value.code), f"{ended.value.code}\n{out}{self.err}"
        return Ended(ended.value.code, out)

    def told(self, *arguments: str, code: int) -> str:
        """All that a command says, which has to exit with this code."""
        return self.run(*arguments, code=code).out + self.err

    def settles(self) -> None:
        """An apply of the manifests at hand goes well, and leaves nothing to plan."""
        self.run("apply", "--auto-approve", code=0)
        self.run("plan", "--detailed-exitcode", code=0)

    def probe(self, *more: str) -> dict[str, tuple[str, object]]:
        """Key → verdict and value, as a probe without questions has them."""
        out = self.run("doctor", "--probe", "--yes", "--format", "json", *more, code=0).out
        lessons = json.loads(out)["probe"]["lessons"]
        return {one["key"]: (one["verdict"], one["value"]) for one in lessons}
