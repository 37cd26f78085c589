"""What a plan rests on where the API specification is silent: in its JSON, in its views, and in the saved file."""

import json
import re
from pathlib import Path
from typing import Any, cast

import pytest
from json_schemas import schema_validator
from manifest.cases import Case, cases
from texts import text_of

from lmsconf.errors import Rejected
from lmsconf.model.plan import Assumption, Plan
from lmsconf.workspace.connection import Connection

from .project import Project
from .shell import lmsconf

SEED = text_of(__file__, "assumptions_seed.yaml")
OPTIONS = "timezone: Europe/Stockholm\nguards: off\npeople: {create: true}\n"
RENAME = "groups: [{name: Mentors, previously: [Coaches]}]\n"
LINE = "that nobody has tried on this workspace: "


@pytest.fixture
def it(tmp_path: Path) -> Project:
    return Project(tmp_path, SEED, OPTIONS)


def rested_on(plan: Plan) -> dict[str, int]:
    """Key → how many calls rest on it."""
    assert [one.key for one in plan.assumptions] == sorted({one.key for one in plan.assumptions})
    return {one.key: one.calls for one in plan.assumptions}


@pytest.mark.sampled
@pytest.mark.parametrize("case", cases(Path(__file__).with_name("assumptions.txt")), ids=lambda case: case.title)
def test_a_call_rests_on_what_it_sends(it: Project, spoken: str, case: Case) -> None:
    """A name counts only where the body has it, and a behaviour only where it matters for the call."""
    if spoken == "second":
        pytest.skip("bodies differ, so that other behaviours matter")
    assert rested_on(it.plan(case.text)).keys() == set(case.told.splitlines())


def test_calls_are_counted_for_each_key_and_once_in_all(it: Project, spoken: str) -> None:
    """Three calls rest on two keys and on one of them; a second batch of a new group finds what the first added."""
    if spoken == "second":
        pytest.skip("its batches have another size")
    it.write_options(f"{OPTIONS}dialect: {{manual-groups.add.batch: 1}}\n")
    plan = it.plan(f"groups:\n- {{name: New, members: [anna@acme.example, bo@acme.example]}}\n- {RENAME[9:-2]}\n")
    assert rested_on(plan) == {
        "manual-groups.add-members.userIds": 2,
        "manual-groups.add.mode": 1,
        "manual-groups.rename.name": 1,
    }
    assert plan.assumed_calls == 3


@pytest.mark.parametrize("place", ["project", "workspace"])
def test_what_the_project_file_states_is_known(it: Project, spoken: str, place: str) -> None:
    """Also the default, for all workspaces or for one; what is known is in the JSON, and in no view."""
    if spoken == "second":
        pytest.skip("its project file states everything")
    assumed = it.plan(RENAME)
    assert assumed.assumptions == (Assumption(key="manual-groups.rename.name", value="name", known=False, calls=1),)
    if place == "project":
        it.write_options(f"{OPTIONS}dialect: {{manual-groups.rename.name: name}}\n")
    else:
        file = it.root / "lmsconf.yaml"
        said = "seed: workspace.yaml, dialect: {manual-groups.rename.name: name}"
        file.write_text(file.read_text().replace("seed: workspace.yaml", said))
    known = it.plan()
    assert known.assumptions == (Assumption(key="manual-groups.rename.name", value="name", known=True, calls=1),)
    assert (assumed.assumed_calls, known.assumed_calls) == (1, 0)
    for view in ("text", "markdown", "html"):
        assert LINE not in lmsconf(it.root, "plan", "--format", view).out


def test_each_view_says_it_in_one_line(it: Project, spoken: str) -> None:
    """The most used keys are named, the others counted, those that are known left out; and how to try them."""
    if spoken == "second":
        pytest.skip("its project file states everything")
    it.write_options(f"{OPTIONS}dialect: {{content-targets.everyone: EVERYONE}}\n")
    it.write(
        f"{RENAME}content_targets:\n"
        "- {content: GDPR, visible_from: 2026-01-01, assign_to: [everyone, {user: bo@acme.example}, {group: Old}]}\n"
    )
    said = (
        "4 calls rest on 4 assumptions that nobody has tried on this workspace: content-targets.create.mandatory, "
        "content-targets.create.startTime, content-targets.time-format and 1 more. Try them with: "
        "lmsconf doctor --probe"
    )
    text, html = (lmsconf(it.root, "plan", "--format", view).out for view in ("text", "html"))
    assert text.splitlines().count(said) == 1
    assert html.count(said) == 1
    assert re.sub(r"\\(.)", r"\1", lmsconf(it.root, "plan", "--format", "markdown").out).count(said) == 1
    assert LINE not in lmsconf(it.root, "apply", "--auto-approve").out
    assert LINE not in lmsconf(it.root, "plan").out


def test_a_saved_plan_keeps_what_it_rests_on(it: Project, spoken: str) -> None:
    """The file has it below the seal, and not in the digest: what is known may change, what is sent does not."""
    it.write(RENAME)
    assert lmsconf(it.root, "plan", "--out", "plan.json").code == 0
    saved = json.loads((it.root / "plan.json").read_text())
    schema_validator("plan").validate(saved)
    value = it.spec.behaviour("manual-groups.rename.name")
    is_known = spoken == "second"
    assert saved["assumptions"] == [{"key": "manual-groups.rename.name", "value": value, "known": is_known, "calls": 1}]
    assert (LINE in lmsconf(it.root, "show", "plan.json").out) is not is_known
    it.write_options(f"{OPTIONS}dialect: {{manual-groups.rename.name: {value}}}\n")
    assert lmsconf(it.root, "plan", "--format", "json").document["digest"] == saved["digest"]
    edited = (it.root / "plan.json").read_text().replace('"known":', '"known" :')
    (it.root / "edited.json").write_text(edited.replace('"assumed_calls":1', '"assumed_calls":0'))
    assert lmsconf(it.root, "show", "edited.json").code == 3


def test_masked_rehearsed_and_undone_plans_have_the_same(it: Project) -> None:
    """Masking people changes no key; a rehearsal lists the keys of the plan; the plan back rests on its own calls."""
    it.write(f"{RENAME}content_targets: [{{content: GDPR, mandatory: true, assign_to: [{{group: Mentors}}]}}]\n")
    plain = lmsconf(it.root, "plan", "--format", "json").document
    assert plain["assumptions"]
    for more in ("--mask-people", "--rehearse"):
        other = lmsconf(it.root, "plan", "--format", "json", more).document
        assert (other["assumptions"], other["assumed_calls"]) == (plain["assumptions"], plain["assumed_calls"])
    assumptions = cast("list[dict[str, Any]]", plain["assumptions"])
    listed = cast("dict[str, Any]", other["rehearsal"])["assumptions"]
    assert [(one["key"], one["value"], one["declared"]) for one in listed] == [
        (one["key"], one["value"], one["known"]) for one in assumptions
    ]
    assert lmsconf(it.root, "apply", "--auto-approve").code == 0
    undo = lmsconf(it.root, "plan", "--undo", "latest", "--format", "json").document
    assert "manual-groups.rename.name" in {one["key"] for one in cast("list[dict[str, Any]]", undo["assumptions"])}


# The suite really speaks two dialects: what it says of a project is what the project and its service go by.


def test_the_service_takes_its_own_words_only(tmp_path: Path, spoken: str) -> None:
    """A body in the words of the other dialect is refused."""
    it = Project(tmp_path, "groups: [{name: A, id: g-1}]")
    mine = it.spec.behaviour("manual-groups.rename.name")
    assert (mine == "name") is (spoken == "assumed")
    other = "name" if spoken == "second" else "label"
    with Connection(it.settings) as connection, connection.worker_pool(1) as pool:
        path = "/groups/g-1/rename"
        with pytest.raises(Rejected, match="400"):
            pool.submit(lambda client: client.send("POST", path, body={other: "B"})).result()
        pool.submit(lambda client: client.send("POST", path, body={mine: "B"})).result()
