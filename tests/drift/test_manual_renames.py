"""What was renamed by hand is never made a second time: forty ways of it, and creations that only look like it."""

import json
import random
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
from integrity.served_project import ServedProject, staged
from msgspec import Struct, convert
from sampling import of_today, schedules_of_today
from texts import text_of

from lmsconf.api.client import Client

from .conftest import drift, states

PEOPLE: Final = [f"{name}@acme.example" for name in ("anna", "bo", "cy", "dan", "eva")]
MANIFESTS: Final = text_of(__file__, "manual_renames_manifests.yaml")
SEED: Final = (
    "people:\n"
    + "".join(f"  - {{email: {one}, id: 'u-{one.partition('@')[0]}'}}\n" for one in PEOPLE)
    + MANIFESTS
    + "content: [{name: Basics, id: c-1}, {name: Intro, id: c-2}]\n"
)
TWO: Final = "[anna@acme.example, bo@acme.example]"
"""What TWO stands for in an edit."""
Edits = Mapping[str, str]


class ManualRename(Struct, frozen=True):
    """One way of renaming by hand. live: text of the workspace as it was → as it is; declared: the same for manifests.

    stops: the addresses of what may be a rename, with the name to which it was renamed; of several the first that is
    told. notes: what only has a close name. unclear: there are several candidates. options: more in the project file.
    """

    live: Edits
    stops: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()
    declared: Edits = {}
    unclear: bool = False
    options: str = ""


_TABLES: Final = json.loads(text_of(__file__, "manual_renames.json"))
WAYS: Final = convert(_TABLES["ways"], dict[str, ManualRename])
LOOKALIKES: Final[Mapping[str, tuple[str, str, str]]] = _TABLES["lookalikes"]
"""What is created beside something that looks like it: section, what is live, what is declared."""
CLEAR: Final = [name for name, way in WAYS.items() if way.stops and not way.unclear]
"""Those of which content tells what was renamed to what."""


def edited(text: str, edits: Edits) -> str:
    for old, new in edits.items():
        old, new = (part.replace("TWO", TWO) for part in (old, new))
        assert old in text, old
        text = text.replace(old, new)
    return text


@pytest.fixture
def way(request: pytest.FixtureRequest) -> ManualRename:
    return WAYS[request.param]


@pytest.fixture
def stage(way: ManualRename, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    """A workspace in which somebody renamed something, and the manifests of before."""
    with staged(tmp_path, edited(SEED, way.live), monkeypatch, way.options) as stage:
        stage.write(edited(MANIFESTS, way.declared))
        yield stage


def live(stage: ServedProject) -> dict[str, int]:
    """How many there are of what a twin could be made of."""
    listings = {"manual-groups": "groups", "smart-groups": "smartGroups", "custom-fields": "customFields"}
    with Client("http://sandbox", "sandbox", transport=stage.sandbox) as client:
        found: dict[str, Any] = {rows: client.call(f"{kind}.list") for kind, rows in listings.items()}
        targets: list[Any] = [client.call("content-targets.list", query={"contentId": id}) for id in ("c-1", "c-2")]
    counts = {rows: len(answer[rows]) for rows, answer in found.items()}
    return {**counts, "targets": sum(len(answer["targets"]) for answer in targets)}


def manifest(stage: ServedProject) -> str:
    return (stage.root / "manifests" / "all.yaml").read_text(encoding="utf-8")


def problems(document: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What is said of renames in a plan, by address."""
    every = [*document["problems"], *(one for change in document["changes"] for one in change["problems"])]
    return {one["address"]: one for one in every if one["code"] in ("guard/possible-rename", "rename/close-name")}


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_a_plan_tells_and_an_apply_stops(way: ManualRename, stage: ServedProject) -> None:
    """What can be compared stops with 4 and the line that renames it; a close name is a note, and stops nothing."""
    document = stage("plan", "--format", "json").document
    said = problems(document)
    stopping = {address for address, one in said.items() if one["code"] == "guard/possible-rename"}
    # A smart group whose field was renamed too can be told only once the field has its name back.
    assert (stopping, set(said) - stopping) == (set(way.stops), set(way.notes))
    (guard,) = (one for one in document["guards"] if one["name"] == "recreates")
    assert (guard["total"], guard["tripped"]) == (len(way.stops), bool(way.stops))
    for selection in ((), *(("--only", address) for address in way.stops)):
        ran = stage("apply", "--auto-approve", *selection)
        assert (ran.code, ran.writes) == (4, []) if way.stops else ran.code in (0, 4)
        assert all(said[one]["hint"].partition(" To create")[0] in ran.err for one in way.stops if not selection)
    assert all("previously: [" in said[one]["hint"] for one in way.notes)


@pytest.mark.parametrize("way", of_today(WAYS), indirect=True)
def test_a_drift_report_connects_the_two(way: ManualRename, stage: ServedProject) -> None:
    """Renamed by hand, to what; or missing, with what is close. No line that it prints makes anything twice."""
    before = live(stage)
    found = {one["address"]: one for one in drift(stage, code=2)["findings"]}
    renamed = {address for address, one in found.items() if one["state"] == "renamed"}
    assert renamed == set(way.stops)
    assert {address for address, one in found.items() if one["candidates"]} == renamed | set(way.notes)
    assert [found[one]["state"] for one in way.notes] == ["missing"] * len(way.notes)
    for address, name in way.stops.items():
        names = [one["address"] for one in found[address]["candidates"]]
        assert name in names[0].replace("\\", "")
        assert (found[address]["live"] is None) is way.unclear
        assert (found[address]["hint"]["accept"] is None) is (found[address]["hint"]["restore"] is None) is way.unclear
    for one in found.values():
        if (line := one["hint"]["restore"]) is not None:
            assert stage(*shlex.split(line)[3:], "--auto-approve").code in (0, 4)
    assert {**live(stage), "targets": 0} == {**before, "targets": 0}


@pytest.mark.parametrize("way", of_today(CLEAR), indirect=True)
def test_both_ways_out_lead_out(way: ManualRename, stage: ServedProject) -> None:
    """`--accept` writes the new name everywhere; with the line and an apply it has its old name again: no twin."""
    before = live(stage)
    original = manifest(stage)
    for address, name in way.stops.items():
        assert stage("drift", "--accept", address, code=0).writes == []
        assert address not in states(drift(stage))
        assert name in manifest(stage).replace('\\"', '"')
    assert "renamed" not in states(drift(stage)).values()
    made = [one["kind"] for one in stage("plan", "--format", "json").document["changes"] if one["action"] == "create"]
    assert set(made) <= {"content_target"}
    stage.write(original)
    text = original
    for one in drift(stage, code=2)["findings"]:
        if one["state"] == "renamed":
            (candidate,) = one["candidates"]
            text = re.sub(r"previously: \[Trainers\], ", "", text)
            text = text.replace(f"name: {one['name']}, ", f"name: {one['name']}, {candidate['line']}, ", 1)
    stage.write(text)
    ran = stage("apply", "--auto-approve")
    if any("field: " in old for old in way.live):
        # The service changes no field that a smart group names, its name neither.
        assert (ran.code, ran.writes, live(stage)) == (4, [], before)
        return
    assert ran.code == 0
    assert states(drift(stage, code=0)) == {}
    # Four are declared, and what somebody else assigned stays.
    assert live(stage) == {**before, "targets": max(before["targets"], 4)}


def innocent(seed: int) -> tuple[str, str, str]:
    """A workspace, manifests that create what only looks like something there, and more of the project file."""
    dice = random.Random(seed)  # noqa: S311  # a game, no secret
    section, live, new = LOOKALIKES[dice.choice(list(LOOKALIKES))]
    manifests, options = f"{section}:\n  - {new}\n", ""
    if section == "groups" and dice.random() < 0.5:
        # The same members, and all the same no rename: the one is declared, or left alone.
        live, new = (
            f"{{name: Old, members: {TWO}}}",
            f"{{name: New, members: [{', '.join(dice.sample(PEOPLE[:2], 2))}]}}",
        )
        declared = dice.random() < 0.5
        manifests = f"groups:\n  - {new}\n" + (f"  - {live}\n" if declared else "")
        options = "" if declared else "leave_alone: ['group/Ol*']\n"
    fields = ["{name: D, type: CHOICE, choices: [X, Y]}", *([live] if section == "custom_fields" else [])]
    seed_file = SEED.partition("custom_fields:")[0] + "custom_fields: [" + ", ".join(fields) + "]\n"
    if section != "custom_fields":
        seed_file += f"{section}:\n  - {live}\n"
    return seed_file, manifests, options


@pytest.mark.parametrize("number", schedules_of_today(range(200), "innocent", parts=8))
def test_an_innocent_creation_does_not_stop(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody in it, one person, other content, declared or left alone: it is created, whatever it looks like."""
    seed, manifests, options = innocent(number)
    with staged(tmp_path, seed, monkeypatch, options) as stage:
        stage.write(manifests)
        assert stage("apply", "--auto-approve", code=0).writes
        assert stage("plan", "--detailed-exitcode").code == 0
