"""Workspaces that many tests begin with are filled from their seed once, and copied."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

from lmsconf.api.spec import ApiSpec
from lmsconf.sandbox.service import Sandbox


def fill_by_copy(
    sandbox: Sandbox, seed: str, dialect: Mapping[str, str | int] | None, clock: Callable[[], float] | None = None
) -> None:
    """Fills an empty workspace of that dialect from a seed, in JSON or YAML, by copying one that was filled from it.

    clock: of times that the seed leaves out; by default they are those of the first copy.
    """
    filled = _filled(seed, json.dumps(dialect), clock() if clock else None)
    filled.store._connection.backup(sandbox.store._connection)


@lru_cache(maxsize=32)
def _filled(seed: str, dialect: str, now: float | None) -> Sandbox:
    """A workspace in which nothing has happened yet."""
    spec, clock = ApiSpec(json.loads(dialect)), time.time if now is None else lambda: now
    with TemporaryDirectory() as folder:
        path = Path(folder) / "seed.yaml"
        path.write_text(seed, encoding="utf-8")
        return Sandbox(spec=spec, clock=clock, seed=path)
