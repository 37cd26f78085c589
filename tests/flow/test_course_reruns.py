"""`replaces` and `keep` beside an assignment: a course is repeated, and nobody is without it at any moment."""

from collections.abc import Iterator, Mapping
from datetime import date
from html import unescape
from pathlib import Path
from typing import cast

import pytest
from texts import text_of

from lmsconf.errors import ExitCode, Problem, ProblemsFound
from lmsconf.model.plan import Action, Change, Plan
from lmsconf.sandbox.faults import ALWAYS, Fault

from . import project
from .altered_service import apply_under
from .project import Project
from .shell import lmsconf

pytestmark = pytest.mark.sampled  # some seconds in all

OLD, NEW = "c-25", "c-26"
SALES = ("ann@x.example", "bo@x.example", "cy@x.example")
EVERYBODY = (*SALES, "dan@x.example", "eve@x.example")
SEED = text_of(__file__, "course_reruns_seed.yaml")
OPTIONS = "timezone: Europe/Stockholm\nguards: off\n"
REMOVE = """
content_targets:
  - content: GDPR 2026
    mandatory: true
    assign_to: [{group: Sales}]
    replaces: {content: GDPR 2025, then: remove}
"""
KEEP = "    keep: {in_progress: true, until: 2027-03-31}\n"
UNTIL = "2027-03-31T23:59:59+02:00"
OPTIONAL = REMOVE.replace("then: remove", "then: optional")
CLOSE = REMOVE.replace("then: remove", "then: {visible_until: 2026-12-31}")
ALL = REMOVE.replace("{group: Sales}", "everyone")
PERSON = REMOVE.replace("group: Sales", "user: ann@x.example")
ADDRESS = "content_target/GDPR 2025 -> group/Sales"
KEPT = "content_target/GDPR 2025 -> user/ann@x.example"
RECREATE = OPTIONS + "dialect: {content-targets.on-existing: recreate}\n"


def made(folder: Path, seed: str = SEED, options: str = OPTIONS) -> Project:
    return Project(folder, seed, options)


def targets(it: Project, content: str) -> list[Mapping[str, object]]:
    answer = it.ask("content-targets.list", query={"contentId": content})
    return cast("list[Mapping[str, object]]", cast("Mapping[str, object]", answer)["targets"])


def people_with(it: Project, *contents: str) -> set[str]:
    """Who has one of the contents: by membership as seeded, whatever the window."""
    members = {"g-sales": SALES, "g-other": ("dan@x.example", "ann@x.example"), "EVERYONE": EVERYBODY}
    ids = [str(one["targetId"]) for content in contents for one in targets(it, content)]
    people = {f"u-{email.partition('@')[0]}": (email,) for email in EVERYBODY}
    # The word for everybody is the dialect's.
    return {email for id in ids for email in (members | people).get(id, EVERYBODY)}


def changed(plan: Plan) -> dict[str, tuple[Action, Change]]:
    return {str(change.address): (change.action, change) for change in plan.changes}


def coded(plan: Plan, code: str) -> list[Problem]:
    return [one for one in plan.all_problems if one.code == code]


def refused(it: Project, manifests: str, **more: object) -> Problem:
    with pytest.raises(ProblemsFound) as raised:
        it.plan(manifests, **more)
    [problem] = [one for one in raised.value.problems if one.is_error]
    return problem


def cut_short(folder: Path, manifests: str, seed: str, options: str) -> Iterator[tuple[Project, str]]:
    """The project after a run whose nth write was refused, or whose answer was lost, for each n."""
    calls = made(folder / "whole", seed, options).plan(manifests).calls
    operations = [call.operation for call in calls]
    assert {*operations} <= {"content-targets.create", "content-targets.delete"}
    for nth, operation in enumerate(operations):
        after = operations[:nth].count(operation)
        for fault in (
            Fault(operation=operation, after=after, status=403, times=ALWAYS),
            Fault(operation=operation, after=after, lose_answer=True),
        ):
            it = made(folder / f"{nth}-{fault.times}", seed, options)
            apply_under(it, manifests, fault)
            yield it, f"{operation} {nth} {'lost' if fault.lose_answer else 'refused'}"


@pytest.mark.parametrize("options", [OPTIONS, RECREATE], ids=["update", "recreate"])
@pytest.mark.parametrize(
    "manifests",
    [
        REMOVE + KEEP,
        OPTIONAL,
        CLOSE + KEEP,
        ALL + KEEP,
    ],
    ids=["remove", "optional", "visible_until", "everyone"],
)
def test_nobody_is_without_either_content_wherever_a_run_ends(tmp_path: Path, manifests: str, options: str) -> None:
    """After each call that is refused or whose answer is lost, everybody of the audience has the old or the new one;
    a second run converges, and a third one has nothing to do."""
    seed = SEED.replace("{group: Sales}]}", "everyone]}") if "everyone" in manifests else SEED
    audience = set(EVERYBODY if "everyone" in manifests else SALES)
    for it, where in cut_short(tmp_path, manifests, seed, options):
        assert people_with(it, OLD, NEW) >= audience, where
        assert it.apply(manifests).converged, where
        assert people_with(it, NEW) == audience, where
        assert it.plan().changes == (), where


@pytest.mark.parametrize(
    ("manifests", "seed"),
    [
        (REMOVE, SEED),
        (OPTIONAL, SEED),
        (ALL, SEED.replace("{group: Sales}]}", "everyone]}")),
        (PERSON, SEED.replace("{group: Sales}]}", "{user: ann@x.example}]}")),
    ],
    ids=["group", "optional", "everyone", "user"],
)
def test_a_new_assignment_that_is_not_seen_leaves_the_old_one(tmp_path: Path, manifests: str, seed: str) -> None:
    """The service accepts the assignment and does not show it: the old one is not touched, whatever the audience."""
    it = made(tmp_path, seed, OPTIONS + "settle: 0s\n")
    before = targets(it, OLD)
    stale = Fault(operation="content-targets.list", stale=True, times=ALWAYS)
    report = apply_under(it, manifests, stale)
    assert report.exit == ExitCode.PARTIAL
    first, *others = [one.status.value for one in report.outcomes]
    assert (first, set(others)) == ("failed", {"blocked"})
    assert targets(it, OLD) == before


def test_exactly_those_in_progress_in_the_audience_keep_it(tmp_path: Path) -> None:
    """Not the approved, not people of other audiences, not the archived; with the flag and until the date."""
    it = made(tmp_path)
    plan = it.plan(REMOVE + KEEP)
    changes = changed(plan)
    assert set(changes) == {ADDRESS, KEPT, "content_target/GDPR 2026 -> group/Sales"}
    action, kept = changes[KEPT]
    assert action is Action.CREATE
    assert kept.after == {
        "content": "GDPR 2025",
        "assign_to": [{"user": "ann@x.example"}],
        "mandatory": True,
        "visible_from": None,
        "visible_until": UNTIL,
    }
    [told] = coded(plan, "content-target/in-progress")
    assert f"1 person is in progress and kept until {UNTIL}" in told.message
    assert it.apply().converged
    assert people_with(it, OLD) == {"ann@x.example"}


def test_the_second_plan_is_empty_and_reads_no_results(tmp_path: Path) -> None:
    """`replaces` and `keep` stay in the file harmlessly."""
    it = made(tmp_path)
    it.settled(REMOVE + KEEP)
    plan = it.plan()
    assert (plan.changes, plan.problems) == ((), ())
    assert "analytics.results" not in [call.operation for call in it.calls]


@pytest.mark.parametrize("ownership", ["", "ownership: {content_targets: all}\n"])
def test_who_keeps_the_content_is_left_alone_until_the_date(
    tmp_path: Path, ownership: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither ownership nor drift touches it until the last day; the day after, the plan deletes it and says why."""
    it = made(tmp_path, options=OPTIONS + ownership)
    it.settled(REMOVE + KEEP)
    monkeypatch.setattr(project, "TODAY", date(2027, 3, 31))
    assert it.plan().changes == ()
    assert lmsconf(tmp_path, "drift").code == ExitCode.OK
    assert "GDPR 2025" not in lmsconf(tmp_path, "drift", "--unmanaged").out
    monkeypatch.setattr(project, "TODAY", date(2027, 4, 1))
    [change] = it.plan().changes
    assert (change.action, str(change.address)) == (Action.DELETE, KEPT)
    assert change.reason == f"it was kept until {UNTIL} for somebody in progress"
    assert str(change.source) == "manifests/all.yaml:7:11"
    assert it.apply().converged
    assert targets(it, OLD) == []


def test_an_assignment_to_a_person_that_ends_at_another_time_is_not_one_that_was_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the exact end of the window tells: another one is unmanaged, also after the date."""
    seed = SEED + "  - {user: eve@x.example, content: GDPR 2024, state: IN_PROGRESS}\n"
    other = '  - {content: GDPR 2025, visible_until: "2027-03-30T21:59:59Z", assign_to: [{user: eve@x.example}]}\n'
    it = made(tmp_path, seed.replace("participations:", other + "participations:"))
    monkeypatch.setattr(project, "TODAY", date(2027, 4, 1))
    it.settled(REMOVE)
    [unmanaged] = [one for one in it.plan(REMOVE + KEEP).unmanaged if one.kind == "content_target"]
    assert list(map(str, unmanaged.addresses)) == ["content_target/GDPR 2025 -> user/eve@x.example"]
    assert it.plan().changes == ()


def test_somebody_who_finishes_keeps_their_own_assignment_until_the_date(tmp_path: Path) -> None:
    """Who is kept is chosen once: a later result changes nothing, also where that assignment was the replaced one."""
    own = '{content: GDPR 2025, visible_until: "2027-03-31T21:59:59Z", assign_to: [{user: bo@x.example}]}'
    it = made(tmp_path, SEED.replace("{content: GDPR 2025, mandatory: true, assign_to: [{group: Sales}]}", own))
    manifests = PERSON.replace("ann@", "bo@") + KEEP
    assert set(changed(it.plan(manifests))) == {"content_target/GDPR 2026 -> user/bo@x.example"}
    it.settled(manifests)


def test_only_brings_the_replaced_assignment_along(tmp_path: Path) -> None:
    """`--only` of either the new or the old one plans both, and who keeps it."""
    it = made(tmp_path)
    it.write(REMOVE + KEEP)
    whole = set(changed(it.plan()))
    for address in ("content_target/GDPR 2026 -> group/Sales", ADDRESS):
        assert set(changed(it.plan(only=(address,)))) == whole


def test_excluding_the_new_one_leaves_the_old_one(tmp_path: Path) -> None:
    """The old assignment waits for the new one, and a note says so; excluding the old one only assigns the new one."""
    it = made(tmp_path, SEED.replace("{group: Sales}]}", "{group: Sales}, {group: Other}]}"))
    both = REMOVE.replace("{group: Sales}", "{group: Sales}, {group: Other}")
    plan = it.plan(both, excluded=("content_target/GDPR 2026 -> group/Sales",))
    assert set(changed(plan)) == {f"content_target/GDPR {year} -> group/Other" for year in (2025, 2026)}
    [note] = coded(plan, "content-target/replacement-waits")
    assert note.message.startswith(f"{ADDRESS}: it stays")
    plan = it.plan(REMOVE + KEEP, excluded=("content_target/GDPR 2025 -> *",))
    assert set(changed(plan)) == {"content_target/GDPR 2026 -> group/Sales"}


@pytest.mark.parametrize("manifests", [REMOVE, CLOSE], ids=["remove", "visible_until"])
def test_an_additive_plan_only_assigns_the_new_one(tmp_path: Path, manifests: str) -> None:
    """The old assignment is listed as left out, nobody is kept, and no results are read."""
    it = made(tmp_path)
    plan = it.plan(manifests + KEEP, additive=True)
    assert set(changed(plan)) == {"content_target/GDPR 2026 -> group/Sales"}
    assert list(map(str, plan.left_out)) == [ADDRESS]
    assert coded(plan, "refusal/progress-unknown") == []
    assert "analytics.results" not in [call.operation for call in it.calls]


def test_a_plan_does_not_fit_once_the_new_assignment_is_deleted(tmp_path: Path) -> None:
    """The new one was live when the plan was made, and is not when it is applied: the old one stays."""
    it = made(tmp_path)
    it.settled(REMOVE.replace("    replaces: {content: GDPR 2025, then: remove}\n", ""))
    it.write(REMOVE + KEEP)
    assert lmsconf(tmp_path, "plan", "--out", "plan.json").code == ExitCode.OK
    [new] = targets(it, NEW)
    it.send(
        "content-targets.delete",
        body={"targetId": new["targetId"], "targetType": new["targetType"], "contentId": NEW},
    )
    ran = lmsconf(tmp_path, "apply", "plan.json", code=ExitCode.STALE)
    assert "content_target/GDPR 2026 -> group/Sales, which replaces it, does not exist" in ran.err + ran.out
    assert "g-sales" in [one["targetId"] for one in targets(it, OLD)]


@pytest.mark.parametrize("manifests", [REMOVE + KEEP, CLOSE + KEEP, OPTIONAL], ids=["remove", "close", "optional"])
def test_a_plan_file_is_applied_as_it_was_reviewed(tmp_path: Path, manifests: str) -> None:
    """From a file, in a process that reads no results: the same calls, and the rest matches. JSON names the new one."""
    it = made(tmp_path)
    it.write(manifests)
    ran = lmsconf(tmp_path, "plan", "--out", "plan.json", "--format", "json")
    [old] = [one for one in cast("list[dict[str, object]]", ran.document["changes"]) if one["address"] == ADDRESS]
    assert old["replaced_by"] == ["content_target/GDPR 2026 -> group/Sales"]
    assert lmsconf(tmp_path, "apply", "plan.json").code == ExitCode.OK
    assert it.plan().changes == ()


def test_a_new_assignment_that_begins_later_does_not_take_the_old_one_away(tmp_path: Path) -> None:
    """`remove` would leave people without either until then; closing the old window on that day does not."""
    it = made(tmp_path)
    later = "    visible_from: 2027-01-01\n"
    problem = refused(it, REMOVE + later)
    assert problem.code == "content-target/replacement-gap"
    assert str(problem.source) == "manifests/all.yaml:6:15"
    assert set(changed(it.plan(CLOSE + later))) == {ADDRESS, "content_target/GDPR 2026 -> group/Sales"}
    assert refused(it, REMOVE + "    visible_until: 2026-05-01\n").code == "content-target/replacement-gap"


def test_a_content_that_the_catalog_lacks(tmp_path: Path) -> None:
    """An error with the nearest name until the new assignment exists, then a note: the manifest may keep it."""
    it = made(tmp_path)
    typo = REMOVE.replace("GDPR 2025", "GDRP 2025")
    problem = refused(it, typo)
    assert problem.code == "content-target/replaces-unknown"
    assert "GDPR 2025" in (problem.hint or "")
    it.settled(REMOVE)
    plan = it.plan(typo)
    assert plan.changes == ()
    assert [one.severity.value for one in coded(plan, "content-target/replaces-unknown")] == ["note"]


def test_an_id_that_no_replaced_content_has(tmp_path: Path) -> None:
    """The message names the id, and the hint the one that the content of that name has."""
    it = made(tmp_path)
    wrong = refused(it, REMOVE.replace("content: GDPR 2025", "content: {name: GDPR 2025, id: c-none}"))
    assert wrong.code == "content-target/replaces-unknown"
    assert 'no content with the id "c-none" is in the catalog, so nothing is replaced' in wrong.message
    assert (wrong.hint or "").startswith('"GDPR 2025" has the id ')
    both = REMOVE.replace("content: GDPR 2025", "content: {name: GDPR 1999, id: c-none}")
    assert refused(it, both).hint == "Correct the id, or remove it."


CHAIN = REMOVE + (
    "  - content: GDPR 2025\n    assign_to: [{group: Sales}]\n    replaces: {content: GDPR 2024, then: remove}\n"
)
FAULTY = {
    "declared": (CHAIN, "content-target/replaced-and-declared", "6:15", "list it under `replaces` here, too"),
    "itself": (REMOVE.replace("2025", "2026"), "content-target/replaces", "6:25", "Name the earlier content"),
    "keep alone": (REMOVE.partition("    replaces")[0] + KEEP, "content-target/replaces", "6:11", "under `replaces`"),
    "keep optional": (OPTIONAL + KEEP, "content-target/replaces", "7:11", "Remove `keep`"),
    "keep too short": (CLOSE + KEEP.replace("2027-03", "2026-12"), "content-target/replaces", "7:38", "later date"),
    "gap": (CLOSE + "    visible_from: 2027-01-02\n", "content-target/replacement-gap", "6:42", "earlier"),
    "then": (REMOVE.replace("then: remove", "then: removed"), "manifest/value", "6:42", 'Did you mean "remove"?'),
    "no then": (REMOVE.replace(", then: remove", ""), "manifest/missing", "6:15", "what becomes of the old"),
    "date": (CLOSE.replace("12-31", "13-31"), "manifest/time", "6:58", "Write a time"),
    "key": (REMOVE.replace("replaces", "replace"), "manifest/unknown-key", "6:5", 'Did you mean "replaces"?'),
    "twice": (
        REMOVE.replace(
            "{content: GDPR 2025, then: remove}", "[{content: A, then: remove}, {content: A, then: optional}]"
        ),
        "content-target/replaces",
        "6:44",
        "Remove one",
    ),
}


@pytest.mark.parametrize("name", FAULTY)
def test_what_cannot_be_meant_is_an_error_at_its_place(tmp_path: Path, name: str) -> None:
    """`validate` says where and what to do."""
    manifests, code, place, hint = FAULTY[name]
    it = made(tmp_path)
    it.write(manifests)
    ran = lmsconf(tmp_path, "validate", "--format", "json")
    [problem] = [one for one in cast("list[dict[str, object]]", ran.document["problems"]) if one["severity"] == "error"]
    source = cast("dict[str, object]", problem["source"])
    assert (problem["code"], f"{source['line']}:{source['column']}") == (code, place)
    assert hint in str(problem["hint"])


def test_what_contradicts_other_entries_is_an_error(tmp_path: Path) -> None:
    """Listed under `absent`, left alone by the project, or replaced in two ways."""
    it = made(tmp_path)
    absent = "absent:\n  content_targets: [{content: GDPR 2025, assign_to: [{group: Sales}]}]\n"
    assert refused(it, REMOVE + absent).code == "content-target/replaced-and-declared"
    other = REMOVE.replace("GDPR 2026", "GDPR 2024").replace("content_targets:\n", "").replace("remove", "optional")
    assert refused(it, REMOVE + other).code == "content-target/replaces"
    it.write_options(OPTIONS + 'leave_alone: ["content_target/GDPR 2025 -> *"]\n')
    assert refused(it, REMOVE).code == "identity/left-alone"
    it.write_options("timezone: Europe/Stockholm\nguards: {protect: ['content_target/GDPR 2025 -> *']}\n")
    assert coded(it.plan(REMOVE), "refusal/protected")


def test_drift_shows_it_and_accepts_nothing(tmp_path: Path) -> None:
    """The old assignment made again by hand is drift, with the reason; no manifest entry of its own could hold it."""
    it = made(tmp_path)
    it.settled(REMOVE)
    it.send("content-targets.create", body={"contentId": OLD, "targetId": "g-sales", "mandatory": True})
    ran = lmsconf(tmp_path, "drift", code=ExitCode.CHANGES)
    assert "it is replaced by content_target/GDPR 2026 -> group/Sales" in ran.out
    assert "in progress" not in ran.out
    [finding] = cast("list[dict[str, object]]", lmsconf(tmp_path, "drift", "--format", "json").document["findings"])
    assert finding["address"] == ADDRESS
    assert cast("dict[str, object]", finding["hint"])["accept"] is None
    before = (tmp_path / "manifests" / "all.yaml").read_text(encoding="utf-8")
    lmsconf(tmp_path, "drift", "--accept", ADDRESS, code=ExitCode.ERROR)
    assert (tmp_path / "manifests" / "all.yaml").read_text(encoding="utf-8") == before


def test_rows_of_a_sheet_and_a_window(tmp_path: Path) -> None:
    """`replaces` and `keep` beside a file hold for each row; a window sets the times of the new assignment."""
    it = made(tmp_path, SEED.replace("{group: Sales}]}", "{group: Sales}, {group: Other}]}"))
    (tmp_path / "manifests" / "rows.csv").write_text(
        "content;audience\nGDPR 2026;group: Sales\nGDPR 2026;group: Other\n", encoding="utf-8"
    )
    manifests = (
        "windows: {Year: {visible_from: 2026-01-01}}\ncontent_targets:\n  - file: rows.csv\n    window: Year\n"
        "    replaces: {content: GDPR 2025, then: remove}\n" + KEEP
    )
    plan = it.plan(manifests)
    deleted = [change for change in plan.changes if change.action is Action.DELETE]
    assert [str(change.source) for change in deleted] == ["manifests/all.yaml:5:15"] * 2
    assert it.settled(manifests).count("content-targets.create") == 4
    assert {str(one["targetId"]) for one in targets(it, OLD)} == {"u-ann", "u-dan"}


@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_every_view_says_by_what_it_is_replaced(tmp_path: Path, format: str) -> None:
    """The reason stands with the change."""
    it = made(tmp_path)
    it.write(REMOVE + KEEP)
    out = lmsconf(tmp_path, "plan", "--format", format).out.replace("\\", "")
    out = unescape(out)
    assert "it is replaced by content_target/GDPR 2026 -> group/Sales" in out
    assert "in progress on GDPR 2025, which is replaced" in out
