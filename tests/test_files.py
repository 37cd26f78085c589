"""Files are whole or not there, private, and never written through a link; what is no file is written into."""

import os
import resource
import stat
from pathlib import Path

import pytest

from lmsconf.errors import LmsconfError
from lmsconf.support import files
from lmsconf.support.files import (
    is_writable,
    leads_to_stdout,
    open_for_lines,
    read_own_file,
    read_text,
    write_atomically,
)


def descriptors() -> set[str]:
    """Those that this process has open."""
    return {one.name for one in Path("/dev/fd").iterdir()}


def test_writes_whole_private_files(tmp_path: Path) -> None:
    """The file holds the text byte for byte, may be read by its owner alone, and nothing is left beside it."""
    path = tmp_path / "plan.json"
    write_atomically(path, "Å\r\n")
    write_atomically(path, "Ö\r\n")
    assert path.read_bytes() == "Ö\r\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
    assert read_text(path) == "Ö\r\n"


def test_a_power_cut_finds_the_old_file_or_the_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The text is on the disk before it has its name, and the folder that lists the name after."""
    path, seen, sync = tmp_path / "plan.json", list[tuple[str, str]](), os.fsync
    write_atomically(path, "old")

    def watched(descriptor: int) -> None:
        is_folder = stat.S_ISDIR(os.fstat(descriptor).st_mode)
        seen.append(("folder" if is_folder else "file", path.read_text()))
        if is_folder:
            assert os.path.samestat(os.fstat(descriptor), tmp_path.stat())
        else:
            assert os.fstat(descriptor).st_size == len("new")
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", watched)
    write_atomically(path, "new")
    assert seen == [("file", "old"), ("folder", "new")]


def test_a_write_leaves_no_descriptor_open(tmp_path: Path) -> None:
    """A program that writes many files keeps neither them nor their folders open, also where a write fails."""
    before = descriptors()
    for _ in range(3):
        write_atomically(tmp_path / "plan.json", "new")
        with pytest.raises(LmsconfError):
            write_atomically(tmp_path / "missing" / "plan.json", "new")
    assert descriptors() <= before


def test_a_file_that_cannot_be_made_private_is_not_kept_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of somebody else, whose mode only its owner may set, is closed, and what the system said is raised."""

    def refused(descriptor: int, mode: int) -> None:
        raise PermissionError(descriptor, mode)

    monkeypatch.setattr(os, "fchmod", refused)
    before = descriptors()
    with pytest.raises(PermissionError):
        open_for_lines(tmp_path / "events.jsonl")
    assert descriptors() <= before


def test_mode_may_be_another(tmp_path: Path) -> None:
    """A caller may say that everybody can read the file, whatever the umask."""
    before = os.umask(0o077)
    try:
        write_atomically(tmp_path / "a", "", mode=0o644)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644


@pytest.mark.parametrize("to", ["target", "ring", f"/dev/fd/{'9' * 20}"])
def test_a_link_is_replaced_not_followed(tmp_path: Path, to: str) -> None:
    """What it points to is not touched, be it a file, itself, or a descriptor whose number is larger than any."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("precious")
    (tmp_path / "ring").symlink_to(link)
    link.symlink_to(to)
    write_atomically(link, "new")
    assert (link.is_symlink(), link.read_text(), target.read_text()) == (False, "new", "precious")


@pytest.mark.parametrize("linked", [False, True], ids=["itself", "linked"])
def test_a_pipe_stays_and_gets_the_text(tmp_path: Path, linked: bool) -> None:
    """What is neither a file nor a folder is written into, also through a link."""
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_atomically(link if linked else pipe, "Å")
        assert os.read(reader, 10) == "Å".encode()
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link", "pipe"]


def test_a_descriptor_by_its_name_is_that_descriptor(tmp_path: Path) -> None:
    """`/dev/fd/N` continues where its file is, and a link to it stays; the descriptor stays open."""
    link = tmp_path / "link"
    with (tmp_path / "file").open("w+b") as file:
        file.write(b"first ")
        file.flush()
        link.symlink_to(f"/dev/fd/{file.fileno()}")
        assert is_writable(link)
        write_atomically(link, "second")
        file.seek(0)
        assert file.read() == b"first second"
    assert link.is_symlink()


@pytest.mark.parametrize(("links", "leads_there"), [(30, True), (60, False)])
def test_a_descriptor_is_found_behind_as_many_links_as_the_system_follows(
    tmp_path: Path, links: int, leads_there: bool
) -> None:
    """A longer row of links leads nowhere, so a file may stand in the place of the first."""
    with (tmp_path / "file").open("w+b") as file:
        behind = f"/dev/fd/{file.fileno()}"
        for number in range(links):
            (tmp_path / f"link{number}").symlink_to(behind)
            behind = f"link{number}"
        write_atomically(tmp_path / behind, "text")
        assert (tmp_path / "file").read_text() == ("text" if leads_there else "")
    assert (tmp_path / behind).is_symlink() is leads_there


def test_a_file_for_lines_is_private_and_empty(tmp_path: Path) -> None:
    """Also where a file that others can read was there before; a pipe and a descriptor stay what they are."""
    path, pipe = tmp_path / "events.jsonl", tmp_path / "pipe"
    path.write_text("earlier")
    path.chmod(0o644)
    os.close(open_for_lines(path))
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("", 0o600)
    os.mkfifo(pipe)
    with os.fdopen(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
        with (
            os.fdopen(open_for_lines(pipe), "wb") as first,
            os.fdopen(open_for_lines(Path(f"/dev/fd/{first.fileno()}")), "wb"),
        ):
            assert is_writable(pipe)
            first.write(b"line")
        assert reader.read() == b"line"


def test_only_stdout_is_stdout(tmp_path: Path) -> None:
    """By whatever name it goes; other descriptors and files are none."""
    (tmp_path / "link").symlink_to("/dev/stdout")
    assert [leads_to_stdout(path) for path in (Path("/dev/stdout"), Path("/dev/fd/1"), tmp_path / "link")] == [True] * 3
    assert [leads_to_stdout(path) for path in (Path("/dev/fd/0"), Path("/dev/fd/2"), tmp_path / "1")] == [False] * 3


@pytest.mark.parametrize("name", ["missing/file", "folder", "file/below"])
def test_what_cannot_be_written_is_a_kind_error(tmp_path: Path, name: str) -> None:
    """The error names the path and a way out; no half file is left."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(LmsconfError, match="cannot be written") as caught:
        write_atomically(tmp_path / name, "x")
    assert caught.value.hint
    assert sorted(one.name for one in tmp_path.iterdir()) == ["file", "folder"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    """When there is no room for the new text, the old file stays and nothing is left beside it."""
    path = tmp_path / "a"
    write_atomically(path, "old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(LmsconfError, match="cannot be written: File too large"):
            write_atomically(path, "x" * 1000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_name_of_a_file_may_be_as_long_as_the_system_allows(tmp_path: Path) -> None:
    """The file that is renamed to it has a short name of its own."""
    path = tmp_path / ("😀" * 63)
    write_atomically(path, "text")
    assert read_text(path) == "text"


def test_a_file_is_read_up_to_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of the largest size is read whole, a larger one is refused; so is a pipe that brings more."""
    monkeypatch.setattr(files, "LARGEST", 5)
    path = tmp_path / "plan.json"
    for content, is_read in ((b"12345", True), (b"123456", False)):
        path.write_bytes(content)
        reading, writing = os.pipe()
        os.write(writing, content)
        os.close(writing)
        for one in (path, Path(f"/dev/fd/{reading}")):
            if is_read:
                assert read_text(one) == "12345"
            else:
                with pytest.raises(LmsconfError, match="is larger than"):
                    read_text(one)
        os.close(reading)
    with pytest.raises(LmsconfError, match="is a pipe or a device"):
        read_text(Path("/dev/null"), regular=True)


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "cannot be read: No such file"), (b"\xff\xfe", "is not UTF-8")],
    ids=["missing", "binary"],
)
def test_what_cannot_be_read_is_a_kind_error(tmp_path: Path, content: bytes | None, said: str) -> None:
    """The error says whether the file is missing or not text."""
    path = tmp_path / "a"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(LmsconfError, match=said):
        read_text(path)


@pytest.mark.parametrize(("mode", "held"), [(0o600, b"x"), (0o644, b"x"), (0o620, None), (0o602, None)])
def test_what_others_may_write_to_is_not_ones_own(tmp_path: Path, mode: int, held: bytes | None) -> None:
    """Neither everybody nor a group adds an approval, or what a person had before a probe."""
    (tmp_path / "file").write_bytes(b"x")
    (tmp_path / "file").chmod(mode)
    assert read_own_file(tmp_path / "file") == held
