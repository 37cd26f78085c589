"""Tables and folders of a fleet that were made by somebody else: nothing is read, written or sent elsewhere."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ci.engines import contents
from fleet.fleet_project import PROJECT, TABLE, Fleet
from flow.shell import Ran
from json_schemas import schema_validator

from lmsconf.support.files import LARGEST

KEY = "k" * 32


def refused(fleet: Fleet, code: int, *arguments: str, out: str = "out") -> str:
    """What an apply says that ends with this exit code, and applies nothing."""
    ran = fleet.apply(*arguments, out=out, code=code)
    assert not list((fleet.root / out).glob("*.report.json"))
    return ran.out + ran.err


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    ("project", "table", "message"),
    [
        ("", f"{TABLE}Alpha,sandbox:other.db,region=eu\n", "would be the same on a file system that ignores case"),
        ("manifests: [manifests, ../outside]\n", TABLE, "../outside is outside the project"),
        ("manifests: [/etc]\n", TABLE, "/etc is outside the project"),
        ('manifests: ["$(region)"]\n', 'name,url,labels\na,sandbox:,"region=../.."\n', "labels.region cannot be"),
        ("", "name,url\n=cmd|x,sandbox:\n", "cannot be the name of a workspace"),
        ("", f"name,url\n{'n' * 100_000},sandbox:\n", "cannot be the name of a workspace"),
        ("", "name,url\nx\x1b[31m,sandbox:\n", "workspaces.csv"),
        ("", "name,url\n" + "".join(f"w{n},sandbox:\n" for n in range(10_001)), "at most 10,000 are read"),
        ("", "name,url\nx,sandbox:../../x.db\n", "../../x.db is outside the project"),
    ],
)  # fmt: skip
def test_a_hostile_table_is_refused(fleet: Fleet, project: str, table: str, message: str) -> None:
    """Names that are no file's, paths out of the project, more rows than are read: nothing is begun."""
    fleet.write("lmsconf.yaml", f"workspaces: {{file: workspaces.csv}}\n{project}")
    fleet.write("workspaces.csv", table)
    _, out, err = fleet.command("plan", "--out", fleet.out, code=1)
    assert message in out + err
    assert "\x1b" not in out + err
    assert not (fleet.out / "a.plan.json").exists()


@pytest.mark.sampled(daily=False)
def test_an_index_of_another_project_is_refused(fleet: Fleet) -> None:
    """A workspace that the project does not have, one that is there twice, a file outside, and what are no plans."""
    index = fleet.plan()
    first = index["workspaces"][0]
    wrong = [
        ({"workspaces": [{**first, "workspace": "omega", "file": "omega.plan.json"}]}, "no such workspace"),
        ({"workspaces": [{**first, "file": None}]}, "does not name the plan file of the workspace alpha"),
        ({"workspaces": [{**first, "file": "../lmsconf.yaml"}]}, "names a file that is not of this fleet"),
        ({"workspaces": [{**first, "digest": None}]}, "the workspace alpha, and its digest"),
        ({"workspaces": [first, first]}, "names the workspace alpha twice"),
        ({"action": "drift"}, "the results of lmsconf fleet drift, not plans"),
    ]
    for changes, message in wrong:
        (fleet.out / "index.json").write_text(json.dumps({**index, **changes}))
        assert message in refused(fleet, 1)
    assert not (fleet.out / "apply.json").exists()
    for name in ("index.json", "apply.json"):
        (fleet.out / name).write_text(json.dumps(index))
    assert "has the results of lmsconf fleet plan, not of an apply" in refused(fleet, 1)


@pytest.mark.sampled(day=1)
def test_a_guard_that_an_index_does_not_count_is_not_known(fleet: Fleet) -> None:
    """A total without the plan of a workspace is no total: it stops as one that is not known, and names it."""
    fleet.write("lmsconf.yaml", f"{PROJECT}fleet_guards: {{people: 5}}\n")
    index = fleet.plan()
    first, *others = index["workspaces"]
    (fleet.out / "index.json").write_text(json.dumps({**index, "workspaces": [{**first, "guards": {}}, *others]}))
    message = "in all 3 plans together, the total is not known without the number of alpha, and the limit is 5"
    assert f"guard people of the fleet: {message}" in refused(fleet, 4)


@pytest.mark.sampled(daily=False)
def test_a_signed_index_holds_guards_waves_and_digests(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """With LMSCONF_PLAN_KEY, an index that was edited or not signed is refused, and so is the plan of another."""
    monkeypatch.setenv("LMSCONF_PLAN_KEY", "k" * 32)
    index = fleet.plan()
    fleet.show()
    first, second, _ = index["workspaces"]
    other = {**first, "digest": second["digest"]}
    unsigned = {key: value for key, value in index.items() if key != "hmac"}
    for document, message in (
        ({**index, "workspaces": [{**first, "guards": {}}]}, "changed after it was signed"),
        ({**index, "workspaces": [other]}, "changed after it was signed"),
        (unsigned, "is not signed"),
    ):
        (fleet.out / "index.json").write_text(json.dumps(document))
        assert message in refused(fleet, 3)
    monkeypatch.delenv("LMSCONF_PLAN_KEY")
    (fleet.out / "index.json").write_text(json.dumps({**unsigned, "workspaces": [other]}))
    (fleet.out / "alpha.plan.json").write_text((fleet.out / "beta.plan.json").read_text())
    assert "the plan was made for workspace beta" in refused(fleet, 3)


@pytest.mark.sampled(daily=False)
def test_a_selection_keeps_what_was_applied_elsewhere(fleet: Fleet) -> None:
    """The results of workspaces that are not selected stay in the index, so that no plan is applied twice.

    A workspace that was added after the plan is not reported as applied.
    """
    fleet.plan()
    fleet.write("workspaces.csv", f"{TABLE}delta,sandbox:delta.db,region=north\n")
    assert "the folder has no plan of a workspace with these labels" in refused(fleet, 64, "--select", "region=north")
    assert not (fleet.out / "apply.json").exists()
    for selector, known in (("ring=canary", ["alpha"]), ("region=us", ["alpha", "gamma"])):
        fleet.apply("--select", selector, code=0)
        assert list(fleet.exits()) == known


@pytest.mark.sampled(daily=False)
def test_a_note_is_that_of_its_own_workspace(fleet: Fleet) -> None:
    """A process works on one workspace after the other; what it notes about one is not repeated for the next."""
    fleet.write("lmsconf.yaml", f"{PROJECT}allow: [{{deletes: 3, until: 2020-01-01, reason: once}}]\n")
    fleet.plan()
    for name in ("alpha", "beta", "gamma"):
        codes = [one["code"] for one in fleet.index(name=f"{name}.plan.json")["problems"]]
        assert codes.count("project/consent-expired") == 1, name


@pytest.mark.sampled(daily=False)
def test_allowed_hosts_bind_workers(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token goes to no host that LMSCONF_ALLOWED_HOSTS does not list, whichever process would send it."""
    monkeypatch.setenv("LMSCONF_ALLOWED_HOSTS", "lms.example")
    monkeypatch.setenv("LMSCONF_T", "token")
    fleet.write("lmsconf.yaml", "workspaces: {a: {url: 'https://elsewhere.invalid', token: {env: LMSCONF_T}}}\n")
    fleet.write("manifests/a.yaml", "groups: [{name: A}]\n")
    assert "elsewhere.invalid must not receive the token" in fleet.command("plan", code=1).out


DAMAGES: tuple[tuple[Callable[[Path], object], str], ...] = (
    (os.mkfifo, "is a pipe or a device, not a file"),
    (lambda path: path.symlink_to("/dev/zero"), "is a pipe or a device, not a file"),
    (Path.mkdir, "cannot be read: Is a directory"),
    (lambda path: (path.touch(), os.truncate(path, LARGEST + 1)), "is larger than 256 MiB"),
    (lambda path: path.write_text("{"), "the file is not a complete document of lmsconf"),
)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("name", ["index.json", "alpha.plan.json"])
def test_a_file_that_is_not_one_of_lmsconf_is_named(fleet: Fleet, name: str) -> None:
    """A pipe, a device, a folder or a huge file in the folder of a fleet is an error with its path, and is not read."""
    fleet.plan()
    for number, (damage, message) in enumerate(DAMAGES):
        out = fleet.root / str(number)
        shutil.copytree(fleet.out, out)
        file = out / name
        file.unlink()
        damage(file)
        code = 3 if "complete" in message else 1
        for _, said, err in (fleet.run("fleet", "show", out, code=code), fleet.apply(out=out.name, code=code)):
            assert str(file) in said + err
            assert message in said + err


@pytest.mark.sampled(daily=False)
def test_nothing_is_applied_where_the_results_cannot_be_saved(fleet: Fleet) -> None:
    """Where apply.json cannot be written, or is a pipe, no workspace is changed; the error names the file."""
    fleet.plan()
    results = fleet.out / "apply.json"
    results.mkdir()
    assert f"{results} cannot be written, so the results cannot be saved" in refused(fleet, 1)
    results.rmdir()
    os.mkfifo(results)
    assert f"{results} is a pipe or a device, not a file" in refused(fleet, 1)


@pytest.mark.sampled(daily=False)
def test_a_result_that_cannot_be_saved_is_that_of_one_workspace(fleet: Fleet) -> None:
    """A file that cannot be written is the error of its workspace: no process ends, and the next one is applied."""
    fleet.plan()
    report = fleet.out / "alpha.report.json"
    report.mkdir()
    (fleet.out / "alpha.problems.json").mkdir()
    text = fleet.apply(code=1).out
    assert f"error: {report} cannot be written: Is a directory [error]\n" in text
    assert "3 workspaces: 2 applied or without changes (4 API calls), 1 failed." in text
    report.rmdir()
    assert fleet.apply() == (0, "3 workspaces: 3 applied or without changes (6 API calls).\n", "")


# A fleet in parts: `lmsconf fleet plan --shard`, what puts the parts together, and documents for engines.


def collect(fleet: Fleet, *folders: str, code: int | None = None) -> Ran:
    """Put folders together into the folder `all`. code: what that has to exit with."""
    named = [fleet.root / name for name in folders]
    return fleet.run("fleet", "collect", *named, "--out", fleet.root / "all", code=code)


@pytest.mark.sampled(daily=False)
def test_shards_put_together_are_the_whole(fleet: Fleet) -> None:
    """`collect` gives each file of a run without shards, but for the time, also of shards without a workspace."""
    fleet.plan()
    names = [f"s{number}" for number in range(1, 6)]
    for number, name in enumerate(names, 1):
        index = fleet.plan("--shard", f"{number}/5", out=name)
    assert (index["workspaces"], index["shard"]["number"], index["shard"]["of"]) == ([], 5, 5)
    schema_validator("fleet").validate(index)
    assert fleet.show(out="s5") == "0 workspaces of shard 5/5: 0 with changes, 0 without.\n"
    assert collect(fleet, *names, code=0).out.startswith("3 workspaces: 3 with changes, 0 without.\n")
    assert contents(fleet.root / "all") == contents(fleet.out)


@pytest.mark.sampled(daily=False)
def test_a_missing_shard_is_not_overlooked(fleet: Fleet) -> None:
    """What is collected is all shards of one selection, each once, or it is refused; a shard alone is not applied."""
    for part, folder in (("1/3", "a"), ("2/3", "b"), ("3/3", "c"), ("2/2", "half")):
        fleet.plan("--shard", part, out=folder)
    fleet.plan("--shard", "3/3", "--select", "region=eu", out="other")
    root = fleet.root
    shutil.copytree(root / "a", root / "copy")
    wrong = {
        ("a",): "2 of 3 shards missing: 2/3, 3/3",
        ("a", "c"): "1 of 3 shards missing: 2/3",
        ("a", "a"): "a folder is named twice",
        ("a", "b", "c", "copy"): f"shard 1/3 is in two folders: {root}/a and {root}/copy",
        ("a", "half"): f"{root}/a has shard 1/3, and {root}/half has shard 2/2",
        ("a", "b", "other"): "the shards are parts of different selections of workspaces",
    }
    for folders, message in wrong.items():
        assert message in collect(fleet, *folders, code=1).err
        assert not (root / "all").exists()
    assert f"{root}/a has only shard 1/3" in refused(fleet, 1, out="a")
    assert not (root / "a" / "apply.json").exists()


@pytest.mark.sampled(daily=False)
def test_a_shard_that_cannot_be_is_refused(fleet: Fleet) -> None:
    """Numbers in a tampered index are refused before anything is counted up to them."""
    index = dict(fleet.plan("--shard", "1/1", out="a"))
    for number, of in ((1, 10**18), (0, 1), (2, 1), (-1, -1), (1, 10_000)):
        index["shard"] |= {"number": number, "of": of}
        (fleet.root / "a" / "index.json").write_text(json.dumps(index))
        assert f"there is no shard {number}/{of}" in collect(fleet, "a", code=1).err


@pytest.mark.sampled(daily=False)
def test_only_files_are_collected(fleet: Fleet) -> None:
    """A link out of a shard's folder is not followed, and a plan that is missing is an error."""
    fleet.plan("--shard", "1/1", out="a")
    other, plan = fleet.root / "private", fleet.root / "a" / "alpha.plan.json"
    other.write_text("private")
    other.chmod(0o644)
    plan.unlink()
    for linked in (True, False):
        if linked:
            plan.symlink_to(other)
        _, out, err = collect(fleet, "a", code=1)
        assert f"{plan} is missing, or not a file" in err
        assert "private" not in (out + err).replace(str(plan), "")
        assert other.stat().st_mode & 0o777 == 0o644
        assert not (fleet.root / "all").exists()
        plan.unlink(missing_ok=True)


@pytest.mark.sampled(daily=False)
def test_parts_by_labels_can_be_put_together(fleet: Fleet) -> None:
    """Folders without `--shard` are put together as they are, unless one workspace is in two, or one is a shard."""
    for labels, folder in (("ring=canary", "a"), ("ring!=canary", "b"), ("region=eu", "c")):
        fleet.plan("--select", labels, out=folder)
    fleet.plan("--shard", "3/3", out="d")
    assert "the workspace alpha is in two folders" in collect(fleet, "a", "c", code=1).err
    err = collect(fleet, "a", "d", code=1).err
    assert f"{fleet.root}/a has all workspaces, and {fleet.root}/d has shard 3/3" in err
    assert collect(fleet, "a", "b", code=0).out.startswith("3 workspaces: 3 with changes, 0 without.\n")


@pytest.mark.sampled(daily=False)
def test_a_failure_in_a_shard_is_a_failure_of_the_whole(fleet: Fleet) -> None:
    """The shard and what is collected exit with 1, and the plans of the others are there to apply."""
    epsilon = "{url: 'https://lms.invalid', token: {env: LMSCONF_NOT_SET}, labels: {region: eu}}"
    fleet.write("lmsconf.yaml", f"workspaces: {{file: workspaces.csv, epsilon: {epsilon}}}\nmax_failures: 1\n")
    fleet.plan("--shard", "1/2", out="s1", code=1)
    fleet.plan("--shard", "2/2", out="s2")
    out = collect(fleet, "s1", "s2", code=1).out
    assert out.startswith("4 workspaces: 3 with changes, 0 without, 1 failed.\n")
    out = fleet.apply(out="all", code=1).out
    assert out.startswith("4 workspaces: 3 applied or without changes (6 API calls), 1 failed.\n")


def document(fleet: Fleet, format: str, *arguments: str) -> Any:
    """The document for an engine."""
    return json.loads(fleet.run("fleet", "matrix", "--format", format, *arguments, code=0).out)


def test_a_matrix_has_each_shard_and_all_that_was_asked_for(fleet: Fleet) -> None:
    """GitHub's matrix has selector, rate and image beside the shards; the others have them in their jobs."""
    assert document(fleet, "github", "--shards", "2") == {"shard": ["1/2", "2/2"]}
    options = ("--shards", "3", "--image", "lmsconf@sha256:0", "--select", "ring=main,!old", "--max-rate", "12")
    shards = ["1/3", "2/3", "3/3"]
    expected = {"shard": shards, "select": ["ring=main,!old"], "max-rate": ["4"], "image": ["lmsconf@sha256:0"]}
    assert document(fleet, "github", *options) == expected
    job = document(fleet, "gitlab", *options)["lmsconf-fleet-plan"]
    assert (job["parallel"]["matrix"], job["image"]) == ([{"SHARD": shards}], "lmsconf@sha256:0")
    workflow = document(fleet, "argo", *options)["spec"]
    assert workflow["templates"][0]["steps"][0][0]["withItems"] == shards
    spec = document(fleet, "kubernetes", *options)["spec"]
    assert (spec["completions"], spec["completionMode"]) == (3, "Indexed")
    for command in (*job["script"], json.dumps(workflow), json.dumps(spec)):
        assert "lmsconf fleet plan --select 'ring=main,!old' --max-rate 4 --shard" in command
