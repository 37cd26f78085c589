"""Files shipped with the package: JSON Schemas, the API description, CI workflows, pages of the guide."""

from __future__ import annotations

import re
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent


def read_schema(name: str) -> str:
    """Return the text of `schemas/<name>`: inside the package in a wheel, next to it in a checkout."""
    return _text(_PACKAGE / "schemas" / name, _PACKAGE.parent / "schemas" / name)


def read_ci_workflow(name: str) -> str:
    """Return the text of a CI workflow: `ci/<name>` in the package of a wheel, `examples/ci/<name>` in a checkout."""
    return _text(_PACKAGE / "ci" / name, _PACKAGE.parent / "examples" / "ci" / name)


def guide_topics() -> list[str]:
    """Return the topics of `lmsconf help`."""
    return sorted(page.stem for page in (_PACKAGE / "guide").glob("*.md"))


def read_guide_page(topic: str) -> str:
    """Return the text of a page of the guide without its comments; `topic` is one of `guide_topics`."""
    text = (_PACKAGE / "guide" / f"{topic}.md").read_text(encoding="utf-8")
    return re.sub(r"^<!-- .* -->\n", "", text, flags=re.MULTILINE)


def _text(inside: Path, beside: Path) -> str:
    return (inside if inside.exists() else beside).read_text(encoding="utf-8")
