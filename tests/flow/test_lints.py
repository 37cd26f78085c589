"""Lints: manifests that are valid and probably not meant, told by `validate` and `plan` at their lines."""

import json
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from json_schemas import sarif_log, schema_validator
from manifest.cases import Case, cases
from texts import listed_cases, text_of

from lmsconf.errors import ExitCode
from lmsconf.model.lint_codes import RULES
from lmsconf.planner.lint_rules import lint_manifests
from lmsconf.support.files import read_guide_page, read_schema
from lmsconf.workspace.project_manifests import load_manifests

from .project import Project, project_file
from .shell import Ran, lmsconf

pytestmark = pytest.mark.sampled

SEED = text_of(__file__, "lints_seed.yaml")
OVER = "2020-01-01T00:00:00Z"


def targets(*entries: str) -> str:
    return "content_targets:\n" + "".join(f"  - {{{entry}}}\n" for entry in entries)


def made(root: Path, manifests: str, options: str = "", seed: str = SEED) -> Path:
    Project(root, seed, options).write(manifests)
    return root


def found(ran: Ran) -> list[dict[str, Any]]:
    """The findings of lints in a JSON document, which fits its schema."""
    document = ran.document
    name = str(document["format"]).removeprefix("lmsconf.").partition("/")[0]
    assert [error.message for error in schema_validator(name).iter_errors(document)] == []
    problems: list[dict[str, Any]] = document["problems"]  # type: ignore[assignment]  # a list, as the schema of plans says
    return [one for one in problems if str(one["code"]).startswith("lint/")]


def codes(root: Path, command: str, *arguments: str) -> list[str]:
    ran = lmsconf(root, command, "--format", "json", *arguments, code=ExitCode.OK)
    return [str(one["code"]).removeprefix("lint/") for one in found(ran)]


HERE = Path(__file__).parent
OFFLINE, PLANNED = cases(HERE / "lints.txt"), cases(HERE / "planned_lints.txt")


@pytest.mark.parametrize("case", OFFLINE, ids=lambda case: case.title)
def test_what_manifests_show_is_told_by_validate_and_plan(case: Case, tmp_path: Path) -> None:
    """Each fires, and does not beside its edge; a plan may know more, and these it knows too."""
    made(tmp_path, case.text)
    expected = case.told.splitlines()
    assert codes(tmp_path, "validate") == expected
    planned = codes(tmp_path, "plan")
    beyond = {"matches-nobody", "matches-everybody"}
    assert [code for code in planned if code not in beyond] == expected


@pytest.mark.parametrize(
    ("zone", "until", "is_over"),
    [
        ("", "2026-05-31T23:59:59Z", True),
        ("", "2026-06-01T00:00:00Z", False),
        ("timezone: America/New_York\n", "2026-06-01T03:59:59Z", True),
        ("timezone: America/New_York\n", "2026-06-01T04:00:00Z", False),
    ],
)
def test_manifests_alone_are_judged_at_the_beginning_of_the_day(
    tmp_path: Path, zone: str, until: str, is_over: bool
) -> None:
    """In the time zone of the project, or in UTC; the project's day is June 1, 2026."""
    it = Project(tmp_path, SEED, zone)
    it.write(targets(f'content: GDPR, visible_until: "{until}", assign_to: [everyone]'))
    found = lint_manifests(load_manifests(it.settings), it.settings.policy)
    assert [one.code for one in found] == (["lint/closed-window"] if is_over else [])


@pytest.mark.parametrize("case", PLANNED, ids=lambda case: case.title)
def test_what_needs_the_workspace_is_told_by_plan_alone(case: Case, tmp_path: Path) -> None:
    """Sizes are those after the plan; what it does not know it does not tell."""
    made(tmp_path, case.text)
    assert codes(tmp_path, "validate") == []
    assert sorted(codes(tmp_path, "plan")) == sorted(case.told.splitlines())


@pytest.mark.parametrize("case", PLANNED, ids=lambda case: case.title)
def test_lints_request_nothing(case: Case, tmp_path: Path) -> None:
    """A plan sends the same requests with all of them on and with all of them off."""
    off = ", ".join(f"{code}: {{level: off, reason: Not here}}" for code in RULES)
    asked = []
    for options in ("", f"lint: {{{off}}}\n"):
        project = Project(tmp_path, SEED, options)
        project.plan(case.text)
        asked.append(sorted((one.method, one.path) for one in project.calls))
    assert asked[0] == asked[1]
    assert codes(tmp_path, "plan") == []


CLOSED = targets(f'content: GDPR, visible_until: "{OVER}", assign_to: [everyone]')
CODE = "lint/closed-window"


def options(level: str, more: str = ", reason: It is history", code: str = CODE) -> str:
    return f"lint: {{{code}: {{level: {level}{more}}}}}\n"


@pytest.mark.parametrize(
    ("level", "severity", "exit"),
    [("note", "note", 0), ("warning", "warning", 0), ("error", "error", 1), ("off", None, 0)],
)
def test_a_level_is_the_severity(level: str, severity: str | None, exit: int, tmp_path: Path) -> None:
    """In both commands; `validate` exits 1 for an error, and a plan is shown with any."""
    made(tmp_path, CLOSED, options(level))
    validated, planned = (lmsconf(tmp_path, command, "--format", "json") for command in ("validate", "plan"))
    assert (validated.code, planned.code) == (exit, 0)
    for ran in (validated, planned):
        assert [one["severity"] for one in found(ran)] == ([] if severity is None else [severity])


@pytest.mark.sampled(day=1)
def test_an_error_stops_apply_and_is_told_where_others_are(tmp_path: Path) -> None:
    """Exit 4 with nothing sent, as for a test that fails; the plan says so before."""
    made(tmp_path, CLOSED, options("error"))
    assert "Apply would stop here:" in lmsconf(tmp_path, "plan", "--out", "plan.json").out
    (blocked,) = json.loads((tmp_path / "plan.json").read_text())["summary"]["blocked"]
    assert (blocked["type"], blocked["name"], blocked["allow"]) == ("test", CODE, None)
    for arguments in (("apply", "--auto-approve"), ("apply", "plan.json")):
        assert f"[{CODE}]" in lmsconf(tmp_path, *arguments, code=ExitCode.BLOCKED).err
    assert "everyone" not in lmsconf(tmp_path, "export", "live").out
    made(tmp_path, CLOSED, options("warning"))
    assert lmsconf(tmp_path, "apply", "--auto-approve").code == ExitCode.OK


def test_an_error_without_changes_is_told_as_such(tmp_path: Path) -> None:
    """The plan says that there are no changes, and not that none could be planned."""
    made(tmp_path, CLOSED)
    assert lmsconf(tmp_path, "apply", "--auto-approve").code == ExitCode.OK
    made(tmp_path, CLOSED, options("error"))
    assert "No changes. The workspace matches the manifests." in lmsconf(tmp_path, "plan").out


def test_the_digest_of_a_plan_does_not_depend_on_findings(tmp_path: Path) -> None:
    """They depend on time and on people: what was reviewed stays the same plan when a window closes."""
    made(tmp_path, CLOSED)
    document = lmsconf(tmp_path, "plan", "--format", "json").document
    assert all(not change["problems"] for change in document["changes"])  # type: ignore[attr-defined]  # changes are objects, as the schema of plans says
    assert [one["address"] for one in document["problems"]] == ["content_target/GDPR -> everyone"]  # type: ignore[attr-defined]  # so are problems
    lmsconf(tmp_path, "plan", "--out", "plan.json")
    ran = lmsconf(tmp_path, "apply", "plan.json", "--format", "json")
    assert (ran.code, ran.document["digest"]) == (0, document["digest"])


@listed_cases("setting", "code", "place")
def test_a_wrong_setting_is_an_error_at_its_place(setting: str, code: str, place: str, tmp_path: Path) -> None:
    """A level below the default needs a reason; codes, levels and keys are those that there are."""
    ran = lmsconf(made(tmp_path, CLOSED, f"lint: {setting}\n"), "validate", code=ExitCode.ERROR)
    assert f"{place}: error" in ran.err
    assert f"[{code}]" in ran.err


def test_a_level_above_the_default_needs_no_reason(tmp_path: Path) -> None:
    """Nor does the default itself."""
    for level in ("warning", "error"):
        assert "project/" not in lmsconf(made(tmp_path, CLOSED, options(level, "")), "validate").err


@pytest.mark.parametrize(("until", "holds"), [("2999-01-01", True), ("2020-01-01", False)])
def test_a_setting_holds_before_its_date(until: str, holds: bool, tmp_path: Path) -> None:
    """From that day on the default is back, and a note names the entry."""
    made(tmp_path, CLOSED, options("off", f", reason: x, until: {until}"))
    for command in ("validate", "plan"):
        assert codes(tmp_path, command) == ([] if holds else ["closed-window"])
    err = lmsconf(tmp_path, "validate").err
    assert ("lmsconf.yaml:3:8: note: lint: lint/closed-window: off held until 2020-01-01" in err) is not holds


def test_a_workspace_has_levels_of_its_own(tmp_path: Path) -> None:
    """They override those of the project code by code."""
    made(tmp_path, CLOSED, options("off"))
    said = project_file(options("off")).replace(
        "seed: workspace.yaml", f"seed: workspace.yaml, {options('error', '').strip()}", 1
    )
    (tmp_path / "lmsconf.yaml").write_text(said)
    assert lmsconf(tmp_path, "validate").code == ExitCode.ERROR


@pytest.mark.parametrize(("level", "told"), [("off", True), ("note", True), ("warning", False), ("error", False)])
def test_a_weaker_level_is_told_in_every_view(level: str, told: bool, tmp_path: Path) -> None:
    """Under the settings weaker than the default, as any other is, and in the policy of the JSON."""
    made(tmp_path, CLOSED, options(level))
    line = f"lint/closed-window: {level} (default: warning)"
    for format in ("text", "markdown", "html"):
        # Markdown and HTML escape the hyphen or the slash.
        assert (line in unescape(lmsconf(tmp_path, "plan", "--format", format).out).replace("\\", "")) is told
    policy = lmsconf(tmp_path, "plan", "--format", "json").document["policy"]
    assert policy["lint"] == {CODE: level}  # type: ignore[index]  # an object, as the schema of plans says


def test_a_change_cannot_lift_an_error_of_its_base(tmp_path: Path) -> None:
    """With --base, the finding still stops apply, and the setting stands under the settings that differ."""
    base = made(tmp_path / "base", CLOSED, options("error"))
    changed = made(tmp_path / "changed", CLOSED, options("off"))
    alone = lmsconf(changed, "plan", "--format", "json")
    beside = lmsconf(changed, "plan", "--base", str(base), "--format", "json")
    assert found(alone) == []
    assert [one["severity"] for one in found(beside)] == ["error"]
    assert beside.document["digest"] == alone.document["digest"]
    (setting,) = beside.document["settings_changed"]  # type: ignore[misc]  # a list of one, or the test fails
    assert setting == {"path": CODE, "base": "error", "now": "off", "weaker": True}


def test_a_finding_stands_at_its_line_and_names_its_page(tmp_path: Path) -> None:
    """File, line and column of the key; a window that is said for all audiences is found there."""
    made(tmp_path, CLOSED)
    place = f"manifests/all.yaml:2:{CLOSED.splitlines()[1].index('visible_until') + len('visible_until: ') + 1}"
    for command in ("validate", "plan"):
        ran = lmsconf(tmp_path, command)
        text = ran.out + ran.err
        assert f"{place}: warning: content_target/GDPR -> everyone: its window closed at {OVER[:-1]}+00:00" in text
        assert f"lmsconf explain {CODE}" in text


def _sarif(text: str) -> Any:
    log = sarif_log(text)
    (run,) = log.runs
    rules = [rule.id for rule in run.tool.driver.rules or []]
    assert all(rules[result.rule_index or 0] == result.rule_id for result in run.results or [])
    return log


def test_sarif_and_annotations_have_the_line(tmp_path: Path) -> None:
    """Of `validate`, and of a saved plan; a model of the standard reads the log, and each result names its rule."""
    made(tmp_path, CLOSED)
    lmsconf(tmp_path, "plan", "--out", "plan.json")
    for arguments in (("validate",), ("show", "plan.json")):
        (run,) = _sarif(lmsconf(tmp_path, *arguments, "--format", "sarif").out).runs
        (result,) = run.results or []
        assert (result.rule_id, str(result.level)) in ((CODE, "warning"), (CODE, "Level.WARNING"))
        raw = json.loads(lmsconf(tmp_path, *arguments, "--format", "sarif").out)["runs"][0]["results"][0]
        place = raw["locations"][0]
        assert place["physicalLocation"]["artifactLocation"]["uri"] == "manifests/all.yaml"
        assert place["physicalLocation"]["region"]["startLine"] == 2
        assert place["logicalLocations"][0]["fullyQualifiedName"] == "content_target/GDPR -> everyone"
        github = lmsconf(tmp_path, *arguments, "--format", "github").out
        assert github.startswith("::warning file=manifests/all.yaml,line=2,col=")
        assert f"title={CODE}::" in github


def test_errors_are_annotated_too(tmp_path: Path) -> None:
    """Of manifests and of the project file; the command still exits 1."""
    for manifests, options in (("grups: []", ""), (CLOSED, "lint: {}\nguard: {}\n")):
        made(tmp_path, manifests, options)
        ran = lmsconf(tmp_path, "validate", "--format", "github", code=ExitCode.ERROR)
        assert ran.out.startswith("::error file=")
        (run,) = _sarif(lmsconf(tmp_path, "validate", "--format", "sarif").out).runs
        assert len(run.results or []) == 1


@pytest.mark.parametrize("code", RULES)
def test_every_code_has_a_page(code: str, tmp_path: Path) -> None:
    """With its default level, where it is told, why, and what to do; as JSON it fits the schema."""
    ran = lmsconf(tmp_path, "explain", code)
    rule = RULES[code]
    text = " ".join(ran.out.split())
    assert ran.code == ExitCode.OK
    assert text.startswith(f"{code}: lint, {rule.level} by default, in ")
    for part in (rule.title, rule.why, rule.remedy, rule.known_from):
        assert " ".join(part.split()) in text
    document = lmsconf(tmp_path, "explain", code, "--format", "json").document
    assert [error.message for error in schema_validator("explain").iter_errors(document)] == []


def test_the_lints_are_listed(tmp_path: Path) -> None:
    """`explain lint` names all of them; a code that is none is refused with the nearest one."""
    text = lmsconf(tmp_path, "explain", "lint").out
    assert [line.split()[0] for line in text.splitlines() if line.startswith("  lint/")] == list(RULES)
    assert "lint/closed-window" in lmsconf(tmp_path, "explain", "lint/closed", code=ExitCode.USAGE).err


def test_the_guide_lists_every_code() -> None:
    """With its title, its default level and the commands that report it, in the order of `explain lint`."""
    page = read_guide_page("lints")
    rows = [row for row in page.splitlines() if row.startswith("| `lint/")]
    where = {True: "validate, plan", False: "plan"}
    assert rows == [
        f"| `{rule.code}` | {rule.title} | {rule.level} | {where[rule.in_validate]} |" for rule in RULES.values()
    ]
    assert "No lint is an error by default." in page
    assert all(rule.level != "error" for rule in RULES.values())


def test_the_schema_of_the_project_file_has_all_codes() -> None:
    """An editor completes them, and no other is taken."""
    assert list(json.loads(read_schema("project.schema.json"))["$defs"]["lint"]["properties"]) == list(RULES)


def test_a_field_that_is_deleted_makes_room(tmp_path: Path) -> None:
    """Of ten fields one goes: there is room for another one, so that an unused one is in nobody's way."""
    seed = "custom_fields: [" + ", ".join(f"{{name: F{n}, type: TEXT}}" for n in range(10)) + "]\n"
    it = Project(tmp_path, seed, "guards: off\n")
    unused = "custom_fields: [{name: F0, type: TEXT}]\n"
    for manifests, told in ((unused, True), (unused + "absent: {custom_fields: [F9]}\n", False)):
        assert ("lint/unused-field" in [one.code for one in it.plan(manifests).all_problems]) == told


def test_a_condition_that_asks_for_something_else_live_is_not_impossible(tmp_path: Path) -> None:
    """Declared without a system condition, a condition keeps that of the service, and may be met by anybody."""
    field = "custom_fields: [{name: C, type: CHOICE, choices: [A, B]}]\n"
    live = "smart_groups: [{name: S, conditions: [{field: C, choices: [A], system_condition: IS_ODD}]}]\n"
    it = Project(tmp_path, field + live)
    plan = it.plan("smart_groups: [{name: S, conditions: [{field: C, choices: [A]}, {field: C, choices: [B]}]}]\n")
    assert "lint/impossible-conditions" not in [one.code for one in plan.all_problems]
