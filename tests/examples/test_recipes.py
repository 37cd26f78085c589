"""The recipes for other programs: rules for Open Policy Agent, a message to a chat, the owners of what changes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flow.shell import lmsconf

from .conftest import REPOSITORY
from .page import blocks

POLICY = REPOSITORY / "examples" / "policies" / "plan.rego"
PAGE = (REPOSITORY / "lmsconf" / "guide" / "machines.md").read_text(encoding="utf-8")
SCHEMA = json.loads((REPOSITORY / "schemas" / "plan.schema.json").read_text(encoding="utf-8"))
needs_jq = pytest.mark.skipif(not shutil.which("jq"), reason="jq is not installed")
Plan = dict[str, Any]


@pytest.fixture
def project(copy: Callable[[str], Path]) -> Path:
    """The quickstart, with a plan."""
    folder = copy("quickstart")
    assert lmsconf(folder, "plan", "--out", "plan.json").code == 0
    return folder


@pytest.fixture
def plan(project: Path) -> Plan:
    """The plan's JSON, with an owner for each change."""
    found: Plan = json.loads((project / "plan.json").read_text(encoding="utf-8"))
    for change in found["changes"]:
        change["about"] = {"owner": "people-team"}
    return found


def test_the_policy_reads_keys_that_plans_have() -> None:
    """Each key after `input.`, `change.` and `content.` is in the schema, and so is each action and kind."""
    text, defs = POLICY.read_text(encoding="utf-8"), SCHEMA["$defs"]
    known = {
        "input": SCHEMA["properties"].keys(),
        "change": defs["change"]["properties"].keys(),
        "content": defs["content_effects"]["properties"].keys(),
    }
    used = re.findall(r"\b(input|change|content)\.(\w+)", text)
    assert {name for name, _ in used} == known.keys()
    assert [f"{name}.{key}" for name, key in used if key not in known[name]] == []
    assert set(re.findall(r'"(create|update|replace|delete)"', text)) == set(
        defs["change"]["properties"]["action"]["enum"]
    )
    assert re.findall(r"input\.effects\.people\.(\w+)", text) == ["lose"]


def test_the_page_shows_a_rule_of_the_policy() -> None:
    """What the page shows of it is in the file, which the page names."""
    (shown,) = blocks(PAGE, "rego")
    assert shown.text in POLICY.read_text(encoding="utf-8")
    assert POLICY.relative_to(REPOSITORY).as_posix() in PAGE


def judged(plan: Plan) -> tuple[list[str], list[str]]:
    """What the policy denies and warns of, without spaces: one evaluator leaves some out."""
    engine = pytest.importorskip("hobofan_regorus").Engine()
    engine.add_policy("plan.rego", POLICY.read_text(encoding="utf-8"))
    engine.set_input_json(json.dumps(plan))
    answers = [json.loads(engine.eval_rule_as_json(f"data.main.{name}")) for name in ("deny", "warn")]
    deny, warn = (["".join(message.split()) for message in answer] for answer in answers)
    return deny, warn


def test_the_policy_lets_an_owned_plan_pass(plan: Plan) -> None:
    """With an owner for each change, and nobody who loses much, nothing is denied."""
    assert judged(plan) == ([], [])


def test_the_policy_denies_what_it_says(plan: Plan) -> None:
    """A change without an owner, a deletion without a ticket, too many losers, and a number that is not known."""
    first = plan["changes"][0]
    address = "".join(first["address"].split())
    first["about"] = None
    assert [text for text in judged(plan)[0] if text.startswith(f"{address}hasnoowner")]
    first |= {"about": {"owner": "people-team"}, "action": "delete"}
    assert [text for text in judged(plan)[0] if text.startswith(f"{address}isdeletedwithoutaticket")]
    first |= {"about": {"ticket": "LD-1"}, "kind": "user"}
    deny, warn = judged(plan)
    assert (deny, len(warn)) == ([], 1)
    plan["effects"]["contents"][0]["lose"] = 11
    assert len(judged(plan)[0]) == 1
    plan["effects"]["people"]["lose"] = None
    assert len(judged(plan)[0]) == 2


def piped(project: Path, word: str) -> str:
    """What the block of the page with this word writes into its file, as a shell runs it."""
    (block,) = [block for block in blocks(PAGE, "sh") if "| jq" in block.text and word in block.text]
    shown = lmsconf(project, "show", "plan.json", "--format", "json")
    (project / "shown.json").write_text(shown.out, encoding="utf-8")
    program = f'lmsconf() {{ [ "$*" = "show plan.json --format json" ] && cat shown.json; }}\n{block.text}'
    subprocess.run(["/bin/bash", "-euo", "pipefail", "-c", program], cwd=project, check=True, timeout=60)
    return (project / block.text.rpartition("> ")[2].strip()).read_text(encoding="utf-8")


@needs_jq
def test_a_message_says_what_the_plan_does(project: Path) -> None:
    """Counts, people and changes are in it, and no name does anything in a chat."""
    manifest = project / "manifests" / "loud.yaml"
    manifest.write_text("groups: [{name: '<!channel> & co'}]\n", encoding="utf-8")
    assert lmsconf(project, "plan", "--out", "plan.json").code == 0
    message = json.loads(piped(project, "gsub"))
    lines = message["text"].splitlines()
    assert message.keys() == {"text"}
    assert lines[0] == "Plan for sandbox: 5 to create, 2 to change, 0 to delete"
    assert lines[1] == "0 people lose content, 3 gain content"
    assert "- create group/&lt;!channel&gt; &amp; co" in lines


@needs_jq
def test_owners_are_those_of_what_changes(project: Path) -> None:
    """Each once, in order."""
    groups = "{name: A, about: {owner: it}}, {name: B, about: {owner: hr}}, {name: C, about: {owner: it}}"
    (project / "manifests" / "more.yaml").write_text(f"groups: [{groups}]\n", encoding="utf-8")
    assert lmsconf(project, "plan", "--out", "plan.json").code == 0
    assert piped(project, "owner").split() == ["hr", "it", "people-team"]
