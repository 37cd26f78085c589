"""The program `lmsconf`, which is `python -m lmsconf` too."""

from __future__ import annotations

import gc
import sys

# Manifests, responses and what imports make are many small objects that live until the exit: collecting cycles at the
# default threshold takes a tenth of the time of a large plan. A higher one would keep the cycles that httpx makes of
# each response: 50 objects, and a plan of 200,000 people has 10,000 of them.
gc.set_threshold(200_000)

# httpx without its own command line, whose terminal library takes half as long to import as all the rest of httpx. For
# the import system, a module that is None is not installed.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # documented in Python's import system

from lmsconf.cli import console_script  # noqa: E402  # its imports make such objects

__all__ = ["console_script"]

if __name__ == "__main__":
    console_script()
