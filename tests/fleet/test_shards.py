"""A fleet in parts: `lmsconf fleet plan --shard`, what puts the parts together, and documents for engines."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from json_schemas import schema_validator

from fleet.fleet_project import PROJECT, Fleet

pytestmark = pytest.mark.sampled


def shard(fleet: Fleet, part: str, folder: str, *arguments: str) -> int:
    """Plan one part of the fleet; return the exit code."""
    options = ("--shard", part, "--out", str(fleet.root / folder), "--processes", "1")
    return fleet.run("fleet", "plan", *options, *arguments)[0]


def collect(fleet: Fleet, *folders: str) -> tuple[int, str, str]:
    """Put folders together into the folder `all`."""
    return fleet.run(
        "fleet", "collect", *(str(fleet.root / name) for name in folders), "--out", str(fleet.root / "all")
    )


def contents(folder: Path) -> dict[str, str]:
    """Each file of a folder, without times and the seal over them."""
    times = re.compile(r'"(?:created_at|expires_at|seal)": ?"[^"]+"')
    return {path.name: times.sub("", path.read_text()) for path in folder.iterdir()}


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
    code, out, err = collect(fleet, *names)
    assert code == 0, err
    assert out.startswith("3 workspaces: 3 with changes, 0 without.\n")
    assert contents(fleet.root / "all") == contents(fleet.root / "out")


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
        code, _, err = collect(fleet, *folders)
        assert (code, message in err) == (1, True), (folders, err)
        assert not (root / "all").exists()
    code, _, err = fleet.run("fleet", "apply", str(root / "a"), "--auto-approve", "--processes", "1")
    assert code == 1
    assert f"{root}/a has only shard 1/3" in err
    assert not (root / "a" / "apply.json").exists()


@pytest.mark.parametrize(("number", "of"), [(1, 10**18), (0, 1), (2, 1), (-1, -1), (1, 10_000)])
def test_a_shard_that_cannot_be_is_refused(fleet: Fleet, number: int, of: int) -> None:
    """Numbers in a tampered index are refused before anything is counted up to them."""
    assert shard(fleet, "1/1", "a") == 0
    index = fleet.index("a")
    index["shard"] |= {"number": number, "of": of}
    (fleet.root / "a" / "index.json").write_text(json.dumps(index))
    code, _, err = collect(fleet, "a")
    assert (code, f"there is no shard {number}/{of}" in err) == (1, True), err


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


def test_parts_by_labels_can_be_put_together(fleet: Fleet) -> None:
    """Folders without `--shard` are put together as they are, unless one workspace is in two, or one is a shard."""
    for labels, folder in (("ring=canary", "a"), ("ring!=canary", "b"), ("region=eu", "c")):
        arguments = ("--select", labels, "--out", str(fleet.root / folder), "--processes", "1")
        assert fleet.run("fleet", "plan", *arguments)[0] == 0
    assert shard(fleet, "3/3", "d") == 0
    code, _, err = collect(fleet, "a", "c")
    assert code == 1
    assert "the workspace alpha is in two folders" in err
    code, _, err = collect(fleet, "a", "d")
    assert code == 1
    assert f"{fleet.root}/a has all workspaces, and {fleet.root}/d has shard 3/3" in err
    code, out, _ = collect(fleet, "a", "b")
    assert (code, out.partition("\n")[0]) == (0, "3 workspaces: 3 with changes, 0 without.")


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
    code, out, err = fleet.run("fleet", "matrix", "--format", format, *arguments)
    assert code == 0, err
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
