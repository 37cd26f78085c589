"""The examples plan what their pages show, apply whole, and then plan empty."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from msgspec.structs import replace
from wire.second_dialect import second_dialect

from lmsconf.api.client import Exchange
from lmsconf.api.spec.operations import CATALOG, SMART_GROUPS, USERS
from lmsconf.apply.run import execute
from lmsconf.cli import app
from lmsconf.cli.run_command import run_command_line
from lmsconf.errors import ExitCode
from lmsconf.model.plan import Plan
from lmsconf.model.policy import Policy
from lmsconf.project.settings import Settings, load_settings
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

from .conftest import EXAMPLES
from .page import masked

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


# A course of acme is repeated: call by call, nobody is without it, and who is in progress keeps last year's.


OLD, NEW = "Anti-corruption", "Anti-corruption 2027"
GROUPS = ("Sales Nordics", "Sales Europe", "Finance and Legal", "Directors")
RERUN = f"""
  - content: {NEW}
    mandatory: true
    assign_to: [{", ".join(f"{{smart_group: {name}}}" for name in GROUPS)}]
    replaces: {{content: {OLD}, then: remove}}
    keep: {{in_progress: true, until: 2027-03-31}}
"""
UNTIL = "2027-03-31T23:59:59+02:00"


@pytest.fixture(params=[{}, second_dialect()], ids=["assumed", "second"])
def acme(copy: Callable[[str], Path], request: pytest.FixtureRequest) -> Path:
    """Acme with this year's course in its catalog, and no guards, in either dialect."""
    folder = copy("acme")
    seed = folder / "workspace.yaml"
    edited(seed, "content:\n  - {name: Code", f"content:\n  - {{name: {NEW}}}\n  - {{name: Code")
    project = folder / "lmsconf.yaml"
    text = project.read_text(encoding="utf-8").partition("guards:")[0]
    project.write_text(f"{text}guards: off\ndialect: {json.dumps(request.param)}\n", encoding="utf-8")
    return folder


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.count(old) == 1
    path.write_text(text.replace(old, new), encoding="utf-8")


class Watch:
    """Who has the old or the new course, read from the service after each write."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        with self.reader() as api:
            ids = {row["smartGroupId"] for row in api.rows(SMART_GROUPS).rows if row["name"] in GROUPS}
            assert len(ids) == len(GROUPS)
            self.members = {id: members_of(api, id) for id in ids}
            self.contents = {row["name"]: row["courseId"] for row in api.rows(CATALOG).rows}
            self.emails = {row["userId"]: row["email"] for row in api.rows(USERS).rows}
        self.writes: list[str] = []

    @contextmanager
    def reader(self) -> Iterator[Any]:
        with Connection(self.settings) as connection, connection.worker_pool(1) as pool:
            yield connection.reader(pool)

    def who_has(self, name: str) -> set[str]:
        with self.reader() as api:
            rows = api.get("content-targets.list", query={"contentId": self.contents[name]})["targets"]
        return {id for row in rows for id in self.members.get(row["targetId"], {row["targetId"]})}

    def __call__(self, exchange: Exchange) -> None:
        if "content/targets" in exchange.path and exchange.method != "GET":
            everybody = set().union(*self.members.values())
            assert everybody <= self.who_has(OLD) | self.who_has(NEW)
            self.writes.append(exchange.method)


def members_of(api: Any, id: str) -> set[str]:
    return set(api.get("smart-groups.get", path={"smartGroupId": id}, query={"includeMembers": True})["members"])


def planned(settings: Settings, policy: Policy | None = None) -> Plan:
    with Connection(settings) as connection:
        return WorkspaceReader(settings=settings, connection=connection).plan(
            load_manifests(settings), policy or settings.policy
        )


def applied(settings: Settings, on_call: Callable[[Exchange], None] | None = None) -> Plan:
    """Plans and applies, one call after the other."""
    with Connection(settings, on_call=on_call) as connection:
        applier = WorkspaceReader(settings=settings, connection=connection, parallelism=1)
        plan = applier.plan(load_manifests(settings), settings.policy)
        assert execute(applier, plan, meta={}).converged
    return plan


def repeated(acme: Path, settings: Settings, entry: str) -> tuple[Watch, Plan]:
    """Applies acme's manifests, and then those with another entry for the course, watched."""
    applied(settings)
    compliance = acme / "manifests" / "assignments" / "compliance.yaml"
    edited(compliance, f"[{OLD}, Competition law]", "Competition law")
    compliance.write_text(compliance.read_text(encoding="utf-8").rstrip() + entry, encoding="utf-8")
    edited(acme / "manifests" / "tests.yaml", f"has: {OLD}, mandatory", f"has: {NEW}, mandatory")
    watch = Watch(settings)
    return watch, applied(settings, watch)


@pytest.mark.slow
@pytest.mark.parametrize("acme", [{}], indirect=True)
def test_nobody_of_acme_is_without_the_course(acme: Path) -> None:
    """The same where nobody keeps the old one: each deletion follows what replaces it."""
    watch, _ = repeated(acme, load_settings(acme, None, {}), RERUN.partition("    keep")[0])
    assert watch.writes == ["POST"] * 4 + ["DELETE"] * 4
    assert watch.who_has(OLD) == set()


@pytest.mark.slow
def test_a_course_of_acme_is_repeated(acme: Path) -> None:
    """Nobody without either course after any call; who is in progress keeps the old one until the day after."""
    settings = load_settings(acme, None, {})
    watch, plan = repeated(acme, settings, RERUN)
    assert watch.writes == ["POST"] * (len(plan.calls) - 4) + ["DELETE"] * 4
    kept = {change.address.text.rpartition("/")[2]: change.after for change in plan.changes if change.id is None}
    in_progress = in_progress_in(acme)
    audience = {watch.emails[id] for members in watch.members.values() for id in members}
    assert {email for email in kept if "@" in email} == in_progress & audience != set()
    assert {watch.emails[id] for id in watch.who_has(OLD)} == in_progress & audience
    assert all(ends(form) == UNTIL for email, form in kept.items() if "@" in email)
    assert planned(settings).changes == ()
    day = settings.policy.today.replace(year=2027, month=4, day=1)
    later = planned(settings, replace(settings.policy, today=day))
    assert {change.address.text.rpartition("/")[2] for change in later.changes} == in_progress & audience
    assert {change.action.value for change in later.changes} == {"delete"}


def in_progress_in(folder: Path) -> set[str]:
    """Who is in progress on the old course, as the seed says."""
    lines = (folder / "workspace.yaml").read_text(encoding="utf-8").splitlines()
    words = f"content: {OLD}, state: IN_PROGRESS"
    return {line.partition("user: ")[2].partition(",")[0] for line in lines if words in line}


def ends(form: object) -> object:
    return form.get("visible_until") if isinstance(form, Mapping) else None
