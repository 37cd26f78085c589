"""Projects whose manifests are committed, and their plans beside the committed ones."""

import subprocess
from pathlib import Path
from typing import cast

from flow.shell import Ran, lmsconf


def git(folder: Path, *arguments: str) -> str:
    """What git prints in a folder; the settings of the user who runs the tests do not count."""
    settings = ("user.name=x", "user.email=x@x.example", "commit.gpgsign=false", "protocol.file.allow=always")
    words = ["git", *(word for one in settings for word in ("-c", one)), *arguments]
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def init(folder: Path, *options: str) -> None:
    """Commit all that is in a folder to the branch main of a new repository."""
    git(folder, "init", "-q", "-b", "main", *options)
    commit(folder)


def commit(folder: Path) -> None:
    """Commit all that is in a folder."""
    git(folder, "add", ".")
    git(folder, "commit", "-q", "--allow-empty", "-m", "x")


def beside(folder: Path, *arguments: str, base: str = "main", code: int | None = None, **env: str) -> Ran:
    """The plan beside that of a base, as JSON."""
    return lmsconf(folder, "plan", "--base", base, "--format", "json", *arguments, env=env, code=code)


def origins(ran: Ran) -> dict[str, str]:
    """Address → where the change comes from."""
    assert ran.code == 0, ran.err
    return {change["address"]: change["origin"] for change in cast("list[dict[str, str]]", ran.document["changes"])}
