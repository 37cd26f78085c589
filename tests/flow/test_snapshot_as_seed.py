"""A snapshot file as the seed of a sandbox: the same workspace again, or a sentence why not."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flow.shell import lmsconf

pytestmark = pytest.mark.sampled

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
Document = dict[str, Any]


def copy_of(example: str, folder: Path) -> Path:
    left_behind = shutil.ignore_patterns("*.db*", ".lmsconf", "*.json")
    return Path(shutil.copytree(EXAMPLES / example, folder / example, ignore=left_behind))


@pytest.fixture
def acme(tmp_path: Path) -> Path:
    """The example with 400 people, who have answers, rights and archived accounts."""
    return copy_of("acme", tmp_path)


@pytest.fixture
def quickstart(tmp_path: Path) -> Path:
    """The example with twelve people."""
    return copy_of("quickstart", tmp_path)


def saved(project: Path, *options: str) -> Document:
    """What `lmsconf snapshot` saves to saved.json, without its time."""
    assert lmsconf(project, "snapshot", "saved.json", *options).code == 0
    document: Document = json.loads((project / "saved.json").read_text(encoding="utf-8"))
    return document | {"taken_at": ""}


def test_a_workspace_is_reset_from_a_snapshot(acme: Path) -> None:
    """The workspace reads as it did when the snapshot was taken, whatever has changed since; its ids are the same."""
    before = saved(acme)
    assert lmsconf(acme, "api", "POST", "/groups", "--body", '{"name": "New"}').code == 0
    (acme / "saved.json").rename(acme / "before.json")
    assert saved(acme) != before
    ran = lmsconf(acme, "sandbox", "reset", "--from", "before.json", "--yes")
    assert (ran.code, ran.err) == (0, "workspace.db was reset from before.json.\n")
    assert saved(acme) == before


def test_a_redacted_snapshot_is_no_seed(quickstart: Path) -> None:
    """It names too few people, and the workspace stays as it is."""
    before = saved(quickstart)
    assert lmsconf(quickstart, "snapshot", "redacted.json", "--redact").code == 0
    ran = lmsconf(quickstart, "sandbox", "reset", "--from", "redacted.json", "--yes")
    assert ran.code == 1
    assert "redacted.json: error: a redacted snapshot names too few people to make a workspace of" in ran.err
    assert saved(quickstart) == before


def _without_groups(document: Document) -> None:
    del document["group"]


def _incomplete(document: Document) -> None:
    document["incomplete"] = {"user": "page 2 failed"}


def _unknown_member(document: Document) -> None:
    document["group"][0]["members"].append("nobody")


def _unknown_audience(document: Document) -> None:
    document["content_target"][0]["target"] = "nothing"


def _unread_conditions(document: Document) -> None:
    document["smart_group"] = [{"id": "sg-1", "name": "Nordics", "managers": []}]


def _unknown_choice(document: Document) -> None:
    document["user"][0]["answers"][0]["choices"] = ["nothing"]


def _no_mapping(document: Document) -> None:
    document["incomplete"] = "user"


def _no_list(document: Document) -> None:
    document["user"] = {"id": "u-1"}


def _no_pairs(document: Document) -> None:
    document["user"][0]["metadata"] = ["abc"]


def _far_date(document: Document) -> None:
    document["user"][0]["archive_date"] = 10**30


def _half_a_letter(document: Document) -> None:
    document["user"][0]["first_name"] = "\ud800"


def _twice(document: Document) -> None:
    document["group"].append(document["group"][0])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_without_groups, "group: it was not read"),
        (_incomplete, "user: it was not read completely: page 2 failed"),
        (_unknown_member, "group[0]: there is no user with the id 'nobody'"),
        (_unknown_audience, "content_target[0]: the audience 'nothing' is not a person, group or smart group"),
        (_unread_conditions, "smart_group[0]: conditions were not read"),
        (_unknown_choice, "user[0]: the answer to 'Country' fits no custom field of that name"),
        (_no_mapping, "incomplete is not a mapping"),
        (_no_list, "user is not a list"),
        (_no_pairs, "user[0]: metadata is not a list of pairs of texts"),
        (_far_date, "user: a value cannot be stored: "),
        (_half_a_letter, "user: a value cannot be stored: "),
        (_twice, "group[2]: id 'g-1' is a duplicate"),
    ],
)
def test_what_cannot_be_loaded_is_named(quickstart: Path, change: Callable[[Document], None], message: str) -> None:
    """An edited or incomplete snapshot is refused whole, with the place of each problem."""
    document = saved(quickstart)
    change(document)
    (quickstart / "edited.json").write_text(json.dumps(document), encoding="utf-8")
    ran = lmsconf(quickstart, "sandbox", "reset", "--from", "edited.json", "--yes")
    assert ran.code == 1
    assert f"edited.json: error: {message}" in ran.err


def test_a_type_of_a_target_stays_as_the_service_spelt_it(quickstart: Path) -> None:
    """Whatever the service calls an audience, the twin calls it the same, deletes by it, and uses it for a new one."""
    document = saved(quickstart)
    kinds = {one["type"] for one in document["content_target"]}
    for target in document["content_target"]:
        target["type"] = f"SOME_{target['type']}"
    (quickstart / "edited.json").write_text(json.dumps(document), encoding="utf-8")
    assert lmsconf(quickstart, "sandbox", "reset", "--from", "edited.json", "--yes").code == 0
    assert saved(quickstart)["content_target"] == document["content_target"]
    assert lmsconf(quickstart, "apply", "--auto-approve").code == 0
    types = {one["type"] for one in saved(quickstart)["content_target"]}
    assert {f"SOME_{kind}" for kind in kinds} <= types
    old = document["content_target"][0]
    query = [f"--query={key}={old[name]}" for key, name in (("contentId", "content"),)]
    body = json.dumps({"contentId": old["content"], "targetId": old["target"], "targetType": old["type"]})
    assert lmsconf(quickstart, "api", "DELETE", "/content/targets", "--body", body).code == 0
    assert lmsconf(quickstart, "api", "GET", "/content/targets", *query).document["targets"] == []
