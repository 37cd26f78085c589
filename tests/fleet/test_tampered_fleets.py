"""Tables and folders of a fleet that were made by somebody else: nothing is read, written or sent elsewhere."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from fleet.fleet_project import TABLE, Fleet
from lmsconf.support.atomic_files import LARGEST

pytestmark = pytest.mark.sampled

KEY = "k" * 32


def apply(fleet: Fleet, *arguments: str) -> tuple[int, str]:
    """Apply the plans in `out`; return the exit code, and stdout with stderr."""
    code, out, err = fleet.run(
        "fleet", "apply", str(fleet.root / "out"), "--auto-approve", "--processes", "1", *arguments
    )
    return code, out + err


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
    code, out, err = fleet.run("fleet", "plan", "--out", str(fleet.root / "out"), "--processes", "1")
    assert code == 1
    assert message in out + err
    assert "\x1b" not in out + err
    assert not (fleet.root / "out" / "a.plan.json").exists()


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


def test_the_index_of_plans_is_not_one_of_an_apply(fleet: Fleet) -> None:
    """A copy of index.json as apply.json does not make plans look applied."""
    fleet.plan()
    (fleet.root / "out" / "apply.json").write_text((fleet.root / "out" / "index.json").read_text())
    code, text = apply(fleet)
    assert (code, "has the results of lmsconf fleet plan, not of an apply" in text) == (1, True), text


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


def test_a_selection_keeps_what_was_applied_elsewhere(fleet: Fleet) -> None:
    """The results of workspaces that are not selected stay in the index, so that no plan is applied twice."""
    fleet.plan()
    for selector, known in (("ring=canary", ["alpha"]), ("region=us", ["alpha", "gamma"])):
        code, text = apply(fleet, "--select", selector)
        assert code == 0, text
        assert [one["workspace"] for one in fleet.index("out", "apply.json")["workspaces"]] == known


def test_a_selection_without_a_plan_is_a_wrong_command_line(fleet: Fleet) -> None:
    """A workspace that was added after the plan is not reported as applied."""
    fleet.plan()
    fleet.write("workspaces.csv", f"{TABLE}delta,sandbox:delta.db,region=us\n")
    code, text = apply(fleet, "--select", "workspace=delta")
    assert (code, "the folder has no plan of a workspace with these labels" in text) == (64, True), text
    assert not (fleet.root / "out" / "apply.json").exists()


def test_an_apply_after_an_interrupted_plan_was_not_interrupted(fleet: Fleet) -> None:
    """A workspace whose planning was cut short has no plan to apply: that is an error, and holds up no other one."""
    index = fleet.plan()
    first, *others = index["workspaces"]
    cut = {**first, "exit": 130, "digest": None, "file": None}
    (fleet.root / "out" / "index.json").write_text(json.dumps({**index, "workspaces": [cut, *others]}))
    code, text = apply(fleet, "--max-failures", "1")
    assert code == 1
    assert text.startswith("3 workspaces: 2 applied or without changes (4 API calls), 1 failed.\n")
    assert "error: there is no plan to apply, because planning failed [fleet/no-plan]\n" in text


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


def test_allowed_hosts_bind_workers(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token goes to no host that LMSCONF_ALLOWED_HOSTS does not list, whichever process would send it."""
    monkeypatch.setenv("LMSCONF_ALLOWED_HOSTS", "lms.example")
    monkeypatch.setenv("LMSCONF_T", "token")
    fleet.write("lmsconf.yaml", "workspaces: {a: {url: 'https://elsewhere.invalid', token: {env: LMSCONF_T}}}\n")
    fleet.write("manifests/a.yaml", "groups: [{name: A}]\n")
    code, out, _ = fleet.run("fleet", "plan", "--processes", "1")
    assert code == 1
    assert "elsewhere.invalid must not receive the token" in out


@pytest.mark.parametrize("name", ["index.json", "alpha.plan.json"])
@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (os.mkfifo, "is a pipe or a device, not a file"),
        (lambda path: path.symlink_to("/dev/zero"), "is a pipe or a device, not a file"),
        (Path.mkdir, "cannot be read: Is a directory"),
        (lambda path: (path.touch(), os.truncate(path, LARGEST + 1)), "is larger than 256 MiB"),
        (lambda path: path.write_text("{"), "the file is not a complete document of lmsconf"),
    ],
    ids=["pipe", "device", "folder", "huge", "cut short"],
)
def test_a_file_that_is_not_one_of_lmsconf_is_named(
    fleet: Fleet, name: str, damage: Callable[[Path], object], message: str
) -> None:
    """A pipe, a device, a folder or a huge file in the folder of a fleet is an error with its path, and is not read."""
    fleet.plan()
    file = fleet.root / "out" / name
    file.unlink()
    damage(file)
    for code, text in (fleet.run("fleet", "show", str(fleet.root / "out"))[::2], apply(fleet)):
        assert (code, f"{file}" in text, message in text) == (3 if "complete" in message else 1, True, True), text


@pytest.mark.parametrize("name", ["lmsconf.yaml/out", "n" * 300])
def test_a_folder_that_cannot_be_created_is_an_error(fleet: Fleet, name: str) -> None:
    """`--out` below a file, or with a name that the system refuses, is an error with a reason, before any request."""
    fleet.plan()
    for command in (("plan",), ("collect", str(fleet.root / "out"))):
        code, _, err = fleet.run("fleet", *command, "--out", str(fleet.root / name))
        assert code == 1, err
        assert f"--out {fleet.root / name}: the folder cannot be used: " in err
        assert "Name a new folder, in one that is writable." in err


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


def test_a_failure_with_any_url_is_shown(fleet: Fleet) -> None:
    """The url in an index is a text: one that no workspace can have is shown as it is."""
    index = fleet.plan()
    first, *others = index["workspaces"]
    edited = {**index, "workspaces": [{**first, "exit": 8, "url": "http://[x"}, *others]}
    (fleet.root / "out" / "index.json").write_text(json.dumps(edited))
    code, out, _ = fleet.run("fleet", "show", str(fleet.root / "out"))
    assert (code, "\nWorkspace alpha (http://[x): unreachable or timed out\n" in out) == (0, True), out
