"""Where the files live that travel with the package: JSON Schemas, the API description, workflows for CI."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent.parent


def schema_text(name: str) -> str:
    """The text of `schemas/<name>`. In a wheel the folder is inside the package, in a checkout beside it."""
    return _text(_PACKAGE / "schemas" / name, _PACKAGE.parent / "schemas" / name)


def ci_text(name: str) -> str:
    """The text of `examples/ci/<name>`, in a wheel and in a checkout likewise."""
    return _text(_PACKAGE / "ci" / name, _PACKAGE.parent / "examples" / "ci" / name)


def _text(inside: Path, beside: Path) -> str:
    return (inside if inside.exists() else beside).read_text(encoding="utf-8")
