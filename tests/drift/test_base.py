"""`drift --base`: what was changed by hand is told from what is not applied yet, and only the former counts."""

from __future__ import annotations

import json
import os
import re
import subprocess
import xml.etree.ElementTree as ET
from collections.abc import Callable
from shutil import copytree, ignore_patterns
from typing import Any, Final

import pytest
from integrity.served_project import ServedProject
from json_schemas import schema_validator

from .drifted_project import MANIFESTS, OWNED, codes, drift, states

BASE: Final = "./applied"
Hand = Callable[[ServedProject], object]


@pytest.fixture(autouse=True)
def _applied(stage: ServedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the project as it was applied last, beside it."""
    copytree(stage.root, stage.root / "applied", ignore=ignore_patterns(".lmsconf", "applied"))
    monkeypatch.chdir(stage.root)


def based(stage: ServedProject, code: int, *arguments: str) -> dict[str, Any]:
    """The report beside the manifests that were applied last; it is as its schema says."""
    report = drift(stage, "--base", BASE, *arguments, code=code)
    assert list(schema_validator("drift").iter_errors(report)) == []
    return report


def causes(report: dict[str, Any], key: str = "findings") -> dict[str, str | None]:
    return {finding["address"]: finding["cause"] for finding in report[key]}


def out_of_the_group(stage: ServedProject) -> object:
    return stage.hand("manual-groups.remove-member", {"groupId": "g-1", "userId": "u-bo"})


BEES: Final = "{name: All Bees, conditions: [{field: Dept, choices: [B]}]}"
TO_COME: Final[dict[str, tuple[str, str]]] = {
    "an entry is new": (
        MANIFESTS.replace("  - name: LMS a\n", "  - name: LMS a\n  - name: LMS b\n"),
        "group/LMS b",
    ),
    "an entry says otherwise": (MANIFESTS.replace("mandatory: true", "mandatory: false"), "-> group/Team"),
    "an entry no longer exists": (MANIFESTS.replace("  - name: LMS a\n", ""), "group/LMS a"),
    "an entry is renamed": (
        MANIFESTS.replace("  - name: LMS a\n", "  - {name: LMS z, previously: [LMS a]}\n"),
        "group/LMS z",
    ),
    "an entry is new and like a stranger": (
        MANIFESTS.replace("{name: All A,", f"{BEES}\n  - {{name: All A,"),
        "smart_group/All Bees",
    ),
}
"""What is edited in the manifests and never applied → what differs then."""


@pytest.mark.parametrize("what", TO_COME)
def test_an_edit_of_a_manifest_is_no_drift(stage: ServedProject, what: str) -> None:
    """The workspace is as the base says: what only the manifests at hand say is listed, and the exit is 0."""
    manifests, address = TO_COME[what]
    stage.write(manifests)
    assert drift(stage, code=2)["findings"]
    report = based(stage, 0)
    assert report["base"] == BASE
    assert report["findings"] == []
    assert [one["cause"] for one in report["not_applied"]] == ["not applied yet"] * len(report["not_applied"])
    assert any(one["address"].endswith(address) for one in report["not_applied"])
    assert report["summary"]["not_applied"] == len(report["not_applied"])


BY_HAND: Final[dict[str, tuple[str, str, Hand]]] = {
    "a member out": ("group/Team", "changed", out_of_the_group),
    "deleted": (
        "smart_group/All A",
        "missing",
        lambda stage: stage.hand("smart-groups.delete", {"smartGroupId": "s-1"}),
    ),
    "made": (
        "group/LMS new",
        "undeclared",
        lambda stage: stage.hand("manual-groups.create", None, {"name": "LMS new"}),
    ),
    "renamed": (
        "smart_group/All A",
        "renamed",
        lambda stage: stage.hand("smart-groups.rename", {"smartGroupId": "s-1"}, {"name": "Everybody"}),
    ),
}
"""What somebody does → what is found."""


@pytest.mark.parametrize("what", BY_HAND)
@pytest.mark.parametrize("edited", [False, True], ids=["same manifests", "edited manifests"])
def test_what_somebody_changed_is_drift(stage: ServedProject, what: str, edited: bool) -> None:
    """It differs from the base as well, so it was changed by hand, whatever else is not applied yet."""
    address, state, hand = BY_HAND[what]
    hand(stage)
    if edited:
        stage.write(TO_COME["an entry says otherwise"][0])
    report = based(stage, 2)
    assert states(report) == {address: state}
    assert causes(report) == {address: "changed by hand"}
    assert list(causes(report, "not_applied").values()) == ["not applied yet"] * (2 if edited else 0)


def test_a_resource_that_both_have_changed_is_drift(stage: ServedProject) -> None:
    """The keys that only the manifests have changed are named, and no line offers to undo them."""
    out_of_the_group(stage)
    stage.write(MANIFESTS.replace("managers: [cy@acme.example]", "managers: [cy@acme.example, bo@acme.example]"))
    (finding,) = based(stage, 2)["findings"]
    assert (finding["cause"], finding["unapplied"]) == ("changed by hand", ["managers"])
    assert finding["hint"]["accept"] is None
    assert "not applied yet: managers" in stage("drift", "--base", BASE).out


def test_a_renamed_declaration_is_the_same_resource(stage: ServedProject) -> None:
    """Under its new name, too, what was changed by hand is told: by the id of what is live."""
    out_of_the_group(stage)
    renamed = MANIFESTS.replace("name: Team\n", "name: Crew\n    previously: [Team]\n")
    stage.write(renamed.replace("{group: Team}", "{group: Crew}"))
    assert causes(based(stage, 2)) == {"group/Crew": "changed by hand"}


def test_without_a_base_a_difference_is_a_difference(stage: ServedProject) -> None:
    """Nothing says who made it."""
    out_of_the_group(stage)
    stage.write(TO_COME["an entry is new"][0])
    report = drift(stage, code=2)
    assert set(causes(report).values()) == {None}
    assert (report["base"], report["not_applied"]) == (None, [])
    assert "by hand" not in stage("drift").out


def test_a_base_that_cannot_be_planned_tells_nothing(stage: ServedProject) -> None:
    """All that differs counts, and a warning says why; of a single entry that cannot, the others are still told."""
    out_of_the_group(stage)
    stage.write(TO_COME["an entry is new"][0])
    base = stage.root / "applied" / "manifests" / "all.yaml"
    base.write_text("groups: [{nam: X}]", encoding="utf-8")
    report = based(stage, 2)
    assert causes(report) == {"group/LMS b": None, "group/Team": None}
    assert codes(report) == ["base/not-planned"]
    base.write_text(MANIFESTS.replace("cy@acme.example", "nobody@acme.example"), encoding="utf-8")
    report = based(stage, 2)
    assert causes(report) == {"group/Team": None}
    assert causes(report, "not_applied") == {"group/LMS b": "not applied yet"}


def test_every_format_tells_them_apart(stage: ServedProject) -> None:
    """By hand counts and fails; not applied yet is listed, skipped, or suppressed, with what was compared."""
    stage.write(TO_COME["an entry is new"][0])
    said = {view: stage("drift", "--base", BASE, "--format", view).out for view in ("text", "markdown", "html")}
    for told in said.values():
        assert "the state that was applied last" in told.replace("\\", "")
        assert "No drift. These differences do not count: 1 not applied yet." in told
        assert "group/LMS b" in told
        assert "matches the manifests" not in told
    out_of_the_group(stage)
    assert "Drift: 1 changed. In addition: 1 not applied yet." in stage("drift", "--base", BASE).out
    suites = ET.fromstring(stage("drift", "--base", BASE, "--format", "junit").out)
    assert [len(list(suites.iter(name))) for name in ("failure", "skipped", "error")] == [1, 1, 0]
    [log] = json.loads(stage("drift", "--base", BASE, "--format", "sarif").out)["runs"]
    suppressed = {
        re.split(" (?:is|has) ", result["message"]["text"])[0]: "suppressions" in result for result in log["results"]
    }
    assert suppressed == {"group/Team": False, "group/LMS b": True}


def test_a_base_may_be_a_commit(stage: ServedProject) -> None:
    """As with `plan --base`; and no request is sent where the project file would go elsewhere than the base's."""
    who = ("-c", "user.name=x", "-c", "user.email=x@x.example", "-c", "commit.gpgsign=false")
    environ = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    for words in (["init", "-q", "-b", "main"], ["add", "manifests", "lmsconf.yaml"], ["commit", "-q", "-m", "x"]):
        subprocess.run(["git", *who, *words], cwd=stage.root, check=True, capture_output=True, env=environ)
    stage.write(TO_COME["an entry is new"][0])
    report = drift(stage, "--base", "main", code=0)
    assert causes(report, "not_applied") == {"group/LMS b": "not applied yet"}
    stage.options(f"{OWNED}dialect: {{content-targets.everyone: ALL}}\n")
    seen = len(stage.sandbox.log)
    assert stage("drift", "--base", "main").code == 1
    assert len(stage.sandbox.log) == seen


@pytest.mark.parametrize("arguments", [["--base", BASE, "--accept", "*"], ["--trust-project", "url"]])
def test_what_does_not_go_together_is_a_wrong_command_line(stage: ServedProject, arguments: list[str]) -> None:
    """Exit 64, and nothing is read."""
    seen = len(stage.sandbox.log)
    assert stage("drift", *arguments).code == 64
    assert len(stage.sandbox.log) == seen
