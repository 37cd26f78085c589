"""lmsconf: configuration as code for a learning platform's workspace."""

from __future__ import annotations

__version__ = "0.1.0"
