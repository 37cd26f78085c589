"""`lmsconf history`: which runs changed a resource or a person, and what is not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from flow.project import Project as Folder
from flow.shell import lmsconf as command
from journals import runs_of
from json_schemas import schema_validator

from audit.scene import names, project_with_runs
from lmsconf.errors import ExitCode
from lmsconf.journal.journal_folder import decode_lines, encode_line

ABOUT = "groups: [{name: Coaches, members: [], about: {ticket: HR-7}}, {name: Trainers, members: []}]\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return project_with_runs(tmp_path_factory.mktemp("history") / "project")


def history(folder: Folder, address: str, *arguments: str) -> dict[str, object]:
    """The document of one address, which fits its schema."""
    ran = command(folder.root, "history", address, "--format", "json", *arguments)
    assert ran.code == ExitCode.OK, ran.err
    schema_validator("history").validate(ran.document)
    return ran.document


def test_a_resource_is_followed_through_its_rename(folder: Folder) -> None:
    """The newest run first; before the rename the resource is found under its old name."""
    found = history(folder, "group/Trainers")
    assert [one["run"] for one in found["changes"]] == names(folder)[::-1]
    assert [one["address"] for one in found["changes"]] == ["group/Trainers"] * 3 + ["group/Mentors"]
    assert [one["approvals"] for one in found["changes"]] == [{"ticket": f"T-{number}"} for number in (4, 3, 2, 1)]
    assert [one["change"]["action"] for one in found["changes"]] == ["update", "update", "update", "create"]
    assert found["changes"][2]["change"]["fields"] == [
        {"path": "name", "before": "Mentors", "after": "Trainers", "added": [], "removed": []}
    ]
    assert {one["result"] for one in found["changes"]} == {"done"}
    assert found["earlier_names"] == ["group/Mentors"]


def test_an_old_name_has_the_history_before_the_rename(folder: Folder) -> None:
    """Asked by the old name, nothing of the time after it is said."""
    assert [one["run"] for one in history(folder, "groups/Mentors")["changes"]] == names(folder)[:1]


def test_a_person_is_found_in_lists_and_assignments(folder: Folder) -> None:
    """By e-mail, in any case, or by the address of the person; other people of the same lists are left out."""
    found = history(folder, "Bo.Ek@acme.example")
    shown = [(one["address"], one["change"]["action"]) for one in found["changes"]]
    assert sorted(shown[:2]) == [("group/Coaches", "update"), ("group/Trainers", "update")]
    assert ("content_target/GDPR basics -> user/bo.ek@acme.example", "create") in shown
    for one in found["changes"]:
        assert "cy.dahl" not in json.dumps(one["change"])
    removed = [field["removed"] for one in found["changes"] for field in one["change"]["fields"]]
    assert ["bo.ek@acme.example"] in removed
    assert history(folder, "user/bo.ek@acme.example")["changes"] == found["changes"]


def test_text_says_who_why_and_what(tmp_path: Path) -> None:
    """When, by which run, what the caller stated, why (`about`), and the values before and after."""
    folder = project_with_runs(tmp_path / "project", ("groups: [{name: Trainers}]\n", ABOUT))
    ran = command(folder.root, "history", "group/Coaches")
    assert ran.code == ExitCode.OK
    for said in (
        "group/Coaches: done",
        f"run {names(folder)[1]} on sandbox, stated by the caller: ticket=T-2",
        "was changed",
        "ticket: HR-7",
        "members: - bo.ek@acme.example",
        "Looked at: 2 runs since ",
        "by hand, or from another folder is not recorded here.",
    ):
        assert said in ran.out, ran.out


def test_what_no_run_changed_is_not_said_to_be_unchanged(folder: Folder) -> None:
    """It says from when runs are kept, and names the nearest addresses that runs changed."""
    ran = command(folder.root, "history", "group/Trainer")
    assert ran.code == ExitCode.OK
    assert "No kept run changed group/Trainer. Looked at: 4 runs since " in ran.out
    assert "Did you mean group/Trainers" in ran.out
    assert "What was changed before " in ran.out
    assert "never" not in ran.out


@pytest.mark.parametrize("words", ["Trainers", "group Trainers"])
def test_words_that_mean_one_resource_of_the_runs_are_its_address(folder: Folder, words: str) -> None:
    """A name alone, and the words of a view, find what the address finds."""
    assert command(folder.root, "history", words).out == command(folder.root, "history", "group/Trainers").out


def test_without_runs_nothing_is_known(tmp_path: Path) -> None:
    """That is no error, and no statement about the resource."""
    folder = Folder(tmp_path / "project", "groups: [{name: Coaches}]")
    ran = command(folder.root, "history", "group/Coaches")
    assert (ran.code, "nothing is known of earlier changes" in ran.out) == (ExitCode.OK, True)


@pytest.mark.parametrize(
    ("status", "result"), [("failed", "failed"), ("in_flight", "unknown"), ("blocked", "failed"), (None, "unknown")]
)
def test_what_was_not_done_is_not_shown_as_done(tmp_path: Path, status: str | None, result: str) -> None:
    """A refused call, one in flight, one that was not sent; in a run that was cut short the last one is not known."""
    folder = project_with_runs(tmp_path / "project", ("groups: [{name: A}]\n",))
    journal = runs_of(folder.root) / f"{names(folder)[0]}.jsonl"
    entries = [dict(entry) for entry in decode_lines(journal.read_bytes()) if entry]
    for entry in entries:
        entry |= {"status": status} if entry["event"] == "outcome" and status else {}
    kept = entries if status else entries[:2]
    journal.write_bytes(b"".join(map(encode_line, kept)))
    (one,) = history(folder, "group/A")["changes"]
    assert (one["result"], one["calls"]) == (result, {"done": 0, "planned": 1})


def test_a_run_whose_plan_is_not_kept_is_found_by_its_calls(tmp_path: Path) -> None:
    """Then what it changed is not known, and the history says why."""
    folder = project_with_runs(tmp_path / "project", ("groups: [{name: A, members: [bo.ek@acme.example]}]\n",))
    (runs_of(folder.root) / f"{names(folder)[0]}.plan.json").unlink()
    for asked in ("group/A", "bo.ek@acme.example"):
        (one,) = history(folder, asked)["changes"]
        assert (one["address"], one["change"], one["result"]) == ("group/A", None, "done")
        assert "is not kept" in one["why_no_plan"]


def test_people_are_masked(folder: Folder) -> None:
    """With `--mask-people`, also in the values and in what was asked."""
    ran = command(folder.root, "--mask-people", "history", "bo.ek@acme.example")
    assert ran.code == ExitCode.OK
    assert "acme.example" not in ran.out
    assert "person 1" in ran.out


def test_a_workspace_can_be_chosen(folder: Folder) -> None:
    """`--workspace` leaves out runs on others; a journal that cannot be read is named, as it may be of any."""
    damaged = runs_of(folder.root) / "20200101T000000Z-abc.jsonl"
    damaged.write_bytes(b"damaged\n")
    try:
        found = history(folder, "group/Coaches", "--workspace", "other")
        assert (found["changes"], found["runs"]) == ([], 0)
        assert found["unreadable"] == [damaged.stem]
        assert "cannot be read; it may have changed" in command(folder.root, "history", "group/Coaches").out
    finally:
        damaged.unlink()
