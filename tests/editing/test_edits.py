"""`drift --accept` changes the lines that it must, and no other; what cannot be edited safely is refused."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn, cast

import pytest
from flow.project import Project
from hypothesis import given
from hypothesis import strategies as st
from integrity.served_project import ServedProject, staged
from laws.random_manifests import RandomManifests
from laws.random_workspaces import Dice, RandomWorkspace, worlds
from laws.sandbox_project import SandboxProject, open_stage, tried
from manifest.cases import Case, cases
from msgspec.structs import replace
from sampling import PARTS
from texts import text_of

from lmsconf.apply.python_api import Project as ApiProject
from lmsconf.errors import LmsconfError, Problem, ProblemsFound, SourceLocation
from lmsconf.kinds.custom_field.types import ChoiceRow
from lmsconf.kinds.shared.kind_names import CONTENT_TARGET, CUSTOM_FIELD, GROUP, SMART_GROUP
from lmsconf.model.address import Address, RemoteId
from lmsconf.model.names import exact_pattern
from lmsconf.model.snapshot import Snapshot
from lmsconf.support.files import write_all_or_none
from lmsconf.workspace.accept_drift import ManifestEdits
from lmsconf.workspace.drift_selection import DriftedProject, locate_on_disk
from lmsconf.workspace.export import export_snapshot
from lmsconf.workspace.project_manifests import load_manifests

pytestmark = pytest.mark.sampled(day=8, daily=False)

EDITS: Final = Path(__file__).with_name("edits.txt").read_text(encoding="utf-8")
SEED: Final = text_of(__file__, "edits_seed.yaml")
OPTIONS: Final = "timezone: Europe/Stockholm\nvars: {boss: dag@x.se, teams: [Team, Crew]}\n"


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedProject]:
    """A workspace, and a project that says something else."""
    with staged(tmp_path, SEED, monkeypatch, OPTIONS) as stage:
        yield stage


class Edit(NamedTuple):
    """One edit, which its case writes as a diff: lines that go begin with `-`, lines that come with `+`."""

    title: str
    accepted: list[str]
    before: str
    after: str


def _edit(text: str) -> Edit:
    title, *lines = text.rstrip("\n").split("\n")
    accepted = [line for line in lines if line.startswith("accept: ")]
    before, after = (
        "".join(f"{line[1:]}\n" for line in lines if line not in accepted and line[:1] != sign) for sign in "+-"
    )
    return Edit(title, [f"--accept={line.removeprefix('accept: ')}" for line in accepted], before, after)


CASES: Final = [_edit(text) for text in EDITS.split("### ")[1:]]
SPELT: Final = {
    "as it is": lambda text: text,
    "with CRLF": lambda text: text.replace("\n", "\r\n"),
    "with no line break at its end": lambda text: text.removesuffix("\n"),
    "with a byte order mark and a comment": lambda text: f"\ufeff# 😀 é\n{text}",
    "among other documents": lambda text: f"# one\nx-a: [1]\n---\n{text}---\n# three\nx-b: {{c: d}}  # kept",
}


@pytest.mark.sampled
@pytest.mark.parametrize("spelt", SPELT)
@pytest.mark.parametrize("edit", CASES, ids=lambda edit: edit.title)
def test_an_edit_changes_only_what_it_must(stage: ServedProject, edit: Edit, spelt: str) -> None:
    """What was accepted is no drift any more; every line but those that the case names is as it was, to the byte."""
    stage.write("")
    path = stage.root / "manifests" / "all.yaml"
    path.write_bytes(SPELT[spelt](edit.before).encode())
    ran = stage("drift", *edit.accepted)
    assert (ran.code, ran.writes) == (0, []), ran.err
    assert path.read_bytes().decode() == SPELT[spelt](edit.after)
    assert "no difference has this address" in stage("drift", *edit.accepted, code=1).err


@pytest.mark.parametrize("typed", ["group/Zebra *", "groups/Zebra *", "Zebra *", "group Zebra *"])
def test_a_pasted_address_is_accepted_alone(stage: ServedProject, typed: str) -> None:
    """Also under its section's name and by its name alone, and though its star would match another group."""
    stage.write("groups:\n  - name: Zebra *\n  - name: Zebra 1\n")
    ran = stage("drift", "--accept", typed)
    assert ran.code == 0, ran.err
    assert "Also accepted" not in ran.err
    kept = (stage.root / "manifests" / "all.yaml").read_text(encoding="utf-8")
    assert ("Zebra 1" in kept, "Zebra *" in kept) == (True, False)
    again = stage("drift", "--accept", "group/Zebra 2")
    assert (again.code, "Did you mean --accept 'group/Zebra 1'?" in again.err) == (1, True)


# Whatever is edited by hand in a workspace: accepted, it is in the manifests, and nothing else of them has changed.


TIMES: Final = (None, "2025-06-01T12:30:00Z", "2027-12-31T22:59:59Z", "2028-02-29T23:00:00Z")


@st.composite
def hands(draw: st.DrawFn) -> tuple[RandomWorkspace, Dice]:
    """A workspace, and the choices of somebody who edits it by hand."""
    return draw(worlds()), Dice(draw)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("by-hand")


@tried(60)
@given(hands())
def test_what_is_edited_by_hand_can_be_accepted(folder: Path, both: tuple[RandomWorkspace, Dice]) -> None:
    """With every line commented, in any line breaks: no drift is left, no plan, and the other entries are as before."""
    world, dice = both
    stage = open_stage(folder, world, RandomManifests())
    try:
        files = commented(stage, dice)
        snapshot = edited(stage.workspace.snapshot(), dice)
        manifests = stage.manifests()
        before = stage.workspace.drift(manifests, snapshot=snapshot)
        patterns = [exact_pattern(str(finding.address)) for finding in before.findings]
        if not patterns or any(problem.is_error for problem in before.problems):
            return  # an id that is pinned and gone cannot be compared, and so not be accepted

        project = DriftedProject(
            drift=before,
            manifests=manifests,
            settings=stage.settings,
            compute_drift=lambda drafted: stage.workspace.drift(drafted, snapshot=snapshot),
        )
        assert project.without_refused_edits() == before
        draft = project.accept(patterns)
        after = load_manifests(stage.settings, drafts=draft.after)
        assert stage.workspace.drift(after, snapshot=snapshot).findings == ()
        assert stage.workspace.plan_offline(after, stage.settings.policy, snapshot).changes == ()
        for name, text in files.items():
            new = draft.after.get(f"manifests/{name}", text.encode()).decode()
            untouched(text, new, {one.source.line for one in before.findings if one.source.file.endswith(f"/{name}")})
    finally:
        stage.sandbox.close_workspace()


def commented(stage: SandboxProject, dice: Dice) -> dict[str, str]:
    """The workspace as manifests, on disk, with a comment in every line, and in the line breaks of one system."""
    found = export_snapshot(stage.workspace.snapshot(), stage.settings.policy, stage.workspace.connection.spec)
    end, last = dice.pick((("\n", "\n"), ("\r\n", "\r\n"), ("\n", "")))
    files = {}
    for section, text in found.files.items():
        lines = [
            line if not line or line.lstrip().startswith("#") else f"{line}   # note {number} é"
            for number, line in enumerate(text.split("\n"))
        ]
        files[f"{section}.yaml"] = end.join(lines).rstrip() + last
    # A workspace that holds nothing gives comments only, and those are no manifests.
    files["groups_none.yaml"] = "groups: []\n"
    for old in stage.settings.manifests.iterdir():
        old.unlink()
    for name, text in files.items():
        (stage.settings.manifests / name).write_bytes(text.encode())
    return files


def untouched(old: str, new: str, changed: set[int]) -> None:
    """Every entry of which nothing was accepted stands in the new text as in the old one, and in the same order."""
    at = 0
    for first, lines in entries(old):
        if not any(first <= line < first + len(lines) for line in changed):
            found = new.find("".join(lines).rstrip("\r\n"), at)
            assert found >= 0, "".join(lines)
            at = found


def entries(text: str) -> Iterator[tuple[int, list[str]]]:
    """Each entry of a section, from its dash on, without the blank lines and comments before the next one."""
    lines = text.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if line.startswith("  - ")]
    for start, end in zip(starts, [*starts, len(lines)][1:], strict=True):
        entry = lines[start:end]
        while not entry[-1].strip() or entry[-1].lstrip().startswith("#"):
            entry.pop()
        yield start + 1, entry


def edited(snapshot: Snapshot, dice: Dice) -> Snapshot:
    """The workspace after somebody was at it: things changed, and things gone."""
    people = [row.id for row in snapshot.of("user").rows]
    lists = ("members", "managers")
    changes = {
        GROUP: lambda row: replace(row, **{key: some(people, getattr(row, key), dice) for key in lists}),
        SMART_GROUP: lambda row: replace(
            row, managers=some(people, row.managers, dice), conditions=narrowed(row, dice)
        ),
        CUSTOM_FIELD: lambda row: other_field(row, dice),
        CONTENT_TARGET: lambda row: replace(row, mandatory=dice.chance(2), **window(dice)),
    }
    listings = dict(snapshot.listings)
    for kind, change in changes.items():
        rows = [change(row) if dice.chance(3) else row for row in cast("tuple[Any, ...]", snapshot.of(kind).rows)]
        kept = [row for row in rows if kind == CUSTOM_FIELD or not dice.chance(5)]
        listings[kind] = replace(listings[kind], rows=tuple(kept))
    audiences = {row.id for kind in (GROUP, SMART_GROUP) for row in snapshot.of(kind).rows}
    live = {row.id for kind in (GROUP, SMART_GROUP) for row in listings[kind].rows}
    targets = cast("tuple[Any, ...]", listings[CONTENT_TARGET].rows)
    still = tuple(row for row in targets if row.target not in audiences - live)
    listings[CONTENT_TARGET] = replace(listings[CONTENT_TARGET], rows=still)
    return replace(snapshot, listings=listings)


def some(people: list[str], held: frozenset[str], dice: Dice) -> frozenset[RemoteId]:
    """Somebody comes or goes, or several do."""
    return frozenset(cast("set[RemoteId]", set(held) ^ set(dice.some(people, most=2))))


def narrowed(row: Any, dice: Dice) -> Any:
    """A condition is gone, or asks for something else."""
    conditions = list(row.conditions)
    if len(conditions) > 1 and dice.chance(2):
        conditions.pop(dice.number(0, len(conditions) - 1))
    elif conditions and len(conditions[0].choices) > 1:
        conditions[0] = replace(conditions[0], choices=frozenset(dice.some(sorted(conditions[0].choices), least=1)))
    return tuple(conditions)


def other_field(row: Any, dice: Dice) -> Any:
    """A field says something else of itself, and has one more choice."""
    more = (ChoiceRow(RemoteId(f"{row.id}-more"), f"more {dice.name()}"),) if row.type != "TEXT" else ()
    flags: Mapping[str, bool] = {key: dice.chance(2) for key in ("hidden", "locked", "optional")}
    return replace(row, description=dice.pick((None, "words", 'a "b": c')), choices=(*row.choices, *more), **flags)


def window(dice: Dice) -> dict[str, str | None]:
    return {"start": dice.pick((None, "2024-02-29T00:00:00Z")), "finish": dice.pick(TIMES)}


# What cannot be edited safely is refused with its place and a way out, and no file is written.


REFUSED: Final = [
    pytest.param(
        case, id=case.title, marks=pytest.mark.sampled(day=1 if case.title == "one of several contents" else PARTS)
    )
    for case in cases(Path(__file__).parent / "refused.txt")
]
MANAGED: Final = "groups:\n  - name: Team\n    members: [anna@x.se, bo@x.se]\n"


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_edited_is_refused(stage: ServedProject, case: Case) -> None:
    """It is exit 1 with place and way out, nothing is shown as done, and every file is as it was."""
    accept, _, manifest = case.text.partition("\n")
    message, hint = case.told.splitlines()
    other = "workspaces: {elsewhere: {url: 'https://lms.example', token: {env: LMSCONF_TOKEN}}}"
    stage.options('vars: {boss: dag@x.se, teams: [Team, Crew]}\nownership: {groups: ["Crew"]}\n')
    options = stage.root / "lmsconf.yaml"
    here = f"default_workspace: here\n{other[:-1]}, "
    options.write_text(options.read_text().replace("workspaces: {", here, 1))
    (stage.root / "people.csv").write_text("Mail\nanna@x.se\n")
    (stage.root / "assignments.csv").write_text("content,audience,mandatory\nIntro,user: bo@x.se,true\n")
    stage.write(manifest)
    ran = stage("drift", f"--accept={accept.removeprefix('accept: ')}")
    assert (ran.code, ran.out, ran.writes) == (1, "", [])
    assert message in ran.err
    assert hint.strip() in ran.err
    assert (stage.root / "manifests" / "all.yaml").read_text() == manifest


def test_all_files_or_none(stage: ServedProject) -> None:
    """Where one of two cannot be edited, the other is not written either, and all that stands in the way is told."""
    stage.write("x: 1\n")
    folder = stage.root / "manifests"
    (folder / "all.yaml").write_text("groups: [{name: Team, managers: []}]\n")
    (folder / "b.yaml").write_text("x-a: &a [dag@x.se]\ngroups: [{name: Crew, members: *a, managers: *a}]\n")
    ran = stage("drift", "--accept", "group/*")
    assert ran.code == 1
    assert "b.yaml:2:32" in ran.err
    assert (folder / "all.yaml").read_text() == "groups: [{name: Team, managers: []}]\n"
    (folder / "b.yaml").write_text("groups: [{name: Crew, members: [dag@x.se]}]\n")
    stage("drift", "--accept", "group/*", code=0)
    assert (folder / "all.yaml").read_text() == "groups: [{name: Team, managers: [cy@x.se]}]\n"
    assert (folder / "b.yaml").read_text() == "groups: [{name: Crew, members: []}]\n"


def test_the_diff_is_shown_as_git_reads_it(stage: ServedProject) -> None:
    """Paths are those in the project, and a last line without a line break is said to be so."""
    stage.write("groups:\n  - name: Team\n    managers: []")
    assert stage("drift", "--accept", "group/Team").out == (
        "--- a/manifests/all.yaml\n+++ b/manifests/all.yaml\n@@ -1,3 +1,3 @@\n groups:\n   - name: Team\n"
        "-    managers: []\n\\ No newline at end of file\n+    managers: [cy@x.se]\n\\ No newline at end of file\n"
    )


def test_a_file_keeps_its_mode_and_a_link_stays_one(stage: ServedProject) -> None:
    """What is written is the file that a link leads to, with the rights that it had."""
    stage.write("groups: []\n")
    real = stage.root / "real.yaml"
    real.write_text("groups: [{name: Team, managers: []}]\n")
    real.chmod(0o640)
    link = stage.root / "manifests" / "link.yaml"
    link.symlink_to(real)
    assert stage("drift", "--accept", "group/Team").code == 0
    assert link.is_symlink()
    assert "cy@x.se" in real.read_text()
    assert real.stat().st_mode & 0o777 == 0o640


def test_accepting_has_one_format(stage: ServedProject) -> None:
    """A diff is no JSON document: the two together are a wrong command line."""
    stage.write(MANAGED)
    assert stage("drift", "--accept", "*", "--format", "json").code == 64


# Edited manifests are written all or not at all, and never over what somebody else wrote meanwhile.


class Interrupted(bytes):
    """What Ctrl-C cuts short as it is written."""

    def decode(self, *_: object) -> NoReturn:
        raise KeyboardInterrupt


@pytest.mark.sampled(day=1)
@pytest.mark.parametrize(
    ("meanwhile", "second", "error", "words"),
    [
        ("newer\n", b"new\n", LmsconfError, r"b\.yaml was changed by another process"),
        ("old\n", b"\xff", UnicodeDecodeError, "utf-8"),
        ("old\n", Interrupted(), KeyboardInterrupt, "^$"),
    ],
    ids=["changed by another process", "cannot be written", "Ctrl-C"],
)
def test_what_was_written_is_put_back_where_the_next_cannot_be(
    tmp_path: Path, meanwhile: str, second: bytes, error: type[BaseException], words: str
) -> None:
    """No file is left half way between two states of the manifests, and it is said which one stood in the way."""
    for name, text in (("a.yaml", "old\n"), ("b.yaml", meanwhile)):
        (tmp_path / name).write_text(text)
    with pytest.raises(error, match=words):
        write_all_or_none(
            tmp_path, dict.fromkeys(("a.yaml", "b.yaml"), b"old\n"), {"a.yaml": b"new\n", "b.yaml": second}
        )
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a.yaml": "old\n", "b.yaml": meanwhile}


def test_an_edit_that_makes_another_difference_is_refused(tmp_path: Path) -> None:
    """What differs only with the edit was asked for by nobody."""
    it = Project(tmp_path, "people: [{email: a@x.example}]\ngroups: [{name: A, members: [a@x.example]}]\n")
    it.write("groups: [{name: A, members: []}]\n")
    drift, manifests = ApiProject(settings=it.settings, environ={}).drift(), load_manifests(it.settings)
    other = replace(drift, findings=(replace(drift.findings[0], address=Address.of(GROUP, "B")),))
    drifted = DriftedProject(drift=drift, manifests=manifests, settings=it.settings, compute_drift=lambda _: other)
    with pytest.raises(ProblemsFound, match="group/B: with the edit it would be"):
        drifted.accept(["group/A"])


@pytest.mark.parametrize("line", [0, 3])
def test_a_problem_in_no_line_of_the_edited_file_stays_where_it_is(line: int) -> None:
    """It is about the whole file, or the parser has counted more lines than there are line feeds."""
    edits = ManifestEdits(accepted=(), renamed={}, before={"a": b"x: 1\r"}, after={"a": b"x: 1\ry: 2\r"}, problems=())
    problem = Problem(code="any", message="any", source=SourceLocation("a", line, 1))
    assert locate_on_disk(problem, edits) == problem
