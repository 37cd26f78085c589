"""A kind is its folder: one that lies outside the package plans, applies, drifts, exports, snapshots and redacts."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import cast

import pytest
from flow.project import Project as GroupProject
from msgspec.structs import replace

from lmsconf.api.spec import ApiSpec
from lmsconf.apply.grant_verification import grants_to_verify
from lmsconf.errors import SourceLocation
from lmsconf.kinds import all_kinds
from lmsconf.kinds.shared.call_placeholders import SpecCallTemplates
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.declarations import DeleteEntry, FixedSource, Manifests
from lmsconf.model.plan import FULL_UNDO
from lmsconf.model.policy import Policy
from lmsconf.model.snapshot import Listing, Snapshot
from lmsconf.planner.context import PlanContext
from lmsconf.planner.live_names import LiveNames
from lmsconf.planner.manifest_entries import ExportedEntry
from lmsconf.planner.plan import make_plan
from lmsconf.planner.rereading import can_reread

from .kinds.question.kind import KIND, QuestionRow

KINDS = Path(__file__).parent / "kinds"
RUN = """
import sys
import lmsconf.kinds
lmsconf.kinds.__path__.append(sys.argv.pop(1))
from lmsconf.cli import main
main()
"""
PROJECT = """\
workspaces: {sandbox: {url: "sandbox:workspace.db"}}
default_workspace: sandbox
ownership: {questions: ["Owned *"]}
"""
MANIFEST = """\
questions:
  - {name: Shoe size, hidden: true}
  - {name: Ask anna@acme.example}
"""


class Project:
    """A project folder, and lmsconf with one more kind."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "manifests").mkdir()
        (root / "lmsconf.yaml").write_text(PROJECT, encoding="utf-8")
        self.write(MANIFEST)

    def write(self, manifest: str) -> None:
        (self.root / "manifests" / "questions.yaml").write_text(manifest, encoding="utf-8")

    def run(self, *arguments: str, exit: int = 0) -> str:
        """Standard output of a command that ends with this exit code."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("LMSCONF_")}
        done = subprocess.run(
            [sys.executable, "-c", RUN, str(KINDS), *arguments],
            cwd=self.root, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == exit, done.stderr + done.stdout
        return done.stdout

    def fields(self) -> dict[str, dict[str, object]]:
        """The text fields of the workspace, by name."""
        answer = json.loads(self.run("api", "get", "/custom-fields"))
        return {field["name"]: field for field in answer["customFields"]}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_it_is_planned_applied_and_found_unchanged(project: Project) -> None:
    """Entries are validated against its schema, shown by its noun, created, and read back as declared."""
    project.write(MANIFEST)
    plan = project.run("plan")
    assert "+ question/Shoe size will be created" in plan
    assert "Plan: 2 to create" in plan
    project.run("apply", "--auto-approve")
    assert project.fields()["Shoe size"]["isHidden"] is True
    assert "No changes." in project.run("plan")


def test_a_kind_that_says_nothing_of_access_takes_none(tmp_path: Path) -> None:
    """What a removal from a group needs is verified before it; what a call of such a kind needs is not."""
    seed = "people: [{email: a@x.example}, {email: b@x.example}]\ngroups: [{name: G, members: [a@x.example]}]\n"
    plan = GroupProject(tmp_path, seed).plan("groups: [{name: G, members: [b@x.example]}]")
    addition, removal = plan.calls
    kinds = {**all_kinds(), KIND.name: KIND}
    assert set(grants_to_verify(plan, kinds)) == set(removal.needs) == {addition.id}
    asked = replace(removal, address=Address.of(KIND.name, "Shoe size"))
    assert grants_to_verify(replace(plan, calls=(addition, asked)), kinds) == {}


def test_what_a_kind_need_not_say() -> None:
    """Its changes can be undone wholly, its entries have all keys with a value, and a run reads all of it again."""
    rows = (QuestionRow(RemoteId("1"), "Shoe size", True), QuestionRow(RemoteId("2"), "Hat", cast(bool, None)))
    listings = {KIND.name: Listing(rows=rows)}
    snapshot = Snapshot(workspace="w", url="", taken_at="", people=None, listings=listings)
    policy = Policy(workspace="w", today=date(2030, 1, 1))
    templates = SpecCallTemplates(ApiSpec.default())
    live = LiveNames(PlanContext(snapshot, policy, templates, lambda _: True), policy)
    entries = [entry for entry in KIND.to_entries(live) if isinstance(entry, ExportedEntry)]
    assert [entry.body for entry in entries] == [{"name": "Shoe size", "hidden": True}, {"name": "Hat"}]
    absent = DeleteEntry(address=Address.of(KIND.name, "Hat"), places=FixedSource(SourceLocation("a.yaml")), spec=None)
    kinds = {KIND.name: KIND}
    plan = make_plan(kinds, Manifests(absent=(absent,)), snapshot, policy, templates, created_at="2030-01-01T00:00:00Z")
    assert [(str(change.address), change.undo) for change in plan.changes] == [("question/Hat", FULL_UNDO)]
    assert [can_reread(kinds, snapshot, changes) for changes in ((), plan.changes)] == [True, False]


@pytest.mark.slow
def test_it_drifts_and_is_repaired(project: Project) -> None:
    """A change by hand is drift, told by key, and the next apply takes it back."""
    project.run("apply", "--auto-approve")
    field = project.fields()["Shoe size"]
    body = json.dumps({"name": "Shoe size", "type": "TEXT", "isHidden": False})
    project.run("api", "put", f"/custom-fields/{field['customFieldId']}", "--body", body)
    drift = json.loads(project.run("drift", "--format", "json", exit=2))
    (finding,) = [one for one in drift["findings"] if one["state"] != "unmanaged"]
    assert finding["address"] == "question/Shoe size"
    assert [change["path"] for change in finding["fields"]] == ["hidden"]
    project.run("apply", "--auto-approve")
    assert project.fields()["Shoe size"]["isHidden"] is True


@pytest.mark.slow
def test_it_is_renamed_owned_and_deleted(project: Project) -> None:
    """`previously`, `absent` and `ownership` hold for it as for every kind."""
    project.write("questions: [{name: Owned one}, {name: Shoe size}, {name: Old}]\n")
    project.run("apply", "--auto-approve")
    project.write("questions: [{name: Shoe width, previously: [Shoe size]}]\nabsent: {questions: [Old]}\n")
    project.run("apply", "--auto-approve", "--allow", "deletes=2")
    assert set(project.fields()) == {"Shoe width"}


@pytest.mark.slow
def test_it_is_exported(project: Project) -> None:
    """Its live rows become manifest entries whose plan is empty."""
    project.run("apply", "--auto-approve")
    (project.root / "manifests" / "questions.yaml").unlink()
    project.run("export", "exported", "--kind", "questions")
    text = "".join(path.read_text(encoding="utf-8") for path in (project.root / "exported").rglob("*.yaml"))
    assert "Shoe size" in text
    project.write(text)
    assert "No changes." in project.run("plan")


@pytest.mark.slow
def test_it_is_in_snapshots_and_planned_offline(project: Project) -> None:
    """A snapshot file holds its rows, and a plan against it needs no connection."""
    project.run("apply", "--auto-approve")
    project.run("snapshot", "snapshot.json")
    rows = json.loads((project.root / "snapshot.json").read_text(encoding="utf-8"))["question"]
    assert {row["name"] for row in rows} == {"Shoe size", "Ask anna@acme.example"}
    assert "No changes." in project.run("plan", "--snapshot", "snapshot.json")


@pytest.mark.slow
def test_a_redacted_snapshot_hides_people_in_its_texts(project: Project) -> None:
    """An e-mail of a person in no manifest stands in no text of its rows."""
    users = json.dumps({"firstName": "Anna", "lastName": "A", "email": "anna@acme.example", "language": "en"})
    project.run("api", "post", "/users", "--body", users)
    project.run("apply", "--auto-approve")
    project.write("questions: [{name: Shoe size, hidden: true}]\n")
    project.run("snapshot", "--redact", "snapshot.json")
    text = (project.root / "snapshot.json").read_text(encoding="utf-8")
    assert "anna@acme.example" not in text
    assert "Shoe size" in text
    assert "No changes." in project.run("plan", "--snapshot", "snapshot.json")
