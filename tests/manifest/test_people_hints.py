"""Where the e-mail of a person is required and something else is written, the hint says what was probably meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from flow.shell import lmsconf

PROJECT = "workspaces: {sandbox: {url: 'sandbox:', seed: seed.yaml}}\n"
SEED = "people: [{email: sven.petersen0@acme.example}, {email: anna@acme.example}]\ncontent: [{name: GDPR}]\n"
SETS = """
people_sets:
  Leads: [anna.berg@acme.example]
  Sales coaches: [bo.ek@acme.example]
  Anna: [anna.berg@acme.example]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project without manifests."""
    (tmp_path / "lmsconf.yaml").write_text(PROJECT)
    (tmp_path / "seed.yaml").write_text(SEED)
    (tmp_path / "manifests").mkdir()
    return tmp_path


def errors(root: Path, command: str, manifest: str) -> str:
    """What a command writes about a manifest with one error."""
    (root / "manifests" / "a.yaml").write_text(manifest)
    ran = lmsconf(root, command)
    assert ran.code == 1
    return ran.err


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("Leads", "Did you mean {set: Leads}?"),
        ("leads", "Did you mean {set: Leads}?"),
        ("anna", "Did you mean {set: Anna}?"),
        ("Sales coach", "Did you mean {set: Sales coaches}?"),
        ("Bo Ek", 'Write the person\'s e-mail. Did you mean "bo.ek@acme.example"?'),
        ("anna.berk", 'Write the person\'s e-mail. Did you mean "anna.berg@acme.example"?'),
        ("Zed", "Write the person's e-mail.\n"),
    ],
)
@pytest.mark.parametrize("key", ["managers", "members"])
def test_a_set_or_a_name_in_place_of_an_email(root: Path, written: str, hint: str, key: str) -> None:
    """In a list of people: a set by its name, an e-mail of the manifests by a person's name or its first part."""
    told = errors(root, "validate", f"{SETS}groups: [{{name: A, {key}: [{{set: Leads}}, {written}]}}]\n")
    assert f"  {hint}" in told


@pytest.mark.parametrize("written", ["sen.petersen0", "Sven Petersen", "sven.petersen"])
def test_an_audience_that_is_no_email(root: Path, written: str) -> None:
    """Of an assignment to a person: an e-mail is required, and the nearest of the workspace is offered."""
    told = errors(root, "plan", f"content_targets: [{{content: GDPR, assign_to: [{{user: {written}}}]}}]\n")
    assert 'Write the person\'s e-mail. Did you mean "sven.petersen0@acme.example"?' in told


@pytest.mark.parametrize("key", ["due", "due_date", "dueDate", "deadline"])
def test_there_is_no_due_date(root: Path, key: str) -> None:
    """The key that comes nearest hides the content, and the hint says so."""
    for manifest in (
        f"content_targets: [{{content: GDPR, {key}: 2026-12-31, assign_to: [everyone]}}]\n",
        f"content_targets: [{{content: GDPR, assign_to: [{{everyone: true, {key}: 2026-12-31}}]}}]\n",
    ):
        told = errors(root, "validate", manifest)
        assert "The service has no due date; `visible_until` hides the content." in told


@pytest.mark.parametrize(
    ("command", "takes"),
    [
        ("apply", "apply takes a plan file"),
        ("show", "show takes a saved plan, snapshot or apply report"),
        ("plan --snapshot", "--snapshot takes a saved snapshot"),
        ("export out --snapshot", "--snapshot takes a saved snapshot"),
    ],
)
def test_a_manifest_in_place_of_a_saved_file(root: Path, command: str, takes: str) -> None:
    """It is a wrong command line, and no damaged file; with the command that creates one."""
    (root / "manifests" / "a.yaml").write_text("groups: [{name: A}]\n")
    ran = lmsconf(root, *command.split(), "manifests/a.yaml")
    assert ran.code == 64
    assert f"manifests/a.yaml is a manifest; {takes}" in ran.err


@pytest.mark.parametrize("command", ["apply", "show"])
def test_an_edited_plan_file_is_named(root: Path, command: str) -> None:
    """Also one that is cut short; exit 3 as before."""
    (root / "manifests" / "a.yaml").write_text("groups: [{name: A}]\n")
    assert lmsconf(root, "plan", "--out", "plan.json").code == 0
    text = (root / "plan.json").read_text()
    for edited in (text.replace('"A"', '"B"'), text[:-20]):
        (root / "plan.json").write_text(edited)
        ran = lmsconf(root, command, "plan.json")
        assert (ran.code, "error: plan.json: the file " in ran.err) == (3, True)
