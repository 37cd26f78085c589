"""The workspace of a project behind a port, and the environment that leads commands there."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import fill_if_empty

TOKEN = "s3cret-" + "token"


@contextmanager
def served(root: Path, **options: Any) -> Iterator[tuple[Sandbox, dict[str, str]]]:
    """A sandbox with these options, filled from the seed of the project in that folder, if it has one."""
    seed = root / "workspace.yaml"
    sandbox = fill_if_empty(Sandbox(token=TOKEN, **options), seed if seed.exists() else None)
    try:
        with serve(sandbox) as server:
            yield sandbox, {"LMSCONF_URL": server.url, "LMSCONF_TOKEN": TOKEN}
    finally:
        sandbox.close_workspace()
