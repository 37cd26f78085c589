"""What was renamed by hand is never made a second time: forty ways of it, and creations that only look like it."""

import random
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pytest
from integrity.served_project import ServedProject, staged
from sampling import of_today, schedules_of_today
from texts import text_of

from lmsconf.api.client import Client

from .conftest import drift, states

PEOPLE: Final = [f"{name}@acme.example" for name in ("anna", "bo", "cy", "dan", "eva")]
SEED: Final = (
    "people:\n"
    + "".join(f"  - {{email: {one}, id: 'u-{one.partition('@')[0]}'}}\n" for one in PEOPLE)
    + """custom_fields:
  - {name: Dept, type: CHOICE, choices: [Sales, Engineering, HR]}
  - {name: Skills, type: MULTI_SELECT, choices: [Excel, Word]}
  - {name: Track, type: CHOICE, choices: [Office, Remote], description: Where}
  - {name: Shoe size, type: TEXT}
groups:
  - {name: Coaches, members: [anna@acme.example, bo@acme.example], managers: [cy@acme.example]}
  - {name: Pilots, members: [anna@acme.example, bo@acme.example, cy@acme.example]}
  - {name: Single person, members: [dan@acme.example]}
  - {name: Empty ones}
smart_groups:
  - {name: Sellers, conditions: [{field: Dept, choices: [Sales]}]}
  - {name: Homers, conditions: [{field: Dept, choices: [Engineering, HR]}, {field: Skills, choices: [Excel]}]}
content: [{name: Basics, id: c-1}, {name: Intro, id: c-2}]
content_targets:
  - {content: Basics, mandatory: true, assign_to: [{group: Coaches}, {smart_group: Sellers}]}
  - {content: Intro, assign_to: [{group: Pilots}, {group: Empty ones}]}
"""
)
MANIFESTS: Final = text_of(__file__, "manual_renames_manifests.yaml")
TWO: Final = "[anna@acme.example, bo@acme.example]"
"""What TWO stands for in an edit."""
Edits = Mapping[str, str]


class ManualRename(NamedTuple):
    """One way of renaming by hand. live: text of the workspace as it was → as it is; declared: the same for manifests.

    stops: the addresses of what may be a rename, with the name to which it was renamed; of several the first that is
    told. notes: what only has a close name. unclear: there are several candidates. options: more in the project file.
    """

    live: Edits
    stops: Mapping[str, str] = MappingProxyType({})
    notes: tuple[str, ...] = ()
    declared: Edits = MappingProxyType({})
    unclear: bool = False
    options: str = ""


COACHES: Final = {"name: Coaches": "name: Friends", "group: Coaches": "group: Friends"}
PILOTS: Final = {"name: Pilots": "name: Flyers", "group: Pilots": "group: Flyers"}
SELLERS: Final = {"name: Sellers": "name: Merchants", "smart_group: Sellers": "smart_group: Merchants"}
DEPT: Final = {"name: Dept": "name: Unit", "field: Dept": "field: Unit"}
TRACK: Final = {"name: Track": "name: Place"}
FRIENDS: Final = {"group/Coaches": "Friends"}
HOMERS: Final = "  - {name: Homers"
SALES: Final = "conditions: [{field: Dept, choices: [Sales]}]"
OWNED: Final = "ownership: {content_targets: declared_content}\n"
WAYS: Final[Mapping[str, ManualRename]] = {
    "a group": ManualRename(COACHES, FRIENDS),
    "a group of three": ManualRename(PILOTS, {"group/Pilots": "Flyers"}),
    "a smart group": ManualRename(SELLERS, {"smart_group/Sellers": "Merchants"}),
    "a smart group of two conditions": ManualRename({"Homers": "Remoters"}, {"smart_group/Homers": "Remoters"}),
    "a field of choices": ManualRename(TRACK, {"custom_field/Track": "Place"}),
    "a field of several choices": ManualRename(
        {"name: Skills": "name: Tools", "field: Skills": "field: Tools"}, {"custom_field/Skills": "Tools"}
    ),
    "a field that smart groups name": ManualRename(DEPT, {"custom_field/Dept": "Unit"}),
    "to a close name": ManualRename({"Coaches": "Coaches 2"}, {"group/Coaches": "Coaches 2"}),
    "to a name of other letters": ManualRename({"Coaches": "Côachès"}, {"group/Coaches": "Côachès"}),
    "to a name with quotes": ManualRename({"Coaches": "'The \"best\"'"}, {"group/Coaches": 'The "best"'}),
    "to a name with a slash": ManualRename({"Coaches": "A/B -> C"}, {"group/Coaches": "A/B -> C"}),
    "two groups at once": ManualRename({**COACHES, **PILOTS}, {**FRIENDS, "group/Pilots": "Flyers"}),
    "a group and a smart group": ManualRename({**COACHES, **SELLERS}, {**FRIENDS, "smart_group/Sellers": "Merchants"}),
    "a group and a field": ManualRename({**COACHES, **TRACK}, {**FRIENDS, "custom_field/Track": "Place"}),
    "with a manager less": ManualRename({**COACHES, ", managers: [cy@acme.example]}": "}"}, FRIENDS),
    "with another manager": ManualRename({**COACHES, "managers: [cy@": "managers: [eva@"}, FRIENDS),
    "with another description": ManualRename(
        {**TRACK, "description: Where": "description: Wo"}, {"custom_field/Track": "Place"}
    ),
    "without its description": ManualRename({**TRACK, ", description: Where": ""}, {"custom_field/Track": "Place"}),
    "with its choices in another order": ManualRename(
        {**TRACK, "Office, Remote": "Remote, Office"}, {"custom_field/Track": "Place"}
    ),
    "with its assignment made optional": ManualRename({**COACHES, "mandatory: true": "mandatory: false"}, FRIENDS),
    "with its assignment taken away": ManualRename({"{group: Coaches}, ": "", "Coaches": "Friends"}, FRIENDS),
    "with another assignment": ManualRename(
        {"{group: Empty ones}]": "{group: Empty ones}, {group: Coaches}]", "Coaches": "Friends"}, FRIENDS
    ),
    "where its content is owned": ManualRename(COACHES, FRIENDS, options=OWNED),
    "where the content of a smart group is owned": ManualRename(
        SELLERS, {"smart_group/Sellers": "Merchants"}, options=OWNED
    ),
    "where it is owned by its new name": ManualRename(COACHES, FRIENDS, options="ownership: {groups: ['Fr*']}\n"),
    "with a system condition that the service says": ManualRename(
        {**SELLERS, "choices: [Sales]}": "choices: [Sales], system_condition: IS_ANY}"},
        {"smart_group/Sellers": "Merchants"},
    ),
    "declared by include": ManualRename(COACHES, FRIENDS, declared={"members: TWO,": "members: {include: TWO},"}),
    "declared with an earlier name that no longer exists": ManualRename(
        COACHES, FRIENDS, declared={"name: Coaches,": "name: Coaches, previously: [Trainers],"}
    ),
    "declared without an assignment": ManualRename(COACHES, FRIENDS, declared={"{group: Coaches}, ": ""}),
    "with a change that waits in the manifests": ManualRename(
        COACHES, FRIENDS, declared={"managers: [cy@": "managers: [dan@"}
    ),
    "two alike": ManualRename(
        {**COACHES, "  - {name: Empty": "  - {name: Helpers, members: TWO}\n  - {name: Empty"},
        FRIENDS,
        unclear=True,
    ),
    "two smart groups alike": ManualRename(
        {**SELLERS, HOMERS: f"  - {{name: Traders, {SALES}}}\n{HOMERS}"},
        {"smart_group/Sellers": "Merchants"},
        unclear=True,
    ),
    "two alike of one name": ManualRename(
        {
            "{group: Coaches}, ": "",
            "Coaches": "Friends",
            "  - {name: Empty": "  - {name: Friends, members: TWO}\n  - {name: Empty",
        },
        FRIENDS,
        unclear=True,
    ),
    "one that two may be": ManualRename(
        COACHES,
        {"group/Coaches": "Friends", "group/Trainers": "Friends"},
        declared={"  - {name: Pilots": "  - {name: Trainers, members: TWO}\n  - {name: Pilots"},
        unclear=True,
    ),
    "with a member more": ManualRename(
        {**PILOTS, ", cy@acme.example]": ", cy@acme.example, eva@acme.example]"}, notes=("group/Pilots",)
    ),
    "with a choice more": ManualRename(
        {**TRACK, "[Office, Remote]": "[Office, Remote, Hybrid]"}, notes=("custom_field/Track",)
    ),
    "a group of one": ManualRename({"Single person": "Single persons"}, notes=("group/Single person",)),
    "a group of nobody": ManualRename({"Empty ones": "Empty one"}, notes=("group/Empty ones",)),
    "a field of text": ManualRename({"Shoe size": "Shoe sizes"}, notes=("custom_field/Shoe size",)),
    "a group whose members nobody declares": ManualRename(
        {"Coaches": "The coaches"}, notes=("group/Coaches",), declared={", members: TWO,": ","}
    ),
}


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


def test_there_are_forty_ways() -> None:
    """So many are asked for, of every kind that has a name, with and without a second change."""
    assert len(WAYS) == 40


@pytest.mark.sampled
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


INNOCENT: Final = 200
THREE: Final = "[anna@acme.example, bo@acme.example, cy@acme.example]"
ASKS: Final = "conditions: [{field: D, choices: [X]}"
LOOKALIKES: Final[Mapping[str, tuple[str, str, str]]] = {
    "an empty group": ("groups", "{name: Old, members: []}", "{name: New, members: []}"),
    "a group of one": ("groups", "{name: Old, members: [bo@acme.example]}", "{name: New, members: [bo@acme.example]}"),
    "a group beside an empty one": ("groups", "{name: Old}", f"{{name: New, members: {TWO}}}"),
    "an empty group beside one of two": ("groups", f"{{name: Old, members: {TWO}}}", "{name: New, members: []}"),
    "a group of others": ("groups", f"{{name: Old, members: {TWO}}}", "{name: New, members: [eva@acme.example]}"),
    "a group of one more": ("groups", f"{{name: Old, members: {TWO}}}", f"{{name: New, members: {THREE}}}"),
    "a group in which others are": (
        "groups",
        f"{{name: Old, members: {THREE}}}",
        f"{{name: New, members: {{include: {TWO}}}}}",
    ),
    "a group of which nobody is told": ("groups", f"{{name: Old, members: {TWO}}}", "{name: New}"),
    "a group with a close name": ("groups", "{name: Team 1, members: []}", "{name: Team 2, members: []}"),
    "a field of text": ("custom_fields", "{name: Shoe size, type: TEXT}", "{name: Hat size, type: TEXT}"),
    "a field of other choices": (
        "custom_fields",
        "{name: Old, type: CHOICE, choices: [A, B]}",
        "{name: New, type: CHOICE, choices: [A, C]}",
    ),
    "a field of another type": (
        "custom_fields",
        "{name: Old, type: CHOICE, choices: [A, B]}",
        "{name: New, type: MULTI_SELECT, choices: [A, B]}",
    ),
    "a choice beside others": (
        "custom_fields",
        "{name: Old, type: CHOICE, choices: [Team 1, B]}",
        "{name: Old, choices: {include: [Team 2, B]}}",
    ),
    "a smart group of another choice": (
        "smart_groups",
        f"{{name: Old, {ASKS}]}}",
        "{name: New, conditions: [{field: D, choices: [Y]}]}",
    ),
    "a smart group of more conditions": (
        "smart_groups",
        f"{{name: Old, {ASKS}]}}",
        f"{{name: New, {ASKS}, {{field: D, choices: [Y]}}]}}",
    ),
}
"""What is created beside something that looks like it: section, what is live, what is declared."""


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


@pytest.mark.parametrize("number", schedules_of_today(range(INNOCENT), "innocent", parts=8))
def test_an_innocent_creation_does_not_stop(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody in it, one person, other content, declared or left alone: it is created, whatever it looks like."""
    seed, manifests, options = innocent(number)
    with staged(tmp_path, seed, monkeypatch, options) as stage:
        stage.write(manifests)
        assert stage("apply", "--auto-approve", code=0).writes
        assert stage("plan", "--detailed-exitcode").code == 0
