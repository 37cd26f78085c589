"""httpx without its command line, whose import takes a terminal library and as long as all the rest of httpx."""

from __future__ import annotations

import sys

if "httpx" not in sys.modules:
    # None makes `import httpx._main` fail, which httpx expects: its command line is an extra that may be missing.
    sys.modules["httpx._main"] = None  # type: ignore[assignment]  # documented in Python's import system
    try:
        import httpx
    finally:
        del sys.modules["httpx._main"]
else:
    import httpx

__all__ = ["httpx"]
