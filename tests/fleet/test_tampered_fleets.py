"""Tables and folders of a fleet that were made by somebody else: nothing is read, written or sent elsewhere."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fleet.fleet_project import PROJECT, TABLE, Fleet
from flow.shell import Ran
from json_schemas import schema_validator

from lmsconf.support.files import LARGEST

KEY = "k" * 32


def apply(fleet: Fleet, *arguments: str, folder: str = "out", code: int | None = None) -> tuple[int, str]:
    """Apply the plans in a folder; return the exit code, and stdout with stderr. code: what it has to exit with."""
    words = ("fleet", "apply", str(fleet.root / folder), "--auto-approve", "--processes", "1", *arguments)
    ended, out, err = fleet.run(*words, code=code)
    return ended, out + err


@pytest.mark.sampled
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
    _, out, err = fleet.run("fleet", "plan", "--out", str(fleet.root / "out"), "--processes", "1", code=1)
    assert message in out + err
    assert "\x1b" not in out + err
    assert not (fleet.root / "out" / "a.plan.json").exists()


@pytest.mark.sampled
def test_an_index_of_another_project_is_refused(fleet: Fleet) -> None:
    """A workspace that the project does not have, one that is there twice, and results that are no plans."""
    index = fleet.plan()
    file = fleet.root / "out" / "index.json"
    first = index["workspaces"][0]
    wrong = [
        ({**index, "workspaces": [{**first, "workspace": "omega", "file": "omega.plan.json"}]}, "no such workspace"),
        ({**index, "workspaces": [{**first, "file": None}]}, "does not name the plan file of the workspace alpha"),
        ({**index, "workspaces": [{**first, "digest": None}]}, "the workspace alpha, and its digest"),
        ({**index, "workspaces": [first, first]}, "names the workspace alpha twice"),
        ({**index, "action": "drift"}, "the results of lmsconf fleet drift, not plans"),
    ]
    for document, message in wrong:
        file.write_text(json.dumps(document))
        code, text = apply(fleet)
        assert (code, message in text) == (1, True), text
    assert not (fleet.root / "out" / "apply.json").exists()


@pytest.mark.sampled
def test_a_guard_that_an_index_does_not_count_is_not_known(fleet: Fleet) -> None:
    """A total without the plan of a workspace is no total: it stops as one that is not known, and names it."""
    fleet.write("lmsconf.yaml", "workspaces: {file: workspaces.csv}\nfleet_guards: {people: 5}\n")
    index = fleet.plan()
    first, *others = index["workspaces"]
    edited = {**index, "workspaces": [{**first, "guards": {}}, *others]}
    (fleet.root / "out" / "index.json").write_text(json.dumps(edited))
    code, text = apply(fleet)
    message = "in all 3 plans together, the total is not known without the number of alpha, and the limit is 5"
    assert (code, f"guard people of the fleet: {message}" in text) == (4, True), text


@pytest.mark.sampled
def test_the_index_of_plans_is_not_one_of_an_apply(fleet: Fleet) -> None:
    """A copy of index.json as apply.json does not make plans look applied."""
    fleet.plan()
    (fleet.root / "out" / "apply.json").write_text((fleet.root / "out" / "index.json").read_text())
    code, text = apply(fleet)
    assert (code, "has the results of lmsconf fleet plan, not of an apply" in text) == (1, True), text


@pytest.mark.sampled
def test_a_signed_index_holds_guards_waves_and_digests(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """With LMSCONF_PLAN_KEY, an index that was edited or not signed is refused, and so is the plan of another."""
    monkeypatch.setenv("LMSCONF_PLAN_KEY", KEY)
    index = fleet.plan()
    out = fleet.root / "out"
    assert fleet.run("fleet", "show", str(out))[0] == 0
    other = {**index["workspaces"][0], "digest": index["workspaces"][1]["digest"]}
    unsigned = {key: value for key, value in index.items() if key != "hmac"}
    for document, message in (
        ({**index, "workspaces": [{**index["workspaces"][0], "guards": {}}]}, "changed after it was signed"),
        ({**index, "workspaces": [other]}, "changed after it was signed"),
        (unsigned, "is not signed"),
    ):
        (out / "index.json").write_text(json.dumps(document))
        code, text = apply(fleet)
        assert (code, message in text) == (3, True), text
    monkeypatch.delenv("LMSCONF_PLAN_KEY")
    (out / "index.json").write_text(json.dumps({**unsigned, "workspaces": [other]}))
    (out / "alpha.plan.json").write_text((out / "beta.plan.json").read_text())
    code, text = apply(fleet)
    assert (code, "the plan was made for workspace beta" in text) == (3, True), text


@pytest.mark.sampled
def test_a_selection_keeps_what_was_applied_elsewhere(fleet: Fleet) -> None:
    """The results of workspaces that are not selected stay in the index, so that no plan is applied twice."""
    fleet.plan()
    for selector, known in (("ring=canary", ["alpha"]), ("region=us", ["alpha", "gamma"])):
        code, text = apply(fleet, "--select", selector)
        assert code == 0, text
        assert [one["workspace"] for one in fleet.index("out", "apply.json")["workspaces"]] == known


@pytest.mark.sampled
def test_a_selection_without_a_plan_is_a_wrong_command_line(fleet: Fleet) -> None:
    """A workspace that was added after the plan is not reported as applied."""
    fleet.plan()
    fleet.write("workspaces.csv", f"{TABLE}delta,sandbox:delta.db,region=us\n")
    code, text = apply(fleet, "--select", "workspace=delta")
    assert (code, "the folder has no plan of a workspace with these labels" in text) == (64, True), text
    assert not (fleet.root / "out" / "apply.json").exists()


@pytest.mark.sampled
def test_a_note_is_that_of_its_own_workspace(fleet: Fleet) -> None:
    """A process works on one workspace after the other; what it notes about one is not repeated for the next."""
    fleet.write(
        "lmsconf.yaml",
        "workspaces: {file: workspaces.csv}\nallow: [{deletes: 3, until: 2020-01-01, reason: once}]\n",
    )
    fleet.plan()
    for name in ("alpha", "beta", "gamma"):
        plan = json.loads((fleet.root / "out" / f"{name}.plan.json").read_text())
        assert [one["code"] for one in plan["problems"]].count("project/consent-expired") == 1, name


@pytest.mark.sampled
def test_allowed_hosts_bind_workers(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token goes to no host that LMSCONF_ALLOWED_HOSTS does not list, whichever process would send it."""
    monkeypatch.setenv("LMSCONF_ALLOWED_HOSTS", "lms.example")
    monkeypatch.setenv("LMSCONF_T", "token")
    fleet.write("lmsconf.yaml", "workspaces: {a: {url: 'https://elsewhere.invalid', token: {env: LMSCONF_T}}}\n")
    fleet.write("manifests/a.yaml", "groups: [{name: A}]\n")
    out = fleet.run("fleet", "plan", "--processes", "1", code=1).out
    assert "elsewhere.invalid must not receive the token" in out


DAMAGES: tuple[tuple[Callable[[Path], object], str], ...] = (
    (os.mkfifo, "is a pipe or a device, not a file"),
    (lambda path: path.symlink_to("/dev/zero"), "is a pipe or a device, not a file"),
    (Path.mkdir, "cannot be read: Is a directory"),
    (lambda path: (path.touch(), os.truncate(path, LARGEST + 1)), "is larger than 256 MiB"),
    (lambda path: path.write_text("{"), "the file is not a complete document of lmsconf"),
)


@pytest.mark.sampled
@pytest.mark.parametrize("name", ["index.json", "alpha.plan.json"])
def test_a_file_that_is_not_one_of_lmsconf_is_named(fleet: Fleet, name: str) -> None:
    """A pipe, a device, a folder or a huge file in the folder of a fleet is an error with its path, and is not read."""
    fleet.plan()
    for number, (damage, message) in enumerate(DAMAGES):
        out = fleet.root / str(number)
        shutil.copytree(fleet.root / "out", out)
        file = out / name
        file.unlink()
        damage(file)
        for code, text in (fleet.run("fleet", "show", str(out))[::2], apply(fleet, folder=out.name)):
            assert (code, f"{file}" in text, message in text) == (3 if "complete" in message else 1, True, True), text


@pytest.mark.sampled
def test_nothing_is_applied_where_the_results_cannot_be_saved(fleet: Fleet) -> None:
    """Where apply.json cannot be written, or is a pipe, no workspace is changed; the error names the file."""
    fleet.plan()
    results = fleet.root / "out" / "apply.json"
    results.mkdir()
    code, text = apply(fleet)
    assert (code, f"{results} cannot be written, so the results cannot be saved" in text) == (1, True), text
    results.rmdir()
    os.mkfifo(results)
    code, text = apply(fleet)
    assert (code, f"{results} is a pipe or a device, not a file" in text) == (1, True), text
    assert not list(fleet.root.glob("out/*.report.json"))


@pytest.mark.sampled
def test_a_result_that_cannot_be_saved_is_that_of_one_workspace(fleet: Fleet) -> None:
    """A file that cannot be written is the error of its workspace: no process ends, and the next one is applied."""
    fleet.plan()
    for name in ("report", "problems"):
        (fleet.root / "out" / f"alpha.{name}.json").mkdir()
    code, text = apply(fleet)
    assert code == 1
    assert f"error: {fleet.root}/out/alpha.report.json cannot be written: Is a directory [error]\n" in text
    assert "3 workspaces: 2 applied or without changes (4 API calls), 1 failed." in text
    (fleet.root / "out" / "alpha.report.json").rmdir()
    assert apply(fleet) == (0, "3 workspaces: 3 applied or without changes (6 API calls).\n")


# A fleet in parts: `lmsconf fleet plan --shard`, what puts the parts together, and documents for engines.


def shard(fleet: Fleet, part: str, folder: str, *arguments: str) -> int:
    """Plan one part of the fleet; return the exit code."""
    options = ("--shard", part, "--out", str(fleet.root / folder), "--processes", "1")
    return fleet.run("fleet", "plan", *options, *arguments)[0]


def collect(fleet: Fleet, *folders: str, code: int | None = None) -> Ran:
    """Put folders together into the folder `all`. code: what that has to exit with."""
    named = [str(fleet.root / name) for name in folders]
    return fleet.run("fleet", "collect", *named, "--out", str(fleet.root / "all"), code=code)


def contents(folder: Path) -> dict[str, str]:
    """Each file of a folder, without times and the seal over them."""
    times = re.compile(r'"(?:created_at|expires_at|seal)": ?"[^"]+"')
    return {path.name: times.sub("", path.read_text()) for path in folder.iterdir()}


@pytest.mark.sampled
def test_shards_put_together_are_the_whole(fleet: Fleet) -> None:
    """`collect` gives each file of a run without shards, but for the time, also of shards without a workspace."""
    fleet.plan()
    names = []
    for number in range(1, 6):
        names.append(f"s{number}")
        assert shard(fleet, f"{number}/5", names[-1]) == 0
    index = fleet.index("s5")
    assert (index["workspaces"], index["shard"]["number"], index["shard"]["of"]) == ([], 5, 5)
    schema_validator("fleet").validate(index)
    _, out, _ = fleet.run("fleet", "show", str(fleet.root / "s5"))
    assert out == "0 workspaces of shard 5/5: 0 with changes, 0 without.\n"
    assert collect(fleet, *names, code=0).out.startswith("3 workspaces: 3 with changes, 0 without.\n")
    assert contents(fleet.root / "all") == contents(fleet.root / "out")


@pytest.mark.sampled
def test_a_missing_shard_is_not_overlooked(fleet: Fleet) -> None:
    """What is collected is all shards of one selection, each once, or it is refused; a shard alone is not applied."""
    for part, folder in (("1/3", "a"), ("2/3", "b"), ("3/3", "c"), ("2/2", "half")):
        assert shard(fleet, part, folder) == 0
    assert shard(fleet, "3/3", "other", "--select", "region=eu") == 0
    shutil.copytree(fleet.root / "a", fleet.root / "copy")
    root = fleet.root
    refused = {
        ("a",): "2 of 3 shards missing: 2/3, 3/3",
        ("a", "c"): "1 of 3 shards missing: 2/3",
        ("a", "a"): "a folder is named twice",
        ("a", "b", "c", "copy"): f"shard 1/3 is in two folders: {root}/a and {root}/copy",
        ("a", "half"): f"{root}/a has shard 1/3, and {root}/half has shard 2/2",
        ("a", "b", "other"): "the shards are parts of different selections of workspaces",
    }
    for folders, message in refused.items():
        assert message in collect(fleet, *folders, code=1).err
        assert not (root / "all").exists()
    err = fleet.run("fleet", "apply", str(root / "a"), "--auto-approve", "--processes", "1", code=1).err
    assert f"{root}/a has only shard 1/3" in err
    assert not (root / "a" / "apply.json").exists()


@pytest.mark.sampled
def test_a_shard_that_cannot_be_is_refused(fleet: Fleet) -> None:
    """Numbers in a tampered index are refused before anything is counted up to them."""
    assert shard(fleet, "1/1", "a") == 0
    index = fleet.index("a")
    for number, of in ((1, 10**18), (0, 1), (2, 1), (-1, -1), (1, 10_000)):
        index["shard"] |= {"number": number, "of": of}
        (fleet.root / "a" / "index.json").write_text(json.dumps(index))
        assert f"there is no shard {number}/{of}" in collect(fleet, "a", code=1).err


@pytest.mark.sampled
def test_only_files_are_collected(fleet: Fleet) -> None:
    """A link out of a shard's folder is not followed, and a plan that is missing is an error."""
    assert shard(fleet, "1/1", "a") == 0
    other, plan = fleet.root / "private", fleet.root / "a" / "alpha.plan.json"
    other.write_text("private")
    other.chmod(0o644)
    plan.unlink()
    for linked in (True, False):
        if linked:
            plan.symlink_to(other)
        code, out, err = collect(fleet, "a")
        assert (code, f"{plan} is missing, or not a file" in err) == (1, True), err
        assert "private" not in (out + err).replace(str(plan), "")
        assert other.stat().st_mode & 0o777 == 0o644
        assert not (fleet.root / "all").exists()
        plan.unlink(missing_ok=True)


@pytest.mark.sampled
def test_parts_by_labels_can_be_put_together(fleet: Fleet) -> None:
    """Folders without `--shard` are put together as they are, unless one workspace is in two, or one is a shard."""
    for labels, folder in (("ring=canary", "a"), ("ring!=canary", "b"), ("region=eu", "c")):
        arguments = ("--select", labels, "--out", str(fleet.root / folder), "--processes", "1")
        assert fleet.run("fleet", "plan", *arguments)[0] == 0
    assert shard(fleet, "3/3", "d") == 0
    assert "the workspace alpha is in two folders" in collect(fleet, "a", "c", code=1).err
    err = collect(fleet, "a", "d", code=1).err
    assert f"{fleet.root}/a has all workspaces, and {fleet.root}/d has shard 3/3" in err
    code, out, _ = collect(fleet, "a", "b")
    assert (code, out.partition("\n")[0]) == (0, "3 workspaces: 3 with changes, 0 without.")


@pytest.mark.sampled
def test_a_failure_in_a_shard_is_a_failure_of_the_whole(fleet: Fleet) -> None:
    """The shard and what is collected exit with 1, and the plans of the others are there to apply."""
    epsilon = "{url: 'https://lms.invalid', token: {env: LMSCONF_NOT_SET}, labels: {region: eu}}"
    fleet.write("lmsconf.yaml", f"workspaces: {{file: workspaces.csv, epsilon: {epsilon}}}\nmax_failures: 1\n")
    assert [shard(fleet, f"{number}/2", f"s{number}") for number in (1, 2)] == [1, 0]
    code, out, _ = collect(fleet, "s1", "s2")
    assert (code, out.partition("\n")[0]) == (1, "4 workspaces: 3 with changes, 0 without, 1 failed.")
    code, out, _ = fleet.run("fleet", "apply", str(fleet.root / "all"), "--auto-approve", "--processes", "1")
    assert (code, out.partition("\n")[0]) == (1, "4 workspaces: 3 applied or without changes (6 API calls), 1 failed.")


def document(fleet: Fleet, format: str, *arguments: str) -> Any:
    """The document for an engine."""
    out = fleet.run("fleet", "matrix", "--format", format, *arguments, code=0).out
    return json.loads(out)


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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("argo", "--shards", "3"), "--format argo needs --image"),
        (("kubernetes", "--shards", "3"), "--format kubernetes needs --image"),
        (("gitlab", "--shards", "201"), "at most 200 jobs of one matrix [usage]\n  Pass --shards 200.\n"),
        (("github", "--shards", "257"), "is not in the range 1<=x<=256"),
        (("gitlab", "--shards", "3", "--select", "$(touch x)"), "is not a selector"),
        (("gitlab", "--shards", "30", "--max-rate", "2"), "less than 0.1 for each of 30 jobs [usage]\n  Pass a higher"),
    ],
)
def test_what_an_engine_cannot_run_is_refused(fleet: Fleet, arguments: tuple[str, ...], message: str) -> None:
    """Instead of a document that the engine would refuse, or that its shell would read in another way."""
    fleet.write("lmsconf.yaml", PROJECT)
    code, out, err = fleet.run("fleet", "matrix", "--format", *arguments)
    assert (code, out) == (64, "")
    assert message in err
