"""`python -m lmsconf` is `lmsconf`."""

from __future__ import annotations

from lmsconf.cli import console_script

console_script()
