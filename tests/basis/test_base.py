"""`plan --base`: where each change comes from, and what a change lets go of."""

import re
from pathlib import Path
from typing import cast

import pytest
from basis.repository import beside, commit, git, init, origins
from flow.project import Project
from flow.shell import Ran, lmsconf
from json_schemas import schema_validator
from texts import listed_cases, text_of

from lmsconf.errors import Problem, ProblemsFound, UsageError
from lmsconf.project.config_reader import read_project_file
from lmsconf.project.credentials import (
    NOWHERE,
    PARTS,
    RequestDestination,
    parse_trusted_parts,
    refuse_untrusted_changes,
    request_destination,
)
from lmsconf.workspace import plan_with_base
from lmsconf.workspace.project_manifests import BaseManifests, ManifestsVersion

pytestmark = pytest.mark.sampled(day=8, daily=False)

SEED = text_of(__file__, "base_seed.yaml")
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
    """A project with a change, below the top of a repository, as in a repository of several."""
    made = Project(tmp_path / "deep er", SEED)
    (made.root / "hr.csv").write_text("email\nbo@x.example\n")
    made.write(BASE)
    init(tmp_path)
    made.write(CHANGE)
    return made


def test_each_change_says_where_it_comes_from(project: Project) -> None:
    """From this change, or already pending; what is let go of is listed with the line that deletes it.

    A group that moves to `absent`, and the assignments that go with it, need no line any more, and what `--only` leaves
    out is not looked at.
    """
    ran = beside(project.root)
    assert origins(ran) == {"group/Coaches": "already pending", "group/Mentors": "from this change"}
    assert ran.document["let_go"] == [
        {
            "address": "content_target/GDPR -> group/Readers",
            "absent": "absent: {content_targets: [{content: GDPR, assign_to: [{group: Readers}]}]}",
        },
        {"address": "group/Readers", "absent": "absent: {groups: [Readers]}"},
    ]
    schema_validator("plan").validate(ran.document)
    assert ran.document["digest"] == lmsconf(project.root, "plan", "--format", "json").document["digest"]
    assert beside(project.root, "--only", "group/Coaches", code=0).document["let_go"] == []
    project.write(CHANGE + "absent: {groups: [Readers]}\n")
    assert beside(project.root, code=0).document["let_go"] == []


def test_what_every_version_wanted_repairs_an_edit_by_hand(project: Project) -> None:
    """A version before the base wanted it too, so the workspace was so until somebody changed it."""
    project.write(BASE.replace("Mentors, members: []", "Mentors, members: [bo@x.example]"))
    commit(project.root)
    assert origins(beside(project.root, "--out", "plan.json", base="HEAD")) == {
        "group/Coaches": "repairs an edit by hand",
        "group/Mentors": "already pending",
        "group/Readers": "repairs an edit by hand",
    }
    text = lmsconf(project.root, "show", "plan.json").out
    assert "Compared with HEAD: 1 is already pending, 2 repair edits by hand." in text
    assert "repairs an edit by hand" in text


def test_a_base_is_a_folder_too(tmp_path: Path) -> None:
    """Of a whole project or of manifests alone, and planned on the same snapshot; no repository is needed."""
    project, other = Project(tmp_path / "project", SEED), tmp_path / "before"
    other.mkdir()
    (other / "all.yaml").write_text("groups: [{name: Coaches, members: [bo@x.example]}]")
    project.write(CHANGE)
    lmsconf(project.root, "snapshot", "live.json")
    ran = beside(project.root, "--snapshot", "live.json", base=str(other))
    assert origins(ran) == {"group/Coaches": "already pending", "group/Mentors": "from this change"}
    (other / "all.yaml").write_text("groups: [{name: Coaches, members: 7}]")
    assert [problem["code"] for problem in beside(project.root, base=str(other)).document["problems"]] == ["trust/url"]
    broken = beside(project.root, "--trust-project", "url", base=str(other), code=0)
    assert [problem["code"] for problem in broken.document["problems"]] == ["base/not-planned"]
    told = beside(project.root, "--trust-project", "url", "--format", "text", base=str(other)).out
    assert ("its manifests cannot be planned." in told, "nothing changes" in told) == (True, False)


def test_a_base_that_has_no_project_yet_knows_nothing(tmp_path: Path) -> None:
    """The pull request that brings lmsconf in: all of it is from this change, the url among it."""
    git(tmp_path, "init", "-q", "-b", "main")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "before")
    project = Project(tmp_path / "project", SEED)
    project.write(CHANGE)
    assert "trust/url" in beside(project.root, code=1).out
    ran = beside(project.root, "--trust-project=url")
    assert set(origins(ran).values()) == {"from this change"}
    assert ran.document["let_go"] == []


def test_of_a_person_only_what_the_manifests_declare_is_read(project: Project) -> None:
    """Where a base declares other keys of the same person, the plan and what it reads are as without the base."""
    for before, now in (("first_name: Bo", "language: sv"), ("language: sv", "first_name: Bo")):
        project.write(f"users: [{{email: bo@x.example, {before}}}]")
        commit(project.root)
        project.write(f"users: [{{email: bo@x.example, {now}}}]")
        command = ("--verbose", "plan", "--no-effects", "--format", "json")
        alone = lmsconf(project.root, *command, code=0)
        compared = lmsconf(project.root, *command, "--base", "main", code=0)
        assert compared.document["digest"] == alone.document["digest"]
        assert asked(compared) == asked(alone)


def asked(ran: Ran) -> list[str]:
    """The paths that a verbose command has requested."""
    return sorted(re.findall(r"Z GET (\S+) ", ran.err))


@pytest.mark.parametrize("only", [(), ("--only", "user/ann@x.example")])
def test_a_renamed_person_is_read_as_the_manifests_declare(project: Project, only: tuple[str, ...]) -> None:
    """Not as the base declares who has the earlier e-mail: the plan is the same as without a base."""
    project.write("users: [{email: anna@x.example, admin: true}]")
    commit(project.root)
    project.write(
        "users: [{email: ann@x.example, previously: [Anna@x.example], first_name: Ann, language: sv, admin: false}]"
    )
    ran = beside(project.root, *only, code=0)
    assert ran.document["digest"] == lmsconf(project.root, "plan", "--format", "json", *only).document["digest"]
    (change,) = cast("list[dict[str, list[dict[str, str]]]]", ran.document["changes"])
    assert [field["path"] for field in change["fields"]] == ["email", "first_name", "language"]


@pytest.mark.parametrize("said", ["nowhere", "--upload-pack=touch x", "-x", "main --output=x", "HEAD:manifests"])
def test_nothing_that_a_base_is_called_is_an_option(project: Project, said: str) -> None:
    """What is no folder and no commit is a wrong command line, and git never takes it for anything else."""
    assert lmsconf(project.root, "plan", f"--base={said}").code == 64
    assert not (project.root / "x").exists()


def test_versions_are_planned_as_long_as_something_is_in_all_of_them(project: Project) -> None:
    """One whose plan shares nothing ends the search: each takes as long as a plan."""
    made = project.plan()
    everything = frozenset(map(plan_with_base._key, made.changes))
    plans = [everything, None, everything, frozenset(), everything]
    version = cast("ManifestsVersion", None)
    base = BaseManifests(name="main", version=version, older=[version] * 4)
    plan_with_base.attach_origins(made, base, lambda _: plans.pop(0))
    assert plans == [everything]


# `plan --base`: what the project file of a change may not decide alone, and `--trust-project`.


TRUSTED = "workspaces: {p: {url: 'https://lms.example', token: {env: LMSCONF_TOKEN}}}\n"
TOKEN = "{env: LMSCONF_TOKEN}"


def told(root: Path, now: str, base: str | None = TRUSTED, trusted: str | None = None) -> list[str]:
    """The codes of what is refused."""
    return [problem.code for problem in refused(root, now, base, trusted)]


def refused(root: Path, now: str, base: str | None, trusted: str | None = None) -> tuple[Problem, ...]:
    before = NOWHERE if base is None else read(root / "before", base)
    parts = parse_trusted_parts(trusted)
    try:
        refuse_untrusted_changes(read(root / "now", now), before, parts, workspace="p", name="main")
    except ProblemsFound as found:
        return tuple(found.problems)
    return ()


def read(folder: Path, text: str) -> RequestDestination:
    folder.mkdir(exist_ok=True)
    (folder / "lmsconf.yaml").write_text(text)
    return request_destination(read_project_file(folder), "p", folder)


DIALECT = "dialect: {paging.limit: 50}\n"


@pytest.mark.parametrize(
    ("now", "base", "codes"),
    [
        (TRUSTED, TRUSTED, []),
        (TRUSTED + "guards: off\nvars: {a: b}\n", TRUSTED, []),
        (TRUSTED.replace("lms.", "lms2."), TRUSTED, ["trust/url"]),
        (TRUSTED.replace("LMSCONF_TOKEN", "LMSCONF_OTHER"), TRUSTED, ["trust/token"]),
        (TRUSTED.replace(TOKEN, "{command: [a]}"), TRUSTED, ["trust/command"]),
        (TRUSTED.replace(f", token: {TOKEN}", ""), TRUSTED, ["trust/token"]),
        (TRUSTED + DIALECT, TRUSTED, ["trust/dialect"]),
        (TRUSTED.replace("}}", "}, dialect: {paging.limit: 50}}"), TRUSTED + DIALECT, []),
        (TRUSTED, None, ["trust/url", "trust/token"]),
        (TRUSTED, TRUSTED.replace("p:", "q:"), ["trust/url", "trust/token"]),
        (TRUSTED, TRUSTED.replace("https://lms.example", "sandbox:"), ["trust/url"]),
    ],
)
def test_what_differs_is_refused_until_it_is_named(
    tmp_path: Path, now: str, base: str | None, codes: list[str]
) -> None:
    """url, token, command and dialect of the workspace at hand, and nothing else; each passes by its own name.

    The hint has the parts that differ and no other, also where some of them are trusted already.
    """
    parts = [code.removeprefix("trust/") for code in codes]
    hint = f"No request was sent. If you have reviewed the change: --trust-project={','.join(parts)}"
    assert told(tmp_path, now, base, ",".join(PARTS)) == []
    for trusted in (None, *parts):
        assert [(one.code, one.hint) for one in refused(tmp_path, now, base, trusted)] == [
            (code, hint) for code in codes if code != f"trust/{trusted}"
        ]


@pytest.mark.parametrize(
    ("now", "base", "said"),
    [
        (
            TRUSTED.replace(TOKEN, "{file: größe.txt}"),
            TRUSTED,
            'the token is {"file": "größe.txt"}, and in main {"env": "LMSCONF_TOKEN"}',
        ),
        (
            TRUSTED + "dialect: {paging.limit: 50, content-targets.on-existing: recreate}\n",
            TRUSTED + "dialect: {paging.limit: 99, content-targets.on-existing: recreate, "
            "custom-fields.in-use: never}\n",
            "the dialect differs from that of main in custom-fields.in-use, paging.limit",
        ),
    ],
    ids=["letters as they are written", "the keys of the dialect that differ, in order"],
)
def test_a_refusal_names_what_differs(tmp_path: Path, now: str, base: str, said: str) -> None:
    """Keys that were added, removed or changed, and none that the base says as well."""
    [problem] = refused(tmp_path, now, base)
    assert problem.message == f"workspaces.p: {said}"


def test_each_part_is_refused_at_its_place(tmp_path: Path) -> None:
    """The file, line and column of the value; nothing for one that the file does not have any more."""
    places = {problem.code: problem.source for problem in refused(tmp_path, DIALECT + TRUSTED, None)}
    assert {code: (at.line, at.column) for code, at in places.items() if at} == {
        "trust/url": (2, TRUSTED.index("'https") + 1),
        "trust/token": (2, TRUSTED.index("{env") + 1),
        "trust/dialect": (1, 11),
    }
    [problem] = refused(tmp_path, TRUSTED.replace(f", token: {TOKEN}", ""), TRUSTED)
    assert problem.source is None


@listed_cases("words", "file")
def test_a_command_of_the_project_is_never_that_of_the_base(
    words: str, file: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The words are the same, but a file that they name, in the project or its repository, is that of the change.

    Where they name the folder of either by its path, what a command finds there is of the change, whatever it is.
    """
    monkeypatch.setenv("CHECKOUT", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").touch()
    said = TRUSTED.replace(TOKEN, f"{{command: {words.replace('TOP', str(tmp_path))}}}")
    assert told(tmp_path, said, said) == (["trust/command"] if file == "" else [])
    if file:
        path = tmp_path / file
        path.parent.mkdir(exist_ok=True)
        path.touch()
        assert told(tmp_path, said, said) == ["trust/command"]
        path.unlink()
        path.symlink_to("/bin/true")
        assert told(tmp_path, said, said) == ["trust/command"]


def test_only_parts_can_be_trusted() -> None:
    """A word that is none of them is a wrong command line."""
    assert parse_trusted_parts("url, dialect") == {"url", "dialect"}
    with pytest.raises(UsageError, match="there is no guards"):
        parse_trusted_parts("url,policy,guards")
