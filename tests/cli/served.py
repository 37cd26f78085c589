"""Projects as commands find them: a copy of the quickstart, and a workspace behind a port with the way there."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from lmsconf.sandbox.serve import serve
from lmsconf.sandbox.service import Sandbox
from lmsconf.workspace.connection import fill_if_empty

TOKEN = "s3cret-" + "token"
S = TypeVar("S", bound=Sandbox)


def quickstart(folder: Path) -> Path:
    """A copy of the quickstart below that folder, in which nothing has run."""
    example = Path(__file__).parent.parent.parent / "examples" / "quickstart"
    return Path(shutil.copytree(example, folder / "quickstart", ignore=shutil.ignore_patterns("*.db*", ".lmsconf")))


@contextmanager
def served(
    root: Path, kind: type[S] = Sandbox, token: str = TOKEN, **options: Any
) -> Iterator[tuple[S, dict[str, str]]]:
    """A sandbox with these options, filled from the seed of the project in that folder, if it has one."""
    seed = root / "workspace.yaml"
    sandbox = fill_if_empty(kind(token=token, **options), seed if seed.exists() else None)
    try:
        with serve(sandbox) as server:
            yield sandbox, {"LMSCONF_URL": server.url, "LMSCONF_TOKEN": token}
    finally:
        sandbox.close_workspace()
