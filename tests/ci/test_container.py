"""The container file in examples/ci, judged as a file: by a linter, and by rules of its own."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from .test_workflows import CI, judged

FILE = CI / "container" / "Dockerfile"
IGNORED = CI / "container" / "Dockerfile.dockerignore"


def instructions() -> list[tuple[str, str]]:
    """Each instruction of the file, with its arguments in one line."""
    lines = FILE.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    words = (line.partition(" ") for line in lines if line and not line.startswith("#"))
    return [(name, " ".join(arguments.split())) for name, _, arguments in words]


@pytest.mark.slow
def test_a_linter_finds_nothing() -> None:
    """hadolint has no finding, of whatever level."""
    judged("hadolint", FILE)


def test_the_images_it_is_built_from_are_pinned() -> None:
    """Each by a digest; the digest itself is for the user to fill in."""
    images = [arguments.partition(" ")[0] for name, arguments in instructions() if name == "FROM"]
    assert len(images) == 2
    assert [image for image in images if not re.fullmatch(r"python:3\.\d+-slim@sha256:[0-9a-f]{64}", image)] == []


def test_nothing_is_installed_without_its_hash() -> None:
    """pip is called once, and wants the hash of all that it installs; nothing is downloaded in another way."""
    runs = " ".join(arguments for name, arguments in instructions() if name == "RUN")
    assert runs.count("pip install") == runs.count("--require-hashes") == 1
    assert not re.search(r"\b(curl|wget|apt|apt-get|git)\b|https?://", runs)
    assert "ADD" not in [name for name, _ in instructions()]


def test_it_runs_as_somebody_who_owns_nothing_in_it() -> None:
    """A number, so that Kubernetes can check it; it is set before the command, and no file is given to that user."""
    (user,) = [arguments for name, arguments in instructions() if name == "USER"]
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)
    assert [name for name, _ in instructions()][-2:] == ["USER", "CMD"]
    assert "--chown" not in FILE.read_text(encoding="utf-8")


def test_it_has_no_secret_and_no_state() -> None:
    """No token comes from a build argument or the environment; git, journals and databases stay outside."""
    assert not re.search(r"token|secret|password", FILE.read_text(encoding="utf-8"), re.IGNORECASE)
    patterns = [line for line in IGNORED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    for path in (".git", ".lmsconf", "workspace.db", ".env", "plan.json"):
        assert any(fnmatch(path, pattern) for pattern in patterns), path


def test_the_page_shows_how_it_is_run_read_only() -> None:
    """With a read-only file system, and a volume for the journals of apply alone."""
    page = Path(CI / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"^docker run .+$", page.replace("\\\n", " "), re.MULTILINE)
    assert {"--read-only", "--tmpfs", "/tmp", "--cap-drop"} <= set(line.split())  # noqa: S108  of the container
    assert "/project/.lmsconf" in line
