"""What the service does not tell is not known: null in JSON, `not known` in text, and a guard that stops."""

import csv
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from flow.altered_service import Altered, Edit
from flow.project import Project
from flow.shell import Ran, lmsconf
from json_schemas import schema_validator
from waiting import nobody_waits

from effects.crowd import CROWD, FIELDS, SEED, document, guard, people, project, seen, some
from effects.evaluator import evaluate
from lmsconf.errors import ExitCode
from lmsconf.sandbox.serve import Server

pytestmark = pytest.mark.sampled  # some seconds in all

TOKEN = "sandbox"
NARROWED = "smart_groups: [{name: Sales, conditions: [{field: Dept, choices: [B]}]}]\n"
FEWER = f"groups: [{{name: Team, members: {some(5, 30)}}}]\n"
COUNTS = ("before", "after", "gain", "lose", "keep", "to_mandatory", "to_optional", "window", "shortened")


class Service:
    """A project and the service that its commands reach."""

    def __init__(self, it: Project, url: str) -> None:
        self.it, self._env = it, {"LMSCONF_URL": url, "LMSCONF_TOKEN": TOKEN}

    def run(self, *arguments: str) -> Ran:
        return lmsconf(self.it.root, *arguments, env=self._env)

    def plan(self) -> dict[str, Any]:
        ran = self.run("plan", "--format", "json")
        assert ran.code == 0, ran
        return ran.document

    def stops(self) -> None:
        """Apply stops with the line to paste, at a number as without one, and passes with that line."""
        before, rows = seen(self.it), self.it.rows()
        for allow in ((), ("--allow", "people=30")):
            ran = self.run("apply", "--auto-approve", *allow)
            assert (ran.code, "--allow people=unknown" in ran.err) == (ExitCode.BLOCKED, True), ran
        assert self.it.rows() == rows
        others = [one["allow"] for one in self.plan()["guards"] if one["tripped"] and one["name"] != "people"]
        allowed = [word for one in ("people=unknown", *others) for word in ("--allow", one)]
        assert self.run("apply", "--auto-approve", *allowed).code in (ExitCode.OK, ExitCode.NOT_CONVERGED)
        assert seen(self.it) != before


Serve = Callable[..., Service]


@pytest.fixture
def serve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Opens a project whose service answers as the edits say."""
    nobody_waits(monkeypatch)
    open_: list[tuple[Server, Altered]] = []

    def opened(manifests: str, edits: Mapping[str, Edit] | None = None, seed: str = SEED) -> Service:
        it = project(tmp_path, {"all.yaml": manifests}, seed=seed)
        service = Altered(str(it.settings.workspace.database), spec=it.spec)
        service.edits = edits or {}
        server = Server(service).start()
        open_.append((server, service))
        return Service(it, server.url)

    yield opened
    for server, service in open_:
        server.stop()
        service.close_workspace()


def of_one(answer: object) -> Edit:
    """An answer of one person to the field Dept in another shape."""

    def edit(said: dict[str, Any]) -> None:
        for person in said["users"]:
            if person["email"] == CROWD[0]:
                person["customFields"]["Dept"] = answer

    return edit


def without_answers(said: dict[str, Any]) -> None:
    for person in said["users"]:
        del person["customFields"]


def as_text(said: dict[str, Any]) -> None:
    for person in said["users"]:
        person["customFields"] = "Dept=A"


def as_empty_text(said: dict[str, Any]) -> None:
    said["users"][0]["customFields"] = ""


def content(effects: Mapping[str, Any], name: str) -> dict[str, Any]:
    (found,) = (one for one in effects["contents"] if one["content"] == name)
    assert isinstance(found, dict)
    return found


def group(effects: Mapping[str, Any], address: str) -> dict[str, Any]:
    (found,) = (one for one in effects["groups"] if one["address"] == address)
    assert isinstance(found, dict)
    return found


def assert_not_known(plan: Mapping[str, Any], name: str, text: str) -> None:
    """No number of the content is told, nor one of all people, nor one of the guard."""
    effects = plan["effects"]
    one = content(effects, name)
    assert ({key: one[key] for key in COUNTS}, one["basis"]) == (dict.fromkeys(COUNTS), "unknown")
    assert (one["progress"], one["certificates_expiring"]) == (None, None)
    assert all(cause["gain"] is None and cause["lose"] is None for cause in one["causes"])
    assert effects["people"] == dict.fromkeys(effects["people"])
    assert effects["basis"] == "unknown"
    assert effects["reasons"]
    found = guard(plan)
    assert (found["total"], found["tripped"], found["allow"]) == (None, True, "people=unknown")
    assert "not known" in text


SHAPES = {
    "a number": of_one(7),
    "another key": of_one({"wonder": ["A"]}),
    "an unknown choice": of_one({"choices": [{"choiceId": "ch-999", "name": "Elsewhere"}]}),
    "choices without ids": of_one({"choices": [{"label": "A"}]}),
    "a list of lists": of_one([["A"]]),
    "no answers at all": without_answers,
    "answers in one text": as_text,
    "an empty text": as_empty_text,
}


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_of_an_unknown_shape_makes_what_rests_on_it_unknown(serve: Serve, shape: str) -> None:
    """The smart group and its content are not known; what rests on a manual group is, to the number."""
    it = serve(NARROWED + FEWER, {"/users": SHAPES[shape]})
    plan = it.plan()
    assert_not_known(plan, "GDPR", it.run("plan").out)
    told = group(plan["effects"], "smart_group/Sales")
    assert (told["after"], told["join"], told["leave"], told["basis"]) == (None, None, None, "unknown")
    sure = content(plan["effects"], "Safety")
    assert (sure["before"], sure["after"], sure["lose"], sure["basis"]) == (30, 25, 5, "exact")
    assert group(plan["effects"], "group/Team")["leave"] == 5
    it.stops()


def people_file(it: Service) -> dict[str, Any]:
    """The file of `--people`, which fits its schema, beside a warning."""
    ran = it.run("plan", "--people", "rows.json")
    assert (ran.code, "[people/not-known]" in ran.err) == (0, True), ran
    found: dict[str, Any] = json.loads((it.it.root / "rows.json").read_text(encoding="utf-8"))
    assert [error.message for error in schema_validator("people").iter_errors(found)] == []
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_the_people_who_are_known_are_named_and_the_others_told_as_unknown(serve: Serve, shape: str) -> None:
    """`--people` has the rows of every content that is known, and names each audience that is not."""
    it = serve(NARROWED + FEWER, {"/users": SHAPES[shape]})
    found = people_file(it)
    assert [(row["content"], row["change"]) for row in found["rows"]] == [("Safety", "lose")] * 5
    (unknown,) = found["unknown"]
    assert (unknown["audience"], unknown["contents"]) == ("smart_group/Sales", ["GDPR"])
    assert "answers of people have an unknown format" in unknown["reason"]
    assert it.run("plan", "--people", "rows.csv").code == 0
    *known, last = csv.DictReader((it.it.root / "rows.csv").read_text(encoding="utf-8").splitlines())
    assert [(row["content"], row["change"]) for row in known] == [("Safety", "lose")] * 5
    said = {"content": "GDPR", "content_id": "c-1", "change": "unknown", "causes": "smart_group/Sales"}
    assert last == dict.fromkeys(last, "") | said


def test_where_nobody_is_known_no_row_is_written(serve: Serve) -> None:
    """The one entry under `unknown` has no audience and no content, and neither has the row in CSV."""
    it = serve(NARROWED + FEWER, {"/users": one_more})
    found = people_file(it)
    assert found["rows"] == []
    ((audience, contents, reason),) = ((one["audience"], one["contents"], one["reason"]) for one in found["unknown"])
    assert (audience, contents, "not complete" in reason) == (None, [], True)
    assert it.run("plan", "--people", "rows.csv").code == 0
    (row,) = csv.DictReader((it.it.root / "rows.csv").read_text(encoding="utf-8").splitlines())
    assert row == dict.fromkeys(row, "") | {"change": "unknown"}


def without_the_first(said: dict[str, Any]) -> None:
    if "members" in said:
        del said["members"][0]


ODD = f"""
{FIELDS}
{people()}
groups: [{{name: Team, members: {some(0, 30)}}}]
smart_groups:
  - {{name: Odd, conditions: [{{field: Dept, choices: [A], system_condition: IS_FULL_MOON}}]}}
  - {{name: Sales, conditions: [{{field: Dept, choices: [A, B]}}]}}
content: [{{name: GDPR}}, {{name: Safety}}]
content_targets:
  - {{content: GDPR, assign_to: [{{smart_group: Odd}}, {{group: Team}}]}}
  - {{content: Safety, assign_to: [{{smart_group: Sales}}]}}
"""
MOVED = f"users: [{{email: {CROWD[0]}, answers: {{Dept: B}}}}]\n"


@pytest.mark.parametrize(
    "manifests",
    [
        "smart_groups: [{name: Odd, conditions: [{field: Dept, choices: [B], system_condition: IS_FULL_MOON}]}]",
        "smart_groups: [{name: Odd, conditions: [{field: Dept, system_condition: IS_FULL_MOON}]}]",
        MOVED,
        f"{MOVED}groups: [{{name: Team, members: {some(0, 30)}}}]",
    ],
    ids=["conditions", "no choices", "answers", "answers beside a group"],
)
def test_a_system_condition_that_no_reading_explains_makes_a_change_unknown(serve: Serve, manifests: str) -> None:
    """Who meets it afterwards only the service knows."""
    it = serve(manifests, {"/smart-groups/sg-1": without_the_first}, seed=ODD)
    plan = it.plan()
    assert_not_known(plan, "GDPR", it.run("plan").out)
    assert group(plan["effects"], "smart_group/Odd")["after"] is None
    it.stops()


ALONE = """
absent: {content_targets: [{content: Safety, assign_to: [{smart_group: Sales}]}]}
smart_groups: [{name: Odd, conditions: [{field: Dept, system_condition: IS_FULL_MOON}]}]
"""


def test_what_a_word_means_beside_choices_says_nothing_of_it_alone(serve: Serve) -> None:
    """Only the group whose condition changes to one without choices is not known."""
    plan = serve(ALONE, seed=ODD).plan()
    effects = plan["effects"]
    assert group(effects, "smart_group/Odd")["after"] is None
    assert (content(effects, "GDPR")["after"], content(effects, "Safety")["after"]) == (None, 0)
    may = "IS_FULL_MOON may mean: has any answer, always true or the choices only; no smart group that was read shows"
    assert any(may in reason for reason in effects["reasons"])


ANY = """smart_groups:
  - {name: Any Dept, conditions: [{field: Dept, system_condition: IS_ANY}]}
  - {name: Any Skills, conditions: [{field: Skills, system_condition: IS_ANY}]}
"""
SWAPPED = f"""
users: [{{email: root1@acme.example, answers: {{Dept: A}}}}, {{email: {CROWD[0]}, answers: {{Dept: null}}}}]
"""


@pytest.mark.parametrize(
    ("alone", "reading", "told"),
    [
        ("any-answer", "has any answer", {"before": 60, "after": 60, "join": 1, "leave": 1, "basis": "estimate"}),
        ("always", "always true", None),
        ("choices", "the choices only", None),
    ],
)
def test_a_system_condition_is_read_as_what_explains_every_smart_group(
    tmp_path: Path, alone: str, reading: str, told: Mapping[str, object] | None
) -> None:
    """Its members after the plan are an estimate that says how; nothing of this makes anything unknown."""
    options = f"dialect: {{smart-groups.system-condition.alone: {alone}}}\n"
    seed = SEED.replace("smart_groups:\n", ANY)
    effects = document(project(tmp_path, {"all.yaml": SWAPPED}, options=options, seed=seed))["effects"]
    assert effects["reasons"] == [f"IS_ANY read as: {reading}; explains 2 of 2 smart groups"]
    found = {one.pop("address"): one for one in effects["groups"]}
    assert found.get("smart_group/Any Dept") == told
    assert found["smart_group/Sales"] == {"before": 60, "after": 60, "join": 1, "leave": 1, "basis": "exact"}


def test_what_exact_numbers_rest_on_is_a_note(tmp_path: Path) -> None:
    """A smart group on a TEXT field of which nothing changes: nothing is said to be unknown."""
    odd = "  - {name: Odd, conditions: [{field: Room, system_condition: IS_ANY}]}\n"
    seed = SEED.replace("smart_groups:\n", f"smart_groups:\n{odd}")
    seed = seed.replace("custom_fields:\n", "custom_fields:\n  - {name: Room, type: TEXT}\n")
    seed += "  - {content: GDPR, assign_to: [{smart_group: Odd}]}\n"
    again = "content_targets: [{content: GDPR, mandatory: true, assign_to: [{smart_group: Dept A}]}]\n"
    text = lmsconf(project(tmp_path, {"all.yaml": again}, seed=seed).root, "plan").out
    assert "  Note: smart_group/Odd: a condition is on a field without choices.\n" in text
    assert "ot known" not in text


def test_people_without_an_account_yet_are_members_of_what_is_always_true(tmp_path: Path) -> None:
    """Nobody reads their answers from the service, and a condition that is always true needs none."""
    options = "people: {create: true}\ndialect: {smart-groups.system-condition.alone: always}\n"
    seed = SEED.replace("smart_groups:\n", ANY)
    made = "users: [{email: new@acme.example, first_name: N, last_name: W, language: en}]"
    effects = document(project(tmp_path, {"all.yaml": made}, options=options, seed=seed))["effects"]
    told = {"before": 62, "after": 63, "join": 1, "leave": 0, "basis": "estimate"}
    assert group(effects, "smart_group/Any Dept") == {"address": "smart_group/Any Dept", **told}


def test_an_unchanged_group_with_an_unknown_condition_has_its_live_members(serve: Serve) -> None:
    """Contents is in the answer of the service, so the numbers beside it are known."""
    it = serve(
        "absent: {content_targets: [{content: GDPR, assign_to: [{group: Team}]}]}\n" + NARROWED.replace("B", "A, B, C"),
        seed=ODD,
    )
    plan, before = it.plan(), seen(it.it)
    found = content(plan["effects"], "GDPR")
    assert (found["before"], found["after"], found["lose"], found["keep"]) == (45, 30, 15, 30)
    assert found["basis"] in ("exact", "estimate")
    assert guard(plan)["total"] == 15
    assert it.run("apply", "--auto-approve", "--allow", "people=15").code == 0
    found_out = evaluate(before, seen(it.it), 0).contents
    assert [counts["lose"] for counts in found_out.values()] == [15]


def one_more(said: dict[str, Any]) -> None:
    said["matchCount"] += 1


def last_missing(said: dict[str, Any]) -> None:
    said["users"] = [person for person in said["users"] if person["email"] != CROWD[-1]]


@pytest.mark.parametrize("edit", [one_more, last_missing], ids=lambda edit: edit.__name__)
@pytest.mark.parametrize("manifests", [NARROWED, FEWER, NARROWED + FEWER], ids=["smart group", "group", "both"])
def test_an_incomplete_listing_of_people_makes_everything_unknown(serve: Serve, edit: Edit, manifests: str) -> None:
    """Somebody is missing, and nobody knows what they have."""
    it = serve(manifests, {"/users": edit})
    plan = it.plan()
    effects = plan["effects"]
    assert effects["basis"] == "unknown"
    assert effects["people"] == dict.fromkeys(effects["people"])
    assert all(one[key] is None for one in effects["contents"] for key in COUNTS)
    assert any("not complete" in reason for reason in effects["reasons"])
    assert (guard(plan)["total"], guard(plan)["allow"]) == (None, "people=unknown")
    assert "not known" in it.run("plan").out
    it.stops()


def ten_more(said: dict[str, Any]) -> None:
    for key in said.keys() & {"userIds", "members"}:
        said[key] += [f"u-unlisted-{number}" for number in range(10)]


@pytest.mark.parametrize(
    ("manifests", "name", "address"),
    [
        ("absent: {content_targets: [{content: Safety, assign_to: [{group: Team}]}]}", "Safety", "group/Team"),
        (NARROWED, "GDPR", "smart_group/Sales"),
    ],
    ids=["group", "smart group"],
)
def test_members_whom_no_list_of_people_contains_make_an_estimate(
    serve: Serve, manifests: str, name: str, address: str
) -> None:
    """They may have left the workspace or be hidden: they are in no number, and the plan says how many they are."""
    it = serve(manifests, {"/groups/g-1/members": ten_more, "/smart-groups/sg-1": ten_more})
    effects = it.plan()["effects"]
    assert (content(effects, name)["basis"], effects["basis"]) == ("estimate", "estimate")
    assert effects["reasons"] == [f"{address}: 10 members are in no list of people, and not counted"]
    assert f"{address}: 10 members are in no list of people" in it.run("plan").out


def test_a_plan_that_only_adds_takes_nothing_though_little_is_known(serve: Serve) -> None:
    """`lose` is 0 without a look at anybody, and no consent is asked for."""
    it = serve(f"groups: [{{name: Team, members: {some(0, 40)}}}]", {"/users": one_more})
    plan = it.plan()
    assert (plan["effects"]["people"]["lose"], plan["effects"]["people"]["gain"]) == (0, None)
    assert guard(plan)["tripped"] is False


def unlisted_members(said: dict[str, Any]) -> None:
    del said["members"]


def test_members_that_the_service_does_not_list_are_not_known(serve: Serve) -> None:
    """A smart group that does not follow from choices, and whose members are not told, is unknown."""
    manifests = "absent: {content_targets: [{content: GDPR, assign_to: [{group: Team}]}]}"
    it = serve(manifests, {"/smart-groups/sg-1": unlisted_members}, seed=ODD)
    assert_not_known(it.plan(), "GDPR", it.run("plan").out)
    it.stops()


@pytest.mark.parametrize("audience", ["g-999", ""])
def test_an_assignment_to_an_audience_that_no_listing_explains_is_not_known(serve: Serve, audience: str) -> None:
    """It may hold anybody."""

    def edit(said: dict[str, Any]) -> None:
        for target in said["targets"]:
            if target["contentId"] == "c-2":
                said["targets"] = [target, {**target, "targetId": audience, "targetType": "SOMETHING"}]
                return

    it = serve(FEWER, {"/content/targets": edit})
    assert_not_known(it.plan(), "Safety", it.run("plan").out)
