"""The examples plan what their pages show, apply whole, and then plan empty."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
import yaml

from lmsconf.cli import app
from lmsconf.cli.run_command import run_command_line
from lmsconf.errors import ExitCode
from lmsconf.sandbox.service import Sandbox

from .clone import masked
from .conftest import EXAMPLES

Copy = Callable[[str], Path]
CONSENTS = {
    "acme": ("--allow", "people=396", "--allow", "mandatory=396"),
    "countries": ("--allow", "mandatory=32"),
}
"""Example → what its page allows: the first plan concerns everybody."""
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/lmsconf.yaml"))


@pytest.fixture
def lmsconf(
    copy: Copy, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str]]:
    """Runs lmsconf on a copy of an example, and gives exit code and output."""
    for name in ("LMSCONF_URL", "LMSCONF_TOKEN", "LMSCONF_WORKSPACE"):
        monkeypatch.delenv(name, raising=False)
    folders: dict[str, Path] = {}

    def ran(example: str, *arguments: str) -> tuple[int, str]:
        folder = folders.get(example) or folders.setdefault(example, copy(example))
        code = run_command_line(app, ["-C", str(folder), *arguments])
        # The folder of the copy is no part of what somebody reads who is in it.
        return code, capfd.readouterr().out.replace(f" -C {folder}", "")

    return ran


@pytest.mark.parametrize("name", NAMES)
def test_the_plan_is_the_one_beside_it(name: str, lmsconf: Callable[..., tuple[int, str]], updating: bool) -> None:
    """`plan.txt` in the example's folder is what `lmsconf plan` prints there, digest aside."""
    golden = EXAMPLES / name / "plan.txt"
    code, text = lmsconf(name, "plan")
    if updating:
        golden.write_text(masked(text), encoding="utf-8")
    assert code == ExitCode.OK
    assert masked(text) == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", NAMES)
def test_it_applies_whole_and_then_plans_empty(name: str, lmsconf: Callable[..., tuple[int, str]]) -> None:
    """Plan has changes, apply does all of them with the consents of the page, and the next plan has none."""
    assert lmsconf(name, "validate")[0] == ExitCode.OK
    assert lmsconf(name, "plan", "--detailed-exitcode")[0] == ExitCode.CHANGES
    code, text = lmsconf(name, "apply", "--auto-approve", "--format", "json", *CONSENTS.get(name, ()))
    report = json.loads(text)
    assert code == ExitCode.OK
    assert {outcome["status"] for outcome in report["outcomes"]} == {"done"}
    assert report["converged"] is True
    code, text = lmsconf(name, "plan", "--detailed-exitcode")
    assert code == ExitCode.OK
    assert "No changes. The workspace matches the manifests." in text


def test_acme_shows_every_action_on_every_kind(lmsconf: Callable[..., tuple[int, str]]) -> None:
    """The first plan of acme creates, changes and deletes some of each kind, and renames."""
    plan = json.loads(lmsconf("acme", "plan", "--format", "json")[1])
    kinds = ("custom_field", "group", "smart_group", "content_target")
    seen = {(change["kind"], change["action"]) for change in plan["changes"]}
    assert seen == {(kind, action) for kind in kinds for action in ("create", "update", "delete")}
    renamed = [field["before"] for change in plan["changes"] for field in change["fields"] if field["path"] == "name"]
    assert sorted(renamed) == ["Coaches", "Cost center", "GDPR champions", "People managers"]


def test_acme_is_as_large_as_its_page_says() -> None:
    """It declares 9 fields, 25 groups, 25 smart groups, 120 assignments and 5 tests for 400 people and 40 contents."""
    declared: Counter[str] = Counter()
    for path in (EXAMPLES / "acme" / "manifests").rglob("*.yaml"):
        for section, entries in yaml.safe_load(path.read_text(encoding="utf-8")).items():
            if section == "content_targets":
                declared[section] += sum(_assignments(entry, path.parent) for entry in entries)
            elif section != "absent" and not section.startswith("x-"):
                declared[section] += len(entries)
    assert declared == {"custom_fields": 9, "groups": 25, "smart_groups": 25, "content_targets": 120, "tests": 5}
    seed = yaml.safe_load((EXAMPLES / "acme" / "workspace.yaml").read_text(encoding="utf-8"))
    assert (len(seed["people"]), len(seed["content"])) == (400, 40)


def test_every_smart_group_of_acme_that_can_have_members_has_some(copy: Copy) -> None:
    """People's answers put members into each smart group, apart from the one on a field that nobody answered yet."""
    folder = copy("acme")
    assert run_command_line(app, ["-C", str(folder), "apply", "--auto-approve", *CONSENTS["acme"]]) == ExitCode.OK
    sandbox = Sandbox(folder / "workspace.db")
    with httpx.Client(transport=sandbox, base_url="http://sandbox", headers={"Authorization": "Bearer sandbox"}) as api:
        groups = [
            api.get(f"/smart-groups/{row['smartGroupId']}?includeMembers=true").json()
            for row in api.get("/smart-groups").json()["smartGroups"]
        ]
    sandbox.close_workspace()
    assert len(groups) > 25
    assert [group["name"] for group in groups if not group["members"]] == ["Remote workers"]


def test_quickstart_is_one_screen() -> None:
    """The manifest that newcomers read first has at most forty lines."""
    assert len((EXAMPLES / "quickstart/manifests/onboarding.yaml").read_text(encoding="utf-8").splitlines()) <= 40


def _assignments(entry: dict[str, object], folder: Path) -> int:
    """The number of assignments of an entry, or of the rows of its sheet."""
    if "file" in entry:
        return len((folder / str(entry["file"])).read_text(encoding="utf-8").splitlines()) - 1
    return _contents(entry) * len(entry["assign_to"])


def _contents(entry: dict[str, object]) -> int:
    return len(entry["content"]) if isinstance(entry["content"], list) else 1
