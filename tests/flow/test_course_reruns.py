"""`replaces` and `keep` beside an assignment: a course is repeated, and nobody is without it at any moment."""

from collections.abc import Iterator, Mapping
from datetime import date
from html import unescape
from pathlib import Path
from typing import cast

import pytest
from manifest.cases import Case, cases, shown
from texts import text_of

from lmsconf.errors import ExitCode
from lmsconf.model.plan import Action
from lmsconf.sandbox.faults import ALWAYS, Fault
from lmsconf.workspace.project_manifests import load_manifests

from . import project
from .altered_service import apply_under
from .project import Project
from .shell import lmsconf

pytestmark = pytest.mark.sampled(daily=False)  # some seconds in all

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
    [REMOVE + KEEP, OPTIONAL, CLOSE + KEEP, ALL + KEEP],
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
    report = apply_under(it, manifests, Fault(operation="content-targets.list", stale=True, times=ALWAYS))
    assert report.exit == ExitCode.PARTIAL
    first, *others = [one.status.value for one in report.outcomes]
    assert (first, set(others)) == ("failed", {"blocked"})
    assert targets(it, OLD) == before


def test_the_second_plan_is_empty_and_reads_no_results(tmp_path: Path) -> None:
    """`replaces` and `keep` stay in the file harmlessly; nor does a plan read results that only adds."""
    it = made(tmp_path)
    it.plan(REMOVE + KEEP, additive=True)
    assert "analytics.results" not in [call.operation for call in it.calls]
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
    assert change.reason == "it was kept until 2027-03-31T23:59:59+02:00 for somebody in progress"
    assert str(change.source) == "manifests/all.yaml:7:11"
    assert it.apply().converged
    assert targets(it, OLD) == []


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


@pytest.mark.parametrize("case", cases(Path(__file__).with_name("reruns_refused.txt")), ids=lambda case: case.title)
def test_what_cannot_be_meant_is_an_error_at_its_place(tmp_path: Path, case: Case) -> None:
    """`validate` says where and what to do."""
    it = made(tmp_path)
    it.write(case.text)
    assert shown(load_manifests(it.settings).problems) == case.told


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
    deleted = [change for change in it.plan(manifests).changes if change.action is Action.DELETE]
    assert [str(change.source) for change in deleted] == ["manifests/all.yaml:5:15"] * 2
    assert it.settled(manifests).count("content-targets.create") == 4
    assert {str(one["targetId"]) for one in targets(it, OLD)} == {"u-ann", "u-dan"}


@pytest.mark.parametrize("format", ["text", "markdown", "html"])
def test_every_view_says_by_what_it_is_replaced(tmp_path: Path, format: str) -> None:
    """The reason stands with the change."""
    made(tmp_path).write(REMOVE + KEEP)
    out = lmsconf(tmp_path, "plan", "--format", format).out.replace("\\", "")
    out = unescape(out)
    assert "it is replaced by content_target/GDPR 2026 -> group/Sales" in out
    assert "in progress on GDPR 2025, which is replaced" in out
