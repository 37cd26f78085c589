"""`lmsconf.open` from Python: as safe as the command line, and what a program needs to use it."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from flow.project import RUNS
from flow.project import Project as Folder
from flow.shell import lmsconf as command
from msgspec.structs import replace

import lmsconf
from lmsconf.apply.python_api import Project
from lmsconf.documents.journal.journal_folder import hold_lock
from lmsconf.documents.snapshot_file import dumps
from lmsconf.errors import ExitCode, LmsconfError, ProblemsFound, StalePlan, UsageError
from lmsconf.model.calls import CallStatus
from lmsconf.model.plan import Plan

SEED = "groups: [{name: Coaches}, {name: Mentors}, {name: Old}, {name: Older}]\n"
MANIFESTS = "groups: [{name: Coaches}, {name: Trainers}]\nabsent: {groups: [Old]}\n"
ROOT = Path(__file__).parent.parent.parent


def agree(plan: Plan) -> bool:
    return True


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    it = Folder(tmp_path, SEED)
    it.write(MANIFESTS)
    return it


def opened(folder: Folder, environ: Mapping[str, str] | None = None) -> Project:
    return lmsconf.open(folder.root, environ=environ or {})


def live(folder: Folder) -> str:
    """All that the workspace holds, without when it was read."""
    return dumps(replace(opened(folder).snapshot(), taken_at=""))


@contextmanager
def refused(folder: Folder, kind: type[LmsconfError] = LmsconfError, match: str | None = None) -> Iterator[Any]:
    """What is done inside is an error, and nothing of the workspace changes; gives the error."""
    held = live(folder)
    with pytest.raises(kind, match=match) as error:
        yield error
    assert live(folder) == held


def test_plan_apply_and_an_empty_plan(folder: Folder) -> None:
    """The plan is approved with what it changes, its report says how it ended, and then nothing is left to do."""
    project = opened(folder)
    assert [str(one) for one in project.validate()] == []
    plan = project.plan()
    seen: list[Plan] = []
    report = project.apply(plan, approve=lambda one: not seen.append(one), meta={"commit": "4f1d2a"})
    assert [str(change.address) for change in seen[0].changes] == ["group/Old", "group/Trainers"]
    assert (report.exit, report.converged, dict(report.meta)) == (ExitCode.OK, True, {"commit": "4f1d2a"})
    assert {one.status for one in report.outcomes} == {CallStatus.DONE}
    assert project.plan().changes == ()
    assert project.drift().findings == ()
    assert len(list((folder.root / RUNS).glob("*/*.jsonl"))) == 1


def test_a_saved_plan_is_the_plan_of_the_command_line(folder: Folder) -> None:
    """What `save_plan` writes, `lmsconf apply PLANFILE` takes; and `load_plan` what `lmsconf plan --out` writes."""
    project, file = opened(folder), folder.root / "plan.json"
    project.save_plan(project.plan(), file)
    assert command(folder.root, "show", "plan.json").code == 0
    assert command(folder.root, "plan", "--out", "plan.json").code == 0
    assert project.apply(project.load_plan(file), approve=agree).exit == ExitCode.OK
    assert command(folder.root, "apply", "plan.json").code == ExitCode.STALE


@pytest.mark.sampled(daily=False)
def test_a_plan_is_rehearsed_as_on_the_command_line(folder: Folder) -> None:
    """Its receipt is that of `plan --rehearse`, the file keeps it, and `require_rehearsal` refuses a plan without."""
    project, file = opened(folder), folder.root / "plan.json"
    plan = project.plan(rehearse=True)
    assert plan.rehearsal is not None
    project.save_plan(plan, file)
    assert json.loads(file.read_text())["rehearsal"]["receipt"]["outcome"] == "success"
    assert command(folder.root, "plan", "--rehearse", "--out", "other.json").code == 0
    saved, other = (project.load_plan(folder.root / name).rehearsal for name in ("plan.json", "other.json"))
    assert saved == plan.rehearsal
    assert other is not None
    # The other one may be of a later second, which its snapshot holds too.
    first = plan.rehearsal.receipt
    assert replace(other.receipt, at=first.at, snapshot_digest=first.snapshot_digest) == first
    with pytest.raises(StalePlan, match="was not rehearsed"):
        project.apply(project.plan(), approve=agree, require_rehearsal=True)
    assert project.apply(plan, approve=agree, require_rehearsal=True).exit == ExitCode.OK


def test_export_and_snapshot(folder: Folder) -> None:
    """What no manifest declares comes as YAML, of all kinds or of those that are named; nothing is written."""
    folder.send("custom-fields.create", None, {"name": "Dept", "type": "TEXT"})
    assert opened(folder).export().files.keys() == {"custom_fields", "groups"}
    export = opened(folder).export(["group"])
    assert export.files.keys() == {"groups"}
    assert "Mentors" in export.files["groups"]
    assert "Coaches" not in export.files["groups"]
    assert len(opened(folder).snapshot().of("group").rows) == 4
    assert sorted(path.name for path in (folder.root / "manifests").iterdir()) == ["all.yaml"]


def tripped(folder: Folder) -> None:
    folder.write("absent: {groups: [Old, Older]}\n")
    folder.write_options("guards: {deletes: {count: 1}}\n")


def stale(folder: Folder) -> None:
    renamed = next(row.id for row in opened(folder).snapshot().of("group").rows if row.name == "Old")
    folder.send("manual-groups.rename", {"groupId": renamed}, {"name": "Other"})


def no_journal(folder: Folder) -> None:
    (folder.root / RUNS).parent.mkdir(exist_ok=True)
    (folder.root / RUNS).write_text("a file where the journals go", encoding="utf-8")


Act = Callable[[Folder], None]
REFUSED: Mapping[str, tuple[Act | None, Act | None, Mapping[str, object], list[str]]] = {
    "a guard that trips": (tripped, None, {}, []),
    "a consent to another number": (tripped, None, {"allow": ["deletes=3"]}, ["--allow", "deletes=3"]),
    "a stale plan": (None, stale, {}, []),
    "a stale plan whose guard trips": (tripped, stale, {}, []),
    "a wrong digest": (None, None, {"expect_digest": "0" * 64}, ["--expect-digest", "0" * 64]),
    "no place for the journal": (None, no_journal, {}, []),
}
"""Name → what is done before the plan is made and before it is applied, how it is applied, and the same in words."""


def test_manifests_with_errors_make_no_plan(folder: Folder) -> None:
    """What they leave out is not taken for what should be deleted: every way of reading them raises the errors."""
    folder.write("groups: [{name: Coaches}, {name: Trainers, colour: red}]\n")
    project = opened(folder)
    for attempt in (project.plan, project.drift, project.export):
        with pytest.raises(ProblemsFound, match="colour"):
            attempt()


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(("before", "after", "options", "words"), REFUSED.values(), ids=REFUSED)
def test_it_refuses_as_the_command_line_does(
    folder: Folder, before: Act | None, after: Act | None, options: dict[str, object], words: list[str]
) -> None:
    """The same code, message and exit as `lmsconf apply PLANFILE`, and nothing is sent that changes anything."""
    if before:
        before(folder)
    project = opened(folder)
    plan = project.plan()
    project.save_plan(plan, folder.root / "plan.json")
    if after:
        after(folder)
    with refused(folder) as error:
        project.apply(plan, approve=agree, **options)  # type: ignore[arg-type]  # each case has options of its own
    held = live(folder)
    ran = command(folder.root, "apply", "plan.json", "--format", "json", *words, code=error.value.exit)
    told = {problem["code"] for problem in json.loads(ran.out)["problems"]}
    assert {problem.code for problem in error.value.problems} <= told
    assert live(folder) == held


def test_it_refuses_while_another_run_has_the_lock(folder: Folder) -> None:
    """The lock is the command line's own; so is a lock group of another machine, where the project asks for one."""
    project = opened(folder)
    plan = project.plan()
    with refused(folder, match="another run is applying"), hold_lock(folder.root, "sandbox"):
        project.apply(plan, approve=agree)
    folder.write_options("lock: {lease: 10m, owner: ci}\n")
    folder.send("manual-groups.create", None, {"name": "lmsconf-lock abc until 2999-01-01T00:00:00Z held by other"})
    project = opened(folder)
    with refused(folder) as error:
        project.apply(project.plan(), approve=agree)
    assert error.value.code == "lock/held-elsewhere"


def test_what_is_not_approved_is_not_applied(folder: Folder) -> None:
    """False from `approve` ends the run; what is no function at all is an error before anything is read."""
    project = opened(folder)
    with refused(folder, match="declined"):
        project.apply(project.plan(), approve=lambda plan: False)
    with refused(folder, UsageError):
        project.apply(project.plan(), approve=True)  # type: ignore[arg-type]  # what a program may get wrong


def test_an_edit_while_it_is_approved_makes_it_stale(folder: Folder) -> None:
    """Approval may take a day: the plan is compared with the workspace once more after it."""
    project = opened(folder)

    def slowly(plan: Plan) -> bool:
        stale(folder)
        return True

    with pytest.raises(StalePlan):
        project.apply(project.plan(), approve=slowly)


def test_a_plan_cannot_be_talked_past_its_guards(folder: Folder) -> None:
    """Guards are judged again from what the plan counts, so that a plan changed in memory is stopped too."""
    tripped(folder)
    project = opened(folder)
    plan = project.plan()
    lenient = replace(plan, guards=tuple(replace(guard, tripped=False, allow=None) for guard in plan.guards))
    with refused(folder, ProblemsFound) as error:
        project.apply(lenient, approve=agree)
    assert error.value.exit == ExitCode.BLOCKED
    with pytest.raises(StalePlan):
        project.apply(replace(lenient, measures=()), approve=agree)


def test_the_example_of_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It prints what the page shows."""
    page = (ROOT / "lmsconf" / "guide" / "client-library.md").read_text(encoding="utf-8")
    code, output = page.partition("## Projects")[2].split("```")[1:4:2]
    monkeypatch.chdir(shutil.copytree(ROOT / "examples" / "quickstart", tmp_path / "quickstart"))
    exec(code.removeprefix("python\n"), {})  # noqa: S102  # the page's own code is what is tested
    assert capsys.readouterr().out == output.removeprefix("text\n")


def test_a_plan_names_people_only_if_it_is_asked_to(tmp_path: Path) -> None:
    """Counts by default; rows with e-mails on demand, and nothing is computed where effects are left out."""
    folder = Folder(tmp_path, "people: [{email: anna@acme.example}]\ncontent: [{name: Intro}]\n")
    folder.write("content_targets: [{content: Intro, assign_to: [everyone]}]")
    project = opened(folder)
    plain, named, off = project.plan(), project.plan(people=True), project.plan(effects=False)
    assert (plain.effects.people.gain, plain.effects.rows) == (1, None)
    assert [row.email for row in named.effects.rows or ()] == ["anna@acme.example"]
    assert (off.effects.people.gain, off.effects.basis) == (None, "off")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")
@pytest.mark.parametrize("trusted", [False, True])
def test_git_runs_with_the_environment_that_was_given(folder: Folder, tmp_path: Path, trusted: bool) -> None:
    """Whether a repository of another user is trusted is what the settings of `environ` say, in `apply` as well."""
    home = tmp_path.parent / f"{tmp_path.name}-home"
    home.mkdir()
    named = f"[safe]\n\tdirectory = {folder.root}\n" if trusted else ""
    (home / ".gitconfig").write_text(named, encoding="utf-8")
    for words in ("init -q .", "add .", "-c user.name=a -c user.email=a@acme.example commit -q -m all"):
        subprocess.run(["git", *words.split()], cwd=folder.root, check=True)
    os.chown(folder.root / ".git", 4711, 4711)
    project = opened(folder, {"HOME": str(home)})
    report = project.apply(project.plan(), approve=agree)
    assert report.exit == ExitCode.OK
    (journal,) = folder.root.rglob("*.jsonl")
    assert ("belongs to another user" in journal.read_text(encoding="utf-8")) is not trusted
