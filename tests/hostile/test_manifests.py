"""Manifests that are meant to hurt: each is a clear error, told soon, in little memory, and without a traceback."""

import inspect
import os
import socket
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from call_count import Effort
from texts import listed_cases

from lmsconf.manifest.file_set import FILE_LIMIT
from lmsconf.manifest.load import load_folder
from lmsconf.model.declarations import Manifests

MILLION = 1 << 20
LITTLE, MUCH = 500_000, 10_000_000
"""Calls that it takes at most to tell one mistake, and to read many entries of which each is one."""
ENOUGH = 1_000
"""How many mistakes are told."""


def loaded(root: Path, text: str | bytes, variables: dict[str, str] | None = None) -> Manifests:
    """What a project of one manifest says."""
    (root / "a.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_folder(root, root, variables=variables)


def codes(found: Manifests) -> set[str]:
    return {problem.code for problem in found.problems}


def _laughs(levels: int, width: int) -> str:
    """Aliases of lists of aliases: width to the power of levels values."""
    names = [f"a{level}" for level in range(levels)]
    lines = [f"x-a0: &a0 [{', '.join(['lol'] * width)}]"]
    lines += [f"x-{at}: &{at} [{', '.join([f'*{before}'] * width)}]" for before, at in pairwise(names)]
    return "\n".join(lines)


BOMBS: dict[str, tuple[str, str]] = {
    "a billion laughs": (_laughs(9, 10), "yaml/too-many-aliases"),
    "wide laughs": (_laughs(3, 1000), "yaml/too-many-aliases"),
    "keys of laughs": (
        "x-a: &a {" + ", ".join(f"k{n}: v" for n in range(999)) + "}\nx-b: [" + "*a, " * 999 + "*a]",
        "yaml/too-many-aliases",
    ),
    "an alias in itself": ("x-a: &a [*a, *a, *a]\n", "yaml/unknown-alias"),
    "lists in lists": ("[" * MILLION, "yaml/too-deep"),
    "dashes in dashes": ("- " * MILLION, "yaml/too-deep"),
    "mappings in mappings": ("{a: " * MILLION, "yaml/too-deep"),
    "keys that are keys": ("? " * MILLION, "yaml/too-deep"),
    "aliases in depth": ("x-a: &a " + "[" * 30 + "]" * 30 + "\nx-b: " + "[" * 30 + "*a" + "]" * 30, "yaml/too-deep"),
    "a number of four million digits": (f"groups: [{{name: {'9' * 4 * MILLION}}}]", "yaml/number"),
    "a number beyond all": (f"groups: [{{name: 1e{'9' * 4 * MILLION}}}]", "yaml/number"),
    "a hexadecimal number": (f"groups: [{{name: 0x{'f' * 4 * MILLION}}}]", "yaml/too-long"),
    "a text of four million letters": (f"groups: [{{name: {'a' * 4 * MILLION}}}]", "yaml/too-long"),
    "a million blanks before nothing": (f"groups:\n - name: @a{' ' * MILLION}x\n", "yaml/syntax"),
    "a million colons": (f"groups: [{{name: a{': b' * MILLION}}}]", "yaml/syntax"),
    "a million variables": ("groups: [{name: a, description: '" + "$(x)" * MILLION + "'}]", "yaml/too-long"),
    "a million tags": ("x-a: [" + "!t 1," * (MILLION // 2) + "1]", "yaml/too-many-problems"),
    "a million anchors": ("x-a: [" + ",".join(f"&a{n} b" for n in range(20_000)) + "]", "yaml/too-many-problems"),
    "a million unknown aliases": (
        "x-a: [" + ",".join(f"*a{n}" for n in range(MILLION // 4)) + "]",
        "yaml/too-many-problems",
    ),
    "a million controls": ("groups:\n" + "\x01\n" * (2 * MILLION), "yaml/too-many-problems"),
    "too many bytes": ("#" * (FILE_LIMIT + 1), "manifest/too-large"),
}


@pytest.mark.sampled
@pytest.mark.parametrize("bomb", BOMBS)
def test_bombs(bomb: str, tmp_path: Path) -> None:
    """A bomb is an error with a place, told with little work, in few words."""
    text, code = BOMBS[bomb]
    with Effort() as effort:
        found = loaded(tmp_path, text)
    assert effort.calls < LITTLE
    assert code in codes(found)
    assert all(problem.source for problem in found.problems)
    assert sum(len(f"{problem.message}{problem.hint}") for problem in found.problems) < 100_000


CROWDS: dict[str, str] = {
    "entries that are none": "groups:\n" + "  - 1\n" * 300_000,
    "entries for each of nothing": "groups:\n" + "  - for_each: 5\n" * 100_000,
    "unknown keys in an entry": "groups:\n - name: a\n" + "".join(f"   k{n}: 1\n" for n in range(20_000)),
    "unknown sections": "".join(f"k{n}: 1\n" for n in range(20_000)),
    "the same key": "x-a:\n" + "".join(f"  k{n}: 1\n" for n in range(20_000)) + "  k19999: 1\n" * 20_000,
    "the same group": "groups:\n" + "  - {name: a}\n" * 5_000,
    "no people": "groups: [{name: a, members: [" + "x," * 5_000 + "x]}]",
}


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize("crowd", CROWDS)
def test_a_crowd_of_mistakes_is_cut_short(crowd: str, tmp_path: Path) -> None:
    """So many mistakes that nobody would read them end the reading; that there are more is said."""
    with Effort() as effort:
        found = loaded(tmp_path, CROWDS[crowd])
    assert effort.calls < MUCH
    assert len(found.problems) <= ENOUGH + 1
    assert codes(found) & {"yaml/too-many-problems", "manifest/too-many-problems"}


def test_variables_cannot_grow_without_bound(tmp_path: Path) -> None:
    """Texts that stand for gigabytes are refused before they are written out, one long one and many short ones."""
    long = {"x": "a" * 50_000}
    assert codes(loaded(tmp_path, 'groups: [{name: a, about: {why: "$(x)$(x)$(x)"}}]', long)) == {"yaml/too-long"}
    many = "".join(f'  - {{name: g{n}, about: {{why: "$(x)"}}}}\n' for n in range(2_000))
    assert codes(loaded(tmp_path, f"groups:\n{many}", long)) == {"yaml/too-long"}


def test_marks_on_marks(tmp_path: Path) -> None:
    """Names that would take a normaliser minutes are compared as they are."""
    for marks, names in (("\u0315\u0300", 1), ("\u0315\u0300" * 40_000, 2)):
        found = loaded(tmp_path, f'groups: [{{name: "e\u0301{marks}"}}, {{name: "\u00e9{marks}"}}]')
        assert len({one.address for one in found.declared}) == names


@pytest.mark.sampled(daily=False)
@pytest.mark.skipif(sys.platform != "linux", reason="/proc/self/status is Linux's")
def test_bombs_take_little_memory(tmp_path: Path) -> None:
    """All bombs, one after the other, take less than 300 MB, the library's own included."""
    program = (
        "import pathlib, re, sys\n"
        "from lmsconf.manifest.load import load_folder\n"
        "for folder in sorted(pathlib.Path(sys.argv[1]).iterdir()):\n"
        "    assert load_folder(folder, folder).problems\n"
        # Not what getrusage says, which counts the process that this one was forked from.
        "said = pathlib.Path('/proc/self/status').read_text()\n"
        "print(int(re.search(r'VmHWM:\\s*(\\d+)', said)[1]) // 1024)\n"
    )
    for number, (text, _) in enumerate(BOMBS.values()):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "a.yaml").write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) < 300


FORBIDDEN = [
    *(code for code in range(0x20) if code not in (0x9, 0xA, 0xD)),
    *range(0x7F, 0xA0), 0x61C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A), 0xFEFF,
]  # fmt: skip


@pytest.mark.sampled
@listed_cases("text", "refuses_escapes")
def test_controls_in_every_text(text: str, refuses_escapes: bool, tmp_path: Path) -> None:
    """Every C0, C1 and bidi control is refused at its place in every text; as an escape in what is no name."""
    for code in FORBIDDEN:
        escape = f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
        for written, expected in ((f'"a{chr(code)}b"', "yaml/character"), (f'"a{escape}b"', "manifest/character")):
            told = [one for one in loaded(tmp_path, text % written).problems if one.code.endswith("/character")]
            assert [one.code for one in told] == ([expected] if refuses_escapes or expected.startswith("yaml") else [])
            for problem in told:
                assert f"U+{code:04X}" in problem.message
                assert problem.source
                assert (problem.source.line, problem.source.column > 1) == (1, True)


def test_controls_in_a_list_of_people(tmp_path: Path) -> None:
    """A CSV file is refused for the same characters, at their place."""
    (tmp_path / "a.yaml").write_text("groups: [{name: a, members: {file: p.csv, column: email}}]\n")
    for code in (*FORBIDDEN[:-1], 0x206A - 1):
        (tmp_path / "p.csv").write_text(f"email\na{chr(code)}b@acme.example\n", encoding="utf-8", newline="")
        found = load_folder(tmp_path, tmp_path)
        assert [str(problem.source) for problem in found.problems] == ["p.csv:2:2"], hex(code)


@listed_cases("tag")
def test_tags(tag: str, tmp_path: Path) -> None:
    """A tag runs, builds and includes nothing: it is an error where it stands."""
    found = loaded(tmp_path, f"x-a: {tag}\n")
    assert [(problem.code, str(problem.source)) for problem in found.problems] == [("yaml/tag", "a.yaml:1:6")]


@listed_cases("text")
def test_a_key_twice(text: str, tmp_path: Path) -> None:
    """A key that is a duplicate in one mapping is an error that names both places, however it is spelt."""
    (problem,) = [one for one in loaded(tmp_path, text).problems if one.code == "manifest/duplicate-key"]
    assert problem.hint
    assert "a.yaml:" in problem.hint


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project beside a file that is none of its business."""
    (tmp_path / "secret.yaml").write_text("groups: [{name: secret}]\n")
    (tmp_path / "secret.csv").write_text("email\nsecret@acme.example\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "b.yaml").write_text("groups: [{name: secret}]\n")
    root = tmp_path / "project"
    (root / "manifests").mkdir(parents=True)
    (root / "manifests" / "a.yaml").write_text("groups: [{name: a}]\n")
    return root


@listed_cases("target", "code")
def test_links(target: str, code: str, project: Path) -> None:
    """A link out of the project, to nothing, around in a circle or to a folder is an error, never passed over."""
    (project / "manifests" / "link.yaml").symlink_to(target)
    found = load_folder(project / "manifests", project)
    assert [(str(problem.source), problem.code) for problem in found.problems] == [("manifests/link.yaml", code)]
    assert [str(one.address) for one in found.declared] == ["group/a"]
    assert "secret" not in str(found.problems)


def test_a_link_inside_the_project(project: Path) -> None:
    """A manifest may be a link to another file of the project."""
    (project / "b.yaml").write_text("groups: [{name: b}]\n")
    (project / "manifests" / "link.yaml").symlink_to("../b.yaml")
    found = load_folder(project / "manifests", project)
    assert found.problems == ()
    assert [str(one.address) for one in found.declared] == ["group/a", "group/b"]


def test_what_is_no_file(project: Path) -> None:
    """A pipe that nobody writes to, and a socket, are errors; nobody waits for them."""
    os.mkfifo(project / "manifests" / "pipe.yaml")
    with socket.socket(socket.AF_UNIX) as listening:
        # Its address has at most 108 characters.
        listening.bind(os.path.relpath(project / "manifests" / "s.yaml"))
        found = load_folder(project / "manifests", project)
    assert [(str(one.source), one.code) for one in found.problems] == [
        ("manifests/pipe.yaml", "manifest/unreadable"),
        ("manifests/s.yaml", "manifest/unreadable"),
    ]


def test_folders_in_folders(project: Path) -> None:
    """More folders in one another than Python has frames are walked through."""
    nested = [project.joinpath("manifests", *["d"] * depth) for depth in range(1, 400)]
    for folder in nested:
        folder.mkdir()
    (nested[-1] / "deep.yaml").write_text("groups: [{name: b}]\n")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 200)
    try:
        found = load_folder(project / "manifests", project)
        assert [str(one.address) for one in found.declared] == ["group/a", "group/b"]
    finally:
        sys.setrecursionlimit(limit)


def test_a_folder_that_cannot_be_listed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it declares is not known, and would be deleted where it is owned: an error, never passed over."""
    monkeypatch.chdir(project / "manifests")
    for _ in range(17):  # its path is longer than the system allows, for root as well
        Path("d" * 250).mkdir()
        monkeypatch.chdir("d" * 250)
    assert codes(load_folder(project / "manifests", project)) == {"manifest/unreadable"}


def test_a_file_whose_name_is_no_text(project: Path) -> None:
    """A name that is not UTF-8, or holds an escape, neither stops the reading nor the digest."""
    folder = os.fsencode(project / "manifests")
    for name in (b"\xff.yaml", b"a\x1b[31m.yaml", b"a\nb.yaml"):
        with open(folder + b"/" + name, "wb") as file:  # noqa: PTH123  # a Path holds no bytes
            file.write(b"grups: []\n")
    found = load_folder(project / "manifests", project)
    assert codes(found) == {"manifest/unknown-key"}
    assert len(found.files) == 4
    assert len(found.digest) == 64


@listed_cases("path", "code")
def test_lists_of_people_elsewhere(path: str, code: str, project: Path) -> None:
    """A list of people is a file of the project: what leads elsewhere, or is no file, is an error at its place."""
    folder = project / "manifests"
    (folder / "out.csv").symlink_to("../../secret.csv")
    (folder / "zero.csv").symlink_to("/dev/zero")
    (folder / "loop.csv").symlink_to("loop.csv")
    (folder / "_folder").symlink_to("../..")
    os.mkfifo(folder / "pipe.csv")
    for word, meant in (("LONG", "a" * 5_000), ("DEEP", "a/" * 3_000)):
        path = path.replace(word, meant)
    (folder / "a.yaml").write_text(f"groups: [{{name: a, members: {{file: '{path}', column: email}}}}]\n")
    found = load_folder(folder, project, variables={"x": "../../secret"})
    expected = {code} if path else {"people/no-file", "manifest/empty"}
    assert codes(found) <= expected
    assert codes(found)
    assert "secret@acme.example" not in str(found.problems)


@pytest.mark.sampled(daily=False)
@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("email," + "a" * 200_000 + "\n", "people/csv"),
        ("email\n" + "a" * 200_000 + "\n", "people/csv"),
        ("email\n" + "a" * 100_000 + "@b\n", "people/address"),
        ('email\n"a\n', "people/csv"),
        ("email\n" + "x\n" * 100_000, "manifest/too-many-problems"),
        ("email" + "," * 100_000 + "\n" + "a@b.example\n" * 10, None),
    ],
    ids=["header", "cell", "address", "quote", "mistakes", "columns"],
)
def test_hostile_lists_of_people(content: str, code: str | None, project: Path) -> None:
    """A CSV file with cells without end, or mistakes without end, is a short error."""
    (project / "manifests" / "p.csv").write_text(content)
    (project / "manifests" / "a.yaml").write_text("groups: [{name: a, members: {file: p.csv, column: email}}]\n")
    with Effort() as effort:
        found = load_folder(project / "manifests", project)
    assert effort.calls < MUCH
    assert code in codes(found) if code else not found.problems
    assert sum(len(f"{problem.message}{problem.hint}") for problem in found.problems) < 200_000
