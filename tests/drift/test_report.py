"""What counts as drift and what does not: ignore entries, unmanaged things, incomplete reads, a base, formats."""

import json
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from shutil import copytree, ignore_patterns, rmtree
from typing import Any, Final

import httpx
import pytest
from basis.repository import init
from integrity.served_project import ServedProject
from json_schemas import schema_validator
from texts import listed_cases
from waiting import nobody_waits

from lmsconf.errors import ExitCode
from lmsconf.sandbox.faults import Fault, FaultScript

from .conftest import MANIFESTS, OWNED, codes, drift, only, states

pytestmark = pytest.mark.sampled(day=8)


def out_of_the_group(stage: ServedProject) -> object:
    """A member leaves the group Team."""
    return stage.hand("manual-groups.remove-member", {"groupId": "g-1", "userId": "u-bo"})


def edited(edits: Mapping[str, str]) -> str:
    """The manifests with other text in them."""
    text = MANIFESTS
    for old, new in edits.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


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


IGNORE: Final = """ignore:
  - {address: "group/T*", reason: HR moves people, until: 2999-01-01}
  - {address: "smart_group/All [AC]", reason: experiment}
"""


def told(report: Mapping[str, Any]) -> Iterator[str]:
    """A report in lines: what is found, what is ignored and why, and problems with their place."""
    for one in report["findings"]:
        yield f"{one['address']} is {one['state']}"
    for one in report["ignored"]:
        entry = one["ignored_by"]
        yield f"{one['address']} is {one['state']}, ignored by {entry['address']}: {entry['reason']}, {entry['until']}"
        yield f"  {entry['source']['file']}:{entry['source']['line']}:{entry['source']['column']}"
    for one in report["problems"]:
        place = one["source"] or {"file": "", "line": 0, "column": 0}
        yield f"{one['severity']} {one['code']} {place['file']}:{place['line']}:{place['column']}"


@listed_cases("options", "hands", "edits", "arguments", "code", "lines")
def test_what_counts(
    stage: ServedProject,
    options: str,
    hands: list[Any],
    edits: dict[str, str],
    arguments: list[str],
    code: int,
    lines: list[str],
) -> None:
    """All that differs does, but for what an entry ignores; with `--unmanaged` also what nobody manages.

    An entry whose day has come hides nothing; one that fits nothing is a note, unless something could not be compared:
    it may fit just that. That is an error, and nothing is said of the resource, nor of what is owned, because that may
    be the very one. What an apply would be refused is drift all the same.
    """
    stage.options(f"{OWNED}{options.replace('IGNORE', IGNORE)}")
    stage.write(edited(edits))
    for call in hands:
        stage.hand(*call)
    assert [*told(drift(stage, *arguments, code=code))] == lines


def test_text_says_what_is_ignored_and_validate_that_it_no_longer_is(stage: ServedProject) -> None:
    """Until when, and why."""
    stage.options(f"{OWNED}{IGNORE}")
    out_of_the_group(stage)
    assert "Ignored until 2999-01-01: HR moves people" in stage("drift", code=0).out
    stage.options(f"{OWNED}{IGNORE.replace('2999', '2020')}")
    assert "drift/ignore-expired" in stage("validate").err


def test_what_nobody_manages_can_be_exported(stage: ServedProject) -> None:
    """There is no way to revert it."""
    report = drift(stage, "--unmanaged", code=2)
    assert report["findings"][0]["hint"] == {"restore": None, "accept": f"lmsconf -C {stage.root} export --into"}


def test_an_entry_of_one_workspace_is_for_that_one(stage: ServedProject) -> None:
    """`ignore` may stand under a workspace, like ownership and guards."""
    project = stage.root / "lmsconf.yaml"
    said = project.read_text(encoding="utf-8")
    entry = "{address: 'group/*', reason: here only}"
    project.write_text(said.replace("here: {", f"here: {{ignore: [{entry}], "), encoding="utf-8")
    out_of_the_group(stage)
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


@pytest.mark.sampled
@pytest.mark.parametrize("status", [500, 429])
@pytest.mark.parametrize("operation", ["manual-groups.list", "smart-groups.get", "content-targets.list", "users.*"])
def test_a_read_that_fails_is_no_drift(
    stage: ServedProject, monkeypatch: pytest.MonkeyPatch, operation: str, status: int
) -> None:
    """Whatever cannot be read, there is no report that says missing: the run ends with the error."""
    nobody_waits(monkeypatch)
    stage.sandbox._faults = FaultScript(Fault(operation=operation, status=status, times=10_000))
    assert stage("drift", "--format", "json", code=ExitCode.UNREACHABLE).document["format"] == "lmsconf.problems/1"


def test_a_list_that_is_not_whole_is_an_error_and_never_missing(
    stage: ServedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group that a cut list lacks is neither missing nor undeclared; the other kinds are compared.

    The list can never be known to be whole where its first group comes again and again.
    """
    answer = stage.sandbox.handle_request

    def repeating(request: httpx.Request) -> httpx.Response:
        if (request.method, request.url.path) == ("GET", "/groups"):
            url = request.url.copy_merge_params({"skip": "0", "limit": "1"})
            request = httpx.Request("GET", url, headers=request.headers)
        return answer(request)

    monkeypatch.setattr(stage.sandbox, "handle_request", repeating)
    report = drift(stage, "--coverage", code=1)
    assert {one["code"] for one in report["problems"] if one["severity"] == "error"} == {"read/incomplete"}
    assert states(report) == {}
    assert [one["kind"] for one in report["coverage"] if one["incomplete"]] == ["group"]


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
    assert "All A" in MANIFESTS.splitlines()[place["region"]["startLine"] - 1]
    assert (stage.root / place["artifactLocation"]["uri"]).is_file()


def test_putting_it_back_is_the_line_that_the_report_gives(stage: ServedProject) -> None:
    """The line applies as it stands, and then the finding is gone. A star in a name stands for itself in it."""
    out_of_the_group(stage)
    line = only(drift(stage))["hint"]["restore"].split()
    assert line[:4] == ["lmsconf", "-C", str(stage.root), "apply"]
    assert stage(*line[3:], "--auto-approve").code == 0
    assert drift(stage, code=0)["findings"] == []
    stage.write('groups: [{name: "Zebra *"}]')
    stage.options()
    assert only(drift(stage))["hint"] == {
        "restore": f"lmsconf -C {stage.root} apply --only 'group/Zebra *'",
        "accept": f"lmsconf -C {stage.root} drift --accept 'group/Zebra *'",
    }


def test_wrong_manifests_are_no_report(stage: ServedProject) -> None:
    """Exit 1 with the problems; nothing is read for manifests that have errors."""
    stage.write("groups: [{nam: X}]")
    seen = len(stage.sandbox.log)
    assert stage("drift", "--format", "json", code=1).document["format"] == "lmsconf.problems/1"
    assert len(stage.sandbox.log) == seen


@pytest.mark.sampled(day=1)
def test_what_rests_on_something_doubtful_has_no_line_to_make_it(stage: ServedProject) -> None:
    """An assignment to a smart group whose field may have another name: an apply of it alone would make all three."""
    stage.write(edited({"      - everyone\n": "      - everyone\n      - {smart_group: All A}\n"}))
    choices = [{"name": "A"}, {"name": "B"}]
    stage.edited(
        [
            *(["smart-groups.delete", {"smartGroupId": id}] for id in ("s-1", "s-2")),
            ["custom-fields.replace", {"customFieldId": "f-1"}, {"name": "Unit"}],
            ["custom-fields.create", None, {"name": "Area", "type": "CHOICE", "choices": choices}],
        ]
    )
    lines = {one["address"]: one["hint"]["restore"] for one in drift(stage, code=2)["findings"]}
    addresses = ("content_target/Basics -> smart_group/All A", "custom_field/Dept", "smart_group/All A")
    assert lines == dict.fromkeys(addresses)


# `drift --base`: what was changed by hand is told from what is not applied yet, and only the former counts.


BASE: Final = "./applied"


@pytest.fixture
def applied(stage: ServedProject, monkeypatch: pytest.MonkeyPatch) -> None:
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


NEW: Final = {"  - name: LMS a\n": "  - name: LMS a\n  - name: LMS b\n"}


@pytest.mark.usefixtures("applied")
@listed_cases("edits", "hands", "found", "waiting")
def test_what_differs_from_the_base_was_changed_by_hand(
    stage: ServedProject, edits: dict[str, str], hands: list[Any], found: dict[str, str], waiting: list[str]
) -> None:
    """Whatever else is not applied yet; what only the manifests at hand say is listed, and does not count.

    A renamed declaration is the same resource, by the id of what is live. Without a base, nothing says who made it.
    """
    for call in hands:
        stage.hand(*call)
    stage.write(edited(edits))
    plain = drift(stage, code=2)
    assert (set(causes(plain).values()), plain["base"], plain["not_applied"]) == ({None}, None, [])
    report = based(stage, 2 if found else 0)
    assert report["base"] == BASE
    assert states(report) == found
    assert set(causes(report).values()) <= {"changed by hand"}
    assert causes(report, "not_applied") == dict.fromkeys(waiting, "not applied yet")
    assert report["summary"]["not_applied"] == len(waiting)


@pytest.mark.sampled(day=1)
@pytest.mark.usefixtures("applied")
def test_a_resource_that_both_have_changed_is_drift(stage: ServedProject) -> None:
    """The keys that only the manifests have changed are named, and no line offers to undo them."""
    out_of_the_group(stage)
    stage.write(MANIFESTS.replace("managers: [cy@acme.example]", "managers: [cy@acme.example, bo@acme.example]"))
    (finding,) = based(stage, 2)["findings"]
    assert (finding["cause"], finding["unapplied"]) == ("changed by hand", ["managers"])
    assert finding["hint"]["accept"] is None
    assert "not applied yet: managers" in stage("drift", "--base", BASE).out


@pytest.mark.usefixtures("applied")
def test_a_base_that_cannot_be_planned_tells_nothing(stage: ServedProject) -> None:
    """All that differs counts, and a warning says why; of a single entry that cannot, the others are still told."""
    out_of_the_group(stage)
    stage.write(edited(NEW))
    base = stage.root / "applied" / "manifests" / "all.yaml"
    base.write_text("groups: [{nam: X}]", encoding="utf-8")
    report = based(stage, 2)
    assert causes(report) == {"group/LMS b": None, "group/Team": None}
    assert codes(report) == ["base/not-planned"]
    base.write_text(MANIFESTS.replace("cy@acme.example", "nobody@acme.example"), encoding="utf-8")
    report = based(stage, 2)
    assert causes(report) == {"group/Team": None}
    assert causes(report, "not_applied") == {"group/LMS b": "not applied yet"}


@pytest.mark.usefixtures("applied")
def test_every_format_tells_them_apart(stage: ServedProject) -> None:
    """By hand counts and fails; not applied yet is listed, skipped, or suppressed, with what was compared."""
    stage.write(edited(NEW))

    def shown(format: str) -> str:
        return stage("drift", "--base", BASE, "--format", format).out

    for told in map(shown, ("text", "markdown", "html")):
        assert "the state that was applied last" in told.replace("\\", "")
        assert "No drift. These differences do not count: 1 not applied yet." in told
        assert "group/LMS b" in told
        assert "matches the manifests" not in told
    out_of_the_group(stage)
    assert "Drift: 1 changed. In addition: 1 not applied yet." in shown("text")
    suites = ET.fromstring(shown("junit"))
    assert [len(list(suites.iter(name))) for name in ("failure", "skipped", "error")] == [1, 1, 0]
    [log] = json.loads(shown("sarif"))["runs"]
    suppressed = {result["message"]["text"].split()[0]: "suppressions" in result for result in log["results"]}
    assert suppressed == {"group/Team": False, "group/LMS": True}


@pytest.mark.usefixtures("applied")
def test_a_base_may_be_a_commit(stage: ServedProject) -> None:
    """As with `plan --base`; and no request is sent where the project file would go elsewhere than the base's."""
    init(stage.root)
    stage.write(edited(NEW))
    assert causes(drift(stage, "--base", "main", code=0), "not_applied") == {"group/LMS b": "not applied yet"}
    stage.options(f"{OWNED}dialect: {{content-targets.everyone: ALL}}\n")
    seen = len(stage.sandbox.log)
    assert stage("drift", "--base", "main").code == 1
    assert len(stage.sandbox.log) == seen


@pytest.mark.usefixtures("applied")
@pytest.mark.parametrize("arguments", [["--base", BASE, "--accept", "*"], ["--trust-project", "url"]])
def test_what_does_not_go_together_is_a_wrong_command_line(stage: ServedProject, arguments: list[str]) -> None:
    """Exit 64, and nothing is read."""
    seen = len(stage.sandbox.log)
    assert stage("drift", *arguments).code == 64
    assert len(stage.sandbox.log) == seen
