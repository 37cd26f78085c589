"""What cannot be edited safely is refused with its place and a way out, and no file is written."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from integrity.served_project import ServedProject

from lmsconf.errors import LmsconfError
from lmsconf.support.atomic_files import write_all_or_none

MANAGED: Final = "groups:\n  - name: Team\n    members: [anna@x.se, bo@x.se]\n"
REFUSED: Final = {
    "an alias that says a list": (
        "x-all: &all [anna@x.se]\ngroups:\n  - {name: Team, members: *all}\n",
        "group/Team",
        "all.yaml:3:27: error: group/Team: this comes from an alias",
        "Replace the alias",
    ),
    "a list that an alias repeats": (
        "groups:\n  - {name: Team, members: &all [anna@x.se]}\n  - {name: Crew, members: *all}\n",
        "group/Team",
        "all.yaml:2:27: error: group/Team: &all is repeated by an alias elsewhere",
        "Replace each alias",
    ),
    "a variable": (
        'groups:\n  - name: Team\n    managers: ["$(boss)"]\n',
        "group/Team",
        "all.yaml:3:15: error: group/Team: dag@x.se is not in this list itself",
        "a variable",
    ),
    "a copy of for_each": (
        "groups:\n  - {name: $(team), for_each: {team: $(teams)}, members: []}\n",
        "group/Team",
        "all.yaml:2:5 (team=Team): error: group/Team: for_each writes out this entry",
        "a separate entry",
    ),
    "a set": (
        "people_sets: {all: [anna@x.se, dag@x.se]}\ngroups:\n  - {name: Team, members: {set: all}}\n",
        "group/Team",
        "group/Team: members are defined elsewhere",
        "Change it there by hand",
    ),
    "somebody in a set beside others": (
        "people_sets: {all: [dag@x.se]}\ngroups:\n  - {name: Team, members: [anna@x.se, bo@x.se, {set: all}]}\n",
        "group/Team",
        "group/Team: dag@x.se is not in this list itself",
        "a set or a file",
    ),
    "a CSV file": (
        "groups:\n  - {name: Team, members: {file: ../people.csv, column: Mail}}\n",
        "group/Team",
        "all.yaml:2:27: error: group/Team: members are defined elsewhere",
        "Change it there by hand",
    ),
    "one of several contents": (
        "content_targets:\n  - content: [Basics, Intro]\n    assign_to: [{user: bo@x.se}]\n",
        "content_target/Basics -> user/bo@x.se",
        "all.yaml:3:17: error: content_target/Basics -> user/bo@x.se: this line declares several assignments",
        "a separate entry",
    ),
    "the window of an audience": (
        "windows: {H2: {visible_from: 2026-07-01T00:00Z}}\n"
        "content_targets: [{content: Intro, assign_to: [{user: bo@x.se, window: H2}]}]\n",
        "content_target/Intro*",
        "all.yaml:2:72: error: content_target/Intro -> user/bo@x.se: visible_from comes from a window",
        "Change the window, or write visible_from and visible_until here",
    ),
    "a row of a sheet": (
        "content_targets: [{file: ../assignments.csv}]\n",
        "content_target/Intro*",
        "assignments.csv:2:7: error: content_target/Intro -> user/bo@x.se: it is a row of a sheet",
        "Change the sheet by hand",
    ),
    "what nothing declares": (
        "groups: []\n",
        "group/Crew",
        "group/Crew: no manifest declares it",
        "lmsconf export --into",
    ),
    "what another leans on that cannot be edited": (
        "x-new: &new [{field: New, choices: [A]}]\n"
        "custom_fields: [{name: New, type: CHOICE, choices: [A]}]\n"
        "smart_groups: [{name: Nordics, conditions: *new}]\n",
        "custom_field/New",
        "all.yaml:3:44: error: smart_group/Nordics: this comes from an alias",
        "Replace the alias",
    ),
    "what is needed elsewhere, with its place on the disk": (
        "custom_fields:\n  - name: Dept\n    type: CHOICE\n    choices:\n      - Sales\n      - Tech\n      - More\n"
        "      - 'NO'\n      - 'a: b'\nsmart_groups:\n"
        "  - {name: More, conditions: [{field: Dept, choices: [More]}], only_in: [elsewhere]}\n",
        "custom_field/Dept",
        'all.yaml:11:55: error: smart_group/More: custom_field/Dept has no choice "More"',
        "",
    ),
    "what is to go and is owned, too": (
        "absent: {groups: [Crew]}\n",
        "group/Crew",
        "group/Crew: with the edit it would still be undeclared",
        "remove it from `absent` by hand, then `lmsconf export --into`",
    ),
    "what fits nothing": (MANAGED, "group/Taem", "--accept group/Taem: no difference has this address", ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_edited_is_refused(stage: ServedProject, name: str) -> None:
    """It is exit 1 with place and way out, nothing is shown as done, and every file is as it was."""
    manifest, address, message, hint = REFUSED[name]
    other = "workspaces: {elsewhere: {url: 'https://lms.example', token: {env: LMSCONF_TOKEN}}}"
    stage.options('vars: {boss: dag@x.se, teams: [Team, Crew]}\nownership: {groups: ["Crew"]}\n')
    options = stage.root / "lmsconf.yaml"
    here = f"default_workspace: here\n{other[:-1]}, "
    options.write_text(options.read_text().replace("workspaces: {", here, 1))
    (stage.root / "people.csv").write_text("Mail\nanna@x.se\n")
    (stage.root / "assignments.csv").write_text("content,audience,mandatory\nIntro,user: bo@x.se,true\n")
    stage.write(manifest)
    ran = stage("drift", f"--accept={address}")
    assert (ran.code, ran.out, ran.writes) == (1, "", [])
    assert message in ran.err
    assert hint in ran.err
    assert (stage.root / "manifests" / "all.yaml").read_text() == manifest


def test_all_files_or_none(stage: ServedProject) -> None:
    """Where one of two cannot be edited, the other is not written either, and all that stands in the way is told."""
    stage.write("x: 1\n")
    folder = stage.root / "manifests"
    (folder / "all.yaml").write_text("groups: [{name: Team, managers: []}]\n")
    (folder / "b.yaml").write_text("x-a: &a [dag@x.se]\ngroups: [{name: Crew, members: *a, managers: *a}]\n")
    ran = stage("drift", "--accept", "group/*")
    assert ran.code == 1
    assert "b.yaml:2:32" in ran.err
    assert (folder / "all.yaml").read_text() == "groups: [{name: Team, managers: []}]\n"
    assert stage("drift", "--accept", "group/Team").code == 0
    assert (folder / "all.yaml").read_text() == "groups: [{name: Team, managers: [cy@x.se]}]\n"


def test_the_diff_is_shown_as_git_reads_it(stage: ServedProject) -> None:
    """Paths are those in the project, and a last line without a line break is said to be so."""
    stage.write("groups:\n  - name: Team\n    managers: []")
    ran = stage("drift", "--accept", "group/Team")
    assert ran.out == (
        "--- a/manifests/all.yaml\n+++ b/manifests/all.yaml\n@@ -1,3 +1,3 @@\n groups:\n   - name: Team\n"
        "-    managers: []\n\\ No newline at end of file\n+    managers: [cy@x.se]\n\\ No newline at end of file\n"
    )


def test_a_file_keeps_its_mode_and_a_link_stays_one(stage: ServedProject) -> None:
    """What is written is the file that a link leads to, with the rights that it had."""
    stage.write("groups: []\n")
    real = stage.root / "real.yaml"
    real.write_text("groups: [{name: Team, managers: []}]\n")
    real.chmod(0o640)
    link = stage.root / "manifests" / "link.yaml"
    link.symlink_to(real)
    assert stage("drift", "--accept", "group/Team").code == 0
    assert link.is_symlink()
    assert "cy@x.se" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


def test_accepting_has_one_format(stage: ServedProject) -> None:
    """A diff is no JSON document: the two together are a wrong command line."""
    stage.write(MANAGED)
    assert stage("drift", "--accept", "*", "--format", "json").code == 64


# Edited manifests are written all or not at all, and never over what somebody else wrote meanwhile.


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two files."""
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("old\n")
    return tmp_path


BEFORE = {"a.yaml": b"old\n", "b.yaml": b"old\n"}


def test_a_file_that_changed_meanwhile_is_not_written_over(project: Path) -> None:
    """Then the other is not written either, and it is said which one it was."""
    (project / "b.yaml").write_text("newer\n")
    with pytest.raises(LmsconfError, match=r"b\.yaml was changed by another process"):
        write_all_or_none(project, BEFORE, {"a.yaml": b"new\n", "b.yaml": b"new\n"})
    assert [(project / name).read_text() for name in BEFORE] == ["old\n", "newer\n"]


def test_what_was_written_is_put_back_where_the_next_cannot_be(project: Path) -> None:
    """A write that fails leaves no file half way between two states of the manifests."""
    with pytest.raises(UnicodeDecodeError):
        write_all_or_none(project, BEFORE, {"a.yaml": b"new\n", "b.yaml": b"\xff"})
    assert [(project / name).read_text() for name in BEFORE] == ["old\n", "old\n"]


def test_all_are_written(project: Path) -> None:
    """Both hold what they are to hold, and nothing is left beside them."""
    write_all_or_none(project, BEFORE, {"a.yaml": b"new a\n", "b.yaml": b"new b\n"})
    assert {path.name: path.read_text() for path in project.iterdir()} == {"a.yaml": "new a\n", "b.yaml": "new b\n"}
