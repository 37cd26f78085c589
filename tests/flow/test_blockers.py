"""What would stop an apply, and the settings that let more pass than the default, are seen at once in every format."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from texts import listed_cases, text_of

from lmsconf.errors import ExitCode
from lmsconf.kinds.kind_table import KINDS
from lmsconf.manifest.schema_check import declared_section, properties

from .altered_service import EditRows, plan_against, plan_of_rows
from .project import Project, guard
from .shell import lmsconf

CROWD = [f"p{n:02}@acme.example" for n in range(20)]
SEED = (
    "people: [{email: root@acme.example, admin: true}, "
    + ", ".join(f"{{email: {one}}}" for one in CROWD)
    + "]\ncustom_fields: ["
    + ", ".join(f"{{name: F{n}, type: TEXT}}" for n in range(10))
    + f"]\ngroups: [{{name: A, members: [{', '.join(CROWD)}]}}]\n"
)
EMPTIED = "groups: [{name: A, members: []}]\n"
TWO_MOVED = (
    "custom_fields: [{name: G0, type: TEXT, migrate: {from: F0}}, {name: G1, type: TEXT, migrate: {from: F1}}]\n"
)


def blocked(folder: Path) -> list[list[str | None]]:
    summary = lmsconf(folder, "plan", "--format", "json").document["summary"]
    assert isinstance(summary, dict)
    return [[one["type"], one["name"], one["allow"]] for one in summary["blocked"]]


@pytest.mark.sampled(daily=False)
@listed_cases("manifests", "expected", "why")
def test_what_stops_an_apply_is_seen(tmp_path: Path, manifests: str, expected: list[str | None], why: str) -> None:
    """The end of the text, the first lines of the comment and the top of the page say it, why, and what to do."""
    Project(tmp_path, SEED, "").write(manifests)
    assert blocked(tmp_path) == [expected]
    text = lmsconf(tmp_path, "plan").out
    footer = text[text.index("Plan: ") :]
    assert "Apply would stop here:" in footer
    assert why in footer
    comment = lmsconf(tmp_path, "plan", "--format", "markdown").out
    assert "Apply would stop here" in "\n".join(comment.splitlines()[:9])
    page = lmsconf(tmp_path, "plan", "--format", "html").out
    assert page.index("Apply would stop here") < page.index("Plan: ")
    allow = expected[2]
    assert ("Correct the manifests, or allow exactly this:" in footer) is (allow is not None)
    if allow is not None:
        assert all(f"--allow {allow}" in seen for seen in (footer, comment, page))
    ran = lmsconf(tmp_path, "apply", "--auto-approve", code=ExitCode.BLOCKED)
    assert why in ran.err
    assert "Apply would stop here" not in ran.err, "it stops, and the error after the plan says why"


@pytest.mark.parametrize(("live", "advised"), [(10, False), (9, True)])
def test_fields_are_migrated_one_after_the_other_where_one_is_free(tmp_path: Path, live: int, advised: bool) -> None:
    """Where no field is free, not even one of them can be migrated, so the hint does not say to begin with one."""
    seed = SEED if live == 10 else SEED.replace(", {name: F9, type: TEXT}", "")
    Project(tmp_path, seed, "").write(TWO_MOVED)
    text = lmsconf(tmp_path, "plan").out
    assert "List a field that nobody needs under `absent`." in text.replace("Or list", "List")
    assert ("Migrate one field after the other: plan with --only custom_field/G0" in text) is advised


def test_nothing_stops_a_plan_that_can_be_applied(tmp_path: Path) -> None:
    """So nothing of the kind is said, and the list is empty."""
    Project(tmp_path, SEED, "").write("groups: [{name: B}]")
    assert blocked(tmp_path) == []
    for format in ("text", "markdown", "html"):
        assert "Apply would stop here" not in lmsconf(tmp_path, "plan", "--format", format).out


RELAXED = """
guards: {removals: off, updates: {count: 900}, deletes: {share: 5%}, min_admins: 1}
people: {create: true, unknown: skip}
settle: 0s
allow: [{answers: 4, reason: Field is empty, until: 2999-01-01}]
"""


@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_settings_weaker_than_the_default_are_told(tmp_path: Path, format: str) -> None:
    """Each with the default beside it; what is as strict as the default or stricter is not."""
    Project(tmp_path, SEED, RELAXED).write("groups: [{name: B}]")
    seen = lmsconf(tmp_path, "plan", "--format", format).out.replace("\\", "")
    for line in (
        "guards.removals: off (default: 50 or 10%)",
        "guards.updates: 900 or 30% (default: 200 or 30%)",
        "guards.min_admins: 1 (default: 2)",
        "people.create: true (default: false)",
        "people.unknown: skip (default: error)",
        "settle: 0 s (default: 30 s)",
    ):
        assert line in seen
    assert "guards.deletes" not in seen


NONE = {"count": 0}
BY_PEOPLE = {"people": {"count": 20, "share": 0.1}, "mandatory": {"count": 500, "share": 0.5}}


def policy(folder: Path) -> Any:
    return lmsconf(folder, "plan", "--format", "json").document["policy"]


def test_the_policy_is_in_the_document(tmp_path: Path) -> None:
    """Normalised, with the defaults, without consents and dates."""
    it = Project(tmp_path, SEED, "")
    it.write("groups: [{name: B}]")
    usual = {"deletes": {"count": 5, "share": 0.1}, "removals": {"count": 50, "share": 0.1}}
    usual |= {"updates": {"count": 200, "share": 0.3}, **dict.fromkeys(("recreates", "refusals", "answers"), NONE)}
    assert policy(tmp_path)["guards"] == usual | BY_PEOPLE
    options = RELAXED + "leave_alone: [group/UI *, 'group/A*']\nignore: [{address: group/X, reason: y}]\n"
    it.write_options(options + "ownership: {groups: ['B*']}\n")
    changed = {"deletes": {"count": 5, "share": 0.05}, "removals": "off", "updates": {"count": 900, "share": 0.3}}
    assert policy(tmp_path) == {
        "guards": usual | BY_PEOPLE | changed,
        "protect": [],
        "ownership": {"group": ["B*"]},
        "leave_alone": ["group/A*", "group/UI *"],
        "ignore": ["group/X"],
        "min_admins": 1,
        "people": {"unknown": "skip", "create": True},
        "settle": 0.0,
    }


def test_guards_that_are_all_off_are_one_line(tmp_path: Path) -> None:
    """And it is always said."""
    Project(tmp_path, SEED, "guards: off\n").write(EMPTIED)
    assert "  guards: off\n" in lmsconf(tmp_path, "plan").out


@pytest.mark.parametrize(("reason", "by"), [(" reason: Leavers,", "Leavers."), ("", "lmsconf.yaml:")])
def test_a_consent_is_told_with_what_it_lets_pass(tmp_path: Path, reason: str, by: str) -> None:
    """The guard keeps its reason, and says who allowed it, or where that is written."""
    Project(tmp_path, SEED, f"allow: [{{removals: 20,{reason} until: 2999-01-01}}]\n").write(EMPTIED)
    line = f"Guard removals: 20 of 20 in group/A members, and the limit is 10%. Allowed by {by}"
    for format in ("text", "markdown", "html"):
        assert line in lmsconf(tmp_path, "plan", "--format", format).out.replace("\\", "")


# `guards.protect`: nothing is taken out of what is protected, whichever key of whichever kind it is.


NAMES = {
    "custom_fields": ("name: Country", "custom_field/Country"),
    "groups": ("name: Team", "group/Team"),
    "smart_groups": ("name: Sweden", "smart_group/Sweden"),
    "users": ("email: bo@acme.example", "user/bo@acme.example"),
    "content_targets": ("content: Welcome, assign_to: [everyone]", "content_target/Welcome -> everyone"),
}
NOT_VALUES = {
    *("name", "email", "id", "previously", "only_in", "about", "for_each", "content", "assign_to", "type"),
    *("migrate", "keep", "window", "replaces", "use"),
}
"""Keys that say which resource it is and where it is declared, or that have tests of their own."""


def refused(tmp_path: Path, section: str, declared: str) -> bool:
    """Whether the plan of one resource with these keys is refused, since it is protected."""
    name, address = NAMES[section]
    plan = Project(
        tmp_path,
        text_of(__file__, "blockers_protected_seed.yaml"),
        f"guards: {{protect: ['{address}']}}\ntimezone: UTC\ndialect: {{content-targets.on-existing: update}}\n",
    ).plan(f"{section}: [{{{name}, {declared}}}]")
    return "refusal/protected" in [problem.code for problem in plan.all_problems if problem.is_error]


@pytest.mark.sampled(daily=False)
@listed_cases("section", "key", "declared")
def test_nothing_is_taken_out(tmp_path: Path, section: str, key: str, declared: str) -> None:
    """A shorter window, a right, an answer, a member or a choice less: the plan is refused."""
    assert refused(tmp_path, section, declared)


@pytest.mark.sampled
@listed_cases("section", "key", "declared")
def test_what_is_protected_may_grow(tmp_path: Path, section: str, key: str, declared: str) -> None:
    """More of anything, and what has no content, is planned as ever."""
    assert not refused(tmp_path, section, declared)


def test_every_key_of_every_kind_has_its_case() -> None:
    """A new key of a manifest says here what taking something out of it means."""
    keys = {
        (kind.section, key)
        for kind in KINDS.values()
        for key in properties(declared_section(kind).shape.schema)
        if key not in NOT_VALUES
    }
    listed = json.loads(text_of(__file__, "test_blockers.json"))
    cases = listed["test_nothing_is_taken_out"] + listed["test_what_is_protected_may_grow"]
    assert keys == {(section, key) for section, key, _ in cases}


# What cannot be taken back: answers that go with a field or a choice, by person, and what each change says of it.


ANSWERED_SEED = text_of(__file__, "data_loss_seed.yaml")
DROPS = "custom_fields: [{name: Skills, choices: [SQL]}]"
DELETES = "absent: {custom_fields: [Skills]}"


@pytest.fixture
def it(tmp_path: Path) -> Project:
    return Project(tmp_path, ANSWERED_SEED, "")


@pytest.mark.sampled
@listed_cases("manifests", "people")
def test_answers_are_counted_by_person(it: Project, manifests: str, people: int) -> None:
    """Everybody counts once, archived people too; who gets another answer before the choice goes loses none."""
    found = guard(it.plan(manifests), "answers")
    assert (found.total, found.tripped, found.allow) == (people, people > 0, f"answers={people}" if people else None)


def answers_as(answers: Callable[[dict[str, Any]], object]) -> EditRows:
    """Everybody's answers are listed in another shape."""

    def edit(people: list[dict[str, Any]]) -> None:
        for one in people:
            one["customFields"] = answers(one["customFields"])

    return edit


ELSEWHERE = "and without the answers that could not be read"
ANOTHER_FIELD, OTHER_CHOICES = "the field comes back with another id", "deleted choices come back with other ids"


def unlisted(people: list[dict[str, Any]]) -> None:
    for one in people:
        del one["customFields"]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("edit", "manifests", "total", "way_back"),
    [
        (unlisted, DELETES, None, f"{ANOTHER_FIELD}, and the answers were not read"),
        (
            answers_as(lambda said: {f"field {key}": value for key, value in said.items()}),
            DELETES,
            None,
            f"{ANOTHER_FIELD}, and the answers were not read",
        ),
        (answers_as(lambda said: "see elsewhere"), DELETES, None, f"{ANOTHER_FIELD}, {ELSEWHERE}"),
        (answers_as(lambda said: {key: {"blob": 1} for key in said}), DROPS, None, f"{OTHER_CHOICES}, {ELSEWHERE}"),
        (answers_as(lambda said: {key: ["Rust"] for key in said}), DROPS, None, f"{OTHER_CHOICES}, {ELSEWHERE}"),
        (
            answers_as(lambda said: {key: {"blob": 1} for key in said}),
            DELETES,
            2,
            f"{ANOTHER_FIELD}, and with people's answers",
        ),
    ],
    ids=["unlisted", "renamed", "elsewhere", "opaque", "another choice", "opaque of a field that goes"],
)
def test_what_cannot_be_read_is_not_nobody(
    it: Project, edit: EditRows, manifests: str, total: int | None, way_back: str
) -> None:
    """Answers in a shape that nobody knows make the number unknown, and only `answers=unknown` lets that pass."""
    plan = plan_of_rows(it, manifests, edit)
    found = guard(plan, "answers")
    number = "unknown" if total is None else total
    assert (found.total, found.tripped, found.allow) == (total, True, f"answers={number}")
    assert ("custom-field/answers-unknown" in [one.code for one in plan.all_problems]) is (total is None)
    assert {str(one.address): (one.undo.level.value, one.undo.reason) for one in plan.changes} == {
        "custom_field/Skills": ("none" if total is None else "partial", way_back)
    }


def test_answers_that_a_snapshot_lacks_are_not_nobodys(it: Project) -> None:
    """Of a person whose answers could not be read when it was taken, it is not known whether they are lost."""

    def unread(snapshot: dict[str, Any]) -> None:
        people = {one["id"]: one for one in snapshot["user"]}
        del people["u-b"]["answers"]

    found = guard(plan_against(it, DELETES, unread), "answers")
    assert (found.total, found.allow) == (None, "answers=unknown")


def test_nobodys_answers_are_read_for_nothing(tmp_path: Path) -> None:
    """A plan that destroys none asks how many people there are, and does not list them."""
    it = Project(tmp_path, ANSWERED_SEED, "dialect: {paging.limit: 2}\n")

    def pages(manifests: str, **more: object) -> int:
        it.plan(manifests, **more)
        return sum(call.operation == "users.list" for call in it.calls)

    assert pages("custom_fields: [{name: Dept, hidden: true, choices: [Sales, HR, New]}]") == 1
    assert pages(DELETES) > 1
    assert pages(DELETES, additive=True) == 1


@pytest.mark.parametrize(("count", "trips"), [(6, False), (7, True)])
def test_changes_in_place_have_a_share_of_their_kind(tmp_path: Path, count: int, trips: bool) -> None:
    """Three of ten resources of a kind may change; creations and deletions count elsewhere."""
    seed = "groups: [" + ", ".join(f"{{name: G{n}}}" for n in range(20)) + "]\npeople: [{email: a@acme.example}]\n"
    it = Project(tmp_path, seed, "")
    changed = ", ".join(f"{{name: G{n}, members: [a@acme.example]}}" for n in range(count))
    found = guard(it.plan(f"groups: [{changed}, {{name: New}}]"), "updates")
    assert (found.total, found.tripped, dict(found.limit)) == (count, trips, {"count": 200, "share": 0.3})
