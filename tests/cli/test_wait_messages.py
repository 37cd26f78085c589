"""Whoever watches an apply is told what it waits for."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmsconf.cli import app
from lmsconf.cli.frame import run_command_line
from lmsconf.errors import ExitCode
from lmsconf.sandbox.faults import Fault, FaultScript
from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox


@pytest.mark.parametrize(("faults", "told"), [((), 0), ((Fault(operation="*-groups.rename", status=200),), 1)])
def test_a_wait_for_what_does_not_show_is_told_once(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    faults: tuple[Fault, ...],
    told: int,
) -> None:
    """On stderr, with the longest that it may take; where everything shows at once, nothing is said of it."""
    (tmp_path / "seed.yaml").write_text("groups: [{name: Old}]\n")
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "all.yaml").write_text("groups: [{name: New, previously: [Old]}]\n")
    monkeypatch.setenv("LMSCONF_KEY", "sandbox")
    sandbox = Sandbox(":memory:", seed=tmp_path / "seed.yaml", faults=FaultScript(*faults))
    with serve(sandbox) as server:
        (tmp_path / "lmsconf.yaml").write_text(
            f"workspaces: {{w: {{url: '{server.url}', token: {{env: LMSCONF_KEY}}}}}}\nsettle: 1s\n"
        )
        ended = run_command_line(app, ["-C", str(tmp_path), "apply", "--auto-approve"])
    sandbox.close_workspace()
    assert ended == (ExitCode.NOT_CONVERGED if told else ExitCode.OK)
    waits = [line for line in capsys.readouterr().err.splitlines() if "Waiting" in line]
    assert waits == ["Waiting until the changes are readable, at most 1 s."] * told
