"""examples/ci/lmsconf.sh, the commands for any other CI system: run as they are, in order."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import junitparser
import pytest

from lmsconf.cli import app
from lmsconf.cli.run_command import run_command_line
from lmsconf.errors import ExitCode

from .actions import git

BEGUN = {
    *(".gitignore", "lmsconf.yaml", "manifests/first.yaml", "workspace.yaml"),
    *("schemas/manifest.schema.json", "schemas/project.schema.json"),
}
SCRIPT = Path(__file__).parent.parent.parent / "examples" / "ci" / "lmsconf.sh"


@pytest.fixture
def script(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Runs the script in a project that `lmsconf init` began, and gives exit code and output."""
    assert run_command_line(app, ["init", str(tmp_path)]) == ExitCode.OK

    def ran(*arguments: str) -> tuple[int, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("LMSCONF_")}
        ended = subprocess.run(
            [SCRIPT, *arguments],
            cwd=tmp_path,
            env={**kept, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE,
            text=True,
            timeout=60,
            check=False,
        )
        return ended.returncode, ended.stdout

    return ran


@pytest.mark.slow
def test_plan_then_apply_then_drift(script: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    """The plan's digest is the last line; apply does that plan and no other; then there is no drift."""
    code, text = script("plan")
    assert code == 0
    digest = text.splitlines()[-1]
    assert {"plan.json", "plan.html", "plan.md"} <= {path.name for path in tmp_path.iterdir()}
    (tmp_path / "manifests" / "b.yaml").write_text("grups: []\n", encoding="utf-8")
    assert script("plan")[0] == ExitCode.ERROR
    assert "manifests/b.yaml:1:1" in (tmp_path / "plan.md").read_text(encoding="utf-8")
    (tmp_path / "manifests" / "b.yaml").unlink()
    assert script("drift")[0] == ExitCode.CHANGES
    assert script("apply", "0" * 64)[0] == ExitCode.STALE
    assert script("apply", digest)[0] == ExitCode.OK
    assert script("drift")[0] == ExitCode.OK
    assert len(junitparser.JUnitXml.fromfile(str(tmp_path / "drift.xml"))) > 0
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "add", ".")
    assert set(git(tmp_path, "ls-files").splitlines()) == BEGUN  # git passes over all that was written since


@pytest.mark.parametrize("arguments", [(), ("deploy",), ("apply",), ("plan", "now")])
def test_wrong_words_do_nothing(script: Callable[..., tuple[int, str]], arguments: tuple[str, ...]) -> None:
    """Without a word that the script knows, or a digest to apply, nothing is run."""
    assert script(*arguments) == (ExitCode.USAGE, "")
