"""`plan --base`: where each change comes from, and what a change lets go of."""

import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import cast

import pytest
from flow.project import Project
from flow.shell import Ran, lmsconf
from json_schemas import schema_validator
from texts import text_of

from lmsconf.documents.plan_file import plan_digest
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

pytestmark = pytest.mark.sampled(day=8)

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
    told = lmsconf(project.root, "plan", "--base", str(other), "--trust-project", "url").out
    assert ("its manifests cannot be planned." in told, "nothing changes" in told) == (True, False)


def test_a_base_that_has_no_project_yet_knows_nothing(project: Project) -> None:
    """The pull request that brings lmsconf in: all of it is from this change, the url among it."""
    git(project, "commit", "-q", "--allow-empty", "-m", "before")
    project.write(CHANGE)
    assert "[trust/url]" in lmsconf(project.root, "plan", "--base", "main", code=1).err
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
    ran = lmsconf(project.root, "plan", "--base", "main", "--format", "json", *only, code=0)
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


def test_versions_are_planned_as_long_as_something_is_in_all_of_them(project: Project) -> None:
    """One whose plan shares nothing ends the search: each takes as long as a plan."""
    made = project.plan(CHANGE)
    everything = frozenset(map(plan_with_base._key, made.changes))
    plans = [everything, None, everything, frozenset(), everything]
    version = cast("ManifestsVersion", None)
    base = BaseManifests(name="main", version=version, older=[version] * 4)
    plan_with_base.attach_origins(made, base, lambda _: plans.pop(0))
    assert plans == [everything]


def test_the_origin_is_no_part_of_the_digest(project: Project) -> None:
    """A reviewed plan is the same plan, whatever it was compared with."""
    from msgspec.structs import replace

    from lmsconf.model.plan import ChangeOrigin

    made = project.plan(CHANGE)
    labelled = tuple(replace(change, origin=ChangeOrigin.REPAIR) for change in made.changes)
    assert plan_digest(replace(made, changes=labelled, base="main")) == plan_digest(made)


# `plan --base`: what the project file of a change may not decide alone, and `--trust-project`.


TRUST_BASE = "workspaces: {p: {url: 'https://lms.example', token: {env: LMSCONF_TOKEN}}}\n"


def told(root: Path, now: str, base: str | None = TRUST_BASE, trusted: str | None = None) -> list[str]:
    """The codes of what is refused."""
    return [problem.code for problem in refused(root, now, base, trusted)]


def refused(root: Path, now: str, base: str | None, trusted: str | None = None) -> Sequence[Problem]:
    before = NOWHERE if base is None else read(root / "before", base)
    try:
        refuse_untrusted_changes(
            read(root / "now", now), before, parse_trusted_parts(trusted), workspace="p", name="main"
        )
    except ProblemsFound as found:
        return found.problems
    return ()


def read(folder: Path, text: str) -> RequestDestination:
    folder.mkdir(exist_ok=True)
    (folder / "lmsconf.yaml").write_text(text)
    return request_destination(read_project_file(folder), "p", folder)


CHANGES = [
    (TRUST_BASE, TRUST_BASE, []),
    (TRUST_BASE + "guards: off\nvars: {a: b}\n", TRUST_BASE, []),
    (TRUST_BASE.replace("lms.", "lms2."), TRUST_BASE, ["trust/url"]),
    (TRUST_BASE.replace("LMSCONF_TOKEN", "LMSCONF_OTHER"), TRUST_BASE, ["trust/token"]),
    (TRUST_BASE.replace("{env: LMSCONF_TOKEN}", "{command: [a]}"), TRUST_BASE, ["trust/command"]),
    (TRUST_BASE.replace(", token: {env: LMSCONF_TOKEN}", ""), TRUST_BASE, ["trust/token"]),
    (TRUST_BASE + "dialect: {paging.limit: 50}\n", TRUST_BASE, ["trust/dialect"]),
    (TRUST_BASE.replace("}}", "}, dialect: {paging.limit: 50}}"), TRUST_BASE + "dialect: {paging.limit: 50}\n", []),
    (TRUST_BASE, None, ["trust/url", "trust/token"]),
    (TRUST_BASE, TRUST_BASE.replace("p:", "q:"), ["trust/url", "trust/token"]),
    (TRUST_BASE, TRUST_BASE.replace("https://lms.example", "sandbox:"), ["trust/url"]),
]


@pytest.mark.parametrize(("now", "base", "codes"), CHANGES)
def test_what_differs_is_refused_until_it_is_named(
    tmp_path: Path, now: str, base: str | None, codes: list[str]
) -> None:
    """url, token, command and dialect of the workspace at hand, and nothing else; each passes by its own name."""
    assert told(tmp_path, now, base) == codes
    assert told(tmp_path, now, base, ",".join(PARTS)) == []
    for code in codes:
        assert told(tmp_path, now, base, code.removeprefix("trust/")) == [one for one in codes if one != code]


@pytest.mark.parametrize(("now", "base", "codes"), [one for one in CHANGES if one[2]])
def test_a_refusal_names_the_option_that_trusts_the_change(
    tmp_path: Path, now: str, base: str | None, codes: list[str]
) -> None:
    """The hint has the parts that differ and no other, also where some of them are trusted already."""
    parts = [code.removeprefix("trust/") for code in codes]
    option = f"--trust-project={','.join(parts)}"
    for trusted in (None, *parts[1:]):
        for problem in refused(tmp_path, now, base, trusted):
            assert problem.hint == f"No request was sent. If you have reviewed the change: {option}"


def test_a_refusal_shows_values_as_they_are_written(tmp_path: Path) -> None:
    """Letters other than ASCII in a token source are readable in the message."""
    [problem] = refused(tmp_path, TRUST_BASE.replace("{env: LMSCONF_TOKEN}", "{file: größe.txt}"), TRUST_BASE)
    assert problem.message == ('workspaces.p: the token is {"file": "größe.txt"}, and in main {"env": "LMSCONF_TOKEN"}')


def test_a_refusal_names_the_keys_of_the_dialect_that_differ(tmp_path: Path) -> None:
    """Those that were added, removed or changed, in order, and none that the base says as well."""
    now = TRUST_BASE + "dialect: {paging.limit: 50, content-targets.on-existing: recreate}\n"
    base = (
        TRUST_BASE + "dialect: {paging.limit: 99, content-targets.on-existing: recreate, custom-fields.in-use: never}\n"
    )
    [problem] = refused(tmp_path, now, base)
    keys = "custom-fields.in-use, paging.limit"
    assert problem.message == f"workspaces.p: the dialect differs from that of main in {keys}"


def test_each_part_is_refused_at_its_place(tmp_path: Path) -> None:
    """The file, line and column of the value; nothing for one that the file does not have any more."""
    text = "dialect: {paging.limit: 50}\n" + TRUST_BASE
    with pytest.raises(ProblemsFound) as found:
        refuse_untrusted_changes(read(tmp_path / "now", text), NOWHERE, frozenset(), workspace="p", name="main")
    places = {problem.code: problem.source for problem in found.value.problems}
    assert {code: (at.line, at.column) for code, at in places.items() if at} == {
        "trust/url": (2, text.splitlines()[1].index("'https") + 1),
        "trust/token": (2, text.splitlines()[1].index("{env") + 1),
        "trust/dialect": (1, 11),
    }
    now, base = (
        read(tmp_path / "now", TRUST_BASE.replace(", token: {env: LMSCONF_TOKEN}", "")),
        read(tmp_path / "base", TRUST_BASE),
    )
    with pytest.raises(ProblemsFound) as found:
        refuse_untrusted_changes(now, base, frozenset(), workspace="p", name="main")
    assert [problem.source for problem in found.value.problems] == [None]


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ("[sh, bin/token.sh]", "now/bin/token.sh"),
        ("[sh, -c, 'bin/token.sh; true']", "now/bin/token.sh"),
        ("[vault, --config=bin/vault.ini]", "now/bin/vault.ini"),
        ("[sh, ../scripts/token.sh]", "scripts/token.sh"),
        ("[now/token]", "now/now/token"),
    ],
)
def test_a_command_of_the_project_is_never_that_of_the_base(words: str, file: str, tmp_path: Path) -> None:
    """The words are the same, but a file that they name, in the project or its repository, is that of the change."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").touch()
    said = TRUST_BASE.replace("{env: LMSCONF_TOKEN}", f"{{command: {words}}}")
    assert told(tmp_path, said, said) == []
    path = tmp_path / file
    path.parent.mkdir(exist_ok=True)
    path.touch()
    assert told(tmp_path, said, said) == ["trust/command"]
    path.unlink()
    path.symlink_to("/bin/true")
    assert told(tmp_path, said, said) == ["trust/command"]


@pytest.mark.parametrize(
    ("words", "codes"),
    [
        ("[make, -C, TOP/scripts, token]", ["trust/command"]),
        ("[make, -CTOP, token]", ["trust/command"]),
        ("[sh, -c, 'cd TOP/now && ./t*']", ["trust/command"]),
        ("[sh, -c, 'make -C $CHECKOUT/scripts token']", ["trust/command"]),
        ("[sh, -c, 'make -C ~/scripts token']", ["trust/command"]),
        ("[TOP-tools/token]", []),
    ],
)
def test_a_command_that_names_the_checkout(
    words: str, codes: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder of the project or its repository, by its path: what a command finds there is of the change."""
    monkeypatch.setenv("CHECKOUT", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").touch()
    said = TRUST_BASE.replace("{env: LMSCONF_TOKEN}", f"{{command: {words.replace('TOP', str(tmp_path))}}}")
    assert told(tmp_path, said, said) == codes


def test_only_parts_can_be_trusted() -> None:
    """A word that is none of them is a wrong command line."""
    assert parse_trusted_parts("url, dialect") == {"url", "dialect"}
    with pytest.raises(UsageError, match="there is no guards"):
        parse_trusted_parts("url,policy,guards")


def test_what_a_change_deletes_is_not_let_go_of(project: Project) -> None:
    """A group that moves to `absent`, and the assignments that go with it, need no line any more."""
    commit(project, BASE)
    project.write(CHANGE + "absent: {groups: [Readers]}\n")
    assert lmsconf(project.root, "plan", "--base", "main", "--format", "json", code=0).document["let_go"] == []


def test_a_partial_plan_lets_go_of_nothing(project: Project) -> None:
    """What `--only` leaves out is not looked at, so that nothing is said of it."""
    commit(project, BASE)
    project.write(CHANGE)
    ran = lmsconf(project.root, "plan", "--base", "main", "--only", "group/Coaches", "--format", "json", code=0)
    assert ran.document["let_go"] == []
