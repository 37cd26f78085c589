"""`lmsconf fmt` from the command line: which files, what is written, and exit codes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lmsconf.cli import app
from lmsconf.cli.run_command import run_command_line
from lmsconf.errors import ExitCode

PROJECT = "workspaces: {sandbox: {url: 'sandbox:'}}\n"
MIXED = "groups:\n  - name: b\n  - members: []\n    name: a\n"
ORDERED = "groups:\n  - name: a\n    members: []\n  - name: b\n"

Fmt = Callable[..., tuple[int, str, str]]


@pytest.fixture
def fmt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Fmt:
    """Runs the command in a project with a manifest that is not in order, and gives exit code, stdout and stderr."""
    (tmp_path / "manifests" / "deep").mkdir(parents=True)
    (tmp_path / "lmsconf.yaml").write_text(PROJECT)
    (tmp_path / "manifests" / "deep" / "a.yaml").write_text(MIXED)
    (tmp_path / "manifests" / "sound.yaml").write_text(ORDERED)

    def ran(*arguments: str) -> tuple[int, str, str]:
        code = run_command_line(app, ["-C", str(tmp_path), "fmt", *arguments])
        return (code, *capsys.readouterr())

    return ran


def test_the_whole_project(fmt: Fmt, tmp_path: Path) -> None:
    """What changed is listed, once; the mode of a file stays."""
    path = tmp_path / "manifests" / "deep" / "a.yaml"
    path.chmod(0o640)
    assert fmt() == (ExitCode.OK, "manifests/deep/a.yaml\n", "")
    assert path.read_text() == ORDERED
    assert path.stat().st_mode & 0o777 == 0o640
    assert fmt() == (ExitCode.OK, "", "")
    assert fmt("--check") == (ExitCode.OK, "", "")
    assert sorted(one.name for one in path.parent.iterdir()) == ["a.yaml"]


def test_check_writes_nothing(fmt: Fmt, tmp_path: Path) -> None:
    """It exits 2, as whenever there are changes; --diff shows them."""
    assert fmt("--check") == (ExitCode.CHANGES, "manifests/deep/a.yaml\n", "")
    code, out, _ = fmt("--check", "--diff")
    assert code == ExitCode.CHANGES
    assert out.startswith("--- a/manifests/deep/a.yaml\n+++ b/manifests/deep/a.yaml\n@@ -1,4 +1,4 @@\n")
    assert (tmp_path / "manifests" / "deep" / "a.yaml").read_text() == MIXED


def test_paths(fmt: Fmt, tmp_path: Path) -> None:
    """A file or a folder of manifests, also outside a project; a byte order mark stays."""
    other = tmp_path / "other"
    other.mkdir()
    (other / "x.yaml").write_bytes(b"\xef\xbb\xbf" + MIXED.encode())
    (other / "y.yaml").write_text(MIXED)
    code, out, _ = fmt(str(other / "y.yaml"))
    assert (code, out.count("\n"), (other / "y.yaml").read_text()) == (ExitCode.OK, 1, ORDERED)
    assert fmt(str(other))[0] == ExitCode.OK
    assert (other / "x.yaml").read_bytes() == b"\xef\xbb\xbf" + ORDERED.encode()
    assert (tmp_path / "manifests" / "deep" / "a.yaml").read_text() == MIXED


@pytest.mark.parametrize(("path", "said"), [("nowhere", "no such file"), (".", "folder of a project")])
def test_paths_that_make_no_sense(path: str, said: str, fmt: Fmt, tmp_path: Path) -> None:
    """A wrong command line."""
    code, _, err = fmt(str(tmp_path / path))
    assert code == ExitCode.USAGE
    assert said in err


def test_what_is_left(fmt: Fmt, tmp_path: Path) -> None:
    """A file that cannot be ordered safely is named, and no reason to fail; the others are ordered."""
    (tmp_path / "manifests" / "odd.yaml").write_text("groups:\n  # whose?\n  - name: b\n  - name: a\n")
    code, out, err = fmt("--check")
    assert (code, out) == (ExitCode.CHANGES, "manifests/deep/a.yaml\n")
    assert "manifests/odd.yaml:3:3: warning: not ordered" in err
    assert fmt()[0] == ExitCode.OK
    assert fmt("--check")[0] == ExitCode.OK


def test_links_and_broken_yaml_are_errors(fmt: Fmt, tmp_path: Path) -> None:
    """No link is followed, or replaced by a file; the others are ordered."""
    outside = tmp_path / "outside.yaml"
    outside.write_text(MIXED)
    (tmp_path / "manifests" / "link.yaml").symlink_to(outside)
    (tmp_path / "manifests" / "broken.yaml").write_text("groups: [")
    code, out, err = fmt()
    assert (code, out) == (ExitCode.ERROR, "manifests/deep/a.yaml\n")
    assert "manifests/link.yaml: error: is a link" in err
    assert "manifests/broken.yaml:2:1: error" in err
    assert outside.read_text() == MIXED
    assert (tmp_path / "manifests" / "link.yaml").is_symlink()


def test_no_file_is_reached_through_a_linked_folder(fmt: Fmt, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A path that is given may lead out of the project only where it says so."""
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (outside / "a.yaml").write_text(MIXED)
    monkeypatch.chdir(tmp_path)
    Path("linked").symlink_to(outside)
    for path in ("linked", "linked/a.yaml"):
        code, _, err = fmt(path)
        assert (code, "linked/a.yaml: error: is a link" in err) == (ExitCode.ERROR, True)
    assert (outside / "a.yaml").read_text() == MIXED
    assert fmt(f"../{outside.name}/a.yaml")[0] == ExitCode.OK
    assert (outside / "a.yaml").read_text() == ORDERED
