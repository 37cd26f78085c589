"""`export --by`: a folder for each team, every resource in one file, and an empty plan."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml
from flow.project import Project
from flow.shell import lmsconf

from lmsconf.manifest.load import load_folder

SEED = """
people:
  - {email: anna.berg@acme.example, admin: true, answers: {Department: Sales, Skills: [Go]}}
  - {email: bo.ek@acme.example, answers: {Department: Sales, Skills: [Go, Rust]}}
  - {email: cy.dahl@acme.example, answers: {Department: People & Culture}}
  - {email: no.answer@acme.example}
custom_fields:
  - {name: Department, type: CHOICE, choices: [Sales, People & Culture, ..]}
  - {name: Skills, type: MULTI_SELECT, choices: [Go, Rust]}
groups:
  - {name: Sales - Leads, members: [anna.berg@acme.example, bo.ek@acme.example]}
  - {name: Sales - Mixed, members: [anna.berg@acme.example, cy.dahl@acme.example]}
  - {name: HR - Unknown, members: [cy.dahl@acme.example, no.answer@acme.example]}
  - {name: SALES - Shouted, members: [cy.dahl@acme.example]}
  - {name: Empty, members: []}
smart_groups:
  - {name: All of Sales, conditions: [{field: Department, choices: [Sales]}]}
  - {name: Both, conditions: [{field: Department, choices: [Sales, People & Culture]}]}
  - {name: Dots, conditions: [{field: Department, choices: [..]}]}
content: [{name: Sales - Basics}, {name: Intro}]
content_targets:
  - {content: Intro, mandatory: true, assign_to: [{group: Sales - Leads}]}
  - {content: Intro, assign_to: [everyone, {smart_group: Dots}, {user: cy.dahl@acme.example}]}
  - {content: Sales - Basics, assign_to: [{smart_group: Both}]}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, SEED, "")


def files(root: Path) -> dict[str, list[str]]:
    """File → the addresses that it declares."""
    folder = root / "manifests"
    found = load_folder(folder, root)
    assert not [one for one in found.problems if one.is_error]
    by_file: dict[str, list[str]] = {}
    for one in found.declared:
        assert one.source is not None
        by_file.setdefault(one.source.file.removeprefix("manifests/"), []).append(one.address.text)
    return by_file


def test_by_the_value_of_a_field(project: Project) -> None:
    """A group whose members all answered the same, a smart group with one choice, and what is assigned to them."""
    assert lmsconf(project.root, "export", "--by", "Department").code == 0
    assert files(project.root) == {
        "custom_fields.yaml": ["Department", "Skills"],
        "groups.yaml": ["Empty", "HR - Unknown", "Sales - Mixed"],
        "smart_groups.yaml": ["Both"],
        "content_targets.yaml": ["Intro -> everyone", "Sales - Basics -> smart_group/Both"],
        "people-culture/groups.yaml": ["SALES - Shouted"],
        "people-culture/content_targets.yaml": ["Intro -> user/cy.dahl@acme.example"],
        "sales/groups.yaml": ["Sales - Leads"],
        "sales/smart_groups.yaml": ["All of Sales"],
        "sales/content_targets.yaml": ["Intro -> group/Sales - Leads"],
        "team/smart_groups.yaml": ["Dots"],
        "team/content_targets.yaml": ["Intro -> smart_group/Dots"],
    }
    assert lmsconf(project.root, "plan", "--detailed-exitcode").code == 0
    first = (project.root / "manifests" / "sales" / "groups.yaml").read_text().splitlines()[0]
    assert first == "# yaml-language-server: $schema=../../schemas/manifest.schema.json"


def test_by_the_prefix_of_names(project: Project) -> None:
    """Case makes no other team; an assignment goes with its content."""
    assert lmsconf(project.root, "export", "--by", "prefix: - ").code == 0
    assert files(project.root) == {
        "custom_fields.yaml": ["Department", "Skills"],
        "groups.yaml": ["Empty"],
        "smart_groups.yaml": ["All of Sales", "Both", "Dots"],
        "content_targets.yaml": [
            *("Intro -> everyone", "Intro -> smart_group/Dots", "Intro -> group/Sales - Leads"),
            "Intro -> user/cy.dahl@acme.example",
        ],
        "hr/groups.yaml": ["HR - Unknown"],
        "sales/groups.yaml": ["Sales - Leads", "Sales - Mixed", "SALES - Shouted"],
        "sales/content_targets.yaml": ["Sales - Basics -> smart_group/Both"],
    }
    assert lmsconf(project.root, "plan", "--detailed-exitcode").code == 0


def test_people_and_fields_with_several_answers(project: Project) -> None:
    """A person belongs to the team of the only answer; everything is as without --by, but for the files."""
    assert lmsconf(project.root, "export", "--kind", "users", "--kind", "groups", "--by", "Skills").code == 0
    split = files(project.root)
    assert split["go/users.yaml"] == ["anna.berg@acme.example"]
    assert len(split["users.yaml"]) == 3
    assert len(split["groups.yaml"]) == 5


HOSTILE = ["../../x", "CON", ".hidden", "_kept", "a/b", "a b", "A  B", "\u202eb", "😀", "é", "e\u0301", "x" * 90]


def test_names_that_are_no_names_of_folders(tmp_path: Path) -> None:
    """Every folder is one name below the folder of manifests, and is read; what would collide has a number."""
    names = [f"{team}: {number}" for number, team in enumerate(HOSTILE)]
    groups = [{"name": name, "members": []} for name in names if "\u202e" not in name]
    project = Project(tmp_path, yaml.safe_dump({"groups": groups}, allow_unicode=True), "")
    assert lmsconf(project.root, "export", "--by", "prefix:: ").code == 0
    found = files(project.root)
    assert Counter(name for part in found.values() for name in part) == Counter(
        group["name"].replace("e\u0301", "é") for group in groups
    )
    assert sorted(found) == sorted(
        f"{folder}/groups.yaml"
        for folder in ("x", "team-con", "hidden", "kept", "a-b", "a-b-2", "a-b-3", "team", "é", "x" * 60)
    )
    written = {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*.yaml")}
    assert written == {"manifests", "lmsconf.yaml", "workspace.yaml"}
    assert lmsconf(project.root, "plan", "--detailed-exitcode").code == 0


@pytest.mark.parametrize(
    ("by", "said"),
    [
        ("Departmnt", 'Did you mean "Department"?'),
        ("prefix:", "the separator is missing"),
        ("prefix", "To split by the beginning of names"),
    ],
)
def test_what_cannot_be_split_by(by: str, said: str, project: Project) -> None:
    """A wrong command line; nothing is written."""
    ran = lmsconf(project.root, "export", "--by", by)
    assert ran.code == 64
    assert said in ran.err
    assert not list((project.root / "manifests").glob("**/*.yaml"))


def test_too_many_teams(tmp_path: Path) -> None:
    """More folders than anybody would read are refused."""
    seed = yaml.safe_dump({"groups": [{"name": f"{number} - x", "members": []} for number in range(201)]})
    project = Project(tmp_path, seed, "")
    ran = lmsconf(project.root, "export", "--by", "prefix: - ")
    assert (ran.code, "201 folders" in ran.err) == (1, True)


def test_a_link_is_not_followed(project: Project, tmp_path: Path) -> None:
    """Nothing is written through a link that has the name of a team's folder."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (project.root / "manifests").mkdir(exist_ok=True)
    (project.root / "manifests" / "a.yaml").write_text("groups: [{name: Empty}]\n")
    (project.root / "manifests" / "_later").symlink_to(outside)
    target = project.root / "other"
    target.mkdir()
    (target / "sales").symlink_to(outside)
    ran = lmsconf(project.root, "export", str(target), "--into", "--by", "Department")
    assert ran.code == 1
    assert "link" in ran.err
    assert not list(outside.iterdir())
