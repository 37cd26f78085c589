"""People in manifests: each change is one minimal set of calls, then an empty plan; and what must not happen."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from manifest.cases import Case, cases, shown
from texts import listed_cases, text_of

from lmsconf.errors import ProblemsFound

from .altered_service import plan_against
from .project import Project
from .shell import lmsconf

pytestmark = pytest.mark.sampled(day=8)

SEED = text_of(__file__, "users_seed.yaml")
PAGES = "dialect: {paging.limit: 100}\n"
CREATE = "people: {create: true}\n"
NEW = "first_name: Nia, last_name: Ny, language: en"


def project(tmp_path: Path, options: str = "", seed: str = SEED) -> Project:
    return Project(tmp_path, seed, options)


def person(it: Project, id: str = "u-anna") -> dict[str, Any]:
    """Somebody as the API has them."""
    found: dict[str, Any] = json.loads(json.dumps(it.ask("users.get", {"userId": id})))
    return found


def told(it: Project, manifests: str) -> list[str]:
    """The codes of the errors because of which there is no plan."""
    with pytest.raises(ProblemsFound) as found:
        it.plan(manifests)
    return [problem.code for problem in found.value.problems if problem.is_error]


@pytest.mark.sampled(daily=False)
@listed_cases("said", "calls")
def test_a_change_is_its_fewest_calls(tmp_path: Path, said: str, calls: list[str]) -> None:
    """What differs is sent, what does not is not, and afterwards the plan is empty."""
    assert project(tmp_path).settled(f"users: [{{{said}}}]") == calls


def test_metadata_is_taken_out_where_the_service_replaces_it(tmp_path: Path) -> None:
    """A name with null goes, in the one call that says the rest."""
    it = project(tmp_path, "dialect: {users.update-metadata.mode: replace}\n")
    said = "users: [{email: anna@acme.example, metadata: {cost: null, new: x}}]"
    assert it.settled(said) == ["users.update-metadata"]
    assert person(it)["metadata"] == {"new": "x", "unit": "A"}


def test_what_is_sent_arrives(tmp_path: Path) -> None:
    """Names, language, metadata, answers and rights are then as the manifest says; what it leaves out is as it was."""
    it = project(tmp_path)
    it.settled(
        "users: [{email: anna@acme.example, last_name: Ek, language: 'no', admin: true,"
        " applications: {include: [create]},"
        " metadata: {unit: B}, answers: {Skills: [C], Badge: null}}]"
    )
    now = person(it)
    assert (now["firstName"], now["lastName"], now["language"], now["admin"]) == ("Anna", "Ek", "no", True)
    assert now["applicationIds"] == ["create", "learn"]
    assert now["metadata"] == {"cost": "100", "unit": "B"}
    assert {field: [one["name"] for one in said["choices"]] for field, said in now["customFields"].items()} == {
        "Dept": ["Sales"],
        "Skills": ["C"],
    }


@listed_cases("dialect")
def test_other_services_are_spoken_to_in_their_words(tmp_path: Path, dialect: str) -> None:
    """Answers and metadata that are not spoken of stay, however the service takes what it is given."""
    it = project(tmp_path, f"dialect: {{{dialect}}}\n")
    it.settled(
        "users: [{email: anna@acme.example, metadata: {unit: B}, answers: {Dept: HR},"
        " custom_archive_date: 2031-01-01T00:00Z}]"
    )
    now = person(it)
    assert now["metadata"] == {"cost": "100", "unit": "B"}
    assert now["customFields"]["Badge"] == {"text": "7"}
    assert [one["name"] for one in now["customFields"]["Skills"]["choices"]] == ["SQL", "Go"]


def test_answers_that_the_service_gives_by_name_are_sent_again_by_id(tmp_path: Path) -> None:
    """Where answers that are left out are cleared, the kept ones are sent as if the service gave their ids."""
    dialect = "dialect: {users.update-custom-field-choice.omitted: clear}\n"
    it = project(tmp_path, dialect, SEED.replace("Skills: [SQL, Go],", "Skills: [Go],"))

    def by_name(snapshot: dict[str, Any]) -> None:
        names = {one["id"]: one["name"] for field in snapshot["custom_field"] for one in field.get("choices", [])}
        for someone in snapshot["user"]:
            for answer in someone.get("answers", []):
                answer["choices"] = [names[id] for id in answer["choices"]]

    plan = plan_against(it, "users: [{email: anna@acme.example, answers: {Dept: HR}}]", by_name)
    [by_names], [by_ids] = plan.calls, it.plan().calls
    assert by_names.body == by_ids.body


@pytest.mark.parametrize(("grade", "is_warned"), [("", True), ("Grade: B, ", False)])
def test_a_plan_warns_of_hidden_fields_whose_answers_it_may_clear(tmp_path: Path, grade: str, is_warned: bool) -> None:
    """A service may show none, so that a call cannot send them along, and says nowhere what it does then."""
    seed = SEED.replace("custom_fields:\n", "custom_fields:\n  - {name: Grade, type: TEXT, hidden: true}\n")
    it = project(tmp_path, seed=seed.replace("Badge:", f"{grade}Badge:"))
    plan = it.plan("users: [{email: anna@acme.example, answers: {Dept: HR}}]")
    told = [one.message for one in plan.all_problems if one.code == "custom-field/hidden-answers"]
    assert ["custom_field/Grade: hidden" in one and "clear them" in one for one in told] == [True] * is_warned


@pytest.mark.parametrize("gone", ["custom_fields: [{name: Dept, choices: [HR]}]", "absent: {custom_fields: [Dept]}"])
def test_an_answer_that_the_plan_ends_is_not_sent_again(tmp_path: Path, gone: str) -> None:
    """Where answers that are left out are cleared, kept ones go along; one to a deleted choice would be refused."""
    it = project(tmp_path, "dialect: {users.update-custom-field-choice.omitted: clear}\n")
    it.settled(f"users: [{{email: anna@acme.example, answers: {{Badge: '8'}}}}]\n{gone}", "answers=1")
    now = person(it)["customFields"]
    assert (now.keys(), now["Badge"]) == ({"Skills", "Badge"}, {"text": "8"})


@pytest.mark.parametrize("key", ["archived: true", "custom_archive_date: '2030-01-01T00:00:00Z'"])
def test_an_additive_plan_adds_to_a_person_whom_it_does_not_archive(tmp_path: Path, key: str) -> None:
    """Applications are added, and the apply is not stale because rights were read."""
    it = project(tmp_path)
    it.write(f"users: [{{email: anna@acme.example, applications: [learn, create], {key}}}]")
    lmsconf(it.root, "apply", "--additive", "--auto-approve", code=0)
    assert sorted(person(it)["applicationIds"]) == ["create", "learn"]
    assert it.plan(additive=True).changes == ()


def test_people_are_created_only_where_the_project_says_so(tmp_path: Path) -> None:
    """Somebody who is not live is an error, unless the project file allows to create people."""
    it = project(tmp_path)
    manifest = f"users: [{{email: nia@acme.example, {NEW}}}]"
    assert told(it, manifest) == ["person/unknown"]
    it.write_options(CREATE)
    assert it.settled(manifest) == ["users.create"]
    names = {"email": "nia@acme.example", "firstName": "Nia", "lastName": "Ny", "language": "en"}
    wanted = it.spec.body_to_wire("users.create", **names, sendWelcomeEmail=False)
    assert [call.body for call in it.last.calls] == [wanted]


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("wrong_users.txt")), ids=lambda case: case.title)
def test_what_cannot_be_is_an_error_at_its_place(tmp_path: Path, case: Case) -> None:
    """Accounts without a name, answers that do not fit their field, contradictions, and people under `absent`."""
    with pytest.raises(ProblemsFound) as found:
        project(tmp_path, CREATE).plan(case.text)
    assert shown(problem for problem in found.value.problems if problem.is_error) == case.told


@listed_cases("said", "code", "words")
def test_certain_refusals_are_foretold(tmp_path: Path, said: str, code: str, words: str) -> None:
    """What the service or the project will refuse for certain stops apply with exit 4, and nothing is sent."""
    it = project(tmp_path)
    (problem,) = (one for one in it.plan(f"users: [{{email: {said}}}]").all_problems if one.is_error)
    assert (problem.code, problem.message) == (code, f"user/{said.partition(',')[0]}: {words}")
    assert lmsconf(tmp_path, "apply", "--auto-approve").code == 4
    assert it.plan().changes


def test_a_saved_plan_is_checked_by_the_number_of_the_project(tmp_path: Path) -> None:
    """A single admin may stay where the project says so, also in a plan file; three must, where it wants three."""
    said = "users: [{email: root@acme.example, admin: false}]"
    it = project(tmp_path, "guards: {min_admins: 1}\n")
    it.plan(said)
    assert lmsconf(tmp_path, "plan", "--out", str(tmp_path / "plan.json")).code == 0
    assert lmsconf(tmp_path, "apply", str(tmp_path / "plan.json")).code == 0

    three = SEED.replace("{email: mo@acme.example, id: u-mo, ", "{email: mo@acme.example, id: u-mo, admin: true, ")
    four = three.replace("u-anna, first_name", "u-anna, admin: true, first_name")
    (tmp_path / "three").mkdir()
    it = project(tmp_path / "three", "guards: {min_admins: 3}\n", four)
    it.plan(said)
    assert lmsconf(it.root, "plan", "--out", str(it.root / "plan.json")).code == 0
    it.send("user-access.make-admin", {"userId": "u-mo", "endow": "false"})
    lmsconf(it.root, "apply", str(it.root / "plan.json"), code=3)
    assert person(it, "u-root")["admin"] is True


def test_people_are_never_owned(tmp_path: Path) -> None:
    """Nor does ownership delete anybody."""
    with pytest.raises(ProblemsFound) as found:
        _ = project(tmp_path, "ownership: {users: all}\n").settings
    assert [problem.code for problem in found.value.problems] == ["project/people-owned"]


@listed_cases("users", "requests")
def test_only_what_is_managed_is_read(tmp_path: Path, users: str, requests: dict[str, int]) -> None:
    """The listing is enough for names, metadata, dates and archiving; other keys take a call a person or a page."""
    it = project(tmp_path, PAGES)
    it.plan(f"users: [{users}]")
    assert Counter(call.operation for call in it.calls) == requests


def test_an_offline_plan_says_what_a_snapshot_lacks(tmp_path: Path) -> None:
    """Names, rights and answers are in a snapshot; what takes a call a person is not, and is no difference."""
    it = project(tmp_path)
    manifest = "users: [{email: anna@acme.example, first_name: Anna, manager: true, answers: {Dept: HR}}]"
    plan = plan_against(it, manifest, lambda snapshot: None)
    assert [one.path for one in plan.changes[0].fields] == ["manager", "answers.Dept"]
    with pytest.raises(ProblemsFound) as found:
        plan_against(it, "users: [{email: anna@acme.example, language: en}]", lambda snapshot: None)
    assert [problem.code for problem in found.value.problems] == ["read/missing"]


@pytest.mark.parametrize("omitted", ["keep", "clear"])
def test_a_choice_that_is_sent_by_name_is_renamed_first(tmp_path: Path, omitted: str) -> None:
    """Where answers name their choices, the calls wait for the names that the plan gives, also for kept answers."""
    key = "users.update-custom-field-choice"
    it = project(
        tmp_path,
        f"dialect: {{{key}.value: name, {key}.value-multi-select: name-list, {key}.omitted: {omitted}}}\n",
    )
    manifest = (
        "custom_fields:\n"
        "  - {name: Dept, choices: {include: [{name: People, previously: [HR]}]}}\n"
        "  - {name: Skills, choices: {include: [{name: Golang, previously: [Go]}]}}\n"
        "users: [{email: anna@acme.example, answers: {Dept: People}}]"
    )
    calls = it.plan(manifest).calls
    renames = {call.id for call in calls if call.operation == "custom-fields.replace"}
    [answer] = [call for call in calls if call.operation == key]
    assert len(renames & set(answer.needs)) == (2 if omitted == "clear" else 1)
    it.settled(manifest)
    now = person(it)["customFields"]
    assert [[one["name"] for one in now[field]["choices"]] for field in ("Dept", "Skills")] == [
        ["People"],
        ["SQL", "Golang"],
    ]


def test_a_choice_is_renamed_before_an_answer_moves_to_it_from_one_that_is_deleted(tmp_path: Path) -> None:
    """Where answers name their choices, the field is replaced twice: in one call, each would wait for the other."""
    key = "users.update-custom-field-choice"
    it = project(tmp_path, f"dialect: {{{key}.value: name, custom-fields.in-use: never}}\n")
    manifest = (
        "custom_fields: [{name: Dept, choices: [{name: People, previously: [HR]}]}]\n"
        "users: [{email: anna@acme.example, answers: {Dept: People}}]"
    )
    field = "custom-fields.replace"
    assert [call.operation for call in it.plan(manifest).calls] == [field, key, field]
    it.settled(manifest)
    assert [one["name"] for one in person(it)["customFields"]["Dept"]["choices"]] == ["People"]
