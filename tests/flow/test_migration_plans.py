"""What a plan that migrates a field says of answers that it cannot copy, and does to smart groups that are declared."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest
from texts import text_of

from lmsconf.documents.plan_file import dumps, loads
from lmsconf.errors import ExitCode, Rejected
from lmsconf.model.plan import Plan
from lmsconf.workspace.project_manifests import load_manifests

from .altered_service import apply_under, planned
from .project import Project
from .shell import lmsconf

pytestmark = pytest.mark.sampled(day=8)

SEED = text_of(__file__, "migration_plans_seed.yaml")
TEXT = "custom_fields: [{name: Unit, type: TEXT, migrate: {from: Team}}]\n"
FIELD = """
custom_fields:
  - name: Unit
    type: CHOICE
    choices: [Sales, Code]
    migrate: {from: Team, choices: {Tech: Code}}
"""


@pytest.mark.parametrize(
    ("manifests", "code"),
    [
        (FIELD.replace("from: Team", "from: Unit"), "migrate/same-field"),
        (
            FIELD.replace("from: Team", "from: Unit").replace("choices:", "previously: [Unit]\n    choices:", 1),
            "migrate/same-field",
        ),
        (FIELD.replace("from: Team", "from: Team, to: Team"), "migrate/to"),
        (FIELD + "  - {name: Team, type: TEXT}\n", "migrate/declared"),
        (FIELD + "  - {name: B, type: TEXT, migrate: {from: Team}}\n", "migrate/twice"),
        (FIELD.replace("type: CHOICE", "type: CHOICE\n    previously: [Team]"), "migrate/renamed"),
        (FIELD.replace("Tech: Code", "Tech: Cod"), "reference/unknown-choice"),
    ],
)
def test_a_migration_that_cannot_be_meant_is_refused(tmp_path: Path, manifests: str, code: str) -> None:
    """`validate` names what is wrong without any workspace, and nothing else."""
    it = Project(tmp_path, SEED)
    it.write(manifests)
    assert [problem.code for problem in load_manifests(it.settings).problems] == [code]


@pytest.mark.parametrize(("type", "lists"), [("CHOICE, choices: [Sales, Tech]", 2), ("TEXT", 4)])
def test_a_copied_choice_is_verified_by_reading_the_person_alone(tmp_path: Path, type: str, lists: int) -> None:
    """A person shows choices with their ids; to verify a copied text, the fields are listed too, for each person."""
    it = Project(tmp_path, SEED[: SEED.index("smart_groups:")], "guards: off\n")
    report = apply_under(it, f"custom_fields: [{{name: Unit, type: {type}, migrate: {{from: Team}}}}]\n")
    assert report.exit == ExitCode.OK, report
    operations = Counter(call.operation for call in it.calls)
    assert (operations["users.get"], operations["custom-fields.list"]) == (2, lists)


@pytest.mark.parametrize(
    ("one", "other", "codes"),
    [
        ("", "", ["migrate/twice"]),
        (", only_in: [a]", "", ["migrate/twice"]),
        ("", ", only_in: [a]", ["migrate/twice"]),
        (", only_in: [a, b]", ", only_in: [b, c]", ["migrate/twice"]),
        (", only_in: [a]", ", only_in: [b]", []),
    ],
)
def test_a_field_may_move_to_another_field_in_each_workspace(
    tmp_path: Path, one: str, other: str, codes: list[str]
) -> None:
    """In none to two."""
    it = Project(tmp_path, SEED)
    workspaces = "".join(f"  {name}: {{url: 'sandbox:{name}.db'}}\n" for name in "abc")
    (tmp_path / "lmsconf.yaml").write_text(f"workspaces:\n{workspaces}default_workspace: a\n")
    it.write(
        f"custom_fields:\n  - {{name: A, type: TEXT, migrate: {{from: Team}}{one}}}\n"
        f"  - {{name: B, type: TEXT, migrate: {{from: Team}}{other}}}\n"
    )
    assert [problem.code for problem in load_manifests(it.settings).problems] == codes


def test_an_old_field_that_is_declared_for_each_workspace_is_one_problem(tmp_path: Path) -> None:
    """It names the first declaration that is planned together with the migration."""
    it = Project(tmp_path, SEED)
    workspaces = "".join(f"  {name}: {{url: 'sandbox:{name}.db'}}\n" for name in "abc")
    (tmp_path / "lmsconf.yaml").write_text(f"workspaces:\n{workspaces}default_workspace: a\n")
    old = "".join(f"  - {{name: Team, type: TEXT, only_in: [{name}]}}\n" for name in "abc")
    it.write(f"custom_fields:\n{old}  - {{name: Unit, type: TEXT, migrate: {{from: Team}}, only_in: [b, c]}}\n")
    [problem] = load_manifests(it.settings).problems
    assert (problem.code, problem.hint) == ("migrate/declared", "Remove the entry at manifests/all.yaml:3:5.")


# A service that never clears an answer: what the plan foretells, what the apply still does, what an undo leaves.


ANSWERS = "users.update-custom-field-choice"
UNCLEARED_SEED = text_of(__file__, "migration_plans_uncleared_seed.yaml")
TYPES = {"choice": "Dept", "multi-select": "Skills", "text": "Badge"}


def project(tmp_path: Path, *types: str) -> Project:
    keys = ", ".join(f"{ANSWERS}.clear-{type}: refused" for type in types)
    return Project(tmp_path, UNCLEARED_SEED, f"guards: off\ndialect: {{{keys}}}\n")


@pytest.mark.parametrize("type", TYPES)
def test_clearing_is_foretold_for_the_type_alone(tmp_path: Path, type: str) -> None:
    """One error for the answer, at its place; those to fields of other types are cleared."""
    it = project(tmp_path, type)
    plan = it.plan("users: [{email: anna@acme.example, answers: {Dept: null, Skills: [], Badge: null}}]")
    told = [one for one in plan.all_problems if one.code == "refusal/answer-not-cleared"]
    assert [one.message for one in told] == [
        f'user/anna@acme.example: the answer to "{TYPES[type]}" cannot be cleared, because the service refuses it'
    ]
    assert all(one.is_error and one.source and f"{ANSWERS}.clear-{type}" in str(one.hint) for one in told)
    lmsconf(it.root, "apply", "--auto-approve", code=4)
    body = {next(field["customFieldId"] for name, field in it.fields().items() if name == TYPES[type]): ""}
    with pytest.raises(Rejected):
        it.send(ANSWERS, {"userId": "u-anna"}, body)


@pytest.mark.parametrize(
    "manifest",
    [
        "users: [{email: anna@acme.example, answers: {Dept: HR}}]",
        "users: [{email: bo@acme.example, answers: {Dept: null, Badge: '8'}}]",
    ],
)
def test_other_answers_are_given(tmp_path: Path, manifest: str) -> None:
    """Another answer, and none where there is none, are no clearing."""
    it = project(tmp_path, *TYPES)
    report = it.apply(manifest)
    assert (report.exit, report.converged) == (0, True)


def test_an_undo_leaves_the_answer_and_takes_back_the_rest(tmp_path: Path) -> None:
    """The plan says what cannot be undone; the undo leaves that alone, with the reason, and does the rest."""
    it = project(tmp_path, "choice")
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


MIGRATED_SEED = text_of(__file__, "migration_plans_migrated_seed.yaml")
MIGRATED_FIELD = "custom_fields: [{name: Unit, type: TEXT, migrate: {from: Team}}]\n"
SALES = {"choices": [{"choiceId": "ch-1", "name": "Sales"}]}
GONE = {"choices": [{"choiceId": "ch-9", "name": "Gone"}]}
ODD = {"shape": 1}
ONE = "it is not known who answered it: the answers of 1 person have an unknown format"


def told(plan: Plan, code: str) -> list[str]:
    """What the plan says of the old field, after its address."""
    return [one.message.partition(", because ")[2] for one in plan.all_problems if one.code == code]


@pytest.mark.parametrize(
    ("rows", "refused", "kept", "copied"),
    [
        ({"ann@x.se": {"customFields": {"Team": ODD}}}, [ONE], [], {"bo@x.se": "u-2"}),
        ({"ann@x.se": {"customFields": {"Team": SALES, "Unit": ODD}}}, [ONE], [], {"bo@x.se": "u-2"}),
        ({"ann@x.se": {"customFields": {"Team": SALES, "Note": ODD}}}, [ONE], [], {"bo@x.se": "u-2"}),
        ({"ann@x.se": {"customFields": {"Unit": ODD}}}, [], [], {"bo@x.se": "u-2"}),
        (
            {"ann@x.se": {"customFields": {"Team": ODD}}, "bo@x.se": {"customFields": "elsewhere"}},
            [ONE.replace("1 person", "2 people")],
            [],
            {},
        ),
        (
            {"ann@x.se": {"customFields": {"Team": GONE}}},
            [],
            ["1 answer to it is not copied: it is not a choice of Unit (user/ann@x.se)"],
            {"bo@x.se": "u-2"},
        ),
        (
            {"ann@x.se": {"email": ""}},
            [],
            ["1 answer to it is not copied: no e-mail names the person alone (user id u-1)"],
            {"bo@x.se": "u-2"},
        ),
        (
            {"ann@x.se": {"email": "bo@x.se"}},
            [],
            ["2 answers to it are not copied: no e-mail names the person alone (user/bo@x.se, user/bo@x.se)"],
            {},
        ),
        (
            {"ann@x.se": {"email": "bo@x.se", "archivedAt": 1}},
            [],
            ["1 answer to it is not copied: no e-mail names the person alone (user/bo@x.se)"],
            {"bo@x.se": "u-2"},
        ),
    ],
    ids=["odd", "odd in the new field", "odd elsewhere", "odd without an old one", "two odd", "no choice",
         "no e-mail", "twins", "archived twin"],
)  # fmt: skip
def test_what_cannot_be_told_of_a_person_is_not_copied(
    tmp_path: Path,
    rows: Mapping[str, Mapping[str, object]],
    refused: list[str],
    kept: list[str],
    copied: Mapping[str, str],
) -> None:
    """Answers in an unknown format refuse the deletion; an unknown choice, or no e-mail of one's own, prevents it."""
    it = Project(tmp_path, MIGRATED_SEED)
    it.write(MIGRATED_FIELD)

    def edit(people: list[dict[str, object]]) -> None:
        for row in people:
            row |= rows.get(str(row["email"]), {})

    plan = planned(it, edit)
    assert told(plan, "refusal/answers-unknown") == refused
    assert told(plan, "migrate/not-copied") == kept
    assert {one.address.name: one.id for one in plan.changes if one.address.kind == "user"} == copied


@pytest.mark.parametrize(
    ("pace", "time"),
    [(0.0004, "about 167 minutes at 0.0004 requests a second"), (4.0, "about 1 minute at 4 requests a second")],
)
def test_a_migration_tells_how_long_it_takes(tmp_path: Path, pace: float, time: str) -> None:
    """Each of two answers is a call and a read, at the pace that was asked for."""
    plan = Project(tmp_path, MIGRATED_SEED).plan(MIGRATED_FIELD, pace=pace)
    [note] = [one.message for one in plan.all_problems if one.code == "migrate/copies"]
    assert note.endswith(f"2 calls and as many reads to verify them, {time}")


@pytest.mark.parametrize(
    ("options", "excluded"),
    [("", ()), ("leave_alone: [user/bo@x.se]\n", ()), ("", ("custom_field/Team",))],
    ids=["deleted", "kept", "left out"],
)
def test_a_field_is_not_the_one_whose_answers_move_to_it(
    tmp_path: Path, options: str, excluded: tuple[str, ...]
) -> None:
    """A new field with the choices of the old one, which stays or goes, is not taken for a rename of it."""
    it = Project(tmp_path, MIGRATED_SEED, options)
    field = "custom_fields: [{name: Area, type: CHOICE, choices: [Sales, Tech], migrate: {from: Team}}]\n"
    plan = loads(dumps(it.plan(field, excluded=excluded)))
    assert {one.code.partition("/")[0] for one in plan.all_problems} == {"migrate"}
    assert [guard.name for guard in plan.guards if guard.tripped] == []
    assert it.apply(plan=plan).converged
