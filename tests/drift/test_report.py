"""What counts and what does not: ignore entries, unmanaged things, journals, incomplete reads, exit codes, formats."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from datetime import date
from pathlib import Path
from shutil import rmtree
from typing import Final

import httpx
import pytest
from integrity.served_project import ServedProject
from laws.sandbox_project import TransportConnection

from lmsconf.api.spec import ApiSpec
from lmsconf.errors import LmsconfError
from lmsconf.model.drift import DriftReport, DriftState
from lmsconf.project.settings import load_settings
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import Connection
from lmsconf.workspace.project_manifests import load_manifests
from lmsconf.workspace.reader import WorkspaceReader

from .drifted_project import MANIFESTS, OWNED, SEED, codes, drift, only, states


def test_nothing_differs(stage: ServedProject) -> None:
    """Exit 0, and the text says so; what nobody manages is listed and does not count."""
    ran = stage("drift")
    assert (ran.code, ran.writes) == (0, [])
    assert ran.out.endswith("No drift. The workspace matches the manifests.\n")
    assert "1 group is not managed by any manifest. 1 more is left alone." in ran.out
    report = drift(stage, "--coverage", code=0)
    assert (report["findings"], report["ignored"], report["problems"]) == ([], [], [])
    assert report["unmanaged"] == [
        {"kind": "custom_field", "count": 1, "addresses": ["custom_field/Extra"], "left_alone": 0},
        {"kind": "group", "count": 2, "addresses": ["group/Book club"], "left_alone": 1},
        {"kind": "smart_group", "count": 1, "addresses": ["smart_group/All B"], "left_alone": 0},
        {
            "kind": "content_target",
            "count": 1,
            "addresses": ["content_target/Intro -> user/bo@acme.example"],
            "left_alone": 0,
        },
    ]


def test_coverage_is_the_managed_share_of_what_is_live(stage: ServedProject) -> None:
    """What is missing is not covered, what is left alone is live, and people count where they are declared."""
    stage.hand("smart-groups.delete", {"smartGroupId": "s-1"})
    report = drift(stage, "--coverage")
    shares = {one["kind"]: (one["managed"], one["live"], one["percent"]) for one in report["coverage"]}
    assert shares == {
        "content_target": (2, 3, 66.7),
        "custom_field": (1, 2, 50.0),
        "group": (2, 4, 50.0),
        "smart_group": (0, 1, 0.0),
        "user": (1, 3, 33.3),
    }


def test_it_reads_what_a_plan_reads(stage: ServedProject) -> None:
    """Without --unmanaged and --coverage it sends the requests of a plan, and says that the rest was not read."""
    before = len(stage.sandbox.log)
    stage("plan")
    planned = sorted((one.method, one.path) for one in stage.sandbox.log[before:])
    before = len(stage.sandbox.log)
    ran = stage("drift")
    assert sorted((one.method, one.path) for one in stage.sandbox.log[before:]) == planned
    assert "Only the resources of the manifests were read;" in ran.out
    report = drift(stage, code=0)
    assert (report["read"], report["coverage"]) == ("declared", [])
    assert [one["kind"] for one in report["unmanaged"]] == ["custom_field", "group", "smart_group"]
    whole = drift(stage, "--coverage", code=0)
    assert (whole["read"], len(whole["coverage"])) == ("everything", 5)
    assert "was read" not in stage("drift", "--coverage").out


def test_unmanaged_things_count_where_that_is_asked_for(stage: ServedProject) -> None:
    """`--unmanaged` makes each of them a finding, but for those that are left alone."""
    report = drift(stage, "--unmanaged", code=2)
    assert states(report) == {
        "content_target/Intro -> user/bo@acme.example": "unmanaged",
        "custom_field/Extra": "unmanaged",
        "group/Book club": "unmanaged",
        "smart_group/All B": "unmanaged",
    }
    assert report["findings"][0]["hint"] == {
        "restore": None,
        "accept": f"lmsconf -C {stage.root} export --into",
    }


IGNORE: Final = """ignore:
  - {address: "group/T*", reason: HR moves people, until: 2999-01-01}
  - {address: "smart_group/All [AC]", reason: experiment}
"""


def test_what_is_ignored_is_listed_with_its_reason(stage: ServedProject) -> None:
    """Findings that fit an entry do not count; they stand apart with the entry and its place."""
    stage.options(f"{OWNED}{IGNORE}")
    stage.hand("manual-groups.remove-member", {"groupId": "g-1", "userId": "u-bo"})
    stage.hand("smart-groups.delete", {"smartGroupId": "s-1"})
    report = drift(stage, code=0)
    assert states(report) == {}
    assert states(report, "ignored") == {"group/Team": "changed", "smart_group/All A": "missing"}
    assert [one["ignored_by"] for one in report["ignored"]] == [
        {
            "address": "group/T*",
            "reason": "HR moves people",
            "until": "2999-01-01",
            "source": {"file": "lmsconf.yaml", "line": 5, "column": 5},
        },
        {
            "address": "smart_group/All [AC]",
            "reason": "experiment",
            "until": None,
            "source": {"file": "lmsconf.yaml", "line": 6, "column": 5},
        },
    ]
    assert "Ignored until 2999-01-01: HR moves people" in stage("drift").out


def test_an_entry_whose_day_has_come_hides_nothing(stage: ServedProject) -> None:
    """What it hid counts again, and the entry is reported, by `validate` too."""
    stage.options(f"{OWNED}{IGNORE.replace('2999', '2020')}")
    stage.hand("manual-groups.remove-member", {"groupId": "g-1", "userId": "u-bo"})
    report = drift(stage, code=2)
    assert states(report) == {"group/Team": "changed"}
    assert codes(report) == ["drift/ignore-expired", "drift/ignore-nothing"]
    assert report["problems"][0]["source"] == {"file": "lmsconf.yaml", "line": 5, "column": 5}
    assert "drift/ignore-expired" in stage("validate").err


def test_an_entry_that_fits_nothing_is_a_note(stage: ServedProject) -> None:
    """The difference is gone or the pattern is misspelt; what only counts with --unmanaged is something, too."""
    more = '  - {address: "custom_field/Extra", reason: on trial}\n'
    stage.options(f"{OWNED}{IGNORE}{more}")
    report = drift(stage, code=0)
    assert [(one["code"], one["severity"], one["source"]["line"]) for one in report["problems"]] == [
        ("drift/ignore-nothing", "note", 5),
        ("drift/ignore-nothing", "note", 6),
    ]
    assert "custom_field/Extra" in states(drift(stage, "--unmanaged"), "ignored")


def test_an_entry_of_one_workspace_is_for_that_one(stage: ServedProject) -> None:
    """`ignore` may stand under a workspace, like ownership and guards."""
    project = stage.root / "lmsconf.yaml"
    said = project.read_text(encoding="utf-8")
    entry = "{address: 'group/*', reason: here only}"
    project.write_text(said.replace("here: {", f"here: {{ignore: [{entry}], "), encoding="utf-8")
    stage.hand("manual-groups.remove-member", {"groupId": "g-1", "userId": "u-bo"})
    assert states(drift(stage, code=0), "ignored") == {"group/Team": "changed"}


def test_what_a_run_of_this_machine_made_tells_nothing(stage: ServedProject) -> None:
    """What is declared and not live is missing, whatever journals lie here: the next machine has others, or none."""
    added = MANIFESTS.replace("  - name: LMS a\n", "  - name: LMS a\n  - name: LMS b\n")
    stage.write(added)
    assert states(drift(stage)) == {"group/LMS b": "missing"}
    assert stage("apply", "--auto-approve").code == 0
    made = json.loads(stage("api", "GET", "/groups").out)["groups"]
    stage.hand("manual-groups.delete", {"groupId": next(one["groupId"] for one in made if one["name"] == "LMS b")})
    stage.write(added.replace("  - name: LMS b\n", "  - name: LMS b\n  - name: LMS c\n"))
    report = drift(stage, code=2)
    assert states(report) == {"group/LMS b": "missing", "group/LMS c": "missing"}
    assert {one["cause"] for one in report["findings"]} == {None}
    rmtree(stage.root / ".lmsconf")
    assert {**drift(stage), "created_at": ""} == {**report, "created_at": ""}


def test_what_cannot_be_compared_is_an_error_and_hides_no_other_finding(stage: ServedProject) -> None:
    """Exit 1; nothing is said of the resource, and nothing of what is owned, because that may be the very one."""
    stage.write(MANIFESTS.replace("cy@acme.example", "nobody@acme.example"))
    stage.hand("smart-groups.delete", {"smartGroupId": "s-1"})
    stage.hand("manual-groups.create", None, {"name": "LMS new"})
    report = drift(stage, code=1)
    assert codes(report) == ["person/unknown"]
    assert states(report) == {"smart_group/All A": "missing"}
    assert stage("drift").code == 1


def test_what_an_apply_would_be_refused_is_drift_all_the_same(stage: ServedProject) -> None:
    """An eleventh field is certain to be refused, and still it is declared and not live: 2, not 1."""
    fields = "".join(f"  - {{name: F{n}, type: TEXT}}\n" for n in range(9))
    stage.write(MANIFESTS.replace("groups:\n", f"{fields}groups:\n", 1))
    report = drift(stage, code=2)
    assert len(report["findings"]) == 9
    assert codes(report) == []


@pytest.mark.parametrize("status", [500, 429])
@pytest.mark.parametrize("operation", ["manual-groups.list", "smart-groups.get", "content-targets.list", "users.*"])
def test_a_read_that_fails_is_no_drift(tmp_path: Path, operation: str, status: int) -> None:
    """Whatever cannot be read, there is no report that says missing: the run ends with the error."""
    world = _world(tmp_path, Sandbox(":memory:", seed=_seed(tmp_path)))
    sandbox = world.connection._transport
    assert isinstance(sandbox, Sandbox)
    sandbox._faults = FaultScript(Fault(operation=operation, status=status, times=10_000))
    with pytest.raises(LmsconfError):
        world.drift(load_manifests(world.settings))


class _RepeatingListing(Sandbox):
    """A workspace that tells its first group again and again, so that its list can never be known to be whole."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/groups" and request.method == "GET":
            url = request.url.copy_merge_params({"skip": "0", "limit": "1"})
            request = httpx.Request("GET", url, headers=request.headers)
        return super().handle_request(request)


def test_a_list_that_is_not_whole_is_an_error_and_never_missing(tmp_path: Path) -> None:
    """A group that a cut list lacks is neither missing nor undeclared; the other kinds are compared."""
    world = _world(tmp_path, _RepeatingListing(":memory:", seed=_seed(tmp_path)))
    found = world.drift(load_manifests(world.settings), reads_all=True)
    assert {problem.code for problem in found.problems if problem.is_error} == {"read/incomplete"}
    assert _states(found) == {}
    assert {one.kind: one.incomplete is None for one in found.coverage}["group"] is False


def test_machines_get_their_formats_in_files(stage: ServedProject) -> None:
    """JUnit and SARIF go where --output says, and the exit code stays what it is."""
    stage.hand("smart-groups.delete", {"smartGroupId": "s-1"})
    junit, sarif = stage.root / "drift.xml", stage.root / "drift.sarif"
    assert stage("drift", "--format", "junit", "--output", str(junit)).code == 2
    assert stage("drift", "--format", "sarif", "--output", str(sarif)).code == 2
    suites = {suite.get("name"): suite for suite in ET.parse(junit).getroot()}
    assert {name: (suite.get("tests"), suite.get("failures")) for name, suite in suites.items()} == {
        "assignments": ("2", "0"),
        "custom fields": ("1", "0"),
        "groups": ("2", "0"),
        "people": ("1", "0"),
        "smart groups": ("1", "1"),
    }
    (result,) = json.loads(sarif.read_text(encoding="utf-8"))["runs"][0]["results"]
    place = result["locations"][0]["physicalLocation"]
    line = MANIFESTS.splitlines()[place["region"]["startLine"] - 1]
    assert "All A" in line
    assert (stage.root / place["artifactLocation"]["uri"]).is_file()


def test_putting_it_back_is_the_line_that_the_report_gives(stage: ServedProject) -> None:
    """The line applies as it stands, and then the finding is gone."""
    stage.hand("manual-groups.remove-member", {"groupId": "g-1", "userId": "u-bo"})
    line = only(drift(stage))["hint"]["restore"].split()
    assert line[:4] == ["lmsconf", "-C", str(stage.root), "apply"]
    assert stage(*line[3:], "--auto-approve").code == 0
    assert drift(stage, code=0)["findings"] == []


def test_wrong_manifests_are_no_report(stage: ServedProject) -> None:
    """Exit 1 with the problems; nothing is read for manifests that have errors."""
    stage.write("groups: [{nam: X}]")
    seen = len(stage.sandbox.log)
    ran = stage("drift", "--format", "json")
    assert (ran.code, ran.document["format"]) == (1, "lmsconf.problems/1")
    assert len(stage.sandbox.log) == seen


def _seed(root: Path) -> Path:
    (root / "seed.yaml").write_text(SEED, encoding="utf-8")
    return root / "seed.yaml"


def _world(root: Path, sandbox: Sandbox) -> WorkspaceReader:
    """The same project over a workspace of the test's choosing, with no waiting between tries."""
    (root / "manifests").mkdir()
    (root / "manifests" / "all.yaml").write_text(MANIFESTS, encoding="utf-8")
    (root / "lmsconf.yaml").write_text(f"workspaces: {{sandbox: {{url: 'sandbox:'}}}}\n{OWNED}", encoding="utf-8")
    link: Connection = TransportConnection(sandbox, ApiSpec())
    return WorkspaceReader(settings=load_settings(root, None, {}, today=date(2026, 6, 1)), connection=link)


def _states(found: DriftReport) -> dict[str, DriftState]:
    return {str(one.address): one.state for one in found.findings}


def test_the_line_to_paste_names_one_resource(stage: ServedProject) -> None:
    """A star in a name stands for itself in the line that the report gives."""
    stage.write('groups: [{name: "Zebra *"}]')
    stage.options()
    assert only(drift(stage))["hint"] == {
        "restore": f"lmsconf -C {stage.root} apply --only 'group/Zebra *'",
        "accept": f"lmsconf -C {stage.root} drift --accept 'group/Zebra *'",
    }


def test_what_hides_an_error_is_not_called_idle(stage: ServedProject) -> None:
    """Where something could not be compared, an entry may fit just that."""
    stage.options(f'{OWNED}ignore: [{{address: "group/T*", reason: HR moves people}}]\n')
    stage.write(MANIFESTS.replace("cy@acme.example", "nobody@acme.example"))
    assert codes(drift(stage, code=1)) == ["person/unknown"]
