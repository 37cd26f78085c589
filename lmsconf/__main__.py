"""The program `lmsconf`, which is `python -m lmsconf` too."""

from __future__ import annotations

import gc

# Manifests, responses and what imports make are many small objects that live until the exit: collecting cycles at the
# default threshold takes a tenth of the time of a large plan, and finds none.
gc.set_threshold(500_000)

from lmsconf.cli import console_script  # noqa: E402  # its imports make such objects

__all__ = ["console_script"]

if __name__ == "__main__":
    console_script()
