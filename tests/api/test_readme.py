"""What the README says of the API is so: its table is counted, its script runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.transport import Sandbox

from .readme_table import README, shown, table

PAGE = README.read_text(encoding="utf-8")
SECTION = PAGE.partition("## The API")[2]
WORKSPACE = README.parent / "examples" / "quickstart" / "workspace.yaml"


def test_the_table_of_the_api_is_counted() -> None:
    """Operations, those in the client and in the sandbox, and the assumptions are as many as there are."""
    assert shown(PAGE) == table()


def test_all_of_the_api_is_in_client_and_sandbox() -> None:
    """60 of 60, in both."""
    assert table().splitlines()[-1].startswith("| all |  | 60 | 60 | 60 |")


def test_the_script_does_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The README's script has ten lines at most, and prints what the README says on the quickstart's workspace."""
    found = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", SECTION, re.DOTALL)
    assert found is not None
    script, printed = found.groups()
    assert len(script.splitlines()) <= 10
    sandbox = Sandbox(tmp_path / "w.db", seed=WORKSPACE)
    with serve(sandbox) as server:
        monkeypatch.setenv("LMSCONF_URL", server.url)
        monkeypatch.setenv("LMSCONF_TOKEN", "sandbox")
        exec(compile(script, "README.md", "exec"), {})  # noqa: S102  # our own page
    sandbox.close_workspace()
    assert capsys.readouterr().out == printed
