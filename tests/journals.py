"""Where the journals of a project are."""

from __future__ import annotations

from pathlib import Path

from lmsconf.journal.journal_folder import runs_folder

RUNS = Path(".lmsconf", "runs")


def runs_of(root: Path, url: str = "sandbox:workspace.db") -> Path:
    """The folder with the journals of the workspace with that URL."""
    return root / RUNS / runs_folder(url)
