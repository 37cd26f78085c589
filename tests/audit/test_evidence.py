"""`lmsconf evidence`: what is in the folder, and that no change of it stays unnoticed."""

import hashlib
import itertools
import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from audit.scene import copy_of, evidence, names, project_with_runs, verified
from flow.project import Project as Folder
from flow.project import runs_of
from flow.shell import lmsconf as command
from json_schemas import schema_validator

from lmsconf.audit.statement import chain_findings
from lmsconf.audit.verify_evidence import verify_evidence
from lmsconf.documents.json_documents import render_json
from lmsconf.errors import ExitCode

pytestmark = pytest.mark.sampled  # some seconds in all


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return project_with_runs(tmp_path_factory.mktemp("runs") / "project")


@pytest.fixture(scope="module")
def written(folder: Folder) -> Path:
    return evidence(folder)


def document(written: Path) -> dict[str, object]:
    return json.loads((written / "evidence.json").read_text())


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
    runs = document(written)["runs"]
    assert [run["run"] for run in runs] == names(folder)
    assert [run["approvals"] for run in runs] == [{"ticket": f"T-{number}"} for number in (1, 2, 3, 4)]
    assert [run["chain"]["number"] for run in runs] == [1, 2, 3, 4]
    page = (written / "index.html").read_text()
    assert page.count("<dd>nobody loses content, 1 gains content.</dd>") == 1
    assert page.count("<dd>nobody&#39;s access to content changes.</dd>") == 3
    for earlier, later in itertools.pairwise(runs):
        assert earlier["after"]["sha256"] != later["after"]["sha256"]
    for run in runs:
        kept = runs_of(folder.root) / run["run"]
        for name, suffix in (("journal", "jsonl"), ("plan", "plan.json"), ("report", "report.json")):
            content = kept.with_name(f"{kept.name}.{suffix}").read_bytes()
            assert run["originals"][name] == hashlib.sha256(content).hexdigest()
        assert run["effects"]["people"]["gain"] == (1 if run["approvals"]["ticket"] == "T-3" else 0)
        assert run["before"]["rows"]["user"] == 2
        assert run["commit"]["reason"] == "the project is in no git repository"


def test_what_verify_says(written: Path) -> None:
    """Exactly what was looked at, and what an unsigned folder does not show."""
    ran = verified(written)
    assert ran.code == ExitCode.OK
    assert "15 files and 4 runs fit each other" in ran.out
    assert "none is missing between them" in ran.out
    assert "Runs before the first and after the last one were not looked at" in ran.out
    assert "not signed: this shows that it is consistent with itself, and not who wrote it" in ran.out


def spoilt(copy: Path, generator: random.Random) -> str:
    """Change something in a folder; say what."""
    files = sorted(path for path in copy.rglob("*") if path.is_file())
    way = generator.choice(("flip", "flip", "flip", "drop", "add", "reorder", "swap", "truncate", "leave out"))
    path = generator.choice(files)
    content = path.read_bytes()
    if way == "flip":
        at = generator.randrange(len(content))
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << generator.randrange(8)]) + content[at + 1 :])
    elif way == "drop":
        path.unlink()
    elif way == "add":
        (path.parent / generator.choice(("more.json", ".hidden", "folder/x"))).parent.mkdir(exist_ok=True)
        (path.parent / "more.json").write_text("{}")
    elif way == "truncate":
        path.write_bytes(content[: generator.randrange(len(content))])
    elif way == "swap":
        one, other = generator.sample(sorted((copy / "runs").iterdir()), 2)
        one.rename(copy / "x")
        other.rename(one)
        (copy / "x").rename(other)
    else:
        rewrite(copy, reordered(generator) if way == "reorder" else without_one(generator))
    return f"{way} {path.relative_to(copy)}"


def reordered(generator: random.Random) -> Callable[[list[dict[str, object]]], None]:
    def change(runs: list[dict[str, object]]) -> None:
        one, other = generator.sample(range(len(runs)), 2)
        runs[one], runs[other] = runs[other], runs[one]

    return change


def without_one(generator: random.Random) -> Callable[[list[dict[str, object]]], None]:
    """One between two others: the first and the last may be where the folder begins and ends."""
    return lambda runs: runs.pop(generator.randrange(1, len(runs) - 1)) and None


def rewrite(copy: Path, change: Callable[[list[dict[str, object]]], None]) -> None:
    """Change the runs as lmsconf would have written them: page, digests and statement follow."""
    from lmsconf.audit.statement import evidence_html, statement_text

    document = json.loads((copy / "evidence.json").read_text())
    change(document["runs"])
    kept = {run["run"] for run in document["runs"]}
    document["files"] = {name: digest for name, digest in document["files"].items() if name.split("/")[1] in kept}
    for gone in {path.name for path in (copy / "runs").iterdir()} - kept:
        shutil.rmtree(copy / "runs" / gone)
    (copy / "evidence.json").write_text(render_json(document))
    (copy / "index.html").write_text(evidence_html(document))
    files = (path for path in copy.rglob("*") if path.is_file() and path.name != "evidence.intoto.json")
    digests = {path.relative_to(copy).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    (copy / "evidence.intoto.json").write_text(statement_text(document, digests, None))


@pytest.mark.parametrize("part", range(30))
def test_any_change_is_found(written: Path, part: int) -> None:
    """300 random changes: a bit, a file less or more, runs swapped, reordered or left out with all that follows."""
    for number in range(10):
        generator = random.Random(part * 10 + number)  # noqa: S311  # repeatable, not secret
        copy = copy_of(written)
        what = spoilt(copy, generator)
        assert verify_evidence(copy, None).findings, what


def test_what_is_not_changed_is_not_found(written: Path) -> None:
    """A copy, and one that was rewritten with nothing changed, are as good as the folder."""
    assert verify_evidence(copy_of(written), None).findings == ()
    copy = copy_of(written)
    rewrite(copy, lambda runs: None)
    assert verify_evidence(copy, None).findings == ()


def value(run: dict[str, object], path: str) -> tuple[dict[str, object], str]:
    *above, key = path.split(".")
    for step in above:
        run = run[step]  # type: ignore[assignment]  # each step leads to another object
    return run, key


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

    def change(runs: list[dict[str, object]]) -> None:
        holder, key = value(runs[1], path)
        holder[key] = 99 if isinstance(holder[key], int) else "f" * 64

    if path == "run":
        (copy / "runs" / ("f" * 64)).mkdir()
    rewrite(copy, change)
    findings = verify_evidence(copy, None).findings
    assert findings


def test_a_forged_page_is_found(written: Path) -> None:
    """A page that shows something else, with a digest that fits it."""
    copy = copy_of(written)
    page = copy / "index.html"
    page.write_text(page.read_text().replace("T-2", "T-9"))
    document = json.loads((copy / "evidence.json").read_text())
    from lmsconf.audit.statement import statement_text

    files = (path for path in copy.rglob("*") if path.is_file() and path.name != "evidence.intoto.json")
    digests = {path.relative_to(copy).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
    (copy / "evidence.intoto.json").write_text(statement_text(document, digests, None))
    ran = verified(copy)
    assert ran.code == ExitCode.ERROR
    assert "index.html does not show what evidence.json states" in ran.err


def test_the_page_of_another_version_is_compared_by_its_digest(written: Path) -> None:
    """Another version may word it in another way: verify says so, and still finds a changed byte."""
    copy = copy_of(written)
    path = copy / "evidence.json"
    document = json.loads(path.read_text())
    document["tool"]["version"] = "9.9.9"
    path.write_text(render_json(document))
    rewrite(copy, lambda runs: None)
    assert "so the page was compared by its digest only" in verified(copy).out
    page = copy / "index.html"
    page.write_text(page.read_text().replace("T-2", "T-9"))
    assert "index.html was changed" in verified(copy).err


def test_each_finding_is_named(written: Path) -> None:
    """All findings at once, each with the file or the runs that it is about, and exit 1."""
    copy = copy_of(written)
    one, other, *_ = sorted((copy / "runs").iterdir())
    (one / "plan.json").unlink()
    with (other / "journal.jsonl").open("ab") as journal:
        journal.write(b" ")
    (copy / "notes.txt").write_text("")
    ran = verified(copy)
    assert ran.code == ExitCode.ERROR
    for said in (f"{one.name}/plan.json is missing", f"{other.name}/journal.jsonl was changed", "notes.txt was added"):
        assert said in ran.err


def drop(copy: Path, name: str) -> None:
    (copy / name).unlink()


def spell_in_another_way(copy: Path, name: str) -> None:
    (copy / name).write_text((copy / name).read_text() + " ")


def make_a_folder(copy: Path, name: str) -> None:
    (copy / "runs" / name).mkdir()


@pytest.mark.parametrize(
    ("spoil", "name", "codes"),
    [
        (make_a_folder, "empty", {"evidence/added"}),
        (drop, "evidence.json", {"evidence/missing"}),
        (drop, "evidence.intoto.json", {"evidence/missing"}),
        (spell_in_another_way, "evidence.json", {"evidence/changed"}),
        (spell_in_another_way, "evidence.intoto.json", {"evidence/changed"}),
    ],
)
def test_the_code_of_a_finding(written: Path, spoil: Callable[[Path, str], None], name: str, codes: set[str]) -> None:
    """An empty folder counts, too; of a document that is missing or changed, nothing more is said."""
    copy = copy_of(written)
    spoil(copy, name)
    assert {one.code for one in verify_evidence(copy, None).findings} == codes


def test_a_run_missing_between_two_is_named(folder: Folder, written: Path) -> None:
    """With everything else rewritten to fit."""
    copy, first, third = copy_of(written), names(folder)[0], names(folder)[2]
    rewrite(copy, lambda runs: runs.pop(1) and None)
    assert f"a run is missing between {first} (run 1) and {third} (run 3)" in verified(copy).err


def test_a_run_missing_at_the_end_is_found_by_its_head(folder: Folder, written: Path) -> None:
    """`evidence head` printed it after the apply; a folder without that run fits itself, and not that digest."""
    [line] = command(folder.root, "evidence", "head").out.splitlines()
    digest, run, workspace = line.split("  ")
    assert (run, workspace) == (names(folder)[-1], "sandbox")
    journal = runs_of(folder.root) / f"{run}.jsonl"
    assert digest == hashlib.sha256(journal.read_bytes()).hexdigest()
    whole = verified(written, "--head", digest)
    assert (whole.code, "The runs that --head names are here" in whole.out) == (ExitCode.OK, True)
    copy = copy_of(written)
    rewrite(copy, lambda runs: runs.pop() and None)
    assert verified(copy).code == ExitCode.OK
    ran = verified(copy, "--head", digest)
    assert (ran.code, f"the run with the journal {digest} is not here" in ran.err) == (ExitCode.ERROR, True)


def test_a_broken_chain_is_told_when_the_evidence_is_written(tmp_path: Path) -> None:
    """A journal that was changed after the next run had named it: the page says it, and so does verify."""
    folder = project_with_runs(tmp_path / "project", ("groups: [{name: A}]\n", "groups: [{name: B}]\n"))
    from lmsconf.documents.journal.journal_folder import decode_lines, encode_line

    path = runs_of(folder.root) / f"{names(folder)[0]}.jsonl"
    opening, *rest = decode_lines(path.read_bytes())
    path.write_bytes(b"".join(map(encode_line, ({**opening, "meta": {"ticket": "T-7"}}, *rest))))
    ran = command(folder.root, "evidence", "--since", "2020-01-01", "--out", "evidence", code=ExitCode.OK)
    assert "is not the one that" in ran.err
    assert "The chain of the runs is broken" in (folder.root / "evidence" / "index.html").read_text()
    assert verified(folder.root / "evidence").code == ExitCode.ERROR


def test_a_copy_in_which_problems_are_hidden_fits_too(tmp_path: Path) -> None:
    """A note of a change that has a text of a person: it is hidden, and the copy keeps the digest of the plan."""
    twice = (
        "groups: [{name: Trainers}]\n",
        "groups: [{name: Trainers, previously: [Mentors], members: [bo.ek@acme.example]}]\n"
        "users: [{email: bo.ek@acme.example, first_name: Trainers}]\n",
    )
    written = evidence(project_with_runs(tmp_path / "project", twice), "latest")
    copy = next(written.glob("runs/*/plan.json")).read_text()
    assert "group/(masked): there is nothing to rename" in copy
    assert verified(written).code == ExitCode.OK


def test_a_run_without_plan_or_end_is_evidence_too(tmp_path: Path) -> None:
    """A run that was cut short has no report; the folder says so, and fits."""
    folder = project_with_runs(tmp_path / "project", ("groups: [{name: A}]\n",))
    (run,) = names(folder)
    runs = runs_of(folder.root)
    journal = runs / f"{run}.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:2]) + b'{"half')
    (runs / f"{run}.report.json").unlink()
    (runs / f"{run}.plan.json").unlink()
    written = evidence(folder, "latest")
    (stated,) = document(written)["runs"]
    assert (stated["exit"], stated["calls"]["in_flight"], stated["damaged"]) == (None, 1, 1)
    assert "is not kept" in stated["originals"]["without_plan"]
    assert verified(written).code == ExitCode.OK
    assert "The run was cut short" in (written / "index.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), ExitCode.USAGE, "no run is given"),
        (("latest",), ExitCode.USAGE, "--out is missing"),
        (("latest", "--since", "2020-01-01", "--out", "x"), ExitCode.USAGE, "takes one run"),
        (("--since", "yesterday", "--out", "x"), ExitCode.USAGE, "is not a date"),
        (("--since", "2100-01-01", "--out", "x"), ExitCode.ERROR, "no run since 2100-01-01"),
        (("nothing", "--out", "x"), ExitCode.ERROR, "no run matches"),
        (("latest", "--out", "manifests"), ExitCode.ERROR, "manifests is not empty"),
        (("latest", "--out", "lmsconf.yaml"), ExitCode.ERROR, "lmsconf.yaml is not a folder"),
        (("latest", "--out", "no/such/x"), ExitCode.ERROR, "cannot be written"),
        (("latest", "--out", "x", "--key", "k.pem"), ExitCode.USAGE, "--key is for verify"),
        (("latest", "--out", "x", "--head", "0" * 64), ExitCode.USAGE, "--head is for verify"),
        (("verify",), ExitCode.USAGE, "verify takes one folder"),
        (("verify", "x", "--head", "latest"), ExitCode.USAGE, "that is not a digest"),
        (("head", "--workspace", "other"), ExitCode.ERROR, "no run is recorded here"),
        (("verify", "nowhere"), ExitCode.ERROR, "there is no folder nowhere"),
    ],
)
def test_what_is_refused(folder: Folder, arguments: tuple[str, ...], code: ExitCode, message: str) -> None:
    """With the reason; nothing is written."""
    assert message in command(folder.root, "evidence", *arguments, code=code).err
    assert not (folder.root / "x").exists()
    assert not list(folder.root.glob(".*.tmp"))


@pytest.mark.parametrize("name", ["evidence.json", "evidence.intoto.json"])
@pytest.mark.parametrize("text", ["", "[]", "{\n\n}\n", "{" * 100_000, '{"runs": 1}', "\ud800"])
def test_a_hostile_document_is_a_finding(written: Path, name: str, text: str) -> None:
    """Whatever stands in it, verify ends with findings."""
    copy = copy_of(written)
    (copy / name).write_bytes(text.encode("utf-8", "surrogatepass"))
    assert verify_evidence(copy, None).findings


def test_links_out_of_the_folder_are_not_followed(written: Path, tmp_path: Path) -> None:
    """A link in place of a file, or to a folder, is no part of the evidence."""
    copy = copy_of(written)
    page = copy / "index.html"
    page.rename(tmp_path / "page")
    page.symlink_to(tmp_path / "page")
    (copy / "more").symlink_to(tmp_path)
    messages = [problem.message for problem in verify_evidence(copy, None).findings]
    assert "index.html is not a file that lmsconf wrote" in messages
    assert "more is not a file that lmsconf wrote" in messages


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
    document = json.loads((copy / "evidence.json").read_text())
    first, second = document["runs"][:2]
    mine, other = (f"runs/{run['run']}/plan.json" for run in (first, second))
    (copy / mine).write_bytes((copy / other).read_bytes())
    first |= {key: second[key] for key in ("manifests", "changes", "effects", "consents")}
    document["files"][mine] = document["files"][other]
    (copy / "evidence.json").write_text(json.dumps(document))
    rewrite(copy, lambda runs: None)
    assert "are not of the same plan" in verified(copy).err
