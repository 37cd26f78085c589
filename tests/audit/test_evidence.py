"""`lmsconf evidence`: what is in the folder, and that no change of it stays unnoticed."""

import hashlib
import itertools
import json
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from audit.scene import copy_of, document, evidence, kept, names, project_with_runs, rewritten, verified
from flow.project import Project as Folder
from flow.shell import lmsconf as command
from json_schemas import schema_validator
from texts import listed_cases

from lmsconf.audit.statement import chain_findings, evidence_html, statement_text
from lmsconf.audit.verify_evidence import verify_evidence
from lmsconf.documents.json_documents import render_json
from lmsconf.errors import ExitCode

pytestmark = pytest.mark.sampled  # some seconds in all

DOCUMENTS = ("evidence.json", "evidence.intoto.json")
Change = Callable[[list[dict[str, Any]]], object]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return project_with_runs(tmp_path_factory.mktemp("runs") / "project")


@pytest.fixture(scope="module")
def written(folder: Folder) -> Path:
    return evidence(folder)


def findings(copy: Path) -> list[tuple[str, str]]:
    """Code and message of all that is found in a folder."""
    return [(one.code, one.message) for one in verify_evidence(copy, None).findings]


def test_what_is_in_the_folder(folder: Folder, written: Path) -> None:
    """Per run its plan, report and journal; `evidence.json`, which fits its schema; the page; the statement."""
    copies = {f"runs/{run}/{file}" for run in names(folder) for file in ("plan.json", "report.json", "journal.jsonl")}
    files = {path.relative_to(written).as_posix() for path in written.rglob("*") if path.is_file()}
    assert files == copies | {"evidence.json", "index.html", "evidence.intoto.json"}
    assert {path.stat().st_mode & 0o777 for path in written.rglob("*") if path.is_file()} == {0o600}
    assert written.stat().st_mode & 0o777 == 0o700
    schema_validator("evidence").validate(document(written))


def test_what_is_stated_of_a_run(folder: Folder, written: Path) -> None:
    """Originals by digest, approvals as stated, the state read before and after, effects as counts, and the order."""
    runs: Any = document(written)["runs"]
    assert [run["run"] for run in runs] == names(folder)
    assert [run["approvals"] for run in runs] == [{"ticket": f"T-{number}"} for number in (1, 2, 3, 4)]
    assert [run["chain"]["number"] for run in runs] == [1, 2, 3, 4]
    assert [run["effects"]["people"]["gain"] for run in runs] == [0, 0, 1, 0]
    page = (written / "index.html").read_text()
    assert page.count("<dd>nobody loses content, 1 gains content.</dd>") == 1
    assert page.count("<dd>nobody&#39;s access to content changes.</dd>") == 3
    for earlier, later in itertools.pairwise(runs):
        assert earlier["after"]["sha256"] != later["after"]["sha256"]
    for number, run in enumerate(runs):
        for name, suffix in (("journal", "jsonl"), ("plan", "plan.json"), ("report", "report.json")):
            assert run["originals"][name] == digest_of(kept(folder, suffix, number))
        assert run["before"]["rows"]["user"] == 2
        assert run["commit"]["reason"] == "the project is in no git repository"


def test_what_verify_says(written: Path) -> None:
    """Exactly what was looked at, and what an unsigned folder does not show."""
    said = verified(written).out
    assert "15 files and 4 runs fit each other" in said
    assert "none is missing between them" in said
    assert "Runs before the first and after the last one were not looked at" in said
    assert "not signed: this shows that it is consistent with itself, and not who wrote it" in said


def digest_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def restated(copy: Path) -> None:
    """Make the statement one of the files that are there."""
    paths = [path for path in copy.rglob("*") if path.is_file() and path.name != "evidence.intoto.json"]
    digests = {path.relative_to(copy).as_posix(): digest_of(path) for path in paths}
    (copy / "evidence.intoto.json").write_text(statement_text(document(copy), digests, None))


def rewrite(copy: Path, change: Change = lambda runs: None, **more: object) -> Path:
    """Change the runs as lmsconf would have written them: page, digests and statement follow."""
    stated: Any = {**document(copy), **more}
    change(stated["runs"])
    left = {run["run"] for run in stated["runs"]}
    stated["files"] = {name: digest for name, digest in stated["files"].items() if name.split("/")[1] in left}
    for gone in {path.name for path in (copy / "runs").iterdir()} - left:
        shutil.rmtree(copy / "runs" / gone)
    (copy / "evidence.json").write_text(render_json(stated))
    (copy / "index.html").write_text(evidence_html(stated))
    restated(copy)
    return copy


def spoilt(copy: Path, dice: random.Random) -> str:
    """Change something in a folder; say what."""
    way = dice.choice(("flip", "flip", "flip", "drop", "add", "reorder", "swap", "truncate", "leave out"))
    path = dice.choice(sorted(path for path in copy.rglob("*") if path.is_file()))
    content = path.read_bytes()
    match way:
        case "flip":
            at = dice.randrange(len(content))
            path.write_bytes(content[:at] + bytes([content[at] ^ 1 << dice.randrange(8)]) + content[at + 1 :])
        case "drop":
            path.unlink()
        case "add":
            added = path.parent / dice.choice(("more.json", ".hidden", "folder/x"))
            added.parent.mkdir(exist_ok=True)
            added.write_text("{}")
        case "truncate":
            path.write_bytes(content[: dice.randrange(len(content))])
        case "swap":
            one, other = dice.sample(sorted((copy / "runs").iterdir()), 2)
            one.rename(copy / "x")
            other.rename(one)
            (copy / "x").rename(other)
        case "reorder":
            one, other = dice.sample(range(4), 2)
            rewrite(copy, lambda runs: runs.insert(other, runs.pop(one)))
        case _:  # one between two others: the first and the last may be where the folder begins and ends
            rewrite(copy, lambda runs: runs.pop(dice.randrange(1, len(runs) - 1)))
    return f"{way} {path.relative_to(copy)}"


@pytest.mark.parametrize("part", range(30))
def test_any_change_is_found(written: Path, part: int) -> None:
    """300 random changes: a bit, a file less or more, runs swapped, reordered or left out with all that follows."""
    for number in range(10):
        copy = copy_of(written)
        what = spoilt(copy, random.Random(part * 10 + number))  # noqa: S311  # repeatable, not secret
        assert findings(copy), what


def test_what_is_not_changed_is_not_found(written: Path) -> None:
    """A copy, and one that was rewritten with nothing changed, are as good as the folder."""
    copy = copy_of(written)
    assert findings(copy) == []
    assert findings(rewrite(copy)) == []


@pytest.mark.parametrize(
    "path",
    [
        *("approvals.ticket", "exit", "started_at", "changes.create", "effects.people.gain", "after.sha256", "run"),
        *("commit.commit", "chain.previous_sha256", "originals.journal", "originals.plan", "digest"),
        "recorded_report",
    ],
)
def test_a_forged_statement_of_a_run_is_found(written: Path, path: str) -> None:
    """What `evidence.json` states must follow from the copies, also if page, digests and statement were made to fit."""
    copy = copy_of(written)

    def change(runs: list[dict[str, Any]]) -> None:
        holder: Any = runs[1]
        *above, key = path.split(".")
        for step in above:
            holder = holder[step]
        holder[key] = 99 if isinstance(holder[key], int) else "f" * 64

    if path == "run":
        (copy / "runs" / ("f" * 64)).mkdir()
    assert findings(rewrite(copy, change))


def forge_page(copy: Path) -> None:
    page = copy / "index.html"
    page.write_text(page.read_text().replace("T-2", "T-9"))


def test_a_forged_page_is_found(written: Path) -> None:
    """A page that shows something else, with a digest that fits it.

    Another version may word it in another way: verify says so, and still finds a changed byte.
    """
    copy = copy_of(written)
    forge_page(copy)
    restated(copy)
    assert "index.html does not show what evidence.json states" in verified(copy, code=ExitCode.ERROR).err
    other = rewrite(copy, tool={**document(copy)["tool"], "version": "9.9.9"})  # type: ignore[dict-item]  # an object
    assert "so the page was compared by its digest only" in verified(other).out
    forge_page(other)
    assert "index.html was changed" in verified(other, code=ExitCode.ERROR).err


def test_each_finding_is_named(written: Path) -> None:
    """All findings at once, each with the file or the runs that it is about, and exit 1."""
    copy = copy_of(written)
    one, other, *_ = sorted((copy / "runs").iterdir())
    (one / "plan.json").unlink()
    with (other / "journal.jsonl").open("ab") as journal:
        journal.write(b" ")
    (copy / "notes.txt").write_text("")
    ran = verified(copy, code=ExitCode.ERROR)
    for said in (f"{one.name}/plan.json is missing", f"{other.name}/journal.jsonl was changed", "notes.txt was added"):
        assert said in ran.err


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda copy: (copy / "runs" / "empty").mkdir(), "evidence/added"),
        (lambda copy: (copy / "notes.txt").touch(), "evidence/added"),
        *((lambda copy, name=name: (copy / name).unlink(), "evidence/missing") for name in DOCUMENTS),
        *(
            (lambda copy, name=name: (copy / name).write_text((copy / name).read_text() + " "), "evidence/changed")
            for name in DOCUMENTS
        ),
    ],
)
def test_the_code_of_a_finding(written: Path, spoil: Callable[[Path], object], code: str) -> None:
    """An empty folder counts, too; of a document that is missing or changed, nothing more is said."""
    copy = copy_of(written)
    spoil(copy)
    assert {found for found, _ in findings(copy)} == {code}


def test_a_run_that_is_missing_is_found(folder: Folder, written: Path) -> None:
    """With everything else rewritten to fit: one between two is named.

    A folder without the last one fits itself, and not the digest that `evidence head` printed after its apply.
    """
    first, _, third, last = names(folder)
    between = rewrite(copy_of(written), lambda runs: runs.pop(1))
    assert f"a run is missing between {first} (run 1) and {third} (run 3)" in verified(between, code=ExitCode.ERROR).err
    [line] = command(folder.root, "evidence", "head").out.splitlines()
    digest, run, workspace = line.split("  ")
    assert (digest, run, workspace) == (digest_of(kept(folder, number=-1)), last, "sandbox")
    assert "The runs that --head names are here" in verified(written, "--head", digest).out
    copy = rewrite(copy_of(written), lambda runs: runs.pop())
    verified(copy)
    assert f"the run with the journal {digest} is not here" in verified(copy, "--head", digest, code=ExitCode.ERROR).err


def test_a_broken_chain_is_told_when_the_evidence_is_written(tmp_path: Path) -> None:
    """A journal that was changed after the next run had named it: the page says it, and so does verify."""
    folder = project_with_runs(tmp_path / "project", ("groups: [{name: A}]\n", "groups: [{name: B}]\n"))
    for entry in rewritten(kept(folder)):
        entry |= {"meta": {"ticket": "T-7"}} if entry["event"] == "run" else {}
    ran = command(folder.root, "evidence", "--since", "2020-01-01", "--out", "evidence", code=ExitCode.OK)
    assert "is not the one that" in ran.err
    assert "The chain of the runs is broken" in (folder.root / "evidence" / "index.html").read_text()
    verified(folder.root / "evidence", code=ExitCode.ERROR)


def test_a_copy_in_which_problems_are_hidden_fits_too(tmp_path: Path) -> None:
    """A note of a change that has a text of a person: it is hidden, and the copy keeps the digest of the plan."""
    twice = (
        "groups: [{name: Trainers}]\n",
        "groups: [{name: Trainers, previously: [Mentors], members: [bo.ek@acme.example]}]\n"
        "users: [{email: bo.ek@acme.example, first_name: Trainers}]\n",
    )
    written = evidence(project_with_runs(tmp_path / "project", twice), "latest")
    assert "group/(masked): there is nothing to rename" in next(written.glob("runs/*/plan.json")).read_text()
    verified(written)


def test_a_run_without_plan_or_end_is_evidence_too(tmp_path: Path) -> None:
    """A run that was cut short has no report; the folder says so, and fits."""
    folder = project_with_runs(tmp_path / "project", ("groups: [{name: A}]\n",))
    journal = kept(folder)
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:2]) + b'{"half')
    kept(folder, "report.json").unlink()
    kept(folder, "plan.json").unlink()
    written = evidence(folder, "latest")
    stated: Any = document(written)["runs"]
    [stated] = stated
    assert (stated["exit"], stated["calls"]["in_flight"], stated["damaged"]) == (None, 1, 1)
    assert "is not kept" in stated["originals"]["without_plan"]
    verified(written)
    assert "The run was cut short" in (written / "index.html").read_text()


@listed_cases("arguments", "code", "message")
def test_what_is_refused(folder: Folder, arguments: list[str], code: int, message: str) -> None:
    """With the reason; nothing is written."""
    assert message in command(folder.root, "evidence", *arguments, code=code).err
    assert not (folder.root / "x").exists()
    assert not list(folder.root.glob(".*.tmp"))


@pytest.mark.parametrize("name", DOCUMENTS)
@pytest.mark.parametrize("text", ["", "[]", "{\n\n}\n", "{" * 100_000, '{"runs": 1}', "\ud800"])
def test_a_hostile_document_is_a_finding(written: Path, name: str, text: str) -> None:
    """Whatever stands in it, verify ends with findings."""
    copy = copy_of(written)
    (copy / name).write_bytes(text.encode("utf-8", "surrogatepass"))
    assert findings(copy)


def test_links_out_of_the_folder_are_not_followed(written: Path, tmp_path: Path) -> None:
    """A link in place of a file, or to a folder, is no part of the evidence."""
    copy = copy_of(written)
    page = copy / "index.html"
    page.rename(tmp_path / "page")
    page.symlink_to(tmp_path / "page")
    (copy / "more").symlink_to(tmp_path)
    found = findings(copy)
    for name in ("index.html", "more"):
        assert ("evidence/added", f"{name} is not a file that lmsconf wrote") in found


def test_a_thousand_folders_in_each_other_are_a_finding(written: Path) -> None:
    """Whoever sends them does not end verify with a crash."""
    copy, deep = copy_of(written), "d/" * 1000
    subprocess.run(["mkdir", "-p", copy / deep], check=True)
    try:
        assert ("evidence/added", f"{deep[:-1]} is not a file that lmsconf wrote") in findings(copy)
    finally:
        subprocess.run(["rm", "-r", copy / "d"], check=True)  # shutil.rmtree, as pytest uses it, would not end well


def test_a_deep_value_in_a_journal_is_named(tmp_path: Path) -> None:
    """Its sum fits, and it is too deep to be masked: the run is named, and nothing is written."""
    folder = project_with_runs(tmp_path / "project", ("groups: [{name: A}]\n",))
    for entry in rewritten(kept(folder)):
        entry["deep"] = json.loads("[" * 600 + "]" * 600)
    ran = command(folder.root, "evidence", "latest", "--out", "evidence", code=ExitCode.ERROR)
    assert f"the run {names(folder)[0]} cannot be read" in ran.err
    assert not (folder.root / "evidence").exists()


def test_a_run_that_names_another_before_it_is_found() -> None:
    """Also where the digest fits: a run under another name took the place of the one before."""
    at = {"workspace": {"name": "w", "url": "u"}, "started_at": "2026-06-01T08:00:00Z", "originals": {"journal": "d"}}
    first = {**at, "run": "a", "chain": {"number": 1, "previous": None, "previous_sha256": None}}
    second = {**at, "run": "b", "chain": {"number": 2, "previous": "x", "previous_sha256": "d"}}
    [problem] = chain_findings([first, second])
    assert problem.message == "b names another run before it than a"


def test_the_plan_of_another_run_is_found(written: Path) -> None:
    """With everything that is stated of the run rewritten to fit the plan that lies there."""
    copy = copy_of(written)
    stated: Any = document(copy)
    first, second = stated["runs"][:2]
    mine, other = (f"runs/{run['run']}/plan.json" for run in (first, second))
    (copy / mine).write_bytes((copy / other).read_bytes())
    first |= {key: second[key] for key in ("manifests", "changes", "effects", "consents")}
    stated["files"][mine] = stated["files"][other]
    assert "are not of the same plan" in verified(rewrite(copy, **stated), code=ExitCode.ERROR).err
