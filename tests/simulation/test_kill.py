"""A process that dies at any of three places around a call leaves a journal that names that call, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmsconf.apply.run import execute
from lmsconf.journal.journal_reader import read_runs
from lmsconf.model.recorded_run import CallState

from .crashing_journal import KEPT, MortalJournal
from .reference_apply import alone, scene
from .request_faults import KILLED_UNRECORDED, Killed, at_call
from .schedules import Calm, ScriptedFaults


@pytest.mark.parametrize("kind", ["killed-before", "killed-after", KILLED_UNRECORDED])
def test_the_journal_tells_which_call_was_in_flight(tmp_path: Path, kind: str) -> None:
    """Wherever the process dies: all calls before are done, the one is in flight, and the run has no end."""
    stage = scene("mixed")
    for number in range(1, stage.calls + 1, 4):
        root = tmp_path / str(number)
        root.mkdir()
        stage.reset(Calm() if kind == KILLED_UNRECORDED else ScriptedFaults({number: at_call(kind, number)}))
        with alone(), MortalJournal.begin(root, stage.plan, meta={}, retention=KEPT) as journal:
            assert isinstance(journal, MortalJournal)
            journal.dies_at = number if kind == KILLED_UNRECORDED else None
            with pytest.raises(Killed):
                execute(stage.workspace, stage.plan, meta={}, journal=journal)
        [run] = read_runs(root)
        states = [call.state for call in run.calls]
        assert states == [*[CallState.DONE] * (number - 1), CallState.IN_FLIGHT]
        assert run.ending is None
