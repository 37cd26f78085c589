"""`plan --base`: where each change comes from, and what a change lets go of."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import cast

import pytest
from flow.project import Project
from flow.shell import Ran, lmsconf
from json_schemas import schema_validator
from manifest.workbook_files import row, xlsx

from lmsconf.documents.plan_file import plan_digest

SEED = """
people: [{email: anna@x.example}, {email: bo@x.example}]
groups:
  - {name: Coaches, id: g-1, members: [anna@x.example]}
  - {name: Mentors, id: g-2}
  - {name: Readers, id: g-3}
content: [{name: GDPR, id: c-1}]
content_targets: [{content: GDPR, assign_to: [{group: Readers}]}]
"""
BASE = """
groups:
  - {name: Coaches, members: [bo@x.example]}
  - {name: Mentors, members: []}
  - {name: Readers, members: {file: ../hr.csv, column: email}}
content_targets: [{content: GDPR, assign_to: [{group: Readers}]}]
"""
CHANGE = """
groups:
  - {name: Coaches, members: [bo@x.example]}
  - {name: Mentors, members: [anna@x.example]}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A project below the top of a repository, as in a repository of several."""
    made = Project(tmp_path / "deep er", SEED)
    (made.root / "hr.csv").write_text("email\nbo@x.example\n")
    git(made, "init", "-q", "-b", "main", "..")
    return made


def git(project: Project, *arguments: str) -> None:
    who = ("-c", "user.name=x", "-c", "user.email=x@x.example", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *arguments], cwd=project.root, check=True, capture_output=True)


def commit(project: Project, manifests: str) -> None:
    project.write(manifests)
    git(project, "add", "manifests", "lmsconf.yaml", "hr.csv")
    git(project, "commit", "-q", "--allow-empty", "-m", "x")


def origins(ran: Ran) -> dict[str, str]:
    """Address → where the change comes from."""
    assert ran.code == 0, ran.err
    changes = cast("list[dict[str, str]]", ran.document["changes"])
    return {change["address"]: change["origin"] for change in changes}


def test_each_change_says_where_it_comes_from(project: Project) -> None:
    """From this change, or already pending; what is let go of is listed with the line that deletes it."""
    commit(project, BASE)
    project.write(CHANGE)
    ran = lmsconf(project.root, "plan", "--base", "main", "--format", "json")
    assert origins(ran) == {"group/Coaches": "already pending", "group/Mentors": "from this change"}
    assert ran.document["let_go"] == [
        {
            "address": "content_target/GDPR -> group/Readers",
            "absent": "absent: {content_targets: [{content: GDPR, assign_to: [{group: Readers}]}]}",
        },
        {"address": "group/Readers", "absent": "absent: {groups: [Readers]}"},
    ]
    schema_validator("plan").validate(ran.document)
    bare = lmsconf(project.root, "plan", "--format", "json").document
    assert ran.document["digest"] == bare["digest"]


def test_a_workbook_of_the_base(project: Project) -> None:
    """The people of a base may stand in a workbook."""
    (project.root / "hr.xlsx").write_bytes(xlsx(row(1, "email") + row(2, "bo@x.example")))
    git(project, "add", "hr.xlsx")
    commit(project, BASE.replace("hr.csv", "hr.xlsx"))
    project.write(CHANGE)
    ran = lmsconf(project.root, "plan", "--base", "main", "--format", "json")
    assert origins(ran) == {"group/Coaches": "already pending", "group/Mentors": "from this change"}


def test_what_every_version_wanted_repairs_an_edit_by_hand(project: Project) -> None:
    """A version before the base wanted it too, so the workspace was so until somebody changed it."""
    commit(project, BASE)
    commit(project, BASE.replace("Mentors, members: []", "Mentors, members: [bo@x.example]"))
    project.write(BASE.replace("Mentors, members: []", "Mentors, members: [bo@x.example]"))
    ran = lmsconf(project.root, "plan", "--base", "HEAD", "--format", "json", "--out", "plan.json")
    assert origins(ran) == {
        "group/Coaches": "repairs an edit by hand",
        "group/Mentors": "already pending",
        "group/Readers": "repairs an edit by hand",
    }
    text = lmsconf(project.root, "show", "plan.json").out
    assert "Compared with HEAD: 1 is already pending, 2 repair edits by hand." in text
    assert "repairs an edit by hand" in text


def test_a_base_is_a_folder_too(project: Project, tmp_path: Path) -> None:
    """Of a whole project or of manifests alone, and planned on the same snapshot; no repository is needed."""
    other = tmp_path / "before"
    other.mkdir()
    (other / "all.yaml").write_text("groups: [{name: Coaches, members: [bo@x.example]}]")
    project.write(CHANGE)
    lmsconf(project.root, "snapshot", "live.json")
    ran = lmsconf(project.root, "plan", "--base", str(other), "--snapshot", "live.json", "--format", "json")
    assert origins(ran) == {"group/Coaches": "already pending", "group/Mentors": "from this change"}
    (other / "all.yaml").write_text("groups: [{name: Coaches, members: 7}]")
    refused = lmsconf(project.root, "plan", "--base", str(other), "--format", "json")
    assert [problem["code"] for problem in refused.document["problems"]] == ["trust/url"]
    broken = lmsconf(project.root, "plan", "--base", str(other), "--trust-project", "url", "--format", "json")
    assert broken.code == 0
    assert [problem["code"] for problem in broken.document["problems"]] == ["base/not-planned"]


def test_a_base_that_has_no_project_yet_knows_nothing(project: Project) -> None:
    """The pull request that brings lmsconf in: all of it is from this change, the url among it."""
    git(project, "commit", "-q", "--allow-empty", "-m", "before")
    project.write(CHANGE)
    refused = lmsconf(project.root, "plan", "--base", "main")
    assert (refused.code, "[trust/url]" in refused.err) == (1, True)
    ran = lmsconf(project.root, "plan", "--base", "main", "--trust-project=url", "--format", "json")
    assert set(origins(ran).values()) == {"from this change"}
    assert ran.document["let_go"] == []


def test_of_a_person_only_what_the_manifests_declare_is_read(project: Project, tmp_path: Path) -> None:
    """Where a base declares other keys of the same person, the plan and what it reads are as without the base."""
    other = tmp_path / "before"
    other.mkdir()
    for before, now in (("first_name: Bo", "language: sv"), ("language: sv", "first_name: Bo")):
        (other / "all.yaml").write_text(f"users: [{{email: bo@x.example, {before}}}]")
        project.write(f"users: [{{email: bo@x.example, {now}}}]")
        command = ("--verbose", "plan", "--no-effects", "--format", "json")
        base = ("--base", str(other), "--trust-project", "url")
        alone, compared = lmsconf(project.root, *command), lmsconf(project.root, *command, *base)
        assert (alone.code, compared.code) == (0, 0), alone.out + compared.out
        assert compared.document["digest"] == alone.document["digest"]
        assert asked(compared) == asked(alone)


@pytest.mark.parametrize("only", [(), ("--only", "user/ann@x.example")])
def test_a_renamed_person_is_read_as_the_manifests_declare(project: Project, only: tuple[str, ...]) -> None:
    """Not as the base declares who has the earlier e-mail: the plan is the same as without a base."""
    commit(project, "users: [{email: anna@x.example, admin: true}]")
    project.write(
        "users: [{email: ann@x.example, previously: [Anna@x.example], first_name: Ann, language: sv, admin: false}]"
    )
    alone = lmsconf(project.root, "plan", "--format", "json", *only)
    ran = lmsconf(project.root, "plan", "--base", "main", "--format", "json", *only)
    assert ran.code == 0, ran.err
    assert ran.document["digest"] == alone.document["digest"]
    (change,) = cast("list[dict[str, list[dict[str, str]]]]", ran.document["changes"])
    assert [field["path"] for field in change["fields"]] == ["email", "first_name", "language"]


def asked(ran: Ran) -> list[str]:
    """The paths that a verbose command has requested."""
    return sorted(re.findall(r"Z GET (\S+) ", ran.err))


@pytest.mark.parametrize("said", ["nowhere", "--upload-pack=touch x", "-x", "main --output=x", "HEAD:manifests"])
def test_nothing_that_a_base_is_called_is_an_option(project: Project, said: str) -> None:
    """What is no folder and no commit is a wrong command line, and git never takes it for anything else."""
    commit(project, BASE)
    assert lmsconf(project.root, "plan", f"--base={said}").code == 64
    assert not (project.root / "x").exists()


def test_the_origin_is_no_part_of_the_digest(project: Project) -> None:
    """A reviewed plan is the same plan, whatever it was compared with."""
    from msgspec.structs import replace

    from lmsconf.model.plan import ChangeOrigin

    made = project.plan(CHANGE)
    labelled = tuple(replace(change, origin=ChangeOrigin.REPAIR) for change in made.changes)
    assert plan_digest(replace(made, changes=labelled, base="main")) == plan_digest(made)
