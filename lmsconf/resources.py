"""Where the files live that travel with the package: the JSON Schemas and the API description."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent


def schema_text(name: str) -> str:
    """The text of `schemas/<name>`. In a wheel the folder is inside the package, in a checkout beside it."""
    inside = _PACKAGE / "schemas" / name
    return (inside if inside.exists() else _PACKAGE.parent / "schemas" / name).read_text(encoding="utf-8")
