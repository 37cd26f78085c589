"""A folder of manifests, and of the CSV files that they name → declarations."""

import os
from pathlib import Path

import pytest
from manifest.cases import Case, cases, declared, loaded

from lmsconf.manifest import file_set as folders
from lmsconf.manifest.load import Manifests, load_folder

HERE = Path(__file__).parent
DECLARED = [
    case for name in ("declared", "people_files", "sheets", "wrong_shape") for case in cases(HERE / f"{name}.txt")
]


def codes(found: Manifests) -> list[str]:
    return [f"{problem.source} {problem.code}" for problem in found.problems]


@pytest.mark.parametrize("case", DECLARED, ids=lambda case: case.title)
def test_what_is_declared(case: Case, tmp_path: Path) -> None:
    """Each declaration has its place and what it says; what cannot be read is told at file, line and column, with the
    way out, and hides nothing else."""
    assert declared(loaded(tmp_path, case.text, variables={"year": "2026"})) == case.told


def test_which_files(tmp_path: Path) -> None:
    """All yaml files below the folder count, at any depth; what begins with a dot or an underscore does not."""
    names = ["b.yaml", "a.yml", "sub/c.yaml", "sub/deep/d.yml"]
    others = ["_off.yaml", ".hidden.yaml", "_old/e.yaml", ".git/f.yaml", "g.txt"]
    found = loaded(tmp_path, "".join(f"@ {name}\ngroups: [{{name: {name}}}]\n" for name in names + others))
    assert found.files == ("a.yml", "b.yaml", "sub/c.yaml", "sub/deep/d.yml")
    assert {one.address.name for one in found.declared} == {*names}


def test_no_folder(tmp_path: Path) -> None:
    """A missing folder, and a file in its place, are told about."""
    (tmp_path / "file").write_text("")
    for name, message in (("missing", "there is no such folder"), ("file", "is not a folder")):
        (problem,) = load_folder(tmp_path / name, tmp_path).problems
        assert (str(problem.source), problem.message, problem.code) == (name, message, "manifest/no-folder")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file(tmp_path: Path) -> None:
    """A file that may not be read is an error at its name."""
    (tmp_path / "a.yaml").touch(mode=0)
    assert codes(load_folder(tmp_path, tmp_path)) == ["a.yaml manifest/unreadable"]


def test_what_is_too_large_is_not_read(tmp_path: Path) -> None:
    """A file above five MiB is refused, and so are 43 MiB in several: one sentence says how much is read."""
    with (tmp_path / "0.yaml").open("wb") as file:
        file.truncate(folders.FILE_LIMIT + 1)
    assert codes(load_folder(tmp_path, tmp_path)) == ["0.yaml manifest/too-large"]
    for number in range(9):
        with (tmp_path / f"{number}.yaml").open("wb") as file:
            file.truncate(folders.FILE_LIMIT - 200_000)
    found = load_folder(tmp_path, tmp_path)
    assert [problem.message for problem in found.problems] == [
        "the manifests are 43 MiB in 9 files, and at most 10 MiB are read"
    ]
    assert found.files == ()


@pytest.mark.slow
def test_csv_files_are_bounded_together(tmp_path: Path) -> None:
    """A CSV file may be larger than a manifest, and all of them together no larger than that."""
    (tmp_path / "hr.csv").write_bytes(b"email\n" + b"a@acme.example\n" * (folders.TABLES_LIMIT // 15))
    (tmp_path / "more.csv").write_text("email\na@acme.example\n" * 20)
    manifest = (
        "groups:\n"
        "  - {name: A, members: {file: hr.csv, column: email, where: {email: b@acme.example}, allow_empty: true}}\n"
        "  - {name: B, members: {file: more.csv, column: email}}\n"
    )
    assert codes(loaded(tmp_path, manifest)) == ["more.csv manifest/too-large"]


@pytest.mark.slow
def test_lists_from_csv_files_are_bounded_together(tmp_path: Path) -> None:
    """Many groups of everybody in a large file are more than any workspace has members."""
    (tmp_path / "hr.csv").write_text("email\n" + "".join(f"p{number}@acme.example\n" for number in range(100_000)))
    groups = "".join(f"  - {{name: G{number}, members: {{file: hr.csv, column: email}}}}\n" for number in range(30))
    assert "a.yaml:22:26 people/too-many" in codes(loaded(tmp_path, f"groups:\n{groups}"))


def test_unknown_workspaces(tmp_path: Path) -> None:
    """An entry that names a workspace which the project lacks is told about, where the names are known."""
    text = "groups:\n  - {name: A, only_in: [test, prodution], id: {tset: g-1}}\n"
    assert codes(loaded(tmp_path, text)) == []
    found = loaded(tmp_path, text, workspaces=["test", "production"])
    assert [(str(problem.source), problem.code, problem.hint) for problem in found.problems] == [
        ("a.yaml:2:31", "reference/unknown-workspace", 'Did you mean "production"?'),
        ("a.yaml:2:48", "reference/unknown-workspace", 'Did you mean "test"?'),
    ]


def test_ten_fields_in_each_workspace(tmp_path: Path) -> None:
    """Fields for different workspaces count apart; those for all workspaces count in each."""
    of_each = [
        f"  - {{name: {workspace} {number}, type: TEXT, only_in: [{workspace}]}}\n"
        for workspace in ("test", "production")
        for number in range(6)
    ]
    common = [f"  - {{name: A{number}, type: TEXT}}\n" for number in range(5)]
    assert codes(loaded(tmp_path, "".join(["custom_fields:\n", *of_each, *common[:4]]))) == []
    found = loaded(tmp_path, "".join(["custom_fields:\n", *of_each, *common]))
    assert [one.hint for one in found.problems] == ["11 are declared for production. Remove 1."]
