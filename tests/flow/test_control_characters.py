r"""Live names with tabs, line breaks and other control characters: written as escapes, `"a\tb"`, and shown as such."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from lmsconf.errors import ExitCode, ProblemsFound
from lmsconf.model.address import Address

from .project import Project
from .shell import lmsconf

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


@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_what_is_live_is_exported_with_escapes_and_planned_without_changes(tmp_path: Path, name: str) -> None:
    """Each kind, choices and references; the files hold no control character, and `fmt` has nothing to change."""
    it = _made(tmp_path, name, whole=True)
    ran = lmsconf(tmp_path, "export", "manifests")
    assert (ran.code, ran.err.count("left out")) == (ExitCode.OK, 0), ran.err
    files = [path.read_text(encoding="utf-8") for path in sorted((tmp_path / "manifests").rglob("*.yaml"))]
    assert all(_is_visible(text) for text in files)
    plan = it.plan()
    assert not plan.changes
    assert not plan.unmanaged
    assert lmsconf(tmp_path, "fmt", "--check").code == ExitCode.OK


@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_such_names_are_declared_assigned_and_deleted(tmp_path: Path, name: str) -> None:
    """After each apply the next plan is empty."""
    it = _made(tmp_path, name, options='vars: {x: "y"}\n')
    declared = _declared(name)
    it.settled(_text(declared))
    assert not it.plan(_text(declared)).changes
    cleared = {"users": [{"email": "ann@x.example", "answers": {name: None}}]}
    it.settled(_text(declared | cleared))
    it.settled(_text(_absent(name)))
    assert not it.plan(_text(_absent(name))).changes
    assert name not in it.fields()


@pytest.mark.sampled
@pytest.mark.parametrize("format", ["text", "markdown", "html"])
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_views_show_escapes(tmp_path: Path, name: str, format: str) -> None:
    """No name begins a line of its own in a plan, a report of drift, or a list of problems."""
    it = _made(tmp_path, name)
    it.write(_text(_declared(name)))
    for command in ("plan", "drift"):
        ran = lmsconf(tmp_path, command, "--format", format)
        assert ran.code in (ExitCode.OK, ExitCode.CHANGES)
        assert _is_visible(ran.out)
        assert _is_visible(ran.err)
        assert "custom_field" in ran.out


@pytest.mark.sampled
@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_printed_address_selects_what_it_names(tmp_path: Path, name: str) -> None:
    """As the text of a plan prints it, pasted into --only and --except, and under `leave_alone`."""
    it = _made(tmp_path, name, whole=True)
    it.write(_text(_absent(name)))
    lines = lmsconf(tmp_path, "plan").out.split("\n")
    [shown] = [line for line in lines if line.startswith("  - group/")]
    printed = shown.removeprefix("  - ").removesuffix(" will be deleted")
    kinds = {option: _planned_kinds(tmp_path, f"--{option}", printed) for option in ("only", "except")}
    assert kinds == {"only": {"content_target", "group"}, "except": {"content_target", "custom_field", "smart_group"}}
    it.write_options(f"leave_alone: [{json.dumps(str(Address.of('group', name)))}]\n")
    assert "`leave_alone` of the project file matches group/" in lmsconf(tmp_path, "plan").err


def _planned_kinds(root: Path, *options: str) -> set[str]:
    plan = json.loads(lmsconf(root, "plan", *options, "--format", "json").out)
    return {change["kind"] for change in plan["changes"]}


@pytest.mark.sampled
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
    ran = lmsconf(tmp_path, "drift", "--accept", "*")
    assert ran.code == ExitCode.OK, ran.err
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
    assert "If the live name has it, write " in str(problem.hint)
    assert not it.plan(f"groups:\n  - {{name: {_exact(str(problem.hint))}, members: []}}\n").problems


def _exact(hint: str) -> str:
    return hint.partition("If the live name has it, write ")[2].partition(" in YAML")[0]


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
    ran = lmsconf(tmp_path, "plan")
    assert ran.code == ExitCode.ERROR
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
