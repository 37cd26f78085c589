"""Declarations: what manifests promise word for word, and each that cannot be planned, with the way out."""

import json
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from manifest.cases import Case, cases, shown
from texts import listed_cases, text_of

from lmsconf.errors import ExitCode, Problem, ProblemsFound
from lmsconf.model.address import Address
from lmsconf.project.settings import load_settings
from lmsconf.workspace.project_manifests import load_manifests, validate_offline

from .altered_service import Edit, plan_against, put_at
from .project import TODAY, Project
from .shell import lmsconf

SEED = """
people: [{email: anna@acme.example, id: u-anna}]
custom_fields: [{name: Dept, type: CHOICE, choices: [A, B]}]
groups: [{name: G, id: g-1}, {name: D, id: g-2}]
content: [{name: Intro, id: c-1}, {name: Twin, id: c-2}, {name: Other, id: c-3}]
content_targets: [{content: Intro, assign_to: [{group: G}], visible_from: 2026-01-05T10:00:00Z}]
"""
ANNA = "assign_to: [{user: anna@acme.example}]"


def errors(plan: Callable[[], object]) -> list[Problem]:
    """The errors that there is no plan because of."""
    with pytest.raises(ProblemsFound) as caught:
        plan()
    return [problem for problem in caught.value.problems if problem.is_error]


@pytest.mark.sampled
@pytest.mark.parametrize(
    "case", cases(Path(__file__).with_name("refused_declarations.txt")), ids=lambda case: case.title
)
def test_what_contradicts_itself_or_the_workspace_is_an_error(tmp_path: Path, case: Case) -> None:
    """One error, at its place in the manifest."""
    it = Project(tmp_path, SEED)
    it.write(case.text)
    assert shown(list(load_manifests(it.settings).problems) or errors(it.plan)) == case.told


def edited(changes: str) -> Edit:
    """An edit of a snapshot: a mapping of places to what is there instead."""
    return lambda snapshot: [put_at(snapshot, place, value) for place, value in yaml.safe_load(changes).items()]


@pytest.mark.sampled
@pytest.mark.parametrize("case", cases(Path(__file__).with_name("open_workspaces.txt")), ids=lambda case: case.title)
def test_what_the_workspace_leaves_open_is_an_error(tmp_path: Path, case: Case) -> None:
    """Two contents of one name, a time that cannot be read, an assignment that may be for either of two."""
    changes, _, manifests = case.text.removeprefix("workspace: ").partition("\n")
    found = errors(lambda: plan_against(Project(tmp_path, SEED), manifests, edited(changes)))
    assert shown(found) == case.told


def test_a_pinned_content_may_be_listed_twice(tmp_path: Path) -> None:
    """A page that repeats a row of the one before it makes no second content."""
    entry = "content_targets: [{content: {name: Other, id: c-3}, assign_to: [everyone]}]"
    plan = plan_against(Project(tmp_path, SEED), entry, edited("content.3: {id: c-3, name: Other, type: COURSE}"))
    assert [f"{change.action} {change.address}" for change in plan.changes] == [
        "create content_target/Other -> everyone"
    ]


GROUP_GONE = "{user.0.id: g-1, group: [], incomplete.group: page 2 failed, content_target.0.type: GROUP}"
PERSON_GONE = "{content_target.0.type: USER, content_target.0.label: ''}"


@pytest.mark.parametrize(("changes", "audience"), [(GROUP_GONE, ANNA), (PERSON_GONE, "assign_to: [{group: G}]")])
def test_an_assignment_is_not_taken_for_that_of_another_kind(tmp_path: Path, changes: str, audience: str) -> None:
    """One whose type names groups is not for the person with its id, nor one of type USER for the group."""
    entry = f"content_targets: [{{content: Intro, {audience}}}]"
    plan = plan_against(Project(tmp_path, SEED), entry, edited(changes))
    assert [str(change.action) for change in plan.changes] == ["create"]
    assert plan_against(Project(tmp_path, SEED), f"absent: {{{entry}}}", edited(changes)).changes == ()


def test_an_id_that_no_list_of_people_holds_is_noted(tmp_path: Path) -> None:
    """It is not removed from a declared list, and the plan says that it is there."""
    unlisted = edited("group.0.members: [u-404]")
    plan = plan_against(Project(tmp_path, SEED), "groups: [{name: G, members: []}]", unlisted)
    assert plan.changes == ()
    [note] = [one for one in plan.all_problems if one.code == "person/unexplained"]
    assert note.message == "group/G: members hold user id u-404, which is in no list of people; it is not changed"


@pytest.mark.sampled(day=3)
@pytest.mark.parametrize(
    "entry",
    [
        "groups: [{name: New NUMBER, members: [anna.bergNUMBER@acme.example]}]",
        "content_targets: [{content: Intro, assign_to: [{group: Group of coaches NUMBER}]}]",
        "content_targets: [{content: Introduction NUMBER, assign_to: [everyone]}]",
    ],
    ids=["people", "audiences", "contents"],
)
def test_only_the_first_unknown_names_are_compared_with_the_known(tmp_path: Path, entry: str) -> None:
    """Fifty of many unknown names get `Did you mean`; all are errors, and say what to do."""
    people, groups = "people: [{email: anna.berg@acme.example}]", "groups: [{name: Group of coaches}]"
    project = Project(tmp_path, f"{people}\n{groups}\ncontent: [{{name: Introduction}}, {{name: Intro}}]")
    for number in range(10, 70):
        project.write(entry.replace("NUMBER", str(number)), f"{number}.yaml")
    hints = [problem.hint or "" for problem in errors(project.plan)]
    assert (len(hints), all(hints)) == (60, True)
    assert sum(hint.startswith("Did you mean ") for hint in hints) == 50


# What manifests promise, word for word: times, dates, people from CSV files, and what validate finds by itself.


EVERYTHING = text_of(__file__, "refused_declarations_everything.yaml")


def project(root: Path, manifests: str, options: str = "timezone: Europe/Stockholm\n") -> Project:
    made = Project(root, text_of(__file__, "refused_declarations_promised_seed.yaml"), options)
    made.write(manifests)
    return made


def told(it: Project) -> list[Problem]:
    """What `lmsconf validate` finds."""
    return list(validate_offline(it.settings).problems)


def open_window(root: Path, key: str, time: str, options: str = "timezone: Europe/Stockholm\n") -> Project:
    line = f"content_targets: [{{content: GDPR basics, {key}: {time}, assign_to: [everyone]}}]"
    return project(root, line, options)


def test_every_key_at_once(tmp_path: Path) -> None:
    """A manifest with a key of every sort plans, applies, and then wants nothing more."""
    it = project(tmp_path, EVERYTHING)
    (tmp_path / "manifests" / "hr").mkdir()
    (tmp_path / "manifests" / "hr" / "leaders.csv").write_bytes(
        b"\xef\xbb\xbfemail;Group\r\n anna.berg@acme.example ;Leadership SE\r\nbo.ek@acme.example;Other\r\n"
    )
    # Everyone must take the content: `mandatory: false` and a shorter window for smaller audiences change nothing.
    overruled = ["lint/contradicting-assignments"] * 2
    assert [problem.code for problem in told(it)] == ["reference/unknown-workspace", *overruled]
    plan = it.plan()
    assert {(change.action.value, str(change.address)) for change in plan.changes} == {
        ("update", "custom_field/Department"),
        ("update", "group/Onboarding coaches"),
        ("delete", "group/Summer interns 2024"),
        ("create", "smart_group/Sales Nordics"),
        ("create", "content_target/GDPR basics -> smart_group/Sales Nordics"),
        ("create", "content_target/GDPR basics -> group/Onboarding coaches"),
        ("create", "content_target/GDPR basics -> user/bo.ek@acme.example"),
        ("create", "content_target/GDPR basics -> everyone"),
    }
    assert plan.manifests_files == ("manifests/all.yaml", "manifests/hr/leaders.csv")
    assert it.apply(plan=plan).converged
    assert it.plan().changes == ()


@listed_cases("key", "said", "sent")
def test_times(key: str, said: str, sent: str, tmp_path: Path) -> None:
    """A bare date is midnight or the last second, in the project's zone unless an offset stands there."""
    it = open_window(tmp_path, key, said)
    (call,) = it.plan().calls
    moment = datetime.fromisoformat(sent)
    value = f"{moment.timestamp():.0f}000" if it.spec.behaviour("content-targets.time-format") == "epoch-ms" else sent
    name = {"visible_from": "startTime", "visible_until": "finishTime"}[key]
    assert it.spec.body_to_wire("content-targets.create", **{name: value}).items() <= call.body.items()
    assert it.apply().converged
    assert it.plan().changes == ()


@listed_cases("said", "zone", "reason", "hint")
def test_times_that_are_none(said: str, zone: str | None, reason: str, hint: str, tmp_path: Path) -> None:
    """A moment that a clock change skips or repeats, that has no zone, or no year, is an error with its way out."""
    (problem,) = told(open_window(tmp_path, "visible_until", said, f"timezone: {zone}\n" if zone else ""))
    assert (problem.code, str(problem.source)) == ("manifest/time", "manifests/all.yaml:1:57")
    assert reason in problem.message
    assert hint in str(problem.hint)


def test_validate_knows_the_day(tmp_path: Path) -> None:
    """An entry under `absent` that is past its date is an error without looking at the workspace."""
    it = project(tmp_path, "absent: {groups: [{name: A, until: 2026-05-31}, {name: B, until: 2026-06-01}]}")
    (problem,) = told(it)
    assert (problem.code, problem.address, str(problem.source)) == (
        "absent/expired",
        "group/A",
        "manifests/all.yaml:1:19",
    )


def test_validate_knows_the_dialect(tmp_path: Path) -> None:
    """A key or value that the dialect does not have is told at its line, beside what is wrong in the manifests."""
    options = "dialect:\n  custom-fields.in-use: sometimes\n  nothing.of-that-name: x\n"
    assert [(problem.code, str(problem.source)) for problem in told(project(tmp_path, "grups: []", options))] == [
        ("dialect/value", "lmsconf.yaml:4:3"),
        ("dialect/unknown-key", "lmsconf.yaml:5:3"),
        ("manifest/unknown-key", "manifests/all.yaml:1:1"),
    ]


def test_a_workspace_has_its_own_dialect(tmp_path: Path) -> None:
    """What one workspace overrides is looked at, and placed, where that workspace says it."""
    project(tmp_path, "groups: [{name: A}]")
    text = (tmp_path / "lmsconf.yaml").read_text().replace("seed:", "dialect: {paging.limit: none}, seed:")
    (tmp_path / "lmsconf.yaml").write_text(text)
    (problem,) = validate_offline(load_settings(tmp_path, None, {}, today=TODAY)).problems
    assert (problem.code, str(problem.source)) == ("dialect/value", "lmsconf.yaml:2:52")


# Live names with tabs, line breaks and other control characters: written as escapes, `"a\tb"`, and shown as such.


NAMES = {
    "tab": "a\tb",
    "line break": "a\nforged",
    "breaks around": "\r\nforged\n",
    "escape": "a\x1b[31m\x07b",
    "right to left": "a\u202eb\u2028forged",
    "null": "a\x00b",
    "all": 'q"\t\\t $(x)\n- {name: forged}',
}
KINDS = ("custom_fields", "groups", "smart_groups", "content_targets")


def _seed(name: str) -> dict[str, Any]:
    return {"people": [{"email": "ann@x.example"}], "content": [{"name": name}]}


def _declared(name: str) -> dict[str, Any]:
    """One resource of each kind, all with that name, and all that refer to each other."""
    return {
        "custom_fields": [{"name": name, "type": "CHOICE", "choices": [name, "Other"]}],
        "groups": [{"name": name, "members": ["ann@x.example"]}],
        "smart_groups": [{"name": name, "conditions": [{"field": name, "choices": [name]}]}],
        "users": [{"email": "ann@x.example", "answers": {name: name}}],
        "content_targets": [{"content": name, "assign_to": [{"group": name}, {"smart_group": name}, "everyone"]}],
    }


def _absent(name: str) -> dict[str, Any]:
    return {"absent": {kind: [name] for kind in KINDS[1:3]} | {"custom_fields": [name]}}


def _text(value: Any) -> str:
    """A document of JSON, which is YAML with every text in double quotes; `$$(` is a literal `$(` in a value."""

    def literal(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: literal(item) for key, item in node.items()}
        if isinstance(node, list):
            return [*map(literal, node)]
        return node.replace("$(", "$$(") if isinstance(node, str) else node

    return json.dumps(literal(value))


def _made(root: Path, name: str, *, whole: bool = False, options: str = "") -> Project:
    seed = _seed(name)
    if whole:
        declared = _declared(name)
        seed |= {kind: declared[kind] for kind in KINDS}
        seed["people"][0]["answers"] = {name: name}
    return Project(root, json.dumps(seed), options)


def _is_visible(text: str) -> bool:
    """Whether a text has no control character but its own line breaks, and no name begins one of its lines."""
    lines = text.split("\n")
    return all(line.isprintable() and not line.lstrip(" -|>").startswith(("forged", "{name: forged")) for line in lines)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_what_is_live_is_exported_with_escapes_and_planned_without_changes(tmp_path: Path, name: str) -> None:
    """Each kind, choices and references; the files hold no control character, and `fmt` has nothing to change."""
    it = _made(tmp_path, name, whole=True)
    assert lmsconf(tmp_path, "export", "manifests", code=ExitCode.OK).err.count("left out") == 0
    files = [path.read_text(encoding="utf-8") for path in sorted((tmp_path / "manifests").rglob("*.yaml"))]
    assert all(_is_visible(text) for text in files)
    plan = it.plan()
    assert not plan.changes
    assert not plan.unmanaged
    assert lmsconf(tmp_path, "fmt", "--check").code == ExitCode.OK


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_such_names_are_declared_assigned_and_deleted(tmp_path: Path, name: str) -> None:
    """After each apply the next plan is empty."""
    it = _made(tmp_path, name, options='vars: {x: "y"}\n')
    declared = _declared(name)
    it.settled(_text(declared))
    assert not it.plan(_text(declared)).changes
    it.settled(_text(declared | {"users": [{"email": "ann@x.example", "answers": {name: None}}]}))
    it.settled(_text(_absent(name)))
    assert not it.plan(_text(_absent(name))).changes
    assert name not in it.fields()


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_printed_address_selects_what_it_names(tmp_path: Path, name: str) -> None:
    """As the text of a plan prints it, pasted into --only and --except, and under `leave_alone`."""
    it = _made(tmp_path, name, whole=True)
    it.write(_text(_absent(name)))
    [shown] = [line for line in lmsconf(tmp_path, "plan").out.split("\n") if line.startswith("  - group/")]
    printed = shown.removeprefix("  - ").removesuffix(" will be deleted")
    kinds = {}
    for option in ("only", "except"):
        plan = json.loads(lmsconf(tmp_path, "plan", f"--{option}", printed, "--format", "json").out)
        kinds[option] = {change["kind"] for change in plan["changes"]}
    assert kinds == {"only": {"content_target", "group"}, "except": {"content_target", "custom_field", "smart_group"}}
    it.write_options(f"leave_alone: [{json.dumps(str(Address.of('group', name)))}]\n")
    assert "`leave_alone` of the project file matches group/" in lmsconf(tmp_path, "plan").err


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_name_that_was_given_by_hand_is_accepted(tmp_path: Path, name: str) -> None:
    """`drift --accept` writes it with escapes, in the resource and in all that refers to it; then a plan is empty."""
    it = Project(tmp_path, json.dumps(_seed("Plain")))
    declared = {kind: entries for kind, entries in _declared("Plain").items() if kind != "users"}
    it.settled("\n".join(f"{kind}: {json.dumps(entries)}" for kind, entries in declared.items()))
    [group] = cast("Any", it.ask("manual-groups.list"))["groups"]
    [smart] = cast("Any", it.ask("smart-groups.list"))["smartGroups"]
    it.send("manual-groups.rename", {"groupId": group["groupId"]}, {"name": name})
    it.send("smart-groups.rename", {"smartGroupId": smart["smartGroupId"]}, {"name": name})
    lmsconf(tmp_path, "drift", "--accept", "*", code=ExitCode.OK)
    assert _is_visible((tmp_path / "manifests" / "all.yaml").read_text(encoding="utf-8"))
    assert not it.plan().changes


@pytest.mark.sampled
@pytest.mark.parametrize(
    "written",
    ["a\tb", '"a\tb"', "'a\tb'", "|-\n      a\n      b", '"a\n\n      b"', '"a\\tb\n\n      c"', '"a\\t\tb"'],
)
def test_a_tab_or_a_line_break_that_is_no_escape_is_told(tmp_path: Path, written: str) -> None:
    """It was probably typed by accident; the hint says how to write it if it was not."""
    it = Project(tmp_path, "people: []\n")
    with pytest.raises(ProblemsFound) as raised:
        it.plan(f"groups:\n  - name: {written}\n    members: []\n")
    [problem] = raised.value.problems
    assert problem.code == "manifest/character"
    _, found, rest = str(problem.hint).partition("If the live name has it, write ")
    assert found
    assert not it.plan(f"groups:\n  - {{name: {rest.partition(' in YAML')[0]}, members: []}}\n").problems


@pytest.mark.parametrize("choice", ["absent", "declared"])
def test_a_name_that_is_not_there_is_told_on_one_line(tmp_path: Path, choice: str) -> None:
    """Names in hints are escaped as those in messages are: the nearest one, and all that there are."""
    it = _made(tmp_path, NAMES["line break"], whole=True)
    near = NAMES["line break"] + "x"
    condition = {"field": NAMES["line break"], "choices": [near]}
    it.write(
        _text({"smart_groups": [{"name": "S", "conditions": [condition]}]})
        if choice == "declared"
        else _text({"content_targets": [{"content": NAMES["line break"], "assign_to": [{"group": near}]}]})
    )
    ran = lmsconf(tmp_path, "plan", code=ExitCode.ERROR)
    assert "Did you mean" in ran.err
    assert _is_visible(ran.err)


def test_texts_with_escapes_that_stay_are_no_change(tmp_path: Path) -> None:
    """What is written with escapes equals what is live, also beside something that changes."""
    name, text = NAMES["tab"], "one\ntwo\tthree"
    field = {"name": name, "type": "CHOICE", "choices": [name, "Other"], "description": text}
    it = Project(tmp_path, json.dumps({"custom_fields": [field]}))
    plan = it.plan(_text({"custom_fields": [field | {"hidden": True, "choices": [name, "Other", "$(x)"]}]}))
    assert [(one.path, one.added) for one in plan.changes[0].fields] == [("choices", ("$(x)",)), ("hidden", ())]


def test_a_variable_with_escapes_keeps_them(tmp_path: Path) -> None:
    """As the whole of a name or as a part of it, also in a text without quotes."""
    it = Project(tmp_path, "people: []\n", 'vars: {team: "a\\tb"}\n')
    plan = it.plan("groups: [{name: $(team), members: []}, {name: The $(team), members: []}]")
    assert [one.address.name for one in plan.changes] == ["The a\tb", "a\tb"]
