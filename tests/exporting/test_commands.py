"""`lmsconf export` and `lmsconf snapshot --redact`, as a shell runs them."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from flow.project import Project
from flow.shell import lmsconf
from texts import text_of

pytestmark = pytest.mark.sampled(day=8)

SEED = text_of(__file__, "commands_seed.yaml")
OPTIONS = "timezone: Europe/Stockholm\nleave_alone: ['group/UI *']\n"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, SEED, OPTIONS)


@pytest.mark.parametrize(("seed", "options"), [("seed", ""), ("people", "--kind users")])
def test_an_export_reads_as_a_person_would_have_written_it(tmp_path: Path, seed: str, options: str) -> None:
    """Names, e-mails, dates; only what is not the default; what cannot be said stands in a comment and is told.

    Of people all that their listing tells: rights, metadata, answers in the form of their fields, when an account ends.
    """
    root = Project(tmp_path, text_of(__file__, f"commands_{seed}.yaml"), OPTIONS).root
    ran = lmsconf(root, "export", *options.split(), code=0)
    written = "\n".join(f"## {path.name}\n{path.read_text()}" for path in sorted((root / "manifests").iterdir()))
    assert written == text_of(__file__, f"commands_{seed}_exported.yaml")
    if seed == "seed":
        assert "left out: group/Twice (id g-4): another resource has its name" in ran.err
        assert "1 not exported, because of `leave_alone:` in the project file." in ran.err
    assert lmsconf(root, "plan", "--detailed-exitcode").code == 0


@pytest.mark.sampled(day=1)
@pytest.mark.parametrize(
    ("owned", "exported", "left_out"),
    [("", ["bo"], ["cy"]), ("ownership: {content_targets: all}\n", ["bo", "cy"], [])],
    ids=["unmanaged", "owned"],
)
def test_an_assignment_to_an_archived_person_is_exported_where_the_project_owns_it(
    tmp_path: Path, owned: str, exported: list[str], left_out: list[str]
) -> None:
    """Elsewhere it is left out with the reason, since each plan would report the archived person.

    Either way what is written is what is live, and leaves a plan nothing to do.
    """
    seed = SEED + "  - {content: Old intro, mandatory: true, assign_to: [everyone]}\n"
    seed += "  - {content: Old intro, assign_to: [{user: bo.ek@acme.example}, {user: cy.dahl@acme.example}]}\n"
    it = Project(tmp_path, seed, OPTIONS + owned)
    ran = lmsconf(it.root, "export", "--kind", "content_targets", code=0)
    written = yaml.safe_load((it.root / "manifests" / "content_targets.yaml").read_text())["content_targets"]
    [intro] = [entry for entry in written if entry["content"] == "Old intro"]
    assert [one["user"].partition(".")[0] for one in intro["assign_to"] if "user" in one] == exported
    assert re.findall(r"left out: .* -> user/(\w+).*: the person is archived", ran.err) == left_out
    assert lmsconf(it.root, "plan", "--detailed-exitcode").code == 0


@pytest.mark.sampled(day=1)
def test_a_content_with_an_assignment_that_cannot_be_declared_is_left_out_where_it_would_be_deleted(
    tmp_path: Path,
) -> None:
    """A project that owns all assignments of declared content declares no other one of it; other contents it does."""
    it = Project(tmp_path, SEED, OPTIONS + "ownership: {content_targets: declared_content}\n")
    it.send("content-targets.create", None, {"contentId": "c-1", "targetId": "g-4"})
    ran = lmsconf(it.root, "export", "--kind", "content_targets", code=0)
    written = yaml.safe_load((it.root / "manifests" / "content_targets.yaml").read_text())["content_targets"]
    assert [entry["content"] for entry in written] == ["Old intro"]
    assert "of the same content, an assignment that cannot be declared would be deleted" in ran.err


def test_a_folder_with_manifests_is_not_written_to(project: Project) -> None:
    """Unless somebody says --into, which adds what is not declared yet and touches nothing that is there."""
    said = "# ours\ngroups: [{name: Coaches, managers: []}]   # for now\n"
    project.write(said)
    assert "--into" in lmsconf(project.root, "export", code=1).err
    assert [path.name for path in (project.root / "manifests").iterdir()] == ["all.yaml"]
    before = lmsconf(project.root, "plan", "--format", "json").document
    assert lmsconf(project.root, "export", "--into", "--kind", "groups").code == 0
    assert (project.root / "manifests" / "all.yaml").read_text() == said
    added = (project.root / "manifests" / "exported-groups.yaml").read_text()
    assert "Empty" in added
    assert "Coaches" not in added
    assert lmsconf(project.root, "plan", "--format", "json").document["digest"] == before["digest"]


def test_a_file_of_that_name_stays(project: Project) -> None:
    """An export never writes over a file, be it an earlier export or somebody's own: it takes another name."""
    project.write("groups: [{name: Coaches}]\n")
    project.write("# ours\n", "exported-groups.yaml")
    assert lmsconf(project.root, "export", "--into", "--kind", "groups").code == 0
    files = {path.name: path.read_text() for path in (project.root / "manifests").iterdir()}
    assert files.keys() == {"all.yaml", "exported-groups.yaml", "exported-groups-2.yaml"}
    assert files["exported-groups.yaml"] == "# ours\n"
    assert "Empty" in files["exported-groups-2.yaml"]


def test_only_the_kinds_that_are_named(project: Project) -> None:
    """--kind users is the only way to people; a kind that is none is a wrong command line."""
    assert lmsconf(project.root, "export", "people", "--kind", "users").code == 0
    assert [path.name for path in (project.root / "people").iterdir()] == ["users.yaml"]
    assert "answers: {Country: SE}" in (project.root / "people" / "users.yaml").read_text()
    for wrong in ("group", "courses"):
        ran = lmsconf(project.root, "export", "other", "--kind", wrong)
        assert (ran.code, "There are custom_fields, users, groups, " in ran.err) == (64, True), ran.err


def test_what_is_owned_and_not_exported_is_told(project: Project) -> None:
    """A kind that the project owns and an export leaves out would be deleted by the next plan: a warning says so."""
    project.write_options(OPTIONS + "ownership: {smart_groups: all}\n")
    ran = lmsconf(project.root, "export", "--kind", "groups")
    assert "smart_group/Nordics: the project owns it" in ran.err
    assert "change nothing" not in ran.err


def test_a_redacted_snapshot_holds_of_a_person_what_is_declared(tmp_path: Path) -> None:
    """The declared keys of metadata and the declared answers have their live values; all else is left out."""
    seed = SEED.replace('cost_centre: "CC4711"', 'cost_centre: "CC4711", unit: A').replace(
        "answers: {Country: SE}}",
        "custom_archive_date: '2030-01-05T00:00:00Z', answers: {Country: SE, Nickname: Bobo}}",
    )
    seed = seed.replace(
        "people:", "people:\n  - {email: dee@acme.example, custom_archive_date: '2030-01-05T00:00:00Z'}", 1
    )
    project = Project(tmp_path, seed.replace("groups:", "  - {name: Nickname, type: TEXT}\ngroups:", 1), OPTIONS)
    project.write(
        "users:\n"
        "  - {email: anna.berg@acme.example, metadata: {cost_centre: CC1}}\n"
        "  - {email: bo.ek@acme.example, answers: {Country: NO}}\n"
        "  - {email: dee@acme.example, custom_archive_date: null}\n"
    )
    assert lmsconf(project.root, "snapshot", "red.json", "--redact").code == 0
    rows = json.loads((project.root / "red.json").read_text())["user"]
    [anna] = [row for row in rows if "metadata" in row]
    assert anna["metadata"] == [["cost_centre", "CC4711"]]
    [bo] = [row for row in rows if "answers" in row]
    assert [one["field"] for one in bo["answers"]] == ["Country"]
    [dee] = [row for row in rows if "archive_date" in row]
    assert dee["archive_date"] == 1_893_801_600_000
    assert [row.keys() - {"id", "email", "archived"} for row in (anna, bo, dee)] == [
        {"metadata"},
        {"answers"},
        {"archive_date"},
    ]


def test_assignments_to_people_unknown_to_a_redacted_snapshot_are_not_compared(project: Project) -> None:
    """A warning names the person of each, declared or under `absent`; the assignments to groups are planned."""
    assert lmsconf(project.root, "snapshot", "red.json", "--redact").code == 0
    project.write(
        "content_targets: [{content: Old intro, assign_to: [{user: anna.berg@acme.example}, {group: Empty}]}]\n"
        "absent:\n  content_targets:\n"
        "    - {content: GDPR basics, assign_to: [{user: bo.ek@acme.example}, {smart_group: Nordics}]}\n"
    )
    ran = lmsconf(project.root, "plan", "--snapshot", "red.json", "--format", "json", code=0)
    problems: Any = ran.document["problems"]
    assert sorted(one["address"] for one in problems if one["code"] == "snapshot/not-compared") == [
        "content_target/GDPR basics -> user/bo.ek@acme.example",
        "content_target/Old intro -> user/anna.berg@acme.example",
    ]
    changes: Any = ran.document["changes"]
    assert sorted((one["action"], one["address"]) for one in changes) == [
        ("create", "content_target/Old intro -> group/Empty"),
        ("delete", "content_target/GDPR basics -> smart_group/Nordics"),
    ]


def test_a_plan_against_a_redacted_snapshot_compares_only_whom_it_knows(project: Project) -> None:
    """Who is new to the manifests is a warning, and the rest of the list is compared, with numbers for unnamed people.

    Number 1 is the administrator, number 2 the member that the manifests did not name.
    """
    project.write("groups: [{name: Coaches, members: [bo.ek@acme.example]}]")
    assert lmsconf(project.root, "snapshot", "red.json", "--redact").code == 0
    project.write("groups: [{name: Coaches, members: [bo.ek@acme.example, anna.berg@acme.example]}]")
    ran = lmsconf(project.root, "plan", "--snapshot", "red.json", "--no-effects", code=0)
    changed = ran.out.partition("group/Coaches will be changed")[2]
    assert "+ bo.ek@acme.example\n          - unnamed person 2\n" in changed
    assert "warning: members: anna.berg@acme.example is not compared: " in changed


def test_an_offline_plan_needs_no_credential_and_says_how_old_it_is(project: Project) -> None:
    """It tells when the snapshot was taken and what it holds; of an old one, a part, another workspace it warns."""
    lmsconf(project.root, "snapshot", "all.json")
    project.write("groups: [{name: Coaches}]")
    assert "the snapshot was taken" in lmsconf(project.root, "plan", "--snapshot", "all.json").out
    held = json.loads((project.root / "all.json").read_text())
    held["taken_at"] = "2024-01-01T00:00:00Z"
    held["incomplete"] = {"content": "page 2 failed"}
    (project.root / "old.json").write_text(json.dumps(held))
    (project.root / "lmsconf.yaml").write_text(
        'workspaces: {live: {url: "https://lms.example/api", token: {env: LMSCONF_NO_SUCH_TOKEN}}}\n'
    )
    ran = lmsconf(project.root, "plan", "--snapshot", "old.json", "--format", "json", code=0)
    codes = {problem["code"]: problem["severity"] for problem in ran.document["problems"]}
    assert codes["snapshot/age"] == "warning"
    assert codes["snapshot/incomplete"] == "warning"
    assert codes["snapshot/other-workspace"] == "warning"


SPOKEN = "users: [{email: bo.ek@acme.example, applications: [learn], language: sv}]\n"


def test_a_snapshot_holds_what_the_manifests_say_of_people(project: Project) -> None:
    """Language and applications of those who are declared with them: offline, the plan is the same."""
    project.write(SPOKEN)
    assert "language" not in lmsconf(project.root, "snapshot", "all.json", code=0).err
    live = lmsconf(project.root, "plan", "--format", "json").document
    kept = lmsconf(project.root, "plan", "--snapshot", "all.json", "--format", "json").document
    assert kept["calls"] == live["calls"] != []
    held = json.loads((project.root / "all.json").read_text())["user"]
    assert [row["email"] for row in held if row.get("applications") is not None] == ["bo.ek@acme.example"]


@pytest.mark.parametrize("manifests", [None, "", "groups: [{nam: Coaches}]"])
def test_a_snapshot_needs_no_manifests(project: Project, manifests: str | None) -> None:
    """Without any, or with broken ones, it is taken all the same, and what it lacks is told."""
    if manifests is None:
        (project.root / "manifests").rmdir()
    else:
        project.write(manifests)
    ran = lmsconf(project.root, "snapshot", "all.json", code=0)
    assert "the snapshot has no languages and applications of people" in ran.err
    assert (project.root / "all.json").exists()


@pytest.mark.parametrize(("people", "told"), [(1, "1 person"), (2, "2 people")])
def test_what_no_list_tells_of_people_is_told(tmp_path: Path, people: int, told: str) -> None:
    """An export of people has no language and no applications, and says so; one without people has nothing to say."""
    it = Project(tmp_path, "people:\n" + "".join(f"  - {{email: p{n}@acme.example}}\n" for n in range(people)))
    ran = lmsconf(it.root, "export", "people", "--kind", "users")
    assert f"language and applications of {told} are left out" in ran.err
    assert "are left out" not in lmsconf(it.root, "export", "groups", "--kind", "groups").err
