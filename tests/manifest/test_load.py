"""A folder of manifests → declarations."""

import os
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from lmsconf.manifest import file_set as folders
from lmsconf.manifest.load import Manifests, load_folder


def written(root: Path, files: dict[str, str]) -> Manifests:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return load_folder(root, root, timezone=ZoneInfo("Europe/Stockholm"))


def codes(found: Manifests) -> list[str]:
    return [f"{problem.source} {problem.code}" for problem in found.problems]


def test_one_of_each(tmp_path: Path) -> None:
    """Every section gives its declarations, placed at the first character of each entry."""
    text = """\
x-us: &us [anna.berg@acme.example]
custom_fields:
  - {name: Country, type: CHOICE, choices: [SE, NO]}
groups:
  - name: Coaches
    managers: *us
smart_groups:
  - name: Nordics
    conditions: [{field: Country, choices: [NO]}]
content_targets:
  - content: [GDPR basics, Welcome]
    visible_from: 2026-01-05
    assign_to:
      - everyone
      - group: Coaches
absent:
  groups: [Old ones, {name: Older ones, until: 2027-03-31}]
  content_targets: [{content: Old intro, assign_to: [everyone]}]
"""
    found = written(tmp_path, {"a.yaml": text})
    assert found.problems == ()
    assert [(str(one.address), str(one.source)) for one in found.declared] == [
        ("custom_field/Country", "a.yaml:3:5"),
        ("group/Coaches", "a.yaml:5:5"),
        ("smart_group/Nordics", "a.yaml:8:5"),
        ("content_target/GDPR basics -> everyone", "a.yaml:14:9"),
        ("content_target/GDPR basics -> group/Coaches", "a.yaml:15:9"),
        ("content_target/Welcome -> everyone", "a.yaml:14:9"),
        ("content_target/Welcome -> group/Coaches", "a.yaml:15:9"),
    ]
    assert [(str(one.address), str(one.source)) for one in found.absent] == [
        ("group/Old ones", "a.yaml:17:12"),
        ("group/Older ones", "a.yaml:17:22"),
        ("content_target/Old intro -> everyone", "a.yaml:18:21"),
    ]


def test_which_files(tmp_path: Path) -> None:
    """All yaml files below the folder count, at any depth; what begins with a dot or an underscore does not."""
    group = "groups: [{{name: {}}}]\n"
    names = [
        "b.yaml",
        "a.yml",
        "sub/c.yaml",
        "sub/deep/d.yml",
        "_off.yaml",
        ".hidden.yaml",
        "_old/e.yaml",
        ".git/f.yaml",
        "g.txt",
    ]
    found = written(tmp_path, {name: group.format(name.replace("/", "-")) for name in names})
    assert found.files == ("a.yml", "b.yaml", "sub/c.yaml", "sub/deep/d.yml")
    assert len(found.declared) == 4


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, ". manifest/nothing"),
        ({"notes.txt": "groups: []\n"}, ". manifest/nothing"),
    ],
)
def test_no_manifest(tmp_path: Path, files: dict[str, str], told: str) -> None:
    """No document in the whole folder is an error: an empty folder must not look like an empty wish."""
    assert codes(written(tmp_path, files)) == [told]


@pytest.mark.parametrize(
    ("files", "where", "message"),
    [
        ({"a.yaml": ""}, "a.yaml:1:1", "nothing is declared: a.yaml is empty, or only comments"),
        ({"a.yaml": "# nothing yet\n"}, "a.yaml:1:1", "nothing is declared: a.yaml is empty, or only comments"),
        (
            {"b.yaml": "---\n", "a.yml": "\n", "c/d.yaml": "# a\n"},
            "a.yml",
            "nothing is declared: a.yml, b.yaml, c/d.yaml are empty, or only comments",
        ),
        (
            {f"{letter}.yaml": "" for letter in "abcdefg"},
            "a.yaml",
            "nothing is declared: a.yaml, b.yaml, c.yaml, d.yaml, e.yaml and 2 more are empty, or only comments",
        ),
        (
            {"a.yaml": "x-a: 1\n"},
            "a.yaml:1:1",
            "nothing is declared: a.yaml holds only sets or windows, or keys that are ignored",
        ),
    ],
)
def test_manifests_that_declare_nothing(tmp_path: Path, files: dict[str, str], where: str, message: str) -> None:
    """Files that hold nothing are named, and it is said where to begin."""
    (problem,) = written(tmp_path, files).problems
    assert (str(problem.source), problem.message, problem.code) == (where, message, "manifest/nothing")
    assert "groups" in str(problem.hint)


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


def test_dangling_link(tmp_path: Path) -> None:
    """A manifest that is a link to nothing cannot be read, and is not passed over."""
    (tmp_path / "a.yaml").symlink_to(tmp_path / "gone.yaml")
    assert codes(load_folder(tmp_path, tmp_path)) == ["a.yaml manifest/unreadable"]


def test_too_large(tmp_path: Path) -> None:
    """A file above five MiB is refused before it is read."""
    with (tmp_path / "a.yaml").open("wb") as file:
        file.truncate(folders.FILE_LIMIT + 1)
    assert codes(load_folder(tmp_path, tmp_path)) == ["a.yaml manifest/too-large"]


def test_forty_three_mib_of_manifests_are_refused_before_they_are_read(tmp_path: Path) -> None:
    """One sentence says how much it is and how much is read, and no file is opened."""
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
    (tmp_path / "a.yaml").write_text(
        "groups:\n"
        "  - {name: A, members: {file: hr.csv, column: email, where: {email: b@acme.example}, allow_empty: true}}\n"
        "  - {name: B, members: {file: more.csv, column: email}}\n"
    )
    assert codes(load_folder(tmp_path, tmp_path)) == ["more.csv manifest/too-large"]


@pytest.mark.slow
def test_lists_from_csv_files_are_bounded_together(tmp_path: Path) -> None:
    """Many groups of everybody in a large file are more than any workspace has members."""
    (tmp_path / "hr.csv").write_text("email\n" + "".join(f"p{number}@acme.example\n" for number in range(100_000)))
    groups = "".join(f"  - {{name: G{number}, members: {{file: hr.csv, column: email}}}}\n" for number in range(30))
    (tmp_path / "a.yaml").write_text(f"groups:\n{groups}")
    assert "a.yaml:22:26 people/too-many" in codes(load_folder(tmp_path, tmp_path))


def test_only_in(tmp_path: Path) -> None:
    """A name may be declared for different workspaces, and be absent in another; not twice for one, nor for none."""
    entry = "groups: [{{name: A, only_in: [{}]}}]\n"
    apart = written(tmp_path / "1", {"a.yaml": entry.format("test"), "b.yaml": entry.format("production")})
    assert codes(apart) == []
    gone = "absent: {groups: [{name: A, only_in: [staging]}]}\n"
    assert codes(written(tmp_path / "2", {"a.yaml": entry.format("test"), "b.yaml": gone})) == []
    both = written(tmp_path / "3", {"a.yaml": entry.format("test"), "b.yaml": entry.format("production, test")})
    assert codes(both) == ["b.yaml:1:10 manifest/declared-twice"]
    assert codes(written(tmp_path / "4", {"a.yaml": entry.format("test"), "b.yaml": "groups: [{name: A}]\n"})) == [
        "b.yaml:1:10 manifest/declared-twice"
    ]
    replaced = "{content: Y, assign_to: [everyone], only_in: [test], replaces: {content: X, then: remove}}"
    elsewhere = f"content_targets: [{replaced}, {{content: X, assign_to: [everyone], only_in: [production]}}]\n"
    assert codes(written(tmp_path / "7", {"a.yaml": elsewhere})) == []
    assert codes(written(tmp_path / "5", {"a.yaml": entry.format("")})) == ["a.yaml:1:29 manifest/empty"]
    assert codes(written(tmp_path / "6", {"a.yaml": entry.format('""')})) == ["a.yaml:1:30 manifest/empty"]


def test_look_alikes(tmp_path: Path) -> None:
    """Names that differ in case, blanks or nothing visible are refused; pinned by id they are told apart."""
    pinned = written(tmp_path / "2", {"a.yaml": "groups: [{name: Sales, id: g-1}, {name: sales, id: g-2}]\n"})
    assert codes(pinned) == []
    contents = "content_targets: [{content: Sales, assign_to: [everyone]}, {content: SALES, assign_to: [everyone]}]\n"
    assert codes(written(tmp_path / "3", {"a.yaml": contents})) == []
    composed = written(tmp_path / "3", {"a.yaml": "groups: [{name: Caf\u00e9}, {name: Cafe\u0301}]\n"})
    assert codes(composed) == ["a.yaml:1:24 manifest/declared-twice"]
    kinds = written(
        tmp_path / "4",
        {"a.yaml": "groups: [{name: Sales}]\nsmart_groups: [{name: sales, conditions: [{field: F, choices: [C]}]}]\n"},
    )
    assert codes(kinds) == []


def test_unknown_workspaces(tmp_path: Path) -> None:
    """An entry that names a workspace which the project lacks is told about, where the names are known."""
    text = "groups:\n  - {name: A, only_in: [test, prodution], id: {tset: g-1}}\n"
    assert codes(written(tmp_path, {"a.yaml": text})) == []
    found = load_folder(tmp_path, tmp_path, workspaces=["test", "production"])
    assert [(str(problem.source), problem.code, problem.hint) for problem in found.problems] == [
        ("a.yaml:2:31", "reference/unknown-workspace", 'Did you mean "production"?'),
        ("a.yaml:2:48", "reference/unknown-workspace", 'Did you mean "test"?'),
    ]


def test_ten_fields_in_each_workspace(tmp_path: Path) -> None:
    """Fields for different workspaces count apart; those for all workspaces count in each."""
    for_test = [f"  - {{name: T{number}, type: TEXT, only_in: [test]}}\n" for number in range(6)]
    others = [f"  - {{name: P{number}, type: TEXT, only_in: [production]}}\n" for number in range(6)]
    common = [f"  - {{name: A{number}, type: TEXT}}\n" for number in range(5)]
    fields = "custom_fields:\n" + "".join(for_test + others)
    assert codes(written(tmp_path / "1", {"a.yaml": fields + "".join(common[:4])})) == []
    found = written(tmp_path / "2", {"a.yaml": fields + "".join(common)})
    assert [one.hint for one in found.problems] == ["11 are declared for production. Remove 1."]
