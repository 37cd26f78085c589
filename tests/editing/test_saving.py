"""Edited manifests are written all or not at all, and never over what somebody else wrote meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmsconf.errors import LmsconfError
from lmsconf.support.atomic_files import write_all_or_none


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Two files."""
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("old\n")
    return tmp_path


BEFORE = {"a.yaml": b"old\n", "b.yaml": b"old\n"}


def test_a_file_that_changed_meanwhile_is_not_written_over(project: Path) -> None:
    """Then the other is not written either, and it is said which one it was."""
    (project / "b.yaml").write_text("newer\n")
    with pytest.raises(LmsconfError, match=r"b\.yaml was changed by another process"):
        write_all_or_none(project, BEFORE, {"a.yaml": b"new\n", "b.yaml": b"new\n"})
    assert [(project / name).read_text() for name in BEFORE] == ["old\n", "newer\n"]


def test_what_was_written_is_put_back_where_the_next_cannot_be(project: Path) -> None:
    """A write that fails leaves no file half way between two states of the manifests."""
    with pytest.raises(UnicodeDecodeError):
        write_all_or_none(project, BEFORE, {"a.yaml": b"new\n", "b.yaml": b"\xff"})
    assert [(project / name).read_text() for name in BEFORE] == ["old\n", "old\n"]


def test_all_are_written(project: Path) -> None:
    """Both hold what they are to hold, and nothing is left beside them."""
    write_all_or_none(project, BEFORE, {"a.yaml": b"new a\n", "b.yaml": b"new b\n"})
    assert {path.name: path.read_text() for path in project.iterdir()} == {"a.yaml": "new a\n", "b.yaml": "new b\n"}
