"""What a plan that migrates a field says of answers that it cannot copy, and does to smart groups that are declared."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from manifest.cases import Case, cases, shown
from texts import listed_cases, text_of

from lmsconf.errors import ExitCode
from lmsconf.model.plan import Plan
from lmsconf.workspace.project_manifests import load_manifests

from .altered_service import apply_under, plan_of_rows
from .project import Project
from .shell import lmsconf

pytestmark = pytest.mark.sampled(day=8, daily=False)

SEED = text_of(__file__, "migration_plans_seed.yaml")


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("migrations_refused.txt")), ids=lambda case: case.title)
def test_a_migration_that_cannot_be_meant_is_refused(tmp_path: Path, case: Case) -> None:
    """`validate` names what is wrong without any workspace, and nothing else; each workspace may have its own."""
    workspaces = "".join(f"  {name}: {{url: 'sandbox:{name}.db'}}\n" for name in "abc")
    it = Project(tmp_path, options=f"{workspaces}default_workspace: a\n")
    it.write(case.text)
    assert shown(load_manifests(it.settings).problems) == case.told


@pytest.mark.parametrize(("type", "lists"), [("CHOICE, choices: [Sales, Tech]", 2), ("TEXT", 4)])
def test_a_copied_choice_is_verified_by_reading_the_person_alone(tmp_path: Path, type: str, lists: int) -> None:
    """A person shows choices with their ids; to verify a copied text, the fields are listed too, for each person."""
    it = Project(tmp_path, SEED[: SEED.index("smart_groups:")], "guards: off\n")
    report = apply_under(it, f"custom_fields: [{{name: Unit, type: {type}, migrate: {{from: Team}}}}]\n")
    assert report.exit == ExitCode.OK, report
    operations = Counter(call.operation for call in it.calls)
    assert (operations["users.get"], operations["custom-fields.list"]) == (2, lists)


# A service that never clears an answer: what the plan foretells, what the apply still does, what an undo leaves.


UNCLEARED_SEED = text_of(__file__, "migration_plans_uncleared_seed.yaml")
REFUSED = "guards: off\ndialect: {users.update-custom-field-choice.clear-choice: refused}\n"


def test_an_undo_leaves_the_answer_and_takes_back_the_rest(tmp_path: Path) -> None:
    """The plan says what cannot be undone; the undo leaves that alone, with the reason, and does the rest."""
    it = Project(tmp_path, UNCLEARED_SEED, REFUSED)
    it.write("users: [{email: bo@acme.example, answers: {Dept: Sales, Badge: '8'}}]")
    ran = lmsconf(it.root, "apply", "--auto-approve", code=0)
    assert 'Can be undone in part: the service refuses to clear the answer to "Dept" again.' in ran.err
    ran = lmsconf(it.root, "plan", "--undo", "latest", "--out", "undo.json", code=0)
    assert 'the service refuses to clear the answer to "Dept"' in ran.out
    assert lmsconf(it.root, "apply", "undo.json").code == 0
    person = it.ask("users.get", {"userId": "u-bo"})
    assert isinstance(person, dict)
    assert list(person["customFields"]) == ["Dept"]


def test_an_undo_leaves_metadata_that_the_service_merges(tmp_path: Path) -> None:
    """A key that a run has added stays, with the reason, and the other one has its value of before."""
    it = Project(tmp_path, UNCLEARED_SEED, "guards: off\ndialect: {users.update-metadata.mode: merge}\n")
    it.send("users.update-metadata", {"userId": "u-bo"}, {"metadata": {"cost": "1"}})
    it.write("users: [{email: bo@acme.example, metadata: {cost: '2', unit: A}}]")
    assert lmsconf(it.root, "apply", "--auto-approve").code == 0
    ran = lmsconf(it.root, "plan", "--undo", "latest", "--out", "undo.json", code=0)
    assert 'the service merges metadata, so that "unit" cannot be removed' in ran.out
    lmsconf(it.root, "apply", "undo.json", code=0)
    person = it.ask("users.get", {"userId": "u-bo"})
    assert isinstance(person, dict)
    assert person["metadata"] == {"cost": "1", "unit": "A"}


# Which answers a migration copies where people's answers and e-mails are not all as one would wish.


def told(plan: Plan, code: str) -> list[str]:
    """What the plan says of the old field, after its address."""
    return [one.message.partition(", because ")[2] for one in plan.all_problems if one.code == code]


@listed_cases("rows", "refused", "kept", "copied")
def test_what_cannot_be_told_of_a_person_is_not_copied(
    tmp_path: Path,
    rows: Mapping[str, Mapping[str, object]],
    refused: list[str],
    kept: list[str],
    copied: Mapping[str, str],
) -> None:
    """Answers in an unknown format refuse the deletion; an unknown choice, or no e-mail of one's own, prevents it."""
    it = Project(tmp_path, text_of(__file__, "migration_plans_migrated_seed.yaml"))

    def edit(people: list[dict[str, object]]) -> None:
        for row in people:
            row |= rows.get(str(row["email"]), {})

    plan = plan_of_rows(it, "custom_fields: [{name: Unit, type: TEXT, migrate: {from: Team}}]\n", edit)
    assert told(plan, "refusal/answers-unknown") == refused
    assert told(plan, "migrate/not-copied") == kept
    assert {one.address.name: one.id for one in plan.changes if one.address.kind == "user"} == copied
