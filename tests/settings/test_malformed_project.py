"""Malformed project files: what is said of each, word by word."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from manifest.cases import Case, cases, shown

from lmsconf.errors import ProblemsFound
from lmsconf.project.settings import load_settings

CASES = cases(Path(__file__).parent / "malformed.txt")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_malformed_project_file(case: Case, tmp_path: Path) -> None:
    """A malformed project file is told about at file, line and column, with the reason and the way out."""
    (tmp_path / "lmsconf.yaml").write_text(case.text, encoding="utf-8")
    with pytest.raises(ProblemsFound) as raised:
        load_settings(tmp_path, None, {}, today=date(2026, 7, 1))
    assert shown(raised.value.problems) == case.told
    assert "s3cr3t" not in case.told
