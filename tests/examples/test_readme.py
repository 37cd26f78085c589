"""The README: its two contracts, its length, and what it leads to."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from flow.shell import lmsconf
from pictures.terminal import drawn

from lmsconf.support.files import guide_topics

from .clone import EXAMPLES, blocks
from .conftest import REPOSITORY
from .test_pages import GUIDE, PAGES

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
SETS_UP = "python3 -m venv .venv && .venv/bin/pip install -q -e "


def test_the_readme_is_short_and_leads_on() -> None:
    """It has at most a thousand words, shown outputs and tables among them, and a link to each topic of `help`."""
    assert len(README.split()) <= 1000
    assert set(re.findall(r"\(lmsconf/guide/([\w-]+)\.md", README)) == set(guide_topics())


def test_the_first_blocks_can_be_pasted_as_they_are() -> None:
    """Five commands import a workspace; then one line sets up, plans, applies and plans, in a subshell.

    The first block below `## Tests` is one line that sets up and runs the tests.
    """
    imports, job = blocks(README, "console")[0], blocks(README, "sh")[0]
    assert imports.text.count("$ ") == 5
    assert imports.start < job.start
    (line,) = job.text.splitlines()
    assert line.startswith(f"{SETS_UP}. && ")
    assert re.search(r" && \(cd [^()]+ lmsconf plan && lmsconf apply --auto-approve && lmsconf plan\)$", line)
    (line,) = blocks(README.partition("\n## Tests\n")[2], "sh")[0].text.splitlines()
    assert line == f"{SETS_UP}'.[test]' && .venv/bin/pytest -n auto"


# The pictures of README and guide: they are there, they are small, and the plan's is the plan of today.


PICTURES = EXAMPLES / "pictures"
PICTURES_PAGES = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
SHOWN = re.findall(r"!\[([^]]+)]\(([^)]+)\)", PICTURES_PAGES)
IN_HTML = re.findall(r'<img src="([^"]+)" alt="([^"]+)">', PICTURES_PAGES)
SOURCES = re.findall(r'srcset="([^"]+)"', PICTURES_PAGES)


def test_pages_show_every_picture() -> None:
    """Each picture is shown on a page, and each has words for those who cannot see it."""
    named = {path for _, path in SHOWN} | {path for path, _ in IN_HTML} | set(SOURCES)
    assert {path.rpartition("/")[2] for path in named} == {path.name for path in PICTURES.iterdir()}
    assert all(len(words) > 40 for words in (*(alt for alt, _ in SHOWN), *(alt for _, alt in IN_HTML)))


def test_the_picture_of_the_plan_is_the_plan(updating: bool) -> None:
    """Its text is `plan.txt` of the quickstart to the letter, and it is what the script draws now."""
    plan = (EXAMPLES / "quickstart" / "plan.txt").read_text(encoding="utf-8")
    picture = PICTURES / "plan.svg"
    if updating:
        picture.write_text(drawn(plan, "lmsconf plan"), encoding="utf-8")
    root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    (text,) = root.iter("{http://www.w3.org/2000/svg}text")
    assert "".join(text.itertext()) == plan
    assert picture.read_text(encoding="utf-8") == drawn(plan, "lmsconf plan")


# Links of all pages lead somewhere: to a file of the repository, to a heading, or to another site.


ALL = [
    *PAGES,
    *(REPOSITORY / name for name in ("CHANGELOG.md", "SECURITY.md", "tests/benchmarks/README.md")),
    REPOSITORY / "tests" / "planted" / "survivors.md",
]
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)|(?:src|srcset|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


def links(page: Path) -> list[str]:
    text = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", page.read_text(encoding="utf-8")))
    return [first or second for first, second in _LINK.findall(text)]


def anchors(page: Path) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    seen: dict[str, int] = {}
    for heading in _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        plain = re.sub(r"\[([^]]*)]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        anchor = re.sub(r"[^\w\- ]", "", plain).replace(" ", "-")
        seen[anchor] = seen.get(anchor, -1) + 1
        if seen[anchor]:
            seen[f"{anchor}-{seen[anchor]}"] = 0
    return set(seen)


@pytest.mark.parametrize("page", ALL, ids=lambda page: str(page.relative_to(REPOSITORY)))
def test_links_lead_somewhere(page: Path) -> None:
    """A relative link names a file or a folder of the repository, and its anchor a heading there.

    From one page of the guide to another it names the file alone, so that its text or address names the topic.
    """
    for link in links(page):
        if "://" in link:
            assert link.startswith("https://")
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.is_relative_to(REPOSITORY), link
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
        if page.parent == GUIDE:
            assert "guide/" not in path, link
            assert not path or path.startswith("../../") or (target.suffix == ".md" and target.name == path), link


# The recipes for other programs: rules for Open Policy Agent, a message to a chat, the owners of what changes.


POLICY = REPOSITORY / "examples" / "policies" / "plan.rego"
PAGE = (REPOSITORY / "lmsconf" / "guide" / "machines.md").read_text(encoding="utf-8")
SCHEMA = json.loads((REPOSITORY / "schemas" / "plan.schema.json").read_text(encoding="utf-8"))
needs_jq = pytest.mark.skipif(not shutil.which("jq"), reason="jq is not installed")


@pytest.fixture
def project(copy: Callable[[str], Path]) -> Path:
    """The quickstart, with a plan."""
    folder = copy("quickstart")
    lmsconf(folder, "plan", "--out", "plan.json", code=0)
    return folder


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


def judged(plan: dict[str, Any]) -> tuple[list[str], list[str]]:
    """What the policy denies and warns of, without spaces: one evaluator leaves some out."""
    engine = pytest.importorskip("hobofan_regorus", reason="the extra `judges` is not installed").Engine()
    engine.add_policy("plan.rego", POLICY.read_text(encoding="utf-8"))
    engine.set_input_json(json.dumps(plan))
    answers = [json.loads(engine.eval_rule_as_json(f"data.main.{name}")) for name in ("deny", "warn")]
    deny, warn = (["".join(message.split()) for message in answer] for answer in answers)
    return deny, warn


@pytest.mark.slow
def test_the_policy_denies_what_it_says(project: Path) -> None:
    """A change without an owner, a deletion without a ticket, too many losers, and a number that is not known."""
    plan = json.loads((project / "plan.json").read_text(encoding="utf-8"))
    for change in plan["changes"]:
        change["about"] = {"owner": "people-team"}
    assert judged(plan) == ([], [])
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
    lmsconf(project, "plan", "--out", "plan.json", code=0)
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
    lmsconf(project, "plan", "--out", "plan.json", code=0)
    assert piped(project, "owner").split() == ["hr", "it", "people-team"]
